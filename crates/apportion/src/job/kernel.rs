//! The kernel of plus-times products where none is named: the fastest on these processors.

use super::{Context, cache};
use crate::error::{Error, Result};
use crate::files::read_own_text;
use crate::kernels::{Blas, Kernel, Real, Semiring};
use crate::measure::{self, KernelRate, KernelUpdate, Sizes, Sweep};
use crate::output::write_cache;
use crate::plan::Shape;
use crate::platform::Platform;
use serde_json::{Value, json};
use std::path::Path;

/// Products of fewer operations are over before a race would be: a tenth of a second on a fast core.
const SMALL: f64 = 1e10;
/// Elements of C that each kernel updates at once: between these, the processor's part of the product.
const TILES: (f64, f64) = (65_536.0, 524_288.0);

/// Whether a product is too small for a race.
pub(crate) fn is_small(shape: Shape) -> bool {
    2.0 * shape.m as f64 * shape.k as f64 * (shape.n as f64) < SMALL
}

/// The kernel that models were measured with, if it is one of plus-times.
pub(crate) fn kernel_of_models<T: Real>(name: &str) -> Option<Kernel<T>> {
    let rest = name.strip_prefix(&Kernel::<T>::plus_times().name())?;
    match rest.strip_prefix('-') {
        None => rest.is_empty().then(Kernel::plus_times),
        Some(library) => Blas::open(library).ok().map(Kernel::by_blas),
    }
}

/// Which kernel multiplies real numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KernelChoice {
    /// The fastest, by a race of the built-in kernel and the libraries that are found.
    #[default]
    Fastest,
    /// The built-in kernel: the same bytes whatever is installed.
    BuiltIn,
    /// This library: `openblas`, `blis`, `mkl`, or a path.
    Library(String),
}

impl KernelChoice {
    /// The choice that a name stands for: `auto`, `none`, or a library.
    pub fn named(name: &str) -> Self {
        match name {
            "auto" => Self::Fastest,
            "none" => Self::BuiltIn,
            library => Self::Library(library.to_owned()),
        }
    }

    /// The kernel of a semiring of real numbers; `None` if it is to be the fastest.
    ///
    /// # Errors
    /// The library cannot be loaded, or is named for a semiring other than plus-times.
    pub(crate) fn kernel<T: Real>(&self, semiring: Semiring) -> Result<Option<Kernel<T>>> {
        match (semiring, self) {
            (Semiring::PlusTimes, Self::Fastest) => Ok(None),
            (Semiring::PlusTimes, Self::Library(name)) => {
                Blas::open(name).map(|blas| Some(Kernel::by_blas(blas)))
            }
            _ => {
                self.check_unused(semiring)?;
                Kernel::over(semiring).map(Some)
            }
        }
    }

    /// Refuses a library for kernels that no library provides.
    ///
    /// # Errors
    /// One is named.
    pub fn check_unused(&self, semiring: Semiring) -> Result<()> {
        match self {
            Self::Fastest | Self::BuiltIn => Ok(()),
            Self::Library(name) => Err(Error::input(
                format!("`blas = {name}`"),
                format!("libraries support plus-times only, not {semiring}"),
                "remove the flag",
            )),
        }
    }

