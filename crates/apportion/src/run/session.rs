//! The common state of the runs of one job: the world, the platform, and the progress of each emulated
//! processor.

use super::World;
use super::throttle::Throttle;
use crate::platform::Platform;
use crate::run::sync::locked;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A job on a world: one run, or a sequence of runs (the products of a power, the panels of a large matrix,
/// the segments of an adaptive run). A processor that slows down in mid-job does so once in the whole job.
#[derive(Debug)]
pub struct Session<'a> {
    world: &'a World,
    platform: &'a Platform,
    monitor: &'a Monitor,
    copies: bool,
    /// Work of the whole job, and the part of it in earlier runs.
    work: f64,
    earlier_work: Mutex<f64>,
    throttles: Vec<Mutex<Throttle>>,
}

impl<'a> Session<'a> {
    /// Creates a job with this total work, in the unit of [`Work::amount`](crate::schedule::Work::amount).
    /// Its monitor starts at zero.
    pub fn new(world: &'a World, platform: &'a Platform, monitor: &'a Monitor, work: f64) -> Self {
        monitor.begin(work as u64);
        let throttle = |processor| Mutex::new(Throttle::of(processor));
        let throttles = platform.processors.iter().map(throttle).collect();
        Self { world, platform, monitor, copies: false, work, earlier_work: Mutex::new(0.0), throttles }
    }

    /// The same session, in which processors copy the operands they are sent even if they could read them in
    /// place. On an emulated network they always do.
    #[must_use]
    pub fn copying(self, copies: bool) -> Self {
        Self { copies, ..self }
    }

    /// The processes.
    pub fn world(&self) -> &'a World {
        self.world
    }

    /// The processors and their network.
    pub fn platform(&self) -> &'a Platform {
        self.platform
    }

    /// Progress, and the request to stop.
    pub fn monitor(&self) -> &'a Monitor {
        self.monitor
    }

    /// True if the processors of one process copy operands instead of reading them in place: if copying was
    /// requested, the network is emulated, or processors have a `memory` of their own.
    pub fn copies(&self) -> bool {
        self.copies || self.platform.has_memories_of_its_own()
    }

    /// The fraction of the job that earlier runs did, and the fraction that a run with this much work adds.
    pub(super) fn begin(&self, work: f64) -> [f64; 2] {
        let mut earlier = self.earlier_work.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *earlier;
        *earlier += work;
        [before, work].map(|part| if self.work > 0.0 { part / self.work } else { 0.0 })
    }

    /// A processor's emulation.
    pub(crate) fn throttle(&self, processor: usize) -> MutexGuard<'_, Throttle> {
        self.throttles[processor].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Progress of a run, and a way to stop it from outside.

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
    end: Mutex<Option<Instant>>,
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
        self.expect_end(None);
    }

    /// Sets when the work will have ended, where that can be told.
    pub(crate) fn expect_end(&self, end: Option<Instant>) {
        *locked(&self.inner.end) = end;
    }

    /// Changes the total work, once more of it is known.
    pub(crate) fn expect(&self, total: u64) {
        self.inner.total.store(total, Ordering::Relaxed);
    }

    /// Adds to the work done.
    pub fn advance(&self, work: u64) {
        self.inner.done.fetch_add(work, Ordering::Relaxed);
    }

    /// The progress of the run.
    pub fn progress(&self) -> Progress {
        let [done, total] = [&self.inner.done, &self.inner.total].map(|count| count.load(Ordering::Relaxed));
        Progress { done, total, end: *locked(&self.inner.end) }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The work done.
    pub done: u64,
    /// The total work, as far as it is known.
    pub total: u64,
    /// When the work will have ended, if that is known better than by what is done.
    pub end: Option<Instant>,
}
