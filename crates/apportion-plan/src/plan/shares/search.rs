//! Finds shares by running a whole job again and again: times in, shares out.
//!
//! Source: DFPA (Lastovetsky and Reddy, "Distributed data partitioning for heterogeneous processors based on partial
//! estimation of their functional performance models", HeteroPar 2009). Added: a start-up time, a line that goes on
//! beyond the shares that were run; doubt about rounds that contradict the others; known models to start from, limits,
//! and each division tried once.

use super::balancer::{check_adopted, check_limits, check_models, check_size, check_times, check_tolerance};
use super::{Limits, even, fpm_within};
use crate::error::{Error, Result};
use crate::model::{Interpolation, Model, Point};

/// A time that is so many times as long as others say is doubted.
const SURPRISE: f64 = 1.25;
/// Shares that differ by at most this fraction are one.
const NEAR: f64 = 1e-3;
/// Two shares tell a time per unit if the smaller is at most this fraction of the larger.
const APART: f64 = 0.9;
/// Below this fraction of a share, a processor may have been slow there and fast here.
const CLOSE: f64 = 0.75;
/// Ratio of neighbouring sizes at which a line becomes points of a speed function.
const STEP: f64 = 1.25;
/// The least time for a unit, as a fraction of the whole time for each: less would be an accident of noise.
const LEAST_PER_UNIT: f64 = 0.05;

/// So many rounds in which times do not come closer to each other are enough.
const PATIENCE: u32 = 3;

/// What follows from a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The times are not believed yet: the same shares once more.
    Again,
    /// Other shares promise a shorter time: [`Search::shares`].
    Next,
    /// All processors with units finish within the tolerance of each other.
    Balanced,
    /// No other shares within the limits promise a shorter time.
    NothingBetter,
}

/// A time that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spot {
    units: u64,
    seconds: f64,
    /// Measured twice.
    sure: bool,
    /// Of the first round, which may have been cold.
    first: bool,
}

impl Spot {
    fn per_unit(&self) -> f64 {
        self.seconds / self.units as f64
    }
}

/// What is known of one processor.
#[derive(Debug, Clone, PartialEq, Default)]
struct Known {
    /// A speed function whose shape is known beforehand.
    shape: Option<Model>,
    /// Ascending by units.
    spots: Vec<Spot>,
    /// Units and seconds of the last believed round.
    last: Option<Spot>,
    /// Number of times in succession that were a surprise.
    surprises: u32,
}

/// The search for shares of `units` units with which all processors finish together.
///
/// A processor's time is a line of start-up and time per unit through the shares that it had, and its speed is
/// interpolated where it falls. A round in which a processor takes more than 1.25 times as long as expected is run
/// again, and the shorter of both times counts. Times of the first round, which may have been cold, are forgotten where
/// a processor has two others.
///
/// # Example
/// ```
/// use apportion_plan::plan::shares::{Search, Step};
/// // 1 s to start on both; 1 and 3 ms for a unit.
/// let job = |shares: &[u64]| vec![1.0 + shares[0] as f64 / 1e3, 1.0 + shares[1] as f64 / 333.0];
/// let mut search = Search::new(2000, 2)?;
/// let mut rounds = 1;
/// while search.observe(&job(search.shares()))? == Step::Next {
///     rounds += 1;
/// }
/// assert!(rounds <= 4);
/// assert!(search.shares()[0].abs_diff(1500) < 20);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    units: u64,
    tolerance: f64,
    limits: Vec<Limits>,
    /// First rounds that are not believed.
    unused: u32,
    processors: Vec<Known>,
    shares: Vec<u64>,
    /// The shares of rounds that are believed.
    tried: Vec<Vec<u64>>,
    /// The round with the shortest time: this, its shares, and whether it was balanced.
    kept: Option<(f64, Vec<u64>, bool)>,
    /// The times of a round that is run again.
    doubted: Option<Vec<f64>>,
    /// The least difference of times of a round so far, and the number of rounds since.
    nearest: (f64, u32),
    /// Whether older rounds were doubted since nothing better was found.
    is_last: bool,
}

impl Search {
    /// A search for shares of `units` units on `processors` processors that starts from equal shares, and ends when
    /// times differ by at most 5 %.
    ///
    /// # Errors
    /// No processors, no units, or more than 2^53 units or 2^20 processors.
    pub fn new(units: u64, processors: usize) -> Result<Self> {
        check_size(units, processors)?;
        Ok(Self {
            units,
            tolerance: 0.05,
            limits: Vec::new(),
            unused: 0,
            processors: vec![Known::default(); processors],
            shares: even(units, processors),
            tried: Vec::new(),
            kept: None,
            doubted: None,
            nearest: (f64::INFINITY, 0),
            is_last: false,
        })
    }

