//! A host: its cores by kind (one hardware thread per physical core), NUMA nodes, packages, memory, and what
//! control groups allow; from `/proc` and `/sys` where they exist, else from the standard library.

mod files;
mod kinds;
mod state;

pub use kinds::CoreKind;
pub use state::{CoreState, HostState, read_host_state};

use super::{Network, Platform, Processor, THIS_MACHINE};
use crate::ControlGroups;
use crate::system_files::read_kib;
use files::{nodes_of_cpus, number_of_cpu, online_cpus, read_model, threads_of_core, usable_cpus};
use kinds::{Kinds, Traits, kinds_of};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;

/// The description of a machine as one process sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name where several hosts are described together: the names of its processors then begin with it.
    pub name: Option<String>,
    /// Processor model, e.g. "AMD EPYC".
    pub model: String,
    /// The kinds of its usable cores, the most capable first.
    pub kinds: Vec<CoreKind>,
    /// One entry per usable physical core.
    pub cores: Vec<Core>,
    /// The number of physical cores that are online, those that this process may not use included.
    pub online_cores: usize,
    /// Total memory in bytes; `None` if unknown.
    pub memory: Option<u64>,
    /// CPU seconds per second that the control groups of this process allow; `None` for no limit.
    pub quota_cores: Option<f64>,
    /// Bytes of memory that the control groups of this process allow; `None` for no limit.
    pub memory_limit: Option<u64>,
}

/// One physical core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Core {
    /// The hardware thread to pin to.
    pub cpu: usize,
    /// The index of its kind in [`Host::kinds`].
    pub kind: usize,
    /// Highest clock in kHz, if known.
    pub max_khz: Option<u64>,
    /// NUMA node, if known.
    pub node: Option<usize>,
    /// Package (socket), if known.
    pub package: Option<usize>,
    /// Its hardware threads that are online, those that this process may not use included.
    pub threads: Vec<usize>,
}

impl Core {
    /// Its NUMA node; where none is known, there is one.
    fn node(&self) -> usize {
        self.node.unwrap_or(0)
    }
}

/// Which cores are one processor of a platform. Several cores are a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// Each core.
    Core,
    /// The cores of a kind.
    Kind,
    /// The cores of a NUMA node, of whatever kinds.
    Node,
    /// All cores.
    Machine,
}

/// Cores that are one processor.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreGroup<'a> {
    /// The processor's name.
    pub name: String,
    /// The processor's place in the hierarchy of clusters.
    pub cluster: String,
    /// One core or more.
    pub cores: Vec<&'a Core>,
}

/// Describes this machine. It never fails: unknown values stay empty.
pub fn discover() -> Host {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Host::read_or(Path::new("/"), cpus, std::env::consts::ARCH)
}

impl Host {
    /// Describes a recorded machine: under `root` are those files of its `/proc` and `/sys` that are read
    /// here. Of the process that was recorded, `proc/self/status` says which CPUs it may use, and
    /// `proc/self/cgroup` and `mountinfo` say which its control groups are.
    ///
    /// It never fails: what is missing or damaged stays empty, and there is at least one core.
    pub fn read(root: &Path) -> Self {
        Self::read_or(root, 1, "unknown processor")
    }

    /// The same, with the number of CPUs and the model where no file tells.
    fn read_or(root: &Path, cpus: usize, model: &str) -> Self {
        let online = online_cpus(root);
        let usable = usable_cpus(root, &online, cpus);
        let threads: BTreeMap<usize, Vec<usize>> =
            online.union(&usable).map(|cpu| (*cpu, threads_of_core(root, *cpu))).collect();
        let mut seen = BTreeSet::new();
        let mut cores = Vec::new();
        for cpu in usable {
            let threads = threads[&cpu].clone();
            if seen.insert(threads[0]) {
                let package = number_of_cpu(root, cpu, "topology/physical_package_id");
                cores.push(Core { cpu, kind: 0, max_khz: None, node: None, package, threads });
            }
        }
        let online_cores: BTreeSet<usize> = online.iter().map(|cpu| threads[cpu][0]).collect();
        let traits = Traits::of_cores(root, &cores, &threads);
        let Kinds { kinds, of_core } = kinds_of(&traits);
        let nodes = nodes_of_cpus(root);
        for ((core, traits), kind) in cores.iter_mut().zip(&traits).zip(of_core) {
            core.kind = kind;
            core.max_khz = traits.max_khz;
            core.node = nodes.get(&core.cpu).copied();
        }
        let groups = ControlGroups::of_process(root);
        let found = read_model(root);
        Self {
            name: None,
            model: if found.is_empty() { model.to_owned() } else { found },
            kinds,
            online_cores: online_cores.len().max(cores.len()),
            cores,
            memory: read_kib(&root.join("proc/meminfo"), "MemTotal:"),
            quota_cores: groups.quota(),
            memory_limit: groups.memory_limit(),
        }
    }

