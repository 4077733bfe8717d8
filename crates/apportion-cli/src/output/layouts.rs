//! Layouts of a factorisation, side by side, as text and JSON.

use super::forecast::COMMUNICATION_ALONE;
use super::provenance::add_command;
use crate::args::sharing::Rule;
use apportion::plan::Factors;
use apportion::units::{show_count, show_seconds};
use apportion_report::{pairs, table};
use serde_json::{Value, json};

/// The forecasts of a factorisation by several layouts.
pub struct Comparison {
    pub factors: Factors,
    /// Rows of the matrix.
    pub n: u64,
    pub platform: String,
    pub rows: Vec<LayoutForecast>,
    /// Seconds of all multiply-adds at the sum of the speeds; `None` where speeds are ratios.
    pub ideal: Option<f64>,
    pub rule: Rule,
}

/// The forecast of one layout.
pub struct LayoutForecast {
    pub method: String,
    /// Columns of a block.
    pub block: u64,
    pub seconds: f64,
    /// Elements that change their processor.
    pub volume: u64,
}

impl Comparison {
    /// The fastest layout.
    fn best(&self) -> &LayoutForecast {
        let seconds = |row: &&LayoutForecast| row.seconds;
        self.rows.iter().min_by(|a, b| seconds(a).total_cmp(&seconds(b))).expect("there is a layout")
    }

    /// Floating-point operations per second; those of a multiply-add are two.
    fn flops(&self, row: &LayoutForecast) -> f64 {
        2.0 * self.factors.multiply_adds(self.n) / row.seconds
    }

    pub fn value(&self) -> Value {
        let row = |row: &LayoutForecast| {
            let flops = self.ideal.map(|_| self.flops(row));
            json!({"method": row.method, "block": row.block, "seconds": row.seconds,
                   "flops_per_second": flops, "volume": row.volume})
        };
        let mut object = json!({
            "format": "apportion-layouts",
            "version": 1,
            "factors": self.factors,
            "n": self.n,
            "sharing": self.rule.to_string(),
            "communication_only": self.ideal.is_none(),
            "ideal_seconds": self.ideal,
            "layouts": self.rows.iter().map(row).collect::<Vec<_>>(),
            "fastest": self.best().method,
        });
        add_command(&mut object);
        object
    }

    pub fn text(&self) -> String {
        let count = |n: u64| show_count(u128::from(n));
        let rows = self.rows.iter().map(|row| {
            let mut cells = vec![row.method.clone(), row.block.to_string(), show_seconds(row.seconds)];
            if let Some(ideal) = self.ideal {
                cells.push(format!("{:.1}", self.flops(row) / 1e9));
                cells.push(format!("{:.1} %", 100.0 * ideal / row.seconds));
            }
            cells.push(count(row.volume));
            cells
        });
        let mut header = vec!["layout", "block", "forecast"];
        header.extend(self.ideal.iter().flat_map(|_| ["Gflop/s", "of ideal"]));
        header.push("elements moved");
        let n = count(self.n);
        let mut facts = vec![("problem", format!("{} of {n} x {n} on {}", self.factors, self.platform))];
        facts.extend(self.ideal.map(|ideal| ("ideal", show_seconds(ideal))));
        if self.rule != Rule::Fifo {
            facts.push(("sharing", self.rule.to_string()));
        }
        if self.ideal.is_none() {
            facts.push(("times", COMMUNICATION_ALONE.into()));
        }
        facts.push(("fastest", self.best().method.clone()));
        format!("{}\n{}", table(&header, rows), pairs(&facts))
    }
}
