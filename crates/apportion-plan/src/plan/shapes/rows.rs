//! Horizontal strips: row block striped partitioning (Tinetti, chapter 3, section 3.4.1).

use super::{LayoutMethod, consecutive, layout};
use crate::error::Result;
use crate::geometry::Span;
use crate::plan::shares::LeftOver;
use crate::plan::{Layout, Shape};

/// Processor i gets consecutive rows in proportion to its weight; by default, left-over rows go to the
/// processors that finish them soonest.
///
/// Volume (p - 1) k n for p processors with a share. O(p log p).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rows {
    /// Who gets the rows that are left over.
    pub(crate) left_over: LeftOver,
}

impl LayoutMethod for Rows {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let heights = self.left_over.shares(shape.m, weights);
        let all = Span::new(0, shape.n);
        let parts = consecutive(&heights).into_iter().enumerate().map(|(i, rows)| (i, rows, all));
        Ok(layout(shape, weights.len(), parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;

    #[test]
    fn volume_is_b_for_all_but_one() {
        let shape = Shape::new(10, 6, 7, "test").unwrap();
        let layout = Rows::default().layout(shape, &[5.0, 3.0, 2.0]).unwrap();
        assert_eq!(layout.shares(), [35, 21, 14]);
        assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(2 * 6 * 7));
    }

    /// 96 rows at 6:24, as the source defines left-over rows.
    #[test]
    fn left_over_rows_of_the_source() {
        let shape = Shape::new(96, 5, 10, "test").unwrap();
        assert_eq!(
            Rows { left_over: LeftOver::First }.layout(shape, &[6.0, 24.0]).unwrap().shares(),
            [200, 760]
        );
        assert_eq!(
            Rows { left_over: LeftOver::Soonest }.layout(shape, &[6.0, 24.0]).unwrap().shares(),
            [190, 770]
        );
    }

    #[test]
    fn more_processors_than_rows_leaves_some_without() {
        let shape = Shape::new(2, 2, 2, "test").unwrap();
        assert_eq!(Rows::default().layout(shape, &[1.0; 5]).unwrap().shares(), [2, 2, 0, 0, 0]);
    }
}
