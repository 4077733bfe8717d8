//! Appraisal of candidates: the plan, forecast and rank of a layout with an order of steps, and the one rule
//! for choices. The least value of the criterion wins; among equals the least volume wins, then the first in
//! the order of preference.

use crate::error::Result;
use crate::model::{Machine, Model};
use crate::plan::{Forecast, Layout, Plan, shares, star_volume};
use crate::platform::Topology;
use crate::schedule::ScheduleOptions;
use crate::select::balance::{imbalance_of, relative_times_of};
use crate::select::candidates::Candidate;
use crate::select::pruning::{self, CandidateTime};
use crate::select::{Choice, MemoryPolicy, Minimise, PlanOptions, check_caps, forecast};
use crate::simulate::CostModel;
use std::cell::OnceCell;
use std::rc::Rc;

/// Appraises layouts for one machine, with the options of one call.
pub(super) struct Appraiser<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) options: &'a PlanOptions,
    /// The time in which all would finish together: the same for every layout, and not free for many
    /// processors.
    ideal: OnceCell<f64>,
}

impl<'a> Appraiser<'a> {
    pub(crate) fn new(machine: &'a Machine, options: &'a PlanOptions) -> Self {
        Self { machine, options, ideal: OnceCell::new() }
    }

    /// The candidates' plans, forecasts and ranks. A layout is appraised once for all of its orders. Without
    /// simulation nothing distinguishes these, so each layout has its first one only.
    pub(crate) fn choices(&self, candidates: Vec<Candidate>, simulated: bool) -> Result<Vec<Choice>> {
        self.choices_of(candidates, simulated.then_some(pruning::ALL))
    }

    /// The same, if there is simulation at all, with this [limit](pruning::candidate_times) of complete simulation.
    pub(super) fn choices_of(&self, mut candidates: Vec<Candidate>, all: Option<f64>) -> Result<Vec<Choice>> {
        if all.is_none() {
            candidates.dedup_by(|next, kept| Rc::ptr_eq(&next.layout, &kept.layout));
        }
        let mut plans: Vec<Rc<Plan>> = Vec::with_capacity(candidates.len());
        for (i, Candidate { method, layout, .. }) in candidates.iter().enumerate() {
            let same = i > 0 && Rc::ptr_eq(&candidates[i - 1].layout, layout);
            plans.push(if same { Rc::clone(&plans[i - 1]) } else { Rc::new(self.plan(method, layout)?) });
        }
        let times = match all {
            Some(all) => pruning::candidate_times(self, &candidates, &plans, all)?,
            None => vec![CandidateTime::Unknown; candidates.len()],
        };
        let all = candidates.into_iter().zip(plans.into_iter().zip(times));
        all.map(|(candidate, (plan, time))| {
            let (forecast, lower_bound) = match time {
                CandidateTime::Simulated(forecast) => (Some(forecast), None),
                CandidateTime::AtLeast(seconds) => (None, Some(seconds)),
                CandidateTime::Unknown => (None, None),
            };
            let choice = self.ranked(Rc::unwrap_or_clone(plan), candidate.order, forecast)?;
            Ok(Choice { memory_overrun: candidate.overrun, lower_bound, ..choice })
        })
        .collect()
    }

    /// The plan of a layout, without a forecast and without the table of directions.
    fn plan(&self, method: &str, layout: &Layout) -> Result<Plan> {
        let models = &self.machine.models;
        let (imbalance, relative_times) = match layout.boxes() {
            None => self.balance(&layout.shares())?,
            Some(_) => (imbalance_of(models, layout)?, relative_times_of(models, layout)?),
        };
        let plan = Plan::candidate(method, self.machine.platform.names(), layout.clone(), imbalance);
        Ok(Plan { relative_times, ..plan })
    }

    /// The imbalance of shares, and their times relative to the ideal time if the models are ratios.
    fn balance(&self, owned: &[u64]) -> Result<(f64, Option<Vec<f64>>)> {
        let ideal = match self.ideal.get() {
            Some(known) => *known,
            None => {
                let seconds = shares::balanced_seconds(&self.machine.models, owned.iter().sum())?;
                *self.ideal.get_or_init(|| seconds)
            }
        };
        let longest = shares::makespan(&self.machine.models, owned);
        // The ideal is a lower bound, also where time falls with size; rounding must not go below it.
        let imbalance = (longest / ideal).max(1.0);
        let relative = |(model, &share): (&Model, &u64)| model.seconds(share as f64) / (longest / imbalance);
        let all = self.machine.models.iter().zip(owned);
        let relative = self.machine.only_ratios().then(|| all.map(relative).collect());
        Ok((imbalance, relative))
    }

    /// A layout with its plan and rank, given its forecast.
    pub(crate) fn choice(
        &self,
        method: &str,
        layout: &Layout,
        order: ScheduleOptions,
        simulated: Option<Forecast>,
    ) -> Result<Choice> {
        self.ranked(self.plan(method, layout)?, order, simulated)
    }

