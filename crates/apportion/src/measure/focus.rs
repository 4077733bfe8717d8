//! Measuring only what one division needs: the next size is the one whose uncertainty costs the plan most.
//!
//! The shares of a known number of units are computed from the points so far, and only sizes at those shares
//! are measured, until no share is uncertain. Source: the partial estimates of Lastovetsky and Reddy 2009,
//! "Distributed data partitioning for heterogeneous processors based on partial estimation of their
//! functional performance models". New here: sizes that could not change the plan are not measured.

use crate::error::{Error, Result};
use crate::model::{Model, Point};
use crate::plan::shares::{fpm, ideal_seconds};

/// First sizes are the even share over this number: cheap, and on the same side of most caches.
const PROBE: f64 = 4.0;
/// By this a size is divided that could not be run although it is the first.
const SMALLER: f64 = 4.0;
/// Relative distance of what fits and what does not, below which the edge is known well enough.
const WIDTH: f64 = 0.001;
/// Sizes that are tried until one is within the cap after rounding.
const ROUNDINGS: usize = 16;
/// Outside the measured sizes, this fraction of the speed is uncertain for each doubling of size …
const DOUBT_PER_DOUBLING: f64 = 0.5;
/// … or the slope of speed between the last two points, times this factor.
const STEEPER: f64 = 2.0;
/// Between two points, the expected error of the line is the smaller distance in scale times the gap in
/// speed, times this factor.
const INSIDE: f64 = 2.0;

/// A size to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeRequest {
    /// The processor.
    pub rank: usize,
    /// The size, a whole number.
    pub size: f64,
    /// Seconds that the plan is expected to lose if this size is not measured; infinite as long as the
    /// processor has no point.
    pub(crate) regret: f64,
}

/// The choice of sizes on all processors for dividing one number of units. It measures nothing itself: ask
/// [`FocusedSweep::next`], measure, [`FocusedSweep::add`], until nothing is
/// requested. Then [`shares::fpm`](crate::plan::shares::fpm()) divides the units by [`FocusedSweep::models`].
///
/// # Expected regret
/// Let all processors finish after T seconds by the points so far, and one processor's speed at its share be
/// uncertain by the fraction u either way. If it is slower, all wait for it: T u are lost, less what a better
/// plan would lose too, w T u, where w is its part of the units. If it is faster, it waits: a better plan
/// would have gained w T u. Both are equally likely: T u (1 - w + w) / 2 = T u / 2.
///
/// # Example
/// ```
/// use apportion::{measure::FocusedSweep, plan::shares::fpm, platform::Emulated};
/// let processors: [Emulated; 2] = ["peak 2e9, cliff 4e6 0.05".parse()?, "peak 1e9".parse()?];
/// let mut sweep = FocusedSweep::new(2, 3_000_000, 0.02)?;
/// while let Some(request) = sweep.next()? {
///     sweep.add(request.rank, processors[request.rank].point(request.size));
/// }
/// let models = sweep.models(&["a".into(), "b".into()])?;
/// assert_eq!(fpm(&models, 3_000_000)?, [2_000_000, 1_000_000]);
/// assert!(models.iter().all(|m| m.points().len() <= 3));
/// # Ok::<(), apportion::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FocusedSweep {
    units: u64,
    accuracy: f64,
    most: usize,
    rounded: fn(f64) -> f64,
    processors: Vec<ProcessorState>,
}

/// What is known of a processor.
#[derive(Debug, Clone, Default)]
struct ProcessorState {
    /// Ascending by size.
    points: Vec<Point>,
    /// The largest size that may be asked for.
    largest: Option<f64>,
    /// The smallest size that could not be run.
    refused: Option<f64>,
}

impl FocusedSweep {
    /// A sweep for dividing `units` among this number of processors, until the expected relative error of
    /// every speed at its share is at most `accuracy`. At most 30 points on each processor.
    ///
    /// # Errors
    /// No processor or no unit, or an accuracy that is not in (0, 1): exit code 2.
    pub fn new(processors: usize, units: u64, accuracy: f64) -> Result<Self> {
        if processors == 0 || units == 0 {
            let what = format!("{units} units cannot be divided among {processors} processors");
            return Err(Error::input("`units`", what, "give at least one of each"));
        }
        if !(accuracy > 0.0 && accuracy < 1.0) {
            let what = format!("{accuracy} is no fraction between 0 and 1");
            return Err(Error::input("`accuracy`", what, "0.02 is usual"));
        }
        let processors = vec![ProcessorState::default(); processors];
        Ok(Self { units, accuracy, most: 30, rounded: f64::round, processors })
    }

