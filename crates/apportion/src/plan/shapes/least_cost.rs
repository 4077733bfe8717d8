//! The portfolio: every method that serves any areas, and the best of all for a given objective.

use super::block_rectangle::strip_and_block;
use super::columns::best_columns;
use super::columns_largest::columns_of_least_largest;
use super::nagamochi_abe::thirds;
use super::objective::{Objective, in_whole_numbers};
use super::recursive::search;
use super::square_corner::diagonal;
use super::square_rectangle::strip_and_square;
use super::tiling::{Tiling, Total};
use super::{descending, grid_shape};
use crate::error::Result;
use crate::plan::{Layout, Shape};

/// The method that moves the fewest elements in real arithmetic, and its layout in whole numbers.
///
/// Compares columns, grid, Nagamochi-Abe, squares on the diagonal, square-rectangle, block-rectangle (if they
/// support the processors) and recursive; ties go to the first in this order. On squares, the worst ratio to
/// the lower bound that a search for bad speeds found is 1.0981, that of two processors at 3:1. Time: that of
/// `recursive`.
///
/// # Errors
/// None; the signature is that of every method.
pub fn least_cost(shape: Shape, weights: &[f64]) -> Result<(&'static str, Layout)> {
    choose(shape, weights, Objective::Volume)
}

/// The best method for an objective in real arithmetic, and its layout in whole numbers.
///
/// # Errors
/// None; the signature is that of every method.
pub fn choose(shape: Shape, weights: &[f64], objective: Objective) -> Result<(&'static str, Layout)> {
    choose_within(shape, weights, objective, shape)
}

/// [`choose`] on a part of the matrix `whole`.
pub(super) fn choose_within(
    shape: Shape,
    weights: &[f64],
    objective: Objective,
    whole: Shape,
) -> Result<(&'static str, Layout)> {
    let (high, wide, total) = objective.sides(shape, whole);
    let mut best: Option<(f64, &'static str, Tiling)> = None;
    for (name, tiling) in candidates(weights, high, wide, total) {
        let cost = tiling.cost(weights, high, wide, total);
        // The tolerance keeps rounding in the sums from hiding a tie.
        if best.as_ref().is_none_or(|(least, ..)| cost < least * (1.0 - 1e-12)) {
            best = Some((cost, name, tiling));
        }
    }
    let (_, name, tiling) = best.expect("columns serve every input");
    Ok((name, in_whole_numbers(&tiling, (shape, weights), (high, wide))))
}

/// Every tiling to compare, the simplest first.
fn candidates(weights: &[f64], high: f64, wide: f64, total: Total) -> Vec<(&'static str, Tiling)> {
    let order = descending(weights);
    let turn = |tiling: Tiling| if high > wide { tiling.turned() } else { tiling };
    // The shape search needs whole sides; only their ratio matters.
    let side = |length: f64| ((length / high.max(wide) * 1e9) as u64).max(1);
    let (rows, _) = grid_shape(order.len(), side(high), side(wide));
    let columns = match total {
        Total::Sum => best_columns(weights, &order, high, wide),
        Total::Largest => columns_of_least_largest(weights, &order, high, wide),
    };
    let mut all = vec![
        ("columns", columns),
        ("grid", Tiling::columns(order.chunks(rows))),
        ("nagamochi-abe", thirds(weights, &order, high, wide)),
        ("square-corner", diagonal(&order)),
    ];
    if order.len() <= 3 {
        all.push(("block-rectangle", turn(strip_and_block(&order))));
        all.push(("square-rectangle", turn(strip_and_square(&order))));
    }
    all.push(("recursive", search(weights, &order, high, wide, total)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use proptest::prelude::*;

    /// Sum, largest and volume of a choice.
    fn measured(shape: Shape, weights: &[f64], objective: Objective) -> [f64; 3] {
        let metrics = Metrics::of_layout(&choose(shape, weights, objective).unwrap().1, 1.0);
        let (sum, largest) = (metrics.sum_half_perimeters.unwrap(), metrics.largest_half_perimeter.unwrap());
        [sum, largest, metrics.volume.unwrap() as f64]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Each objective's choice is the best of the three choices for it, but for rounding and a hundredth.
        #[test]
        fn objectives_are_served(
            weights in prop::collection::vec(0.05f64..1.0, 1..7), m in 500u64..3000, n in 500u64..3000,
        ) {
            let shape = Shape::new(m, 700, n, "test").unwrap();
            let [sum, largest, volume] = [Objective::Sum, Objective::Largest, Objective::Volume]
                .map(|objective| measured(shape, &weights, objective));
            let slack = weights.len() as f64 * 4.0 / 500.0;
            for other in [largest, volume] {
                prop_assert!(sum[0] <= other[0] * 1.01 + slack);
            }
            for other in [sum, volume] {
                prop_assert!(largest[1] <= other[1] * 1.01 + slack);
            }
            for other in [sum, largest] {
                prop_assert!(volume[2] <= other[2] * 1.01 + slack * 700.0 * 3000.0);
            }
        }
    }

    #[test]
    fn the_simplest_wins_a_tie_and_each_method_somewhere() {
        let cube = Shape::new(1000, 1000, 1000, "test").unwrap();
        let name = |weights: &[f64]| least_cost(cube, weights).unwrap().0;
        assert_eq!(name(&[1.0; 9]), "columns");
        assert_eq!(name(&[1.0, 1.0]), "columns");
        assert_eq!(name(&[5.0, 1.0]), "square-corner");
        assert_eq!(name(&[50.0, 1.0, 2.0]), "square-corner");
        assert_eq!(name(&[50.0, 49.0, 1.0]), "square-rectangle");
        assert_eq!(name(&[50.0, 40.0, 10.0, 10.0, 1.0]), "recursive");
    }

    /// Section 8.3's open case and Proposition 8.1: the sum is least for a corner in the matrix's
    /// proportions, the volume for a square, and for a strip where the square is too long.
    #[test]
    fn rectangular_products() {
        let shape = Shape::new(400, 300, 1600, "test").unwrap();
        let sides = |objective, weights: &[f64]| {
            let rect = choose(shape, weights, objective).unwrap().1.rects_by_owner()[1][0];
            (rect.rows.len(), rect.cols.len())
        };
        assert_eq!(sides(Objective::Sum, &[15.0, 1.0]), (100, 400));
        assert_eq!(sides(Objective::Volume, &[63.0, 1.0]), (100, 100));
        assert_eq!(sides(Objective::Volume, &[3.0, 1.0]), (400, 400));
        assert_eq!(sides(Objective::Volume, &[7.0, 1.0]), (400, 200));
    }
}
