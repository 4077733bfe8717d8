//! Two ways to multiply bits, and the choice between them.

#![allow(unsafe_code)]

use crate::kernels::boolean::BitMatrix;
use crate::kernels::boolean::matrix::{CHUNK, Chunk};
#[cfg(target_arch = "x86_64")]
use crate::kernels::has;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::ops::Range;

impl BitMatrix {
    /// `self` or (A and B): element (i, j) also becomes 1 where some p has ones at (i, p) of A and (p, j) of
    /// B.
    ///
    /// Takes the method that is cheaper for the densities of A and B, which it estimates from an eighth of
    /// their bits: the plain one (ones of A x n / 512 steps) or the Four Russians' (at most k / 4 x (m + 16)
    /// x n / 512 steps).
    ///
    /// # Panics
    /// If the shapes do not fit: A is m x k, B k x n, `self` m x n.
    ///
    /// # Example
    /// ```
    /// use apportion_kernels::kernels::BitMatrix;
    /// let a = BitMatrix::from_bytes(&[0, 1, 0, 0], 2, 2);
    /// let mut c = BitMatrix::identity(2);
    /// c.or_product(&a, &BitMatrix::from_bytes(&[0, 0, 1, 1], 2, 2));
    /// assert_eq!(c.to_bytes(), [1, 1, 0, 1]);
    /// ```
    pub fn or_product(&mut self, a: &Self, b: &Self) {
        if by_rows_is_cheaper(a, b) {
            self.or_product_by_rows(a, b);
        } else {
            self.or_product_by_tables(a, b);
        }
    }

    /// [`BitMatrix::or_product`] row by row: each 1 of A adds a row of B. Best where A has few ones.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub(crate) fn or_product_by_rows(&mut self, a: &Self, b: &Self) {
        self.check_shapes(a, b);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt") {
            let by_rows = match (has!(Avx512: "avx512f"), has!(Avx2: "avx2"), is_narrow(b)) {
                (true, _, true) => Some(narrow_avx512 as Compiled),
                (true, _, false) => Some(listed_avx512 as Compiled),
                (_, true, true) => Some(narrow_avx2 as Compiled),
                (_, true, false) => Some(listed_avx2 as Compiled),
                _ => None,
            };
            if let Some(by_rows) = by_rows {
                // SAFETY: the features were just detected.
                return unsafe { by_rows(self, a, b) };
            }
        }
        portable_by_rows(self, a, b);
    }

    /// [`BitMatrix::or_product`] by tables of all unions of four rows of B. Best where A is dense.
    ///
    /// Within a strip of 512 columns, rows of C that have all ones of the rows of B still to come are skipped
    /// from then on: rows of a random dense product after about 64 of them, in O(m n / 512) steps for each.
    ///
    /// Source: Arlazarov, Dinic, Kronrod and Faradzhev 1970; tables that fit the cache as in Albrecht, Bard
    /// and Hart, Algorithm 898, 2010.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub(crate) fn or_product_by_tables(&mut self, a: &Self, b: &Self) {
        self.check_shapes(a, b);
        #[cfg(target_arch = "x86_64")]
        if has!(Avx512: "avx512f") {
            // SAFETY: the feature was just detected.
            return unsafe { by_tables_avx512(self, a, b) };
        } else if has!(Avx2: "avx2") {
            // SAFETY: the feature was just detected.
            return unsafe { by_tables_avx2(self, a, b) };
        }
        // SAFETY: needs no processor feature.
        unsafe { by_tables::<Chunk>(self, a, b) }
    }

    fn check_shapes(&self, a: &Self, b: &Self) {
        assert!(
            a.cols() == b.rows() && self.rows() == a.rows() && self.cols() == b.cols(),
            "the shapes {} x {}, {} x {} and {} x {} fit",
            a.rows(),
            a.cols(),
            b.rows(),
            b.cols(),
            self.rows(),
            self.cols()
        );
    }
}

