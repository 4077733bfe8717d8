//! The common state of the runs of one job: the world, the platform, and the progress of each emulated
//! processor.

use super::throttle::Throttle;
use super::{Monitor, World};
use crate::platform::Platform;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    begun: Mutex<f64>,
    throttles: Vec<Mutex<Throttle>>,
}

impl<'a> Session<'a> {
    /// Creates a job with this total work, in the unit of [`Work::amount`](crate::schedule::Work::amount).
    /// Its monitor starts at zero.
    pub fn new(world: &'a World, platform: &'a Platform, monitor: &'a Monitor, work: f64) -> Self {
        monitor.begin(work as u64);
        let throttle = |processor| Mutex::new(Throttle::of(processor));
        let throttles = platform.processors.iter().map(throttle).collect();
        Self { world, platform, monitor, copies: false, work, begun: Mutex::new(0.0), throttles }
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
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *begun;
        *begun += work;
        [before, work].map(|part| if self.work > 0.0 { part / self.work } else { 0.0 })
    }

    /// A processor's emulation.
    pub(crate) fn throttle(&self, processor: usize) -> MutexGuard<'_, Throttle> {
        self.throttles[processor].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
