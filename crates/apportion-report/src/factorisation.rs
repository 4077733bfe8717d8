//! The report of a factorisation: `run.json` and the text.

use super::run::{bars_of_run, processor_values};
use super::text::three_digits;
use super::{Report, baselines_text, lanes_value, off, pairs, run_gain_text};
use apportion::plan::Factors;
use apportion::units::{show_bytes, show_count, show_seconds};
use apportion_factor::{FactorReport, MOST_SCALED};
use serde_json::{Value, json};

impl Report for FactorReport {
    /// The `run.json` object.
    fn to_value(&self) -> Value {
        let mut processors = processor_values(&self.plan, &self.trace);
        for (value, kind) in processors.iter_mut().zip(&self.kinds) {
            value["kind"] = kind.to_string().into();
        }
        json!({
            "format": "apportion-run",
            "version": 1,
            "engine": self.engine,
            "application": "factorisation",
            "factors": self.problem.factors,
            "n": self.problem.n,
            "block": self.problem.block,
            "kernel": self.kernel,
            "element": self.element,
            "seconds": self.seconds(),
            "forecast_seconds": self.forecast_seconds,
            "forecast_range": self.forecast_range,
            "ideal_seconds": self.ideal_seconds,
            "io_seconds": self.io_seconds,
            "verify_seconds": self.verify_seconds,
            "flops_per_second": self.flops(),
            "gain": self.plan.baselines.as_ref().zip(self.forecast_seconds.filter(|_| !self.partial))
                .and_then(|(without, forecast)| without.gain_of_run(self.seconds(), forecast)),
            "verified": true,
            "residual": self.residual.scaled,
            "verification": self.residual.to_value(),
            "volume": self.volume(),
            "predicted_memory_bytes": self.predicted_memory,
            "peak_memory_bytes": self.trace.lanes.iter().map(|l| l.peak_bytes).collect::<Vec<_>>(),
            "processors": processors,
            "plan": self.plan.to_value(),
            "timeline": {"measured": lanes_value(&self.trace)},
        })
    }

    /// The text for readers: the verdict, the times, one line per processor, and what the plan gains.
    fn to_text(&self) -> String {
        let count = |n: u64| show_count(u128::from(n));
        let (n, block) = (count(self.problem.n), count(self.problem.block));
        let names = match self.problem.factors {
            Factors::Cholesky => "A = L L^T",
            Factors::Lu => "P A = L U",
            Factors::Ldlt => "P A P^T = L D L^T",
        };
        let how = if self.residual.exact { "exact" } else { "16 random vectors" };
        let scaled = self.residual.scaled;
        let residual = if scaled <= MOST_SCALED {
            format!("{} of at most {MOST_SCALED} n ||A|| eps ({how})", three_digits(scaled))
        } else {
            format!(
                "{scaled:.0} n ||A|| eps ({how}): the factors are inaccurate, and the solution is refined"
            )
        };
        let seconds = self.seconds();
        let mut time = match self.flops() {
            Some(flops) => format!("{} ({:.1} Gflop/s", show_seconds(seconds), flops / 1e9),
            None => format!("{} (without what an earlier run did", show_seconds(seconds)),
        };
        if let Some(forecast) = self.forecast_seconds {
            time += &match self.forecast_range {
                Some([low, high]) => format!("; forecast {} to {}", show_seconds(low), show_seconds(high)),
                None => format!("; forecast {}, {}", show_seconds(forecast), off(forecast, seconds)),
            };
        }
        if let Some(ideal) = self.ideal_seconds {
            time += &format!("; ideal {}", show_seconds(ideal));
        }
        let memory = self.trace.lanes.iter().map(|lane| lane.peak_bytes).max().unwrap_or(0);
        let mut lines = vec![
            ("factors", format!("{names} of {n} x {n} {}, blocks of {block}", self.element)),
            ("residual", residual),
            ("time", time + ")"),
        ];
        lines.extend(bars_of_run(&self.plan, &self.trace));
        let without = self.plan.baselines.as_ref().filter(|_| !self.partial);
        if let (Some(without), Some(forecast)) = (without, self.forecast_seconds)
            && let Some(gain) = run_gain_text(without, seconds, forecast)
        {
            lines.push(("gain", format!("{gain} (forecast: {})", baselines_text(without))));
        }
        if let Some(ratio) = self.plan.metrics.forecast_over_bound {
            lines.push(("bound", format!("forecast {ratio:.2} times the least that any division takes")));
        }
        let moved = format!(
            "{} elements; at most {} in a processor",
            count(self.volume()),
            show_bytes(memory as f64)
        );
        lines.push(("moved", moved));
        let tiles = self.plan.blocks().is_ok_and(|(_, blocks)| !blocks.are_columns());
        let of = if tiles { "tiles" } else { "block columns" };
        lines.push(("plan", format!("{} layout of {}", self.plan.method, of)));
        pairs(&lines)
    }
}
