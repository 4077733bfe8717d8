//! Speed functions cached between runs, one file per machine, kernel and set of processors.

use apportion::model::{Models, read_models};
use apportion::output::write_whole;
use apportion::platform::{Platform, discover};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

/// The file for this machine, kernel and processors; `None` if the user has no cache directory.
pub fn path(platform: &Platform, kernel: &str, block: u64) -> Option<PathBuf> {
    let directory = match std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from) {
        Some(path) if path.is_absolute() => path,
        _ => PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(".cache"),
    };
    let machine = discover();
    let mut key = format!(
        "{} {} cores={} {kernel} block={block}",
        env!("CARGO_PKG_VERSION"),
        machine.model,
        machine.cores.len()
    );
    for p in &platform.processors {
        let _ = write!(key, " {:?} cores={:?} slowdown={}", p.name, p.cores, p.slowdown);
    }
    Some(
        directory
            .join("apportion")
            .join(format!("models-{kernel}-{:016x}.json", XxHash64::oneshot(0, key.as_bytes()))),
    )
}

/// The cached models, if they exist and can be read.
pub fn load(path: &Path) -> Option<Models> {
    read_models(path).ok()
}

/// Saves the models; a cache that cannot be written is not an error.
pub fn store(path: &Path, models: &Models) {
    if let Some(directory) = path.parent()
        && std::fs::create_dir_all(directory).is_ok()
    {
        let _ = write_whole(path, models.to_json().as_bytes());
    }
}
