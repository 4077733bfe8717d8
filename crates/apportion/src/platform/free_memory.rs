//! The memory that this process may still take: what the machine has free, and what limits leave.

use super::control_groups::ControlGroups;
use std::fs;
use std::path::Path;

/// Bytes of memory that this process may take now without swapping: the least of what the machine has
/// available, what its control groups leave, and what its limit of address space (`ulimit -v`) leaves;
/// `None` if unknown. Outside Linux nothing is known.
pub fn available_memory() -> Option<u64> {
    let machine = super::discover::meminfo("MemAvailable:");
    let groups = ControlGroups::of_process(Path::new("/")).memory_left();
    [machine, groups, left_by_limit()].into_iter().flatten().min()
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

    #[cfg(target_os = "linux")]
    #[test]
    fn no_more_than_the_machine_has() {
        let free = available_memory().unwrap();
        assert!(free <= crate::platform::discover().memory.unwrap());
    }
}
