//! Flags of `apportion measure`.

use super::numbers::{self, Numbers, within};
use super::program::PLACEHOLDERS;
use super::{BlasArgs, EngineArgs, ProgramArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The kernels that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KernelName {
    /// Matrix product, double precision.
    #[value(name = "gemm-f64", alias = "gemm")]
    GemmF64,
    /// Matrix product, single precision.
    #[value(name = "gemm-f32")]
    GemmF32,
    /// Max-plus product, double precision.
    #[value(name = "max-plus-f64", alias = "max-plus")]
    MaxPlusF64,
    /// Max-plus product, single precision.
    #[value(name = "max-plus-f32")]
    MaxPlusF32,
    /// Max-plus product, 32-bit integers.
    #[value(name = "max-plus-i32")]
    MaxPlusI32,
    /// Max-plus product, 64-bit integers.
    #[value(name = "max-plus-i64")]
    MaxPlusI64,
    /// Min-plus product, double precision.
    #[value(name = "min-plus-f64", alias = "min-plus")]
    MinPlusF64,
    /// Min-plus product, single precision.
    #[value(name = "min-plus-f32")]
    MinPlusF32,
    /// Min-plus product, 32-bit integers.
    #[value(name = "min-plus-i32")]
    MinPlusI32,
    /// Min-plus product, 64-bit integers.
    #[value(name = "min-plus-i64")]
    MinPlusI64,
    /// Boolean product.
    #[value(name = "or-and")]
    OrAnd,
    /// Upwind advection step on a grid (first pass of MPDATA), double precision.
    #[value(name = "stencil-f64", alias = "stencil")]
    StencilF64,
    /// Upwind advection step, single precision.
    #[value(name = "stencil-f32")]
    StencilF32,
    /// An MPDATA step of two passes in double precision.
    #[value(name = "mpdata-f64", alias = "mpdata")]
    MpdataF64,
    /// An MPDATA step of two passes in single precision.
    #[value(name = "mpdata-f32")]
    MpdataF32,
    /// The same with the non-oscillatory option, in double precision.
    #[value(name = "mpdata-nonoscillatory-f64")]
    MpdataNonoscillatoryF64,
    /// The same with the non-oscillatory option, in single precision.
    #[value(name = "mpdata-nonoscillatory-f32")]
    MpdataNonoscillatoryF32,
}

#[derive(Debug, Args)]
#[command(override_usage = "apportion measure [OPTIONS]\n       apportion measure [OPTIONS] -- PROGRAM ARGS")]
#[command(after_help = help())]
pub struct MeasureArgs {
    /// Measure the cost of messages between each pair of processors instead of speeds.
    #[arg(long, conflicts_with_all = ["kernel", "blas", "command", "program", "seconds_from", "timeout",
        "resume", "points", "adaptive", "smallest", "largest", "max_size", "block", "alone"],
        help_heading = "Running")]
    pub network: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Read the processors from this file (platform.toml) [default: this machine's cores].
    #[arg(long, value_name = "FILE", conflicts_with = "processors", help_heading = "Processors and speeds")]
    pub platform: Option<PathBuf>,
    /// Number of unpinned processors (named p0, p1, …).
    #[arg(long, value_name = "N", value_parser = within(1..=4096), help_heading = "Processors and speeds")]
    pub processors: Option<u64>,
    /// Kernel to measure.
    #[arg(long, value_enum, default_value = "gemm-f64", conflicts_with_all = ["command", "program"],
        help_heading = "Measuring")]
    pub kernel: KernelName,
    #[command(flatten)]
    pub blas: BlasArgs,
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Write the models to this file after every point (models.json); with --network, the platform with its
    /// links (platform.toml).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Measure the links as well, and write the platform with them to this file (platform.toml).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["network", "command", "program"],
        help_heading = "Output")]
    pub links: Option<PathBuf>,
    /// Continue from the points in the output file, if it exists.
    #[arg(long, requires = "output", help_heading = "Memory and checkpoints")]
    pub resume: bool,
    /// Sizes to measure: elements of C updated by one pivot block for a product, cells for a stencil, bytes
    /// of a message for --network.
    #[arg(long, value_name = "N,N,…", value_parser = numbers::list,
        conflicts_with_all = ["points", "adaptive", "smallest", "largest"], help_heading = "Measuring")]
    pub sizes: Option<Numbers>,
    /// Smallest size [default for kernels: 1024].
    #[arg(long, value_name = "N", value_parser = numbers::number, help_heading = "For experts")]
    pub smallest: Option<f64>,
    /// Largest size [default for kernels: 4 million].
    #[arg(long, value_name = "N", value_parser = numbers::number, help_heading = "For experts")]
    pub largest: Option<f64>,
    /// Hard cap on the size (memory): larger sizes are not measured, and the models keep it as max_size
    /// [default: none, or the largest size at which a program worked if it failed at a larger one].
    #[arg(long, value_name = "N", value_parser = numbers::number, help_heading = "For experts")]
    pub max_size: Option<f64>,
    /// Number of sizes in a geometric progression [default: 8]; with --adaptive, maximum number of sizes per
    /// processor [default: 30].
    #[arg(long, value_name = "N", value_parser = within(1..=1000), help_heading = "For experts")]
    pub points: Option<u64>,
    /// Choose the sizes for each processor from the speeds seen so far (GBBP), to need few of them.
    #[arg(long, help_heading = "Running")]
    pub adaptive: bool,
    /// Relative difference below which --adaptive treats two speeds as equal [default: 0.05]; with --units or
    /// --shape, the expected relative error of a speed at its share [default: 0.02].
    #[arg(long, value_name = "FRACTION", conflicts_with_all = ["network", "sizes", "carry_over"],
        value_parser = numbers::number, help_heading = "For experts")]
    pub accuracy: Option<f64>,
    /// Measure only what dividing this number of units needs: each next size is the one whose uncertainty
    /// costs the plan most.
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), conflicts_with_all = ["shape", "sizes",
        "adaptive", "smallest", "largest", "network"], help_heading = "What is divided")]
    pub units: Option<u64>,
    /// The same for dividing a matrix of these sizes: MxN or MxKxN.
    #[arg(long, value_name = "MxN|MxKxN", conflicts_with_all = ["sizes", "adaptive", "smallest", "largest",
        "network", "command", "program"], help_heading = "What is divided")]
    pub shape: Option<String>,
    /// Carry the speed functions of the same kernel with another element type over from this file
    /// (models.json): measure one size on each processor, its share of --units or --shape or the middle of
    /// its curve.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sizes", "points", "adaptive", "smallest", "largest",
        "resume", "network", "command", "program"], help_heading = "For experts")]
    pub carry_over: Option<PathBuf>,
    /// Pivot block size of a product [default: 256].
    #[arg(long, value_name = "N", value_parser = within(1..=65536),
        conflicts_with_all = ["command", "program"], help_heading = "Flow")]
    pub block: Option<u64>,
    /// Relative half-width of the 95 % confidence interval to reach.
    #[arg(long, value_name = "FRACTION", default_value = "0.025", value_parser = numbers::number,
        help_heading = "For experts")]
    pub tolerance: f64,
    /// Maximum number of repetitions of a size [default: 200, or 30 messages each way with --network].
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), help_heading = "For experts")]
    pub max_repetitions: Option<u64>,
    /// Approximate maximum time for a size, in seconds or with a unit [default: 2, or 1 each way with
    /// --network].
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds, help_heading = "For experts")]
    pub max_seconds: Option<f64>,
    /// Measure one processor at a time instead of all together.
    #[arg(long, help_heading = "For experts")]
    pub alone: bool,
}

