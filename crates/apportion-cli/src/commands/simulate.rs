//! `apportion simulate`.

use super::{appear, open, timeline};
use crate::args::FlowArgs;
use crate::console::Console;
use crate::inputs::{Processors, constant};
use apportion::{
    Conditions, Error, Lane, Order, Plan, Platform, Problem, Result, Schedule, Trace, pairs, rates,
    read_models, read_plan, read_platform, simulate, table, units,
};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The plan.
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// Processors and network.
    #[arg(long, value_name = "FILE")]
    pub platform: PathBuf,
    /// Speed functions; default: the platform's constant speeds.
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Bytes of one element.
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub element: u64,
    /// Write each processor's timeline: a picture (.svg) or a Chrome trace.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let output = open(args.trace.as_ref())?;
    let plan = read_plan(&args.plan)?;
    let platform = in_plan_order(&plan, read_platform(&args.platform)?)?;
    let flops_per_unit = if plan.layout.is_some() { 2.0 } else { 1.0 };
    let processors = match &args.models {
        None => constant(platform, flops_per_unit)?,
        Some(path) => {
            let models = read_models(path)?;
            let block = models.block().unwrap_or(1);
            Processors {
                models: models.in_order(&platform.names())?,
                block,
                relative: false,
                sampled: false,
                platform,
            }
        }
    };
    let (trace, order) = match (&plan.layout, plan.problem) {
        (Some(layout), _) => {
            let rates = rates(&processors.models, &plan.shares, processors.block);
            let network = &processors.platform.network;
            let conditions = Conditions { rates: &rates, network, element: args.element };
            let orders = args.flow.orders(layout.shape().k)?;
            let traces = orders.into_iter().map(|order| {
                simulate(&Schedule::matmul(layout, order), conditions).map(|t| (t, Some(order)))
            });
            let traces = traces.collect::<Result<Vec<_>>>()?;
            let fastest = traces.into_iter().min_by(|a, b| a.0.seconds().total_cmp(&b.0.seconds()));
            fastest.expect("at least one flow")
        }
        (None, Problem::Units { .. }) => (of_units(&plan, &processors), None),
        (None, _) => unreachable!("a product's plan has a layout"),
    };
    appear([(output, &|| timeline(args.trace.as_ref(), &trace, &plan.processors))])?;
    let (compute, communicate, idle) = (trace.compute(), trace.communicate(), trace.idle());
    console.result(
        || {
            let each: Vec<_> = (0..plan.processors.len())
                .map(|i| {
                    json!({"name": plan.processors[i], "compute": compute[i],
                           "communicate": communicate[i], "idle": idle[i]})
                })
                .collect();
            json!({"seconds": trace.seconds(), "flow": order.map(|o| o.flow.to_string()), "overlap": order.map(|o| o.overlap), "processors": each})
        },
        || {
            let rows = (0..plan.processors.len()).map(|i| {
                vec![
                    plan.processors[i].clone(),
                    units::show_seconds(compute[i]),
                    units::show_seconds(communicate[i]),
                    units::show_seconds(idle[i]),
                ]
            });
            let facts = [
                ("flow", order.map_or_else(|| "none".into(), named)),
                ("forecast", units::show_seconds(trace.seconds())),
            ];
            format!("{}\n{}", table(&["processor", "compute", "communicate", "idle"], rows), pairs(&facts))
        },
    );
    Ok(())
}

fn named(order: Order) -> String {
    format!("{}{}", order.flow, if order.overlap { " with overlap" } else { "" })
}

/// Independent units: everybody computes, nobody talks.
fn of_units(plan: &Plan, processors: &Processors) -> Trace {
    let lanes = plan.shares.iter().zip(&processors.models).map(|(&share, model)| {
        let mut lane = Lane::default();
        lane.push(apportion::Activity::Compute, 0.0, model.seconds(share as f64), None);
        lane
    });
    Trace { lanes: lanes.collect() }
}

/// The platform's processors in the order of the plan: by name, or one to one where no name is known.
pub fn in_plan_order(plan: &Plan, platform: Platform) -> Result<Platform> {
    let names = platform.names();
    let known = plan.processors.iter().filter(|name| names.contains(name)).count();
    if known == plan.processors.len() {
        return Ok(platform.select(&plan.processors));
    }
    if known == 0 && names.len() == plan.processors.len() {
        return Ok(platform);
    }
    Err(Error::input(
        "--platform",
        format!("knows {known} of the plan's {} processors", plan.processors.len()),
        "use the platform that the plan was made for",
    ))
}
