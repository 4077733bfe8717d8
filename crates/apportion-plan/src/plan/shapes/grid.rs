//! Grid-based layouts: the same number of processors in every column.
//!
//! Source: Lastovetsky 2007 (Becker 2010, Algorithms 2.3 and 2.4; slides, Algorithms 2 and 3).

use super::columns::grid_of_least_largest;
use super::tiling::{Objective, Tiling, Total};
use super::{LayoutMethod, descending};
use crate::error::{Error, Result};
use crate::plan::{Layout, Shape};

/// Rows and columns of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mesh {
    /// Number of rows of processors.
    pub rows: usize,
    /// Number of columns of processors.
    pub cols: usize,
}

impl Mesh {
    /// A mesh of `rows` x `cols` processors.
    pub const fn new(rows: usize, cols: usize) -> Self {
        Self { rows, cols }
    }

    /// The mesh of r x c = p processors with the smallest cost r n + c m. On a square matrix that is r + c,
    /// and r is the largest divisor up to sqrt(p). O(sqrt(p)).
    ///
    /// # Panics
    /// If there is no processor.
    pub fn cheapest(processors: usize, m: u64, n: u64) -> Self {
        assert!(processors > 0, "a mesh needs a processor");
        let cost = |mesh: Self| mesh.rows as f64 * n as f64 + mesh.cols as f64 * m as f64;
        let mut best = Self::new(1, processors);
        for r in (1..).take_while(|r| r * r <= processors).filter(|r| processors.is_multiple_of(*r)) {
            // Ties go to the squarer mesh, and to the one with fewer rows.
            for mesh in [Self::new(processors / r, r), Self::new(r, processors / r)] {
                if cost(mesh) <= cost(best) {
                    best = mesh;
                }
            }
        }
        best
    }

    /// Every mesh of this number of processors, the one of a single row first.
    pub(crate) fn all_of(processors: usize) -> impl Iterator<Item = Self> {
        let rows = (1..=processors).filter(move |rows| processors.is_multiple_of(*rows));
        rows.map(move |rows| Self::new(rows, processors / rows))
    }
}

/// The rows and columns of the grid of those processors that have a weight: as named, or the cheapest.
///
/// # Errors
/// A mesh with another number of places: exit code 2.
pub(super) fn mesh_shape(shape: Shape, weights: &[f64], mesh: Option<Mesh>) -> Result<Mesh> {
    let count = weights.iter().filter(|w| **w > 0.0).count();
    match mesh {
        None => Ok(Mesh::cheapest(count, shape.m, shape.n)),
        Some(mesh) if mesh.rows.checked_mul(mesh.cols) == Some(count) => Ok(mesh),
        Some(Mesh { rows, cols }) => Err(Error::input(
            "`mesh`",
            format!(
                "{rows}x{cols} has {} places for {count} processors with a share",
                rows.saturating_mul(cols)
            ),
            "name rows and columns whose product is the number of processors",
        )),
    }
}

/// c columns of r rectangles each, with areas in proportion to the weights. The cost is r + c on the unit
/// square, for any mapping. Processors fill the grid from the fastest to the slowest, column by column. O(p
/// log p).
///
/// Processors without a weight take no place in the grid. A prime number of processors gives strips. Any grid
/// has the least sum. For the largest half-perimeter, every shape of the grid is tried; up to nine processors
/// with every choice of the columns' members, otherwise with runs of the sorted processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grid {
    /// Rows and columns of processors; `None` for the cheapest.
    pub(crate) mesh: Option<Mesh>,
    /// What is minimised.
    pub(crate) objective: Objective,
    /// The matrix to which half-perimeters are relative, if only a part of it is laid out.
    pub(crate) whole: Option<Shape>,
}

impl LayoutMethod for Grid {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let order = descending(weights);
        let Mesh { rows, .. } = mesh_shape(shape, weights, self.mesh)?;
        let frame = self.objective.frame(shape, self.whole);
        let by = |rows: usize| match frame.total {
            Total::Sum => Tiling::columns(order.chunks(rows)),
            Total::Largest => grid_of_least_largest(weights, &order, frame.high, frame.wide, rows),
        };
        let mut best = by(rows);
        if frame.total == Total::Largest && self.mesh.is_none() {
            let cost = |tiling: &Tiling| frame.cost(tiling, weights);
            for other in Mesh::all_of(order.len()).filter(|mesh| mesh.rows != rows).map(|mesh| by(mesh.rows))
            {
                if cost(&other) < cost(&best) * (1.0 - 1e-12) {
                    best = other;
                }
            }
        }
        Ok(frame.layout(&best, weights))
    }
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
        let on = |mesh: [usize; 2]| {
            Grid { mesh: Some(Mesh::new(mesh[0], mesh[1])), ..Grid::default() }.layout(shape, &[1.0; 4])
        };
        let layout = on([2, 2]).unwrap();
        assert!(layout.parts().iter().all(|p| (p.rows.len(), p.cols.len()) == (4, 16)));
        assert!(on([4, 1]).unwrap().parts().iter().all(|p| (p.rows.len(), p.cols.len()) == (2, 32)));
        let error = on([3, 2]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("3x2 has 6 places for 4 processors"), "{error}");
    }

    #[test]
    fn the_shape_search_by_hand() {
        for (p, [rows, cols]) in
            [(1, [1, 1]), (2, [1, 2]), (6, [2, 3]), (7, [1, 7]), (12, [3, 4]), (36, [6, 6])]
        {
            assert_eq!(Mesh::cheapest(p, 100, 100), Mesh::new(rows, cols), "{p}");
        }
        assert_eq!(Mesh::cheapest(12, 400, 100), Mesh::new(6, 2));
        assert_eq!(Mesh::cheapest(12, 100, 10_000), Mesh::new(1, 12));
    }

    /// Algorithm 2.4 as printed.
    fn printed(p: usize) -> Mesh {
        let mut r = (p as f64).sqrt() as usize;
        while r > 1 && !p.is_multiple_of(r) {
            r -= 1;
        }
        Mesh::new(r, p / r)
    }

    proptest! {
        #[test]
        fn the_search_is_the_printed_one_on_squares(p in 1usize..5000) {
            prop_assert_eq!(Mesh::cheapest(p, 7, 7), printed(p));
        }

        #[test]
        fn no_divisor_is_cheaper(p in 1usize..500, m in 1u64..50, n in 1u64..50) {
            let Mesh { rows: r, cols: c } = Mesh::cheapest(p, m, n);
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
            let ours = Grid { objective: Objective::Largest, ..Grid::default() }.layout(shape, &weights).unwrap();
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
            let Mesh { rows: r, cols: c } = Mesh::cheapest(weights.len(), 3000, 3000);
            let metrics = Metrics::of_layout(&Grid::default().layout(shape, &weights).unwrap(), 1.0);
            prop_assert!((metrics.sum_half_perimeters.unwrap() - (r + c) as f64).abs() < 1e-9);
        }
    }
}
