//! `apportion mdem`.

use super::RunningArgs;
use super::numbers::{seconds, within};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 for a deadlock, whose circular wait is printed; with --allow-deadlock it is a \
    result like others.\nThe logic step (rules x places x scenarios) runs on one core; with --speeds, --models, \
    --platform, --plan or under MPI it is a product on these processors.\n\
    Example: apportion mdem examples/mdem/tacconi-lewis.toml --gantt cell.svg -o events.csv"
)]
pub struct MdemArgs {
    /// The workcell: jobs, resources, parts, rules (docs/reference/workcell-file.md).
    #[arg(value_name = "WORKCELL")]
    pub workcell: PathBuf,
    /// End of the simulated time, such as 3600, "90 s" or "8 h" [default: until nothing more happens].
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = seconds,
        help_heading = "Simulation")]
    pub until: Option<f64>,
    /// Number of rule firings after which a simulation ends.
    #[arg(long, value_name = "N", default_value = "100000", value_parser = within(1..=5_000_000),
        help_heading = "Simulation")]
    pub firings: u64,
    /// Simulations of the workcell and of each scenario, with random durations of their own (by --seed).
    #[arg(long, value_name = "N", default_value = "1", value_parser = within(1..=1_000_000),
        help_heading = "Simulation")]
    pub replications: u64,
    /// The scenario whose events, Gantt chart and max-plus system are printed and written [default: the
    /// workcell as written].
    #[arg(long, value_name = "NAME", help_heading = "Simulation")]
    pub scenario: Option<String>,
    /// Treat a deadlock as a result: exit code 0, and the files are written.
    #[arg(long, help_heading = "Simulation")]
    pub allow_deadlock: bool,
    /// Output file for the event list (.csv or .json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Output file for the Gantt chart (.svg).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub gantt: Option<PathBuf>,
    /// Directory for the matrices F_v, F_r, F_u, F_D, S_v, S_r, S_y (.npy of bool); it is created.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub matrices: Option<PathBuf>,
    /// Output file for the matrix A of the max-plus system x(k) = A x(k - 1), in seconds (.npy), where the
    /// workcell is a timed event graph.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub max_plus: Option<PathBuf>,
    #[command(flatten)]
    pub running: RunningArgs,
}