    /// With the largest (longest - shortest) / shortest time that counts as balanced.
    ///
    /// # Errors
    /// Not a positive number.
    pub fn with_tolerance(self, tolerance: f64) -> Result<Self> {
        check_tolerance(tolerance)?;
        Ok(Self { tolerance, ..self })
    }

    /// With limits on each share, which hold from now on.
    ///
    /// # Errors
    /// Not one per processor (or none); limits that no shares satisfy (exit code 1).
    pub fn with_limits(self, limits: &[Limits]) -> Result<Self> {
        check_limits(limits, self.processors.len())?;
        Self { limits: limits.to_vec(), ..self }.restarted()
    }

    /// Starting from known speed functions instead of equal shares; their caps hold throughout. The first round tells
    /// the height of each function.
    ///
    /// # Errors
    /// Not one per processor; caps and limits that leave too little room (exit code 1).
    pub fn with_models(mut self, models: &[Model]) -> Result<Self> {
        check_models(models, self.processors.len())?;
        for (known, model) in self.processors.iter_mut().zip(models) {
            known.shape = Some(model.clone());
        }
        self.restarted()
    }

    /// With a number of first rounds whose times are not believed.
    #[must_use]
    pub fn with_warm_up(self, rounds: u32) -> Self {
        Self { unused: rounds, ..self }
    }

    fn restarted(self) -> Result<Self> {
        let shares = self.best()?;
        Ok(Self { shares, doubted: None, ..self })
    }

    /// The shares of the present round, by rank; after the last one, those to keep.
    pub fn shares(&self) -> &[u64] {
        &self.shares
    }

    /// Uses other shares than those that it found in the next round.
    ///
    /// # Errors
    /// Not one per processor, or they do not add up to the number of units.
    pub fn adopt(&mut self, shares: &[u64]) -> Result<()> {
        check_adopted(shares, self.units, self.processors.len())?;
        self.shares = shares.to_vec();
        Ok(())
    }

    /// Takes the times in seconds that the processors needed for their [`Search::shares`] (ignored for shares of 0),
    /// and decides on those of the next round.
    ///
    /// Equal searches that observe equal times decide the same, bit for bit.
    ///
    /// # Errors
    /// Not one time per processor, or a time that is not a positive number; nothing is then remembered.
    pub fn observe(&mut self, seconds: &[f64]) -> Result<Step> {
        check_times(seconds, &self.shares)?;
        if self.unused > 0 {
            self.unused -= 1;
            return Ok(Step::Again);
        }
        let before = self.doubted.take();
        let sure = before.is_some();
        // Disturbances only slow down.
        let seconds = before.map_or_else(
            || seconds.to_vec(),
            |before| before.iter().zip(seconds).map(|(a, b)| a.min(*b)).collect(),
        );
        let surprises = self.surprises(&seconds)?;
        if !sure && surprises.contains(&true) {
            self.doubted = Some(seconds);
            return Ok(Step::Again);
        }
        if self.learn(&seconds, &surprises, sure) {
            // Shares that were tried before may be better than it seemed.
            self.tried.clear();
            self.kept = None;
            self.nearest = (f64::INFINITY, 0);
        }
        self.tried.push(self.shares.clone());
        let working = || seconds.iter().zip(&self.shares).filter(|(_, share)| **share > 0).map(|(t, _)| *t);
        let (least, longest) = working().fold((f64::INFINITY, 0.0_f64), |(l, h), t| (l.min(t), h.max(t)));
        let spread = (longest - least) / least;
        let balanced = spread <= self.tolerance;
        self.nearest =
            if spread < self.nearest.0 { (spread, 0) } else { (self.nearest.0, self.nearest.1 + 1) };
        let is_stuck = self.nearest.1 >= PATIENCE;
        let more = if balanced { 1.0 + self.tolerance } else { 1.0 };
        if self.kept.as_ref().is_none_or(|(shortest, ..)| longest <= more * shortest) {
            self.kept = Some((longest, self.shares.clone(), balanced));
        }
        // Whoever seems to take too long to start may not.
        let is_left_out = |(known, share): (&Known, &u64)| *share == 0 && known.is_doubtful();
        let left_out = self.processors.iter().zip(&self.shares).any(is_left_out);
        if balanced && (self.is_last || !left_out) {
            return Ok(self.end());
        }
        let mut next = self.best()?;
        if (balanced || is_stuck || self.tried.contains(&next)) && !self.is_last {
            // What was seen at other shares, and once, may be wrong.
            self.is_last = true;
            self.nearest.1 = 0;
            for (known, &share) in self.processors.iter_mut().zip(&self.shares) {
                if left_out && share == 0 && known.is_doubtful() {
                    known.spots.retain(|spot| !spot.first);
                } else if !left_out && share > 0 {
                    known.spots.retain(|spot| spot.sure || spot.units == share);
                }
            }
            next = self.best()?;
        }
        if self.tried.contains(&next) || self.nearest.1 >= PATIENCE {
            return Ok(self.end());
        }
        self.shares = next;
        Ok(Step::Next)
    }

