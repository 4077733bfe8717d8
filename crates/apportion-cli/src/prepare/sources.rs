//! From flags to processors and speed functions.

use crate::args::Sources;
use crate::args::numbers::Speeds;
use apportion::error::{Error, Result};
use apportion::job::with_speeds;
use apportion::model::{Machine, WorkUnit, mix_models, read_models};
use apportion::plan::read_plan;
use apportion::platform::{Platform, read_platform};
use std::path::Path;

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

    /// Processors whose work is of two kinds: `--models` names two files, and `--mix` is the fraction of the
    /// first kind.
    ///
    /// # Errors
    /// Not two files; files of different processors; ratios.
    pub fn mixed(&self, weight: f64) -> Result<Machine> {
        let text = self.models.as_deref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((first, second)) = text.split_once(',') else {
            let remedy = "pass --models FIRST,SECOND, such as prefill.json,decode.json";
            return Err(Error::input("--mix", format!("\"{text}\" is one file, not two"), remedy));
        };
        let (first, second) = (read_models(Path::new(first))?, read_models(Path::new(second))?);
        let platform = self.platform()?.unwrap_or_else(|| Platform::from_names(&first.names()));
        let [first, second] = [first.in_order(&platform.names())?, second.in_order(&platform.names())?];
        Ok(Machine::new(platform, mix_models(&first, &second, weight)?, 1))
    }

    /// Processors whose speeds the flags and files give, for work of this unit.
    ///
    /// # Errors
    /// No source of speeds, or a processor without one.
    pub fn machine(&self, work: WorkUnit) -> Result<Machine> {
        self.load(None)?.given_machine(work)
    }
}
