//! The wires that a message crosses.

use super::{Link, Network, Topology, specificity};
use crate::geometry::Rank;
use std::collections::BTreeMap;

/// A link that several pairs share, and the direction in which a pair uses it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::platform) struct Trunk {
    /// Its place in the platform file, from 0.
    pub(crate) number: usize,
    /// From the second name of `between` to the first.
    pub(crate) backward: bool,
    /// Bytes per second as written (along rows).
    pub(crate) bandwidth: f64,
}

/// A resource that messages compete for: a link, or one direction of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wire {
    /// Between two processors: from the first to the second, or both directions if the network is half duplex
    /// (then the lower rank comes first).
    Pair(Rank, Rank),
    /// The medium of a bus.
    Bus,
    /// A link shared by all pairs of two clusters: its place in the platform file, and the direction.
    Shared {
        /// Index of the `[[network.link]]`, from 0.
        number: usize,
        /// From the second of `between` to the first; never true if the link is half duplex or inside one
        /// cluster.
        backward: bool,
    },
    /// The uplink of a processor or a cluster: its place in the platform file, and the direction.
    Uplink {
        /// Index of the `[[network.uplink]]`, from 0.
        number: usize,
        /// Into the processor or cluster; never true if the uplink is half duplex.
        down: bool,
    },
}

impl Wire {
    /// A number for each wire: millions are known in large simulations, and this takes a third of the memory.
    /// Ranks and places in files are below 2^31.
    pub(crate) fn number(self) -> u64 {
        let (kind, high, low) = match self {
            Self::Pair(from, to) => (0, from.0, to.0),
            Self::Bus => (1, 0, 0),
            Self::Shared { number, backward } => (2, number, usize::from(backward)),
            Self::Uplink { number, down } => (3, number, usize::from(down)),
        };
        kind << 62 | (high as u64) << 31 | low as u64
    }
}

/// One of the wires that a hop crosses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// The resource that messages compete for.
    pub(crate) wire: Wire,
    /// The cost of this wire for this message.
    pub(crate) link: Link,
    /// The wire's own bytes per second, the same for every message on it: along rows; from the lower rank to
    /// the higher if both directions share it; between the first two processors on a bus.
    pub capacity: f64,
}

/// One hop of a message: from one processor to the next, which receives all of it before forwarding it.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The cost of all its wires together: latencies add up, and the slowest wire sets the bandwidth.
    pub(crate) link: Link,
    /// The wires, in order, that it occupies at the same time.
    pub crossings: Vec<Crossing>,
}

/// All that routes depend on at one end. Two processors with equal places have equal links to each other and
/// to any third.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    class: Option<usize>,
    /// Uplinks by number, or by their costs if no other processor has them.
    uplinks: Vec<(Option<usize>, [u64; 3])>,
    centre: bool,
}

impl Network {
    /// The places of the first `count` processors. O(uplinks of all).
    pub(crate) fn places(&self, count: usize) -> Vec<Place> {
        let mut users = vec![0; self.uplinks.len()];
        self.chains.iter().flatten().for_each(|&i| users[i] += 1);
        let uplink = |&i: &usize| {
            let link = self.uplinks[i].1;
            let costs = [link.latency, link.horizontal, link.vertical].map(f64::to_bits);
            if users[i] > 1 { (Some(i), [0; 3]) } else { (None, costs) }
        };
        let place = |rank: usize| Place {
            class: self.classes.get(rank).copied(),
            uplinks: self.chains.get(rank).map_or_else(Vec::new, |chain| chain.iter().map(uplink).collect()),
            centre: matches!(self.topology, Topology::Star { centre } if centre.0 == rank),
        };
        (0..count).map(place).collect()
    }

    /// Gives processors and clusters uplinks of their own: `uplinks` are names with costs.
    pub(in crate::platform) fn join(&mut self, names: &[(String, String)], uplinks: &[(String, Link)]) {
        self.uplinks = uplinks.to_vec();
        self.chains = names
            .iter()
            .map(|(name, cluster)| {
                let depth = |i: &usize| specificity(&uplinks[*i].0, name, cluster);
                let mut chain: Vec<usize> = (0..uplinks.len()).filter(|i| depth(i) > 0).collect();
                chain.sort_by_key(|i| std::cmp::Reverse(depth(i)));
                chain
            })
            .collect();
    }

