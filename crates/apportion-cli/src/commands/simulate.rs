//! `apportion simulate`.

use super::sweep::{self, SweepArgs};
use crate::args::FlowArgs;
use crate::args::sharing::{NetworkArgs, Rule};
use crate::console::Console;
use crate::output::explain;
use crate::output::{appear, open, timeline};
use crate::prepare::processors::{Processors, constant, in_plan_order};
use crate::prepare::replay;
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::model::read_models;
use apportion::plan::{Plan, read_plan};
use apportion::platform::{Topology, read_platform};
use apportion::report::{pairs, table};
use apportion::schedule::{Application, Flow, MatmulSchedule, ScheduleOptions};
use apportion::select::rates;
use apportion::simulate::simulate_explained;
use apportion::simulate::{CostModel, Outcome, export_simgrid, simulate, simulate_fluid};
use apportion::trace::{Lane, Trace};
use apportion::units;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "A message waits the latency, then drains at its link's bandwidth. What happens when several use a \
    link is --sharing; docs/simulation.md compares the rules with each other and with SimGrid."
)]
pub struct Arguments {
    /// The plan.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["traces", "shape"])]
    pub plan: Option<PathBuf>,
    /// Instead of a plan: time-independent traces as smpirun -replay takes them, a list of file names or a directory with
    /// traces.txt.
    #[arg(long, value_name = "LIST", conflicts_with_all = ["plan", "models", "flow", "overlap", "look_ahead", "block", "element", "export_simgrid", "sweep"])]
    pub traces: Option<PathBuf>,
    /// Processors and network.
    #[arg(long, value_name = "FILE")]
    pub platform: PathBuf,
    /// Speed functions; default: the platform's constant speeds.
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    #[command(flatten)]
    pub flow: FlowArgs,
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Bytes of one element.
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub element: u64,
    /// Tell what this processor waited for, and the chain of causes that ends the run; a name or a number from 0.
    #[arg(long, value_name = "RANK")]
    pub explain: Option<String>,
    /// Write the schedule for SimGrid (platform.xml, hostfile, traces.txt, rank-N.txt) and print the command that replays
    /// it; the forecast is then what SimGrid should find (--sharing weighted, messages with 16 bytes of envelope).
    #[arg(long, value_name = "DIR")]
    pub export_simgrid: Option<PathBuf>,
    /// Write each processor's timeline: a picture (.svg) or a Chrome trace.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub sweep: SweepArgs,
}

/// A forecast, and what it was of.
pub struct Forecast {
    pub names: Vec<String>,
    pub outcome: Outcome,
    pub order: Option<ScheduleOptions>,
    pub command: Option<String>,
    /// True if broadcasts on a bus were exported as messages.
    pub taken_apart: bool,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let output = open(args.trace.as_ref())?;
    if args.sweep.sweep.is_some() {
        let plan = args.plan.as_deref().map(read_plan).transpose()?;
        let processors = processors(args, plan.as_ref())?;
        let with = (&args.flow, args.element, &args.network.rule(false)?);
        return sweep::run(&args.sweep, (plan.as_ref(), &processors), with, console);
    }
    let referee = args.export_simgrid.is_some() || args.traces.is_some();
    let rule = args.network.rule(referee)?;
    let forecast = match (&args.plan, &args.traces) {
        (_, Some(list)) => {
            replay::of_traces(list, read_platform(&args.platform)?, &rule, args.explain.is_some())?
        }
        (Some(plan), None) => of_plan(args, read_plan(plan)?, &rule)?,
        (None, None) => unreachable!("one of them is required"),
    };
    let explained = args.explain.as_deref().map(|who| rank_of(who, &forecast.names)).transpose()?;
    let trace = &forecast.outcome.trace;
    appear([(output, &|| timeline(args.trace.as_ref(), trace, &forecast.names))])?;
    if forecast.taken_apart {
        console.note("SimGrid knows no broadcast on a bus: exported, and forecast here, as one message for each receiver");
    }
    let story = explained.map(|rank| (rank, forecast.outcome.history.clone().unwrap_or_default()));
    console.result(
        || {
            let mut object = json(&forecast);
            object["sharing"] = rule.to_string().into();
            if let Some((rank, history)) = &story {
                object["explain"] = explain::json(history, *rank, &forecast.names);
            }
            object
        },
        || {
            let mut out = text(&forecast, &rule);
            if let Some((rank, history)) = &story {
                out += &explain::text(history, *rank, &forecast.names);
            }
            out
        },
    );
    Ok(())
}

fn json(forecast: &Forecast) -> Value {
    let (trace, order) = (&forecast.outcome.trace, forecast.order);
    let (compute, communicate, idle) = (trace.compute(), trace.communicate(), trace.idle());
    let each = forecast.names.iter().enumerate().map(|(i, name)| {
        json!({"name": name, "compute": compute[i], "communicate": communicate[i], "idle": idle[i]})
    });
    let mut object = json!({"seconds": trace.seconds(), "flow": order.map(|o| o.flow.to_string()),
        "overlap": order.map(|o| o.overlaps()), "processors": each.collect::<Vec<_>>()});
    if let Some(command) = &forecast.command {
        object["command"] = command.as_str().into();
    }
    object
}

