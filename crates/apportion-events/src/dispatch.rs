//! Dispatching: which of the rules that could fire do, where they compete.

use super::state::State;
use super::{Conflict, Dispatching, Place, Workcell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The structure of a workcell that dispatching needs.
pub(super) struct Dispatcher {
    /// By place: whether several rules take from it.
    shared: Vec<bool>,
}

/// What a rule is ordered by; the least comes first.
type Key = (i128, u64, Reverse<usize>, usize);

impl Dispatcher {
    pub(crate) fn new(workcell: &Workcell) -> Self {
        Self { shared: workcell.takers().iter().map(|rules| rules.len() > 1).collect() }
    }

    /// The rules that fire, ascending, out of those whose conditions hold. At places with fewer units than
    /// rules that need them, the resource's dispatching decides (else the workcell's). Then, of rules that
    /// start the same job, release the same resource or finish the same product, one fires; the others
    /// follow in the next step, at the same time.
    pub(crate) fn choose(
        &self,
        state: &State<'_>,
        candidates: &[usize],
        conflicts: &mut BTreeMap<(Place, Vec<usize>), Conflict>,
    ) -> Vec<usize> {
        let workcell = state.workcell;
        let mut alive: BTreeSet<usize> = candidates.iter().copied().collect();
        let mut wanted: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &rule in candidates {
            for place in workcell.inputs(rule).filter(|&place| self.shared[place]) {
                wanted.entry(place).or_default().push(rule);
            }
        }
        for (number, rules) in wanted {
            let place = workcell.place(number);
            let mut rules: Vec<usize> = rules.into_iter().filter(|rule| alive.contains(rule)).collect();
            let units = usize::try_from(state.available(place)).unwrap_or(usize::MAX);
            if rules.len() <= units {
                continue;
            }
            let conflict = conflicts.entry((place, rules.clone())).or_insert_with(|| Conflict {
                place,
                rules: rules.clone(),
                times: 0,
                first: state.now,
            });
            conflict.times += 1;
            let by = match place {
                Place::Resource(resource) => workcell.resources[resource].dispatching,
                _ => None,
            };
            rules.sort_by_key(|&rule| key(state, rule, by.unwrap_or(workcell.dispatching)));
            for loser in &rules[units..] {
                alive.remove(loser);
            }
        }
        let mut rules: Vec<usize> = alive.into_iter().collect();
        rules.sort_by_key(|&rule| key(state, rule, workcell.dispatching));
        let [mut jobs, mut resources, mut products] = [(); 3].map(|()| BTreeSet::<usize>::new());
        rules.retain(|&rule| {
            let rule = &workcell.rules[rule];
            let apart = rule.start.iter().all(|x| !jobs.contains(x))
                && rule.release.iter().all(|x| !resources.contains(x))
                && rule.produce.iter().all(|x| !products.contains(x));
            if apart {
                jobs.extend(&rule.start);
                resources.extend(&rule.release);
                products.extend(&rule.produce);
            }
            apart
        });
        rules.sort_unstable();
        rules
    }
}

/// The order of a rule by a way of dispatching.
fn key(state: &State<'_>, rule: usize, by: Dispatching) -> Key {
    let workcell = state.workcell;
    let since = state.waiting_since(rule);
    let time = || -> i128 {
        let jobs = workcell.rules[rule].start.iter();
        jobs.map(|&job| i128::from(workcell.jobs[job].duration.mean())).sum()
    };
    match by {
        Dispatching::Fifo => (0, since, Reverse(0), rule),
        Dispatching::Priority => (-i128::from(workcell.rules[rule].priority), since, Reverse(0), rule),
        Dispatching::Shortest => (time(), since, Reverse(0), rule),
        Dispatching::Longest => (-time(), since, Reverse(0), rule),
        Dispatching::FirstBuffer => (0, 0, Reverse(0), rule),
        Dispatching::LastBuffer => (0, 0, Reverse(rule), rule),
    }
}
