//! The network as the fluid model sees it: the links that a message crosses.

use super::rules::{Fluid, Tcp, Weights};
use crate::geometry::Rank;
use crate::platform::{Crossing, Link, Load, Network, Topology, Wire};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What the paths of many pairs have in common: those from one cluster to another differ only in the wire
/// that a pair has to itself.
#[derive(Debug, PartialEq)]
pub(in crate::simulate) struct Kind {
    /// Where its links begin in those of all kinds; they end where the next kind's begin.
    links: usize,
    /// Latency of the first byte, in seconds.
    pub(crate) latency: f64,
    /// Weight of a flow's rate in the sharing problem.
    pub(crate) weight: f64,
    /// Maximum rate in units per second, limited by bandwidth and by window.
    pub(crate) bound: f64,
    /// Units per second of the wire that the pair has to itself; infinite without one.
    pub(crate) own: f64,
    /// The wires on the way, where a message takes one of them at another speed than its capacity, as
    /// contiguous and strided data may.
    uneven: Option<Box<[Hop]>>,
}

/// A wire on the way of a message.
#[derive(Debug, PartialEq)]
struct Hop {
    wire: u32,
    link: Link,
    /// Infinite for a wire that is infinitely fast in one direction.
    capacity: f64,
}

/// Links by number, and the paths that use them.
#[derive(Debug)]
pub(in crate::simulate) struct Fabric<'a> {
    network: &'a Network,
    /// Each rank's processor.
    placement: &'a [usize],
    rules: &'a Fluid,
    /// True if the wire of a pair carries the messages from one rank to one other and nothing else.
    apart: bool,
    /// By [`Wire::number`].
    wires: BTreeMap<u64, u32>,
    capacities: Vec<f64>,
    /// By source, then by destination.
    by_pair: Vec<BTreeMap<u32, u32>>,
    /// The kind of each path between a pair of ranks, computed when its first message is sent. There are
    /// millions.
    paths: Vec<u32>,
    kinds: Vec<Kind>,
    /// Of all kinds, one after the other: the links of each, each link once, with the bandwidth that a flow
    /// takes of it per unit of its rate.
    uses: Vec<(u32, f64)>,
    /// By hash; of kinds with the same hash, the last.
    known: HashMap<u64, u32>,
    /// By path and by the kind of a message that takes its wires at other speeds than their capacities: the
    /// path of such messages.
    mixed: BTreeMap<(u32, u32), u32>,
}

impl<'a> Fabric<'a> {
    pub(crate) fn new(network: &'a Network, placement: &'a [usize], rules: &'a Fluid) -> Self {
        let alone = placement.iter().collect::<BTreeSet<_>>().len() == placement.len();
        let full = network.topology == Topology::Full && network.duplex;
        Self {
            network,
            placement,
            rules,
            apart: alone && full && !rules.tcp.cross_traffic,
            wires: BTreeMap::new(),
            capacities: Vec::new(),
            by_pair: vec![BTreeMap::new(); placement.len()],
            paths: Vec::new(),
            kinds: Vec::new(),
            uses: Vec::new(),
            known: HashMap::new(),
            mixed: BTreeMap::new(),
        }
    }

    /// Bytes per second of a link.
    pub(crate) fn capacity(&self, link: u32) -> f64 {
        self.capacities[link as usize]
    }

    /// Number of links used so far. The wires that pairs have to themselves are not among them.
    pub(crate) fn links(&self) -> usize {
        self.capacities.len()
    }

    /// Number of paths used so far.
    pub(crate) fn paths(&self) -> usize {
        self.paths.len()
    }

    /// The number of a path's kind.
    pub(crate) fn kind_of(&self, path: u32) -> u32 {
        self.paths[path as usize]
    }

    pub(crate) fn kind(&self, kind: u32) -> &Kind {
        &self.kinds[kind as usize]
    }

    /// The links of a kind of path, each once, with the bandwidth that a flow takes of each per unit of its
    /// rate.
    pub(crate) fn uses(&self, kind: u32) -> &[(u32, f64)] {
        let kind = kind as usize;
        let end = self.kinds.get(kind + 1).map_or(self.uses.len(), |next| next.links);
        &self.uses[self.kinds[kind].links..end]
    }

    /// The path of a message, and its size in units of that path. The unit is bytes, unless speeds depend on
    /// the direction of the data: then a message counts as the whole number of bytes that take as long on its
    /// slowest hop, and takes of each other hop what it needs there.
    pub(crate) fn loaded(&mut self, path: u32, load: Load) -> (u32, f64) {
        let number = self.kind_of(path);
        let base = self.kind(number);
        let Some(hops) = &base.uneven else { return (path, load.bytes()) };
        let seconds = |hop: &Hop| load.horizontal / hop.link.horizontal + load.vertical / hop.link.vertical;
        let slowest = hops.iter().max_by(|x, y| seconds(x).total_cmp(&seconds(y)));
        let Some(slowest) = slowest.filter(|hop| seconds(hop) > 0.0) else { return (path, load.bytes()) };
        let amount = match (seconds(slowest) * slowest.capacity).round() {
            units if units.is_finite() && units > 0.0 => units,
            _ => load.bytes(),
        };
        let (latency, weight, mut bound) = (base.latency, base.weight, self.window(base.latency));
        let mut uses = self.uses(number).to_vec();
        for hop in hops {
            let capacity = self.capacity(hop.wire);
            let taken = seconds(hop) * capacity;
            let share = if taken.round() == amount { 1.0 } else { taken / amount };
            bound = bound.min(capacity / share);
            match uses.iter_mut().find(|used| used.0 == hop.wire) {
                Some(used) if hop.capacity.is_finite() => used.1 += share - 1.0,
                _ => uses.push((hop.wire, share)),
            }
        }
        uses.retain(|used| used.1 > 0.0);
        if uses == self.uses(number) {
            return (path, amount);
        }
        let kind =
            self.numbered(Kind { links: 0, latency, weight, bound, own: f64::INFINITY, uneven: None }, &uses);
        let next = self.paths.len() as u32;
        let path = *self.mixed.entry((path, kind)).or_insert(next);
        if path == next {
            self.paths.push(kind);
        }
        (path, amount)
    }