/// Whether A has too few ones for tables.
///
/// By tables a row of C is left when nothing that remains of B can add to it: with random bits after (ln n +
/// 0.58) / (density of A x density of B) rows of B, the mean of the greatest of n exponential variables. To
/// fetch it and to put it back takes as long as 16 tables. By rows, finding a 1 takes as long as 1.5 chunks
/// of one table, and adding a chunk an eighth of it. The constants fit sizes of 64 to 4,096 on Zen 4.
fn by_rows_is_cheaper(a: &BitMatrix, b: &BitMatrix) -> bool {
    let [m, k, n] = [a.rows(), a.cols(), b.cols()].map(|length| length as f64);
    let (ones, others) = (a.density(), b.density());
    let full = (n.clamp(1.0, 512.0).ln() + 0.58) / (ones * others);
    let by_tables = (k.min(full) / GROUP as f64 + 16.0) * (m + f64::from(1 << GROUP));
    m * k * ones * (1.5 + b.width().min(8) as f64 / 8.0) < by_tables
}

/// Any processor's way by rows.
fn portable_by_rows(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    // SAFETY: plain chunks need no feature of the processor.
    unsafe { if is_narrow(b) { narrow::<Chunk>(c, a, b) } else { listed::<Chunk, 2>(c, a, b) } }
}

/// A body that needs features of the processor.
#[cfg(target_arch = "x86_64")]
type Compiled = unsafe fn(&mut BitMatrix, &BitMatrix, &BitMatrix);

/// The same body, compiled for wider registers, which only some processors have.
macro_rules! compiled_for {
    ($name:ident = $body:expr, $feature:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        fn $name(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
            // SAFETY: the feature is enabled here; callers guarantee that the processor has it.
            unsafe { $body(c, a, b) }
        }
    };
}

compiled_for!(narrow_avx512 = narrow::<__m512i>, "avx512f,bmi1,popcnt");
compiled_for!(narrow_avx2 = narrow::<[__m256i; 2]>, "avx2,bmi1,popcnt");
compiled_for!(listed_avx512 = listed::<__m512i, 8>, "avx512f,bmi1,popcnt");
compiled_for!(listed_avx2 = listed::<[__m256i; 2], 4>, "avx2,bmi1,popcnt");
compiled_for!(by_tables_avx512 = by_tables::<__m512i>, "avx512f");
compiled_for!(by_tables_avx2 = by_tables::<[__m256i; 2]>, "avx2");

// Row by row: each 1 of A adds a row of B.

/// Rows of C of at most this many chunks are kept in registers while bits of A lead straight to rows of B. In
/// wider ones the columns of all ones are listed first, which costs less than to read A once for each strip.
const NARROW: usize = 4;

/// Whether [`narrow`] multiplies; otherwise [`listed`] does.
pub(super) fn is_narrow(b: &BitMatrix) -> bool {
    b.width() <= NARROW
}

/// C |= A B where rows of B and C have at most [`NARROW`] chunks.
///
/// # Safety
/// The processor has the feature of `W`; the same holds for all functions below.
///
/// # Panics
/// If rows have more chunks.
#[inline(always)]
pub(super) unsafe fn narrow<W: Wide>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match b.width() {
            0 => (),
            1 => exactly::<W, 1>(c, a, b),
            2 => exactly::<W, 2>(c, a, b),
            3 => exactly::<W, 3>(c, a, b),
            NARROW => exactly::<W, NARROW>(c, a, b),
            width => unreachable!("{width} chunks are a wide row"),
        }
    }
}

