//! A product that is divided anew while it is computed, when a processor turns slower: rebalancing is the
//! outermost loop.
//!
//! The inner dimension is cut into segments of pivot blocks. After each the measured speeds correct the
//! models, and if a new layout of the rest saves more than the moving of its parts costs, they move.

use crate::error::Result;
use crate::geometry::Span;
use crate::plan::Layout;
use crate::schedule::MatmulSchedule;
use crate::select::rates;
use crate::select::{Proposal, Rebalance};
use crate::trace::{Activity, Trace};
use serde_json::{Value, json};

/// How a product adapts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptive {
    /// Segments that the inner dimension is cut into, at most one per pivot block. More see a change sooner;
    /// each ends with all processors waiting for the last.
    pub segments: u64,
}

/// One new division.
#[derive(Debug, Clone, PartialEq)]
pub struct Repartition {
    /// Inner indices done when it was made.
    pub after: u64,
    /// When, in seconds since the start.
    pub at: f64,
    /// The method of the new layout.
    pub method: String,
    /// The new layout.
    pub layout: Layout,
    /// Multiply-adds per second of each processor that it was made for.
    pub rates: Vec<f64>,
    /// Elements of C, and of A and B as far as still needed, that changed their owner.
    pub moved: u64,
    /// Seconds that moving took, the slowest processor's.
    pub seconds: f64,
    /// Seconds that it was to save, without the moving.
    pub gain: f64,
    /// Seconds that moving was to take.
    pub cost: f64,
}

/// How a run adapted.
#[derive(Debug, Clone, PartialEq)]
pub struct Adaptation {
    /// Segments that the inner dimension was cut into.
    pub segments: u64,
    /// New divisions, in the order of time.
    pub repartitions: Vec<Repartition>,
}

impl Adaptation {
    /// What the next product of the same job did, added.
    pub(crate) fn and_then(mut self, next: Self) -> Self {
        self.segments += next.segments;
        self.repartitions.extend(next.repartitions);
        self
    }

    /// Elements moved, all repartitions together.
    pub fn moved(&self) -> u64 {
        self.repartitions.iter().map(|r| r.moved).sum()
    }

    /// Seconds spent moving.
    pub fn moving_seconds(&self) -> f64 {
        self.repartitions.iter().fold(0.0, |sum, r| sum + r.seconds)
    }

    /// The `adaptive` object of `run.json`.
    pub fn to_value(&self) -> Value {
        let repartitions = self.repartitions.iter().map(|r| {
            json!({
                "after": r.after,
                "at_seconds": r.at,
                "method": r.method,
                "shares": r.layout.shares(),
                "layout": r.layout.parts(),
                "rates": r.rates,
                "moved": r.moved,
                "seconds": r.seconds,
                "predicted_gain": r.gain,
                "predicted_cost": r.cost,
            })
        });
        json!({
            "segments": self.segments,
            "moved": self.moved(),
            "moving_seconds": self.moving_seconds(),
            "repartitions": repartitions.collect::<Vec<_>>(),
        })
    }
}

/// An engine that keeps the parts of C from one segment to the next.
pub(crate) trait Segments {
    /// Carries out one segment; its times count from its own start.
    fn run(&mut self, schedule: &MatmulSchedule) -> Result<Trace>;

    /// Moves the parts of C, and those of A and B with these inner indices, to where `to` has them, each
    /// processor's not sooner than its arrival; seconds by processor.
    fn relocate(&mut self, to: &MatmulSchedule, rest: Span, arrivals: &[f64]) -> Result<Vec<f64>>;

    /// Seconds since the first segment began.
    fn now(&self) -> f64;
}

