//! Methods that lay out the m x n matrix C in proportion to speeds: one file per algorithm.
//!
//! Every function takes the shape of the product and one weight per processor, and returns a
//! [`Layout`] whose areas are in proportion to the weights. Weights are at least 0, and
//! at least one is positive. A method that does not support the number of processors or their weights returns
//! an error. [`Method`] selects a method by name.

mod block_rectangle;
mod boxes;
mod cartesian;
mod column_groups;
mod columns;
mod columns_largest;
mod grid;
mod hierarchical;
mod hybrid;
mod hybrid_three;
mod inner;
mod least_cost;
mod method;
mod nagamochi_abe;
mod objective;
mod polish;
mod recursive;
mod rows;
mod slicing;
mod square_corner;
mod square_corner_overlap;
mod square_edge;
mod square_middle;
mod square_rectangle;
mod steps;
mod straight_line;
mod tiling;

pub use block_rectangle::block_rectangle;
pub use boxes::{all_boxes, boxes};
pub use cartesian::cartesian;
pub use column_groups::column_groups;
pub use columns::columns;
use grid::mesh_shape;
pub use grid::{grid, grid_shape};
pub use hierarchical::hierarchical;
pub use hybrid::{Communication, hybrid, hybrid_choice};
pub use hybrid_three::hybrid_three;
pub use inner::inner;
pub use least_cost::{choose, least_cost};
pub use method::{Method, MethodOptions};
pub use nagamochi_abe::nagamochi_abe;
pub use objective::Objective;
pub use recursive::recursive;
pub use rows::rows;
pub use square_corner::square_corner;
pub use square_corner_overlap::{square_corner_for_overlap, square_corner_scaled};
pub use square_edge::square_edge;
pub use square_middle::square_middle;
pub use square_rectangle::square_rectangle;
pub use straight_line::straight_line;

use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use crate::plan::{Layout, Part};

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
    shape: crate::plan::Shape,
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

/// Layouts whose imbalances differ by less than this fraction are equally balanced: whole rows and columns of
/// matrices of usual sizes allow no better.
const EQUAL_BALANCE: f64 = 0.005;

/// Keeps the layouts that are as well balanced as the best of them, so that a choice among those left may
/// ask for the least volume: a processor that rounding leaves without a share moves nothing.
fn retain_balanced<T>(candidates: &mut Vec<T>, weights: &[f64], layout: impl Fn(&T) -> &Layout) {
    let imbalances: Vec<f64> = candidates.iter().map(|c| imbalance(layout(c), weights)).collect();
    let least = imbalances.iter().copied().fold(f64::INFINITY, f64::min);
    let mut imbalances = imbalances.into_iter();
    candidates.retain(|_| imbalances.next().is_some_and(|one| one <= least * (1.0 + EQUAL_BALANCE)));
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
