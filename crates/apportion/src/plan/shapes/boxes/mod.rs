//! Boxes: all three dimensions of a product are cut.
//!
//! A processor that computes a box of x rows, y columns and z inner indices touches x z elements of A, z y of
//! B and x y of C. The sum of these faces is to be least for given volumes: cubes would be best. Several
//! heuristics are tried, and the one that moves least is taken:
//!
//! * recursive cuts by unequal parts (Beaumont, Eyraud-Dubois and Lambert, "Cuboid partitioning for parallel
//!   matrix multiplication on heterogeneous platforms", Euro-Par 2016),
//!   with a corner for the slow processors where one is much faster;
//! * meshes of a x b x c processors with a b c = p, which for equal processors are COSMA's (Kwasniewski et
//!   al., SC 2019, doi:10.1145/3295500.3356181), cut in proportion to the sums of the weights;
//! * slabs across one dimension.

mod mesh;
mod tree;

use crate::error::{Error, Result};
use crate::geometry::{Rank, Span};
use crate::plan::shapes::descending;
use crate::plan::{Cuboid, Layout, Shape};

/// The largest number of processors: the search takes seconds.
const MOST_PROCESSORS: usize = 1024;

/// Sides of a box along the rows, columns and inner indices.
pub(super) type Sides = [Span; 3];

/// The processors of a search: ranks with a positive weight in descending order, and sums of their weights.
pub(super) struct Members {
    ranks: Vec<usize>,
    weights: Vec<f64>,
    /// `before[i]`: sum of the first i weights.
    before: Vec<f64>,
    /// `roots[i]`: sums of the square roots of the first i weights, and of their powers of 2/3.
    roots: Vec<[f64; 2]>,
}

impl Members {
    fn new(weights: &[f64]) -> Self {
        let ranks = descending(weights);
        let largest = ranks.first().map_or(1.0, |&rank| weights[rank]);
        let weights: Vec<f64> = ranks.iter().map(|&rank| weights[rank] / largest).collect();
        let mut before = vec![0.0];
        weights.iter().for_each(|weight| before.push(before[before.len() - 1] + weight));
        let mut sums = [0.0; 2];
        let mut roots = vec![sums];
        for weight in &weights {
            sums = [sums[0] + weight.sqrt(), sums[1] + weight.cbrt().powi(2)];
            roots.push(sums);
        }
        Self { ranks, weights, before, roots }
    }

    fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Sum of the weights of members `from` to `to`.
    fn sum(&self, from: usize, to: usize) -> f64 {
        self.before[to] - self.before[from]
    }
}

/// The boxes of members, by their place in the order.
pub(super) type Found = Vec<(usize, Sides)>;

/// The number of elements in the three faces of a box.
pub(super) fn faces(sides: &Sides) -> f64 {
    let [x, y, z] = sides.map(|side| side.len() as f64);
    x * y + x * z + y * z
}

/// Cuts a span in two, the first part as near to the fraction `part` as whole numbers allow. Neither part is
/// empty if the span has at least two indices.
pub(super) fn cut(span: Span, part: f64) -> [Span; 2] {
    let length = span.len();
    let first = (length as f64 * part).round() as u64;
    let first = if length < 2 { length } else { first.clamp(1, length - 1) };
    [Span::new(span.start, span.start + first), Span::new(span.start + first, span.end)]
}

/// The boxes that move least of those that the heuristics find. Multiply-adds are in proportion to the
/// weights up to rounding of the cuts.
///
/// No worse than [`inner`](super::inner()) by volume. With p processors, O(p log p) for the search on typical
/// weights and O(p^2) for the volumes.
///
/// # Errors
/// More than 1,024 processors with a positive weight: exit code 1.
pub fn boxes(shape: Shape, weights: &[f64]) -> Result<Layout> {
    let all = all_boxes(shape, weights)?;
    // The first among equals.
    Ok(all.into_iter().min_by_key(Layout::volume).expect("slabs are always found"))
}

/// Every different layout of the heuristics: those that move more may need less memory.
///
/// # Errors
/// As [`boxes`].
pub fn all_boxes(shape: Shape, weights: &[f64]) -> Result<Vec<Layout>> {
    let members = Members::new(weights);
    if members.len() > MOST_PROCESSORS {
        return Err(Error::infeasible(
            format!("boxes supports 1 to {MOST_PROCESSORS} processors, not {}", members.len()),
            "use columns or auto, which support any number",
        ));
    }
    let whole = [shape.m, shape.n, shape.k].map(|side| Span::new(0, side));
    let mut found = vec![tree::by_cuts(&members, whole, false), tree::by_cuts(&members, whole, true)];
    found.extend(mesh::best(&members, whole));
    let mut layouts = vec![super::inner(shape, weights)?];
    for boxes in found {
        let cuboid = |(member, [rows, cols, inner]): (usize, Sides)| Cuboid {
            owner: Rank(members.ranks[member]),
            rows,
            cols,
            inner,
        };
        let layout = Layout::of_boxes(shape, weights.len(), boxes.into_iter().map(cuboid))
            .expect("boxes cover the product exactly once");
        if !layouts.contains(&layout) {
            layouts.push(layout);
        }
    }
    Ok(layouts)
}

#[cfg(test)]
mod tests;
