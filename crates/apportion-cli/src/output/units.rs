//! Output of `partition --units` in addition to the plan.

use apportion::plan::Plan;
use apportion::plan::shares::{RobustShares, Tradeoff};
use apportion::report::{pairs, table};
use apportion::units;
use serde_json::{Value, json};

/// Shares, and the additional results that were requested.
pub struct Division {
    pub plan: Plan,
    pub extra: Extra,
}

/// The output in addition to the plan.
pub enum Extra {
    None,
    /// The reason why `exact` was taken in place of `fpm`.
    Exact(String),
    Robust {
        found: RobustShares,
        regret: f64,
        plain_regret: f64,
    },
    Front(Vec<Tradeoff>),
    Clusters(Vec<Cluster>),
}

/// A cluster's units.
pub struct Cluster {
    pub path: String,
    pub processors: usize,
    pub units: u64,
    pub flat_units: u64,
    /// Seconds, or the time relative to the ideal where only ratios of speeds are known.
    pub longest: f64,
}

impl Division {
    /// The method, and the reason for it if it was not the default one.
    pub fn method(&self) -> String {
        match &self.extra {
            Extra::Exact(reason) => format!("{} ({reason})", self.plan.method),
            _ => self.plan.method.clone(),
        }
    }

    /// Adds it to the plan's JSON.
    pub fn extend(&self, value: &mut Value) {
        let ratios = self.plan.relative_times.is_some();
        match &self.extra {
            Extra::None => {}
            Extra::Exact(reason) => value["method_reason"] = reason.as_str().into(),
            Extra::Robust { found, regret, plain_regret } => {
                value["robust"] = json!({
                    "worst_seconds": found.worst_seconds, "expected_seconds": found.expected_seconds,
                    "regret": regret, "plain_worst_seconds": found.plain_worst_seconds,
                    "plain_expected_seconds": found.plain_expected_seconds, "plain_regret": plain_regret,
                });
            }
            Extra::Front(front) => {
                value["front"] = front
                    .iter()
                    .map(|t| json!({"seconds": t.seconds, "joules": t.joules, "shares": t.shares}))
                    .collect();
            }
            Extra::Clusters(clusters) => {
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
    pub fn text(&self) -> String {
        let ratios = self.plan.relative_times.is_some();
        match &self.extra {
            Extra::None | Extra::Exact(_) => String::new(),
            Extra::Robust { found, regret, plain_regret } => {
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
            Extra::Front(front) => {
                let rows = front.iter().map(|t| {
                    let shares: Vec<String> = t.shares.iter().map(u64::to_string).collect();
                    vec![units::show_seconds(t.seconds), format!("{:.6} J", t.joules), shares.join(" ")]
                });
                format!("\n{}", table(&["longest time", "energy", "shares"], rows))
            }
            Extra::Clusters(clusters) => {
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