    /// The same with at most `most` points on each processor.
    #[must_use]
    pub fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The same for a subject that rounds requested sizes.
    #[must_use]
    pub(super) fn with_rounding(self, rounded: fn(f64) -> f64) -> Self {
        Self { rounded, ..self }
    }

    /// A cap: no larger size is asked for, and the model of the processor ends there.
    pub(crate) fn cap(&mut self, rank: usize, largest: f64) {
        let known = &mut self.processors[rank];
        known.largest = Some(known.largest.map_or(largest, |old| old.min(largest)));
    }

    /// Adds a measured point: of the size asked for, or any other. A point of a known size is dropped.
    pub fn add(&mut self, rank: usize, point: Point) {
        let points = &mut self.processors[rank].points;
        let place = points.partition_point(|p| p.size < point.size);
        if points.get(place).is_none_or(|p| p.size != point.size) {
            points.insert(place, point);
        }
    }

    /// Records that a size cannot be run because memory is full.
    pub(crate) fn refuse(&mut self, rank: usize, size: f64) {
        let known = &mut self.processors[rank];
        known.refused = Some(known.refused.map_or(size, |bad| bad.min(size)));
    }

    /// The models of the points so far: lines between them, capped where a size was refused.
    ///
    /// # Errors
    /// A processor has no point, or an invalid one.
    ///
    /// # Panics
    /// If there is not one name for each processor.
    pub fn models(&self, names: &[String]) -> Result<Vec<Model>> {
        assert_eq!(names.len(), self.processors.len(), "one name for each processor");
        self.processors.iter().zip(names).map(|(known, name)| known.model(name)).collect()
    }

    /// The request with the largest expected regret; `None` when the plan is certain enough.
    ///
    /// # Errors
    /// Caps that together are smaller than the number of units: exit code 1.
    #[allow(clippy::should_implement_trait)] // It can fail, and nothing is consumed.
    pub fn next(&self) -> Result<Option<SizeRequest>> {
        let requests = self.requests()?;
        Ok(requests.into_iter().reduce(|best, other| if other.regret > best.regret { other } else { best }))
    }

    /// At most one size for each processor that should be measured, by rank: for processors that are measured
    /// together.
    ///
    /// # Errors
    /// Caps that together are smaller than the number of units: exit code 1.
    pub(super) fn requests(&self) -> Result<Vec<SizeRequest>> {
        let even = self.units as f64 / self.processors.len() as f64;
        // A single processor does everything: one point, for the time.
        let probe = if self.processors.len() == 1 { even } else { (even / PROBE).max(1.0) };
        let empty = (0..self.processors.len()).filter(|&rank| self.processors[rank].points.is_empty());
        let first = |rank: usize| {
            let size = match self.processors[rank].refused {
                Some(bad) if bad <= 1.0 => return Err(nothing_fits(rank)),
                Some(bad) if bad <= probe => (bad / SMALLER).max(1.0),
                _ => probe,
            };
            Ok(SizeRequest { rank, size: self.allowed(rank, size), regret: f64::INFINITY })
        };
        let first: Vec<SizeRequest> = empty.map(first).collect::<Result<_>>()?;
        if !first.is_empty() {
            return Ok(first);
        }
        let wider = self.wider();
        if !wider.is_empty() {
            return Ok(wider);
        }
        let names = vec![String::from("p"); self.processors.len()];
        let models = self.models(&names)?;
        let seconds = ideal_seconds(&models, self.units)?;
        let shares = fpm(&models, self.units)?;
        let request = |rank: usize| {
            let known = &self.processors[rank];
            let share = shares[rank] as f64;
            if share < 1.0 || known.points.len() >= self.most || self.processors.len() == 1 {
                return None;
            }
            let (size, error) = match known.between() {
                // The share is all that is known to fit: more may fit.
                Some((middle, width)) if known.cap().is_some_and(|cap| share >= cap.floor()) => {
                    (middle, width)
                }
                _ => (share, known.error(share)),
            };
            let size = self.allowed(rank, size);
            let measured = known.points.iter().any(|p| p.size == size);
            let refused = known.refused.is_some_and(|bad| size >= bad);
            let wanted = error > self.accuracy && !measured && !refused;
            wanted.then_some(SizeRequest { rank, size, regret: 0.5 * seconds * error })
        };
        Ok((0..self.processors.len()).filter_map(request).collect())
    }

