//! Which layout and which order: every candidate is simulated, the fastest is first.

use crate::{AdvectOrder, AdvectProblem, AdvectSchedule, Plane};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::kernels::mpdata::Exchange;
use apportion::model::{Machine, Model, only_ratios};
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Forecast, Layout, Plan, shares};
use apportion::schedule::Application;
use apportion::select::imbalance;
use apportion::simulate::{CostModel, simulate};
use serde::{Deserialize, Serialize};

/// Layouts that `auto` compares: boxes side by side.
const METHODS: [Method; 4] = [Method::Columns, Method::Grid, Method::Cartesian, Method::Rows];

/// Steps that are simulated, and then as many again: what the second half takes, every later one takes.
const SIMULATED: u64 = 4;

/// The part by which the passes of a step take longer one by one, with a narrow exchange before each: the
/// field then goes through memory in every pass, and otherwise once. 0.25 to 0.38 with two non-oscillatory
/// passes on a processor with AVX-512; others were not measured.
const APART: f64 = 0.3;

/// A plan of the horizontal plane, the order of the steps, and the forecast.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AdvectChoice {
    /// The plan; its forecast is of all steps.
    pub plan: Plan,
    /// The order.
    pub order: AdvectOrder,
    /// Seconds of a step.
    pub(crate) step_seconds: f64,
}

/// What a plan of an advection is for.
#[derive(Debug, Clone, Copy)]
pub struct AdvectOptions<'a> {
    /// The layout method; all are tried if there is none.
    pub method: Option<Method>,
    /// The orders to try.
    pub orders: &'a [AdvectOrder],
    /// A plan whose layout is taken instead.
    pub plan: Option<&'a Plan>,
    /// Number of time steps.
    pub steps: u64,
    /// Bytes of an element.
    pub element: u64,
}

/// Every layout with every order, the fastest first, where forecasts of narrow exchanges count for what they
/// do not know: that passes one by one go through memory. Speeds are in cells advanced by a step per second.
///
/// # Errors
/// No method serves this number of processors (exit code 1); a plan of another grid (exit code 2).
pub fn plan_advection(
    problem: &AdvectProblem,
    machine: &Machine,
    options: &AdvectOptions<'_>,
) -> Result<Vec<AdvectChoice>> {
    let &AdvectOptions { method, orders, plan, steps, element } = options;
    let plane = Plane::of(&problem.sizes);
    let shape = plane.shape()?;
    let mut layouts: Vec<(String, Layout)> = Vec::new();
    let mut refused = None;
    if let Some(plan) = plan {
        let layout = plan.rectangles().ok_or_else(|| {
            Error::input("plan", "divides units, which are no grid", "make a plan with --shape")
        })?;
        plane.check(layout)?;
        // Of a product's plan, the partition of C.
        layouts.push((
            plan.method.clone(),
            Layout::new(shape, layout.processors(), layout.parts().iter().copied())?,
        ));
    } else {
        let columns: Vec<Model> =
            machine.models.iter().map(|model| per_column(model, plane.levels())).collect::<Result<_>>()?;
        let areas = shares::fpm(&columns, shape.elements())?;
        let weights: Vec<f64> = areas.iter().map(|area| *area as f64).collect();
        for method in method.map_or(METHODS.to_vec(), |method| vec![method]) {
            match method.layout(shape, &weights, &MethodOptions::default()) {
                Ok(layout) if layouts.iter().all(|(_, other)| *other != layout) => {
                    layouts.push((method.to_string(), layout));
                }
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        }
    }
    let mut choices = Vec::new();
    for (name, layout) in layouts {
        for order in orders {
            choices.push(forecast(problem, machine, &name, &layout, *order, steps, element)?);
        }
    }
    if choices.is_empty() {
        let none = || Error::infeasible("no layout serves these processors", "use fewer processors");
        return Err(refused.unwrap_or_else(none));
    }
    choices.sort_by(|a, b| cost(problem, a, steps).total_cmp(&cost(problem, b, steps)));
    Ok(choices)
}

/// Seconds of a step by which a choice is ranked.
pub(crate) fn cost(problem: &AdvectProblem, choice: &AdvectChoice, steps: u64) -> f64 {
    let apart = choice.order.exchange == Exchange::Narrow && problem.scheme.passes > 1;
    let computing = choice.plan.forecast.as_ref().map_or(&[][..], |forecast| &forecast.compute);
    let most = computing.iter().copied().fold(0.0, f64::max) / steps.max(1) as f64;
    choice.step_seconds + if apart { APART * most } else { 0.0 }
}

/// The speed function of a processor in columns of cells.
fn per_column(model: &Model, levels: u64) -> Result<Model> {
    let levels = levels as f64;
    let points = model.points().iter().map(|point| {
        let mut point = *point;
        point.size /= levels;
        point
    });
    let most = model.max_size().map(|most| most / levels);
    Model::new(model.processor(), model.interpolation(), points.collect(), most)
}

/// Cells advanced by a step per second of each processor, at the size of its share. Ratios of speeds have no
/// rates: every processor then computes in no time.
pub fn advection_rates(models: &[Model], schedule: &AdvectSchedule) -> Vec<f64> {
    if only_ratios(models) {
        return vec![f64::MAX; models.len()];
    }
    let share = |rank: usize| schedule.share(Rank(rank)).max(1.0);
    models.iter().enumerate().map(|(rank, model)| model.speed(share(rank))).collect()
}

/// Simulates some steps of a layout in an order, and extends them to all.
fn forecast(
    problem: &AdvectProblem,
    machine: &Machine,
    name: &str,
    layout: &Layout,
    order: AdvectOrder,
    steps: u64,
    element: u64,
) -> Result<AdvectChoice> {
    let Machine { platform, models, .. } = machine;
    let few = steps.min(2 * SIMULATED);
    let schedule = AdvectSchedule::new(problem, layout, order, few)?;
    // Ratios count here: they have no times, but the layout with the least of them is the best.
    let share = |rank: usize| schedule.share(Rank(rank)).max(1.0);
    let rates: Vec<f64> = models.iter().enumerate().map(|(rank, model)| model.speed(share(rank))).collect();
    let cost = CostModel { rates: &rates, network: &platform.network, element };
    let times = |steps: u64| -> Result<[Vec<f64>; 3]> {
        let trace = simulate(&schedule.with_steps(steps), cost)?;
        Ok([vec![trace.seconds()], trace.compute(), trace.communicate()])
    };
    let mut all = times(few)?;
    if steps > few {
        let later = (steps - few) as f64 / SIMULATED as f64;
        for (all, half) in all.iter_mut().flatten().zip(times(SIMULATED)?.into_iter().flatten()) {
            *all += (*all - half) * later;
        }
    }
    let [seconds, compute, communicate] = all;
    let shares: Vec<u64> = (0..models.len()).map(|rank| schedule.share(Rank(rank)) as u64).collect();
    let mut plan = Plan::of_grid(name, platform.names(), layout.clone(), imbalance(models, &shares)?);
    plan.forecast = Some(Forecast { seconds: seconds[0], compute, communicate });
    Ok(AdvectChoice { plan, order, step_seconds: seconds[0] / steps.max(1) as f64 })
}
