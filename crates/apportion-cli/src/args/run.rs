//! Flags of `apportion run`.

use super::ProgramArgs;
use super::program::PLACEHOLDERS;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(override_usage = "apportion run --plan FILE --command COMMAND [OPTIONS]\n       \
    apportion run --plan FILE [OPTIONS] -- PROGRAM ARGS")]
#[command(after_help = help())]
pub struct RunArgs {
    /// The plan of units: plan.json of `balance` or of `partition --units`.
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// Read the processors' cores, slowdowns and launchers from this file (platform.toml) [default: this
    /// machine's cores or pools, if the plan names them].
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,
    #[command(flatten)]
    pub program: ProgramArgs,
}

fn help() -> String {
    format!(
        "Examples:\n  \
        apportion run --plan plan.json --command './work {{from}} {{to}}'\n  \
        apportion run --plan plan.json --timeout 10min -- python3 work.py {{from}} {{to}} part-{{rank}}.csv\n\
        All programs start at the same time, each pinned to its processor's cores. Processor 0 has the units \
        from 0 to its share, the next one the following units. A processor without units starts nothing. \
        What the programs print goes to stderr, each line after its processor's name (-q: nowhere).\n\
        Exit codes: 1 if a program fails (the others run to their end) or runs longer than --timeout; 130 after \
        Ctrl-C, when all programs and their children are ended.\n\
        Under mpirun, each rank runs the program of its own processor.\n\
        {PLACEHOLDERS} A processor's slowdown multiplies the time of its program."
    )
}
