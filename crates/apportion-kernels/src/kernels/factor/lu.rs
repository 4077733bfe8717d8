//! The LU factorisation of a panel with partial pivoting.

use super::strips::Strips;
use super::{FOUR, divide, magnitude, subtract};
use crate::kernels::packed::{PackedMemory, Substitution, TilePlace};
use crate::kernels::{Loop, Real, ViewMut, widest};
use std::ops::Range;

/// Columns that are factored by plain loops: as many as the most rows of a tile, so that none crosses their ends.
const PLAIN: usize = 8;
/// Elements of the smallest type in a cache line.
const LINE: usize = 16;

/// Factors a panel of m x n, n <= m, as P A = L U: L, of ones on the diagonal, and U take the panel's place.
/// Row i was exchanged with row `pivots[i]`, one after the other, i <= `pivots[i]`. m n^2 - n^3 / 3 operations.
///
/// Returns the column of the first pivot that is exactly zero, if there is one; elimination goes on, as that of
/// LAPACK's `getrf`. Besides the panel it needs memory for a copy of it.
///
/// # Panics
/// If there are more columns than rows, or not as many pivots as columns.
pub fn lu_panel<T: Real>(panel: ViewMut<T>, pivots: &mut [i64]) -> Option<usize> {
    factor_with(Substitution::best(), panel, pivots)
}

/// [`lu_panel`] by some kernels, on a copy by columns, along which pivots are sought and rows eliminated.
pub(super) fn factor_with<T: Real>(
    kernel: Substitution<T>,
    mut panel: ViewMut<T>,
    pivots: &mut [i64],
) -> Option<usize> {
    let (m, n) = (panel.rows(), panel.cols());
    assert!(n <= m, "a panel of {m} x {n} has more columns than rows");
    assert_eq!(pivots.len(), n, "a pivot for each column");
    if n == 0 {
        return None;
    }
    let stride = stride_for(m, kernel.lanes());
    let mut memory = PackedMemory::of_thread();
    let [columns, blocks, strip, factors] = memory.blocks(room(&kernel, [m, n]));
    kernel.transpose_from(&mut panel, columns, stride);
    // What fills the last tiles must be numbers: others may take longer to compute with.
    columns.chunks_exact_mut(stride).take(n).for_each(|column| column[m..].fill(T::ZERO));
    columns[n * stride..].fill(T::ZERO);
    let strips = Strips::new(kernel, blocks, strip);
    let mut copy = Columns { m, n, stride, columns, strips, factors, pivots, zero: None };
    copy.factor(0..n);
    let Columns { columns, zero, .. } = copy;
    kernel.transpose_to(columns, stride, &mut panel);
    memory.keep();
    zero
}

/// Elements of memory for a panel of m x n: of its copy by columns, a triangle, a strip and factors.
fn room<T: Real>(kernel: &Substitution<T>, [m, n]: [usize; 2]) -> [usize; 4] {
    let (stride, count) = (stride_for(m, kernel.lanes()), n.next_multiple_of(kernel.rows()));
    let [blocks, strip] = Strips::room(kernel, half_of(n));
    [stride * count, blocks, strip, half_of(n) * count]
}

/// Makes room for what the calling thread copies of a panel of m x n, so that the first one takes no longer than those
/// that follow.
pub fn reserve_for_lu_panel<T: Real>(m: usize, n: usize) {
    let mut memory = PackedMemory::of_thread();
    let _: [&mut [T]; 4] = memory.blocks(room(&Substitution::<T>::best(), [m, n]));
    memory.keep();
}

/// Exchanges row i with row `pivots[i]`, one after the other.
///
/// # Panics
/// If a pivot is less than its row, or there is no such row.
pub fn exchange_rows<T: Real>(mut tile: ViewMut<T>, pivots: &[i64]) {
    for (i, &pivot) in pivots.iter().enumerate() {
        assert!(pivot >= i as i64, "row {i} was exchanged with an earlier one, {pivot}");
        if pivot > i as i64 {
            let (mut upper, mut lower) = tile.reborrow().split_at_row(pivot as usize);
            upper.row(i).swap_with_slice(lower.row(0));
        }
    }
}

