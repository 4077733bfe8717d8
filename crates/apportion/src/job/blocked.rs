//! Work that is larger than memory, or outlives its process: done in parts, from disk to disk.

use super::Context;
use crate::error::{Error, Result};
use crate::matrix::{Element, Matrix};
use crate::process_memory::{MemoryLeft, memory_budget, require_memory};
use crate::product::{Checkpoint, Fingerprint};
use crate::units::show_bytes;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Panels of a product with a checkpoint, if nothing else decides their number.
const CHECKPOINT_PANELS: u64 = 16;

/// What is asked for: a limit of memory, parts, and where finished ones are kept.
#[derive(Debug, Clone, Default)]
pub struct BlockedOptions {
    /// Memory limit of the process in bytes.
    pub memory: Option<u64>,
    /// Number of panels of a product.
    pub panels: Option<u64>,
    /// Directory where finished parts are kept.
    pub checkpoint: Option<PathBuf>,
    /// Directory from whose parts the run continues.
    pub resume: Option<PathBuf>,
}

/// What work needs that is done at once.
#[derive(Debug, Clone, Copy)]
pub struct MemoryNeed<'a> {
    /// What errors call the work's place, and the work.
    pub place: &'a str,
    /// The work.
    pub what: &'a str,
    /// Bytes that it takes at least.
    pub bytes: u128,
    /// How it is done in parts, if it can be.
    pub parts: Option<&'a str>,
    /// What helps where it cannot.
    pub remedy: &'a str,
}

impl BlockedOptions {
    /// True if parts are asked for.
    pub fn requested(&self) -> bool {
        self.memory.is_some() || self.panels.is_some() || self.directory().is_some()
    }

    /// Where finished parts are kept.
    pub fn directory(&self) -> Option<&PathBuf> {
        self.checkpoint.as_ref().or(self.resume.as_ref())
    }

    /// Number of panels, as requested or by default.
    pub(super) fn count(&self) -> u64 {
        let default = if self.directory().is_some() && self.memory.is_none() { CHECKPOINT_PANELS } else { 1 };
        self.panels.unwrap_or(default)
    }

    /// The limit that the free memory of a process alone sets: where work does not fit it at once, or the limit that was
    /// asked for does not; `None` where it fits. A note says that the work is done in parts.
    ///
    /// # Errors
    /// It does not fit, and cannot be done in parts: exit code 2.
    pub fn limit_by_free_memory(&self, need: MemoryNeed<'_>, context: Context<'_>) -> Result<Option<u64>> {
        let budget = memory_budget().filter(|_| context.world.is_solo());
        if self.requested() {
            return Ok(budget.filter(|most| self.memory.is_some_and(|memory| memory > *most)));
        }
        let MemoryNeed { place, what, bytes, parts, remedy } = need;
        let Some((most, left)) = budget.zip(MemoryLeft::now()).filter(|(_, left)| !left.fits(bytes)) else {
            return Ok(None);
        };
        let Some(parts) = parts else { return require_memory(place, what, bytes, remedy).map(|()| None) };
        let (needs, most) = (left.beside(bytes), show_bytes(most as f64));
        context.note(format!("apportion: {what} needs {needs}: {parts}, within {most}"));
        Ok(budget)
    }

    /// Opens the checkpoint of the work, if it has one, on the process that keeps its parts.
    ///
    /// # Errors
    /// As [`Checkpoint::open`]; one is to be begun but is there.
    pub fn open_kept(&self, identity: Fingerprint, context: Context<'_>) -> Result<Option<Kept>> {
        let Some(directory) = self.directory() else { return Ok(None) };
        let (checkpoint, begun) = Checkpoint::open(directory, &identity)?;
        let place = directory.display().to_string();
        match (&begun, &self.checkpoint) {
            (Some(_), Some(_)) => {
                let what = "holds a checkpoint already";
                return Err(Error::input(place, what, "continue it with `resume`"));
            }
            (None, None) => context.note(format!("{place}: no checkpoint yet; starting a new one")),
            _ => {}
        }
        Ok(Some(Kept { checkpoint, identity, begun }))
    }
}

/// The finished parts of some work.
#[derive(Debug)]
pub struct Kept {
    /// Their directory.
    pub checkpoint: Checkpoint,
    identity: Fingerprint,
    /// The decisions of the run that began it, if there is one.
    pub begun: Option<Value>,
}

impl Kept {
    /// Keeps the decisions, unless an earlier run has.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn begin(&self, decisions: Value) -> Result<()> {
        if self.begun.is_some() { Ok(()) } else { self.checkpoint.begin(&self.identity, decisions) }
    }
}

/// An error of a run of which `what` is kept in a directory, with instructions to continue.
#[must_use]
pub fn with_kept_parts(error: Error, what: &str, directory: &Path) -> Error {
    error.with_kept(&kept_parts(what, directory))
}

/// What is kept where, and how to continue.
pub fn kept_parts(what: &str, directory: &Path) -> String {
    let directory = directory.display();
    format!(
        "{what} kept in {directory}: the same command with `resume = {directory}` instead of `checkpoint` continues"
    )
}

/// Takes a part that has just been finished, on rank 0.
pub type Keep<'k, T> = dyn FnMut(usize, &Matrix<T>) -> Result<()> + 'k;

/// Work in parts that are finished one after the other.
pub trait Blocked<T> {
    /// Number of parts.
    fn count(&self) -> usize;

    /// Rows and columns of a part as it is kept.
    fn sizes(&self, part: usize) -> [u64; 2];

    /// Takes a part that an earlier run has finished; rank 0 has it. Every rank must call it.
    ///
    /// # Errors
    /// It cannot be written where it belongs; known to all ranks.
    fn take(&mut self, part: usize, elements: Option<Matrix<T>>) -> Result<()>;

    /// Computes a part, and perhaps others after it, and lets `keep` have each. Returns the next part. Every rank must
    /// call it.
    ///
    /// # Errors
    /// Those of the work and of `keep`; known to all ranks.
    fn compute(&mut self, part: usize, keep: &mut Keep<'_, T>) -> Result<usize>;
}

/// Finishes all parts: those that are kept are taken, the others computed and kept, by rank 0. Returns the number of those
/// that were kept. Every rank must call it.
///
/// # Errors
/// Those of the work; the directory cannot be read or written; interrupted.
pub fn finish_parts<T: Element>(
    work: &mut impl Blocked<T>,
    kept: Option<&Kept>,
    context: Context<'_>,
) -> Result<usize> {
    let (world, mut next, mut resumed) = (context.world, 0, 0);
    let damaged = |path: &Path| context.note(format!("{}: is damaged, and computed again", path.display()));
    while next < work.count() {
        let load = |kept: &Kept| kept.checkpoint.load(next, work.sizes(next), &mut |path| damaged(path));
        let found = world.all_ok(kept.map_or(Ok(None), load))?;
        if world.broadcast(&[u8::from(found.is_some())])? == [1] {
            work.take(next, found)?;
            (next, resumed) = (next + 1, resumed + 1);
        } else {
            let mut keep = |part: usize, elements: &Matrix<T>| {
                kept.map_or(Ok(()), |kept| kept.checkpoint.save(part, elements))
            };
            next = work.compute(next, &mut keep)?;
        }
        if context.monitor.is_stopped() {
            return Err(Error::Interrupted);
        }
    }
    Ok(resumed)
}
