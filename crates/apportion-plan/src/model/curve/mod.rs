//! The speed function of one processor: measured points and the interpolation between them.

mod akima;
mod piecewise;
mod turns;

use super::Point;
use crate::error::{Error, Result};
use crate::input::{EXTREME, extreme, show_number};
use akima::Akima;
use serde::{Deserialize, Serialize};
use turns::{Turn, turns};

/// The interpolation between the points. Before the first and after the last point the speed is constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Interpolation {
    /// Speed (not time) is linear between neighbouring points.
    #[default]
    PiecewiseLinear,
    /// An Akima spline of speed (Akima 1970): smooth, without overshoot far from the points.
    Akima,
    /// One speed for every size: that of the first point.
    Constant,
}

/// A size at which a measured program failed, as it does when memory is full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The smallest size at which it failed.
    pub size: f64,
    /// How it failed: exit status, and the last line of its output.
    pub reason: String,
}

/// A speed function: `speed(x) = x / seconds(x)`.
///
/// # Example
/// ```
/// use apportion_plan::model::{Model, Point};
/// let model = Model::piecewise("p0", vec![Point::new(100.0, 1.0), Point::new(200.0, 4.0)], None)?;
/// assert_eq!(model.speed(100.0), 100.0);
/// assert_eq!(model.speed(150.0), 75.0); // half-way between 100 and 50 units a second
/// assert_eq!(model.seconds(150.0), 2.0);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    processor: String,
    interpolation: Interpolation,
    max_size: Option<f64>,
    failure: Option<Failure>,
    points: Vec<Point>,
    /// `peak[i]` = longest time up to and including point i: makes time monotone where speed rises
    /// faster than size.
    peak: Vec<f64>,
    /// Where time may turn from rising to falling or back.
    turns: Vec<Turn>,
    /// The spline, for Akima interpolation.
    akima: Option<Akima>,
    /// True if its speed is a ratio to the speeds of others, so that its times have no unit.
    ratio: bool,
}

impl Model {
    /// A piecewise-linear model.
    ///
    /// # Errors
    /// See [`Model::new`].
    pub fn piecewise(
        processor: impl Into<String>,
        points: Vec<Point>,
        max_size: Option<f64>,
    ) -> Result<Self> {
        Self::new(processor, Interpolation::PiecewiseLinear, points, max_size)
    }

    /// The single-number model: `speed` units per second at every size. A processor of speed 0 can take
    /// nothing: its `max_size` is 0.
    ///
    /// # Errors
    /// The speed is not a finite number of at least 0.
    pub fn constant(processor: impl Into<String>, speed: f64) -> Result<Self> {
        let processor = processor.into();
        if speed == 0.0 {
            let slowest = vec![Point::new(1.0, EXTREME)];
            return Self::new(processor, Interpolation::Constant, slowest, Some(0.0));
        }
        if let Some(what) = extreme(speed) {
            let place = format!("speed of \"{processor}\"");
            return Err(Error::input(place, what, "scale the speeds"));
        }
        Self::new(processor, Interpolation::Constant, vec![Point::new(1.0, 1.0 / speed)], None)
    }

    /// The single-number model of a speed without a unit: `speed` is a ratio to the speeds of the other
    /// models. Shares follow from ratios; times do not ([`Model::is_ratio`]). A processor of ratio 0 takes
    /// nothing.
    ///
    /// # Errors
    /// The speed is not a finite number of at least 0.
    pub fn ratio(processor: impl Into<String>, speed: f64) -> Result<Self> {
        Self::constant(processor, speed).map(|model| Self { ratio: true, ..model })
    }

