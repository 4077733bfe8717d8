//! Measures speed functions point by point on all processors together, and saves each point once it is
//! measured.
//!
//! Every round gives each processor its next size. All start together and work until the last has its point,
//! so that the effects of shared resources (memory bandwidth, caches, power) are included. A size is repeated
//! until the mean is known precisely enough (Malik 2016, section 4.5).

mod course;
mod ranks;
mod settle;

use crate::error::{Error, Result};
use crate::model::{Models, Point};
use crate::platform::{Platform, Processor};
use crate::run::clock;
use crate::run::mailboxes::{StartBarrier, StopOnPanic, StopSignal};
use crate::run::{Monitor, World};
use crate::threads;
use course::{Course, Task, ask, courses, models};
use settle::settle;
pub(super) use settle::{Timing, Trial};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// Criteria for the end of the repetitions of a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasureOptions {
    /// The 95 % interval must be within this fraction of the mean.
    pub tolerance: f64,
    /// Maximum number of repetitions of one size.
    pub most_repetitions: u64,
    /// Approximate maximum of seconds on one size.
    pub seconds_per_size: f64,
    /// True to measure one processor after the other instead of all together.
    pub alone: bool,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self { tolerance: 0.025, most_repetitions: 200, seconds_per_size: 2.0, alone: false }
    }
}

impl MeasureOptions {
    /// Options for a quick measurement: the default of `matmul`.
    pub fn quick() -> Self {
        Self { most_repetitions: 40, seconds_per_size: 0.5, ..Self::default() }
    }
}

/// Sizes to measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// These, on every processor.
    Listed(Vec<f64>),
    /// Few sizes, chosen for each processor from its own points; see
    /// [`AdaptiveSweep`](crate::model::AdaptiveSweep).
    Adaptive {
        /// The smallest size; always measured.
        smallest: f64,
        /// The largest size; always measured.
        largest: f64,
        /// Speeds that differ by no more than this fraction count as equal.
        accuracy: f64,
        /// Maximum number of points on each processor.
        most: usize,
    },
    /// Only what the division of a number of units needs; see [`FocusedSweep`](super::FocusedSweep).
    Focused {
        /// Number of units.
        units: u64,
        /// Expected relative error of each speed at its share.
        accuracy: f64,
        /// Maximum number of points on each processor.
        most: usize,
    },
    /// One size for each processor, by rank.
    Each(Vec<f64>),
}

impl Sizes {
    /// The sizes that are certain to be measured, for checks before the work: all of a list, or the smallest.
    pub(super) fn certain(&self) -> Vec<f64> {
        match self {
            Self::Listed(sizes) | Self::Each(sizes) => sizes.clone(),
            Self::Adaptive { smallest, .. } => vec![*smallest],
            Self::Focused { .. } => vec![1.0],
        }
    }
}

/// Callback with the points measured so far, called after each point.
pub type Keep<'a> = dyn FnMut(&Models) -> Result<()> + 'a;

/// A sweep over sizes: the sizes, the precision and earlier points.
#[derive(Debug, Clone)]
pub struct Sweep<'a> {
    /// The sizes.
    pub sizes: Sizes,
    /// Criteria for the end of the repetitions of a size.
    pub options: MeasureOptions,
    /// Points of an earlier sweep of the same subject: they are kept and not measured again.
    pub known: Option<Models>,
    /// A cap for all models; larger sizes are not measured.
    pub max_size: Option<f64>,
    /// Processes that measure together, each its own processor: rank r processor r. `None`, or a world of one
    /// process: this process measures all processors.
    pub world: Option<&'a World>,
}

impl Sweep<'_> {
    /// A sweep of this process without earlier points or a cap.
    pub fn new(sizes: Sizes, options: MeasureOptions) -> Self {
        Self { sizes, options, known: None, max_size: None, world: None }
    }
}

/// The subject of a measurement, as described in the file.
pub(super) struct Subject<'a> {
    pub platform: &'a Platform,
    pub kernel: String,
    pub unit: String,
    pub parameters: BTreeMap<String, f64>,
    /// Maps a requested size to the size that is measured.
    pub rounded: fn(f64) -> f64,
    /// The largest size that fits into a processor's memory, as far as it is known.
    pub largest: &'a dyn Fn(&Processor) -> f64,
}

/// The result of measuring a size.
#[derive(Debug)]
enum Found {
    Point(Point),
    /// The subject fails at this size; the reason is the program's.
    TooLarge {
        size: f64,
        error: Error,
        reason: String,
    },
}

impl Found {
    /// The point of a size, or its failure if that may be due to the size.
    fn of<T: Trial>(trial: &T, size: f64, outcome: Result<Point>) -> Result<Self> {
        match (outcome, trial.too_large()) {
            (Ok(point), _) => Ok(Self::Point(point)),
            (Err(Error::Interrupted), _) => Err(Error::Interrupted),
            (Err(error), Some(reason)) => Ok(Self::TooLarge { size, error, reason: reason.to_owned() }),
            (Err(error), None) => Err(error),
        }
    }
}

