//! Comparison shape: the slower processor's square on the lower edge instead of in the corner.
//!
//! Source: Becker 2010, sections 5.5.1 to 5.5.3, Figure 5.8, Table 5.2.

use super::square_corner::{Square, one_square};
use super::{layout, serves};
use crate::error::Result;
use crate::geometry::{Rect, Span};
use crate::plan::{Layout, Shape};

/// A square as for [`square_corner`](super::square_corner()), in the middle of the lower edge. O(1).
///
/// The same volume, in five messages instead of four, and a longer outline.
///
/// # Errors
/// Not two processors, or a square that does not fit: exit code 1.
pub fn square_edge(shape: Shape, weights: &[f64]) -> Result<Layout> {
    serves("square-edge", weights.len(), 2, 2)?;
    let Square { fast, slow, high, wide } = one_square(shape, weights)?;
    let corner = [shape.m - high, (shape.n - wide) / 2];
    Ok(with_square(shape, fast, slow, rect_at(corner, high, wide)))
}

/// The rectangle of `high` rows and `wide` columns whose first element is `[row, column]`.
pub(super) fn rect_at([row, col]: [u64; 2], high: u64, wide: u64) -> Rect {
    Rect::new(Span::new(row, row + high), Span::new(col, col + wide))
}

/// The layout in which `slow` owns `square` and `fast` the rest.
pub(super) fn with_square(shape: Shape, fast: usize, slow: usize, square: Rect) -> Layout {
    let Rect { rows: band, cols } = square;
    let all = Span::new(0, shape.n);
    let parts = [
        (fast, Span::new(0, band.start), all),
        (fast, band, Span::new(0, cols.start)),
        (slow, band, cols),
        (fast, band, Span::new(cols.end, shape.n)),
        (fast, Span::new(band.end, shape.m), all),
    ];
    layout(shape, 2, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use crate::plan::shapes::{square_corner, square_middle};
    use crate::plan::{interrupts, outlines};

    /// Table 5.2: outlines over volume for the three places of the square. Its 2.66 for 0.75 in the corner is
    /// a slip: (2 + 1.5) / 1.5 = 2.33, as the other columns of the same line confirm.
    #[test]
    fn ratios_of_the_thesis() {
        let cube = Shape::new(1000, 1000, 1000, "test").unwrap();
        let table = [
            (0.1, [11.0, 11.5, 12.0]),
            (0.25, [5.0, 5.5, 6.0]),
            (0.5, [3.0, 3.5, 4.0]),
            (0.75, [7.0 / 3.0, 2.0 + 5.0 / 6.0, 10.0 / 3.0]),
            (0.9, [2.0 + 1.0 / 9.0, 2.0 + 11.0 / 18.0, 3.0 + 1.0 / 9.0]),
        ];
        for (side, ratios) in table {
            let square = (1000.0 * side) as u64;
            let rest = 1000 - square;
            for (corner, ratio) in
                [[rest, rest], [rest, rest / 2], [rest / 2, rest / 2]].into_iter().zip(ratios)
            {
                let layout = with_square(cube, 0, 1, rect_at(corner, square, square));
                let volume = Metrics::of_layout(&layout, 1.0).volume.unwrap();
                assert!((outlines(&layout) / (volume as f64 / 1e6) - ratio).abs() < 1e-9, "{side}");
                assert_eq!(2 * volume, 1000 * interrupts(&layout), "{side}");
            }
        }
    }

    #[test]
    fn the_same_volume_wherever_the_square_is() {
        let shape = Shape::new(60, 50, 80, "test").unwrap();
        for ratio in [3.0, 7.0, 20.0] {
            let volume = |method: fn(Shape, &[f64]) -> Result<Layout>| {
                Metrics::of_layout(&method(shape, &[1.0, ratio]).unwrap(), 1.0).volume
            };
            assert_eq!(volume(square_edge), volume(square_corner));
            assert_eq!(volume(square_middle), volume(square_corner));
        }
        assert!(square_edge(shape, &[1.0; 3]).is_err());
    }
}
