//! The table of `partition --compare`.

use super::extended;
use apportion::error::Result;
use apportion::plan::shapes::Method;
use apportion::plan::{Baselines, Layout, Metrics, Plan, star_volume};
use apportion::platform::{Network, Platform, Topology};
use apportion::select::{Minimise, UNEVEN};
use apportion::units;
use apportion_report::{Candidate, pairs, sheet_svg, table};
use serde::Serialize;
use serde_json::{Value, json};

/// The costs of the methods.
pub struct Comparison {
    pub chosen: String,
    /// The line about the choice.
    pub line: Option<String>,
    pub minimise: Minimise,
    pub star: bool,
    /// What the product takes without a plan, and the gain of the chosen one.
    pub baselines: Option<Baselines>,
    pub gain: Option<String>,
    pub rows: Vec<Row>,
}

/// The cost of a method, or the reason why it does not apply.
pub struct Row {
    pub method: Method,
    pub outcome: std::result::Result<Box<Cost>, String>,
    pub milliseconds: f64,
}

/// A layout and its costs.
#[derive(Serialize)]
pub struct Cost {
    pub metrics: Metrics,
    #[serde(rename = "relayed_volume")]
    pub relayed: Option<u64>,
    #[serde(rename = "message_steps")]
    pub steps: Option<u64>,
    #[serde(rename = "forecast_seconds")]
    pub forecast: Option<f64>,
    /// Seconds of communication alone, where speeds are ratios.
    #[serde(rename = "communication_seconds")]
    pub communication: Option<f64>,
    #[serde(skip)]
    pub layout: Layout,
}

impl Cost {
    /// Elements moved, relayed ones twice.
    fn volume(&self) -> u64 {
        self.relayed.or(self.metrics.volume).unwrap_or(u64::MAX)
    }

    /// The value of the criterion; without a forecast, the volume.
    fn value(&self, minimise: Minimise) -> f64 {
        let value = match minimise {
            Minimise::Time => self.forecast.or(self.communication),
            Minimise::Sum => self.metrics.sum_half_perimeters,
            Minimise::Largest => self.metrics.largest_half_perimeter,
            Minimise::Volume => None,
        };
        value.unwrap_or(self.volume() as f64)
    }
}

/// The elements moved on a star, counting relayed ones twice; `None` on other networks.
pub fn relayed_volume(layout: &Layout, network: &Network) -> Result<Option<u64>> {
    match network.topology {
        Topology::Star { centre } => star_volume(layout, centre.0).map(Some),
        _ => Ok(None),
    }
}

