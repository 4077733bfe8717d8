//! `apportion measure`.

use super::links;
use crate::args::BLOCK;
use crate::args::blas::BlasArgs;
use crate::console::{Console, monitor};
use crate::prepare::processors::this_machine;
use crate::prepare::product::EngineName;
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::kernels::Semiring;
use apportion::measure::{
    Keep, MeasureOptions, SecondsFrom, Sizes, Sweep, UserCommand, sweep_command, sweep_kernel, sweep_stencil,
};
use apportion::model::{AdaptiveSweep, Model, Models, read_models};
use apportion::output::{OutputFile, write_whole};
use apportion::platform::{Platform, Processor, read_platform};
use apportion::report::table;
use apportion::run::Monitor;
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest size of a kernel's default sweep: elements of C.
const LARGEST: f64 = 4_194_304.0;
/// Smallest.
const SMALLEST: f64 = 1024.0;
/// Points of a plain sweep, and at most of an adaptive one.
const POINTS: u64 = 8;
const ADAPTIVE_POINTS: u64 = 30;

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
    /// The largest of sums of whole numbers of 32 bits.
    #[value(name = "max-plus-i32")]
    MaxPlusI32,
    /// The largest of sums of whole numbers of 64 bits.
    #[value(name = "max-plus-i64")]
    MaxPlusI64,
    /// The least of sums, in double precision.
    #[value(name = "min-plus-f64", alias = "min-plus")]
    MinPlusF64,
    /// The least of sums, in single precision.
    #[value(name = "min-plus-f32")]
    MinPlusF32,
    /// The least of sums of whole numbers of 32 bits.
    #[value(name = "min-plus-i32")]
    MinPlusI32,
    /// The least of sums of whole numbers of 64 bits.
    #[value(name = "min-plus-i64")]
    MinPlusI64,
    /// Any of pairs of truth values.
    #[value(name = "or-and")]
    OrAnd,
    /// One upwind advection step on a grid, MPDATA's first pass, in double precision.
    #[value(name = "stencil-f64", alias = "stencil")]
    StencilF64,
    /// The same in single precision.
    #[value(name = "stencil-f32")]
    StencilF32,
}

/// Where a program's time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SecondsName {
    /// The whole run, by our clock.
    Wall,
    /// The last line of its output: a number of seconds and nothing else.
    Stdout,
}

