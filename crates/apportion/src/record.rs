//! Records: what happened in a run, as `run.json` has it. Texts, pages and pictures are made from them, on the machine
//! of the run or from its file.
//!
//! A [`Run`] has what all problems have in common, and a [`Detail`] of its own for each. Reading is tolerant, for files
//! of other versions: fields that are missing have their defaults, and unknown ones are skipped.
//! `docs/reference/run-file.md` has the meaning of every field; seconds are of the wall clock, and ranks are indices.

#![expect(missing_docs, reason = "the reference of the format documents its fields")]

mod chart;
mod lanes;

use crate::kernels::mpdata::{Boundary, Exchange, Scheme};
use crate::model::Models;
use crate::plan::{Baselines, Plan};
use crate::platform::{HostNetwork, ProcessorKind};
use crate::process_memory::peak_memory;
use crate::simulate::{Cause, Doing, History};
use crate::trace::Trace;
pub use chart::{EventBar, EventChart, EventLane};
pub use lanes::Lanes;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

/// What happened in a run: the contents of `run.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    pub format: String,
    pub version: u32,
    pub engine: String,
    pub element: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub kernel: Value,
    #[serde(flatten)]
    pub detail: Detail,
    #[serde(deserialize_with = "seconds")]
    pub seconds: f64,
    pub forecast_seconds: Option<f64>,
    pub ideal_seconds: Option<f64>,
    pub io_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_seconds: Option<f64>,
    pub volume: Option<u64>,
    pub predicted_memory_bytes: Vec<u64>,
    pub peak_memory_bytes: Vec<u64>,
    pub processors: Vec<ProcessorRun>,
    pub plan: Plan,
    pub timeline: Timeline,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<HostNetwork>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_fit: Option<MemoryFit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<CriticalPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Models>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

impl Run {
    /// The record of a run by its plan and what its processors did.
    pub fn new(plan: &Plan, trace: &Trace, kinds: &[ProcessorKind], detail: Detail) -> Self {
        let (compute, communicate, idle) = (trace.compute(), trace.communicate(), trace.idle());
        let processor = |(i, name): (usize, &String)| {
            let lane = &trace.lanes[i];
            let [up, down] = lane.device_bytes;
            let moved = |bytes| (up + down > 0).then_some(bytes);
            ProcessorRun {
                name: name.clone(),
                share: plan.shares[i],
                compute: compute[i],
                communicate: communicate[i],
                idle: idle[i],
                sent: lane.sent.iter().sum(),
                received: lane.received.iter().sum(),
                messages: lane.messages.iter().sum(),
                cpu_seconds: lane.cpu_seconds,
                bytes_up: moved(up),
                bytes_down: moved(down),
                kind: kinds.get(i).map(ToString::to_string),
                computed: None,
            }
        };
        Self {
            format: "apportion-run".into(),
            version: 1,
            detail,
            seconds: trace.seconds(),
            volume: Some(trace.lanes.iter().flat_map(|lane| lane.received.iter()).sum()),
            peak_memory_bytes: trace.lanes.iter().map(|lane| lane.peak_bytes).collect(),
            processors: plan.processors.iter().enumerate().map(processor).collect(),
            plan: plan.clone(),
            timeline: Timeline { measured: Some(Lanes::new(trace)), forecast: None },
            ..Self::default()
        }
    }

    /// The JSON object of `run.json`.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("numbers and strings always serialise")
    }

    /// The shortest and the longest seconds to expect, where speeds were not steady.
    pub fn forecast_range(&self) -> Option<[f64; 2]> {
        match &self.detail {
            Detail::Product(product) => product.forecast_range,
            Detail::Factorisation(factors) => factors.forecast_range,
            Detail::Advection(_) | Detail::Sparse(_) => None,
        }
    }

    /// What the problem takes without a plan, as this run would have been forecast then: the baselines, and the forecast
    /// of the run that was made like them. `None` if there is nothing to compare, or where earlier runs computed a part.
    pub fn without_plan(&self) -> Option<WithoutPlan> {
        let planned = || self.forecast_seconds.zip(self.plan.baselines.clone());
        let (forecast_seconds, baselines) = match &self.detail {
            Detail::Product(ProductRun { corrected: Some(corrected), .. }) => {
                return Some(corrected.forecasts.clone());
            }
            Detail::Product(ProductRun { gain: Some(_), .. }) => {
                let (seconds, baselines) = planned()?;
                let times = seconds / self.plan.forecast.as_ref()?.seconds;
                (seconds, times.is_finite().then(|| baselines.times(times))?)
            }
            Detail::Factorisation(factors) if factors.flops_per_second.is_some() => planned()?,
            Detail::Sparse(sparse) => {
                let (seconds, baselines) = planned()?;
                (seconds, baselines.times(sparse.products as f64))
            }
            _ => return None,
        };
        Some(WithoutPlan { forecast_seconds, baselines })
    }
}

