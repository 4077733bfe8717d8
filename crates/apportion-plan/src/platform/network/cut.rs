//! What can cross between some processors and all others: the capacity of the wires between them.

use super::{Link, Network, Route, Topology, Wire};
use crate::geometry::Rank;
use std::collections::BTreeMap;

/// The wires that every message between some processors and all others has to cross, both directions
/// together.
///
/// Several sets of wires may have this property, as the links of all pairs and the uplink of a cluster have:
/// each of them bounds what can cross.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cut {
    /// Bytes per second and latency of each wire of each set.
    sets: Vec<Vec<(f64, f64)>>,
}

impl Cut {
    /// No more bytes than this can cross within `seconds`. A wire that is used at all spends its latency.
    /// Infinite if some wire is free; 0 if there are no wires.
    pub(crate) fn bytes_within(&self, seconds: f64) -> f64 {
        let carried = |&(bandwidth, latency): &(f64, f64)| {
            if seconds > latency { bandwidth * (seconds - latency) } else { 0.0 }
        };
        let of_set = |set: &Vec<(f64, f64)>| set.iter().map(carried).sum::<f64>();
        self.sets.iter().map(of_set).fold(f64::INFINITY, f64::min)
    }
}

/// Which of the wires that a message crosses is taken, seen from the end inside the cut.
#[derive(Debug, Clone, Copy)]
enum Choice {
    /// The link of the pair.
    Pair,
    /// The uplink next to the processor inside.
    Nearest,
    /// The last uplink on the inside's way out: that of the largest cluster which the others are not in.
    Farthest,
}

impl Network {
    /// The wires between the processors `inside` (true at their ranks) and the others. O(inside x outside).
    ///
    /// # Panics
    /// If a processor of the network has no entry in `inside`.
    pub(crate) fn cut(&self, inside: &[bool]) -> Cut {
        let (mine, others): (Vec<usize>, Vec<usize>) = (0..inside.len()).partition(|&i| inside[i]);
        let adjacent = |a: usize, b: usize| match self.topology {
            Topology::Star { centre } => centre.0 == a || centre.0 == b,
            Topology::Full | Topology::Bus => true,
        };
        let pairs = mine.iter().flat_map(|&a| others.iter().map(move |&b| (a, b)));
        let pairs: Vec<(usize, usize)> = pairs.filter(|&(a, b)| adjacent(a, b)).collect();
        let of = |choice| {
            let mut wires: BTreeMap<Wire, (f64, f64)> = BTreeMap::new();
            for &(a, b) in &pairs {
                for (from, to) in [(a, b), (b, a)] {
                    let hop = self.hop(Rank(from), Rank(to));
                    let (wire, bandwidth, latency) = wire_of(&hop, choice, from == a);
                    let known = wires.entry(wire).or_insert((bandwidth, latency));
                    *known = (known.0.max(bandwidth), known.1.min(latency));
                }
            }
            wires.into_values().collect::<Vec<_>>()
        };
        let choices: &[Choice] = match self.uplinks.is_empty() {
            true => &[Choice::Pair],
            false => &[Choice::Pair, Choice::Nearest, Choice::Farthest],
        };
        Cut { sets: choices.iter().map(|&choice| of(choice)).collect() }
    }

    /// True if these two processors can be exchanged without changing any cost: they have the same links to
    /// all others and to each other, and share the same wires with them.
    pub(crate) fn exchangeable(&self, a: Rank, b: Rank) -> bool {
        if let Topology::Star { centre } = self.topology
            && (centre == a || centre == b)
        {
            return false;
        }
        let chain = |rank: Rank| self.chains.get(rank.0).map_or(&[][..], Vec::as_slice);
        // An uplink of its own is no different from an equal one of the other's.
        let own = |i: usize| self.chains.iter().filter(|chain| chain.contains(&i)).count() == 1;
        let same = |(&i, &j): (&usize, &usize)| {
            i == j || (own(i) && own(j) && self.uplinks[i].1 == self.uplinks[j].1)
        };
        self.classes.get(a.0) == self.classes.get(b.0)
            && chain(a).len() == chain(b).len()
            && chain(a).iter().zip(chain(b)).all(same)
    }
}

