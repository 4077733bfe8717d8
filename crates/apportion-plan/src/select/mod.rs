//! Selection of plans of matrix products: areas from speed functions, a method and a flow, and the forecast.
//! If the user leaves method or flow open, every candidate is simulated and the fastest is chosen.

mod appraisal;
mod balance;
mod baselines;
mod budget;
mod candidates;
mod factor;
mod improve;
mod link_lower_bound;
mod memory_fit;
mod observed;
mod pivot_blocks;
mod pruning;
mod rebalance;
mod surfaces;
mod symmetric;
mod time_bound;

pub use crate::model::rates;
pub(crate) use appraisal::in_order_of_preference;
pub use appraisal::{Cost, DecidedBy, preferred};
pub use balance::{
    areas, check_has_times, forecast_units, ideal_seconds_turning, imbalance, imbalance_of, relative_times,
};
pub use baselines::{BaselinePlans, baseline_plans};
pub use factor::{
    FactorLayout, FactorOptions, Factorisation, appraise, candidate_blocks, plan_factorisation,
    plans_by_layout,
};
pub use improve::LeftOut;
pub use memory_fit::{FittedOrder, MemoryOverrun, MemoryPolicy, check_caps, fit_order};
pub use observed::{ObservedMachine, RunTimes};
pub use pivot_blocks::{WORTHWHILE, try_pivot_blocks};
pub use rebalance::{Moves, Observed, Proposal, Rebalance};
pub use surfaces::plan_fpm_br;
pub use symmetric::plan_symmetric;
pub(crate) use time_bound::time_bound;

use crate::error::Result;
use crate::model::Machine;
use crate::plan::shapes::{Communication, Method, MethodOptions, Objective};
use crate::plan::{Baselines, Forecast, Layout, LayoutConstraints, Plan, Shape};
use crate::platform::{Network, Topology};
use crate::schedule::{Flow, MatmulSchedule, Messages, ScheduleOptions};
use crate::simulate::{self, CostModel, Effort, recurrence};
use appraisal::Appraiser;

/// Limit for simulating candidates, in pairs of processors x pivot blocks x candidates (a few seconds). Above
/// it, candidates are ranked by volume, and only the chosen one is simulated if it is within the limit.
const MOST_SIMULATED: f64 = 1e8;
/// A candidate is excluded if its imbalance exceeds the smallest one by this factor and the criterion is not
/// time.
pub const UNEVEN: f64 = 1.05;

/// Criterion for the choice of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Minimise {
    /// Forecast seconds; if speeds are only ratios, the seconds of communication alone.
    Time,
    /// The sum of half-perimeters.
    Sum,
    /// The largest half-perimeter.
    Largest,
    /// Elements moved; on a star, relayed elements count twice.
    Volume,
}

impl Minimise {
    /// True for the sum of half-perimeters and the largest of them.
    fn half_perimeters(self) -> bool {
        matches!(self, Self::Sum | Self::Largest)
    }

    /// What methods with a choice minimise.
    pub fn objective(self) -> Objective {
        match self {
            Self::Time | Self::Volume => Objective::Volume,
            Self::Sum => Objective::Sum,
            Self::Largest => Objective::Largest,
        }
    }
}

/// How the parts of a layout are sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sizing {
    /// In proportion to the speeds.
    #[default]
    Proportional,
    /// From shares in proportion to the speeds, to those of least forecast (Becker 2010, section 6.1.4, for
    /// any layout).
    ByForecast,
    /// Smaller squares, so that a run that overlaps communication with computation ends sooner (Becker 2010,
    /// section 6.1.4).
    ForOverlap,
}

