//! The cost functions: message hops between clusters, the bandwidth of the links taken, and a halo exchange by
//! bandwidths that differ along rows and columns.
//!
//! Source: Malik 2016, sections 3.3.1 (hops; distances deeper than two levels are ours), 3.3.2 (bandwidth) and
//! 4.4.1 (halo exchange), equations (3.1) to (3.6) and (4.1) to (4.3).

use super::distance::Distances;
use super::rings::{Ring, Rings, links, most_at_one_cut, one_to_all};
use super::{Cost, Edges, Pivots};

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

/// cost_A = sum over A's rings of (height in bytes x sum over the ring's links of 1 / bandwidth); cost_B
/// likewise. This is the time in seconds for one pivot column and one pivot row of doubles on all links, one
/// after the other.
///
/// A ring of one has no link. If a link's directions differ, A takes the horizontal bandwidth, and B the
/// vertical one.
pub(super) fn bandwidth(rings: &Rings, distances: &Distances<'_>, owner: &[usize], pivots: Pivots) -> Cost {
    if pivots == Pivots::OneToAll {
        let (a, b) = one_to_all(rings, distances, owner);
        return Cost::of(a, b);
    }
    let sum = |rings: &[_], axis| rings.iter().map(|r| whole_ring(r, distances, owner, axis)).sum();
    Cost::of(sum(&rings.rows, 0), sum(&rings.cols, 1))
}

/// One ring with all its links.
fn whole_ring(ring: &Ring, distances: &Distances<'_>, owner: &[usize], axis: usize) -> f64 {
    ring.width as f64 * links(ring, distances, owner, axis).sum::<f64>()
}

/// cost_H (as `a`) = sum over rows of (height in bytes x sum over neighbours of 1 / horizontal bandwidth);
/// cost_V (as `b`) likewise: one line of doubles across every border between two sub-domains.
///
/// With [`Edges::Periodic`], as in the equations, the last of a row is a neighbour of the first. The costs
/// that the source prints (Table 4.2) are those of [`Edges::Open`], where the two are not neighbours.
pub(super) fn asymmetric(rings: &Rings, distances: &Distances<'_>, owner: &[usize], edges: Edges) -> Cost {
    let sum = |rings: &[Ring], axis| -> f64 {
        rings
            .iter()
            .map(|ring| match edges {
                Edges::Periodic => whole_ring(ring, distances, owner, axis),
                Edges::Open => {
                    let inner = ring.stops.len() - 1;
                    ring.width as f64 * links(ring, distances, owner, axis).take(inner).sum::<f64>()
                }
            })
            .sum()
    };
    Cost::of(sum(&rings.rows, 0), sum(&rings.cols, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrange::tests::column_plan;
    use crate::plan::arrange::{CostFunction, arrangement_cost};
    use crate::platform::parse_platform;

    #[test]
    fn the_tree_s_levels() {
        assert_eq!(tree_hops("a", "a"), 0);
        assert_eq!(tree_hops("a", "b"), 1);
        assert_eq!(tree_hops("s/a", "s/b"), 1);
        assert_eq!(tree_hops("s/a", "t/a"), 2);
        assert_eq!(tree_hops("s/a/1", "s/b/1"), 2);
        assert_eq!(tree_hops("s", "s/a"), 1);
    }

    /// Two columns of one: 6 rows of 8 bytes there and back at 8 MB/s. A column of one sends nothing
    /// downwards.
    #[test]
    fn bandwidth_by_hand() {
        let text = "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n[network]\n\
                    bandwidth = { horizontal = \"8 MB/s\", vertical = \"1 MB/s\" }\n";
        let platform = parse_platform(text, "t").unwrap();
        let plan = column_plan(&platform, &[1.0, 1.0], 6, 8);
        let cost = |pivots| arrangement_cost(&plan, &platform, CostFunction::Bandwidth(pivots)).unwrap();
        assert!((cost(Pivots::Ring).total - 12e-6).abs() < 1e-18);
        assert!((cost(Pivots::OneToAll).total - 6e-6).abs() < 1e-18);
        let text = text.replace("[network]\n", "[network]\ntopology = \"star\"\ncentre = \"c\"\n");
        let relayed = parse_platform(&format!("[[processor]]\nname = \"c\"\n{text}"), "t").unwrap();
        let cost = arrangement_cost(&plan, &relayed, CostFunction::Bandwidth(Pivots::Ring)).unwrap();
        assert!((cost.total - 24e-6).abs() < 1e-18, "through the centre: twice");
    }

    /// Four quarters of 10 x 10: each border of 5 lines once, or twice if the opposite border is also a
    /// neighbour.
    #[test]
    fn halo_exchange_by_hand() {
        let mut text =
            String::from("[network]\nbandwidth = { horizontal = \"8 MB/s\", vertical = \"80 MB/s\" }\n");
        (0..4).for_each(|i| text += &format!("[[processor]]\nname = \"p{i}\"\n"));
        let platform = parse_platform(&text, "t").unwrap();
        let plan = column_plan(&platform, &[1.0; 4], 10, 10);
        for (edges, times) in [(Edges::Open, 1.0), (Edges::Periodic, 2.0)] {
            let cost = arrangement_cost(&plan, &platform, CostFunction::Asymmetric(edges)).unwrap();
            assert!((cost.a - times * 10e-6).abs() < 1e-15 && (cost.b - times * 1e-6).abs() < 1e-15);
        }
    }
}