impl From<SecondsName> for SecondsFrom {
    fn from(name: SecondsName) -> Self {
        match name {
            SecondsName::Wall => Self::Wall,
            SecondsName::Stdout => Self::Stdout,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion measure --platform platforms/two-unequal.toml --kernel gemm-f64 -o models.json\n  \
    apportion measure --command './solver {size}' --smallest 1e3 --largest 1e6 --adaptive -o models.json\n  \
    apportion measure --network --platform cluster.toml -o measured.toml\n\
    With -o, the file is written whole after every point: an interrupted or failed run leaves a valid models file of what \
    was done (of the processors that have a point), and the same call with --resume goes on from there. Without --resume \
    the first new point replaces an existing file.\n\
    A size is repeated until Student's 95 % interval of the mean is within the tolerance; times further than five scaled \
    median absolute deviations from the median are left out (at most a quarter, from five times on). One run before is \
    not counted.\n\
    A command is split like a shell does, but no shell runs: write sh -c '…' for one. {size} (or {share}), \
    {processor} and {rank} are filled in; APPORTION_SIZE, APPORTION_PROCESSOR and APPORTION_RANK are set. It runs once \
    per processor at a time, pinned to the processor's cores. A run that takes longer than --max-seconds is the only one \
    of its size. A processor's slowdown multiplies the seconds of its program. A command that fails, or whose last line is \
    no positive number with --seconds-from stdout, ends the measurement with exit code 1.\n\
    --network sends messages of several sizes between each two processors, there and an empty one back, pair after pair, and \
    lays a line through all times: latency and bandwidth with 95 % intervals. \"vertical\" messages are contiguous in memory (rows of \
    B, halo rows), \"horizontal\" ones are stretches of 64 bytes from every kilobyte (columns of A, halo columns). -o writes the \
    platform with a [[network.link]] for each pair. Under emulate = true it measures the emulated network.")]
pub struct Arguments {
    /// Measure what messages cost between each two processors instead of how fast they compute.
    #[arg(long, conflicts_with_all = ["kernel", "command", "resume", "points", "adaptive", "smallest", "largest", "block", "alone"])]
    pub network: bool,
    /// Whose messages --network measures: those between threads, or with mpi those between the processes of an mpirun, of which
    /// there must be one per processor (by default the processes are the processors).
    #[arg(long, value_enum, default_value = "threads", requires = "network")]
    pub engine: EngineName,
    /// The processors; default: this machine's cores.
    #[arg(long, value_name = "FILE", conflicts_with = "processors")]
    pub platform: Option<PathBuf>,
    /// So many processors p0, p1, … that are not pinned.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub processors: Option<u64>,
    /// What to measure.
    #[arg(long, value_enum, default_value = "gemm-f64", conflicts_with = "command")]
    pub kernel: KernelName,
    #[command(flatten)]
    pub blas: BlasArgs,
    /// Measure a program of yours: './solver {size}'.
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// Where the program's time comes from.
    #[arg(long, value_enum, default_value = "wall", requires = "command")]
    pub seconds_from: SecondsName,
    /// Write the models (models.json), after every point; with --network the platform with its links (platform.toml).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Go on from the points that the output file has, if it is there.
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Sizes to measure; for a product, elements of C updated by one pivot block; for a stencil, cells; with --network, bytes of the messages.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', conflicts_with_all = ["points", "adaptive", "smallest", "largest"])]
    pub sizes: Option<Vec<f64>>,
    /// Smallest size; default for kernels: 1,024.
    #[arg(long, value_name = "N")]
    pub smallest: Option<f64>,
    /// Largest size; default for kernels: 4 million elements.
    #[arg(long, value_name = "N")]
    pub largest: Option<f64>,
    /// Number of sizes, spaced evenly in scale (default 8); with --adaptive, at most so many on a processor (default 30).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub points: Option<u64>,
    /// Choose few sizes for each processor by what is seen (GBBP).
    #[arg(long)]
    pub adaptive: bool,
    /// With --adaptive: speeds that differ by no more than this fraction count as equal.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.05, requires = "adaptive")]
    pub accuracy: f64,
    /// Pivot block size of a product (default 256).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65536), conflicts_with = "command")]
    pub block: Option<u64>,
    /// Repeat until the 95 % interval is within this fraction of the mean.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.025)]
    pub tolerance: f64,
    /// At most so many repetitions of a size (default 200; 30 messages each way with --network).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_repetitions: Option<u64>,
    /// At most about so many seconds on a size (default 2; 1 each way with --network).
    #[arg(long, value_name = "SECONDS")]
    pub max_seconds: Option<f64>,
    /// One processor after the other, instead of all together.
    #[arg(long)]
    pub alone: bool,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    if args.network {
        return links::run(args, console);
    }
    let stencil = matches!(args.kernel, KernelName::StencilF32 | KernelName::StencilF64);
    if stencil && args.block.is_some() {
        let what = "a stencil has no pivot block";
        return Err(Error::input("--block", what, "leave it out"));
    }
    let command =
        args.command.as_deref().map(|text| UserCommand::parse(text, args.seconds_from.into())).transpose()?;
    let sweep = Sweep {
        sizes: sizes(args)?,
        options: options(args, MeasureOptions::default())?,
        known: known(args)?,
    };
    let platform = processors(args.platform.as_deref(), args.processors)?;
    // From here on Ctrl-C cleans up.
    let monitor = monitor();
    if let Some(path) = &args.output {
        // What would make keeping the points fail is found out before any work is done.
        drop(OutputFile::create(path)?);
    }
    let before = sweep.known.as_ref().map_or(0, points);
    let mut kept = before;
    let mut keep = |models: &Models| {
        let Some(path) = &args.output else { return Ok(()) };
        write_whole(path, format!("{}\n", models.to_json()).as_bytes())?;
        kept = points(models);
        Ok(())
    };
    let emulated = if command.is_none() { sampled(&platform, &sweep.sizes)? } else { None };
    let outcome = console.watch("measuring", monitor, || {
        let keep: &mut Keep<'_> = &mut keep;
        if let Some(models) = emulated {
            return keep(&models).map(|()| models);
        }
        match &command {
            Some(command) => sweep_command(&platform, command, &sweep, keep, monitor),
            None => sweep_named(args, &platform, &sweep, keep, monitor),
        }
    });
    let models = outcome.map_err(|error| match (&args.output, error) {
        (Some(path), Error::Interrupted) if kept > 0 => Error::infeasible(
            format!("interrupted: {kept} points are in {}", path.display()),
            "go on from them with --resume",
        ),
        (_, error) => error,
    })?;
    if args.resume {
        console.note(format!("{before} points were there, {} are new", points(&models) - before));
    }
    console.result(
        || serde_json::from_str(&models.to_json()).expect("our own JSON"),
        || text(&models, models.block()),
    );
    Ok(())
}

fn sweep_named(
    args: &Arguments,
    platform: &Platform,
    sweep: &Sweep,
    keep: &mut Keep<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    let (on, plus_times) = ((platform, args.block.unwrap_or(BLOCK)), Semiring::PlusTimes);
    match args.kernel {
        KernelName::GemmF64 => sweep_kernel(args.blas.kernel::<f64>(plus_times)?, on, sweep, keep, monitor),
        KernelName::GemmF32 => sweep_kernel(args.blas.kernel::<f32>(plus_times)?, on, sweep, keep, monitor),
        KernelName::MaxPlusF64 => sweep_kernel(Kernel::<f64>::max_plus(), on, sweep, keep, monitor),
        KernelName::MaxPlusF32 => sweep_kernel(Kernel::<f32>::max_plus(), on, sweep, keep, monitor),
        KernelName::MaxPlusI32 => sweep_kernel(Kernel::<i32>::max_plus(), on, sweep, keep, monitor),
        KernelName::MaxPlusI64 => sweep_kernel(Kernel::<i64>::max_plus(), on, sweep, keep, monitor),
        KernelName::MinPlusF64 => sweep_kernel(Kernel::<f64>::min_plus(), on, sweep, keep, monitor),
        KernelName::MinPlusF32 => sweep_kernel(Kernel::<f32>::min_plus(), on, sweep, keep, monitor),
        KernelName::MinPlusI32 => sweep_kernel(Kernel::<i32>::min_plus(), on, sweep, keep, monitor),
        KernelName::MinPlusI64 => sweep_kernel(Kernel::<i64>::min_plus(), on, sweep, keep, monitor),
        KernelName::StencilF64 => sweep_stencil::<f64>(platform, sweep, keep, monitor),
        KernelName::StencilF32 => sweep_stencil::<f32>(platform, sweep, keep, monitor),
        KernelName::OrAnd => sweep_kernel(Kernel::or_and(), on, sweep, keep, monitor),
    }
}

/// The processors that the flags name; this machine's cores if they name none.
pub fn processors(platform: Option<&Path>, count: Option<u64>) -> Result<Platform> {
    match (platform, count) {
        (Some(path), _) => read_platform(path),
        (None, Some(count)) => {
            let names: Vec<String> = (0..count).map(|i| format!("p{i}")).collect();
            Ok(Platform::from_names(&names))
        }
        (None, None) => Ok(this_machine()),
    }
}

/// How well and for how long, where the flags do not say otherwise.
pub fn options(args: &Arguments, otherwise: MeasureOptions) -> Result<MeasureOptions> {
    let max_seconds = args.max_seconds.unwrap_or(otherwise.seconds_per_size);
    let refuse = |flag: &str, what: String, remedy: &str| Err(Error::input(flag, what, remedy));
    if !(args.tolerance > 0.0 && args.tolerance < 1.0) {
        return refuse("--tolerance", format!("{} is not between 0 and 1", args.tolerance), "use 0.025");
    }
    if !(max_seconds > 0.0 && max_seconds.is_finite()) {
        return refuse("--max-seconds", format!("{max_seconds} is not a positive time"), "use 2");
    }
    Ok(MeasureOptions {
        tolerance: args.tolerance,
        most_repetitions: args.max_repetitions.unwrap_or(otherwise.most_repetitions),
        seconds_per_size: max_seconds,
        alone: args.alone,
    })
}

fn sizes(args: &Arguments) -> Result<Sizes> {
    if let Some(sizes) = &args.sizes {
        return Ok(Sizes::Listed(sizes.clone()));
    }
    let end = |flag: &str, given: Option<f64>, kernels: f64| match given {
        None if args.command.is_some() => Err(Error::input(
            flag,
            "is missing: nobody else knows your program's sizes",
            "give --smallest and --largest, or --sizes",
        )),
        Some(size) if !(size.is_finite() && size >= 1.0) => {
            Err(Error::input(flag, format!("{size} is not a size of at least 1"), "give one such as 1000"))
        }
        given => Ok(given.unwrap_or(kernels)),
    };
    let smallest = end("--smallest", args.smallest, SMALLEST)?;
    let largest = end("--largest", args.largest, LARGEST)?;
    if smallest >= largest {
        let what = format!("{largest} is not above the smallest size, {smallest}");
        return Err(Error::input("--largest", what, "give a larger one, or one size with --sizes"));
    }
    if args.adaptive {
        let most = args.points.unwrap_or(ADAPTIVE_POINTS) as usize;
        return Ok(Sizes::Adaptive { smallest, largest, accuracy: args.accuracy, most });
    }
    let points = args.points.unwrap_or(POINTS);
    let steps = (points - 1).max(1) as f64;
    let size = |i: u64| (smallest * (largest / smallest).powf(i as f64 / steps)).round();
    Ok(Sizes::Listed((0..points).map(size).collect()))
}

/// The points to resume from: those of the output file, if it is there.
fn known(args: &Arguments) -> Result<Option<Models>> {
    match &args.output {
        Some(path) if args.resume && path.exists() => read_models(path).map(Some),
        _ => Ok(None),
    }
}

fn points(models: &Models) -> usize {
    models.models.iter().map(|m| m.points().len()).sum()
}

/// A table of all points; for a product, with its pivot block, in Gflop/s.
fn text(models: &Models, block: Option<u64>) -> String {
    let rows = models.models.iter().flat_map(|m| {
        m.points().iter().map(move |p| {
            vec![
                m.processor().to_owned(),
                format!("{:.0}", p.size),
                format!("{:.3e}", p.seconds),
                format!("{:.1} %", 100.0 * p.ci / p.seconds),
                p.repetitions.to_string(),
                match block {
                    Some(block) => format!("{:.2}", 2e-9 * p.speed() * block as f64),
                    None => format!("{:.4e}", p.speed()),
                },
            ]
        })
    });
    let speed = if block.is_some() { "Gflop/s" } else { "size/s" };
    table(&["processor", "size", "seconds", "+-", "times", speed], rows)
}

/// Emulated processors are sampled at the sizes instead of timed; none if there are no such processors.
fn sampled(platform: &Platform, sizes: &Sizes) -> Result<Option<Models>> {
    let (emulated, real): (Vec<_>, Vec<_>) = platform.processors.iter().partition(|p| p.emulated.is_some());
    let (Some(one), real) = (emulated.first(), real.first()) else { return Ok(None) };
    if let Some(other) = real {
        return Err(Error::input(
            "platform",
            format!("\"{}\" is emulated, but \"{}\" would be timed", one.name, other.name),
            "measure them apart: their units differ",
        ));
    }
    let model = |p: &&Processor| {
        let function = p.emulated.as_ref().expect("only emulated processors are here");
        match sizes {
            Sizes::Listed(sizes) => {
                Model::piecewise(&p.name, sizes.iter().map(|&size| function.point(size)).collect(), None)
            }
            Sizes::Adaptive { smallest, largest, accuracy, most } => {
                let mut sweep = AdaptiveSweep::new(*smallest, *largest, *accuracy)?.with_most(*most);
                while let Some(size) = sweep.next_size() {
                    sweep.add(function.point(size));
                }
                sweep.model(&p.name)
            }
        }
    };
    Ok(Some(Models {
        kernel: "emulated".into(),
        unit: "units".into(),
        parameters: BTreeMap::new(),
        models: emulated.iter().map(model).collect::<Result<_>>()?,
    }))
}
