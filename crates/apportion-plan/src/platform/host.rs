//! This host: its cores (one hardware thread per physical core) and memory, and what measured speeds depend on
//! besides; from `/sys` and `/proc` where they exist, else from the standard library.

use super::{Network, Platform, Processor};
use crate::ControlGroups;
use crate::process_memory::read_kib;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The description of this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Processor model, e.g. "AMD EPYC".
    pub model: String,
    /// One entry per usable physical core.
    pub cores: Vec<Core>,
    /// Total memory in bytes; `None` if unknown.
    pub memory: Option<u64>,
    /// CPU seconds per second that the control groups of this process allow; `None` for no limit.
    pub quota_cores: Option<f64>,
    /// Bytes of memory that the control groups of this process allow; `None` for no limit.
    pub memory_limit: Option<u64>,
}

/// One physical core.
#[derive(Debug, Clone, PartialEq)]
pub struct Core {
    /// The hardware thread to pin to.
    pub cpu: usize,
    /// Highest clock in kHz, if known; it distinguishes kinds of cores.
    pub max_khz: Option<u64>,
    /// NUMA node, if known.
    pub node: Option<usize>,
    /// Its hardware threads, those that this process may not use included.
    pub threads: usize,
}

/// Describes this machine. It never fails: unknown values stay empty.
pub fn discover() -> Host {
    let mut cores = Vec::new();
    let mut seen = BTreeSet::new();
    for cpu in usable_cpus() {
        let siblings = read(cpu, "topology/thread_siblings_list").unwrap_or_else(|| cpu.to_string());
        let threads = parse_list(&siblings).map_or(1, |threads| threads.len().max(1));
        if seen.insert(siblings) {
            cores.push(Core {
                cpu,
                max_khz: read(cpu, "cpufreq/cpuinfo_max_freq").and_then(|s| s.parse().ok()),
                node: numa_node(cpu),
                threads,
            });
        }
    }
    let groups = ControlGroups::of_process(Path::new("/"));
    Host {
        model: cpu_model(),
        cores,
        memory: read_kib("/proc/meminfo", "MemTotal:"),
        quota_cores: groups.quota(),
        memory_limit: groups.memory_limit(),
    }
}

impl Host {
    /// CPU seconds per second that the control groups allow, if that is less than the cores could use.
    pub fn scarce_cores(&self) -> Option<f64> {
        self.quota_cores.filter(|quota| *quota < self.cores.len() as f64)
    }

    /// A CPU quota in words: `the control group allows 1.2 of 2 cores`.
    pub fn quota_text(&self, quota: f64) -> String {
        format!("the control group allows {} of {} cores", (quota * 100.0).round() / 100.0, self.cores.len())
    }

    /// One pinned processor per core; cores of one kind (same maximum clock) share a cluster.
    pub fn platform(&self) -> Platform {
        let processors = self
            .cores
            .iter()
            .enumerate()
            .map(|(i, core)| Processor {
                cluster: match (core.node, core.max_khz) {
                    (Some(node), Some(khz)) => format!("node{node}/{}MHz", khz / 1000),
                    (Some(node), None) => format!("node{node}"),
                    _ => "machine".into(),
                },
                cores: vec![core.cpu],
                ..Processor::named(format!("core{i}"))
            })
            .collect();
        Platform { name: self.model.clone(), processors, network: Network::free() }
    }
}

fn read(cpu: usize, file: &str) -> Option<String> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/{file}");
    fs::read_to_string(path).ok().map(|s| s.trim().to_owned())
}

/// CPUs that this process may use.
fn usable_cpus() -> Vec<usize> {
    let allowed = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|s| {
            s.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).and_then(|l| parse_list(l.trim()))
        })
        .filter(|cpus| !cpus.is_empty());
    allowed.unwrap_or_else(|| {
        let n = std::thread::available_parallelism().map_or(1, usize::from);
        (0..n).collect()
    })
}

/// Parses a kernel list such as `0-3,8`.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut out = Vec::new();
    for part in text.split(',') {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        let (a, b): (usize, usize) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
        if b < a || b > 1 << 20 {
            return None;
        }
        out.extend(a..=b);
    }
    Some(out)
}

fn numa_node(cpu: usize) -> Option<usize> {
    let entries = fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
    entries.flatten().find_map(|e| {
        e.file_name().to_str().and_then(|n| n.strip_prefix("node")).and_then(|n| n.parse().ok())
    })
}

fn cpu_model() -> String {
    let from_proc = fs::read_to_string("/proc/cpuinfo").ok().and_then(|s| {
        s.lines()
            .find(|l| l.starts_with("model name"))
            .and_then(|l| l.split_once(':'))
            .map(|(_, v)| v.trim().to_owned())
    });
    from_proc.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// What a host's measured speeds depend on besides its processors; unknown values stay empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostState {
    /// The release of the operating system's kernel.
    pub release: String,
    /// One entry per core that was asked for.
    pub cores: Vec<CoreState>,
    /// CPU seconds per second that the control groups of this process allow; `None` for no limit.
    pub quota: Option<f64>,
}

/// The state of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreState {
    /// Relative capacity; 1024 for the fastest kind.
    pub capacity: Option<u64>,
    /// Highest clock in kHz.
    pub max_khz: Option<u64>,
}

/// The state of this host for this process on these cores. It never fails.
pub fn read_host_state(cores: &[usize]) -> HostState {
    let number = |core: usize, file: &str| read(core, file).and_then(|text| text.parse().ok());
    let state = |&core: &usize| CoreState {
        capacity: number(core, "cpu_capacity"),
        max_khz: number(core, "cpufreq/scaling_max_freq"),
    };
    let quota = ControlGroups::of_process(Path::new("/")).quota();
    HostState { release: release(), cores: cores.iter().map(state).collect(), quota }
}

#[cfg(unix)]
fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn release() -> String {
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!(parse_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list(""), None);
    }

    #[test]
    fn this_machine_has_a_core() {
        let host = discover();
        assert!(!host.cores.is_empty());
        assert_eq!(host.platform().len(), host.cores.len());
    }

    #[test]
    fn a_host_has_one_state() {
        let here = read_host_state(&[0]);
        assert_eq!(here, read_host_state(&[0]));
        assert_eq!(here.cores.len(), 1);
    }
}
