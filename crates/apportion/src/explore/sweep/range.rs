//! The parameter that a sweep varies, and its range.

use crate::units;
use crate::units::Dimension;
use std::fmt;
use std::str::FromStr;

/// Maximum number of values of a sweep.
const MOST_POINTS: usize = 1000;
/// Maximum number of processors of a sweep.
const MOST_PROCESSORS: f64 = 10_000.0;

/// The parameter that is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// Bytes per second of the slowest link; the others keep their ratio to it.
    Bandwidth,
    /// Seconds of the longest latency; the others keep their ratio to it.
    Latency,
    /// Speed of the first processor divided by the mean speed of the others.
    Ratio,
    /// Number of processors: those of the platform, repeated from the first.
    Processors,
}

impl Parameter {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Bandwidth, "bandwidth"),
        (Self::Latency, "latency"),
        (Self::Ratio, "ratio"),
        (Self::Processors, "processors"),
    ];

    /// True if processors and their speeds do not vary.
    pub fn is_of_the_network(self) -> bool {
        matches!(self, Self::Bandwidth | Self::Latency)
    }

    /// The geometric mean of two values; `None` if there is none, or the two are within the fraction `near`
    /// of each other.
    pub(super) fn middle(self, low: f64, high: f64, near: f64) -> Option<f64> {
        if self == Self::Processors {
            let middle = (low + (high - low) / 2.0).floor();
            return (middle > low).then_some(middle);
        }
        let middle = (low * high).sqrt();
        (high > low * (1.0 + near) && middle > low && middle < high).then_some(middle)
    }

    /// A value for readers: `100 Mbit/s`, `50 us`, `3.00`, `12`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Bandwidth => {
                let bits = 8.0 * value;
                let prefixes = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
                let (prefix, size) =
                    prefixes.into_iter().find(|p| bits >= p.1 * 0.99995).unwrap_or(("", 1.0));
                format!("{} {prefix}bit/s", figures(bits / size))
            }
            Self::Latency => units::show_seconds(value),
            Self::Ratio => figures(value),
            Self::Processors => format!("{value:.0}"),
        }
    }
}

/// Four significant digits, without trailing zeros.
fn figures(x: f64) -> String {
    let decimals = if x >= 1000.0 { 0 } else { (3.0 - x.abs().max(1e-3).log10().floor()) as usize };
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(p, _)| p == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

/// A parameter's values from one to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterSweep {
    /// The parameter that is varied.
    pub parameter: Parameter,
    /// The smallest value, in base units; positive.
    pub from: f64,
    /// The largest value.
    pub to: f64,
    /// Number of values. `None`: every whole ratio or number of processors if there are at most 25, otherwise
    /// 13 values.
    pub points: Option<usize>,
    /// Fraction by which a candidate must be faster to win over one that moves less; 0 by default.
    pub margin: f64,
}

impl ParameterSweep {
    /// The values, ascending: both ends, and values in equal ratios between them. Numbers of processors are
    /// whole, and so are ratios if the number of values is not given and there are at most 25.
    pub fn values(&self) -> Vec<f64> {
        let whole = self.from.fract() == 0.0 && self.to.fract() == 0.0;
        let steps = self.to - self.from;
        if self.points.is_none() && !self.parameter.is_of_the_network() && whole && steps <= 24.0 {
            return (0..=steps as u64).map(|i| self.from + i as f64).collect();
        }
        let last = self.points.unwrap_or(13).clamp(2, MOST_POINTS) - 1;
        let at = |i: usize| match i {
            0 => self.from,
            i if i == last => self.to,
            i => self.from * (self.to / self.from).powf(i as f64 / last as f64),
        };
        let mut values: Vec<f64> = (0..=last).map(at).collect();
        if self.parameter == Parameter::Processors {
            values.iter_mut().for_each(|v| *v = v.round());
        }
        values.dedup();
        values
    }
}

impl FromStr for ParameterSweep {
    type Err = String;
    /// Parses `bandwidth=100Mbit/s..10Gbit/s`, `latency=1us..1ms`, `ratio=1..25` or `processors=2..64`.
    fn from_str(text: &str) -> Result<Self, String> {
        let example =
            "write bandwidth=100Mbit/s..10Gbit/s, latency=1us..1ms, ratio=1..25 or processors=2..64";
        let refuse = |what: &str| Err(format!("\"{text}\" {what}: {example}"));
        let Some((name, range)) = text.split_once('=') else { return refuse("names no range") };
        let Some(&(parameter, _)) = Parameter::ALL.iter().find(|(_, known)| *known == name.trim()) else {
            return refuse("names an unknown parameter");
        };
        let Some((from, to)) = range.split_once("..") else {
            return refuse("is not a range from one value to another");
        };
        if parameter.is_of_the_network() && [from, to].iter().any(|end| units::number(end).is_ok()) {
            return refuse("has a value without a unit");
        }
        let number = |end: &str| match parameter {
            Parameter::Bandwidth => units::parse(end, Dimension::Bandwidth),
            Parameter::Latency => units::parse(end, Dimension::Time),
            _ => units::number(end),
        };
        let (from, to) = (number(from)?, number(to)?);
        if !(from > 0.0 && to > from && to.is_finite()) {
            return refuse("is not a range from a positive number to a larger one");
        }
        let whole = from.fract() == 0.0 && to.fract() == 0.0 && to <= MOST_PROCESSORS;
        if parameter == Parameter::Processors && !whole {
            return refuse("needs whole numbers up to 10,000");
        }
        Ok(Self { parameter, from, to, points: None, margin: 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_divided() {
        let sweep: ParameterSweep = "bandwidth=100Mbit/s..10Gbit/s".parse().unwrap();
        assert_eq!((sweep.from, sweep.to), (12.5e6, 1.25e9));
        let three = ParameterSweep { points: Some(3), ..sweep }.values();
        assert!(three.len() == 3 && (three[1] - 125e6).abs() < 1.0, "{three:?}");
        let ratio: ParameterSweep = "ratio=1..25".parse().unwrap();
        assert_eq!(ratio.values().len(), 25);
        let many: ParameterSweep = "processors=2..4096".parse().unwrap();
        let values = many.values();
        assert!(values.iter().all(|v| v.fract() == 0.0) && values.windows(2).all(|w| w[0] < w[1]));
        for bad in [
            "",
            "bandwidth",
            "speed=1..2",
            "ratio=1",
            "ratio=2..1",
            "ratio=0..3",
            "processors=1.5..3",
            "bandwidth=1us..2us",
            "bandwidth=1..10",
            "bandwidth=10..100Mbit/s",
            "latency=1us..1e-3",
            "processors=2..1e9",
            "ratio=nan..inf",
            "latency=-1us..1us",
        ] {
            assert!(bad.parse::<ParameterSweep>().is_err(), "{bad}");
        }
    }

    #[test]
    fn values_are_shown_in_their_units() {
        assert_eq!(Parameter::Bandwidth.show(12.5e6), "100 Mbit/s");
        assert_eq!(Parameter::Bandwidth.show(125e6), "1 Gbit/s");
        assert_eq!(Parameter::Ratio.show(2.99987), "3");
        assert_eq!(Parameter::Ratio.show(12.3456), "12.35");
        assert_eq!(Parameter::Processors.show(64.0), "64");
    }
}
