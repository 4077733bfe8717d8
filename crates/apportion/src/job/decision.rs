//! The decisions before a product: plan and flow, made on rank 0 for all ranks.

use super::options::{RunOptions, network_options, size_parts};
use super::sources::KnownMachine;
use super::speeds::SpeedSource;
use super::{Context, Sources};
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::model::Machine;
use crate::plan::shapes::Method;
use crate::plan::{Baselines, Plan, Shape, inner_cuts_refused};
use crate::product::MatmulJob;
use crate::run::World;
use crate::schedule::{DataPath, MatmulSchedule, ScheduleOptions};
use crate::select::{Choice, PlanOptions, order_plan, plan_matmul, plan_symmetric};
use crate::units;
use serde::{Deserialize, Serialize};

/// What was decided, and for which processors.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The processors with the speeds of the forecast.
    pub machine: Machine,
    /// The candidates, the best first; on ranks other than 0 only the best.
    pub choices: Vec<Choice>,
    /// True if they were ranked by communication alone, since speeds are ratios.
    pub relative: bool,
    /// Where the speeds come from.
    pub source: SpeedSource,
}

impl Decision {
    /// The best candidate.
    pub fn best(&self) -> &Choice {
        &self.choices[0]
    }

    /// The best candidate's steps.
    ///
    /// # Errors
    /// A plan without a layout.
    pub fn schedule(&self) -> Result<MatmulSchedule> {
        Ok(MatmulSchedule::new(self.best().plan.layout()?, self.best().order))
    }

    /// The plain product by the best candidate, whose forecast it has.
    pub fn job<T: Element>(&self, kernel: Kernel<T>, seed: u64) -> MatmulJob<'_, T> {
        let best = self.best();
        MatmulJob::new(kernel, &best.plan, best.order, &self.machine.models, self.machine.block)
            .with_forecast(best.plan.forecast.clone())
            .with_seed(seed)
    }
}

/// What is to be decided: the product, and what the caller gives.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub shape: Shape,
    /// Bytes of an element.
    pub element: u64,
    pub known: &'a KnownMachine,
    pub sources: &'a Sources,
    pub options: &'a RunOptions,
    /// What runs, if it cannot use a layout that cuts the inner dimension.
    pub whole_inner: Option<&'static str>,
    /// True for A A^T, of which the lower triangle is computed.
    pub symmetric: bool,
}

impl Question<'_> {
    /// How processors obtain the operands of others.
    pub(crate) fn data_path(&self, world: &World) -> DataPath {
        match (
            world.is_solo(),
            self.options.copies() || self.known.machine.platform.has_memories_of_its_own(),
        ) {
            (false, _) => DataPath::Packed,
            (true, true) => DataPath::Copied,
            (true, false) => DataPath::InPlace,
        }
    }

    /// The times of the product without a plan on a machine.
    pub(crate) fn baselines(&self, machine: &Machine, path: DataPath) -> Result<Option<Baselines>> {
        let any = self.options.flow.plan_options(self.shape.k, self.element, path)?;
        match self.symmetric {
            true => Baselines::of_symmetric(self.shape, machine, &any),
            false => Baselines::of_product(self.shape, machine, &any),
        }
    }
}

impl RunOptions {
    /// Whether threads must copy operands: by request, or because a number of messages is given that divides
    /// the memory for them.
    pub fn copies(&self) -> bool {
        self.copy || self.flow.blocks.is_some()
    }
}

/// Finds processors and speeds for a product of `shape` by this kernel, and decides its plan and flow for all
/// ranks. `whole_inner` names what runs, if it cannot use a layout that cuts the inner dimension.
///
/// # Errors
/// Sources that do not fit; no plan is possible; known to all ranks.
pub fn decide<T: Element>(
    kernel: Kernel<T>,
    shape: Shape,
    sources: &Sources,
    options: &RunOptions,
    whole_inner: Option<&'static str>,
    context: Context<'_>,
) -> Result<Decision> {
    let known = sources.machine(kernel, shape, options.flow.block_size(), options.remeasure, context)?;
    let element = size_of::<T>() as u64;
    let question =
        Question { shape, element, known: &known, sources, options, whole_inner, symmetric: false };
    let decision = decide_for_all(question, false, context)?;
    Ok(decision.expect("only a product on disk is cut into panels"))
}

