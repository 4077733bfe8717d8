//! One measured point of a speed function.

use crate::input::{EXTREME, extreme, show_number};
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
    /// Mean CPU time in seconds, slowdown included: `seconds` without the time that other programs took. At
    /// most `seconds`, but for outliers; `None` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Fraction of the elapsed time, outliers included, in which the processor computed: what other programs
    /// left to it, from 0 to 1. `None` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
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
            cpu_seconds: None,
            cpu_share: None,
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
        if let Some(what) = extreme(self.size) {
            return Some(("size", what));
        }
        if let Some(what) = extreme(self.seconds) {
            return Some(("seconds", what));
        }
        if let Some(ci) = self.ci.filter(|ci| !(0.0..=EXTREME).contains(ci)) {
            return Some(("ci", format!("{} is not between 0 and 1e100", show_number(ci))));
        }
        let mean = show_number(self.seconds);
        if let Some(low) = self.low.filter(|&t| extreme(t).is_some() || t > self.seconds) {
            let what =
                extreme(low).unwrap_or_else(|| format!("{} is more than seconds, {mean}", show_number(low)));
            return Some(("low", what));
        }
        if let Some(high) = self.high.filter(|&t| extreme(t).is_some() || t < self.seconds) {
            let what = extreme(high)
                .unwrap_or_else(|| format!("{} is less than seconds, {mean}", show_number(high)));
            return Some(("high", what));
        }
        if let Some(what) = self.cpu_seconds.and_then(extreme) {
            return Some(("cpu_seconds", what));
        }
        if let Some(share) = self.cpu_share.filter(|share| !(0.0..=1.0).contains(share)) {
            return Some(("cpu_share", format!("{} is not between 0 and 1", show_number(share))));
        }
        let joules = self.energy.filter(|e| !(0.0..=EXTREME).contains(e))?;
        Some(("energy", format!("{} joules are not between 0 and 1e100", show_number(joules))))
    }
}
