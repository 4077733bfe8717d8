//! Checks of the Courant numbers: stability, divergence, and the two ends of periodic axes.

use super::application::{Courant, run_of};
use crate::{AdvectProblem, AdvectSchedule, Plane};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::kernels::mpdata::{Advectable, Cells, Place};
use apportion::run::World;

/// Rounding that is no instability.
const SLACK: f64 = 1e-6;

/// What the Courant numbers of a flow are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FlowCheck {
    /// The largest sum over the axes of the magnitudes of a cell's Courant numbers.
    pub largest: f64,
    /// The largest magnitude of a cell's net outflow, as a fraction of the cell's content per step.
    pub divergence: f64,
}

/// Checks the Courant numbers around the cells of this process's processors. Every rank must call it; the
/// result is that of all.
///
/// # Errors
/// On all ranks: a Courant number that is not finite, or a cell whose Courant numbers add up to more than 1
/// (exit code 2, with the cell).
pub(crate) fn check_flow<T: Advectable>(
    schedule: &AdvectSchedule,
    courant: &[Courant<'_, T>],
    world: &World,
) -> Result<FlowCheck> {
    let mut found = FlowCheck { largest: 0.0, divergence: 0.0 };
    let outcome = world
        .processors_here(schedule.boxes_by_rank())
        .flat_map(|rank| schedule.boxes(Rank(rank)))
        .try_for_each(|cells| check_cells(schedule.problem(), courant, cells, &mut found));
    world.all_ok(outcome)?;
    let words = [found.largest.to_bits(), found.divergence.to_bits()];
    // Magnitudes are ordered as their bits are.
    let words = world.all_reduce(&words, u64::max)?;
    Ok(FlowCheck { largest: f64::from_bits(words[0]), divergence: f64::from_bits(words[1]) })
}

/// Checks the Courant numbers around some cells of a grid.
pub(super) fn check_cells<T: Advectable>(
    problem: &AdvectProblem,
    courant: &[Courant<'_, T>],
    cells: &Cells,
    found: &mut FlowCheck,
) -> Result<()> {
    let (domain, plane) = (problem.domain(), Plane::of(&problem.sizes));
    let along = cells.lengths()[2];
    let (mut sums, mut outflow) = (vec![0.0; along], vec![0.0; along]);
    for (i, j) in (cells.lo[0]..cells.hi[0]).flat_map(|i| (cells.lo[1]..cells.hi[1]).map(move |j| (i, j))) {
        sums.fill(0.0);
        outflow.fill(0.0);
        for (number, axis) in domain.axes().iter().copied().enumerate() {
            let blocks = match courant[number] {
                Courant::Constant(value) => {
                    sums.iter_mut().for_each(|sum| *sum += value.to_f64().abs());
                    continue;
                }
                Courant::Faces(blocks) => blocks,
            };
            let place = Place::Face(axis);
            let faces = |from: isize, length: usize| {
                let mut at = [i, j, cells.lo[2]];
                at[axis] = domain.source(place, axis, from).expect("a face of a cell of the grid");
                run_of(blocks, &plane, place, at, length)
            };
            let mut add = |x: usize, lower: T, upper: T| {
                let (lower, upper) = (lower.to_f64(), upper.to_f64());
                // The larger of a number and NaN is the number: zero times NaN is not.
                sums[x] += lower.abs().max(upper.abs()) + 0.0 * (lower + upper);
                outflow[x] += upper - lower;
            };
            if axis == 2 {
                let lower = faces(cells.lo[2], along);
                // The upper face of the last cell may be the first face of the axis.
                let last = faces(cells.hi[2], 1);
                for (x, (lower, upper)) in lower.iter().zip(lower[1..].iter().chain(last)).enumerate() {
                    add(x, *lower, *upper);
                }
            } else {
                let from = [i, j][axis];
                let upper = faces(from + 1, along);
                for (x, (lower, upper)) in faces(from, along).iter().zip(upper).enumerate() {
                    add(x, *lower, *upper);
                }
            }
        }
        for (x, sum) in sums.iter().enumerate() {
            let place = || {
                let at = [i, j, cells.lo[2] + x as isize];
                let at: Vec<String> = domain.axes().iter().map(|axis| at[*axis].to_string()).collect();
                format!("courant numbers at cell ({})", at.join(", "))
            };
            if !sum.is_finite() {
                let remedy = "give finite numbers";
                return Err(Error::input(place(), "are not finite", remedy));
            }
            if *sum > 1.0 + SLACK {
                return Err(Error::input(
                    place(),
                    format!("add up to {sum:.4} in magnitude: beyond 1 the scheme is unstable"),
                    "use a shorter time step, so that the Courant numbers become smaller",
                ));
            }
            found.largest = found.largest.max(*sum);
            found.divergence = found.divergence.max(outflow[x].abs());
        }
    }
    Ok(())
}
