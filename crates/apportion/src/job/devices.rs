//! The devices of a platform: opened, with what the platform does not say of their memory and link.

use super::drivers::{check_drivers, find_devices};
use super::{Context, cache};
use crate::device::{Device, DeviceInfo, DeviceKind, DeviceTile, open_device};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::Element;
use crate::measure::measure_device_links;
use crate::platform::Platform;
use crate::run::clock::pin;
use crate::threads;
use crate::units::show_bytes;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Instant;

/// Fraction of a device's free memory that a run takes where the platform names none.
const PART: f64 = 0.9;

/// Seconds from which on a note says what takes so long.
const WORTH_A_NOTE: f64 = 1.0;
/// Rows and columns of a product that is computed before anything is timed.
const SIDE: usize = 64;
/// Multiply-adds of a product that is worth looking for devices, whose drivers take some tenths of a second to start
/// where nothing is remembered of them: about a second of one core.
const WORTHWHILE: f64 = 2e10;

/// The devices of this machine that are no cores and that compute over the kernel, as processors beside those of the
/// platform, for a product of this many multiply-adds. One that fails is left out: nobody asked for it. No driver is
/// loaded into this process unless it has such a device.
pub(super) fn with_devices_found<T: Element>(
    platform: Platform,
    kernel: Kernel<T>,
    multiply_adds: f64,
    context: Context<'_>,
) -> Platform {
    if multiply_adds < WORTHWHILE || !DeviceTile::<T>::supports(&kernel) {
        return platform;
    }
    let usable = |info: &DeviceInfo| {
        let tried = open_device(&info.id).and_then(|device| prepare(&device, kernel, context));
        tried.inspect_err(|error| context.detail(format!("{info} is left out: {error}"))).is_ok()
    };
    // What follows ends after an interruption.
    let Ok(found) = find_devices(true, context.monitor) else { return platform };
    for fault in found.faults {
        context.note(format!("apportion: {fault}: no device of it is used (`apportion detect` looks again)"));
    }
    let others = found.devices.into_iter().flatten().filter(|info| info.kind != DeviceKind::Cpu);
    with_devices(platform, others.filter(usable).collect())
}

/// The same platform with a processor for each device, named after its kind.
fn with_devices(mut platform: Platform, found: Vec<DeviceInfo>) -> Platform {
    for (number, info) in found.iter().enumerate() {
        platform.add_device(format!("{}{number}", info.kind.name()), "devices", &info.id);
    }
    platform
}

/// How much of a processor's part of a matrix is on its device at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DevicePart {
    /// Tiles one after the other, or all at once where the processor is a rank.
    Tiles,
    /// All at once, in one allocation.
    Whole,
}

/// Opens the devices of this process and checks that they compute over this kernel. A device without `memory` may use
/// nine tenths of what is free; a link of unknown cost is remembered, or measured, which takes some hundredths of a
/// second. Every rank must call it, and all know of all devices.
///
/// # Errors
/// There is no such device; it does not compute over the kernel: exit code 2. It fails: exit code 1. Known to all
/// ranks.
pub fn open_devices<T: Element>(
    mut platform: Platform,
    kernel: Kernel<T>,
    part: DevicePart,
    remeasure: bool,
    context: Context<'_>,
) -> Result<Platform> {
    if platform.network.devices.is_empty() {
        return Ok(platform);
    }
    let world = context.world;
    world.all_ok(open_here(&mut platform, kernel, part, context))?;
    let here = world.processors_here(platform.len());
    let mut unknown: Vec<Rank> = Vec::new();
    for (rank, memory) in platform.network.devices.iter_mut().filter(|(rank, _)| here.contains(&rank.0)) {
        if memory.has_known_link() {
            continue;
        }
        match cache::recall_link(&platform.processors[rank.0], memory).filter(|_| !remeasure) {
            Some(known) => *memory = known,
            None => unknown.push(*rank),
        }
    }
    let platform = measure_device_links(platform, true, world)?;
    for rank in unknown {
        cache::store_link(&platform.processors[rank.0], &platform.network.devices[&rank]);
    }
    for (rank, memory) in &platform.network.devices {
        context.detail(format!(
            "{}: {}, link {:.1} GB/s up, {:.1} GB/s down",
            platform.processors[rank.0].name,
            platform.processors[rank.0].device.as_deref().unwrap_or_default(),
            memory.up / 1e9,
            memory.down / 1e9
        ));
    }
    Ok(platform)
}