/// The first half of `n` columns.
fn half_of(n: usize) -> usize {
    (n / 2).next_multiple_of(PLAIN)
}

/// From one column of m rows to the next, with room for tiles of so many lanes that begin in it: an odd multiple of a
/// cache line, so that elements of a row are in different sets of the cache.
fn stride_for(m: usize, lanes: usize) -> usize {
    ((m + lanes).div_ceil(LINE) | 1) * LINE
}

/// A copy of a panel by columns.
struct Columns<'m, T> {
    m: usize,
    n: usize,
    stride: usize,
    columns: &'m mut [T],
    strips: Strips<'m, T>,
    /// Memory for negative elements of U, packed as blocks of substitution.
    factors: &'m mut [T],
    pivots: &'m mut [i64],
    zero: Option<usize>,
}

impl<T: Real> Columns<'_, T> {
    /// Factors some columns, to which those before have been applied, and exchanges rows in all.
    fn factor(&mut self, range: Range<usize>) {
        if range.len() <= PLAIN {
            return self.factor_plainly(range);
        }
        let middle = range.start + half_of(range.len());
        self.factor(range.start..middle);
        self.update(range.start..middle, middle..range.end);
        self.factor(middle..range.end);
    }

    fn factor_plainly(&mut self, range: Range<usize>) {
        let (stride, first) = (self.stride, range.start);
        let (columns, pivots) =
            (&mut self.columns[first * stride..range.end * stride], &mut self.pivots[range.clone()]);
        widest(Plain { m: self.m, stride, first, columns, pivots, zero: &mut self.zero });
        let pivots = &self.pivots[range.clone()];
        for (j, column) in self.columns.chunks_exact_mut(stride).enumerate().take(self.n) {
            if !range.contains(&j) {
                pivots.iter().enumerate().for_each(|(i, pivot)| column.swap(first + i, *pivot as usize));
            }
        }
    }

    /// Solves for U in columns right of some that are factored, and updates the rows below.
    fn update(&mut self, factored: Range<usize>, right: Range<usize>) {
        let (first, depth, stride) = (factored.start, factored.len(), self.stride);
        let Self { m, columns, strips, factors, .. } = self;
        let (kernel, rows, lanes) = (strips.kernel, strips.kernel.rows(), strips.lanes());
        let l = &columns[first * stride + first..];
        strips.pack(depth, |i, j| if i == j { T::from_f64(1.0) } else { l[j * stride + i] });
        let mut blocks = factors.chunks_exact_mut(depth * rows);
        for start in right.clone().step_by(lanes) {
            let count = lanes.min(right.end - start);
            let u = &mut columns[start * stride + first..];
            kernel.transpose_from(&mut ViewMut::new(u, count, depth, stride), strips.strip, lanes);
            strips.solve_all(depth);
            kernel.transpose_to(strips.strip, lanes, &mut ViewMut::new(u, count, depth, stride));
            for lane in (0..count).step_by(rows) {
                let block = blocks.next().expect("a block for each tile");
                for (to, from) in block.chunks_exact_mut(rows).zip(strips.strip.chunks_exact(lanes)) {
                    to.iter_mut().zip(&from[lane..]).for_each(|(to, from)| *to = -*from);
                    to.iter_mut().skip(count - lane).for_each(|to| *to = T::ZERO);
                }
            }
        }
        for lane in (factored.end..*m).step_by(lanes) {
            for (block, start) in factors.chunks_exact(depth * rows).zip(right.clone().step_by(rows)) {
                let (known, tile) = (first * stride + lane, start * stride + lane);
                kernel.add_products(block, columns, TilePlace { known, depth, tile, stride });
            }
        }
    }
}

