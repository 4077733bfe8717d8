//! The memory that this process may still take: what the machine has free, and what limits leave.

use std::fs;
use std::path::Path;

/// Bytes of memory that this process may take now without swapping: the least of what the machine has
/// available, what its control groups (version 2) leave, and what its limit of address space (`ulimit -v`)
/// leaves; `None` if unknown. Outside Linux nothing is known.
pub fn available_memory() -> Option<u64> {
    let machine = super::discover::meminfo("MemAvailable:");
    [machine, left_by_groups(), left_by_limit()].into_iter().flatten().min()
}

/// What the control groups of this process leave: the least over its group and the groups around it.
fn left_by_groups() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let inner = root.join(group);
    inner.ancestors().take_while(|at| at.starts_with(root)).filter_map(left_by_group).min()
}

/// What one control group leaves. Cached pages of files that were not used lately are given up on demand.
fn left_by_group(group: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    left(&read("memory.max")?, &read("memory.current")?, &read("memory.stat").unwrap_or_default())
}

/// The same from the texts of `memory.max`, `memory.current` and `memory.stat`.
fn left(most: &str, current: &str, statistics: &str) -> Option<u64> {
    let most: u64 = most.trim().parse().ok()?;
    let current: u64 = current.trim().parse().ok()?;
    let idle = statistics.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let idle = idle.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
    Some(most.saturating_sub(current.saturating_sub(idle)))
}

/// What the limit of address space leaves.
#[cfg(target_os = "linux")]
fn left_by_limit() -> Option<u64> {
    let most = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(kib * 1024))
}

#[cfg(not(target_os = "linux"))]
fn left_by_limit() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_leaves_its_limit_less_what_is_in_use() {
        let statistics = "anon 10\ninactive_file 30\nactive_file 5\n";
        assert_eq!(left("100\n", "60\n", statistics), Some(70));
        assert_eq!(left("100\n", "60\n", ""), Some(40));
        assert_eq!(left("100", "160", ""), Some(0));
        assert_eq!(left("max\n", "60\n", statistics), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_more_than_the_machine_has() {
        let free = available_memory().unwrap();
        assert!(free <= crate::platform::discover().memory.unwrap());
    }
}
