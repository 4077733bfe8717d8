//! The command line: what every command takes, and the commands.

use crate::commands::{
    arrange, balance, closure, demo, detect, matmul, measure, partition, plot, power, simulate, study,
};
use clap::{Parser, Subcommand};

/// Divides a computation among unequal processors so that all finish together with as little data moved as
/// possible.
#[derive(Debug, Parser)]
#[command(name = "apportion", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Start with `apportion demo`. Files and exit codes: see the README.\n\
    Exit codes: 0 done, 1 the work failed (wrong result, worker lost, no feasible plan), 2 bad usage or input.")]
pub struct Arguments {
    /// Print exactly one JSON object on stdout.
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress and no notes on stderr.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Tell more on stderr.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Describe this machine's processors.
    Detect(detect::Arguments),
    /// Build speed functions: how fast each processor is, as a function of problem size.
    Measure(measure::Arguments),
    /// Divide units of work by running your program: no models needed.
    Balance(balance::Arguments),
    /// Divide units of work, or a matrix, among processors.
    Partition(Box<partition::Arguments>),
    /// Draw speed functions, and the line through the origin on which shares end together.
    Plot(plot::Arguments),
    /// Move a plan's parts to places where they communicate for less.
    Arrange(arrange::Arguments),
    /// Multiply two matrices on unequal processors, verified, predicted beside measured.
    Matmul(Box<matmul::Arguments>),
    /// Take a matrix to a power over a semiring, by repeated squaring on unequal processors.
    Power(Box<power::Arguments>),
    /// All paths of a graph: shortest, longest, or whether there is one.
    Closure(Box<closure::Arguments>),
    /// Run a plan's schedule against a clock: what it would take, without running it.
    Simulate(Box<simulate::Arguments>),
    /// How near layouts of random speeds come to the lower bound: the Monte Carlo study of the literature.
    Study(study::Arguments),
    /// See unequal processors finish together: three plans side by side on an emulated 9:1 machine.
    Demo(demo::Arguments),
}
