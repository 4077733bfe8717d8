//! What a run did.

use crate::models::from_json;
use crate::value::{Reduced, of_state, reduce, to_state};
use apportion::Result;
use apportion::product::RunReport;
use apportion::record::{Detail, Run, SolutionRun};
use apportion::trace::{Lane, Trace};
use apportion_advect::AdvectOutcome;
use apportion_factor::FactorReport;
use apportion_graph::SpmvOutcome;
use apportion_report::{Timeline, run_text, timeline_svg};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

/// The report of a run: forecast and measurement, by processor.
#[pyclass(frozen, module = "apportion", eq, hash)]
pub struct Report {
    trace: Trace,
    run: Run,
}

/// A report's state.
#[derive(Serialize, Deserialize)]
struct State {
    lanes: Vec<Lane>,
    run: Run,
}

impl crate::value::Value for Report {
    const NAME: &'static str = "Report";

    fn state(&self) -> String {
        to_state(&State { lanes: self.trace.lanes.clone(), run: self.run.clone() })
    }

    fn restore(state: &str) -> Result<Self> {
        let State { lanes, run } = of_state(state)?;
        Ok(Self { trace: Trace { lanes }, run })
    }
}

impl Report {
    /// The report of a run.
    pub fn new(report: RunReport) -> Self {
        Self { run: Run::from(&report), trace: report.trace }
    }

    /// The report of a factorisation, and of the solution that followed.
    pub fn of_factors(report: FactorReport, solution: Option<&SolutionRun>) -> Self {
        Self { run: report.record_with(solution), trace: report.trace }
    }

    /// The report of an advection.
    pub fn of_advection(outcome: &AdvectOutcome) -> Self {
        Self { run: outcome.record(), trace: outcome.report.trace.clone() }
    }

    /// The report of products of a sparse matrix with a vector, or of a solution by them.
    pub fn of_sparse(outcome: &SpmvOutcome) -> Self {
        Self { run: outcome.record(), trace: outcome.trace.clone() }
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
        self.run.forecast_seconds
    }

    /// Work divided by the sum of the speeds; `None` if only ratios of speeds were known.
    #[getter]
    fn ideal_seconds(&self) -> Option<f64> {
        self.run.ideal_seconds
    }

    /// True if the result was checked against what it should be: products (of sparse matrices too) and factors are. Of an
    /// advection, the content before and after tells how it went.
    #[getter]
    fn verified(&self) -> bool {
        match &self.run.detail {
            Detail::Product(product) => product.verified == Some(true),
            Detail::Factorisation(factors) => factors.verified == Some(true),
            Detail::Advection(_) => false,
            Detail::Sparse(sparse) => sparse.verified,
        }
    }

    /// Elements that processors read from parts of others.
    #[getter]
    fn volume(&self) -> u64 {
        self.run.volume.unwrap_or(0)
    }

    /// The number of matrix products; 0 for other computations.
    #[getter]
    fn products(&self) -> u64 {
        match &self.run.detail {
            Detail::Product(product) => product.products,
            _ => 0,
        }
    }

    /// The names of the processors, by rank.
    #[getter]
    fn processors(&self) -> Vec<String> {
        self.run.plan.processors.clone()
    }

    /// Elements of the product, or of the factors, of each processor, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.run.plan.shares.clone()
    }

    /// Seconds that each processor computed, by rank.
    #[getter]
    fn compute(&self) -> Vec<f64> {
        self.trace.compute()
    }

    /// The fields of `run.json` as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.run.to_value().to_string())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn _repr_svg_(&self) -> String {
        timeline_svg(&Timeline::new(&self.trace, &self.run.plan.processors))
    }

    fn __str__(&self) -> String {
        run_text(&self.run).trim_end_matches('\n').to_owned()
    }

    fn __repr__(&self) -> String {
        let seconds = apportion::units::show_seconds(self.trace.seconds());
        format!("<Report of {seconds} on {} processors>", self.run.processors.len())
    }
}
