//! `apportion measure --network`.

use super::measure::inputs;
use crate::args::MeasureArgs;
use crate::console::{Console, monitor};
use crate::output::links::{file, text, value};
use crate::output::{appear, open};
use crate::prepare::links::{link_options, several};
use crate::prepare::measure::processors;
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{check_world_size, world_platform};
use apportion::measure::measure_links;
use apportion::run::World;

pub fn run(args: &MeasureArgs, console: &Console) -> Result<()> {
    on_engine((args.engine, args.stall_timeout), &inputs(args), console, |world, console| {
        on_world(args, world, console)
    })
}

/// This process's part: rank 0 measures, and the other ranks answer.
fn on_world(args: &MeasureArgs, world: &World, console: &Console) -> Result<()> {
    let (monitor, first) = (monitor(), world.rank() == 0);
    let here = world_platform(world)?;
    let read = || {
        let given = args.platform.is_some() || args.processors.is_some();
        let platform = match here {
            Some(here) if !given => here,
            _ => processors(args.platform.as_deref(), args.processors)?,
        };
        if platform.network.emulate && !world.is_solo() {
            let what = "an emulated network exists only between threads";
            return Err(Error::input("network.emulate", what, "use --engine threads, or remove emulate"));
        }
        if !world.is_solo() {
            check_world_size(world, platform.len())?;
        }
        Ok((several(platform)?, link_options(args)?))
    };
    let (platform, options) = world.all_ok(read())?;
    let output = world.all_ok(if first { open(args.output.as_ref()) } else { Ok(None) })?;
    let links = console.watch("measuring", monitor, || measure_links(&platform, &options, world, monitor))?;
    world.all_ok(appear([(output, &|| file(&platform, &links))]))?;
    if first {
        console.result(|| value(&platform, &links), || text(&platform, &links));
    }
    Ok(())
}
