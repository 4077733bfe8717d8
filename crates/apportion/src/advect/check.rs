//! Checks of the Courant numbers: stability, divergence, and the two ends of periodic axes.

use super::application::{Courant, run_of};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::kernels::mpdata::{Advectable, Place};
use crate::run::World;
use crate::schedule::{AdvectSchedule, Plane};

/// Rounding that is no instability.
const SLACK: f64 = 1e-6;

/// What the Courant numbers of a flow are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowCheck {
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
pub fn check_flow<T: Advectable>(
    schedule: &AdvectSchedule,
    courant: &[Courant<'_, T>],
    world: &World,
) -> Result<FlowCheck> {
    let mut found = FlowCheck { largest: 0.0, divergence: 0.0 };
    let outcome = world
        .processors_here(schedule.boxes_by_rank())
        .try_for_each(|rank| check_rank(schedule, courant, Rank(rank), &mut found));
    world.all_ok(outcome)?;
    let words = [found.largest.to_bits(), found.divergence.to_bits()];
    // Magnitudes are ordered as their bits are.
    let words = world.all_reduce(&words, u64::max)?;
    Ok(FlowCheck { largest: f64::from_bits(words[0]), divergence: f64::from_bits(words[1]) })
}

fn check_rank<T: Advectable>(
    schedule: &AdvectSchedule,
    courant: &[Courant<'_, T>],
    rank: Rank,
    found: &mut FlowCheck,
) -> Result<()> {
    let (domain, plane) = (schedule.domain(), Plane::of(&schedule.problem().sizes));
    for cells in schedule.boxes(rank) {
        let along = cells.lengths()[2];
        let (mut sums, mut outflow) = (vec![0.0; along], vec![0.0; along]);
        for (i, j) in (cells.lo[0]..cells.hi[0]).flat_map(|i| (cells.lo[1]..cells.hi[1]).map(move |j| (i, j)))
        {
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
                let one = |at: [isize; 3]| {
                    let mut at = at;
                    at[axis] = domain.source(place, axis, at[axis]).expect("a face of a cell of the grid");
                    run_of(blocks, &plane, place, at, 1)[0].to_f64()
                };
                for (x, k) in (cells.lo[2]..cells.hi[2]).enumerate() {
                    let mut upper = [i, j, k];
                    upper[axis] += 1;
                    let (lower, upper) = (one([i, j, k]), one(upper));
                    sums[x] += lower.abs().max(upper.abs());
                    outflow[x] += upper - lower;
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
    }
    Ok(())
}
