//! Grid-based layouts: the same number of processors in every column.
//!
//! Source: Lastovetsky 2007 (Becker 2010, Algorithms 2.3 and 2.4; slides, Algorithms 2 and 3).

use super::descending;
use super::tiling::Tiling;
use crate::error::Result;
use crate::plan::{Layout, Shape};

/// Rows and columns (r, c) of the processor grid, r c = p, with the smallest cost r n + c m. On a square
/// matrix that is r + c, and r is the largest divisor up to sqrt(p). O(sqrt(p)).
///
/// # Panics
/// If there is no processor.
pub fn grid_shape(processors: usize, m: u64, n: u64) -> (usize, usize) {
    assert!(processors > 0, "a grid needs a processor");
    let cost = |r: usize| r as f64 * n as f64 + (processors / r) as f64 * m as f64;
    let mut best = (1, processors);
    for r in (1..).take_while(|r| r * r <= processors).filter(|r| processors.is_multiple_of(*r)) {
        // Ties go to the squarer grid, and to the one with fewer rows.
        for (rows, cols) in [(processors / r, r), (r, processors / r)] {
            if cost(rows) <= cost(best.0) {
                best = (rows, cols);
            }
        }
    }
    best
}

/// c columns of r rectangles each, with areas in proportion to the weights. The cost is r + c on the unit
/// square, for any mapping. Processors fill the grid from the fastest to the slowest, column by column. O(p
/// log p).
///
/// Processors without a weight take no place in the grid. A prime number of processors gives strips.
///
/// # Errors
/// None; the signature is that of every method.
pub fn grid(shape: Shape, weights: &[f64]) -> Result<Layout> {
    let order = descending(weights);
    let (rows, _) = grid_shape(order.len(), shape.m, shape.n);
    Ok(Tiling::columns(order.chunks(rows)).layout(shape, weights, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use proptest::prelude::*;

    #[test]
    fn the_shape_search_by_hand() {
        for (p, shape) in [(1, (1, 1)), (2, (1, 2)), (6, (2, 3)), (7, (1, 7)), (12, (3, 4)), (36, (6, 6))] {
            assert_eq!(grid_shape(p, 100, 100), shape, "{p}");
        }
        assert_eq!(grid_shape(12, 400, 100), (6, 2));
        assert_eq!(grid_shape(12, 100, 10_000), (1, 12));
    }

    /// Algorithm 2.4 as printed.
    fn printed(p: usize) -> (usize, usize) {
        let mut r = (p as f64).sqrt() as usize;
        while r > 1 && !p.is_multiple_of(r) {
            r -= 1;
        }
        (r, p / r)
    }

    proptest! {
        #[test]
        fn the_search_is_the_printed_one_on_squares(p in 1usize..5000) {
            prop_assert_eq!(grid_shape(p, 7, 7), printed(p));
        }

        #[test]
        fn no_divisor_is_cheaper(p in 1usize..500, m in 1u64..50, n in 1u64..50) {
            let (r, c) = grid_shape(p, m, n);
            prop_assert_eq!(r * c, p);
            let ours = r as u64 * n + c as u64 * m;
            for r in (1..=p).filter(|r| p % r == 0) {
                prop_assert!(ours <= r as u64 * n + (p / r) as u64 * m);
            }
        }

        /// The proposition: the cost is r + c for any speeds (every part gets a whole row and column at
        /// least).
        #[test]
        fn cost_is_rows_plus_columns(weights in prop::collection::vec(1.0f64..5.0, 1..30)) {
            let shape = Shape::new(3000, 3000, 3000, "test").unwrap();
            let (r, c) = grid_shape(weights.len(), 3000, 3000);
            let metrics = Metrics::of_layout(&grid(shape, &weights).unwrap(), 1.0);
            prop_assert!((metrics.sum_half_perimeters.unwrap() - (r + c) as f64).abs() < 1e-9);
        }
    }
}