    /// CPU seconds per second that the control groups allow, if that is less than the cores could use.
    pub fn scarce_cores(&self) -> Option<f64> {
        self.quota_cores.filter(|quota| *quota < self.cores.len() as f64)
    }

    /// A CPU quota in words: `the control group allows 1.2 of 2 cores`.
    pub fn quota_text(&self, quota: f64) -> String {
        format!("the control group allows {} of {} cores", (quota * 100.0).round() / 100.0, self.cores.len())
    }

    /// The cores as processors: named `core0`, `core1`, …; by their kinds; `node0`, `node1`, …; or `machine`,
    /// which is also the one kind of a machine whose cores are alike. Kinds are in their order, all else in
    /// the order of CPUs and nodes.
    ///
    /// Where the host has a name, processors are `alpha-core0`, `alpha-performance`, `alpha-node0` and
    /// `alpha`, in the cluster `alpha`; otherwise in the cluster `machine`. Beneath it are a cluster for each
    /// NUMA node where there are several, and for single cores one for each kind.
    pub fn groups(&self, by: Grouping) -> Vec<CoreGroup<'_>> {
        let mut groups: BTreeMap<usize, Vec<&Core>> = BTreeMap::new();
        for (number, core) in self.cores.iter().enumerate() {
            let group = match by {
                Grouping::Core => number,
                Grouping::Kind => core.kind,
                Grouping::Node => core.node(),
                Grouping::Machine => 0,
            };
            groups.entry(group).or_default().push(core);
        }
        let has_nodes = self.cores.iter().any(|core| core.node() != self.cores[0].node());
        let mut named = Vec::new();
        for (number, cores) in groups {
            let part = match by {
                Grouping::Core => Some(format!("core{number}")),
                Grouping::Kind if self.kinds.len() > 1 => Some(self.kinds[number].name.clone()),
                Grouping::Node => Some(format!("node{number}")),
                Grouping::Kind | Grouping::Machine => None,
            };
            let name = match (&self.name, part) {
                (Some(host), Some(part)) => format!("{host}-{part}"),
                (Some(host), None) => host.clone(),
                (None, part) => part.unwrap_or_else(|| "machine".into()),
            };
            let mut cluster = self.name.clone().unwrap_or_else(|| THIS_MACHINE.into());
            let node = cores[0].node();
            if has_nodes && cores.iter().all(|core| core.node() == node) {
                cluster += &format!("/node{node}");
            }
            if by == Grouping::Core && self.kinds.len() > 1 {
                cluster += &format!("/{}", self.kinds[cores[0].kind].name);
            }
            named.push(CoreGroup { name, cluster, cores });
        }
        named
    }

    /// The cores as this many processors: by the coarsest grouping that gives as many, else stretches of as many
    /// neighbouring cores each as possible. `None` if there are fewer cores.
    pub fn divide(&self, count: usize) -> Option<Vec<CoreGroup<'_>>> {
        let groupings = [Grouping::Machine, Grouping::Kind, Grouping::Node, Grouping::Core];
        if let Some(groups) =
            groupings.into_iter().map(|by| self.groups(by)).find(|groups| groups.len() == count)
        {
            return Some(groups);
        }
        if count == 0 || count > self.cores.len() {
            return None;
        }
        let cluster = self.name.clone().unwrap_or_else(|| THIS_MACHINE.into());
        let part = |i: usize| {
            let cores = &self.cores[i * self.cores.len() / count..(i + 1) * self.cores.len() / count];
            let own = format!("part{i}");
            let name = self.name.as_ref().map_or(own.clone(), |host| format!("{host}-{own}"));
            CoreGroup { name, cluster: cluster.clone(), cores: cores.iter().collect() }
        };
        Some((0..count).map(part).collect())
    }

    /// The cores as a platform: a processor for each of [`Host::groups`], pinned to its cores.
    pub fn platform(&self, by: Grouping) -> Platform {
        let processor = |group: CoreGroup<'_>| Processor {
            cluster: group.cluster,
            cores: group.cores.iter().map(|core| core.cpu).collect(),
            ..Processor::named(group.name)
        };
        let processors = self.groups(by).into_iter().map(processor).collect();
        Platform { name: self.model.clone(), processors, network: Network::free() }
    }
}

