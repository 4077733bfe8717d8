//! `apportion measure --network`.

use super::measure::inputs;
use crate::args::MeasureArgs;
use crate::console::{Console, monitor};
use crate::output::links::{file, text, value};
use crate::output::{appear, open};
use crate::prepare::links::{link_options, several};
use crate::prepare::measure::{ON_ALL_MACHINES, world_processors};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::check_drivers;
use apportion::measure::{LinkOptions, MeasuredLink, measure_device_links, measure_links};
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
