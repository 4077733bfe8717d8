//! The main job once everything is decided: forecast, run, verify.

use super::application::{TailOutcome, computed};
use super::segments::RunSegments;
use super::{Adaptation, Adaptive, ClosureMethod, OperandViews, OwnRects, RunReport, adaptive};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect};
use crate::kernels::Kernel;
use crate::matrix::{BlockViews, Element, LocalBlocks, Scaling, views_of};
use crate::model::{Machine, Model};
use crate::plan::{Forecast, Layout, Plan};
use crate::platform::Platform;
use crate::process_memory::{prefer_large_pages, require_memory};
use crate::run::{Session, trace_of_all};
use crate::schedule::{Application, DataPath, MatmulSchedule, ScheduleOptions, predicted_memory};
use crate::select::{Rebalance, check_caps, forecast, ideal_seconds_turning, rates};
use crate::simulate::CostModel;
use crate::trace::Trace;
use crate::verify::{DRAWS, Digests, Parts, verify_parts};
use std::time::Instant;

/// Inputs of a product besides the operands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MatmulJob<'a, T> {
    /// The semiring and the library that computes.
    pub(crate) kernel: Kernel<T>,
    /// The plan that maps the work to processors. Its problem must be the product of the matrices.
    pub plan: &'a Plan,
    /// Flow, block, look-ahead.
    pub order: ScheduleOptions,
    /// Speeds by rank, in elements of C updated by one pivot block of `models_block`, per second.
    pub(crate) models: &'a [Model],
    /// See `models`.
    pub(crate) models_block: u64,
    /// Alpha and beta.
    pub(crate) scaling: Scaling<T>,
    /// Repartition in mid-run where that pays; `None` for the plan from beginning to end.
    pub(crate) adaptive: Option<Adaptive>,
    /// The fraction of each processor's rectangles of C that any processor of this process may compute at the
    /// end, at most 1/2; 0 for none.
    pub(crate) tail: f64,
    /// Forecast of the plan in this order, if it is known; otherwise it is simulated.
    pub(crate) forecast: Option<Forecast>,
    /// How a closure is computed; `None` for the method of less predicted time.
    pub(crate) closure: Option<ClosureMethod>,
    /// Seed of the verification.
    pub(crate) seed: u64,
    /// Elements drawn by a verification by samples.
    pub(crate) draws: u64,
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
        let (adaptive, tail, forecast, closure, seed) = (None, 0.0, None, None, 1);
        let draws = DRAWS;
        Self {
            kernel,
            plan,
            order,
            models,
            models_block,
            scaling,
            adaptive,
            tail,
            forecast,
            closure,
            seed,
            draws,
        }
    }

    /// The same job with scalars.
    #[must_use]
    pub(crate) fn with_scaling(self, scaling: Scaling<T>) -> Self {
        Self { scaling, ..self }
    }

    /// The same job, repartitioned in mid-run where that pays.
    #[must_use]
    pub fn with_adaptive(self, adaptive: Option<Adaptive>) -> Self {
        Self { adaptive, ..self }
    }

    /// The same job with a dynamic tail: the last tiles of C, this fraction of each processor's, come from a
    /// queue (Donfack et al. 2012). The elements of C are the same: each has the order of sums of its owner.
    #[must_use]
    pub(crate) fn with_tail(self, tail: f64) -> Self {
        Self { tail, ..self }
    }

    /// The same job with a forecast that was made when the plan was chosen.
    #[must_use]
    pub fn with_forecast(self, forecast: Option<Forecast>) -> Self {
        Self { forecast, ..self }
    }

    /// The same job with a method of its closure.
    #[must_use]
    pub fn with_closure(self, closure: Option<ClosureMethod>) -> Self {
        Self { closure, ..self }
    }

    /// The same job with another seed of the verification.
    #[must_use]
    pub(crate) fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Multiply-adds of one product: the work of a [`Session`] of one product.
    pub fn work(&self) -> f64 {
        self.plan.layout().map_or(0.0, Layout::multiply_adds)
    }

    /// The same job with a forecast. If there is none yet, rank 0 makes it and is the only rank that has it.
    ///
    /// # Errors
    /// As [`simulate`](crate::simulate::simulate), on all ranks.
    pub(crate) fn forecast_once(self, session: &Session<'_>) -> Result<Self> {
        let world = session.world();
        let missing = self.forecast.is_none() && world.rank() == 0;
        let predicted =
            world.all_ok(if missing { self.predicted(session.platform()).map(Some) } else { Ok(None) })?;
        let forecast = predicted.or(self.forecast.clone());
        Ok(Self { forecast, ..self })
    }

    /// The same job with a forecast, made on this rank if there is none yet.
    pub(super) fn forecast_alone(self, platform: &Platform) -> Result<Self> {
        let forecast = self.forecast.clone().map_or_else(|| self.predicted(platform), Ok)?;
        Ok(Self { forecast: Some(forecast), ..self })
    }

    fn predicted(&self, platform: &Platform) -> Result<Forecast> {
        let layout = self.plan.layout()?;
        let rates = layout.rates(self.models, self.models_block);
        let element = size_of::<T>() as u64;
        let costs = CostModel { rates: &rates, network: &platform.network, element };
        forecast(layout, self.order, costs)
    }
}

