//! `apportion simulate` of an advection: halos and boxes against a clock.

use super::simulate::SimulateArgs;
use super::simulate::processors;
use crate::args::sharing::Rule;
use crate::output::forecast::{Forecast, Keep, Order, Simulation};
use crate::prepare::scheme::grid_sizes;
use apportion::error::Result;
use apportion::plan::Plan;
use apportion::select::{Cost, preferred};
use apportion::simulate::CostModel;
use apportion_advect::{AdvectOptions, AdvectProblem, AdvectSchedule, advection_rates, plan_advection};

/// The forecast of the time steps of a grid by a plan, or by the fastest without one. Of the orders that the
/// flags leave open, the fastest by the rule is kept.
///
/// # Errors
/// A plan of another grid, no layout for these processors, too many messages.
pub fn of_grid(args: &SimulateArgs, plan: Option<&Plan>, rule: &Rule, json: bool) -> Result<Forecast> {
    let given = |plan: &Plan| {
        let shape = plan.rectangles().expect("a plan of a grid has rectangles").shape();
        vec![shape.m as usize, shape.n as usize]
    };
    let sizes = match (&args.grid, plan) {
        (Some(text), _) => grid_sizes(text)?,
        (None, plan) => plan.map(given).expect("the caller saw a plan or --grid"),
    };
    let problem = AdvectProblem::new(sizes, &args.scheme.boundaries()?, args.scheme.scheme()?)?;
    let (processors, steps) = (processors(args, plan)?, args.steps.unwrap_or(1));
    let machine = &processors;
    let orders = args.scheme.orders(args.flow.overlap);
    let options = AdvectOptions { method: None, orders: &orders, plan, steps, element: args.element() };
    let choices = plan_advection(&problem, machine, &options)?;
    let best = &choices[0].plan;
    let layout = best.rectangles().expect("an advection's plan is of a grid");
    let keep = Keep::of(args, json, best.processors.len());
    let mut fastest: Option<(_, Simulation)> = None;
    for choice in choices.iter().filter(|choice| choice.plan.method == best.method) {
        let schedule = AdvectSchedule::new(&problem, layout, choice.order, steps)?;
        schedule.check_size()?;
        let rates = advection_rates(&machine.models, &schedule);
        let costs = CostModel { rates: &rates, network: &machine.platform.network, element: args.element() };
        let simulated = Simulation::new(&schedule, costs, &best.processors, rule, keep)?;
        let cost = |simulated: &Simulation| Some(Cost { value: simulated.times.seconds, volume: 0 });
        let better = |(_, best): &(_, Simulation)| preferred(&[cost(best), cost(&simulated)], 0.0) == Some(1);
        if fastest.as_ref().is_none_or(better) {
            fastest = Some((choice.order, simulated));
        }
    }
    let (order, simulated) = fastest.expect("the best choice is among them");
    let order = Order::Advection { layout: best.method.clone(), order, scheme: problem.scheme, steps };
    Ok(Forecast {
        simulated,
        order: Some(order),
        names: best.processors.clone(),
        command: None,
        taken_apart: false,
        alone: processors.only_ratios(),
        plan: Some(best.clone()),
        fitted: None,
    })
}
