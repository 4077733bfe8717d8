//! Two ways to multiply bits, and the choice between them.

#![allow(unsafe_code)]

use crate::kernels::boolean::BitMatrix;
use crate::kernels::boolean::matrix::CHUNK;
use crate::kernels::boolean::wide::{Chunk, Wide};
#[cfg(target_arch = "x86_64")]
use crate::kernels::has;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};
use std::ops::Range;

/// All unions of [`GROUP`] rows.
type Table = [Chunk; 1 << GROUP];
/// The tables for one word of A, on cache lines.
#[repr(align(64))]
struct Tables([Table; 64 / GROUP]);

/// Rows of B that one table covers. The 16 tables for a word of A take 16 KiB, within a first-level cache.
const GROUP: usize = 4;

impl BitMatrix {
    /// `self` or (A and B): element (i, j) also becomes 1 where some p has ones at (i, p) of A and (p, j) of
    /// B.
    ///
    /// Counts the ones of A and takes the cheaper method: the plain one (ones of A x n / 512 steps) or the
    /// Four Russians' (k / 4 x (m + 16) x n / 512 steps, which run four times as fast).
    ///
    /// # Panics
    /// If the shapes do not fit: A is m x k, B k x n, `self` m x n.
    ///
    /// # Example
    /// ```
    /// use apportion::kernels::BitMatrix;
    /// let a = BitMatrix::from_bytes(&[0, 1, 0, 0], 2, 2);
    /// let mut c = BitMatrix::identity(2);
    /// c.or_product(&a, &BitMatrix::from_bytes(&[0, 0, 1, 1], 2, 2));
    /// assert_eq!(c.to_bytes(), [1, 1, 0, 1]);
    /// ```
    pub fn or_product(&mut self, a: &Self, b: &Self) {
        if 4 * a.ones() < a.cols().div_ceil(GROUP) * (a.rows() + (1 << GROUP)) {
            self.or_product_by_rows(a, b);
        } else {
            self.or_product_by_tables(a, b);
        }
    }

    /// [`BitMatrix::or_product`] row by row: each 1 of A adds a row of B. Best where A has few ones.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn or_product_by_rows(&mut self, a: &Self, b: &Self) {
        self.check_shapes(a, b);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt") {
            if has!(Avx512: "avx512f") {
                // SAFETY: the features were just detected.
                return unsafe { by_rows_avx512(self, a, b) };
            } else if has!(Avx2: "avx2") {
                // SAFETY: the features were just detected.
                return unsafe { by_rows_avx2(self, a, b) };
            }
        }
        // SAFETY: needs no processor feature.
        unsafe { by_rows::<Chunk, 2>(self, a, b) }
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
    pub fn or_product_by_tables(&mut self, a: &Self, b: &Self) {
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

compiled_for!(by_rows_avx512 = by_rows::<__m512i, 8>, "avx512f,bmi1,popcnt");
compiled_for!(by_rows_avx2 = by_rows::<[__m256i; 2], 4>, "avx2,bmi1,popcnt");
compiled_for!(by_tables_avx512 = by_tables::<__m512i>, "avx512f");
compiled_for!(by_tables_avx2 = by_tables::<[__m256i; 2]>, "avx2");

/// Each row of C in strips of at most `WIDEST` chunks, as many as fit the registers.
///
/// # Safety
/// The processor has the feature of `W`; the same holds for all functions below.
#[inline(always)]
unsafe fn by_rows<W: Wide, const WIDEST: usize>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
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

#[inline(always)]
unsafe fn by_tables<W: Wide>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    let m = a.rows();
    // Word after word, in the order in which they are read: rows a power of two apart would compete for the
    // same cache lines.
    let words: Vec<u64> =
        (0..a.cols().div_ceil(64)).flat_map(|w| (0..m).map(move |i| a.words(i)[w])).collect();
    let mut tables = Tables([[[0; CHUNK]; 1 << GROUP]; 64 / GROUP]);
    let mut strip = Vec::with_capacity(m);
    let mut unfinished = Vec::with_capacity(m);
    let mut rest = vec![[0; CHUNK]; a.cols().div_ceil(64) + 1];
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
            let mut kept = 0;
            for at_row in 0..unfinished.len() {
                let i: usize = unfinished[at_row];
                // SAFETY: guaranteed by the caller.
                let done = unsafe { add::<W>(&mut strip[i], words[i], &tables, &rest[at + 1]) };
                unfinished[kept] = i;
                kept += usize::from(!done);
            }
            unfinished.truncate(kept);
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
        let mut union = W::load(&[0; CHUNK]);
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
    table[0] = [0; CHUNK];
    for (bit, row) in rows.enumerate() {
        let (known, new) = table.split_at_mut(1 << bit);
        for (new, known) in new.iter_mut().zip(known) {
            // SAFETY: guaranteed by the caller.
            unsafe { W::load(known).or(W::load(&b.row(row)[place])).store(new) }
        }
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
        let portable_rows = |c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix| {
            // SAFETY: plain chunks need no feature of the processor.
            unsafe { by_rows::<Chunk, 2>(c, a, b) }
        };
        let portable_tables = |c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix| {
            // SAFETY: as above.
            unsafe { by_tables::<Chunk>(c, a, b) }
        };
        let ways = [
            BitMatrix::or_product,
            BitMatrix::or_product_by_rows,
            BitMatrix::or_product_by_tables,
            portable_rows,
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
                by_rows_avx2(&mut by_rows, &a, &b);
                by_tables_avx2(&mut by_tables, &a, &b);
            }
            assert_eq!((&by_rows, &by_tables), (&expected, &expected), "{m} x {n} x {k} by AVX2");
        }
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
