//! `apportion run`.

use crate::args::{EngineName, RunArgs};
use crate::console::{Console, monitor};
use crate::output::run::{text, value};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{InputFiles, check_world_size, in_plan_order, in_rank_order, processors_by_name};
use apportion::measure::{UnitsRun, run_units};
use apportion::plan::{Plan, read_plan};
use apportion::platform::{Platform, read_platform};
use apportion::run::World;

pub fn run(args: &RunArgs, console: &Console) -> Result<()> {
    let files = std::iter::once(args.plan.as_path()).chain(args.platform.as_deref()).collect();
    let inputs = InputFiles { files, ..InputFiles::default() };
    // Every rank passes on what its program prints.
    let speaker = *console;
    on_engine((EngineName::of(None), None), &inputs, console, |world, console| {
        on_world(args, world, speaker, console)
    })
}

/// This process's part: a single process runs the programs of all processors, a rank its own.
fn on_world(args: &RunArgs, world: &World, speaker: Console, console: &Console) -> Result<()> {
    let command = world.all_ok(args.program.required())?;
    let plan = world.all_ok(read_plan(&args.plan))?;
    let platform = platform(&plan, args, world)?;
    let monitor = monitor();
    let line = move |processor: &str, text: &str| speaker.note(format!("{processor}: {text}"));
    let runs = console.watch("running", monitor, || {
        let runs = run_units(&plan, &platform, &command, line, world);
        // After an interruption there is no time to ask the others.
        if monitor.is_stopped() { runs } else { world.all_ok(runs) }
    })?;
    let idle: Vec<&str> = runs.iter().filter(|r| r.outcome.is_none()).map(|r| r.processor.as_str()).collect();
    if !idle.is_empty() {
        console.note(format!("not started, since their shares are 0: {}", idle.join(", ")));
    }
    if world.rank() == 0 {
        console.result(|| value(&plan, &runs), || text(&plan, &runs));
    }
    let verdict = verdict(runs);
    if monitor.is_stopped() { verdict } else { world.all_ok(verdict) }
}

/// The processors of the plan. This machine's cores are pinned.
fn platform(plan: &Plan, args: &RunArgs, world: &World) -> Result<Platform> {
    let Some(path) = &args.platform else { return processors_by_name(&plan.processors, world) };
    let mut platform =
        world.all_ok(read_platform(path).and_then(|platform| in_plan_order(plan, platform)))?;
    if world.is_solo() {
        return Ok(platform);
    }
    world.all_ok(check_world_size(world, platform.len()))?;
    // The ranks are on the machines.
    platform.processors.iter_mut().for_each(|processor| processor.start.clear());
    world.all_ok(in_rank_order(platform, true, world))
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