/// A time that JSON has as null where it is not known.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let seconds = Option::<f64>::deserialize(deserializer)?.unwrap_or(0.0);
    if seconds >= 0.0 { Ok(seconds) } else { Err(D::Error::custom("a time is negative")) }
}

/// A number that JSON has as null where it is infinite or none.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// A value that may be null or missing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads an object whose fields all have defaults. One that is not what its format says counts as missing.
///
/// # Errors
/// The name of a required field that is missing, null, or not what its format says.
pub fn read_record<'a, T: DeserializeOwned>(value: &Value, required: &[&'a str]) -> Result<T, &'a str> {
    let none = Map::new();
    let object = value.as_object().unwrap_or(&none);
    // What the fields of a run are depends on what ran.
    let problem = object.get_key_value("application");
    let fits = |field: &str, value: &Value| {
        let one = problem.into_iter().map(|(field, value)| (field.clone(), value.clone()));
        let one: Map<String, Value> = one.chain([(field.to_owned(), value.clone())]).collect();
        T::deserialize(Value::Object(one)).is_ok()
    };
    let is_sound =
        |field: &&&str| object.get(**field).is_some_and(|value| !value.is_null() && fits(field, value));
    if let Some(field) = required.iter().find(|field| !is_sound(field)) {
        return Err(field);
    }
    let sound = object.iter().filter(|(field, value)| fits(field, value));
    let sound: Map<String, Value> = sound.map(|(field, value)| (field.clone(), value.clone())).collect();
    T::deserialize(Value::Object(sound)).map_err(|_| required.first().copied().unwrap_or("format"))
}

/// What a processor did in a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessorRun {
    pub name: String,
    pub share: u64,
    #[serde(deserialize_with = "seconds")]
    pub compute: f64,
    #[serde(deserialize_with = "seconds")]
    pub communicate: f64,
    #[serde(deserialize_with = "seconds")]
    pub idle: f64,
    pub sent: u64,
    pub received: u64,
    pub messages: u64,
    pub cpu_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_up: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_down: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed: Option<u64>,
}

impl ProcessorRun {
    /// What it computed: its share as carried out.
    pub fn done(&self) -> u64 {
        self.computed.unwrap_or(self.share)
    }
}

/// The lanes of a run or a simulation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeline {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Lanes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Lanes>,
}

/// What only runs of a problem have.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Detail {
    /// A matrix product, several, or a closure.
    Product(ProductRun),
    /// A factorisation, and a system that was solved by it.
    Factorisation(FactorRun),
    /// An advection.
    Advection(AdvectRun),
    /// Products of a sparse matrix with a vector, or a system that was solved by them.
    Sparse(SparseRun),
}

impl Default for Detail {
    fn default() -> Self {
        Self::Product(ProductRun::default())
    }
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match value["application"].as_str() {
            Some("factorisation") => serde_json::from_value(value).map(Self::Factorisation),
            Some("mpdata") => serde_json::from_value(value).map(Self::Advection),
            Some("spmv") => serde_json::from_value(value).map(Self::Sparse),
            _ => serde_json::from_value(value).map(Self::Product),
        };
        read.map_err(D::Error::custom)
    }
}

/// What runs of matrix products have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProductRun {
    pub semiring: String,
    pub flow: String,
    pub block: u64,
    pub overlap: Option<bool>,
    pub look_ahead: Option<u64>,
    pub forecast_range: Option<[f64; 2]>,
    pub verified: Option<bool>,
    pub error_probability: Option<f64>,
    pub odds_of_a_miss: Option<f64>,
    pub verification: Option<Verification>,
    pub products: u64,
    pub algorithm: Option<String>,
    pub carried: u64,
    pub volume_lower_bound: Option<u64>,
    pub pairs: Vec<PairTraffic>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub gain: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Box<Corrected>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panels: Option<Box<PanelsRun>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Value>,
}