    /// Where what is known to fit cannot hold the units, but what was not refused yet can: sizes between the
    /// two, which say more about what fits.
    fn wider(&self) -> Vec<SizeRequest> {
        let units = self.units as f64;
        let sum = |of: fn(&ProcessorState) -> Option<f64>| -> f64 {
            self.processors.iter().map(|known| of(known).map_or(units, f64::floor)).sum()
        };
        if sum(ProcessorState::cap) >= units || sum(ProcessorState::most) < units {
            return Vec::new();
        }
        let request = |rank: usize| {
            let known = &self.processors[rank];
            let (middle, width) = known.between()?;
            let size = self.allowed(rank, middle);
            let open =
                known.points.iter().all(|p| p.size != size) && known.refused.is_some_and(|bad| size < bad);
            (open && width > WIDTH).then_some(SizeRequest { rank, size, regret: f64::INFINITY })
        };
        (0..self.processors.len()).filter_map(request).collect()
    }

    /// The nearest size that may be asked for, also after the subject's rounding.
    fn allowed(&self, rank: usize, size: f64) -> f64 {
        let largest = self.processors[rank].largest.unwrap_or(f64::INFINITY);
        let mut wanted = size.min(largest).max(1.0).round();
        for _ in 0..ROUNDINGS {
            let rounded = (self.rounded)(wanted);
            if rounded <= largest {
                return rounded;
            }
            wanted *= 0.75;
        }
        largest
    }
}

fn nothing_fits(rank: usize) -> Error {
    let what = format!("processor {rank}, counted from 0, could not run the smallest size");
    Error::infeasible(what, "give it more memory, or leave it out")
}

impl ProcessorState {
    /// The largest size that may still turn out to fit; `None` without a limit.
    fn most(&self) -> Option<f64> {
        match (self.refused, self.largest) {
            (Some(refused), Some(largest)) => Some(largest.min(refused)),
            (refused, largest) => refused.or(largest),
        }
    }

    fn cap(&self) -> Option<f64> {
        let found = self.refused.and(self.points.last()).map(|p| p.size);
        match (found, self.largest) {
            (Some(found), Some(largest)) => Some(found.min(largest)),
            (found, largest) => found.or(largest),
        }
    }

    fn model(&self, name: &str) -> Result<Model> {
        Model::piecewise(name, self.points.clone(), self.cap())
    }

    /// A size between the largest that works and the smallest that was refused, and their relative distance.
    fn between(&self) -> Option<(f64, f64)> {
        let (good, bad) = (self.points.last()?.size, self.refused?);
        let middle = if bad > 4.0 * good { (good * bad).sqrt() } else { 0.5 * (good + bad) };
        Some((middle, (bad - good) / good))
    }

    /// The expected relative error of the model's speed at a size, where speed is monotone between points.
    fn error(&self, size: f64) -> f64 {
        let points = &self.points;
        let right = points.partition_point(|p| p.size < size);
        if points.get(right).is_some_and(|p| p.size == size) {
            return 0.0;
        }
        let slope = |pair: &[Point]| gap(&pair[0], &pair[1]) / (pair[1].size / pair[0].size).ln();
        let outside = |end: f64, slope: f64| {
            let distance = (size / end).ln().abs();
            (distance / std::f64::consts::LN_2 * DOUBT_PER_DOUBLING).max(STEEPER * slope * distance).min(1.0)
        };
        match (right.checked_sub(1).map(|left| &points[left]), points.get(right)) {
            (Some(a), Some(b)) => {
                // A step is anywhere between the two, evenly in scale: the line is wrong where it is not.
                let place = (size / a.size).ln() / (b.size / a.size).ln();
                let inside = INSIDE * gap(a, b) * place.min(1.0 - place);
                // No share is off by more than the interval is wide.
                inside.min((b.size - a.size) / b.size)
            }
            (Some(last), None) => outside(last.size, points.windows(2).next_back().map_or(0.0, slope)),
            (None, Some(first)) => outside(first.size, points.windows(2).next().map_or(0.0, slope)),
            (None, None) => 1.0,
        }
    }
}

/// The relative difference of two speeds, beyond the confidence intervals.
fn gap(a: &Point, b: &Point) -> f64 {
    let noise = |p: &Point| p.ci.unwrap_or(0.0) / p.seconds;
    ((a.speed() - b.speed()).abs() / a.speed().min(b.speed()) - noise(a) - noise(b)).max(0.0)
}

#[cfg(test)]
mod tests;
