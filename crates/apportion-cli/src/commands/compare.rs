//! `apportion partition --compare`: every method on one shape, one table.

use super::partition::Arguments;
use crate::prepare::processors::Processors;
use apportion::error::Result;
use apportion::plan::shapes::Method;
use apportion::plan::{Layout, Metrics, Plan, message_steps, star_volume};
use apportion::platform::{Network, Topology};
use apportion::report::{pairs, table};
use apportion::schedule::ScheduleOptions;
use apportion::select::{affordable, forecast, imbalance, rates};
use apportion::simulate::CostModel;
use apportion::units;
use serde_json::{Value, json};
use std::time::Instant;

/// Above this many processors message steps are left out.
const MOST_COUNTED: usize = 256;

/// What the methods cost.
pub struct Comparison {
    chosen: String,
    relative: bool,
    star: bool,
    rows: Vec<Row>,
}

struct Row {
    method: Method,
    outcome: std::result::Result<Cost, String>,
    milliseconds: f64,
}

struct Cost {
    metrics: Metrics,
    relayed: Option<u64>,
    steps: Option<u64>,
    forecast: Option<f64>,
}

/// The elements moved on a star, those that its centre relays counted twice; `None` on other networks.
pub fn relayed_volume(layout: &Layout, network: &Network) -> Result<Option<u64>> {
    match network.topology {
        Topology::Star { centre } => star_volume(layout, centre.0).map(Some),
        _ => Ok(None),
    }
}

/// Lays the plan's shape out by every method, with the areas that the plan was made for.
pub fn compare(args: &Arguments, plan: &Plan, processors: &Processors) -> Result<Comparison> {
    let layout = plan.layout()?;
    let shape = layout.shape();
    let areas = apportion::plan::shares::fpm(&processors.models, shape.elements())?;
    let weights: Vec<f64> = areas.iter().map(|&a| a as f64).collect();
    let (terms, form) = (args.terms(&processors.platform)?, args.form()?);
    let simulated =
        affordable(processors.platform.len(), shape, args.flow.pivot(shape.k)?, 8 * Method::all().count());
    let mut rows = Vec::new();
    for method in Method::all().filter(|&m| m != Method::ColumnGroups || terms.groups.is_some()) {
        let begin = Instant::now();
        let made = form.layout(shape, |s| method.layout(s, &weights, &terms));
        let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
        let outcome = match made {
            Err(error) => Err(error.to_string()),
            Ok(layout) => {
                let shares = layout.shares();
                let rates = rates(&processors.models, &shares, processors.block);
                let network = &processors.platform.network;
                let seconds = |order: ScheduleOptions| {
                    forecast(&layout, order, CostModel { rates: &rates, network, element: 8 })
                        .map(|f| f.seconds)
                };
                let best = || -> Result<f64> {
                    let orders = args.flow.orders(shape.k)?;
                    let all = orders.into_iter().map(seconds).collect::<Result<Vec<f64>>>()?;
                    Ok(all.into_iter().fold(f64::INFINITY, f64::min))
                };
                Ok(Cost {
                    metrics: Metrics::of_layout(&layout, imbalance(&processors.models, &shares)?),
                    relayed: relayed_volume(&layout, network)?,
                    steps: (layout.processors() <= MOST_COUNTED).then(|| message_steps(&layout)),
                    forecast: if simulated { Some(best()?) } else { None },
                })
            }
        };
        rows.push(Row { method, outcome, milliseconds });
    }
    let star = matches!(processors.platform.network.topology, Topology::Star { .. });
    Ok(Comparison { chosen: plan.method.clone(), relative: processors.relative, star, rows })
}

impl Comparison {
    pub fn to_value(&self) -> Value {
        let methods: Vec<Value> = self
            .rows
            .iter()
            .map(|row| match &row.outcome {
                Ok(cost) => json!({
                    "method": row.method.to_string(),
                    "metrics": cost.metrics,
                    "relayed_volume": cost.relayed,
                    "message_steps": cost.steps,
                    "forecast_seconds": cost.forecast,
                    "milliseconds": row.milliseconds,
                }),
                Err(why) => json!({"method": row.method.to_string(), "refused": why}),
            })
            .collect();
        json!({"chosen": self.chosen, "methods": methods})
    }

    pub fn to_text(&self) -> String {
        let rows = self.rows.iter().map(|row| match &row.outcome {
            Err(_) => {
                let mut cells = vec![row.method.to_string(), "cannot serve".into()];
                cells.resize(9, String::new());
                cells
            }
            Ok(cost) => {
                let m = &cost.metrics;
                let (sum, bound) = (m.sum_half_perimeters.unwrap_or(0.0), m.lower_bound.unwrap_or(1.0));
                let count = |x: Option<u64>| x.map_or_else(String::new, |x| units::show_count(u128::from(x)));
                vec![
                    row.method.to_string(),
                    format!("{sum:.4}"),
                    format!("{:.4}", sum / bound),
                    count(if self.star { cost.relayed } else { m.volume }),
                    count(m.largest_direction()),
                    format!("{:.4}", m.imbalance),
                    count(cost.steps),
                    // Ratios tell no time.
                    cost.forecast.filter(|_| !self.relative).map_or_else(|| "-".into(), units::show_seconds),
                    format!("{:.2}", row.milliseconds),
                ]
            }
        });
        let header = [
            "method",
            "cost",
            "cost / LB",
            if self.star { "volume, relayed" } else { "volume" },
            "largest direction",
            "imbalance",
            "steps",
            "forecast",
            "ms",
        ];
        let mut out = format!("{}\nchosen  {}\n", table(&header, rows), self.chosen);
        let refused: Vec<(String, &String)> = self
            .rows
            .iter()
            .filter_map(|r| Some((r.method.to_string(), r.outcome.as_ref().err()?)))
            .collect();
        if !refused.is_empty() {
            let why: Vec<(&str, String)> =
                refused.iter().map(|(method, why)| (method.as_str(), (*why).clone())).collect();
            out.push_str(&format!("\n{}", pairs(&why)));
        }
        out
    }
}