    fn end(&mut self) -> Step {
        let Some((_, shares, balanced)) = &self.kept else { return Step::NothingBetter };
        self.shares.clone_from(shares);
        self.is_last = false;
        self.nearest = (f64::INFINITY, 0);
        if *balanced { Step::Balanced } else { Step::NothingBetter }
    }

    /// The processors that took much longer than their earlier rounds say: more than these at any larger share, too.
    fn surprises(&self, seconds: &[f64]) -> Result<Vec<bool>> {
        let expected = self.functions()?;
        let is_surprise = |((known, model), (&share, &time)): ((&Known, &Model), (&u64, &f64))| {
            let was_seen = |spot: &Spot| spot.units >= share && SURPRISE * spot.seconds >= time;
            share > 0
                && !known.spots.is_empty()
                && time > SURPRISE * model.seconds(share as f64)
                && !known.believed().iter().any(was_seen)
        };
        let all = self.processors.iter().zip(&expected).zip(self.shares.iter().zip(seconds));
        Ok(all.map(is_surprise).collect())
    }

    /// Remembers a round; true if it contradicts an earlier one.
    fn learn(&mut self, seconds: &[f64], surprises: &[bool], sure: bool) -> bool {
        let first = self.processors.iter().all(|known| known.spots.is_empty());
        let mut contradicted = false;
        let round = self.shares.iter().zip(seconds).zip(surprises);
        for (known, ((&units, &seconds), &surprise)) in self.processors.iter_mut().zip(round) {
            if units > 0 {
                contradicted |= known.learn(Spot { units, seconds, sure, first }, surprise);
            }
        }
        contradicted
    }

    /// The best shares by what is known.
    fn best(&self) -> Result<Vec<u64>> {
        if self.limits.is_empty() && self.processors.iter().all(Known::is_empty) {
            return Ok(even(self.units, self.processors.len()));
        }
        fpm_within(&self.functions()?, self.units, &self.limits)
    }

    /// The speed functions as far as they were measured or known, one per processor, without what was doubted. A
    /// processor that never worked is assumed to be as fast as the fastest.
    ///
    /// # Errors
    /// Nothing is known yet.
    pub fn models(&self) -> Result<Vec<Model>> {
        if self.processors.iter().all(Known::is_empty) {
            return Err(Error::input(
                "models",
                "no round is believed yet",
                "observe the times of a round first",
            ));
        }
        self.by(|known, i, scale| known.measured(&name(i), scale))
    }

    /// The speed functions at all sizes: beyond what was measured, start-up and time per unit go on. Equal ones before a
    /// round.
    ///
    /// # Errors
    /// A time that is out of range.
    pub fn functions(&self) -> Result<Vec<Model>> {
        self.by(|known, i, scale| known.function(&name(i), self.units, scale))
    }

    fn by(&self, of: impl Fn(&Known, usize, f64) -> Result<Option<Model>>) -> Result<Vec<Model>> {
        // What known functions are too fast, by the median where a processor has not worked.
        let mut scales: Vec<f64> = self.processors.iter().filter_map(Known::scale).collect();
        scales.sort_by(f64::total_cmp);
        let middle = scales.get(scales.len().saturating_sub(1) / 2).copied().unwrap_or(1.0);
        let known: Vec<Option<Model>> = (self.processors.iter().enumerate())
            .map(|(i, known)| of(known, i, known.scale().unwrap_or(middle)))
            .collect::<Result<_>>()?;
        let speeds = known.iter().flatten().flat_map(|m| m.points().iter().map(Point::speed));
        let fastest = speeds.fold(0.0, f64::max);
        let fastest = if fastest > 0.0 { fastest } else { 1.0 };
        let filled = known.into_iter().enumerate();
        filled.map(|(i, model)| model.map_or_else(|| Model::constant(name(i), fastest), Ok)).collect()
    }
}

fn name(rank: usize) -> String {
    format!("p{rank}")
}

impl Known {
    fn is_empty(&self) -> bool {
        self.shape.is_none() && self.spots.is_empty()
    }

    /// True if what is known depends on the first round.
    fn is_doubtful(&self) -> bool {
        self.believed().iter().any(|spot| spot.first)
    }

    /// The times that count: those of the first round where there are not two others.
    fn believed(&self) -> Vec<Spot> {
        let others: Vec<Spot> = self.spots.iter().copied().filter(|spot| !spot.first).collect();
        if others.len() < 2 { self.spots.clone() } else { others }
    }

