//! The result of a run of products, from which its record is made.

use super::{Adaptation, ClosureMethod, MatmulJob, TailOutcome};
use crate::error::Result;
use crate::kernels::{Kernel, Semiring};
use crate::matrix::Element;
use crate::plan::{Baselines, Plan, volume_lower_bound};
use crate::platform::{HostNetwork, Processor, ProcessorKind};
use crate::record::{Corrected, Detail, PairTraffic, ProductRun, Run, TailRun, Verification, WithoutPlan};
use crate::run::Session;
use crate::schedule::{MatmulSchedule, ScheduleOptions};
use crate::trace::Trace;
use crate::verify::{RowsChecked, WRONG_FRACTION};
use serde_json::{Value, json};

/// The report of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunReport {
    /// `"threads"` or `"mpi"`.
    pub(crate) engine: &'static str,
    /// The algebra.
    pub(crate) semiring: Semiring,
    /// The library and kernel: [`Kernel::about`](crate::kernels::Kernel::about).
    pub kernel: Value,
    /// `"f32"`, `"f64"`, `"i32"`, `"i64"`, `"bool"` or `"u8"`.
    pub(crate) element: &'static str,
    /// Bytes of one element in messages. In a closure with predecessors they exceed those in the files.
    pub element_bytes: u64,
    /// The plan that was run.
    pub plan: Plan,
    /// Flow, block and look-ahead.
    pub order: ScheduleOptions,
    /// Activities of each processor over time.
    pub trace: Trace,
    /// What computed for each processor.
    pub(crate) kinds: Vec<ProcessorKind>,
    /// Predicted peak memory of each processor in bytes
    /// ([`predicted_memory`](crate::schedule::predicted_memory)); in an adaptive run, that of the initial
    /// layout.
    pub(crate) predicted_memory: Vec<u64>,
    /// Seconds that the simulator predicted.
    pub forecast_seconds: f64,
    /// The shortest and the longest seconds to expect, if the speeds were not steady when they were measured,
    /// or other programs take a part of the processors' time; set by who measured them.
    pub(crate) forecast_range: Option<[f64; 2]>,
    /// The forecasts of this run and of no plan, corrected by what the run has shown; on rank 0, of products of one plan.
    pub(crate) corrected: Option<RunForecasts>,
    /// Ideal time: work over the sum of the speeds.
    pub ideal_seconds: f64,
    /// The network between hosts by which the run was planned, if it was measured for such runs.
    pub(crate) network: Option<HostNetwork>,
    /// Repartitions of the run, if they were requested.
    pub adaptation: Option<Adaptation>,
    /// Who computed the dynamic tail, if there was one. The shares of the plan are then not those that were
    /// carried out; messages are the plan's.
    pub(crate) tail: Option<TailOutcome>,
    /// Upper bound of the probability that verification missed a wrong result; `None` if this run computed
    /// nothing. If elements were sampled, the bound is for a result in which a fraction of the elements is wrong:
    /// a thousandth, or what [`RunReport::rows`] says.
    pub error_probability: Option<f64>,
    /// Number of elements recomputed, if verification samples; `None` for Freivalds' check.
    pub(crate) sampled: Option<u64>,
    /// Rows of the result that were checked against the matrix itself, of closures and powers whose products are
    /// sampled.
    pub(crate) rows: Option<RowsChecked>,
    /// Elements recomputed in addition to Freivalds' check, since infinities or NaN reach their rows or
    /// columns.
    pub(crate) exceptional: u64,
    /// Number of products in the run: 1, except for powers and closures. Seconds and volume are totals.
    pub products: u64,
    /// How a closure was computed.
    pub(crate) closure: Option<ClosureMethod>,
    /// True if earlier runs computed a part of the product: seconds and volume are those of this run.
    pub(crate) partial: bool,
    /// Seconds spent reading and writing files.
    pub(crate) io_seconds: f64,
    /// Seconds spent on verification.
    pub(crate) verify_seconds: f64,
    /// What a reader should know of the result: cycles that count as 0, zeros that may stand for no edge.
    pub(crate) notes: Vec<String>,
}

