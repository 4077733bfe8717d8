//! Products and solutions with sparse matrices as records.

use super::task::SpmvOutcome;
use crate::divide::GraphChoice;
use apportion::record::{Detail, Run, SparseCandidate, SparseRun};

/// Bytes of an entry: its value and its column.
const ENTRY: f64 = 12.0;

impl SpmvOutcome {
    /// The whole run.
    pub fn record(&self) -> Run {
        let Self { choices, trace, method, steps, rows, entries, .. } = self;
        let seconds = trace.seconds().max(1e-9);
        // A look at the residual costs as much as a step, and so does the step that finds it small enough.
        let products = *steps + if self.solution.is_some() { 2 } else { 0 };
        let per_second = |work: f64| Some(products as f64 * work / seconds);
        let candidate = |choice: &GraphChoice| SparseCandidate {
            method: choice.plan.method.clone(),
            mapped: choice.mapped,
            volume: choice.plan.metrics.volume,
            imbalance: choice.plan.metrics.imbalance,
            forecast_seconds: choice.plan.forecast.as_ref().map(|forecast| forecast.seconds),
        };
        let [before, after] = method.row_work();
        let moved = ENTRY * (*entries as f64 + (before + after) * *rows as f64);
        let sparse = SparseRun {
            problem: method.name().into(),
            rows: *rows,
            entries: *entries,
            steps: *steps,
            products,
            verified: true,
            flops_per_second: per_second(2.0 * *entries as f64),
            bytes_per_second: per_second(moved),
            solution: self.solution,
            candidates: choices.iter().map(candidate).collect(),
        };
        let plan = &choices[0].plan;
        let of_steps = |seconds: f64| seconds * products as f64;
        Run {
            engine: self.engine.into(),
            element: "f64".into(),
            forecast_seconds: plan.forecast.as_ref().map(|forecast| of_steps(forecast.seconds)),
            ideal_seconds: plan.metrics.time_bound.map(of_steps),
            io_seconds: self.io_seconds,
            network: self.platform.network.hosts().cloned(),
            ..Run::new(plan, trace, &[], Detail::Sparse(sparse))
        }
    }
}
