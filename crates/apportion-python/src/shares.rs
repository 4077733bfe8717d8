//! Shares of independent units.

use crate::errors::{exception, refuse};
use crate::machine::Sources;
use crate::models::{from_json, write};
use crate::value::{Reduced, Value, reduce};
use crate::wait::short;
use apportion::Result;
use apportion::job::{Context, ShareLimit, UnitObjective, UnitOptions, divide_units, limits_by_rank};
use apportion::plan::shares::Limits;
use apportion::plan::{Division, ExportFormat, Plan, export_plan, read_plan};
use apportion::platform::Platform;
use apportion::run::{Monitor, World};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyIndexError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// A number for all processors, one for each, or one for each of some names (`None`: no limit).
#[derive(FromPyObject)]
pub enum Each {
    All(u64),
    Some(Vec<Option<u64>>),
    Named(BTreeMap<String, Option<u64>>),
}

impl Each {
    /// The same in the library's terms, for processors of these names.
    fn limit(limit: Option<&Self>, place: &str, names: &[String]) -> Result<ShareLimit> {
        Ok(match limit {
            None => ShareLimit::None,
            Some(Self::All(number)) => ShareLimit::All(*number),
            Some(Self::Some(numbers)) => ShareLimit::Each(numbers.clone()),
            Some(Self::Named(numbers)) => {
                if let Some(other) = numbers.keys().find(|name| !names.contains(name)) {
                    let what = format!("there is no processor \"{other}\"");
                    return Err(refuse(place, what, &format!("use some of {}", names.join(", "))));
                }
                ShareLimit::Each(names.iter().map(|name| numbers.get(name).copied().flatten()).collect())
            }
        })
    }
}

/// The limits of processors with these names, by rank; none if there are none.
pub fn limits(
    min: Option<&Each>,
    max: Option<&Each>,
    multiple_of: Option<&Each>,
    names: &[String],
) -> Result<Vec<Limits>> {
    limits_by_rank(
        &Each::limit(min, "min", names)?,
        &Each::limit(max, "max", names)?,
        &Each::limit(multiple_of, "multiple_of", names)?,
        names.len(),
    )
}

/// Shares of independent units: who gets how many, and where they begin.
#[pyclass(frozen, module = "apportion", sequence)]
pub struct Shares {
    plan: Plan,
}

impl Value for Shares {
    const NAME: &'static str = "Shares";

    fn state(&self) -> String {
        self.plan.to_json()
    }

    fn restore(state: &str) -> Result<Self> {
        of_units(Plan::parse(state, "state")?)
    }
}

/// The shares of a plan of units.
fn of_units(plan: Plan) -> Result<Shares> {
    match plan.division {
        Division::Units { .. } => Ok(Shares { plan }),
        _ => Err(refuse("plan", "is none of units", "read it with Layout.read")),
    }
}

/// Units in a row, in contiguous parts.
#[derive(Default, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Row {
    costs: Option<Vec<f64>>,
    memory: Option<Vec<f64>>,
    any_order: bool,
    objective: Option<String>,
}

/// What shares are chosen for.
fn objective(name: Option<&str>) -> Result<UnitObjective> {
    match name.unwrap_or("makespan") {
        "makespan" | "time" => Ok(UnitObjective::Time),
        "latency" => Ok(UnitObjective::Latency),
        other => {
            Err(refuse("objective", format!("there is no objective \"{other}\""), "use makespan or latency"))
        }
    }
}

/// Divides units by speed.
#[pyfunction]
#[pyo3(signature = (units, sources, method, least, most, multiple_of, row=None))]
pub fn shares(
    py: Python<'_>,
    units: u64,
    sources: Sources,
    method: Option<String>,
    least: Option<Each>,
    most: Option<Each>,
    multiple_of: Option<Each>,
    row: Option<Row>,
) -> PyResult<Shares> {
    let row = row.unwrap_or_default();
    let plan = short(py, || {
        let machine = sources.machine(apportion::model::WorkUnit::Unit)?;
        let names = machine.platform.names();
        let limits = limits(least.as_ref(), most.as_ref(), multiple_of.as_ref(), &names)?;
        let robust = method.as_deref() == Some("robust");
        let options = UnitOptions {
            any_size: method.as_deref() == Some("exact"),
            method: method.filter(|name| name != "auto" && !robust),
            limits,
            robust,
            costs: row.costs.unwrap_or_default(),
            unit_memory: row.memory.unwrap_or_default(),
            any_order: row.any_order,
            objective: objective(row.objective.as_deref())?,
            ..UnitOptions::default()
        };
        let monitor = Monitor::new();
        let world = World::solo(&monitor);
        divide_units(units, &options, &machine, Context::silent(&world, &monitor))
            .map(|division| division.plan)
    })?;
    Ok(Shares { plan })
}

/// A plan in the format of another tool; what its user must know is a warning of Python.
pub fn exported(py: Python<'_>, plan: &Plan, format: &str) -> PyResult<String> {
    let format: ExportFormat = format.parse().map_err(exception)?;
    let platform = Platform::from_names(&plan.processors);
    let exported = short(py, || export_plan(format, plan, &platform))?;
    let category = py.get_type::<PyUserWarning>();
    for warning in exported.warnings {
        let line = std::ffi::CString::new(warning.replace('\0', " "))?;
        PyErr::warn(py, &category, &line, 1)?;
    }
    Ok(exported.text)
}