fn open_here<T: Element>(
    platform: &mut Platform,
    kernel: Kernel<T>,
    part: DevicePart,
    context: Context<'_>,
) -> Result<()> {
    check_drivers(platform, context.world, context.monitor)?;
    let (here, emulated) = (context.world.processors_here(platform.len()), platform.network.emulate);
    for (rank, memory) in &mut platform.network.devices {
        memory.resident = part == DevicePart::Whole || !context.world.is_solo();
        let processor = &platform.processors[rank.0];
        let Some(id) = processor.device.as_ref().filter(|_| here.contains(&rank.0)) else { continue };
        if !DeviceTile::<T>::supports(&kernel) {
            let what = format!("a device does not compute {}", kernel.name());
            let place = format!("processor \"{}\": device", processor.name);
            return Err(Error::input(place, what, "use a platform without it"));
        }
        let device = open_on(&processor.cores, id)?;
        prepare(&device, kernel, context)?;
        // An emulated link needs no core.
        memory.overlaps = device.info().kind != DeviceKind::Cpu || emulated;
        let most = device.info().memory_bytes;
        if let Some(given) = memory.bytes.filter(|given| *given > most) {
            let [given, has] = [given, most].map(|bytes| show_bytes(bytes as f64));
            let (name, device) = (&processor.name, device.info());
            context.note(format!("{name}: memory = {given}, but {device} has {has}: what is free is used"));
        }
        if memory.bytes.is_none_or(|given| given > most) {
            memory.bytes = Some((PART * device.free_bytes() as f64) as u64);
        }
        if part == DevicePart::Whole {
            memory.bytes = memory.bytes.map(|bytes| bytes.min(device.info().allocation_bytes));
        }
    }
    Ok(())
}

/// Opens a device on a thread of these cores: threads that its driver starts, as those of a device made of cores, stay
/// there.
fn open_on(cores: &[usize], id: &str) -> Result<Arc<dyn Device>> {
    threads::scope(|scope| {
        let opening = threads::start(scope, || {
            pin(cores);
            open_device(id)
        })?;
        opening.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Makes a device ready for a kernel: its variants are compiled and timed, which takes some seconds once, and a small
/// product is computed, since drivers compile a kernel where it is used first.
fn prepare<T: Element>(device: &Arc<dyn Device>, kernel: Kernel<T>, context: Context<'_>) -> Result<()> {
    let (what, begin, mut said) = (format!("preparing {}", device.info().id), Instant::now(), false);
    let mut progress = |done: usize, total: usize| {
        if done == 0 {
            context.monitor.begin(total as u64);
        }
        context.monitor.advance((done as u64).saturating_sub(context.monitor.progress().done));
        let seconds = begin.elapsed().as_secs_f64();
        if seconds >= WORTH_A_NOTE && !std::mem::replace(&mut said, true) {
            let percent = 100 * done / total.max(1);
            context.note(format!(
                "apportion: {what}: its kernels are compiled once, {percent} % after {seconds:.0} s"
            ));
        }
        if context.monitor.is_stopped() { Err(Error::Interrupted) } else { Ok(()) }
    };
    context.watch(&what, || {
        DeviceTile::prepare(device, &kernel, &mut progress)?;
        warm_up(device, kernel)
    })
}

/// Computes a small product.
fn warm_up<T: Element>(device: &Arc<dyn Device>, kernel: Kernel<T>) -> Result<()> {
    let mut tile = DeviceTile::new(device, &kernel, SIDE, SIDE, SIDE)?;
    let mut elements = vec![kernel.zero(); SIDE * SIDE];
    tile.clear()?;
    tile.update(View::dense(&elements, SIDE, SIDE), View::dense(&elements, SIDE, SIDE))?;
    tile.download(ViewMut::dense(&mut elements, SIDE, SIDE))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_become_processors() {
        let info = |number: usize, kind| DeviceInfo {
            id: format!("opencl:{number}"),
            name: "a device".into(),
            driver: "a driver".into(),
            kind,
            memory_bytes: 1 << 30,
            allocation_bytes: 1 << 28,
            f64: true,
            subnormal_f32: true,
        };
        let kinds = [DeviceKind::Gpu, DeviceKind::Accelerator, DeviceKind::Gpu];
        let found = kinds.into_iter().enumerate().map(|(number, kind)| info(number, kind)).collect();
        let platform = with_devices(Platform::from_speeds(&[1.0]).unwrap(), found);
        assert_eq!(platform.names(), ["p0", "gpu0", "accelerator1", "gpu2"]);
        let device = |rank: usize| platform.processors[rank].device.as_deref();
        assert_eq!([device(0), device(1), device(3)], [None, Some("opencl:0"), Some("opencl:2")]);
        assert_eq!(platform.network.devices.keys().map(|rank| rank.0).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
