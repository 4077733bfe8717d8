//! Finished panels of a result on disk, with the identity of the work: a run that was killed resumes from them.
//!
//! The file of a panel appears completely or not at all, and its name contains a hash of the work's
//! identity, of the panel's number and of its elements. A panel that was not finished is missing; a panel
//! that was changed, renamed or taken from other work is detected and computed again. A lock keeps
//! other processes out of the directory.

use crate::error::{Error, Result};
use crate::files::read_own_text;
use crate::geometry::{Rect, Span};
use crate::kernels::Instructions;
use crate::matrix::{Element, Matrix, NpyFile, write_npy};
use crate::output::OutputFile;
use crate::plan::Plan;
use crate::product::Panels;
use crate::schedule::ScheduleOptions;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::Hasher;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Identity of a computation: two with the same fingerprint have the same bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    /// What is computed, as errors call it: a product, or a factorisation.
    pub work: &'static str,
    /// Each input file: its name, its sizes and its digest, or another identification.
    pub inputs: Vec<Value>,
    /// The semiring, the element type, the scalars, and everything else that determines the result.
    pub settings: Value,
}

impl Fingerprint {
    /// The identity of an input file: its name, its sizes and a [`digest`](crate::matrix::digest) of what the work reads
    /// of it.
    pub fn of_file(file: &NpyFile, digest: u64) -> Value {
        let header = *file.header();
        json!({
            "name": file.path().file_name().map(|name| name.to_string_lossy().into_owned()),
            "rows": header.rows,
            "cols": header.cols,
            "digest": format!("{digest:016x}"),
        })
    }

    /// What bytes depend on besides inputs and settings: the version of the program, and whether the instructions that
    /// its kernels use here [fuse](Instructions::are_fused) operations.
    pub fn program() -> Value {
        let instructions = if Instructions::are_fused() { "fused" } else { "portable" };
        json!({"version": env!("CARGO_PKG_VERSION"), "instructions": instructions})
    }

    fn to_value(&self) -> Value {
        json!({"inputs": self.inputs, "settings": self.settings})
    }
}

/// A directory of finished panels, locked while this value exists.
#[derive(Debug)]
pub struct Checkpoint {
    directory: PathBuf,
    /// Hash of the work's fingerprint: panels of other work have other names.
    identity: u64,
    /// Holds the lock; the operating system releases it when the process ends.
    _lock: File,
}

/// The decisions at the start of a checkpoint. With newly measured speeds they could differ.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The plan of a panel of full height.
    pub(crate) plan: Plan,
    /// Flow, block, overlap.
    pub(crate) order: ScheduleOptions,
    /// Panels of C.
    pub(crate) panels: Panels,
}

impl Manifest {
    /// The decisions as JSON.
    pub fn to_value(&self) -> Value {
        let Self { plan, order, panels } = self;
        json!({
            "rows": panels.rows,
            "segment": panels.segment,
            "order": {
                "flow": order.flow.to_string(),
                "block": order.block,
                "overlap": order.overlaps(),
                "look_ahead": order.look_ahead,
            },
            "plan": Plan { forecast: None, baselines: None, ..plan.clone() }.to_value(),
        })
    }

    /// The decisions that a checkpoint was begun with.
    ///
    /// # Errors
    /// They are not those of a product: exit code 2.
    pub(crate) fn of_checkpoint(checkpoint: &Checkpoint, decisions: &Value) -> Result<Self> {
        let place = checkpoint.directory.join(MANIFEST).display().to_string();
        manifest_of(decisions, &place).ok_or_else(|| checkpoint.damaged("holds no usable plan"))
    }

    /// Parses the output of [`Manifest::to_value`]; `place` names the source in errors.
    ///
    /// # Errors
    /// Text in another format: exit code 2.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let value = serde_json::from_str(text).ok();
        value
            .and_then(|value| manifest_of(&value, place))
            .ok_or_else(|| Error::input(place, "holds no usable plan", "start a new checkpoint"))
    }
}

const MANIFEST: &str = "checkpoint.json";

/// The file whose lock a running process holds.
const LOCK: &str = "checkpoint.lock";

/// The name that a temporary file would have if it ever appeared.
const SCRATCH: &str = "checkpoint.scratch";

/// Start of the names of panels.
const PANEL: &str = "panel-";

/// Start of the names of files that are being written here; nothing else in the directory is called so.
const UNFINISHED: &str = ".checkpoint-";

