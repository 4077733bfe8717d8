//! The main job once everything is decided: forecast, run, verify.

use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::kernels::Semiring;
use crate::matrix::{Element, Matrix, Scaling};
use crate::model::Model;
use crate::plan::{Layout, Plan};
use crate::platform::{Platform, available_memory};
use crate::product::adaptive::adapt;
use crate::product::{Adaptation, Adaptive};
use crate::report::RunReport;
use crate::run::{Monitor, RunOutput, ThreadSegments, run_kernel};
use crate::schedule::{Carrier, Schedule, ScheduleOptions, predicted_memory};
use crate::select::Rebalance;
use crate::select::check_caps;
use crate::select::ideal_seconds_turning;
use crate::select::{forecast, rates};
use crate::simulate::CostModel;
use crate::verify::{verify_sampled_at, verify_scaled};
use std::time::Instant;

/// Random vectors that a product is tried with: a wrong one slips through with probability 2^-16 at most.
const TRIALS: u32 = 16;

/// Elements that are recomputed where Freivalds' check does not apply: [`WRONG_FRACTION`] of them wrong slips through
/// with probability 2^-16 at most.
pub(crate) const DRAWS: u64 = 11_085;

/// The fraction of wrong elements that the odds of a miss hold for, over other semirings than plus-times.
pub(crate) const WRONG_FRACTION: f64 = 0.001;

/// What a multiplication is done with.
#[derive(Debug, Clone, Copy)]
pub struct MatmulJob<'a, T> {
    /// The semiring.
    pub kernel: Kernel<T>,
    /// Who computes what; its problem must be the matrices' product.
    pub plan: &'a Plan,
    /// Flow, block, overlap.
    pub order: ScheduleOptions,
    /// Where; its network is enforced if it says `emulate`.
    pub platform: &'a Platform,
    /// Speeds by rank, in elements of C updated by one pivot block of `models_block`, per second.
    pub models: &'a [Model],
    /// See `models`.
    pub models_block: u64,
    /// Alpha, beta and the initial C; [`Scaling::none`] of the kernel's one for a plain product.
    pub scaling: Scaling<'a, T>,
    /// Divide anew in mid-run where that pays; `None` for the plan from beginning to end.
    pub adaptive: Option<Adaptive>,
    /// Seed of the verification.
    pub seed: u64,
}

/// Predicts, runs and verifies C = alpha A B + beta C0 on this machine's threads. Over plus-times Freivalds' check verifies it, over the
/// other semirings a sample of elements recomputed ([`verify_sampled`](crate::verify::verify_sampled)); both cover the whole expression.
///
/// # Errors
/// Not enough memory here (exit code 2); a processor whose `memory` is too little, a worker lost, a stop from outside, or a wrong result (exit code 1).
///
/// # Panics
/// If the plan has no layout or does not fit the matrices or the platform.
pub fn multiply<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    what: &MatmulJob<'_, T>,
    monitor: &Monitor,
) -> Result<(Matrix<T>, RunReport)> {
    let layout = what.plan.layout.as_ref().expect("a plan of a product has a layout");
    let shape = layout.shape();
    let carrier = Carrier::Memory;
    check_memory::<T>(layout, what.order, what.platform, carrier)?;
    let schedule = MatmulSchedule::new(layout, what.order);
    let rates = rates(what.models, &what.plan.shares, what.models_block);
    let network = &what.platform.network;
    let conditions = CostModel { rates: &rates, network, element: size_of::<T>() as u64 };
    let predicted = forecast(layout, what.order, conditions)?;
    let (mut run, adaptation) = match what.adaptive {
        None => (run_kernel(what.kernel, (a, b), &schedule, what.platform, monitor)?, None),
        Some(adaptive) => {
            let (run, adaptation) = run_adaptive((a, b), adaptive, what, monitor)?;
            (run, Some(adaptation))
        }
    };
    let initial = what.scaling.initial.map(Matrix::as_slice);
    what.kernel.finish(what.scaling.scalars(), run.c.as_mut_slice(), initial);
    let begin = Instant::now();
    let (odds, sampled) = verify(a, b, &run.c, what)?;
    if monitor.is_stopped() {
        return Err(Error::Interrupted);
    }
    let report = RunReport {
        engine: "threads",
        semiring: what.kernel.semiring().name(),
        kernel: what.kernel.about(),
        element: T::NAME,
        plan: Plan { forecast: Some(predicted.clone()), ..what.plan.clone() },
        order: schedule.order(),
        trace: run.trace,
        predicted_memory: predicted_memory(layout, schedule.order(), size_of::<T>() as u64, carrier),
        forecast_seconds: predicted.seconds,
        ideal_seconds: ideal_seconds_turning(shape, &rates, what.platform),
        adaptation,
        error_probability: Some(odds),
        sampled,
        products: 1,
        io_seconds: 0.0,
        verify_seconds: begin.elapsed().as_secs_f64(),
    };
    Ok((run.c, report))
}

