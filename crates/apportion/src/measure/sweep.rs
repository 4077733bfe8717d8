//! Measures speed functions point by point on all processors together, and saves each point once it is
//! measured.
//!
//! Every round gives each processor its next size. All start together and work until the last has its point,
//! so that the effects of shared resources (memory bandwidth, caches, power) are included. A size is repeated
//! until the mean is known precisely enough (Malik 2016, section 4.5).

mod sizes;

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::measure::repetition::{MeasureOptions, Trial, TrialSampler};
use crate::measure::workload::Workload;
use crate::model::{Models, Point};
use crate::platform::{Platform, Processor};
use crate::run::mailboxes::{StartBarrier, StopOnPanic, StopSignal};
use crate::run::team::WorkerThread;
use crate::run::{Monitor, World};
use crate::threads;
use sizes::{SizeSequence, Task, models, request_sizes, size_sequences};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

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

/// Observer of a sweep: gets the models so far after each point.
pub type ModelObserver<'a> = dyn FnMut(&Models) -> Result<()> + 'a;

/// Speed functions of a workload on a platform's processors at these sizes. All processors measure together,
/// unless the options say otherwise. The monitor advances by one per size and processor.
///
/// # Errors
/// No size; a size that the workload does not have, or that is too large for memory; interrupted.
pub fn measure_speeds<W: Workload>(
    workload: &W,
    platform: &Platform,
    sizes: &[f64],
    options: MeasureOptions,
    monitor: &Monitor,
) -> Result<Models> {
    let sweep = Sweep::new(Sizes::Listed(sizes.to_vec()), options);
    sweep.run(workload, platform, &mut |_| Ok(()), monitor)
}

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
    pub(crate) fn new(sizes: Sizes, options: MeasureOptions) -> Self {
        Self { sizes, options, known: None, max_size: None, world: None }
    }

    /// Measures the speed functions of a workload; `observe` may save each point once it is measured. In a
    /// world of several ranks, rank r measures processor r while all others measure theirs; every rank
    /// returns the models of all processors, and `observe` is called on rank 0.
    ///
    /// # Errors
    /// As [`measure_speeds`], on all ranks; known points of another workload; errors of `observe`. Points
    /// that were measured before have been observed.
    ///
    /// # Panics
    /// If the number of several ranks is not that of the processors.
    pub fn run<W: Workload>(
        &self,
        workload: &W,
        platform: &Platform,
        observe: &mut ModelObserver<'_>,
        monitor: &Monitor,
    ) -> Result<Models> {
        let subject = workload.subject(platform, &self.sizes)?;
        let trial = |rank: usize, size: f64| workload.trial(&platform.processors[rank], Rank(rank), size);
        run(&subject, self, trial, observe, monitor)
    }
}

/// The description of a workload on a platform, as the file of models has it.
pub struct Subject<'a> {
    /// The processors.
    pub(crate) platform: &'a Platform,
    /// The name of the kernel.
    pub(crate) kernel: String,
    /// What a unit of size is.
    pub(crate) unit: String,
    /// Numbers that distinguish it from others of this name.
    pub(crate) parameters: BTreeMap<String, f64>,
    /// Maps a requested size to the size that is measured.
    pub(crate) rounded: fn(f64) -> f64,
    /// The largest size that fits into a processor's memory, as far as it is known.
    pub(crate) largest: Box<dyn Fn(&Processor) -> f64 + 'a>,
}

impl<'a> Subject<'a> {
    /// A workload on these processors, whose sizes are measured as they are asked for.
    pub fn new(platform: &'a Platform, kernel: String, unit: &str) -> Self {
        Self {
            platform,
            kernel,
            unit: unit.into(),
            parameters: BTreeMap::new(),
            rounded: |size| size,
            largest: Box::new(|_| f64::INFINITY),
        }
    }

    /// The same with a pivot block.
    #[must_use]
    pub fn with_block(self, block: u64) -> Self {
        Self { parameters: BTreeMap::from([("block".into(), block as f64)]), ..self }
    }
}

/// The result of measuring a size.
#[derive(Debug)]
enum SizeOutcome {
    Point(Point),
    /// The subject fails at this size; the reason is the program's.
    TooLarge {
        size: f64,
        error: Error,
        reason: String,
    },
}

