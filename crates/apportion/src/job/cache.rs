//! What is measured and cached between runs, one file per machine, kernel and set of processors: speed
//! functions, and which kernel is the fastest; one per set of hosts: the network between them; one per device:
//! its link; and one per interface of devices: what its drivers offer.

use crate::device::{Interface, open_device};
use crate::files::{cache_directory, read_own_text};
use crate::kernels::instruction_set;
use crate::measure::{CpuShare, DriverLook, QuickSpeeds, TimeRange};
use crate::model::Models;
use crate::output::write_cache;
use crate::platform::{DeviceMemory, Platform, Processor, discover, read_host_state};
use crate::run::host_name;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

/// The file of speed functions for this machine, kernel and processors; `None` if the user has no cache
/// directory.
pub(crate) fn path(platform: &Platform, kernel: &str, block: u64) -> Option<PathBuf> {
    file("models", platform, kernel, block)
}

/// The file that names the fastest kernel of this machine for these processors.
pub(crate) fn race_path(platform: &Platform, kernel: &str, block: u64) -> Option<PathBuf> {
    file("fastest", platform, kernel, block)
}

/// The file of the network between these hosts.
pub(crate) fn network_path(hosts: &str) -> Option<PathBuf> {
    let key = format!("{} {hosts}", env!("CARGO_PKG_VERSION"));
    Some(cache_directory()?.join(format!("network-{:016x}.json", XxHash64::oneshot(0, key.as_bytes()))))
}

/// What a program was compiled to: another build of the same sources has other speeds.
struct Build {
    version: &'static str,
    /// With all optimisations and without checks of the program's own, or not.
    profile: &'static str,
    /// Those that its kernels use here.
    instructions: &'static str,
}

impl Build {
    fn of_this_program() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
            instructions: instruction_set(),
        }
    }
}

fn file(what: &str, platform: &Platform, kernel: &str, block: u64) -> Option<PathBuf> {
    let hash = XxHash64::oneshot(0, key(&Build::of_this_program(), platform, kernel, block).as_bytes());
    Some(cache_directory()?.join(format!("{what}-{kernel}-{hash:016x}.json")))
}

/// All that measured speeds depend on, but for the conditions that are read when they are remembered.
fn key(build: &Build, platform: &Platform, kernel: &str, block: u64) -> String {
    let machine = discover();
    let Build { version, profile, instructions } = build;
    let mut key = format!(
        "{version} {profile} {instructions} {} cores={} {kernel} block={block}",
        machine.model,
        machine.cores.len()
    );
    for p in &platform.processors {
        let _ = write!(key, " {:?} cores={:?} slowdown={}", p.name, p.cores, p.slowdown);
        if let Some(id) = &p.device {
            // Its tiles, and so its speed, follow from its memory.
            let _ = write!(key, " device={} memory={:?}", device_name(id), p.memory);
        }
    }
    key
}

/// A device by more than its number, which another may have later.
fn device_name(id: &str) -> String {
    open_device(id).map_or_else(|_| id.to_owned(), |device| device.info().to_string())
}

/// The file of the link between a device and its host; `None` for processors that are no devices.
fn link_path(processor: &Processor) -> Option<PathBuf> {
    let id = processor.device.as_ref()?;
    let key = format!(
        "{} {} {} cores={:?}",
        env!("CARGO_PKG_VERSION"),
        discover().model,
        device_name(id),
        processor.cores
    );
    let hash = XxHash64::oneshot(0, key.as_bytes());
    Some(cache_directory()?.join(format!("link-{hash:016x}.json")))
}

/// The memory of a processor that is a device, behind the link that an earlier run has measured.
pub(crate) fn recall_link(processor: &Processor, memory: &DeviceMemory) -> Option<DeviceMemory> {
    let value: Value = serde_json::from_str(&text(&link_path(processor)?)?).ok()?;
    let number = |field: &str, least: f64| value[field].as_f64().filter(|x| x.is_finite() && *x >= least);
    Some(DeviceMemory {
        latency: number("latency", 0.0)?,
        up: number("up", 1.0)?,
        down: number("down", 1.0)?,
        duplex: value["duplex"].as_bool()?,
        ..memory.clone()
    })
}

/// Saves the link of a processor that is a device.
pub(crate) fn store_link(processor: &Processor, memory: &DeviceMemory) {
    let DeviceMemory { latency, up, down, duplex, .. } = memory;
    if let Some(path) = link_path(processor) {
        let value = json!({"format": "apportion-device-link", "version": 1, "latency": latency, "up": up,
            "down": down, "duplex": duplex});
        write_cache(&path, format!("{value:#}\n"));
    }
}

/// What variables that drivers read begin with.
const DRIVER_VARIABLES: [&str; 9] =
    ["LD_", "OCL_", "OPENCL_", "POCL_", "CUDA_", "NVIDIA_", "ROCR_", "HIP_", "GPU_"];

/// The file of what the drivers of an interface offer, which is so while their files and variables stay as they are.
fn drivers_path(interface: Interface) -> Option<PathBuf> {
    let mut key = format!("{} {}", env!("CARGO_PKG_VERSION"), host_name());
    for path in interface.driver_files() {
        let about = path.metadata().ok().filter(std::fs::Metadata::is_file);
        let about = about.map(|about| (about.len(), about.modified().ok()));
        let _ = write!(key, " {path:?} {about:?}");
    }
    let is_read = |name: &str| DRIVER_VARIABLES.iter().any(|begin| name.starts_with(begin));
    let variables = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_read));
    let variables: BTreeMap<_, _> = variables.collect();
    let _ = write!(key, " {variables:?}");
    let hash = XxHash64::oneshot(0, key.as_bytes());
    Some(cache_directory()?.join(format!("drivers-{}-{hash:016x}.json", interface.id())))
}