/// Runs all segments, beginning with `layout`. The trace counts the moved elements among the sent and
/// received.
pub(crate) fn adapt(
    layout: &Layout,
    method: &str,
    adaptive: Adaptive,
    rebalance: &Rebalance<'_>,
    engine: &mut impl Segments,
) -> Result<(Trace, Adaptation)> {
    let spans = segments(&MatmulSchedule::new(layout, rebalance.order), adaptive.segments);
    let (mut layout, mut method) = (layout.clone(), method.to_owned());
    let mut all = Trace::empty(layout.processors());
    let mut pace = SpeedTracker::new(layout.processors());
    let mut adaptation = Adaptation { segments: spans.len() as u64, repartitions: Vec::new() };
    for (i, span) in spans.iter().enumerate() {
        let trace = engine.run(&MatmulSchedule::new(&layout, rebalance.order).within(*span))?;
        pace.learn(rebalance, &layout, *span, &trace);
        let begin = if i == 0 { 0.0 } else { (engine.now() - trace.seconds()).max(all.seconds()) };
        all.append_at(begin, trace);
        let rest = Span::new(span.end, layout.shape().k);
        if rest.is_empty() {
            break;
        }
        let slower = pace.slower();
        if let Some(proposal) = rebalance.proposal(&layout, &method, rest, &slower)? {
            let rates: Vec<f64> = rates(rebalance.models, &proposal.layout.shares(), rebalance.models_block)
                .iter()
                .zip(&slower)
                .map(|(rate, slower)| rate / slower)
                .collect();
            let (at, seconds) = relocate(&layout, &proposal, rest, rebalance, engine, &mut all)?;
            let Proposal { method: new_method, layout: new, gain, cost, moves } = proposal;
            (layout, method) = (new, new_method);
            adaptation.repartitions.push(Repartition {
                after: span.end,
                at,
                method: method.clone(),
                layout: layout.clone(),
                rates,
                moved: moves.total(),
                seconds,
                gain,
                cost,
            });
        }
    }
    Ok((all, adaptation))
}

/// Whole pivot blocks, as equally many a segment as can be.
fn segments(schedule: &MatmulSchedule, most: u64) -> Vec<Span> {
    let pivots: Vec<Span> = schedule.pivots().collect();
    let count = pivots.len().min(usize::try_from(most.max(1)).unwrap_or(usize::MAX));
    let cut = |i: usize| i * pivots.len() / count;
    (0..count).map(|i| Span::new(pivots[cut(i)].start, pivots[cut(i + 1) - 1].end)).collect()
}

/// By how much each processor was slower than its model in the last segments.
struct SpeedTracker {
    last: Vec<Vec<f64>>,
}

impl SpeedTracker {
    /// Segments that are looked back at: one that a stranger disturbed does not count against two that he did
    /// not.
    const SEEN: usize = 3;

    fn new(processors: usize) -> Self {
        Self { last: vec![Vec::new(); processors] }
    }

    fn learn(&mut self, rebalance: &Rebalance<'_>, layout: &Layout, span: Span, trace: &Trace) {
        let shares = layout.shares();
        let expected = rates(rebalance.models, &shares, rebalance.models_block);
        for (i, seconds) in trace.compute().into_iter().enumerate().filter(|(i, _)| shares[*i] > 0) {
            let factor = expected[i] * seconds / (shares[i] as f64 * span.len() as f64);
            if factor.is_finite() && factor > 0.0 {
                let last = &mut self.last[i];
                last.truncate(Self::SEEN - 1);
                last.insert(0, factor);
            }
        }
    }

    /// The median of the last three; the lesser of two; none of one, since first touches are in it.
    fn slower(&self) -> Vec<f64> {
        let of_one = |last: &Vec<f64>| {
            let mut sorted = last.clone();
            sorted.sort_by(f64::total_cmp);
            match sorted.len() {
                0 | 1 => 1.0,
                n => sorted[(n - 1) / 2],
            }
        };
        self.last.iter().map(of_one).collect()
    }
}

/// Moves the parts, and writes it down; when it began and how long it took.
fn relocate(
    old: &Layout,
    proposal: &Proposal,
    rest: Span,
    rebalance: &Rebalance<'_>,
    engine: &mut impl Segments,
    all: &mut Trace,
) -> Result<(f64, f64)> {
    let (moves, p) = (&proposal.moves, old.processors());
    let arrivals = moves.arrivals(rebalance.platform, rebalance.element);
    let at = engine.now();
    let took = engine.relocate(&MatmulSchedule::new(&proposal.layout, rebalance.order), rest, &arrivals)?;
    let shares = old.shares().into_iter().zip(proposal.layout.shares());
    for ((i, lane), (before, after)) in all.lanes.iter_mut().enumerate().zip(shares) {
        lane.push(Activity::Communicate, at, at + took[i], None);
        for other in (0..p).filter(|other| *other != i) {
            let (comes, goes) = (moves.elements(other, i), moves.elements(i, other));
            if comes > 0 {
                lane.received[other] += comes;
            }
            if goes > 0 {
                lane.sent[other] += goes;
                lane.messages[other] += 1;
            }
        }
        // Old and new part of C exist side by side.
        lane.peak_bytes = lane.peak_bytes.max((before + after) * rebalance.element);
    }
    Ok((at, took.into_iter().fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests;
