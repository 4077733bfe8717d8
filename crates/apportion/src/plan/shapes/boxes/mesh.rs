//! Meshes of processors with equally many along each side.

use super::{Found, Members, Sides, faces};
use crate::geometry::Span;
use crate::plan::shares::proportional;

/// The mesh of a x b x c processors with the least sum of faces over all factorisations and orders of the
/// sides. O(p) per factorisation.
pub(super) fn best(members: &Members, whole: Sides) -> Option<Found> {
    let p = members.len();
    let divisors: Vec<usize> = (1..=p).filter(|a| p.is_multiple_of(*a)).collect();
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut least: Option<(f64, Found)> = None;
    for &a in &divisors {
        for &b in divisors.iter().filter(|b| (p / a).is_multiple_of(**b)) {
            for order in orders {
                let found = mesh(members, whole, [a, b, p / a / b], order);
                let cost = found.iter().map(|(_, sides)| faces(sides)).sum::<f64>();
                if least.as_ref().is_none_or(|(least, _)| cost < *least) {
                    least = Some((cost, found));
                }
            }
        }
    }
    least.map(|(_, found)| found)
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
