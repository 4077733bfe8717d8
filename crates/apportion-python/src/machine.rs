//! The processors of a call with their speeds, from the arguments that describe them.

use crate::errors::refuse;
pub use apportion::model::Machine;
use apportion::model::{Model, Models, Point, WorkUnit, platform_models, read_models};
use apportion::platform::{Network, Platform, Speed, parse_platform, read_platform};
use apportion::{Error, Result};
use pyo3::FromPyObject;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A number, or text with a unit.
#[derive(FromPyObject, Clone, Serialize, Deserialize)]
pub enum Amount {
    Number(f64),
    Text(String),
}

impl Amount {
    /// The same as a value of a TOML file.
    fn to_toml(&self) -> String {
        match self {
            Self::Number(number) => format!("{number:?}"),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        }
    }
}

/// A file of the library's formats: its path, or its text.
#[derive(FromPyObject, Clone, Serialize, Deserialize)]
#[pyo3(from_item_all)]
pub struct Document {
    path: Option<PathBuf>,
    text: Option<String>,
}

/// The arguments that describe processors and their network, as the Python half passes them.
#[derive(FromPyObject, Clone, Serialize, Deserialize)]
#[pyo3(from_item_all)]
pub struct Sources {
    speeds: Option<Vec<Amount>>,
    /// Points of size and seconds, by processor.
    seconds: Option<Vec<Vec<(f64, f64)>>>,
    models: Option<Document>,
    platform: Option<Document>,
    processors: Option<Vec<String>>,
    latency: Option<Amount>,
    bandwidth: Option<Amount>,
}

impl Sources {
    /// The arguments as words, and the files that they name, to be compared between processes.
    pub fn facts(&self) -> (Vec<String>, Vec<PathBuf>) {
        let mut words = Vec::new();
        if let Some(speeds) = &self.speeds {
            let all: Vec<String> = speeds.iter().map(Amount::to_toml).collect();
            words.push(format!("speeds=[{}]", all.join(", ")));
        }
        if let Some(seconds) = &self.seconds {
            words.push(format!("seconds={seconds:?}"));
        }
        if let Some(processors) = &self.processors {
            words.push(format!("processors={processors:?}"));
        }
        for (name, amount) in [("latency", &self.latency), ("bandwidth", &self.bandwidth)] {
            words.extend(amount.as_ref().map(|amount| format!("{name}={}", amount.to_toml())));
        }
        let mut files = Vec::new();
        for (name, document) in [("models", &self.models), ("platform", &self.platform)] {
            let Some(Document { path, text }) = document else { continue };
            files.extend(path.clone());
            words.extend(path.as_ref().map(|path| format!("{name}={:?}", path.display().to_string())));
            words.extend(text.as_ref().map(|text| format!("{name}={text:?}")));
        }
        (words, files)
    }

    /// The same arguments with the contents of their files.
    ///
    /// # Errors
    /// A damaged file.
    pub fn without_files(mut self) -> Result<Self> {
        if let Some(Document { path: Some(path), .. }) = &self.models {
            self.models = Some(Document { text: Some(read_models(path)?.to_json()), path: None });
        }
        if let Some(Document { path: Some(path), .. }) = &self.platform {
            self.platform = Some(Document { text: Some(read_platform(path)?.to_toml()), path: None });
        }
        Ok(self)
    }

    /// The machine that the arguments describe.
    ///
    /// # Errors
    /// No or several sources of speeds; numbers that do not fit the processors; a damaged file.
    pub fn machine(&self, work: WorkUnit) -> Result<Machine> {
        self.known(work)?.ok_or_else(|| {
            let remedy = "pass speeds=[9, 1], seconds=[…] or models=\"models.json\"";
            refuse("speeds", "no speeds are given", remedy)
        })
    }

