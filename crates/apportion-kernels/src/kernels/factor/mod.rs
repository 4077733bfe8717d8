//! Factorisations of panels, and the solution of triangular systems around them, on one thread. They recur on
//! halves, so that most of their work is done by the packed product; loops over columns of a few elements remain.
//!
//! Sources: Gustavson, Recursion leads to automatic variable blocking for dense linear-algebra algorithms, 1997
//! (DOI 10.1147/rd.416.0737); Toledo, Locality of reference in LU decomposition with partial pivoting, 1997 (DOI
//! 10.1137/S0895479896297744).

mod cholesky;
mod ldlt;
mod lu;
mod strips;
mod triangle;

pub use cholesky::cholesky_panel;
pub use ldlt::{BlockDiagonal, BlockFactors, ldlt_panel};
pub use lu::{exchange_rows, lu_panel};
pub use triangle::{Triangle, solve_triangle};

use super::{Real, View, ViewMut};

/// The most columns of a panel, and rows of a triangle, that plain loops take.
const NARROW: usize = 16;

/// The first half of `n` columns, a multiple of [`NARROW`].
fn half(n: usize) -> usize {
    (n / 2).next_multiple_of(NARROW)
}

/// The elements of a tile, row by row without gaps.
fn copy_of<T: Real>(mut tile: ViewMut<T>) -> Vec<T> {
    let mut copy = Vec::with_capacity(tile.rows() * tile.cols());
    (0..tile.rows()).for_each(|i| copy.extend_from_slice(tile.row(i)));
    copy
}

/// The transpose of -A, row by row without gaps.
fn negative_transpose<T: Real>(a: View<T>) -> Vec<T> {
    let mut turned = vec![T::ZERO; a.rows() * a.cols()];
    for i in 0..a.rows() {
        for (j, x) in a.row(i).iter().enumerate() {
            turned[j * a.rows() + i] = -*x;
        }
    }
    turned
}

/// The most columns that are subtracted together: what they are subtracted from is read and written once for all.
const FOUR: usize = 4;

/// x := x - f0 a0 - f1 a1 - ..., in this order.
#[inline(always)]
fn subtract<T: Real, const COUNT: usize>(x: &mut [T], factors: [T; COUNT], columns: [&[T]; COUNT]) {
    let length = x.len();
    let columns = columns.map(|column| &column[..length]);
    for (i, x) in x.iter_mut().enumerate() {
        let mut sum = *x;
        for p in 0..COUNT {
            sum = sum - factors[p] * columns[p][i];
        }
        *x = sum;
    }
}

/// x := x - the sum of all columns times their factors, one after the other.
#[inline(always)]
fn subtract_all<T: Real, const LENGTH: usize>(x: &mut [T], factors: &[T], columns: &[[T; LENGTH]]) {
    let factors = &factors[..columns.len()];
    let ((fours, rest), (columns, others)) = (factors.as_chunks::<FOUR>(), columns.as_chunks::<FOUR>());
    for (factors, columns) in fours.iter().zip(columns) {
        subtract(x, *factors, columns.each_ref().map(|column| &column[..]));
    }
    for (factor, column) in rest.iter().zip(others) {
        subtract(x, [*factor], [column]);
    }
}

/// Its absolute value.
#[inline(always)]
fn magnitude<T: Real>(x: T) -> T {
    if x < T::ZERO { -x } else { x }
}

/// True if multiplying by this reciprocal is as good as dividing: it is a normal number.
#[inline(always)]
fn is_normal<T: Real>(reciprocal: T) -> bool {
    reciprocal.to_f64().abs() <= T::LARGEST && reciprocal.to_f64().abs() >= T::TINY
}

/// x := x / y, by the reciprocal of y unless that is not a normal number, as LAPACK scales columns.
#[inline(always)]
fn divide<T: Real>(x: &mut [T], y: T) {
    let reciprocal = T::from_f64(1.0) / y;
    if is_normal(reciprocal) {
        x.iter_mut().for_each(|x| *x = *x * reciprocal);
    } else {
        x.iter_mut().for_each(|x| *x = *x / y);
    }
}

#[cfg(test)]
mod tests;
