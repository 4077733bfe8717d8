//! The main job once everything is decided: forecast, run, verify.

use super::application::computed;
use super::segments::RunSegments;
use super::{Adaptation, Adaptive, Operands, OwnRects, RunReport, adaptive};
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::matrix::{Element, LocalBlocks, Scaling};
use crate::model::Model;
use crate::plan::{Forecast, Layout, Plan};
use crate::platform::{Platform, available_memory};
use crate::run::{Session, trace_of_all};
use crate::schedule::{DataPath, MatmulSchedule, ScheduleOptions, predicted_memory};
use crate::select::{Rebalance, check_caps, forecast, ideal_seconds_turning, rates};
use crate::simulate::CostModel;
use crate::trace::Trace;
use crate::verify::{Claim, verify};
use std::time::Instant;

/// Inputs of a product besides the operands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MatmulJob<'a, T> {
    /// The semiring and the library that computes.
    pub kernel: Kernel<T>,
    /// The plan that maps the work to processors. Its problem must be the product of the matrices.
    pub plan: &'a Plan,
    /// Flow, block, look-ahead.
    pub order: ScheduleOptions,
    /// Speeds by rank, in elements of C updated by one pivot block of `models_block`, per second.
    pub models: &'a [Model],
    /// See `models`.
    pub models_block: u64,
    /// Alpha and beta.
    pub scaling: Scaling<T>,
    /// Repartition in mid-run where that pays; `None` for the plan from beginning to end.
    pub adaptive: Option<Adaptive>,
    /// Forecast of the plan in this order, if it is known; otherwise it is simulated.
    pub forecast: Option<Forecast>,
    /// Seed of the verification.
    pub seed: u64,
}

impl<'a, T: Element> MatmulJob<'a, T> {
    /// Creates the job C = A B by a plan and an order of steps, at the speeds that the models of
    /// `models_block` predict.
    pub fn new(
        kernel: Kernel<T>,
        plan: &'a Plan,
        order: ScheduleOptions,
        models: &'a [Model],
        models_block: u64,
    ) -> Self {
        let scaling = Scaling::none(kernel.one());
        Self { kernel, plan, order, models, models_block, scaling, adaptive: None, forecast: None, seed: 1 }
    }

    /// The same job with scalars.
    #[must_use]
    pub fn with_scaling(self, scaling: Scaling<T>) -> Self {
        Self { scaling, ..self }
    }

    /// The same job, repartitioned in mid-run where that pays.
    #[must_use]
    pub fn with_adaptive(self, adaptive: Option<Adaptive>) -> Self {
        Self { adaptive, ..self }
    }

    /// The same job with a forecast that was made when the plan was chosen.
    #[must_use]
    pub fn with_forecast(self, forecast: Option<Forecast>) -> Self {
        Self { forecast, ..self }
    }

    /// The same job with another seed of the verification.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Multiply-adds of one product: the work of a [`Session`] of one product.
    pub fn work(&self) -> f64 {
        self.plan.layout().map_or(0.0, |layout| layout.shape().flops() / 2.0)
    }

    /// The same job with a forecast. If there is none yet, rank 0 makes it and is the only rank that has it.
    ///
    /// # Errors
    /// As [`simulate`](crate::simulate::simulate), on all ranks.
    pub fn forecast_once(self, session: &Session<'_>) -> Result<Self> {
        let world = session.world();
        let missing = self.forecast.is_none() && world.rank() == 0;
        let predicted =
            world.all_ok(if missing { self.predicted(session.platform()).map(Some) } else { Ok(None) })?;
        let forecast = predicted.or(self.forecast.clone());
        Ok(Self { forecast, ..self })
    }

    fn predicted(&self, platform: &Platform) -> Result<Forecast> {
        let rates = rates(self.models, &self.plan.sizes(), self.models_block);
        let element = size_of::<T>() as u64;
        let conditions = CostModel { rates: &rates, network: &platform.network, element };
        forecast(self.plan.layout()?, self.order, conditions)
    }
}

