//! The LU factorisation of a panel with partial pivoting.

use super::{
    FOUR, NARROW, Triangle, copy_of, divide, half, negative, solve_triangle, subtract, subtract_four,
};
use crate::kernels::{Loop, Real, View, ViewMut, gemm, widest};

/// Factors a panel of m x n, n <= m, as P A = L U: L, of ones on the diagonal, and U take the panel's place.
/// Row i was exchanged with row `pivots[i]`, one after the other, i <= `pivots[i]`. m n^2 - n^3 / 3 operations.
///
/// Returns the column of the first pivot that is exactly zero, if there is one; elimination goes on, as that of
/// LAPACK's `getrf`.
///
/// # Panics
/// If there are more columns than rows, or not as many pivots as columns.
pub fn lu_panel<T: Real>(mut panel: ViewMut<T>, pivots: &mut [i64]) -> Option<usize> {
    let (m, n) = (panel.rows(), panel.cols());
    assert!(n <= m, "a panel of {m} x {n} has more columns than rows");
    assert_eq!(pivots.len(), n, "a pivot for each column");
    if n <= NARROW {
        return narrow_panel(panel, pivots);
    }
    let left = half(n);
    let (rows, cols) = (m - left, n - left);
    let (first, last) = pivots.split_at_mut(left);
    let zero = lu_panel(panel.tile(0, 0, m, left), first);
    exchange_rows(panel.tile(0, left, m, cols), first);
    let l = copy_of(panel.tile(0, 0, m, left));
    let l = View::dense(&l, m, left);
    solve_triangle(Triangle::UnitLower, l.tile(0, 0, left, left), panel.tile(0, left, left, cols));
    let u = copy_of(panel.tile(0, left, left, cols));
    let u = negative(View::dense(&u, left, cols));
    let below = l.tile(left, 0, rows, left);
    gemm(below, View::dense(&u, left, cols), panel.tile(left, left, rows, cols));
    let later = lu_panel(panel.tile(left, left, rows, cols), last);
    exchange_rows(panel.tile(left, 0, rows, left), last);
    last.iter_mut().for_each(|pivot| *pivot += left as i64);
    zero.or(later.map(|column| left + column))
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

/// [`lu_panel`] for few columns.
fn narrow_panel<T: Real>(panel: ViewMut<T>, pivots: &mut [i64]) -> Option<usize> {
    let mut zero = None;
    widest(Narrow { panel, pivots, zero: &mut zero });
    zero
}

struct Narrow<'a, T> {
    panel: ViewMut<'a, T>,
    pivots: &'a mut [i64],
    zero: &'a mut Option<usize>,
}

impl<T: Real> Loop for Narrow<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { mut panel, pivots, zero } = self;
        let (m, n) = (panel.rows(), panel.cols());
        // By columns, along which pivots are sought and rows eliminated.
        let mut columns = vec![T::ZERO; m * n];
        for i in 0..m {
            panel.row(i).iter().enumerate().for_each(|(j, x)| columns[j * m + i] = *x);
        }
        for first in (0..n).step_by(FOUR) {
            let end = (first + FOUR).min(n);
            for j in first..end {
                let pivot = j + largest(&columns[j * m + j..(j + 1) * m]);
                pivots[j] = pivot as i64;
                if columns[j * m + pivot] == T::ZERO {
                    zero.get_or_insert(j);
                    continue;
                }
                if pivot > j {
                    columns.chunks_exact_mut(m).for_each(|column| column.swap(j, pivot));
                }
                let (known, rest) = columns.split_at_mut((j + 1) * m);
                let (pivot, below) = known[j * m + j..].split_at_mut(1);
                divide(below, pivot[0]);
                for column in rest[..(end - j - 1) * m].chunks_exact_mut(m) {
                    let (upper, lower) = column.split_at_mut(j + 1);
                    subtract(lower, upper[j], below);
                }
            }
            // The other columns, with all of these at once.
            let (known, rest) = columns.split_at_mut(end * m);
            for column in rest.chunks_exact_mut(m) {
                let known: [&[T]; FOUR] = std::array::from_fn(|p| &known[(first + p) * m..][..m]);
                let (upper, lower) = column.split_at_mut(end);
                let factors = &mut upper[first..];
                for p in 0..FOUR {
                    for q in p + 1..FOUR {
                        factors[q] = factors[q] - factors[p] * known[p][first + q];
                    }
                }
                let factors = std::array::from_fn(|p| factors[p]);
                subtract_four(lower, factors, known.map(|column| &column[end..]));
            }
        }
        for i in 0..m {
            panel.row(i).iter_mut().enumerate().for_each(|(j, x)| *x = columns[j * m + i]);
        }
    }
}

/// The place of the first element of the largest magnitude; 0 if all are NaN.
#[inline(always)]
pub(super) fn largest<T: Real>(elements: &[T]) -> usize {
    const LANES: usize = 32;
    let magnitude = |x: T| if x < T::ZERO { -x } else { x };
    let mut most = [T::ZERO; LANES];
    let (chunks, rest) = elements.as_chunks::<LANES>();
    for chunk in chunks {
        for (most, x) in most.iter_mut().zip(chunk) {
            let x = magnitude(*x);
            *most = if x > *most { x } else { *most };
        }
    }
    let both = most.into_iter().chain(rest.iter().map(|x| magnitude(*x)));
    let most = both.fold(T::ZERO, |most, x| if x > most { x } else { most });
    elements.iter().position(|x| magnitude(*x) == most).unwrap_or(0)
}