/// Where rows of B and C have `WIDTH` chunks.
///
/// Each word of A that has ones adds two rows at a time, one of them twice where the number of ones is odd: a
/// branch on a single 1 would be mispredicted so often that it would take longer than the row.
#[inline(always)]
unsafe fn exactly<W: Wide, const WIDTH: usize>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    let rows_of_a = a.chunks().chunks_exact(a.width().max(1));
    let rows_of_c = c.chunks_mut().as_chunks_mut::<WIDTH>().0.iter_mut();
    let b = b.chunks().as_chunks::<WIDTH>().0;
    for (chunks, row) in rows_of_a.zip(rows_of_c) {
        // SAFETY: guaranteed by the caller, here and below.
        let mut sums = row.each_ref().map(|chunk| unsafe { W::load(chunk) });
        for (chunk, b) in chunks.iter().zip(b.chunks(64 * CHUNK)) {
            // SAFETY: as above.
            let mut places = unsafe { W::load(chunk).places() };
            while places != 0 {
                let place = places.trailing_zeros() as usize;
                places &= places - 1;
                let (b, mut left) = (&b[64 * place..], chunk.0[place]);
                while left != 0 {
                    let first = left.trailing_zeros() as usize;
                    left &= left - 1;
                    let second = if left == 0 { first } else { left.trailing_zeros() as usize };
                    left &= left.wrapping_sub(1);
                    for (sum, (x, y)) in sums.iter_mut().zip(b[first].iter().zip(&b[second])) {
                        // SAFETY: as above.
                        *sum = unsafe { sum.or(W::load(x)).or(W::load(y)) };
                    }
                }
            }
        }
        for (chunk, sum) in row.iter_mut().zip(sums) {
            // SAFETY: as above.
            unsafe { sum.store(chunk) }
        }
    }
}

/// C |= A B, each row of C in strips of at most `WIDEST` chunks, as many as fit the registers.
#[inline(always)]
pub(super) unsafe fn listed<W: Wide, const WIDEST: usize>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    let mut room = Vec::new();
    for i in 0..a.rows() {
        let (ones, row, mut start) = (a.ones_of(i, &mut room), c.row_mut(i), 0);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if WIDEST >= 8 {
                strips::<W, 8>(row, &mut start, ones, b);
            }
            if WIDEST >= 4 {
                strips::<W, 4>(row, &mut start, ones, b);
            }
            strips::<W, 2>(row, &mut start, ones, b);
            strips::<W, 1>(row, &mut start, ones, b);
        }
    }
}

/// From `start` on, `STRIP` chunks at a time, which stay in registers while the rows of B pass by.
#[inline(always)]
unsafe fn strips<W: Wide, const STRIP: usize>(
    row: &mut [Chunk],
    start: &mut usize,
    ones: &[usize],
    b: &BitMatrix,
) {
    for strip in row[*start..].as_chunks_mut::<STRIP>().0 {
        // SAFETY: guaranteed by the caller, here and below.
        let mut sums = strip.each_ref().map(|chunk| unsafe { W::load(chunk) });
        for &p in ones {
            for (sum, from) in sums.iter_mut().zip(&b.row(p)[*start..][..STRIP]) {
                // SAFETY: as above.
                *sum = unsafe { sum.or(W::load(from)) };
            }
        }
        for (chunk, sum) in strip.iter_mut().zip(sums) {
            // SAFETY: as above.
            unsafe { sum.store(chunk) }
        }
        *start += STRIP;
    }
}

// By tables of all unions of four rows of B, which each row of C looks up.

/// All unions of [`GROUP`] rows.
type Table = [Chunk; 1 << GROUP];
/// The tables for one word of A.
struct Tables([Table; 64 / GROUP]);

/// Rows of B that one table covers. The 16 tables for a word of A take 16 KiB, within a first-level cache.
pub(super) const GROUP: usize = 4;

