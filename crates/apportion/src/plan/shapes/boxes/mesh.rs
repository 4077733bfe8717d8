//! Meshes of processors with equally many along each side.

use super::{Found, Members, Sides};
use crate::geometry::Span;
use crate::plan::shares::proportional;

/// The mesh of a x b x c processors with the least sum of faces over all factorisations and orders of the
/// sides. O(p).
///
/// A slab's cross section is divided among its processors without gaps: with `counts` processors along each
/// side, the faces across a side are as many whole cross sections, whatever the weights.
pub(super) fn best(members: &Members, whole: Sides) -> Option<Found> {
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
    least.map(|(_, counts, order)| mesh(members, whole, counts, order))
}

/// Divides the members into as many groups as the mesh has along the first side of the order, each of these
/// along the second, and then along the third; sides are cut in proportion to the groups' weights.
fn mesh(members: &Members, whole: Sides, mesh: [usize; 3], order: [usize; 3]) -> Found {
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
mod tests {
    use super::super::faces;
    use super::*;

    /// 2 x 3 x 4 processors in a box of 30 x 50 x 70, cut in any order: 2 * 50 * 70 + 3 * 30 * 70 + 4 *
    /// 30 * 50.
    #[test]
    fn faces_do_not_depend_on_weights() {
        let weights: Vec<f64> = (0..24).map(|i| 1.0 + f64::from(i * i % 17)).collect();
        let (members, whole) = (Members::new(&weights), [30, 50, 70].map(|side| Span::new(0, side)));
        for (counts, order) in [([2, 3, 4], [0, 1, 2]), ([4, 2, 3], [2, 0, 1]), ([3, 4, 2], [1, 2, 0])] {
            let found = mesh(&members, whole, counts, order);
            assert_eq!(found.iter().map(|(_, sides)| faces(sides)).sum::<f64>(), 19_300.0);
        }
    }
}