/// Decides on rank 0, for all ranks. `None` if no plan fits the processors' memory, but panels may
/// (`can_be_cut`).
///
/// # Errors
/// No plan is possible; known to all ranks.
pub(crate) fn decide_for_all(
    question: Question<'_>,
    can_be_cut: bool,
    context: Context<'_>,
) -> Result<Option<Decision>> {
    let world = context.world;
    let path = question.data_path(world);
    let decide = || match decide_here(question, path, context) {
        // Panels of C need less memory on each processor.
        Err(error @ Error::TooLittleMemory { .. }) if can_be_cut => {
            context.detail(format!("{error}: cutting C into panels"));
            Ok(None)
        }
        outcome => outcome.map(Some),
    };
    if world.is_solo() {
        return decide();
    }
    let mine = world.on_root(decide)?;
    let best =
        |decision: &Decision| Best { plan: decision.best().plan.clone(), order: decision.best().order };
    let best = world.from_root(mine.as_ref().map(|mine| mine.as_ref().map(best)))?;
    let (machine, source) = (&question.known.machine, question.known.source());
    let theirs = |Best { plan, order }| {
        let choices = vec![Choice::new(plan, order)];
        Decision { machine: machine.clone(), choices, relative: false, source }
    };
    Ok(mine.unwrap_or_else(|| best.map(theirs)))
}

/// What rank 0 tells the others of its decision.
#[derive(Serialize, Deserialize)]
struct Best {
    plan: Plan,
    order: ScheduleOptions,
}

/// Decides on this rank alone.
pub(crate) fn decide_here(question: Question<'_>, path: DataPath, context: Context<'_>) -> Result<Decision> {
    let on_device = question.known.has_devices().then_some("a product on a device");
    let question = Question { whole_inner: question.whole_inner.or(on_device), ..question };
    let Question { known, sources, options, whole_inner, .. } = question;
    let plan = sources.plan.as_ref();
    if let Some(what) = whole_inner {
        plan.iter().try_for_each(|plan| plan.layout()?.refuse_boxes(what))?;
        if plan.is_none() && options.method.is_some_and(Method::cuts_inner) {
            return Err(inner_cuts_refused(what));
        }
    }
    let (mut choices, relative) = match plan {
        Some(plan) => (choose_order(question, plan, path)?, false),
        None => choose_plan(question, path, context)?,
    };
    if choices[0].plan.baselines.is_none() {
        choices[0].plan.baselines = question.baselines(&known.machine, path)?;
    }
    Ok(Decision { machine: known.machine.clone(), choices, relative, source: known.source() })
}

/// The orders of a given plan, the best first.
fn choose_order(question: Question<'_>, plan: &Plan, path: DataPath) -> Result<Vec<Choice>> {
    let Question { shape, element, known, options, whole_inner, symmetric, .. } = question;
    let place = &question.sources.plan_place;
    let fitting = plan.layout().ok().filter(|layout| layout.shape() == shape);
    let Some(layout) = fitting else {
        let what =
            format!("is not a plan of {} x {} x {}, the sizes of the matrices", shape.m, shape.k, shape.n);
        return Err(Error::input(place, what, "make one with `apportion partition --shape MxKxN`"));
    };
    if layout.is_triangular() != symmetric {
        let [is, not] = [layout.is_triangular(), symmetric].map(|symmetric| match symmetric {
            true => "a symmetric product",
            false => "a product of two matrices",
        });
        return Err(Error::input(place, format!("is a plan of {is}, not of {not}"), "leave it out"));
    }
    let plan_options = PlanOptions {
        open_block: whole_inner.is_none() && !options.flow.has_block(),
        ..options.flow.plan_options(shape.k, element, path)?
    };
    order_plan(plan, &known.machine, &plan_options)
}

/// A new plan, followed by its competitors; true if they were ranked by communication alone.
fn choose_plan(question: Question<'_>, path: DataPath, context: Context<'_>) -> Result<(Vec<Choice>, bool)> {
    let Question { shape, element, known, options, whole_inner, .. } = question;
    let machine = &known.machine;
    if let Some(method) = options.method.filter(|_| options.keep_all) {
        let what = format!("--method {method} gives every processor a share anyway");
        return Err(Error::input("`keep_all`", what, "leave one of the two out"));
    }
    let plan_options = PlanOptions {
        method: options.method,
        method_options: network_options(&machine.platform),
        inner_cuts: whole_inner.is_none(),
        keep_all: options.keep_all,
        open_block: whole_inner.is_none() && !options.flow.has_block(),
        ..options.flow.plan_options(shape.k, element, path)?
    };
    // Ratios given by the user decide the areas; the measured speeds still make the forecast of the run.
    let relative = known.ratios.is_some();
    let plan_options = size_parts(plan_options, options.shares, relative)?;
    let by = |machine: &Machine| match question.symmetric {
        true => plan_symmetric(shape, machine, &plan_options),
        false => plan_matmul(shape, machine, &plan_options),
    };
    let choices = match &known.ratios {
        Some(ratios) => by(&Machine::new(machine.platform.clone(), ratios.clone(), 1))?,
        None => by(machine)?,
    };
    for (place, c) in choices.iter().enumerate() {
        let of = if relative { " of communication" } else { "" };
        let rank = c.rank.map_or_else(|| "-".into(), |r| format!("{}{of}", units::show_seconds(r)));
        let mark = if place == 0 { "chosen" } else { "against" };
        context.detail(format!("{mark}: {:17} {:26} {rank}", c.plan.method, c.order.to_string()));
    }
    Ok((choices, relative))
}
