//! Forecasts along one parameter of the machine, and where another candidate becomes the fastest.

use crate::errors::refuse;
use crate::layouts::{Order, shape_of};
use crate::machine::{Machine, Sources, named, within};
use crate::wait::long;
use apportion::explore::{Candidate, LayoutSource, ParameterSweep, SweepResult, SweepSetup, sweep as swept};
use apportion::model::{WorkUnit, only_ratios};
use apportion::plan::shapes::Method;
use apportion::report::{Plot, Series, plot_svg_on, wide_axes};
use apportion::select::orders;
use apportion::{Error, Result};
use pyo3::prelude::*;

/// Forecasts of several methods along one parameter.
#[pyclass(frozen, module = "apportion")]
pub struct Sweep {
    wanted: ParameterSweep,
    names: Vec<String>,
    result: SweepResult,
    alone: bool,
}

/// Forecasts methods, or the flows of one method, along a parameter of the machine.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn sweep(
    py: Python<'_>,
    shape: Vec<u64>,
    along: &str,
    sources: Sources,
    order: Order,
    methods: Option<Vec<String>>,
    options: (Option<usize>, f64, u64),
) -> PyResult<Sweep> {
    let (points, margin, element) = options;
    long(py, |monitor| {
        let shape = shape_of(&shape)?;
        let machine = sources.machine(WorkUnit::MultiplyAdd)?;
        let Machine { platform, models, block } = &machine;
        let options = order.options(platform, within("element", element, 1, 1 << 10)?)?;
        let parse = along.parse::<ParameterSweep>();
        let wanted = parse.map_err(|what| Error::input("along", what, "see help(apportion.sweep)"))?;
        if points.is_some_and(|points| !(2..=1000).contains(&points)) {
            return Err(refuse("points", "is out of range", "use 2 to 1000"));
        }
        if !(0.0..1.0).contains(&margin) {
            return Err(refuse("margin", format!("{margin} is out of range"), "use 0 up to 1"));
        }
        let wanted = ParameterSweep { points, margin, ..wanted };
        let orders = orders(options.flow, options.block, options.overlap, options.look_ahead);
        let candidates = candidates(methods.as_deref(), &orders)?;
        let setup = SweepSetup { shape, platform, models, models_block: *block, element, sharing: None };
        let result = swept(&setup, &candidates, &wanted, monitor)?;
        let names = candidates.into_iter().map(|candidate| candidate.name).collect();
        Ok(Sweep { wanted, names, result, alone: only_ratios(models) })
    })
}

/// The methods, each with all orders; the orders of one method if it is the only one.
fn candidates(
    methods: Option<&[String]>,
    orders: &[apportion::schedule::ScheduleOptions],
) -> Result<Vec<Candidate>> {
    let mut found: Vec<Method> = Vec::new();
    for name in methods.unwrap_or(&["auto".to_owned()]) {
        match named::<Method>("methods", Some(name))? {
            Some(method) => found.push(method),
            None => found.extend(Method::candidates()),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|method| seen.insert(method.to_string()));
    Ok(match found[..] {
        [] => return Err(refuse("methods", "there are none", "leave it out, or name at least one")),
        [method] => {
            let alone = |&order: &apportion::schedule::ScheduleOptions| Candidate {
                name: order.to_string(),
                way: LayoutSource::By(method),
                orders: vec![order],
            };
            orders.iter().map(alone).collect()
        }
        _ => {
            let all = |method: Method| Candidate {
                name: method.to_string(),
                way: LayoutSource::By(method),
                orders: orders.to_vec(),
            };
            found.into_iter().map(all).collect()
        }
    })
}

#[pymethods]
impl Sweep {
    /// The parameter that varies.
    #[getter]
    fn parameter(&self) -> String {
        self.wanted.parameter.to_string()
    }

    /// Its values, ascending, in base units.
    #[getter]
    fn values(&self) -> Vec<f64> {
        self.result.points.iter().map(|point| point.value).collect()
    }

    /// The names of the candidates.
    #[getter]
    fn candidates(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Forecast seconds by value and candidate; `None` where a method cannot lay out the processors.
    #[getter]
    fn seconds(&self) -> Vec<Vec<Option<f64>>> {
        let seconds = |point: &apportion::explore::SweepPoint| {
            point.forecasts.iter().map(|forecast| forecast.as_ref().map(|f| f.seconds)).collect()
        };
        self.result.points.iter().map(seconds).collect()
    }

    /// The fastest candidate at each value.
    #[getter]
    fn winners(&self) -> Vec<Option<String>> {
        self.result.points.iter().map(|point| point.winner.map(|i| self.names[i].clone())).collect()
    }

    /// Where another candidate becomes the fastest: value, the one before, the one from there on, seconds.
    #[getter]
    fn crossovers(&self) -> Vec<(f64, String, String, f64)> {
        let names = |c: &apportion::explore::Crossover| {
            (c.at, self.names[c.from].clone(), self.names[c.to].clone(), c.seconds)
        };
        self.result.crossovers.iter().map(names).collect()
    }

    /// True if speeds are ratios: the times are of communication alone.
    #[getter]
    fn communication_only(&self) -> bool {
        self.alone
    }

    fn _repr_svg_(&self) -> String {
        let points = &self.result.points;
        let series = (0..self.names.len()).filter(|&i| points.iter().any(|p| p.forecasts[i].is_some()));
        let curve = |(colour, i): (usize, usize)| Series {
            name: self.names[i].clone(),
            points: points
                .iter()
                .map(|p| [p.value, p.forecasts[i].map_or(f64::NAN, |f| f.seconds)])
                .collect(),
            colour,
            ..Series::default()
        };
        let of = if self.alone { "forecast communication time, s" } else { "forecast time, s" };
        let changes = self.result.crossovers.len();
        let plot = Plot {
            title: [
                format!("Forecasts by {}", self.wanted.parameter),
                format!("the fastest changes {changes} times"),
            ],
            axes: [self.wanted.parameter.to_string(), of.into()],
            series: series.enumerate().map(curve).collect(),
            marks: self
                .result
                .crossovers
                .iter()
                .map(|c| ([c.at, c.seconds], self.names[c.to].clone()))
                .collect(),
            ..Plot::default()
        };
        plot_svg_on(&plot, wide_axes(&plot))
    }

    fn __repr__(&self) -> String {
        let (values, changes) = (self.result.points.len(), self.result.crossovers.len());
        format!("<Sweep of the {}: {values} values, {changes} crossovers>", self.wanted.parameter)
    }
}