    /// The kernel that a sweep measures: the one that is named, or that of the points so far, or the fastest
    /// where a size is large enough for a race.
    ///
    /// # Errors
    /// Those of [`fastest_kernel`]; a library that cannot be loaded.
    pub fn kernel_to_measure<T: Real>(
        &self,
        platform: &Platform,
        sweep: &Sweep<'_>,
        block: u64,
        context: Context<'_>,
    ) -> Result<Kernel<T>> {
        if let Some(kernel) = context.world.all_ok(self.kernel(Semiring::PlusTimes))? {
            return Ok(kernel);
        }
        if let Some(kernel) = sweep.known.as_ref().and_then(|models| kernel_of_models(&models.kernel)) {
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
        // A file of models names one kernel.
        Ok(fastest_kernel(platform, largest * platform.len() as f64, block, false, context)?.common)
    }
}

/// The fastest kernels of plus-times.
pub(crate) struct FastestKernels<T> {
    /// Of those that all ranks have: the same on all ranks.
    pub common: Kernel<T>,
    /// On this process's processors, which may differ.
    pub own: Kernel<T>,
}

/// The fastest kernels for `elements` of C in all, updated by pivot blocks of `block`: by an earlier race on this
/// machine, or by one now.
///
/// # Errors
/// Those of [`measure::choose_kernel`].
pub(crate) fn fastest_kernel<T: Real>(
    platform: &Platform,
    elements: f64,
    block: u64,
    remeasure: bool,
    context: Context<'_>,
) -> Result<FastestKernels<T>> {
    let built_in = Kernel::<T>::plus_times();
    let path = cache::race_path(platform, &built_in.name(), block).filter(|_| context.world.is_solo());
    if let Some(path) = path.as_ref().filter(|_| !remeasure)
        && let Some(known) = recall(path, platform.len())
    {
        let name = known.own.name();
        context.detail(format!("kernel: {name} ({}; --remeasure to race again)", path.display()));
        return Ok(known);
    }
    let kernels: Vec<Kernel<T>> =
        std::iter::once(built_in).chain(Blas::all().into_iter().map(Kernel::by_blas)).collect();
    let size = (elements / platform.len() as f64).clamp(TILES.0, TILES.1);
    let update = KernelUpdate { kernel: built_in, block };
    if context.world.is_solo() && update.fitting_sizes(&[1.0, size], platform.len()) < 2 {
        context.detail("kernel: the built-in one, as memory is too short to compare others with it");
        return Ok(FastestKernels { common: built_in, own: built_in });
    }
    // A library that is not there now may be there later.
    let path = path.filter(|_| kernels.len() > 1);
    let race = context.watch("choosing the kernel", || {
        measure::choose_kernel(&kernels, platform, size, block, context.world, context.monitor)
    })?;
    let rate = |rate: &KernelRate| format!("{} {:.1}", rate.name, rate.flops_per_second / 1e9);
    let rates: Vec<String> = race.rates.iter().map(rate).collect();
    // The ranks of several processes have a kernel each as it is.
    let mixed = if context.world.is_solo() { Kernel::by_processor(&race.by_processor) } else { race.own };
    let own = context.world.all_gather_texts(&race.own.name())?;
    let here: Vec<String> = race.by_processor.iter().map(Kernel::name).collect();
    let who = match own.len() {
        1 if mixed.name() != race.own.name() => format!("; by processor: {}", here.join(", ")),
        1 => String::new(),
        _ => format!("; by rank: {}", own.join(", ")),
    };
    context.detail(format!("kernel: {}, of {} Gflop/s{who}", race.fastest.name(), rates.join(", ")));
    if let Some(path) = path {
        write_cache(
            &path,
            json!({"fastest": race.fastest.name(), "by_processor": here, "flops": rates_of(&race.rates)})
                .to_string(),
        );
    }
    Ok(FastestKernels { common: race.fastest, own: mixed })
}

fn rates_of(rates: &[KernelRate]) -> Value {
    rates
        .iter()
        .map(|rate| (rate.name.clone(), json!(rate.flops_per_second)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The winners of an earlier race, if they can be loaded.
fn recall<T: Real>(path: &Path, processors: usize) -> Option<FastestKernels<T>> {
    let text = read_own_text(path).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let kernel = |name: &Value| kernel_of_models(name.as_str()?);
    let common = kernel(value.get("fastest")?)?;
    let names = value.get("by_processor")?.as_array().filter(|names| names.len() == processors)?;
    let own: Vec<Kernel<T>> = names.iter().map(kernel).collect::<Option<_>>()?;
    Some(FastestKernels { common, own: Kernel::by_processor(&own) })
}
