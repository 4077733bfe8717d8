//! `apportion measure --network`.

use super::measure::{MeasureArgs, ON_ALL_MACHINES, inputs, options, world_processors};
use crate::console::{Console, monitor};
use crate::output::links::{file, text, value};
use crate::output::{appear, open};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::check_drivers;
use apportion::measure::{LinkOptions, MeasureOptions, MeasuredLink, measure_device_links, measure_links};
use apportion::platform::{Grouping, Platform};
use apportion::run::World;
use std::path::PathBuf;

pub fn run(args: &MeasureArgs, console: &Console) -> Result<()> {
    on_engine(args.engine.patient(), &inputs(args), console, |world, console| on_world(args, world, console))
}

/// This process's part: rank 0 measures, and the other ranks answer.
fn on_world(args: &MeasureArgs, world: &World, console: &Console) -> Result<()> {
    let first = world.rank() == 0;
    let platform = world_processors(args.platform.as_deref(), args.processors, Grouping::Core, world)?;
    let read = || {
        platform.refuse_other_machines(ON_ALL_MACHINES)?;
        if platform.network.emulate && !world.is_solo() {
            let what = "an emulated network exists only between threads";
            return Err(Error::input("network.emulate", what, "use --engine threads, or remove emulate"));
        }
        Ok((several(platform)?, link_options(args)?))
    };
    let (platform, options) = world.all_ok(read())?;
    let found = measure(&platform, &options, args.output.as_ref(), world, console)?;
    if first {
        console.result(|| value(&found.platform, &found.links), || text(&found.platform, &found.links));
    }
    Ok(())
}

/// The links of a platform.
pub struct Found {
    /// The platform, with the links of its devices.
    pub platform: Platform,
    /// Those between processors.
    pub links: Vec<MeasuredLink>,
}

/// Measures the links of a platform, and writes it with them to `output` on rank 0. Every rank must call it.
pub fn measure(
    platform: &Platform,
    options: &LinkOptions,
    output: Option<&PathBuf>,
    world: &World,
    console: &Console,
) -> Result<Found> {
    let monitor = monitor();
    let output = world.all_ok(if world.rank() == 0 { open(output) } else { Ok(None) })?;
    world.all_ok(check_drivers(platform, world, monitor))?;
    let platform = measure_device_links(platform.clone(), false, world)?;
    let links =
        console.watch("measuring links", monitor, || measure_links(&platform, options, world, monitor))?;
    world.all_ok(appear([(output, &|| file(&platform, &links))]))?;
    Ok(Found { platform, links })
}

/// Rejects a platform without any pair.
pub fn several(platform: Platform) -> Result<Platform> {
    if platform.len() >= 2 {
        return Ok(platform);
    }
    Err(Error::input("platform", "a single processor has no links", "use at least two processors"))
}

/// Sizes and repetitions of messages.
fn link_options(args: &MeasureArgs) -> Result<LinkOptions> {
    let usual = LinkOptions::default();
    let otherwise = MeasureOptions {
        most_repetitions: usual.most_repetitions as u64,
        seconds_per_size: usual.seconds_per_size,
        ..MeasureOptions::default()
    };
    let given = options(args, otherwise)?;
    let sizes = match &args.sizes {
        None => usual.sizes,
        Some(sizes) => sizes.0.iter().map(|&size| bytes(size)).collect::<Result<_>>()?,
    };
    Ok(LinkOptions {
        sizes,
        tolerance: given.tolerance,
        most_repetitions: given.most_repetitions as usize,
        seconds_per_size: given.seconds_per_size,
    })
}

fn bytes(size: f64) -> Result<u64> {
    let whole = size >= 1.0 && size <= f64::from(1 << 30) && size.fract() == 0.0;
    whole.then_some(size as u64).ok_or_else(|| {
        let what = format!("{size} is not a whole number of bytes from 1 to 2^30");
        Error::input("--sizes", what, "use sizes such as 1,4Ki,64Ki,1Mi")
    })
}
