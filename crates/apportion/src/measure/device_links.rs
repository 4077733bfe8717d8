//! The links between devices and their hosts.

use crate::device::{Device, LinkSeconds, link_seconds, open_device};
use crate::error::Result;
use crate::geometry::Rank;
use crate::platform::{DeviceMemory, Platform};
use crate::run::World;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the transfers that give a link's latency and bandwidth.
const BYTES: [u64; 2] = [4 << 10, 16 << 20];
/// Repetitions of each; the shortest counts.
const REPETITIONS: usize = 3;

/// Measures the links of the platform's devices, or only those of unknown cost: transfers of ordinary memory, as
/// products do them. Takes some hundredths of a second each. Every rank must call it; each measures the devices of its
/// own processors, and all get the links of all.
///
/// # Errors
/// There is no such device: exit code 2. It fails: exit code 1. Known to all ranks.
pub fn measure_device_links(mut platform: Platform, only_unknown: bool, world: &World) -> Result<Platform> {
    if platform.network.devices.is_empty() {
        return Ok(platform);
    }
    let here = world.processors_here(platform.len());
    world.all_ok(measure_here(&mut platform, only_unknown, &here))?;
    if world.is_solo() {
        return Ok(platform);
    }
    let own = platform.network.devices.get(&Rank(world.rank())).cloned();
    let all: Vec<Option<DeviceMemory>> = world.all_gather_values(&own)?;
    let found = all.into_iter().enumerate().filter_map(|(rank, memory)| Some((Rank(rank), memory?)));
    platform.network.devices.extend(found);
    Ok(platform)
}

fn measure_here(platform: &mut Platform, only_unknown: bool, here: &Range<usize>) -> Result<()> {
    let host = platform.processors.iter().find(|p| p.device.is_none()).or(platform.processors.first());
    let host = host.map(|host| host.name.clone());
    for (rank, memory) in platform.network.devices.iter_mut().filter(|(rank, _)| here.contains(&rank.0)) {
        let Some(id) = platform.processors[rank.0].device.as_ref() else { continue };
        if only_unknown && memory.has_known_link() {
            continue;
        }
        let device = open_device(id)?;
        let (short, long) = (shortest(&device, BYTES[0])?, shortest(&device, BYTES[1])?);
        let bandwidth = |long: f64, short: f64| (BYTES[1] - BYTES[0]) as f64 / (long - short).max(1e-9);
        memory.latency = short.up.max(short.down);
        (memory.up, memory.down) = (bandwidth(long.up, short.up), bandwidth(long.down, short.down));
        // Closer to the longer of both than to their sum.
        memory.duplex = 2.0 * long.both < long.up.max(long.down) + long.up + long.down;
        memory.host = memory.host.take().or_else(|| host.clone());
    }
    Ok(())
}

/// The shortest seconds of several transfers of this size.
fn shortest(device: &Arc<dyn Device>, bytes: u64) -> Result<LinkSeconds> {
    let mut least = link_seconds(device, bytes)?;
    for _ in 1..REPETITIONS {
        let LinkSeconds { up, down, both } = link_seconds(device, bytes)?;
        least = LinkSeconds { up: least.up.min(up), down: least.down.min(down), both: least.both.min(both) };
    }
    Ok(least)
}
