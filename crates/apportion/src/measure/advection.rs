//! Measures the speed of whole MPDATA steps on this machine's processors.

use crate::error::{Error, Result};
use crate::kernels::mpdata::{
    Advectable, Boundary, Cells, Domain, Exchange, Part, Place, Scheme, Subdomain, sources,
};
use crate::measure::kernels::memory;
use crate::measure::repeated::{Repeat, Repeated, timed};
use crate::measure::sweep;
use crate::measure::sweep::{Keep, Subject, Sweep, Timing};
use crate::model::Models;
use crate::platform::{Platform, Processor};
use crate::run::Monitor;
use crate::run::mailboxes::StopSignal;
use crate::run::parallel;
use crate::run::throttle::Throttle;
use std::collections::BTreeMap;

/// Levels of the grids that are measured, in three dimensions.
const LEVELS: usize = 64;

/// Arrays of a box: the field twice, and the Courant numbers.
const ARRAYS: f64 = 5.0;

/// The name of the kernel in models: `mpdata-f64`, `mpdata-nonoscillatory-f64`, …
pub fn advection_kernel<T: Advectable>(scheme: &Scheme) -> String {
    let option = if scheme.nonoscillatory { "-nonoscillatory" } else { "" };
    format!("mpdata{option}-{}", T::NAME)
}

/// Speed functions of whole MPDATA steps. The size is the number of cells, on a periodic grid of 64 levels
/// that is as square as whole numbers allow. Repetitions go on from the field that the one before left. With
/// `faces` there is a Courant number for each face, as from files, otherwise one for each axis: that is
/// faster.
///
/// # Errors
/// No size, one below 1 or too large for memory; known points of another subject; errors of `keep`;
/// interrupted.
pub fn sweep_advection<T: Advectable>(
    platform: &Platform,
    (scheme, faces): (Scheme, bool),
    sweep: &Sweep,
    keep: &mut Keep<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    let bytes = ARRAYS * size_of::<T>() as f64;
    let machine = memory(platform.len()) / bytes;
    let most = |processor: &Processor| {
        let own = processor.memory.map_or(f64::INFINITY, |memory| memory as f64);
        (own / bytes).min(machine)
    };
    let listed = sweep.sizes.certain();
    let bad = listed.iter().find(|size| !(size.is_finite() && **size >= 1.0 && **size <= machine));
    if bad.is_some() || listed.is_empty() {
        let what = match bad {
            Some(size) => format!("{size} cells are fewer than 1, or more than memory holds"),
            None => "no size is given".into(),
        };
        return Err(Error::input("`sizes`", what, "give sizes such as 65536,1048576,16777216"));
    }
    let option = |on: bool| f64::from(u8::from(on));
    let mut parameters = BTreeMap::from([
        ("dimensions".into(), 3.0),
        ("passes".into(), scheme.passes as f64),
        ("infinite_gauge".into(), option(scheme.infinite_gauge)),
        ("third_order".into(), option(scheme.third_order)),
    ]);
    if faces {
        // Only then: earlier models are of constants, and do not say so.
        parameters.insert("courant_on_faces".into(), 1.0);
    }
    let subject = Subject {
        platform,
        kernel: advection_kernel::<T>(&scheme),
        unit: "grid cells advanced by one step".into(),
        parameters,
        rounded: |size| {
            let [side, other, levels] = sides(size).map(|side| side as f64);
            side * other * levels
        },
        largest: &most,
    };
    let trial =
        |processor: &Processor, _, size: f64| Repeated::new(Grid::<T>::new(processor, (scheme, faces), size));
    sweep::run(&subject, sweep, trial, keep, monitor)
}

/// The sides of a grid of about this number of cells.
fn sides(size: f64) -> [usize; 3] {
    let levels = (size.cbrt().round() as usize).clamp(1, LEVELS);
    let side = (size / levels as f64).sqrt().round().max(1.0) as usize;
    [side, side, levels]
}

/// One size of one processor.
struct Grid<T> {
    threads: usize,
    slowdown: f64,
    governor: Throttle,
    domain: Domain,
    room: Cells,
    cells: Cells,
    subdomain: Subdomain<T>,
}

impl<T: Advectable> Grid<T> {
    fn new(processor: &Processor, (scheme, faces): (Scheme, bool), size: f64) -> Self {
        let domain = Domain::new(&sides(size), &[Boundary::Periodic; 3]);
        let (with, cells) = ((scheme, Exchange::Wide), domain.whole());
        let mut subdomain = Subdomain::new(domain, with, cells, [true; 3], false);
        let field: Vec<T> = (0..cells.count()).map(|i| T::from_f64(1.0 + (i % 97) as f64 / 97.0)).collect();
        subdomain.unpack(Place::Centre, 1, &cells, &field);
        let room = Subdomain::<T>::room(&domain, with, &cells, [true; 3]);
        for (axis, courant) in [0.25, 0.125, 0.1875].into_iter().enumerate() {
            let courant = T::from_f64(courant);
            if faces {
                subdomain.unpack(Place::Face(axis), 1, &room, &vec![courant; room.count()]);
            } else {
                subdomain.fill_courant(axis, courant);
            }
        }
        Self {
            threads: processor.cores.len().max(1),
            slowdown: processor.slowdown,
            governor: Throttle::new(processor.slowdown),
            domain,
            room,
            cells,
            subdomain,
        }
    }
}

impl<T: Advectable> Repeat for Grid<T> {
    fn repeat(&mut self, halt: &StopSignal<'_>, count: u64) -> Result<Timing> {
        let Self { threads, slowdown, governor, domain, room, cells, subdomain } = self;
        let mut elements = Vec::new();
        timed(halt, (count, *slowdown), || {
            governor.try_compute(halt, None, || {
                for source in sources(domain, Place::Centre, room, true) {
                    if source.shift != [0; 3] {
                        elements.resize(source.here.count(), T::ZERO);
                        subdomain.pack(Place::Centre, 1, &source.there(), &mut elements);
                        subdomain.unpack(Place::Centre, 1, &source.here, &elements);
                    }
                }
                subdomain.close(Place::Centre, 1);
                let seconds = parallel::try_all(subdomain.parts(cells, 0, *threads), Part::compute)?;
                subdomain.finish(0);
                Ok(seconds)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{MeasureOptions, Sizes};

    #[test]
    fn every_processor_gets_a_model_of_whole_steps() {
        let mut platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        platform.processors[1].cores = vec![0, 1];
        let options = MeasureOptions { seconds_per_size: 0.05, ..MeasureOptions::quick() };
        let sweep = Sweep::new(Sizes::Listed(vec![4096.0, 600.0]), options);
        let scheme = Scheme { nonoscillatory: true, ..Scheme::new(2).unwrap() };
        let models =
            sweep_advection::<f32>(&platform, (scheme, true), &sweep, &mut |_| Ok(()), &Monitor::new())
                .unwrap();
        assert_eq!((&*models.kernel, models.parameters["passes"]), ("mpdata-nonoscillatory-f32", 2.0));
        for model in &models.models {
            assert_eq!(
                model.points().iter().map(|p| p.size).collect::<Vec<_>>(),
                [648.0, 4096.0],
                "9 x 9 x 8"
            );
        }
        let bad = Sweep::new(Sizes::Listed(vec![0.0]), options);
        let error =
            sweep_advection::<f64>(&platform, (scheme, false), &bad, &mut |_| Ok(()), &Monitor::new());
        assert_eq!(error.unwrap_err().exit_code(), 2);
    }
}
