//! The network as numbers: latency and bandwidth of every ordered pair, topology, and the wires of each
//! message.

mod cut;
mod route;

pub(crate) use cut::Cut;
pub use route::{Crossing, Route};
pub(crate) use route::{Place, Wire};

use super::device_memory::DeviceMemory;
use super::host_network::HostNetwork;
use crate::geometry::Rank;
use route::Trunk;
use std::collections::BTreeMap;

/// The topology of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Every pair of processors has a link of its own.
    Full,
    /// Messages between two processors other than the centre are relayed through it, one hop after the other.
    Star {
        /// The relaying processor.
        centre: Rank,
    },
    /// One medium for all processors: one transfer at a time.
    Bus,
}

/// The direction of a message in the layout: pieces of A travel along rows, pieces of B along columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Along a row of processors (pieces of A).
    Horizontal,
    /// Along a column of processors (pieces of B).
    Vertical,
}

/// One link's cost: `latency + bytes / bandwidth` (Hockney 1994).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Seconds before the first byte arrives.
    pub latency: f64,
    /// Bytes per second for data that travel along rows.
    pub horizontal: f64,
    /// Bytes per second for data that travel along columns.
    pub vertical: f64,
}

impl Link {
    /// A link without cost.
    pub(crate) const FREE: Self = Self { latency: 0.0, horizontal: f64::INFINITY, vertical: f64::INFINITY };

    /// This link and another in series: latencies add up, and the smaller bandwidth counts.
    fn then(self, next: Self) -> Self {
        Self {
            latency: self.latency + next.latency,
            horizontal: self.horizontal.min(next.horizontal),
            vertical: self.vertical.min(next.vertical),
        }
    }

    /// Seconds for a message of `horizontal` bytes of A and `vertical` bytes of B.
    pub(crate) fn seconds(&self, horizontal: f64, vertical: f64) -> f64 {
        self.latency + horizontal / self.horizontal + vertical / self.vertical
    }
}

/// A link between two given processors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairLink {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// True if the link also serves messages from the receiver to the sender.
    pub both_ways: bool,
    /// The link's cost.
    pub link: Link,
}

/// An exception for some pairs in a platform file: it applies if both ends match.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exception {
    /// Names of two processors or clusters.
    pub(crate) between: (String, String),
    /// Latency, if it differs.
    pub(crate) latency: Option<f64>,
    /// Bandwidth (horizontal, vertical), if it differs.
    pub(crate) bandwidth: Option<(f64, f64)>,
    /// True if it applies only in the order (from, to) as written: a table's entry.
    pub(crate) directed: bool,
    /// If all pairs that it covers share one link: its place in the platform file, from 0.
    pub(crate) shared: Option<usize>,
}

/// Latency, bandwidth and topology between all processors.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// True if the two directions of a link work at the same time.
    pub duplex: bool,
    /// The topology of a network.
    pub topology: Topology,
    /// True if the threads engine delays its messages by these costs.
    pub emulate: bool,
    default: Link,
    /// Links of classes of processors; `None` until resolved against processor names.
    classes: Vec<usize>,
    /// Row-major table, class × class.
    table: Vec<Link>,
    /// By class × class: the link that all such pairs share, if any.
    shared: Vec<Option<Trunk>>,
    count: usize,
    /// The two ends of each shared link, by its place in the platform file.
    trunks: BTreeMap<usize, (String, String)>,
    /// The uplinks of processors and clusters, by name.
    uplinks: Vec<(String, Link)>,
    /// By rank: the uplinks that its outgoing messages cross, innermost first.
    chains: Vec<Vec<usize>>,
    /// The measured costs between hosts that the links are made of, if they are.
    pub(super) hosts: Option<Box<HostNetwork>>,
    /// The processors that are devices, with their memories.
    pub devices: BTreeMap<Rank, DeviceMemory>,
}

impl Network {
    /// A network without costs: full topology, both directions at the same time, not emulated.
    pub fn free() -> Self {
        Self {
            duplex: true,
            topology: Topology::Full,
            emulate: false,
            default: Link::FREE,
            classes: Vec::new(),
            table: Vec::new(),
            shared: Vec::new(),
            count: 0,
            trunks: BTreeMap::new(),
            uplinks: Vec::new(),
            chains: Vec::new(),
            hosts: None,
            devices: BTreeMap::new(),
        }
    }

    /// A free network with the devices of this one.
    pub fn only_devices(&self) -> Self {
        Self { devices: self.devices.clone(), ..Self::free() }
    }

    /// A free network whose ranks are of `count` classes, the processors of a host, say.
    pub(super) fn of_classes(classes: Vec<usize>, count: usize) -> Self {
        Self {
            classes,
            count,
            table: vec![Link::FREE; count * count],
            shared: vec![None; count * count],
            ..Self::free()
        }
    }

    /// Sets the link of all pairs from one class to another. They share it if it has the names of its ends.
    pub(super) fn join_classes(
        &mut self,
        from: usize,
        to: usize,
        shared: Option<(String, String)>,
        link: Link,
    ) {
        let (place, number) = (from * self.count + to, self.trunks.len());
        self.table[place] = link;
        if let Some(names) = shared {
            self.shared[place] = Some(Trunk { number, backward: false, bandwidth: link.horizontal });
            self.trunks.insert(number, names);
        }
    }

