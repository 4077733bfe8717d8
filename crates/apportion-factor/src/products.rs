//! C := C + A B, and triangles, on the threads of a process: what substitutions and residuals consist of.
//!
//! An element of C has the same bits whatever the number of threads and its place, so that ranks and threads agree.

use apportion::error::Result;
use apportion::geometry::{Rect, Span};
use apportion::kernels::factor::{Triangle, solve_triangle};
use apportion::kernels::{Loop, Real, View, ViewMut, gemm, widest};
use apportion::run::parallel;
use std::sync::{Mutex, PoisonError};

/// The most columns of B for which rows of A are read once and not packed.
pub(crate) const FEW: usize = 4;
/// Columns of a tile of C: so many that packing A costs little, so few that threads end together.
const WIDE: usize = 256;
/// The fewest rows of a tile.
const HIGH: usize = 64;
/// Tiles for each thread: a slower one takes fewer.
const TILES: usize = 4;
/// Multiply-adds below which one thread is done before others could help.
const SMALL: usize = 1 << 18;
/// The same for few columns of B, where reading A from memory takes the time.
const SMALL_IF_FEW: usize = 1 << 15;
/// Elements that a row of A and columns of B are multiplied in at a time.
const LANES: usize = 16;

/// How products are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Products {
    /// Number of threads.
    pub threads: usize,
    /// Few columns altogether: no product of them is packed, however it is divided.
    pub few: bool,
}

impl Products {
    /// Products with so many columns in all.
    pub(crate) fn new(threads: usize, columns: usize) -> Self {
        Self { threads, few: columns <= FEW }
    }

    /// C := C + A B.
    ///
    /// # Errors
    /// The system refuses a thread.
    ///
    /// # Panics
    /// If the shapes do not fit: A is m x k, B k x n, C m x n.
    pub(crate) fn update<T: Real>(self, a: View<T>, b: View<T>, c: ViewMut<T>) -> Result<()> {
        let (m, k, n) = (a.rows(), a.cols(), b.cols());
        let tiles = self.tiles(m, k, n);
        let few = self.few;
        let cut: Vec<(Rect, ViewMut<T>)> = tiles.iter().copied().zip(c.into_tiles(&tiles)).collect();
        share(self.threads, cut, |(rect, c)| {
            let (rows, cols) = (rect.rows, rect.cols);
            let a = a.tile(rows.start as usize, 0, rows.len() as usize, k);
            let b = b.tile(0, cols.start as usize, k, cols.len() as usize);
            if few { widest(Dots { a, b, c }) } else { gemm(a, b, c) }
        })
    }

    /// C := C - A^T B, where A is k x m.
    ///
    /// # Errors
    /// As [`Products::update`].
    pub(crate) fn update_transposed<T: Real>(self, a: View<T>, b: View<T>, c: ViewMut<T>) -> Result<()> {
        if self.few {
            let tiles = self.tiles(a.cols(), a.rows(), b.cols());
            let cut = tiles.iter().copied().zip(c.into_tiles(&tiles)).collect();
            return share(self.threads, cut, |(Rect { rows, .. }, c)| {
                let a = a.tile(0, rows.start as usize, a.rows(), rows.len() as usize);
                let b = b.tile(0, 0, b.rows(), b.cols());
                widest(Sums { a, b, c });
            });
        }
        let mut turned = transpose(a);
        turned.iter_mut().for_each(|x| *x = -*x);
        self.update(View::dense(&turned, a.cols(), a.rows()), b, c)
    }

    /// X := T^-1 X for a triangle T.
    ///
    /// # Errors
    /// As [`Products::update`].
    pub(crate) fn solve<T: Real>(self, triangle: Triangle, of: View<T>, x: ViewMut<T>) -> Result<()> {
        if self.few {
            widest(Substitution { triangle, of, x });
            return Ok(());
        }
        self.each_part(x, |x| solve_triangle(triangle, of, x))
    }

