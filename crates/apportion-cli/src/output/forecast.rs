//! A simulated run.

use super::provenance::add_command;
use super::ranking::fit_text;
use crate::args::sharing::Rule;
use crate::commands::simulate::SimulateArgs;
use apportion::error::Result;
use apportion::kernels::mpdata::Scheme;
use apportion::plan;
use apportion::record::{CriticalPath, Lanes, MemoryFit};
use apportion::schedule::{Application, ScheduleOptions};
use apportion::simulate::{
    CostModel, Outcome, forecast, forecast_fluid, simulate, simulate_explained, simulate_fluid,
};
use apportion::units;
use apportion_advect::AdvectOrder;
use apportion_report::{pairs, table};
use serde_json::{Value, json};

/// Said of times where speeds are ratios.
pub const COMMUNICATION_ALONE: &str = "communication alone: speeds without a unit are ratios";

/// The largest number of processors whose lanes are part of the JSON.
const MOST_IN_JSON: usize = 32;

/// What was simulated.
#[derive(Debug, Clone)]
pub enum Order {
    /// A matrix product.
    Product(ScheduleOptions),
    /// An advection: the layout, the order, the variant and the number of time steps.
    Advection { layout: String, order: AdvectOrder, scheme: Scheme, steps: u64 },
    /// Steps on a graph: the method that divided it, and their number.
    Graph { method: String, steps: u64 },
    /// A factorisation: the factors, the layout and the columns of a block.
    Factorisation { factors: plan::Factors, method: String, block: u64 },
}

impl Order {
    fn note(&self, object: &mut Value) {
        match self {
            Self::Product(order) => {
                object["flow"] = order.flow.to_string().into();
                object["overlap"] = order.overlaps().into();
            }
            Self::Advection { layout, order, scheme, steps } => {
                object["method"] = layout.as_str().into();
                object["scheme"] = json!(scheme);
                object["exchange"] = json!(order.exchange);
                object["overlap"] = order.overlap.into();
                object["steps"] = (*steps).into();
            }
            Self::Graph { method, steps } => {
                object["method"] = method.as_str().into();
                object["steps"] = (*steps).into();
            }
            Self::Factorisation { factors, method, block } => {
                object["factors"] = json!(factors);
                object["method"] = method.as_str().into();
                object["block"] = (*block).into();
            }
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Product(order) => format!("{order} flow, "),
            Self::Advection { order, steps: 1, .. } => format!("a time step, {order}, "),
            Self::Advection { order, steps, .. } => format!("{steps} time steps, {order}, "),
            Self::Graph { method, steps: 1 } => format!("a step on a graph, {method}, "),
            Self::Graph { method, steps } => format!("{steps} steps on a graph, {method}, "),
            Self::Factorisation { factors, method, .. } => format!("{factors}, {method} layout, "),
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Product(order) => vec![("flow", order.to_string())],
            Self::Advection { layout, order, scheme, steps } => vec![
                ("layout", layout.clone()),
                ("steps", format!("{steps} of {scheme}")),
                ("exchange", order.to_string()),
            ],
            Self::Graph { method, steps } => {
                vec![("division", method.clone()), ("steps", steps.to_string())]
            }
            Self::Factorisation { factors, method, block } => vec![
                ("factors", factors.to_string()),
                ("layout", method.clone()),
                ("block", format!("{block} columns")),
            ],
        }
    }
}

/// How much of a simulation is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The times: those of many processors have millions of events.
    Times,
    /// Every event, for a picture.
    Events,
    /// Every event and every wait, to explain them.
    Waits,
}

impl Keep {
    /// What the flags show of a simulation of so many processors besides its times.
    pub fn of(args: &SimulateArgs, json: bool, processors: usize) -> Self {
        match (&args.explain, &args.trace) {
            (Some(_), _) => Self::Waits,
            _ if json && processors <= MOST_IN_JSON => Self::Waits,
            (None, Some(_)) => Self::Events,
            (None, None) => Self::Times,
        }
    }
}

/// The times of a simulation, and its events if they were kept.
pub struct Simulation {
    pub times: plan::Forecast,
    pub outcome: Option<Outcome>,
}

