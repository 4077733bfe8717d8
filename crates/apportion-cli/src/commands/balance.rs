//! `apportion balance`.

use super::measure::world_processors;
use crate::args::numbers::{self, Wholes, within, within_u32};
use crate::args::program::PLACEHOLDERS;
use crate::args::units::{limits_of, units_of};
use crate::args::{EngineName, ExportArgs, ProgramArgs};
use crate::console::{Console, monitor};
use crate::output::balance::{cap_text, headline, text, value};
use crate::output::provenance::add_machine;
use crate::output::{appear, open};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{InputFiles, processors_by_name};
use apportion::measure::{Balance, BalanceOptions, ShareCap, balance};
use apportion::model::read_models;
use apportion::output::OutputFile;
use apportion::platform::{Grouping, Platform};
use apportion::run::World;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(override_usage = "apportion balance --units N --command COMMAND [OPTIONS]\n       \
    apportion balance --units N [OPTIONS] -- PROGRAM ARGS")]
#[command(after_help = help())]
pub struct BalanceArgs {
    /// Number of independent units to divide.
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), required_unless_present = "costs",
        help_heading = "What is divided")]
    pub units: Option<u64>,
    /// Cost of each unit (text with one number a line, or 1-D .npy): parts are contiguous, and balanced by it.
    /// --units may be left out.
    #[arg(long, value_name = "FILE", help_heading = "What is divided")]
    pub costs: Option<PathBuf>,
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Read the processors from this file (platform.toml) [default: this machine's cores].
    #[arg(long, value_name = "FILE", conflicts_with = "processors", help_heading = "Processors and speeds")]
    pub platform: Option<PathBuf>,
    /// Number of unpinned processors (named p0, p1, …).
    #[arg(long, value_name = "N", value_parser = within(1..=4096), help_heading = "Processors and speeds")]
    pub processors: Option<u64>,
    /// Start from these speed functions (models.json) instead of equal shares. Their size limits hold; the
    /// first round corrects their speeds.
    #[arg(long, value_name = "FILE", help_heading = "Processors and speeds")]
    pub models: Option<PathBuf>,
    /// Minimum share: one number for all processors, or one for each.
    #[arg(long, value_name = "N,N,…", value_parser = numbers::wholes, help_heading = "Measuring")]
    pub min: Option<Wholes>,
    /// Maximum share: one number for all processors, or one for each.
    #[arg(long, value_name = "N,N,…", value_parser = numbers::wholes, help_heading = "Measuring")]
    pub max: Option<Wholes>,
    /// Largest relative difference between processors' times that counts as balanced.
    #[arg(long, value_name = "FRACTION", default_value = "0.05", value_parser = numbers::number,
        help_heading = "For experts")]
    pub tolerance: f64,
    /// Maximum number of rounds.
    #[arg(long, value_name = "N", default_value = "20", value_parser = within_u32(1..=10_000),
        help_heading = "For experts")]
    pub max_rounds: u32,
    /// Number of first rounds whose times are not believed.
    #[arg(long, value_name = "N", default_value = "0", value_parser = within_u32(0..=10_000),
        help_heading = "For experts")]
    pub warm_up: u32,
    /// Run all units on the fastest processor alone, too, to measure its time.
    #[arg(long, help_heading = "For experts")]
    pub measure_alone: bool,
    /// Number of runs in each round; the median time counts.
    #[arg(long, value_name = "N", default_value = "1", value_parser = within_u32(1..=10_000),
        help_heading = "For experts")]
    pub repetitions: u32,
    /// Write the shares to this file (plan.json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Write the speed functions learnt to this file (models.json).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub models_out: Option<PathBuf>,
    #[command(flatten)]
    pub export: ExportArgs,
}

fn help() -> String {
    format!(
        "Examples:\n  \
        apportion balance --units 100k --processors 4 --command './work {{share}}' -o plan.json\n  \
        apportion balance --units 1e6 --models models.json --models-out new.json -- ./work {{from}} {{to}}\n\
        The first round gives equal shares or, with --models, the shares of the speed functions. Each \
        further round divides the units by all times seen so far (DFPA): from the second one on, by start-up and \
        time per unit of each processor. A round that takes 1.25 times as long as expected is run again. The search \
        ends when the times of all processors are within the tolerance of each other, nothing better can be \
        found, or --max-rounds have been run. Each round is printed when it ends. The round whose longest time is the shortest \
        is kept; a balanced last round also if it took longer by no more than the tolerance.\n\
        A program that fails at a larger share than one that worked on that processor has no memory for \
        it: the search goes on below that share, and finds the largest one that works. --min and --max \
        limit the shares beforehand.\n\
        Exit codes: 0, even if the tolerance was not reached: the best shares found are written, and \
        --json has \"balanced\": false. 1 if a command fails otherwise, 130 after Ctrl-C: the best shares \
        of the rounds that had ended are printed and written. 2 for bad usage.\n\
        Under mpirun, each rank runs the program of its own processor.\n\
        {PLACEHOLDERS} A processor's slowdown multiplies the time of its program."
    )
}

