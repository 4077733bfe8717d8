//! Many emulated runs at once: they mostly sleep, so that one core serves dozens of them.

use crate::experiment::Context;
use apportion::error::{Error, Result};
use apportion::run::Monitor;
use apportion::trace::{Activity, Lane, Trace};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Runs of each trial; the median counts.
pub const REPETITIONS: usize = 3;

/// Runs at the same time.
const AT_ONCE: usize = 48;

/// Time between two starts: the few milliseconds in which a run really computes do not fall together.
const APART: Duration = Duration::from_millis(30);

/// Seconds until the last processor begins to compute, and until all is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    pub communication: f64,
    pub execution: f64,
}

impl Times {
    pub fn of(trace: &Trace) -> Self {
        Self { communication: begins(&trace.lanes), execution: trace.seconds() }
    }

    /// Of the original, where a second here is `scale` seconds there.
    fn scaled(self, scale: f64) -> Self {
        Self { communication: self.communication * scale, execution: self.execution * scale }
    }
}

/// The time at which the last lane begins to compute.
fn begins(lanes: &[Lane]) -> f64 {
    let first = |lane: &Lane| lane.events.iter().find(|e| e.activity == Activity::Compute).map(|e| e.start);
    lanes.iter().filter_map(first).fold(0.0, f64::max)
}

/// Does a run once.
pub type Run = Box<dyn Fn(&Monitor) -> Result<Trace> + Send + Sync>;

/// A run to be measured.
pub struct Trial {
    pub forecast: Times,
    pub run: Run,
    /// Seconds of the original for a second here.
    pub scale: f64,
}

impl Trial {
    /// The forecast in seconds of the original.
    pub fn forecast_there(&self) -> Times {
        self.forecast.scaled(self.scale)
    }
}

/// The number of a trial, and the times of one run.
type Numbered = (usize, Result<Times>);

/// Medians of the measured times, and the forecasts, both in seconds of the original.
///
/// # Errors
/// The first run that fails, or a stop from outside.
pub fn measure(trials: &[Trial], context: &Context<'_>) -> Result<Vec<[Times; 2]>> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Numbered>> = Mutex::new(Vec::new());
    let begin = Instant::now();
    // One repetition of all, then the next: a disturbance of a second meets each trial once at most.
    let count = trials.len() * REPETITIONS;
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(count) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || context.monitor.is_stopped() {
                        return;
                    }
                    let start = APART * u32::try_from(number).unwrap_or(u32::MAX);
                    std::thread::sleep(start.saturating_sub(begin.elapsed()));
                    let trial = number % trials.len();
                    let times = (trials[trial].run)(context.monitor).map(|trace| Times::of(&trace));
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((trial, times));
                }
            });
        }
    });
    if context.monitor.is_stopped() {
        return Err(Error::Interrupted);
    }
    let mut by_trial: Vec<Vec<Times>> = vec![Vec::new(); trials.len()];
    for (trial, times) in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        by_trial[trial].push(times?);
    }
    let both = trials.iter().zip(by_trial);
    Ok(both
        .map(|(trial, runs)| {
            let median = |of: fn(&Times) -> f64| middle(runs.iter().map(of).collect());
            let measured =
                Times { communication: median(|t| t.communication), execution: median(|t| t.execution) };
            [measured.scaled(trial.scale), trial.forecast_there()]
        })
        .collect())
}

/// The median of an odd number of values.
pub fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