    /// A model from its points, in any order: they are sorted by size.
    ///
    /// # Errors
    /// No point; two points of one size; a size or time that is not finite and positive; a cap that is not
    /// finite or is negative; an interval or speed that is not a number. The error names processor and field.
    pub fn new(
        processor: impl Into<String>,
        interpolation: Interpolation,
        mut points: Vec<Point>,
        max_size: Option<f64>,
    ) -> Result<Self> {
        let processor = processor.into();
        let refuse = |field: &str, what: String| {
            Err(Error::input(
                format!("model of \"{processor}\": {field}"),
                what,
                "measure it again, or fix the file",
            ))
        };
        if points.is_empty() {
            return refuse("points", "there are none".into());
        }
        if let Some((field, what)) = points.iter().find_map(Point::defect) {
            return refuse(field, what);
        }
        points.sort_by(|a, b| a.size.total_cmp(&b.size));
        if let Some(twice) = points.windows(2).find(|w| w[0].size == w[1].size) {
            return refuse("size", format!("{} is given twice", show_number(twice[0].size)));
        }
        if let Some(cap) = max_size.filter(|c| !(c.is_finite() && *c >= 0.0)) {
            return refuse("max_size", format!("{} is not a number of at least 0", show_number(cap)));
        }
        let peak = piecewise::peaks(&points);
        let akima = (interpolation == Interpolation::Akima).then(|| Akima::new(&points));
        let turns = match &akima {
            Some(akima) => turns(akima.turns(&points)),
            None => turns(points.iter().map(|p| (p.size, p.seconds))),
        };
        let (failure, ratio) = (None, false);
        Ok(Self { processor, interpolation, max_size, failure, points, peak, turns, akima, ratio })
    }

    /// The same model of a processor of another name.
    #[must_use]
    pub(crate) fn renamed(self, processor: impl Into<String>) -> Self {
        Self { processor: processor.into(), ..self }
    }

    /// The processor's name.
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// The points, ascending by size.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The interpolation between the points.
    pub fn interpolation(&self) -> Interpolation {
        self.interpolation
    }

    /// True if its speed is only a ratio to those of other models. [`Model::seconds`] is then in a unit of
    /// its own, which cancels in comparisons and must not be shown as a time.
    pub(crate) fn is_ratio(&self) -> bool {
        self.ratio
    }

    /// The hard cap on size (memory), if any.
    pub fn max_size(&self) -> Option<f64> {
        self.max_size
    }

    /// True if it can take nothing, as a processor of speed 0.
    pub fn is_stopped(&self) -> bool {
        self.max_size == Some(0.0)
    }

    /// The same model with a hard cap of at most `most` units.
    ///
    /// # Errors
    /// `most` is not a finite number of at least 0.
    pub fn with_cap(self, most: f64) -> Result<Self> {
        let cap = self.max_size.map_or(most, |old| old.min(most));
        let (failure, ratio) = (self.failure, self.ratio);
        Self::new(self.processor, self.interpolation, self.points, Some(cap)).map(|model| Self {
            failure,
            ratio,
            ..model
        })
    }

    /// The same model, whose speed from `size` on is that at `size`.
    ///
    /// # Errors
    /// `size` is not a positive number.
    pub fn constant_from(&self, size: f64) -> Result<Self> {
        if self.interpolation == Interpolation::Constant || self.points.iter().all(|p| p.size <= size) {
            return Ok(self.clone());
        }
        let mut points: Vec<Point> = self.points.iter().filter(|p| p.size < size).copied().collect();
        // A cap has nothing to do with speed.
        points.push(Point::new(size, size / self.without_cap().speed(size)));
        let model = Self::new(self.processor.clone(), self.interpolation, points, self.max_size)?;
        Ok(Self { failure: self.failure.clone(), ratio: self.ratio, ..model })
    }

    /// The same model for sizes of any kind; one that is [stopped](Self::is_stopped) remains so.
    pub(crate) fn without_cap(&self) -> Self {
        let max_size = self.max_size.filter(|_| self.is_stopped());
        Self { max_size, failure: None, ..self.clone() }
    }

