//! `apportion run`.

use crate::args::RunArgs;
use crate::console::{Console, monitor};
use crate::output::run::{text, value};
use apportion::error::{Error, Result};
use apportion::job::in_plan_order;
use apportion::measure::{UnitsRun, run_units};
use apportion::plan::{Plan, read_plan};
use apportion::platform::{Grouping, Platform, discover, read_platform};

pub fn run(args: &RunArgs, console: &Console) -> Result<()> {
    let command = args.program.required()?;
    let plan = read_plan(&args.plan)?;
    let platform = platform(&plan, args)?;
    let monitor = monitor();
    let speaker = *console;
    let line = move |processor: &str, text: &str| speaker.note(format!("{processor}: {text}"));
    let runs = console.watch("running", monitor, || run_units(&plan, &platform, &command, line, monitor))?;
    let idle: Vec<&str> = runs.iter().filter(|r| r.outcome.is_none()).map(|r| r.processor.as_str()).collect();
    if !idle.is_empty() {
        console.note(format!("not started, since their shares are 0: {}", idle.join(", ")));
    }
    console.result(|| value(&plan, &runs), || text(&plan, &runs));
    verdict(runs)
}

/// The processors of the plan. This machine's cores are pinned.
fn platform(plan: &Plan, args: &RunArgs) -> Result<Platform> {
    if let Some(path) = &args.platform {
        let platform = in_plan_order(plan, read_platform(path)?)?;
        // Where no name was known, the plan's names are kept.
        let mut named = platform;
        for (processor, name) in named.processors.iter_mut().zip(&plan.processors) {
            processor.name.clone_from(name);
        }
        return Ok(named);
    }
    let machine = discover().platform(Grouping::Core);
    let names = machine.names();
    let ours = plan.processors.iter().all(|name| names.contains(name));
    Ok(if ours { machine.select(&plan.processors) } else { Platform::from_names(&plan.processors) })
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
