//! Only the inner dimension is cut.
//!
//! Every processor multiplies some columns of A by the same rows of B, which it owns. Nothing of A and B
//! moves; every processor but the first sends its partial sums of all of C. This moves least if the inner
//! dimension is much longer than the others.

use crate::error::Result;
use crate::geometry::{Rank, Span};
use crate::plan::shapes::consecutive;
use crate::plan::shares::proportional;
use crate::plan::{Cuboid, Layout, Shape};

/// Slabs of all rows and columns, in the order of ranks; their inner indices are in proportion to the
/// weights, integer-optimal. The first processor with a slab owns C. O(p log p).
///
/// # Errors
/// More than 4,096 slabs: exit code 2.
///
/// # Example
/// ```
/// use apportion::plan::{Metrics, Shape, shapes::inner};
/// let layout = inner(Shape::new(10, 1000, 20, "example")?, &[3.0, 1.0])?;
/// assert_eq!(layout.work(), [150_000, 50_000]);
/// assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(200)); // C once
/// # Ok::<(), apportion::error::Error>(())
/// ```
pub fn inner(shape: Shape, weights: &[f64]) -> Result<Layout> {
    let spans = consecutive(&proportional(shape.k, weights));
    let (rows, cols) = (Span::new(0, shape.m), Span::new(0, shape.n));
    let slab = |(rank, inner)| Cuboid { owner: Rank(rank), rows, cols, inner };
    Layout::of_boxes(shape, weights.len(), spans.into_iter().enumerate().map(slab))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;

    /// The shape of the introduction: eight equal processors, seven partial sums of C.
    #[test]
    fn a_long_inner_dimension() {
        let shape = Shape::new(2048, 65536, 2048, "test").unwrap();
        let layout = inner(shape, &[1.0; 8]).unwrap();
        let metrics = Metrics::of_layout(&layout, 1.0);
        assert_eq!(metrics.volume, Some(7 * 2048 * 2048));
        assert_eq!(metrics.volume_bound, metrics.volume);
        let grid = crate::plan::shapes::grid(shape, &[1.0; 8]).unwrap().volume();
        assert_eq!(grid, 65536 * (8 * (1024 + 512) - 4096));
        assert!(grid > 18 * metrics.volume.unwrap());
        // Three columns of three, three and two processors move somewhat less than the grid.
        assert!(crate::plan::shapes::columns(shape, &[1.0; 8]).unwrap().volume() > 17 * layout.volume());
    }

    #[test]
    fn one_processor_none_idle_and_more_than_indices() {
        let shape = Shape::new(3, 5, 4, "test").unwrap();
        assert_eq!(inner(shape, &[2.0]).unwrap().boxes(), None);
        assert_eq!(inner(shape, &[0.0, 1.0, 1.5]).unwrap().work(), [0, 24, 36]);
        let many = inner(shape, &[1.0; 7]).unwrap();
        assert_eq!(many.work().iter().filter(|work| **work == 12).count(), 5);
        assert_eq!(many.rects_by_owner()[0].len(), 1);
    }
}
