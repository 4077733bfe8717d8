//! The pieces of `map`: which items a process that is free computes next.

use crate::errors::exception;
use apportion::plan::shares::{OnePass, OnePassOptions, Order};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// About how many seconds it takes to send a piece to a process that waits, and its results back.
const MESSAGE: f64 = 2e-4;

/// Hands out the items of a call of `map`, each once. Times are seconds since any moment.
#[pyclass(module = "apportion", name = "_Pieces")]
pub struct Pieces(OnePass);

#[pymethods]
impl Pieces {
    #[new]
    fn new(items: u64, workers: usize, costs: Option<Vec<f64>>) -> PyResult<Self> {
        let options = OnePassOptions {
            processors: workers,
            costs: costs.map(Into::into),
            message: Some(MESSAGE),
            ..OnePassOptions::default()
        };
        OnePass::new(std::slice::from_ref(&(0..items)), options).map(Self).map_err(exception)
    }

    /// The first item of the next piece of a worker that is free and the one behind its last; or the time at which
    /// it asks again, unless another piece ends before; or none if no items are left.
    fn next(&mut self, py: Python<'_>, worker: usize, now: f64) -> PyResult<Py<PyAny>> {
        match self.0.next(worker, now) {
            Order::Run(items) => (items.start, items.end).into_py_any(py),
            Order::Wait { until } => until.into_py_any(py),
            Order::Leave => Ok(py.None()),
        }
    }

    /// The piece of a worker has ended.
    fn ended(&mut self, worker: usize, now: f64) {
        self.0.ended(worker, now);
    }
}
