//! From the flags of `measure` to processors, sizes and limits.

use super::shape;
use crate::args::measure::KernelName;
use crate::args::{EngineName, MeasureArgs};
use apportion::error::{Error, Result};
use apportion::job::{check_world_size, in_rank_order, world_platform};
use apportion::kernels::Semiring;
use apportion::measure::{FocusedSweep, MeasureOptions, Sizes};
use apportion::model::{AdaptiveSweep, Model, Models, read_models};
use apportion::platform::{Grouping, Platform, Processor, discover, read_platform};
use apportion::run::World;
use std::collections::BTreeMap;
use std::path::Path;

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
pub fn points_to_resume(args: &MeasureArgs, world: &World) -> Result<Option<Models>> {
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
pub fn sampled(platform: &Platform, sizes: &Sizes) -> Result<Option<Models>> {
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