    /// Does something with parts of the columns of a matrix.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn each_part<T: Real>(self, c: ViewMut<T>, compute: impl Fn(ViewMut<T>) + Sync) -> Result<()> {
        let (m, n) = (c.rows(), c.cols());
        let few = m.saturating_mul(m).saturating_mul(n) <= SMALL;
        let parts = if few { 1 } else { n.div_ceil(WIDE).max((TILES * self.threads).min(n / LANES)).max(1) };
        let rows = Span::new(0, m as u64);
        let rects: Vec<Rect> = cuts(n, parts).map(|cols| Rect::new(rows, cols)).collect();
        share(self.threads, c.into_tiles(&rects), compute)
    }

    /// The tiles of a product.
    fn tiles(self, m: usize, k: usize, n: usize) -> Vec<Rect> {
        let small = if self.few { SMALL_IF_FEW } else { SMALL };
        let alone = self.threads < 2 || m.saturating_mul(k).saturating_mul(n) <= small;
        let across = if alone { 1 } else { n.div_ceil(WIDE).max(1) };
        let down =
            if alone { 1 } else { (TILES * self.threads).div_ceil(across).min(m.div_ceil(HIGH)).max(1) };
        let columns = || cuts(n, across);
        cuts(m, down).flat_map(|rows| columns().map(move |cols| Rect::new(rows, cols))).collect()
    }
}

/// So many parts of `length`, equal within one.
fn cuts(length: usize, parts: usize) -> impl Iterator<Item = Span> {
    (0..parts).map(move |i| Span::new((i * length / parts) as u64, ((i + 1) * length / parts) as u64))
}

/// Computes parts on several threads, each of which takes the next one.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn share<P: Send>(threads: usize, parts: Vec<P>, compute: impl Fn(P) + Sync) -> Result<()> {
    let count = threads.min(parts.len());
    let queue = Mutex::new(parts.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    parallel::all(vec![(); count], |()| {
        while let Some(part) = next() {
            compute(part);
        }
    })
}

/// The transpose, row by row.
pub(crate) fn transpose<T: Real>(a: View<T>) -> Vec<T> {
    /// Rows and columns of a tile that stays in the nearest cache.
    const SIDE: usize = 16;
    let (m, n) = (a.rows(), a.cols());
    let mut turned = vec![T::ZERO; m * n];
    for first in (0..m).step_by(SIDE) {
        for left in (0..n).step_by(SIDE) {
            for i in first..(first + SIDE).min(m) {
                let row = &a.row(i)[left..(left + SIDE).min(n)];
                row.iter().enumerate().for_each(|(j, x)| turned[(left + j) * m + i] = *x);
            }
        }
    }
    turned
}

/// C := C + A B for few columns of B, by scalar products.
struct Dots<'a, 'c, T> {
    a: View<'a, T>,
    b: View<'a, T>,
    c: ViewMut<'c, T>,
}

impl<T: Real> Loop for Dots<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { a, b, mut c } = self;
        let (k, n) = (a.cols(), b.cols());
        // The columns one after the other.
        let columns = transpose(b);
        for i in 0..a.rows() {
            let row = a.row(i);
            for (x, column) in c.row(i).iter_mut().zip(columns.chunks_exact(k.max(1))).take(n) {
                *x = *x + dot(row, column);
            }
        }
    }
}

/// The scalar product, in sums of every [`LANES`]th element.
#[inline(always)]
fn dot<T: Real>(x: &[T], y: &[T]) -> T {
    let mut sums = [T::ZERO; LANES];
    let ((x, rest_x), (y, rest_y)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
            *sum = *sum + *x * *y;
        }
    }
    for (sum, (x, y)) in sums.iter_mut().zip(rest_x.iter().zip(rest_y)) {
        *sum = *sum + *x * *y;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] = sums[i] + sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

/// C := C - A^T B for few columns of B, by sums of rows of A.
struct Sums<'a, 'c, T> {
    a: View<'a, T>,
    b: View<'a, T>,
    c: ViewMut<'c, T>,
}

impl<T: Real> Loop for Sums<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { a, b, mut c } = self;
        let (m, n) = (a.cols(), b.cols());
        let mut sums = vec![T::ZERO; m * n];
        for i in 0..a.rows() {
            let row = a.row(i);
            for (sums, factor) in sums.chunks_exact_mut(m.max(1)).zip(b.row(i)) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = *sum + *factor * *x);
            }
        }
        for (j, sums) in sums.chunks_exact(m.max(1)).enumerate() {
            for (i, sum) in sums.iter().enumerate() {
                c.row(i)[j] = c.row(i)[j] - *sum;
            }
        }
    }
}

/// X := T^-1 X for few columns of X, by rows of the triangle where they are.
struct Substitution<'a, 'x, T> {
    triangle: Triangle,
    of: View<'a, T>,
    x: ViewMut<'x, T>,
}

