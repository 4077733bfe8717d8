//! Repetition of a measurement until it is known well enough (Malik 2016, section 4.5).

use crate::error::Result;
use crate::model::{Point, Summary, summarise};
use crate::run::clock;
use crate::run::mailboxes::StopSignal;
use crate::run::throttle::Throttle;
use std::time::Instant;

/// When the repetitions of a measurement are enough: those made so far agree, there are as many as are worth
/// it, or the time is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoppingRule {
    /// Minimum number of repetitions that may agree.
    pub(crate) fewest: usize,
    /// Number of repetitions after which they no longer have to agree.
    pub(crate) most: usize,
    /// Seconds of repetition after which they no longer have to agree.
    pub(crate) seconds: f64,
    /// Minimum number of repetitions once these seconds are over.
    pub(crate) fewest_when_late: usize,
}

impl StoppingRule {
    /// This number of repetitions, whatever they find.
    pub(crate) fn times(count: usize) -> Self {
        Self { fewest: count, most: count, seconds: f64::INFINITY, fewest_when_late: count }
    }

    /// True if this number of repetitions in these seconds is enough.
    pub(crate) fn is_met(&self, count: usize, seconds: f64, agree: impl FnOnce() -> bool) -> bool {
        count >= self.most
            || (seconds >= self.seconds && count >= self.fewest_when_late)
            || (count >= self.fewest && agree())
    }
}

/// Repetitions of one measurement, and the rule that ends them.
#[derive(Debug)]
pub(super) struct Sampler<S> {
    rule: StoppingRule,
    begin: Instant,
    samples: Vec<S>,
}

impl<S> Sampler<S> {
    /// No samples yet; the time of the rule begins now.
    pub(crate) fn new(rule: StoppingRule) -> Self {
        Self { rule, begin: Instant::now(), samples: Vec::new() }
    }

    /// True once the time of the rule is over.
    fn is_late(&self) -> bool {
        self.begin.elapsed().as_secs_f64() >= self.rule.seconds
    }

    /// Adds a sample. True if they are enough; `agree` says whether the samples so far do.
    fn add(&mut self, sample: S, agree: impl FnOnce(&[S]) -> bool) -> bool {
        self.samples.push(sample);
        let seconds = self.begin.elapsed().as_secs_f64();
        self.rule.is_met(self.samples.len(), seconds, || agree(&self.samples))
    }

    /// Measures until the samples are enough.
    ///
    /// # Errors
    /// Those of `measure`.
    pub(crate) fn run<E>(
        mut self,
        agree: impl Fn(&[S]) -> bool,
        mut measure: impl FnMut() -> std::result::Result<S, E>,
    ) -> std::result::Result<Vec<S>, E> {
        while !self.add(measure()?, &agree) {}
        Ok(self.samples)
    }
}

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

    /// Options by which every size is repeated for these seconds, also where the repetitions agree earlier.
    pub(crate) fn for_seconds(seconds_per_size: f64) -> Self {
        Self { tolerance: 0.0, most_repetitions: 1_000_000, seconds_per_size, ..Self::quick() }
    }
}

/// The time of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Elapsed seconds.
    pub(crate) wall: f64,
    /// CPU seconds of the thread that worked longest, times the processor's slowdown: the seconds that the
    /// run would have taken if nothing else had used its cores. `None` if it is not known.
    pub(crate) cpu: Option<f64>,
}

impl Timing {
    /// A run of which only the elapsed time is known.
    pub(crate) fn of_wall(wall: f64) -> Self {
        Self { wall, cpu: None }
    }
}

/// One size of a workload on one processor, which can be timed.
pub trait Trial {
    /// Minimum number of timings of a size whose time is exceeded.
    const FEWEST_WHEN_LATE: usize;

    /// One run that is not counted, with any preparation. Returns its seconds.
    ///
    /// # Errors
    /// Those of the run; stopped.
    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
        Ok(self.time(halt)?.wall)
    }

    /// Times one run.
    ///
    /// # Errors
    /// Those of the run; stopped.
    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing>;

    /// The reason of the last failure, if it may be that the size is too large.
    fn failure_of_size(&self) -> Option<&str> {
        None
    }
}

/// Minimum number of timings of a size.
const FEWEST: usize = 3;

/// The repeated timing of a trial.
#[derive(Debug)]
pub(super) struct TrialSampler {
    size: f64,
    tolerance: f64,
    is_warm: bool,
    sampler: Sampler<Timing>,
}