impl Checkpoint {
    /// Opens and locks a directory, which is created if it is missing, and returns the decisions with which it was
    /// [begun](Self::begin) if it was. Unfinished files of a killed run are deleted.
    ///
    /// # Errors
    /// Exit code 2: the directory cannot be created or read, another process uses it, its manifest is
    /// damaged or missing although there are panels, or it belongs to other work.
    pub fn open(directory: &Path, identity: &Fingerprint) -> Result<(Self, Option<Value>)> {
        std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
        let lock = locked(directory)?;
        let hash = twox_hash::XxHash64::oneshot(0, identity.to_value().to_string().as_bytes());
        let checkpoint = Self { directory: directory.to_path_buf(), identity: hash, _lock: lock };
        for name in checkpoint.names()?.iter().filter(|name| name.starts_with(UNFINISHED)) {
            // Only the holder of the lock writes such files: this one was left behind by a killed run.
            let _ = std::fs::remove_file(directory.join(name));
        }
        for name in checkpoint.names()?.iter().filter(|name| name.starts_with(PANEL)) {
            regular(directory.join(name))?;
        }
        let path = checkpoint.own(MANIFEST)?;
        let text = match read_own_text(&path) {
            Ok(text) => text,
            Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return match checkpoint.count()? {
                    0 => Ok((checkpoint, None)),
                    panels => Err(Error::input(
                        directory.display().to_string(),
                        format!(
                            "has {panels} panels of a {} but no {MANIFEST} that says which",
                            identity.work
                        ),
                        "delete the panels, or name another directory",
                    )),
                };
            }
            Err(error) => return Err(error),
        };
        let manifest: Value = serde_json::from_str(&text)
            .map_err(|e| checkpoint.damaged(&format!("is not valid JSON: {e}")))?;
        if (&manifest["format"], &manifest["version"]) != (&json!("apportion-checkpoint"), &json!(3)) {
            return Err(checkpoint.damaged("is not the manifest of a checkpoint of version 3"));
        }
        let other = |what: &str, then: &Value, now: &Value| {
            let work = identity.work;
            let what = format!("belongs to another {work}: its {what} were {then}, now they are {now}");
            Error::input(path.display().to_string(), what, "give the same inputs, or another directory")
        };
        // What is read of an input may depend on the settings, which are therefore compared first.
        if manifest["settings"] != identity.settings {
            return Err(other("settings", &manifest["settings"], &identity.settings));
        }
        let inputs = json!(identity.inputs);
        if manifest["inputs"] != inputs {
            return Err(other("inputs", &manifest["inputs"], &inputs));
        }
        Ok((checkpoint, Some(manifest)))
    }

    /// The error of a manifest that says something else than it should.
    pub fn damaged(&self, what: &str) -> Error {
        let place = self.directory.join(MANIFEST).display().to_string();
        Error::input(place, what, "delete the directory and start again")
    }

    /// Writes the manifest: the identity, and an object of decisions that later runs keep to.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn begin(&self, identity: &Fingerprint, decisions: Value) -> Result<()> {
        let mut manifest = json!({
            "format": "apportion-checkpoint",
            "version": 3,
            "inputs": identity.inputs,
            "settings": identity.settings,
        });
        if let (Value::Object(all), Value::Object(decided)) = (&mut manifest, decisions) {
            all.extend(decided);
        }
        let mut file = OutputFile::create_own(self.own(MANIFEST)?, UNFINISHED)?;
        file.put(format!("{manifest:#}\n").as_bytes())?;
        file.commit()
    }

    /// Saves a finished panel.
    ///
    /// # Errors
    /// The disk is full, or another error of the operating system.
    pub fn save<T: Element>(&self, index: usize, panel: &Matrix<T>) -> Result<()> {
        let mut file = OutputFile::create_own(self.own(&self.name_of(index, panel))?, UNFINISHED)?;
        write_npy(&mut file, panel)?;
        file.commit()
    }

    /// Loads a finished panel of so many rows and columns if its file is as it was saved. A damaged file is deleted, and `damaged`
    /// is called with its name.
    ///
    /// # Errors
    /// The directory cannot be read, or a damaged file cannot be deleted.
    pub(crate) fn load<T: Element>(
        &self,
        index: usize,
        [rows, cols]: [u64; 2],
        damaged: &mut dyn FnMut(&Path),
    ) -> Result<Option<Matrix<T>>> {
        let prefix = prefix(index);
        for name in self.names()?.iter().filter(|name| name.starts_with(&prefix)) {
            let path = self.directory.join(name);
            let panel = read(&path, rows, cols);
            let whole = panel.filter(|panel| self.name_of(index, panel) == **name);
            match whole {
                Some(panel) => return Ok(Some(panel)),
                None => {
                    damaged(&path);
                    std::fs::remove_file(&path).map_err(|e| Error::file(&path, "delete", e))?;
                }
            }
        }
        Ok(None)
    }

    /// Deletes the panels from one on, which turned out to be wrong; returns the number of files.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be deleted.
    pub fn remove_from(&self, index: usize) -> Result<usize> {
        let number = |name: &str| name.strip_prefix(PANEL)?.split('-').next()?.parse::<usize>().ok();
        let names = self.names()?.into_iter().filter(|name| number(name).is_some_and(|panel| panel >= index));
        let paths: Vec<PathBuf> = names.map(|name| self.directory.join(name)).collect();
        paths
            .iter()
            .try_for_each(|path| std::fs::remove_file(path).map_err(|e| Error::file(path, "delete", e)))?;
        Ok(paths.len())
    }

    /// A temporary file in the directory, which the next run deletes if this one is killed.
    ///
    /// # Errors
    /// No file can be created there.
    pub fn scratch(&self) -> Result<OutputFile> {
        OutputFile::create_own(self.own(SCRATCH)?, UNFINISHED)
    }

    /// The path of a file of this checkpoint. A link there is not written through.
    fn own(&self, name: &str) -> Result<PathBuf> {
        regular(self.directory.join(name))
    }

    /// Number of saved panels.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn count(&self) -> Result<usize> {
        let number = |name: &String| name.strip_prefix(PANEL)?.split('-').next().map(str::to_owned);
        Ok(self.names()?.iter().filter_map(number).collect::<BTreeSet<String>>().len())
    }

    /// The file name of a panel of this work.
    fn name_of<T: Element>(&self, index: usize, panel: &Matrix<T>) -> String {
        let mut hash = twox_hash::XxHash64::with_seed(self.identity);
        hash.write_u64(index as u64);
        hash.write(bytemuck::cast_slice(panel.as_slice()));
        format!("{}{:016x}.npy", prefix(index), hash.finish())
    }

    fn names(&self) -> Result<Vec<String>> {
        let unreadable = |e| Error::file(&self.directory, "read", e);
        let entries = std::fs::read_dir(&self.directory).map_err(unreadable)?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }
}

