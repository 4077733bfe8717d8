//! Layouts with cuts at multiples of a block size.
//!
//! Source: Becker 2010, section 2.3 (generalised blocks): processors own b x b blocks instead of elements, so
//! that every update is a product of whole blocks.

use crate::error::{Error, Result};
use crate::geometry::Span;
use crate::plan::{Cuboid, Layout, Part, Shape};

/// Lays out the m/b x n/b matrix of blocks with `lay` and scales the result up. Every cut is at a multiple of
/// `block`; the last block takes the remainder, and a side shorter than a block is one block. O(R log R) for
/// R rectangles.
///
/// # Errors
/// A block size of 0 (exit code 2), and the errors of `lay`.
///
/// # Example
/// ```
/// use apportion_plan::plan::shapes::{LayoutMethod, Rows};
/// use apportion_plan::plan::{Shape, in_blocks};
/// let shape = Shape::new(100, 100, 100, "example")?;
/// let layout = in_blocks(shape, 32, |blocks| Rows::default().layout(blocks, &[1.0, 1.0]))?;
/// assert_eq!(layout.shares(), [6400, 3600]); // three blocks high: 64 rows and 36
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
pub fn in_blocks(shape: Shape, block: u64, lay: impl FnOnce(Shape) -> Result<Layout>) -> Result<Layout> {
    if block == 0 {
        return Err(Error::input(
            "`granularity`",
            "must be at least 1",
            "give the side of a block in elements",
        ));
    }
    if block == 1 {
        return lay(shape);
    }
    let count = |side: u64| (side / block).max(1);
    let blocks = Shape { m: count(shape.m), k: count(shape.k), n: count(shape.n) };
    let small = lay(blocks)?;
    let scaled = |span: Span, blocks: u64, side: u64| {
        let cut = |at: u64| if at == blocks { side } else { at * block };
        Span::new(cut(span.start), cut(span.end))
    };
    if let Some(boxes) = small.boxes() {
        let boxes = boxes.iter().map(|one| Cuboid {
            owner: one.owner,
            rows: scaled(one.rows, blocks.m, shape.m),
            cols: scaled(one.cols, blocks.n, shape.n),
            inner: scaled(one.inner, blocks.k, shape.k),
        });
        return Layout::of_boxes(shape, small.processors(), boxes);
    }
    let parts = small.parts().iter().map(|part| Part {
        owner: part.owner,
        rows: scaled(part.rows, blocks.m, shape.m),
        cols: scaled(part.cols, blocks.n, shape.n),
    });
    Layout::new(shape, small.processors(), parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::{Boxes, Columns, LayoutMethod, Method, MethodOptions};
    use proptest::prelude::*;

    proptest! {
        /// For every method: cuts are at multiples of the block except at the ends, everything is covered
        /// (checked by `Layout::new`), and each block has the owner that the layout of blocks gives it.
        #[test]
        fn cuts_are_whole_blocks(
            m in 1u64..200, n in 1u64..200, block in 1u64..40, weights in prop::collection::vec(0.1f64..10.0, 1..6),
        ) {
            let shape = Shape::new(m, 7, n, "test").unwrap();
            for method in Method::candidates() {
                let lay = |s: Shape| method.layout(s, &weights, &MethodOptions::default());
                let Ok(layout) = in_blocks(shape, block, lay) else { continue };
                prop_assert_eq!(layout.shares().iter().sum::<u64>(), m * n);
                for part in layout.parts() {
                    for (span, side) in [(part.rows, m), (part.cols, n)] {
                        let whole = |at: u64| at.is_multiple_of(block) || at == side;
                        prop_assert!(whole(span.start) && whole(span.end), "{} {:?}", method, span);
                        prop_assert!(span.len() >= block.min(side), "{} {:?}", method, span);
                    }
                }
            }
        }
    }

    /// Inner cuts are at multiples of the block too.
    #[test]
    fn boxes_are_cut_at_whole_blocks() {
        let shape = Shape::new(40, 203, 60, "test").unwrap();
        let layout = in_blocks(shape, 20, |s| Boxes.layout(s, &[3.0, 1.0, 1.0])).unwrap();
        for one in layout.boxes().unwrap() {
            for (span, side) in [(one.rows, 40), (one.cols, 60), (one.inner, 203)] {
                let whole = |at: u64| at.is_multiple_of(20) || at == side;
                assert!(whole(span.start) && whole(span.end), "{one:?}");
            }
        }
    }

    #[test]
    fn the_remainder_goes_with_the_last_block() {
        let shape = Shape::new(103, 50, 67, "test").unwrap();
        let layout = in_blocks(shape, 10, |s| Columns::default().layout(s, &[1.0; 4])).unwrap();
        let spans: Vec<([u64; 2], [u64; 2])> =
            layout.parts().iter().map(|p| (p.rows.into(), p.cols.into())).collect();
        assert_eq!(
            spans,
            [([0, 50], [0, 30]), ([0, 50], [30, 67]), ([50, 103], [0, 30]), ([50, 103], [30, 67])]
        );
    }

    #[test]
    fn a_matrix_smaller_than_a_block_is_one_block() {
        let shape = Shape::new(5, 9, 700, "test").unwrap();
        let layout = in_blocks(shape, 64, |s| Columns::default().layout(s, &[1.0, 1.0])).unwrap();
        assert!(layout.parts().iter().all(|p| p.rows == Span::new(0, 5)));
        let dot = in_blocks(Shape::new(5, 9, 7, "test").unwrap(), 64, |s| {
            Columns::default().layout(s, &[1.0, 3.0])
        })
        .unwrap();
        assert_eq!(dot.shares(), [0, 35]);
        assert_eq!(in_blocks(shape, 0, |s| Columns::default().layout(s, &[1.0])).unwrap_err().exit_code(), 2);
    }
}
