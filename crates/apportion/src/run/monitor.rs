//! Watching and stopping a run from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A handle shared by a run and whoever watches it: asks it to stop, reads how far it is.
#[derive(Debug, Clone, Default)]
pub struct Monitor {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Monitor {
    /// A fresh handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the run to end soon; it returns [`Error::Interrupted`](crate::error::Error::Interrupted).
    pub fn stop(&self) {
        self.inner.stop.store(true, Ordering::Relaxed);
    }

    /// True once asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.inner.stop.load(Ordering::Relaxed)
    }

    /// Sets the amount of work that lies ahead and forgets what was done.
    pub fn begin(&self, total: u64) {
        self.inner.done.store(0, Ordering::Relaxed);
        self.inner.total.store(total, Ordering::Relaxed);
    }

    /// Says anew how much work there is in all, when more of it is known.
    pub fn expect(&self, total: u64) {
        self.inner.total.store(total, Ordering::Relaxed);
    }

    /// Adds work done.
    pub fn advance(&self, work: u64) {
        self.inner.done.fetch_add(work, Ordering::Relaxed);
    }

    /// Work done and total work.
    pub fn progress(&self) -> (u64, u64) {
        (self.inner.done.load(Ordering::Relaxed), self.inner.total.load(Ordering::Relaxed))
    }
}
