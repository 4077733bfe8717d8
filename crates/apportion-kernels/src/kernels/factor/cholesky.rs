//! The Cholesky factorisation of a panel.

use super::strips::{Strips, with_strips};
use crate::kernels::{Real, ViewMut};

/// Factors the first columns of a symmetric matrix: of a panel of m x n, n <= m, the first n rows become the
/// lower triangle L of a Cholesky factorisation, and the others X with X L^T equal to what they were. Elements
/// above the diagonal are not read, and their values are unspecified afterwards. m n^2 - (2/3) n^3 operations.
///
/// The bits of a row depend on it and on the rows of the triangle before it alone, not on other rows or the stride.
///
/// # Errors
/// The leading minor of order j + 1 is not positive, for the least such j; the panel is then unspecified.
///
/// # Panics
/// If there are more columns than rows.
pub fn cholesky_panel<T: Real>(panel: ViewMut<T>) -> Result<(), usize> {
    let (m, n) = (panel.rows(), panel.cols());
    assert!(n <= m, "a panel of {m} x {n} has no square part of {n} rows");
    with_strips(n, |strips| factor_by_strips(panel, strips))
}

/// The same by strips of rows: each is transposed, its elements are the unknowns of L X^T = B^T, and those of the first n
/// rows become rows of L for the unknowns that follow.
pub(super) fn factor_by_strips<T: Real>(mut panel: ViewMut<T>, mut strips: Strips<T>) -> Result<(), usize> {
    let (m, n) = (panel.rows(), panel.cols());
    let (rows, lanes) = (strips.kernel.rows(), strips.lanes());
    let blocks = n.div_ceil(rows);
    for first in (0..m).step_by(lanes) {
        let mut part = panel.tile(first, 0, lanes.min(m - first), n);
        strips.kernel.transpose_from(&mut part, strips.strip, lanes);
        // Strips and blocks begin at the same rows, as lanes are a multiple of a block's rows.
        let known = (first / rows).min(blocks);
        strips.solve(0..known);
        for block in known..((first + lanes) / rows).min(blocks) {
            if !strips.factor(block, first, n) {
                let is_positive = |j: &usize| strips.strip[j * lanes + j - first] > T::ZERO;
                let order = block * rows..n.min(block * rows + rows);
                return Err(order.clone().find(|j| !is_positive(j)).unwrap_or(order.start));
            }
        }
        strips.kernel.transpose_to(strips.strip, lanes, &mut part);
    }
    Ok(())
}
