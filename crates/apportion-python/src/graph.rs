//! Graphs and sparse matrices divided among processors, and products of sparse matrices with vectors.

use crate::arrays::{Array, Operand};
use crate::errors::{exception, refuse};
use crate::machine::Sources;
use crate::models::{from_json, write};
use crate::report::Report;
use crate::value::{Reduced, Value, of_state, reduce, to_state};
use crate::wait::long;
use apportion::Result;
use apportion::job::Context;
use apportion::matrix::{AnyMatrix, Matrix};
use apportion::model::WorkUnit;
use apportion::run::World;
use apportion_graph as sparse;
use apportion_graph::{
    Coordinates, Graph, GraphChoice, GraphMethod, GraphOptions, RawGraph, SparseMatrix, SpmvMatrix,
    SpmvMethod, SpmvTask, VectorSource, Weights, divide_graph,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::path::PathBuf;

/// A graph or a sparse matrix, as the Python half passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Lists<'py> {
    /// Number of columns, if the lists are the rows of a matrix.
    columns: Option<usize>,
    offsets: Bound<'py, PyAny>,
    neighbours: Bound<'py, PyAny>,
    /// The values of a matrix, which are 1 if there are none; the weights of edges.
    values: Option<Bound<'py, PyAny>>,
}

impl Lists<'_> {
    /// The rows of a matrix, which errors call `name`.
    fn matrix(&self, columns: usize, name: &'static str) -> PyResult<SparseMatrix> {
        let offsets = Operand::of_sides(&self.offsets, name)?.whole_numbers()?;
        let neighbours = Operand::of_sides(&self.neighbours, name)?.whole_numbers()?;
        let values = match &self.values {
            Some(values) => Operand::of_sides(values, name)?.doubles()?.into_owned(),
            None => vec![1.0; neighbours.len()],
        };
        SparseMatrix::new(columns, offsets, neighbours, values, name).map_err(exception)
    }

    /// The lists of a graph.
    fn raw(&self) -> PyResult<RawGraph> {
        let numbers = |object| Operand::of_sides(object, "graph")?.whole_numbers();
        Ok(RawGraph {
            offsets: numbers(&self.offsets)?,
            neighbours: numbers(&self.neighbours)?,
            edge_weights: self.values.as_ref().map(numbers).transpose()?.unwrap_or_default(),
            ..RawGraph::default()
        })
    }
}

/// What a caller has: rows whose graph is wanted, or lists.
enum Given {
    Matrix(SparseMatrix),
    Lists(RawGraph),
}

impl Given {
    fn graph(self, weights: Weights) -> Result<Graph> {
        let graph = match self {
            Self::Matrix(matrix) => matrix.graph(weights),
            Self::Lists(raw) => Graph::new(raw, 0),
        };
        graph.map_err(|defect| defect.at_place("graph"))
    }
}

/// Divides a graph; the best division by forecast.
#[pyfunction]
#[pyo3(signature = (lists, weights, coordinates, values, method, sources))]
pub fn graph(
    py: Python<'_>,
    lists: Lists<'_>,
    weights: Option<Bound<'_, PyAny>>,
    coordinates: Option<Bound<'_, PyAny>>,
    values: bool,
    method: Option<String>,
    sources: Sources,
) -> PyResult<GraphParts> {
    let given = match lists.columns {
        Some(columns) => Given::Matrix(lists.matrix(columns, "graph")?),
        None => Given::Lists(lists.raw()?),
    };
    let weights = weights.map(|object| -> PyResult<(Vec<u32>, usize)> {
        let operand = Operand::of_sides(&object, "weights")?;
        Ok((operand.whole_numbers()?, operand.cols))
    });
    let weights = weights.transpose()?;
    let coordinates = coordinates.map(|object| -> PyResult<Coordinates> {
        let operand = Operand::of_sides(&object, "coordinates")?;
        Coordinates::new(operand.cols, operand.doubles()?.into_owned(), "coordinates").map_err(exception)
    });
    let coordinates = coordinates.transpose()?;
    let kind = if values { Weights::Values } else { Weights::Rows };
    let choice = long(py, |_| {
        let mut graph = given.graph(kind)?;
        if let Some((weights, constraints)) = weights {
            let weighted = graph.with_constraints(weights, constraints);
            graph = weighted.map_err(|defect| defect.at_place("weights"))?;
        }
        if let Some(points) = coordinates.as_ref().map(Coordinates::points)
            && points != graph.vertices()
        {
            let what = format!("there are {points} points for {} vertices", graph.vertices());
            return Err(refuse("coordinates", what, "pass one for each"));
        }
        let machine = sources.machine(WorkUnit::Unit)?;
        let methods = GraphMethod::named("method", method.as_deref().unwrap_or("auto"), true)?;
        let options = GraphOptions { methods, ..GraphOptions::default() };
        Ok(divide_graph(&graph, coordinates.as_ref(), &machine, &options)?.remove(0))
    })?;
    Ok(GraphParts { choice, lent: PyOnceLock::new() })
}

/// The vertices of a graph, divided among processors.
#[pyclass(frozen, module = "apportion", eq, hash)]
pub struct GraphParts {
    choice: GraphChoice,
    /// The parts as they are lent, once they were asked for.
    lent: PyOnceLock<Py<PyAny>>,
}

impl Value for GraphParts {
    const NAME: &'static str = "GraphParts";

