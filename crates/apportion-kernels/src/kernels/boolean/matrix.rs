//! A matrix of bits, packed.

#![allow(unsafe_code)]

use crate::kernels::team::{Shared, split_rows};
use crate::kernels::view::check_shapes;
use crate::kernels::{Alone, Loop, Team, View, ViewMut, widest};

/// Words of a chunk: 512 bits, one register of the widest kind.
pub(super) const CHUNK: usize = 8;

/// 512 columns of one row, on a cache line of its own: a register that spans two takes twice as long to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Chunk(pub [u64; CHUNK]);

// SAFETY: eight words without padding, since their size is the alignment.
unsafe impl bytemuck::Zeroable for Chunk {}
// SAFETY: as above; every bit pattern is a value.
unsafe impl bytemuck::Pod for Chunk {}

/// Columns of ones that are written without a branch.
const AT_ONCE: usize = 2;

/// A matrix of bits. Rows start on a multiple of 512 bits; bits beyond the columns are 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BitMatrix {
    rows: usize,
    cols: usize,
    chunks: Vec<Chunk>,
}

impl BitMatrix {
    /// All bits 0.
    ///
    /// # Panics
    /// If the matrix exceeds the address space.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        let chunks = rows.checked_mul(cols.div_ceil(64 * CHUNK));
        let chunks = chunks.unwrap_or_else(|| panic!("{rows} x {cols} bits exceed the address space"));
        Self { rows, cols, chunks: vec![Chunk([0; CHUNK]); chunks] }
    }

    /// The ones on the diagonal of an n x n matrix.
    pub fn identity(n: usize) -> Self {
        let mut matrix = Self::zeros(n, n);
        (0..n).for_each(|i| matrix.set(i, i));
        matrix
    }

    /// From one byte per element, row by row: any byte but 0 is a 1.
    ///
    /// # Panics
    /// If there are not `rows * cols` bytes.
    pub fn from_bytes(bytes: &[u8], rows: usize, cols: usize) -> Self {
        let fits = rows.checked_mul(cols) == Some(bytes.len());
        assert!(fits, "{} bytes for {rows} x {cols} elements", bytes.len());
        Self::of_view(View::dense(bytes, rows, cols), &Alone)
    }

    /// From one byte per element, by the threads of a team: any byte but 0 is a 1.
    fn of_view(bytes: View<u8>, team: &dyn Team) -> Self {
        let mut matrix = Self::zeros(bytes.rows(), bytes.cols());
        let width = matrix.width();
        let chunks = Shared::new(&mut matrix.chunks);
        team.share(bytes.rows(), &|rows| {
            for i in rows {
                // SAFETY: a team passes each row once.
                let row = unsafe { chunks.part_mut(i * width..(i + 1) * width) };
                pack_row(bytemuck::cast_slice_mut(row), bytes.row(i));
            }
        });
        matrix
    }

    /// One byte per element, 0 or 1, row by row.
    pub fn to_bytes(&self) -> Vec<u8> {
        (0..self.rows).flat_map(|i| (0..self.cols).map(move |j| self.get(i, j).into())).collect()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of ones.
    pub fn ones(&self) -> usize {
        let mut ones = 0;
        widest(Count(bytemuck::cast_slice(&self.chunks), &mut ones));
        ones as usize
    }

    /// The share of ones among the elements, 0 to 1: of matrices of more than 256 chunks an estimate from an
    /// eighth of them.
    pub(super) fn density(&self) -> f64 {
        let mut share = 0.0;
        widest(Sample(&self.chunks, &mut share));
        share * self.chunks.len() as f64 / (self.rows * self.cols).max(1) as f64
    }

    /// Element (`i`, `j`).
    pub fn get(&self, i: usize, j: usize) -> bool {
        assert!(j < self.cols, "column {j} is one of {}", self.cols);
        self.words(i)[j / 64] >> (j % 64) & 1 == 1
    }

    /// Sets element (`i`, `j`) to 1.
    pub fn set(&mut self, i: usize, j: usize) {
        assert!(j < self.cols, "column {j} is one of {}", self.cols);
        self.words_mut(i)[j / 64] |= 1 << (j % 64);
    }

    /// The bits of row `i`, the first column in the lowest bit of the first word; zeros fill the last words.
    pub fn words(&self, i: usize) -> &[u64] {
        bytemuck::cast_slice(self.row(i))
    }

    fn words_mut(&mut self, i: usize) -> &mut [u64] {
        bytemuck::cast_slice_mut(self.row_mut(i))
    }

    /// All rows, one after the other.
    pub(super) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    pub(super) fn chunks_mut(&mut self) -> &mut [Chunk] {
        &mut self.chunks
    }

    /// Chunks of a row.
    pub(super) fn width(&self) -> usize {
        self.cols.div_ceil(64 * CHUNK)
    }

    pub(super) fn row(&self, i: usize) -> &[Chunk] {
        assert!(i < self.rows, "row {i} is one of {}", self.rows);
        &self.chunks[i * self.width()..][..self.width()]
    }

    pub(super) fn row_mut(&mut self, i: usize) -> &mut [Chunk] {
        assert!(i < self.rows, "row {i} is one of {}", self.rows);
        let width = self.width();
        &mut self.chunks[i * width..][..width]
    }

    /// The columns of the ones of row `i`, written to `room`, which grows as needed.
    ///
    /// Words of zeros are found 64 at a time, and each other word writes [`AT_ONCE`] columns, however few
    /// ones it has: branches on single words and bits would be mispredicted so often that they would take
    /// longer than the rows to which the columns lead.
    #[inline(always)]
    pub(super) fn ones_of<'a>(&self, i: usize, room: &'a mut Vec<usize>) -> &'a [usize] {
        room.resize(64 * CHUNK * self.width() + AT_ONCE, 0);
        let mut count = 0;
        for (words, first) in self.words(i).chunks(64).zip((0..).step_by(64 * 64)) {
            let mut some = 0_u64;
            for (place, &word) in words.iter().enumerate() {
                some |= u64::from(word != 0) << place;
            }
            while some != 0 {
                let place = some.trailing_zeros() as usize;
                some &= some - 1;
                let mut left = words[place];
                let end = count + left.count_ones() as usize;
                while count < end {
                    let written = AT_ONCE.min(end - count);
                    for column in &mut room[count..][..AT_ONCE] {
                        *column = first + 64 * place + left.trailing_zeros() as usize;
                        left &= left.wrapping_sub(1);
                    }
                    count += written;
                }
            }
        }
        &room[..count]
    }
}

