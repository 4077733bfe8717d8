//! Speed functions of processors, and what this machine has.

use crate::errors::{exception, refuse};
use crate::value::{Reduced, Value, reduce};
use apportion::Result;
use apportion::model::{self as library, Interpolation, Model, Point, only_ratios, read_models};
use apportion::platform::{Grouping, discover};
use apportion_report::{SpeedPlot, plot_svg_on, wide_axes};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Parses JSON with Python's own parser.
pub fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// Writes a file that appears whole or not at all.
pub fn write(path: &Path, text: &str) -> PyResult<()> {
    apportion::output::write_whole(path, text.as_bytes()).map_err(exception)
}

/// Speed functions of processors: the time of any size, by processor.
#[pyclass(frozen, module = "apportion", eq, hash)]
pub struct Models {
    pub models: library::Models,
}

impl Value for Models {
    const NAME: &'static str = "Models";

    fn state(&self) -> String {
        self.models.to_json()
    }

    fn restore(state: &str) -> Result<Self> {
        library::Models::parse(state, "state").map(|models| Self { models })
    }
}

/// A measured size: size, seconds, half-width of the confidence interval, repetitions, and the ends of the
/// band.
type Measured = (f64, f64, Option<f64>, u64, Option<(f64, f64)>);

#[pymethods]
impl Models {
    /// Reads a file of `apportion measure`.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        read_models(&path).map(|models| Self { models }).map_err(exception)
    }

    /// Parses the text of such a file.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        library::Models::parse(text, "models").map(|models| Self { models }).map_err(exception)
    }

    /// Models from measured points, by processor.
    #[staticmethod]
    #[pyo3(name = "_measured")]
    fn measured(kernel: String, unit: String, points: Vec<(String, Vec<Measured>)>) -> PyResult<Self> {
        let model = |(name, points): (String, Vec<Measured>)| {
            let point = |(size, seconds, ci, repetitions, band): Measured| {
                let point = Point { ci, repetitions, ..Point::new(size, seconds) };
                match band {
                    Some((low, high)) => point.with_band(low, high),
                    None => point,
                }
            };
            Model::new(name, Interpolation::PiecewiseLinear, points.into_iter().map(point).collect(), None)
        };
        let models = points.into_iter().map(model).collect::<Result<_>>().map_err(exception)?;
        let parameters = BTreeMap::new();
        Ok(Self { models: library::Models { kernel, unit, parameters, models } })
    }

    /// The names of the processors.
    #[getter]
    fn processors(&self) -> Vec<String> {
        self.models.names()
    }

    /// What was measured.
    #[getter]
    fn kernel(&self) -> String {
        self.models.kernel.clone()
    }

    /// Seconds that a processor takes for `size` units.
    fn seconds(&self, processor: &str, size: f64) -> PyResult<f64> {
        self.one(processor).map(|model| model.seconds(size))
    }

    /// Units per second of a processor at a size.
    fn speed(&self, processor: &str, size: f64) -> PyResult<f64> {
        self.one(processor).map(|model| model.speed(size))
    }

    /// The measured sizes of a processor with their seconds.
    fn points(&self, processor: &str) -> PyResult<Vec<(f64, f64)>> {
        self.one(processor).map(|model| model.points().iter().map(|p| (p.size, p.seconds)).collect())
    }

    /// Writes a file that every `--models` reads.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write(&path, &self.models.to_json())
    }

    /// The text of the file.
    fn to_json(&self) -> String {
        self.models.to_json()
    }

    fn _repr_svg_(&self) -> String {
        let models = &self.models.models;
        let drawing = SpeedPlot {
            source: self.models.kernel.clone(),
            unit: Some(self.models.unit.clone()).filter(|unit| unit != "units"),
            relative: only_ratios(models),
            ..SpeedPlot::default()
        };
        let wide = drawing.is_wide(models);
        let plot = drawing.plot(models, wide);
        plot_svg_on(&plot, [wide, wide_axes(&plot)[1]])
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn __len__(&self) -> usize {
        self.models.models.len()
    }

    fn __repr__(&self) -> String {
        format!("<Models of {}: {}>", self.models.kernel, self.models.names().join(", "))
    }
}

impl Models {
    fn one(&self, processor: &str) -> PyResult<&Model> {
        self.models.models.iter().find(|model| model.processor() == processor).ok_or_else(|| {
            let what = format!("there is no model of \"{processor}\"");
            exception(refuse("processor", what, &format!("use one of {}", self.models.names().join(", "))))
        })
    }
}

/// This machine's cores as processors: name and numbers of their cores.
#[pyfunction]
pub fn processors(py: Python<'_>) -> Vec<(String, Vec<usize>)> {
    let platform = py.detach(|| discover().platform(Grouping::Core));
    platform.processors.into_iter().map(|p| (p.name, p.cores)).collect()
}

/// Whether the cores that this process may use are all of one kind.
#[pyfunction]
#[pyo3(name = "_cores_are_alike")]
pub fn cores_are_alike(py: Python<'_>) -> bool {
    py.detach(|| discover().kinds.len() < 2)
}

/// Mean, half-width of its 95 % interval, and the band of repeated times.
#[pyfunction]
#[pyo3(name = "_summarise")]
pub fn summarise(times: Vec<f64>) -> (f64, f64, Option<(f64, f64)>) {
    let summary = library::summarise(&times);
    (summary.mean, summary.ci, summary.band.map(|band| (band.low, band.high)))
}