fn prefix(index: usize) -> String {
    format!("{PANEL}{index:06}-")
}

/// The lock of a directory, which no other process holds.
fn locked(directory: &Path) -> Result<File> {
    let path = regular(directory.join(LOCK))?;
    let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = open.map_err(|e| Error::file(&path, "create", e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        // Some network file systems have no locks.
        Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(file),
        Err(TryLockError::Error(e)) => Err(Error::file(&path, "lock", e)),
        Err(TryLockError::WouldBlock) => Err(Error::input(
            directory.display().to_string(),
            "is in use by another process that computes this checkpoint",
            "wait until it ends, or name another directory",
        )),
    }
}

fn manifest_of(manifest: &Value, place: &str) -> Option<Manifest> {
    let order = &manifest["order"];
    Some(Manifest {
        plan: Plan::parse(&manifest["plan"].to_string(), place).ok()?,
        order: ScheduleOptions::new(
            order["flow"].as_str()?.parse().ok()?,
            order["block"].as_u64().filter(|b| *b > 0)?,
        )
        .with_look_ahead(match order["overlap"].as_bool() {
            // Earlier versions wrote a look-ahead that was not used.
            Some(false) => 0,
            _ => order["look_ahead"].as_u64()?,
        }),
        panels: Panels {
            rows: manifest["rows"].as_u64().filter(|r| *r > 0)?,
            segment: manifest["segment"].as_u64().filter(|s| *s > 0)?,
        },
    })
}

/// Reads a panel's elements if its file contains this type and size.
fn read<T: Element>(path: &Path, rows: u64, cols: u64) -> Option<Matrix<T>> {
    let mut file = NpyFile::open(path, false).ok()?;
    let header = *file.header();
    let fits = (header.rows as u64, header.cols as u64, header.dtype) == (rows, cols, T::NAME);
    let whole = Rect::new(Span::new(0, rows), Span::new(0, cols));
    if fits && !header.fortran && !header.big_endian { file.read(whole).ok() } else { None }
}

/// The path, if it is that of a regular file or of none.
fn regular(path: PathBuf) -> Result<PathBuf> {
    let Ok(found) = std::fs::symlink_metadata(&path) else { return Ok(path) };
    if found.is_file() {
        return Ok(path);
    }
    let what = if found.is_symlink() { "is a link" } else { "is not a regular file" };
    let what = format!("{what}, and a checkpoint's directory holds its own files only");
    Err(Error::input(path.display().to_string(), what, "remove it, or name another directory"))
}

#[cfg(test)]
mod tests;
