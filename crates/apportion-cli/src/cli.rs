//! The command line: global flags and the commands.

use crate::args::{AdvectArgs, ClosureArgs, FactorArgs, MatmulArgs, PowerArgs, SolveArgs, SpmvArgs};
use crate::commands::arrange::ArrangeArgs;
use crate::commands::balance::BalanceArgs;
use crate::commands::completions::{CompletionsArgs, ManArgs};
use crate::commands::demo::DemoArgs;
use crate::commands::detect::DetectArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::mdem::MdemArgs;
use crate::commands::measure::MeasureArgs;
use crate::commands::merge::MergeArgs;
use crate::commands::partition::PartitionArgs;
use crate::commands::plot::PlotArgs;
use crate::commands::random::RandomArgs;
use crate::commands::report::ReportArgs;
use crate::commands::run::RunArgs;
use crate::commands::simulate::SimulateArgs;
use crate::commands::study::StudyArgs;
use clap::{Parser, Subcommand};

/// Divides a computation among unequal processors so that all finish together and little data moves.
#[derive(Debug, Parser)]
#[command(name = "apportion", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  apportion run --units 4M --command './work {from} {to}'\n  \
    apportion partition --units 1000 --speeds 9:1\n  apportion matmul A.npy B.npy -o C.npy\n\
    Numbers may be written 1e6, 100k or 2.5M. docs/reference describes the files.\n\
    Exit codes: 0 success; 1 the work failed (wrong result, lost worker, no feasible plan); 2 \
    bad usage or input; 130 ended by Ctrl-C.")]
pub struct Arguments {
    /// Print exactly one JSON object to stdout.
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Print no progress and no notes to stderr.
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// Print more detail to stderr.
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Describe this machine's processors.
    Detect(DetectArgs),
    /// Say what this machine has and lacks for apportion, and what installs it.
    Doctor(DoctorArgs),
    /// Measure processors' speeds by problem size, or the network between them.
    Measure(Box<MeasureArgs>),
    /// Merge the speed functions of several hosts into one file.
    Merge(MergeArgs),
    /// Find the shares of your program by running it; needs no models.
    Balance(Box<BalanceArgs>),
    /// Run your program on N units, divided while it runs.
    Run(Box<RunArgs>),
    /// Divide units of work, a matrix product or a graph among processors.
    Partition(Box<PartitionArgs>),
    /// Draw speed functions, and the line on which shares finish together.
    Plot(PlotArgs),
    /// Place a plan's parts on a network to reduce communication.
    Arrange(ArrangeArgs),
    /// Multiply two matrices on unequal processors, verified.
    ///
    /// Compares forecast and measured time.
    #[command(alias = "product")]
    Matmul(Box<MatmulArgs>),
    /// Raise a matrix to a power over a semiring.
    Power(Box<PowerArgs>),
    /// Find all-pairs paths of a graph: shortest, longest, or reachability.
    Closure(Box<ClosureArgs>),
    /// Factor a matrix on unequal processors (Cholesky, LU, L D L^T), verified.
    Factor(Box<FactorArgs>),
    /// Solve a linear system on unequal processors, verified.
    Solve(Box<SolveArgs>),
    /// Multiply a vector by a sparse matrix, or solve by such products, verified.
    Spmv(Box<SpmvArgs>),
    /// Advect a field with MPDATA on unequal processors.
    Advect(Box<AdvectArgs>),
    /// Simulate a production cell or a timetable from rules (MDEM).
    Mdem(Box<MdemArgs>),
    /// Forecast a plan's run without running it, or along a parameter.
    Simulate(Box<SimulateArgs>),
    /// Compare layouts with their lower bound for random speeds.
    Study(StudyArgs),
    /// Make a page about results: plan, timeline, where the time went.
    Report(ReportArgs),
    /// Write a matrix of random numbers.
    Random(RandomArgs),
    /// Divide a product and a program among one new and two old machines, emulated.
    Demo(DemoArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write man pages.
    #[command(hide = true)]
    Man(ManArgs),
}