/// How a product was verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "lowercase")]
pub enum Verification {
    /// By random vectors, as Freivalds 1979.
    Freivalds {
        #[serde(default)]
        vectors: u64,
        #[serde(default)]
        tolerance: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recomputed: Option<u64>,
    },
    /// By elements that were computed again.
    Sampled {
        #[serde(default)]
        elements: u64,
        #[serde(default)]
        rows: Option<u64>,
        #[serde(default)]
        all: bool,
        #[serde(default)]
        tolerance: String,
        #[serde(default)]
        odds_hold_for_wrong_fraction: f64,
    },
}

/// What travelled from a processor to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTraffic {
    pub from: usize,
    pub to: usize,
    pub messages: u64,
    pub elements: u64,
    pub bytes: u64,
}

/// Forecasts of a run and of no plan, by the same speeds and links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WithoutPlan {
    pub forecast_seconds: f64,
    pub baselines: Baselines,
}

/// Forecasts by the speeds that processors had during the run, and by links as slow as its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Corrected {
    pub links: f64,
    #[serde(flatten)]
    pub forecasts: WithoutPlan,
}

/// What became of a dynamic tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailRun {
    pub tiles: u64,
    pub elements: u64,
    pub moved: u64,
}

/// Repartitions of an adaptive run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AdaptiveRun {
    pub segments: u64,
    pub moved: u64,
    pub moving_seconds: f64,
    pub repartitions: Vec<Value>,
}

/// What a process held that computed a part after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldMemory {
    pub memory_cap_bytes: Option<u64>,
    pub predicted_memory_bytes: u64,
    pub peak_resident_bytes: Option<u64>,
}

impl HeldMemory {
    /// What this process has held so far, beside its limit and what was predicted.
    pub fn of_process(cap: Option<u64>, predicted: u64) -> Self {
        Self { memory_cap_bytes: cap, predicted_memory_bytes: predicted, peak_resident_bytes: peak_memory() }
    }
}

/// The panels of a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanelsRun {
    pub count: usize,
    pub rows: u64,
    pub segment: u64,
    pub decided_by: String,
    pub resumed: usize,
    #[serde(flatten)]
    pub held: HeldMemory,
}

/// What runs of factorisations have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, tag = "application", rename = "factorisation")]
pub struct FactorRun {
    pub factors: String,
    pub n: u64,
    pub block: u64,
    pub forecast_range: Option<[f64; 2]>,
    pub flops_per_second: Option<f64>,
    pub gain: Option<f64>,
    pub verified: Option<bool>,
    pub residual: Option<f64>,
    pub verification: Option<ResidualCheck>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factors_residual: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solution: Option<SolutionRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slabs: Option<FactorSlabs>,
}

/// How the residual of factors was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResidualCheck {
    pub method: String,
    pub vectors: Option<usize>,
    pub norm: String,
    pub threshold: f64,
}

/// The solution of a linear system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SolutionRun {
    pub right_hand_sides: u64,
    #[serde(deserialize_with = "number")]
    pub residual: f64,
    #[serde(deserialize_with = "number")]
    pub residual_before_refinement: f64,
    pub refinement_steps: usize,
    pub mixed: Option<MixedRun>,
    #[serde(deserialize_with = "number")]
    pub condition: f64,
    pub seconds: f64,
    pub substitution_seconds: f64,
}

/// What became of mixed precision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixedRun {
    pub steps: usize,
    pub fell_back: bool,
    pub why: Option<String>,
}

/// The slabs of a factorisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorSlabs {
    pub count: usize,
    pub columns: u64,
    pub decided_by: String,
    pub blocks: usize,
    pub resumed: usize,
    #[serde(flatten)]
    pub held: HeldMemory,
}

