//! Repetitions of a short computation, until together they are long enough to time.

use crate::error::Result;
use crate::measure::sweep::{Timing, Trial};
use crate::run::clock;
use crate::run::mailboxes::StopSignal;
use std::time::Instant;

/// Minimum duration of a repetition in CPU seconds: long compared with the clock's resolution and the error
/// of a sleep.
pub(super) const SHORTEST: f64 = 0.004;

/// A computation that may be too short to time once.
pub(super) trait Repeat {
    /// The time of one computation, as the mean of `count`.
    fn repeat(&mut self, halt: &StopSignal<'_>, count: u64) -> Result<Timing>;
}

/// The mean time of `count` computations of a processor that `throttle` slows down; each returns its CPU
/// seconds.
pub(super) fn timed(
    halt: &StopSignal<'_>,
    (count, slowdown): (u64, f64),
    mut computation: impl FnMut() -> Result<f64>,
) -> Result<Timing> {
    let (begin, mut cpu) = (Instant::now(), 0.0);
    for _ in 0..count {
        halt.check()?;
        cpu += computation()?;
    }
    let mean = |seconds: f64| seconds / count as f64;
    let wall = mean(begin.elapsed().as_secs_f64());
    // Sleeping exactly is impossible: more CPU time than elapsed is no loss to others.
    Ok(Timing { wall, cpu: Some(mean(cpu * slowdown).min(wall)) })
}

/// A computation with the number of times that it is repeated for one timing.
pub(super) struct Repeated<R> {
    computation: R,
    count: u64,
}

impl<R> Repeated<R> {
    pub fn new(computation: R) -> Self {
        Self { computation, count: 1 }
    }
}

impl<R: Repeat> Trial for Repeated<R> {
    const FEWEST_WHEN_LATE: usize = 3;

    /// Also determines the count.
    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
        let cpu = clock::thread_cpu_seconds();
        let seconds = self.computation.repeat(halt, 1)?.wall;
        let once = (clock::thread_cpu_seconds() - cpu).max(1e-7);
        self.count = (SHORTEST / once).ceil().clamp(1.0, 1e6) as u64;
        Ok(seconds)
    }

    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing> {
        self.computation.repeat(halt, self.count)
    }
}
