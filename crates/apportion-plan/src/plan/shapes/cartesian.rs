//! Cartesian layouts: rectangles that make up columns and rows, so that each has at most four neighbours.
//!
//! Source: Beaumont et al. 2001, preceded by Lastovetsky's shape search (Becker 2010, Algorithm 2.5; slides,
//! Algorithms 4 and 5). The solvers are this project's own: all arrangements and vertices for up to twelve
//! processors, the factors of rank-one speeds, and alternating optima.

mod alternate;
mod exact;
mod rank_one;

use self::alternate::Depth;
use super::grid::mesh_shape;
use super::{LayoutMethod, Mesh, consecutive, descending, layout};
use crate::error::Result;
use crate::plan::shares::proportional;
use crate::plan::{Layout, Shape};

/// The smallest relative difference that counts, for weights that are real numbers.
const REAL: f64 = 1e-9;

/// The largest relative difference that is attributed to rounding.
const ROUNDED: f64 = 1e-3;

/// An r x c grid of straight cuts, with r and c as in [`Mesh::cheapest`], that keeps the
/// largest `h_i w_j / s_ij` small.
///
/// Up to twelve processors: the optimum over all arrangements, heights and widths in real arithmetic. Above
/// that: the factors of speeds that have rank one in some arrangement, otherwise the best of four starts (the
/// given order among them), each improved by sorting the processors by the areas. Among arrangements that are
/// equal up to the rounding of the weights, the given order is preferred, so that the arrangement does not
/// depend on the size of the matrix. Balance is perfect, up to rounding, where speeds have rank one;
/// otherwise some imbalance is inherent, and the metrics report it.
///
/// Time: for p <= 12 at most 462 arrangements of 432 vertices; above, at most four starts of 50 rounds, with
/// O(p) for each of at most 33 alternations of a round; beyond 4,096 processors, fewer of both, so that the
/// work grows no further than by p log p.
///
/// # Errors
/// A mesh with another number of places than there are processors: exit code 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cartesian {
    /// Rows and columns of processors; `None` for the cheapest.
    pub(crate) mesh: Option<Mesh>,
    /// True to start from fewer arrangements ([`MethodOptions::quick`](super::MethodOptions::quick)).
    pub(crate) quick: bool,
}

impl LayoutMethod for Cartesian {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let depth = Depth::of(self.quick);
        let mesh = mesh_shape(shape, weights, self.mesh)?;
        let equal = equality(shape, weights);
        let speeds = scaled(weights);
        let given: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        let sorted = classes(descending(weights), |i| weights[i], equal, |&i| i);
        let found = if given.len() <= exact::MOST_PROCESSORS {
            exact::best(&speeds, &given, &sorted, mesh, equal)
        } else {
            rank_one::arrangement(&speeds, &sorted, mesh, equal)
                .map(|cells| alternate::arrangement_of(&speeds, cells, mesh.cols, depth))
                .filter(|found| found.time <= 1.0 + equal)
                .unwrap_or_else(|| alternate::best(&speeds, &given, &sorted, mesh, equal, depth))
        };
        let Arrangement { cells, heights, widths, .. } = found;
        let speed = |i: usize, j: usize| speeds[cells[i * mesh.cols + j]];
        let (heights, widths) = whole_numbers(shape, &heights, &widths, speed);
        let (rows, cols) = (consecutive(&heights), consecutive(&widths));
        Ok(layout(
            shape,
            weights.len(),
            cells.iter().enumerate().map(|(at, &p)| (p, rows[at / widths.len()], cols[at % widths.len()])),
        ))
    }
}

/// Weights of sum 1.
fn scaled(weights: &[f64]) -> Vec<f64> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let sum: f64 = weights.iter().map(|w| w / largest).sum();
    // A processor a hundred orders of magnitude slower gets nothing either way, and ratios stay finite.
    weights.iter().map(|w| if *w > 0.0 { (w / largest / sum).max(1e-100) } else { 0.0 }).collect()
}

/// Processors in the cells of a grid, row by row, and where it is cut.
#[derive(Debug, Clone)]
struct Arrangement {
    /// The largest area over speed, both relative to the whole: 1 is perfect balance.
    time: f64,
    cells: Vec<usize>,
    /// Of sum 1.
    heights: Vec<f64>,
    /// Of sum 1.
    widths: Vec<f64>,
}

/// Relative difference up to which two weights, or two finishing times, count as equal. Weights that are
/// whole numbers of elements of C are right to one element.
fn equality(shape: Shape, weights: &[f64]) -> f64 {
    let counted =
        weights.iter().all(|w| w.fract() == 0.0) && weights.iter().sum::<f64>() == shape.elements() as f64;
    if !counted {
        return REAL;
    }
    let least = weights.iter().copied().filter(|w| *w > 0.0).fold(f64::INFINITY, f64::min);
    (2.0 / least).clamp(REAL, ROUNDED)
}

/// Puts the members of each class (neighbours in an order of descending values that differ by less than a
/// fraction `equal` from the class's first) into the order of their keys.
fn classes<K: Ord>(
    mut descending: Vec<usize>,
    value: impl Fn(usize) -> f64,
    equal: f64,
    key: impl Fn(&usize) -> K,
) -> Vec<usize> {
    let mut start = 0;
    while start < descending.len() {
        let least = value(descending[start]) * (1.0 - equal);
        let length = descending[start..].iter().take_while(|&&i| value(i) >= least).count().max(1);
        descending[start..start + length].sort_by_key(&key);
        start += length;
    }
    descending
}

/// Whole heights and widths: rounded, then each side in turn made optimal for the other while that helps.
fn whole_numbers(
    shape: Shape,
    heights: &[f64],
    widths: &[f64],
    speed: impl Fn(usize, usize) -> f64,
) -> (Vec<u64>, Vec<u64>) {
    let mut high = proportional(shape.m, heights);
    let mut wide = proportional(shape.n, widths);
    let slowest = |high: &[u64], wide: &[u64]| {
        let mut time = 0.0_f64;
        for (i, h) in high.iter().enumerate() {
            for (j, w) in wide.iter().enumerate() {
                time = time.max((h * w) as f64 / speed(i, j));
            }
        }
        time
    };
    let mut least = slowest(&high, &wide);
    loop {
        // The capacity of a line for each unit of time, over the lines of the other side that are not empty.
        let capacity = |lengths: &[u64], cell: &dyn Fn(usize) -> f64| {
            let used = (0..lengths.len()).filter(|&j| lengths[j] > 0);
            used.map(|j| cell(j) / lengths[j] as f64).fold(f64::INFINITY, f64::min)
        };
        let rows: Vec<f64> = (0..high.len()).map(|i| capacity(&wide, &|j| speed(i, j))).collect();
        let new_high = proportional(shape.m, &rows);
        let cols: Vec<f64> = (0..wide.len()).map(|j| capacity(&new_high, &|i| speed(i, j))).collect();
        let new_wide = proportional(shape.n, &cols);
        let time = slowest(&new_high, &new_wide);
        if time >= least {
            return (high, wide);
        }
        (least, high, wide) = (time, new_high, new_wide);
    }
}

#[cfg(test)]
mod tests;