/// Forecasts of a run and of no plan: by the speeds that processors had during the run, and by links that were as slow as
/// its messages, or as they were planned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunForecasts {
    /// Seconds of the run.
    pub seconds: f64,
    /// Seconds of all its products without a plan.
    pub without_plan: Baselines,
    /// How many times as long messages took as by the network of the plan.
    pub links: f64,
    /// Seconds of the run that the speeds alone do not account for; negative if it was faster.
    pub unexplained: f64,
}

/// What computed: this rank's kernel, and those of all ranks in `by_rank` if they differ. Every rank calls
/// it.
fn about_kernels<T: Element>(kernel: Kernel<T>, session: &Session<'_>) -> Result<Value> {
    let (mut about, world) = (kernel.about(), session.world());
    if !world.is_solo() {
        let names = world.all_gather(kernel.name().as_bytes())?;
        if names.iter().any(|name| *name != names[0]) {
            let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
            about["by_rank"] = json!(names);
        }
    }
    Ok(about)
}

impl RunReport {
    /// The report of a job that has computed nothing yet.
    ///
    /// # Errors
    /// The plan has no layout.
    pub fn nothing<T: Element>(job: &MatmulJob<'_, T>, session: &Session<'_>) -> Result<Self> {
        let processors = session.platform().len();
        Ok(Self {
            engine: session.world().engine(),
            semiring: job.kernel.semiring(),
            kernel: about_kernels(job.kernel, session)?,
            element: T::NAME,
            element_bytes: size_of::<T>() as u64,
            plan: job.plan.clone(),
            order: MatmulSchedule::new(job.plan.layout()?, job.order).order(),
            trace: Trace::empty(processors),
            kinds: session.platform().processors.iter().map(Processor::kind).collect(),
            predicted_memory: vec![0; processors],
            forecast_seconds: 0.0,
            forecast_range: None,
            corrected: None,
            ideal_seconds: 0.0,
            network: session.platform().network.hosts().cloned(),
            adaptation: None,
            tail: None,
            error_probability: None,
            sampled: None,
            rows: None,
            exceptional: 0,
            products: 0,
            closure: None,
            partial: false,
            io_seconds: 0.0,
            verify_seconds: 0.0,
            notes: Vec::new(),
        })
    }

    /// Adds the report of the next run of the same job.
    pub fn add(&mut self, next: Self) {
        self.plan = next.plan;
        self.trace.append(next.trace);
        let memory = self.predicted_memory.iter_mut().zip(&next.predicted_memory);
        memory.for_each(|(most, next)| *most = (*most).max(*next));
        self.forecast_seconds += next.forecast_seconds;
        self.ideal_seconds += next.ideal_seconds;
        self.adaptation = match (self.adaptation.take(), next.adaptation) {
            (Some(all), Some(next)) => Some(all.and_then(next)),
            (all, next) => all.or(next),
        };
        self.tail = match (self.tail.take(), next.tail) {
            (Some(all), Some(next)) => Some(all.and(&next)),
            (all, next) => all.or(next),
        };
        // One missed product makes the whole wrong: the probabilities add up at most.
        self.error_probability = match (self.error_probability, next.error_probability) {
            (Some(x), Some(y)) => Some((x + y).min(1.0)),
            (x, y) => x.or(y),
        };
        self.sampled = next.sampled.map(|new| self.sampled.unwrap_or(0) + new);
        self.exceptional += next.exceptional;
        self.products += next.products;
        self.verify_seconds += next.verify_seconds;
        self.notes.extend(next.notes);
    }

    /// The same report with the seconds of reading and writing files, and the element type in the files.
    #[must_use]
    pub(crate) fn with_io(self, io_seconds: f64, element: &'static str) -> Self {
        Self { io_seconds, element, ..self }
    }

    /// Seconds from the first step of the schedule to the last.
    pub fn seconds(&self) -> f64 {
        self.trace.seconds()
    }

    /// Number of elements that changed their processor, counted during the run.
    pub fn volume(&self) -> u64 {
        self.trace.lanes.iter().flat_map(|l| &l.received).sum()
    }
}

