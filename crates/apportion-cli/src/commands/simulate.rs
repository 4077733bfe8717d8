//! `apportion simulate`.

use super::halos::of_grid;
use super::replay::of_traces;
use super::sweep::SweepArgs;
use super::{layouts, sweep};
use crate::args::numbers::within;
use crate::args::pictures;
use crate::args::sharing::Rule;
use crate::args::{FactorKind, FlowArgs, NetworkArgs, SchemeArgs};
use crate::console::{Console, monitor};
use crate::output::forecast::{Forecast, Keep, Order, Simulation};
use crate::output::ranking::memory_fit;
use crate::output::{appear, explain, open, timeline_of};
use apportion::error::{Error, Result};
use apportion::job::{ForecastTask, OrderForecast, Sources, find_fastest_order, rank_of};
use apportion::model::{Machine, WorkUnit, read_models};
use apportion::plan::{Division, Plan, read_plan};
use apportion::platform::{Speed, Topology, read_platform};
use apportion::schedule::{Application, FactorSchedule, Flow, GraphSchedule, MatmulSchedule};
use apportion::select::check_has_times;
use apportion::simulate::{CostModel, Outcome, export_simgrid};
use apportion::trace::{Activity, Lane, Trace};
use apportion_report::Timeline;
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion simulate --plan plan.json --platform platform.toml --trace timeline.svg\n  \
    apportion simulate --shape 4000x4000 --platform platform.toml --sweep bandwidth=100Mbit/s..10Gbit/s\n  \
    apportion simulate --grid 512x512x64 --platform platform.toml --steps 100 --nonoscillatory\n  \
    apportion simulate --kind lu --shape 20000x20000 --platform platform.toml --block 192\n\
    A message waits for the latency, then drains at its link's bandwidth. --sharing decides what happens \
    when several \
    messages use a link. docs/theory/forecasting.md compares the rules with each other and with SimGrid.")]
pub struct SimulateArgs {
    /// Plan to simulate (plan.json).
    #[arg(long, value_name = "FILE", help_heading = "Layout")]
    pub plan: Option<PathBuf>,
    /// Replay time-independent traces of smpirun instead of a plan: in the format of its -replay, a list of file
    /// names, or a directory with traces.txt.
    #[arg(long, value_name = "LIST",
        conflicts_with_all = ["plan", "models", "flow", "overlap", "look_ahead", "block",
        "blocks", "messages", "element", "export_simgrid", "sweep", "grid", "steps", "iterations",
        "nonoscillatory", "infinite_gauge", "third_order", "boundary", "exchange"],
        help_heading = "What is divided")]
    pub traces: Option<PathBuf>,
    /// Forecast a factorisation of the matrix of --shape instead of a plan: by every layout of its block columns
    /// or tiles, with the fastest block or that of --block.
    #[arg(long, value_enum, requires = "shape", help_heading = "What is divided",
        conflicts_with_all = ["plan", "traces", "grid", "steps", "flow", "overlap", "look_ahead", "blocks",
        "messages", "levels", "explain", "export_simgrid", "trace"])]
    pub kind: Option<FactorKind>,
    /// Simulate the advection of a field of these sizes (one to three; the last of three is undivided) by the
    /// plan, or by the fastest plan without one [default: of a plan of a grid, its rows and columns].
    #[arg(long, value_name = "MxNxL", conflicts_with = "sweep", help_heading = "What is divided")]
    pub grid: Option<String>,
    /// Number of time steps of an advection [default: 1].
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), conflicts_with = "sweep",
        help_heading = "Advection")]
    pub steps: Option<u64>,
    #[command(flatten)]
    pub scheme: SchemeArgs,
    /// Read the processors and the network from this file (platform.toml).
    #[arg(long, value_name = "FILE", help_heading = "Processors and speeds")]
    pub platform: PathBuf,
    /// Read speed functions from this file (models.json) [default: the platform's constant speeds].
    #[arg(long, value_name = "FILE", help_heading = "Processors and speeds")]
    pub models: Option<PathBuf>,
    #[command(flatten)]
    pub flow: FlowArgs,
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Size of an element in bytes [default: 8].
    #[arg(long, value_name = "BYTES", value_parser = within(1..=64), help_heading = "For experts")]
    pub element: Option<u64>,
    /// Explain what this processor waited for, and the chain of causes that ends the run; a name, or a number
    /// from 0.
    #[arg(long, value_name = "RANK", help_heading = "For experts")]
    pub explain: Option<String>,
    /// Write the schedule for SimGrid to this directory (platform.xml, hostfile, traces.txt, rank-N.txt) and
    /// print the command that replays it. The forecast then follows SimGrid's rules (--sharing weighted, 16
    /// bytes of envelope per message).
    #[arg(long, value_name = "DIR", help_heading = "For experts")]
    pub export_simgrid: Option<PathBuf>,
    /// Write each processor's timeline to this file: a picture (.svg) or a Chrome trace (any other name).
    #[arg(long, value_name = "FILE", value_parser = pictures::picture, help_heading = "Output")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub sweep: SweepArgs,
}

