//! Measures speed functions point by point on all processors together, and saves each point once it is
//! measured.
//!
//! Every round gives each processor its next size. All start together and work until the last has its point,
//! so that the effects of shared resources (memory bandwidth, caches, power) are included. A size is repeated
//! until the mean is known precisely enough (Malik 2016, section 4.5).

use crate::error::{Error, Result};
use crate::model::{AdaptiveSweep, Interpolation, Model, Models, Point, Summary, summarise};
use crate::platform::{Platform, Processor};
use crate::run::Monitor;
use crate::run::clock;
use crate::run::mailboxes::{StartBarrier, StopOnPanic, StopSignal};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

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
    /// Few sizes, chosen for each processor from its own points ([`AdaptiveSweep`]).
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
}

/// Callback with the points measured so far, called after each point.
pub type Keep<'a> = dyn FnMut(&Models) -> Result<()> + 'a;

/// A sweep over sizes: the sizes, the precision and earlier points.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The sizes.
    pub sizes: Sizes,
    /// Criteria for the end of the repetitions of a size.
    pub options: MeasureOptions,
    /// Points of an earlier sweep of the same subject: they are kept and not measured again.
    pub known: Option<Models>,
}

impl Sweep {
    /// A sweep without earlier points.
    pub fn new(sizes: Sizes, options: MeasureOptions) -> Self {
        Self { sizes, options, known: None }
    }
}

/// One size of a subject on one processor, which can be timed.
pub(super) trait Trial {
    /// Minimum number of timings of a size whose time is exceeded.
    const FEWEST_WHEN_LATE: usize;

    /// One run that is not counted, with any preparation. Returns its seconds.
    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64>;

