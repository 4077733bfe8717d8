//! Cost by the bandwidth of the links taken, in seconds.
//!
//! Source: Malik 2016, section 3.3.2, equations (3.4)-(3.6).

use super::distance::Distances;
use super::rings::{Rings, links, one_to_all};
use super::{Cost, Pivots};

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
pub(super) fn whole_ring(
    ring: &super::rings::Ring,
    distances: &Distances<'_>,
    owner: &[usize],
    axis: usize,
) -> f64 {
    ring.width as f64 * links(ring, distances, owner, axis).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrange::tests::column_plan;
    use crate::plan::arrange::{Objective, arrangement_cost};
    use crate::platform::parse_platform;

    /// Two columns of one: 6 rows of 8 bytes there and back at 8 MB/s. A column of one sends nothing
    /// downwards.
    #[test]
    fn by_hand() {
        let text = "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n[network]\n\
                    bandwidth = { horizontal = \"8 MB/s\", vertical = \"1 MB/s\" }\n";
        let platform = parse_platform(text, "t").unwrap();
        let plan = column_plan(&platform, &[1.0, 1.0], 6, 8);
        let cost = |pivots| arrangement_cost(&plan, &platform, Objective::Bandwidth(pivots)).unwrap();
        assert!((cost(Pivots::Ring).total - 12e-6).abs() < 1e-18);
        assert!((cost(Pivots::OneToAll).total - 6e-6).abs() < 1e-18);
        let text = text.replace("[network]\n", "[network]\ntopology = \"star\"\ncentre = \"c\"\n");
        let relayed = parse_platform(&format!("[[processor]]\nname = \"c\"\n{text}"), "t").unwrap();
        let cost = arrangement_cost(&plan, &relayed, Objective::Bandwidth(Pivots::Ring)).unwrap();
        assert!((cost.total - 24e-6).abs() < 1e-18, "through the centre: twice");
    }
}
