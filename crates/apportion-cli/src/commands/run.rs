//! `apportion run`.

use super::measure::world_processors;
use super::run_once::run_once;
use crate::args::numbers::{self, Speeds, within, within_u32};
use crate::args::program::PLACEHOLDERS;
use crate::args::{EngineName, ProgramArgs};
use crate::console::{Console, monitor};
use crate::output::run::{text, value};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{
    InputFiles, check_world_size, in_plan_order, in_rank_order, processors_by_name, with_speeds,
};
use apportion::measure::{Halt, UnitsJob, UnitsRun, run_units};
use apportion::plan::{Plan, read_plan};
use apportion::platform::{Grouping, Network, Platform, Processor, discover, read_platform};
use apportion::run::World;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What to do when a piece has failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HaltName {
    /// End all programs.
    Now,
    /// Let running pieces end, begin no others.
    Soon,
    /// Run all others.
    Never,
}

impl From<HaltName> for Halt {
    fn from(name: HaltName) -> Self {
        match name {
            HaltName::Now => Self::Now,
            HaltName::Soon => Self::Soon,
            HaltName::Never => Self::Never,
        }
    }
}

/// When what a piece prints comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderName {
    /// In the order of the units.
    Units,
    /// When the piece ends.
    End,
}

#[derive(Debug, Args)]
#[command(override_usage = "apportion run --units N --command COMMAND [OPTIONS]\n       \
    apportion run --units N [OPTIONS] -- PROGRAM ARGS\n       \
    apportion run --plan FILE --command COMMAND [OPTIONS]")]
#[command(after_help = help())]
pub struct RunArgs {
    /// Number of units to run, each once.
    #[arg(long, value_name = "N", value_parser = within(1..=1 << 53), conflicts_with = "plan",
        help_heading = "What is divided")]
    pub units: Option<u64>,
    /// Cost of each unit (text with one number a line, or 1-D .npy): pieces are sized by it. --units may be left out.
    #[arg(long, value_name = "FILE", help_heading = "What is divided")]
    pub costs: Option<PathBuf>,
    /// Run the units of this plan (plan.json), and start as it says.
    #[arg(long, value_name = "FILE", help_heading = "What is divided")]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Read the processors from this file (platform.toml) [default: this machine's cores].
    #[arg(long, value_name = "FILE", conflicts_with = "processors", help_heading = "Processors and speeds")]
    pub platform: Option<PathBuf>,
    /// Number of unpinned processors (named p0, p1, …).
    #[arg(long, value_name = "N", value_parser = within(1..=4096), conflicts_with = "plan",
        help_heading = "Processors and speeds")]
    pub processors: Option<u64>,
    /// Make pools of this many cores of the machine's; programs find the number in OMP_NUM_THREADS.
    #[arg(long, value_name = "K", value_parser = within(1..=4096),
        conflicts_with_all = ["platform", "processors", "speeds"], help_heading = "Processors and speeds")]
    pub threads: Option<u64>,
    /// Hints for the sizes of the first pieces, one per processor: ratios such as 9,1.
    #[arg(long, value_name = "S,S,…", allow_negative_numbers = true, value_parser = numbers::speeds,
        conflicts_with = "plan", help_heading = "Processors and speeds")]
    pub speeds: Option<Speeds>,
    /// Order of what the pieces print [default: units].
    #[arg(long, value_enum, help_heading = "Running")]
    pub order: Option<OrderName>,
    /// Append a line to this table for each piece that ends.
    #[arg(long, value_name = "FILE", help_heading = "Memory and checkpoints")]
    pub joblog: Option<PathBuf>,
    /// Do not run units that the joblog calls done.
    #[arg(long, requires = "joblog", help_heading = "Memory and checkpoints")]
    pub resume: bool,
    /// How often units run again after a failure [default: 0].
    #[arg(long, value_name = "N", value_parser = within_u32(0..=1000), help_heading = "Running")]
    pub retries: Option<u32>,
    /// What to do when a piece has failed for good [default: soon].
    #[arg(long, value_enum, help_heading = "For experts")]
    pub halt: Option<HaltName>,
    /// With --plan, run one piece a processor as the plan says, whatever happens.
    #[arg(long, help_heading = "For experts")]
    pub fixed: bool,
    /// Run all units once more at the end, on the fastest processor alone, to tell its time.
    #[arg(long, help_heading = "For experts")]
    pub measure_alone: bool,
    /// Write the plan for the next run (plan.json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

