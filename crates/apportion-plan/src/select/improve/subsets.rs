//! Processors that are better left out: their messages would take longer than their work saves.
//!
//! Up to eight processors, every subset is considered, and bounds rule most of them out: the time of all work
//! at the sum of a subset's speeds, and what must cross the wires around each of its processors at its share.
//! For more processors the search adds clusters and processors, the fastest first, and then adds and removes
//! single ones and whole clusters while the forecast falls. Processors that can be exchanged count once.

use super::FEW_PROCESSORS;
use super::shares::HOPELESS;
use super::slivers::LEAST_GAIN;
use super::trials::{ROUNDING, Trials};
use crate::error::Result;
use crate::geometry::Rank;
use crate::model::Model;
use crate::plan::shapes::MethodOptions;
use crate::plan::{Forecast, Hierarchy, Member, shares};
use crate::select::budget::{FEW, laying_out_by_all};
use crate::select::candidates::{Candidate, candidates};
use crate::select::{Appraiser, Choice, PlanOptions};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Up to this number of processors, every subset is considered.
const MOST_EXHAUSTIVE: usize = 8;

/// Candidates of the best subset, and other subsets with their best candidate, whose shares may be changed.
const MOST: [usize; 2] = [2, 2];
/// The same for few processors, whose forecasts cost little.
const MOST_OF_FEW: [usize; 2] = [8, 8];

/// Processors that get no share because the others are faster without them.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Their ranks, ascending.
    pub ranks: Vec<Rank>,
    /// Seconds that the best plan for all processors takes longer. Negative where they would save less than 2 %.
    pub seconds: f64,
}

/// The best candidates of the best subset, and of subsets that other shares may make better. The caller sets
/// the seconds of [`LeftOut`].
pub(super) fn search(trials: &mut Trials<'_>) -> Result<Vec<Choice>> {
    let kinds = kinds(trials.appraiser);
    let p = trials.appraiser.machine.processors();
    let mut search = SubsetSearch { tried: BTreeSet::new(), found: Vec::new(), best: None, kinds, trials };
    search.tried.insert((0..p).collect());
    search.grow()?;
    if p <= MOST_EXHAUSTIVE {
        search.every()?;
    } else {
        search.exchange()?;
    }
    let limit = search.trials.best() * (1.0 + HOPELESS);
    let mut found = search.found;
    found.retain(|found| found.forecast.seconds < limit);
    found.sort_by(|a, b| a.forecast.seconds.total_cmp(&b.forecast.seconds));
    let [most_of_best, most_others] = if p <= FEW_PROCESSORS { MOST_OF_FEW } else { MOST };
    let mut subsets: Vec<Vec<usize>> = Vec::new();
    let mut choices = Vec::new();
    for SubsetCandidate { subset, candidate, forecast } in found {
        let known = subsets.iter().filter(|known| **known == subset).count();
        let most = if subsets.first().is_none_or(|best| *best == subset) { most_of_best } else { 1 };
        if known == most || subsets.len() == most_of_best + most_others {
            continue;
        }
        let ranks: Vec<Rank> = (0..p).filter(|rank| !subset.contains(rank)).map(Rank).collect();
        let left_out = Some(LeftOut { ranks, seconds: 0.0 });
        let Candidate { method, layout, order, overrun } = candidate;
        let choice = trials.appraiser.choice(&method, &layout, order, Some(forecast))?;
        choices.push(Choice { memory_overrun: overrun, left_out, ..choice });
        subsets.push(subset);
    }
    Ok(choices)
}

/// Processors that can be exchanged: of equal models, memory and cluster, with the same links.
fn kinds(appraiser: &Appraiser<'_>) -> Vec<Vec<usize>> {
    let (processors, network) = (&appraiser.machine.platform.processors, &appraiser.machine.platform.network);
    let alone = |i: usize| processors[i].cluster == processors[i].name;
    let alike = |i: usize, j: usize| {
        let (a, b) = (&processors[i], &processors[j]);
        a.memory == b.memory
            && (a.cluster == b.cluster || (alone(i) && alone(j)))
            && appraiser.machine.models[i].points() == appraiser.machine.models[j].points()
            && appraiser.machine.models[i].interpolation() == appraiser.machine.models[j].interpolation()
            && appraiser.machine.models[i].max_size() == appraiser.machine.models[j].max_size()
            && network.exchangeable(Rank(i), Rank(j))
    };
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    for i in 0..processors.len() {
        match kinds.iter_mut().find(|kind| alike(kind[0], i)) {
            Some(kind) => kind.push(i),
            None => kinds.push(vec![i]),
        }
    }
    kinds
}

