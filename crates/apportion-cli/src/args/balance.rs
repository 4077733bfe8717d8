//! Flags of `apportion balance`.

use super::numbers::{self, Wholes, within, within_u32};
use super::program::PLACEHOLDERS;
use super::{ExportArgs, ProgramArgs};
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
