//! From the flags of `advect` to the library's task.

use crate::args::{AdvectArgs, EngineName};
use apportion::error::{Error, Result};
use apportion::job::parse_choice;
use apportion::output::is_stream;
use apportion_advect::{AdvectTask, ArraySource, CourantSource, Frames};
use std::path::Path;

/// The files among the Courant numbers of `--courant`.
pub fn courant_files(courant: &str) -> impl Iterator<Item = &Path> {
    courant.split(',').map(str::trim).filter(|text| text.parse::<f64>().is_err()).map(Path::new)
}

/// The Courant numbers of `--courant`, by axis.
fn courant_sources(courant: &str) -> Result<Vec<CourantSource<'static>>> {
    let one = |(axis, text): (usize, &str)| match text.trim().parse::<f64>() {
        Ok(constant) if constant.is_finite() => Ok(CourantSource::Constant(constant)),
        Ok(_) => {
            let what = format!("{} along axis {axis} is not finite", text.trim());
            Err(Error::input("--courant", what, "give a number such as 0.25"))
        }
        Err(_) => Ok(CourantSource::Faces(ArraySource::File(text.trim().into()))),
    };
    courant.split(',').enumerate().map(one).collect()
}

impl AdvectArgs {
    /// The task of the library.
    ///
    /// # Errors
    /// Flags that do not go together; a file of processors or speeds that cannot be read.
    pub fn task<'a>(&self, frames: Option<&'a dyn Frames>) -> Result<AdvectTask<'a>> {
        self.refuse()?;
        let reports = [&self.report, &self.trace, &self.svg];
        Ok(AdvectTask {
            boundary: self.scheme.boundaries()?,
            scheme: self.scheme.scheme()?,
            method: parse_choice("--method", &self.method)?,
            orders: self.scheme.orders(self.overlap),
            output: self.output.clone(),
            reports: reports.into_iter().flatten().cloned().collect(),
            every: self.every,
            frames,
            memory: self.memory,
            checkpoint: self.checkpoint.clone(),
            resume: self.resume.clone(),
            sources: self.sources.load(self.plan.as_deref())?,
            remeasure: self.remeasure,
            keeps_events: self.trace.is_some(),
            ..AdvectTask::new(
                ArraySource::File(self.field.clone()),
                courant_sources(&self.courant)?,
                self.steps,
            )
        })
    }

    /// Refuses flags that need others.
    fn refuse(&self) -> Result<()> {
        let kept = self.output.is_some() || self.checkpoint.is_some() || self.resume.is_some();
        if self.every.is_some() && !kept && self.frames.is_none() {
            return Err(Error::input("--every", "nothing is written", "add -o, --frames or --checkpoint"));
        }
        if let (Some(_), Some(output)) = (self.every, &self.output)
            && is_stream(output)
        {
            let what = format!("{} has no name beside which fields could be written", output.display());
            return Err(Error::input("--every", what, "name a file by -o"));
        }
        if self.memory.is_some() && !kept && self.engine.name() != EngineName::Mpi {
            let what = "the states between two sweeps need a place on a disk";
            return Err(Error::input("--memory", what, "add -o or --checkpoint: they are kept beside it"));
        }
        Ok(())
    }
}
