//! The processors of a call with their speeds, from the arguments that describe them.

use crate::errors::refuse;
use apportion::Result;
use apportion::job;
pub use apportion::model::Machine;
use apportion::model::{Models, Point, WorkUnit, read_models};
use apportion::platform::{Network, Platform, Speed, parse_platform, read_platform};
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
    /// The same as a speed.
    fn speed(&self) -> Result<Speed> {
        match self {
            Self::Number(ratio) => Ok(Speed::Relative(*ratio)),
            Self::Text(_) => {
                let text = format!("[[processor]]\nname = \"any\"\nspeed = {}\n", self.to_toml());
                let speed = parse_platform(&text, "speeds")?.processors[0].speed;
                speed.ok_or_else(|| refuse("speeds", "a speed is missing", "pass a number"))
            }
        }
    }

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

impl Document {
    fn models(&self) -> Result<Models> {
        match (&self.path, &self.text) {
            (Some(path), _) => read_models(path),
            (None, text) => Models::parse(text.as_deref().unwrap_or_default(), "models"),
        }
    }
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

    /// True if the arguments give speeds.
    pub fn has_speeds(&self) -> bool {
        self.speeds.is_some() || self.seconds.is_some() || self.models.is_some() || self.platform.is_some()
    }

    /// The machine that the arguments describe.
    ///
    /// # Errors
    /// As [`Sources::load`]; no speeds.
    pub fn machine(&self, work: WorkUnit) -> Result<Machine> {
        self.load()?.given_machine(work)
    }

    /// What the arguments say of the processors.
    ///
    /// # Errors
    /// Several sources of speeds; numbers that do not fit the processors; a damaged file.
    pub fn load(&self) -> Result<job::Sources> {
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
        let (mut platform, models) = if let Some(document) = &self.models {
            let models = document.models()?;
            (Some(self.platform_of_models(&models, platform)?), Some(models))
        } else if let Some(points) = &self.seconds {
            let platform = self.named("seconds", points.len(), platform)?;
            let points = points.iter().map(|all| all.iter().map(|&(x, t)| Point::new(x, t)).collect());
            let models = job::models_from_times(&platform.names(), points.collect(), &[])?;
            (Some(platform), Some(models))
        } else if let Some(speeds) = &self.speeds {
            (Some(self.of_speeds(speeds, platform)?), None)
        } else {
            (platform, None)
        };
        if let (Some(network), Some(platform)) = (self.network()?, &mut platform) {
            platform.network = network;
        }
        Ok(job::Sources { platform, models, ..job::Sources::default() })
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

    /// The processors of models, named or chosen by the arguments.
    fn platform_of_models(&self, models: &Models, platform: Option<Platform>) -> Result<Platform> {
        let names = self.processors.clone().unwrap_or_else(|| models.names());
        match platform {
            Some(platform) if self.processors.is_some() => select(&platform, &names),
            Some(platform) => Ok(platform),
            None => platform_of(&names),
        }
    }

    fn of_speeds(&self, speeds: &[Amount], platform: Option<Platform>) -> Result<Platform> {
        let platform = self.named("speeds", speeds.len(), platform)?;
        let speeds = speeds.iter().map(Amount::speed).collect::<Result<Vec<Speed>>>()?;
        job::with_speeds(Some(platform), &speeds)
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
            all => misfit(
                format!("{count} {place} for the platform's {all} processors"),
                "pass one for each processor",
            ),
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