/// Requirements for a plan; `None` leaves the choice open.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// The method of layout.
    pub method: Option<Method>,
    /// The flow. If it is left open, so is overlap.
    pub flow: Option<Flow>,
    /// Pivot block size.
    pub block: u64,
    /// True if another pivot block may be chosen where the forecast of a run with it is lower.
    pub open_block: bool,
    /// True to compute while data travel.
    pub overlap: bool,
    /// Pivot blocks in flight during an update, with overlap; at least 1.
    pub look_ahead: u64,
    /// The messages of the bulk flow.
    pub messages: Messages,
    /// How parts are sized. Shares by forecast need seconds, a network with costs, and time as the criterion;
    /// elsewhere they are in proportion.
    pub sizing: Sizing,
    /// Parameters of some methods; their objective is that of `minimise`.
    pub method_options: MethodOptions,
    /// Alignment of cuts, repetition of the layout, and the methods of a hierarchy's levels, which take
    /// precedence over `method`.
    pub constraints: LayoutConstraints,
    /// Criterion for the method, if it is left open, and for methods that have a choice.
    pub minimise: Minimise,
    /// Bytes of one element.
    pub element: u64,
    /// Handling of the platform's `memory` caps.
    pub memory: MemoryPolicy,
    /// True if layouts may cut the inner dimension where the method is left open.
    pub inner_cuts: bool,
    /// True if every processor gets a share. Otherwise, if the method is left open, processors whose messages
    /// cost more time than their work saves stay out.
    pub keep_all: bool,
}

/// A candidate: a plan, the order of its steps, and its forecast.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The plan, with its forecast unless there are too many processors to simulate. Only the first of
    /// several choices has the table of directions in its metrics.
    pub plan: Plan,
    /// The order of steps.
    pub order: ScheduleOptions,
    /// The value of the criterion by which it was ranked; `None` if it was ruled out without a complete
    /// simulation, or if there are too many processors to simulate.
    pub rank: Option<f64>,
    /// Without a rank: seconds that it takes at least, if a bound ruled it out.
    pub lower_bound: Option<f64>,
    /// The processor that would exceed its `memory` with the requested pivot block, if `order` has a smaller
    /// one.
    pub memory_overrun: Option<MemoryOverrun>,
    /// The processors that stay out because the others alone are faster.
    pub left_out: Option<LeftOut>,
    /// Seconds that the same method, flow and processors take longer with shares in proportion to the speeds,
    /// if the shares consider communication.
    pub sizing_gain: Option<f64>,
}

impl Choice {
    /// A plan with an order of steps, of which nothing else is known.
    pub fn new(plan: Plan, order: ScheduleOptions) -> Self {
        Self {
            plan,
            order,
            rank: None,
            lower_bound: None,
            memory_overrun: None,
            left_out: None,
            sizing_gain: None,
        }
    }

    /// Elements moved.
    pub fn volume(&self) -> u64 {
        self.plan.metrics.volume.unwrap_or(u64::MAX)
    }
}

/// The forecast of a layout, by simulation of its schedule. O(messages) where every pair of processors has a
/// wire of its own (except for the ring flow), otherwise O(steps log p).
///
/// # Errors
/// As [`simulate`](crate::simulate::simulate) and [`ScheduleOptions::check_layout`].
pub fn forecast(layout: &Layout, order: ScheduleOptions, cost_model: CostModel<'_>) -> Result<Forecast> {
    order.check_layout(layout)?;
    let schedule = MatmulSchedule::new(layout, order);
    let forecast = forecast_within(&schedule, cost_model, f64::INFINITY, &Effort::unlimited())?;
    Ok(forecast.expect("nothing exceeds an infinite limit"))
}

/// The forecast of a schedule if it takes at most `limit` seconds, and if the work is not spent before.
fn forecast_within(
    schedule: &MatmulSchedule,
    cost_model: CostModel<'_>,
    limit: f64,
    effort: &Effort,
) -> Result<Option<Forecast>> {
    effort.spend(budget::setting_up(schedule));
    if effort.is_spent() {
        return Ok(None);
    }
    if recurrence::serves(schedule, cost_model) {
        return Ok(recurrence::timed(schedule, cost_model, limit, effort));
    }
    simulate::forecast_within(schedule, cost_model, limit, effort)
}