/// Where each share begins.
pub fn offsets(shares: &[u64]) -> Vec<u64> {
    let begin = |begin: &mut u64, share: &u64| Some(std::mem::replace(begin, *begin + share));
    shares.iter().scan(0, begin).collect()
}

/// The slice of each share.
pub fn slices<'py>(py: Python<'py>, shares: &[u64]) -> Vec<Bound<'py, PySlice>> {
    let ends = offsets(shares).into_iter().zip(shares);
    ends.map(|(begin, share)| PySlice::new(py, begin as isize, (begin + share) as isize, 1)).collect()
}

#[pymethods]
impl Shares {
    /// Reads a plan of units, as `save`, `apportion partition --units` and `apportion balance` write it.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        read_plan(&path).and_then(of_units).map_err(exception)
    }

    /// Units of each processor, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.plan.shares.clone()
    }

    /// The first unit of each processor, by rank: the displacements of `Scatterv`.
    #[getter]
    fn offsets(&self) -> Vec<u64> {
        self.plan.ranges().into_iter().map(|range| range.start).collect()
    }

    /// The ranks in the order of their units.
    #[getter]
    fn order(&self) -> Vec<usize> {
        self.plan.ranks_in_order()
    }

    /// The cost of each processor's units, by rank; `None` if units do not differ in it.
    #[getter]
    fn costs(&self) -> Option<Vec<f64>> {
        self.plan.costs.clone()
    }

    /// The units of each processor as slices, by rank.
    #[getter]
    fn slices<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PySlice>> {
        let slice = |range: Range<u64>| PySlice::new(py, range.start as isize, range.end as isize, 1);
        self.plan.ranges().into_iter().map(slice).collect()
    }

    /// The names of the processors, by rank.
    #[getter]
    fn processors(&self) -> Vec<String> {
        self.plan.processors.clone()
    }

    /// The method that divided the units.
    #[getter]
    fn method(&self) -> String {
        self.plan.method.clone()
    }

    /// Forecast seconds of each processor, by rank; `None` if only ratios of speeds are known.
    #[getter]
    fn seconds(&self) -> Option<Vec<f64>> {
        self.plan.forecast.as_ref().map(|forecast| forecast.compute.clone())
    }

    /// The longest time divided by the ideal time, at which all would finish together.
    #[getter]
    fn imbalance(&self) -> f64 {
        self.plan.metrics.imbalance
    }

    /// The shares in the format of another tool.
    fn export(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        exported(py, &self.plan, format)
    }

    /// Writes a plan file, which `apportion run --plan` and others read.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write(&path, &self.plan.to_json())
    }

    /// The plan file as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.plan.to_json())
    }

    fn _repr_svg_(&self) -> String {
        apportion_report::plan_svg(&self.plan, &[])
    }

    fn __len__(&self) -> usize {
        self.plan.shares.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, count) = (index.py(), self.plan.shares.len());
        PyList::new(py, &self.plan.shares)?.as_any().get_item(index).map_err(|error| {
            match error.is_instance_of::<PyIndexError>(py) {
                true => PyIndexError::new_err(format!(
                    "rank {index} is out of range: there are {count} processors"
                )),
                false => error,
            }
        })
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, &self.plan.shares)?.try_iter()?.into_any())
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyList::new(py, &self.plan.shares)?.call_method0("__reversed__")
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        PyList::new(value.py(), &self.plan.shares)?.contains(value)
    }

    /// The first rank with a share of `value` units, from rank `start` to before `stop`.
    #[pyo3(signature = (value, start=0, stop=isize::MAX))]
    fn index<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        start: isize,
        stop: isize,
    ) -> PyResult<Bound<'py, PyAny>> {
        PyList::new(value.py(), &self.plan.shares)?.call_method1("index", (value, start, stop))
    }

    /// The number of processors with a share of `value` units.
    fn count<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyList::new(value.py(), &self.plan.shares)?.call_method1("count", (value,))
    }

    /// Shares are equal if all of their state is, and a list or tuple equals them if it has the same numbers.
    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operation: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let is_equal = if let Ok(other) = other.cast::<Self>() {
            self == other.get()
        } else if other.is_instance_of::<PyList>() {
            PyList::new(py, &self.plan.shares)?.eq(other)?
        } else if other.is_instance_of::<PyTuple>() {
            PyTuple::new(py, &self.plan.shares)?.eq(other)?
        } else {
            return Ok(py.NotImplemented());
        };
        match operation {
            CompareOp::Eq => is_equal.into_py_any(py),
            CompareOp::Ne => (!is_equal).into_py_any(py),
            _ => Ok(py.NotImplemented()),
        }
    }

    /// That of the tuple that is equal.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyTuple::new(py, &self.plan.shares)?.hash()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Shares of {} units: {:?}, method {}>",
            self.plan.shares.iter().sum::<u64>(),
            self.plan.shares,
            self.plan.method
        )
    }
}
