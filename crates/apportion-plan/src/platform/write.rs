//! The text of a network in a platform file.

use super::device_memory::DeviceMemory;
use super::network::{Link, Network, Topology};
use crate::geometry::Rank;

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
        let devices = self.device_links(names);
        if body.is_empty() && exceptions.is_empty() && devices.is_empty() {
            return String::new();
        }
        format!("\n[network]\n{body}{exceptions}{devices}")
    }

    /// The links of devices to their hosts, as far as they are known.
    fn device_links(&self, names: &[String]) -> String {
        let link = |(rank, memory): (&Rank, &DeviceMemory)| {
            let host = memory.host.as_ref()?;
            let DeviceMemory { latency, up, down, .. } = memory;
            let duplex = if memory.duplex { "" } else { "duplex = false\n" };
            let fields =
                format!("latency = {latency:?}\nbandwidth = {{ to = {up:?}, from = {down:?} }}\n{duplex}");
            Some(exception(&names[rank.0], host, false, &fields))
        };
        self.devices.iter().filter_map(link).collect()
    }

    /// Shared links and uplinks, and a `[[network.link]]` for every pair whose own link is not the default,
    /// or two where its directions differ.
    fn exceptions(&self, names: &[String]) -> String {
        let mut out = String::new();
        for (name, link) in self.uplinks() {
            out +=
                &format!("\n[[network.uplink]]\nof = {}\n{}", quoted(name), link_fields(*link, Link::FREE));
        }
        if self.is_uniform() {
            return out;
        }
        let pairs = |p: usize| (0..p * p).map(move |x| (Rank(x / p), Rank(x % p))).filter(|(i, j)| i != j);
        let shared = self.trunks().count() > 0;
        for (number, between) in self.trunks() {
            let mut users =
                pairs(names.len()).filter(|&(i, j)| self.trunk(i, j).is_some_and(|t| t.number == number));
            let Some((i, j)) = users.next() else { continue };
            let both = users.chain([(i, j)]).any(|(i, j)| self.trunk(i, j).is_some_and(|t| t.backward));
            let link = Link { latency: self.default_link().latency, ..self.direct(i, j) };
            let directed = !both && between.0 != between.1;
            // A shared link needs a bandwidth of its own, also where it is that of all others.
            let otherwise = Link { latency: self.default_link().latency, ..UNSAID };
            out += &exception(&between.0, &between.1, directed, &link_fields(link, otherwise));
            out += "shared = true\n";
        }
        let mut say = |i: Rank, j: Rank, directed: bool| {
            let (link, default) = (self.direct(i, j), self.default_link());
            let fields = match self.trunk(i, j) {
                Some(_) => link_fields(Link { latency: link.latency, ..default }, default),
                // If a shared link might cover the pair, all its values are written.
                None if shared && link.horizontal.is_finite() => link_fields(link, UNSAID),
                None => link_fields(link, default),
            };
            if !fields.is_empty() {
                out += &exception(&names[i.0], &names[j.0], directed, &fields);
            }
        };
        // The link of a device to its host is written apart.
        let device = |rank: &Rank| self.devices.contains_key(rank);
        let among_cores = |(i, j): &(Rank, Rank)| i.0 < j.0 && !device(i) && !device(j);
        for (i, j) in pairs(names.len()).filter(among_cores) {
            let differ = self.direct(i, j) != self.direct(j, i)
                || self.trunk(i, j).is_some() != self.trunk(j, i).is_some();
            say(i, j, differ);
            if differ {
                say(j, i, true);
            }
        }
        out
    }
}

/// Differs from every link.
const UNSAID: Link = Link { latency: f64::NAN, horizontal: f64::NAN, vertical: f64::NAN };

fn exception(from: &str, to: &str, directed: bool, fields: &str) -> String {
    let directed = if directed { "directed = true\n" } else { "" };
    format!("\n[[network.link]]\nbetween = [{}, {}]\n{directed}{fields}", quoted(from), quoted(to))
}

/// Latency and bandwidth, if they differ from the values without them.
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
    use crate::geometry::Rank;
    use crate::platform::{Link, Network, PairLink, Platform, Topology, parse_platform};
    use proptest::prelude::*;

    #[test]
    fn what_pairs_share_survives() {
        let alike = "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n[network]\nbandwidth = 8\n\
            [[network.link]]\nbetween = [\"a\", \"b\"]\nbandwidth = 8\nshared = true\n";
        let platform = parse_platform(alike, "alike").unwrap();
        let again = parse_platform(&platform.to_toml(), "again").unwrap();
        assert_eq!(again.network.route(Rank(0), Rank(1)), platform.network.route(Rank(0), Rank(1)));
        let text = "[[processor]]\nname = \"a1\"\ncluster = \"a\"\n[[processor]]\nname = \"a2\"\ncluster = \"a\"\n[[processor]]\nname = \
            \"b1\"\ncluster = \"b\"\n[[processor]]\nname = \"b2\"\ncluster = \"b\"\n[network]\nlatency = 1\nbandwidth = 8\n\
            [[network.link]]\nbetween = [\"a\", \"b\"]\nbandwidth = 3\nlatency = 2\nshared = true\n\
            [[network.link]]\nbetween = [\"a1\", \"b1\"]\nbandwidth = 8\n\
            [[network.uplink]]\nof = \"a\"\nbandwidth = { horizontal = 5, vertical = 6 }\nlatency = 3\n";
        let platform = parse_platform(text, "first").unwrap();
        let again = parse_platform(&platform.to_toml(), "again").unwrap();
        for (i, j) in (0..16).map(|x| (Rank(x / 4), Rank(x % 4))).filter(|(i, j)| i != j) {
            assert_eq!(
                again.network.route(i, j),
                platform.network.route(i, j),
                "{i:?} {j:?}\n{}",
                platform.to_toml()
            );
        }
        let measured = platform.with_links(&[PairLink {
            from: Rank(0),
            to: Rank(1),
            both_ways: true,
            link: Link { latency: 9.0, horizontal: 9.0, vertical: 9.0 },
        }]);
        assert_eq!(measured.network.route(Rank(1), Rank(0))[0].crossings.len(), 1);
        assert_eq!(measured.network.link(Rank(1), Rank(2)), platform.network.link(Rank(1), Rank(2)));
    }

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
                .map(|(i, j, both_ways, latency, horizontal, vertical)| PairLink {
                    from: Rank(i),
                    to: Rank(j),
                    both_ways,
                    link: Link { latency, horizontal, vertical },
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