impl Simulation {
    /// Simulates a schedule by a rule.
    pub fn new<A: Application>(
        schedule: &A,
        costs: CostModel<'_>,
        names: &[String],
        rule: &Rule,
        keep: Keep,
    ) -> Result<Self> {
        let outcome = match (rule, keep) {
            (Rule::Fifo, Keep::Times) => {
                return Ok(Self { times: forecast(schedule, costs)?, outcome: None });
            }
            (Rule::Fluid(rules), Keep::Times) => {
                return Ok(Self { times: forecast_fluid(schedule, costs, names, rules)?, outcome: None });
            }
            (Rule::Fifo, Keep::Events) => Outcome { trace: simulate(schedule, costs)?, history: None },
            (Rule::Fifo, Keep::Waits) => simulate_explained(schedule, costs)?,
            (Rule::Fluid(rules), _) => simulate_fluid(schedule, costs, names, rules, keep == Keep::Waits)?,
        };
        Ok(outcome.into())
    }
}

impl From<Outcome> for Simulation {
    fn from(outcome: Outcome) -> Self {
        let trace = &outcome.trace;
        let (compute, communicate) = (trace.compute(), trace.communicate());
        Self {
            times: plan::Forecast { seconds: trace.seconds(), compute, communicate },
            outcome: Some(outcome),
        }
    }
}

/// A forecast and its subject.
pub struct Forecast {
    pub names: Vec<String>,
    pub simulated: Simulation,
    pub order: Option<Order>,
    pub command: Option<String>,
    /// True if broadcasts on a bus were exported as one message per receiver.
    pub taken_apart: bool,
    /// True if speeds are ratios: the times are of communication alone.
    pub alone: bool,
    /// What was simulated, if it is a plan.
    pub plan: Option<plan::Plan>,
    /// The blocks that memory requires.
    pub fitted: Option<MemoryFit>,
}

impl Forecast {
    /// The JSON for programs.
    pub fn to_value(&self) -> Value {
        let plan::Forecast { seconds, compute, communicate } = &self.simulated.times;
        let each = self.names.iter().enumerate().map(|(i, name)| {
            let compute = (!self.alone).then_some(compute[i]);
            json!({"name": name, "compute": compute, "communicate": communicate[i], "idle": self.idle(i)})
        });
        let mut object = json!({"format": "apportion-simulation", "version": 1,
            "seconds": seconds, "flow": null, "overlap": null,
            "processors": each.collect::<Vec<_>>(), "communication_only": self.alone});
        if let Some(order) = &self.order {
            order.note(&mut object);
        }
        if let Some(fitted) = &self.fitted {
            object["memory_fit"] = json!(fitted);
        }
        if let Some(command) = &self.command {
            object["command"] = command.as_str().into();
        }
        if let Some(Outcome { trace, history }) = &self.simulated.outcome {
            object["timeline"] = json!({"forecast": Lanes::new(trace)});
            if let Some(history) = history {
                object["critical_path"] = json!(CriticalPath::new(history, &self.names));
            }
        }
        if let Some(plan) = &self.plan {
            object["plan"] = plan.to_value();
        }
        add_command(&mut object);
        object
    }

    /// Seconds in which a processor neither computes nor communicates.
    fn idle(&self, rank: usize) -> f64 {
        let times = &self.simulated.times;
        (times.seconds - (times.compute[rank] + times.communicate[rank])).max(0.0)
    }

    /// The heading of its picture: the order of steps, the processors and the time.
    pub fn title(&self) -> String {
        let count = self.names.len();
        let plural = if count == 1 { "" } else { "s" };
        let flow = self.order.as_ref().map_or_else(String::new, Order::title);
        let seconds = units::show_seconds(self.simulated.times.seconds);
        format!("{flow}{count} processor{plural}, {seconds}")
    }

    /// The text for readers.
    pub fn to_text(&self, rule: &Rule) -> String {
        let plan::Forecast { seconds, compute, communicate } = &self.simulated.times;
        let rows = self.names.iter().enumerate().map(|(i, name)| {
            let compute = if self.alone { "-".into() } else { units::show_seconds(compute[i]) };
            let [communicate, idle] = [communicate[i], self.idle(i)].map(units::show_seconds);
            vec![name.clone(), compute, communicate, idle]
        });
        let mut facts = self.order.as_ref().map_or_else(Vec::new, Order::facts);
        if *rule != Rule::Fifo {
            facts.push(("sharing", rule.to_string()));
        }
        facts.extend(self.fitted.as_ref().map(|fit| ("fitted", fit_text(fit))));
        facts.push(("forecast", units::show_seconds(*seconds)));
        facts.extend(self.alone.then(|| ("times", COMMUNICATION_ALONE.into())));
        let mut out =
            format!("{}\n{}", table(&["processor", "compute", "communicate", "idle"], rows), pairs(&facts));
        // In one line, so that it can be pasted.
        if let Some(command) = &self.command {
            out += &format!("replay    {command}\n");
        }
        out
    }
}
