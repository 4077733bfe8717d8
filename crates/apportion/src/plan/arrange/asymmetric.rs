//! Cost of a halo exchange by bandwidths that differ along rows and columns, in seconds.
//!
//! Source: Malik 2016, section 4.4.1, equations (4.1)-(4.3).

use super::distance::Distances;
use super::rings::{Rings, links};
use super::{Cost, Edges, bandwidth};

/// cost_H (as `a`) = sum over rows of (height in bytes x sum over neighbours of 1 / horizontal bandwidth);
/// cost_V (as `b`) likewise: one line of doubles across every border between two sub-domains.
///
/// With [`Edges::Periodic`], as in the equations, the last of a row is a neighbour of the first. The costs
/// that the source prints (Table 4.2) are those of [`Edges::Open`], where the two are not neighbours.
pub(super) fn asymmetric(rings: &Rings, distances: &Distances<'_>, owner: &[usize], edges: Edges) -> Cost {
    let sum = |rings: &[super::rings::Ring], axis| -> f64 {
        rings
            .iter()
            .map(|ring| match edges {
                Edges::Periodic => bandwidth::whole_ring(ring, distances, owner, axis),
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
    use crate::plan::arrange::{Objective, arrangement_cost};
    use crate::platform::parse_platform;

    /// Four quarters of 10 x 10: each border of 5 lines once, or twice if the opposite border is also a
    /// neighbour.
    #[test]
    fn by_hand() {
        let mut text =
            String::from("[network]\nbandwidth = { horizontal = \"8 MB/s\", vertical = \"80 MB/s\" }\n");
        (0..4).for_each(|i| text += &format!("[[processor]]\nname = \"p{i}\"\n"));
        let platform = parse_platform(&text, "t").unwrap();
        let plan = column_plan(&platform, &[1.0; 4], 10, 10);
        for (edges, times) in [(Edges::Open, 1.0), (Edges::Periodic, 2.0)] {
            let cost = arrangement_cost(&plan, &platform, Objective::Asymmetric(edges)).unwrap();
            assert!((cost.a - times * 10e-6).abs() < 1e-15 && (cost.b - times * 1e-6).abs() < 1e-15);
        }
    }
}