/// What runs of advections have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, tag = "application", rename = "mpdata")]
pub struct AdvectRun {
    pub sizes: Vec<usize>,
    pub boundary: Vec<Boundary>,
    pub scheme: Option<Scheme>,
    pub exchange: Option<Exchange>,
    pub overlap: Option<bool>,
    pub steps: u64,
    pub million_cells_per_second: Option<f64>,
    pub mass: Change,
    pub least: Change,
    pub most: Change,
    pub largest_courant_sum: Option<f64>,
    pub candidates: Vec<AdvectCandidate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slabs: Option<AdvectSlabs>,
}

/// A quantity before and after a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Change {
    #[serde(deserialize_with = "number")]
    pub before: f64,
    #[serde(deserialize_with = "number")]
    pub after: f64,
}

/// A plan and an order that an advection could have taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdvectCandidate {
    pub method: String,
    pub exchange: Exchange,
    pub overlap: bool,
    pub forecast_seconds: Option<f64>,
}

/// The slabs of an advection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdvectSlabs {
    pub count: u64,
    pub planes: u64,
    pub steps_per_sweep: u64,
    pub sweeps: u64,
    pub computed_twice: f64,
    #[serde(flatten)]
    pub held: HeldMemory,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub disk_seconds: f64,
    pub seconds: f64,
    pub million_cells_per_second: f64,
}

/// What runs with sparse matrices have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, tag = "application", rename = "spmv")]
pub struct SparseRun {
    pub problem: String,
    pub rows: u64,
    pub entries: u64,
    pub steps: u64,
    pub products: u64,
    pub verified: bool,
    pub flops_per_second: Option<f64>,
    pub bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solution: Option<IterationRun>,
    pub candidates: Vec<SparseCandidate>,
}

/// A solution by an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IterationRun {
    pub converged: bool,
    pub tolerance: f64,
    #[serde(deserialize_with = "number")]
    pub residual: f64,
}

/// A division of a sparse matrix that a run could have taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SparseCandidate {
    pub method: String,
    pub mapped: bool,
    pub volume: Option<u64>,
    pub imbalance: f64,
    pub forecast_seconds: Option<f64>,
}

/// The choice of a plan among others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    #[serde(default)]
    pub by: String,
    #[serde(default)]
    pub decided_by: String,
    pub chosen: Candidate,
    pub against: Vec<Candidate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<SharesGain>,
}

/// A plan that could be chosen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidate {
    pub method: String,
    pub flow: String,
    pub overlap: bool,
    pub value: Option<f64>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excess: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
}

/// A processor that stays out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    pub processor: String,
    #[serde(default)]
    pub why: String,
    pub seconds: f64,
}

/// What shares that consider communication gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharesGain {
    pub by: String,
    pub saved_seconds: f64,
}

/// Blocks into which the inner dimension was cut so that no processor exceeds its memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFit {
    pub block: u64,
    pub blocks: u64,
    pub processor: String,
    pub needed_bytes: u64,
    pub memory_bytes: u64,
}

/// The chain of steps that decides the end of a forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriticalPath {
    pub ends: String,
    pub work: f64,
    pub queue: f64,
    pub transfer: f64,
    #[serde(default)]
    pub bytes: f64,
}

impl CriticalPath {
    /// That of a simulation of processors with these names.
    pub fn new(history: &History, names: &[String]) -> Self {
        let last = history.last();
        Self::of_chain(&history.chain(last), &names[last.0])
    }

    /// The sums of a chain that ends at a processor.
    pub fn of_chain(chain: &[Cause], ends: &str) -> Self {
        let mut path = Self { ends: ends.to_owned(), work: 0.0, queue: 0.0, transfer: 0.0, bytes: 0.0 };
        for cause in chain {
            let seconds = cause.end - cause.start;
            match &cause.what {
                Doing::Work(_) => path.work += seconds,
                Doing::Queue(_) => path.queue += seconds,
                Doing::Transfer(message) => {
                    path.transfer += seconds;
                    path.bytes += message.bytes;
                }
            }
        }
        path
    }
}

/// Where a record comes from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    pub command: Option<String>,
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<HostFacts>,
}

/// A machine, in a record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    pub host: Option<String>,
    pub model: Option<String>,
    pub cores: Option<u64>,
    pub memory_bytes: Option<Number>,
    pub instructions: Option<String>,
    pub quota_cores: Option<f64>,
    pub memory_limit_bytes: Option<Number>,
}
