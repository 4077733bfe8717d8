//! Repetitions of one size until its mean is known precisely enough.

use super::MeasureOptions;
use crate::error::Result;
use crate::model::{Point, Summary, summarise};
use crate::run::mailboxes::StopSignal;
use std::time::Instant;

/// Minimum number of timings of a size.
const FEWEST: usize = 3;

/// The time of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::measure) struct Timing {
    /// Elapsed seconds.
    pub wall: f64,
    /// CPU seconds of the thread that worked longest, times the processor's slowdown: the seconds that the
    /// run would have taken if nothing else had used its cores. `None` if it is not known.
    pub cpu: Option<f64>,
}

impl Timing {
    /// A run of which only the elapsed time is known.
    pub fn of_wall(wall: f64) -> Self {
        Self { wall, cpu: None }
    }
}

/// One size of a subject on one processor, which can be timed.
pub(in crate::measure) trait Trial {
    /// Minimum number of timings of a size whose time is exceeded.
    const FEWEST_WHEN_LATE: usize;

    /// One run that is not counted, with any preparation. Returns its seconds.
    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64>;

    /// Times one run.
    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing>;

    /// The reason of the last failure, if it may be that the size is too large.
    fn too_large(&self) -> Option<&str> {
        None
    }
}

/// A size that has been measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settled {
    summary: Summary,
    /// Mean CPU seconds, and the fraction of all elapsed time that they were.
    cpu: Option<(f64, f64)>,
    precise: bool,
}

impl Settled {
    pub fn point(&self, size: f64) -> Point {
        let Summary { mean, ci, count, band } = self.summary;
        Point {
            ci: ci.is_finite().then_some(ci),
            repetitions: count,
            low: band.map(|band| band.low),
            high: band.map(|band| band.high),
            precision_met: Some(self.precise),
            cpu_seconds: self.cpu.map(|(seconds, _)| seconds),
            cpu_share: self.cpu.map(|(_, share)| share),
            ..Point::new(size, mean)
        }
    }
}

/// Repetitions so far.
#[derive(Debug)]
pub(super) struct Settling<'a> {
    options: &'a MeasureOptions,
    begin: Instant,
    warm: bool,
    times: Vec<f64>,
    /// CPU seconds, as long as they are known.
    cpu: Option<Vec<f64>>,
}

impl<'a> Settling<'a> {
    pub fn new(options: &'a MeasureOptions) -> Self {
        Self { options, begin: Instant::now(), warm: false, times: Vec::new(), cpu: Some(Vec::new()) }
    }

    /// One more run. Returns the result once the mean is known precisely enough, or the time is over.
    pub fn step<T: Trial>(&mut self, trial: &mut T, halt: &StopSignal<'_>) -> Result<Option<Settled>> {
        let late = || self.begin.elapsed().as_secs_f64() >= self.options.seconds_per_size;
        if !self.warm {
            self.warm = true;
            let first = trial.warm_up(halt)?;
            // A run of this length was warm for most of it.
            let once = T::FEWEST_WHEN_LATE <= 1 && late();
            return Ok(once.then(|| Settled { summary: summarise(&[first]), cpu: None, precise: false }));
        }
        let Timing { wall, cpu } = trial.time(halt)?;
        self.times.push(wall);
        match (&mut self.cpu, cpu) {
            (Some(known), Some(cpu)) => known.push(cpu),
            (known, _) => *known = None,
        }
        let summary = summarise(&self.times);
        let count = self.times.len();
        let precise = summary.is_within(self.options.tolerance);
        let enough = precise && count >= FEWEST;
        let most = self.options.most_repetitions.max(1) as usize;
        let over = enough || count >= most || (late() && count >= T::FEWEST_WHEN_LATE);
        Ok(over.then(|| Settled { summary, cpu: self.of_cpu(), precise }))
    }
}

