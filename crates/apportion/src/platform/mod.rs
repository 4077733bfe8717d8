//! What the machine is: processors and the network between them. Numbers only; nothing is measured here.

mod discover;
mod emulated;
mod link_bookings;
mod network;
mod parse;
mod resident;
mod write;

pub use discover::{Core, Machine, available_memory, discover};
pub use emulated::Emulated;
pub use link_bookings::{LinkBookings, Load, Transit};
pub use network::{Crossing, Direction, Link, Network, Route, Topology, Wire};
pub use parse::{parse_platform, read_platform};
pub use resident::{forget_peak_memory, peak_memory};

use crate::error::{Error, Result};
use crate::geometry::Rank;

/// A set of processors and the network that joins them.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    /// A name for reports.
    pub name: String,
    /// The processors, in the order of their ranks.
    pub processors: Vec<Processor>,
    /// How they are joined.
    pub network: Network,
}

/// Whatever takes one share: a core, a core group, a GPU, a node, a whole cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// Unique name.
    pub name: String,
    /// Its place in the hierarchy, `"site/node"`; its own name by default.
    pub cluster: String,
    /// Its constant speed, if given; else it is measured.
    pub speed: Option<Speed>,
    /// Most bytes of data that it may hold.
    pub memory: Option<u64>,
    /// Cores it is pinned to; empty means not pinned and one thread.
    pub cores: Vec<usize>,
    /// Emulation: computing takes this many times longer than it really does; at least 1.
    pub slowdown: f64,
    /// Emulation: it turns slower in mid-run. Measuring and forecasts do not know of it.
    pub slowdown_after: Option<SlowdownAfter>,
    /// Emulation: its speed is this function of size instead of anything measured. A run takes so long, if this machine
    /// is fast enough: a unit is one multiply-add, the size that of its share in elements of C.
    pub emulated: Option<Emulated>,
}

/// Emulation of a processor that turns slower while a product is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowdownAfter {
    /// The fraction of the product's multiply-adds, all processors' together, after which it does; at least 0, below 1.
    pub work: f64,
    /// Its `slowdown` from then on; at least 1.
    pub slowdown: f64,
}

/// A constant speed, greater than zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// Only the ratio to the others' speeds means something.
    Relative(f64),
    /// Floating-point operations per second.
    Flops(f64),
}

impl Speed {
    /// The number, whatever it is relative to.
    pub fn value(self) -> f64 {
        match self {
            Self::Relative(x) | Self::Flops(x) => x,
        }
    }
}

impl Processor {
    /// A processor with a name and nothing else said: own cluster, not pinned, not slowed.
    pub fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            cluster: name.clone(),
            name,
            speed: None,
            memory: None,
            cores: Vec::new(),
            slowdown: 1.0,
            slowdown_after: None,
            emulated: None,
        }
    }
}

impl Platform {
    /// Processors `p0`, `p1`, … with the given relative speeds and a network that costs nothing.
    ///
    /// # Errors
    /// A speed that is not finite and positive, or none at all.
    pub fn from_speeds(speeds: &[f64]) -> Result<Self> {
        if speeds.is_empty() {
            return Err(Error::input(
                "`speeds`",
                "no speed given",
                "give one positive number per processor, such as 9,1",
            ));
        }
        let processors = speeds
            .iter()
            .enumerate()
            .map(|(i, &speed)| {
                if !(speed.is_finite() && speed > 0.0) {
                    return Err(Error::input(
                        "`speeds`",
                        format!("speed {speed} of processor p{i} is not a positive number"),
                        "give one positive number per processor, such as 9,1",
                    ));
                }
                Ok(Processor { speed: Some(Speed::Relative(speed)), ..Processor::named(format!("p{i}")) })
            })
            .collect::<Result<_>>()?;
        Ok(Self { name: "speeds".into(), processors, network: Network::free() })
    }

    /// Processors of the given names with nothing else said and a network that costs nothing.
    pub fn from_names(names: &[String]) -> Self {
        Self {
            name: "names".into(),
            processors: names.iter().map(Processor::named).collect(),
            network: Network::free(),
        }
    }

    /// Number of processors.
    pub fn len(&self) -> usize {
        self.processors.len()
    }

    /// True if there is no processor.
    pub fn is_empty(&self) -> bool {
        self.processors.is_empty()
    }

    /// The processors' names, by rank.
    pub fn names(&self) -> Vec<String> {
        self.processors.iter().map(|p| p.name.clone()).collect()
    }

    /// The constant speeds, if every processor has one.
    pub fn speeds(&self) -> Option<Vec<Speed>> {
        self.processors.iter().map(|p| p.speed).collect()
    }

    /// The same platform with these links: `(from, to, both ways, link)`; the last one of a pair counts.
    ///
    /// # Panics
    /// If a rank is not the platform's.
    pub fn with_links(&self, links: &[(Rank, Rank, bool, Link)]) -> Self {
        let known = links.iter().all(|(from, to, ..)| from.0 < self.len() && to.0 < self.len());
        assert!(known, "links join the platform's own processors");
        Self { network: self.network.with_links(self.len(), links), ..self.clone() }
    }

