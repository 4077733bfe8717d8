//! The portfolio: every method that serves any areas, and the best of all for a given objective.

use super::columns::{best_columns, columns_of_least_largest};
use super::nagamochi_abe::thirds;
use super::recursive::search;
use super::square_corner::diagonal;
use super::strips::{strip_and_block, strip_and_square};
use super::tiling::{Frame, Objective, Tiling, Total};
use super::{LayoutMethod, Mesh, NamedLayout, descending};
use crate::error::Result;
use crate::plan::{Layout, Shape};

/// The best of columns, grid, Nagamochi-Abe, squares on the diagonal, square-rectangle, block-rectangle (if they
/// support the processors) and recursive for an objective, in real arithmetic; ties go to the first in this
/// order.
///
/// On squares, the worst ratio to the lower bound of the volume that a search for bad speeds found is 1.0981,
/// that of two processors at 3:1. Time: that of [`Recursive`](super::Recursive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeastCost {
    /// What is minimised.
    pub objective: Objective,
    /// The matrix to which half-perimeters are relative, if only a part of it is laid out.
    pub whole: Option<Shape>,
}

impl LayoutMethod for LeastCost {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        Ok(self.choose(shape, weights).layout)
    }
}

impl LeastCost {
    /// The layout, and the name of its method.
    pub fn choose(&self, shape: Shape, weights: &[f64]) -> NamedLayout {
        let frame = self.objective.frame(shape, self.whole);
        let mut best: Option<(f64, &'static str, Tiling)> = None;
        for (name, tiling) in candidates(weights, frame) {
            let cost = frame.cost(&tiling, weights);
            // The tolerance keeps rounding in the sums from hiding a tie.
            if best.as_ref().is_none_or(|(least, ..)| cost < least * (1.0 - 1e-12)) {
                best = Some((cost, name, tiling));
            }
        }
        let (_, name, tiling) = best.expect("columns serve every input");
        NamedLayout { method: name.into(), layout: frame.layout(&tiling, weights) }
    }
}

/// Every tiling to compare, the simplest first.
fn candidates(weights: &[f64], frame: Frame) -> Vec<(&'static str, Tiling)> {
    let Frame { high, wide, total, .. } = frame;
    let order = descending(weights);
    let turn = |tiling: Tiling| if high > wide { tiling.turned() } else { tiling };
    // The shape search needs whole sides; only their ratio matters.
    let side = |length: f64| ((length / high.max(wide) * 1e9) as u64).max(1);
    let Mesh { rows, .. } = Mesh::cheapest(order.len(), side(high), side(wide));
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
    fn costs_of(shape: Shape, weights: &[f64], objective: Objective) -> [f64; 3] {
        let metrics =
            Metrics::of_layout(&LeastCost { objective, whole: None }.layout(shape, weights).unwrap(), 1.0);
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
                .map(|objective| costs_of(shape, &weights, objective));
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
        let name = |weights: &[f64]| LeastCost::default().choose(cube, weights).method;
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
            let rect =
                LeastCost { objective, whole: None }.layout(shape, weights).unwrap().rects_by_owner()[1][0];
            (rect.rows.len(), rect.cols.len())
        };
        assert_eq!(sides(Objective::Sum, &[15.0, 1.0]), (100, 400));
        assert_eq!(sides(Objective::Volume, &[63.0, 1.0]), (100, 100));
        assert_eq!(sides(Objective::Volume, &[3.0, 1.0]), (400, 400));
        assert_eq!(sides(Objective::Volume, &[7.0, 1.0]), (400, 200));
    }
}
