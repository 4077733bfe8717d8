//! From the flags of `mdem` to a workcell, limits, and the variant that is shown.

use crate::args::{EngineName, MdemArgs};
use apportion::error::{Error, Result};
use apportion::kernels::Semiring;
use apportion_events::{EventOptions, Workcell, read_workcell};

/// The most simulated seconds: about 285 years.
const LONGEST: f64 = 9e9;

/// What is simulated.
pub struct Simulation {
    /// The workcell and its scenarios.
    pub workcell: Workcell,
    /// The workcell as written, then each scenario.
    pub variants: Vec<Workcell>,
    /// The number of the variant that is shown.
    pub shown: usize,
    pub options: EventOptions,
}

impl MdemArgs {
    /// Reads the workcell and checks the flags.
    ///
    /// # Errors
    /// A bad file, an unknown scenario, a flag that would have no effect.
    pub fn simulation(&self) -> Result<Simulation> {
        self.running.blas.choice().check_unused(Semiring::OrAnd)?;
        self.refuse_unused()?;
        let workcell = read_workcell(&self.workcell)?;
        let shown = match &self.scenario {
            None => 0,
            Some(name) => 1 + self.scenario_of(&workcell, name)?,
        };
        if let Some(until) = self.until.filter(|until| *until > LONGEST) {
            return Err(Error::input("--until", format!("{until} s is more than {LONGEST} s"), "give less"));
        }
        let options = EventOptions {
            until: self.until.map(|seconds| (seconds * 1e9).round() as u64),
            firings: self.firings,
            replications: self.replications,
            seed: self.running.seed,
        };
        Ok(Simulation { variants: workcell.variants(), workcell, shown, options })
    }

    fn scenario_of(&self, workcell: &Workcell, name: &str) -> Result<usize> {
        workcell.scenarios.iter().position(|scenario| scenario.name == name).ok_or_else(|| {
            let names: Vec<&str> = workcell.scenarios.iter().map(|s| s.name.as_str()).collect();
            let remedy = match names.len() {
                0 => "the workcell has no [[scenario]]".to_owned(),
                _ => format!("choose one of {}", names.join(", ")),
            };
            Error::input("--scenario", format!("there is no scenario \"{name}\""), remedy)
        })
    }

    /// True if the logic step runs on given processors.
    pub fn on_processors(&self) -> bool {
        let running = &self.running;
        let sources = &running.sources;
        let given = sources.speeds.is_some() || sources.models.is_some() || sources.platform.is_some();
        given || running.plan.is_some() || running.engine.name() == EngineName::Mpi
    }

    /// Rejects flags of a product on processors where there is none.
    fn refuse_unused(&self) -> Result<()> {
        if self.running.explain.is_some() {
            let what = "explains one product, and a simulation runs many";
            return Err(Error::input("--explain", what, "remove it"));
        }
        if self.on_processors() {
            return Ok(());
        }
        let running = &self.running;
        let mut given = vec![
            ("--method", running.method != "auto"),
            ("--remeasure", running.remeasure),
            ("--copy", running.copy),
            ("--report", running.report.is_some()),
            ("--trace", running.trace.is_some()),
            ("--svg", running.svg.is_some()),
        ];
        given.extend(running.flow.flags());
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(Error::input(
                *flag,
                "has no effect on one core",
                "add processors (--speeds 3:1, --platform, --plan), or remove it; the Gantt chart is --gantt",
            )),
        }
    }
}