impl RunArgs {
    /// The flags that only a run takes which divides while it runs, as far as they are given.
    pub fn dividing(&self) -> Vec<&'static str> {
        let given = [
            ("--costs", self.costs.is_some()),
            ("--order", self.order.is_some()),
            ("--joblog", self.joblog.is_some()),
            ("--retries", self.retries.is_some()),
            ("--halt", self.halt.is_some()),
            ("--measure-alone", self.measure_alone),
            ("--output", self.output.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }
}

fn help() -> String {
    format!(
        "Examples:\n  \
        apportion run --units 4M --command './work {{from}} {{to}}' >results.txt\n  \
        apportion run --units 4M --joblog jobs.tsv --resume -- ./work {{from}} {{to}}\n  \
        apportion run --plan plan.json --command './work {{from}} {{to}} part-{{piece}}.csv'\n\
        The units are run once, in pieces: each processor runs one after the other, pinned to its cores. Pieces show \
        how long a processor takes to start and for a unit, and the next are sized by that, so that all end together. \
        What pieces print to stdout comes out whole, in the order of the units; what they print to stderr is passed on, \
        each line after its processor's name (-q: nowhere), and so is the summary. With --json, stdout is for the \
        object, and the text of pieces goes to stderr.\n\
        --joblog is a table of pieces that have ended, with tabs: piece, from, to, processor, start, seconds, exit, \
        signal. A piece whose text waits for others is written when its text comes out. --resume runs the units that no \
        piece with exit 0 has.\n\
        With --plan, processors start with their shares of a plan that this command wrote (-o), and what is left is \
        divided again where one falls behind. --fixed, and plans that do not know the times of their processors, start \
        all programs at the same time, once each: the others run to their end if one fails, and all that they print \
        goes to stderr.\n\
        Exit codes: 1 if a piece has failed for good, or runs longer than --timeout; 130 after Ctrl-C, when all \
        programs and their children are ended and the joblog is complete.\n\
        Under mpirun, each rank runs the pieces of its own processor, and rank 0 hands them out.\n\
        {PLACEHOLDERS} A processor's slowdown multiplies the time of its program."
    )
}

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

/// The processors that the flags name, or this machine's cores.
///
/// # Errors
/// A file that cannot be read; speeds or ranks that are not as many as processors.
pub fn platform(args: &RunArgs, world: &World) -> Result<Platform> {
    if let Some(cores) = args.threads {
        return pools(cores, world);
    }
    let speeds = args.speeds.as_ref().map(|speeds| &speeds.0);
    match speeds {
        Some(speeds) if world.is_solo() && args.platform.is_none() && args.processors.is_none() => {
            with_speeds(None, speeds)
        }
        _ => {
            let found = world_processors(args.platform.as_deref(), args.processors, Grouping::Core, world)?;
            let found = match speeds {
                Some(speeds) => with_speeds(Some(found), speeds),
                None => Ok(found),
            };
            world.all_ok(found)
        }
    }
}

/// The processors of the plan. This machine's cores are pinned.
///
/// # Errors
/// A file that cannot be read, or processors that are not the plan's.
fn plan_platform(plan: &Plan, args: &RunArgs, world: &World) -> Result<Platform> {
    if let Some(cores) = args.threads {
        return world.all_ok(in_plan_order(plan, pools(cores, world)?));
    }
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

/// Pools of at most this many cores of one kind of this machine.
fn pools(cores: u64, world: &World) -> Result<Platform> {
    if !world.is_solo() {
        let remedy = "give each rank its cores by the launcher";
        return world.all_ok(Err(Error::input(
            "--threads",
            "the ranks have the cores of their hosts",
            remedy,
        )));
    }
    let machine = discover();
    let most = usize::try_from(cores).unwrap_or(usize::MAX);
    let groups = machine.groups(Grouping::Kind);
    let mut processors = Vec::new();
    for group in &groups {
        for part in group.cores.chunks(most) {
            processors.push(Processor {
                cluster: group.cluster.clone(),
                cores: part.iter().map(|core| core.cpu).collect(),
                ..Processor::named(format!("pool{}", processors.len()))
            });
        }
    }
    Ok(Platform { name: machine.model.clone(), processors, network: Network::free() })
}