/// Divides anew whenever a processor has turned slower or faster.
fn run_adaptive<T: Element>(
    factors: (&Matrix<T>, &Matrix<T>),
    adaptive: Adaptive,
    what: &MatmulJob<'_, T>,
    monitor: &Monitor,
) -> Result<(RunOutput<T>, Adaptation)> {
    let layout = what.plan.layout.as_ref().expect("a plan of a product has a layout");
    let MatmulJob { platform, models, models_block, order, .. } = *what;
    let order = MatmulSchedule::new(layout, order).order();
    let rebalance = Rebalance { platform, models, models_block, order, element: size_of::<T>() as u64 };
    monitor.begin((layout.shape().flops() / 2.0) as u64);
    let mut engine = ThreadSegments::new(what.kernel, factors, platform, monitor);
    let (trace, adaptation) = adapt(layout, &what.plan.method, adaptive, &rebalance, &mut engine)?;
    Ok((RunOutput { c: engine.product(), trace }, adaptation))
}

/// The odds of a miss, and how many elements were recomputed if that was how.
fn verify<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    what: &MatmulJob<'_, T>,
) -> Result<(f64, Option<u64>)> {
    let kernel = what.kernel;
    if kernel.semiring() == Semiring::PlusTimes {
        let verified = verify_scaled((a, b, c), what.scaling, what.seed, TRIALS)?;
        return Ok((verified.error_probability, None));
    }
    let entry = |row: &[T], column: &[T], (i, j): (usize, usize)| {
        let mut element = [kernel.entry(row, column)];
        let initial = what.scaling.initial.map(|initial| &initial.row(i)[j..=j]);
        kernel.finish(what.scaling.scalars(), &mut element, initial);
        element[0]
    };
    let passed = verify_sampled_at((a, b, c), entry, (DRAWS, what.seed))?;
    Ok((passed.error_probability(WRONG_FRACTION), Some(passed.elements)))
}

/// Refuses before memory is taken what would not fit: a processor's part its `memory`, or all together this machine. There C comes twice
/// (parts, then whole), and beside it what the processors hold of others' A and B.
pub(crate) fn check_memory<T>(
    layout: &Layout,
    order: ScheduleOptions,
    platform: &Platform,
    carrier: Carrier,
) -> Result<()> {
    let (shape, element) = (layout.shape(), size_of::<T>() as u64);
    check_caps(layout, order, platform, (element, carrier))?;
    let held: u128 = predicted_memory(layout, order, element, carrier).into_iter().map(u128::from).sum();
    let [c, a, b] = [(shape.m, shape.n), (shape.m, shape.k), (shape.k, shape.n)]
        .map(|(rows, cols)| u128::from(rows) * u128::from(cols) * u128::from(element));
    // The factors are there already.
    let bytes = held - a - b + c;
    if available_memory().is_some_and(|free| bytes > u128::from(free)) {
        let gib = bytes as f64 / (1u64 << 30) as f64;
        return Err(Error::input(
            "memory",
            format!(
                "a {} x {} product by this plan needs {gib:.1} GiB more than the factors, beyond what is free",
                shape.m, shape.n
            ),
            "use the one-to-all flow, a smaller block, --memory to stream from disk, or a machine with more memory",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