fn text(forecast: &Forecast, rule: &Rule) -> String {
    let trace = &forecast.outcome.trace;
    let (compute, communicate, idle) = (trace.compute(), trace.communicate(), trace.idle());
    let rows = forecast.names.iter().enumerate().map(|(i, name)| {
        let seconds = [&compute, &communicate, &idle].map(|all| units::show_seconds(all[i]));
        [vec![name.clone()], seconds.to_vec()].concat()
    });
    let mut facts = vec![("flow", forecast.order.map_or_else(|| "none".into(), |order| order.to_string()))];
    if *rule != Rule::Fifo {
        facts.push(("sharing", rule.to_string()));
    }
    facts.push(("forecast", units::show_seconds(trace.seconds())));
    facts.extend(forecast.command.clone().map(|command| ("replay", command)));
    format!("{}\n{}", table(&["processor", "compute", "communicate", "idle"], rows), pairs(&facts))
}

/// The processor that a flag names.
fn rank_of(who: &str, names: &[String]) -> Result<Rank> {
    let number = || who.parse().ok().filter(|&i: &usize| i < names.len());
    names.iter().position(|n| n == who).or_else(number).map(Rank).ok_or_else(|| {
        let what = format!("\"{who}\" is no processor");
        Error::input("--explain", what, format!("give a name, or a number from 0 to {}", names.len() - 1))
    })
}

fn of_plan(args: &Arguments, plan: Plan, rule: &Rule) -> Result<Forecast> {
    let processors = processors(args, Some(&plan))?;
    let explain = args.explain.is_some();
    let Ok(layout) = plan.layout() else {
        if args.export_simgrid.is_some() || explain {
            return Err(Error::input(
                args.plan.as_deref().map_or_else(String::new, |p| p.display().to_string()),
                "divides units that send no messages",
                "explain or export the plan of a matrix product",
            ));
        }
        let outcome = Outcome { trace: of_units(&plan, &processors), history: None };
        return Ok(Forecast {
            outcome,
            names: plan.processors,
            order: None,
            command: None,
            taken_apart: false,
        });
    };
    let rates = rates(&processors.models, &plan.shares, processors.block);
    let network = &processors.platform.network;
    let conditions = CostModel { rates: &rates, network, element: args.element };
    let forecast = |order: ScheduleOptions, explain: bool| {
        let schedule = MatmulSchedule::new(layout, order);
        match rule {
            Rule::Fluid(rules) => simulate_fluid(&schedule, conditions, &plan.processors, rules, explain),
            Rule::Fifo if explain => simulate_explained(&schedule, conditions),
            Rule::Fifo => simulate(&schedule, conditions).map(|trace| Outcome { trace, history: None }),
        }
    };
    // Only the fastest is kept: traces of many processors are large.
    let mut fastest: Option<(ScheduleOptions, Outcome)> = None;
    for order in args.flow.orders(layout.shape().k)? {
        let outcome = forecast(order, explain)?;
        if fastest.as_ref().is_none_or(|(_, best)| outcome.trace.seconds() < best.trace.seconds()) {
            fastest = Some((order, outcome));
        }
    }
    let (order, outcome) = fastest.expect("at least one flow");
    let command = match (&args.export_simgrid, rule) {
        (Some(directory), Rule::Fluid(rules)) => {
            let schedule = MatmulSchedule::new(layout, order);
            Some(export_simgrid(&schedule, conditions, &plan.processors, rules, directory)?)
        }
        _ => None,
    };
    let broadcasts = matches!(order.flow, Flow::OneToAll | Flow::Broadcast);
    let taken_apart = command.is_some() && broadcasts && network.topology == Topology::Bus;
    Ok(Forecast { outcome, order: Some(order), command, taken_apart, names: plan.processors })
}

/// The platform's processors, in the order of the plan where there is one, with their speed functions.
fn processors(args: &Arguments, plan: Option<&Plan>) -> Result<Processors> {
    let platform = read_platform(&args.platform)?;
    let platform = plan.map_or(Ok(platform.clone()), |plan| in_plan_order(plan, platform))?;
    let flops_per_unit = if plan.is_some_and(|p| p.layout().is_err()) { 1.0 } else { 2.0 };
    match &args.models {
        None => {
            let processors = constant(platform, flops_per_unit)?;
            let timed = |p: &apportion::platform::Processor| p.speed.is_some() || p.emulated.is_some();
            if args.sweep.sweep.is_none() && !processors.platform.processors.iter().all(timed) {
                return Err(Error::input(
                    args.platform.display().to_string(),
                    "slowdowns tell ratios of speeds, not times",
                    "give speeds in the file, or --models (`apportion measure` makes them)",
                ));
            }
            Ok(processors)
        }
        Some(path) => {
            let models = read_models(path)?;
            let block = models.block().unwrap_or(1);
            let models = models.in_order(&platform.names())?;
            Ok(Processors { models, block, relative: false, sampled: false, platform })
        }
    }
}

/// Independent units: everybody computes, nobody talks.
fn of_units(plan: &Plan, processors: &Processors) -> Trace {
    let lanes = plan.shares.iter().zip(&processors.models).map(|(&share, model)| {
        let mut lane = Lane::default();
        lane.push(apportion::trace::Activity::Compute, 0.0, model.seconds(share as f64), None);
        lane
    });
    Trace { lanes: lanes.collect() }
}
