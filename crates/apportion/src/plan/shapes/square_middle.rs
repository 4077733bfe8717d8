//! Comparison shape: the slower processor's square in the middle of the matrix.
//!
//! Source: Becker 2010, sections 5.5.1 to 5.5.3, Figure 5.9, Table 5.2.

use super::serves;
use super::square_corner::{Square, one_square};
use super::square_edge::{rect_at, with_square};
use crate::error::Result;
use crate::plan::{Layout, Shape};

/// A square as for [`square_corner`](super::square_corner()), in the middle; the rest has a hole. O(1).
///
/// The same volume, in six messages instead of four, and a longer outline.
///
/// # Errors
/// Not two processors, or a square that does not fit: exit code 1.
pub fn square_middle(shape: Shape, weights: &[f64]) -> Result<Layout> {
    serves("square-middle", weights.len(), 2, 2)?;
    let Square { fast, slow, high, wide } = one_square(shape, weights)?;
    let corner = [(shape.m - high) / 2, (shape.n - wide) / 2];
    Ok(with_square(shape, fast, slow, rect_at(corner, high, wide)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Rect, Span};

    #[test]
    fn the_hole_is_in_the_middle() {
        let shape = Shape::new(9, 9, 9, "test").unwrap();
        let layout = square_middle(shape, &[8.0, 1.0]).unwrap();
        assert_eq!(layout.rects_by_owner()[1], [Rect::new(Span::new(3, 6), Span::new(3, 6))]);
        assert_eq!(layout.shares(), [72, 9]);
        assert_eq!(square_middle(shape, &[1.0]).unwrap_err().exit_code(), 1);
    }
}
