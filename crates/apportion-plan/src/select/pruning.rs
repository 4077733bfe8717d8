//! Pruning of candidates by lower bounds of their time: the forecasts of all that may be the best.
//!
//! Candidates are taken in the order of what they need at least: the work of the busiest processor, and what
//! occupies a wire. They are given up once they are slower than the best so far. Where every pair of
//! processors has a wire of its own, overlap is never slower, so that the same flow without it needs no
//! forecast. Where shares will be [changed](super::improve) afterwards, those near the best are simulated
//! too. All of this is exact: the first candidate is the one that simulating all of them would find, unless
//! the work that planning may cost is spent before.

use super::budget::{self, LINES};
use super::candidates::Candidate;
use super::improve::{FEW_PROCESSORS, HOPELESS, HOPELESS_OF_FEW};
use super::link_lower_bound::{self, LinkTable, LowerBounds};
use super::{Appraiser, Minimise, Sizing, forecast_within};
use crate::error::Result;
use crate::geometry::Rank;
use crate::model::Machine;
use crate::plan::{Forecast, Plan};
use crate::platform::Topology;
use crate::schedule::{Flow, MatmulSchedule};
use crate::simulate::{CostModel, Effort, recurrence};
use std::rc::Rc;

/// Up to this work, in pairs of processors x pivot blocks, all candidates are simulated.
pub(super) const ALL: f64 = 5e5;
/// Part of the work of planning for the forecasts of candidates, beyond the first one.
const PART: f64 = 0.4;
/// Part of the messages' time that overlap does not hide.
const SLACK: f64 = 0.05;
/// Values that differ by less are equal, as for the [order of preference](super::preferred).
const EQUAL: f64 = 1e-9;

/// What is known of a candidate's time.
#[derive(Debug, Clone)]
pub(super) enum CandidateTime {
    /// Nothing.
    Unknown,
    /// Its forecast.
    Simulated(Forecast),
    /// The least seconds that it takes; another one is preferred, or the work was spent.
    AtLeast(f64),
}

/// The candidate_times of all candidates; `plans` are those of their layouts. Up to `all` pairs of processors x
/// pivot blocks, each is simulated. O(candidates^2) besides the forecasts.
pub(super) fn candidate_times(
    appraiser: &Appraiser<'_>,
    candidates: &[Candidate],
    plans: &[Rc<Plan>],
    all: f64,
) -> Result<Vec<CandidateTime>> {
    let p = appraiser.machine.processors() as f64;
    let work = |Candidate { layout, order, .. }: &Candidate| {
        p * p * layout.shape().k.div_ceil(order.block.max(1)) as f64
    };
    let timed = appraiser.options.minimise == Minimise::Time;
    let mut pruning = Pruning::new(appraiser, candidates, plans);
    if candidates.iter().map(work).sum::<f64>() <= all {
        let each = |i: usize| pruning.simulate(i, f64::INFINITY, &Effort::unlimited());
        return (0..candidates.len()).map(each).collect();
    }
    if !timed {
        // No time decides: the chosen one is simulated later.
        return Ok(vec![CandidateTime::Unknown; candidates.len()]);
    }
    pruning.run()?;
    Ok(pruning.out)
}

struct Pruning<'c, 'a> {
    appraiser: &'c Appraiser<'a>,
    candidates: &'c [Candidate],
    plans: &'c [Rc<Plan>],
    out: Vec<CandidateTime>,
    /// The least seconds so far.
    best: f64,
}

/// A candidate's number with its lower bound, and with a guess that comes closer to its time.
struct Entry {
    number: usize,
    bound: f64,
    guess: f64,
}

impl<'c, 'a> Pruning<'c, 'a> {
    fn new(appraiser: &'c Appraiser<'a>, candidates: &'c [Candidate], plans: &'c [Rc<Plan>]) -> Self {
        let out = vec![CandidateTime::Unknown; candidates.len()];
        Self { appraiser, candidates, plans, out, best: f64::INFINITY }
    }

