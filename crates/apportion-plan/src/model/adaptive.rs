//! The choice of sizes to measure, so that few points determine the whole speed function.
//!
//! Source: the geometric bisection building procedure (GBBP) of Lastovetsky, Reddy and Higgins, "Building the
//! functional performance model of a processor", SAC 2006. Two things differ. Intervals are taken worst first
//! instead of by a stack, so that a sweep that stops early has the best model for the points spent. An
//! interval also ends when it is so narrow that it moves no share by more than the tolerance, which stops the
//! bisection of a cliff. Strides are even in scale, and wide intervals stay open until their middle has been
//! measured.

use super::{Interpolation, Model, Point};
use crate::error::{Error, Result};

/// Number of steps of the climb from the smallest to the largest size, if speed keeps rising.
const CLIMB: i32 = 4;
/// Halving an interval divides the error of its line by four on a parabola; a slightly smaller factor is
/// assumed.
const SHRINK: f64 = 3.0;
/// A step in speed may happen to be near the line in the middle of its interval. Whatever the middle shows,
/// this fraction of the gap between the ends remains uncertain …
const DOUBT: f64 = 1.0 / 8.0;
/// … and this fraction for each doubling of size inside an interval without a confirmed middle: in a wide
/// interval, a step near its small end leaves no trace at its ends.
const DOUBT_PER_DOUBLING: f64 = 0.5;

/// A sweep that chooses its sizes by the points measured so far. It measures nothing itself: ask
/// [`AdaptiveSweep::next_size`], measure, [`AdaptiveSweep::add`], until there is no next size.
///
/// # Example
/// ```
/// use apportion_plan::{model::AdaptiveSweep, platform::Emulated};
/// let processor: Emulated = "peak 2e9, knee 1e5 0.8, cliff 4e6 0.05".parse()?;
/// let mut sweep = AdaptiveSweep::new(1e3, 1e7, 0.05)?;
/// while let Some(size) = sweep.next_size() {
///     sweep.add(processor.point(size));
/// }
/// let model = sweep.model("p0")?;
/// assert!(model.points().len() <= 20);
/// assert!((model.speed(1e6) / processor.speed(1e6) - 1.0).abs() < 0.05);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptiveSweep {
    smallest: f64,
    largest: f64,
    tolerance: f64,
    most: usize,
    /// The smallest size that could not be run because memory was full, if any.
    refused: Option<f64>,
    /// True once there is nothing left to try between the largest point and the refused size.
    topped: bool,
    /// Ascending by size.
    points: Vec<Point>,
    /// Measured sizes of the climb so far, ascending; the climb is over once it is `None`.
    climb: Option<Vec<Point>>,
    open: Vec<Interval>,
}

/// Two neighbouring points, and the possible error of the straight line between them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Interval {
    left: Point,
    right: Point,
    /// Largest relative error to expect inside.
    error: f64,
    /// True if the midpoint of its parent interval was already on the line.
    confirmed: bool,
}

impl AdaptiveSweep {
    /// A sweep from `smallest` to `largest` size, both of which are measured. Speeds that differ by no more
    /// than the fraction `tolerance` count as equal (GBBP as implemented in PMM: 0.05). At most 1,000 points.
    ///
    /// # Errors
    /// Sizes that are not 1 <= smallest < largest, or a tolerance that is not in (0, 1).
    pub fn new(smallest: f64, largest: f64, tolerance: f64) -> Result<Self> {
        if !(smallest >= 1.0 && largest > smallest && largest.is_finite()) {
            return Err(Error::input(
                "sizes",
                format!("{smallest} to {largest} is no range of sizes"),
                "give a smallest size of at least 1 and a larger largest one",
            ));
        }
        if !(tolerance > 0.0 && tolerance < 1.0) {
            return Err(Error::input(
                "tolerance",
                format!("{tolerance} is no fraction between 0 and 1"),
                "0.05 is usual",
            ));
        }
        let climb = Some(Vec::new());
        Ok(Self {
            smallest,
            largest,
            tolerance,
            most: 1000,
            refused: None,
            topped: false,
            points: Vec::new(),
            climb,
            open: Vec::new(),
        })
    }

