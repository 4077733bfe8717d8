//! Triangular systems with many right-hand sides.

use super::{NARROW, copy_of, divide, half, negative, negative_transpose, subtract_all};
use crate::kernels::{Loop, Real, View, ViewMut, gemm, widest};

/// Columns of right-hand sides that plain loops take together.
const TOGETHER: usize = 128;

/// A triangle of a square matrix. The other elements are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triangle {
    /// The lower one.
    Lower,
    /// The lower one, with ones on the diagonal instead of what is there.
    UnitLower,
    /// The transpose of the lower one.
    LowerTransposed,
    /// The transpose of the lower one, with ones on the diagonal instead of what is there.
    UnitLowerTransposed,
    /// The upper one.
    Upper,
    /// The transpose of the upper one.
    UpperTransposed,
}

impl Triangle {
    /// True if the first unknown is solved first.
    fn is_forward(self) -> bool {
        matches!(self, Self::Lower | Self::UnitLower | Self::UpperTransposed)
    }

    pub(super) fn is_transposed(self) -> bool {
        matches!(self, Self::LowerTransposed | Self::UnitLowerTransposed | Self::UpperTransposed)
    }

    pub(super) fn has_ones(self) -> bool {
        matches!(self, Self::UnitLower | Self::UnitLowerTransposed)
    }
}

/// X := T^-1 X for a triangle T of `of`, n x n, and X of n x c: c n^2 operations.
///
/// # Panics
/// If the sizes do not fit.
pub fn solve_triangle<T: Real>(triangle: Triangle, of: View<T>, mut x: ViewMut<T>) {
    let n = of.rows();
    assert!(of.cols() == n && x.rows() == n, "a triangle of {n} x {}, {} unknowns", of.cols(), x.rows());
    if n <= NARROW {
        return widest(Narrow { triangle, of, x });
    }
    let cols = x.cols();
    let first = half(n);
    let rest = n - first;
    let (mut upper, mut lower) = x.reborrow().split_at_row(first);
    let (one, other) = (of.tile(0, 0, first, first), of.tile(first, first, rest, rest));
    // Of the two blocks beside the diagonal, the one in the triangle.
    let below = matches!(
        triangle,
        Triangle::Lower | Triangle::UnitLower | Triangle::LowerTransposed | Triangle::UnitLowerTransposed
    );
    let beside = if below { of.tile(first, 0, rest, first) } else { of.tile(0, first, first, rest) };
    let beside = if triangle.is_transposed() { negative_transpose(beside) } else { negative(beside) };
    if triangle.is_forward() {
        solve_triangle(triangle, one, upper.reborrow());
        let known = copy_of(upper);
        let product = (View::dense(&beside, rest, first), View::dense(&known, first, cols));
        gemm(product.0, product.1, lower.reborrow());
        solve_triangle(triangle, other, lower);
    } else {
        solve_triangle(triangle, other, lower.reborrow());
        let known = copy_of(lower);
        let product = (View::dense(&beside, first, rest), View::dense(&known, rest, cols));
        gemm(product.0, product.1, upper.reborrow());
        solve_triangle(triangle, one, upper);
    }
}

/// The same for few rows.
struct Narrow<'a, T> {
    triangle: Triangle,
    of: View<'a, T>,
    x: ViewMut<'a, T>,
}

impl<T: Real> Loop for Narrow<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { triangle, of, mut x } = self;
        let n = of.rows();
        // In the order in which the unknowns are solved.
        let place = |step: usize| if triangle.is_forward() { step } else { n - 1 - step };
        let mut factors = [[T::ZERO; NARROW]; NARROW];
        for (step, factors) in factors.iter_mut().enumerate().take(n) {
            for (earlier, factor) in factors.iter_mut().enumerate().take(step + 1) {
                let (i, j) = (place(step), place(earlier));
                *factor = if triangle.is_transposed() { of.row(j)[i] } else { of.row(i)[j] };
            }
        }
        let mut solved = [[T::ZERO; TOGETHER]; NARROW];
        for first in (0..x.cols()).step_by(TOGETHER) {
            let cols = TOGETHER.min(x.cols() - first);
            for (step, factors) in factors.iter().enumerate().take(n) {
                let (known, rest) = solved.split_at_mut(step);
                let row = &mut rest[0][..cols];
                row.copy_from_slice(&x.row(place(step))[first..first + cols]);
                subtract_all(row, factors, known);
                if !triangle.has_ones() {
                    divide(row, factors[step]);
                }
                x.row(place(step))[first..first + cols].copy_from_slice(row);
            }
        }
    }
}
