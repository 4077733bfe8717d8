//! What a run did.

use crate::models::from_json;
use apportion::product::RunReport;
use apportion::report::{Timeline, timeline_svg};
use pyo3::prelude::*;
use serde_json::Value;

/// The report of a run: forecast and measurement, by processor.
#[pyclass(frozen, module = "apportion")]
pub struct Report {
    report: RunReport,
    /// True if only ratios of speeds were known: there is no forecast.
    ratios: bool,
}

impl Report {
    /// A report of a run whose speeds were ratios or not.
    pub fn new(report: RunReport, ratios: bool) -> Self {
        Self { report, ratios }
    }

    fn value(&self) -> Value {
        let mut value = self.report.to_value();
        if self.ratios {
            value["forecast_seconds"] = Value::Null;
            value["ideal_seconds"] = Value::Null;
            value["plan"].as_object_mut().map(|plan| plan.remove("forecast"));
        }
        value
    }
}

#[pymethods]
impl Report {
    /// Seconds from the first step to the last.
    #[getter]
    fn seconds(&self) -> f64 {
        self.report.seconds()
    }

    /// The forecast of these seconds; `None` if only ratios of speeds were known.
    #[getter]
    fn forecast_seconds(&self) -> Option<f64> {
        (!self.ratios).then_some(self.report.forecast_seconds)
    }

    /// Work divided by the sum of the speeds; `None` if only ratios of speeds were known.
    #[getter]
    fn ideal_seconds(&self) -> Option<f64> {
        (!self.ratios).then_some(self.report.ideal_seconds)
    }

    /// True if the result was checked; every result is.
    #[getter]
    fn verified(&self) -> bool {
        self.report.error_probability.is_some()
    }

    /// Elements of A and B that processors read from parts of others.
    #[getter]
    fn volume(&self) -> u64 {
        self.report.volume()
    }

    /// The number of matrix products.
    #[getter]
    fn products(&self) -> u64 {
        self.report.products
    }

    /// The names of the processors, by rank.
    #[getter]
    fn processors(&self) -> Vec<String> {
        self.report.plan.processors.clone()
    }

    /// Elements of C of each processor, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.report.plan.shares.clone()
    }

    /// Seconds that each processor computed, by rank.
    #[getter]
    fn compute(&self) -> Vec<f64> {
        self.report.trace.compute()
    }

    /// The fields of `run.json` as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.value().to_string())
    }

    fn _repr_svg_(&self) -> String {
        timeline_svg(&Timeline::new(&self.report.trace, &self.report.plan.processors))
    }

    fn __str__(&self) -> String {
        let text = self.report.to_text();
        let shown =
            |line: &&str| !(self.ratios && (line.starts_with("forecast ") || line.starts_with("ideal ")));
        text.lines().filter(shown).collect::<Vec<_>>().join("\n")
    }

    fn __repr__(&self) -> String {
        let seconds = apportion::units::show_seconds(self.report.seconds());
        format!("<Report of {seconds} on {} processors>", self.report.plan.processors.len())
    }
}
