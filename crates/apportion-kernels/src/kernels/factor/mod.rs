//! Factorisations of panels, and the solution of triangular systems around them, on one thread. Most of their work is
//! substitution in registers, along strips of right-hand sides; where pivots are sought, loops over a few columns remain.
//! Elements have the same bits on all instruction sets with fused multiply-add.
//!
//! Source: Toledo, Locality of reference in LU decomposition with partial pivoting, 1997 (DOI
//! 10.1137/S0895479896297744).

mod cholesky;
mod ldlt;
mod lu;
mod strips;
mod triangle;

pub use cholesky::cholesky_panel;
pub use ldlt::{BlockDiagonal, BlockFactors, ldlt_panel};
pub use lu::{exchange_rows, lu_panel, reserve_for_lu_panel};
pub use triangle::{Triangle, solve_triangle};

use super::Real;

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
