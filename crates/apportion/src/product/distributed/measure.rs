//! Speed functions measured on the processes that will run: each measures itself while all others do.

use crate::error::Result;
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::measure::{MeasureOptions, measure_kernel};
use crate::model::{Model, Models};
use crate::platform::{Network, Platform};
use crate::run::{Monitor, World};

/// Seconds spent on each size, by all ranks at the same time.
const SECONDS: f64 = 0.25;

/// Measures each of the platform's processors on the rank of its number, all together, size by size; every rank gets all
/// models, the same.
///
/// # Errors
/// Those of [`measure_kernel`], agreed by all; interrupted.
///
/// # Panics
/// If the world and the platform are not of one size.
pub fn measure_world<T: Element>(
    kernel: Kernel<T>,
    platform: &Platform,
    (sizes, block): (&[f64], u64),
    world: &World,
    monitor: &Monitor,
) -> Result<Models> {
    assert_eq!(world.size(), platform.len(), "one rank for each processor");
    let own = Platform {
        name: platform.name.clone(),
        processors: vec![platform.processors[world.rank()].clone()],
        network: Network::free(),
    };
    // As long on every rank, however soon the figures are good enough: nobody measures with the others at rest.
    let options = MeasureOptions {
        tolerance: 0.0,
        most_repetitions: 1_000_000,
        seconds_per_size: SECONDS,
        ..MeasureOptions::quick()
    };
    let mut mine: Option<Models> = None;
    for &size in sizes {
        world.barrier()?;
        let measured = world.agree(measure_kernel(kernel, &own, (&[size], block), options, monitor))?;
        mine = Some(match mine.take() {
            None => measured,
            Some(so_far) => with_points(so_far, &measured)?,
        });
    }
    let mine = mine.expect("there is a size");
    let texts = world.gather(mine.to_json().as_bytes())?;
    let parse = |text: &[u8]| Models::parse(&String::from_utf8_lossy(text), "measured speeds");
    let mut all: Option<Models> = None;
    for text in &texts {
        let one = parse(text)?;
        match &mut all {
            None => all = Some(one),
            Some(all) => all.models.extend(one.models),
        }
    }
    let text = all.map(|all| all.to_json()).unwrap_or_default();
    parse(&world.broadcast(text.as_bytes())?)
}

/// One processor's models with the points of another sweep added.
fn with_points(mut models: Models, more: &Models) -> Result<Models> {
    for (model, new) in models.models.iter_mut().zip(&more.models) {
        let mut points = [model.points(), new.points()].concat();
        points.dedup_by(|x, y| x.size == y.size);
        *model = Model::new(model.processor(), model.interpolation(), points, None)?;
    }
    Ok(models)
}