/// Predicts, runs and verifies C = alpha A B + beta C0 on the session's world. Every rank must call it.
/// Returns this process's blocks of C ([`OwnRects`]) and the report of all processors.
///
/// Over plus-times, Freivalds' check verifies the result. Over the other semirings, a sample of the elements
/// is recomputed. Both cover the whole expression.
///
/// # Errors
/// Not enough memory on this machine (exit code 2); a processor whose `memory` is too small, a lost worker, a
/// stop from outside, or a wrong result (exit code 1). In a world of several ranks, errors that all ranks
/// know are returned as [`Error::Agreed`]. A lost worker and a stop from outside are known to one rank only:
/// end the others with [`World::abort`](crate::run::World::abort).
///
/// # Panics
/// If the plan, the operands and the platform do not fit together.
pub fn multiply<T: Element>(
    operands: Operands<'_, T>,
    job: &MatmulJob<'_, T>,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, RunReport)> {
    let (world, platform) = (session.world(), session.platform());
    let job = &job.clone().forecast_once(session)?;
    let layout = world.all_ok(job.plan.layout())?;
    let (path, element) = (data_path(session), size_of::<T>() as u64);
    world.all_ok(job.order.check_layout(layout))?;
    if job.adaptive.is_some() {
        world.all_ok(layout.refuse_boxes("`adaptive`"))?;
    }
    world.all_ok(check_memory::<T>(layout, job.order, platform, path))?;
    let schedule = MatmulSchedule::new(layout, job.order);
    let (mut c, trace, adaptation) = match job.adaptive {
        None => {
            let (c, trace) = once(operands, job, &schedule, session)?;
            (c, trace, None)
        }
        Some(adaptive) => {
            let (c, trace, adaptation) = adapting(operands, job, adaptive, session)?;
            (c, trace, Some(adaptation))
        }
    };
    finish(job, &mut c, operands.initial);
    let begin = Instant::now();
    let Operands { a, b, initial } = operands;
    let claim = Claim { a, b, c: &c, initial, scaling: job.scaling };
    let verified = verify(&claim, layout.shape(), job.kernel, job.seed, world)?;
    session.world().check()?;
    let rates = rates(job.models, &job.plan.sizes(), job.models_block);
    let report = RunReport {
        plan: Plan { forecast: job.forecast.clone(), ..job.plan.clone() },
        trace,
        predicted_memory: predicted_memory(layout, schedule.order(), element, path),
        forecast_seconds: job.forecast.as_ref().map_or(0.0, |predicted| predicted.seconds),
        ideal_seconds: ideal_seconds_turning(layout.shape(), &rates, platform),
        adaptation,
        error_probability: Some(verified.error_probability),
        sampled: verified.sampled,
        exceptional: verified.exceptional,
        products: 1,
        verify_seconds: begin.elapsed().as_secs_f64(),
        ..RunReport::nothing(job, session)?
    };
    Ok((c, report))
}

/// How the processors of a session access the operands of other processors.
pub(crate) fn data_path(session: &Session<'_>) -> DataPath {
    match (session.world().is_solo(), session.copies()) {
        (false, _) => DataPath::Packed,
        (true, true) => DataPath::Copied,
        (true, false) => DataPath::InPlace,
    }
}

/// Blocks of zeros for these rectangles. The thread that first writes to a page allocates it.
pub(crate) fn empty_blocks<T: Element>(rects: &[crate::geometry::Rect]) -> LocalBlocks<T> {
    rects.iter().map(|rect| (*rect, vec![T::ZERO; rect.area() as usize])).collect()
}

/// Runs the plan without repartitioning.
fn once<T: Element>(
    operands: Operands<'_, T>,
    job: &MatmulJob<'_, T>,
    schedule: &MatmulSchedule,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, Trace)> {
    let mut c = empty_blocks(&OwnRects::of(schedule, session.world()).c);
    let sides = [operands.a, operands.b];
    let lanes = computed(job.kernel, schedule, sides, &mut c, (session, data_path(session)))?;
    let trace = trace_of_all(lanes, session.world())?;
    Ok((c, trace))
}

/// Runs with repartitioning whenever a processor has slowed down or sped up.
fn adapting<T: Element>(
    operands: Operands<'_, T>,
    job: &MatmulJob<'_, T>,
    adaptive: Adaptive,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, Trace, Adaptation)> {
    let layout = job.plan.layout()?;
    let order = MatmulSchedule::new(layout, job.order).order();
    let MatmulJob { models, models_block, .. } = *job;
    let platform = session.platform();
    let (element, path) = (size_of::<T>() as u64, data_path(session));
    let rebalance = Rebalance { platform, models, models_block, order, element, path };
    let mut engine = RunSegments::new(job.kernel, operands, session);
    let (trace, adaptation) = adaptive::adapt(layout, &job.plan.method, adaptive, &rebalance, &mut engine)?;
    let c = engine.product(MatmulSchedule::new(layout, order))?;
    Ok((c, trace, adaptation))
}

/// Computes alpha A B + beta C0 from A B, in this process's blocks.
fn finish<T: Element>(job: &MatmulJob<'_, T>, c: &mut LocalBlocks<T>, initial: Option<&LocalBlocks<T>>) {
    for (i, (_, block)) in c.iter_mut().enumerate() {
        job.kernel.finish(job.scaling.scalars(), block, initial.map(|blocks| &blocks[i].1[..]));
    }
}

/// Refuses a product that would not fit, before memory is taken: a processor's part must fit its `memory`; C
/// and the copies of A and B on the processors must fit this machine's memory.
pub(crate) fn check_memory<T>(
    layout: &Layout,
    order: ScheduleOptions,
    platform: &Platform,
    path: DataPath,
) -> Result<()> {
    let (shape, element) = (layout.shape(), size_of::<T>() as u64);
    check_caps(layout, order, platform, (element, path))?;
    let held: u128 = predicted_memory(layout, order, element, path).into_iter().map(u128::from).sum();
    let [a, b] = [(shape.m, shape.k), (shape.k, shape.n)]
        .map(|(rows, cols)| u128::from(rows) * u128::from(cols) * u128::from(element));
    // The factors are in memory already.
    let bytes = held.saturating_sub(a + b);
    if available_memory().is_some_and(|free| bytes > u128::from(free)) {
        let gib = bytes as f64 / (1u64 << 30) as f64;
        return Err(Error::input(
            "memory",
            format!(
                "a {} x {} product by this plan needs {gib:.1} GiB besides the factors, more than is free",
                shape.m, shape.n
            ),
            "use the one-to-all flow, a smaller block, panels read from disk, or a machine with more memory",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
