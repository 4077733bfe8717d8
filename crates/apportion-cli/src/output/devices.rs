//! Devices, as `detect` and `doctor` describe them.

use apportion::device::DeviceInfo;
use apportion::platform::Platform;
use apportion::units::show_bytes;
use serde::{Deserialize, Serialize};

/// A device that can compute.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Device {
    id: String,
    name: String,
    /// `cpu`, `gpu` or `accelerator`.
    r#type: String,
    memory_bytes: u64,
    f64: bool,
    /// `opencl` or `cuda`.
    api: String,
}

impl Device {
    /// `opencl:0: NAME, gpu, 12 GB, f64`.
    pub fn text(&self) -> String {
        let f64 = if self.f64 { "f64" } else { "no f64" };
        let memory = show_bytes(self.memory_bytes as f64);
        format!("{}: {}, {}, {memory}, {f64}", self.id, self.name, self.r#type)
    }
}

/// The descriptions of devices that were found.
pub fn describe_devices(found: Vec<DeviceInfo>) -> Vec<Device> {
    let describe = |found: DeviceInfo| Device {
        r#type: found.kind.name().into(),
        api: found.id.split(':').next().unwrap_or_default().into(),
        id: found.id,
        name: found.name,
        memory_bytes: found.memory_bytes,
        f64: found.f64,
    };
    found.into_iter().map(describe).collect()
}

/// Adds the devices of a host to its platform, but for those that are the cores: `gpu0`, after the name of the host
/// if it has one.
pub fn add_devices(platform: &mut Platform, host: Option<&str>, devices: &[Device]) {
    let others = devices.iter().filter(|device| device.r#type != "cpu");
    for (number, device) in others.enumerate() {
        let name = format!("{}{number}", device.r#type);
        match host {
            Some(host) => platform.add_device(format!("{host}-{name}"), host, &device.id),
            None => platform.add_device(name, "devices", &device.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_are_no_cores_become_processors() {
        let device = |number: usize, kind: &str| Device {
            id: format!("opencl:{number}"),
            name: "a device".into(),
            r#type: kind.into(),
            memory_bytes: 1 << 30,
            f64: true,
            api: "opencl".into(),
        };
        let found = [device(0, "cpu"), device(1, "gpu"), device(2, "accelerator")];
        let mut platform = Platform::from_speeds(&[1.0]).unwrap();
        add_devices(&mut platform, None, &found);
        add_devices(&mut platform, Some("beta"), &found[1..2]);
        assert_eq!(platform.names(), ["p0", "gpu0", "accelerator1", "beta-gpu0"]);
        assert_eq!(platform.processors[3].cluster, "beta");
        let again = apportion::platform::parse_platform(&platform.to_toml(), "again").unwrap();
        assert_eq!(again.processors, platform.processors);
    }
}
