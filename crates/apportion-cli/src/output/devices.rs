//! Devices, as `detect` and `doctor` describe them.

use apportion::kernels::opencl_devices;
use apportion::units::show_bytes;
use serde::{Deserialize, Serialize};

/// A device that can compute.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Device {
    id: String,
    name: String,
    memory_bytes: u64,
    f64: bool,
    api: String,
}

impl Device {
    /// `opencl:0: NAME, 12 GB, f64`.
    pub fn text(&self) -> String {
        let f64 = if self.f64 { "f64" } else { "no f64" };
        format!("{}: {}, {}, {f64}", self.id, self.name, show_bytes(self.memory_bytes as f64))
    }
}

/// The devices of this machine; `None` without a library that lists them.
pub fn find_devices() -> Option<Vec<Device>> {
    let devices = opencl_devices()?.into_iter().map(|found| Device {
        id: found.id,
        name: found.name,
        memory_bytes: found.memory_bytes,
        f64: found.f64,
        api: "opencl".into(),
    });
    Some(devices.collect())
}