impl SimulateArgs {
    /// Size of an element in bytes, as given or by default.
    pub fn element(&self) -> u64 {
        self.element.unwrap_or(8)
    }
}

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
    let graph = plan.as_ref().is_some_and(|plan| matches!(plan.division, Division::Graph { .. }));
    if !graph {
        refuse_of_others(args, advects)?;
    }
    match plan {
        Some(plan) if matches!(plan.division, Division::Factorisation { .. }) => {
            of_factorisation(args, plan, rule, json)
        }
        Some(plan) if matches!(plan.division, Division::Graph { .. }) => of_graph(args, plan, rule, json),
        Some(plan) if !advects => of_plan(args, plan, rule, json),
        plan => of_grid(args, plan.as_ref(), rule, json),
    }
}

/// A plan whose methods and flows can be compared.
fn swept_plan(path: &Path) -> Result<Plan> {
    let plan = read_plan(path)?;
    if matches!(plan.division, Division::Grid(_) | Division::Factorisation { .. } | Division::Graph { .. }) {
        let what = "is of no product, and a sweep compares methods and flows of matrix products";
        return Err(Error::input(path.display().to_string(), what, "use a plan of `partition --shape`"));
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
    let command = exported(args, &MatmulSchedule::new(layout, order), costs, &plan.processors, rule)?;
    let broadcasts = matches!(order.flow, Flow::OneToAll | Flow::Broadcast);
    let taken_apart = command.is_some() && broadcasts && network.topology == Topology::Bus;
    let fitted =
        overrun.map(|excess| memory_fit(excess, order.block, layout.shape().k, &processors.platform));
    let order = Some(Order::Product(order));
    let (names, plan) = (plan.processors.clone(), Some(plan));
    Ok(Forecast { simulated, order, command, taken_apart, alone, plan, fitted, names })
}

/// Writes a schedule for SimGrid where that is wanted: the command that replays it.
fn exported<A: Application>(
    args: &SimulateArgs,
    schedule: &A,
    costs: CostModel<'_>,
    names: &[String],
    rule: &Rule,
) -> Result<Option<String>> {
    match (&args.export_simgrid, rule) {
        (Some(directory), Rule::Fluid(rules)) => {
            export_simgrid(schedule, costs, names, rules, directory).map(Some)
        }
        _ => Ok(None),
    }
}

/// The forecast of steps on a graph, in which vertices need the values of their neighbours.
fn of_graph(args: &SimulateArgs, plan: Plan, rule: &Rule, json: bool) -> Result<Forecast> {
    refuse_flow(args)?;
    let machine = processors(args, Some(&plan))?;
    let steps = args.steps.unwrap_or(1);
    let schedule = GraphSchedule::of_plan(&plan, steps)?;
    let sizes: Vec<u64> = plan.costs.iter().flatten().map(|weight| *weight as u64).collect();
    let (rates, network) = (machine.rates(&sizes), &machine.platform.network);
    let costs = CostModel { rates: &rates, network, element: args.element() };
    let keep = Keep::of(args, json, plan.processors.len());
    let simulated = Simulation::new(&schedule, costs, &plan.processors, rule, keep)?;
    let command = exported(args, &schedule, costs, &plan.processors, rule)?;
    Ok(Forecast {
        simulated,
        names: plan.processors.clone(),
        order: Some(Order::Graph { method: plan.method.clone(), steps }),
        taken_apart: false,
        command,
        alone: machine.only_ratios(),
        plan: Some(plan),
        fitted: None,
    })
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
    let command = exported(args, &schedule, costs, &plan.processors, rule)?;
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

/// Checks that there is something to simulate.
///
/// # Errors
/// No plan, traces or shape; a shape without a sweep.
pub fn check(args: &SimulateArgs) -> Result<()> {
    let refuse = |place: &str, what: &str, remedy: &str| Err(Error::input(place, what, remedy));
    let given = args.plan.is_some() || args.traces.is_some() || args.grid.is_some() || args.kind.is_some();
    if args.sweep.methods.is_some() && args.sweep.sweep.is_none() && args.kind.is_none() {
        return refuse(
            "--methods",
            "are compared by sweeps and with --kind",
            "add one of them, or remove the flag",
        );
    }
    match (&args.sweep.sweep, given, &args.sweep.shape) {
        (None, false, Some(_)) => refuse(
            "--shape",
            "is laid out for sweeps and with --kind only",
            "add --sweep, or make a plan with `partition`",
        ),
        (None, false, None) => refuse(
            "simulate",
            "there is nothing to simulate",
            "pass --plan FILE, --grid MxNxL, --traces LIST, or --shape MxN with --sweep PARAMETER=FROM..TO or \
             --kind cholesky|lu|ldlt",
        ),
        (Some(_), false, None) => {
            refuse("--sweep", "there is nothing to lay out", "pass --shape MxN or --plan FILE")
        }
        _ => Ok(()),
    }
}

/// Whether an advection is simulated.
fn advects(args: &SimulateArgs, plan: Option<&Plan>) -> bool {
    args.grid.is_some() || plan.is_some_and(|plan| matches!(plan.division, Division::Grid(_)))
}

/// Rejects flags of products where an advection is simulated, and those of advections elsewhere.
pub fn refuse_of_others(args: &SimulateArgs, advects: bool) -> Result<()> {
    let (flags, what, remedy): (Vec<(&str, bool)>, _, _) = if advects {
        let flow = args.flow.flags().into_iter().filter(|(flag, _)| *flag != "--overlap");
        let simgrid = ("--export-simgrid", args.export_simgrid.is_some());
        (flow.chain([simgrid]).collect(), "does not apply to an advection", "remove the flag")
    } else {
        let scheme = args.scheme.flags().into_iter();
        let steps = ("--steps", args.steps.is_some());
        (scheme.chain([steps]).collect(), "applies to advections only", "add --grid, or remove the flag")
    };
    match flags.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::input(flag, what, remedy)),
    }
}