/// The chosen wire of a hop, its bandwidth in its faster direction, and its latency. `outwards` says whether
/// the hop begins inside the cut.
fn wire_of(hop: &Route, choice: Choice, outwards: bool) -> (Wire, f64, f64) {
    let is_uplink = |wire: Wire| matches!(wire, Wire::Uplink { .. });
    let pair = hop.crossings.iter().position(|c| !is_uplink(c.wire)).unwrap_or(0);
    // Uplinks of the sender's side come before the pair's own link, those of the receiver's side after it.
    let side = if outwards { 0..pair } else { pair + 1..hop.crossings.len() };
    let at = match (choice, side.is_empty()) {
        (Choice::Pair, _) | (_, true) => pair,
        (Choice::Nearest, _) if outwards => side.start,
        (Choice::Nearest, _) => side.end - 1,
        (Choice::Farthest, _) if outwards => side.end - 1,
        (Choice::Farthest, _) => side.start,
    };
    let crossing = &hop.crossings[at];
    let Link { latency, horizontal, vertical } = crossing.link;
    (crossing.wire, horizontal.max(vertical).max(crossing.capacity), latency)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Platform, parse_platform};

    fn platform(network: &str) -> Platform {
        let names = ["a0", "a1", "b0", "b1"];
        let each = names.map(|n| format!("[[processor]]\nname = \"{n}\"\ncluster = \"{}\"\n", &n[..1]));
        parse_platform(&format!("{}{network}", each.concat()), "test").unwrap()
    }

    fn bytes(network: &str, inside: [bool; 4], seconds: f64) -> f64 {
        platform(network).network.cut(&inside).bytes_within(seconds)
    }

    const ONE: [bool; 4] = [true, false, false, false];
    const CLUSTER: [bool; 4] = [true, true, false, false];

    #[test]
    fn pairs_and_both_directions_add_up() {
        let full = "[network]\nlatency = 1\nbandwidth = 10\n";
        assert_eq!(bytes(full, ONE, 3.0), 3.0 * 2.0 * 10.0 * 2.0);
        assert_eq!(bytes(full, CLUSTER, 3.0), 4.0 * 2.0 * 10.0 * 2.0);
        assert_eq!(bytes(full, ONE, 0.5), 0.0);
        assert_eq!(bytes(&format!("{full}duplex = false\n"), ONE, 3.0), 3.0 * 10.0 * 2.0);
    }

    #[test]
    fn one_medium_and_one_centre() {
        let bus = "[network]\nbandwidth = 10\ntopology = \"bus\"\n";
        assert_eq!(bytes(bus, CLUSTER, 2.0), 20.0);
        let star = "[network]\nbandwidth = 10\ntopology = \"star\"\ncentre = \"b0\"\n";
        assert_eq!(bytes(star, ONE, 2.0), 40.0);
        assert_eq!(bytes(star, [false, false, true, false], 2.0), 120.0);
    }

    #[test]
    fn an_uplink_bounds_what_many_links_would_carry() {
        let text = "[network]\nbandwidth = 10\n[[network.uplink]]\nof = \"a\"\nbandwidth = 3\n";
        assert_eq!(bytes(text, CLUSTER, 2.0), 2.0 * 3.0 * 2.0);
        // The first processor's own links to its cluster, and its share of the uplink to the others.
        assert_eq!(bytes(text, ONE, 2.0), 2.0 * (10.0 + 3.0) * 2.0);
        let shared = "[network]\nbandwidth = 10\n[[network.link]]\nbetween = [\"a\", \"b\"]\n\
            bandwidth = 4\nshared = true\n";
        assert_eq!(bytes(shared, CLUSTER, 2.0), 2.0 * 4.0 * 2.0);
    }

    #[test]
    fn processors_of_one_cluster_can_be_exchanged() {
        let text = "[network]\nbandwidth = 10\n[[network.link]]\nbetween = [\"a\", \"b\"]\nbandwidth = 4\n";
        let network = platform(text).network;
        assert!(network.exchangeable(Rank(0), Rank(1)) && network.exchangeable(Rank(2), Rank(3)));
        assert!(!network.exchangeable(Rank(0), Rank(2)));
        let star = platform("[network]\nbandwidth = 1\ntopology = \"star\"\ncentre = \"a0\"\n").network;
        assert!(star.exchangeable(Rank(1), Rank(3)) && !star.exchangeable(Rank(0), Rank(1)));
    }
}