    /// Takes a time; true if it contradicts an earlier one, which is then forgotten.
    fn learn(&mut self, new: Spot, surprise: bool) -> bool {
        self.surprises = if surprise { self.surprises + 1 } else { 0 };
        self.last = Some(new);
        // A cliff surprises once, a processor that is slower from now on goes on to.
        if self.surprises > 1 {
            self.surprises = 0;
            self.spots = vec![new];
            return true;
        }
        let is_close = |old: &Spot, units: u64| old.units > units && units as f64 >= CLOSE * old.units as f64;
        let agrees = |old: &Spot| {
            let (small, large) = if old.units < new.units { (old, &new) } else { (&new, old) };
            if small.seconds > SURPRISE * large.seconds {
                return false;
            }
            // A processor was much slower at a share that is a little larger: before it was warm, or disturbed, as the
            // second share below it shows.
            let below = |spot: &Spot| !spot.first && spot.units < new.units && is_close(old, spot.units);
            let was_slow = !old.sure
                && !new.first
                && is_close(old, new.units)
                && old.per_unit() > SURPRISE * new.per_unit();
            !was_slow || !(old.first || self.spots.iter().any(below))
        };
        let is_near = |old: &Spot| old.units.abs_diff(new.units) as f64 <= NEAR * new.units as f64;
        let outlives = |old: &Spot| old.sure && !new.sure || agrees(old);
        let contradicted = !self.spots.iter().all(outlives);
        let mut spots: Vec<Spot> =
            self.spots.iter().filter(|old| !is_near(old) && outlives(old)).copied().collect();
        spots.insert(spots.partition_point(|old| old.units < new.units), new);
        self.spots = spots;
        contradicted
    }

    /// The factor by which a known function is too fast.
    fn scale(&self) -> Option<f64> {
        let (shape, last) = (self.shape.as_ref()?, self.last?);
        Some(last.seconds / shape.seconds(last.units as f64))
    }

    /// The measured times, and those of a known function that are not near.
    fn points(&self, scale: f64) -> Vec<Point> {
        let spots = self.believed();
        let is_far =
            |p: &&Point| spots.iter().all(|s| (s.units as f64 - p.size).abs() > 0.1 * s.units as f64);
        let shape = self.shape.iter().flat_map(|shape| shape.points()).filter(is_far);
        let shape = shape.map(|p| Point::new(p.size, p.seconds * scale));
        spots.iter().map(|spot| Point::new(spot.units as f64, spot.seconds)).chain(shape).collect()
    }

    /// What was measured or known.
    fn measured(&self, name: &str, scale: f64) -> Result<Option<Model>> {
        let cap = self.shape.as_ref().and_then(Model::max_size);
        let model = match &self.shape {
            None if self.spots.is_empty() => return Ok(None),
            Some(shape) if self.spots.is_empty() => {
                Model::new(name, shape.interpolation(), self.points(scale), cap)
            }
            Some(shape) if shape.interpolation() == Interpolation::Constant => {
                Model::piecewise(name, Self { shape: None, ..self.clone() }.points(scale), cap)
            }
            _ => Model::piecewise(name, self.points(scale), cap),
        };
        model.map(Some)
    }

    /// The speed function at all sizes up to `units`.
    fn function(&self, name: &str, units: u64, scale: f64) -> Result<Option<Model>> {
        let Some(model) = self.measured(name, scale)? else { return Ok(None) };
        let known = model.points();
        if known.len() < 2 || self.shape.is_some() {
            return Ok(Some(model));
        }
        let (first, last) = (known[0], known[known.len() - 1]);
        // A line from the end to the nearest share that tells a time per unit; without one, the speed stays as it is.
        let below_last = known.iter().rev().find(|p| p.size <= APART * last.size);
        let above_first = known.iter().find(|p| p.size * APART >= first.size);
        let mut points = known.to_vec();
        let mut draw = |range: std::ops::Range<f64>, through: Point, [a, b]: [Point; 2]| {
            // Where a unit takes more time the more there are, the speed is interpolated, or goes on.
            if b.speed() > a.speed() {
                let whole = through.seconds / through.size;
                let slope =
                    ((b.seconds - a.seconds) / (b.size - a.size)).clamp(LEAST_PER_UNIT * whole, whole);
                let sizes = std::iter::successors(Some(range.start * STEP), |x| Some(x * STEP));
                let at = |x: f64| Point::new(x, through.seconds + slope * (x - through.size));
                points.extend(sizes.take_while(|x| *x < range.end).map(at));
            }
        };
        if let Some(above) = above_first {
            draw(1.0..first.size, first, [first, *above]);
        }
        for pair in known.windows(2) {
            draw(pair[0].size..pair[1].size, pair[0], [pair[0], pair[1]]);
        }
        if let Some(below) = below_last {
            draw(last.size..STEP * units as f64, last, [*below, last]);
        }
        Model::piecewise(name, points, model.max_size()).map(Some)
    }
}

#[cfg(test)]
mod tests;
