//! The temporary files of all outputs that are being written, for processes that must end at once.
//!
//! A file is listed before it exists. The list has a lock of its own under which nothing waits and no memory
//! is taken, so that it can be read wherever an allocation is refused.

use crate::memory;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

static LISTED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Held while an output begins or appears.
static GATE: Mutex<()> = Mutex::new(());

/// Outputs that have appeared.
static APPEARED: AtomicUsize = AtomicUsize::new(0);

/// The longest that a process which cannot go on waits for outputs that begin or appear now.
const PATIENCE: Duration = Duration::from_secs(1);

/// Keeps outputs from beginning and appearing; see [`abandon_all`].
pub type Abandoned = MutexGuard<'static, ()>;

/// Removes the temporary files of all outputs that are being written, for a process that is about to end at
/// once. No output appears as long as the returned guard is kept. Also returns the number of files that have
/// appeared before.
pub fn abandon_all() -> (usize, Abandoned) {
    let gate = closed();
    remove_all(&list());
    (APPEARED.load(Ordering::SeqCst), gate)
}

/// The same where this thread may itself be beginning an output or making one appear: where memory is
/// refused, or after SIGABRT. Outputs of other threads that appear now are waited for, but not for long.
pub fn abandon_now() -> usize {
    // Never opened again: the process ends.
    std::mem::forget(patiently(&GATE));
    if let Some(list) = patiently(&LISTED) {
        remove_all(&list);
    }
    APPEARED.load(Ordering::SeqCst)
}

/// Locks, unless that takes too long.
fn patiently<T>(lock: &'static Mutex<T>) -> Option<MutexGuard<'static, T>> {
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) if begun.elapsed() > PATIENCE => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn remove_all(list: &[PathBuf]) {
    for path in list {
        // The process ends; an error cannot be reported.
        let _ = fs::remove_file(path);
    }
}

/// Keeps the process from abandoning outputs, as long as the guard is kept.
pub(super) fn closed() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One more output has appeared.
pub(super) fn appeared() {
    APPEARED.fetch_add(1, Ordering::SeqCst);
}

fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    LISTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary file's entry in the list.
#[derive(Debug)]
pub(super) struct Listed(PathBuf);

impl Listed {
    /// An entry for a file that is about to be created.
    pub fn new(path: &Path) -> io::Result<Self> {
        let (entry, own) = (path.to_owned(), Self(path.to_owned()));
        let mut list = list();
        if memory::ask(|| list.try_reserve(1)).is_err() {
            // Before the entry is dropped, which looks for itself.
            drop(list);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        list.push(entry);
        Ok(own)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut list = list();
        let found = list.iter().position(|path| *path == self.0);
        let entry = found.map(|at| list.swap_remove(at));
        drop(list);
        drop(entry);
    }
}