    /// Seconds of one run.
    fn time(&mut self, halt: &StopSignal<'_>) -> Result<f64>;
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

/// Minimum number of timings of a size.
const FEWEST: usize = 3;

/// Runs a sweep. `trial` creates the object to time, on the thread that times it.
///
/// # Errors
/// Known points of another subject; errors of a trial or of `keep`; interrupted. Points that were measured
/// before have been saved.
pub(super) fn run<T: Trial>(
    subject: &Subject<'_>,
    sweep: &Sweep,
    trial: impl Fn(&Processor, usize, f64) -> T + Sync,
    keep: &mut Keep<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    let mut courses = courses(subject, sweep)?;
    monitor.begin(0);
    let everybody: Vec<usize> = (0..courses.len()).collect();
    let groups: Vec<&[usize]> =
        if sweep.options.alone { everybody.chunks(1).collect() } else { vec![&everybody[..]] };
    let mut measured = 0;
    for group in groups {
        loop {
            let wanted: Vec<(usize, Task)> =
                group.iter().filter_map(|&rank| Some((rank, courses[rank].task()?))).collect();
            if wanted.iter().all(|(_, task)| matches!(task, Task::Accompany(_))) {
                break;
            }
            monitor.expect(measured + courses.iter().map(Course::expected).sum::<u64>());
            let mut take = |rank: usize, point: Point| {
                courses[rank].add(point);
                measured += 1;
                monitor.advance(1);
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

/// Task of a processor in a round.
#[derive(Debug, Clone, Copy)]
enum Task {
    /// Measures this size.
    Measure(f64),
    /// Has all its points, and keeps working so that the conditions of the other processors do not change.
    Accompany(f64),
}

/// One round. Every point is passed on as soon as it is measured.
fn round<T: Trial>(
    subject: &Subject<'_>,
    wanted: &[(usize, Task)],
    options: &MeasureOptions,
    trial: &(impl Fn(&Processor, usize, f64) -> T + Sync),
    take: &mut dyn FnMut(usize, Point) -> Result<()>,
    monitor: &Monitor,
) -> Result<()> {
    // The first stops all work, the second only the work that accompanies other processors.
    let (halt, over) = (StopSignal::new(monitor), StopSignal::new(monitor));
    let barrier = StartBarrier::new(wanted.len());
    let left = AtomicUsize::new(wanted.iter().filter(|(_, t)| matches!(t, Task::Measure(_))).count());
    let mut outcome = Ok(());
    std::thread::scope(|scope| {
        let (give, points) = channel();
        let mut workers = Vec::new();
        for &(rank, task) in wanted {
            let (halt, over, barrier, left, give) = (&halt, &over, &barrier, &left, give.clone());
            let processor = &subject.platform.processors[rank];
            workers.push(scope.spawn(move || {
                let _ends_all = (StopOnPanic(halt), StopOnPanic(over));
                clock::pin(&processor.cores);
                let (Task::Measure(size) | Task::Accompany(size)) = task;
                let mut trial = trial(processor, rank, size);
                if barrier.pass(halt).is_err() {
                    // Another thread panicked before the start, or the user interrupted.
                    let _ = give.send((rank, Err(Error::Interrupted)));
                    return;
                }
                if let Task::Measure(_) = task {
                    let summary = settle(&mut trial, halt, options);
                    let failed = summary.is_err();
                    // The receiver lives as long as this scope.
                    let _ = give.send((rank, summary.map(|s| point(size, s))));
                    if failed {
                        halt.fail();
                        over.fail();
                    }
                    if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                        over.fail();
                    }
                }
                while trial.time(over).is_ok() {}
            }));
        }
        drop(give);
        for (rank, point) in points {
            let taken = point.and_then(|point| take(rank, point));
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

/// Repeats until the mean is known precisely enough.
fn settle<T: Trial>(trial: &mut T, halt: &StopSignal<'_>, options: &MeasureOptions) -> Result<Summary> {
    let begin = Instant::now();
    let late = || begin.elapsed().as_secs_f64() >= options.seconds_per_size;
    let most = options.most_repetitions.max(1) as usize;
    let first = trial.warm_up(halt)?;
    if T::FEWEST_WHEN_LATE <= 1 && late() {
        // A run of this length was warm for most of it.
        return Ok(summarise(&[first]));
    }
    let mut times = Vec::new();
    loop {
        times.push(trial.time(halt)?);
        let summary = summarise(&times);
        let enough = summary.is_within(options.tolerance) && times.len() >= FEWEST;
        if enough || times.len() >= most || (late() && times.len() >= T::FEWEST_WHEN_LATE) {
            return Ok(summary);
        }
    }
}

fn point(size: f64, summary: Summary) -> Point {
    let ci = if summary.ci.is_finite() { summary.ci } else { 0.0 };
    Point { ci, repetitions: summary.count, ..Point::new(size, summary.mean) }
}

/// The sequence of sizes of one processor.
#[derive(Debug)]
struct Course {
    /// All points, ascending by size, including those of an earlier sweep.
    points: Vec<Point>,
    plan: Plan,
    rounded: fn(f64) -> f64,
    /// The largest size that fits into memory.
    largest: f64,
}

#[derive(Debug)]
enum Plan {
    Listed(Vec<f64>),
    Adaptive(AdaptiveSweep),
}

impl Course {
    /// The size to measure next.
    fn next(&self) -> Option<f64> {
        match &self.plan {
            Plan::Listed(sizes) => sizes.iter().copied().find(|&size| self.known(size).is_none()),
            Plan::Adaptive(sweep) => sweep.next_size().map(self.rounded),
        }
    }

    fn task(&self) -> Option<Task> {
        let done = || self.points.last().map(|p| Task::Accompany(p.size));
        self.next().map(Task::Measure).or_else(done)
    }

    fn known(&self, size: f64) -> Option<Point> {
        self.points.iter().find(|p| p.size == size).copied()
    }

    /// Adds a point, and skips sizes that are known already.
    fn add(&mut self, point: Point) {
        let place = self.points.partition_point(|p| p.size < point.size);
        self.points.insert(place, point);
        self.skip();
    }

    fn skip(&mut self) {
        while let Some(size) = self.next() {
            let known = self.known(size);
            let (Plan::Adaptive(sweep), largest) = (&mut self.plan, self.largest) else { break };
            match known {
                Some(point) => sweep.add(point),
                None if size > largest => sweep.refuse(size),
                None => break,
            }
        }
    }

    /// Number of remaining points; an estimate if the sweep is adaptive.
    fn expected(&self) -> u64 {
        match &self.plan {
            Plan::Listed(sizes) => sizes.iter().filter(|&&size| self.known(size).is_none()).count() as u64,
            Plan::Adaptive(sweep) if self.next().is_some() => sweep.expected_more().max(1) as u64,
            Plan::Adaptive(_) => 0,
        }
    }
}

fn courses(subject: &Subject<'_>, sweep: &Sweep) -> Result<Vec<Course>> {
    let mut known = match &sweep.known {
        Some(models) => known_points(subject, models)?,
        None => BTreeMap::new(),
    };
    let rounded = subject.rounded;
    let plan = match &sweep.sizes {
        Sizes::Listed(sizes) => {
            let mut sizes: Vec<f64> = sizes.iter().map(|&size| rounded(size)).collect();
            sizes.sort_by(f64::total_cmp);
            sizes.dedup();
            Ok(sizes)
        }
        &Sizes::Adaptive { smallest, largest, accuracy, most } => {
            let (least, top) = (rounded(smallest), rounded(largest));
            let sweep = AdaptiveSweep::new(least, top, accuracy)?.with_most(most);
            Err(sweep)
        }
    };
    let course = |processor: &Processor| {
        let plan = match &plan {
            Ok(sizes) => Plan::Listed(sizes.clone()),
            Err(sweep) => Plan::Adaptive(sweep.clone()),
        };
        let points = known.remove(&processor.name).unwrap_or_default();
        let mut course = Course { points, plan, rounded, largest: (subject.largest)(processor) };
        course.skip();
        course
    };
    Ok(subject.platform.processors.iter().map(course).collect())
}

/// The points of an earlier sweep, by processor.
fn known_points(subject: &Subject<'_>, models: &Models) -> Result<BTreeMap<String, Vec<Point>>> {
    let refuse =
        |what: String| Err(Error::input("`resume`", what, "measure into another file, or without `resume`"));
    if models.kernel != subject.kernel || models.parameters != subject.parameters {
        let of = |kernel: &str, parameters: &BTreeMap<String, f64>| {
            parameters.iter().fold(kernel.to_owned(), |text, (name, value)| format!("{text}, {name} {value}"))
        };
        return refuse(format!(
            "the file holds points of \"{}\", not of \"{}\"",
            of(&models.kernel, &models.parameters),
            of(&subject.kernel, &subject.parameters),
        ));
    }
    let names = subject.platform.names();
    if let Some(stranger) = models.names().iter().find(|name| !names.contains(name)) {
        return refuse(format!(
            "the file holds points of processor \"{stranger}\", which the platform does not have"
        ));
    }
    Ok(models.models.iter().map(|m| (m.processor().to_owned(), m.points().to_vec())).collect())
}

/// The models so far, of the processors that have a point.
fn models(subject: &Subject<'_>, courses: &[Course]) -> Result<Models> {
    let models = courses
        .iter()
        .zip(&subject.platform.processors)
        .filter(|(course, _)| !course.points.is_empty())
        .map(|(course, processor)| {
            let (interpolation, cap) = match &course.plan {
                Plan::Listed(_) => (Interpolation::PiecewiseLinear, None),
                Plan::Adaptive(sweep) => (Interpolation::Akima, sweep.cap()),
            };
            Model::new(&processor.name, interpolation, course.points.clone(), cap)
        })
        .collect::<Result<_>>()?;
    Ok(Models {
        kernel: subject.kernel.clone(),
        unit: subject.unit.clone(),
        parameters: subject.parameters.clone(),
        models,
    })
}

#[cfg(test)]
mod tests;
