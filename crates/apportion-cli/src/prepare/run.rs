//! From flags to the processors of `apportion run`.

use super::measure::world_processors;
use crate::args::RunArgs;
use apportion::error::{Error, Result};
use apportion::job::{check_world_size, in_plan_order, in_rank_order, processors_by_name, with_speeds};
use apportion::plan::Plan;
use apportion::platform::{Grouping, Network, Platform, Processor, discover, read_platform};
use apportion::run::World;

/// The processors that the flags name, or this machine's cores.
///
/// # Errors
/// A file that cannot be read; speeds or ranks that are not as many as processors.
pub fn platform(args: &RunArgs, world: &World) -> Result<Platform> {
    if let Some(cores) = args.threads {
        return pools(cores, world);
    }
    let speeds = args.speeds.as_ref().map(|speeds| &speeds.0);
    match speeds {
        Some(speeds) if world.is_solo() && args.platform.is_none() && args.processors.is_none() => {
            with_speeds(None, speeds)
        }
        _ => {
            let found = world_processors(args.platform.as_deref(), args.processors, Grouping::Core, world)?;
            let found = match speeds {
                Some(speeds) => with_speeds(Some(found), speeds),
                None => Ok(found),
            };
            world.all_ok(found)
        }
    }
}

/// The processors of the plan. This machine's cores are pinned.
///
/// # Errors
/// A file that cannot be read, or processors that are not the plan's.
pub fn plan_platform(plan: &Plan, args: &RunArgs, world: &World) -> Result<Platform> {
    if let Some(cores) = args.threads {
        return world.all_ok(in_plan_order(plan, pools(cores, world)?));
    }
    let Some(path) = &args.platform else { return processors_by_name(&plan.processors, world) };
    let mut platform =
        world.all_ok(read_platform(path).and_then(|platform| in_plan_order(plan, platform)))?;
    if world.is_solo() {
        return Ok(platform);
    }
    world.all_ok(check_world_size(world, platform.len()))?;
    // The ranks are on the machines.
    platform.processors.iter_mut().for_each(|processor| processor.start.clear());
    world.all_ok(in_rank_order(platform, true, world))
}

/// Pools of at most this many cores of one kind of this machine.
fn pools(cores: u64, world: &World) -> Result<Platform> {
    if !world.is_solo() {
        let remedy = "give each rank its cores by the launcher";
        return world.all_ok(Err(Error::input(
            "--threads",
            "the ranks have the cores of their hosts",
            remedy,
        )));
    }
    let machine = discover();
    let most = usize::try_from(cores).unwrap_or(usize::MAX);
    let groups = machine.groups(Grouping::Kind);
    let mut processors = Vec::new();
    for group in &groups {
        for part in group.cores.chunks(most) {
            processors.push(Processor {
                cluster: group.cluster.clone(),
                cores: part.iter().map(|core| core.cpu).collect(),
                ..Processor::named(format!("pool{}", processors.len()))
            });
        }
    }
    Ok(Platform { name: machine.model.clone(), processors, network: Network::free() })
}
