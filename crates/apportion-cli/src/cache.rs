//! What is measured and cached between runs, one file per machine, kernel and set of processors: speed
//! functions, and which kernel is the fastest.

use apportion::model::{Models, read_models};
use apportion::output::write_whole;
use apportion::platform::{Platform, discover};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

/// The file of speed functions for this machine, kernel and processors; `None` if the user has no cache
/// directory.
pub fn path(platform: &Platform, kernel: &str, block: u64) -> Option<PathBuf> {
    file("models", platform, kernel, block)
}

/// The file that names the fastest kernel of this machine for these processors.
pub fn race_path(platform: &Platform, kernel: &str, block: u64) -> Option<PathBuf> {
    file("fastest", platform, kernel, block)
}

fn file(what: &str, platform: &Platform, kernel: &str, block: u64) -> Option<PathBuf> {
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
            .join(format!("{what}-{kernel}-{:016x}.json", XxHash64::oneshot(0, key.as_bytes()))),
    )
}

/// The cached models, if they exist and can be read.
pub fn load(path: &Path) -> Option<Models> {
    read_models(path).ok()
}

/// Saves the models; a cache that cannot be written is not an error.
pub fn store(path: &Path, models: &Models) {
    store_text(path, &models.to_json());
}

/// Saves a text, as [`store`].
pub fn store_text(path: &Path, text: &str) {
    if let Some(directory) = path.parent()
        && std::fs::create_dir_all(directory).is_ok()
    {
        let _ = write_whole(path, text.as_bytes());
    }
}
