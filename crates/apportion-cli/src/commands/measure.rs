//! `apportion measure`.

use super::carry::CarryOver;
use super::links;
use super::links::several;
use crate::args::numbers::{self, Numbers, within};
use crate::args::program::PLACEHOLDERS;
use crate::args::{BlasArgs, EngineArgs, EngineName, ProgramArgs};
use crate::console::{Console, monitor};
use crate::output::models::{caps, disturbed, imprecise, text};
use crate::prepare::shape;
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{
    Context, DEFAULT_BLOCK, InputFiles, check_drivers, check_world_size, in_rank_order, note_absent_cores,
    world_platform,
};
use apportion::kernels::mpdata::Scheme;
use apportion::kernels::{Kernel, Semiring};
use apportion::measure::{
    FocusedSweep, KernelUpdate, LinkOptions, MeasureOptions, ModelObserver, MpdataStep, Sizes, Sweep,
    UpwindStep,
};
use apportion::model::{AdaptiveSweep, Model, Models, read_models};
use apportion::output::{OutputFile, is_stream, try_output, write_whole};
use apportion::platform::{Grouping, Platform, Processor, discover, read_platform};
use apportion::run::{Monitor, World};
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

pub fn run(args: &MeasureArgs, console: &Console) -> Result<()> {
    if args.network {
        return links::run(args, console);
    }
    check(args)?;
    on_engine(args.engine.patient(), &inputs(args), console, |world, console| on_world(args, world, console))
}

/// The files that every rank reads.
pub fn inputs(args: &MeasureArgs) -> InputFiles<'_> {
    let files = [args.platform.as_deref(), args.carry_over.as_deref()].into_iter().flatten().collect();
    InputFiles { files, ..InputFiles::default() }
}

/// This process's part: a single process measures all processors, a rank its own.
fn on_world(args: &MeasureArgs, world: &World, console: &Console) -> Result<()> {
    let first = world.rank() == 0;
    // A kernel runs as `matmul` would run it, a program on each core; links are between cores.
    let program = args.program.command.is_some() || !args.program.program.is_empty();
    let by = if program || args.links.is_some() { Grouping::Core } else { Grouping::Kind };
    let platform = world_processors(args.platform.as_deref(), args.processors, by, world)?;
    let read = || {
        let platform = if args.links.is_some() { several(platform)? } else { platform };
        let command = args.program.command()?;
        if command.is_none() {
            platform.refuse_other_machines(ON_ALL_MACHINES)?;
        }
        let carried = CarryOver::of(args, &platform)?;
        let sizes = match &carried {
            Some(carried) => Sizes::Each(carried.sizes(units(args)?)?),
            None => sizes(args)?,
        };
        Ok((command, (sizes, carried), options(args, MeasureOptions::default())?, platform))
    };
    let (command, (sizes, carried), options, platform) = world.all_ok(read())?;
    let context = Context { world, monitor: monitor(), observer: console };
    note_absent_cores(&platform, context)?;
    world.all_ok(check_drivers(&platform, world, monitor()))?;
    let known = points_to_resume(args, world)?;
    let sweep = Sweep { sizes, options, known, max_size: args.max_size, world: Some(world) };
    let monitor = monitor();
    let output = args.output.as_ref().filter(|_| first);
    // A file that cannot be written is reported before the work. A stream gets the points once.
    let streamed = output.filter(|path| is_stream(path));
    let stream = world.all_ok(streamed.map(OutputFile::create).transpose())?;
    world.all_ok(output.map_or(Ok(()), |path| try_output(path)))?;
    let before = sweep.known.as_ref().map_or(0, points);
    let mut kept = before;
    let mut keep = |models: &Models| {
        let Some(path) = output.filter(|_| streamed.is_none()) else { return Ok(()) };
        let models = &carried_over(carried.as_ref(), models)?;
        write_whole(path, format!("{}\n", models.to_json()).as_bytes())?;
        kept = points(models);
        Ok(())
    };
    let emulated = if command.is_none() { world.all_ok(sampled(&platform, &sweep.sizes))? } else { None };
    let block = args.block.unwrap_or(DEFAULT_BLOCK);
    let plus_times = match args.kernel {
        _ if command.is_some() || emulated.is_some() => (None, None),
        KernelName::GemmF64 => {
            (Some(args.blas.choice().kernel_to_measure(&platform, &sweep, block, context)?), None)
        }
        KernelName::GemmF32 => {
            (None, Some(args.blas.choice().kernel_to_measure(&platform, &sweep, block, context)?))
        }
        _ => (None, None),
    };
    let outcome = console.watch("measuring", monitor, || {
        let keep: &mut ModelObserver<'_> = &mut keep;
        if let Some(models) = emulated {
            return keep(&models).map(|()| models);
        }
        match &command {
            Some(command) => sweep.run(command, &platform, keep, monitor),
            None => sweep_named(args, &platform, plus_times, &sweep, keep, monitor),
        }
    });
    let models = outcome.map_err(|error| match (output, error) {
        (Some(path), Error::Interrupted) if kept > 0 => Error::infeasible(
            format!("interrupted: {kept} points were saved to {}", path.display()),
            "add --resume to continue",
        ),
        (_, error) => error,
    })?;
    if let Some(path) = &args.links {
        links::measure(&platform, &LinkOptions::default(), Some(path), world, console)?;
    }
    if !first {
        return Ok(());
    }
    let models = carried_over(carried.as_ref(), &models)?;
    if let Some(mut stream) = stream {
        stream.put(format!("{}\n", models.to_json()).as_bytes())?;
        stream.commit()?;
    }
    if args.resume {
        console.note(format!("{before} points were in the file, {} were measured", points(&models) - before));
    }
    let notes = [caps(&models), imprecise(&models, args.tolerance), disturbed(&models, &discover())];
    notes.iter().flatten().for_each(|note| console.note(note));
    console.result(|| models.to_value(), || text(&models, models.block()));
    Ok(())
}

