//! Speed functions measured by the processes that will run the job: each measures its own processors while
//! all others do the same.

use crate::error::Result;
use crate::kernels::Kernel;
use crate::kernels::mpdata::{Advectable, Scheme};
use crate::matrix::Element;
use crate::measure::{MeasureOptions, Sizes, Sweep, measure_kernel, sweep_advection};
use crate::model::{Model, Models};
use crate::platform::{Network, Platform};
use crate::run::{Monitor, World};

/// Seconds spent on each size, by all ranks at the same time.
const SECONDS: f64 = 0.25;

/// Measures each of the platform's processors in the process that runs it, all together, size by size. Every
/// rank gets the same models of all processors. Among several ranks, only the time for each size is taken
/// from the options.
///
/// # Errors
/// Those of [`measure_kernel`], on all ranks; interrupted.
///
/// # Panics
/// If the world has several ranks and their number is not that of the processors.
pub(super) fn with_options<T: Element>(
    kernel: Kernel<T>,
    platform: &Platform,
    (sizes, block): (&[f64], u64),
    options: MeasureOptions,
    (world, monitor): (&World, &Monitor),
) -> Result<Models> {
    on_world(platform, sizes, world, options, |platform, sizes, options| {
        measure_kernel(kernel, platform, (sizes, block), options, monitor)
    })
}

/// The same for whole MPDATA steps; sizes are in cells.
///
/// # Errors
/// Those of [`sweep_advection`], on all ranks; interrupted.
///
/// # Panics
/// As [`with_options`].
pub(super) fn advection<T: Advectable>(
    scheme: (Scheme, bool),
    platform: &Platform,
    sizes: &[f64],
    options: MeasureOptions,
    (world, monitor): (&World, &Monitor),
) -> Result<Models> {
    on_world(platform, sizes, world, options, |platform, sizes, options| {
        let sweep = Sweep::new(Sizes::Listed(sizes.to_vec()), options);
        sweep_advection::<T>(platform, scheme, &sweep, &mut |_| Ok(()), monitor)
    })
}

/// Measures the processors of this process with `measure`, and gathers the models of all.
fn on_world(
    platform: &Platform,
    sizes: &[f64],
    world: &World,
    options: MeasureOptions,
    measure: impl Fn(&Platform, &[f64], MeasureOptions) -> Result<Models>,
) -> Result<Models> {
    if world.is_solo() {
        return measure(platform, sizes, options);
    }
    let own = Platform {
        name: platform.name.clone(),
        processors: platform.processors[world.processors_here(platform.len())].to_vec(),
        network: Network::free(),
    };
    // Every rank measures for the same time, even if its figures are precise earlier: no rank measures while
    // the others are idle.
    let options = MeasureOptions {
        tolerance: 0.0,
        most_repetitions: 1_000_000,
        seconds_per_size: options.seconds_per_size.min(SECONDS),
        ..MeasureOptions::quick()
    };
    let mut mine: Option<Models> = None;
    for &size in sizes {
        world.barrier()?;
        let measured = world.all_ok(measure(&own, &[size], options))?;
        mine = Some(match mine.take() {
            None => measured,
            Some(so_far) => with_points(so_far, &measured)?,
        });
    }
    let mine = mine.expect("there is a size");
    let mut all: Option<Models> = None;
    for text in world.all_gather(mine.to_json().as_bytes())? {
        let one = Models::parse(&String::from_utf8_lossy(&text), "measured speeds")?;
        match &mut all {
            None => all = Some(one),
            Some(all) => all.models.extend(one.models),
        }
    }
    Ok(all.expect("there is a rank"))
}

/// Adds the points of another sweep to one processor's models.
fn with_points(mut models: Models, more: &Models) -> Result<Models> {
    for (model, new) in models.models.iter_mut().zip(&more.models) {
        let mut points = [model.points(), new.points()].concat();
        points.dedup_by(|x, y| x.size == y.size);
        *model = Model::new(model.processor(), model.interpolation(), points, None)?;
    }
    Ok(models)
}
