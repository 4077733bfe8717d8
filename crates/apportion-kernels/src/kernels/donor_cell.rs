//! One upwind (donor-cell) advection step on a two-dimensional grid: the first pass of MPDATA.
//!
//! Source: P. K. Smolarkiewicz, "A fully multidimensional positive definite advection transport algorithm
//! with small implicit diffusion", J. Comput. Phys. 54, 1984, equation (2); Malik 2016, section 4.2, advects
//! with it.

use crate::kernels::mpdata::Advectable;
use std::ops::Range;

/// A field of `rows` x `cols` cells with one row or column of halo on each side, and the Courant numbers on
/// the faces between cells.
#[derive(Debug, Clone, Copy)]
pub struct Advected<'a, T> {
    /// Rows of cells, without the halo.
    pub rows: usize,
    /// Columns of cells, without the halo.
    pub cols: usize,
    /// (rows + 2) x (cols + 2) values, row by row.
    pub psi: &'a [T],
    /// (rows + 1) x cols: through the face above each row, and below the last; positive is towards higher
    /// rows.
    pub down: &'a [T],
    /// rows x (cols + 1): through the face left of each column, and right of the last; positive is towards
    /// higher columns.
    pub right: &'a [T],
}

/// Advects some of the rows by one time step: psi minus the outflow through the four faces, with each flux
/// taken from the upwind cell. `out` holds those rows, of `cols` cells each, without a halo. O(cells); reads
/// four values per cell and writes one.
///
/// Stable and positive where the Courant numbers of a cell add up to at most 1.
///
/// # Panics
/// If the rows are outside the field, or the length of a slice does not match the shape.
pub fn donor_cell<T: Advectable>(field: &Advected<'_, T>, rows: Range<usize>, out: &mut [T]) {
    let Advected { cols, psi, down, right, .. } = *field;
    let long = |slice: &[T], height: Option<usize>, width: Option<usize>, name: &str| {
        let fits =
            height.zip(width).and_then(|(height, width)| height.checked_mul(width)) == Some(slice.len());
        assert!(fits, "{name} has {} elements for a field of {} x {cols} cells", slice.len(), field.rows);
    };
    long(psi, field.rows.checked_add(2), cols.checked_add(2), "psi");
    long(down, field.rows.checked_add(1), Some(cols), "down");
    long(right, Some(field.rows), cols.checked_add(1), "right");
    assert!(
        rows.start <= rows.end && rows.end <= field.rows,
        "rows {rows:?} of a field of {} rows",
        field.rows
    );
    long(out, Some(rows.len()), Some(cols), "out");
    let stride = cols + 2;
    for (i, out) in rows.zip(out.chunks_exact_mut(cols.max(1))) {
        let above = &psi[i * stride + 1..][..cols];
        let row = &psi[(i + 1) * stride..][..stride];
        let below = &psi[(i + 2) * stride + 1..][..cols];
        let (top, bottom) = (&down[i * cols..][..cols], &down[(i + 1) * cols..][..cols]);
        let side = &right[i * (cols + 1)..][..cols + 1];
        for j in 0..cols {
            let (left, here, next) = (row[j], row[j + 1], row[j + 2]);
            let rightwards = flux(here, next, side[j + 1]) - flux(left, here, side[j]);
            let downwards = flux(here, below[j], bottom[j]) - flux(above[j], here, top[j]);
            out[j] = here - rightwards - downwards;
        }
    }
}

