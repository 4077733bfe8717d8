//! Methods that lay out the m x n matrix C in proportion to speeds: one file per idea.
//!
//! A method is a type with its options that implements [`LayoutMethod`]. [`Method`] is the registry: it selects
//! one by name. A new layout is a file here, and a variant of [`Method`].

mod boxes;
mod cartesian;
mod columns;
mod grid;
mod hierarchical;
mod hybrid;
mod least_cost;
mod method;
mod nagamochi_abe;
mod recursive;
mod rows;
mod square_corner;
mod strips;
mod tiling;
mod triangle;

pub use boxes::{Boxes, Inner};
pub use cartesian::Cartesian;
pub(crate) use columns::ColumnGroups;
pub use columns::Columns;
pub use grid::{Grid, Mesh};
pub use hierarchical::Hierarchical;
pub use hybrid::{Communication, Hybrid};
pub use least_cost::LeastCost;
pub use method::{Method, MethodOptions};
pub(crate) use nagamochi_abe::NagamochiAbe;
pub use recursive::Recursive;
pub use rows::Rows;
pub use square_corner::{SquareCorner, SquareEdge, SquareMiddle};
pub(crate) use square_corner::{square_corner_for_overlap, square_corner_scaled};
pub use strips::StraightLine;
pub(crate) use strips::{BlockRectangle, SquareRectangle};
pub use tiling::Objective;
pub use triangle::Triangle;

use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use crate::plan::{Layout, Part, Shape};

/// A method that lays out C in proportion to weights.
pub trait LayoutMethod {
    /// A layout whose areas are in proportion to the weights, one per processor: at least 0, and at least one of
    /// them positive.
    ///
    /// # Errors
    /// The method does not support the number of processors, their weights or the shape (exit code 1), or an
    /// option is wrong (exit code 2).
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout>;
}

/// A layout and the method that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLayout {
    /// The method's name; those of the levels of a hierarchy from the top, as `square-corner/columns`.
    pub method: String,
    /// The layout.
    pub layout: Layout,
}

/// Consecutive spans of the given lengths, starting at 0.
pub(crate) fn consecutive(lengths: &[u64]) -> Vec<Span> {
    let mut at = 0;
    lengths
        .iter()
        .map(|&length| {
            let span = Span::new(at, at + length);
            at += length;
            span
        })
        .collect()
}

/// The processors with a positive weight, fastest first; ties by rank.
pub(crate) fn descending(weights: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
    order.sort_by(|&i, &j| weights[j].total_cmp(&weights[i]).then(i.cmp(&j)));
    order
}

/// A layout from rectangles that cover the matrix exactly once by construction.
pub(crate) fn layout(
    shape: Shape,
    processors: usize,
    parts: impl IntoIterator<Item = (usize, Span, Span)>,
) -> Layout {
    Layout::new(
        shape,
        processors,
        parts.into_iter().map(|(owner, rows, cols)| Part::new(Rank(owner), Rect::new(rows, cols))),
    )
    .expect("a partitioner's rectangles cover the matrix exactly once")
}

/// Layouts whose imbalances differ by at most this fraction are equally balanced. Whole rows and columns of a
/// matrix of 100 rows cost up to one per cent of balance, and a layout that moves less may save a third of the
/// volume.
const EQUAL_BALANCE: f64 = 0.02;

/// Keeps the layouts that are as well balanced as the best of them, to [`EQUAL_BALANCE`], and of these the ones
/// that leave the fewest processors idle, since those move nothing. A choice among them then asks for the least
/// volume.
fn retain_balanced<T>(candidates: &mut Vec<T>, weights: &[f64], layout: impl Fn(&T) -> &Layout) {
    let imbalances: Vec<f64> = candidates.iter().map(|c| imbalance(layout(c), weights)).collect();
    let least = imbalances.iter().copied().fold(f64::INFINITY, f64::min);
    let mut imbalances = imbalances.into_iter();
    candidates.retain(|_| imbalances.next().is_some_and(|one| one <= least * (1.0 + EQUAL_BALANCE)));
    let fewest = candidates.iter().map(|c| idle(layout(c))).min();
    candidates.retain(|c| Some(idle(layout(c))) == fewest);
}

/// Number of processors without a share.
fn idle(layout: &Layout) -> usize {
    layout.shares().iter().filter(|share| **share == 0).count()
}

/// The longest time over that of shares in proportion, at speeds in proportion to the weights.
fn imbalance(layout: &Layout, weights: &[f64]) -> f64 {
    let shares = layout.shares();
    let ideal = shares.iter().sum::<u64>() as f64 / weights.iter().sum::<f64>();
    let busy = shares.iter().zip(weights).filter(|(share, _)| **share > 0);
    busy.map(|(&share, weight)| share as f64 / weight / ideal).fold(0.0, f64::max)
}

/// Checks that a method supports this number of processors.
pub(crate) fn serves(method: &str, processors: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&processors) {
        return Ok(());
    }
    let wanted = if least == most { format!("exactly {least}") } else { format!("{least} to {most}") };
    Err(Error::infeasible(
        format!("{method} supports {wanted} processors, not {processors}"),
        "use columns or auto, which support any number",
    ))
}