    /// The smallest size at which the measured program failed, if that is why there is a cap.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The same model with the failure that caused its cap.
    ///
    /// # Errors
    /// The size of the failure is not a positive number.
    pub fn with_failure(self, failure: Option<Failure>) -> Result<Self> {
        if let Some(Failure { size, .. }) = failure.as_ref().filter(|f| !(f.size.is_finite() && f.size > 0.0))
        {
            return Err(Error::input(
                format!("model of \"{}\": failure", self.processor),
                format!("size {size} is not a positive number"),
                "measure it again, or fix the file",
            ));
        }
        Ok(Self { failure, ..self })
    }

    /// Units per second at size `x`; 0 beyond the cap.
    pub fn speed(&self, x: f64) -> f64 {
        if self.max_size.is_some_and(|cap| x > cap) {
            return 0.0;
        }
        match (&self.akima, self.interpolation) {
            (Some(akima), _) => akima.speed(&self.points, x),
            (None, Interpolation::Constant) => self.points[0].speed(),
            (None, _) => piecewise::speed(&self.points, x),
        }
    }

    /// Seconds for `x` units; 0 for none, infinite beyond the cap.
    pub fn seconds(&self, x: f64) -> f64 {
        if x <= 0.0 { 0.0 } else { x / self.speed(x) }
    }

    /// The largest number of units, at most `limit` and the cap, such that it and any smaller one take no
    /// longer than `seconds`. If time is not monotone, the larger sizes behind a hump are left out. O(log
    /// points).
    pub(crate) fn units_within(&self, seconds: f64, limit: f64) -> f64 {
        let limit = self.max_size.map_or(limit, |cap| cap.min(limit));
        let x = match (&self.akima, self.interpolation) {
            (Some(akima), _) => akima.units_within(&self.points, seconds),
            (None, Interpolation::Constant) => seconds * self.points[0].speed(),
            (None, _) => piecewise::units_within(&self.points, &self.peak, seconds),
        };
        x.clamp(0.0, limit)
    }

