//! `apportion simulate`.

use super::halos::of_grid;
use super::layouts;
use super::replay::of_traces;
use super::sweep;
use crate::args::SimulateArgs;
use crate::console::{Console, monitor};
use crate::output::forecast::{Forecast, Keep, Order, Simulation};
use crate::output::ranking::memory_fit;
use crate::output::{appear, explain, open, timeline_of};
use crate::prepare::sharing::Rule;
use crate::prepare::simulate::{advects, check, processors, refuse_flow, refuse_for_units, refuse_of_others};
use apportion::error::{Error, Result};
use apportion::job::{ForecastTask, OrderForecast, find_fastest_order, rank_of};
use apportion::model::Machine;
use apportion::plan::{Division, Plan, read_plan};
use apportion::platform::{Topology, read_platform};
use apportion::schedule::{FactorSchedule, Flow, MatmulSchedule};
use apportion::simulate::{CostModel, Outcome, export_simgrid};
use apportion::trace::{Activity, Lane, Trace};
use apportion_report::Timeline;
use std::path::Path;

pub fn run(args: &SimulateArgs, console: &Console) -> Result<()> {
    check(args)?;
    let output = open(args.trace.as_ref())?;
    if args.sweep.sweep.is_some() {
        refuse_of_others(args, false)?;
        let plan = args.plan.as_deref().map(swept_plan).transpose()?;
        let processors = processors(args, plan.as_ref())?;
        return sweep::run(args, plan.as_ref(), &processors, &args.network.rule(false)?, console);
    }
    if let Some(kind) = args.kind {
        return layouts::run(args, kind, console);
    }
    let referee = args.export_simgrid.is_some() || args.traces.is_some();
    let rule = args.network.rule(referee)?;
    monitor().begin(0);
    let forecast = console.watch("simulating", monitor(), || forecast(args, &rule, console.is_json()))?;
    if !forecast.simulated.times.seconds.is_finite() {
        let what = "the simulated time exceeds the range of numbers";
        return Err(Error::input("--platform", what, "raise the smallest speed or bandwidth"));
    }
    let explained = args.explain.as_deref().map(|who| rank_of(who, &forecast.names)).transpose()?;
    let title = forecast.title();
    if let Some(Outcome { trace, .. }) = &forecast.simulated.outcome {
        let shown = Timeline { title: [&title, "forecast"], ..Timeline::new(trace, &forecast.names) };
        appear([(output, &|| timeline_of(args.trace.as_ref(), &shown))])?;
    }
    if forecast.taken_apart {
        console.note("SimGrid has no broadcast on a bus: exported and forecast as one message per receiver");
    }
    let history = || forecast.simulated.outcome.as_ref()?.history.clone();
    let story = explained.map(|rank| (rank, history().unwrap_or_default()));
    console.result(
        || {
            let mut object = forecast.to_value();
            object["sharing"] = rule.to_string().into();
            if let Some((rank, history)) = &story {
                object["explain"] = explain::json(history, *rank, &forecast.names);
            }
            object
        },
        || {
            let mut out = forecast.to_text(&rule);
            if let Some((rank, history)) = &story {
                let element = args.traces.is_none().then(|| args.element());
                out += &explain::text(history, *rank, &forecast.names, element);
            }
            out
        },
    );
    Ok(())
}

/// The forecast of a plan, of an advection, or of traces.
fn forecast(args: &SimulateArgs, rule: &Rule, json: bool) -> Result<Forecast> {
    if let Some(list) = &args.traces {
        return of_traces(list, read_platform(&args.platform)?, rule, args.explain.is_some());
    }
    let plan = args.plan.as_deref().map(read_plan).transpose()?;
    let advects = advects(args, plan.as_ref());
    refuse_of_others(args, advects)?;
    match plan {
        Some(plan) if matches!(plan.division, Division::Factorisation { .. }) => {
            of_factorisation(args, plan, rule, json)
        }
        Some(plan) if !advects => of_plan(args, plan, rule, json),
        plan => of_grid(args, plan.as_ref(), rule, json),
    }
}