    /// The uplinks that a message crosses on its way out and on its way in: those that its two ends do not
    /// share.
    pub(super) fn uplinks_between(
        &self,
        from: Rank,
        to: Rank,
    ) -> (impl Iterator<Item = usize> + '_, impl Iterator<Item = usize> + '_) {
        let chain = |rank: Rank| self.chains.get(rank.0).map_or(&[][..], Vec::as_slice);
        let (out, into) = (chain(from), chain(to));
        let up = out.iter().copied().filter(|i| !into.contains(i));
        let down = into.iter().rev().copied().filter(|i| !out.contains(i));
        (up, down)
    }

    /// The link that a pair shares with others, if any.
    pub(in crate::platform) fn trunk(&self, from: Rank, to: Rank) -> Option<Trunk> {
        match (self.classes.get(from.0), self.classes.get(to.0)) {
            (Some(a), Some(b)) => self.shared.get(a * self.count + b).copied().flatten(),
            _ => None,
        }
    }

    /// The hops that a message takes, in order, with the wires that each occupies.
    pub fn route(&self, from: Rank, to: Rank) -> Vec<Route> {
        match self.topology {
            Topology::Star { centre } if from != centre && to != centre => {
                vec![self.hop(from, centre), self.hop(centre, to)]
            }
            _ => vec![self.hop(from, to)],
        }
    }

    /// The pair's own wire.
    fn wire(&self, from: Rank, to: Rank) -> Wire {
        match (self.topology, self.trunk(from, to)) {
            (Topology::Bus, _) => Wire::Bus,
            (_, Some(t)) => Wire::Shared { number: t.number, backward: t.backward && self.duplex },
            _ if self.duplex => Wire::Pair(from, to),
            _ => Wire::Pair(from.min(to), from.max(to)),
        }
    }

    /// The wire and the cost of a hop that crosses one wire only, without allocation; `None` where there are
    /// uplinks.
    pub(in crate::platform) fn only_wire(&self, from: Rank, to: Rank) -> Option<(Wire, Link)> {
        self.uplinks.is_empty().then(|| (self.wire(from, to), Link::FREE.then(self.direct(from, to))))
    }

    pub(in crate::platform) fn hop(&self, from: Rank, to: Rank) -> Route {
        let wire = self.wire(from, to);
        let capacity = match (wire, self.trunk(from, to)) {
            (Wire::Bus, _) => self.direct(Rank(0), Rank(1)).horizontal,
            (Wire::Pair(from, to), _) => self.direct(from, to).horizontal,
            (_, Some(t)) => t.bandwidth,
            (_, None) => self.direct(from, to).horizontal,
        };
        let (up, down) = self.uplinks_between(from, to);
        let uplink = |number: usize, down: bool| {
            let (link, wire) = (self.uplinks[number].1, Wire::Uplink { number, down: down && self.duplex });
            Crossing { wire, link, capacity: link.horizontal }
        };
        let own = Crossing { wire, link: self.direct(from, to), capacity };
        let crossings: Vec<Crossing> =
            up.map(|i| uplink(i, false)).chain([own]).chain(down.map(|i| uplink(i, true))).collect();
        let link = crossings.iter().fold(Link::FREE, |sum, c| sum.then(c.link));
        Route { link, crossings }
    }

    /// The same without shared links.
    pub(super) fn unshared(&self) -> Self {
        let (trunks, uplinks, chains) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { shared: Vec::new(), trunks, uplinks, chains, hosts: None, ..self.clone() }
    }

    /// The shared links that some pair uses: their two ends, and whether only from the first to the second.
    pub(in crate::platform) fn trunks(&self) -> impl Iterator<Item = (usize, &(String, String))> {
        let used = |number: &usize| self.shared.iter().flatten().any(|t| t.number == *number);
        self.trunks.iter().filter(move |(number, _)| used(number)).map(|(number, between)| (*number, between))
    }

    /// The uplinks that some processor has.
    pub(in crate::platform) fn uplinks(&self) -> impl Iterator<Item = &(String, Link)> {
        let used = |i: &usize| self.chains.iter().any(|chain| chain.contains(i));
        (0..self.uplinks.len()).filter(used).map(|i| &self.uplinks[i])
    }
}