/// Counts the ones of words.
struct Count<'a>(&'a [u64], &'a mut u64);

impl Loop for Count<'_> {
    #[inline(always)]
    fn run(self) {
        *self.1 = self.0.iter().map(|word| u64::from(word.count_ones())).sum();
    }
}

/// Ones of the mean chunk, from all of few chunks or from a sample of many, in step with no period.
struct Sample<'a>(&'a [Chunk], &'a mut f64);

impl Loop for Sample<'_> {
    #[inline(always)]
    fn run(self) {
        /// Chunks that are counted together.
        const BLOCK: usize = 16;
        /// The golden ratio's fraction of 2^32, whose multiples are spread evenly.
        const STEP: u32 = 0x9e37_79b9;
        let blocks = self.0.len() / BLOCK;
        let mut ones = 0;
        let counted = if blocks <= 16 {
            Count(bytemuck::cast_slice(self.0), &mut ones).run();
            self.0.len()
        } else {
            let blocks = self.0.as_chunks::<BLOCK>().0;
            for at in 0..blocks.len() / 8 {
                let place = u64::from((at as u32).wrapping_mul(STEP));
                let block = &blocks[((place * blocks.len() as u64) >> 32) as usize];
                let mut some = 0;
                Count(bytemuck::cast_slice(block), &mut some).run();
                ones += some;
            }
            blocks.len() / 8 * BLOCK
        };
        *self.1 = ones as f64 / counted.max(1) as f64;
    }
}

