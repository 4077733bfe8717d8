//! `platform.toml`: read strictly, refused by field.

mod network;

use super::{Emulated, Platform, Processor, Speed};
use crate::error::{Error, Result};
use crate::units::{Dimension, Quantity};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Most processors that a platform file may list.
const MOST_PROCESSORS: usize = 1_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlatform {
    name: Option<String>,
    #[serde(default)]
    processor: Vec<RawProcessor>,
    #[serde(default)]
    network: network::RawNetwork,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProcessor {
    name: String,
    cluster: Option<String>,
    speed: Option<Quantity>,
    memory: Option<Quantity>,
    cores: Option<Vec<usize>>,
    slowdown: Option<f64>,
    emulated: Option<Emulated>,
}

/// Reads a platform file.
///
/// # Errors
/// The file cannot be read, or [`parse_platform`] refuses it.
pub fn read_platform(path: &Path) -> Result<Platform> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, "read", e))?;
    parse_platform(&text, &path.display().to_string())
}

/// Reads the text of a platform file; `place` names it in errors.
///
/// # Errors
/// Malformed TOML or an unknown field (with its line); a quantity that is NaN, negative, zero where that
/// has no meaning, or has an unknown unit (with its field); names used twice; links between unknown names.
pub fn parse_platform(text: &str, place: &str) -> Result<Platform> {
    let raw: RawPlatform = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        Error::input(format!("{place}:{line}"), e.message(), "see the platform file format in the README")
    })?;
    let reader = Reader { place };
    let processors = reader.processors(raw.processor)?;
    let network = reader.network(raw.network, &processors)?;
    Ok(Platform { name: raw.name.unwrap_or_else(|| place.to_owned()), processors, network })
}

struct Reader<'a> {
    place: &'a str,
}

