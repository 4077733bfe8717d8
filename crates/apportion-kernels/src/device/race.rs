//! The choice of the kernel's variant for a device, by a short race at first use.
//!
//! The winner is kept in memory, and in the user's cache directory for other runs: a file names it, and one beside
//! that holds what the compiler made of it.

use crate::device::variant::{Arithmetic, SOURCE, Variant};
use crate::device::{Device, DeviceTile, Program};
use crate::error::Result;
use crate::files::{cache_directory, open_regular, read_own_text};
use crate::kernels::View;
use crate::matrix::Element;
use crate::output::write_cache;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use twox_hash::XxHash64;

/// Seconds that a product of the race takes at least, unless it is of the largest size.
const LEAST_SECONDS: f64 = 2e-3;
/// The size of the first product of the race, and of the largest.
const SIZES: [usize; 2] = [256, 2048];
/// Columns of A in a product of the race.
const DEPTH: usize = 256;
/// Products of each variant; the fastest counts.
const REPETITIONS: usize = 3;
/// A style is dropped if its first variant takes as many times the seconds of the best.
const HOPELESS: f64 = 3.0;

/// Bytes of the hash before a program in its file, and the most of both.
const HASH: usize = 8;
const LARGEST_BINARY: u64 = 64 << 20;

/// The kernels of a variant, compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    pub variant: Variant,
    pub program: Program,
}

impl Compiled {
    pub(super) fn new(device: &dyn Device, arithmetic: Arithmetic, variant: Variant) -> Result<Self> {
        Ok(Self { variant, program: device.build(arithmetic, variant, None)? })
    }
}

/// Hears how many variants of how many have been compiled and timed; an error ends the race.
pub(super) type Progress<'a> = dyn FnMut(usize, usize) -> Result<()> + 'a;

/// The fastest variant of a kernel on a device. Only one race runs at a time.
///
/// # Errors
/// No variant can be compiled, or the device fails: exit code 1. Those of `progress`.
pub(super) fn fastest<T: Element>(
    device: &Arc<dyn Device>,
    arithmetic: Arithmetic,
    progress: &mut Progress<'_>,
) -> Result<Arc<Compiled>> {
    static FASTEST: Mutex<BTreeMap<(String, String), Arc<Compiled>>> = Mutex::new(BTreeMap::new());
    let key = (device.info().id.clone(), arithmetic.name());
    let mut fastest = FASTEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(compiled) = fastest.get(&key) {
        return Ok(Arc::clone(compiled));
    }
    let path = path(device.as_ref(), arithmetic);
    let known = path.as_ref().and_then(|path| recall(device.as_ref(), arithmetic, path));
    let compiled = match known {
        Some(compiled) => Arc::new(compiled),
        None => {
            let compiled = race::<T>(device, arithmetic, progress)?;
            if let Some(path) = path {
                let value = json!({"format": "apportion-device-kernel", "version": 1,
                    "variant": compiled.variant.name()});
                write_cache(&path, format!("{value:#}\n"));
                store_binary(device.as_ref(), &compiled.program, &path);
            }
            compiled
        }
    };
    fastest.insert(key, Arc::clone(&compiled));
    Ok(compiled)
}

/// Compiles and times the variants.
fn race<T: Element>(
    device: &Arc<dyn Device>,
    arithmetic: Arithmetic,
    progress: &mut Progress<'_>,
) -> Result<Arc<Compiled>> {
    let styles = device.styles(arithmetic);
    let mut size = SIZES[0];
    let mut best: Option<(f64, Arc<Compiled>)> = None;
    let mut failure = None;
    let (mut done, total) = (0, styles.iter().map(Vec::len).sum());
    for variants in styles {
        let after = done + variants.len();
        for (place, variant) in variants.into_iter().enumerate() {
            progress(done + place, total)?;
            let least = best.as_ref().map_or(f64::INFINITY, |(seconds, _)| *seconds);
            // A variant may need more local memory or registers than there are.
            let timed = Compiled::new(device.as_ref(), arithmetic, variant).and_then(|compiled| {
                let compiled = Arc::new(compiled);
                let mut seconds = time::<T>(device, arithmetic, &compiled, size, least)?;
                while best.is_none() && seconds < LEAST_SECONDS && size < SIZES[1] {
                    size *= 2;
                    seconds = time::<T>(device, arithmetic, &compiled, size, least)?;
                }
                Ok((seconds, compiled))
            });
            match timed {
                Ok((seconds, _)) if place == 0 && seconds > HOPELESS * least => break,
                Ok((seconds, _)) if seconds >= least => {}
                Ok(timed) => best = Some(timed),
                Err(error) => failure = Some(error),
            }
        }
        done = after;
    }
    match (best, failure) {
        (Some((_, compiled)), _) => Ok(compiled),
        (None, Some(error)) => Err(error),
        (None, None) => unreachable!("there are variants"),
    }
}