    /// Simulates what may win, the most promising first.
    fn run(&mut self) -> Result<()> {
        let unlimited = Effort::unlimited();
        let entries = self.entries(&unlimited);
        let least = entries.iter().map(|entry| entry.bound).fold(f64::INFINITY, f64::min);
        let limited = Effort::new(PART * budget::allowed(least));
        limited.spend(unlimited.spent());
        for Entry { number: i, bound, .. } in entries {
            self.out[i] = match self.overlapped(i) {
                Some(seconds) => CandidateTime::AtLeast(bound.max(seconds * (1.0 - EQUAL))),
                None if self.cannot_win(bound, i) => CandidateTime::AtLeast(bound),
                // There is always a forecast.
                None if self.best.is_infinite() => self.simulate(i, f64::INFINITY, &unlimited)?,
                None if limited.is_spent() => CandidateTime::AtLeast(bound),
                None => match self.simulate(i, self.limit(i), &limited)? {
                    CandidateTime::AtLeast(_) if limited.is_spent() => CandidateTime::AtLeast(bound),
                    outcome => outcome,
                },
            };
            self.note(i);
        }
        Ok(())
    }

    /// The candidates in the order in which they are simulated.
    fn entries(&self, effort: &Effort) -> Vec<Entry> {
        let Appraiser { machine, options, .. } = self.appraiser;
        let (network, p) = (&machine.platform.network, machine.processors());
        let links = LinkTable::of(network, p);
        effort.spend(links.as_ref().map_or(0.0, |_| link_lower_bound::PAIR * (p * p) as f64));
        let mut known: Option<(&Rc<_>, LowerBounds)> = None;
        let each = self.candidates.iter().enumerate().map(|(number, Candidate { layout, order, .. })| {
            let bounds = match known {
                Some((same, bounds)) if Rc::ptr_eq(same, layout) => bounds,
                _ => {
                    effort.spend(
                        LINES * p as f64
                            + links.as_ref().map_or(0.0, |_| link_lower_bound::READ * (p * p) as f64),
                    );
                    link_lower_bound::bounds(links.as_ref(), layout, machine, options.element)
                }
            };
            known = Some((layout, bounds));
            let bound = bounds.of(*order, network.topology).max(self.ring(number, effort));
            Entry { number, bound, guess: self.guess(number, &bounds) }
        });
        let mut entries: Vec<Entry> = each.collect();
        entries.sort_by(|x, y| x.guess.total_cmp(&y.guess).then(x.number.cmp(&y.number)));
        // The first of each flow, then the others.
        let mut flows = Vec::new();
        let is_first = |entry: &Entry| {
            let flow = self.candidates[entry.number].order.flow;
            let new = !flows.contains(&flow);
            flows.extend(new.then_some(flow));
            new
        };
        let (first, others): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(is_first);
        first.into_iter().chain(others).collect()
    }

    /// About the time of a candidate, in seconds: work and messages at the same time or one after the other.
    fn guess(&self, i: usize, bounds: &LowerBounds) -> f64 {
        let Appraiser { machine: Machine { platform, .. }, options, .. } = self.appraiser;
        let Candidate { layout, order, .. } = &self.candidates[i];
        let p = platform.len();
        let link = platform.network.link(Rank(0), Rank(p - 1));
        let bytes = self.plans[i].metrics.volume.unwrap_or(0) as f64 * options.element as f64;
        let mean = bytes / p as f64 / link.horizontal.max(link.vertical);
        let messages = match order.flow {
            Flow::Broadcast | Flow::OneToAll if bounds.broadcast > 0.0 => bounds.broadcast,
            // On a bus and in the centre of a star, a ring's messages meet as others do.
            Flow::Ring if platform.network.topology == Topology::Full => mean,
            _ => mean.max(bounds.direct),
        };
        // Partial sums are sent after everything else.
        match order.overlaps() && layout.boxes().is_none() {
            true => bounds.work.max(messages) + SLACK * messages,
            false => bounds.work + messages,
        }
    }

    /// A bound of the ring flow where every pair has a wire of its own.
    fn ring(&self, i: usize, effort: &Effort) -> f64 {
        let Candidate { layout, order, .. } = &self.candidates[i];
        if order.flow != Flow::Ring || !self.appraiser.machine.platform.network.has_a_wire_for_each_pair() {
            return 0.0;
        }
        let rates = self.appraiser.machine.rates(&layout.sizes());
        let schedule = MatmulSchedule::new(layout, *order);
        effort.spend(2.0 * budget::setting_up(&schedule));
        recurrence::least_seconds_of_ring(&schedule, self.cost_model(&rates))
    }