/// The models as they are kept: with their carried points, if any.
fn carried_over(carried: Option<&CarryOver>, models: &Models) -> Result<Models> {
    carried.map_or_else(|| Ok(models.clone()), |carried| carried.models(models))
}

/// The kernel of plus-times that is measured, in either precision.
type PlusTimes = (Option<Kernel<f64>>, Option<Kernel<f32>>);

fn sweep_named(
    args: &MeasureArgs,
    platform: &Platform,
    plus_times: PlusTimes,
    sweep: &Sweep<'_>,
    keep: &mut ModelObserver<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    let block = args.block.unwrap_or(DEFAULT_BLOCK);
    macro_rules! run {
        ($workload:expr) => {
            sweep.run(&$workload, platform, keep, monitor)
        };
    }
    macro_rules! update {
        ($kernel:expr) => {
            run!(KernelUpdate { kernel: $kernel, block })
        };
    }
    match args.kernel {
        KernelName::GemmF64 => update!(plus_times.0.expect("it was chosen")),
        KernelName::GemmF32 => update!(plus_times.1.expect("it was chosen")),
        KernelName::MaxPlusF64 => update!(Kernel::<f64>::max_plus()),
        KernelName::MaxPlusF32 => update!(Kernel::<f32>::max_plus()),
        KernelName::MaxPlusI32 => update!(Kernel::<i32>::max_plus()),
        KernelName::MaxPlusI64 => update!(Kernel::<i64>::max_plus()),
        KernelName::MinPlusF64 => update!(Kernel::<f64>::min_plus()),
        KernelName::MinPlusF32 => update!(Kernel::<f32>::min_plus()),
        KernelName::MinPlusI32 => update!(Kernel::<i32>::min_plus()),
        KernelName::MinPlusI64 => update!(Kernel::<i64>::min_plus()),
        KernelName::StencilF64 => run!(UpwindStep::<f64>::default()),
        KernelName::StencilF32 => run!(UpwindStep::<f32>::default()),
        KernelName::MpdataF64 => run!(MpdataStep::<f64>::new(two_passes(false), false)),
        KernelName::MpdataF32 => run!(MpdataStep::<f32>::new(two_passes(false), false)),
        KernelName::MpdataNonoscillatoryF64 => run!(MpdataStep::<f64>::new(two_passes(true), false)),
        KernelName::MpdataNonoscillatoryF32 => run!(MpdataStep::<f32>::new(two_passes(true), false)),
        KernelName::OrAnd => update!(Kernel::or_and()),
    }
}

/// The scheme that is measured.
fn two_passes(nonoscillatory: bool) -> Scheme {
    Scheme { passes: 2, nonoscillatory, infinite_gauge: false, third_order: false }
}

/// Largest size of a kernel's default sweep: elements of C.
const LARGEST: f64 = 4_194_304.0;
/// Smallest.
const SMALLEST: f64 = 1024.0;
/// Number of points of a plain sweep, and maximum number of an adaptive one.
const POINTS: u64 = 8;
const ADAPTIVE_POINTS: u64 = 30;

/// What measures kernels and links on processors of several machines.
pub const ON_ALL_MACHINES: &str = "measure with a rank on each machine: mpirun … apportion measure";

