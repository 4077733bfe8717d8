//! Flags of `apportion balance`.

use super::measure::SecondsName;
use super::numbers::{self, within, within_u32};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion balance --units 100k --processors 4 --command './work {share}' -o plan.json\n  \
    apportion balance --units 1e6 --models models.json --command './work {share}' --models-out better.json\n\
    The first round gives equal shares or, with --models, the shares of the speed functions. Each further \
    round \
    divides the units by all times seen so far (DFPA), until the times of all processors are within the \
    tolerance of \
    each other or no better division can be found.\n\
    Exit codes: 0, even if the tolerance was not reached: the best shares found are written, and --json has \
    \"balanced\": false. 1 if a processor's command fails or the run is interrupted: nothing is written. 2 \
    for bad \
    usage.\n\
    The command is split into words as a shell does, but no shell runs it: use sh -c '…' for shell syntax. \
    {share} \
    (or {size}), {processor} and {rank} are replaced; APPORTION_SIZE, APPORTION_PROCESSOR and APPORTION_RANK \
    are \
    set. A processor's slowdown multiplies the time of its program.")]
pub struct BalanceArgs {
    /// Number of independent units to divide.
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX))]
    pub units: u64,
    /// Program that works on a share, such as './work {share}'.
    #[arg(long, value_name = "COMMAND")]
    pub command: String,
    /// Read the processors from this file (platform.toml) [default: this machine's cores].
    #[arg(long, value_name = "FILE", conflicts_with = "processors")]
    pub platform: Option<PathBuf>,
    /// Number of unpinned processors (named p0, p1, …).
    #[arg(long, value_name = "N", value_parser = within(1..=4096))]
    pub processors: Option<u64>,
    /// Start from these speed functions (models.json) instead of equal shares. Their size limits hold; the
    /// first round corrects their speeds.
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Source of a run's time.
    #[arg(long, value_enum, default_value = "wall")]
    pub seconds_from: SecondsName,
    /// Largest relative difference between processors' times that counts as balanced.
    #[arg(long, value_name = "FRACTION", default_value = "0.05", value_parser = numbers::number)]
    pub tolerance: f64,
    /// Maximum number of rounds.
    #[arg(long, value_name = "N", default_value = "20", value_parser = within_u32(1..=10_000))]
    pub max_rounds: u32,
    /// Number of runs in each round; the median time counts.
    #[arg(long, value_name = "N", default_value = "1", value_parser = within_u32(1..=10_000))]
    pub repetitions: u32,
    /// Write the shares to this file (plan.json).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the speed functions learnt to this file (models.json).
    #[arg(long, value_name = "FILE")]
    pub models_out: Option<PathBuf>,
}
