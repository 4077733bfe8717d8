//! Progress of a run, and a way to stop it from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A handle shared by a run and its observers. It reports progress and requests a stop.
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
    /// A monitor without work.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests an early end of the run, which then returns
    /// [`Error::Interrupted`](crate::error::Error::Interrupted).
    pub fn stop(&self) {
        self.inner.stop.store(true, Ordering::Relaxed);
    }

    /// True once a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.inner.stop.load(Ordering::Relaxed)
    }

    /// Sets the total work and resets the work done.
    pub fn begin(&self, total: u64) {
        self.inner.done.store(0, Ordering::Relaxed);
        self.inner.total.store(total, Ordering::Relaxed);
    }

    /// Changes the total work, once more of it is known.
    pub fn expect(&self, total: u64) {
        self.inner.total.store(total, Ordering::Relaxed);
    }

    /// Adds to the work done.
    pub fn advance(&self, work: u64) {
        self.inner.done.fetch_add(work, Ordering::Relaxed);
    }

    /// The progress of the run.
    pub fn progress(&self) -> Progress {
        let [done, total] = [&self.inner.done, &self.inner.total].map(|count| count.load(Ordering::Relaxed));
        Progress { done, total }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The work done.
    pub done: u64,
    /// The total work, as far as it is known.
    pub total: u64,
}
