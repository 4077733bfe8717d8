//! Platforms: processors and the network between them.
//!
//! A [`Platform`] describes a machine in numbers: speeds, memory, latencies and bandwidths. It comes from a
//! platform file ([`read_platform`]), from this machine ([`discover()`]) or from speeds alone
//! ([`Platform::from_speeds`]). This module measures nothing.

mod device_memory;
mod emulated;
mod host;
mod host_network;
mod link_bookings;
mod network;
mod parse;
mod speed_list;
mod write;

pub use device_memory::{DeviceMemory, DeviceUploads, device_tile};
pub use emulated::Emulated;
pub use host::{
    Core, CoreGroup, CoreKind, CoreState, Grouping, Host, HostState, discover, list_cpus, read_host_state,
};
pub use host_network::{HostLink, HostNetwork};
pub(crate) use link_bookings::NumberHasher;
pub use link_bookings::{LinkBookings, Load, Transit};
pub use network::{Crossing, Direction, Link, Network, PairLink, Route, Topology};
pub(crate) use network::{Cut, Place, Wire};
pub use parse::{parse_platform, read_platform};
pub use speed_list::parse_speeds;

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::input::extreme;
use std::fmt;

/// The cluster of the processors of a machine that is described without a name.
pub(crate) const THIS_MACHINE: &str = "machine";

/// A set of processors and the network that joins them.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    /// The platform's name, for reports.
    pub name: String,
    /// The processors, in the order of their ranks.
    pub processors: Vec<Processor>,
    /// The network between them.
    pub network: Network,
}

/// Anything that takes one share of the work: a core, a group of cores, a GPU, a node or a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// Unique name.
    pub name: String,
    /// Its path in the hierarchy of clusters, as `"site/node"`; by default its own name.
    pub cluster: String,
    /// Its constant speed; `None` if it is to be measured.
    pub speed: Option<Speed>,
    /// The number of bytes of data that it may hold; `None` for no limit.
    pub memory: Option<u64>,
    /// The cores that it is pinned to; empty for one thread that is not pinned.
    pub cores: Vec<usize>,
    /// The device that computes for it, as `"opencl:0"` or `"cuda:0"`; `None` if its cores do. They then only drive the
    /// device.
    pub device: Option<String>,
    /// The words of the command that starts programs on its host, as `ssh beta`; empty for this machine. They are
    /// followed by the words of the program.
    pub start: Vec<String>,
    /// Emulation: computation takes this many times longer; at least 1.
    pub slowdown: f64,
    /// Emulation: the processor becomes slower during a run. Measurements and forecasts ignore this.
    pub slowdown_after: Option<SlowdownAfter>,
    /// Emulation: its speed as a function of size, instead of a measured one. A run takes the time that the
    /// function gives, if this machine is fast enough. A unit is one multiply-add; the size is the share in
    /// elements of C.
    pub emulated: Option<Emulated>,
}

/// What computes for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessorKind {
    /// One core, or one thread that is not pinned.
    Core,
    /// Several cores.
    Pool,
    /// A device.
    Device,
}

impl fmt::Display for ProcessorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::Pool => "pool",
            Self::Device => "device",
        })
    }
}

/// Emulation of a processor that becomes slower during a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowdownAfter {
    /// The fraction of all multiply-adds of the product, over all processors, after which the speed changes;
    /// at least 0 and below 1.
    pub work: f64,
    /// The slowdown from then on; at least 1.
    pub slowdown: f64,
}

/// A constant speed of at least 0. A processor of speed 0 takes no share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// A speed without a unit: only ratios between processors are meaningful.
    Relative(f64),
    /// Floating-point operations per second.
    Flops(f64),
    /// Units of work per second.
    Units(f64),
}

impl Speed {
    /// The number, without its unit.
    pub fn value(self) -> f64 {
        match self {
            Self::Relative(x) | Self::Flops(x) | Self::Units(x) => x,
        }
    }
}

