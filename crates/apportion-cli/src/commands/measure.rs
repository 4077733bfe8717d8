//! `apportion measure`.

use super::links;
use crate::args::MeasureArgs;
use crate::args::measure::KernelName;
use crate::console::{Console, monitor};
use crate::output::models::{caps, disturbed, imprecise, text};
use crate::prepare::carry::CarryOver;
use crate::prepare::links::several;
use crate::prepare::measure::{
    ON_ALL_MACHINES, check, options, points, points_to_resume, sampled, sizes, units, world_processors,
};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{Context, DEFAULT_BLOCK, InputFiles, check_drivers, note_absent_cores};
use apportion::kernels::Kernel;
use apportion::kernels::mpdata::Scheme;
use apportion::measure::{
    KernelUpdate, LinkOptions, MeasureOptions, ModelObserver, MpdataStep, Sizes, Sweep, UpwindStep,
};
use apportion::model::Models;
use apportion::output::{OutputFile, is_stream, try_output, write_whole};
use apportion::platform::{Grouping, Platform, discover};
use apportion::run::{Monitor, World};

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
