//! `apportion run` where units are divided while they run.

use super::run::platform;
use super::run::{OrderName, RunArgs};
use crate::args::units::units_of;
use crate::console::{Console, monitor};
use crate::output::run_once::{text, value};
use crate::output::{appear, open};
use apportion::error::{Error, Result};
use apportion::measure::{JobLog, PieceObserver, UnitsJob, UnitsReport, run_units_once};
use apportion::platform::Platform;
use apportion::run::World;
use std::sync::Arc;

/// Passes on what programs print.
struct Speaker(Console);

impl PieceObserver for Speaker {
    fn line(&self, processor: &str, line: &str) {
        self.0.note(format!("{processor}: {line}"));
    }

    fn text(&self, text: &[u8]) -> Result<()> {
        self.0.pass_on(text)
    }

    fn note(&self, note: &str) {
        self.0.note(note);
    }
}

/// This process's part of the run of all units, those of a plan if one is given.
pub fn run_once(
    args: &RunArgs,
    planned: Option<(UnitsJob, Platform)>,
    world: &World,
    speaker: Console,
    console: &Console,
) -> Result<()> {
    let first = world.rank() == 0;
    let command = world.all_ok(args.program.required())?;
    let (job, platform) = match planned {
        Some((job, platform)) => {
            let path = args.costs.as_deref();
            let costs = units_of(Some(job.units), path).and_then(|units| units.of_one_kind(path));
            let costs = world.all_ok(costs)?.map_or(job.costs, |costs| Some(costs.into()));
            (UnitsJob { costs, ..job }, platform)
        }
        None => {
            if args.units.is_none() && args.costs.is_none() {
                let remedy = "give the number of units, --costs FILE, or --plan FILE";
                return world.all_ok(Err(Error::input("--units", "is missing", remedy)));
            }
            let units = world.all_ok(units_of(args.units, args.costs.as_deref()))?;
            let count = units.count;
            let costs = world.all_ok(units.of_one_kind(args.costs.as_deref()))?;
            let platform = platform(args, world)?;
            let hints = args.speeds.as_ref().map(|given| given.0.iter().map(|speed| speed.value()).collect());
            let costs = costs.map(Into::into);
            (UnitsJob { units: count, hints, costs, ..UnitsJob::default() }, platform)
        }
    };
    let job = UnitsJob {
        retries: args.retries.unwrap_or(0),
        halt: args.halt.map_or_else(Default::default, Into::into),
        text_at_ends: args.order == Some(OrderName::End),
        measure_alone: args.measure_alone,
        ..job
    };
    let open_log = |path| match args.resume {
        true => JobLog::resume(path, job.units),
        false => JobLog::create(path),
    };
    let files = || match first {
        true => Ok((args.joblog.as_ref().map(open_log).transpose()?, open(args.output.as_ref())?)),
        false => Ok((None, None)),
    };
    let (log, plan_file) = world.all_ok(files())?;
    let monitor = monitor();
    let observer = Arc::new(Speaker(speaker));
    let ran =
        console.watch("running", monitor, || run_units_once(&job, &platform, &command, log, observer, world));
    // After an interruption there is no time to ask the others.
    let ran = if monitor.is_stopped() { ran } else { world.all_ok(ran) }?;
    let outcome = match &ran {
        Some(report) => {
            let plan = report.plan.as_ref().filter(|_| report.done > 0);
            if let Some(plan) = plan {
                appear([(plan_file, &|| plan.to_json())])?;
            }
            let summary = text(report, args.output.as_deref().filter(|_| plan.is_some()));
            if console.is_json() {
                console.result(|| value(report), String::new);
            } else if report.done == report.units {
                console.note(summary.trim_end());
            }
            verdict(args, report)
        }
        None => Ok(()),
    };
    if monitor.is_stopped() { outcome } else { agree(outcome, world) }
}

/// Tells all ranks the error of rank 0, which is that of the run.
fn agree(outcome: Result<()>, world: &World) -> Result<()> {
    if world.is_solo() {
        return outcome;
    }
    let mine = outcome
        .as_ref()
        .err()
        .map_or_else(Vec::new, |error| [&[error.exit_code()], error.to_string().as_bytes()].concat());
    match world.broadcast(&mine)?.split_first() {
        None => Ok(()),
        Some((&code, text)) => Err(Error::Agreed { text: String::from_utf8_lossy(text).into_owned(), code }),
    }
}

/// The error of a run that has not done all, and how to go on.
fn verdict(args: &RunArgs, report: &UnitsReport) -> Result<()> {
    let first = report.failed.first().map(|failed| &failed.error).or(report.lost.first());
    if report.done == report.units {
        return Ok(());
    }
    let mut kept = format!("{} of {} units are done", report.done, report.units);
    if report.failed.len() > 1 {
        let names: Vec<String> =
            report.failed.iter().skip(1).map(|failed| failed.piece.to_string()).collect();
        kept += &format!("; failed as well: pieces {}", names.join(", "));
    }
    kept += &match &args.joblog {
        Some(path) => format!("; to go on: the same command with --joblog {} --resume", path.display()),
        None => "; with --joblog FILE, --resume can go on".into(),
    };
    match first {
        Some(error) if !monitor().is_stopped() => {
            Err(Error::Agreed { text: error.to_string(), code: error.exit_code() }.with_kept(&kept))
        }
        _ => Err(Error::Interrupted.with_kept(&kept)),
    }
}
