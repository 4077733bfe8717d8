//! One processor's speed function: points, and what lies between them.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// One measured point of a speed function.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Size of the task, in the model's unit; > 0.
    pub size: f64,
    /// Mean time; > 0.
    pub seconds: f64,
    /// Half-width of the 95 % Student interval of the mean, in seconds; 0 if not known.
    #[serde(default)]
    pub ci: f64,
    /// Number of measurements behind the mean; 0 if not known.
    #[serde(default)]
    pub repetitions: u64,
}

impl Point {
    /// A point without statistics.
    pub fn new(size: f64, seconds: f64) -> Self {
        Self { size, seconds, ci: 0.0, repetitions: 0 }
    }

    /// Units per second.
    pub fn speed(&self) -> f64 {
        self.size / self.seconds
    }
}

/// What lies between the points. Left of the first and right of the last point speed is constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Interpolation {
    /// Speed (not time) is linear between neighbouring points.
    #[default]
    PiecewiseLinear,
    /// One speed for every size: that of the first point.
    Constant,
}

/// A speed function: `speed(x) = x / seconds(x)`.
///
/// # Example
/// ```
/// use apportion::{Model, Point};
/// let model = Model::piecewise("p0", vec![Point::new(100.0, 1.0), Point::new(200.0, 4.0)], None)?;
/// assert_eq!(model.speed(100.0), 100.0);
/// assert_eq!(model.speed(150.0), 75.0); // half-way between 100 and 50 units a second
/// assert_eq!(model.seconds(150.0), 2.0);
/// # Ok::<(), apportion::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    processor: String,
    interpolation: Interpolation,
    max_size: Option<f64>,
    points: Vec<Point>,
    /// `peak[i]` = longest time up to and including point i: makes time monotone where speed rises
    /// faster than size.
    peak: Vec<f64>,
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

    /// The single-number model: `speed` units per second at every size.
    ///
    /// # Errors
    /// The speed is not finite and positive.
    pub fn constant(processor: impl Into<String>, speed: f64) -> Result<Self> {
        Self::new(processor, Interpolation::Constant, vec![Point::new(1.0, 1.0 / speed)], None)
    }

    /// A model from its points, which are sorted by size here.
    ///
    /// # Errors
    /// No point; a size twice; a size, time or cap that is not finite and positive; an interval or speed
    /// that is no number. The error names processor and field.
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
                "measure it again or mend the file",
            ))
        };
        let positive = |x: f64| x.is_finite() && x > 0.0;
        if points.is_empty() {
            return refuse("points", "there is none".into());
        }
        points.sort_by(|a, b| a.size.total_cmp(&b.size));
        for (i, p) in points.iter().enumerate() {
            if !positive(p.size) {
                return refuse("size", format!("{} is not a positive number", p.size));
            }
            if !positive(p.seconds) || !positive(p.speed()) {
                return refuse("seconds", format!("{} is not a positive number", p.seconds));
            }
            if !(p.ci.is_finite() && p.ci >= 0.0) {
                return refuse("ci", format!("{} is not a non-negative number", p.ci));
            }
            if i > 0 && points[i - 1].size == p.size {
                return refuse("size", format!("{} is given twice", p.size));
            }
        }
        if let Some(cap) = max_size.filter(|&c| !positive(c)) {
            return refuse("max_size", format!("{cap} is not a positive number"));
        }
        let mut longest = 0.0_f64;
        let peak = points
            .iter()
            .map(|p| {
                longest = longest.max(p.seconds);
                longest
            })
            .collect();
        Ok(Self { processor, interpolation, max_size, points, peak })
    }

    /// The processor's name.
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// The points, ascending by size.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// What lies between the points.
    pub fn interpolation(&self) -> Interpolation {
        self.interpolation
    }

    /// The hard cap on size (memory), if any.
    pub fn max_size(&self) -> Option<f64> {
        self.max_size
    }

    /// The same model with a hard cap of at most `most` units.
    ///
    /// # Errors
    /// `most` is not a positive number.
    pub fn with_cap(self, most: f64) -> Result<Self> {
        let cap = self.max_size.map_or(most, |old| old.min(most));
        Self::new(self.processor, self.interpolation, self.points, Some(cap))
    }

    /// Units per second at size `x`; 0 beyond the cap.
    pub fn speed(&self, x: f64) -> f64 {
        if self.max_size.is_some_and(|cap| x > cap) {
            return 0.0;
        }
        let points = &self.points;
        let last = points.len() - 1;
        if self.interpolation == Interpolation::Constant || x <= points[0].size {
            return points[0].speed();
        }
        if x >= points[last].size {
            return points[last].speed();
        }
        let right = points.partition_point(|p| p.size <= x);
        let (a, b) = (&points[right - 1], &points[right]);
        let t = (x - a.size) / (b.size - a.size);
        a.speed() + t * (b.speed() - a.speed())
    }

    /// Seconds for `x` units; 0 for none, infinite beyond the cap.
    pub fn seconds(&self, x: f64) -> f64 {
        if x <= 0.0 { 0.0 } else { x / self.speed(x) }
    }

    /// The most units, at most `limit` and the cap, such that they and any fewer take no longer than
    /// `seconds`. O(log points).
    pub fn units_within(&self, seconds: f64, limit: f64) -> f64 {
        let limit = self.max_size.map_or(limit, |cap| cap.min(limit));
        let first = self.points[0];
        if self.interpolation == Interpolation::Constant || seconds <= first.seconds {
            return (seconds * first.speed()).clamp(0.0, limit);
        }
        // Up to point `reached` every size is in time; between it and the next, solve x / s(x) = T.
        let reached = self.peak.partition_point(|&t| t <= seconds) - 1;
        let a = self.points[reached];
        let x = match self.points.get(reached + 1) {
            None => seconds * a.speed(),
            Some(b) => {
                let slope = (b.speed() - a.speed()) / (b.size - a.size);
                let at_zero = a.speed() - slope * a.size;
                // x = T (at_zero + slope x)
                (seconds * at_zero / (1.0 - seconds * slope)).clamp(a.size, b.size)
            }
        };
        x.min(limit)
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
    fn defects_are_refused() {
        let bad = [
            vec![],
            vec![Point::new(0.0, 1.0)],
            vec![Point::new(1.0, 0.0)],
            vec![Point::new(f64::NAN, 1.0)],
            vec![Point::new(1.0, f64::NAN)],
            vec![Point::new(1.0, 1.0), Point::new(1.0, 2.0)],
            vec![Point::new(1.0, f64::INFINITY)],
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
        ) {
            let mut points: Vec<Point> = raw.iter().map(|&(x, t)| Point::new(f64::from(x), f64::from(t))).collect();
            points.sort_by(|a, b| a.size.total_cmp(&b.size));
            points.dedup_by(|a, b| a.size == b.size);
            let model = Model::piecewise("p", points, None).unwrap();
            let x = model.units_within(seconds, 1e6);
            // Every size up to x is in time, and a little more is not (or the limit is reached).
            for i in 1..=50 {
                let y = x * f64::from(i) / 50.0;
                prop_assert!(model.seconds(y) <= seconds * (1.0 + 1e-9), "{y} of {x}");
            }
            if x < 1e6 {
                let more = (1..=100).map(|i| model.seconds(x * (1.0 + 1e-5 * f64::from(i)) + 1e-9)).fold(0.0, f64::max);
                prop_assert!(more >= seconds * (1.0 - 1e-9));
            }
        }
    }
}
