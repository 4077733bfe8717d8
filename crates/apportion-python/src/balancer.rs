//! A loop over unequal processors: new shares from the times of each round.

use crate::errors::{exception, refuse};
use crate::machine::Sources;
use crate::models::from_json;
use crate::shares::{Each, limits, slices};
use crate::value::{Reduced, Value, bits, of_state, reduce, to_state};
use crate::wait::short;
use apportion::Result;
use apportion::model::{WorkUnit, only_ratios};
use apportion::plan::Plan;
use apportion::plan::shares as library;
use apportion::plan::shares::MovingCost;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};
use serde::{Deserialize, Serialize};

/// What a round's times lead to.
#[pyclass(frozen, module = "apportion", eq, hash)]
#[derive(Serialize, Deserialize)]
pub struct Decision {
    moved: bool,
    counts: Vec<u64>,
    pub reason: String,
    /// The reason in words.
    words: String,
    #[serde(with = "bits")]
    spread: f64,
    slowest: usize,
    #[serde(with = "bits")]
    pub gain: f64,
    #[serde(with = "bits")]
    pub cost: f64,
    units_moved: u64,
}

impl From<library::Decision> for Decision {
    fn from(decision: library::Decision) -> Self {
        Self {
            moved: decision.is_move(),
            reason: decision.reason.name().to_owned(),
            words: decision.reason.to_string(),
            counts: decision.shares,
            spread: decision.spread,
            slowest: decision.slowest,
            gain: decision.gain,
            cost: decision.cost,
            units_moved: decision.moved,
        }
    }
}

impl Value for Decision {
    const NAME: &'static str = "Decision";

    fn state(&self) -> String {
        to_state(self)
    }

    fn restore(state: &str) -> Result<Self> {
        of_state(state)
    }
}

#[pymethods]
impl Decision {
    /// True if the shares change.
    #[getter]
    fn moved(&self) -> bool {
        self.moved
    }

    /// Units of each processor in the next round, by rank.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.counts.clone()
    }

    /// Why the shares change, or why they stay.
    #[getter]
    fn reason(&self) -> &str {
        &self.reason
    }

    /// Longest minus shortest time, divided by the shortest.
    #[getter]
    fn spread(&self) -> f64 {
        self.spread
    }

    /// Rank of the processor that held up the round: the one that took longest.
    #[getter]
    fn slowest(&self) -> usize {
        self.slowest
    }

    /// Seconds that the best shares found save in each round, by prediction.
    #[getter]
    fn gain(&self) -> f64 {
        self.gain
    }

    /// Predicted seconds of moving to them.
    #[getter]
    fn cost(&self) -> f64 {
        self.cost
    }

    /// Units that change their owner.
    #[getter]
    fn units_moved(&self) -> u64 {
        self.units_moved
    }

    fn __bool__(&self) -> bool {
        self.moved
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn __repr__(&self) -> String {
        format!("<Decision: {:?}, {}>", self.counts, self.words)
    }
}

/// The shares of a loop over unequal processors, improved from the times of each round.
///
/// Rounds whose times differ by at most the fraction `tolerance` stay as they are. A change must save more
/// than the fraction `hysteresis` of a round, and earn what it costs within `rounds` rounds:
/// `cost_per_change` seconds, and `cost_per_unit` for each unit that the busiest processor sends or receives.
/// The first `warm_up` rounds (1) at the start and after each change are not used. `min`, `max` and `multiple_of` limit the shares as for
/// `apportion.shares`. The first shares are equal, or follow `speeds` or `models`. `cost_per_move`, `least`
/// and `most` are the old names of `cost_per_change`, `min` and `max`.
#[pyclass(module = "apportion", eq)]
#[derive(PartialEq)]
pub struct Balancer {
    balancer: library::Balancer,
}

impl Value for Balancer {
    const NAME: &'static str = "Balancer";

    fn state(&self) -> String {
        self.balancer.to_json()
    }

