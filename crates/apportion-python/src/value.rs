//! Values that pickle, copy and compare. Each has a state: a text from which an equal value is made, bit for
//! bit. Pickling, `copy` and the broadcasts of mpi4py all use it by `__reduce__`.

use crate::balancer::{Balancer, Decision};
use crate::errors::{exception, refuse};
use crate::forecast::Forecast;
use crate::graph::GraphParts;
use crate::layouts::Layout;
use crate::models::Models;
use crate::report::Report;
use crate::shares::Shares;
use crate::sweeps::Sweep;
use apportion::Result;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value with a state.
pub trait Value: Sized {
    /// The name of its class.
    const NAME: &'static str;

    /// The state as a text.
    fn state(&self) -> String;

    /// The value of such a text.
    ///
    /// # Errors
    /// Another text.
    fn restore(state: &str) -> Result<Self>;

    /// What two equal values have in common: all of the state, unless it also says how the value was made.
    fn identity(&self) -> String {
        self.state()
    }
}

/// Two values are equal if their identities are.
macro_rules! compare_identities {
    ($($value:ty),*) => {$(
        impl PartialEq for $value {
            fn eq(&self, other: &Self) -> bool {
                self.identity() == other.identity()
            }
        }

        impl std::hash::Hash for $value {
            fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
                self.identity().hash(hasher);
            }
        }
    )*};
}
compare_identities!(Decision, Forecast, GraphParts, Layout, Models, Report, Shares, Sweep);

/// A state of plain data as JSON.
pub fn to_state(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("numbers, texts and lists always serialise")
}

/// Plain data of its state.
///
/// # Errors
/// Another text.
pub fn of_state<T: DeserializeOwned>(state: &str) -> Result<T> {
    serde_json::from_str(state).map_err(|error| {
        refuse("state", error.to_string(), "unpickle it with the version of apportion that pickled it")
    })
}

/// Floats as their bits: JSON has no infinities and no NaN.
pub mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        number.to_bits().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

/// What `__reduce__` returns: a function, and the arguments with which it makes the value again.
pub type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, String));

/// The body of `__reduce__`.
pub fn reduce<'py, V: Value>(py: Python<'py>, value: &V) -> PyResult<Reduced<'py>> {
    Ok((py.import("apportion._native")?.getattr("_restore")?, (V::NAME, value.state())))
}

/// The value of a class with a state.
#[pyfunction]
#[pyo3(name = "_restore")]
pub fn restore(py: Python<'_>, kind: &str, state: &str) -> PyResult<Py<PyAny>> {
    match kind {
        Balancer::NAME => Balancer::restore(state).map_err(exception)?.into_py_any(py),
        Decision::NAME => Decision::restore(state).map_err(exception)?.into_py_any(py),
        Forecast::NAME => Forecast::restore(state).map_err(exception)?.into_py_any(py),
        GraphParts::NAME => GraphParts::restore(state).map_err(exception)?.into_py_any(py),
        Layout::NAME => Layout::restore(state).map_err(exception)?.into_py_any(py),
        Models::NAME => Models::restore(state).map_err(exception)?.into_py_any(py),
        Report::NAME => Report::restore(state).map_err(exception)?.into_py_any(py),
        Shares::NAME => Shares::restore(state).map_err(exception)?.into_py_any(py),
        Sweep::NAME => Sweep::restore(state).map_err(exception)?.into_py_any(py),
        other => {
            let what = format!("{other} is no value of apportion");
            Err(exception(refuse("state", what, "unpickle it with the version of apportion that pickled it")))
        }
    }
}
