//! What a machine's measured speeds depend on, besides its processor model.

use super::discover::read;
use std::fs;
use std::path::{Path, PathBuf};

/// The conditions under which speeds were measured; unknown values stay empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions {
    /// The release of the operating system's kernel.
    pub release: String,
    /// Relative capacity of each usable core, 1024 for the fastest kind, and its highest clock in kHz.
    pub capacities: Vec<[Option<u64>; 2]>,
    /// CPU seconds per second that the control groups of this process allow; `None` for no limit.
    pub quota: Option<f64>,
}

/// The conditions of this process on these cores. It never fails.
pub fn conditions(cores: &[usize]) -> Conditions {
    let number = |core: usize, file: &str| read(core, file).and_then(|text| text.parse().ok());
    let capacity = |&core: &usize| [number(core, "cpu_capacity"), number(core, "cpufreq/scaling_max_freq")];
    Conditions { release: release(), capacities: cores.iter().map(capacity).collect(), quota: quota() }
}

#[cfg(unix)]
fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn release() -> String {
    String::new()
}

/// The tightest CPU limit of this process's control groups and of those above them.
fn quota() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        // Version 2 has one group without controllers' names; version 1 has one for each controller.
        let (root, limit): (&str, fn(&Path) -> Option<f64>) = match controllers {
            "" => ("/sys/fs/cgroup", limit_of_two),
            names if names.split(',').any(|name| name == "cpu") => ("/sys/fs/cgroup/cpu", limit_of_one),
            _ => return None,
        };
        let own: PathBuf = Path::new(root).join(path.trim_start_matches('/'));
        own.ancestors().take_while(|group| group.starts_with(root)).filter_map(limit).reduce(f64::min)
    });
    limits.reduce(f64::min)
}

fn limit_of_two(group: &Path) -> Option<f64> {
    of_two(&fs::read_to_string(group.join("cpu.max")).ok()?)
}

/// Parses `cpu.max`: microseconds of CPU time in a period, and the period.
fn of_two(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    ratio(fields.next()?, fields.next()?)
}

fn limit_of_one(group: &Path) -> Option<f64> {
    let file = |name: &str| fs::read_to_string(group.join(name)).ok();
    ratio(file("cpu.cfs_quota_us")?.trim(), file("cpu.cfs_period_us")?.trim())
}

/// `None` for `max` and for -1, which are no limit.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        assert_eq!(of_two("150000 100000\n"), Some(1.5));
        assert_eq!(of_two("max 100000\n"), None);
        assert_eq!(ratio("-1", "100000"), None);
        assert_eq!(ratio("50000", "0"), None);
    }

    #[test]
    fn the_same_machine_has_the_same_conditions() {
        let here = conditions(&[0]);
        assert_eq!(here, conditions(&[0]));
        assert_eq!(here.capacities.len(), 1);
    }
}
