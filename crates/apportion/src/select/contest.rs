//! Forecasts of candidates, without simulating those that cannot win.
//!
//! Where every pair of processors has a wire of its own, the times of most flows follow by recurrence, which
//! costs little. Overlap is never slower there, so that the same flow without it needs no forecast. The others
//! are taken in the order of lower bounds, and given up once they are slower than the best so far. All of this
//! is exact: the first candidate is the one that simulating all of them would find.

use super::candidates::Candidate;
use super::{Field, Minimise, forecast_within, rates};
use crate::error::Result;
use crate::geometry::Rank;
use crate::plan::{Forecast, Plan};
use crate::schedule::{Application, Flow, MatmulSchedule};
use crate::simulate::{CostModel, apart};
use std::rc::Rc;

/// Up to this work, in pairs of processors x pivot blocks, all candidates are simulated.
pub(super) const ALL: f64 = 5e5;
/// Values that differ by less are equal, as for the [order of preference](super::preferred).
const EQUAL: f64 = 1e-9;

/// What is known of a candidate's time.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// Nothing.
    Unknown,
    /// Its forecast.
    Simulated(Forecast),
    /// It takes at least so many seconds, and another one is preferred.
    AtLeast(f64),
}

/// The outcomes of all candidates; `plans` are those of their layouts. Up to `all` pairs of processors x pivot
/// blocks, each is simulated. O(candidates^2) besides the forecasts.
pub(super) fn outcomes(
    field: &Field<'_>,
    candidates: &[Candidate],
    plans: &[Rc<Plan>],
    all: f64,
) -> Result<Vec<Outcome>> {
    let p = field.platform.len() as f64;
    let work =
        |(_, layout, order, _): &Candidate| p * p * layout.shape().k.div_ceil(order.block.max(1)) as f64;
    let timed = field.wishes.minimise == Minimise::Time;
    let mut contest = Contest::new(field, candidates, plans);
    if candidates.iter().map(work).sum::<f64>() <= all {
        let each = |i: usize| contest.simulate(i, f64::INFINITY);
        return (0..candidates.len()).map(each).collect();
    }
    if !timed {
        // No time decides: the chosen one is simulated later.
        return Ok(vec![Outcome::Unknown; candidates.len()]);
    }
    let mut bounded = contest.quick()?;
    bounded.sort_by(|(x, i), (y, j)| x.total_cmp(y).then(i.cmp(j)));
    for (bound, i) in bounded {
        contest.out[i] = match contest.cannot_win(bound, i) {
            true => Outcome::AtLeast(bound),
            false => contest.simulate(i, contest.best * (1.0 + 2.0 * EQUAL))?,
        };
        contest.note(i);
    }
    Ok(contest.out)
}

struct Contest<'c, 'a> {
    field: &'c Field<'a>,
    candidates: &'c [Candidate],
    plans: &'c [Rc<Plan>],
    out: Vec<Outcome>,
    /// The least seconds so far.
    best: f64,
}

impl<'c, 'a> Contest<'c, 'a> {
    fn new(field: &'c Field<'a>, candidates: &'c [Candidate], plans: &'c [Rc<Plan>]) -> Self {
        let out = vec![Outcome::Unknown; candidates.len()];
        Self { field, candidates, plans, out, best: f64::INFINITY }
    }

    /// A candidate's forecast if it takes at most `limit` seconds.
    fn simulate(&self, i: usize, limit: f64) -> Result<Outcome> {
        let (_, layout, order, _) = &self.candidates[i];
        let rates = rates(self.field.models, &layout.sizes(), self.field.models_block);
        let schedule = MatmulSchedule::new(layout, *order);
        let forecast = forecast_within(&schedule, self.conditions(&rates), limit)?;
        Ok(forecast.map_or(Outcome::AtLeast(limit), Outcome::Simulated))
    }

    fn conditions<'r>(&'r self, rates: &'r [f64]) -> CostModel<'r> {
        CostModel { rates, network: &self.field.platform.network, element: self.field.wishes.element }
    }

    /// Forecasts what recurrences serve, and returns the others with their lower bounds.
    fn quick(&mut self) -> Result<Vec<(f64, usize)>> {
        let (mut bounded, mut plain) = (Vec::new(), Vec::new());
        for i in 0..self.candidates.len() {
            let (_, layout, order, _) = &self.candidates[i];
            let rates = rates(self.field.models, &layout.sizes(), self.field.models_block);
            let schedule = MatmulSchedule::new(layout, *order);
            let conditions = self.conditions(&rates);
            if apart::serves(&schedule, conditions) {
                if order.overlaps() {
                    let forecast = apart::timed(&schedule, conditions, f64::INFINITY);
                    self.out[i] = forecast.map_or(Outcome::Unknown, Outcome::Simulated);
                    self.note(i);
                } else {
                    plain.push(i);
                }
                continue;
            }
            let ring = order.flow == Flow::Ring && self.field.platform.network.has_a_wire_for_each_pair();
            let bound = if ring { apart::least_seconds_of_ring(&schedule, conditions) } else { 0.0 };
            bounded.push((bound.max(busiest(&schedule, &rates)), i));
        }
        for i in plain {
            match self.overlapped(i) {
                Some(seconds) => self.out[i] = Outcome::AtLeast(seconds * (1.0 - EQUAL)),
                None => {
                    self.out[i] = self.simulate(i, f64::INFINITY)?;
                    self.note(i);
                }
            }
        }
        Ok(bounded)
    }

    /// The seconds of an earlier candidate that differs by overlap only.
    fn overlapped(&self, i: usize) -> Option<f64> {
        let (_, layout, order, _) = &self.candidates[i];
        let same = |j: &usize| {
            let (_, other, with, _) = &self.candidates[*j];
            Rc::ptr_eq(layout, other) && with.overlaps() && with.with_look_ahead(0) == *order
        };
        (0..i).filter(same).find_map(|j| self.seconds(j))
    }

    fn seconds(&self, i: usize) -> Option<f64> {
        match &self.out[i] {
            Outcome::Simulated(forecast) => Some(forecast.seconds),
            _ => None,
        }
    }

    fn note(&mut self, i: usize) {
        self.best = self.seconds(i).map_or(self.best, |seconds| seconds.min(self.best));
    }

    /// True if a candidate that takes at least `bound` seconds is not preferred to all others: it is slower than
    /// the best, or at most as fast and moves more, or as much and comes later.
    fn cannot_win(&self, bound: f64, i: usize) -> bool {
        let volume = |i: usize| self.plans[i].metrics.volume.unwrap_or(u64::MAX);
        let near = |j: &usize| self.seconds(*j).is_some_and(|s| s <= self.best * (1.0 + EQUAL));
        let preferred = (0..self.candidates.len()).filter(near).any(|j| (volume(j), j) < (volume(i), i));
        bound > self.best * (1.0 + EQUAL) || (bound >= self.best * (1.0 - EQUAL) && preferred)
    }
}

/// Seconds that the busiest processor computes; 0 if speeds are ratios only, whose rates are without end.
fn busiest(schedule: &MatmulSchedule, rates: &[f64]) -> f64 {
    let seconds = |(rank, rate): (usize, &f64)| match schedule.work(Rank(rank)) {
        work if work > 0.0 && *rate > 0.0 => work / rate * (1.0 - EQUAL),
        _ => 0.0,
    };
    rates.iter().enumerate().map(seconds).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
