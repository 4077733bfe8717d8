//! Layouts that repeat a generalised block in both directions.
//!
//! Sources: two-dimensional block-cyclic distribution (ScaLAPACK; Tinetti, chapter 3, section 3.4.6) and its
//! heterogeneous form (Kalinov and Lastovetsky 2001; Lastovetsky's slides): the matrix falls into generalised
//! blocks of R x C elements, each laid out alike, in proportion to the speeds. With equal speeds, a grid of P
//! x Q processors and R = P b, C = Q b it is ScaLAPACK's distribution with blocks of b x b.

use crate::error::{Error, Result};
use crate::geometry::{Rank, Span};
use crate::plan::{Layout, Part, Shape};
use std::collections::BTreeMap;

/// The largest number of rectangles of a layout with a repeated block.
const MOST_RECTANGLES: u128 = 1 << 16;

/// The layout of a whole matrix that repeats `block` in both directions, cut off at the ends. Neighbouring
/// rectangles of one owner are merged. [`Layout::block`] returns the block.
///
/// O(R log R) for R rectangles.
///
/// # Errors
/// The result would have more than 65,536 rectangles: exit code 1.
///
/// # Example
/// ```
/// use apportion_plan::plan::shapes::{Grid, LayoutMethod};
/// use apportion_plan::plan::{Shape, repeat_block};
/// let block = Grid::default().layout(Shape::new(4, 4, 4, "block")?, &[1.0; 4])?;
/// let layout = repeat_block(Shape::new(10, 10, 10, "example")?, &block)?;
/// assert_eq!(layout.shares(), [36, 24, 24, 16]); // 2 x 2 blocks on a 2 x 2 grid, and two lines over
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
pub fn repeat_block(shape: Shape, block: &Layout) -> Result<Layout> {
    let Shape { m: high, n: wide, .. } = block.shape();
    // A part that spans the block spans the matrix: it stays one strip.
    let strip = |span: Span, side: u64| span.len() == side;
    let times = |spans: bool, whole: u64, side: u64| if spans { 1 } else { u128::from(whole.div_ceil(side)) };
    let count: u128 = block
        .parts()
        .iter()
        .map(|p| times(strip(p.rows, high), shape.m, high) * times(strip(p.cols, wide), shape.n, wide))
        .sum();
    if count > MOST_RECTANGLES {
        return Err(Error::infeasible(
            format!(
                "a block of {high} x {wide}, repeated in {} x {}, makes {count} rectangles, more than {MOST_RECTANGLES}",
                shape.m, shape.n
            ),
            "repeat a larger block",
        ));
    }
    let mut parts = Vec::new();
    for part in block.parts() {
        for rows in recurring(part.rows, high, shape.m) {
            parts.extend(recurring(part.cols, wide, shape.n).map(|cols| Part {
                owner: part.owner,
                rows,
                cols,
            }));
        }
    }
    let layout = Layout::new(shape, block.processors(), merged(parts))?;
    Ok(layout.with_block(block.clone()))
}

/// The span and its repetitions every `period` indices, cut off at `end`; all indices at once if it fills the
/// period.
fn recurring(span: Span, period: u64, end: u64) -> impl Iterator<Item = Span> {
    let (span, period) = if span.len() == period { (Span::new(0, end), end) } else { (span, period) };
    (0..end.div_ceil(period))
        .map(move |i| Span::new((span.start + i * period).min(end), (span.end + i * period).min(end)))
        .filter(|s| !s.is_empty())
}

/// The same parts with neighbours of one owner joined: side by side, then one below the other.
fn merged(parts: Vec<Part>) -> Vec<Part> {
    let side_by_side = join(parts.into_iter().map(|p| (p.owner, p.rows, p.cols)));
    let turned = side_by_side.into_iter().map(|(owner, rows, cols)| (owner, cols, rows));
    join(turned).into_iter().map(|(owner, cols, rows)| Part { owner, rows, cols }).collect()
}