/// Rejects flags of the flow of a product for a factorisation or a graph, whose order is its own.
fn refuse_flow(args: &SimulateArgs) -> Result<()> {
    match args.flow.flags().into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::input(flag, "applies to matrix products only", "remove the flag")),
    }
}

/// The platform's processors, in the order of the plan if there is one, with their speed functions.
pub fn processors(args: &SimulateArgs, plan: Option<&Plan>) -> Result<Machine> {
    let sources = Sources {
        platform: Some(read_platform(&args.platform)?),
        models: args.models.as_deref().map(read_models).transpose()?,
        plan: plan.cloned(),
        ..Sources::default()
    };
    let units = plan.is_some_and(|p| matches!(p.division, Division::Units { .. }));
    // A cell of a grid is a unit of work too, and so is the weight of a vertex.
    let graph = plan.is_some_and(|p| matches!(p.division, Division::Graph { .. }));
    let product = !units && !graph && !advects(args, plan);
    let machine = sources.given_machine(if product { WorkUnit::MultiplyAdd } else { WorkUnit::Unit })?;
    if args.models.is_none() {
        refuse_ratios(args, &machine, units)?;
    }
    Ok(machine)
}

/// Rejects ratios of speeds where even communication has no time to forecast.
fn refuse_ratios(args: &SimulateArgs, processors: &Machine, units: bool) -> Result<()> {
    let refuse =
        |what: &str, remedy: &str| Err(Error::input(args.platform.display().to_string(), what, remedy));
    if !processors.only_ratios() {
        return Ok(());
    }
    if units {
        let in_flops =
            processors.platform.processors.iter().any(|p| matches!(p.speed, Some(Speed::Flops(_))));
        return refuse(
            if in_flops {
                "its speeds are in flop/s, which say nothing of units, and units send no messages: there is no \
                 time to forecast"
            } else {
                "its speeds are ratios, and units send no messages: there is no time to forecast"
            },
            "give speeds in units/s, or pass --models (created by `apportion measure`)",
        );
    }
    if args.export_simgrid.is_some() {
        return refuse(
            "its speeds are ratios, which SimGrid cannot replay",
            "give speeds in flop/s, or pass --models (created by `apportion measure`)",
        );
    }
    // A sweep may give the network its costs, and checks them itself.
    if args.sweep.sweep.is_some() {
        return Ok(());
    }
    check_has_times(&processors.models, &processors.platform.network)
}

/// Rejects flags that do not apply to units, which send no messages.
fn refuse_for_units(args: &SimulateArgs) -> Result<()> {
    let others = [
        ("--element", args.element.is_some()),
        ("--sharing", args.network.sharing.is_some()),
        ("--eager", args.network.eager.is_some()),
        ("--rate-tolerance", args.network.rate_tolerance.is_some()),
        ("--tcp", args.network.tcp.is_some()),
        ("--export-simgrid", args.export_simgrid.is_some()),
        ("--explain", args.explain.is_some()),
    ];
    match args.flow.flags().into_iter().chain(others).find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::input(
            flag,
            "does not apply to a plan of units, which send no messages",
            "remove the flag, or use the plan of a matrix product",
        )),
    }
}