    fn state(&self) -> String {
        to_state(&self.choice)
    }

    fn restore(state: &str) -> Result<Self> {
        Ok(Self { choice: of_state(state)?, lent: PyOnceLock::new() })
    }
}

#[pymethods]
impl GraphParts {
    /// The rank of each vertex, int32: an array of NumPy where NumPy is imported, otherwise a memoryview.
    #[getter]
    fn parts(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let lend = || -> PyResult<Py<PyAny>> {
            let parts: Vec<i32> = self.choice.parts.iter().map(|part| *part as i32).collect();
            let array = Array::of_matrix(AnyMatrix::I32(Matrix::new(parts.len(), 1, parts)));
            let lent = py.import("apportion._arrays")?.getattr("lent")?;
            Ok(lent.call1((array.into_vector(true),))?.unbind())
        };
        Ok(self.lent.get_or_try_init(py, lend)?.clone_ref(py))
    }

    /// The plan file as a dictionary.
    #[getter]
    fn plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.choice.plan.to_json())
    }

    /// Vertices of each processor, by rank.
    #[getter]
    fn shares(&self) -> Vec<u64> {
        self.choice.plan.shares.clone()
    }

    /// The weight of these; the first one, if vertices have several.
    #[getter]
    fn weights(&self) -> Vec<u64> {
        self.choice.plan.costs.iter().flatten().map(|weight| *weight as u64).collect()
    }

    /// The weight of the edges between parts.
    #[getter]
    fn edge_cut(&self) -> u64 {
        self.choice.plan.metrics.edge_cut.unwrap_or(0)
    }

    /// The values of vertices that processors send to others in a step.
    #[getter]
    fn volume(&self) -> u64 {
        self.choice.plan.metrics.volume.unwrap_or(0)
    }

    /// The longest time divided by the ideal time, at which all would finish together.
    #[getter]
    fn imbalance(&self) -> f64 {
        self.choice.plan.metrics.imbalance
    }

    /// Forecast seconds of a step; `None` if only ratios of speeds are known.
    #[getter]
    fn forecast_seconds(&self) -> Option<f64> {
        self.choice.plan.forecast.as_ref().map(|forecast| forecast.seconds)
    }

    /// The method that divided the graph.
    #[getter]
    fn method(&self) -> String {
        self.choice.plan.method.clone()
    }

    /// The names of the processors, by rank.
    #[getter]
    fn processors(&self) -> Vec<String> {
        self.choice.plan.processors.clone()
    }

    /// Writes a plan file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write(&path, &self.choice.plan.to_json())
    }

    fn _repr_svg_(&self) -> String {
        apportion_report::plan_svg(&self.choice.plan, &[])
    }

    fn __len__(&self) -> usize {
        self.choice.parts.len()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn __repr__(&self) -> String {
        format!(
            "<GraphParts of {} vertices: {:?}, edge cut {}, volume {}, method {}>",
            self.choice.parts.len(),
            self.choice.plan.shares,
            self.edge_cut(),
            self.volume(),
            self.choice.plan.method
        )
    }
}

/// What to do with a sparse matrix, as the Python half passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Task {
    steps: u64,
    method: String,
    tolerance: f64,
    parts_method: Option<String>,
    remeasure: bool,
}

impl Task {
    fn prepare<'a>(
        &self,
        matrix: &'a SparseMatrix,
        vector: &'a [f64],
        sources: &Sources,
    ) -> Result<SpmvTask<'a>> {
        let known = [SpmvMethod::Product, SpmvMethod::Jacobi, SpmvMethod::Cg];
        let method = known.into_iter().find(|method| method.name() == self.method).ok_or_else(|| {
            refuse("method", format!("there is no method \"{}\"", self.method), "use product, jacobi or cg")
        })?;
        let name = self.parts_method.as_deref().unwrap_or("auto");
        let methods = GraphMethod::named("parts_method", name, false)?;
        Ok(SpmvTask {
            method,
            tolerance: self.tolerance,
            options: GraphOptions { methods, ..GraphOptions::default() },
            sources: sources.load()?,
            remeasure: self.remeasure,
            ..SpmvTask::new(SpmvMatrix::Matrix(matrix), VectorSource::Array(vector), self.steps)
        })
    }
}

/// Multiplies a vector by a sparse matrix again and again, or solves a system by such products.
#[pyfunction]
pub fn spmv(
    py: Python<'_>,
    task: Task,
    lists: Lists<'_>,
    x: Bound<'_, PyAny>,
    sources: Sources,
) -> PyResult<(Array, Report)> {
    let operand = Operand::of_sides(&x, "x")?;
    if operand.cols != 1 {
        return Err(operand.misfit("", "pass a vector"));
    }
    let matrix = lists.matrix(lists.columns.unwrap_or_default(), "matrix")?;
    let vector = operand.doubles()?;
    let task = task.prepare(&matrix, &vector, &sources).map_err(exception)?;
    let outcome = long(py, |monitor| {
        let world = World::solo(monitor);
        sparse::spmv(&task, Context::silent(&world, monitor))
    })?;
    let report = Report::of_sparse(&outcome);
    let result = AnyMatrix::F64(Matrix::new(outcome.result.len(), 1, outcome.result));
    Ok((Array::of_matrix(result).into_vector(operand.is_vector), report))
}
