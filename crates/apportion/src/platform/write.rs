//! A network as text: what the platform file needs to say to read the same.

use super::network::{Link, Network, Topology};
use crate::rect::Rank;

impl Network {
    /// The `[network]` table and its exceptions, among processors of these names; empty for a free network.
    pub(super) fn to_toml(&self, names: &[String]) -> String {
        let exceptions = self.exceptions(names);
        let default = self.default_link();
        let mut body = link_fields(default, Link::FREE);
        if !self.duplex {
            body += "duplex = false\n";
        }
        match self.topology {
            Topology::Full => {}
            Topology::Bus => body += "topology = \"bus\"\n",
            Topology::Star { centre } => {
                body += &format!("topology = \"star\"\ncentre = {}\n", quoted(&names[centre.0]));
            }
        }
        if self.emulate {
            body += "emulate = true\n";
        }
        if body.is_empty() && exceptions.is_empty() {
            return String::new();
        }
        format!("\n[network]\n{body}{exceptions}")
    }

    /// A `[[network.link]]` for every pair whose link is not the default, or two where its directions differ.
    fn exceptions(&self, names: &[String]) -> String {
        let default = self.default_link();
        let mut out = String::new();
        let mut say = |from: usize, to: usize, directed: bool, link: Link| {
            if link == default {
                return;
            }
            let between = format!("[{}, {}]", quoted(&names[from]), quoted(&names[to]));
            out += &format!("\n[[network.link]]\nbetween = {between}\n");
            if directed {
                out += "directed = true\n";
            }
            out += &link_fields(link, default);
        };
        if self.is_uniform() {
            return String::new();
        }
        for i in 0..names.len() {
            for j in i + 1..names.len() {
                let (there, back) = (self.link(Rank(i), Rank(j)), self.link(Rank(j), Rank(i)));
                say(i, j, there != back, there);
                if there != back {
                    say(j, i, true, back);
                }
            }
        }
        out
    }
}

/// Latency and bandwidth where they differ from what holds without them.
fn link_fields(link: Link, otherwise: Link) -> String {
    let mut out = String::new();
    if link.latency != otherwise.latency {
        out += &format!("latency = {:?}\n", link.latency);
    }
    let (horizontal, vertical) = (link.horizontal, link.vertical);
    if (horizontal, vertical) != (otherwise.horizontal, otherwise.vertical) {
        out += &if horizontal == vertical {
            format!("bandwidth = {horizontal:?}\n")
        } else {
            format!("bandwidth = {{ horizontal = {horizontal:?}, vertical = {vertical:?} }}\n")
        };
    }
    out
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use crate::platform::{Link, Network, Platform, Topology, parse_platform};
    use crate::rect::Rank;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_written_network_reads_the_same(
            p in 1usize..5,
            default in prop::option::of((0.0f64..1.0, 1.0f64..1e12)),
            links in prop::collection::vec((0usize..5, 0usize..5, any::<bool>(), 0.0f64..1.0, 1.0f64..1e12, 1.0f64..1e12), 0..6),
            (duplex, emulate, topology) in (any::<bool>(), any::<bool>(), 0usize..3),
        ) {
            let mut platform = Platform::from_speeds(&vec![1.0; p]).unwrap();
            if let Some((latency, bandwidth)) = default {
                platform.network = Network::uniform(latency, bandwidth);
            }
            platform.network.duplex = duplex;
            platform.network.emulate = emulate;
            platform.network.topology = [Topology::Full, Topology::Bus, Topology::Star { centre: Rank(p - 1) }][topology];
            let links: Vec<_> = links
                .into_iter()
                .filter(|l| l.0 < p && l.1 < p && l.0 != l.1)
                .map(|(i, j, both, latency, horizontal, vertical)| {
                    (Rank(i), Rank(j), both, Link { latency, horizontal, vertical })
                })
                .collect();
            let platform = platform.with_links(&links);
            let again = parse_platform(&platform.to_toml(), "again").unwrap();
            for (i, j) in (0..p * p).map(|x| (Rank(x / p), Rank(x % p))).filter(|(i, j)| i != j) {
                prop_assert_eq!(again.network.link(i, j), platform.network.link(i, j));
            }
            let traits = |n: &Network| (n.duplex, n.emulate, n.topology);
            prop_assert_eq!(traits(&again.network), traits(&platform.network));
        }
    }
}
