//! The main job on many processes, none of which holds a whole matrix: predict, run, verify.

mod freivalds;
mod measure;
mod repeat;
mod sampled;

pub use measure::measure_world;
pub use repeat::{closure_mpi, paths_mpi, power_mpi};

use crate::error::{Error, Result};
use crate::kernels::Semiring;
use crate::matrix::{Element, LocalBlocks};
use crate::plan::Plan;
use crate::product::MatmulJob;
use crate::product::multiply::{DRAWS, WRONG_FRACTION, check_memory};
use crate::report::RunReport;
use crate::run::{Monitor, World, run_mpi};
use crate::schedule::{Carrier, Schedule, predicted_memory};
use crate::select::{forecast, ideal_seconds, rates};
use crate::simulate::CostModel;
use crate::trace::{Lane, Trace};
use std::time::Instant;

/// A rank's parts of A, of B, and of the initial C if there is one.
pub type OwnParts<'a, T> = (&'a LocalBlocks<T>, &'a LocalBlocks<T>, Option<&'a LocalBlocks<T>>);

/// Predicts, runs and verifies C = alpha A B + beta C0 on the processes of a world, one for each processor of the plan. Every rank
/// calls it with its own rectangles of A and B ([`Schedule::own`]) and of C0, if there is one, and gets its own of C, in the same
/// order as C0's ([`Schedule::rects`]). The report is whole on rank 0; the others' lacks the forecast and the other ranks' lanes.
///
/// Over plus-times Freivalds' check verifies the result where all numbers are finite; elsewhere a sample of elements is
/// recomputed, from the factors as they were read. Both cover the whole expression.
///
/// # Errors
/// Those that all ranks know come as [`Error::Agreed`]: not enough memory (exit code 2), a wrong result (exit code 1). A worker
/// lost or a stop from outside are known to this rank alone: end the others with [`World::abort`].
///
/// # Panics
/// If the plan has no layout or does not fit the world, the platform or the parts; if `what` has a whole initial C.
pub fn multiply_mpi<T: Element>(
    (a, b, initial): OwnParts<'_, T>,
    what: &MatmulJob<'_, T>,
    world: &World,
    monitor: &Monitor,
) -> Result<(LocalBlocks<T>, RunReport)> {
    let layout = what.plan.layout.as_ref().expect("a plan of a product has a layout");
    assert!(what.scaling.initial.is_none(), "no rank holds a whole matrix");
    let shape = layout.shape();
    world.agree(check_memory::<T>(layout, what.order, what.platform, Carrier::Mpi))?;
    let schedule = MatmulSchedule::new(layout, what.order);
    let rates = rates(what.models, &what.plan.shares, what.models_block);
    let network = &what.platform.network;
    let conditions = CostModel { rates: &rates, network, element: size_of::<T>() as u64 };
    let predicted = match world.rank() {
        0 => world.agree(forecast(layout, what.order, conditions).map(Some))?,
        _ => world.agree(Ok(None))?,
    };
    let (mut c, lane) = run_mpi(what.kernel, (a, b), (&schedule, world), what.platform, monitor)?;
    for (i, (_, tile)) in c.iter_mut().enumerate() {
        what.kernel.finish(what.scaling.scalars(), tile, initial.map(|tiles| &tiles[i].1[..]));
    }
    let begin = Instant::now();
    let (odds, sampled) = verify((a, b, initial), &c, what, world)?;
    let verify_seconds = begin.elapsed().as_secs_f64();
    let report = RunReport {
        engine: "mpi",
        semiring: what.kernel.semiring().name(),
        kernel: what.kernel.about(),
        element: T::NAME,
        predicted_memory: predicted_memory(layout, what.order, size_of::<T>() as u64, Carrier::Mpi),
        forecast_seconds: predicted.as_ref().map_or(0.0, |p| p.seconds),
        plan: Plan { forecast: predicted, ..what.plan.clone() },
        order: schedule.order(),
        trace: gathered(&lane, world)?,
        ideal_seconds: ideal_seconds(shape, &rates),
        adaptation: None,
        error_probability: Some(odds),
        sampled,
        products: 1,
        io_seconds: 0.0,
        verify_seconds,
    };
    Ok((c, report))
}

/// All ranks' lanes, on rank 0; on the others empty ones.
fn gathered(lane: &Lane, world: &World) -> Result<Trace> {
    let text = serde_json::to_vec(lane).expect("a lane is plain data");
    let all = world.gather(&text)?;
    if world.rank() > 0 {
        return Ok(Trace::empty(world.size()));
    }
    let lanes = all.iter().map(|text| serde_json::from_slice(text).expect("a lane was sent")).collect();
    Ok(Trace { lanes })
}

/// Checks the real result; the odds of a miss, and how many elements were recomputed if that was how. Errors are agreed.
fn verify<T: Element>(
    (a, b, initial): OwnParts<'_, T>,
    c: &LocalBlocks<T>,
    what: &MatmulJob<'_, T>,
    world: &World,
) -> Result<(f64, Option<u64>)> {
    let shape = what.plan.layout.as_ref().expect("a plan of a product has a layout").shape();
    let ([alpha, beta], zero) = (what.scaling.scalars(), what.kernel.zero());
    // What zero is the factor of does not count.
    let nothing = LocalBlocks::new();
    let (a, b) = if alpha == zero { (&nothing, &nothing) } else { (a, b) };
    let claim = Claim { a, b, c, initial: initial.filter(|_| beta != zero), scalars: [alpha, beta] };
    if what.kernel.semiring() == Semiring::PlusTimes && freivalds::all_finite(&claim, world)? {
        let verdict = freivalds::verify(claim, shape, what.seed, world)?;
        return world.agree(verdict).map(|odds| (odds, None));
    }
    let verdict = sampled::verify(claim, shape, what.kernel, (DRAWS, what.seed), world)?;
    let passed = world.agree(verdict)?;
    Ok((passed.error_probability(WRONG_FRACTION), Some(passed.elements)))
}

/// That C = alpha A B + beta C0: a rank's parts, and the two scalars.
#[derive(Clone, Copy)]
struct Claim<'a, T> {
    a: &'a LocalBlocks<T>,
    b: &'a LocalBlocks<T>,
    c: &'a LocalBlocks<T>,
    initial: Option<&'a LocalBlocks<T>>,
    scalars: [T; 2],
}

/// The error for a wrong element.
fn wrong((i, j): (usize, usize), seen: impl std::fmt::Display, wanted: impl std::fmt::Display) -> Error {
    let what = format!("element ({i}, {j}), counted from 0, is {seen} and should be {wanted}");
    Error::WrongResult { what }
}

#[cfg(test)]
mod tests;