    /// A plan with its rank, given its forecast.
    fn ranked(&self, plan: Plan, order: ScheduleOptions, simulated: Option<Forecast>) -> Result<Choice> {
        let seconds = simulated.as_ref().map(|f| f.seconds);
        let rank = match (self.options.minimise, self.machine.platform.network.topology) {
            (Minimise::Time, _) => seconds,
            (Minimise::Sum, _) => plan.metrics.sum_half_perimeters,
            (Minimise::Largest, _) => plan.metrics.largest_half_perimeter,
            (Minimise::Volume, Topology::Star { centre }) => {
                Some(star_volume(plan.layout()?, centre.0)? as f64)
            }
            (Minimise::Volume, _) => plan.metrics.volume.map(|v| v as f64),
        };
        // Ratios give no seconds of computation: a forecast of communication alone is none of the run.
        let plan = Plan { forecast: simulated.filter(|_| !self.machine.only_ratios()), ..plan };
        Ok(Choice { rank, ..Choice::new(plan, order) })
    }

    /// True if every processor can hold its part of a layout and what travels.
    pub(crate) fn fits(&self, layout: &Layout, order: ScheduleOptions) -> bool {
        match self.options.memory {
            MemoryPolicy::Unchecked => true,
            MemoryPolicy::AsAsked(path) | MemoryPolicy::SmallerBlocks(path) => {
                check_caps(layout, order, &self.machine.platform, self.options.element, path).is_ok()
            }
        }
    }

    /// The forecast of a candidate.
    pub(crate) fn forecast(&self, choice: &Choice) -> Result<Forecast> {
        let layout = choice.plan.layout()?;
        let rates = layout.rates(&self.machine.models, self.machine.block);
        let (network, element) = (&self.machine.platform.network, self.options.element);
        forecast(layout, choice.order, CostModel { rates: &rates, network, element })
    }
}

/// Values that differ by less than this fraction are equal: only rounding tells them apart.
const EQUAL: f64 = 1e-9;

/// Seconds that no machine can tell from nothing.
const NOTHING: f64 = 1e-30;

/// True if `value` exceeds `least` by no more than rounding, or than the fraction `margin`.
fn within(value: f64, least: f64, margin: f64) -> bool {
    value <= least * (1.0 + margin.max(EQUAL)) + NOTHING
}

/// What is compared of alternatives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The value of the criterion, such as seconds.
    pub value: f64,
    /// Elements moved, which decide among equal values.
    pub volume: u64,
}

/// The index of the preferred alternative: of those whose value exceeds the least by no more than the fraction
/// `margin` (0 for rounding only), the first of the least volume. `None` among the costs is never preferred.
pub fn preferred(costs: &[Option<Cost>], margin: f64) -> Option<usize> {
    let least = costs.iter().flatten().map(|cost| cost.value).fold(f64::INFINITY, f64::min);
    let near = |(i, cost): (usize, &Option<Cost>)| {
        cost.filter(|cost| within(cost.value, least, margin)).map(|cost| (cost.volume, i))
    };
    costs.iter().enumerate().filter_map(near).min().map(|(_, i)| i)
}

/// Sorts candidates, the preferred one first: by rank, equal ones by volume, then in the order given. Those
/// without a rank come last. If none has one, the volume decides.
pub(crate) fn in_order_of_preference(mut choices: Vec<Choice>) -> Vec<Choice> {
    let least = choices.iter().filter_map(|c| c.rank).fold(f64::INFINITY, f64::min);
    let key = |c: &Choice| {
        let near = c.rank.map_or(least == f64::INFINITY, |r| within(r, least, 0.0));
        (!near, if near { 0.0 } else { c.rank.unwrap_or(f64::INFINITY) }, c.volume())
    };
    choices.sort_by(|a, b| {
        let ((x, s, v), (y, t, w)) = (key(a), key(b));
        x.cmp(&y).then(s.total_cmp(&t)).then(v.cmp(&w))
    });
    choices
}

/// What decided between two candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The criterion: the values differ.
    Criterion,
    /// The volume: the criterion's values are equal, or there are none.
    Volume,
    /// Their order: both are equal.
    Order,
}

impl DecidedBy {
    /// What put `best` before `other`.
    pub fn between(best: &Choice, other: &Choice) -> Self {
        let equal = match (best.rank, other.rank) {
            (Some(a), Some(b)) => within(a.max(b), a.min(b), 0.0),
            _ => true,
        };
        match (equal, best.volume() == other.volume()) {
            (false, _) => Self::Criterion,
            (true, false) => Self::Volume,
            (true, true) => Self::Order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_wins_then_the_volume_then_the_order() {
        let preferred = |costs: &[Option<(f64, u64)>], margin| {
            let cost = |c: &Option<(f64, u64)>| c.map(|(value, volume)| Cost { value, volume });
            preferred(&costs.iter().map(cost).collect::<Vec<_>>(), margin)
        };
        assert_eq!(preferred(&[Some((2.0, 1)), Some((1.0, 9))], 0.0), Some(1));
        assert_eq!(preferred(&[Some((1.0, 9)), Some((1.0 + 1e-12, 3)), Some((1.0, 3))], 0.0), Some(1));
        assert_eq!(preferred(&[None, Some((1e-300, 5)), Some((1e-301, 6))], 0.0), Some(1));
        assert_eq!(preferred(&[None, None], 0.0), None);
        // One percent of margin: the second is close enough, and moves less.
        assert_eq!(preferred(&[Some((1.0, 9)), Some((1.005, 3))], 0.01), Some(1));
        assert_eq!(preferred(&[Some((1.0, 9)), Some((1.005, 3))], 0.001), Some(0));
    }
}
