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
    count: usize,
}

/// One hop of a message: a link, and the wire (shared resource) that it occupies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Route {
    /// The link's cost.
    pub link: Link,
    /// The wire: transfers on the same wire go one after the other.
    pub wire: (Rank, Rank),
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
            count: 0,
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
        network.table = (0..kinds.len() * kinds.len())
            .map(|i| {
                let (from, to) = (&kinds[i / kinds.len()], &kinds[i % kinds.len()]);
                best_link(default, exceptions, from, to)
            })
            .collect();
        network
    }

    /// The link from one processor to another (free to itself).
    pub fn link(&self, from: Rank, to: Rank) -> Link {
        if from == to {
            return Link::FREE;
        }
        match (self.classes.get(from.0), self.classes.get(to.0)) {
            (Some(a), Some(b)) => self.table[a * self.count + b],
            _ => self.default,
        }
    }

    /// The hops that a message takes, in order, with the wire that each occupies.
    pub fn route(&self, from: Rank, to: Rank) -> Vec<Route> {
        let hop = |from: Rank, to: Rank| Route {
            link: self.link(from, to),
            wire: match (self.topology, self.duplex) {
                (Topology::Bus, _) => (Rank(0), Rank(0)),
                (_, true) => (from, to),
                (_, false) => (from.min(to), from.max(to)),
            },
        };
        match self.topology {
            Topology::Star { centre } if from != centre && to != centre => {
                vec![hop(from, centre), hop(centre, to)]
            }
            _ => vec![hop(from, to)],
        }
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
        Self { topology, classes, ..self.clone() }
    }

    /// The same network among `p` processors with some links replaced.
    pub(super) fn with_links(&self, p: usize, links: &[(Rank, Rank, bool, Link)]) -> Self {
        let mut table: Vec<Link> = (0..p * p).map(|i| self.link(Rank(i / p), Rank(i % p))).collect();
        for &(from, to, both_ways, link) in links {
            table[from.0 * p + to.0] = link;
            if both_ways {
                table[to.0 * p + from.0] = link;
            }
        }
        Self { classes: (0..p).collect(), table, count: p, ..self.clone() }
    }

    /// The link where nothing else is said.
    pub(super) fn default_link(&self) -> Link {
        self.default
    }

    /// True if every pair has the default link.
    pub(super) fn is_uniform(&self) -> bool {
        self.table.iter().all(|link| *link == self.default)
    }

    /// True if no message costs any time.
    pub fn is_free(&self) -> bool {
        self.default == Link::FREE && self.table.iter().all(|l| *l == Link::FREE)
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

/// The default, overridden by the most specific exception that matches (the later one among equals).
fn best_link(default: Link, exceptions: &[Exception], from: &[u8], to: &[u8]) -> Link {
    let mut latency = (0, default.latency);
    let mut bandwidth = (0, (default.horizontal, default.vertical));
    for (i, e) in exceptions.iter().enumerate() {
        let forward = (from[i] / 8, to[i] % 8);
        let backward = if e.directed { (0, 0) } else { (from[i] % 8, to[i] / 8) };
        for (a, b) in [forward, backward] {
            if a == 0 || b == 0 {
                continue;
            }
            let rank = a + b;
            if let Some(l) = e.latency.filter(|_| rank >= latency.0) {
                latency = (rank, l);
            }
            if let Some(w) = e.bandwidth.filter(|_| rank >= bandwidth.0) {
                bandwidth = (rank, w);
            }
        }
    }
    Link { latency: latency.1, horizontal: bandwidth.1.0, vertical: bandwidth.1.1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_relays_and_a_bus_shares() {
        let mut network = Network::uniform(1.0, 10.0);
        network.topology = Topology::Star { centre: Rank(1) };
        let route = network.route(Rank(0), Rank(2));
        assert_eq!(
            route.iter().map(|r| r.wire).collect::<Vec<_>>(),
            [(Rank(0), Rank(1)), (Rank(1), Rank(2))]
        );
        network.topology = Topology::Bus;
        assert_eq!(network.route(Rank(0), Rank(2))[0].wire, network.route(Rank(2), Rank(1))[0].wire);
    }

    #[test]
    fn half_duplex_shares_one_wire_and_hockney_adds_up() {
        let mut network = Network::uniform(0.5, 100.0);
        assert_ne!(network.route(Rank(0), Rank(1))[0].wire, network.route(Rank(1), Rank(0))[0].wire);
        network.duplex = false;
        assert_eq!(network.route(Rank(0), Rank(1))[0].wire, network.route(Rank(1), Rank(0))[0].wire);
        assert_eq!(network.link(Rank(0), Rank(1)).seconds(150.0, 50.0), 2.5);
    }

    #[test]
    fn the_most_specific_exception_wins() {
        let names: Vec<(String, String)> = [("a1", "s/a"), ("a2", "s/a"), ("b1", "s/b")]
            .map(|(n, c)| (n.to_string(), c.to_string()))
            .to_vec();
        let exception = |x: &str, y: &str, bandwidth: f64| Exception {
            between: (x.into(), y.into()),
            latency: None,
            bandwidth: Some((bandwidth, bandwidth)),
            directed: false,
        };
        let network = Network::resolved(
            Link { latency: 0.0, horizontal: 1.0, vertical: 1.0 },
            &names,
            &[
                exception("a1", "a2", 5.0),
                exception("s/a", "s/a", 4.0),
                exception("s", "s", 2.0),
                exception("s/b", "s/a", 3.0),
            ],
        );
        assert_eq!(network.link(Rank(0), Rank(1)).horizontal, 5.0);
        assert_eq!(network.link(Rank(0), Rank(2)).horizontal, 3.0);
        assert_eq!(network.link(Rank(2), Rank(1)).horizontal, 3.0);
        assert_eq!(network.link(Rank(1), Rank(1)), Link::FREE);
    }
}
