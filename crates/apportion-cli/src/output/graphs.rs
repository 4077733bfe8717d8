//! The table of `partition --graph --compare`.

use apportion::plan::Plan;
use apportion::units::{show_count, show_seconds};
use apportion_graph::GraphChoice;
use apportion_report::{gain_text, pairs, table};
use serde_json::{Value, json};

/// A division of a graph, and why it is there.
pub struct Row {
    pub kind: &'static str,
    pub choice: GraphChoice,
}

/// Divisions of a graph side by side.
pub struct Comparison {
    pub rows: Vec<Row>,
    /// Whether only ratios of speeds are known.
    pub relative: bool,
}

impl Comparison {
    pub fn to_value(&self, plan: &Plan) -> Value {
        let row = |Row { kind, choice }: &Row| {
            let GraphChoice { plan, mapped, .. } = choice;
            let seconds = plan.forecast.as_ref().map(|forecast| forecast.seconds);
            json!({"method": plan.method, "kind": kind, "mapped": mapped, "metrics": plan.metrics,
                "forecast_seconds": seconds, "seconds": seconds})
        };
        let of_kind = |kind: &str| self.rows.iter().find(|row| row.kind == kind).map(row);
        let methods: Vec<Value> = self.rows.iter().map(row).collect();
        json!({"chosen": plan.method, "baselines": plan.baselines, "alone": of_kind("alone"),
            "even": of_kind("even"), "methods": methods})
    }

    pub fn to_text(&self, plan: &Plan) -> String {
        let count = |number: Option<u64>| number.map_or("-".into(), |number| show_count(u128::from(number)));
        let cells = |Row { choice, .. }: &Row| {
            let plan = &choice.plan;
            let mut cells = vec![
                plan.method.clone(),
                count(plan.metrics.edge_cut),
                count(plan.metrics.volume),
                format!("{:.4}", plan.metrics.imbalance),
            ];
            cells.extend(plan.forecast.as_ref().map(|forecast| show_seconds(forecast.seconds)));
            cells
        };
        let mut header = vec!["division", "edges cut", "volume", "imbalance"];
        header.extend((!self.relative).then_some("a step"));
        let gain = gain_text(plan).map(|gain| ("gain", gain));
        let facts: Vec<_> = std::iter::once(("chosen", plan.method.clone())).chain(gain).collect();
        format!("{}\n{}", table(&header, self.rows.iter().map(cells)), pairs(&facts))
    }
}