    /// Maximum rate of a path by the window of unacknowledged bytes.
    fn window(&self, latency: f64) -> f64 {
        if latency > 0.0 { self.rules.tcp.window / (2.0 * latency) } else { f64::INFINITY }
    }

    /// The path from one rank to another. Within a processor, messages cost nothing.
    pub(crate) fn between(&mut self, from: usize, to: usize) -> u32 {
        if let Some(&known) = self.by_pair[from].get(&(to as u32)) {
            return known;
        }
        let (source, destination) = (self.placement[from], self.placement[to]);
        let kind = if source == destination {
            let (bound, own) = (f64::INFINITY, f64::INFINITY);
            self.numbered(Kind { links: 0, latency: 0.0, weight: 1.0, bound, own, uneven: None }, &[])
        } else {
            self.find(Rank(source), Rank(destination))
        };
        self.paths.push(kind);
        let number = self.paths.len() as u32 - 1;
        self.by_pair[from].insert(to as u32, number);
        number
    }

    /// The kind of the path between two processors.
    fn find(&mut self, from: Rank, to: Rank) -> u32 {
        let mut uses: Vec<(u32, f64)> = Vec::new();
        let (mut latency, mut weight, mut bound, mut own) = (0.0, 0.0, f64::INFINITY, f64::INFINITY);
        let hops = self.network.route(from, to);
        let crossings = || hops.iter().flat_map(|hop| &hop.crossings);
        let uneven = crossings().any(|c| c.link.horizontal != c.capacity || c.link.vertical != c.capacity);
        let mut list = Vec::new();
        for &Crossing { wire, link, capacity } in crossings() {
            if self.apart && !uneven && wire == Wire::Pair(from, to) {
                own = capacity;
            } else {
                let wire = self.number(wire, capacity);
                if capacity.is_finite() {
                    add(&mut uses, wire, 1.0);
                }
                list.push(Hop { wire, link, capacity });
            }
            latency += link.latency;
            bound = f64::min(bound, capacity);
            weight += self.rules.tcp.per_link / capacity;
        }
        if self.rules.tcp.cross_traffic {
            for crossing in self.network.route(to, from).iter().flat_map(|hop| &hop.crossings) {
                let number = self.number(crossing.wire, crossing.capacity);
                if crossing.capacity.is_finite() {
                    add(&mut uses, number, 0.05);
                }
            }
        }
        weight = match self.rules.weights {
            Weights::Latency if latency > 0.0 => weight + latency,
            _ => 1.0,
        };
        bound = bound.min(self.window(latency));
        let uneven = uneven.then(|| list.into_boxed_slice());
        self.numbered(Kind { links: 0, latency, weight, bound, own, uneven }, &uses)
    }

    /// The number of a kind with these links, wherever `links` says they begin.
    fn numbered(&mut self, mut kind: Kind, uses: &[(u32, f64)]) -> u32 {
        let mut hasher = DefaultHasher::new();
        [kind.latency, kind.weight, kind.bound, kind.own].map(f64::to_bits).hash(&mut hasher);
        uses.iter().for_each(|(link, share)| (link, share.to_bits()).hash(&mut hasher));
        let hash = hasher.finish();
        if let Some(&known) = self.known.get(&hash) {
            kind.links = self.kind(known).links;
            if *self.kind(known) == kind && self.uses(known) == uses {
                return known;
            }
        }
        kind.links = self.uses.len();
        self.uses.extend(uses);
        self.kinds.push(kind);
        let number = self.kinds.len() as u32 - 1;
        self.known.insert(hash, number);
        number
    }

    fn number(&mut self, wire: Wire, capacity: f64) -> u32 {
        let next = self.capacities.len() as u32;
        let number = *self.wires.entry(wire.number()).or_insert(next);
        if number == next {
            // Messages take seconds of a wire that is infinitely fast in one direction, or nothing.
            self.capacities.push(if capacity.is_finite() { capacity } else { 1.0 });
        }
        number
    }

    /// Latency and rate factors of a message of `bytes` bytes, envelope included.
    pub(crate) fn factors(&self, bytes: f64) -> (f64, f64) {
        let tcp = &self.rules.tcp;
        (Tcp::factor(&tcp.latency, bytes), Tcp::factor(&tcp.rate, bytes))
    }
}

/// Adds the share to a link that is already in the list.
fn add(uses: &mut Vec<(u32, f64)>, link: u32, share: f64) {
    match uses.iter_mut().find(|u| u.0 == link) {
        Some(known) => known.1 += share,
        None => uses.push((link, share)),
    }
}
