//! `apportion measure --network`.

use crate::args::{EngineName, MeasureArgs};
use crate::console::{Console, monitor};
use crate::output::links::{file, text, value};
use crate::output::{appear, open};
use crate::prepare::links::{link_options, several};
use crate::prepare::measure::processors;
use crate::prepare::world::{fits, in_world, processes};
use apportion::error::{Error, Result};
use apportion::measure::{measure_links, measure_links_mpi, threads_probe};
use apportion::run::World;

pub fn run(args: &MeasureArgs, console: &Console) -> Result<()> {
    if args.engine == EngineName::Mpi {
        return in_world(console, |world, console| on_rank(args, world, console));
    }
    let options = link_options(args)?;
    let platform = several(processors(args.platform.as_deref(), args.processors)?)?;
    let monitor = monitor();
    let output = open(args.output.as_ref())?;
    let links = console.watch("measuring", monitor, || {
        measure_links(&platform, &options, &mut threads_probe(&platform, monitor), monitor)
    })?;
    appear([(output, &|| file(&platform, &links))])?;
    console.result(|| value(&platform, &links), || text(&platform, &links));
    Ok(())
}

/// This process's part: rank 0 measures, the others answer.
fn on_rank(args: &MeasureArgs, world: &World, console: &Console) -> Result<()> {
    let (monitor, first) = (monitor(), world.rank() == 0);
    let here = processes(world)?;
    let read = || {
        let given = args.platform.is_some() || args.processors.is_some();
        let platform = if given { processors(args.platform.as_deref(), args.processors)? } else { here };
        if platform.network.emulate {
            let what = "an emulated network exists only between threads";
            return Err(Error::input("network.emulate", what, "use --engine threads, or remove emulate"));
        }
        fits(world, platform.len())?;
        Ok((several(platform)?, link_options(args)?))
    };
    let (platform, options) = world.agree(read())?;
    let output = world.agree(if first { open(args.output.as_ref()) } else { Ok(None) })?;
    let links =
        console.watch("measuring", monitor, || measure_links_mpi(&platform, &options, world, monitor))?;
    world.agree(appear([(output, &|| file(&platform, &links))]))?;
    if first {
        console.result(|| value(&platform, &links), || text(&platform, &links));
    }
    Ok(())
}