    /// The same with at most `most` points.
    pub fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The model of the points so far: an Akima spline, which needs far fewer points on a bend than straight
    /// lines do. If a size was refused, the model is capped at the largest size that could be run.
    ///
    /// # Errors
    /// There is no point yet, or one is not valid.
    pub fn model(&self, name: &str) -> Result<Model> {
        Model::new(name, Interpolation::Akima, self.points.clone(), self.cap())
    }

    /// The largest size that could be run, if another one was refused.
    pub fn cap(&self) -> Option<f64> {
        self.refused.and(self.points.last()).map(|p| p.size)
    }

    /// The size to measure next (a whole number), or `None` if the model is good enough. Repeated calls
    /// without [`AdaptiveSweep::add`] return the same size.
    pub fn next_size(&self) -> Option<f64> {
        if self.points.len() >= self.most {
            return None;
        }
        if self.points.is_empty() {
            return self.refused.is_none().then(|| self.smallest.round());
        }
        if let Some(top) = self.top_to_try() {
            return Some(top);
        }
        match &self.climb {
            Some(climb) => Some(self.climbed(climb.len())),
            None => self.worst().map(|i| self.open[i].middle()),
        }
    }

    /// An estimate of the number of points still to measure, for a progress bar.
    pub fn expected_more(&self) -> usize {
        let wide = self.open.iter().filter(|i| i.error > self.tolerance).count();
        if self.climb.is_some() { 10 } else { 2 * wide }.min(self.most.saturating_sub(self.points.len()))
    }

    /// Adds a measured point: of the size asked for, or near it (a kernel may round to its block). A point of
    /// a size that was already measured ends the interval in question.
    pub fn add(&mut self, point: Point) {
        let place = self.points.partition_point(|p| p.size < point.size);
        let known = self.points.get(place).is_some_and(|p| p.size == point.size);
        let seeking_top = !self.points.is_empty() && self.top_to_try().is_some();
        if !known {
            self.points.insert(place, point);
        }
        if seeking_top {
            // A kernel that rounds its sizes returned a size that was already measured.
            self.topped = known;
            return;
        }
        match self.climb.as_mut() {
            Some(climb) => {
                climb.push(point);
                if known || self.summit() {
                    self.end_climb();
                }
            }
            None => self.split(point, known),
        }
    }

    /// Records that the size asked for cannot be run because memory is full. The sweep then searches by
    /// bisection, up to the tolerance, for the largest size that can be run, which becomes the model's cap.
    pub fn refuse(&mut self, size: f64) {
        self.topped = self.refused.is_some_and(|bad| size >= bad);
        self.refused = Some(self.refused.map_or(size, |bad| bad.min(size)));
    }

    /// The next candidate for the largest size; `None` once it is measured, or known well enough.
    fn top_to_try(&self) -> Option<f64> {
        let last = self.points.last().filter(|_| !self.topped)?;
        let Some(bad) = self.refused else {
            return (self.points.len() == 1).then(|| self.largest.round());
        };
        let middle =
            if bad > 4.0 * last.size { (last.size * bad).sqrt() } else { 0.5 * (last.size + bad) }.round();
        (bad > last.size * (1.0 + self.tolerance) && middle > last.size && middle < bad).then_some(middle)
    }

    /// The largest measured size: the end of the range.
    fn top(&self) -> f64 {
        self.points.last().map_or(self.largest, |p| p.size)
    }

    fn climbed(&self, steps: usize) -> f64 {
        (self.smallest * (self.top() / self.smallest).powf(steps as f64 / f64::from(CLIMB))).round()
    }

    /// True after three successive speeds that do not rise, or at the top.
    fn summit(&self) -> bool {
        let Some(climb) = &self.climb else { return false };
        let falls = |w: &[Point]| w[1].speed() <= w[0].speed() * (1.0 + self.tolerance);
        let falling = climb.windows(2).rev().take_while(|w| falls(w)).count();
        let next = self.climbed(climb.len());
        self.points.len() >= 2
            && (falling >= 3 || next >= self.top() || climb.last().is_some_and(|p| next <= p.size))
    }