impl Processor {
    /// A processor with a name and default values: a cluster of its own, not pinned, no emulation.
    pub fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            cluster: name.clone(),
            name,
            speed: None,
            memory: None,
            cores: Vec::new(),
            device: None,
            start: Vec::new(),
            slowdown: 1.0,
            slowdown_after: None,
            emulated: None,
        }
    }

    /// What its cluster begins with. In platforms as `detect` describes them, that is its host.
    pub fn outermost_cluster(&self) -> &str {
        self.cluster.split('/').next().unwrap_or_default()
    }

    /// The host that its processes run on, as launchers know it; `None` for the machine of a platform that describes
    /// this one alone, without a name.
    ///
    /// A name `HOST:NUMBER` tells the host. A processor with cores or a device is a part of the host that its cluster
    /// begins with. Any other is a whole host, and its name is that of the host.
    pub(crate) fn host(&self) -> Option<&str> {
        let is_part = !self.cores.is_empty() || self.device.is_some();
        match self.name.split_once(':') {
            Some((host, _)) => Some(host),
            None if is_part => Some(self.outermost_cluster()).filter(|host| *host != THIS_MACHINE),
            None => Some(&self.name),
        }
    }

    /// The cores of this machine that it is pinned to: none if it is on another one.
    pub fn cores_here(&self) -> &[usize] {
        if self.start.is_empty() { &self.cores } else { &[] }
    }

    /// What computes for it.
    pub fn kind(&self) -> ProcessorKind {
        match (&self.device, self.cores.len()) {
            (Some(_), _) => ProcessorKind::Device,
            (None, 0 | 1) => ProcessorKind::Core,
            (None, _) => ProcessorKind::Pool,
        }
    }

    /// The bytes that its part of a matrix may take: its memory, unless it is a device, which takes its part tile
    /// by tile.
    pub fn memory_cap(&self) -> Option<u64> {
        self.memory.filter(|_| self.device.is_none())
    }
}

impl Platform {
    /// Processors `p0`, `p1`, … with the given relative speeds and a network without costs.
    ///
    /// # Errors
    /// No speed, a speed that is not a finite number of at least 0, or no positive one: exit code 2.
    pub fn from_speeds(speeds: &[f64]) -> Result<Self> {
        if speeds.is_empty() {
            return Err(Error::input(
                "`speeds`",
                "no speed given",
                "give one positive number per processor, such as 9,1",
            ));
        }
        if speeds.iter().all(|&speed| speed == 0.0) {
            let remedy = "give at least one processor a positive speed";
            return Err(Error::input("`speeds`", "all are 0", remedy));
        }
        let processors = speeds
            .iter()
            .enumerate()
            .map(|(i, &speed)| {
                if let Some(what) = extreme(speed).filter(|_| speed != 0.0) {
                    return Err(Error::input(
                        "`speeds`",
                        format!("processor p{i}: {what}"),
                        "give one positive number per processor, such as 9,1, or 0 for no share",
                    ));
                }
                Ok(Processor { speed: Some(Speed::Relative(speed)), ..Processor::named(format!("p{i}")) })
            })
            .collect::<Result<_>>()?;
        Ok(Self { name: "speeds".into(), processors, network: Network::free() })
    }

    /// Processors with the given names, default values and a network without costs.
    pub fn from_names(names: &[String]) -> Self {
        Self {
            name: "names".into(),
            processors: names.iter().map(Processor::named).collect(),
            network: Network::free(),
        }
    }

    /// True if its processors represent ones without shared memory: the network between them is emulated, or
    /// some have a `memory` of their own. As threads they then copy the data sent to them.
    pub fn has_memories_of_its_own(&self) -> bool {
        let only_devices = !self.network.devices.is_empty() && self.network.is_free();
        let emulated = self.network.emulate && !only_devices;
        emulated || self.processors.iter().any(|processor| processor.memory_cap().is_some())
    }

    /// Adds a device as the last processor, of unknown speed and behind a link of unknown cost.
    pub fn add_device(&mut self, name: String, cluster: &str, id: &str) {
        let rank = Rank(self.len());
        self.processors.push(Processor {
            cluster: cluster.to_owned(),
            device: Some(id.to_owned()),
            ..Processor::named(name)
        });
        self.network.devices.insert(rank, DeviceMemory::behind_unknown_link(None));
    }

