//! A loop over unequal processors: new shares from the times of each round.

use crate::errors::{exception, refuse};
use crate::machine::Sources;
use crate::models::from_json;
use crate::shares::{Each, limits, slices};
use crate::wait::short;
use apportion::model::{WorkUnit, only_ratios};
use apportion::plan::shares as library;
use apportion::plan::shares::MovingCost;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};

/// What a round's times lead to.
#[pyclass(frozen, module = "apportion")]
pub struct Decision {
    decision: library::Decision,
}

#[pymethods]
impl Decision {
    /// True if the shares change.
    #[getter]
    fn moved(&self) -> bool {
        self.decision.is_move()
    }

    /// Units of each processor in the next round, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.decision.shares.clone()
    }

    /// Why the shares change, or why they stay.
    #[getter]
    fn reason(&self) -> &'static str {
        self.decision.reason.name()
    }

    /// Longest minus shortest time, divided by the shortest.
    #[getter]
    fn spread(&self) -> f64 {
        self.decision.spread
    }

    /// Seconds that the best shares found save in each round, by prediction.
    #[getter]
    fn gain(&self) -> f64 {
        self.decision.gain
    }

    /// Predicted seconds of moving to them.
    #[getter]
    fn cost(&self) -> f64 {
        self.decision.cost
    }

    /// Units that change their owner.
    #[getter]
    fn units_moved(&self) -> u64 {
        self.decision.moved
    }

    fn __bool__(&self) -> bool {
        self.decision.is_move()
    }

    fn __repr__(&self) -> String {
        format!("<Decision: {:?}, {}>", self.decision.shares, self.decision.reason)
    }
}

/// The shares of a loop over unequal processors, improved from the times of each round.
#[pyclass(module = "apportion", eq)]
#[derive(PartialEq)]
pub struct Balancer {
    balancer: library::Balancer,
}

/// The start, as the Python half reads it.
fn sources(
    py: Python<'_>,
    speeds: Option<Bound<'_, PyAny>>,
    models: Option<Bound<'_, PyAny>>,
) -> PyResult<Sources> {
    let given = PyDict::new(py);
    given.set_item("speeds", speeds)?;
    given.set_item("models", models)?;
    py.import("apportion._arguments")?.call_method("sources", (), Some(&given))?.extract()
}

/// A whole number from 0 on, as the Python half reads it.
fn whole<T: TryFrom<u64>>(name: &str, given: &Bound<'_, PyAny>) -> PyResult<T> {
    let arguments = given.py().import("apportion._arguments")?;
    let number: u64 = arguments.call_method1("whole", (name, given))?.extract()?;
    number
        .try_into()
        .map_err(|_| exception(refuse(name, format!("{number} is out of range"), "pass a smaller number")))
}

/// A limit, as the Python half reads it.
fn each(name: &str, given: Option<Bound<'_, PyAny>>) -> PyResult<Option<Each>> {
    let Some(given) = given else { return Ok(None) };
    given.py().import("apportion._arguments")?.call_method1("limit", (name, given))?.extract()
}

#[pymethods]
impl Balancer {
    #[new]
    #[pyo3(signature = (
        units, processors, *, tolerance=0.05, hysteresis=0.02, cost_per_move=0.0, cost_per_unit=0.0,
        rounds=None, least=None, most=None, multiple_of=None, warm_up=None, speeds=None, models=None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        units: &Bound<'_, PyAny>,
        processors: &Bound<'_, PyAny>,
        tolerance: f64,
        hysteresis: f64,
        cost_per_move: f64,
        cost_per_unit: f64,
        rounds: Option<f64>,
        least: Option<Bound<'_, PyAny>>,
        most: Option<Bound<'_, PyAny>>,
        multiple_of: Option<Bound<'_, PyAny>>,
        warm_up: Option<Bound<'_, PyAny>>,
        speeds: Option<Bound<'_, PyAny>>,
        models: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let sources = sources(py, speeds, models)?;
        let units: u64 = whole("units", units)?;
        let processors: usize = whole("processors", processors)?;
        let warm_up: u32 = warm_up.map_or(Ok(0), |rounds| whole("warm_up", &rounds))?;
        let least = each("least", least)?;
        let most = each("most", most)?;
        let multiple_of = each("multiple_of", multiple_of)?;
        let balancer = short(py, || {
            let cost = MovingCost {
                per_change: cost_per_move,
                per_unit: cost_per_unit,
                rounds: rounds.unwrap_or(f64::MAX),
            };
            let mut balancer = library::Balancer::new(units, processors)?
                .with_tolerance(tolerance)?
                .with_hysteresis(hysteresis)?
                .with_moving_cost(cost)?
                .with_warm_up(warm_up);
            // Afterwards: the number of processors is known to be sound.
            let limits = limits(least.as_ref(), most.as_ref(), multiple_of.as_ref(), processors)?;
            if !limits.is_empty() {
                balancer = balancer.with_limits(&limits)?;
            }
            let Some(machine) = sources.known(WorkUnit::Unit)? else { return Ok(balancer) };
            if machine.models.len() != processors {
                let what = format!("there are {} for {processors} processors", machine.models.len());
                return Err(refuse("speeds", what, "pass one for each processor"));
            }
            if only_ratios(&machine.models) {
                let speeds: Vec<f64> = machine.models.iter().map(|model| model.speed(1.0)).collect();
                return balancer.with_speeds(&speeds);
            }
            balancer.with_models(&machine.models)
        })?;
        Ok(Self { balancer })
    }

    /// Takes the seconds of the round that just ended, by rank, and decides on the shares of the next one.
    fn observe(&mut self, seconds: &Bound<'_, PyAny>) -> PyResult<Decision> {
        let (py, seconds) =
            (seconds.py(), seconds.try_iter()?.map(|x| x?.extract::<f64>()).collect::<PyResult<Vec<_>>>()?);
        let balancer = &mut self.balancer;
        short(py, || balancer.observe(&seconds)).map(|decision| Decision { decision })
    }

    /// Takes the shares that the caller uses instead.
    fn adopt(&mut self, counts: &Bound<'_, PyAny>) -> PyResult<()> {
        let counts =
            counts.try_iter()?.map(|count| whole("counts", &count?)).collect::<PyResult<Vec<_>>>()?;
        self.balancer.adopt(&counts).map_err(exception)
    }

    /// Units of each processor in the current round, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.balancer.shares().to_vec()
    }

    /// The first unit of each processor, by rank.
    #[getter]
    fn offsets(&self) -> Vec<u64> {
        crate::shares::offsets(self.balancer.shares())
    }

    /// The units of each processor as slices, by rank.
    #[getter]
    fn slices<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PySlice>> {
        slices(py, self.balancer.shares())
    }

    /// The number of units.
    #[getter]
    fn units(&self) -> u64 {
        self.balancer.units()
    }

    /// The number of rounds observed.
    #[getter]
    fn rounds(&self) -> u64 {
        self.balancer.rounds()
    }

    /// Relative standard deviation of repeated rounds, once known.
    #[getter]
    fn noise(&self) -> Option<f64> {
        self.balancer.noise()
    }

    /// The whole state as one line, for checkpoints.
    fn to_json(&self) -> String {
        self.balancer.to_json()
    }

    /// The balancer of such a line, equal bit for bit.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        library::Balancer::from_json(text).map(|balancer| Self { balancer }).map_err(exception)
    }

    /// The state as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.balancer.to_json())
    }

    fn __len__(&self) -> usize {
        self.balancer.processors()
    }

    fn __repr__(&self) -> String {
        format!("<Balancer of {} units: {:?}>", self.balancer.units(), self.balancer.shares())
    }
}