/// Rows and columns that are mirrored together: so many lines of each triangle stay in the cache.
const MIRRORED: u64 = 64;

/// Predicts, runs and verifies C = alpha A B + beta C0 on the session's world. Every rank must call it.
/// Returns this process's blocks of C ([`OwnRects`]) and the report of all processors. By a plan of a symmetric product
/// B must be A^T: the lower triangle of A B is computed, and mirrored.
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
pub fn multiply<'a, T: Element>(
    operands: impl Into<OperandViews<'a, T>>,
    job: &MatmulJob<'_, T>,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, RunReport)> {
    let operands = operands.into();
    let (world, platform) = (session.world(), session.platform());
    let job = &job.clone().forecast_once(session)?;
    let layout = world.all_ok(job.plan.layout())?;
    let (path, element) = (data_path(session), size_of::<T>() as u64);
    world.all_ok(job.order.check_layout(layout))?;
    if job.adaptive.is_some() {
        world.all_ok(layout.refuse_boxes("`adaptive`"))?;
    }
    world.all_ok(check_memory::<T>(layout, job.order, platform, path))?;
    let has_devices = !platform.network.devices.is_empty();
    world.all_ok(check_tail(job, layout, path, has_devices))?;
    if has_devices {
        world.all_ok(layout.refuse_boxes("a product on a device"))?;
    }
    if job.adaptive.is_some() {
        world.all_ok(refuse_triangle(layout, "`adaptive`"))?;
    }
    let schedule = MatmulSchedule::new(layout, job.order);
    let digests = || Digests::of(&operands.a, &operands.b, world);
    let before = job.kernel.by_library().then(digests);
    let (mut c, trace, adaptation, tail) = match job.adaptive {
        None => {
            let (c, trace, tail) = once(&operands, job, &schedule, session)?;
            (c, trace, None, tail)
        }
        Some(adaptive) => {
            let (c, trace, adaptation) = adapting(&operands, job, adaptive, session)?;
            (c, trace, Some(adaptation), None)
        }
    };
    let begin = Instant::now();
    world.all_ok(before.map_or(Ok(()), |before| before.check(&digests())))?;
    if layout.is_triangular() {
        let here = world.processors_here(schedule.processors());
        let lower: Vec<Rect> = here.flat_map(|rank| schedule.rects(Rank(rank))).copied().collect();
        mirror(&mut c, &lower);
    }
    finish(job, &mut c, operands.initial.as_ref());
    let OperandViews { a, b, initial } = operands;
    let parts = Parts { a, b, c: views_of(&c), initial, scaling: job.scaling, shape: layout.shape() };
    let verified = verify_parts(parts, job.kernel, job.draws, job.seed, world)?;
    session.world().check()?;
    let rates = rates(job.models, &job.plan.sizes(), job.models_block);
    let report = RunReport {
        plan: Plan { forecast: job.forecast.clone(), ..job.plan.clone() },
        trace,
        predicted_memory: predicted_memory(layout, schedule.order(), element, path),
        forecast_seconds: job.forecast.as_ref().map_or(0.0, |predicted| predicted.seconds),
        ideal_seconds: ideal_seconds_turning(layout.multiply_adds(), &rates, platform),
        adaptation,
        tail,
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
pub(crate) fn empty_blocks<T: Element>(rects: &[Rect]) -> LocalBlocks<T> {
    let block = |rect: &Rect| {
        let mut elements = vec![T::ZERO; rect.area() as usize];
        prefer_large_pages(&mut elements);
        (*rect, elements)
    };
    rects.iter().map(block).collect()
}

/// Refuses a tail that is no fraction, or that these processors cannot share.
fn check_tail<T>(job: &MatmulJob<'_, T>, layout: &Layout, path: DataPath, has_devices: bool) -> Result<()> {
    let refuse = |what: String, remedy: &str| Err(Error::input("`tail`", what, remedy));
    if !(0.0..=0.5).contains(&job.tail) {
        return refuse(format!("{} is no fraction of at most 1/2", job.tail), "0.1 is usual");
    }
    if job.tail == 0.0 {
        return Ok(());
    }
    if path != DataPath::InPlace {
        return refuse(
            "the processors have memories of their own, and only threads that share theirs can share tiles"
                .into(),
            "leave it out, or use the threads engine without network emulation, memory caps and copies",
        );
    }
    if has_devices {
        return refuse("a device computes its own tiles only".into(), "leave it out");
    }
    if job.adaptive.is_some() {
        return refuse("an adaptive run repartitions instead".into(), "leave one of the two out");
    }
    layout.refuse_boxes("`tail`")?;
    refuse_triangle(layout, "`tail`")
}

/// Runs the plan without repartitioning.
fn once<T: Element>(
    operands: &OperandViews<'_, T>,
    job: &MatmulJob<'_, T>,
    schedule: &MatmulSchedule,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, Trace, Option<TailOutcome>)> {
    let mut c = empty_blocks(&OwnRects::of(schedule, session.world()).c);
    let sides = [operands.a.clone(), operands.b.clone()];
    let how = (session, data_path(session), job.tail);
    let (lanes, tail) = computed(job.kernel, schedule, sides, &mut c, how)?;
    let trace = trace_of_all(lanes, session.world())?;
    Ok((c, trace, tail))
}

/// Runs with repartitioning whenever a processor has slowed down or sped up.
fn adapting<T: Element>(
    operands: &OperandViews<'_, T>,
    job: &MatmulJob<'_, T>,
    adaptive: Adaptive,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, Trace, Adaptation)> {
    let layout = job.plan.layout()?;
    let order = MatmulSchedule::new(layout, job.order).order();
    let machine = &Machine::new(session.platform().clone(), job.models.to_vec(), job.models_block);
    let (element, path) = (size_of::<T>() as u64, data_path(session));
    let rebalance = Rebalance { machine, order, element, path };
    let mut engine = RunSegments::new(job.kernel, operands, session);
    let (trace, adaptation) = adaptive::adapt(layout, &job.plan.method, adaptive, &rebalance, &mut engine)?;
    let c = engine.product(MatmulSchedule::new(layout, order))?;
    Ok((c, trace, adaptation))
}

/// Refuses a symmetric product on behalf of `what`, which cannot compute one.
fn refuse_triangle(layout: &Layout, what: &str) -> Result<()> {
    if !layout.is_triangular() {
        return Ok(());
    }
    let why = format!("{what} cannot compute a symmetric product by its triangle");
    Err(Error::infeasible(why, "leave it out, or multiply by the transpose"))
}

/// Copies rectangles of the lower triangle to where they are in the upper one, in this process's blocks.
///
/// # Panics
/// If a rectangle or its mirror image is in no block.
fn mirror<T: Copy>(c: &mut LocalBlocks<T>, lower: &[Rect]) {
    let mut turned = Vec::new();
    for part in lower {
        let block = |rect: Rect| c.iter().position(|(held, _)| held.contains(rect));
        let image = Rect::new(part.cols, part.rows);
        let [from, to] = [*part, image].map(|rect| block(rect).expect("both triangles are here"));
        for rows in part.rows.blocks(MIRRORED) {
            for cols in part.cols.blocks(MIRRORED).filter(|cols| cols.start <= rows.start) {
                let (held, elements) = &c[from];
                let at =
                    |i: u64, j: u64| ((i - held.rows.start) * held.cols.len() + j - held.cols.start) as usize;
                turned.clear();
                for j in cols.start..cols.end {
                    turned.extend((rows.start..rows.end).map(|i| elements[at(i, j)]));
                }
                let (held, elements) = &mut c[to];
                for (j, column) in (cols.start..cols.end).zip(turned.chunks_exact(rows.len() as usize)) {
                    // On the diagonal only what is below it.
                    let below = rows.start.max(j + 1).min(rows.end);
                    let row = (j - held.rows.start) * held.cols.len();
                    let first = (row + below - held.cols.start) as usize;
                    let column = &column[(below - rows.start) as usize..];
                    elements[first..first + column.len()].copy_from_slice(column);
                }
            }
        }
    }
}

/// Computes alpha A B + beta C0 from A B, in this process's blocks.
fn finish<T: Element>(job: &MatmulJob<'_, T>, c: &mut LocalBlocks<T>, initial: Option<&BlockViews<'_, T>>) {
    for (i, (_, block)) in c.iter_mut().enumerate() {
        job.kernel.finish(job.scaling, block, initial.map(|blocks| blocks[i].1));
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
    check_caps(layout, order, platform, element, path)?;
    let held: u128 = predicted_memory(layout, order, element, path).into_iter().map(u128::from).sum();
    let above =
        if layout.is_triangular() { shape.elements() - layout.shares().iter().sum::<u64>() } else { 0 };
    let held = held + u128::from(above) * u128::from(element);
    let [a, b] = [(shape.m, shape.k), (shape.k, shape.n)]
        .map(|(rows, cols)| u128::from(rows) * u128::from(cols) * u128::from(element));
    // The factors are in memory already.
    let bytes = held.saturating_sub(a + b);
    require_memory(
        "memory",
        &format!("besides the factors, a {} x {} product by this plan", shape.m, shape.n),
        bytes,
        "use the one-to-all flow, a smaller block, or a machine with more memory",
    )
}

#[cfg(test)]
mod tests;