/// C |= A B.
///
/// # Safety
/// The processor has the feature of `W`; the same holds for all functions below.
#[inline(always)]
pub(super) unsafe fn by_tables<W: Wide>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    let m = a.rows();
    // Word after word, in the order in which they are read: rows a power of two apart would compete for the
    // same cache lines.
    let words: Vec<u64> =
        (0..a.cols().div_ceil(64)).flat_map(|w| (0..m).map(move |i| a.words(i)[w])).collect();
    let mut tables = Tables([[Chunk([0; CHUNK]); 1 << GROUP]; 64 / GROUP]);
    let mut strip = Vec::with_capacity(m);
    let mut unfinished = Vec::with_capacity(m);
    let mut rest = vec![Chunk([0; CHUNK]); a.cols().div_ceil(64) + 1];
    for place in 0..b.width() {
        strip.clear();
        strip.extend((0..m).map(|i| c.row(i)[place]));
        unfinished.clear();
        // SAFETY: guaranteed by the caller, here and below.
        unsafe {
            unite::<W>(&mut rest, b, place);
            unfinished.extend((0..m).filter(|&i| !W::load(&strip[i]).covers(W::load(&rest[0]))));
        }
        for (at, words) in words.chunks_exact(m.max(1)).enumerate() {
            if unfinished.is_empty() {
                break;
            }
            for (table, first) in tables.0.iter_mut().zip((64 * at..).step_by(GROUP)) {
                // SAFETY: guaranteed by the caller.
                unsafe { fill::<W>(table, b, place, first..b.rows().min(first + GROUP)) }
            }
            let mut count = 0;
            for at_row in 0..unfinished.len() {
                let i: usize = unfinished[at_row];
                // SAFETY: guaranteed by the caller.
                let done = unsafe { add::<W>(&mut strip[i], words[i], &tables, &rest[at + 1]) };
                unfinished[count] = i;
                count += usize::from(!done);
            }
            unfinished.truncate(count);
        }
        for (i, &chunk) in strip.iter().enumerate() {
            c.row_mut(i)[place] = chunk;
        }
    }
}

/// Sets each element to the union of all rows of B from its word of A on: what a row of C may still gain.
#[inline(always)]
unsafe fn unite<W: Wide>(rest: &mut [Chunk], b: &BitMatrix, place: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut union = W::load(&Chunk([0; CHUNK]));
        for (at, rest) in rest.iter_mut().enumerate().rev() {
            for row in 64 * at..b.rows().min(64 * (at + 1)) {
                union = union.or(W::load(&b.row(row)[place]));
            }
            union.store(rest);
        }
    }
}

/// Adds the table entries that the word's groups of bits select, one from each table. True if the sum has all
/// that the row may still gain.
#[inline(always)]
unsafe fn add<W: Wide>(chunk: &mut Chunk, word: u64, tables: &Tables, rest: &Chunk) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sum = W::load(chunk);
        for (t, table) in tables.0.iter().enumerate() {
            sum = sum.or(W::load(&table[(word >> (t * GROUP)) as usize % (1 << GROUP)]));
        }
        sum.store(chunk);
        sum.covers(W::load(rest))
    }
}

/// Sets entry x to the union of the rows whose bits are set in x. Each entry takes one union, with the entry
/// that lacks the highest bit of x.
#[inline(always)]
unsafe fn fill<W: Wide>(table: &mut Table, b: &BitMatrix, place: usize, rows: Range<usize>) {
    table[0] = Chunk([0; CHUNK]);
    for (bit, row) in rows.enumerate() {
        let (known, new) = table.split_at_mut(1 << bit);
        for (new, known) in new.iter_mut().zip(known) {
            // SAFETY: guaranteed by the caller.
            unsafe { W::load(known).or(W::load(&b.row(row)[place])).store(new) }
        }
    }
}

// 512 bits in registers. Written with explicit vectors, since the compiler would gather single words from
// many tables.

/// A chunk in registers.
///
/// # Safety
/// Every function needs the processor feature that the implementing type names.
pub(super) trait Wide: Copy {
    unsafe fn load(chunk: &Chunk) -> Self;
    unsafe fn store(self, chunk: &mut Chunk);
    unsafe fn or(self, other: Self) -> Self;
    /// True if it has all ones of the other.
    unsafe fn covers(self, other: Self) -> bool;
    /// The words that have ones, the first in the lowest bit.
    unsafe fn places(self) -> u8;
}

