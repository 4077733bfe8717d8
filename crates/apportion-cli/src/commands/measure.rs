//! `apportion measure`.

use crate::args::BLOCK;
use crate::console::{Console, monitor};
use crate::inputs::this_machine;
use apportion::{Error, Kernel, MeasureOptions, OutputFile, Result, measure_kernel, read_platform, table};
use clap::{Args, ValueEnum};
use std::io::Write as _;
use std::path::PathBuf;

/// Largest size of the default sweep: elements of C.
const LARGEST: f64 = 4_194_304.0;
/// Smallest.
const SMALLEST: f64 = 1024.0;

/// The kernels that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KernelName {
    /// Matrix product in double precision.
    #[value(name = "gemm-f64", alias = "gemm")]
    GemmF64,
    /// Matrix product in single precision.
    #[value(name = "gemm-f32")]
    GemmF32,
    /// The largest of sums, in double precision.
    #[value(name = "max-plus-f64", alias = "max-plus")]
    MaxPlusF64,
    /// The largest of sums, in single precision.
    #[value(name = "max-plus-f32")]
    MaxPlusF32,
    /// The least of sums, in double precision.
    #[value(name = "min-plus-f64", alias = "min-plus")]
    MinPlusF64,
    /// The least of sums, in single precision.
    #[value(name = "min-plus-f32")]
    MinPlusF32,
    /// Any of pairs of truth values.
    #[value(name = "or-and")]
    OrAnd,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: apportion measure --platform platforms/two-unequal.toml --kernel gemm-f64 -o models.json"
)]
pub struct Arguments {
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

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    if !(args.tolerance > 0.0 && args.tolerance < 1.0) {
        return Err(Error::input(
            "--tolerance",
            format!("{} is not between 0 and 1", args.tolerance),
            "use 0.025",
        ));
    }
    if !(args.max_seconds > 0.0 && args.max_seconds.is_finite()) {
        return Err(Error::input(
            "--max-seconds",
            format!("{} is not a positive time", args.max_seconds),
            "use 2",
        ));
    }
    let platform = args.platform.as_deref().map_or_else(|| Ok(this_machine()), read_platform)?;
    let mut output = args.output.as_deref().map(OutputFile::create).transpose()?;
    let sizes = args.sizes.clone().unwrap_or_else(|| sweep(args.points));
    let options = MeasureOptions {
        tolerance: args.tolerance,
        most_repetitions: args.max_repetitions,
        seconds_per_size: args.max_seconds,
        alone: args.alone,
    };
    let monitor = monitor();
    let sizes = (&sizes[..], args.block);
    let single = |kernel| measure_kernel::<f32>(kernel, &platform, sizes, options, monitor);
    let double = |kernel| measure_kernel::<f64>(kernel, &platform, sizes, options, monitor);
    let models = console.watch("measuring", monitor, || match args.kernel {
        KernelName::GemmF64 => double(Kernel::plus_times()),
        KernelName::GemmF32 => single(Kernel::plus_times()),
        KernelName::MaxPlusF64 => double(Kernel::max_plus()),
        KernelName::MaxPlusF32 => single(Kernel::max_plus()),
        KernelName::MinPlusF64 => double(Kernel::min_plus()),
        KernelName::MinPlusF32 => single(Kernel::min_plus()),
        KernelName::OrAnd => measure_kernel(Kernel::or_and(), &platform, sizes, options, monitor),
    })?;
    let json = models.to_json();
    if let Some(mut file) = output.take() {
        let path = args.output.as_deref().expect("the file came from this flag");
        writeln!(file, "{json}").map_err(|e| Error::file(path, "write", e))?;
        file.commit()?;
    }
    console.result(
        || serde_json::from_str(&json).expect("our own JSON"),
        || {
            let rows = models.models.iter().flat_map(|m| {
                m.points().iter().map(|p| {
                    vec![
                        m.processor().to_owned(),
                        format!("{:.0}", p.size),
                        format!("{:.3e}", p.seconds),
                        format!("{:.1} %", 100.0 * p.ci / p.seconds),
                        p.repetitions.to_string(),
                        format!("{:.2}", 2e-9 * p.speed() * args.block as f64),
                    ]
                })
            });
            table(
                &[
                    "processor",
                    "size",
                    "seconds",
                    "+-",
                    "times",
                    if args.kernel == KernelName::OrAnd { "Gop/s" } else { "Gflop/s" },
                ],
                rows,
            )
        },
    );
    Ok(())
}

/// Sizes evenly spaced in scale.
fn sweep(points: u64) -> Vec<f64> {
    let steps = (points - 1).max(1) as f64;
    (0..points).map(|i| SMALLEST * (LARGEST / SMALLEST).powf(i as f64 / steps)).map(f64::round).collect()
}
