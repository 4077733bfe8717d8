//! Repetitions of one size until its mean is known precisely enough.

use super::MeasureOptions;
use crate::error::Result;
use crate::model::{Point, Summary, summarise};
use crate::run::mailboxes::StopSignal;
use std::time::Instant;

/// Minimum number of timings of a size.
const FEWEST: usize = 3;

/// One size of a subject on one processor, which can be timed.
pub(in crate::measure) trait Trial {
    /// Minimum number of timings of a size whose time is exceeded.
    const FEWEST_WHEN_LATE: usize;

    /// One run that is not counted, with any preparation. Returns its seconds.
    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64>;

    /// Seconds of one run.
    fn time(&mut self, halt: &StopSignal<'_>) -> Result<f64>;

    /// The reason of the last failure, if it may be that the size is too large.
    fn too_large(&self) -> Option<&str> {
        None
    }
}

/// A size that has been measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settled {
    summary: Summary,
    precise: bool,
}

impl Settled {
    pub fn point(&self, size: f64) -> Point {
        let Summary { mean, ci, count, band } = self.summary;
        Point {
            ci: ci.is_finite().then_some(ci),
            repetitions: count,
            low: band.map(|(low, _)| low),
            high: band.map(|(_, high)| high),
            precision_met: Some(self.precise),
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
}

impl<'a> Settling<'a> {
    pub fn new(options: &'a MeasureOptions) -> Self {
        Self { options, begin: Instant::now(), warm: false, times: Vec::new() }
    }

    /// One more run. Returns the result once the mean is known precisely enough, or the time is over.
    pub fn step<T: Trial>(&mut self, trial: &mut T, halt: &StopSignal<'_>) -> Result<Option<Settled>> {
        let late = || self.begin.elapsed().as_secs_f64() >= self.options.seconds_per_size;
        if !self.warm {
            self.warm = true;
            let first = trial.warm_up(halt)?;
            // A run of this length was warm for most of it.
            let once = T::FEWEST_WHEN_LATE <= 1 && late();
            return Ok(once.then(|| Settled { summary: summarise(&[first]), precise: false }));
        }
        self.times.push(trial.time(halt)?);
        let summary = summarise(&self.times);
        let count = self.times.len();
        let precise = summary.is_within(self.options.tolerance);
        let enough = precise && count >= FEWEST;
        let most = self.options.most_repetitions.max(1) as usize;
        let over = enough || count >= most || (late() && count >= T::FEWEST_WHEN_LATE);
        Ok(over.then_some(Settled { summary, precise }))
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

    /// Runs whose times are given.
    struct Given(Vec<f64>);

    impl Trial for Given {
        const FEWEST_WHEN_LATE: usize = 1;

        fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
            self.time(halt)
        }

        fn time(&mut self, _: &StopSignal<'_>) -> Result<f64> {
            Ok(self.0.pop().unwrap())
        }
    }

    fn settled(times: &[f64], options: MeasureOptions) -> Point {
        let monitor = Monitor::new();
        let mut trial = Given(times.iter().rev().copied().collect());
        settle(&mut trial, &StopSignal::new(&monitor), &options).unwrap().point(8.0)
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
