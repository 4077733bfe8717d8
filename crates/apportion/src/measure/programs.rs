//! Speed functions of a user's program.

use crate::error::{Error, Result};
use crate::measure::command::{Task, UserCommand};
use crate::measure::sweep;
use crate::measure::sweep::{Keep, Sizes, Subject, Sweep, Timing, Trial};
#[cfg(doc)]
use crate::model::Model;
use crate::model::Models;
use crate::platform::{Platform, Processor};
use crate::run::Monitor;
use crate::run::mailboxes::StopSignal;
use std::collections::BTreeMap;

/// Speed functions of a program. Each processor runs one instance at a time, pinned to its cores. All
/// processors measure together unless the options say otherwise. The first run of a size is not counted.
///
/// If the program fails at a larger size than one that worked, its memory is taken to be full: the largest
/// size that works is searched for by bisection and becomes the model's cap ([`Model::failure`]).
///
/// If one run takes longer than the time for a size, it is the only run of that size. The `slowdown` of an
/// emulated processor multiplies the seconds of its program, whether they are wall-clock seconds or printed
/// by the program; no time is spent sleeping.
///
/// # Errors
/// No size, or one that is not a positive number; a program that cannot be started (exit code 2), fails at
/// its smallest size, prints no time or takes too long (exit code 1; the message contains command, size and
/// processor); known points of another subject; errors of `keep`; interrupted.
pub fn sweep_command(
    platform: &Platform,
    command: &UserCommand,
    sweep: &Sweep<'_>,
    keep: &mut Keep<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    let refuse = |what: String| Err(Error::input("`sizes`", what, "give sizes such as 1000,10000,100000"));
    if let Sizes::Listed(sizes) | Sizes::Each(sizes) = &sweep.sizes {
        match sizes.iter().find(|size| !(size.is_finite() && **size > 0.0)) {
            Some(size) => return refuse(format!("{size} is not a positive size")),
            None if sizes.is_empty() => return refuse("no size is given".into()),
            None => {}
        }
    }
    let subject = Subject {
        platform,
        kernel: format!("command: {}", command.text()),
        unit: "{size} of the command".into(),
        parameters: BTreeMap::new(),
        rounded: |size| size,
        largest: &|_| f64::INFINITY,
    };
    let trial = |_: &Processor, rank: usize, size| Run {
        command,
        task: Task { processor: &platform.processors[rank], rank, units: 0.0..size },
        reason: None,
    };
    sweep::run(&subject, sweep, trial, keep, monitor)
}

/// One size of one processor.
struct Run<'a> {
    command: &'a UserCommand,
    task: Task<'a>,
    /// The reason of the last failure, if the program itself failed.
    reason: Option<String>,
}

impl Trial for Run<'_> {
    const FEWEST_WHEN_LATE: usize = 1;

    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
        Ok(self.time(halt)?.wall)
    }

    fn time(&mut self, halt: &StopSignal<'_>) -> Result<Timing> {
        let seconds = self.command.seconds(&self.task, None, halt).map_err(|failure| {
            self.reason = failure.reason;
            failure.error
        })?;
        Ok(Timing::of_wall(seconds))
    }

    fn too_large(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}
