//! Emulated processors: speed as a given function of size, with the effects of caches, paging and start-up.
//!
//! The shape is that of Lastovetsky and Reddy 2007, sections 1 and 2 (Figs. 1 and 2): steep or smooth steps
//! where a cache or the memory is full.

use crate::error::{Error, Result};
use serde::Deserialize;
use std::fmt;

/// A speed function in closed form, in units per second. Time never falls with size.
///
/// Its text is a list of parts, in any order, separated by commas; sizes are in units:
///
/// | part | meaning |
/// | --- | --- |
/// | `peak SPEED` | units per second before anything slows it; the one part that must be there |
/// | `ramp SIZE` | start-up costs as much as SIZE units: half speed there |
/// | `knee SIZE FACTOR` | a cache is full: around SIZE speed bends down to FACTOR of what it was |
/// | `cliff SIZE FACTOR` | memory is full: at SIZE speed drops to FACTOR of what it was, within about a tenth
/// of SIZE |
///
/// # Example
/// ```
/// use apportion_plan::platform::Emulated;
/// let paging: Emulated = "peak 2e9, knee 1e5 0.8, cliff 4e6 0.05".parse()?;
/// assert!((paging.speed(1e3) / 2e9 - 1.0).abs() < 0.001);
/// assert!((paging.speed(1e6) / 1.6e9 - 1.0).abs() < 0.01);
/// assert!((paging.speed(1e7) / 8e7 - 1.0).abs() < 0.01);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Emulated {
    peak: f64,
    ramp: f64,
    drops: Vec<Drop>,
}

/// Speed falls to `factor` times its value around `size`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Drop {
    size: f64,
    factor: f64,
    steep: bool,
}

impl Drop {
    /// factor + (1 - factor) / (1 + (x / size)^k): half-way at `size`.
    fn at(&self, x: f64) -> f64 {
        let exponent = if self.steep { 40.0 } else { 3.0 };
        self.factor + (1.0 - self.factor) / (1.0 + (x / self.size).powf(exponent))
    }
}

impl Emulated {
    /// Units per second at size `x`.
    pub fn speed(&self, x: f64) -> f64 {
        let started = if self.ramp > 0.0 { x / (x + self.ramp) } else { 1.0 };
        self.drops.iter().fold(self.peak * started, |speed, drop| speed * drop.at(x))
    }

    /// Seconds for `x` units; 0 for none.
    pub(crate) fn seconds(&self, x: f64) -> f64 {
        if x <= 0.0 { 0.0 } else { x / self.speed(x) }
    }
}

impl std::str::FromStr for Emulated {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |what: String| {
            let remedy = "write it like \"peak 2e9, ramp 100, knee 1e5 0.8, cliff 4e6 0.05\"";
            Error::input("emulated processor", what, remedy)
        };
        let mut emulated = Self { peak: f64::NAN, ramp: 0.0, drops: Vec::new() };
        for part in text.split(',').map(str::trim) {
            let mut words = part.split_whitespace();
            let name = words.next().unwrap_or("");
            let numbers: Vec<f64> = words
                .map(|w| w.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0))
                .collect::<Option<_>>()
                .ok_or_else(|| refuse(format!("\"{part}\" holds something that is not a positive number")))?;
            match (name, &numbers[..]) {
                ("peak", &[speed]) if emulated.peak.is_nan() => emulated.peak = speed,
                ("ramp", &[size]) if emulated.ramp == 0.0 => emulated.ramp = size,
                ("knee" | "cliff", &[size, factor]) if factor <= 1.0 => {
                    emulated.drops.push(Drop { size, factor, steep: name == "cliff" });
                }
                ("knee" | "cliff", &[_, factor]) => {
                    return Err(refuse(format!("the factor {factor} in \"{part}\" is above 1")));
                }
                _ => return Err(refuse(format!("cannot make out \"{part}\""))),
            }
        }
        if emulated.peak.is_nan() {
            return Err(refuse(format!("\"{text}\" gives no peak speed")));
        }
        Ok(emulated)
    }
}

/// As a field of a file: errors state what is wrong and what to write; the reader adds the place.
impl TryFrom<String> for Emulated {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse().map_err(|e| match e {
            Error::Input { what, remedy, .. } => format!("{what}: {remedy}"),
            other => other.to_string(),
        })
    }
}

impl fmt::Display for Emulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peak {:e}", self.peak)?;
        if self.ramp > 0.0 {
            write!(f, ", ramp {:e}", self.ramp)?;
        }
        for drop in &self.drops {
            let name = if drop.steep { "cliff" } else { "knee" };
            write!(f, ", {name} {:e} {}", drop.size, drop.factor)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_read_and_written() {
        for text in ["peak 2e9", "peak 1e3, ramp 2.5e1, knee 1e5 0.8, cliff 4e6 0.05, cliff 8e7 0.5"] {
            let emulated: Emulated = text.parse().unwrap();
            assert_eq!(emulated.to_string(), text);
        }
        let bad = [
            "",
            "peak",
            "peak 0",
            "peak -1",
            "peak nan",
            "peak 1 2",
            "knee 1e5 0.8",
            "peak 1, knee 5",
            "peak 1, knee 5 2",
            "peak 1, peak 2",
            "peak 1, cave 3 0.5",
            "peak 1,, ramp 2",
        ];
        for text in bad {
            let error = text.parse::<Emulated>().unwrap_err();
            assert_eq!(error.exit_code(), 2, "{text}");
        }
    }

    #[test]
    fn speed_halves_at_the_ramp_and_time_never_falls() {
        let emulated: Emulated = "peak 1000, ramp 50, knee 1e4 0.6, cliff 1e6 0.02".parse().unwrap();
        assert!((emulated.speed(50.0) - 500.0).abs() < 1e-3);
        let mut before = 0.0;
        for i in 0..2000 {
            let seconds = emulated.seconds(10_f64.powf(0.004 * f64::from(i)));
            assert!(seconds > before);
            before = seconds;
        }
    }
}