fn help() -> String {
    format!(
        "Examples:\n  \
        apportion measure --platform platforms/two-unequal.toml --kernel gemm-f64 -o models.json\n  \
        apportion measure --command './work {{size}}' --smallest 1k --largest 1M --adaptive \
        -o models.json\n  \
        apportion measure --kernel gemm-f64 --shape 8kx8k -o models.json\n  \
        apportion measure --kernel gemm-f32 --carry-over models.json -o single.json\n  mpirun -n 4 apportion measure --links platform.toml -o models.json\n  \
        apportion measure --network --platform cluster.toml -o measured.toml\n\
        With -o, the whole file is rewritten after every point. An interrupted or failed run leaves a valid \
        file with the points measured so far (of the processors that have one); repeat the command with \
        --resume to continue. Without --resume the first new point replaces an existing file.\n\
        Each size is repeated until Student's 95 % confidence interval of the mean is within the tolerance. \
        Times further than five scaled median absolute deviations from the median are ignored (at most a \
        quarter of them, from five times on). A first run is not counted. From five repetitions on, the 5 % \
        and 95 % quantiles are kept as the band of times to expect.\n\
        Under mpirun, each process measures its own processor while all others do the same.\n\
        {PLACEHOLDERS} A size is measured as the range from 0 to the size. One copy runs per processor at a \
        time, pinned to the processor's cores. A run longer than --max-seconds is not repeated. A \
        processor's slowdown multiplies the time of its program. A program that fails at a larger size \
        than one that worked has no memory for it: the largest size that works is searched for and kept \
        as max_size. The measurement ends with exit code 1 if the program fails at its smallest size, \
        runs longer than --timeout or, with --seconds-from stdout, if its last line is not a positive \
        number.\n\
        --network sends messages of several sizes between each pair of processors, with an empty reply, one \
        pair after another, and fits a line to all times: latency and bandwidth with 95 % confidence \
        intervals. \"vertical\" messages are contiguous in memory (rows of B, halo rows); \"horizontal\" \
        messages are stretches of 64 bytes from every kilobyte (columns of A, halo columns). -o writes the \
        platform with a [[network.link]] for each pair. With emulate = true it measures the emulated network."
    )
}