impl<T: Real> Loop for Substitution<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { triangle, of, mut x } = self;
        let (n, sides) = (x.rows(), x.cols());
        let forward = matches!(triangle, Triangle::Lower | Triangle::UnitLower | Triangle::UpperTransposed);
        let below = !matches!(triangle, Triangle::Upper | Triangle::UpperTransposed);
        let has_ones = matches!(triangle, Triangle::UnitLower | Triangle::UnitLowerTransposed);
        // The elements of a row beside the diagonal belong to known unknowns, or transposed to those that follow.
        let transposed = forward != below;
        let mut column = vec![T::ZERO; n];
        for side in 0..sides {
            (0..n).for_each(|i| column[i] = x.row(i)[side]);
            for step in 0..n {
                let i = if forward { step } else { n - 1 - step };
                let beside = if below { 0..i } else { i + 1..n };
                let row = of.row(i);
                if !transposed {
                    column[i] = column[i] - dot(&row[beside.clone()], &column[beside.clone()]);
                }
                if !has_ones {
                    column[i] = column[i] / row[i];
                }
                if transposed {
                    let known = column[i];
                    let rest = column[beside.clone()].iter_mut().zip(&row[beside]);
                    rest.for_each(|(x, a)| *x = *x - known * *a);
                }
            }
            (0..n).for_each(|i| x.row(i)[side] = column[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(i: usize) -> f64 {
        (i as f64 * 0.618_033_988_749_894_9).fract() - 0.5
    }

    /// Few unknowns are those that many have, by loops of their own.
    #[test]
    fn triangles_are_solved_for_few_columns() {
        use Triangle::{Lower, LowerTransposed, UnitLower, UnitLowerTransposed, Upper, UpperTransposed};
        let triangles = [Lower, UnitLower, LowerTransposed, UnitLowerTransposed, Upper, UpperTransposed];
        for (n, sides) in [(1, 1), (17, 1), (61, 3), (130, 4)] {
            let of: Vec<f64> =
                (0..n * n).map(|at| if at % (n + 1) == 0 { 3.0 } else { value(at) / n as f64 }).collect();
            for triangle in triangles {
                let solve = |few: bool| {
                    let mut x: Vec<f64> = (0..n * sides).map(|i| value(i * 5 + 2)).collect();
                    let into = ViewMut::dense(&mut x, n, sides);
                    Products { threads: 2, few }.solve(triangle, View::dense(&of, n, n), into).unwrap();
                    x
                };
                for (few, many) in solve(true).iter().zip(solve(false)) {
                    assert!((few - many).abs() < 1e-13, "{triangle:?} {n} {sides}: {few} {many}");
                }
            }
        }
    }

    /// Any number of threads and any division of the columns gives the same bits, which are right.
    #[test]
    fn products_do_not_depend_on_their_division() {
        for (m, k, n) in
            [(1, 1, 1), (130, 70, 3), (5, 0, 2), (70, 300, 90), (0, 4, 4), (200, 64, 600), (700, 96, 2)]
        {
            let a: Vec<f64> = (0..m * k).map(value).collect();
            let b: Vec<f64> = (0..k * n).map(|i| value(i * 3 + 1)).collect();
            let of = |threads: usize, transposed: bool| {
                let mut c: Vec<f64> = (0..m * n).map(|i| value(i * 5 + 2)).collect();
                let products = Products::new(threads, n);
                let view = View::dense(&b, k, n);
                let into = ViewMut::dense(&mut c, m, n);
                if transposed {
                    let turned = transpose(View::dense(&a, m, k));
                    products.update_transposed(View::dense(&turned, k, m), view, into).unwrap();
                } else {
                    products.update(View::dense(&a, m, k), view, into).unwrap();
                }
                c
            };
            let wanted = of(1, false);
            assert!(of(3, false) == wanted && of(3, true) == of(1, true), "{m} {k} {n}");
            let turned = of(1, true);
            for i in 0..m {
                for j in 0..n {
                    let sum: f64 = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
                    let exact = value((i * n + j) * 5 + 2) + sum;
                    assert!((wanted[i * n + j] - exact).abs() < 1e-13 * (k + 1) as f64);
                    assert!((turned[i * n + j] - (exact - 2.0 * sum)).abs() < 1e-13 * (k + 1) as f64);
                }
            }
        }
    }
}