    fn end_climb(&mut self) {
        self.climb = None;
        // The distance of each inner point of the climb from the line between its neighbours gives the
        // curvature on both its sides.
        let curvature: Vec<f64> =
            self.points.windows(3).map(|w| off_line(&w[0], &w[1], &w[2]) / SHRINK).collect();
        for (i, ends) in self.points.windows(2).enumerate() {
            let sides = curvature[i.saturating_sub(1)..(i + 1).min(curvature.len())].iter();
            let curved = sides.copied().fold(0.0, f64::max);
            let bound = self.bound(&ends[0], &ends[1]);
            // The open interval behind the summit is unknown, even if its ends are equal.
            let last = i + 2 == self.points.len();
            let doubt = self.doubt(&ends[0], &ends[1]);
            let error = if last { f64::INFINITY } else { bound.min(curved.max(doubt)) };
            self.open.push(Interval { left: ends[0], right: ends[1], error, confirmed: false });
        }
    }

    /// The open interval with the largest error above the tolerance.
    fn worst(&self) -> Option<usize> {
        (0..self.open.len())
            .filter(|&i| self.open[i].error > self.tolerance && self.open[i].has_middle())
            .max_by(|&a, &b| self.open[a].error.total_cmp(&self.open[b].error).then(b.cmp(&a)))
    }

    /// Replaces the interval that asked for `point` by its halves.
    fn split(&mut self, point: Point, known: bool) {
        let Some(asked) = self.worst() else { return };
        let whole = self.open[asked];
        if known || point.size <= whole.left.size || point.size >= whole.right.size {
            self.open[asked].error = 0.0;
            return;
        }
        let off = off_line(&whole.left, &point, &whole.right);
        let agrees = off <= self.tolerance;
        let half = |left: Point, right: Point| {
            let bound = self.bound(&left, &right);
            let error = match agrees {
                false => bound.min(self.doubt(&left, &right).max(off / SHRINK)),
                true if whole.confirmed => bound * DOUBT,
                true => (bound * DOUBT).max((0.25 * bound).min(self.tolerance * 1.001)),
            };
            Interval { left, right, error, confirmed: agrees }
        };
        let halves = [half(whole.left, point), half(point, whole.right)];
        self.open.swap_remove(asked);
        self.open.extend(halves);
    }

    /// The possible error of a line between two points, if nothing was measured between them.
    fn doubt(&self, a: &Point, b: &Point) -> f64 {
        let doublings = (b.size / a.size).log2();
        self.bound(a, b) * (DOUBT_PER_DOUBLING * doublings).clamp(DOUBT, 1.0)
    }

    /// An upper bound of the error of a line between two points where speed is monotone: the gap between its
    /// ends (beyond their confidence intervals). It is small where the interval is so narrow that no share
    /// moves inside it.
    fn bound(&self, a: &Point, b: &Point) -> f64 {
        let noise = noise(a) + noise(b);
        let gap = (a.speed() - b.speed()).abs() / a.speed().min(b.speed()) - noise;
        gap.max(0.0).min(2.0 * (b.size - a.size) / b.size)
    }
}

impl Interval {
    /// The middle; on a wide interval the geometric one.
    fn middle(&self) -> f64 {
        let (l, r) = (self.left.size, self.right.size);
        if r > 4.0 * l { (l * r).sqrt().round() } else { (0.5 * (l + r)).round() }
    }

    fn has_middle(&self) -> bool {
        (self.left.size < self.middle()) && (self.middle() < self.right.size)
    }
}

/// Relative distance of the speed of `middle` from the line between its neighbours, beyond its confidence
/// interval.
fn off_line(left: &Point, middle: &Point, right: &Point) -> f64 {
    let t = (middle.size - left.size) / (right.size - left.size);
    let line = left.speed() + t * (right.speed() - left.speed());
    let off = (middle.speed() - line).abs() / line.min(middle.speed());
    (off - noise(middle)).max(0.0)
}

/// The relative half-width of a point's confidence interval, as far as it is known.
fn noise(point: &Point) -> f64 {
    point.ci.unwrap_or(0.0) / point.seconds
}

#[cfg(test)]
mod tests;