/// Maps `shape` to the machine's processors by their models (`size` in elements of C), and returns all candidates, the best first. Only the first has the table of directions
/// ([`Metrics::volume_matrix`](crate::plan::Metrics::volume_matrix)) and
/// [`Metrics::communication_free`](crate::plan::Metrics::communication_free).
///
/// # Errors
/// The models' caps cannot hold the matrix, or the requested method is not applicable (exit code 1).
pub fn plan_matmul(shape: Shape, machine: &Machine, options: &PlanOptions) -> Result<Vec<Choice>> {
    let machine = machine.with_device_tiles(options.element)?;
    let machine = machine.as_ref();
    let appraiser = Appraiser::new(machine, options);
    let (mut choices, simulated) = rank_candidates(&appraiser, shape)?;
    if simulated {
        // The block first: it decides which other choices pay. With their layout, another one may be better.
        let found = pivot_blocks::with_other_block(&appraiser, &choices)?;
        choices = match found.map(|found| PlanOptions { block: found.order.block, ..options.clone() }) {
            Some(options) => {
                let by_block = Appraiser::new(machine, &options);
                let (found, _) = rank_candidates(&by_block, shape)?;
                let found = improve::improve(&by_block, shape, found)?;
                // Where others stay out now, it may not have been the block.
                if found[0].left_out.is_some() {
                    choices = improve::improve(&appraiser, shape, choices)?;
                }
                choices.extend(found);
                in_order_of_preference(choices)
            }
            None => improve::improve(&appraiser, shape, choices)?,
        };
        choices.extend(pivot_blocks::with_other_block(&appraiser, &choices)?);
        choices = in_order_of_preference(choices);
    }
    let best = &mut choices[0];
    if best.plan.forecast.is_none()
        && !machine.only_ratios()
        && affordable(machine.processors(), shape, options.block, 1)
    {
        best.plan.forecast = Some(appraiser.forecast(best)?);
    }
    let bound = time_bound(shape, machine, options.element)?;
    for choice in &mut choices {
        choice.plan.set_time_bound(bound);
    }
    choices[0].plan.fill_in();
    choices[0].plan.baselines = Baselines::of_product(shape, machine, options)?;
    Ok(choices)
}

/// The orders of steps of a product's plan, the best first: each that `options` leave open, and with the pivot block
/// of least forecast where that is open.
///
/// # Errors
/// A plan without a layout; no order fits into the processors' memory (exit code 1); those of a forecast.
pub fn order_plan(plan: &Plan, machine: &Machine, options: &PlanOptions) -> Result<Vec<Choice>> {
    let (layout, element) = (plan.layout()?, options.element);
    let rates = layout.rates(&machine.models, machine.block);
    let costs = CostModel { rates: &rates, network: &machine.platform.network, element };
    let bound = if layout.is_triangular() { None } else { time_bound(layout.shape(), machine, element)? };
    let (mut choices, mut refusal) = (Vec::new(), Ok(()));
    for order in options.orders() {
        match fit_order(layout, order, &machine.platform, element, options.memory) {
            Ok(FittedOrder { order, overrun }) => {
                let predicted = forecast(layout, order, costs)?;
                let rank = Some(predicted.seconds);
                let plan = Plan { forecast: Some(predicted), ..plan.clone() };
                choices.push(Choice { rank, memory_overrun: overrun, ..Choice::new(plan, order) });
            }
            Err(error) => refusal = refusal.and(Err(error)),
        }
    }
    if choices.is_empty() {
        refusal?;
    }
    let mut choices = in_order_of_preference(choices);
    if !layout.is_triangular() {
        let found = pivot_blocks::with_other_block(&Appraiser::new(machine, options), &choices)?;
        choices.extend(found.map(|found| {
            let plan = Plan { forecast: found.plan.forecast, ..plan.clone() };
            Choice { plan, ..found }
        }));
        choices = in_order_of_preference(choices);
    }
    choices.iter_mut().for_each(|choice| choice.plan.set_time_bound(bound));
    Ok(choices)
}

