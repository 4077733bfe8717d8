//! Follows the speeds of the processors by the times of the segments.
//!
//! What a run loses against an oracle that knows the speeds in advance, in units of one segment's time, if a
//! processor becomes f times slower (or f times faster):
//!
//! - Up to f - 1 until the end of the segment in which it changes: all wait for the processor that has too
//!   much.
//! - About as much in the next one if the change was in the middle: its time was a mixture of both speeds.
//!   The segment after that is right. To wait until a second segment confirms the first, as a
//!   [`Balancer`](crate::plan::shares::Balancer) does, would cost f - 1 more at each change. A segment that
//!   was disturbed once costs as much here, and nothing there; but what lasted for a segment is as likely to
//!   last for another as not, and moving is priced apart ([`Rebalance`]).
//! - Of the rest, what repartitioning is not worth: at most 2 %, or the doubt below, which falls with every
//!   segment of equal speeds. On average 0.6 standard deviations of a segment's time are lost to waiting on
//!   two processors, and 1.0 on four, whatever is done.
//!
//! So more segments lose less, until the start and the end of each, or its noise, cost as much.

use super::{Rebalance, Span, Trace};
use crate::error::Result;
use crate::model::{Model, Point};
use crate::plan::Layout;
use crate::plan::shares::noise::{UNKNOWN_NOISE, difference, doubt, middle, noise, push};
use crate::select::Observed;

/// Number of segments at one speed whose median counts, and of differences that tell the noise.
const WINDOW: usize = 16;
/// The relative difference, and the standard deviations, beyond which a processor has another speed.
const CHANGE: (f64, f64) = (0.05, 3.0);
/// The noise is assumed to be no less than this: a few segments may agree by chance.
const LEAST_NOISE: f64 = 0.002;
/// Standard errors beyond the largest by chance that a gain must have.
const DEVIATIONS: f64 = 1.5;

/// Follows the speeds of the processors. Equal times give equal answers, bit for bit, on every rank.
#[derive(Debug)]
pub(super) struct Follower {
    /// Seconds of one inner index by elements of C.
    models: Vec<Model>,
    processors: Vec<Recent>,
    /// Seconds since the last change of a speed.
    lasted: f64,
}

/// One processor.
#[derive(Debug, Clone, Default)]
struct Recent {
    /// The factors by which its segments took longer than its model says, since its speed changed.
    slower: Vec<f64>,
    /// Relative differences of successive factors.
    differences: Vec<f64>,
}

impl Follower {
    /// Nothing is observed yet.
    ///
    /// # Errors
    /// A time of a model that is out of range.
    pub(crate) fn new(rebalance: &Rebalance<'_>) -> Result<Self> {
        let block = rebalance.machine.block as f64;
        let of_one_index = |model: &Model| {
            let points = model.points().iter().map(|p| Point::new(p.size, p.seconds / block)).collect();
            // Memory limits are the layout's business.
            Model::new(model.processor(), model.interpolation(), points, None)
        };
        let models: Vec<Model> = rebalance.machine.models.iter().map(of_one_index).collect::<Result<_>>()?;
        Ok(Self { processors: vec![Recent::default(); models.len()], models, lasted: 0.0 })
    }

    /// Takes the times of a segment; `None` if the clock is too coarse for it.
    pub(crate) fn observe(&mut self, layout: &Layout, span: Span, trace: &Trace) -> Option<Observed> {
        let (shares, seconds) = (layout.shares(), trace.compute());
        let working = |i: &usize| shares[*i] > 0;
        if (0..shares.len()).filter(working).any(|i| seconds[i] <= 0.0) {
            return None;
        }
        let differences = self.processors.iter().flat_map(|recent| recent.differences.iter().copied());
        let noise = noise(differences).unwrap_or(UNKNOWN_NOISE).max(LEAST_NOISE);
        let mut changed = false;
        for i in (0..shares.len()).filter(working) {
            let expected = self.models[i].seconds(shares[i] as f64) * span.len() as f64;
            changed |= self.processors[i].learn(seconds[i] / expected, noise);
        }
        self.lasted = if changed { trace.seconds() } else { self.lasted + trace.seconds() };
        let rounds = self.processors.iter().map(|recent| recent.slower.len()).filter(|n| *n > 0).min();
        Some(Observed {
            slower: self.processors.iter().map(Recent::level).collect(),
            doubt: doubt(DEVIATIONS, shares.len(), noise, rounds.unwrap_or(1)),
            lasted: self.lasted,
        })
    }
}

impl Recent {
    /// Takes the factor of a segment; true if the speed has changed.
    fn learn(&mut self, slower: f64, noise: f64) -> bool {
        let mut changed = false;
        if let Some(&last) = self.slower.last() {
            push(&mut self.differences, difference(slower, last), WINDOW);
            let (level, (least, deviations)) = (self.level(), CHANGE);
            changed = slower.max(level) > (1.0 + least.max(deviations * noise)) * slower.min(level);
        }
        if changed {
            self.slower.clear();
        }
        push(&mut self.slower, slower, WINDOW);
        changed
    }

    /// The present factor; 1 for a processor that was never observed.
    fn level(&self) -> f64 {
        if self.slower.is_empty() { 1.0 } else { middle(self.slower.iter().copied()) }
    }
}