    /// The same link for every pair.
    pub fn uniform(latency: f64, bandwidth: f64) -> Self {
        Self { default: Link { latency, horizontal: bandwidth, vertical: bandwidth }, ..Self::free() }
    }

    /// A network whose links depend on the classes of the two ends.
    pub(super) fn resolved(default: Link, names: &[(String, String)], exceptions: &[Exception]) -> Self {
        let mut network = Self { default, ..Self::free() };
        if exceptions.is_empty() {
            return network;
        }
        // Processors that every exception treats alike form one class.
        let mut kinds: Vec<Vec<u8>> = Vec::new();
        for (name, cluster) in names {
            let kind: Vec<u8> = exceptions
                .iter()
                .map(|e| {
                    specificity(&e.between.0, name, cluster) * 8 + specificity(&e.between.1, name, cluster)
                })
                .collect();
            let class = kinds.iter().position(|k| *k == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            network.classes.push(class);
        }
        network.count = kinds.len();
        (network.table, network.shared) = (0..kinds.len() * kinds.len())
            .map(|i| {
                let (from, to) = (&kinds[i / kinds.len()], &kinds[i % kinds.len()]);
                best_link(default, exceptions, from, to)
            })
            .unzip();
        let shared = exceptions.iter().filter_map(|e| Some((e.shared?, e.between.clone())));
        network.trunks = shared.collect();
        network
    }

    /// The link from one processor to another (free to itself), with all wires combined.
    pub fn link(&self, from: Rank, to: Rank) -> Link {
        if from == to || self.uplinks.is_empty() {
            return self.direct(from, to);
        }
        let (up, down) = self.uplinks_between(from, to);
        up.chain(down).fold(self.direct(from, to), |sum, i| sum.then(self.uplinks[i].1))
    }

    /// The pair's own link.
    pub(super) fn direct(&self, from: Rank, to: Rank) -> Link {
        if from == to {
            return Link::FREE;
        }
        match (self.classes.get(from.0), self.classes.get(to.0)) {
            (Some(a), Some(b)) => self.table[a * self.count + b],
            _ => self.default,
        }
    }

    /// The network between some of the processors, renumbered in the order given. A star whose centre is
    /// not among them becomes a full network of the same links.
    pub(crate) fn select(&self, ranks: &[Rank]) -> Self {
        let topology = match self.topology {
            Topology::Star { centre } => ranks
                .iter()
                .position(|r| *r == centre)
                .map_or(Topology::Full, |place| Topology::Star { centre: Rank(place) }),
            other => other,
        };
        let classes = ranks.iter().filter_map(|r| self.classes.get(r.0).copied()).collect();
        let chains = ranks.iter().filter_map(|r| self.chains.get(r.0).cloned()).collect();
        let device = |(place, rank): (usize, &Rank)| Some((Rank(place), self.devices.get(rank)?.clone()));
        let devices = ranks.iter().enumerate().filter_map(device).collect();
        Self { topology, classes, chains, devices, ..self.clone() }
    }

    /// The same network with its slowest link at `bandwidth` bytes per second; the others keep their ratio to
    /// it. If no link has a finite bandwidth, all get this one.
    pub fn at_bandwidth(&self, bandwidth: f64) -> Self {
        let slowest = self
            .links()
            .flat_map(|l| [l.horizontal, l.vertical])
            .min_by(f64::total_cmp)
            .unwrap_or(f64::INFINITY);
        let scaled = move |b: f64| if slowest.is_finite() { b * (bandwidth / slowest) } else { bandwidth };
        self.changed(|l| Link { horizontal: scaled(l.horizontal), vertical: scaled(l.vertical), ..l })
    }

    /// The same network with its longest latency at `latency` seconds; the others keep their ratio to it. If
    /// no link has a latency, all get this one.
    pub fn at_latency(&self, latency: f64) -> Self {
        let longest = self.links().map(|l| l.latency).fold(0.0, f64::max);
        let scaled = move |t: f64| if longest > 0.0 { t * (latency / longest) } else { latency };
        self.changed(|l| Link { latency: scaled(l.latency), ..l })
    }

    /// The same network, those of devices included, whose messages take `times` as long.
    pub(crate) fn slower(&self, times: f64) -> Self {
        let mut network = self.changed(|l| Link {
            latency: l.latency * times,
            horizontal: l.horizontal / times,
            vertical: l.vertical / times,
        });
        for memory in network.devices.values_mut() {
            memory.latency *= times;
            memory.up /= times;
            memory.down /= times;
        }
        network
    }

    /// The links of all pairs of two processors.
    fn links(&self) -> impl Iterator<Item = &Link> {
        let alone = |class| self.classes.iter().filter(|c| **c == class).count() < 2;
        let used = move |i: usize| i / self.count != i % self.count || !alone(i / self.count);
        let all = (0..self.table.len()).filter(move |&i| used(i)).map(|i| &self.table[i]);
        all.chain(self.table.is_empty().then_some(&self.default))
            .chain(self.uplinks.iter().map(|(_, link)| link))
    }

    fn changed(&self, change: impl Fn(Link) -> Link) -> Self {
        let trunk_of = |trunk: Trunk| {
            let link = Link { latency: 0.0, horizontal: trunk.bandwidth, vertical: trunk.bandwidth };
            Trunk { bandwidth: change(link).horizontal, ..trunk }
        };
        Self {
            default: change(self.default),
            table: self.table.iter().map(|&l| change(l)).collect(),
            uplinks: self.uplinks.iter().map(|(name, l)| (name.clone(), change(*l))).collect(),
            shared: self.shared.iter().map(|trunk| trunk.map(&trunk_of)).collect(),
            hosts: None,
            ..self.clone()
        }
    }

    /// The same network among `p` processors with some links replaced.
    pub(super) fn with_links(&self, p: usize, links: &[PairLink]) -> Self {
        let mut table: Vec<Link> = (0..p * p).map(|i| self.link(Rank(i / p), Rank(i % p))).collect();
        for &PairLink { from, to, both_ways, link } in links {
            table[from.0 * p + to.0] = link;
            if both_ways {
                table[to.0 * p + from.0] = link;
            }
        }
        // The known link of each pair now includes the part that it shares with others.
        Self { classes: (0..p).collect(), table, count: p, ..self.unshared() }
    }

    /// The same network among `p` processors, in which all pairs from a rank of `from` to one of `to` share this link,
    /// in place of links of their own. The names of its ends are those of two clusters.
    pub(super) fn with_shared_link(
        &self,
        p: usize,
        [from, to]: [&[Rank]; 2],
        names: (String, String),
        link: Link,
    ) -> Self {
        let pairs = (0..p * p).map(|i| (Rank(i / p), Rank(i % p)));
        let (mut table, mut shared): (Vec<Link>, Vec<_>) =
            pairs.map(|(i, j)| (self.direct(i, j), self.trunk(i, j))).unzip();
        let number = self.trunks.keys().last().map_or(0, |last| last + 1);
        for (i, j) in from.iter().flat_map(|i| to.iter().map(move |j| (i, j))) {
            let place = i.0 * p + j.0;
            table[place] = link;
            shared[place] = Some(Trunk { number, backward: false, bandwidth: link.horizontal });
        }
        let mut trunks = self.trunks.clone();
        trunks.insert(number, names);
        Self { classes: (0..p).collect(), table, shared, trunks, count: p, ..self.clone() }
    }

    /// The default link.
    pub(super) fn default_link(&self) -> Link {
        self.default
    }

    /// True if every pair has the default link.
    pub(crate) fn is_uniform(&self) -> bool {
        self.table.iter().all(|link| *link == self.default) && self.shared.iter().all(Option::is_none)
    }

    /// True if every pair has a wire of its own in each direction: no messages of two senders compete.
    pub(crate) fn has_a_wire_for_each_pair(&self) -> bool {
        let shares = self.shared.iter().any(Option::is_some) || !self.uplinks.is_empty();
        self.topology == Topology::Full && self.duplex && !shares
    }

    /// True if no message costs any time.
    pub fn is_free(&self) -> bool {
        let own = [self.default].into_iter().chain(self.table.iter().copied());
        own.chain(self.uplinks.iter().map(|u| u.1)).all(|l| l == Link::FREE)
    }
}

/// How specifically `pattern` names a processor: 0 not at all, 1.. a cluster (deeper is more), 7 the
/// processor itself.
fn specificity(pattern: &str, name: &str, cluster: &str) -> u8 {
    if pattern == name {
        return 7;
    }
    let inside = cluster.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if inside { 1 + pattern.matches('/').count().min(5) as u8 } else { 0 }
}

/// The default, overridden by the most specific exception that matches (the later one among equals); and the
/// link that the pair shares with others, if the exception that sets the bandwidth defines one.
fn best_link(default: Link, exceptions: &[Exception], from: &[u8], to: &[u8]) -> (Link, Option<Trunk>) {
    let mut latency = (0, default.latency);
    let mut bandwidth = (0, (default.horizontal, default.vertical));
    let mut trunk = None;
    for (i, e) in exceptions.iter().enumerate() {
        let forward = (from[i] / 8, to[i] % 8);
        let backward = if e.directed { (0, 0) } else { (from[i] % 8, to[i] / 8) };
        for (way, (a, b)) in [forward, backward].into_iter().enumerate() {
            if a == 0 || b == 0 {
                continue;
            }
            let rank = a + b;
            if let Some(l) = e.latency.filter(|_| rank >= latency.0) {
                latency = (rank, l);
            }
            if let Some(w) = e.bandwidth.filter(|_| rank >= bandwidth.0) {
                bandwidth = (rank, w);
                let backward = way == 1 && e.between.0 != e.between.1;
                trunk = e.shared.map(|number| Trunk { number, backward, bandwidth: w.0 });
            }
        }
    }
    let link = Link { latency: latency.1, horizontal: bandwidth.1.0, vertical: bandwidth.1.1 };
    (link, trunk)
}

#[cfg(test)]
mod tests;