/// The candidates, the best first, and whether they were simulated.
fn rank_candidates(appraiser: &Appraiser<'_>, shape: Shape) -> Result<(Vec<Choice>, bool)> {
    let Appraiser { machine, options, .. } = *appraiser;
    let candidates = candidates::candidates(shape, machine, options)?;
    let simulated = affordable(machine.processors(), shape, options.block, candidates.len());
    let choices = appraiser.choices(candidates, simulated)?;
    Ok((rank_choices(choices, options, machine.only_ratios()), simulated))
}

/// Sorts the candidates, the best first, and removes uneven ones if the criterion is not time.
/// Ratios of speeds (`ratios`) let communication alone decide, which would favour uneven ones.
pub(crate) fn rank_choices(choices: Vec<Choice>, options: &PlanOptions, ratios: bool) -> Vec<Choice> {
    let weighs_balance = options.minimise == Minimise::Time && !ratios;
    in_order_of_preference(if weighs_balance { choices } else { even(choices) })
}

/// True if this number of forecasts of a product on p processors takes seconds rather than minutes.
pub fn affordable(processors: usize, shape: Shape, block: u64, forecasts: usize) -> bool {
    let pivots = shape.k.div_ceil(block.max(1)) as f64;
    (processors as f64).powi(2) * pivots * forecasts as f64 <= MOST_SIMULATED
}

impl PlanOptions {
    /// Options with all choices but the pivot block open, inner cuts among them, and without memory checks: any
    /// method and flow, chosen by time, for pivot blocks of `block` indices and elements of `element` bytes.
    pub fn open(block: u64, element: u64) -> Self {
        Self {
            method: None,
            flow: None,
            block,
            open_block: false,
            overlap: false,
            look_ahead: 1,
            messages: Messages::default(),
            sizing: Sizing::ByForecast,
            method_options: MethodOptions::default(),
            constraints: LayoutConstraints::default(),
            minimise: Minimise::Time,
            element,
            memory: MemoryPolicy::Unchecked,
            inner_cuts: true,
            keep_all: false,
        }
    }

    /// True if the method is open, also of a hierarchy's levels.
    pub(crate) fn is_open(&self) -> bool {
        self.method.is_none() && self.constraints.levels.is_none()
    }

    /// The orders to choose from.
    pub(crate) fn orders(&self) -> Vec<ScheduleOptions> {
        let orders = orders(self.flow, self.block, self.overlap, self.look_ahead);
        orders.into_iter().map(|order| order.with_messages(self.messages)).collect()
    }
}

/// The orders to choose from: the requested flow, or every flow with and without overlap, in the order of
/// preference among equals (first less memory, then more slack against noise).
pub fn orders(flow: Option<Flow>, block: u64, overlap: bool, look_ahead: u64) -> Vec<ScheduleOptions> {
    match flow {
        Some(flow) => {
            vec![ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap) * look_ahead)]
        }
        None => [true, false]
            .into_iter()
            .filter(|&o| o || !overlap)
            .flat_map(|overlap| {
                Flow::ALL.map(|flow| {
                    ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap) * look_ahead)
                })
            })
            .collect(),
    }
}

/// Removes candidates that are much less even than the most even one.
fn even(choices: Vec<Choice>) -> Vec<Choice> {
    let least = choices.iter().map(|c| c.plan.metrics.imbalance).fold(f64::INFINITY, f64::min);
    choices.into_iter().filter(|c| c.plan.metrics.imbalance <= least * UNEVEN).collect()
}

/// Serial communication where a link carries one transfer at a time.
pub fn communication_of(network: &Network) -> Communication {
    let one_at_a_time = !network.duplex || network.topology == Topology::Bus;
    if one_at_a_time { Communication::Serial } else { Communication::Parallel }
}

#[cfg(test)]
mod tests;
