//! Shares of independent units.

use crate::errors::{exception, refuse};
use crate::machine::{Machine, Sources};
use crate::models::{from_json, write};
use crate::wait::short;
use apportion::model::only_ratios;
use apportion::plan::shares::{self as library, Limits};
use apportion::plan::{ExportFormat, Plan, export_plan};
use apportion::select::{forecast_units, imbalance, relative_times};
use apportion::{Result, report};
use pyo3::exceptions::{PyIndexError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};
use std::path::PathBuf;

/// A number for all processors, or one for each (`None`: no limit).
#[derive(FromPyObject)]
pub enum Each {
    All(u64),
    Some(Vec<Option<u64>>),
}

impl Each {
    fn by_rank(limit: Option<&Self>, place: &str, count: usize) -> Result<Vec<Option<u64>>> {
        match limit {
            None => Ok(vec![None; count]),
            Some(Self::All(number)) => Ok(vec![Some(*number); count]),
            Some(Self::Some(numbers)) if numbers.len() == count => Ok(numbers.clone()),
            Some(Self::Some(numbers)) => {
                let what = format!("there are {} for {count} processors", numbers.len());
                Err(refuse(place, what, "pass one number, or one for each processor"))
            }
        }
    }
}

/// The limits by rank; none if there are none.
pub fn limits(
    least: Option<&Each>,
    most: Option<&Each>,
    multiple: Option<&Each>,
    count: usize,
) -> Result<Vec<Limits>> {
    if least.is_none() && most.is_none() && multiple.is_none() {
        return Ok(Vec::new());
    }
    let least = Each::by_rank(least, "least", count)?;
    let most = Each::by_rank(most, "most", count)?;
    let multiple = Each::by_rank(multiple, "multiple_of", count)?;
    let limit = |rank: usize| Limits {
        least: least[rank].unwrap_or(0),
        most: most[rank],
        multiple_of: multiple[rank].unwrap_or(1),
    };
    Ok((0..count).map(limit).collect())
}

/// Shares of independent units: who gets how many, and where they begin.
#[pyclass(frozen, module = "apportion", eq)]
#[derive(PartialEq)]
pub struct Shares {
    plan: Plan,
}

/// Divides units by speed.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn shares(
    py: Python<'_>,
    units: u64,
    sources: Sources,
    method: Option<String>,
    least: Option<Each>,
    most: Option<Each>,
    multiple_of: Option<Each>,
) -> PyResult<Shares> {
    let plan = short(py, || {
        let machine = sources.machine(apportion::model::WorkUnit::Unit)?;
        let limits = limits(least.as_ref(), most.as_ref(), multiple_of.as_ref(), machine.models.len())?;
        divide(units, method.as_deref().unwrap_or("auto"), &machine, &limits)
    })?;
    Ok(Shares { plan })
}

/// The plan of `n` units.
fn divide(n: u64, method: &str, machine: &Machine, limits: &[Limits]) -> Result<Plan> {
    let models = &machine.models;
    if n > 1 << 53 {
        return Err(refuse("units", format!("{n} is more than 2^53"), "use a smaller number"));
    }
    if method == "even" && !limits.is_empty() {
        let what = format!("method=\"{method}\" has no limits");
        return Err(refuse("method", what, "leave out least, most and multiple_of, or use method=\"fpm\""));
    }
    let (name, shares) = match method {
        "auto" => {
            let divided = library::least_time(models, n, limits)?;
            (if divided.exact { "exact" } else { "fpm" }, divided.shares)
        }
        "even" => (method, library::even_among(models, n)),
        "proportional" | "largest-remainder" => {
            (method, library::largest_remainder_within(models, n, limits)?)
        }
        "fpm" => (method, library::fpm_within(models, n, limits)?),
        "exact" => (method, library::exact_interpolated(models, n, limits)?),
        "robust" if !only_ratios(models) => (method, library::robust(models, n, limits)?.shares),
        "robust" => {
            return Err(refuse("method", "ratios of speeds have no bands", "pass models that have them"));
        }
        other => {
            let what = format!("unknown method \"{other}\"");
            return Err(refuse("method", what, "use auto, even, proportional, largest-remainder, fpm, exact or robust"));
        }
    };
    plan_of(name, shares, machine)
}

/// Shares with their times.
fn plan_of(method: &str, shares: Vec<u64>, machine: &Machine) -> Result<Plan> {
    let models = &machine.models;
    if let Some((model, share)) =
        models.iter().zip(&shares).find(|(m, s)| m.seconds(**s as f64).is_infinite())
    {
        let what = format!(
            "method=\"{method}\" gives \"{}\" {share} units, more than its max_size",
            model.processor()
        );
        return Err(apportion::Error::infeasible(what, "use method=\"fpm\", which respects the caps"));
    }
    let (forecast, relative_times) = (forecast_units(models, &shares), relative_times(models, &shares)?);
    let imbalance = imbalance(models, &shares)?;
    let plan = Plan::of_units(method, machine.platform.names(), shares, imbalance);
    Ok(Plan { forecast, relative_times, ..plan })
}

/// A plan in the format of another tool; what its user must know is a warning of Python.
pub fn exported(py: Python<'_>, plan: &Plan, format: &str) -> PyResult<String> {
    let format: ExportFormat = format.parse().map_err(exception)?;
    let exported = short(py, || export_plan(format, plan))?;
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
    /// Units of each processor, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.plan.shares.clone()
    }

    /// The first unit of each processor, by rank: the displacements of `Scatterv`.
    #[getter]
    fn offsets(&self) -> Vec<u64> {
        offsets(&self.plan.shares)
    }

    /// The units of each processor as slices, by rank.
    #[getter]
    fn slices<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PySlice>> {
        slices(py, &self.plan.shares)
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
        report::plan_svg(&self.plan, &[])
    }

    fn __len__(&self) -> usize {
        self.plan.shares.len()
    }

    fn __getitem__(&self, rank: isize) -> PyResult<u64> {
        let count = self.plan.shares.len() as isize;
        let index = if rank < 0 { rank + count } else { rank };
        usize::try_from(index).ok().and_then(|i| self.plan.shares.get(i).copied()).ok_or_else(|| {
            PyIndexError::new_err(format!("rank {rank} is out of range: there are {count} processors"))
        })
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, &self.plan.shares)?.try_iter()?.into_any())
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
