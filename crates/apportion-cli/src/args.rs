//! What may be typed, shared by several commands; each command declares its own flags in its file.

use crate::commands::{
    arrange, balance, closure, demo, detect, matmul, measure, partition, plot, power, simulate, study,
};
use apportion::error::{Error, Result};
use apportion::schedule::{Carrier, Flow, ScheduleOptions};
use apportion::select::{MemoryPolicy, orders};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

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

/// Default pivot block size: where the gemm kernel is at its best.
pub const BLOCK: u64 = 256;

/// Where speeds come from.
#[derive(Debug, Args)]
pub struct Sources {
    /// Relative speeds, one per processor: 9,1.
    #[arg(long, value_name = "S,S,…", value_delimiter = ',', allow_negative_numbers = true)]
    pub speeds: Option<Vec<f64>>,
    /// Speed functions (models.json).
    #[arg(long, value_name = "FILE", conflicts_with = "speeds")]
    pub models: Option<PathBuf>,
    /// Processors and network (platform.toml).
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,
}

/// How operands travel and in which blocks.
#[derive(Debug, Args)]
pub struct FlowArgs {
    /// one-to-all, ring, bulk, broadcast, or auto: the one with the least forecast time.
    #[arg(long, default_value = "auto", value_parser = flow)]
    pub flow: FlowChoice,
    /// Compute while data travel.
    #[arg(long)]
    pub overlap: bool,
    /// Pivot blocks that travel during an update, each at the cost of one more block's memory; implies --overlap.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub look_ahead: Option<u64>,
    /// Pivot block size [default: 256, or less where a processor's memory asks for it].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub block: Option<u64>,
    /// Instead of --block: in how many messages a processor broadcasts its part (broadcast flow); each takes 1/N of the
    /// memory. By default as few as fit, of at most 256 rows of B.
    #[arg(long, value_name = "N", conflicts_with = "block", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub blocks: Option<u64>,
}

impl FlowArgs {
    /// Pivot block size, as asked for or by default.
    pub fn block(&self) -> u64 {
        self.block.unwrap_or(BLOCK)
    }

    /// What is done where a processor would hold more than its memory: what was asked for stays.
    pub fn fit(&self, carrier: Carrier) -> MemoryPolicy {
        match (self.block, self.blocks) {
            (None, None) => MemoryPolicy::SmallerBlocks(carrier),
            _ => MemoryPolicy::AsAsked(carrier),
        }
    }

    /// Whether to overlap.
    pub fn overlaps(&self) -> bool {
        self.overlap || self.look_ahead.is_some()
    }

    /// Pivot blocks under way during an update.
    ///
    /// # Errors
    /// Asked for with the bulk flow, which has none.
    pub fn look_ahead(&self) -> Result<u64> {
        match (self.look_ahead, self.flow.0) {
            (Some(_), Some(Flow::Bulk)) => Err(Error::input(
                "--look-ahead",
                "the bulk flow sends everything at once and has no pivot blocks to look ahead to",
                "leave it out, or choose another flow",
            )),
            (ahead, _) => Ok(ahead.unwrap_or(1)),
        }
    }

    /// Pivot block size for an inner dimension of `k`.
    ///
    /// # Errors
    /// A block count for another flow than broadcast.
    pub fn pivot(&self, k: u64) -> Result<u64> {
        match (self.blocks, self.flow.0) {
            (None, _) => Ok(self.block()),
            (Some(blocks), Some(Flow::Broadcast)) => Ok(k.div_ceil(blocks)),
            (Some(_), _) => Err(Error::input(
                "--blocks",
                "counts the messages of the broadcast flow, which was not asked for",
                "add --flow broadcast, or give --block N, the size of a pivot block",
            )),
        }
    }

    /// The orders to choose from, for an inner dimension of `k`.
    ///
    /// # Errors
    /// As [`FlowArgs::look_ahead`] and [`FlowArgs::pivot`].
    pub fn orders(&self, k: u64) -> Result<Vec<ScheduleOptions>> {
        Ok(orders(self.flow.0, self.pivot(k)?, self.overlaps(), self.look_ahead()?))
    }
}

/// A flow, or the choice left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowChoice(pub Option<Flow>);

fn flow(text: &str) -> std::result::Result<FlowChoice, String> {
    if text == "auto" {
        return Ok(FlowChoice(None));
    }
    text.parse().map(|f| FlowChoice(Some(f)))
}
