//! Triangular systems with many right-hand sides.

use super::strips::{Strips, with_strips};
use super::{FOUR, is_normal};
use crate::kernels::{Loop, Real, View, ViewMut, widest};

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
/// The bits of a column depend on it and on T alone.
///
/// # Panics
/// If the sizes do not fit.
pub fn solve_triangle<T: Real>(triangle: Triangle, of: View<T>, x: ViewMut<T>) {
    let n = of.rows();
    assert!(of.cols() == n && x.rows() == n, "a triangle of {n} x {}, {} unknowns", of.cols(), x.rows());
    with_strips(n, |strips| widest(ByStrips { triangle, of, x, strips }));
}

/// The same by strips of columns.
struct ByStrips<'a, 'm, T> {
    triangle: Triangle,
    of: View<'a, T>,
    x: ViewMut<'a, T>,
    strips: Strips<'m, T>,
}

impl<T: Real> Loop for ByStrips<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { triangle, of, mut x, mut strips } = self;
        let (n, lanes, one) = (of.rows(), strips.lanes(), T::from_f64(1.0));
        // In the order in which the unknowns are solved.
        let place = |step: usize| if triangle.is_forward() { step } else { n - 1 - step };
        let element = |i: usize, j: usize| {
            let (i, j) = if triangle.is_transposed() { (place(j), place(i)) } else { (place(i), place(j)) };
            of.row(i)[j]
        };
        let diagonal = |i: usize| if triangle.has_ones() { one } else { element(i, i) };
        // If one of them has no reciprocal that is a normal number, all are divided by.
        let divides = (0..n).any(|i| !is_normal(one / diagonal(i)));
        strips.pack(n, |i, j| if i == j { one / diagonal(i) } else { element(i, j) });
        for first in (0..x.cols()).step_by(lanes) {
            let cols = lanes.min(x.cols() - first);
            for (step, to) in strips.strip.chunks_exact_mut(lanes).enumerate().take(n) {
                copy(&x.row(place(step))[first..first + cols], to);
            }
            if divides {
                for i in 0..n {
                    let (known, rest) = strips.strip.split_at_mut(i * lanes);
                    let unknown = &mut rest[..lanes];
                    for (j, known) in known.chunks_exact(lanes).enumerate() {
                        let factor = element(i, j);
                        unknown.iter_mut().zip(known).for_each(|(x, y)| *x = *x - factor * *y);
                    }
                    unknown.iter_mut().for_each(|x| *x = *x / diagonal(i));
                }
            } else {
                strips.solve_all(n);
            }
            for (step, from) in strips.strip.chunks_exact(lanes).enumerate().take(n) {
                copy(from, &mut x.row(place(step))[first..first + cols]);
            }
        }
    }
}

/// Copies as many elements as both have, a few at a time: a call for each row would take longer.
#[inline(always)]
fn copy<T: Real>(from: &[T], to: &mut [T]) {
    let length = from.len().min(to.len());
    let ((fours, rest), (to_fours, to_rest)) =
        (from[..length].as_chunks::<FOUR>(), to[..length].as_chunks_mut::<FOUR>());
    to_fours.iter_mut().zip(fours).for_each(|(to, from)| *to = *from);
    to_rest.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
}
