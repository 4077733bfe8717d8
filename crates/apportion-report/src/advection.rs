//! The report of an advection: `run.json` and the table.

use super::run::processor_values;
use super::{Report, lanes_value, table};
use apportion::units::{show_count, show_seconds};
use apportion_advect::AdvectReport;
use serde_json::{Value, json};

impl Report for AdvectReport {
    /// The `run.json` object.
    fn to_value(&self) -> Value {
        let processors = processor_values(&self.plan, &self.trace);
        let [before, after] = self.moments;
        json!({
            "format": "apportion-run",
            "version": 1,
            "engine": self.engine,
            "application": "mpdata",
            "element": self.element,
            "sizes": self.problem.sizes,
            "boundary": self.problem.boundary,
            "scheme": self.problem.scheme,
            "exchange": self.order.exchange,
            "overlap": self.order.overlap,
            "steps": self.steps,
            "seconds": self.seconds(),
            "forecast_seconds": self.forecast_seconds,
            "ideal_seconds": self.ideal_seconds,
            "io_seconds": self.io_seconds,
            "million_cells_per_second": self.speed(),
            "mass": {"before": before.mass, "after": after.mass},
            "least": {"before": before.least, "after": after.least},
            "most": {"before": before.most, "after": after.most},
            "volume": self.volume(),
            "predicted_memory_bytes": self.predicted_memory,
            "peak_memory_bytes": self.trace.lanes.iter().map(|l| l.peak_bytes).collect::<Vec<_>>(),
            "processors": processors,
            "plan": self.plan.to_value(),
            "timeline": {"measured": lanes_value(&self.trace)},
        })
    }

    /// The text for readers: one line per processor, then the totals.
    fn to_text(&self) -> String {
        let (compute, communicate, idle) =
            (self.trace.compute(), self.trace.communicate(), self.trace.idle());
        let total: u64 = self.plan.shares.iter().sum::<u64>().max(1);
        let rows = (0..self.plan.processors.len()).map(|i| {
            vec![
                self.plan.processors[i].clone(),
                format!("{:.1} %", 100.0 * self.plan.shares[i] as f64 / total as f64),
                show_seconds(compute[i]),
                show_seconds(communicate[i]),
                show_seconds(idle[i]),
            ]
        });
        let mut text = table(&["processor", "share", "compute", "communicate", "wait"], rows);
        let sizes: Vec<String> = self.problem.sizes.iter().map(usize::to_string).collect();
        let [before, after] = self.moments;
        text += &format!(
            "{} cells of {}, {} steps of {}\n",
            sizes.join(" x "),
            self.element,
            self.steps,
            self.problem.scheme
        );
        text += &format!("layout {}, {}\n", self.plan.method, self.order);
        text += &format!("measured {}, {:.1} million cells/s", show_seconds(self.seconds()), self.speed());
        if let Some(seconds) = self.forecast_seconds {
            text += &format!("; forecast {}", show_seconds(seconds));
        }
        if let Some(seconds) = self.ideal_seconds {
            text += &format!("; ideal {}", show_seconds(seconds));
        }
        text += &format!("\nmoved {} elements\n", show_count(u128::from(self.volume())));
        let change = if before.mass == 0.0 { after.mass } else { (after.mass - before.mass) / before.mass };
        text += &format!("mass {:.9e} -> {:.9e} (change {change:.1e})\n", before.mass, after.mass);
        text += &format!("least {:.6e} -> {:.6e}\n", before.least, after.least);
        text += &format!("most  {:.6e} -> {:.6e}\n", before.most, after.most);
        text
    }
}
