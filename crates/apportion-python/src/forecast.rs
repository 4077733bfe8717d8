//! Forecasts of a product from its layout: the same schedule against a clock.

use crate::layouts::{Layout, Order};
use crate::machine::{Machine, Sources, within};
use crate::models::from_json;
use crate::value::{Reduced, Value, of_state, reduce, to_state};
use crate::wait::long;
use apportion::Result;
use apportion::job::{self, ForecastTask, OrderForecast, find_fastest_order};
use apportion::model::WorkUnit;
use apportion::schedule::ScheduleOptions;
use apportion::simulate::simulate as simulated;
use apportion::trace::{Lane, Trace};
use apportion::units::show_seconds;
use apportion_report::{Timeline, timeline_svg};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The forecast of a product.
#[pyclass(frozen, module = "apportion", eq, hash)]
pub struct Forecast {
    trace: Trace,
    order: ScheduleOptions,
    names: Vec<String>,
    /// True if speeds are ratios: the times are of communication alone.
    alone: bool,
}

/// A forecast's state.
#[derive(Serialize, Deserialize)]
struct State {
    lanes: Vec<Lane>,
    order: ScheduleOptions,
    names: Vec<String>,
    alone: bool,
}

impl Value for Forecast {
    const NAME: &'static str = "Forecast";

    fn state(&self) -> String {
        let Self { trace, order, names, alone } = self;
        let (lanes, names) = (trace.lanes.clone(), names.clone());
        to_state(&State { lanes, order: *order, names, alone: *alone })
    }

    fn restore(state: &str) -> Result<Self> {
        let State { lanes, order, names, alone } = of_state(state)?;
        Ok(Self { trace: Trace { lanes }, order, names, alone })
    }
}

/// Forecasts the product of a layout; the flow of least time if none is asked for.
#[pyfunction]
pub fn simulate(
    py: Python<'_>,
    layout: &Layout,
    sources: Sources,
    order: Order,
    element: u64,
) -> PyResult<Forecast> {
    long(py, |monitor| {
        let machine = machine_of(layout, &sources)?;
        let flow = order.run_options()?.flow;
        let task = ForecastTask {
            layout: layout.plan.layout()?,
            machine: &machine,
            flow: &flow,
            element: within("element", element, 1, 1 << 10)?,
        };
        let OrderForecast { order, forecast: trace, .. } =
            find_fastest_order(task, monitor, simulated, Trace::seconds)?;
        Ok(Forecast { trace, order, names: layout.plan.processors.clone(), alone: machine.only_ratios() })
    })
}

/// The processors of a layout: those described, in the layout's order, or those for which it was made.
fn machine_of(layout: &Layout, sources: &Sources) -> Result<Machine> {
    match &layout.origin {
        Some(origin) if !sources.has_speeds() => Ok(origin.machine.clone()),
        _ => {
            let plan = Some(layout.plan.clone());
            job::Sources { plan, ..sources.load()? }.given_machine(WorkUnit::MultiplyAdd)
        }
    }
}

#[pymethods]
impl Forecast {
    /// Seconds from the first step to the last.
    #[getter]
    fn seconds(&self) -> f64 {
        self.trace.seconds()
    }

    /// Seconds that each processor computes; `None` if only ratios of speeds are known.
    #[getter]
    fn compute(&self) -> Option<Vec<f64>> {
        (!self.alone).then(|| self.trace.compute())
    }

    /// Seconds that each processor waits for data.
    #[getter]
    fn communicate(&self) -> Vec<f64> {
        self.trace.communicate()
    }

    /// Seconds that each processor is idle.
    #[getter]
    fn idle(&self) -> Vec<f64> {
        self.trace.idle()
    }

    /// How the operands travel.
    #[getter]
    fn flow(&self) -> String {
        self.order.flow.to_string()
    }

    /// True if data travel while processors compute.
    #[getter]
    fn overlap(&self) -> bool {
        self.order.overlaps()
    }

    /// The names of the processors, by rank.
    #[getter]
    fn processors(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The forecast as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (compute, communicate, idle) = (self.compute(), self.communicate(), self.idle());
        let each = self.names.iter().enumerate().map(|(i, name)| {
            let compute = compute.as_ref().map(|all| all[i]);
            json!({"name": name, "compute": compute, "communicate": communicate[i], "idle": idle[i]})
        });
        let object = json!({"seconds": self.seconds(), "flow": self.flow(), "overlap": self.overlap(),
            "processors": each.collect::<Vec<_>>(), "communication_only": self.alone});
        from_json(py, &object.to_string())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn _repr_svg_(&self) -> String {
        timeline_svg(&Timeline::new(&self.trace, &self.names))
    }

    fn __repr__(&self) -> String {
        let seconds = show_seconds(self.seconds());
        let of = if self.alone { " of communication" } else { "" };
        format!("<Forecast {seconds}{of} on {} processors, {} flow>", self.names.len(), self.order.flow)
    }
}