/// A plan whose methods and flows can be compared.
fn swept_plan(path: &Path) -> Result<Plan> {
    let plan = read_plan(path)?;
    if matches!(plan.division, Division::Grid(_) | Division::Factorisation { .. }) {
        let what = "is of no product, and a sweep compares methods and flows of matrix products";
        return Err(Error::input(path.display().to_string(), what, "use a plan from `apportion partition`"));
    }
    Ok(plan)
}

fn of_plan(args: &SimulateArgs, plan: Plan, rule: &Rule, json: bool) -> Result<Forecast> {
    if plan.layout().is_err() {
        refuse_for_units(args)?;
    }
    let processors = processors(args, Some(&plan))?;
    let Ok(layout) = plan.layout() else {
        let outcome = Outcome { trace: of_units(&plan, &processors), history: None };
        return Ok(Forecast {
            simulated: outcome.into(),
            names: plan.processors.clone(),
            order: None,
            command: None,
            taken_apart: false,
            alone: false,
            plan: Some(plan),
            fitted: None,
        });
    };
    let alone = processors.only_ratios();
    let task =
        ForecastTask { layout, machine: &processors, flow: &args.flow.options(), element: args.element() };
    let keep = Keep::of(args, json, plan.processors.len());
    let simulate = |schedule: &MatmulSchedule, costs: CostModel<'_>| {
        Simulation::new(schedule, costs, &plan.processors, rule, keep)
    };
    let OrderForecast { order, forecast: simulated, overrun } =
        find_fastest_order(task, monitor(), simulate, |found| found.times.seconds)?;
    let rates = layout.rates(&processors.models, processors.block);
    let network = &processors.platform.network;
    let costs = CostModel { rates: &rates, network, element: args.element() };
    let command = match (&args.export_simgrid, rule) {
        (Some(directory), Rule::Fluid(rules)) => {
            let schedule = MatmulSchedule::new(layout, order);
            Some(export_simgrid(&schedule, costs, &plan.processors, rules, directory)?)
        }
        _ => None,
    };
    let broadcasts = matches!(order.flow, Flow::OneToAll | Flow::Broadcast);
    let taken_apart = command.is_some() && broadcasts && network.topology == Topology::Bus;
    let fitted =
        overrun.map(|excess| memory_fit(excess, order.block, layout.shape().k, &processors.platform));
    let order = Some(Order::Product(order));
    let (names, plan) = (plan.processors.clone(), Some(plan));
    Ok(Forecast { simulated, order, command, taken_apart, alone, plan, fitted, names })
}

/// The forecast of a factorisation by its block columns.
fn of_factorisation(args: &SimulateArgs, plan: Plan, rule: &Rule, json: bool) -> Result<Forecast> {
    refuse_flow(args)?;
    let processors = processors(args, Some(&plan))?;
    let (factors, columns) = plan.blocks()?;
    let block = columns.block();
    let schedule = FactorSchedule::new(factors, columns);
    let rates = processors.rates(&schedule.sizes());
    let network = &*schedule.network(&processors);
    let costs = CostModel { rates: &rates, network, element: args.element() };
    let keep = Keep::of(args, json, plan.processors.len());
    let simulated = Simulation::new(&schedule, costs, &plan.processors, rule, keep)?;
    let command = match (&args.export_simgrid, rule) {
        (Some(directory), Rule::Fluid(rules)) => {
            Some(export_simgrid(&schedule, costs, &plan.processors, rules, directory)?)
        }
        _ => None,
    };
    Ok(Forecast {
        simulated,
        names: plan.processors.clone(),
        order: Some(Order::Factorisation { factors, method: plan.method.clone(), block }),
        taken_apart: command.is_some() && network.topology == Topology::Bus,
        command,
        alone: processors.only_ratios(),
        plan: Some(plan),
        fitted: None,
    })
}

/// Independent units: all processors compute, none communicates.
fn of_units(plan: &Plan, processors: &Machine) -> Trace {
    let shares = || plan.shares.iter().map(|share| *share as f64).collect();
    let sizes: Vec<f64> = plan.costs.clone().unwrap_or_else(shares);
    let lanes = sizes.into_iter().zip(&processors.models).map(|(size, model)| {
        let mut lane = Lane::default();
        lane.push(Activity::Compute, 0.0, model.seconds(size), None);
        lane
    });
    Trace { lanes: lanes.collect() }
}
