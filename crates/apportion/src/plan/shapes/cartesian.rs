//! Cartesian layouts: rectangles that make up columns and rows, so that each has at most four neighbours.
//!
//! Source: Beaumont et al. 2001, preceded by Lastovetsky's shape search (Becker 2010, Algorithm 2.5; slides,
//! Algorithms 4 and 5). The solvers are this project's own: all arrangements and vertices for up to twelve
//! processors, the factors of rank-one speeds, and alternating optima.

mod alternate;
mod exact;
mod order;
mod rank_one;
mod whole;

use self::alternate::Depth;
use super::{consecutive, descending, layout, mesh_shape};
use crate::error::Result;
use crate::plan::{Layout, Shape};

/// An r x c grid of straight cuts, with r and c as in [`grid_shape`](super::grid_shape), that keeps the
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
/// None; the signature is that of every method.
pub fn cartesian(shape: Shape, weights: &[f64]) -> Result<Layout> {
    cartesian_on(shape, weights, None, false)
}

/// [`cartesian`] with these numbers of rows and columns of processors; `quick` is
/// [`MethodOptions::quick`](super::MethodOptions::quick).
pub(super) fn cartesian_on(
    shape: Shape,
    weights: &[f64],
    mesh: Option<[usize; 2]>,
    quick: bool,
) -> Result<Layout> {
    let depth = Depth::of(quick);
    let (rows, cols) = mesh_shape(shape, weights, mesh)?;
    let equal = order::equality(shape, weights);
    let speeds = scaled(weights);
    let given: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
    let sorted = order::classes(descending(weights), |i| weights[i], equal, |&i| i);
    let found = if given.len() <= exact::MOST_PROCESSORS {
        exact::best(&speeds, &given, &sorted, (rows, cols), equal)
    } else {
        rank_one::arrangement(&speeds, &sorted, (rows, cols), equal)
            .map(|cells| alternate::fitted(&speeds, cells, cols, depth))
            .filter(|found| found.time <= 1.0 + equal)
            .unwrap_or_else(|| alternate::best(&speeds, &given, &sorted, (rows, cols), equal, depth))
    };
    let Arrangement { cells, heights, widths, .. } = found;
    let speed = |i: usize, j: usize| speeds[cells[i * cols + j]];
    let (heights, widths) = whole::whole_numbers(shape, &heights, &widths, speed);
    let (rows, cols) = (consecutive(&heights), consecutive(&widths));
    Ok(layout(
        shape,
        weights.len(),
        cells.iter().enumerate().map(|(at, &p)| (p, rows[at / widths.len()], cols[at % widths.len()])),
    ))
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

#[cfg(test)]
mod tests;