impl TrialSampler {
    /// No runs yet of a trial of this size.
    pub(crate) fn new<T: Trial>(size: f64, options: &MeasureOptions) -> Self {
        let rule = StoppingRule {
            fewest: FEWEST,
            most: options.most_repetitions.max(1) as usize,
            seconds: options.seconds_per_size,
            fewest_when_late: T::FEWEST_WHEN_LATE,
        };
        Self { size, tolerance: options.tolerance, is_warm: false, sampler: Sampler::new(rule) }
    }

    /// One more run. Returns the point once the mean is known precisely enough, or the time is over.
    pub(crate) fn step<T: Trial>(&mut self, trial: &mut T, halt: &StopSignal<'_>) -> Result<Option<Point>> {
        if !self.is_warm {
            self.is_warm = true;
            let first = trial.warm_up(halt)?;
            // A run of this length was warm for most of it.
            let once = T::FEWEST_WHEN_LATE <= 1 && self.sampler.is_late();
            return Ok(once.then(|| self.point(&[Timing::of_wall(first)])));
        }
        let is_precise = |timings: &[Timing]| summary(timings).is_within(self.tolerance);
        let is_over = self.sampler.add(trial.time(halt)?, is_precise);
        Ok(is_over.then(|| self.point(&self.sampler.samples)))
    }

    /// Runs a trial until its mean is known precisely enough.
    pub(crate) fn run<T: Trial>(mut self, trial: &mut T, halt: &StopSignal<'_>) -> Result<Point> {
        loop {
            if let Some(point) = self.step(trial, halt)? {
                return Ok(point);
            }
        }
    }

    fn point(&self, timings: &[Timing]) -> Point {
        let summary = summary(timings);
        // CPU seconds, if all are known, and their fraction of the elapsed time.
        let cpu: Option<Vec<f64>> = timings.iter().map(|timing| timing.cpu).collect();
        let elapsed: f64 = timings.iter().map(|timing| timing.wall).sum();
        let cpu = cpu.filter(|cpu| cpu.iter().sum::<f64>() > 0.0 && elapsed > 0.0);
        let Summary { mean, ci, count, band } = summary;
        Point {
            ci: ci.is_finite().then_some(ci),
            repetitions: count,
            low: band.map(|band| band.low),
            high: band.map(|band| band.high),
            precision_met: Some(summary.is_within(self.tolerance)),
            cpu_seconds: cpu.as_ref().map(|cpu| summarise(cpu).mean),
            cpu_share: cpu.map(|cpu| (cpu.iter().sum::<f64>() / elapsed).min(1.0)),
            ..Point::new(self.size, mean)
        }
    }
}

fn summary(timings: &[Timing]) -> Summary {
    summarise(&timings.iter().map(|timing| timing.wall).collect::<Vec<_>>())
}

/// A computation with memory of its own, such as the update of a tile.
pub trait Computation {
    /// Computes once, on up to this number of threads. Returns the longest CPU time of threads that it
    /// started.
    ///
    /// # Errors
    /// The system refuses a thread.
    fn compute(&mut self, threads: usize) -> Result<f64>;
}

/// Minimum duration of a timing in CPU seconds: long compared with the clock's resolution and the error of a
/// sleep.
const SHORTEST: f64 = 0.004;

/// A computation on a processor that may be too short to time once: a timing is the mean of several.
pub struct ComputationTrial<C> {
    computation: C,
    threads: usize,
    slowdown: f64,
    throttle: Throttle,
    /// Number of computations for one timing.
    count: u64,
}

impl<C: Computation> ComputationTrial<C> {
    /// The computation on a processor of a platform.
    pub fn new(computation: C, processor: &crate::platform::Processor) -> Self {
        Self {
            computation,
            threads: clock::usable_threads(&processor.cores),
            slowdown: processor.slowdown,
            throttle: Throttle::new(processor.slowdown),
            count: 1,
        }
    }
}

impl<C: Computation> Trial for ComputationTrial<C> {
    const FEWEST_WHEN_LATE: usize = 3;