/// A column of the table: its heading, and the cell of a row.
type Column = (&'static str, Box<dyn Fn(&Row, &Cost) -> String>);

impl Comparison {
    /// With the rows sorted by the criterion, equal ones by volume. Layouts so uneven that auto takes none of
    /// them for this criterion come after the others, and those that do not apply are last.
    pub fn sorted(mut self, weighs_balance: bool) -> Self {
        let costs = || self.rows.iter().filter_map(|row| row.outcome.as_ref().ok());
        let limit = match weighs_balance {
            true => f64::INFINITY,
            false => costs().map(|c| c.metrics.imbalance).fold(f64::INFINITY, f64::min) * UNEVEN,
        };
        let key = |row: &Row| {
            let cost = row.outcome.as_ref().ok()?;
            Some((cost.metrics.imbalance > limit, cost.value(self.minimise), cost.volume()))
        };
        self.rows.sort_by(|a, b| match (key(a), key(b)) {
            (Some((uneven, x, v)), Some((other, y, w))) => {
                uneven.cmp(&other).then(x.total_cmp(&y)).then(v.cmp(&w))
            }
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        self
    }

    pub fn to_value(&self) -> Value {
        let row = |row: &Row| {
            let method = json!({"method": row.method.to_string()});
            match &row.outcome {
                Ok(cost) => extended(extended(method, cost), json!({"milliseconds": row.milliseconds})),
                Err(why) => extended(method, json!({"refused": why})),
            }
        };
        let methods = self.rows.iter().map(row).collect::<Vec<_>>();
        json!({"chosen": self.chosen, "baselines": self.baselines, "methods": methods})
    }

    /// The headings, and the cells of a row.
    fn columns(&self) -> Vec<Column> {
        let count = |x: Option<u64>| x.map_or_else(String::new, |x| units::show_count(u128::from(x)));
        let seconds = |x: Option<f64>| x.map_or_else(|| "-".into(), units::show_seconds);
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.4}"));
        let star = self.star;
        let mut all: Vec<Column> = vec![
            ("method", Box::new(|row, _| row.method.to_string())),
            ("cost", Box::new(move |_, c| number(c.metrics.sum_half_perimeters))),
            (
                "cost / LB",
                Box::new(move |_, c| {
                    let bound = c.metrics.lower_bound.unwrap_or(1.0);
                    number(c.metrics.sum_half_perimeters.map(|sum| sum / bound))
                }),
            ),
            (
                if star { "volume, relayed" } else { "volume" },
                Box::new(move |_, c| count(if star { c.relayed } else { c.metrics.volume })),
            ),
        ];
        all.push(match self.minimise {
            Minimise::Largest => {
                ("largest half-perimeter", Box::new(move |_, c| number(c.metrics.largest_half_perimeter)))
            }
            _ => ("largest direction", Box::new(move |_, c| count(c.metrics.largest_direction()))),
        });
        all.push(("imbalance", Box::new(|_, c| format!("{:.4}", c.metrics.imbalance))));
        all.push(("steps", Box::new(move |_, c| count(c.steps))));
        let costs = || self.rows.iter().filter_map(|row| row.outcome.as_ref().ok());
        if costs().any(|c| c.forecast.is_some()) {
            all.push(("forecast", Box::new(move |_, c| seconds(c.forecast))));
        }
        if costs().any(|c| c.communication.is_some()) {
            all.push(("communication", Box::new(move |_, c| seconds(c.communication))));
        }
        all.push(("ms", Box::new(|row, _| format!("{:.2}", row.milliseconds))));
        all
    }

    pub fn to_text(&self) -> String {
        let columns = self.columns();
        let rows = self.rows.iter().map(|row| match &row.outcome {
            Err(_) => {
                let mut cells = vec![row.method.to_string(), "not applicable".into()];
                cells.resize(columns.len(), String::new());
                cells
            }
            Ok(cost) => columns.iter().map(|(_, cell)| cell(row, cost)).collect(),
        });
        let header: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
        // Doing without a plan stands first.
        let without = |name: &str, seconds: f64| {
            let cell = |heading: &&str| match *heading {
                "method" => name.to_owned(),
                "forecast" => units::show_seconds(seconds),
                _ => String::new(),
            };
            header.iter().map(cell).collect::<Vec<String>>()
        };
        let both = self.baselines.iter();
        let first = both.flat_map(|both| {
            let alone = both.fastest_alone.as_ref();
            let alone = alone.map(|alone| without(&format!("{} alone", alone.processor), alone.seconds));
            alone.into_iter().chain(both.even_split.map(|seconds| without("even split", seconds)))
        });
        let chosen = self.line.as_ref().unwrap_or(&self.chosen);
        let mut facts = vec![("chosen", chosen.clone())];
        facts.extend(self.gain.clone().map(|gain| ("gain", gain)));
        let mut out = format!("{}\n{}", table(&header, first.chain(rows)), pairs(&facts));
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

    /// All layouts side by side, with what the table says about each.
    pub fn picture(&self, platform: &Platform) -> String {
        let columns = self.columns();
        let shown = |heading: &str| !["method", "cost", "steps", "ms"].contains(&heading);
        let drawn: Vec<(Plan, Vec<String>)> = self
            .rows
            .iter()
            .filter_map(|row| {
                let cost = row.outcome.as_ref().ok()?;
                let name = row.method.to_string();
                let plan =
                    Plan::of_layout(&name, platform.names(), cost.layout.clone(), cost.metrics.imbalance);
                let said = columns.iter().filter(|(heading, _)| shown(heading));
                Some((plan, said.map(|(heading, cell)| format!("{heading} {}", cell(row, cost))).collect()))
            })
            .collect();
        let all: Vec<Candidate<'_>> = drawn
            .iter()
            .map(|(plan, costs)| Candidate { plan, costs, chosen: plan.method == self.chosen })
            .collect();
        let clusters: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
        let title = drawn
            .first()
            .and_then(|(plan, _)| Some(plan.layout().ok()?.shape()))
            .map(|s| format!("{} methods: C of {} × {}, k = {}", drawn.len(), s.m, s.n, s.k));
        sheet_svg(&title.unwrap_or_default(), &all, &clusters)
    }
}
