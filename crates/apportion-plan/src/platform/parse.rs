//! The platform file `platform.toml`. Reading is strict: errors name the field.

mod network;

use super::{Emulated, Platform, Processor, SlowdownAfter, Speed};
use crate::error::{Error, Result};
use crate::input::{extreme, name_defect, quoted, read_text, show_number};
use crate::units::{Dimension, Quantity};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of processors in a platform file.
const MOST_PROCESSORS: usize = 10_000;

/// Maximum number of cores of a processor: more than machines have.
const MOST_CORES: usize = 65_536;

/// Largest slowdown: a second becomes thirty years.
const MOST_SLOWDOWN: f64 = 1e9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlatform {
    name: Option<String>,
    #[serde(default)]
    processor: Vec<RawProcessor>,
    #[serde(default)]
    network: network::RawNetwork,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProcessor {
    name: String,
    cluster: Option<String>,
    speed: Option<Quantity>,
    memory: Option<Quantity>,
    cores: Option<Vec<usize>>,
    device: Option<String>,
    start: Option<String>,
    slowdown: Option<f64>,
    slowdown_after: Option<RawSlowdownAfter>,
    emulated: Option<Emulated>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSlowdownAfter {
    work: f64,
    slowdown: f64,
}

/// Reads a platform file.
///
/// # Errors
/// The file cannot be read, or [`parse_platform`] rejects it.
pub fn read_platform(path: &Path) -> Result<Platform> {
    let text = read_text(path)?;
    parse_platform(&text, &path.display().to_string())
}

/// Reads the text of a platform file; `place` names it in errors.
///
/// # Errors
/// Malformed TOML or an unknown field (with its line); a quantity that is NaN, negative, zero where zero has
/// no meaning, or has an unknown unit (with its field); duplicate names; links between unknown names.
pub fn parse_platform(text: &str, place: &str) -> Result<Platform> {
    let raw: RawPlatform = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        Error::input(format!("{place}:{line}"), e.message(), "see docs/reference/platform-file.md")
    })?;
    let reader = Reader { place };
    let processors = reader.processors(raw.processor)?;
    let network = reader.network(raw.network, &processors)?;
    Ok(Platform { name: raw.name.unwrap_or_else(|| place.to_owned()), processors, network })
}

struct Reader<'a> {
    place: &'a str,
}

