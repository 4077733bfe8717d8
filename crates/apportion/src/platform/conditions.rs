//! What a machine's measured speeds depend on, besides its processor model.

use super::control_groups::ControlGroups;
use super::discover::read;
use std::path::Path;

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
    let quota = ControlGroups::of_process(Path::new("/")).quota();
    Conditions { release: release(), capacities: cores.iter().map(capacity).collect(), quota }
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
    fn the_same_machine_has_the_same_conditions() {
        let here = conditions(&[0]);
        assert_eq!(here, conditions(&[0]));
        assert_eq!(here.capacities.len(), 1);
    }
}
