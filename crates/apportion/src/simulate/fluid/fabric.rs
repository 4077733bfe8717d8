//! The network as the fluid model sees it: the links that a message crosses.

use super::rules::{Fluid, Tcp, Weights};
use crate::geometry::Rank;
use crate::platform::{Crossing, Link, Load, Network, Wire};
use std::collections::BTreeMap;

/// The path between a pair of ranks, computed when its first message is sent. There are millions of them.
#[derive(Debug)]
pub(in crate::simulate) struct Path {
    /// Where its links begin in those of all paths; they end where the next path's begin.
    links: usize,
    /// Latency of the first byte, in seconds.
    pub latency: f64,
    /// Weight of the flow's rate in the sharing problem.
    pub weight: f64,
    /// Maximum rate in units per second, limited by bandwidth and by window.
    pub bound: f64,
}

/// Links by number, and the paths that use them.
#[derive(Debug)]
pub(in crate::simulate) struct Fabric<'a> {
    network: &'a Network,
    /// Each rank's processor.
    placement: &'a [usize],
    rules: &'a Fluid,
    /// By [`Wire::number`].
    wires: BTreeMap<u64, u32>,
    capacities: Vec<f64>,
    /// By source, then by destination.
    by_pair: Vec<BTreeMap<u32, u32>>,
    paths: Vec<Path>,
    /// Of all paths, one after the other: the links of each, each link once, with the bandwidth that a flow
    /// takes of it per unit of its rate.
    uses: Vec<(u32, f64)>,
    /// By path: the links of the hops with their capacities, where contiguous and strided data travel at
    /// different speeds.
    uneven: BTreeMap<u32, Vec<(Link, f64)>>,
}

impl<'a> Fabric<'a> {
    pub fn new(network: &'a Network, placement: &'a [usize], rules: &'a Fluid) -> Self {
        Self {
            network,
            placement,
            rules,
            wires: BTreeMap::new(),
            capacities: Vec::new(),
            by_pair: vec![BTreeMap::new(); placement.len()],
            paths: Vec::new(),
            uses: Vec::new(),
            uneven: BTreeMap::new(),
        }
    }

    /// Bytes per second of a link.
    pub fn capacity(&self, link: u32) -> f64 {
        self.capacities[link as usize]
    }

    /// Number of links used so far.
    pub fn links(&self) -> usize {
        self.capacities.len()
    }

    pub fn path(&self, path: u32) -> &Path {
        &self.paths[path as usize]
    }

    /// The links of a path, each once, with the bandwidth that a flow takes of each per unit of its rate.
    pub fn uses(&self, path: u32) -> &[(u32, f64)] {
        let path = path as usize;
        let end = self.paths.get(path + 1).map_or(self.uses.len(), |next| next.links);
        &self.uses[self.paths[path].links..end]
    }

    /// The size of a message in units of a path's capacity. The unit is bytes, unless speeds depend on the
    /// direction of the data. Then it is the whole number of bytes that takes as long on the slowest hop.
    pub fn amount(&self, path: u32, load: Load) -> f64 {
        let mut slowest = (0.0, load.bytes());
        for (link, capacity) in self.uneven.get(&path).into_iter().flatten() {
            let seconds = load.horizontal / link.horizontal + load.vertical / link.vertical;
            if seconds > slowest.0 {
                slowest = (seconds, (seconds * capacity).round());
            }
        }
        slowest.1
    }

    /// The path from one rank to another. Within a processor, messages cost nothing.
    pub fn between(&mut self, from: usize, to: usize) -> u32 {
        if let Some(&known) = self.by_pair[from].get(&(to as u32)) {
            return known;
        }
        let (source, destination) = (self.placement[from], self.placement[to]);
        let path = if source == destination {
            Path { links: self.uses.len(), latency: 0.0, weight: 1.0, bound: f64::INFINITY }
        } else {
            self.find(Rank(source), Rank(destination))
        };
        self.paths.push(path);
        let number = self.paths.len() as u32 - 1;
        self.by_pair[from].insert(to as u32, number);
        number
    }

    /// The next path, with its links.
    fn find(&mut self, from: Rank, to: Rank) -> Path {
        let mut uses: Vec<(u32, f64)> = Vec::new();
        let (mut latency, mut weight, mut bound) = (0.0, 0.0, f64::INFINITY);
        let mut uneven = Vec::new();
        for crossing in self.network.route(from, to).iter().flat_map(|hop| &hop.crossings) {
            let Crossing { wire, link, capacity } = *crossing;
            let number = self.number(wire, capacity);
            add(&mut uses, number, 1.0);
            latency += link.latency;
            bound = f64::min(bound, capacity);
            weight += self.rules.tcp.per_link / capacity;
            if link.horizontal != capacity || link.vertical != capacity {
                uneven.push((link, capacity));
            }
        }
        if self.rules.tcp.cross_traffic {
            for crossing in self.network.route(to, from).iter().flat_map(|hop| &hop.crossings) {
                let number = self.number(crossing.wire, crossing.capacity);
                add(&mut uses, number, 0.05);
            }
        }
        uses.retain(|u| self.capacities[u.0 as usize].is_finite());
        weight = match self.rules.weights {
            Weights::Latency if latency > 0.0 => weight + latency,
            _ => 1.0,
        };
        if latency > 0.0 {
            bound = bound.min(self.rules.tcp.window / (2.0 * latency));
        }
        if !uneven.is_empty() {
            self.uneven.insert(self.paths.len() as u32, uneven);
        }
        let links = self.uses.len();
        self.uses.extend(uses);
        Path { links, latency, weight, bound }
    }

    fn number(&mut self, wire: Wire, capacity: f64) -> u32 {
        let next = self.capacities.len() as u32;
        let number = *self.wires.entry(wire.number()).or_insert(next);
        if number == next {
            self.capacities.push(capacity);
        }
        number
    }

    /// Latency and rate factors of a message of `bytes` bytes, envelope included.
    pub fn factors(&self, bytes: f64) -> (f64, f64) {
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
