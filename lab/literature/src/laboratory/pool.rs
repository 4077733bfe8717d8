//! Many emulated runs at once: they mostly sleep, so that one core serves dozens of them.

use crate::experiment::Context;
use apportion::error::{Error, Result};
use apportion::model::summarise;
use apportion::run::Monitor;
use apportion::trace::{Activity, Lane, Trace};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Runs of each trial at least and at most.
const REPETITIONS: [usize; 2] = [3, 12];
/// The half-width of the 95 % interval of a mean that ends the repetitions, as a fraction of the mean (Malik
/// 2016, section 4.5).
const PRECISION: f64 = 0.025;

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

/// What was measured, in seconds of the original.
pub struct Measured {
    /// Means of the runs, and forecasts.
    pub times: Vec<[Times; 2]>,
    /// How often the runs were repeated, and how well their means are known, in a sentence.
    pub repeated: String,
}

/// Measures trials until each mean is known to within 2.5 %, or twelve times.
///
/// # Errors
/// The first run that fails, or a stop from outside.
pub fn measure(trials: &[Trial], context: &Context<'_>) -> Result<Measured> {
    let mut runs: Vec<Vec<Times>> = vec![Vec::new(); trials.len()];
    let summary =
        |runs: &[Times], of: fn(&Times) -> f64| summarise(&runs.iter().map(of).collect::<Vec<f64>>());
    let both = |runs: &[Times]| [summary(runs, |t| t.communication), summary(runs, |t| t.execution)];
    let known = |runs: &[Times]| both(runs).iter().all(|found| found.is_within(PRECISION));
    // One repetition of all, then the next: a disturbance of a second meets each trial once at most.
    let [fewest, most] = REPETITIONS;
    let mut wanted: Vec<usize> = (0..fewest).flat_map(|_| 0..trials.len()).collect();
    while !wanted.is_empty() {
        for (trial, times) in run_each(trials, &wanted, context)? {
            runs[trial].push(times?);
        }
        wanted = (0..trials.len()).filter(|&t| runs[t].len() < most && !known(&runs[t])).collect();
    }
    let means = trials.iter().zip(&runs).map(|(trial, runs)| {
        let [communication, execution] = both(runs).map(|found| found.mean);
        [Times { communication, execution }.scaled(trial.scale), trial.forecast_there()]
    });
    let widest = |which: usize| {
        let widths = runs.iter().map(|runs| both(runs)[which]).filter(|found| found.mean > 0.0);
        100.0 * widths.map(|found| found.ci / found.mean).fold(0.0, f64::max)
    };
    let repeated = format!(
        "Means of {fewest} to {most} runs, repeated until the 95 % interval of communication and execution is within \
         2.5 % of the mean (Malik 2016, 4.5): {} of {} runs are; the widest intervals are {:.1} % of a communication and \
         {:.1} % of an execution.",
        runs.iter().filter(|runs| known(runs)).count(),
        runs.len(),
        widest(0),
        widest(1)
    );
    Ok(Measured { times: means.collect(), repeated })
}

/// Runs the trials of these numbers, many at once.
fn run_each(trials: &[Trial], numbers: &[usize], context: &Context<'_>) -> Result<Vec<Numbered>> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Numbered>> = Mutex::new(Vec::new());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(numbers.len()) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&trial) = numbers.get(place).filter(|_| !context.monitor.is_stopped()) else {
                        return;
                    };
                    let start = APART * u32::try_from(place).unwrap_or(u32::MAX);
                    std::thread::sleep(start.saturating_sub(begin.elapsed()));
                    let times = (trials[trial].run)(context.monitor).map(|trace| Times::of(&trace));
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((trial, times));
                }
            });
        }
    });
    if context.monitor.is_stopped() {
        return Err(Error::Interrupted);
    }
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The median of an odd number of values.
pub fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