/// The flux through a face, positive from `before` to `behind`: the upwind cell's value times the Courant
/// number.
#[inline(always)]
fn flux<T: Advectable>(before: T, behind: T, courant: T) -> T {
    let forwards = if courant > T::ZERO { courant } else { T::ZERO };
    let backwards = if courant < T::ZERO { courant } else { T::ZERO };
    forwards * before + backwards * behind
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step<T: Advectable>(rows: usize, cols: usize, psi: &[T], down: &[T], right: &[T]) -> Vec<T> {
        let field = Advected { rows, cols, psi, down, right };
        let mut out = vec![T::ZERO; rows * cols];
        // In two bands, as two threads would.
        let (first, second) = out.split_at_mut(rows / 2 * cols);
        donor_cell(&field, 0..rows / 2, first);
        donor_cell(&field, rows / 2..rows, second);
        out
    }

    #[test]
    fn a_courant_number_of_one_moves_by_a_cell() {
        let (rows, cols) = (3, 4);
        let mut psi = vec![0.0_f32; (rows + 2) * (cols + 2)];
        psi[2 * (cols + 2) + 2] = 5.0; // Cell (1, 1).
        let (still_down, still_right) = (vec![0.0; 4 * cols], vec![0.0; rows * 5]);
        let at = |out: &[f32]| out.iter().position(|x| *x == 5.0).map(|i| (i / cols, i % cols));
        assert_eq!(at(&step(rows, cols, &psi, &still_down, &vec![1.0; rows * 5])), Some((1, 2)));
        assert_eq!(at(&step(rows, cols, &psi, &still_down, &vec![-1.0; rows * 5])), Some((1, 0)));
        assert_eq!(at(&step(rows, cols, &psi, &vec![1.0; 4 * cols], &still_right)), Some((2, 1)));
        assert_eq!(at(&step(rows, cols, &psi, &vec![-1.0; 4 * cols], &still_right)), Some((0, 1)));
    }

    #[test]
    #[should_panic(expected = "psi has 0 elements for a field of 5 x 18446744073709551614 cells")]
    fn a_size_that_wraps_is_refused() {
        let cols = usize::MAX - 1;
        donor_cell::<f32>(&Advected { rows: 5, cols, psi: &[], down: &[], right: &[] }, 0..0, &mut []);
    }

    /// Half a cell per step along a row, with ones in a row of 16: Pascal's triangle over 2^8.
    #[test]
    fn eight_half_steps_are_binomial() {
        let mut row = vec![0.0_f64; 16];
        row[2] = 1.0;
        for _ in 0..8 {
            let mut psi = vec![0.0; 3 * 18];
            psi[19..35].copy_from_slice(&row);
            row = step(1, 16, &psi, &[0.0; 32], &[0.5; 17]);
        }
        let pascal = [1.0, 8.0, 28.0, 56.0, 70.0, 56.0, 28.0, 8.0, 1.0];
        assert_eq!(row[2..11].iter().map(|x| x * 256.0).collect::<Vec<_>>(), pascal);
    }

    proptest! {
        /// The oracle: psi changes by the fluxes, face by face; the interior conserves it.
        #[test]
        fn it_is_the_sum_over_faces(
            rows in 1usize..7, cols in 1usize..7, seed in prop::collection::vec((0.0f64..3.0, -0.25f64..0.25), 64),
        ) {
            let psi: Vec<f64> = (0..(rows + 2) * (cols + 2)).map(|i| seed[i % 64].0).collect();
            let courant = |n: usize, shift: usize| -> Vec<f64> { (0..n).map(|i| seed[(i * 7 + shift) % 64].1).collect() };
            let (down, right) = (courant((rows + 1) * cols, 0), courant(rows * (cols + 1), 5));
            let at = |i: usize, j: usize| i * (cols + 2) + j;
            let mut all = psi.clone();
            let mut cross = |from: usize, to: usize, c: f64| {
                let amount = if c > 0.0 { c * psi[from] } else { c * psi[to] };
                all[from] -= amount;
                all[to] += amount;
            };
            for i in 0..=rows {
                (0..cols).for_each(|j| cross(at(i, j + 1), at(i + 1, j + 1), down[i * cols + j]));
            }
            for i in 0..rows {
                (0..=cols).for_each(|j| cross(at(i + 1, j), at(i + 1, j + 1), right[i * (cols + 1) + j]));
            }
            let out = step(rows, cols, &psi, &down, &right);
            for (i, j) in (0..rows * cols).map(|x| (x / cols, x % cols)) {
                prop_assert!((out[i * cols + j] - all[at(i + 1, j + 1)]).abs() < 1e-12);
                prop_assert!(out[i * cols + j] >= -1e-15, "positive");
            }
        }
    }
}