struct SubsetSearch<'a, 't> {
    trials: &'t mut Trials<'a>,
    /// Processors that can be exchanged.
    kinds: Vec<Vec<usize>>,
    /// Subsets that need no trial any more; processors that can be exchanged by the first of them.
    tried: BTreeSet<Vec<usize>>,
    /// Candidates that are the best so far, or near it.
    found: Vec<SubsetCandidate>,
    /// The best subset so far, ascending.
    best: Option<Vec<usize>>,
}

/// A candidate of a subset, ascending.
struct SubsetCandidate {
    subset: Vec<usize>,
    candidate: Candidate,
    forecast: Forecast,
}

impl SubsetSearch<'_, '_> {
    fn processors(&self) -> usize {
        self.trials.appraiser.machine.processors()
    }

    /// Tries a subset. True if it is better than all before.
    fn try_out(&mut self, mut subset: Vec<usize>) -> Result<bool> {
        subset.sort_unstable();
        subset.dedup();
        let subset = self.canonical(&subset);
        if subset.is_empty() || !self.tried.insert(subset.clone()) || !self.trials.may_go_on() {
            return Ok(false);
        }
        let appraiser = self.trials.appraiser;
        let models: Vec<Model> = subset.iter().map(|&i| appraiser.machine.models[i].clone()).collect();
        let Ok(ideal) = shares::ideal_seconds(&models, self.trials.shape.elements()) else {
            return Ok(false);
        };
        let scale = self.trials.shape.k as f64 / appraiser.machine.block as f64;
        if ideal * scale >= self.trials.best() * (1.0 + LEAST_GAIN) {
            return Ok(false);
        }
        if !self.trials.spend(laying_out_by_all(subset.len()) * subset.len() as f64) {
            return Ok(false);
        }
        // A subset that the caps cannot hold is none.
        let Ok(found) = self.candidates(&subset) else { return Ok(false) };
        if let Some(Candidate { layout, .. }) = found.first() {
            let k = self.trials.shape.k as f64;
            let work = layout.shares();
            if work.len() > 1
                && subset.iter().zip(work).any(|(&i, s)| self.trials.is_cut_off(i, s as f64 * k))
            {
                return Ok(false);
            }
        }
        let mut better = false;
        for candidate in found {
            // Other shares may make several processors faster, but not one.
            let margin = if subset.len() > 1 { HOPELESS } else { LEAST_GAIN };
            let limit = self.trials.best() * (1.0 + margin);
            let layout = candidate.layout.among(&subset, self.processors())?;
            let Some(forecast) = self.trials.faster_than(limit, &layout, candidate.order)? else { continue };
            if forecast.seconds < self.trials.best() * (1.0 - ROUNDING) {
                self.trials.lower(forecast.seconds);
                self.best = Some(subset.clone());
                better = true;
            }
            let candidate = Candidate { layout: Rc::new(layout), ..candidate };
            self.found.push(SubsetCandidate { subset: subset.clone(), candidate, forecast });
        }
        Ok(better)
    }

    /// The candidates of a subset, ascending; each layout and order once.
    fn candidates(&self, subset: &[usize]) -> Result<Vec<Candidate>> {
        let appraiser = self.trials.appraiser;
        let centre =
            appraiser.options.method_options.centre.and_then(|c| subset.iter().position(|&i| i == c));
        let method_options =
            MethodOptions { centre, quick: subset.len() > FEW, ..appraiser.options.method_options.clone() };
        let options = PlanOptions { method_options, ..appraiser.options.clone() };
        let all = candidates(self.trials.shape, &appraiser.machine.select(subset), &options)?;
        let mut once: Vec<Candidate> = Vec::with_capacity(all.len());
        for candidate in all {
            if !once.iter().any(|known| (&known.layout, known.order) == (&candidate.layout, candidate.order))
            {
                once.push(candidate);
            }
        }
        // Nothing travels: all flows are the same.
        once.truncate(if subset.len() == 1 { 1 } else { once.len() });
        Ok(once)
    }

