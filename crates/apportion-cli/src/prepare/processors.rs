//! From flags to processors and speed functions.

use crate::args::Sources;
use crate::args::numbers::Speeds;
use apportion::error::{Error, Result};
use apportion::model::{Model, WorkUnit, mix_models, only_ratios, platform_models, read_models};
use apportion::plan::Plan;
use apportion::plan::shapes::{Communication, Method, MethodOptions};
use apportion::platform::{Network, Platform, Topology, discover, read_platform};
use apportion::select::communication_of;
use std::collections::BTreeSet;
use std::path::Path;

/// Processors with their speed functions.
pub struct Processors {
    pub platform: Platform,
    /// By rank.
    pub models: Vec<Model>,
    /// The pivot block that the models' sizes refer to (1 for constant speeds).
    pub block: u64,
    /// True if a model is an emulated processor's speed function: its points are not measured sizes.
    pub sampled: bool,
}

impl Processors {
    /// True if only ratios of speeds are known, so that nothing has a time.
    pub fn only_ratios(&self) -> bool {
        only_ratios(&self.models)
    }
}

impl Sources {
    /// The platform that the flags name, if any.
    pub fn platform(&self) -> Result<Option<Platform>> {
        let file = self.platform.as_deref().map(read_platform).transpose()?;
        match (&self.speeds, file) {
            (Some(speeds), None) => platform_of(speeds).map(Some),
            (Some(speeds), Some(mut platform)) => {
                let given = platform_of(speeds)?;
                if given.len() != platform.len() {
                    return Err(Error::input(
                        "--speeds",
                        format!("{} speeds for the platform's {} processors", given.len(), platform.len()),
                        "pass one speed for each processor",
                    ));
                }
                for (processor, speed) in platform.processors.iter_mut().zip(given.processors) {
                    processor.speed = speed.speed;
                    processor.emulated = None;
                }
                Ok(Some(platform))
            }
            (None, file) => Ok(file),
        }
    }

    /// Processors whose work is of two kinds: `--models` names two files, and `--mix` is the fraction of the
    /// first kind.
    ///
    /// # Errors
    /// Not two files; files of different processors; ratios.
    pub fn mixed(&self, weight: f64) -> Result<Processors> {
        let text = self.models.as_deref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((first, second)) = text.split_once(',') else {
            let remedy = "pass --models FIRST,SECOND, such as prefill.json,decode.json";
            return Err(Error::input("--mix", format!("\"{text}\" is one file, not two"), remedy));
        };
        let (first, second) = (read_models(Path::new(first))?, read_models(Path::new(second))?);
        let platform = self.platform()?.unwrap_or_else(|| Platform::from_names(&first.names()));
        let [first, second] = [first.in_order(&platform.names())?, second.in_order(&platform.names())?];
        Ok(Processors { models: mix_models(&first, &second, weight)?, block: 1, sampled: true, platform })
    }

    /// Processors whose speeds the flags and files give, for work of this unit.
    ///
    /// # Errors
    /// No source of speeds, or a processor without one.
    pub fn processors(&self, work: WorkUnit) -> Result<Processors> {
        let platform = self.platform()?;
        if let Some(path) = &self.models {
            let models = read_models(path)?;
            let block = models.block().unwrap_or(1);
            let platform = platform.unwrap_or_else(|| Platform::from_names(&models.names()));
            let models = models.in_order(&platform.names())?;
            return Ok(Processors { models, block, sampled: false, platform });
        }
        let Some(platform) = platform else {
            return Err(Error::input(
                "usage",
                "no speeds are given",
                "add --speeds 9:1, --models models.json or --platform platform.toml",
            ));
        };
        constant(platform, work)
    }
}

/// Processors p0, p1, … with these speeds.
fn platform_of(Speeds(speeds): &Speeds) -> Result<Platform> {
    let values: Vec<f64> = speeds.iter().map(|speed| speed.value()).collect();
    let mut platform = Platform::from_speeds(&values)?;
    for (processor, speed) in platform.processors.iter_mut().zip(speeds) {
        processor.speed = Some(*speed);
    }
    Ok(platform)
}

/// Processors with models from the platform alone.
pub fn constant(platform: Platform, work: WorkUnit) -> Result<Processors> {
    let models = platform_models(&platform, work)?;
    let sampled = platform.processors.iter().any(|p| p.emulated.is_some());
    Ok(Processors { models, block: 1, sampled, platform })
}

/// Options of the methods, from the platform's network and from flags.
pub fn terms(
    platform: &Platform,
    communication: Option<Communication>,
    groups: Option<&str>,
) -> Result<MethodOptions> {
    let centre = match platform.network.topology {
        Topology::Star { centre } => Some(centre.0),
        _ => None,
    };
    let groups = groups.map(|text| columns_of(text, &platform.names())).transpose()?;
    let communication = communication.unwrap_or_else(|| communication_of(&platform.network));
    Ok(MethodOptions { communication, centre, groups, ..MethodOptions::default() })
}

/// Parses columns such as `p0,p1;p2,p3`.
fn columns_of(text: &str, names: &[String]) -> Result<Vec<Vec<usize>>> {
    let rank = |name: &str| {
        names.iter().position(|known| known == name.trim()).ok_or_else(|| {
            Error::input(
                "--groups",
                format!("there is no processor \"{}\"", name.trim()),
                "list the columns from left to right, such as --groups p0,p1;p2,p3",
            )
        })
    };
    text.split(';').map(|column| column.split(',').map(rank).collect()).collect()
}

/// The platform as the threads engine uses it: with its network only if that is to be emulated.
pub fn as_run(mut platform: Platform) -> Platform {
    if !platform.network.emulate {
        platform.network = Network::free();
    }
    platform
}

/// This machine as a platform.
pub fn this_machine() -> Platform {
    discover().platform()
}

/// The method that a flag names; `None` for auto.
pub fn method_at(flag: &str, name: &str) -> Result<Option<Method>> {
    if name == "auto" {
        return Ok(None);
    }
    name.parse().map(Some).map_err(|what: String| Error::input(flag, what, "see apportion partition --help"))
}

/// The platform's processors in the order of the plan.
///
/// # Errors
/// A processor of the plan that the platform does not have.
pub fn in_plan_order(plan: &Plan, platform: Platform) -> Result<Platform> {
    let names = platform.names();
    let known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let unknown: Vec<&String> =
        plan.processors.iter().filter(|name| !known.contains(name.as_str())).collect();
    let Some(first) = unknown.first() else { return Ok(platform.select(&plan.processors)) };
    let others = match unknown.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more of the plan's {} processors", plan.processors.len()),
    };
    Err(Error::input(
        "--platform",
        format!("the platform \"{}\" lacks \"{first}\"{others}", platform.name),
        "use the platform for which the plan was created, or rename the processors",
    ))
}
