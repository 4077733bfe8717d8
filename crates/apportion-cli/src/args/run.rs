//! Flags of `apportion run`.

use super::ProgramArgs;
use super::numbers::{self, Speeds, within, within_u32};
use super::program::PLACEHOLDERS;
use apportion::measure::Halt;
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