    /// The subset with the first of processors that can be exchanged.
    fn canonical(&self, subset: &[usize]) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for kind in &self.kinds {
            let count = kind.iter().filter(|i| subset.contains(i)).count();
            found.extend(&kind[..count]);
        }
        found.sort_unstable();
        found
    }

    /// The sum of the speeds of some processors at an equal share.
    fn speed(&self, ranks: &[usize]) -> f64 {
        let share = self.trials.shape.elements() as f64 / self.processors() as f64;
        ranks.iter().map(|&i| self.trials.appraiser.machine.models[i].speed(share)).sum()
    }

    /// The clusters of all levels, the fastest first.
    fn clusters(&self) -> Vec<Vec<usize>> {
        fn below(hierarchy: &Hierarchy, out: &mut Vec<Vec<usize>>) {
            for member in &hierarchy.members {
                if let Member::Cluster(_, inner) = member {
                    out.push(member.ranks());
                    below(inner, out);
                }
            }
        }
        let processors = &self.trials.appraiser.machine.platform.processors;
        let paths: Vec<String> = processors.iter().map(|p| p.cluster.clone()).collect();
        let mut clusters = Vec::new();
        below(&Hierarchy::of_paths(&paths), &mut clusters);
        clusters.sort_by(|a, b| self.speed(b).total_cmp(&self.speed(a)));
        clusters
    }

    /// All processors, the fastest first.
    fn by_speed(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.processors()).collect();
        order.sort_by(|&i, &j| self.speed(&[j]).total_cmp(&self.speed(&[i])).then(i.cmp(&j)));
        order
    }

    /// The fastest processors and clusters, alone and with the next ones.
    fn grow(&mut self) -> Result<()> {
        let order = self.by_speed();
        self.try_out(vec![order[0]])?;
        let clusters = self.clusters();
        let mut together = Vec::new();
        for cluster in &clusters {
            self.try_out(cluster.clone())?;
            together.extend(cluster);
            self.try_out(together.clone())?;
        }
        // 2, 3, 4, 6, 8, 12, 16, … of the fastest.
        let mut count = 2;
        while count < order.len() {
            self.try_out(order[..count].to_vec())?;
            count = if count.is_power_of_two() { count / 2 * 3 } else { (count + 1).next_power_of_two() };
        }
        Ok(())
    }

    /// Every subset, the fastest ones first: they need the least time for the work alone.
    fn every(&mut self) -> Result<()> {
        let p = self.processors();
        let mut subsets: Vec<Vec<usize>> = (1..(1usize << p) - 1)
            .map(|set| (0..p).filter(|i| set >> i & 1 == 1).collect::<Vec<usize>>())
            .filter(|subset| self.canonical(subset) == *subset)
            .collect();
        subsets.sort_by(|a, b| self.speed(b).total_cmp(&self.speed(a)));
        for subset in subsets {
            self.try_out(subset)?;
        }
        Ok(())
    }

    /// Adds or removes a cluster, then a processor of each kind, while that is faster.
    fn exchange(&mut self) -> Result<()> {
        let clusters = self.clusters();
        let kinds = self.kinds.clone();
        loop {
            let present = match &self.best {
                Some(subset) => subset.clone(),
                None => (0..self.processors()).collect(),
            };
            let without = |gone: &[usize]| -> Vec<usize> {
                present.iter().copied().filter(|i| !gone.contains(i)).collect()
            };
            let mut next: Vec<Vec<usize>> = Vec::new();
            for cluster in &clusters {
                next.push(without(cluster));
                next.push(present.iter().chain(cluster).copied().collect());
            }
            for kind in &kinds {
                next.extend(kind.iter().rfind(|i| present.contains(i)).map(|&i| without(&[i])));
                let outside = kind.iter().find(|i| !present.contains(i));
                next.extend(outside.map(|i| present.iter().chain([i]).copied().collect()));
            }
            let mut better = false;
            for subset in next {
                better = self.try_out(subset)?;
                if better || !self.trials.may_go_on() {
                    break;
                }
            }
            if !better {
                return Ok(());
            }
        }
    }
}