impl SizeOutcome {
    /// The point of a size, or its failure if that may be due to the size.
    fn of<T: Trial>(trial: &T, size: f64, outcome: Result<Point>) -> Result<Self> {
        match (outcome, trial.failure_of_size()) {
            (Ok(point), _) => Ok(Self::Point(point)),
            (Err(Error::Interrupted), _) => Err(Error::Interrupted),
            (Err(error), Some(reason)) => Ok(Self::TooLarge { size, error, reason: reason.to_owned() }),
            (Err(error), None) => Err(error),
        }
    }
}

/// Runs a sweep. `trial` prepares a size of the processor of a rank, on the thread that times it.
fn run<T: Trial>(
    subject: &Subject<'_>,
    sweep: &Sweep<'_>,
    trial: impl Fn(usize, f64) -> T + Sync,
    observe: &mut ModelObserver<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    if let Some(world) = sweep.world.filter(|world| !world.is_solo()) {
        let ranks = RankSweep { subject, sweep, world, monitor };
        return ranks.run(&trial, observe);
    }
    let mut sequences = size_sequences(subject, sweep)?;
    monitor.begin(0);
    let everybody: Vec<usize> = (0..sequences.len()).collect();
    // A focused sweep compares all processors, also where one is measured at a time.
    let focused = matches!(sweep.sizes, Sizes::Focused { .. });
    let in_turn = sweep.options.alone && !focused;
    let groups: Vec<&[usize]> = if in_turn { everybody.chunks(1).collect() } else { vec![&everybody[..]] };
    let mut measured = 0;
    for group in groups {
        loop {
            if focused {
                let known = models(subject, &sequences)?;
                request_sizes(subject, &mut sequences, &known, sweep)?;
            }
            let mut tasks: Vec<(usize, Task)> =
                group.iter().filter_map(|&rank| Some((rank, sequences[rank].task()?))).collect();
            if focused && sweep.options.alone {
                tasks.retain(|(_, task)| matches!(task, Task::Measure(_)));
            }
            if tasks.iter().all(|(_, task)| matches!(task, Task::Accompany(_))) {
                break;
            }
            monitor.expect(measured + sequences.iter().map(SizeSequence::expected).sum::<u64>());
            let mut take = |rank: usize, outcome: SizeOutcome| {
                if sequences[rank].take(outcome)? {
                    measured += 1;
                    monitor.advance(1);
                }
                observe(&models(subject, &sequences)?)
            };
            run_round(subject, &tasks, &sweep.options, &trial, &mut take, monitor)?;
        }
    }
    let models = models(subject, &sequences)?;
    // Also if all points were known: caps, units or the file may differ.
    observe(&models)?;
    Ok(models)
}

