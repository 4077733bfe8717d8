//! The portfolio: every method that serves any areas, and the best of all for a given objective.

use super::block_rectangle::strip_and_block;
use super::columns::best_columns;
use super::nagamochi_abe::thirds;
use super::recursive::search;
use super::square_corner::diagonal;
use super::square_rectangle::strip_and_square;
use super::tiling::Tiling;
use super::{descending, grid_shape};
use crate::error::Result;
use crate::plan::{Layout, Shape};

/// What a layout is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// The sum of half-perimeters, r_i/m + c_i/n.
    Sum,
    /// The largest half-perimeter, r_i/m + c_i/n: what parallel communication waits for.
    Largest,
    /// The elements moved, k sum(r_i + c_i) - m k - k n.
    Volume,
}

/// The method that moves the fewest elements in real arithmetic, and its layout in whole numbers.
///
/// Compared are columns, grid, Nagamochi-Abe, squares on the diagonal, square-rectangle, block-rectangle (where
/// they serve) and recursive; ties go to the first named. The measured cost is within 1.104 of the lower bound on
/// squares for any speeds tried. Time: that of `recursive`.
///
/// # Errors
/// None; the signature is that of every method.
pub fn least_cost(shape: Shape, weights: &[f64]) -> Result<(&'static str, Layout)> {
    choose(shape, weights, Objective::Volume)
}

/// The method that serves an objective best in real arithmetic, and its layout in whole numbers.
///
/// # Errors
/// None; the signature is that of every method.
pub fn choose(shape: Shape, weights: &[f64], objective: Objective) -> Result<(&'static str, Layout)> {
    // Half-perimeters are relative to the matrix, volumes are not: the unit square serves the former.
    let (high, wide) = match objective {
        Objective::Volume => (shape.m as f64, shape.n as f64),
        Objective::Sum | Objective::Largest => (1.0, 1.0),
    };
    let price = |tiling: &Tiling| match objective {
        Objective::Largest => tiling.largest(weights, high, wide),
        Objective::Sum | Objective::Volume => tiling.cost(weights, high, wide),
    };
    let mut best: Option<(f64, &'static str, Tiling)> = None;
    for (name, tiling) in candidates(weights, high, wide) {
        let cost = price(&tiling);
        // The tolerance keeps rounding in the sums from hiding a tie.
        if best.as_ref().is_none_or(|(least, ..)| cost < least * (1.0 - 1e-12)) {
            best = Some((cost, name, tiling));
        }
    }
    let (_, name, tiling) = best.expect("columns serve every input");
    let stretch = (high / shape.m as f64) / (wide / shape.n as f64);
    Ok((name, tiling.layout(shape, weights, stretch)))
}

/// Every tiling to compare, the simplest first.
fn candidates(weights: &[f64], high: f64, wide: f64) -> Vec<(&'static str, Tiling)> {
    let order = descending(weights);
    let turn = |tiling: Tiling| if high > wide { tiling.turned() } else { tiling };
    // The shape search asks for whole sides; only their ratio matters.
    let side = |length: f64| ((length / high.max(wide) * 1e9) as u64).max(1);
    let (rows, _) = grid_shape(order.len(), side(high), side(wide));
    let mut all = vec![
        ("columns", best_columns(weights, &order, high, wide)),
        ("grid", Tiling::columns(order.chunks(rows))),
        ("nagamochi-abe", thirds(weights, &order, high, wide)),
        ("square-corner", diagonal(&order)),
    ];
    if order.len() <= 3 {
        all.push(("block-rectangle", turn(strip_and_block(&order))));
        all.push(("square-rectangle", turn(strip_and_square(&order))));
    }
    all.push(("recursive", search(weights, &order, high, wide)));
    all
}
