//! One measured point of a speed function.

use serde::{Deserialize, Serialize};

/// One measured point of a speed function: a size, its time, and further measurements at that size.
///
/// Fields may be added: build a point with [`Point::new`] and `..Point::new(size, seconds)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Size of the task, in the model's unit; > 0.
    pub size: f64,
    /// Mean time; > 0.
    pub seconds: f64,
    /// Half-width of the 95 % Student interval of the mean, in seconds; `None` if it is not known, as after a
    /// single measurement.
    #[serde(default)]
    pub ci: Option<f64>,
    /// Number of measurements behind the mean; 0 if nothing was measured.
    #[serde(default)]
    pub repetitions: u64,
    /// The shortest time to expect, in seconds: the upper edge of the speed band. Not above `seconds`. A
    /// measurement gives the 5 % quantile of its repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The longest time to expect, in seconds: the lower edge of the speed band. Not below `seconds`. A
    /// measurement gives the 95 % quantile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether `ci` is as narrow as the measurement was asked for; `None` if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_met: Option<bool>,
    /// Energy of the whole task in joules, if it was measured; >= 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
}

impl Point {
    /// A point without statistics, band or energy.
    pub fn new(size: f64, seconds: f64) -> Self {
        Self {
            size,
            seconds,
            ci: None,
            repetitions: 0,
            low: None,
            high: None,
            precision_met: None,
            energy: None,
        }
    }

    /// The same point with a band of times.
    pub fn with_band(self, low: f64, high: f64) -> Self {
        Self { low: Some(low), high: Some(high), ..self }
    }

    /// The same point with an energy in joules.
    pub fn with_energy(self, joules: f64) -> Self {
        Self { energy: Some(joules), ..self }
    }

    /// Units per second.
    pub fn speed(&self) -> f64 {
        self.size / self.seconds
    }

    /// The first defect: the field, and the reason.
    pub(super) fn defect(&self) -> Option<(&'static str, String)> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        if !positive(self.size) {
            return Some(("size", format!("{} is not a positive number", self.size)));
        }
        if !positive(self.seconds) || !positive(self.speed()) {
            return Some(("seconds", format!("{} is not a positive number", self.seconds)));
        }
        if let Some(ci) = self.ci.filter(|&ci| !(ci >= 0.0 && (self.seconds + ci).is_finite())) {
            return Some(("ci", format!("{ci} is not a non-negative number")));
        }
        let usable = |t: f64| positive(t) && positive(self.size / t);
        if let Some(low) = self.low.filter(|&t| !(usable(t) && t <= self.seconds)) {
            return Some(("low", format!("{low} is not a positive time up to seconds = {}", self.seconds)));
        }
        if let Some(high) = self.high.filter(|&t| !(usable(t) && t >= self.seconds)) {
            return Some(("high", format!("{high} is not a time of at least seconds = {}", self.seconds)));
        }
        let joules = self.energy.filter(|&e| !(e.is_finite() && e >= 0.0))?;
        Some(("energy", format!("{joules} is not a non-negative number of joules")))
    }
}