/// Runs a sweep. `trial` creates the object to time, on the thread that times it.
///
/// # Errors
/// Known points of another subject; errors of a trial or of `keep`; interrupted. Points that were measured
/// before have been saved.
pub(super) fn run<T: Trial>(
    subject: &Subject<'_>,
    sweep: &Sweep<'_>,
    trial: impl Fn(&Processor, usize, f64) -> T + Sync,
    keep: &mut Keep<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    if let Some(world) = sweep.world.filter(|world| !world.is_solo()) {
        return ranks::run(subject, sweep, &trial, keep, (world, monitor));
    }
    let mut courses = courses(subject, sweep)?;
    monitor.begin(0);
    let everybody: Vec<usize> = (0..courses.len()).collect();
    // A focused sweep compares all processors, also where one is measured at a time.
    let focused = matches!(sweep.sizes, Sizes::Focused { .. });
    let in_turn = sweep.options.alone && !focused;
    let groups: Vec<&[usize]> = if in_turn { everybody.chunks(1).collect() } else { vec![&everybody[..]] };
    let mut measured = 0;
    for group in groups {
        loop {
            if focused {
                let known = models(subject, &courses)?;
                ask(subject, &mut courses, &known, sweep)?;
            }
            let mut wanted: Vec<(usize, Task)> =
                group.iter().filter_map(|&rank| Some((rank, courses[rank].task()?))).collect();
            if focused && sweep.options.alone {
                wanted.retain(|(_, task)| matches!(task, Task::Measure(_)));
            }
            if wanted.iter().all(|(_, task)| matches!(task, Task::Accompany(_))) {
                break;
            }
            monitor.expect(measured + courses.iter().map(Course::expected).sum::<u64>());
            let mut take = |rank: usize, found: Found| {
                if courses[rank].take(found)? {
                    measured += 1;
                    monitor.advance(1);
                }
                keep(&models(subject, &courses)?)
            };
            round(subject, &wanted, &sweep.options, &trial, &mut take, monitor)?;
        }
    }
    let models = models(subject, &courses)?;
    // Save also if all points were known: caps, units or the file may differ.
    keep(&models)?;
    Ok(models)
}

/// One round. Every point is passed on as soon as it is measured.
fn round<T: Trial>(
    subject: &Subject<'_>,
    wanted: &[(usize, Task)],
    options: &MeasureOptions,
    trial: &(impl Fn(&Processor, usize, f64) -> T + Sync),
    take: &mut dyn FnMut(usize, Found) -> Result<()>,
    monitor: &Monitor,
) -> Result<()> {
    // The first stops all work, the second only the work that accompanies other processors.
    let (halt, over) = (StopSignal::new(monitor), StopSignal::new(monitor));
    let barrier = StartBarrier::new(wanted.len());
    let left = AtomicUsize::new(wanted.iter().filter(|(_, t)| matches!(t, Task::Measure(_))).count());
    let mut outcome = Ok(());
    threads::scope(|scope| {
        let (give, points) = channel();
        let mut workers = Vec::new();
        for &(rank, task) in wanted {
            let (halt, over, barrier, left, ours) = (&halt, &over, &barrier, &left, give.clone());
            let processor = &subject.platform.processors[rank];
            let worker = threads::start(scope, move || {
                let _ends_all = (StopOnPanic(halt), StopOnPanic(over));
                clock::pin(&processor.cores);
                let (Task::Measure(size) | Task::Accompany(size)) = task;
                let mut trial = trial(processor, rank, size);
                if barrier.pass(halt).is_err() {
                    // Another thread panicked before the start, or the user interrupted.
                    let _ = ours.send((rank, Err(Error::Interrupted)));
                    return;
                }
                if let Task::Measure(_) = task {
                    let point = settle(&mut trial, halt, options).map(|settled| settled.point(size));
                    let found = Found::of(&trial, size, point);
                    let failed = found.is_err();
                    // The receiver lives as long as this scope.
                    let _ = ours.send((rank, found));
                    if failed {
                        halt.fail();
                        over.fail();
                    }
                    if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                        over.fail();
                    }
                }
                while trial.time(over).is_ok() {}
            });
            match worker {
                Ok(worker) => workers.push(worker),
                Err(refused) => {
                    halt.fail();
                    over.fail();
                    let _ = give.send((rank, Err(refused)));
                    break;
                }
            }
        }
        drop(give);
        for (rank, found) in points {
            let taken = found.and_then(|found| take(rank, found));
            let Err(error) = taken else { continue };
            halt.fail();
            over.fail();
            // A failure interrupts the other processors: the error is that of the one that failed.
            if outcome.is_ok() || matches!(outcome, Err(Error::Interrupted)) {
                outcome = Err(error);
            }
        }
        for worker in workers {
            if let Err(panic) = worker.join() {
                resume_unwind(panic);
            }
        }
    });
    outcome
}

#[cfg(test)]
mod tests;