impl Reader<'_> {
    fn error(&self, field: &str, what: impl Into<String>, remedy: &str) -> Error {
        Error::input(format!("{}: {field}", self.place), what, remedy)
    }

    fn quantity(&self, field: &str, q: &Quantity, dimension: Dimension) -> Result<f64> {
        let remedy = "give a finite, non-negative quantity";
        let value = q.value(dimension).map_err(|what| self.error(field, what, remedy))?;
        match extreme(value).filter(|_| value > 1.0) {
            Some(what) => Err(self.error(field, what, "check the unit")),
            None => Ok(value),
        }
    }

    fn positive(&self, field: &str, q: &Quantity, dimension: Dimension) -> Result<f64> {
        let value = self.quantity(field, q, dimension)?;
        if value == 0.0 {
            return Err(self.error(field, "is zero", "give a quantity greater than zero"));
        }
        if let Some(what) = extreme(value) {
            return Err(self.error(field, what, "check the unit"));
        }
        Ok(value)
    }

    fn processors(&self, raw: Vec<RawProcessor>) -> Result<Vec<Processor>> {
        if raw.is_empty() {
            return Err(self.error(
                "processor",
                "the platform has no processor",
                "add at least one [[processor]] with a name",
            ));
        }
        if raw.len() > MOST_PROCESSORS {
            return Err(self.error(
                "processor",
                format!("{} processors are more than {MOST_PROCESSORS}", raw.len()),
                "group them into clusters",
            ));
        }
        let mut seen = BTreeSet::new();
        raw.into_iter()
            .map(|p| {
                let twice = || format!("{} is used twice", quoted(&p.name));
                let defect = name_defect(&p.name).or_else(|| (!seen.insert(p.name.clone())).then(twice));
                if let Some(what) = defect {
                    return Err(self.error("processor.name", what, "give every processor a name of its own"));
                }
                if let Some(what) = p.cluster.as_deref().and_then(name_defect) {
                    let field = format!("processor {}: cluster", quoted(&p.name));
                    return Err(self.error(&field, what, "give a path such as \"site/node\""));
                }
                self.processor(p)
            })
            .collect()
    }

    /// A speed, and whether it has a unit.
    fn speed(&self, field: &str, q: &Quantity) -> Result<Speed> {
        let units = |text: &str| text.trim_end().ends_with("unit/s") || text.trim_end().ends_with("units/s");
        let rate = matches!(q, Quantity::Text(text) if units(text));
        let dimension = if rate { Dimension::Rate } else { Dimension::Speed };
        let value = self.quantity(field, q, dimension)?;
        if let Some(what) = extreme(value).filter(|_| value != 0.0) {
            return Err(self.error(field, what, "check the unit"));
        }
        Ok(match (rate, q.has_unit()) {
            (true, _) => Speed::Units(value),
            (false, true) => Speed::Flops(value),
            (false, false) => Speed::Relative(value),
        })
    }

    fn processor(&self, raw: RawProcessor) -> Result<Processor> {
        let field = |f: &str| format!("processor \"{}\": {f}", raw.name);
        let speed = raw.speed.as_ref().map(|q| self.speed(&field("speed"), q)).transpose()?;
        let memory = match &raw.memory {
            None => None,
            Some(q) => match self.positive(&field("memory"), q, Dimension::Bytes)? as u64 {
                0 => {
                    let remedy = "give a whole number of bytes, or text such as \"16 GiB\"";
                    return Err(self.error(&field("memory"), "is less than one byte", remedy));
                }
                bytes => Some(bytes),
            },
        };
        if let Some(cores) = raw.cores.as_ref().filter(|cores| cores.len() > MOST_CORES) {
            let what = format!("{} cores are more than {MOST_CORES}", cores.len());
            return Err(self.error(&field("cores"), what, "list the numbers of its cores, each once"));
        }
        let slowdown = raw.slowdown.unwrap_or(1.0);
        if !(1.0..=MOST_SLOWDOWN).contains(&slowdown) {
            return Err(self.error(
                &field("slowdown"),
                format!("{} is not a number from 1 to {MOST_SLOWDOWN:e}", show_number(slowdown)),
                "give 1.0 for full speed, 9.0 for nine times slower",
            ));
        }
        if raw.emulated.is_some() && raw.slowdown.is_some() {
            return Err(self.error(
                &field("slowdown"),
                "cannot be combined with emulated",
                "give one of them: the function of an emulated processor determines its time",
            ));
        }
        let slowdown_after = match raw.slowdown_after {
            Some(RawSlowdownAfter { work, .. }) if !(0.0..1.0).contains(&work) => {
                let what = format!("{work} is not a fraction of the work, at least 0 and below 1");
                return Err(self.error(&field("slowdown_after.work"), what, "give 0.5 for half of the work"));
            }
            Some(RawSlowdownAfter { slowdown, .. }) if !(slowdown.is_finite() && slowdown >= 1.0) => {
                let what = format!("{slowdown} is not a number of at least 1");
                return Err(self.error(
                    &field("slowdown_after.slowdown"),
                    what,
                    "give 3.0 for three times slower",
                ));
            }
            turn => turn.map(|RawSlowdownAfter { work, slowdown }| SlowdownAfter { work, slowdown }),
        };
        let device = match raw.device {
            Some(device) if !is_device(&device) => {
                return Err(self.error(
                    &field("device"),
                    format!("{} is no device", quoted(&device)),
                    "give one that `apportion detect` lists, such as \"opencl:0\"",
                ));
            }
            device => device,
        };
        let start = raw.start.map(|text| start_words(&text)).transpose();
        let start = start.map_err(|what| {
            self.error(
                &field("start"),
                what,
                "give the command that starts programs there, such as \"ssh beta\"",
            )
        })?;
        Ok(Processor {
            slowdown_after,
            cluster: raw.cluster.unwrap_or_else(|| raw.name.clone()),
            name: raw.name,
            speed,
            memory,
            cores: raw.cores.unwrap_or_default(),
            device,
            start: start.unwrap_or_default(),
            slowdown,
            emulated: raw.emulated,
        })
    }
}

/// The words of a command line, as a POSIX shell splits them.
fn start_words(text: &str) -> std::result::Result<Vec<String>, String> {
    if text.contains(|c: char| c.is_control()) {
        return Err(format!("{} has control characters", quoted(text)));
    }
    match shlex::split(text) {
        None => Err(format!("{} has a quote that is not closed", quoted(text))),
        Some(words) if words.first().is_none_or(String::is_empty) => Err("names no program".into()),
        Some(words) => Ok(words),
    }
}

/// True for an interface and a number: `opencl:0`, `cuda:0`.
fn is_device(text: &str) -> bool {
    let numbered = text.split_once(':').filter(|(interface, _)| ["opencl", "cuda"].contains(interface));
    numbered.is_some_and(|(_, number)| number.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests;
