//! Variants of a workcell that are simulated beside it.

use super::{Arrivals, Dispatching, Duration, Workcell};

/// A variant: the same rules with other numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Another way to decide conflicts, everywhere.
    pub(crate) dispatching: Option<Dispatching>,
    /// Other durations, by job.
    pub(crate) durations: Vec<(usize, Duration)>,
    /// Other numbers of units, by resource.
    pub(crate) capacities: Vec<(usize, u64)>,
    /// Other numbers of parts, by kind; the times of arrival stay.
    pub(crate) counts: Vec<(usize, u64)>,
}

impl Scenario {
    /// The workcell with the scenario's numbers.
    pub(crate) fn of(&self, workcell: &Workcell) -> Workcell {
        let mut variant = Workcell { name: self.name.clone(), scenarios: Vec::new(), ..workcell.clone() };
        if let Some(dispatching) = self.dispatching {
            variant.dispatching = dispatching;
            variant.resources.iter_mut().for_each(|resource| resource.dispatching = None);
        }
        for (job, duration) in &self.durations {
            variant.jobs[*job].duration = duration.clone();
        }
        for &(resource, capacity) in &self.capacities {
            variant.resources[resource].capacity = capacity;
        }
        for &(part, number) in &self.counts {
            match &mut variant.parts[part].arrivals {
                Arrivals::AtStart(count) => *count = number,
                Arrivals::Every { count, .. } => *count = Some(number),
                Arrivals::At(times) => times.truncate(usize::try_from(number).unwrap_or(usize::MAX)),
            }
        }
        variant
    }
}

impl Workcell {
    /// The workcell as written, then each scenario.
    pub fn variants(&self) -> Vec<Workcell> {
        let mut variants = vec![Workcell { scenarios: Vec::new(), ..self.clone() }];
        variants.extend(self.scenarios.iter().map(|scenario| scenario.of(self)));
        variants
    }
}
