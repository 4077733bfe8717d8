//! Forecasts of a product from its layout: the same schedule against a clock.

use crate::errors::refuse;
use crate::layouts::{Layout, Order};
use crate::machine::{Machine, Sources, within};
use crate::models::from_json;
use crate::value::{Reduced, Value, of_state, reduce, to_state};
use crate::wait::long;
use apportion::model::{WorkUnit, only_ratios};
use apportion_report::{Timeline, timeline_svg};
use apportion::schedule::{MatmulSchedule, ScheduleOptions};
use apportion::select::{Cost, check_has_times, orders, preferred};
use apportion::simulate::{CostModel, simulate as simulated};
use apportion::trace::{Lane, Trace};
use apportion::units::show_seconds;
use apportion::{Error, Result};
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
        let Machine { platform, models, .. } = &machine;
        let options = order.options(
            layout.plan.layout()?.shape().k,
            &machine,
            within("element", element, 1, 1 << 10)?,
        )?;
        check_has_times(models, &platform.network)?;
        let names = layout.plan.processors.clone();
        let rates = machine.rates(&layout.plan.shares);
        let conditions = CostModel { rates: &rates, network: &platform.network, element };
        let mut fastest: Option<(ScheduleOptions, Trace)> = None;
        let mut refused = None;
        for order in orders(options.flow, options.block, options.overlap, options.look_ahead) {
            if monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            let schedule = MatmulSchedule::new(layout.plan.layout()?, order);
            match schedule.check_size().and_then(|()| simulated(&schedule, conditions)) {
                Ok(trace) => {
                    let cost = |trace: &Trace| Some(Cost { value: trace.seconds(), volume: 0 });
                    let better =
                        |(_, best): &(_, Trace)| preferred(&[cost(best), cost(&trace)], 0.0) == Some(1);
                    if fastest.as_ref().is_none_or(better) {
                        fastest = Some((order, trace));
                    }
                }
                // Another flow may have fewer steps.
                Err(error @ Error::Infeasible { .. }) => refused = refused.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let Some((order, trace)) = fastest else { return Err(refused.expect("there is at least one flow")) };
        Ok(Forecast { trace, order, names, alone: only_ratios(models) })
    })
}

/// The processors of a layout: those described, in the layout's order, or those for which it was made.
fn machine_of(layout: &Layout, sources: &Sources) -> Result<Machine> {
    let names = &layout.plan.processors;
    let described = sources.has_speeds().then(|| sources.machine(WorkUnit::MultiplyAdd)).transpose()?;
    let known = layout.origin.as_ref().map(|origin| origin.machine.clone());
    let Some(machine) = described.or(known) else {
        return Err(refuse("speeds", "no speeds are given", "pass speeds, models or platform"));
    };
    let known = machine.platform.names();
    if known == *names {
        return Ok(machine);
    }
    if let Some(missing) = names.iter().find(|name| !known.contains(name)) {
        let what = format!("there is no \"{missing}\", which the layout has");
        return Err(refuse("processors", what, "name the processors as in the layout"));
    }
    let rank = |name: &String| known.iter().position(|n| n == name).expect("was just found");
    let ranks: Vec<usize> = names.iter().map(rank).collect();
    Ok(machine.select(&ranks))
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
