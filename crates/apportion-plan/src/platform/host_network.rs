//! What messages between hosts cost, as measured at the start of a run.

use super::network::{Link, Network};
use crate::error::{Error, Result};
use crate::units::{show_bytes, show_seconds};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// The cost of messages between the hosts of a world. Messages within a host count as free.
#[derive(Debug, Clone, PartialEq)]
pub struct HostNetwork {
    /// The hosts' names; all differ.
    pub hosts: Vec<String>,
    /// The index of each rank's host.
    pub of_rank: Vec<usize>,
    /// A link from every host to every other one.
    pub links: Vec<HostLink>,
    /// True if the numbers are those of an earlier run.
    pub remembered: bool,
}

/// The cost of messages from one host to another: `latency + bytes / bandwidth`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostLink {
    /// Index of the sender's host.
    pub from: usize,
    /// Index of the receiver's host.
    pub to: usize,
    /// Seconds of an empty message.
    pub latency: f64,
    /// Bytes per second that the link sustains.
    pub bandwidth: f64,
}

/// Bytes per second that a remembered link may have.
const CREDIBLE: RangeInclusive<f64> = 1.0..=1e13;

/// The number of links that a note shows.
const SHOWN: usize = 4;

impl HostNetwork {
    /// The JSON object of reports and of the cache.
    pub fn to_value(&self) -> Value {
        let link = |l: &HostLink| {
            json!({"from": self.hosts[l.from], "to": self.hosts[l.to], "latency": l.latency,
                "bandwidth": l.bandwidth})
        };
        json!({"source": if self.remembered { "remembered" } else { "measured" },
            "hosts": self.hosts, "host_of_rank": self.of_rank,
            "links": self.links.iter().map(link).collect::<Vec<_>>()})
    }

    /// Parses what [`to_value`](Self::to_value) returned, as the network of an earlier run.
    ///
    /// # Errors
    /// Another object, links that are missing, numbers out of range: exit code 2.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |what: &str| {
            Error::input("remembered network", what.to_owned(), "measure it again (--remeasure)")
        };
        let value: Value = serde_json::from_str(text).map_err(|_| refuse("is not JSON"))?;
        let list = |field: &str| value[field].as_array().ok_or_else(|| refuse("lacks a field"));
        let hosts: Option<Vec<String>> =
            list("hosts")?.iter().map(|name| name.as_str().map(str::to_owned)).collect();
        let hosts = hosts.ok_or_else(|| refuse("has a host without a name"))?;
        let of_rank: Option<Vec<usize>> = list("host_of_rank")?
            .iter()
            .map(|host| host.as_u64().map(|host| host as usize).filter(|host| *host < hosts.len()))
            .collect();
        let of_rank = of_rank.ok_or_else(|| refuse("has a rank on no host"))?;
        let link = |link: &Value| {
            let host = |field: &str| hosts.iter().position(|name| link[field] == name.as_str());
            let number = |field: &str| link[field].as_f64().filter(|x| *x >= 0.0 && x.is_finite());
            Some(HostLink {
                from: host("from")?,
                to: host("to")?,
                latency: number("latency").filter(|seconds| *seconds < 3600.0)?,
                bandwidth: number("bandwidth").filter(|bandwidth| CREDIBLE.contains(bandwidth))?,
            })
        };
        let links: Option<Vec<HostLink>> = list("links")?.iter().map(link).collect();
        let links = links.ok_or_else(|| refuse("has a damaged link"))?;
        let network = Self { hosts, of_rank, links, remembered: true };
        let pairs = (0..network.hosts.len()).flat_map(|a| (0..network.hosts.len()).map(move |b| (a, b)));
        match pairs.filter(|(a, b)| a != b).all(|(a, b)| network.link(a, b).is_some()) {
            true => Ok(network),
            false => Err(refuse("lacks a link")),
        }
    }

    /// Names hosts, and which rank is on which.
    pub fn key(hosts: &[String], of_rank: &[usize]) -> String {
        format!("{hosts:?} {of_rank:?}")
    }

    fn link(&self, from: usize, to: usize) -> Option<&HostLink> {
        self.links.iter().find(|link| (link.from, link.to) == (from, to))
    }

    /// A sentence for users: each link, or the slowest and the fastest where there are many.
    pub fn describe(&self) -> String {
        let show = |l: &HostLink| {
            format!(
                "{} -> {} {}, {}/s",
                self.hosts[l.from],
                self.hosts[l.to],
                show_seconds(l.latency),
                show_bytes(l.bandwidth)
            )
        };
        let mut links: Vec<&HostLink> = self.links.iter().collect();
        if links.len() > SHOWN {
            links.sort_by(|x, y| x.bandwidth.total_cmp(&y.bandwidth));
            let ends = [links[0], links[links.len() - 1]].map(show);
            let (links, hosts) = (links.len(), self.hosts.len());
            return format!("{links} links between {hosts} hosts, from {} to {}", ends[0], ends[1]);
        }
        links.into_iter().map(show).collect::<Vec<_>>().join("; ")
    }
}

