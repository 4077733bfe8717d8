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

mod tree;

use crate::error::{Error, Result};
use crate::geometry::{Rank, Span};
use crate::plan::shapes::{LayoutMethod, consecutive, descending};
use crate::plan::shares::proportional;
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
pub(super) type MemberBoxes = Vec<(usize, Sides)>;

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

/// Only the inner dimension is cut: slabs of all rows and columns, in the order of ranks; their inner indices are in proportion to the
/// weights, integer-optimal. The first processor with a slab owns C. O(p log p).
///
/// Every processor multiplies some columns of A by the same rows of B, which it owns. Nothing of A and B moves;
/// every processor but the first sends its partial sums of all of C. This moves least if the inner dimension is
/// much longer than the others.
///
/// # Errors
/// More than 4,096 slabs: exit code 2.
///
/// # Example
/// ```
/// use apportion_plan::plan::shapes::{Inner, LayoutMethod};
/// use apportion_plan::plan::{Metrics, Shape};
/// let layout = Inner.layout(Shape::new(10, 1000, 20, "example")?, &[3.0, 1.0])?;
/// assert_eq!(layout.work(), [150_000, 50_000]);
/// assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(200)); // C once
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inner;

impl LayoutMethod for Inner {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let spans = consecutive(&proportional(shape.k, weights));
        let (rows, cols) = (Span::new(0, shape.m), Span::new(0, shape.n));
        let slab = |(rank, inner)| Cuboid { owner: Rank(rank), rows, cols, inner };
        Layout::of_boxes(shape, weights.len(), spans.into_iter().enumerate().map(slab))
    }
}

/// The boxes that move least of those that the heuristics find. Multiply-adds are in proportion to the
/// weights up to rounding of the cuts.
///
/// No worse than [`Inner`] by volume. With p processors, O(p log p) for the search on typical
/// weights and O(p^2) for the volumes.
///
/// # Errors
/// More than 1,024 processors with a positive weight: exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Boxes;

impl LayoutMethod for Boxes {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        // The first among equals.
        Ok(Self::all(shape, weights)?.into_iter().min_by_key(Layout::volume).expect("slabs are always found"))
    }
}

impl Boxes {
    /// Every different layout of the heuristics: those that move more may need less memory.
    ///
    /// # Errors
    /// As [`Boxes`].
    pub fn all(shape: Shape, weights: &[f64]) -> Result<Vec<Layout>> {
        let members = Members::new(weights);
        if members.len() > MOST_PROCESSORS {
            return Err(Error::infeasible(
                format!("boxes supports 1 to {MOST_PROCESSORS} processors, not {}", members.len()),
                "use columns or auto, which support any number",
            ));
        }
        let whole = [shape.m, shape.n, shape.k].map(|side| Span::new(0, side));
        let mut found = vec![tree::by_cuts(&members, whole, false), tree::by_cuts(&members, whole, true)];
        found.extend(best_mesh(&members, whole));
        let mut layouts = vec![Inner.layout(shape, weights)?];
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
}

/// The mesh of a x b x c processors with the least sum of faces over all factorisations and orders of the
/// sides. O(p).
///
/// A slab's cross section is divided among its processors without gaps: with `counts` processors along each
/// side, the faces across a side are as many whole cross sections, whatever the weights.
fn best_mesh(members: &Members, whole: Sides) -> Option<MemberBoxes> {
    let p = members.len();
    let divisors: Vec<usize> = (1..=p).filter(|a| p.is_multiple_of(*a)).collect();
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let across = [[1, 2], [0, 2], [0, 1]].map(|sides| sides.map(|side| whole[side].len() as f64));
    let cost = |mesh: &[usize; 3], order: &[usize; 3]| -> f64 {
        mesh.iter().zip(order).map(|(&count, &side)| count as f64 * across[side][0] * across[side][1]).sum()
    };
    let mut least: Option<(f64, [usize; 3], [usize; 3])> = None;
    for &a in &divisors {
        for &b in divisors.iter().filter(|b| (p / a).is_multiple_of(**b)) {
            let mesh = [a, b, p / a / b];
            for order in orders {
                let cost = cost(&mesh, &order);
                if least.is_none_or(|(least, ..)| cost < least) {
                    least = Some((cost, mesh, order));
                }
            }
        }
    }
    least.map(|(_, counts, order)| divide(members, whole, counts, order))
}

/// Divides the members into as many groups as the mesh has along the first side of the order, each of these
/// along the second, and then along the third; sides are cut in proportion to the groups' weights.
fn divide(members: &Members, whole: Sides, mesh: [usize; 3], order: [usize; 3]) -> MemberBoxes {
    let mut groups: Vec<(Sides, usize, usize)> = vec![(whole, 0, members.len())];
    for (side, count) in order.into_iter().zip(mesh) {
        groups = groups
            .into_iter()
            .flat_map(|(sides, from, to)| {
                let size = (to - from) / count;
                let weight = move |i: usize| members.sum(from + i * size, from + (i + 1) * size);
                let weights: Vec<f64> = (0..count).map(weight).collect();
                let mut at = sides[side].start;
                let lengths = proportional(sides[side].len(), &weights);
                lengths
                    .into_iter()
                    .enumerate()
                    .map(move |(i, length)| {
                        let mut part = sides;
                        part[side] = Span::new(at, at + length);
                        at += length;
                        (part, from + i * size, from + (i + 1) * size)
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    groups.into_iter().map(|(sides, member, _)| (member, sides)).collect()
}

#[cfg(test)]
mod tests;