    fn restore(state: &str) -> Result<Self> {
        library::Balancer::from_json(state).map(|balancer| Self { balancer })
    }
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

/// An argument by its name, or by the name that it had before, with a warning.
fn renamed<'py>(
    new: (&str, Option<Bound<'py, PyAny>>),
    old: (&str, Option<Bound<'py, PyAny>>),
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let ((name, given), (before, deprecated)) = (new, old);
    let Some(deprecated) = deprecated else { return Ok(given) };
    let arguments = deprecated.py().import("apportion._arguments")?;
    // The warning is for the line that calls this class.
    Ok(Some(arguments.call_method1("renamed", (name, given, before, deprecated, 2))?))
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
        units, processors, *, tolerance=0.05, hysteresis=0.02, cost_per_change=None, cost_per_unit=0.0,
        rounds=None, min=None, max=None, multiple_of=None, warm_up=None, speeds=None, models=None,
        cost_per_move=None, least=None, most=None
    ))]
    fn new(
        py: Python<'_>,
        units: &Bound<'_, PyAny>,
        processors: &Bound<'_, PyAny>,
        tolerance: f64,
        hysteresis: f64,
        cost_per_change: Option<Bound<'_, PyAny>>,
        cost_per_unit: f64,
        rounds: Option<f64>,
        min: Option<Bound<'_, PyAny>>,
        max: Option<Bound<'_, PyAny>>,
        multiple_of: Option<Bound<'_, PyAny>>,
        warm_up: Option<Bound<'_, PyAny>>,
        speeds: Option<Bound<'_, PyAny>>,
        models: Option<Bound<'_, PyAny>>,
        cost_per_move: Option<Bound<'_, PyAny>>,
        least: Option<Bound<'_, PyAny>>,
        most: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let sources = sources(py, speeds, models)?;
        let units: u64 = whole("units", units)?;
        let processors: usize = whole("processors", processors)?;
        let warm_up: u32 = warm_up.map_or(Ok(1), |rounds| whole("warm_up", &rounds))?;
        let cost = renamed(("cost_per_change", cost_per_change), ("cost_per_move", cost_per_move))?;
        let cost_per_change = cost.map_or(Ok(0.0), |seconds| seconds.extract())?;
        let min = each("min", renamed(("min", min), ("least", least))?)?;
        let max = each("max", renamed(("max", max), ("most", most))?)?;
        let multiple_of = each("multiple_of", multiple_of)?;
        let balancer = short(py, || {
            let cost = MovingCost {
                per_change: cost_per_change,
                per_unit: cost_per_unit,
                rounds: rounds.unwrap_or(f64::MAX),
            };
            let mut balancer = library::Balancer::new(units, processors)?
                .with_tolerance(tolerance)?
                .with_hysteresis(hysteresis)?
                .with_moving_cost(cost)?
                .with_warm_up(warm_up);
            // Afterwards: the number of processors is known to be sound.
            let machine = sources.has_speeds().then(|| sources.machine(WorkUnit::Unit)).transpose()?;
            let names = match &machine {
                Some(machine) => machine.platform.names(),
                None => (0..processors).map(|rank| format!("p{rank}")).collect(),
            };
            if names.len() != processors {
                let what = format!("there are {} for {processors} processors", names.len());
                return Err(refuse("speeds", what, "pass one for each processor"));
            }
            let limits = limits(min.as_ref(), max.as_ref(), multiple_of.as_ref(), &names)?;
            if !limits.is_empty() {
                balancer = balancer.with_limits(&limits)?;
            }
            let Some(machine) = machine else { return Ok(balancer) };
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
        short(py, || balancer.observe(&seconds)).map(Decision::from)
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
        Self::restore(text).map_err(exception)
    }

    /// The state as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.balancer.to_json())
    }

    fn _repr_svg_(&self) -> String {
        let names = (0..self.balancer.processors()).map(|rank| format!("p{rank}")).collect();
        let rounds = self.balancer.rounds();
        let title = format!("shares after {rounds} round{}", if rounds == 1 { "" } else { "s" });
        // The picture leaves out an imbalance that nobody knows.
        let plan = Plan::of_units(title, names, self.balancer.shares().to_vec(), f64::NAN);
        apportion_report::plan_svg(&plan, &[])
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduce(py, self)
    }

    fn __len__(&self) -> usize {
        self.balancer.processors()
    }

    fn __repr__(&self) -> String {
        format!("<Balancer of {} units: {:?}>", self.balancer.units(), self.balancer.shares())
    }
}