/// Rejects flags that the kernel would ignore.
pub fn check(args: &MeasureArgs) -> Result<()> {
    if args.engine.name() == EngineName::Mpi && args.alone {
        let what = "the processes of MPI measure together";
        return Err(Error::input("--alone", what, "remove the flag, or measure each host by itself"));
    }
    let refuse = |flag: &str, what: &str| Err(Error::input(flag, what, "remove the flag"));
    if args.blas.blas.is_some() && (args.program.command.is_some() || !args.program.program.is_empty()) {
        return refuse("--blas", "your own program is measured, no kernel");
    }
    if args.accuracy.is_some() && !args.adaptive && args.units.is_none() && args.shape.is_none() {
        return refuse("--accuracy", "is for --adaptive, --units and --shape");
    }
    match args.kernel {
        KernelName::GemmF32 | KernelName::GemmF64 => Ok(()),
        kernel if is_stencil(kernel) && args.block.is_some() => {
            refuse("--block", "a stencil has no pivot block")
        }
        kernel if is_stencil(kernel) && args.blas.blas.as_deref().is_some_and(|name| name != "none") => {
            refuse("--blas", "a stencil needs no library")
        }
        KernelName::OrAnd => args.blas.choice().check_unused(Semiring::OrAnd),
        KernelName::MaxPlusF32 | KernelName::MaxPlusF64 | KernelName::MaxPlusI32 | KernelName::MaxPlusI64 => {
            args.blas.choice().check_unused(Semiring::MaxPlus)
        }
        KernelName::MinPlusF32 | KernelName::MinPlusF64 | KernelName::MinPlusI32 | KernelName::MinPlusI64 => {
            args.blas.choice().check_unused(Semiring::MinPlus)
        }
        _ => Ok(()),
    }
}

/// True for the kernels that are no products.
fn is_stencil(kernel: KernelName) -> bool {
    matches!(
        kernel,
        KernelName::StencilF32
            | KernelName::StencilF64
            | KernelName::MpdataF32
            | KernelName::MpdataF64
            | KernelName::MpdataNonoscillatoryF32
            | KernelName::MpdataNonoscillatoryF64
    )
}

/// The processors that the flags name; by default this machine's.
fn processors(platform: Option<&Path>, count: Option<u64>, by: Grouping) -> Result<Platform> {
    match (platform, count) {
        (Some(path), _) => read_platform(path),
        (None, Some(count)) => {
            let names: Vec<String> = (0..count).map(|i| format!("p{i}")).collect();
            Ok(Platform::from_names(&names))
        }
        (None, None) => Ok(discover().platform(by)),
    }
}

/// The processors that the flags name, or by default those of the world: those of this machine for a single process, or
/// the ranks, of which each has a processor of its host. Programs of ranks start where the ranks are. Every rank must call it.
///
/// # Errors
/// A file that cannot be read; processors that are not as many as ranks. Known to all ranks.
pub fn world_processors(
    platform: Option<&Path>,
    count: Option<u64>,
    by: Grouping,
    world: &World,
) -> Result<Platform> {
    let here = world_platform(world)?;
    let read = || match here {
        Some(here) if platform.is_none() && count.is_none() => Ok(here),
        _ => processors(platform, count, by),
    };
    let mut platform = world.all_ok(read())?;
    if !world.is_solo() {
        world.all_ok(check_world_size(world, platform.len()))?;
        platform.processors.iter_mut().for_each(|processor| processor.start.clear());
    }
    world.all_ok(in_rank_order(platform, false, world))
}

