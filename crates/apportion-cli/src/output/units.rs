//! Output of `partition --units` in addition to the plan.

use apportion::job::{Division, DivisionDetail};
use apportion::units;
use apportion_report::{pairs, table};
use serde_json::{Value, json};

/// How a division is shown.
pub trait ShowDivision {
    /// The method, and the reason for it if it was not the default one.
    fn method(&self) -> String;
    /// Adds what is known besides the plan to its JSON.
    fn extend(&self, value: &mut Value);
    /// The text for readers, printed below the plan.
    fn text(&self) -> String;
}

impl ShowDivision for Division {
    /// The method, and the reason for it if it was not the default one.
    fn method(&self) -> String {
        match &self.detail {
            DivisionDetail::Exact(reason) => format!("{} ({reason})", self.plan.method),
            _ => self.plan.method.clone(),
        }
    }

    /// Adds it to the plan's JSON.
    fn extend(&self, value: &mut Value) {
        let ratios = self.plan.relative_times.is_some();
        match &self.detail {
            DivisionDetail::None => {}
            DivisionDetail::Exact(reason) => value["method_reason"] = reason.as_str().into(),
            DivisionDetail::Robust { found, regret, plain_regret } => {
                value["robust"] = json!(found);
                value["robust"]["regret"] = json!(regret);
                value["robust"]["plain_regret"] = json!(plain_regret);
            }
            DivisionDetail::Front(front) => value["front"] = json!(front),
            DivisionDetail::Clusters(clusters) => {
                value["clusters"] = clusters
                    .iter()
                    .map(|c| {
                        json!({"cluster": c.path, "processors": c.processors, "units": c.units,
                               "flat_units": c.flat_units,
                               "seconds": (!ratios).then_some(c.longest),
                               "relative_time": ratios.then_some(c.longest)})
                    })
                    .collect();
            }
        }
    }

    /// The text for readers, printed below the plan.
    fn text(&self) -> String {
        let ratios = self.plan.relative_times.is_some();
        match &self.detail {
            DivisionDetail::None | DivisionDetail::Exact(_) => String::new(),
            DivisionDetail::Robust { found, regret, plain_regret } => {
                let row = |name: &str, expected, worst, regret: &f64| {
                    vec![
                        name.to_owned(),
                        units::show_seconds(expected),
                        units::show_seconds(worst),
                        format!("{regret:.4}"),
                    ]
                };
                let rows = [
                    row("robust", found.expected_seconds, found.worst_seconds, regret),
                    row("fpm", found.plain_expected_seconds, found.plain_worst_seconds, plain_regret),
                ];
                format!("\n{}", table(&["shares", "expected", "worst case", "regret"], rows.into_iter()))
            }
            DivisionDetail::Front(front) => {
                let rows = front.iter().map(|t| {
                    let shares: Vec<String> = t.shares.iter().map(u64::to_string).collect();
                    vec![units::show_seconds(t.seconds), format!("{:.6} J", t.joules), shares.join(" ")]
                });
                format!("\n{}", table(&["longest time", "energy", "shares"], rows))
            }
            DivisionDetail::Clusters(clusters) => {
                let rows = clusters.iter().map(|c| {
                    vec![
                        c.path.clone(),
                        c.processors.to_string(),
                        units::show_count(u128::from(c.units)),
                        units::show_count(u128::from(c.flat_units)),
                        if ratios { format!("{:.4}", c.longest) } else { units::show_seconds(c.longest) },
                    ]
                });
                let time = if ratios { "time / ideal" } else { "ends after" };
                let header = ["cluster", "processors", "units", "flat", time];
                let furthest = clusters.iter().map(|c| c.units.abs_diff(c.flat_units)).max().unwrap_or(0);
                let facts = [("largest difference from flat", format!("{furthest} units"))];
                format!("\n{}\n{}", table(&header, rows), pairs(&facts))
            }
        }
    }
}