/// CPUs as the kernel and `taskset` list them: `0-3,8`.
pub fn list_cpus(cpus: &[usize]) -> String {
    let mut ranges: Vec<RangeInclusive<usize>> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some(last) if last.end() + 1 == cpu => *last = *last.start()..=cpu,
            _ => ranges.push(cpu..=cpu),
        }
    }
    let show = |range: &RangeInclusive<usize>| match range.start() == range.end() {
        true => range.start().to_string(),
        false => format!("{}-{}", range.start(), range.end()),
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_core() {
        let host = discover();
        assert!(!host.cores.is_empty());
        assert!(host.cores.iter().all(|core| core.threads.contains(&core.cpu)));
        assert_eq!(host.platform(Grouping::Core).len(), host.cores.len());
        assert_eq!(host.platform(Grouping::Kind).len(), host.kinds.len());
        assert_eq!(host.platform(Grouping::Machine).processors[0].cores.len(), host.cores.len());
    }

    #[test]
    fn cpus_are_listed_in_ranges() {
        assert_eq!(list_cpus(&[0, 1, 2, 5, 7, 8, 3]), "0-2,5,7-8,3");
        assert_eq!(list_cpus(&[]), "");
    }

    #[test]
    fn nothing_is_a_machine_of_one_core() {
        let host = Host::read(Path::new("/nonexistent"));
        assert_eq!((host.cores.len(), host.kinds.len(), host.memory), (1, 1, None));
        assert_eq!(host.model, "unknown processor");
    }

    /// Names and clusters of two hosts do not clash.
    #[test]
    fn hosts_with_names_have_processors_with_names() {
        let core = |cpu: usize, kind: usize, node: usize| Core {
            cpu,
            kind,
            max_khz: None,
            node: Some(node),
            package: None,
            threads: vec![cpu],
        };
        let kind = |name: &str| CoreKind {
            name: name.into(),
            capacity: None,
            max_khz: None,
            l2_bytes: None,
            l2_cores: None,
            l3_bytes: None,
        };
        let host = Host {
            name: Some("alpha".into()),
            model: "m".into(),
            kinds: vec![kind("performance"), kind("efficient")],
            cores: vec![core(0, 0, 0), core(1, 1, 0), core(2, 1, 1)],
            online_cores: 3,
            memory: None,
            quota_cores: None,
            memory_limit: None,
        };
        let names = |by: Grouping| -> Vec<String> {
            let groups = host.groups(by);
            groups.iter().map(|group| format!("{} in {}", group.name, group.cluster)).collect()
        };
        assert_eq!(
            names(Grouping::Core),
            [
                "alpha-core0 in alpha/node0/performance",
                "alpha-core1 in alpha/node0/efficient",
                "alpha-core2 in alpha/node1/efficient"
            ]
        );
        assert_eq!(names(Grouping::Kind), ["alpha-performance in alpha/node0", "alpha-efficient in alpha"]);
        assert_eq!(names(Grouping::Node), ["alpha-node0 in alpha/node0", "alpha-node1 in alpha/node1"]);
        assert_eq!(names(Grouping::Machine), ["alpha in alpha"]);
        let divided = |count: usize| {
            let groups = host.divide(count)?;
            Some(groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>())
        };
        assert_eq!(divided(1).unwrap(), ["alpha"]);
        assert_eq!(divided(2).unwrap(), ["alpha-performance", "alpha-efficient"]);
        assert_eq!(divided(3).unwrap(), ["alpha-core0", "alpha-core1", "alpha-core2"]);
        assert_eq!((divided(4), divided(0)), (None, None));
        // Alike and of one node: neither kinds nor nodes are two.
        let cores = (0..5).map(|cpu| core(cpu, 0, 0)).collect();
        let alike = Host { name: None, kinds: vec![kind("performance")], cores, ..host.clone() };
        let two = alike.divide(2).unwrap();
        let cpus = |group: &CoreGroup<'_>| group.cores.iter().map(|core| core.cpu).collect::<Vec<_>>();
        assert_eq!((cpus(&two[0]), cpus(&two[1])), (vec![0, 1], vec![2, 3, 4]));
        assert_eq!((&two[1].name[..], &two[1].cluster[..]), ("part1", "machine"));
    }
}