/// Accuracy and time limits; `otherwise` if the flags give none.
pub fn options(args: &MeasureArgs, otherwise: MeasureOptions) -> Result<MeasureOptions> {
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

/// The sizes that the flags request.
pub fn sizes(args: &MeasureArgs) -> Result<Sizes> {
    let most = args.max_size;
    if let Some(most) = most.filter(|&most| !(most.is_finite() && most >= 1.0)) {
        let what = format!("{most} is not a size of at least 1");
        return Err(Error::input("--max-size", what, "use one such as 10000"));
    }
    let exceeds = |flag: &str, size: f64| match most {
        Some(most) if size > most => {
            let what = format!("{size} is more than --max-size, {most}");
            Err(Error::input(flag, what, "lower it, or raise --max-size"))
        }
        _ => Ok(()),
    };
    if let Some(units) = units(args)? {
        let most = args.points.unwrap_or(ADAPTIVE_POINTS) as usize;
        return Ok(Sizes::Focused { units, accuracy: args.accuracy.unwrap_or(0.02), most });
    }
    if let Some(sizes) = &args.sizes {
        sizes.0.iter().try_for_each(|&size| exceeds("--sizes", size))?;
        return Ok(Sizes::Listed(sizes.0.clone()));
    }
    let program = args.program.command.is_some() || !args.program.program.is_empty();
    let end = |flag: &str, given: Option<f64>, kernels: f64| match given {
        None if program => {
            Err(Error::input(flag, "is required with --command", "pass --smallest and --largest, or --sizes"))
        }
        Some(size) if !(size.is_finite() && size >= 1.0) => {
            Err(Error::input(flag, format!("{size} is not a size of at least 1"), "use one such as 1000"))
        }
        given => Ok(given.unwrap_or(kernels)),
    };
    let smallest = end("--smallest", args.smallest, SMALLEST)?;
    args.largest.map_or(Ok(()), |largest| exceeds("--largest", largest))?;
    let largest = end("--largest", args.largest.or(most.filter(|_| program)), LARGEST)?;
    let largest = most.map_or(largest, |most| largest.min(most));
    if smallest >= largest {
        let what = format!("{largest} is not greater than the smallest size, {smallest}");
        return Err(Error::input("--largest", what, "use a larger one, or pass a single size with --sizes"));
    }
    if args.adaptive {
        let most = args.points.unwrap_or(ADAPTIVE_POINTS) as usize;
        return Ok(Sizes::Adaptive { smallest, largest, accuracy: args.accuracy.unwrap_or(0.05), most });
    }
    let points = args.points.unwrap_or(POINTS);
    let steps = (points - 1).max(1) as f64;
    let size = |i: u64| (smallest * (largest / smallest).powf(i as f64 / steps)).round();
    Ok(Sizes::Listed((0..points).map(size).collect()))
}

/// The number of units that the measurement is for: `--units`, or the elements of C of `--shape`.
///
/// # Errors
/// A text that is no shape.
pub fn units(args: &MeasureArgs) -> Result<Option<u64>> {
    let shape = args.shape.as_deref().map(|text| shape(text, "--shape")).transpose()?;
    Ok(args.units.or(shape.map(|shape| shape.elements())))
}

/// The points to resume from: those of the output file, if it exists. Rank 0 reads it for all ranks.
fn points_to_resume(args: &MeasureArgs, world: &World) -> Result<Option<Models>> {
    let read = match &args.output {
        Some(path) if args.resume && world.rank() == 0 && path.exists() => read_models(path).map(Some),
        _ => Ok(None),
    };
    let known = world.all_ok(read)?;
    if !args.resume || world.is_solo() {
        return Ok(known);
    }
    let text = world.broadcast(known.map_or(String::new(), |models| models.to_json()).as_bytes())?;
    let text = String::from_utf8_lossy(&text);
    if text.is_empty() { Ok(None) } else { Models::parse(&text, "models to resume from").map(Some) }
}

/// The number of points in all models.
pub fn points(models: &Models) -> usize {
    models.models.iter().map(|m| m.points().len()).sum()
}

/// Emulated processors, sampled at the sizes instead of timed; `None` if there are none.
fn sampled(platform: &Platform, sizes: &Sizes) -> Result<Option<Models>> {
    let (emulated, real): (Vec<_>, Vec<_>) = platform.processors.iter().partition(|p| p.emulated.is_some());
    let (Some(one), real) = (emulated.first(), real.first()) else { return Ok(None) };
    if let Some(other) = real {
        return Err(Error::input(
            "platform",
            format!("\"{}\" is emulated, but \"{}\" would be timed", one.name, other.name),
            "measure them separately: their units differ",
        ));
    }
    let function = |p: &Processor| p.emulated.clone().expect("only emulated processors are here");
    if let &Sizes::Focused { units, accuracy, most } = sizes {
        let mut sweep = FocusedSweep::new(emulated.len(), units, accuracy)?.with_most(most);
        while let Some(request) = sweep.next()? {
            sweep.add(request.rank, function(emulated[request.rank]).point(request.size));
        }
        return Ok(Some(of_emulated(sweep.models(&platform.names())?)));
    }
    let model = |(rank, p): (usize, &&Processor)| {
        let function = function(p);
        match sizes {
            Sizes::Each(sizes) => Model::piecewise(&p.name, vec![function.point(sizes[rank])], None),
            Sizes::Focused { .. } => unreachable!("it was measured for all processors together"),
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
    Ok(Some(of_emulated(emulated.iter().enumerate().map(model).collect::<Result<_>>()?)))
}

fn of_emulated(models: Vec<Model>) -> Models {
    let (kernel, unit) = ("emulated".into(), "units".into());
    Models { kernel, unit, parameters: BTreeMap::new(), models }
}
