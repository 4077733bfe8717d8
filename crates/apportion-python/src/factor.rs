//! Factors of matrices, and solutions of linear systems, on this machine's processors.

use crate::arrays::{Array, Kind, Operand};
use crate::errors::exception;
use crate::machine::{Sources, within};
use crate::report::Report;
use crate::wait::long_watched;
use apportion::Result;
use apportion::job::Context;
use apportion::matrix::{AnyMatrix, Matrix};
use apportion::plan::Factors;
use apportion::run::{Monitor, World};
use apportion_factor::{FactorTask, MatrixSource, SolveTask, factor_matrix, solve_matrix};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// What to compute, as the Python half passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Task {
    /// Into which factors.
    kind: String,
    /// Layout of the block columns: its name, or `auto`.
    method: String,
    block: Option<u64>,
    /// Speeds that nothing describes are measured again.
    remeasure: bool,
    seed: u64,
}

impl Task {
    fn factors(&self) -> Result<Factors> {
        self.kind.parse()
    }

    /// The task of the library for this matrix.
    fn prepare(&self, a: AnyMatrix, sources: &Sources) -> Result<FactorTask> {
        let block = self.block.map(|block| within("block", block, 1, 1 << 20)).transpose()?;
        Ok(FactorTask {
            layout: if self.method == "auto" { None } else { Some(self.method.parse()?) },
            block,
            sources: sources.load()?,
            remeasure: self.remeasure,
            seed: self.seed,
            ..FactorTask::new(self.factors()?, MatrixSource::memory("A", a))
        })
    }
}

/// The elements of an operand as a matrix of real numbers: singles if it has singles and they suffice, otherwise
/// doubles, to which whole numbers and truth values are converted.
fn reals(operand: &Operand, singles: bool) -> PyResult<AnyMatrix> {
    let (rows, cols) = (operand.rows, operand.cols);
    if singles && operand.kind == Kind::F32 {
        let elements = copy(operand, |x: f32| x)?;
        return Ok(AnyMatrix::F32(Matrix::new(rows, cols, elements)));
    }
    let elements = match operand.kind {
        Kind::F32 => copy(operand, |x: f32| f64::from(x)),
        Kind::F64 => copy(operand, |x: f64| x),
        Kind::I32 => copy(operand, |x: i32| f64::from(x)),
        Kind::I64 => copy(operand, |x: i64| x as f64),
        Kind::U8 => copy(operand, |x: u8| f64::from(x)),
        Kind::Bool => copy(operand, |x: u8| f64::from(u8::from(x != 0))),
    };
    Ok(AnyMatrix::F64(Matrix::new(rows, cols, elements?)))
}

/// A copy of an operand's elements.
fn copy<T: Copy, R>(operand: &Operand, convert: impl Fn(T) -> R) -> PyResult<Vec<R>> {
    let elements = operand.elements::<T>()?;
    let mut copy = Vec::new();
    if copy.try_reserve_exact(elements.len()).is_err() {
        return Err(PyMemoryError::new_err(format!(
            "{}: a copy of {} x {} elements does not fit into memory (pass a smaller matrix)",
            operand.name(),
            operand.rows,
            operand.cols
        )));
    }
    copy.extend(elements.iter().map(|x| convert(*x)));
    Ok(copy)
}

/// The kind of a result of these operands.
fn kind_of(operands: &[&Operand]) -> Kind {
    if operands.iter().all(|operand| operand.kind == Kind::F32) { Kind::F32 } else { Kind::F64 }
}

/// The factors, the pivots of LU, and the report; without elements nothing runs, and there is no report.
type Factored = (Array, Option<Array>, Option<Report>);

/// Factors a matrix.
#[pyfunction]
pub fn factor(py: Python<'_>, task: Task, a: Bound<'_, PyAny>, sources: Sources) -> PyResult<Factored> {
    let a = Operand::of(&a, "A")?;
    let has_pivots = task.factors().map_err(exception)? == Factors::Lu;
    let pivots = |elements: Vec<i64>| {
        has_pivots.then(|| {
            Array::of_matrix(AnyMatrix::I64(Matrix::new(elements.len(), 1, elements))).into_vector(true)
        })
    };
    let (n, kind) = (a.rows, kind_of(&[&a]));
    if n == 0 && a.cols == 0 {
        return Ok((Array::empty(kind, (0, 0)), pivots(Vec::new()), None));
    }
    let task = task.prepare(reals(&a, true)?, &sources).map_err(exception)?;
    let outcome = long_watched(py, &Monitor::new(), |monitor| {
        let world = World::solo(monitor);
        factor_matrix(task, Context::silent(&world, monitor))
    })?;
    let whole = if kind == Kind::F32 {
        outcome.columns.into_whole().map(|elements| AnyMatrix::F32(Matrix::new(n, n, elements)))
    } else {
        outcome.columns.into_whole().map(|elements| AnyMatrix::F64(Matrix::new(n, n, elements)))
    };
    let whole = whole.expect("a process alone has the whole matrix");
    let report = Report::of_factors(outcome.report, None);
    Ok((Array::of_matrix(whole), pivots(outcome.pivots), Some(report)))
}

/// Solves a linear system; the solution has as many dimensions as B. Without elements nothing runs.
#[pyfunction]
pub fn solve(
    py: Python<'_>,
    task: Task,
    a: Bound<'_, PyAny>,
    b: Bound<'_, PyAny>,
    sources: Sources,
    mixed: bool,
) -> PyResult<(Array, Option<Report>)> {
    let (a, b) = (Operand::of(&a, "A")?, Operand::of_sides(&b, "B")?);
    task.factors().map_err(exception)?;
    let kind = kind_of(&[&a, &b]);
    let is_empty = b.cols == 0 || a.rows == 0;
    if is_empty && a.rows == a.cols && a.rows == b.rows {
        return Ok((Array::empty(kind, (b.rows, b.cols)).into_vector(b.is_vector), None));
    }
    let singles = kind == Kind::F32;
    let factor = task.prepare(reals(&a, singles)?, &sources).map_err(exception)?;
    let task = SolveTask { mixed, ..SolveTask::new(factor, MatrixSource::memory("B", reals(&b, singles)?)) };
    let outcome = long_watched(py, &Monitor::new(), |monitor| {
        let world = World::solo(monitor);
        solve_matrix(task, Context::silent(&world, monitor))
    })?;
    let report = Report::of_factors(outcome.factor.report, Some(&outcome.report));
    Ok((Array::of_matrix(outcome.x).into_vector(b.is_vector), Some(report)))
}