    /// Refuses processors that are devices; `what` names what does not compute on them.
    ///
    /// # Errors
    /// There is one: exit code 2.
    pub fn refuse_devices(&self, what: &str) -> Result<()> {
        let Some(processor) = self.processors.iter().find(|p| p.device.is_some()) else { return Ok(()) };
        Err(Error::input(
            format!("platform \"{}\": processor \"{}\": device", self.name, processor.name),
            format!("is not for {what}"),
            "remove device, or use a platform without it",
        ))
    }

    /// Refuses processors on other machines, where this process computes by itself; `remedy` names the command that
    /// computes on all.
    ///
    /// # Errors
    /// There is one: exit code 2.
    pub fn refuse_other_machines(&self, remedy: &str) -> Result<()> {
        let Some(processor) = self.processors.iter().find(|p| !p.start.is_empty()) else { return Ok(()) };
        Err(Error::input(
            format!("platform \"{}\": processor \"{}\": start", self.name, processor.name),
            "starts programs of `balance`, `run` and `measure --command`; this process would compute in its place",
            remedy,
        ))
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

    /// The same platform with these links in place of its own. If several are for one pair, the last one
    /// counts.
    ///
    /// # Panics
    /// If a rank is not below [`Platform::len`].
    pub fn with_links(&self, links: &[PairLink]) -> Self {
        let known = links.iter().all(|l| l.from.0 < self.len() && l.to.0 < self.len());
        assert!(known, "links join the platform's own processors");
        Self { network: self.network.with_links(self.len(), links), ..self.clone() }
    }

    /// The same platform, in which all processors of one cluster share this link to those of another, in place of links
    /// of their own: that of a host to another one.
    pub fn with_shared_link(&self, from: &str, to: &str, link: Link) -> Self {
        let ranks = |cluster: &str| -> Vec<Rank> {
            let is_in = |p: &Processor| {
                p.cluster.strip_prefix(cluster).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            (0..self.len()).filter(|rank| is_in(&self.processors[*rank])).map(Rank).collect()
        };
        let names = (from.to_owned(), to.to_owned());
        let network = self.network.with_shared_link(self.len(), [&ranks(from), &ranks(to)], names, link);
        Self { network, ..self.clone() }
    }

    /// The processors with these names, in this order, and the network between them.
    ///
    /// # Panics
    /// If the platform has no processor of that name.
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

    /// A platform of `count` processors that repeats the processors of this one, with the links of those
    /// repeated.
    pub fn repeat(&self, count: usize) -> Self {
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

    /// The text of a platform file for this platform. A network without costs is left out. O(p^2) if links
    /// differ.
    pub fn to_toml(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut out = format!("name = {}\n", quoted(&self.name));
        for p in &self.processors {
            out +=
                &format!("\n[[processor]]\nname = {}\ncluster = {}\n", quoted(&p.name), quoted(&p.cluster));
            match p.speed {
                Some(Speed::Relative(x)) => out += &format!("speed = {x:?}\n"),
                Some(Speed::Flops(x)) => out += &format!("speed = \"{x} flop/s\"\n"),
                Some(Speed::Units(x)) => out += &format!("speed = \"{x} units/s\"\n"),
                None => {}
            }
            if let Some(memory) = p.memory {
                out += &format!("memory = \"{memory} B\"\n");
            }
            if !p.cores.is_empty() {
                out += &format!("cores = {:?}\n", p.cores);
            }
            if let Some(device) = &p.device {
                out += &format!("device = {}\n", quoted(device));
            }
            if !p.start.is_empty() {
                let start = shlex::try_join(p.start.iter().map(String::as_str));
                out += &format!("start = {}\n", quoted(&start.expect("the words of a file have no NUL")));
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

    /// As `detect` names them, with and without names of hosts, and as users do.
    #[test]
    fn a_processor_has_a_host() {
        let host = |name: &str, cluster: &str, cores: &[usize]| {
            let processor =
                Processor { cluster: cluster.into(), cores: cores.to_vec(), ..Processor::named(name) };
            processor.host().map(str::to_owned)
        };
        assert_eq!(host("alpha-performance", "alpha/node0", &[0, 1]).unwrap(), "alpha");
        assert_eq!(host("alpha-core3", "alpha/node1/efficient", &[3]).unwrap(), "alpha");
        assert_eq!(host("beta", "beta", &[0]).unwrap(), "beta");
        assert_eq!(host("efficient", "machine", &[1]), None);
        assert_eq!(host("core0", "machine/node0", &[0]), None);
        assert_eq!(host("n1:3", "n1:3", &[3]).unwrap(), "n1");
        assert_eq!(host("n1:3", "rack7", &[3]).unwrap(), "n1");
        assert_eq!(host("hcl03", "cluster1", &[]).unwrap(), "hcl03");
        let device = Processor { device: Some("cuda:0".into()), ..Processor::named("alpha-gpu0") };
        assert_eq!(Processor { cluster: "alpha".into(), ..device }.host(), Some("alpha"));
    }

    #[test]
    fn processors_survive_a_round_trip() {
        let mut platform = Platform::from_speeds(&[9.0, 1.5]).unwrap();
        platform.processors[0].cores = vec![0, 2];
        platform.processors[0].memory = Some(1 << 30);
        platform.processors[0].slowdown = 2.5;
        platform.processors[1].emulated = Some("peak 2e9, knee 1e5 0.8".parse().unwrap());
        platform.processors[1].name = "a \"b\"".into();
        platform.processors[1].speed = Some(Speed::Flops(2.5e9));
        platform.processors[1].start = ["ssh", "-o", "User=a b", "it's", "\"x\""].map(String::from).into();
        let again = parse_platform(&platform.to_toml(), "again").unwrap();
        assert_eq!(again.processors, platform.processors);
    }

    #[test]
    fn repeated_processors_have_the_links_of_their_originals() {
        let text = "[[processor]]\nname = \"a\"\nspeed = 2\n[[processor]]\nname = \"b\"\nspeed = 1\n\
            [network]\nbandwidth = 10\n[[network.link]]\nbetween = [\"a\", \"b\"]\nbandwidth = 3\n";
        let five = parse_platform(text, "p").unwrap().repeat(5);
        assert_eq!(five.names(), ["a", "b", "a-2", "b-2", "a-3"]);
        assert_eq!(five.network.link(Rank(2), Rank(3)).horizontal, 3.0);
        assert_eq!(five.network.link(Rank(0), Rank(4)).horizontal, 10.0);
        assert_eq!(five.processors[3].speed, Some(Speed::Relative(1.0)));
    }

    /// As the measured link between two hosts: each direction has its own bandwidth, which all pairs share.
    #[test]
    fn clusters_share_a_link() {
        let text = ["a", "a", "b", "b"]
            .iter()
            .enumerate()
            .map(|(i, cluster)| format!("[[processor]]\nname = \"p{i}\"\ncluster = \"{cluster}/x\"\n"));
        let platform = parse_platform(&text.collect::<String>(), "p").unwrap();
        let link = |bandwidth: f64| Link { latency: 1e-4, horizontal: bandwidth, vertical: 2.0 * bandwidth };
        let inside = PairLink { from: Rank(0), to: Rank(1), both_ways: true, link: link(100.0) };
        let linked = platform.with_links(&[inside]);
        let linked = linked.with_shared_link("a", "b", link(4.0)).with_shared_link("b", "a", link(3.0));
        let again = parse_platform(&linked.to_toml(), "again").unwrap();
        for network in [&linked.network, &again.network] {
            assert_eq!(network.link(Rank(0), Rank(3)), link(4.0), "{}", linked.to_toml());
            assert_eq!(network.link(Rank(2), Rank(1)), link(3.0));
            assert_eq!(network.link(Rank(1), Rank(0)), link(100.0));
            assert_eq!(network.link(Rank(2), Rank(3)), Link::FREE);
            let wire = |from, to| network.route(Rank(from), Rank(to))[0].crossings[0].wire;
            assert_eq!(wire(0, 2), wire(1, 3));
            assert_ne!(wire(0, 2), wire(2, 0));
        }
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