/// The seconds of a product of `size` x [`DEPTH`] x `size`; measured roughly if far beyond the best.
fn time<T: Element>(
    device: &Arc<dyn Device>,
    arithmetic: Arithmetic,
    compiled: &Arc<Compiled>,
    size: usize,
    best: f64,
) -> Result<f64> {
    let shape = [size, size, DEPTH];
    let mut tile = DeviceTile::<T>::with(device, arithmetic, Arc::clone(compiled), shape)?;
    let panel = vec![T::from_f64(1.0); size * DEPTH];
    let (a, b) = (View::dense(&panel, size, DEPTH), View::dense(&panel, DEPTH, size));
    tile.clear()?;
    // The first product may also be compiled: slower ones are not repeated.
    let mut least = tile.update(a, b)? + tile.wait()?;
    for _ in 0..if least > HOPELESS * best { 1 } else { REPETITIONS } {
        least = least.min(tile.update(a, b)? + tile.wait()?);
    }
    Ok(least)
}

/// The file of the winner; `None` if the user has no cache directory.
fn path(device: &dyn Device, arithmetic: Arithmetic) -> Option<PathBuf> {
    let (info, kernel) = (device.info(), arithmetic.name());
    let key = format!("{} {} {} {kernel}", env!("CARGO_PKG_VERSION"), info.name, info.driver);
    let hash = XxHash64::oneshot(0, key.as_bytes());
    Some(cache_directory()?.join(format!("device-{kernel}-{hash:016x}.json")))
}

/// The winner that a file names, if it is one of those that race: as the compiler made it then, or from its source.
fn recall(device: &dyn Device, arithmetic: Arithmetic, path: &Path) -> Option<Compiled> {
    let value: Value = serde_json::from_str(&read_own_text(path).ok()?).ok()?;
    let name = value["variant"].as_str()?;
    let variant = device.styles(arithmetic).into_iter().flatten().find(|variant| variant.name() == name)?;
    let binary = load_binary(path);
    let program = device.build(arithmetic, variant, binary.as_deref()).ok()?;
    if device.binary(&program) != binary {
        store_binary(device, &program, path);
    }
    Some(Compiled { variant, program })
}

/// The file of the program beside that of the winner.
fn binary_path(path: &Path) -> PathBuf {
    path.with_extension("bin")
}

/// A hash of a program and of its source: drivers trust what they are given.
fn binary_hash(binary: &[u8]) -> [u8; HASH] {
    XxHash64::oneshot(XxHash64::oneshot(0, SOURCE.as_bytes()), binary).to_le_bytes()
}

/// Keeps a program beside the file of its variant.
pub(super) fn store_binary(device: &dyn Device, program: &Program, path: &Path) {
    if let Some(binary) = device.binary(program) {
        write_cache(&binary_path(path), [&binary_hash(&binary)[..], &binary].concat());
    }
}

/// The program beside the file of its variant, if it is as it was written.
pub(super) fn load_binary(path: &Path) -> Option<Vec<u8>> {
    let mut contents = Vec::new();
    open_regular(&binary_path(path)).ok()?.take(LARGEST_BINARY).read_to_end(&mut contents).ok()?;
    let (hash, binary) = contents.split_first_chunk::<HASH>()?;
    (*hash == binary_hash(binary)).then(|| binary.to_vec())
}
