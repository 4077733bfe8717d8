//! The network as numbers: latency and bandwidth of every ordered pair, topology, and which wires a message takes.

use crate::rect::Rank;

/// How processors are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Every pair has a link of its own.
    Full,
    /// Every pair without the centre is relayed through it, one hop after the other.
    Star {
        /// The relaying processor.
        centre: Rank,
    },
    /// One medium shared by all: one transfer at a time.
    Bus,
}

/// Which way data travel in the layout: A's pieces along rows, B's along columns.
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
    /// A link that costs nothing.
    pub const FREE: Self = Self { latency: 0.0, horizontal: f64::INFINITY, vertical: f64::INFINITY };

    /// This link and another crossed at once: latencies add up, the slower sets the pace.
    fn then(self, next: Self) -> Self {
        Self {
            latency: self.latency + next.latency,
            horizontal: self.horizontal.min(next.horizontal),
            vertical: self.vertical.min(next.vertical),
        }
    }

    /// Seconds for a message of `horizontal` bytes of A and `vertical` bytes of B.
    pub fn seconds(&self, horizontal: f64, vertical: f64) -> f64 {
        self.latency + horizontal / self.horizontal + vertical / self.vertical
    }
}

/// What a platform file said of some pairs: applies where both ends match.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exception {
    /// Names of two processors or clusters.
    pub between: (String, String),
    /// Latency, where it differs.
    pub latency: Option<f64>,
    /// Bandwidth (horizontal, vertical), where it differs.
    pub bandwidth: Option<(f64, f64)>,
    /// True if only the order (from, to) as written is meant: a table's entry.
    pub directed: bool,
    /// True if all pairs that it covers share one link.
    pub shared: bool,
}

/// Latency, bandwidth and topology between all processors.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// True if the two directions of a link work at once.
    pub duplex: bool,
    /// How processors are joined.
    pub topology: Topology,
    /// True if the embedded engine must enforce these numbers on its transfers.
    pub emulate: bool,
    default: Link,
    /// Links of classes of processors; `None` until resolved against processor names.
    classes: Vec<usize>,
    /// Row-major table, class × class.
    table: Vec<Link>,
    /// By class × class: the link that all such pairs share, if they do.
    shared: Vec<Option<Trunk>>,
    count: usize,
    /// What joins processors and clusters to the rest.
    uplinks: Vec<Link>,
    /// By rank: the uplinks that its messages cross on their way out, from the inside.
    chains: Vec<Vec<usize>>,
}

/// A link that many pairs share, and which way a pair uses it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trunk {
    /// Its place in the platform file, from 0.
    number: usize,
    /// From the second name of `between` to the first.
    backward: bool,
    /// Bytes per second as written (along rows).
    bandwidth: f64,
}

/// What messages compete for: a link, or one direction of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// Between two processors: from the first to the second, or both ways where the network is half duplex (then the
    /// lower rank comes first).
    Pair(Rank, Rank),
    /// The medium of a bus.
    Bus,
    /// A link shared by all pairs of two clusters: its place in the platform file, and the direction.
    Shared {
        /// Which `[[network.link]]`, from 0.
        number: usize,
        /// From the second of `between` to the first; never true where it is half duplex or inside one cluster.
        backward: bool,
    },
    /// What joins a processor or a cluster to the rest: its place in the platform file, and the direction.
    Uplink {
        /// Which `[[network.uplink]]`, from 0.
        number: usize,
        /// Into the processor or cluster; never true where it is half duplex.
        down: bool,
    },
}

/// One of the wires that a hop crosses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// What messages compete for.
    pub wire: Wire,
    /// What this wire costs this message.
    pub link: Link,
    /// The wire's own bytes per second, which is the same for every message on it: along rows, from the lower rank
    /// to the higher where both directions share it, between the first two processors on a bus.
    pub capacity: f64,
}

/// One hop of a message: from one processor to the next, which has it whole before it goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The cost of all its wires together: latencies add up, the slowest sets the pace.
    pub link: Link,
    /// The wires, in order, that it occupies at once.
    pub crossings: Vec<Crossing>,
}