impl Serialize for HostNetwork {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HostNetwork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let network = Self::parse(&value.to_string()).map_err(D::Error::custom)?;
        Ok(Self { remembered: value["source"] == "remembered", ..network })
    }
}

impl Network {
    /// The network of a world whose hosts are joined by these links. Messages between ranks of one host are
    /// free; those to another host share one link with those of all other ranks of these two hosts.
    pub fn between_hosts(hosts: HostNetwork) -> Self {
        let count = hosts.hosts.len();
        let mut network = Self::of_classes(hosts.of_rank.clone(), count);
        for link in &hosts.links {
            let HostLink { from, to, latency, bandwidth } = *link;
            let names = (hosts.hosts[from].clone(), hosts.hosts[to].clone());
            let cost = Link { latency, horizontal: bandwidth, vertical: bandwidth };
            let alone = |host: usize| hosts.of_rank.iter().filter(|of| **of == host).count() < 2;
            let shared = !(alone(from) && alone(to));
            network.join_classes(from, to, shared.then_some(names), cost);
        }
        network.hosts = Some(Box::new(hosts));
        network
    }

    /// The network between hosts that this was made from, if it was measured at the start of a run.
    pub fn hosts(&self) -> Option<&HostNetwork> {
        self.hosts.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rank;
    use crate::platform::{Platform, Wire, parse_platform};

    fn two() -> HostNetwork {
        let link = |from, to, bandwidth| HostLink { from, to, latency: 1e-4, bandwidth };
        HostNetwork {
            hosts: vec!["alpha".into(), "beta".into()],
            of_rank: vec![0, 0, 1, 1],
            links: vec![link(0, 1, 12e6), link(1, 0, 6e6)],
            remembered: false,
        }
    }

    #[test]
    fn ranks_of_a_host_share_its_link() {
        let network = Network::between_hosts(two());
        assert!(!network.is_free() && network.hosts() == Some(&two()));
        assert_eq!(network.link(Rank(0), Rank(1)), Link::FREE);
        assert_eq!(network.link(Rank(1), Rank(3)).vertical, 12e6);
        assert_eq!(network.link(Rank(2), Rank(0)).horizontal, 6e6);
        let wire = |from, to| network.route(Rank(from), Rank(to))[0].crossings[0].wire;
        assert_eq!(wire(0, 2), wire(1, 3));
        assert_ne!(wire(0, 2), wire(2, 0));
        assert!(matches!(wire(0, 2), Wire::Shared { .. }) && matches!(wire(0, 1), Wire::Pair(..)));
        // One rank on each host: no two messages share a link.
        let alone = Network::between_hosts(HostNetwork { of_rank: vec![0, 1], ..two() });
        assert_eq!(alone.link(Rank(1), Rank(0)).horizontal, 6e6);
        assert!(alone.has_a_wire_for_each_pair());
    }

    #[test]
    fn a_platform_file_says_the_same() {
        let mut platform = Platform::from_names(&["a", "b", "c", "d"].map(String::from));
        for (processor, host) in platform.processors.iter_mut().zip(["alpha", "alpha", "beta", "beta"]) {
            processor.cluster = host.into();
        }
        platform.network = Network::between_hosts(two());
        let again = parse_platform(&platform.to_toml(), "again").unwrap();
        for (i, j) in (0..16).map(|x| (Rank(x / 4), Rank(x % 4))).filter(|(i, j)| i != j) {
            assert_eq!(again.network.link(i, j), platform.network.link(i, j), "{}", platform.to_toml());
        }
    }

    #[test]
    fn what_is_remembered_is_checked() {
        let text = two().to_value().to_string();
        assert_eq!(HostNetwork::parse(&text).unwrap(), HostNetwork { remembered: true, ..two() });
        for (old, new) in [
            ("12000000.0", "1e90"),
            ("12000000.0", "-1"),
            ("12000000.0", "0"),
            ("0.0001", "1e9"),
            ("[0,0,1,1]", "[0,0,1,2]"),
            ("\"to\":\"beta\"", "\"to\":\"gamma\""),
            ("\"to\":\"beta\"", "\"to\":\"alpha\""),
            ("{", "["),
        ] {
            assert!(text.contains(old), "{text}");
            assert!(HostNetwork::parse(&text.replacen(old, new, 1)).is_err(), "{new}");
        }
    }

    #[test]
    fn descriptions_are_short() {
        assert_eq!(two().describe(), "alpha -> beta 100 us, 12.0 MB/s; beta -> alpha 100 us, 6.0 MB/s");
        let many = HostNetwork { links: two().links.repeat(5), ..two() };
        assert!(many.describe().starts_with("10 links between 2 hosts, from beta -> alpha"));
    }
}