/// Any processor.
impl Wide for Chunk {
    #[inline(always)]
    unsafe fn load(chunk: &Chunk) -> Self {
        *chunk
    }
    #[inline(always)]
    unsafe fn store(self, chunk: &mut Chunk) {
        *chunk = self;
    }
    #[inline(always)]
    unsafe fn or(mut self, other: Self) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x |= y;
        }
        self
    }
    #[inline(always)]
    unsafe fn covers(self, other: Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |missing, (x, y)| missing | (y & !x)) == 0
    }
    #[inline(always)]
    unsafe fn places(self) -> u8 {
        self.0.iter().enumerate().fold(0, |places, (at, word)| places | u8::from(*word != 0) << at)
    }
}

/// AVX-512F.
#[cfg(target_arch = "x86_64")]
impl Wide for __m512i {
    #[inline(always)]
    unsafe fn load(chunk: &Chunk) -> Self {
        // SAFETY: a chunk has 64 bytes, aligned to them; the trait's contract grants the feature, here and
        // below.
        unsafe { _mm512_load_si512(chunk.0.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, chunk: &mut Chunk) {
        // SAFETY: as in `load`.
        unsafe { _mm512_store_si512(chunk.0.as_mut_ptr().cast(), self) }
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: as in `load`.
        unsafe { _mm512_or_si512(self, other) }
    }
    #[inline(always)]
    unsafe fn covers(self, other: Self) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            let missing = _mm512_andnot_si512(self, other);
            _mm512_test_epi64_mask(missing, missing) == 0
        }
    }
    #[inline(always)]
    unsafe fn places(self) -> u8 {
        // SAFETY: as in `load`.
        unsafe { _mm512_test_epi64_mask(self, self) }
    }
}