impl Network {
    /// A network that costs nothing: every pair joined, both directions at once, not emulated.
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
            uplinks: Vec::new(),
            chains: Vec::new(),
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
        network
    }

    /// Joins processors and clusters to the rest by links of their own: `uplinks` are names with costs.
    pub(super) fn join(&mut self, names: &[(String, String)], uplinks: &[(String, Link)]) {
        self.uplinks = uplinks.iter().map(|u| u.1).collect();
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

    /// The link from one processor to another (free to itself), all wires together.
    pub fn link(&self, from: Rank, to: Rank) -> Link {
        if from == to || self.uplinks.is_empty() {
            return self.direct(from, to);
        }
        let (up, down) = self.uplinks_between(from, to);
        up.chain(down).fold(self.direct(from, to), |sum, i| sum.then(self.uplinks[i]))
    }

    /// The pair's own link.
    fn direct(&self, from: Rank, to: Rank) -> Link {
        if from == to {
            return Link::FREE;
        }
        match (self.classes.get(from.0), self.classes.get(to.0)) {
            (Some(a), Some(b)) => self.table[a * self.count + b],
            _ => self.default,
        }
    }

    /// The uplinks that a message crosses on its way out and on its way in: those that the two ends do not share.
    fn uplinks_between(
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

    /// The link that a pair shares with others, if it does.
    fn trunk(&self, from: Rank, to: Rank) -> Option<Trunk> {
        match (self.classes.get(from.0), self.classes.get(to.0)) {
            (Some(a), Some(b)) => self.shared[a * self.count + b],
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

    fn hop(&self, from: Rank, to: Rank) -> Route {
        let pair = |(from, to): (Rank, Rank)| (Wire::Pair(from, to), self.direct(from, to).horizontal);
        let (wire, capacity) = match (self.topology, self.trunk(from, to)) {
            (Topology::Bus, _) => (Wire::Bus, self.direct(Rank(0), Rank(1)).horizontal),
            (_, Some(t)) => {
                (Wire::Shared { number: t.number, backward: t.backward && self.duplex }, t.bandwidth)
            }
            _ if self.duplex => pair((from, to)),
            _ => pair((from.min(to), from.max(to))),
        };
        let (up, down) = self.uplinks_between(from, to);
        let uplink = |number: usize, down: bool| {
            let (link, wire) = (self.uplinks[number], Wire::Uplink { number, down: down && self.duplex });
            Crossing { wire, link, capacity: link.horizontal }
        };
        let own = Crossing { wire, link: self.direct(from, to), capacity };
        let crossings: Vec<Crossing> =
            up.map(|i| uplink(i, false)).chain([own]).chain(down.map(|i| uplink(i, true))).collect();
        let link = crossings.iter().fold(Link::FREE, |sum, c| sum.then(c.link));
        Route { link, crossings }
    }

    /// The network between some of the processors, renumbered in the order given. A star whose centre is
    /// not among them becomes a full network of the same links.
    pub(super) fn select(&self, ranks: &[Rank]) -> Self {
        let topology = match self.topology {
            Topology::Star { centre } => ranks
                .iter()
                .position(|r| *r == centre)
                .map_or(Topology::Full, |place| Topology::Star { centre: Rank(place) }),
            other => other,
        };
        let classes = ranks.iter().filter_map(|r| self.classes.get(r.0).copied()).collect();
        let chains = ranks.iter().filter_map(|r| self.chains.get(r.0).cloned()).collect();
        Self { topology, classes, chains, ..self.clone() }
    }

    /// True if no message costs any time.
    pub fn is_free(&self) -> bool {
        [self.default].iter().chain(&self.table).chain(&self.uplinks).all(|l| *l == Link::FREE)
    }
}

/// How exactly `pattern` names a processor: 0 not at all, 1.. a cluster (deeper is more), 7 the processor itself.
fn specificity(pattern: &str, name: &str, cluster: &str) -> u8 {
    if pattern == name {
        return 7;
    }
    let inside = cluster.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if inside { 1 + pattern.matches('/').count().min(5) as u8 } else { 0 }
}

/// The default, overridden by the most specific exception that matches (the later one among equals); and the link
/// that the pair shares with others, if the exception that gives the bandwidth says so.
fn best_link(default: Link, exceptions: &[Exception], from: &[u8], to: &[u8]) -> (Link, Option<Trunk>) {
    let mut latency = (0, default.latency);
    let mut bandwidth = (0, (default.horizontal, default.vertical));
    let mut trunk = None;
    let mut links = 0;
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
                trunk = e.shared.then_some(Trunk { number: links, backward, bandwidth: w.0 });
            }
        }
        links += usize::from(!e.directed);
    }
    let link = Link { latency: latency.1, horizontal: bandwidth.1.0, vertical: bandwidth.1.1 };
    (link, trunk)
}

#[cfg(test)]
mod tests;
