//! `[network]` of a platform file.

use super::Reader;
use crate::error::Result;
use crate::geometry::Rank;
use crate::platform::network::{Exception, Link, Network, Topology};
use crate::platform::{DeviceMemory, Processor};
use crate::units::{Dimension, Quantity};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::collections::BTreeMap;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNetwork {
    latency: Option<Quantity>,
    bandwidth: Option<RawBandwidth>,
    duplex: Option<bool>,
    topology: Option<String>,
    centre: Option<String>,
    emulate: Option<bool>,
    #[serde(default)]
    link: Vec<RawLink>,
    #[serde(default)]
    uplink: Vec<RawUplink>,
    matrix: Option<RawMatrix>,
}

enum RawBandwidth {
    Same(Quantity),
    Directed(RawDirected),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDirected {
    horizontal: Option<Quantity>,
    vertical: Option<Quantity>,
    to: Option<Quantity>,
    from: Option<Quantity>,
}

impl RawDirected {
    /// The direction that is left out: there are two, along rows and columns, or to a device and from it.
    fn missing(&self) -> Option<&'static str> {
        match (&self.horizontal, &self.vertical, &self.to, &self.from) {
            (None, None, Some(_), None) => Some("from"),
            (None, None, None, Some(_)) => Some("to"),
            (None, _, None, None) => Some("horizontal"),
            (Some(_), None, None, None) => Some("vertical"),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for RawBandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = RawBandwidth;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "a bandwidth such as \"1 Gbit/s\", or { horizontal = \"…\", vertical = \"…\" }, or for a \
                     device { to = \"…\", from = \"…\" }",
                )
            }
            fn visit_f64<E: serde::de::Error>(self, v: f64) -> std::result::Result<RawBandwidth, E> {
                Ok(RawBandwidth::Same(Quantity::Number(v)))
            }
            fn visit_i64<E: serde::de::Error>(self, v: i64) -> std::result::Result<RawBandwidth, E> {
                self.visit_f64(v as f64)
            }
            fn visit_u64<E: serde::de::Error>(self, v: u64) -> std::result::Result<RawBandwidth, E> {
                self.visit_f64(v as f64)
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> std::result::Result<RawBandwidth, E> {
                Ok(RawBandwidth::Same(Quantity::Text(v.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<RawBandwidth, A::Error> {
                let directed = RawDirected::deserialize(MapAccessDeserializer::new(map))?;
                match directed.missing() {
                    Some(way) => Err(serde::de::Error::missing_field(way)),
                    None => Ok(RawBandwidth::Directed(directed)),
                }
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    between: (String, String),
    latency: Option<Quantity>,
    bandwidth: Option<RawBandwidth>,
    #[serde(default)]
    directed: bool,
    #[serde(default)]
    shared: bool,
    duplex: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUplink {
    of: String,
    latency: Option<Quantity>,
    bandwidth: RawBandwidth,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMatrix {
    clusters: Vec<String>,
    bandwidth: Option<Vec<Vec<Quantity>>>,
    latency: Option<Vec<Vec<Quantity>>>,
}

/// The device at one end of a link, and the name at the other end; `None` between two that are no devices.
fn device_of<'a>(between: &'a (String, String), processors: &[Processor]) -> Option<(Rank, &'a str)> {
    let device = |name: &String| processors.iter().position(|p| p.name == *name && p.device.is_some());
    let ends = [(&between.0, &between.1), (&between.1, &between.0)];
    ends.into_iter().find_map(|(end, other)| Some((Rank(device(end)?), other.as_str())))
}

impl Reader<'_> {
    pub(super) fn network(&self, raw: RawNetwork, processors: &[Processor]) -> Result<Network> {
        let latency = match &raw.latency {
            Some(q) => self.quantity("network.latency", q, Dimension::Time)?,
            None => 0.0,
        };
        let (horizontal, vertical) = match &raw.bandwidth {
            Some(b) => self.bandwidth("network.bandwidth", b)?,
            None => (f64::INFINITY, f64::INFINITY),
        };
        let (mut exceptions, mut devices) = (Vec::new(), BTreeMap::new());
        for (rank, processor) in processors.iter().enumerate().filter(|(_, p)| p.device.is_some()) {
            devices.insert(Rank(rank), DeviceMemory::behind_unknown_link(processor.memory));
        }
        if let Some(matrix) = &raw.matrix {
            self.matrix(matrix, processors, &mut exceptions)?;
        }
        for (i, link) in raw.link.iter().enumerate() {
            let field = format!("network.link {}", i + 1);
            if link.shared && link.bandwidth.is_none() {
                let remedy = "give the bandwidth of the link that all its pairs share";
                return Err(self.error(&field, "is shared but has no bandwidth of its own", remedy));
            }
            let between = (
                self.check_name(&field, &link.between.0, processors)?,
                self.check_name(&field, &link.between.1, processors)?,
            );
            if let Some((rank, host)) = device_of(&between, processors) {
                let memory = self.device_memory(&field, link, &processors[rank.0], host)?;
                if devices.insert(rank, memory).is_some_and(|known| known.host.is_some()) {
                    let what = format!("\"{}\" has a link to its host already", processors[rank.0].name);
                    return Err(self.error(&field, what, "give every device one link"));
                }
                continue;
            }
            if link.duplex.is_some() {
                let remedy = "remove it, or set network.duplex for all links between processors";
                return Err(self.error(&field, "has duplex, which only the link of a device has", remedy));
            }
            exceptions.push(Exception {
                between,
                latency: match &link.latency {
                    Some(q) => Some(self.quantity(&format!("{field}: latency"), q, Dimension::Time)?),
                    None => None,
                },
                bandwidth: match &link.bandwidth {
                    Some(b) => Some(self.bandwidth(&format!("{field}: bandwidth"), b)?),
                    None => None,
                },
                directed: link.directed,
                shared: link.shared.then_some(i),
            });
        }
        let names: Vec<_> = processors.iter().map(|p| (p.name.clone(), p.cluster.clone())).collect();
        let default = Link { latency, horizontal, vertical };
        let mut network = Network::resolved(default, &names, &exceptions);
        network.join(&names, &self.uplinks(&raw.uplink, processors)?);
        network.duplex = raw.duplex.unwrap_or(true);
        network.emulate = raw.emulate.unwrap_or(false);
        network.topology = self.topology(&raw, processors)?;
        network.devices = devices;
        Ok(network)
    }

    /// The memory of a device behind a link to its host.
    fn device_memory(
        &self,
        field: &str,
        link: &RawLink,
        device: &Processor,
        host: &str,
    ) -> Result<DeviceMemory> {
        let Some(bandwidth) = &link.bandwidth else {
            let what = format!("is the link of the device \"{}\" and has no bandwidth", device.name);
            let remedy = "give bandwidth = { to = \"12 GB/s\", from = \"12 GB/s\" }";
            return Err(self.error(field, what, remedy));
        };
        if link.shared || link.directed {
            let what = format!("is the link of the device \"{}\"", device.name);
            return Err(self.error(
                field,
                what,
                "remove shared and directed: it has both directions to itself",
            ));
        }
        let latency = match &link.latency {
            Some(q) => self.quantity(&format!("{field}: latency"), q, Dimension::Time)?,
            None => 0.0,
        };
        let both = self.bandwidth_of(&format!("{field}: bandwidth"), bandwidth, ["to", "from"])?;
        let memory = DeviceMemory::behind_unknown_link(device.memory).behind(host, latency, both);
        Ok(DeviceMemory { duplex: link.duplex.unwrap_or(true), ..memory })
    }

    fn uplinks(&self, raw: &[RawUplink], processors: &[Processor]) -> Result<Vec<(String, Link)>> {
        let mut uplinks: Vec<(String, Link)> = Vec::new();
        for (i, uplink) in raw.iter().enumerate() {
            let field = format!("network.uplink {}", i + 1);
            let name = self.check_name(&field, &uplink.of, processors)?;
            if uplinks.iter().any(|(known, _)| *known == name) {
                let what = format!("\"{name}\" has an uplink already");
                return Err(self.error(&field, what, "give every processor or cluster at most one"));
            }
            let (horizontal, vertical) = self.bandwidth(&format!("{field}: bandwidth"), &uplink.bandwidth)?;
            let latency = match &uplink.latency {
                Some(q) => self.quantity(&format!("{field}: latency"), q, Dimension::Time)?,
                None => 0.0,
            };
            uplinks.push((name, Link { latency, horizontal, vertical }));
        }
        Ok(uplinks)
    }

    fn topology(&self, raw: &RawNetwork, processors: &[Processor]) -> Result<Topology> {
        let kind = raw.topology.as_deref().unwrap_or("full");
        if raw.centre.is_some() && kind != "star" {
            return Err(self.error(
                "network.centre",
                format!("a \"{kind}\" topology has no centre"),
                "set topology = \"star\", or remove the centre",
            ));
        }
        match kind {
            "full" => Ok(Topology::Full),
            "bus" => Ok(Topology::Bus),
            "star" => {
                let centre = raw.centre.as_deref().unwrap_or_default();
                let rank = processors.iter().position(|p| p.name == centre);
                rank.map(|r| Topology::Star { centre: Rank(r) }).ok_or_else(|| {
                    self.error(
                        "network.centre",
                        format!("\"{centre}\" is not a processor"),
                        "name the processor that relays messages",
                    )
                })
            }
            other => Err(self.error(
                "network.topology",
                format!("unknown topology \"{other}\""),
                "use \"full\", \"star\" or \"bus\"",
            )),
        }
    }

    fn bandwidth(&self, field: &str, raw: &RawBandwidth) -> Result<(f64, f64)> {
        self.bandwidth_of(field, raw, ["horizontal", "vertical"])
    }

    /// One bandwidth for both ways, or those of the ways that have these names here.
    fn bandwidth_of(&self, field: &str, raw: &RawBandwidth, ways: [&str; 2]) -> Result<(f64, f64)> {
        let directed = match raw {
            RawBandwidth::Same(q) => {
                let value = self.positive(field, q, Dimension::Bandwidth)?;
                return Ok((value, value));
            }
            RawBandwidth::Directed(directed) => directed,
        };
        let RawDirected { horizontal, vertical, to, from } = directed;
        let given = [("horizontal", horizontal), ("vertical", vertical), ("to", to), ("from", from)];
        let unknown = given.iter().find(|(way, q)| q.is_some() && !ways.contains(way));
        if let Some((way, _)) = unknown {
            let what = format!("has \"{way}\"");
            let remedy = format!("give {{ {} = …, {} = … }}, or one bandwidth", ways[0], ways[1]);
            return Err(self.error(field, what, &remedy));
        }
        let of = |way: &str| {
            let found = given.iter().find(|(name, _)| *name == way).and_then(|(_, q)| q.as_ref());
            let remedy = "give both directions, or one bandwidth for both";
            let q = found.ok_or_else(|| self.error(field, format!("lacks \"{way}\""), remedy))?;
            self.positive(&format!("{field}.{way}"), q, Dimension::Bandwidth)
        };
        Ok((of(ways[0])?, of(ways[1])?))
    }

    fn check_name(&self, field: &str, name: &str, processors: &[Processor]) -> Result<String> {
        let known = processors.iter().any(|p| {
            p.name == name
                || p.cluster.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if known && !name.is_empty() {
            return Ok(name.to_owned());
        }
        Err(self.error(
            field,
            format!("\"{name}\" is neither a processor nor a cluster"),
            "use a name that a [[processor]] has",
        ))
    }

    /// A table's entry `[i][j]` is the link from cluster i to cluster j.
    fn matrix(
        &self,
        raw: &RawMatrix,
        processors: &[Processor],
        exceptions: &mut Vec<Exception>,
    ) -> Result<()> {
        let n = raw.clusters.len();
        for cluster in &raw.clusters {
            self.check_name("network.matrix.clusters", cluster, processors)?;
        }
        let tables = [("bandwidth", &raw.bandwidth), ("latency", &raw.latency)];
        for (what, table) in tables {
            let Some(table) = table else { continue };
            let field = format!("network.matrix.{what}");
            if table.len() != n || table.iter().any(|row| row.len() != n) {
                return Err(self.error(
                    &field,
                    format!("is not a {n} x {n} table"),
                    "give one row and one column per entry of clusters",
                ));
            }
            for (i, j) in (0..n * n).map(|x| (x / n, x % n)) {
                let at = format!("{field}[{i}][{j}]");
                let q = &table[i][j];
                let (latency, bandwidth) = if what == "latency" {
                    (Some(self.quantity(&at, q, Dimension::Time)?), None)
                } else {
                    let b = self.positive(&at, q, Dimension::Bandwidth)?;
                    (None, Some((b, b)))
                };
                exceptions.push(Exception {
                    between: (raw.clusters[i].clone(), raw.clusters[j].clone()),
                    latency,
                    bandwidth,
                    directed: true,
                    shared: None,
                });
            }
        }
        Ok(())
    }
}
