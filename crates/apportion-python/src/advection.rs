//! Advection of fields, on this machine's processors.

use crate::arrays::{Array, Kind, Operand};
use crate::errors::{exception, refuse};
use crate::machine::Sources;
use crate::report::Report;
use crate::wait::long_watched;
use apportion::Result;
use apportion::job::{Context, parse_choice};
use apportion::kernels::mpdata::Scheme;
use apportion::matrix::{AnyMatrix, Matrix};
use apportion::run::{Monitor, World};
use apportion_advect::{AdvectTask, ArraySource, CourantSource, advect_field};
use pyo3::prelude::*;
use std::borrow::Cow;

/// How to advect, as the Python half passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Task {
    steps: u64,
    iterations: usize,
    nonoscillatory: bool,
    infinite_gauge: bool,
    third_order: bool,
    /// One for all axes, or one for each.
    boundary: Vec<String>,
    method: String,
    remeasure: bool,
}

impl Task {
    /// The task of the library for this field.
    fn prepare<'a>(
        &self,
        field: ArraySource<'a>,
        courant: Vec<CourantSource<'a>>,
        sources: &Sources,
    ) -> Result<AdvectTask<'a>> {
        let Self { iterations: passes, nonoscillatory, infinite_gauge, third_order, .. } = *self;
        let boundary =
            |word: &String| word.parse().map_err(|what: String| refuse("boundary", what, "see help"));
        Ok(AdvectTask {
            boundary: self.boundary.iter().map(boundary).collect::<Result<_>>()?,
            scheme: Scheme { passes, nonoscillatory, infinite_gauge, third_order }.checked()?,
            method: parse_choice("method", &self.method)?,
            sources: sources.load()?,
            remeasure: self.remeasure,
            ..AdvectTask::new(field, courant, self.steps)
        })
    }
}

/// An array of one to three dimensions, lent as a matrix, with its sizes.
#[derive(FromPyObject)]
pub struct Lent<'py>(Bound<'py, PyAny>, Vec<usize>);

/// Courant numbers along an axis, as the Python half passes them.
#[derive(FromPyObject)]
pub enum Courant<'py> {
    Constant(f64),
    Faces(Lent<'py>),
}

/// The elements of an array: those of the caller, or doubles made of whole numbers.
enum Elements<'a> {
    Singles(Cow<'a, [f32]>),
    Doubles(Cow<'a, [f64]>),
}

impl<'a> Elements<'a> {
    fn of(operand: &'a Operand) -> PyResult<Self> {
        Ok(match operand.kind {
            Kind::F32 => Self::Singles(operand.elements()?),
            _ => Self::Doubles(operand.doubles()?),
        })
    }

    fn source(&'a self, name: &'static str, sizes: &[usize]) -> ArraySource<'a> {
        match self {
            Self::Singles(elements) => ArraySource::array(name, sizes, elements),
            Self::Doubles(elements) => ArraySource::array(name, sizes, elements),
        }
    }
}

/// Advects a field; the result is a matrix of its elements.
#[pyfunction]
pub fn advect(
    py: Python<'_>,
    task: Task,
    field: Lent<'_>,
    courant: Vec<Courant<'_>>,
    sources: Sources,
) -> PyResult<(Array, Report)> {
    let operand = Operand::of(&field.0, "psi")?;
    let (rows, cols) = (operand.rows, operand.cols);
    let operands = courant.iter().map(|one| match one {
        Courant::Constant(_) => Ok(None),
        Courant::Faces(lent) => Operand::of(&lent.0, "courant").map(Some),
    });
    let operands = operands.collect::<PyResult<Vec<_>>>()?;
    let elements = Elements::of(&operand)?;
    let faces = operands.iter().map(|one| one.as_ref().map(Elements::of).transpose());
    let faces = faces.collect::<PyResult<Vec<_>>>()?;
    let courant = courant.iter().zip(&faces).map(|(given, elements)| match (given, elements) {
        (Courant::Faces(lent), Some(elements)) => CourantSource::Faces(elements.source("courant", &lent.1)),
        (Courant::Constant(value), _) => CourantSource::Constant(*value),
        (Courant::Faces(_), None) => unreachable!("faces have elements"),
    });
    let courant = courant.collect();
    let task = task.prepare(elements.source("psi", &field.1), courant, &sources).map_err(exception)?;
    let singles = matches!(elements, Elements::Singles(_));
    let (report, whole) = long_watched(py, &Monitor::new(), |monitor| {
        let world = World::solo(monitor);
        let outcome = advect_field(&task, Context::silent(&world, monitor))?;
        let report = Report::of_advection(&outcome);
        let whole = match singles {
            true => outcome.into_whole(&world)?.map(|found| AnyMatrix::F32(Matrix::new(rows, cols, found))),
            false => outcome.into_whole(&world)?.map(|found| AnyMatrix::F64(Matrix::new(rows, cols, found))),
        };
        Ok((report, whole))
    })?;
    Ok((Array::of_matrix(whole.expect("no file has the field")), report))
}
