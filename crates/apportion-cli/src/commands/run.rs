//! `apportion run`.

use super::run_once::run_once;
use crate::args::{EngineName, RunArgs};
use crate::console::{Console, monitor};
use crate::output::run::{text, value};
use crate::prepare::run::plan_platform;
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::InputFiles;
use apportion::measure::{UnitsJob, UnitsRun, run_units};
use apportion::plan::{Plan, read_plan};
use apportion::run::World;

pub fn run(args: &RunArgs, console: &Console) -> Result<()> {
    let files =
        [&args.plan, &args.platform, &args.costs].into_iter().filter_map(|path| path.as_deref()).collect();
    let inputs = InputFiles { files, ..InputFiles::default() };
    // Every rank passes on what its program prints.
    let speaker = *console;
    on_engine((EngineName::of(None), None), &inputs, console, |world, console| {
        on_world(args, world, speaker, console)
    })
}

/// This process's part: a single process runs the programs of all processors, a rank its own.
fn on_world(args: &RunArgs, world: &World, speaker: Console, console: &Console) -> Result<()> {
    let Some(path) = &args.plan else {
        if args.fixed {
            let error =
                Error::input("--fixed", "there is no plan to keep to", "add --plan FILE, or remove it");
            return world.all_ok(Err(error));
        }
        return run_once(args, None, world, speaker, console);
    };
    let plan = world.all_ok(read_plan(path))?;
    let command = world.all_ok(args.program.required())?;
    let platform = plan_platform(&plan, args, world)?;
    let job = world.all_ok(UnitsJob::of_plan(&plan, &platform))?;
    if let Some(job) = job.filter(|_| !args.fixed) {
        return run_once(args, Some((job, platform)), world, speaker, console);
    }
    if let Some(flag) = args.dividing().first() {
        let (what, remedy) = match args.fixed {
            true => ("is for units that are divided while they run", "remove it, or --fixed"),
            false => (
                "needs a plan that knows start_up and per_unit of its processors",
                "use a plan that run --units N -o wrote, or --units N instead of --plan",
            ),
        };
        return world.all_ok(Err(Error::input(*flag, what, remedy)));
    }
    let monitor = monitor();
    let line = move |processor: &str, text: &str| speaker.note(format!("{processor}: {text}"));
    let runs = console.watch("running", monitor, || {
        let runs = run_units(&plan, &platform, &command, line, world);
        // After an interruption there is no time to ask the others.
        if monitor.is_stopped() { runs } else { world.all_ok(runs) }
    })?;
    finish(&plan, runs, world, console)
}

/// Prints what has become of a plan's programs.
fn finish(plan: &Plan, runs: Vec<UnitsRun>, world: &World, console: &Console) -> Result<()> {
    let idle: Vec<&str> = runs.iter().filter(|r| r.outcome.is_none()).map(|r| r.processor.as_str()).collect();
    if !idle.is_empty() {
        console.note(format!("not started, since their shares are 0: {}", idle.join(", ")));
    }
    if world.rank() == 0 {
        console.result(|| value(plan, &runs), || text(plan, &runs));
    }
    let verdict = verdict(runs);
    if monitor().is_stopped() { verdict } else { world.all_ok(verdict) }
}

/// The error of the programs that failed, or were stopped.
fn verdict(runs: Vec<UnitsRun>) -> Result<()> {
    let (mut finished, mut stopped, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs {
        match run.outcome {
            None => {}
            Some(Ok(_)) => finished.push(run.processor),
            Some(Err(Error::Interrupted)) => stopped.push(run.processor),
            Some(Err(error)) => failures.push((run.processor, error)),
        }
    }
    let list = |names: &[String]| if names.is_empty() { "none".into() } else { names.join(", ") };
    if !stopped.is_empty() && failures.is_empty() {
        let kept = format!("ended before: {}; stopped: {}", list(&finished), list(&stopped));
        return Err(Error::Interrupted.with_kept(&kept));
    }
    let others: Vec<String> = failures.iter().skip(1).map(|(name, _)| name.clone()).collect();
    match failures.into_iter().next() {
        None => Ok(()),
        Some((_, error)) if others.is_empty() => Err(error),
        Some((_, error)) => Err(error.with_kept(&format!("failed as well: {}", list(&others)))),
    }
}
