//! The kernel of plus-times products where none is named: the fastest on these processors.

use crate::args::{BLOCK, MeasureArgs};
use crate::cache;
use crate::console::{Console, monitor};
use apportion::error::Result;
use apportion::files::read_own_text;
use apportion::kernels::{Blas, Kernel, Real, Semiring};
use apportion::measure::{self, KernelRate, Sizes, Sweep};
use apportion::plan::Shape;
use apportion::platform::Platform;
use apportion::run::World;
use serde_json::{Value, json};
use std::path::Path;

/// Products of fewer operations are over before a race would be: a tenth of a second on a fast core.
const SMALL: f64 = 1e10;
/// Elements of C that each kernel updates at once: between these, the processor's part of the product.
const TILES: (f64, f64) = (65_536.0, 524_288.0);

/// Whether a product is too small for a race.
pub fn is_small(shape: Shape) -> bool {
    2.0 * shape.m as f64 * shape.k as f64 * (shape.n as f64) < SMALL
}

/// The kernel that models were measured with, if it is one of plus-times.
pub fn of_models<T: Real>(name: &str) -> Option<Kernel<T>> {
    let rest = name.strip_prefix(&Kernel::<T>::plus_times().name())?;
    match rest.strip_prefix('-') {
        None => rest.is_empty().then(Kernel::plus_times),
        Some(library) => Blas::open(library).ok().map(Kernel::by_blas),
    }
}

/// The kernel that a sweep measures: the one that is named, or that of the points so far, or the fastest
/// where a size is large enough for a race.
///
/// # Errors
/// Those of [`fastest`]; a library that cannot be loaded.
pub fn to_measure<T: Real>(
    args: &MeasureArgs,
    platform: &Platform,
    sweep: &Sweep<'_>,
    console: &Console,
) -> Result<Kernel<T>> {
    let world = sweep.world.expect("a world is always given");
    if let Some(kernel) = world.all_ok(args.blas.kernel(Semiring::PlusTimes))? {
        return Ok(kernel);
    }
    if let Some(kernel) = sweep.known.as_ref().and_then(|models| of_models(&models.kernel)) {
        return Ok(kernel);
    }
    let largest = match &sweep.sizes {
        Sizes::Listed(sizes) | Sizes::Each(sizes) => sizes.iter().copied().fold(0.0, f64::max),
        Sizes::Adaptive { largest, .. } => *largest,
        Sizes::Focused { units, .. } => *units as f64 / platform.len() as f64,
    };
    if largest < TILES.0 {
        return Ok(Kernel::plus_times());
    }
    let elements = largest * platform.len() as f64;
    // A file of models names one kernel.
    Ok(fastest(platform, (elements, args.block.unwrap_or(BLOCK)), false, (world, console))?.common)
}

/// The fastest kernels of plus-times.
pub struct Fastest<T> {
    /// Of those that all ranks have: the same on all ranks.
    pub common: Kernel<T>,
    /// On this process's processors, which may differ.
    pub own: Kernel<T>,
}

/// The fastest kernels: by an earlier race on this machine, or by one now.
///
/// # Errors
/// Those of [`measure::choose_kernel`].
pub fn fastest<T: Real>(
    platform: &Platform,
    (elements, block): (f64, u64),
    again: bool,
    (world, console): (&World, &Console),
) -> Result<Fastest<T>> {
    let built_in = Kernel::<T>::plus_times();
    let path = cache::race_path(platform, &built_in.name(), block).filter(|_| world.is_solo());
    if let Some(path) = path.as_ref().filter(|_| !again)
        && let Some(known) = remembered(path, platform.len())
    {
        let name = known.own.name();
        console.detail(format!("kernel: {name} ({}; --remeasure to race again)", path.display()));
        return Ok(known);
    }
    let kernels: Vec<Kernel<T>> =
        std::iter::once(built_in).chain(Blas::all().into_iter().map(Kernel::by_blas)).collect();
    let size = (elements / platform.len() as f64).clamp(TILES.0, TILES.1);
    let race = console.watch("choosing the kernel", monitor(), || {
        measure::choose_kernel(&kernels, platform, size, block, world, monitor())
    })?;
    let rate = |rate: &KernelRate| format!("{} {:.1}", rate.name, rate.flops_per_second / 1e9);
    let rates: Vec<String> = race.rates.iter().map(rate).collect();
    // The ranks of several processes have a kernel each as it is.
    let mixed = if world.is_solo() { Kernel::by_processor(&race.by_processor) } else { race.own };
    let own = world.all_gather_texts(&race.own.name())?;
    let here: Vec<String> = race.by_processor.iter().map(Kernel::name).collect();
    let who = match own.len() {
        1 if mixed.name() != race.own.name() => format!("; by processor: {}", here.join(", ")),
        1 => String::new(),
        _ => format!("; by rank: {}", own.join(", ")),
    };
    console.detail(format!("kernel: {}, of {} Gflop/s{who}", race.fastest.name(), rates.join(", ")));
    if let Some(path) = path {
        cache::store_text(
            &path,
            &json!({"fastest": race.fastest.name(), "by_processor": here, "flops": rates_of(&race.rates)})
                .to_string(),
        );
    }
    Ok(Fastest { common: race.fastest, own: mixed })
}

fn rates_of(rates: &[KernelRate]) -> Value {
    rates
        .iter()
        .map(|rate| (rate.name.clone(), json!(rate.flops_per_second)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The winners of an earlier race, if they can be loaded.
fn remembered<T: Real>(path: &Path, processors: usize) -> Option<Fastest<T>> {
    let text = read_own_text(path).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let kernel = |name: &Value| of_models(name.as_str()?);
    let common = kernel(value.get("fastest")?)?;
    let names = value.get("by_processor")?.as_array().filter(|names| names.len() == processors)?;
    let own: Vec<Kernel<T>> = names.iter().map(kernel).collect::<Option<_>>()?;
    Some(Fastest { common, own: Kernel::by_processor(&own) })
}