/// Joins consecutive second spans of one owner and one first span.
fn join(parts: impl Iterator<Item = (Rank, Span, Span)>) -> Vec<(Rank, Span, Span)> {
    let mut lines: BTreeMap<(Rank, Span), Vec<Span>> = BTreeMap::new();
    for (owner, across, along) in parts {
        lines.entry((owner, across)).or_default().push(along);
    }
    let mut joined = Vec::new();
    for ((owner, across), alongs) in lines {
        let spans = crate::geometry::SpanSet::union(alongs);
        joined.extend(spans.spans().iter().map(|&along| (owner, across, along)));
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use crate::plan::shapes::{Grid, LayoutMethod, Method, MethodOptions, Rows, SquareCorner};
    use proptest::prelude::*;

    fn shape(m: u64, n: u64) -> Shape {
        Shape::new(m, 5, n, "test").unwrap()
    }

    /// The owner of each element, row by row.
    fn paint(layout: &Layout) -> Vec<usize> {
        let n = layout.shape().n as usize;
        let mut map = vec![usize::MAX; layout.shape().elements() as usize];
        for part in layout.parts() {
            for row in part.rows.start..part.rows.end {
                for col in part.cols.start..part.cols.end {
                    map[row as usize * n + col as usize] = part.owner.0;
                }
            }
        }
        map
    }

    proptest! {
        /// The owner of (i, j) is the block's owner of (i mod R, j mod C), on awkward sizes too; the cover
        /// itself is checked by `Layout::new`.
        #[test]
        fn the_owner_map_recurs(
            m in 1u64..40, n in 1u64..40, high in 1u64..12, wide in 1u64..12,
            weights in prop::collection::vec(0.1f64..10.0, 1..6),
        ) {
            for method in Method::candidates() {
                let Ok(block) = method.layout(shape(high, wide), &weights, &MethodOptions::default()) else { continue };
                let whole = repeat_block(shape(m, n), &block).unwrap();
                prop_assert_eq!(whole.shares().iter().sum::<u64>(), m * n);
                let (small, large) = (paint(&block), paint(&whole));
                for i in 0..m {
                    for j in 0..n {
                        let expected = small[((i % high) * wide + j % wide) as usize];
                        prop_assert_eq!(large[(i * n + j) as usize], expected, "{}", method);
                    }
                }
                prop_assert_eq!(whole.block(), Some(&block));
            }
        }
    }

    /// ScaLAPACK: on a 2 x 3 grid with 4 x 4 blocks, block (I, J) belongs to process (I mod 2, J mod 3).
    #[test]
    fn block_cyclic_of_scalapack() {
        let block = Grid::default().layout(shape(8, 12), &[1.0; 6]).unwrap();
        let whole = repeat_block(shape(30, 37), &block).unwrap();
        let map = paint(&whole);
        for i in 0..30_usize {
            for j in 0..37_usize {
                let (row, col) = (i / 4 % 2, j / 4 % 3);
                assert_eq!(map[i * 37 + j], map[4 * row * 37 + 4 * col], "({i}, {j})");
            }
        }
        // Whole process rows and columns: each of the 6 touches all rows and columns of its own.
        let even = repeat_block(shape(80, 120), &block).unwrap();
        assert_eq!(even.shares(), [1600; 6]);
        let cost = Metrics::of_layout(&even, 1.0).sum_half_perimeters.unwrap();
        assert!((cost - 6.0 * (0.5 + 1.0 / 3.0)).abs() < 1e-12);
        assert_eq!(even.parts().len(), 10 * 10 * 6);
    }

    #[test]
    fn strips_merge_and_too_many_rectangles_are_refused() {
        let strips = Rows::default().layout(shape(10, 10), &[3.0, 2.0]).unwrap();
        assert_eq!(repeat_block(shape(1000, 1000), &strips).unwrap().parts().len(), 200);
        let alone = Rows::default().layout(shape(1, 1), &[1.0]).unwrap();
        assert_eq!(repeat_block(shape(1 << 26, 1 << 26), &alone).unwrap().parts().len(), 1);
        let corner = SquareCorner.layout(shape(10, 10), &[9.0, 1.0]).unwrap();
        let error = repeat_block(shape(5000, 5000), &corner).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("larger block"), "{error}");
    }
}