/// A few columns, factored by plain loops.
struct Plain<'a, T> {
    m: usize,
    stride: usize,
    /// The first column, and its first row.
    first: usize,
    columns: &'a mut [T],
    pivots: &'a mut [i64],
    /// The first column of the panel without a pivot.
    zero: &'a mut Option<usize>,
}

impl<T: Real> Loop for Plain<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { m, stride, first, columns, pivots, zero } = self;
        let n = pivots.len();
        // From the first row on.
        let mut rest = columns;
        let mut all: [&mut [T]; PLAIN] = Default::default();
        for column in all.iter_mut().take(n) {
            let (one, others) = rest.split_at_mut(stride);
            (*column, rest) = (&mut one[first..m], others);
        }
        let all = &mut all[..n];
        for start in (0..n).step_by(FOUR) {
            let end = (start + FOUR).min(n);
            for j in start..end {
                let pivot = j + largest(&all[j][j..]);
                pivots[j] = (first + pivot) as i64;
                if pivot > j {
                    all.iter_mut().for_each(|column| column.swap(j, pivot));
                }
                if all[j][j] == T::ZERO {
                    zero.get_or_insert(first + j);
                    continue;
                }
                let (known, rest) = all.split_at_mut(j + 1);
                let (pivot, below) = known[j][j..].split_at_mut(1);
                divide(below, pivot[0]);
                for column in &mut rest[..end - j - 1] {
                    let (upper, lower) = column.split_at_mut(j + 1);
                    subtract(lower, [upper[j]], [&*below]);
                }
            }
            // The other columns, with all of these at once.
            let (known, rest) = all.split_at_mut(end);
            for column in rest {
                let (upper, lower) = column.split_at_mut(end);
                let factors = &mut upper[start..];
                for p in 0..FOUR {
                    for q in p + 1..FOUR {
                        factors[q] = factors[q] - factors[p] * known[start + p][start + q];
                    }
                }
                let factors: [T; FOUR] = std::array::from_fn(|p| factors[p]);
                subtract(lower, factors, std::array::from_fn(|p| &known[start + p][end..]));
            }
        }
    }
}

/// Elements that are compared side by side.
const LANES: usize = 32;

/// The largest magnitude; 0 if all are NaN.
#[inline(always)]
fn largest_magnitude<T: Real>(elements: &[T]) -> T {
    let larger = |x: T, y: T| if y > x { y } else { x };
    let mut most = [T::ZERO; LANES];
    let (chunks, rest) = elements.as_chunks::<LANES>();
    for chunk in chunks {
        most.iter_mut().zip(chunk).for_each(|(most, x)| *most = larger(*most, magnitude(*x)));
    }
    // By halves: one after the other, they would wait for each other.
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = most.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(most, x)| *most = larger(*most, *x));
        half /= 2;
    }
    rest.iter().fold(most[0], |most, x| larger(most, magnitude(*x)))
}

/// The place of the first element of a magnitude; 0 if there is none.
#[inline(always)]
fn place_of<T: Real>(most: T, elements: &[T]) -> usize {
    // Most chunks are passed without a look at each element.
    let has = |chunk: &[T; LANES]| chunk.iter().fold(false, |has, x| has | (magnitude(*x) == most));
    let (chunks, _) = elements.as_chunks::<LANES>();
    let start = chunks.iter().position(has).unwrap_or(chunks.len()) * LANES;
    let at = elements[start..].iter().position(|x| magnitude(*x) == most);
    at.map_or(0, |at| start + at)
}

/// The place of the first element of the largest magnitude; 0 if none is larger than 0.
#[inline(always)]
pub(super) fn largest<T: Real>(elements: &[T]) -> usize {
    let most = largest_magnitude(elements);
    if most > T::ZERO { place_of(most, elements) } else { 0 }
}
