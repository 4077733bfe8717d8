//! The options that describe processors: products and factorisations have the same.

use apportion::job::{Sources, with_speeds};
use apportion::model::read_models;
use apportion::platform::{Speed, parse_speeds, read_platform};
use apportion::{Error, Result};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What options say of the processors.
#[derive(Default)]
pub struct Processors {
    speeds: Option<Vec<Speed>>,
    platform: Option<PathBuf>,
    models: Option<PathBuf>,
}

impl Processors {
    /// Sets an option; false if it is another one's.
    pub fn set(&mut self, option: &str, value: &str) -> Result<bool> {
        match option {
            "speeds" => self.speeds = Some(parse_speeds(value).map_err(|what| wrong(option, what))?),
            "platform" => self.platform = Some(value.into()),
            "models" => self.models = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The same with the contents of the files.
    pub fn sources(&self) -> Result<Sources> {
        let file = self.platform.as_deref().map(read_platform).transpose()?;
        Ok(Sources {
            platform: match &self.speeds {
                Some(speeds) => Some(with_speeds(file, speeds)?),
                None => file,
            },
            models: self.models.as_deref().map(read_models).transpose()?,
            ..Sources::default()
        })
    }
}

/// The error of an option's value.
pub fn wrong(option: &str, what: String) -> Error {
    Error::input(option, what, "see apportion.h")
}

/// A whole number within a range.
pub fn within(option: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64> {
    match apportion::units::whole(value).map_err(|what| wrong(option, what))? {
        x if range.contains(&x) => Ok(x),
        x => Err(wrong(option, format!("{x} is not in {}..={}", range.start(), range.end()))),
    }
}

/// `true` or `false`.
pub fn truth(option: &str, value: &str) -> Result<bool> {
    value.parse().map_err(|_| wrong(option, format!("\"{value}\" is neither true nor false")))
}