    /// The machine that the arguments describe, if they give speeds.
    ///
    /// # Errors
    /// As [`Sources::machine`].
    pub fn known(&self, work: WorkUnit) -> Result<Option<Machine>> {
        let given = [
            ("speeds", self.speeds.is_some()),
            ("seconds", self.seconds.is_some()),
            ("models", self.models.is_some()),
        ];
        let mut given = given.iter().filter(|(_, given)| *given);
        if let (Some((first, _)), Some((second, _))) = (given.next(), given.next()) {
            return Err(refuse(second, format!("cannot be combined with {first}"), "pass one of them"));
        }
        let platform = self.platform()?;
        let mut machine = if let Some(document) = &self.models {
            self.of_models(document, platform)?
        } else if let Some(points) = &self.seconds {
            self.of_seconds(points, platform)?
        } else if let Some(speeds) = &self.speeds {
            let platform = self.of_speeds(speeds, platform)?;
            Machine::from_platform(platform, work)?
        } else if let Some(platform) = platform {
            match platform_models(&platform, work) {
                Ok(models) => Machine { models, block: 1, platform },
                // Its speeds are measured where they can be.
                Err(_) if platform.processors.iter().all(|p| p.speed.is_none() && p.emulated.is_none()) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        } else {
            return Ok(None);
        };
        if let Some(network) = self.network()? {
            machine.platform.network = network;
        }
        Ok(Some(machine))
    }

    /// The platform that the arguments name.
    ///
    /// # Errors
    /// A damaged file.
    pub fn platform(&self) -> Result<Option<Platform>> {
        let Some(document) = &self.platform else { return Ok(None) };
        match (&document.path, &document.text) {
            (Some(path), _) => read_platform(path).map(Some),
            (None, text) => parse_platform(text.as_deref().unwrap_or_default(), "platform").map(Some),
        }
    }

    fn of_models(&self, document: &Document, platform: Option<Platform>) -> Result<Machine> {
        let models = match (&document.path, &document.text) {
            (Some(path), _) => read_models(path)?,
            (None, text) => Models::parse(text.as_deref().unwrap_or_default(), "models")?,
        };
        let names = self.processors.clone().unwrap_or_else(|| models.names());
        let platform = match platform {
            Some(platform) if self.processors.is_some() => select(&platform, &names)?,
            Some(platform) => platform,
            None => platform_of(&names)?,
        };
        let block = models.block().unwrap_or(1);
        Ok(Machine { models: models.in_order(&platform.names())?, block, platform })
    }

    fn of_seconds(&self, points: &[Vec<(f64, f64)>], platform: Option<Platform>) -> Result<Machine> {
        let platform = self.named("seconds", points.len(), platform)?;
        let model = |(points, name): (&Vec<(f64, f64)>, String)| match points[..] {
            // One time is one speed, at every size.
            [(size, seconds)] if seconds > 0.0 && size > 0.0 => Model::constant(name, size / seconds),
            _ => Model::piecewise(name, points.iter().map(|&(x, t)| Point::new(x, t)).collect(), None),
        };
        let models = points.iter().zip(platform.names()).map(model).collect::<Result<_>>()?;
        Ok(Machine { models, block: 1, platform })
    }

    fn of_speeds(&self, speeds: &[Amount], platform: Option<Platform>) -> Result<Platform> {
        let mut platform = self.named("speeds", speeds.len(), platform)?;
        for (processor, speed) in platform.processors.iter_mut().zip(speeds) {
            processor.emulated = None;
            processor.speed = Some(match speed {
                Amount::Number(ratio) => Speed::Relative(*ratio),
                Amount::Text(_) => {
                    let name = serde_json::Value::from(processor.name.as_str());
                    let text = format!("[[processor]]\nname = {name}\nspeed = {}\n", speed.to_toml());
                    let parsed = parse_platform(&text, "speeds")?;
                    parsed.processors[0]
                        .speed
                        .ok_or_else(|| refuse("speeds", "a speed is missing", "pass a number"))?
                }
            });
        }
        Ok(platform)
    }

    /// The platform with as many processors as there are speeds, named as asked for or p0, p1, …
    fn named(&self, place: &str, count: usize, platform: Option<Platform>) -> Result<Platform> {
        let misfit = |what: String, remedy: &str| Err(refuse(place, what, remedy));
        if count == 0 {
            return misfit("there are none".into(), "pass one for each processor");
        }
        let platform = match (platform, &self.processors) {
            (Some(platform), None) => platform,
            (Some(platform), Some(names)) => select(&platform, names)?,
            (None, Some(names)) => platform_of(names)?,
            (None, None) => Platform::from_names(&(0..count).map(|i| format!("p{i}")).collect::<Vec<_>>()),
        };
        match platform.len() {
            all if all == count => Ok(platform),
            all => misfit(format!("there are {count} for {all} processors"), "pass one for each processor"),
        }
    }

    /// The network that latency and bandwidth describe: the same for every pair.
    fn network(&self) -> Result<Option<Network>> {
        if self.latency.is_none() && self.bandwidth.is_none() {
            return Ok(None);
        }
        if self.platform.is_some() {
            let place = if self.latency.is_some() { "latency" } else { "bandwidth" };
            return Err(refuse(place, "the platform describes its network", "pass one of the two"));
        }
        let mut text = "[[processor]]\nname = \"any\"\n[network]\n".to_owned();
        for (name, amount) in [("latency", &self.latency), ("bandwidth", &self.bandwidth)] {
            if let Some(amount) = amount {
                text += &format!("{name} = {}\n", amount.to_toml());
            }
        }
        parse_platform(&text, "network").map(|platform| Some(platform.network))
    }
}

/// The number that a parameter holds, within limits.
///
/// # Errors
/// It is not.
pub fn within(place: &str, number: u64, least: u64, most: u64) -> Result<u64> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(refuse(place, format!("{number} is out of range"), &format!("use {least} to {most}")))
}

/// A name as a value: `auto` and nothing leave the choice open.
///
/// # Errors
/// The name is unknown.
pub fn named<T: std::str::FromStr<Err = String>>(place: &str, name: Option<&str>) -> Result<Option<T>> {
    match name {
        None | Some("auto") => Ok(None),
        Some(name) => name.parse().map(Some).map_err(|what: String| match what.split_once(" (") {
            Some((what, remedy)) => Error::input(place, what, remedy.trim_end_matches(')')),
            None => Error::input(place, what, "choose another one"),
        }),
    }
}

/// Processors of these names, which plans of theirs can have.
fn platform_of(names: &[String]) -> Result<Platform> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        let what = format!("\"{twice}\" is listed twice");
        return Err(refuse("processors", what, "give every processor a name of its own"));
    }
    // The parser of platform files refuses names that no file can have.
    let entry = |name: &String| format!("[[processor]]\nname = {}\n", serde_json::Value::from(name.as_str()));
    let platform = parse_platform(&names.iter().map(entry).collect::<String>(), "processors")?;
    Ok(Platform { name: "names".into(), ..platform })
}

/// The processors of these names, in this order.
fn select(platform: &Platform, names: &[String]) -> Result<Platform> {
    platform_of(names)?;
    let known = platform.names();
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(platform.select(names)),
        Some(name) => {
            let what = format!("the platform has no \"{name}\"");
            Err(refuse("processors", what, &format!("use some of {}", known.join(", "))))
        }
    }
}
