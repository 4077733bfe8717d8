//! What goes wrong on a device, in the user's terms.

use crate::device::DeviceInfo;
use crate::error::Error;
use crate::units::show_bytes;

/// What an error code of a driver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The device is out of memory.
    Memory,
    /// Its host is.
    HostMemory,
    /// A kernel needs too much of the device, or was ended.
    Resources,
    /// All else: the device is lost, say.
    Other,
}

impl Fault {
    /// The error of a call of the driver: exit code 1.
    pub(super) fn error(self, info: &DeviceInfo, call: &str, code: i32) -> Error {
        let failed = |what: &str| format!("{info} {what} ({call}: error {code})");
        match self {
            Self::Memory => Error::TooLittleMemory {
                what: failed("is out of memory"),
                remedy:
                    "end other programs that use the device, or give it less `memory` in the platform file"
                        .into(),
            },
            Self::HostMemory => Error::TooLittleMemory {
                what: failed("finds too little memory on its host"),
                remedy: "end other programs, or leave the device out".into(),
            },
            Self::Resources => Error::infeasible(
                failed("failed or is out of resources: memory, registers, or time"),
                "look for its driver's messages in the system's log; if there are none, give the device less \
                 `memory` in the platform file; or leave it out",
            ),
            Self::Other => Error::infeasible(
                failed("failed"),
                "look for its driver's messages in the system's log, and reset it; or leave the device out",
            ),
        }
    }
}

/// The error of an allocation that is larger than any can be: exit code 1.
pub(super) fn too_large(info: &DeviceInfo, bytes: u64) -> Error {
    Error::TooLittleMemory {
        what: format!(
            "{info} allocates at most {} at once, and {} are needed",
            show_bytes(info.allocation_bytes as f64),
            show_bytes(bytes as f64)
        ),
        remedy: "give the device less `memory` in the platform file, so that its tiles are smaller".into(),
    }
}

/// The error of a kernel that the driver refuses to compile, with what its compiler says: exit code 1.
pub(super) fn does_not_build(info: &DeviceInfo, log: &str) -> Error {
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    // The first line that tells of an error, or the first at all.
    let line = lines.clone().find(|line| line.contains("error")).or(lines.next());
    Error::infeasible(
        format!("{info}: a kernel does not build: {}", line.unwrap_or("the compiler says nothing")),
        "update the driver of the device, or leave the device out",
    )
}

/// The error of an `id` with a number that no device has: exit code 2.
pub(super) fn no_such_device<'a>(id: &str, all: impl Iterator<Item = &'a DeviceInfo>) -> Error {
    let there: Vec<String> = all.map(DeviceInfo::to_string).collect();
    let remedy = format!("this machine has {}", there.join(", "));
    Error::input(format!("`device = {id}`"), "there is no such device", remedy)
}
