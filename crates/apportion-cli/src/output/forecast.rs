//! A simulated run.

use crate::prepare::sharing::Rule;
use apportion::kernels::mpdata::Scheme;
use apportion::report::{pairs, table};
use apportion::schedule::{AdvectOrder, ScheduleOptions};
use apportion::simulate::Outcome;
use apportion::units;
use serde_json::{Value, json};

/// Said of times where speeds are ratios.
pub const COMMUNICATION_ALONE: &str = "communication alone: speeds without a unit are ratios";

/// What was simulated.
#[derive(Debug, Clone)]
pub enum Order {
    /// A matrix product.
    Product(ScheduleOptions),
    /// An advection: the layout, the order, the variant and the number of time steps.
    Advection { layout: String, order: AdvectOrder, scheme: Scheme, steps: u64 },
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
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Product(order) => format!("{order} flow, "),
            Self::Advection { order, steps: 1, .. } => format!("a time step, {order}, "),
            Self::Advection { order, steps, .. } => format!("{steps} time steps, {order}, "),
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
        }
    }
}

/// A forecast and its subject.
pub struct Forecast {
    pub names: Vec<String>,
    pub outcome: Outcome,
    pub order: Option<Order>,
    pub command: Option<String>,
    /// True if broadcasts on a bus were exported as one message per receiver.
    pub taken_apart: bool,
    /// True if speeds are ratios: the times are of communication alone.
    pub alone: bool,
}

impl Forecast {
    /// The JSON for programs.
    pub fn to_value(&self) -> Value {
        let trace = &self.outcome.trace;
        let (compute, communicate, idle) = (trace.compute(), trace.communicate(), trace.idle());
        let each = self.names.iter().enumerate().map(|(i, name)| {
            let compute = (!self.alone).then_some(compute[i]);
            json!({"name": name, "compute": compute, "communicate": communicate[i], "idle": idle[i]})
        });
        let mut object = json!({"seconds": trace.seconds(), "flow": null, "overlap": null,
            "processors": each.collect::<Vec<_>>(), "communication_only": self.alone});
        if let Some(order) = &self.order {
            order.note(&mut object);
        }
        if let Some(command) = &self.command {
            object["command"] = command.as_str().into();
        }
        object
    }

    /// The heading of its picture: the order of steps, the processors and the time.
    pub fn title(&self) -> String {
        let count = self.names.len();
        let plural = if count == 1 { "" } else { "s" };
        let flow = self.order.as_ref().map_or_else(String::new, Order::title);
        let seconds = units::show_seconds(self.outcome.trace.seconds());
        format!("{flow}{count} processor{plural}, {seconds}")
    }

    /// The text for readers.
    pub fn to_text(&self, rule: &Rule) -> String {
        let trace = &self.outcome.trace;
        let (compute, communicate, idle) = (trace.compute(), trace.communicate(), trace.idle());
        let rows = self.names.iter().enumerate().map(|(i, name)| {
            let compute = if self.alone { "-".into() } else { units::show_seconds(compute[i]) };
            vec![name.clone(), compute, units::show_seconds(communicate[i]), units::show_seconds(idle[i])]
        });
        let mut facts = self.order.as_ref().map_or_else(Vec::new, Order::facts);
        if *rule != Rule::Fifo {
            facts.push(("sharing", rule.to_string()));
        }
        facts.push(("forecast", units::show_seconds(trace.seconds())));
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
