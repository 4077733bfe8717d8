//! A product that is repartitioned during the computation when a processor slows down. Rebalancing is the
//! outermost loop.
//!
//! The inner dimension is cut into segments of pivot blocks. After each segment the measured speeds correct
//! the models. If a new layout of the remaining work saves more time than moving its parts costs, the parts
//! move.

mod follower;

use crate::error::Result;
use crate::geometry::Span;
use crate::plan::Layout;
use crate::record::AdaptiveRun;
use crate::schedule::MatmulSchedule;
use crate::select::{Proposal, Rebalance};
use crate::trace::{Activity, Trace};
use follower::Follower;
use serde_json::json;

/// Options of an adaptive run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptive {
    /// Number of segments of the inner dimension, at most one per pivot block. More segments react sooner to
    /// a change; at the end of each, all processors wait for the last.
    pub segments: u64,
}

/// One repartition.
#[derive(Debug, Clone, PartialEq)]
pub struct Repartition {
    /// Number of inner indices that were done.
    pub(crate) after: u64,
    /// Time in seconds since the start.
    pub(crate) at: f64,
    /// Method of the new layout.
    pub(crate) method: String,
    /// The new layout.
    pub(crate) layout: Layout,
    /// Speeds that it was made for: multiply-adds per second of each processor.
    pub(crate) rates: Vec<f64>,
    /// Elements that changed their owner: of C, and of the parts of A and B that are still needed.
    pub(crate) moved: u64,
    /// Seconds that moving took on the slowest processor.
    pub(crate) seconds: f64,
    /// Predicted saving in seconds, without the cost of moving.
    pub(crate) gain: f64,
    /// Predicted cost of moving in seconds.
    pub(crate) cost: f64,
}

/// Repartitions of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Adaptation {
    /// Number of segments of the inner dimension.
    pub(crate) segments: u64,
    /// Repartitions, in order of time.
    pub repartitions: Vec<Repartition>,
}

impl Adaptation {
    /// Adds the repartitions of the next product of the same job.
    pub(crate) fn and_then(mut self, next: Self) -> Self {
        self.segments += next.segments;
        self.repartitions.extend(next.repartitions);
        self
    }

    /// Elements moved by all repartitions.
    pub(crate) fn moved_elements(&self) -> u64 {
        self.repartitions.iter().map(|r| r.moved).sum()
    }

    /// Seconds spent on moving.
    pub(crate) fn moving_seconds(&self) -> f64 {
        self.repartitions.iter().fold(0.0, |sum, r| sum + r.seconds)
    }

    /// The repartitions as `run.json` has them.
    pub(crate) fn record(&self) -> AdaptiveRun {
        let repartition = |r: &Repartition| {
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
        };
        AdaptiveRun {
            segments: self.segments,
            moved: self.moved_elements(),
            moving_seconds: self.moving_seconds(),
            repartitions: self.repartitions.iter().map(repartition).collect(),
        }
    }
}

/// An engine that keeps the parts of C between segments.
pub(crate) trait Segments {
    /// Runs one segment; its times count from its own start.
    fn run(&mut self, schedule: &MatmulSchedule) -> Result<Trace>;

    /// Moves the parts of C, and the parts of A and B with these inner indices, to their owners in `to`. No
    /// processor's parts are available before its arrival time. Returns the seconds by processor.
    fn relocate(&mut self, to: &MatmulSchedule, rest: Span, arrivals: &[f64]) -> Result<Vec<f64>>;

    /// Seconds since the start of the first segment.
    fn now(&self) -> f64;
}

/// Runs all segments, starting with `layout`. In the trace, moved elements count as sent and received.
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
    let mut follower = Follower::new(rebalance)?;
    let mut adaptation = Adaptation { segments: spans.len() as u64, repartitions: Vec::new() };
    for (i, span) in spans.iter().enumerate() {
        let trace = engine.run(&MatmulSchedule::new(&layout, rebalance.order).within(*span))?;
        let observed = follower.observe(&layout, *span, &trace);
        let begin = if i == 0 { 0.0 } else { (engine.now() - trace.seconds()).max(all.seconds()) };
        all.append_at(begin, trace);
        let rest = Span::new(span.end, layout.shape().k);
        if rest.is_empty() {
            break;
        }
        let Some(observed) = observed else { continue };
        if let Some(proposal) = rebalance.proposal(&layout, &method, rest, &observed)? {
            let rates: Vec<f64> = rebalance
                .machine
                .rates(&proposal.layout.shares())
                .iter()
                .zip(&observed.slower)
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

/// Cuts the inner dimension into segments of whole pivot blocks, of as equal length as possible.
fn segments(schedule: &MatmulSchedule, most: u64) -> Vec<Span> {
    let pivots: Vec<Span> = schedule.pivots().collect();
    let count = pivots.len().min(usize::try_from(most.max(1)).unwrap_or(usize::MAX));
    let cut = |i: usize| i * pivots.len() / count;
    (0..count).map(|i| Span::new(pivots[cut(i)].start, pivots[cut(i + 1) - 1].end)).collect()
}

/// Moves the parts and records the start and the duration.
fn relocate(
    old: &Layout,
    proposal: &Proposal,
    rest: Span,
    rebalance: &Rebalance<'_>,
    engine: &mut impl Segments,
    all: &mut Trace,
) -> Result<(f64, f64)> {
    let (moves, p) = (&proposal.moves, old.processors());
    let arrivals = moves.arrivals(&rebalance.machine.platform, rebalance.element);
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
        // The old and the new part of C are in memory at the same time.
        lane.peak_bytes = lane.peak_bytes.max((before + after) * rebalance.element);
    }
    Ok((at, took.into_iter().fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod visits;
