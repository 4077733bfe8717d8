//! Grid-based layouts: the same number of processors in every column.
//!
//! Source: Lastovetsky 2007 (Becker 2010, Algorithms 2.3 and 2.4; slides, Algorithms 2 and 3).

use super::columns_largest::grid_of_least_largest;
use super::descending;
use super::objective::{Objective, in_whole_numbers};
use super::tiling::{Tiling, Total};
use crate::error::{Error, Result};
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
    grid_for(shape, weights, None, Objective::Volume, shape)
}

/// The rows and columns of the grid of those processors that have a weight: as named, or the cheapest.
///
/// # Errors
/// A mesh with another number of places: exit code 2.
pub(super) fn mesh_shape(shape: Shape, weights: &[f64], mesh: Option<[usize; 2]>) -> Result<(usize, usize)> {
    let count = weights.iter().filter(|w| **w > 0.0).count();
    match mesh {
        None => Ok(grid_shape(count, shape.m, shape.n)),
        Some([rows, cols]) if rows.checked_mul(cols) == Some(count) => Ok((rows, cols)),
        Some([rows, cols]) => Err(Error::input(
            "`mesh`",
            format!(
                "{rows}x{cols} has {} places for {count} processors with a share",
                rows.saturating_mul(cols)
            ),
            "name rows and columns whose product is the number of processors",
        )),
    }
}

/// The grid of a given mesh, or the best one for an objective, on a part of the matrix `whole`.
///
/// Any grid has the least sum. For the largest half-perimeter, every shape of the grid is tried; up to nine
/// processors with every choice of the columns' members, otherwise with runs of the sorted processors.
///
/// # Errors
/// As [`mesh_shape`].
pub(super) fn grid_for(
    shape: Shape,
    weights: &[f64],
    mesh: Option<[usize; 2]>,
    objective: Objective,
    whole: Shape,
) -> Result<Layout> {
    let order = descending(weights);
    let (rows, _) = mesh_shape(shape, weights, mesh)?;
    let (high, wide, total) = objective.sides(shape, whole);
    let by = |rows: usize| match total {
        Total::Sum => Tiling::columns(order.chunks(rows)),
        Total::Largest => grid_of_least_largest(weights, &order, (high, wide), rows),
    };
    let mut best = by(rows);
    if total == Total::Largest && mesh.is_none() {
        let cost = |tiling: &Tiling| tiling.cost(weights, high, wide, total);
        for other in (1..=order.len()).filter(|r| order.len().is_multiple_of(*r) && *r != rows).map(by) {
            if cost(&other) < cost(&best) * (1.0 - 1e-12) {
                best = other;
            }
        }
    }
    Ok(in_whole_numbers(&best, (shape, weights), (high, wide)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use proptest::prelude::*;

    /// Any mesh, and blocks that are not square: 2 x 2 processors with 4 x 16 blocks.
    #[test]
    fn a_named_mesh() {
        let shape = Shape::new(8, 8, 32, "test").unwrap();
        let on = |mesh| grid_for(shape, &[1.0; 4], Some(mesh), Objective::Volume, shape);
        let layout = on([2, 2]).unwrap();
        assert!(layout.parts().iter().all(|p| (p.rows.len(), p.cols.len()) == (4, 16)));
        assert!(on([4, 1]).unwrap().parts().iter().all(|p| (p.rows.len(), p.cols.len()) == (2, 32)));
        let error = on([3, 2]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("3x2 has 6 places for 4 processors"), "{error}");
    }

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

        /// Every grid with every processor in every place: none has a smaller largest half-perimeter.
        #[test]
        fn the_largest_is_the_least_of_all_grids(weights in prop::collection::vec(0.2f64..1.0, 4..=6)) {
            let shape = Shape::new(6000, 6000, 6000, "test").unwrap();
            let ours = grid_for(shape, &weights, None, Objective::Largest, shape).unwrap();
            let ours = Metrics::of_layout(&ours, 1.0).largest_half_perimeter.unwrap();
            let p = weights.len();
            let mut least = f64::INFINITY;
            for code in 0..(1..=p).product::<usize>() {
                let (mut left, mut code, mut order) = ((0..p).collect::<Vec<_>>(), code, Vec::new());
                for n in (1..=p).rev() {
                    order.push(left.remove(code % n));
                    code /= n;
                }
                for rows in (1..=p).filter(|r| p.is_multiple_of(*r)) {
                    let tiling = Tiling::columns(order.chunks(rows));
                    least = f64::min(least, tiling.cost(&weights, 1.0, 1.0, Total::Largest));
                }
            }
            prop_assert!((ours - least).abs() < 2e-3, "{} {}", ours, least);
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
