//! Flags for the source of speeds.

use super::numbers::{self, Speeds};
use super::units::Units;
use apportion::error::{Error, Result};
use apportion::job::with_speeds;
use apportion::model::{
    LlamaSpeeds, Machine, Model, Models, WorkUnit, mix_models, read_llama_bench, read_models,
};
use apportion::plan::read_plan;
use apportion::platform::{Platform, read_platform};
use clap::Args;
use std::path::{Path, PathBuf};

/// Where speeds come from.
#[derive(Debug, Args)]
pub struct Sources {
    /// Speeds, one per processor: ratios such as 9,1 or 9:1, or with a unit, "9 Gflop/s,1 Gflop/s".
    #[arg(long, value_name = "S,S,…", allow_negative_numbers = true, value_parser = numbers::speeds,
        help_heading = "Processors and speeds")]
    pub speeds: Option<Speeds>,
    /// Read speed functions from this file (models.json).
    #[arg(long, value_name = "FILE", conflicts_with = "speeds", help_heading = "Processors and speeds")]
    pub models: Option<PathBuf>,
    /// Read the processors and the network from this file (platform.toml).
    #[arg(long, value_name = "FILE", help_heading = "Processors and speeds")]
    pub platform: Option<PathBuf>,
}

impl Sources {
    /// The files that are read, which all ranks must find alike.
    pub fn files(&self) -> [Option<&Path>; 2] {
        [self.models.as_deref(), self.platform.as_deref()]
    }
}

/// Processors for units, and their speed functions for a second kind of work, if there is one.
pub struct UnitProcessors {
    pub machine: Machine,
    pub second: Vec<Model>,
}

impl Sources {
    /// The platform that the flags name, if any.
    ///
    /// # Errors
    /// A file that cannot be read; speeds that do not fit it.
    pub fn platform(&self) -> Result<Option<Platform>> {
        let file = self.platform.as_deref().map(read_platform).transpose()?;
        match &self.speeds {
            Some(Speeds(speeds)) => with_speeds(file, speeds).map(Some),
            None => Ok(file),
        }
    }

    /// The contents of the files that the flags name.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn load(&self, plan: Option<&Path>) -> Result<apportion::job::Sources> {
        Ok(apportion::job::Sources {
            plan: plan.map(read_plan).transpose()?,
            plan_place: plan.map(|path| path.display().to_string()).unwrap_or_default(),
            models: self.models.as_deref().map(read_models).transpose()?,
            platform: self.platform()?,
        })
    }

    /// True if a speed function of the machine is an emulated processor's: its points are not measured sizes.
    pub fn are_emulated(&self, machine: &Machine) -> bool {
        self.models.is_none() && machine.platform.processors.iter().any(|p| p.emulated.is_some())
    }

    /// Processors for units of together this size. `mix`: the fraction of the first of two kinds of work, whose speeds
    /// are in two files, or in those of llama-bench.
    ///
    /// # Errors
    /// No source of speeds, or a processor without one; with `mix`, not two files, files of different processors, or
    /// ratios.
    pub fn for_units(&self, mix: Option<f64>, units: &Units) -> Result<UnitProcessors> {
        let [first, second] = match (self.llama_bench()?, mix) {
            (Some(speeds), Some(_)) => [
                LlamaSpeeds::of_prompts(&speeds, units.size())?,
                LlamaSpeeds::of_answers(&speeds, units.size())?,
            ],
            (Some(speeds), None) => {
                let both = speeds.iter().any(|device| device.prompt.is_some() && device.answer.is_some());
                if both {
                    let what = "llama-bench has results of prompts and answers";
                    let remedy = "add --mix FRACTION: that of tokens that are prompts";
                    return Err(Error::input("--models", what, remedy));
                }
                let of_prompts = speeds.iter().any(|device| device.prompt.is_some());
                let models = match of_prompts {
                    true => LlamaSpeeds::of_prompts(&speeds, units.size())?,
                    false => LlamaSpeeds::of_answers(&speeds, units.size())?,
                };
                [models, Vec::new()]
            }
            (None, None) => {
                return Ok(UnitProcessors { machine: self.machine(WorkUnit::Unit)?, second: Vec::new() });
            }
            (None, Some(_)) => {
                let text = self.models.as_deref().unwrap_or(Path::new("")).to_string_lossy();
                let Some((first, second)) = text.split_once(',') else {
                    let remedy = "pass --models FIRST,SECOND, such as prefill.json,decode.json";
                    return Err(Error::input("--mix", format!("\"{text}\" is one file, not two"), remedy));
                };
                [read_models(Path::new(first))?.models, read_models(Path::new(second))?.models]
            }
        };
        let names: Vec<String> = first.iter().map(|model| model.processor().to_owned()).collect();
        let platform = self.platform()?.unwrap_or_else(|| Platform::from_names(&names));
        let [first, second] = [first, second].map(|models| Models { models, ..Models::default() });
        let first = first.in_order(&platform.names())?;
        let Some(weight) = mix else {
            return Ok(UnitProcessors { machine: Machine::new(platform, first, 1), second: Vec::new() });
        };
        let second = second.in_order(&platform.names())?;
        let mixed = mix_models(&first, &second, weight)?;
        // Costs of two kinds keep the kinds apart.
        match units.second.is_empty() {
            true => Ok(UnitProcessors { machine: Machine::new(platform, mixed, 1), second }),
            false => Ok(UnitProcessors { machine: Machine::new(platform, first, 1), second }),
        }
    }

    /// The results of llama-bench that --models names; `None` if it names other files.
    fn llama_bench(&self) -> Result<Option<Vec<LlamaSpeeds>>> {
        let Some(path) = &self.models else { return Ok(None) };
        let text = path.to_string_lossy();
        let paths: Vec<&Path> = match path.exists() {
            true => vec![path.as_path()],
            false => text.split(',').map(Path::new).collect(),
        };
        let mut all: Vec<LlamaSpeeds> = Vec::new();
        for path in paths {
            let Some(devices) = read_llama_bench(path)? else { return Ok(None) };
            if let Some(twice) =
                devices.iter().find(|new| all.iter().any(|old| old.processor == new.processor))
            {
                let what = format!("\"{}\" is in two files", twice.processor);
                return Err(Error::input(path.display().to_string(), what, "call each file by its device"));
            }
            all.extend(devices);
        }
        Ok(Some(all))
    }

    /// Processors whose speeds the flags and files give, for work of this unit.
    ///
    /// # Errors
    /// No source of speeds, or a processor without one.
    pub fn machine(&self, work: WorkUnit) -> Result<Machine> {
        self.load(None)?.given_machine(work)
    }
}