    /// Also determines the number of computations for one timing.
    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
        let cpu = clock::worker_cpu_seconds();
        self.count = 1;
        let seconds = self.time(halt)?.wall;
        let once = (clock::worker_cpu_seconds() - cpu).max(1e-7);
        self.count = (SHORTEST / once).ceil().clamp(1.0, 1e6) as u64;
        Ok(seconds)
    }

    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing> {
        let (begin, mut cpu) = (Instant::now(), 0.0);
        for _ in 0..self.count {
            halt.check()?;
            cpu += self.throttle.try_compute(halt, None, || self.computation.compute(self.threads))?;
        }
        let mean = |seconds: f64| seconds / self.count as f64;
        let wall = mean(begin.elapsed().as_secs_f64());
        // Sleeping exactly is impossible: more CPU time than elapsed is no loss to others.
        Ok(Timing { wall, cpu: Some(mean(cpu * self.slowdown).min(wall)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Monitor;

    /// Runs whose times are listed, elapsed and CPU.
    struct Recorded(Vec<(f64, Option<f64>)>);

    impl Trial for Recorded {
        const FEWEST_WHEN_LATE: usize = 1;

        fn time(&mut self, _: &StopSignal<'_>) -> Result<Timing> {
            let (wall, cpu) = self.0.pop().unwrap();
            Ok(Timing { wall, cpu })
        }
    }

    fn point_of(times: &[f64], options: MeasureOptions) -> Point {
        point_with_cpu(times.iter().map(|wall| (*wall, None)).collect(), options)
    }

    fn point_with_cpu(times: Vec<(f64, Option<f64>)>, options: MeasureOptions) -> Point {
        let monitor = Monitor::new();
        let mut trial = Recorded(times.into_iter().rev().collect());
        TrialSampler::new::<Recorded>(8.0, &options).run(&mut trial, &StopSignal::new(&monitor)).unwrap()
    }

    /// The repetition that was preempted is no part of the mean, but of the share. Five are enough: four
    /// agree.
    #[test]
    fn what_other_programs_took_is_known() {
        let mut times = vec![(1.0, Some(1.0)); 6];
        times.insert(2, (6.5, Some(1.0)));
        let point = point_with_cpu(times, options_of(6));
        assert_eq!((point.seconds, point.cpu_seconds), (1.0, Some(1.0)));
        assert!((point.cpu_share.unwrap() - 5.0 / 10.5).abs() < 1e-12, "{point:?}");
        let times = vec![(2.0, Some(1.0)), (2.0, Some(1.0)), (2.0, None), (2.0, Some(1.0))];
        let point = point_with_cpu(times, options_of(3));
        assert_eq!((point.cpu_seconds, point.cpu_share), (None, None), "one was not measured");
    }

    fn options_of(most_repetitions: u64) -> MeasureOptions {
        MeasureOptions { seconds_per_size: 1e9, tolerance: 0.0, most_repetitions, ..Default::default() }
    }

    #[test]
    fn a_point_says_how_well_it_is_known() {
        let options = MeasureOptions { seconds_per_size: 1e9, ..MeasureOptions::default() };
        // The first run does not count; three equal ones are precise, but too few for a band.
        let point = point_of(&[9.0, 2.0, 2.0, 2.0], options);
        assert_eq!((point.seconds, point.ci, point.repetitions), (2.0, Some(0.0), 3));
        assert_eq!((point.low, point.high, point.precision_met), (None, None, Some(true)));
        // Quantiles of 1, 2, 3, 4, 5 at the places 0.2 and 3.8.
        let five = MeasureOptions { most_repetitions: 5, ..options };
        let point = point_of(&[9.0, 5.0, 1.0, 4.0, 2.0, 3.0], five);
        assert_eq!((point.low, point.high), (Some(1.2), Some(4.8)));
        assert_eq!((point.seconds, point.precision_met), (3.0, Some(false)));
        // A run longer than the time for a size is the only one.
        let point = point_of(&[9.0], MeasureOptions { seconds_per_size: 0.0, ..options });
        assert_eq!((point.seconds, point.ci, point.repetitions), (9.0, None, 1));
        assert_eq!(point.precision_met, Some(false));
    }

    #[test]
    fn a_rule_ends_by_agreement_number_or_time() {
        let rule = StoppingRule { fewest: 2, most: 5, seconds: 1.0, fewest_when_late: 3 };
        for (count, seconds, agree, is_met) in [
            (1, 0.0, true, false),
            (2, 0.0, true, true),
            (4, 0.5, false, false),
            (5, 0.5, false, true),
            (2, 1.0, false, false),
            (3, 1.0, false, true),
        ] {
            assert_eq!(rule.is_met(count, seconds, || agree), is_met, "{count} in {seconds} s");
        }
        let mut next = 0;
        let samples = Sampler::new(StoppingRule::times(3)).run(
            |_| false,
            || {
                next += 1;
                Ok::<_, ()>(next)
            },
        );
        assert_eq!(samples, Ok(vec![1, 2, 3]));
    }
}