impl Settling<'_> {
    /// Mean CPU seconds and their fraction of the elapsed time; `None` if they are not known.
    fn of_cpu(&self) -> Option<(f64, f64)> {
        let cpu = self.cpu.as_ref()?;
        let (all, elapsed) = (cpu.iter().sum::<f64>(), self.times.iter().sum::<f64>());
        let known = all > 0.0 && elapsed > 0.0;
        known.then(|| (summarise(cpu).mean, (all / elapsed).min(1.0)))
    }
}

/// Repeats until the mean is known precisely enough.
pub(super) fn settle<T: Trial>(
    trial: &mut T,
    halt: &StopSignal<'_>,
    options: &MeasureOptions,
) -> Result<Settled> {
    let mut settling = Settling::new(options);
    loop {
        if let Some(settled) = settling.step(trial, halt)? {
            return Ok(settled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Monitor;

    /// Runs whose times are given, elapsed and CPU.
    struct Given(Vec<(f64, Option<f64>)>);

    impl Trial for Given {
        const FEWEST_WHEN_LATE: usize = 1;

        fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
            Ok(self.time(halt)?.wall)
        }

        fn time(&mut self, _: &StopSignal<'_>) -> Result<Timing> {
            let (wall, cpu) = self.0.pop().unwrap();
            Ok(Timing { wall, cpu })
        }
    }

    fn settled(times: &[f64], options: MeasureOptions) -> Point {
        with_cpu(times.iter().map(|wall| (*wall, None)).collect(), options)
    }

    fn with_cpu(times: Vec<(f64, Option<f64>)>, options: MeasureOptions) -> Point {
        let monitor = Monitor::new();
        let mut trial = Given(times.into_iter().rev().collect());
        settle(&mut trial, &StopSignal::new(&monitor), &options).unwrap().point(8.0)
    }

    /// The repetition that was preempted is no part of the mean, but of the share. Five are enough: four
    /// agree.
    #[test]
    fn what_other_programs_took_is_known() {
        let mut times = vec![(1.0, Some(1.0)); 6];
        times.insert(2, (6.5, Some(1.0)));
        let point = with_cpu(times, options_of(6));
        assert_eq!((point.seconds, point.cpu_seconds), (1.0, Some(1.0)));
        assert!((point.cpu_share.unwrap() - 5.0 / 10.5).abs() < 1e-12, "{point:?}");
        let point =
            with_cpu(vec![(2.0, Some(1.0)), (2.0, Some(1.0)), (2.0, None), (2.0, Some(1.0))], options_of(3));
        assert_eq!((point.cpu_seconds, point.cpu_share), (None, None), "one was not measured");
    }

    fn options_of(most_repetitions: u64) -> MeasureOptions {
        MeasureOptions { seconds_per_size: 1e9, tolerance: 0.0, most_repetitions, ..Default::default() }
    }

    #[test]
    fn a_point_says_how_well_it_is_known() {
        let options = MeasureOptions { seconds_per_size: 1e9, ..MeasureOptions::default() };
        // The first run does not count; three equal ones are precise, but too few for a band.
        let point = settled(&[9.0, 2.0, 2.0, 2.0], options);
        assert_eq!((point.seconds, point.ci, point.repetitions), (2.0, Some(0.0), 3));
        assert_eq!((point.low, point.high, point.precision_met), (None, None, Some(true)));
        // Quantiles of 1, 2, 3, 4, 5 at the places 0.2 and 3.8.
        let five = MeasureOptions { most_repetitions: 5, ..options };
        let point = settled(&[9.0, 5.0, 1.0, 4.0, 2.0, 3.0], five);
        assert_eq!((point.low, point.high), (Some(1.2), Some(4.8)));
        assert_eq!((point.seconds, point.precision_met), (3.0, Some(false)));
        // A run longer than the time for a size is the only one.
        let point = settled(&[9.0], MeasureOptions { seconds_per_size: 0.0, ..options });
        assert_eq!((point.seconds, point.ci, point.repetitions), (9.0, None, 1));
        assert_eq!(point.precision_met, Some(false));
    }
}