    /// The longest time of any size up to `limit` and the cap.
    pub(crate) fn longest(&self, limit: f64) -> f64 {
        let top = self.max_size.map_or(limit, |cap| cap.min(limit));
        match (&self.akima, self.interpolation) {
            (_, Interpolation::Constant) => self.seconds(top),
            (Some(akima), _) if top > 0.0 => akima.longest(&self.points, top),
            _ => {
                let inside = self.points.partition_point(|p| p.size <= top);
                let before = if inside == 0 { 0.0 } else { self.peak[inside - 1] };
                before.max(self.seconds(top))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_are_constant_and_the_cap_is_hard() {
        let points = vec![Point::new(20.0, 4.0), Point::new(10.0, 1.0)];
        let model = Model::piecewise("p", points, Some(30.0)).unwrap();
        assert_eq!(model.speed(1.0), 10.0);
        assert_eq!(model.speed(15.0), 7.5);
        assert_eq!(model.speed(29.0), 5.0);
        assert_eq!(model.speed(31.0), 0.0);
        assert_eq!(model.seconds(31.0), f64::INFINITY);
        assert_eq!(model.units_within(1e9, 1e9), 30.0);
    }

    #[test]
    fn a_speed_may_be_constant_from_a_size_on() {
        let points = vec![Point::new(10.0, 1.0), Point::new(20.0, 4.0), Point::new(40.0, 4.0)];
        for kind in [Interpolation::PiecewiseLinear, Interpolation::Akima] {
            let model = Model::new("p", kind, points.clone(), Some(30.0)).unwrap();
            let flat = model.constant_from(15.0).unwrap();
            assert_eq!([5.0, 10.0, 15.0].map(|x| flat.speed(x)), [5.0, 10.0, 15.0].map(|x| model.speed(x)));
            assert!((flat.speed(29.0) / model.speed(15.0) - 1.0).abs() < 1e-12 && flat.speed(31.0) == 0.0);
            assert_eq!(model.constant_from(40.0).unwrap(), model);
            // Before the first point.
            assert!((model.constant_from(4.0).unwrap().speed(20.0) / model.speed(4.0) - 1.0).abs() < 1e-12);
            assert_eq!(flat.constant_from(15.0).unwrap(), flat);
        }
        let ratio = Model::ratio("p", 2.0).unwrap();
        assert!(ratio.constant_from(0.5).unwrap().is_ratio());
    }

    #[test]
    fn a_processor_of_speed_0_takes_nothing() {
        let stopped = Model::constant("p", 0.0).unwrap();
        assert!(stopped.is_stopped() && stopped.without_cap().is_stopped());
        assert_eq!(
            (stopped.speed(1.0), stopped.seconds(0.0), stopped.seconds(1.0)),
            (0.0, 0.0, f64::INFINITY)
        );
        assert_eq!((stopped.units_within(1e9, 1e9), stopped.largest_within(1e9, 1e9)), (0.0, 0.0));
        assert!(stopped.slowest().is_stopped() && stopped.clone().with_cap(5.0).unwrap().is_stopped());
        assert!(Model::ratio("p", 0.0).unwrap().is_ratio());
        assert!(Model::constant("p", -1.0).is_err() && Model::constant("p", f64::NAN).is_err());
    }

    #[test]
    fn defects_are_refused() {
        let bad = [
            vec![],
            vec![Point::new(0.0, 1.0)],
            vec![Point::new(1.0, 0.0)],
            vec![Point::new(f64::NAN, 1.0)],
            vec![Point::new(1.0, f64::NAN)],
            vec![Point::new(1.0, 1.0), Point::new(1.0, 2.0)],
            vec![Point::new(1.0, f64::INFINITY)],
            vec![Point::new(1.0, 1.0).with_band(1.1, 1.2)],
            vec![Point::new(1.0, 1.0).with_band(0.9, 0.95)],
            vec![Point::new(1.0, 1.0).with_band(0.0, 1.2)],
            vec![Point::new(1.0, 1.0).with_energy(-1.0)],
            vec![Point::new(1.0, 1.0).with_energy(f64::NAN)],
        ];
        for points in bad {
            assert_eq!(Model::piecewise("p", points, None).unwrap_err().exit_code(), 2);
        }
        assert!(Model::piecewise("p", vec![Point::new(1.0, 1.0)], Some(-1.0)).is_err());
    }

    proptest! {
        #[test]
        fn units_within_is_the_inverse_of_seconds(
            raw in prop::collection::vec((1u32..1000, 1u32..1000), 1..8),
            seconds in 0.001f64..1e4,
            akima in any::<bool>(),
        ) {
            let mut points: Vec<Point> = raw.iter().map(|&(x, t)| Point::new(f64::from(x), f64::from(t))).collect();
            points.sort_by(|a, b| a.size.total_cmp(&b.size));
            points.dedup_by(|a, b| a.size == b.size);
            let interpolation = if akima { Interpolation::Akima } else { Interpolation::PiecewiseLinear };
            let model = Model::new("p", interpolation, points, None).unwrap();
            let x = model.units_within(seconds, 1e6);
            // Every size up to x is in time, and a little more is not (or the limit is reached).
            for i in 1..=300 {
                let y = x * f64::from(i) / 300.0;
                prop_assert!(model.seconds(y) <= seconds * (1.0 + 1e-9), "{y} of {x}");
            }
            if x < 1e6 {
                let more = (1..=100).map(|i| model.seconds(x * (1.0 + 1e-5 * f64::from(i)) + 1e-9)).fold(0.0, f64::max);
                prop_assert!(more >= seconds * (1.0 - 1e-9));
            }
            let longest = model.longest(x);
            prop_assert!(longest <= seconds * (1.0 + 1e-9) && longest >= model.seconds(x));
        }
    }
}