/// What an earlier look at these drivers found.
pub(crate) fn recall_drivers(interface: Interface) -> Option<DriverLook> {
    serde_json::from_str(&text(&drivers_path(interface)?)?).ok()
}

/// Saves what a look at these drivers found.
pub(crate) fn store_drivers(interface: Interface, look: &DriverLook) {
    if let Some(path) = drivers_path(interface) {
        write_cache(&path, json!(look).to_string());
    }
}

/// What the cache knows.
pub(crate) enum Remembered {
    /// Speeds, measured under the conditions of now.
    Speeds(QuickSpeeds),
    /// Speeds of other conditions; the text says what has changed.
    Elsewhere(&'static str),
    /// No speeds of these processors, or none that can be read.
    Nothing,
}

/// The remembered speeds of these processors; what other programs leave to them is not remembered.
pub(crate) fn load(path: &Path, platform: &Platform) -> Remembered {
    let parsed = || {
        let value: Value = serde_json::from_str(&text(path)?).ok()?;
        let speeds = parsed(&value)?;
        (speeds.models.names() == platform.names() && plausible(&speeds, platform)).then_some((value, speeds))
    };
    let Some((value, speeds)) = parsed() else { return Remembered::Nothing };
    let (then, now) = (&value["conditions"], about(platform));
    for (field, changed) in [
        ("release", "the operating system has changed"),
        ("capacities", "the capacity of the cores has changed"),
        ("quota", "the CPU quota has changed"),
    ] {
        if then[field] != now[field] {
            return Remembered::Elsewhere(changed);
        }
    }
    Remembered::Speeds(speeds)
}

/// The text of a file of the program's own; `None` if it cannot be one.
pub(crate) fn text(path: &Path) -> Option<String> {
    read_own_text(path).ok()
}

/// Operations per second that no core reaches: a file with more was not measured.
const MOST_OPERATIONS: f64 = 1e14;
/// Operations per second that every core reaches.
const LEAST_OPERATIONS: f64 = 1e4;

/// Whether processors could have these speeds; otherwise they are measured again.
fn plausible(speeds: &QuickSpeeds, platform: &Platform) -> bool {
    let block = speeds.models.block().unwrap_or(1) as f64;
    speeds.models.models.iter().zip(&platform.processors).all(|(model, processor)| {
        let cores = processor.cores.len().max(1) as f64;
        model.points().iter().all(|point| {
            let operations = 2.0 * block * point.speed() * processor.slowdown / cores;
            (LEAST_OPERATIONS..MOST_OPERATIONS).contains(&operations)
        })
    })
}

/// The conditions under which the platform's processors are measured now.
fn about(platform: &Platform) -> Value {
    let mut cores: Vec<usize> = platform.processors.iter().flat_map(|p| p.cores.clone()).collect();
    if cores.is_empty() {
        cores = discover().cores.iter().map(|core| core.cpu).collect();
    }
    let now = read_host_state(&cores);
    let capacities: Vec<_> = now.cores.iter().map(|core| [core.capacity, core.max_khz]).collect();
    json!({"release": now.release, "capacities": capacities, "quota": now.quota})
}

/// Parses what [`store`] wrote.
fn parsed(value: &Value) -> Option<QuickSpeeds> {
    let models = Models::parse(&value["models"].to_string(), "remembered speeds").ok()?;
    let numbers = |field: &str| -> Option<Vec<Vec<f64>>> {
        serde_json::from_value(value[field].clone())
            .ok()
            .filter(|all: &Vec<_>| all.len() == models.models.len())
    };
    let spread = numbers("spread")?.into_iter().map(|spread| match spread[..] {
        [low, high] if 0.0 < low && low <= high && high.is_finite() => Some(TimeRange { low, high }),
        _ => None,
    });
    Some(QuickSpeeds {
        shares: vec![CpuShare::WHOLE; models.models.len()],
        spread: spread.collect::<Option<_>>()?,
        windows: value["windows"].as_u64()? as usize,
        models,
    })
}

/// Saves the speeds and the present conditions; a cache that cannot be written is not an error.
pub(crate) fn store(path: &Path, speeds: &QuickSpeeds, platform: &Platform) {
    let models: Value = serde_json::from_str(&speeds.models.to_json()).expect("models are written as JSON");
    let spread: Vec<[f64; 2]> = speeds.spread.iter().map(|range| [range.low, range.high]).collect();
    let value = json!({"format": "apportion-speeds", "version": 1, "conditions": about(platform),
        "spread": spread, "windows": speeds.windows, "models": models});
    write_cache(path, format!("{value:#}\n"));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;

    /// Speeds of a build without optimisation are not those of one with it, and neither are those of a kernel with
    /// other instructions.
    #[test]
    fn another_build_remembers_other_speeds() {
        let platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        let build = |version, profile, instructions| {
            key(&Build { version, profile, instructions }, &platform, "gemm-f64", 64)
        };
        let keys = [
            build("0.1.0", "release", "AVX2"),
            build("0.1.0", "debug", "AVX2"),
            build("0.1.0", "release", "AVX-512"),
            build("0.1.1", "release", "AVX2"),
        ];
        let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len(), "{keys:?}");
        assert_eq!(keys[0], build("0.1.0", "release", "AVX2"));
    }
}
