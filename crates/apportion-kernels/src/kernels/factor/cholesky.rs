//! The Cholesky factorisation of a panel.

use super::{NARROW, copy_of, divide, half, negative_transpose, subtract_all};
use crate::kernels::{Loop, Real, View, ViewMut, gemm, widest};

/// Rows below a narrow triangle that are solved together.
const TOGETHER: usize = 128;

/// Factors the first columns of a symmetric matrix: of a panel of m x n, n <= m, the first n rows become the
/// lower triangle L of a Cholesky factorisation, and the others X with X L^T equal to what they were. Elements
/// above the diagonal are not read, and their values are unspecified afterwards. m n^2 - (2/3) n^3 operations.
///
/// # Errors
/// The leading minor of order j + 1 is not positive, for the least such j; the panel is then unspecified.
///
/// # Panics
/// If there are more columns than rows.
pub fn cholesky_panel<T: Real>(mut panel: ViewMut<T>) -> Result<(), usize> {
    let (m, n) = (panel.rows(), panel.cols());
    assert!(n <= m, "a panel of {m} x {n} has no square part of {n} rows");
    if n <= NARROW {
        return narrow_panel(panel);
    }
    let left = half(n);
    cholesky_panel(panel.tile(0, 0, m, left))?;
    let (rows, cols) = (m - left, n - left);
    let below = copy_of(panel.tile(left, 0, rows, left));
    let below = View::dense(&below, rows, left);
    let turned = negative_transpose(below.tile(0, 0, cols, left));
    gemm(below, View::dense(&turned, left, cols), panel.tile(left, left, rows, cols));
    cholesky_panel(panel.tile(left, left, rows, cols)).map_err(|j| left + j)
}

/// The same for few columns.
fn narrow_panel<T: Real>(mut panel: ViewMut<T>) -> Result<(), usize> {
    let n = panel.cols();
    let mut l = [[T::ZERO; NARROW]; NARROW];
    for j in 0..n {
        let known = l[j];
        for (i, row) in l.iter_mut().enumerate().take(n).skip(j) {
            let before = panel.row(i)[j];
            // Row j is that of the diagonal: its own elements.
            let other = if i == j { &known } else { &*row };
            let sum = other.iter().zip(&known).take(j).fold(before, |sum, (x, y)| sum - *x * *y);
            row[j] = sum;
        }
        let square = l[j][j];
        if square.partial_cmp(&T::ZERO) != Some(std::cmp::Ordering::Greater) {
            return Err(j);
        }
        let root = T::from_f64(square.to_f64().sqrt());
        l[j][j] = root;
        l.iter_mut().take(n).skip(j + 1).for_each(|row| row[j] = row[j] / root);
    }
    for (i, row) in l.iter().enumerate().take(n) {
        panel.row(i)[..=i].copy_from_slice(&row[..=i]);
    }
    let (_, below) = panel.split_at_row(n);
    widest(Below { l: &l, below });
    Ok(())
}

/// Solves X L^T = B for the rows below a narrow triangle, which hold B and become X.
pub(super) struct Below<'a, 'b, T> {
    pub l: &'a [[T; NARROW]; NARROW],
    pub below: ViewMut<'b, T>,
}

impl<T: Real> Loop for Below<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { l, mut below } = self;
        let n = below.cols();
        // By columns, so that the same operation applies to many rows at once.
        let mut x = [[T::ZERO; TOGETHER]; NARROW];
        for first in (0..below.rows()).step_by(TOGETHER) {
            let rows = TOGETHER.min(below.rows() - first);
            for i in 0..rows {
                below.row(first + i).iter().zip(&mut x).for_each(|(from, to)| to[i] = *from);
            }
            for (j, factors) in l.iter().enumerate().take(n) {
                let (known, rest) = x.split_at_mut(j);
                let column = &mut rest[0];
                subtract_all(column, factors, known);
                divide(column, factors[j]);
            }
            for i in 0..rows {
                below.row(first + i).iter_mut().zip(&x).for_each(|(to, from)| *to = from[i]);
            }
        }
    }
}