pub fn run(args: &BalanceArgs, console: &Console) -> Result<()> {
    if !(args.tolerance > 0.0 && args.tolerance.is_finite()) {
        let what = format!("{} is not a positive fraction", args.tolerance);
        return Err(Error::input("--tolerance", what, "use 0.05"));
    }
    let files =
        [&args.platform, &args.models, &args.costs].into_iter().filter_map(|path| path.as_deref()).collect();
    let inputs = InputFiles { files, ..InputFiles::default() };
    on_engine((EngineName::of(None), None), &inputs, console, |world, console| on_world(args, world, console))
}

/// This process's part: a single process runs the programs of all processors, a rank its own.
fn on_world(args: &BalanceArgs, world: &World, console: &Console) -> Result<()> {
    let first = world.rank() == 0;
    let command = world.all_ok(args.program.required())?;
    let units = world.all_ok(units_of(args.units, args.costs.as_deref()))?;
    let count = units.count;
    let costs = world.all_ok(units.of_one_kind(args.costs.as_deref()))?;
    let known = world.all_ok(args.models.as_deref().map(read_models).transpose())?;
    let platform = match (&known, &args.platform, args.processors) {
        (Some(models), None, None) => processors_by_name(&models.names(), world)?,
        _ => world_processors(args.platform.as_deref(), args.processors, Grouping::Core, world)?,
    };
    let monitor = monitor();
    let prepare = || {
        Ok(BalanceOptions {
            tolerance: args.tolerance,
            most_rounds: args.max_rounds,
            repetitions: args.repetitions,
            limits: limits_of(args.min.as_ref(), args.max.as_ref(), None, platform.len())?,
            models: known.map(|models| models.in_order(&platform.names())).transpose()?,
            costs,
            warm_up: args.warm_up,
        })
    };
    let options = world.all_ok(prepare())?;
    let opened = |path: &Option<PathBuf>| if first { open(path.as_ref()) } else { Ok(None) };
    let files = || Ok((opened(&args.output)?, opened(&args.models_out)?));
    let files = world.all_ok(files())?;
    // An export on stdout leaves no room for rounds.
    let stdout_is_free = args.export.export.is_none() || args.export.export_to.is_some();
    let name = if options.models.is_none() { "round 1, even split" } else { "round 1" };
    let mut latest: Option<Balance> = None;
    let mut each = |so_far: &Balance| {
        let (number, round) = (so_far.rounds.len(), so_far.rounds.last().expect("a round has ended"));
        if first && latest.as_ref().is_none_or(|before| before.rounds.len() < number) {
            console.early(&format!("{}\n", headline(number, round)), stdout_is_free);
            console.name_part(format!("round {}", number + 1));
        } else {
            let new = |cap: &&ShareCap| latest.as_ref().is_none_or(|before| !before.caps.contains(cap));
            for cap in so_far.caps.iter().filter(new) {
                console.note(format!("{}: the search goes on below", cap_text(cap, &platform)));
            }
        }
        latest = Some(so_far.clone());
    };
    let outcome = console
        .watch(name, monitor, || balance(&platform, &command, count, &options, &mut each, world))
        .and_then(|mut found| {
            if args.measure_alone {
                console.watch("the fastest alone", monitor, || {
                    found.measure_alone(&platform, &command, args.repetitions, world)
                })?;
                latest = Some(found);
            }
            Ok(())
        });
    let Some(found) = latest else { return world.all_ok(outcome) };
    let finished = if first { finish(args, &found, &platform, files, console) } else { Ok(()) };
    let count = found.rounds.len();
    let rounds = if count == 1 { "1 round".into() } else { format!("{count} rounds") };
    let kept = format!("the best of {rounds}, round {}, is {}", found.best + 1, places(args));
    let outcome = outcome.map_err(|error| error.with_kept(&kept));
    // After an interruption there is no time to ask the others.
    if monitor.is_stopped() { finished.and(outcome) } else { world.all_ok(finished.and(outcome)) }
}

/// Writes and prints the best shares.
fn finish(
    args: &BalanceArgs,
    found: &Balance,
    platform: &Platform,
    (plan_file, models_file): (Option<OutputFile>, Option<OutputFile>),
    console: &Console,
) -> Result<()> {
    let plan = found.plan(platform);
    appear([(plan_file, &|| plan.to_json()), (models_file, &|| format!("{}\n", found.models.to_json()))])?;
    if !found.balanced {
        console.note(format!(
            "not balanced within {}: kept round {} of {}, whose longest time is the shortest; its times \
             differ by {:.1} %",
            args.tolerance,
            found.best + 1,
            found.rounds.len(),
            100.0 * found.best_round().spread()
        ));
    }
    let export = args.export.apply(&plan, platform, console)?;
    let even = args.models.is_none();
    console.result(
        || {
            let mut value = value(found, &plan, platform, even);
            add_machine(&mut value);
            if let Some(export) = &export {
                value["export"] = export.value.clone();
            }
            value
        },
        || match export.as_ref().and_then(|export| export.text.clone()) {
            Some(exported) => exported,
            None => text(found, &plan, platform),
        },
    );
    Ok(())
}

/// Where the shares are, for an error.
fn places(args: &BalanceArgs) -> String {
    let written: Vec<String> = [&args.output, &args.models_out]
        .into_iter()
        .flatten()
        .map(|path: &PathBuf| path.display().to_string())
        .collect();
    if written.is_empty() { "printed".into() } else { format!("in {}", written.join(" and ")) }
}
