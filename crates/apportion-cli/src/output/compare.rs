//! The table of `partition --compare`.

use apportion::error::Result;
use apportion::plan::shapes::Method;
use apportion::plan::{Layout, Metrics, star_volume};
use apportion::platform::{Network, Topology};
use apportion::report::{pairs, table};
use apportion::units;
use serde_json::{Value, json};

/// The costs of the methods.
pub struct Comparison {
    pub chosen: String,
    pub star: bool,
    pub rows: Vec<Row>,
}

/// The cost of a method, or the reason why it does not apply.
pub struct Row {
    pub method: Method,
    pub outcome: std::result::Result<Cost, String>,
    pub milliseconds: f64,
}

/// The costs of a layout.
pub struct Cost {
    pub metrics: Metrics,
    pub relayed: Option<u64>,
    pub steps: Option<u64>,
    /// `None` if there are too many processors to simulate, or if ratios of speeds give no time.
    pub forecast: Option<f64>,
}

/// The elements moved on a star, counting relayed ones twice; `None` on other networks.
pub fn relayed_volume(layout: &Layout, network: &Network) -> Result<Option<u64>> {
    match network.topology {
        Topology::Star { centre } => star_volume(layout, centre.0).map(Some),
        _ => Ok(None),
    }
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
                let mut cells = vec![row.method.to_string(), "not applicable".into()];
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
                    cost.forecast.map_or_else(|| "-".into(), units::show_seconds),
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
