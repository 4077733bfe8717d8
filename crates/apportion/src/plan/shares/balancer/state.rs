//! The balancer as text, for checkpoints and for sending it to another process.

use super::{Balancer, check_hysteresis, check_tolerance};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

const FORMAT: &str = "apportion-balancer";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<B> {
    format: String,
    version: u32,
    balancer: B,
}

impl Balancer {
    /// The whole state as one line of JSON. [`Balancer::from_json`] returns an equal balancer.
    pub fn to_json(&self) -> String {
        let file = File { format: FORMAT.into(), version: 1, balancer: self };
        serde_json::to_string(&file).expect("the state has finite numbers only")
    }

    /// The balancer of a text by [`Balancer::to_json`].
    ///
    /// # Errors
    /// Another text, or one that was changed so that it is no state of a balancer.
    pub fn from_json(text: &str) -> Result<Self> {
        let refuse =
            |what: String| Error::input("state of a balancer", what, "give a text that to_json has returned");
        let file: File<Self> = serde_json::from_str(text).map_err(|e| refuse(e.to_string()))?;
        if file.format != FORMAT || file.version != 1 {
            return Err(refuse(format!("format {:?}, version {}", file.format, file.version)));
        }
        let state = file.balancer;
        check_tolerance(state.tolerance)?;
        check_hysteresis(state.hysteresis)?;
        state.cost.checked()?;
        // Equal to a new one where it matters: sizes, limits and models fit together.
        let p = state.processors.len();
        Self::new(state.units, p)?.with_limits(&state.limits)?.adopt(&state.shares)?;
        if let Some(what) = state.processors.iter().find_map(|learnt| learnt.defect()) {
            return Err(refuse(what.into()));
        }
        state.known_models()?;
        Ok(state)
    }
}
