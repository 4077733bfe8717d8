//! The inputs that all candidates share, and what they make of a layout: a plan, a forecast, a rank.

use super::candidates::Candidate;
use super::contest::{self, Outcome};
use super::{Choice, Minimise, PlanOptions, boxes, forecast};
use crate::error::Result;
use crate::model::{Machine, Model};
use crate::plan::{Forecast, Layout, Plan, shares, star_volume};
use crate::platform::Topology;
use crate::schedule::ScheduleOptions;
use crate::simulate::CostModel;
use std::cell::OnceCell;
use std::rc::Rc;

/// Inputs that all candidates share.
pub(crate) struct Field<'a> {
    pub machine: &'a Machine,
    pub wishes: &'a PlanOptions,
    /// The time in which all would finish together: the same for every layout, and not free for many
    /// processors.
    ideal: OnceCell<f64>,
}

impl<'a> Field<'a> {
    pub fn new(machine: &'a Machine, wishes: &'a PlanOptions) -> Self {
        Self { machine, wishes, ideal: OnceCell::new() }
    }

    /// The candidates' plans, forecasts and ranks. A layout is appraised once for all of its orders. Without
    /// simulation nothing distinguishes these, so each layout has its first one only.
    pub fn choices(&self, candidates: Vec<Candidate>, simulated: bool) -> Result<Vec<Choice>> {
        self.choices_of(candidates, simulated.then_some(contest::ALL))
    }

    /// The same, if there is simulation at all, with this [limit](contest::outcomes) of complete simulation.
    pub(super) fn choices_of(&self, mut candidates: Vec<Candidate>, all: Option<f64>) -> Result<Vec<Choice>> {
        if all.is_none() {
            candidates.dedup_by(|next, kept| Rc::ptr_eq(&next.1, &kept.1));
        }
        let mut plans: Vec<Rc<Plan>> = Vec::with_capacity(candidates.len());
        for (i, (method, layout, ..)) in candidates.iter().enumerate() {
            let same = i > 0 && Rc::ptr_eq(&candidates[i - 1].1, layout);
            plans.push(if same { Rc::clone(&plans[i - 1]) } else { Rc::new(self.plan(method, layout)?) });
        }
        let outcomes = match all {
            Some(all) => contest::outcomes(self, &candidates, &plans, all)?,
            None => vec![Outcome::Unknown; candidates.len()],
        };
        let all = candidates.into_iter().zip(plans.into_iter().zip(outcomes));
        all.map(|((_, _, order, narrowed), (plan, outcome))| {
            let (forecast, at_least) = match outcome {
                Outcome::Simulated(forecast) => (Some(forecast), None),
                Outcome::AtLeast(seconds) => (None, Some(seconds)),
                Outcome::Unknown => (None, None),
            };
            let choice = self.ranked(Rc::unwrap_or_clone(plan), order, forecast)?;
            Ok(Choice { narrowed, at_least, ..choice })
        })
        .collect()
    }

    /// The plan of a layout, without a forecast and without the table of directions.
    fn plan(&self, method: &str, layout: &Layout) -> Result<Plan> {
        let models = &self.machine.models;
        let (imbalance, relative_times) = match layout.boxes() {
            None => self.balance(&layout.shares())?,
            Some(_) => (boxes::imbalance_of(models, layout)?, boxes::relative_times_of(models, layout)?),
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
    pub fn choice(
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
        let rank = match (self.wishes.minimise, self.machine.platform.network.topology) {
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
        Ok(Choice { plan, order, rank, at_least: None, narrowed: None, left_out: None, resized: None })
    }

    /// The forecast of a candidate.
    pub fn forecast(&self, choice: &Choice) -> Result<Forecast> {
        let layout = choice.plan.layout()?;
        self.simulate(layout, choice.order, &self.machine.rates(&layout.sizes()))
    }

    fn simulate(&self, layout: &Layout, order: ScheduleOptions, rates: &[f64]) -> Result<Forecast> {
        let network = &self.machine.platform.network;
        forecast(layout, order, CostModel { rates, network, element: self.wishes.element })
    }
}