/// AVX2.
#[cfg(target_arch = "x86_64")]
impl Wide for [__m256i; 2] {
    #[inline(always)]
    unsafe fn load(chunk: &Chunk) -> Self {
        let from = chunk.0.as_ptr().cast::<__m256i>();
        // SAFETY: a chunk has twice 32 bytes, aligned to 64; the trait's contract grants the feature, here
        // and below.
        unsafe { [_mm256_load_si256(from), _mm256_load_si256(from.add(1))] }
    }
    #[inline(always)]
    unsafe fn store(self, chunk: &mut Chunk) {
        let to = chunk.0.as_mut_ptr().cast::<__m256i>();
        // SAFETY: as in `load`.
        unsafe {
            _mm256_store_si256(to, self[0]);
            _mm256_store_si256(to.add(1), self[1]);
        }
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: as in `load`.
        unsafe { [_mm256_or_si256(self[0], other[0]), _mm256_or_si256(self[1], other[1])] }
    }
    #[inline(always)]
    unsafe fn covers(self, other: Self) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            let missing = [_mm256_andnot_si256(self[0], other[0]), _mm256_andnot_si256(self[1], other[1])];
            let missing = _mm256_or_si256(missing[0], missing[1]);
            _mm256_testz_si256(missing, missing) == 1
        }
    }
    #[inline(always)]
    unsafe fn places(self) -> u8 {
        // SAFETY: as in `load`.
        let [low, high] = self.map(|words| unsafe {
            let empty = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(empty)) as u8
        });
        !(low | high << 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    /// A matrix with about one in `rarity` bits set.
    fn sample(rows: usize, cols: usize, rarity: usize, seed: u64) -> BitMatrix {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..rows * cols).map(|_| u8::from(random.below(rarity) == 0)).collect();
        BitMatrix::from_bytes(&bytes, rows, cols)
    }

    /// The definition, element by element.
    fn by_definition(c: &BitMatrix, a: &BitMatrix, b: &BitMatrix) -> BitMatrix {
        let mut result = c.clone();
        for (i, j) in (0..c.rows()).flat_map(|i| (0..c.cols()).map(move |j| (i, j))) {
            if (0..a.cols()).any(|p| a.get(i, p) && b.get(p, j)) {
                result.set(i, j);
            }
        }
        result
    }

    fn check([m, n, k]: [usize; 3], rarity: usize, seed: u64) {
        let (a, b) = (sample(m, k, rarity, seed), sample(k, n, rarity, seed + 1));
        let before = sample(m, n, 9, seed + 2);
        let expected = by_definition(&before, &a, &b);
        let portable_tables = |c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix| {
            // SAFETY: plain chunks need no feature of the processor.
            unsafe { by_tables::<Chunk>(c, a, b) }
        };
        let ways = [
            BitMatrix::or_product,
            BitMatrix::or_product_by_rows,
            BitMatrix::or_product_by_tables,
            portable_by_rows,
            portable_tables,
        ];
        for (way, product) in ways.into_iter().enumerate() {
            let mut c = before.clone();
            product(&mut c, &a, &b);
            assert_eq!(c, expected, "{m} x {n} x {k}, one in {rarity}, way {way}");
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            let (mut by_rows, mut by_tables) = (before.clone(), before);
            // SAFETY: the feature was just detected.
            unsafe {
                if is_narrow(&b) {
                    narrow_avx2(&mut by_rows, &a, &b);
                } else {
                    listed_avx2(&mut by_rows, &a, &b);
                }
                by_tables_avx2(&mut by_tables, &a, &b);
            }
            assert_eq!((&by_rows, &by_tables), (&expected, &expected), "{m} x {n} x {k} by AVX2");
        }
    }

    /// Far from where the two ways take the same time.
    #[test]
    fn few_ones_go_by_rows_and_many_by_tables() {
        for n in [128, 512, 1024] {
            let (few, many) = (sample(n, n, 100, 1), sample(n, n, 2, 2));
            assert!(by_rows_is_cheaper(&few, &few) && by_rows_is_cheaper(&few, &many), "{n}");
            assert!(!by_rows_is_cheaper(&many, &many), "{n}");
        }
        let none = BitMatrix::zeros(64, 64);
        assert!(by_rows_is_cheaper(&none, &none) && by_rows_is_cheaper(&none, &sample(64, 64, 2, 3)));
    }

    #[test]
    fn awkward_sizes() {
        for shape in [
            [0, 3, 2],
            [3, 0, 2],
            [3, 2, 0],
            [1, 1, 1],
            [1, 7, 129],
            [7, 1, 8],
            [5, 513, 127],
            [3, 512, 128],
            [67, 61, 257],
            [2, 1100, 9],
            [300, 70, 640],
            [3, 7900, 70],
            [2, 40, 4200],
        ] {
            for rarity in [1, 2, 40] {
                check(shape, rarity, 5);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn equals_the_definition(
            shape in [1usize..40, 1usize..600, 1usize..300],
            rarity in 1usize..200,
            seed in 0u64..1 << 40,
        ) {
            check(shape, rarity, seed);
        }

        #[test]
        fn products_are_associative(shape in [1usize..70, 1usize..70, 1usize..70, 1usize..70], seed in 0u64..1 << 40) {
            let [m, k, l, n] = shape;
            let times = |x: &BitMatrix, y: &BitMatrix| {
                let mut z = BitMatrix::zeros(x.rows(), y.cols());
                z.or_product(x, y);
                z
            };
            let (a, b, c) = (sample(m, k, 8, seed), sample(k, l, 8, seed + 1), sample(l, n, 8, seed + 2));
            prop_assert_eq!(times(&times(&a, &b), &c), times(&a, &times(&b, &c)));
            prop_assert_eq!(times(&a, &BitMatrix::identity(k)), a);
        }
    }
}
