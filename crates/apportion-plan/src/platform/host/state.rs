//! What a host's measured speeds depend on besides its processors.

use super::files::number_of_cpu;
use crate::ControlGroups;
use std::path::Path;

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
    let root = Path::new("/");
    let state = |&core: &usize| CoreState {
        capacity: number_of_cpu(root, core, "cpu_capacity"),
        max_khz: number_of_cpu(root, core, "cpufreq/scaling_max_freq"),
    };
    let quota = ControlGroups::of_process(root).quota();
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
    fn a_host_has_one_state() {
        let here = read_host_state(&[0]);
        assert_eq!(here, read_host_state(&[0]));
        assert_eq!(here.cores.len(), 1);
    }
}
