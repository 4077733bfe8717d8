//! Measures the speed of advection on this machine's processors, as a function of the number of cells.

use crate::error::{Error, Result};
use crate::kernels::{Advectable, Advected, donor_cell};
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

/// Values per cell: psi before and after, two Courant numbers.
const VALUES: f64 = 4.0;

/// Speed functions of one upwind (donor-cell) step. The size is the number of cells, on a grid as square as
/// whole numbers allow. The kernel's name is `"stencil-f64"` or `"stencil-f32"`, its parameters are
/// `dimensions` = 2 and `passes` = 1. Courant numbers differ from cell to cell. Every step starts from the
/// same field, so that repetition does not change the values.
///
/// # Errors
/// No size, one below 1 or too large for memory; known points of another subject; errors of `keep`;
/// interrupted.
pub fn sweep_stencil<T: Advectable>(
    platform: &Platform,
    sweep: &Sweep<'_>,
    keep: &mut Keep<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    let most = |processor: &Processor| {
        let own = processor.memory.map_or(f64::INFINITY, |bytes| bytes as f64);
        own.min(memory(platform.len())) / (VALUES * size_of::<T>() as f64)
    };
    let machine = memory(platform.len()) / (VALUES * size_of::<T>() as f64);
    let listed = sweep.sizes.certain();
    let bad = listed.iter().find(|size| !(size.is_finite() && **size >= 1.0 && **size <= machine));
    if bad.is_some() || listed.is_empty() {
        let what = match bad {
            Some(size) => format!("{size} cells are fewer than 1, or more than memory holds"),
            None => "no size is given".into(),
        };
        return Err(Error::input("`sizes`", what, "give sizes such as 4096,65536,1000000"));
    }
    let subject = Subject {
        platform,
        kernel: format!("stencil-{}", T::NAME),
        unit: "grid cells advected by one upwind step".into(),
        parameters: BTreeMap::from([("dimensions".into(), 2.0), ("passes".into(), 1.0)]),
        rounded: |size| size.sqrt().round().powi(2),
        largest: &most,
    };
    let trial =
        |processor: &Processor, _, size: f64| Repeated::new(Grid::<T>::new(processor, size.sqrt() as usize));
    sweep::run(&subject, sweep, trial, keep, monitor)
}

/// One size of one processor.
struct Grid<T> {
    side: usize,
    threads: usize,
    slowdown: f64,
    governor: Throttle,
    psi: Vec<T>,
    courant: [Vec<T>; 2],
    out: Vec<T>,
}

impl<T: Advectable> Grid<T> {
    fn new(processor: &Processor, side: usize) -> Self {
        let filled = |length: usize, scale: f64, shift: f64| -> Vec<T> {
            (0..length).map(|i| T::from_f64((i % 13) as f64 * scale + shift)).collect()
        };
        let faces = (side + 1) * side;
        Self {
            side,
            threads: processor.cores.len().clamp(1, side),
            slowdown: processor.slowdown,
            governor: Throttle::new(processor.slowdown),
            psi: filled((side + 2) * (side + 2), 0.1, 0.1),
            courant: [filled(faces, 0.04, -0.24), filled(faces, 0.03, -0.18)],
            out: filled(side * side, 0.0, 0.0),
        }
    }
}

impl<T: Advectable> Repeat for Grid<T> {
    fn repeat(&mut self, halt: &StopSignal<'_>, count: u64) -> Result<Timing> {
        let Self { side, threads, slowdown, governor, psi, courant: [down, right], out } = self;
        let field = Advected { rows: *side, cols: *side, psi, down, right };
        timed(halt, (count, *slowdown), || {
            governor.try_compute(halt, None, || in_bands(&field, *threads, out))
        })
    }
}

/// A step on several threads, which share the rows. Returns the longest CPU time of the started threads.
fn in_bands<T: Advectable>(field: &Advected<'_, T>, threads: usize, out: &mut [T]) -> Result<f64> {
    let (mut rest, mut parts) = (out, Vec::with_capacity(threads));
    for t in 0..threads {
        let rows = t * field.rows / threads..(t + 1) * field.rows / threads;
        let (mine, others) = rest.split_at_mut(rows.len() * field.cols);
        rest = others;
        parts.push((rows, mine));
    }
    parallel::try_all(parts, |(rows, mine)| donor_cell(field, rows, mine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{MeasureOptions, Sizes};

    /// The benchmarks check the times. This test only checks that bands and threads compute the same step.
    #[test]
    fn bands_agree_and_every_processor_gets_a_model() {
        let mut platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        platform.processors[1].slowdown = 2.0;
        let mut grid = Grid::<f64>::new(&platform.processors[0], 37);
        let field = Advected {
            rows: 37,
            cols: 37,
            psi: &grid.psi.clone(),
            down: &grid.courant[0].clone(),
            right: &grid.courant[1].clone(),
        };
        in_bands(&field, 1, &mut grid.out).unwrap();
        let mut banded = vec![0.0; 37 * 37];
        in_bands(&field, 5, &mut banded).unwrap();
        assert_eq!(grid.out, banded);
        let options = MeasureOptions { seconds_per_size: 0.05, ..MeasureOptions::quick() };
        let sweep = Sweep::new(Sizes::Listed(vec![400.0, 90.0]), options);
        let models = sweep_stencil::<f32>(&platform, &sweep, &mut |_| Ok(()), &Monitor::new()).unwrap();
        assert_eq!((models.kernel.as_str(), models.parameters["passes"]), ("stencil-f32", 1.0));
        for model in &models.models {
            assert_eq!(model.points().iter().map(|p| p.size).collect::<Vec<_>>(), [81.0, 400.0]);
        }
        for bad in [vec![], vec![0.0], vec![f64::NAN], vec![1e30]] {
            let sweep = Sweep::new(Sizes::Listed(bad), options);
            let error =
                sweep_stencil::<f64>(&platform, &sweep, &mut |_| Ok(()), &Monitor::new()).unwrap_err();
            assert_eq!(error.exit_code(), 2);
        }
    }
}
