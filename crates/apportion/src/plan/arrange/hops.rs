//! Cost by message hops between clusters.
//!
//! Source: Malik 2016, section 3.3.1, equations (3.1)-(3.3); distances deeper than two levels are ours.

use super::distance::Distances;
use super::rings::{Rings, links, most_at_one_cut, one_to_all};
use super::{Cost, Pivots};

/// Levels that a message climbs between two leaves of the platform's tree: 0 inside a cluster, 1 between
/// clusters of one site (or of no site), 2 between sites, and so on.
pub(super) fn tree_hops(a: &str, b: &str) -> usize {
    let common = a.split('/').zip(b.split('/')).take_while(|(x, y)| x == y).count();
    a.split('/').count().max(b.split('/').count()) - common
}

/// cost_A = sum over A's rings of height x hops, cost_B = sum over B's rings of width x hops. The hops are
/// the largest number that a piece of a pivot makes around the ring, without the link that leads back to its
/// holder.
///
/// One rectangle of each column holds B's pivot row: each column's ring counts its own worst holder. One
/// column of rectangles holds A's pivot column for all rings at once: the worst such column counts. O(p) per
/// band.
pub(super) fn hops(rings: &Rings, distances: &Distances<'_>, owner: &[usize], pivots: Pivots) -> Cost {
    if pivots == Pivots::OneToAll {
        let (a, b) = one_to_all(rings, distances, owner);
        return Cost::of(a, b);
    }
    let b = rings.cols.iter().map(|ring| {
        let all: f64 = links(ring, distances, owner, 1).sum();
        let least = links(ring, distances, owner, 1).min_by(f64::total_cmp).unwrap_or(0.0);
        ring.width as f64 * (all - least)
    });
    let a = most_at_one_cut(&rings.rows, |ring, i| {
        let n = ring.stops.len();
        let taken = links(ring, distances, owner, 0).enumerate().filter(|(link, _)| (link + 1) % n != i);
        ring.width as f64 * taken.map(|(_, hops)| hops).sum::<f64>()
    });
    Cost::of(a, b.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_s_levels() {
        assert_eq!(tree_hops("a", "a"), 0);
        assert_eq!(tree_hops("a", "b"), 1);
        assert_eq!(tree_hops("s/a", "s/b"), 1);
        assert_eq!(tree_hops("s/a", "t/a"), 2);
        assert_eq!(tree_hops("s/a/1", "s/b/1"), 2);
        assert_eq!(tree_hops("s", "s/a"), 1);
    }
}