/// One round. Every point is passed on as soon as it is measured.
fn run_round<T: Trial>(
    subject: &Subject<'_>,
    tasks: &[(usize, Task)],
    options: &MeasureOptions,
    trial: &(impl Fn(usize, f64) -> T + Sync),
    take: &mut dyn FnMut(usize, SizeOutcome) -> Result<()>,
    monitor: &Monitor,
) -> Result<()> {
    // The first stops all work, the second only the work that accompanies other processors.
    let (halt, over) = (StopSignal::new(monitor), StopSignal::new(monitor));
    let barrier = StartBarrier::new(tasks.len());
    let left = AtomicUsize::new(tasks.iter().filter(|(_, t)| matches!(t, Task::Measure(_))).count());
    let mut outcome = Ok(());
    threads::scope(|scope| {
        let (give, points) = channel();
        let mut workers = Vec::new();
        for &(rank, task) in tasks {
            let (halt, over, barrier, left, ours) = (&halt, &over, &barrier, &left, give.clone());
            let processor = &subject.platform.processors[rank];
            let worker = threads::start(scope, move || {
                let _ends_all = (StopOnPanic(halt), StopOnPanic(over));
                let _thread = WorkerThread::on(processor.cores_here());
                let (Task::Measure(size) | Task::Accompany(size)) = task;
                let mut trial = trial(rank, size);
                if barrier.pass(halt).is_err() {
                    // Another thread panicked before the start, or the user interrupted.
                    let _ = ours.send((rank, Err(Error::Interrupted)));
                    return;
                }
                if let Task::Measure(_) = task {
                    let point = TrialSampler::new::<T>(size, options).run(&mut trial, halt);
                    let outcome = SizeOutcome::of(&trial, size, point);
                    let failed = outcome.is_err();
                    // The receiver lives as long as this scope.
                    let _ = ours.send((rank, outcome));
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
            let taken = found.and_then(|outcome| take(rank, outcome));
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

/// Time after which the processes ask each other who still measures.
const SLICE: Duration = Duration::from_millis(100);

/// A sweep by several processes, each of which measures its own processor while all others do the same.
struct RankSweep<'a> {
    subject: &'a Subject<'a>,
    sweep: &'a Sweep<'a>,
    world: &'a World,
    monitor: &'a Monitor,
}

impl RankSweep<'_> {
    fn run<T: Trial>(
        &self,
        trial: &impl Fn(usize, f64) -> T,
        observe: &mut ModelObserver<'_>,
    ) -> Result<Models> {
        let Self { subject, sweep, world, monitor } = *self;
        let here = world.processors_here(subject.platform.len()).start;
        let mut sequences = world.all_ok(size_sequences(subject, sweep))?;
        monitor.begin(0);
        let mut measured = 0;
        let mut known = self.models_of_all(&sequences)?;
        loop {
            world.all_ok(request_sizes(subject, &mut sequences, &known, sweep))?;
            let task = sequences[here].task();
            let measures = matches!(task, Some(Task::Measure(_)));
            if world.all_reduce(&[u64::from(measures)], |a, b| a + b)?[0] == 0 {
                break;
            }
            monitor.expect(measured + sequences[here].expected());
            let found = task.map(|task| self.run_task(here, task, trial)).transpose();
            let taken = found.and_then(|found| match found.flatten() {
                Some(outcome) => sequences[here].take(outcome),
                None => Ok(false),
            });
            if world.all_ok(taken)? {
                measured += 1;
                monitor.advance(1);
            }
            known = self.models_of_all(&sequences)?;
            world.on_root(|| observe(&known))?;
        }
        let all = self.models_of_all(&sequences)?;
        world.on_root(|| observe(&all))?;
        Ok(all)
    }

    /// This rank's part of a round: it measures a size, and works on until all ranks have measured theirs.
    fn run_task<T: Trial>(
        &self,
        here: usize,
        task: Task,
        trial: &impl Fn(usize, f64) -> T,
    ) -> Result<Option<SizeOutcome>> {
        let halt = StopSignal::new(self.monitor);
        let _thread = WorkerThread::on(self.subject.platform.processors[here].cores_here());
        let (Task::Measure(size) | Task::Accompany(size)) = task;
        let mut trial = trial(here, size);
        self.world.barrier()?;
        let mut sampler =
            matches!(task, Task::Measure(_)).then(|| TrialSampler::new::<T>(size, &self.sweep.options));
        let (mut found, mut idle) = (None, false);
        loop {
            let failed = matches!(found, Some(Err(_)));
            let states = [u64::from(sampler.is_some()), u64::from(failed)];
            let states = self.world.all_reduce(&states, |a, b| a + b)?;
            if states[0] == 0 || states[1] > 0 {
                return found.transpose();
            }
            let begin = Instant::now();
            while begin.elapsed() < SLICE && !idle {
                let Some(measuring) = &mut sampler else {
                    // A program that fails is not started again and again.
                    idle = trial.time(&halt).is_err();
                    continue;
                };
                if let Some(point) = measuring.step(&mut trial, &halt).transpose() {
                    idle = point.is_err();
                    found = Some(SizeOutcome::of(&trial, size, point));
                    sampler = None;
                    break;
                }
            }
        }
    }

    /// The models so far of all ranks, on every rank.
    fn models_of_all(&self, sequences: &[SizeSequence]) -> Result<Models> {
        let own = models(self.subject, sequences)?;
        let here = self.world.processors_here(sequences.len()).start;
        let name = &self.subject.platform.processors[here].name;
        let mine = own.models.into_iter().filter(|model| model.processor() == name).collect();
        gather_models(Models { models: mine, ..own }, self.world)
    }
}

/// The models of all ranks' processors, on every rank, described as those of the first rank that has any.
pub(super) fn gather_models(own: Models, world: &World) -> Result<Models> {
    let text = if own.models.is_empty() { String::new() } else { own.to_json() };
    let mut all: Option<Models> = None;
    for text in world.all_gather_texts(&text)?.iter().filter(|text| !text.is_empty()) {
        let theirs = Models::parse(text, "models of a rank")?;
        match &mut all {
            None => all = Some(theirs),
            Some(all) => all.models.extend(theirs.models),
        }
    }
    Ok(all.unwrap_or(own))
}

#[cfg(test)]
mod tests;
