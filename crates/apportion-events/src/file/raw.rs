//! The tables of a workcell file as they are written.

use apportion::units::Quantity;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWorkcell {
    pub(super) name: Option<String>,
    pub(super) dispatching: Option<String>,
    #[serde(default)]
    pub(super) job: Vec<RawJob>,
    #[serde(default)]
    pub(super) resource: Vec<RawResource>,
    #[serde(default)]
    pub(super) part: Vec<RawPart>,
    #[serde(default)]
    pub(super) rule: Vec<RawRule>,
    #[serde(default)]
    pub(super) scenario: Vec<RawScenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawJob {
    pub(super) name: String,
    pub(super) duration: RawDuration,
    #[serde(default)]
    pub(super) done: u64,
}

/// A time, or a table with one distribution.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a time such as 5 or \"2 min\", or { uniform = [4, 6] }")]
pub(super) enum RawDuration {
    Fixed(Quantity),
    Random(RawRandom),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRandom {
    pub(super) uniform: Option<[Quantity; 2]>,
    pub(super) triangular: Option<[Quantity; 3]>,
    pub(super) exponential: Option<Quantity>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawResource {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) capacity: u64,
    pub(super) reset: Option<Quantity>,
    pub(super) dispatching: Option<String>,
}

pub(super) fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPart {
    pub(super) name: String,
    pub(super) count: Option<u64>,
    pub(super) first: Option<Quantity>,
    pub(super) every: Option<Quantity>,
    pub(super) at: Option<Vec<Quantity>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub(super) name: String,
    #[serde(default)]
    pub(super) done: Vec<String>,
    #[serde(default)]
    pub(super) free: Vec<String>,
    #[serde(default)]
    pub(super) parts: Vec<String>,
    #[serde(default)]
    pub(super) start: Vec<String>,
    #[serde(default)]
    pub(super) release: Vec<String>,
    #[serde(default)]
    pub(super) produce: Vec<String>,
    #[serde(default)]
    pub(super) priority: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    pub(super) name: String,
    pub(super) dispatching: Option<String>,
    #[serde(default)]
    pub(super) duration: BTreeMap<String, RawDuration>,
    #[serde(default)]
    pub(super) capacity: BTreeMap<String, u64>,
    #[serde(default)]
    pub(super) count: BTreeMap<String, u64>,
}
