//! What a run did.

use crate::models::from_json;
use crate::value::{Reduced, of_state, reduce, to_state};
use apportion::Result;
use apportion::product::RunReport;
use apportion::trace::{Lane, Trace};
use apportion_factor::{FactorReport, SolveReport};
use apportion_report::{Report as _, Timeline, add_solution, timeline_svg};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The report of a run: forecast and measurement, by processor.
#[pyclass(frozen, module = "apportion", eq, hash)]
pub struct Report {
    trace: Trace,
    /// Shares of the result, by rank.
    counts: Vec<u64>,
    processors: Vec<String>,
    /// The object of `run.json`.
    object: Value,
    text: String,
}

/// A report's state.
#[derive(Serialize, Deserialize)]
struct State {
    lanes: Vec<Lane>,
    counts: Vec<u64>,
    processors: Vec<String>,
    object: Value,
    text: String,
}

impl crate::value::Value for Report {
    const NAME: &'static str = "Report";

    fn state(&self) -> String {
        let Self { trace, counts, processors, object, text } = self;
        to_state(&State {
            lanes: trace.lanes.clone(),
            counts: counts.clone(),
            processors: processors.clone(),
            object: object.clone(),
            text: text.clone(),
        })
    }

    fn restore(state: &str) -> Result<Self> {
        let State { lanes, counts, processors, object, text } = of_state(state)?;
        Ok(Self { trace: Trace { lanes }, counts, processors, object, text })
    }
}

impl Report {
    /// The report of a run.
    pub fn new(report: RunReport) -> Self {
        let (object, text) = (report.to_value(), report.to_text());
        let RunReport { trace, plan, .. } = report;
        let text = text.trim_end_matches('\n').to_owned();
        Self { trace, counts: plan.shares, processors: plan.processors, object, text }
    }

    /// The report of a factorisation, and of the solution that followed.
    pub fn of_factors(report: FactorReport, solution: Option<&SolveReport>) -> Self {
        let (mut object, mut text) = (report.to_value(), report.to_text());
        if let Some(solution) = solution {
            add_solution(&mut object, solution);
            text += &solution.to_text();
        }
        let FactorReport { trace, plan, .. } = report;
        let text = text.trim_end_matches('\n').to_owned();
        Self { trace, counts: plan.shares, processors: plan.processors, object, text }
    }
}

#[pymethods]
impl Report {
    /// Seconds from the first step to the last.
    #[getter]
    fn seconds(&self) -> f64 {
        self.trace.seconds()
    }

    /// The forecast of these seconds; `None` if only ratios of speeds were known.
    #[getter]
    fn forecast_seconds(&self) -> Option<f64> {
        self.object["forecast_seconds"].as_f64()
    }

    /// Work divided by the sum of the speeds; `None` if only ratios of speeds were known.
    #[getter]
    fn ideal_seconds(&self) -> Option<f64> {
        self.object["ideal_seconds"].as_f64()
    }

    /// True if the result was checked; every result is.
    #[getter]
    fn verified(&self) -> bool {
        self.object["verified"] == true
    }

    /// Elements that processors read from parts of others.
    #[getter]
    fn volume(&self) -> u64 {
        self.object["volume"].as_u64().unwrap_or(0)
    }

    /// The number of matrix products; 0 for a factorisation.
    #[getter]
    fn products(&self) -> u64 {
        self.object["products"].as_u64().unwrap_or(0)
    }

    /// The names of the processors, by rank.
    #[getter]
    fn processors(&self) -> Vec<String> {
        self.processors.clone()
    }

    /// Elements of the product, or of the factors, of each processor, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.counts.clone()
    }

    /// Seconds that each processor computed, by rank.
    #[getter]
    fn compute(&self) -> Vec<f64> {
        self.trace.compute()
    }

    /// The fields of `run.json` as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.object.to_string())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn _repr_svg_(&self) -> String {
        timeline_svg(&Timeline::new(&self.trace, &self.processors))
    }

    fn __str__(&self) -> String {
        self.text.clone()
    }

    fn __repr__(&self) -> String {
        let seconds = apportion::units::show_seconds(self.trace.seconds());
        format!("<Report of {seconds} on {} processors>", self.processors.len())
    }
}