/// Packs a row of bytes into the bits of words, which are 0.
fn pack_row(words: &mut [u64], row: &[u8]) {
    for (word, bytes) in words.iter_mut().zip(row.chunks(64)) {
        let (eights, rest) = bytes.as_chunks::<8>();
        let eights = eights.iter().enumerate().map(|(at, &eight)| packed(eight) << (8 * at));
        let rest = rest
            .iter()
            .enumerate()
            .map(|(at, &byte)| u64::from(byte != 0) << (bytes.len() - rest.len() + at));
        *word = eights.chain(rest).fold(0, |word, bits| word | bits);
    }
}

/// Packs eight bytes into eight bits, the first in the lowest. One multiplication moves their flags to the
/// highest byte without collisions.
fn packed(bytes: [u8; 8]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let word = u64::from_le_bytes(bytes);
    let flags = ((((word & LOW) + LOW) | word) & !LOW) >> 7;
    flags.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

// Matrices of bytes: any byte but 0 is true.

/// Packs both factors, multiplies bits, and adds the result to C's bytes: B is packed by all threads of a team, and
/// each takes rows of A and C. Costs O(m k + k n + m n) bytes in addition to the product.
pub(in crate::kernels) fn or_and(a: View<u8>, b: View<u8>, c: ViewMut<u8>, team: &dyn Team) {
    check_shapes(&a, &b, &c);
    let b = &BitMatrix::of_view(b, team);
    split_rows(c, team, |rows, mut c| {
        let a = BitMatrix::of_view(a.tile(rows.start, 0, rows.len(), a.cols()), &Alone);
        let mut product = BitMatrix::zeros(c.rows(), c.cols());
        product.or_product(&a, b);
        for i in 0..c.rows() {
            for (bytes, &word) in c.row(i).chunks_mut(64).zip(product.words(i)) {
                if word != 0 {
                    add(bytes, word);
                }
            }
        }
    });
}

/// Adds the bits of a word to as many bytes, the lowest bit to the first byte.
fn add(bytes: &mut [u8], word: u64) {
    let (eights, rest) = bytes.as_chunks_mut::<8>();
    let first = 8 * eights.len();
    for (eight, bits) in eights.iter_mut().zip(word.to_le_bytes()) {
        *eight = (u64::from_le_bytes(*eight) | spread(bits)).to_le_bytes();
    }
    rest.iter_mut().enumerate().for_each(|(at, byte)| *byte |= (word >> (first + at) & 1) as u8);
}

/// Eight bits as eight bytes of 0 or 1, the lowest first.
fn spread(bits: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const EACH: u64 = 0x8040_2010_0804_0201;
    // Each byte keeps one of the bits, which then moves to the lowest place by a carry to the highest.
    let flags = (u64::from(bits) * ONES) & EACH;
    ((flags + 0x7f * ONES) >> 7) & ONES
}

/// 1 if some pair of a row of A and a column of B is true, else 0.
pub(in crate::kernels) fn some_pair(row: &[u8], column: &[u8]) -> u8 {
    const WIDE: usize = 64;
    let ((rows, row), (columns, column)) = (row.as_chunks::<WIDE>(), column.as_chunks::<WIDE>());
    for (xs, ys) in rows.iter().zip(columns) {
        // Without branches, so that many are compared at once.
        let mut found = 0;
        xs.iter().zip(ys).for_each(|(x, y)| found |= u8::from(*x != 0) & u8::from(*y != 0));
        if found != 0 {
            return 1;
        }
    }
    row.iter().zip(column).any(|(x, y)| *x != 0 && *y != 0).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn bytes_go_both_ways() {
        for (rows, cols) in [(0, 0), (1, 1), (3, 64), (2, 65), (5, 511), (2, 513), (4, 0), (0, 7)] {
            let bytes: Vec<u8> = (0..rows * cols).map(|i| u8::from(i * i % 7 < 3)).collect();
            let matrix = BitMatrix::from_bytes(&bytes, rows, cols);
            assert_eq!(matrix.to_bytes(), bytes);
            assert_eq!(matrix.ones(), bytes.iter().filter(|&&b| b == 1).count());
            for i in 0..rows {
                let places: Vec<usize> = (0..cols).filter(|j| bytes[i * cols + j] == 1).collect();
                assert_eq!(matrix.ones_of(i, &mut Vec::new()), places);
            }
        }
        assert!(BitMatrix::from_bytes(&[0, 255], 1, 2).get(0, 1));
    }

    #[test]
    fn the_density_is_exact_in_small_matrices_and_near_in_large_ones() {
        let every = |rows: usize, cols: usize, step: usize| {
            let bytes: Vec<u8> = (0..rows * cols).map(|i| u8::from(i % step == 0)).collect();
            BitMatrix::from_bytes(&bytes, rows, cols)
        };
        assert_eq!([every(0, 5, 1), every(5, 0, 1)].map(|matrix| matrix.density()), [0.0; 2]);
        assert_eq!([every(7, 130, 1), every(100, 100, 4)].map(|matrix| matrix.density()), [1.0, 0.25]);
        let large = [(257, 513), (600, 70), (2, 200_000), (1000, 3000)];
        for (rows, cols) in large.into_iter().take(if cfg!(miri) { 1 } else { 4 }) {
            assert!((every(rows, cols, 7).density() * 7.0 - 1.0).abs() < 0.1, "{rows} x {cols}");
        }
        if cfg!(miri) {
            return;
        }
        // A period of the rows does not show in the sample.
        let bytes: Vec<u8> = (0..1 << 20).map(|i| u8::from(i >> 14 & 7 == 0)).collect();
        let density = BitMatrix::from_bytes(&bytes, 1024, 1024).density();
        assert!((0.06..0.25).contains(&density), "{density}");
    }

    #[test]
    #[should_panic(expected = "bits exceed the address space")]
    fn a_size_that_wraps_is_refused() {
        BitMatrix::zeros(usize::MAX / 2 + 2, 513);
    }

    #[test]
    #[should_panic(expected = "0 bytes for")]
    fn bytes_that_are_missing_are_refused() {
        BitMatrix::from_bytes(&[], 1 << 32, 1 << 32);
    }

    #[test]
    fn bits_become_bytes() {
        let mut random = Random::new(1);
        for length in [0, 1, 7, 8, 9, 63, 64] {
            for _ in 0..50 {
                let word = (0..64).map(|bit| (random.below(2) as u64) << bit).sum::<u64>();
                let before: Vec<u8> = (0..length).map(|_| [0, 0, 1, 6][random.below(4)]).collect();
                let mut bytes = before.clone();
                add(&mut bytes, word);
                let wanted = before.iter().enumerate().map(|(at, byte)| byte | (word >> at & 1) as u8);
                assert_eq!(bytes, wanted.collect::<Vec<u8>>());
            }
        }
    }

    #[test]
    fn some_pair_is_any_pair() {
        let mut random = Random::new(2);
        for length in [0, 1, 63, 64, 65, 200] {
            for _ in 0..200 {
                let mut draw = || -> Vec<u8> {
                    (0..length)
                        .map(|_| if random.below(12) == 0 { 1 << random.below(8) } else { 0 })
                        .collect()
                };
                let (x, y) = (draw(), draw());
                let wanted = x.iter().zip(&y).any(|(x, y)| *x != 0 && *y != 0);
                assert_eq!(some_pair(&x, &y), u8::from(wanted));
            }
        }
    }
}