    /// Forecasts beyond this are of no use. By recurrence they cost little, and those near the best are kept.
    fn limit(&self, i: usize) -> f64 {
        let Candidate { layout, order, .. } = &self.candidates[i];
        let quick = self.appraiser.machine.platform.network.has_a_wire_for_each_pair()
            && layout.boxes().is_none()
            && order.flow != Flow::Ring;
        match (self.resizes(), quick) {
            (true, _) => self.best * (1.0 + HOPELESS_OF_FEW),
            (false, true) => self.best * (1.0 + HOPELESS),
            (false, false) => self.best * (1.0 + 2.0 * EQUAL),
        }
    }

    /// True if other shares may make a candidate near the best the best one, and may be looked for.
    fn resizes(&self) -> bool {
        let Appraiser { machine, options, .. } = self.appraiser;
        options.sizing == Sizing::ByForecast
            && machine.processors() <= FEW_PROCESSORS
            && !machine.only_ratios()
    }

    /// A candidate's forecast if it takes at most `limit` seconds.
    fn simulate(&self, i: usize, limit: f64, effort: &Effort) -> Result<CandidateTime> {
        let Candidate { layout, order, .. } = &self.candidates[i];
        let rates = self.appraiser.machine.rates(&layout.sizes());
        let schedule = MatmulSchedule::new(layout, *order);
        let forecast = forecast_within(&schedule, self.cost_model(&rates), limit, effort)?;
        Ok(forecast.map_or(CandidateTime::AtLeast(limit), CandidateTime::Simulated))
    }

    fn cost_model<'r>(&'r self, rates: &'r [f64]) -> CostModel<'r> {
        CostModel {
            rates,
            network: &self.appraiser.machine.platform.network,
            element: self.appraiser.options.element,
        }
    }

    /// For an order without overlap that a recurrence serves: what is known of the same one with overlap.
    fn overlapped(&self, i: usize) -> Option<f64> {
        let Candidate { layout, order, .. } = &self.candidates[i];
        let served = self.appraiser.machine.platform.network.has_a_wire_for_each_pair()
            && layout.boxes().is_none()
            && order.flow != Flow::Ring
            && !order.sends_separately();
        let same = |j: &usize| {
            let Candidate { layout: other, order: with, .. } = &self.candidates[*j];
            Rc::ptr_eq(layout, other) && with.overlaps() && with.with_look_ahead(0) == *order
        };
        (0..i).filter(|_| served && !order.overlaps()).filter(same).find_map(|j| match &self.out[j] {
            CandidateTime::Simulated(forecast) => Some(forecast.seconds),
            CandidateTime::AtLeast(seconds) => Some(*seconds),
            CandidateTime::Unknown => None,
        })
    }

    fn seconds(&self, i: usize) -> Option<f64> {
        match &self.out[i] {
            CandidateTime::Simulated(forecast) => Some(forecast.seconds),
            _ => None,
        }
    }

    fn note(&mut self, i: usize) {
        self.best = self.seconds(i).map_or(self.best, |seconds| seconds.min(self.best));
    }

    /// True if a candidate that takes at least `bound` seconds is not preferred to all others: it is slower
    /// than the best, or at most as fast and moves more, or as much and comes later. Where other shares will
    /// be looked for: if it is too slow for these to make it the best.
    fn cannot_win(&self, bound: f64, i: usize) -> bool {
        if self.resizes() {
            return bound > self.best * (1.0 + HOPELESS_OF_FEW);
        }
        let volume = |i: usize| self.plans[i].metrics.volume.unwrap_or(u64::MAX);
        let near = |j: &usize| self.seconds(*j).is_some_and(|s| s <= self.best * (1.0 + EQUAL));
        let preferred = (0..self.candidates.len()).filter(near).any(|j| (volume(j), j) < (volume(i), i));
        bound > self.best * (1.0 + EQUAL) || (bound >= self.best * (1.0 - EQUAL) && preferred)
    }
}

#[cfg(test)]
mod tests;