impl Reader<'_> {
    fn error(&self, field: &str, what: impl Into<String>, remedy: &str) -> Error {
        Error::input(format!("{}: {field}", self.place), what, remedy)
    }

    fn quantity(&self, field: &str, q: &Quantity, dimension: Dimension) -> Result<f64> {
        q.value(dimension).map_err(|what| self.error(field, what, "give a finite, non-negative quantity"))
    }

    fn positive(&self, field: &str, q: &Quantity, dimension: Dimension) -> Result<f64> {
        let value = self.quantity(field, q, dimension)?;
        if value == 0.0 {
            return Err(self.error(field, "is zero", "give a quantity greater than zero"));
        }
        Ok(value)
    }

    fn processors(&self, raw: Vec<RawProcessor>) -> Result<Vec<Processor>> {
        if raw.is_empty() {
            return Err(self.error(
                "processor",
                "the platform has no processor",
                "add at least one [[processor]] with a name",
            ));
        }
        if raw.len() > MOST_PROCESSORS {
            return Err(self.error(
                "processor",
                format!("{} processors are more than {MOST_PROCESSORS}", raw.len()),
                "group them into clusters",
            ));
        }
        let mut seen = BTreeSet::new();
        raw.into_iter()
            .map(|p| {
                if p.name.is_empty() || !seen.insert(p.name.clone()) {
                    return Err(self.error(
                        "processor.name",
                        format!("\"{}\" is empty or used twice", p.name),
                        "give every processor a name of its own",
                    ));
                }
                self.processor(p)
            })
            .collect()
    }

    fn processor(&self, raw: RawProcessor) -> Result<Processor> {
        let field = |f: &str| format!("processor \"{}\": {f}", raw.name);
        let speed = match &raw.speed {
            None => None,
            Some(q) => {
                let value = self.positive(&field("speed"), q, Dimension::Speed)?;
                Some(if q.has_unit() { Speed::Flops(value) } else { Speed::Relative(value) })
            }
        };
        let memory = match &raw.memory {
            None => None,
            Some(q) => match self.positive(&field("memory"), q, Dimension::Bytes)? as u64 {
                0 => {
                    let remedy = "give a whole number of bytes, or text such as \"16 GiB\"";
                    return Err(self.error(&field("memory"), "is less than one byte", remedy));
                }
                bytes => Some(bytes),
            },
        };
        let slowdown = raw.slowdown.unwrap_or(1.0);
        if !(slowdown.is_finite() && slowdown >= 1.0) {
            return Err(self.error(
                &field("slowdown"),
                format!("{slowdown} is not a number of at least 1"),
                "1.0 means not slowed, 9.0 nine times slower",
            ));
        }
        Ok(Processor {
            cluster: raw.cluster.unwrap_or_else(|| raw.name.clone()),
            name: raw.name,
            speed,
            memory,
            cores: raw.cores.unwrap_or_default(),
            slowdown,
            emulated: raw.emulated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Topology;
    use crate::rect::Rank;

    const TWO: &str = "name = \"two\"\n[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n";

    fn refused(text: &str) -> String {
        let error = parse_platform(text, "p.toml").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let message = error.to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    #[test]
    fn the_contract_example_is_read() {
        let text = r#"
name = "three-clusters"
[[processor]]
name = "orsay"
cluster = "orsay"
speed = 90.0
memory = "16 GiB"
cores = [0]
slowdown = 1.0
[[processor]]
name = "rennes"
speed = "2.5 Gflop/s"
[network]
latency = "50 us"
bandwidth = "1 Gbit/s"
duplex = true
topology = "star"
centre = "orsay"
[[network.link]]
between = ["orsay", "rennes"]
bandwidth = { horizontal = "56.39 MB/s", vertical = "10 MB/s" }
"#;
        let platform = parse_platform(text, "p.toml").unwrap();
        assert_eq!(platform.processors[0].memory, Some(16 << 30));
        assert_eq!(platform.processors[1].speed, Some(Speed::Flops(2.5e9)));
        let link = platform.network.link(Rank(1), Rank(0));
        assert_eq!((link.horizontal, link.vertical), (56.39e6, 10e6));
        assert_eq!(link.latency, 50.0 * 1e-6);
        assert_eq!(platform.network.topology, Topology::Star { centre: Rank(0) });
    }

    #[test]
    fn a_table_is_directed() {
        let text = format!(
            "{TWO}[network.matrix]\nclusters = [\"a\", \"b\"]\nbandwidth = [[\"1 MB/s\", \"2 MB/s\"], [\"3 MB/s\", \"4 MB/s\"]]\n"
        );
        let network = parse_platform(&text, "p.toml").unwrap().network;
        assert_eq!(network.link(Rank(0), Rank(1)).horizontal, 2e6);
        assert_eq!(network.link(Rank(1), Rank(0)).horizontal, 3e6);
    }

    #[test]
    fn defects_are_refused_by_place() {
        assert!(refused("[[processor]]\nname = \"a\"\nspede = 3\n").contains("p.toml:3"));
        assert!(refused("[[processor]]\nname = \"a\"\nspeed = nan\n").contains("speed"));
        assert!(refused("[[processor]]\nname = \"a\"\nspeed = 0\n").contains("zero"));
        assert!(refused("[[processor]]\nname = \"a\"\nspeed = -1\n").contains("negative"));
        assert!(refused("[[processor]]\nname = \"a\"\nslowdown = 0.5\n").contains("slowdown"));
        assert!(
            refused("[[processor]]\nname = \"a\"\nemulated = \"peek 3\"\n")
                .contains("p.toml:3: cannot make out")
        );
        assert!(refused("name = \"none\"\n").contains("no processor"));
        assert!(refused("[[processor]]\nname = \"a\"\n[[processor]]\nname = \"a\"\n").contains("twice"));
        assert!(refused(&format!("{TWO}[network]\ntopology = \"ring\"\n")).contains("ring"));
        assert!(refused(&format!("{TWO}[network]\ntopology = \"star\"\n")).contains("centre"));
        assert!(refused(&format!("{TWO}[network]\nbandwidth = \"0 MB/s\"\n")).contains("zero"));
        assert!(refused(&format!("{TWO}[[network.link]]\nbetween = [\"a\", \"z\"]\n")).contains("\"z\""));
        assert!(refused("not toml at all").contains("p.toml:1"));
    }
}