/// Its record.
impl From<&RunReport> for Run {
    fn from(report: &RunReport) -> Self {
        let overlaps = report.order.overlaps();
        let corrected = report.corrected.as_ref().map(|corrected| {
            Box::new(Corrected {
                links: corrected.links,
                forecasts: WithoutPlan {
                    forecast_seconds: corrected.seconds,
                    baselines: corrected.without_plan.clone(),
                },
            })
        });
        // Where earlier runs computed a part, there is nothing to compare.
        let compared = corrected.is_some() || !report.partial;
        let product = ProductRun {
            semiring: report.semiring.name().into(),
            flow: report.order.flow.to_string(),
            block: report.order.block,
            overlap: Some(overlaps),
            look_ahead: overlaps.then_some(report.order.look_ahead),
            forecast_range: report.forecast_range,
            verified: report.error_probability.map(|_| true),
            error_probability: report.error_probability,
            odds_of_a_miss: report.error_probability,
            verification: report.verification(),
            products: report.products,
            algorithm: report.closure.map(|method| method.to_string()),
            carried: report.trace.lanes.iter().map(|lane| lane.carried).sum(),
            volume_lower_bound: report.volume_lower_bound(),
            pairs: report.traffic(),
            gain: compared.then_some(Value::Null),
            corrected,
            tail: report.tail.as_ref().map(|tail| TailRun {
                tiles: tail.tiles,
                elements: tail.computed.iter().sum(),
                moved: tail.moved,
            }),
            adaptive: report.adaptation.as_ref().map(Adaptation::record),
            panels: None,
            explain: None,
        };
        let mut run = Self {
            engine: report.engine.into(),
            element: report.element.into(),
            kernel: report.kernel.clone(),
            forecast_seconds: Some(report.forecast_seconds),
            ideal_seconds: Some(report.ideal_seconds),
            io_seconds: report.io_seconds,
            verify_seconds: Some(report.verify_seconds),
            predicted_memory_bytes: report.predicted_memory.clone(),
            notes: report.notes.clone(),
            network: report.network.clone(),
            ..Self::new(&report.plan, &report.trace, &report.kinds, Detail::Product(product))
        };
        let gain = run
            .without_plan()
            .map(|without| json!(without.baselines.gain_of_run(run.seconds, without.forecast_seconds)));
        if let Detail::Product(product) = &mut run.detail {
            product.gain = gain;
        }
        if let Some(tail) = &report.tail {
            let computed = tail.carried_out(&report.plan.shares);
            run.processors.iter_mut().zip(computed).for_each(|(one, computed)| one.computed = Some(computed));
        }
        run
    }
}

impl RunReport {
    /// How the result was verified, if something was computed.
    fn verification(&self) -> Option<Verification> {
        let probability = self.error_probability?;
        let tolerance = |exact| if exact { "exact" } else { "rounding" }.to_owned();
        Some(match self.sampled {
            Some(elements) => Verification::Sampled {
                elements,
                rows: self.rows.map(|rows| rows.rows),
                all: probability == 0.0,
                tolerance: tolerance(self.rows.is_none_or(|rows| rows.exact)),
                odds_hold_for_wrong_fraction: self.rows.map_or(WRONG_FRACTION, |rows| rows.wrong_fraction),
            },
            None => Verification::Freivalds {
                vectors: 16,
                tolerance: tolerance(false),
                recomputed: Some(self.exceptional).filter(|count| *count > 0),
            },
        })
    }

    /// `None` for an elimination, whose products are not those of the plan, for a symmetric product, and for a part of a
    /// product.
    fn volume_lower_bound(&self) -> Option<u64> {
        if self.closure == Some(ClosureMethod::Elimination) || self.partial {
            return None;
        }
        Some(volume_lower_bound(self.plan.layout().ok()?)? * self.products)
    }

    /// What every pair that communicated sent.
    fn traffic(&self) -> Vec<PairTraffic> {
        let ranks = 0..self.trace.lanes.len();
        let all = ranks.clone().flat_map(|from| ranks.clone().map(move |to| (from, to)));
        let pair = |(from, to): (usize, usize)| {
            let lane = &self.trace.lanes[from];
            let (messages, elements) = (lane.messages[to], lane.sent[to]);
            let bytes = elements * self.element_bytes;
            (messages > 0).then_some(PairTraffic { from, to, messages, elements, bytes })
        };
        all.filter_map(pair).collect()
    }
}
