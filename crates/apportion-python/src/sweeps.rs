//! Forecasts along one parameter of the machine, and where another candidate becomes the fastest.

use crate::errors::refuse;
use crate::layouts::{Order, shape_of};
use crate::machine::{Sources, within};
use crate::value::{Reduced, Value, bits, of_state, reduce, to_state};
use crate::wait::long;
use apportion::explore::{ParameterSweep, SweepQuestion, SweepSetup, sweep as swept, sweep_candidates};
use apportion::model::WorkUnit;
use apportion::{Error, Result};
use apportion_report::{Plot, Series, plot_svg_on, wide_axes};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

/// Forecasts of several methods along one parameter.
#[pyclass(frozen, module = "apportion", eq, hash)]
#[derive(Serialize, Deserialize)]
pub struct Sweep {
    parameter: String,
    names: Vec<String>,
    points: Vec<Point>,
    crossovers: Vec<Crossover>,
    /// True if speeds are ratios: the times are of communication alone.
    alone: bool,
}

/// The forecasts at one value of the parameter.
#[derive(Serialize, Deserialize)]
struct Point {
    #[serde(with = "bits")]
    value: f64,
    /// By candidate.
    pub seconds: Vec<Option<Seconds>>,
    winner: Option<usize>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
struct Seconds(#[serde(with = "bits")] f64);

/// The value from which on another candidate is the fastest.
#[derive(Serialize, Deserialize)]
struct Crossover {
    #[serde(with = "bits")]
    pub at: f64,
    pub from: usize,
    pub to: usize,
    #[serde(with = "bits")]
    pub seconds: f64,
}

impl Value for Sweep {
    const NAME: &'static str = "Sweep";

    fn state(&self) -> String {
        to_state(self)
    }

    fn restore(state: &str) -> Result<Self> {
        of_state(state)
    }
}

/// Forecasts methods, or the flows of one method, along a parameter of the machine.
#[pyfunction]
pub fn sweep(
    py: Python<'_>,
    shape: Vec<u64>,
    along: &str,
    sources: Sources,
    order: Order,
    methods: Option<Vec<String>>,
    points: Option<usize>,
    margin: f64,
    element: u64,
) -> PyResult<Sweep> {
    long(py, |monitor| {
        let shape = shape_of(&shape)?;
        let machine = sources.machine(WorkUnit::MultiplyAdd)?;
        let element = within("element", element, 1, 1 << 10)?;
        let parse = along.parse::<ParameterSweep>();
        let wanted = parse.map_err(|what| Error::input("along", what, "see help(apportion.sweep)"))?;
        if points.is_some_and(|points| !(2..=1000).contains(&points)) {
            return Err(refuse("points", "is out of range", "use 2 to 1000"));
        }
        if !(0.0..1.0).contains(&margin) {
            return Err(refuse("margin", format!("{margin} is out of range"), "use 0 up to 1"));
        }
        let wanted = ParameterSweep { points, margin, ..wanted };
        let flow = order.run_options()?.flow;
        let candidates = sweep_candidates(SweepQuestion {
            parameter: wanted.parameter,
            methods: methods.as_deref(),
            levels: None,
            plan: None,
            orders: &flow.orders(shape.k)?,
            open_block: !flow.has_block(),
        })?;
        let setup = SweepSetup { shape, machine: &machine, element, sharing: None };
        let result = swept(&setup, &candidates, &wanted, monitor)?;
        let point = |point: &apportion::explore::SweepPoint| Point {
            value: point.value,
            seconds: point.forecasts.iter().map(|found| found.map(|found| Seconds(found.seconds))).collect(),
            winner: point.winner,
        };
        let crossover = |found: &apportion::explore::Crossover| Crossover {
            at: found.at,
            from: found.from,
            to: found.to,
            seconds: found.seconds,
        };
        Ok(Sweep {
            parameter: wanted.parameter.to_string(),
            names: candidates.into_iter().map(|candidate| candidate.name).collect(),
            points: result.points.iter().map(point).collect(),
            crossovers: result.crossovers.iter().map(crossover).collect(),
            alone: machine.only_ratios(),
        })
    })
}

#[pymethods]
impl Sweep {
    /// The parameter that varies.
    #[getter]
    fn parameter(&self) -> String {
        self.parameter.clone()
    }

    /// Its values, ascending, in base units.
    #[getter]
    fn values(&self) -> Vec<f64> {
        self.points.iter().map(|point| point.value).collect()
    }

    /// The names of the candidates.
    #[getter]
    fn candidates(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Forecast seconds by value and candidate; `None` where a method cannot lay out the processors.
    #[getter]
    fn seconds(&self) -> Vec<Vec<Option<f64>>> {
        let seconds = |point: &Point| point.seconds.iter().map(|found| found.map(|Seconds(s)| s)).collect();
        self.points.iter().map(seconds).collect()
    }

    /// The fastest candidate at each value.
    #[getter]
    fn winners(&self) -> Vec<Option<String>> {
        self.points.iter().map(|point| point.winner.map(|i| self.names[i].clone())).collect()
    }

    /// Where another candidate becomes the fastest: value, the one before, the one from there on, seconds.
    #[getter]
    fn crossovers(&self) -> Vec<(f64, String, String, f64)> {
        let names = |c: &Crossover| (c.at, self.names[c.from].clone(), self.names[c.to].clone(), c.seconds);
        self.crossovers.iter().map(names).collect()
    }

    /// True if speeds are ratios: the times are of communication alone.
    #[getter]
    fn communication_only(&self) -> bool {
        self.alone
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn _repr_svg_(&self) -> String {
        let points = &self.points;
        let series = (0..self.names.len()).filter(|&i| points.iter().any(|p| p.seconds[i].is_some()));
        let curve = |(colour, i): (usize, usize)| Series {
            name: self.names[i].clone(),
            points: points.iter().map(|p| [p.value, p.seconds[i].map_or(f64::NAN, |Seconds(s)| s)]).collect(),
            colour,
            ..Series::default()
        };
        let of = if self.alone { "forecast communication time, s" } else { "forecast time, s" };
        let changes = self.crossovers.len();
        let plot = Plot {
            title: [
                format!("Forecasts by {}", self.parameter),
                format!("the fastest changes {changes} times"),
            ],
            axes: [self.parameter.clone(), of.into()],
            series: series.enumerate().map(curve).collect(),
            marks: self.crossovers.iter().map(|c| ([c.at, c.seconds], self.names[c.to].clone())).collect(),
            ..Plot::default()
        };
        plot_svg_on(&plot, wide_axes(&plot))
    }

    fn __repr__(&self) -> String {
        let (values, changes) = (self.points.len(), self.crossovers.len());
        format!("<Sweep of the {}: {values} values, {changes} crossovers>", self.parameter)
    }
}
