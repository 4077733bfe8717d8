//! What may be typed. Raw values only: the commands resolve them.

use apportion::Flow;
use clap::{Args, Parser, Subcommand, ValueEnum};
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
    Detect(Detect),
    /// Build speed functions: how fast each processor is, as a function of problem size.
    Measure(Measure),
    /// Divide units of work, or a matrix, among processors.
    Partition(Partition),
    /// Multiply two matrices on unequal processors, verified, predicted beside measured.
    Matmul(Box<Matmul>),
    /// Run a plan's schedule against a clock: what it would take, without running it.
    Simulate(Simulate),
    /// See unequal processors finish together: three plans side by side on an emulated 9:1 machine.
    Demo(Demo),
}

#[derive(Debug, Args)]
pub struct Detect {
    /// Write a platform file.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The kernels that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KernelName {
    /// Matrix product in double precision.
    #[value(name = "gemm-f64", alias = "gemm")]
    GemmF64,
    /// Matrix product in single precision.
    #[value(name = "gemm-f32")]
    GemmF32,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: apportion measure --platform platforms/two-unequal.toml --kernel gemm-f64 -o models.json"
)]
pub struct Measure {
    /// The processors; default: this machine's cores.
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,
    /// What to measure.
    #[arg(long, value_enum, default_value = "gemm-f64")]
    pub kernel: KernelName,
    /// Write the models (models.json).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sizes to measure: elements of C updated by one pivot block.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', conflicts_with = "points")]
    pub sizes: Option<Vec<f64>>,
    /// Number of sizes, spaced evenly in scale up to 4 million elements.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub points: u64,
    /// Pivot block size.
    #[arg(long, value_name = "N", default_value_t = BLOCK, value_parser = clap::value_parser!(u64).range(1..=65536))]
    pub block: u64,
    /// Repeat until the 95 % interval is within this fraction of the mean.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.025)]
    pub tolerance: f64,
    /// At most so many repetitions of a size.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub max_repetitions: u64,
    /// At most about so many seconds on a size.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub max_seconds: f64,
    /// One processor after the other, instead of all together.
    #[arg(long)]
    pub alone: bool,
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
    /// one-to-all, bulk, or auto: the one with the least forecast time.
    #[arg(long, default_value = "auto", value_parser = flow)]
    pub flow: FlowChoice,
    /// Compute while data travel.
    #[arg(long)]
    pub overlap: bool,
    /// Pivot block size.
    #[arg(long, value_name = "N", default_value_t = BLOCK, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub block: u64,
}

/// A flow, or the choice left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowChoice(pub Option<Flow>);

fn flow(text: &str) -> Result<FlowChoice, String> {
    if text == "auto" {
        return Ok(FlowChoice(None));
    }
    text.parse().map(|f| FlowChoice(Some(f)))
}

/// Whether links carry one transfer at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CommunicationName {
    Serial,
    Parallel,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion partition --units 1000 --speeds 9,1\n  \
    apportion partition --shape 1000x1000 --speeds 9,1 --method square-corner --svg plan.svg\n\
    Methods for --units: even, proportional, fpm. For --shape: rows, straight-line, columns, square-corner, hybrid, auto.")]
pub struct Partition {
    /// Divide this many independent units.
    #[arg(long, value_name = "N", required_unless_present = "shape", conflicts_with = "shape")]
    pub units: Option<u64>,
    /// Lay out a matrix product: MxN (then k = n) or MxKxN.
    #[arg(long, value_name = "MxN|MxKxN")]
    pub shape: Option<String>,
    #[command(flatten)]
    pub sources: Sources,
    /// The method; default: fpm for units, auto (least forecast time) for a shape.
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// For hybrid: one transfer at a time, or both directions at once; default: as the platform's links.
    #[arg(long, value_enum)]
    pub communication: Option<CommunicationName>,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Write the plan (plan.json).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw the plan.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: apportion matmul A.npy B.npy -o C.npy --platform platforms/two-unequal.toml --svg plan.svg"
)]
pub struct Matmul {
    /// Left factor, m x k (.npy f32 or f64, or .mtx).
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Right factor, k x n.
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Where the product goes (.npy); without it the product is verified and dropped.
    #[arg(long, short, value_name = "C")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub sources: Sources,
    /// Run this plan instead of making one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speeds", "method"])]
    pub plan: Option<PathBuf>,
    /// Layout method; default: auto, the least forecast time.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: String,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Measure anew instead of using the cached speed functions.
    #[arg(long)]
    pub fresh: bool,
    /// The algebra.
    #[arg(long, value_enum, default_value = "plus-times")]
    pub semiring: SemiringName,
    /// What runs the schedule.
    #[arg(long, value_enum, default_value = "threads")]
    pub engine: EngineName,
    /// Seed of the verification's random vectors.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write what happened (run.json).
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write a Chrome trace, one lane per processor.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Draw the plan.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// The algebras that can be multiplied in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SemiringName {
    PlusTimes,
}

/// The engines that run a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    Threads,
}

#[derive(Debug, Args)]
pub struct Simulate {
    /// The plan.
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// Processors and network.
    #[arg(long, value_name = "FILE")]
    pub platform: PathBuf,
    /// Speed functions; default: the platform's constant speeds.
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Bytes of one element.
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub element: u64,
    /// Write a Chrome trace of the forecast.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Rows and columns of the matrices.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(16..=20000))]
    pub size: u64,
    /// Where plan.svg and trace.json go.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
}