    /// The processors of these names, in this order, with the same network between them.
    ///
    /// # Panics
    /// If a name is not the platform's.
    pub fn select(&self, names: &[String]) -> Self {
        let ranks: Vec<Rank> = names
            .iter()
            .map(|name| {
                let place = self.processors.iter().position(|p| p.name == *name);
                Rank(place.expect("only the platform's own names are asked for"))
            })
            .collect();
        Self {
            name: self.name.clone(),
            processors: ranks.iter().map(|r| self.processors[r.0].clone()).collect(),
            network: self.network.select(&ranks),
        }
    }

    /// So many processors: these, one after the other and again from the first, with the links of the ones that they
    /// repeat.
    pub fn repeated(&self, count: usize) -> Self {
        let ranks: Vec<Rank> = (0..count).map(|i| Rank(i % self.len())).collect();
        let processor = |i: usize| {
            let original = &self.processors[i % self.len()];
            let round = i / self.len();
            let name =
                if round == 0 { original.name.clone() } else { format!("{}-{}", original.name, round + 1) };
            Processor { name, ..original.clone() }
        };
        Self {
            name: self.name.clone(),
            processors: (0..count).map(processor).collect(),
            network: self.network.select(&ranks),
        }
    }

    /// The platform as a file that reads the same; the network is left out where it costs nothing. O(processors^2) where
    /// links differ.
    pub fn to_toml(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut out = format!("name = {}\n", quoted(&self.name));
        for p in &self.processors {
            out +=
                &format!("\n[[processor]]\nname = {}\ncluster = {}\n", quoted(&p.name), quoted(&p.cluster));
            match p.speed {
                Some(Speed::Relative(x)) => out += &format!("speed = {x:?}\n"),
                Some(Speed::Flops(x)) => out += &format!("speed = \"{x} flop/s\"\n"),
                None => {}
            }
            if let Some(memory) = p.memory {
                out += &format!("memory = \"{memory} B\"\n");
            }
            if !p.cores.is_empty() {
                out += &format!("cores = {:?}\n", p.cores);
            }
            if p.slowdown != 1.0 {
                out += &format!("slowdown = {:?}\n", p.slowdown);
            }
            if let Some(SlowdownAfter { work, slowdown }) = p.slowdown_after {
                out += &format!("slowdown_after = {{ work = {work:?}, slowdown = {slowdown:?} }}\n");
            }
            if let Some(emulated) = &p.emulated {
                out += &format!("emulated = \"{emulated}\"\n");
            }
        }
        out + &self.network.to_toml(&self.names())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_survive_a_round_trip() {
        let mut platform = Platform::from_speeds(&[9.0, 1.5]).unwrap();
        platform.processors[0].cores = vec![0, 2];
        platform.processors[0].memory = Some(1 << 30);
        platform.processors[0].slowdown = 2.5;
        platform.processors[1].emulated = Some("peak 2e9, knee 1e5 0.8".parse().unwrap());
        platform.processors[1].name = "a \"b\"".into();
        platform.processors[1].speed = Some(Speed::Flops(2.5e9));
        let again = parse_platform(&platform.to_toml(), "again").unwrap();
        assert_eq!(again.processors, platform.processors);
    }

    #[test]
    fn repeated_processors_have_the_links_of_their_originals() {
        let text = "[[processor]]\nname = \"a\"\nspeed = 2\n[[processor]]\nname = \"b\"\nspeed = 1\n\
            [network]\nbandwidth = 10\n[[network.link]]\nbetween = [\"a\", \"b\"]\nbandwidth = 3\n";
        let five = parse_platform(text, "p").unwrap().repeated(5);
        assert_eq!(five.names(), ["a", "b", "a-2", "b-2", "a-3"]);
        assert_eq!(five.network.link(Rank(2), Rank(3)).horizontal, 3.0);
        assert_eq!(five.network.link(Rank(0), Rank(4)).horizontal, 10.0);
        assert_eq!(five.processors[3].speed, Some(Speed::Relative(1.0)));
    }

    #[test]
    fn a_selection_keeps_links() {
        let text = "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n[[processor]]\nname = \"c\"\n\
            [network]\nbandwidth = 10\ntopology = \"star\"\ncentre = \"b\"\n\
            [[network.link]]\nbetween = [\"a\", \"c\"]\nbandwidth = 3\n";
        let platform = parse_platform(text, "p").unwrap().select(&["c".into(), "a".into(), "b".into()]);
        assert_eq!(platform.network.link(Rank(0), Rank(1)).horizontal, 3.0);
        assert_eq!(platform.network.link(Rank(0), Rank(2)).horizontal, 10.0);
        assert_eq!(platform.network.topology, Topology::Star { centre: Rank(2) });
    }
}
