//! Simulated annealing with incremental cost, from the heuristic's result.
//!
//! Kirkpatrick, Gelatt and Vecchi 1983; the moves are those that an arrangement allows. The order of the
//! columns is finished by Held and Karp's dynamic programme.

use super::columns::{Columns, Rule};
use super::labels::Labels;
use super::moves::Moves;
use super::{FEW_OF_OWNERS, Watch, exhaustive, heuristic};
use crate::random::Random;

/// Initial temperature that forgets the start, in mean sizes of a change.
const HOT: f64 = 0.5;
/// Initial temperature that improves a good start.
const WARM: f64 = 0.02;

/// Beyond this number of processors, the affordable changes do not reach the heuristic's result from another
/// start.
const MOST_HOT: u64 = 1_000;

/// Number of changes between two looks at the watch.
const OFTEN: u64 = 1_000;
/// Up to this number of processors, annealing also restarts from other arrangements.
const MOST_RESTARTED: u64 = 200;
/// Number of restarts.
const RESTARTS: usize = 3;

/// A state that supports small changes and their reversal.
pub(super) trait Changing {
    /// Makes one random change and returns the new cost.
    fn change(&mut self, random: &mut Random) -> f64;
    /// Reverts the last change.
    fn undo(&mut self);
    /// Remembers the present state as the best so far.
    fn keep(&mut self);
}

/// Anneals: accepts a more expensive state with a probability that falls with the temperature. Over `steps`
/// the temperature falls geometrically, from `heat` times the mean size of a change to a thousandth of that.
/// The best state is kept.
fn anneal(
    state: &mut impl Changing,
    cost: f64,
    heat: f64,
    steps: u64,
    random: &mut Random,
    watch: Watch<'_>,
) {
    let sample = 64;
    let mut mean = 0.0;
    for _ in 0..sample {
        mean += (state.change(random) - cost).abs() / f64::from(sample);
        state.undo();
    }
    if mean <= 0.0 {
        mean = cost.abs() * 1e-3 + f64::MIN_POSITIVE;
    }
    let (hot, cold) = (mean * heat, mean * heat * 1e-3);
    let mut now = cost;
    let mut best = cost;
    for step in 0..steps {
        if step.is_multiple_of(OFTEN) && !watch(OFTEN) {
            return;
        }
        let temperature = hot * (cold / hot).powf(step as f64 / steps as f64);
        let next = state.change(random);
        if next <= now || random.unit() < ((now - next) / temperature).exp() {
            now = next;
            if now < best * (1.0 - 1e-12) {
                best = now;
                state.keep();
            }
        } else {
            state.undo();
        }
    }
}

/// A column-based arrangement that costs at most as much as the heuristic's and the given one. The same seed
/// gives the same result.
///
/// 2,000 changes per processor, between 10,000 and 4 million (fewer if each processor sends to all others,
/// where a change costs more); each evaluates only the columns that it touches. They start warm from the
/// heuristic's result and, up to 1,000 processors, the same number starts hot from the given arrangement. Up
/// to 200 processors, three more start hot from the best found so far.
pub(super) fn columns<'a>(given: &Columns<'a>, seed: u64, watch: Watch<'_>) -> (Columns<'a>, u64) {
    let (start, mut evaluations) = heuristic::heuristic(given, watch);
    let blocks: u64 = given.columns.iter().map(|c| c.blocks.len() as u64).sum();
    let mut steps = (2_000 * blocks).clamp(10_000, 4_000_000);
    if given.rule == Rule::OneToAll {
        // A change touches all pairs of its column, not two.
        steps = steps * 4 / (given.columns.len() as u64).max(4);
        if blocks > MOST_HOT {
            steps /= 4;
        }
    }
    let mut random = Random::new(seed);
    let mut best = if start.cost().total < given.cost().total { start.clone() } else { given.clone() };
    let mut runs = vec![(Some(start), WARM)];
    if blocks <= MOST_HOT {
        runs.push((Some(given.clone()), HOT));
    }
    if blocks <= MOST_RESTARTED {
        runs.extend((0..RESTARTS).map(|_| (None, HOT)));
    }
    for (from, heat) in runs {
        let mut state = Moves::of(from.unwrap_or_else(|| best.clone()));
        if !state.can_move() || !watch(0) {
            continue;
        }
        let cost = state.cost();
        anneal(&mut state, cost, heat, steps, &mut random, watch);
        evaluations += steps;
        let mut found = state.best();
        evaluations += heuristic::reorder(&mut found);
        if found.cost().total < best.cost().total {
            best = found;
        }
    }
    (best, evaluations)
}

/// The same for any layout, by exchanges of owners of equal shares: 500 per processor, between 2,000 and
/// 100,000, or fewer if each is expensive; all exchanges if there are few.
pub(super) fn labels<'a>(given: &Labels<'a>, seed: u64, watch: Watch<'_>) -> (Labels<'a>, u64) {
    if given.classes.is_empty() {
        return (given.clone(), 1);
    }
    if let Ok(all) = exhaustive::labels(given, given.affordable(FEW_OF_OWNERS), watch) {
        return all;
    }
    let steps = given.affordable((500 * given.owner.len() as u64).clamp(2_000, 100_000));
    let mut state = Exchanges { labels: given.clone(), last: (0, 0), best: given.owner.clone() };
    anneal(&mut state, given.cost().total, HOT, steps, &mut Random::new(seed), watch);
    let mut found = given.clone();
    found.owner = state.best;
    (found, steps)
}

/// Exchanges of two owners of one class.
struct Exchanges<'a> {
    labels: Labels<'a>,
    last: (usize, usize),
    best: Vec<usize>,
}

impl Changing for Exchanges<'_> {
    fn change(&mut self, random: &mut Random) -> f64 {
        let class = &self.labels.classes[random.below(self.labels.classes.len())];
        let i = random.below(class.len());
        let j = (i + 1 + random.below(class.len() - 1)) % class.len();
        self.last = (class[i], class[j]);
        self.labels.owner.swap(self.last.0, self.last.1);
        self.labels.cost().total
    }

    fn undo(&mut self) {
        self.labels.owner.swap(self.last.0, self.last.1);
    }

    fn keep(&mut self) {
        self.best.clone_from(&self.labels.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrange::columns::tests::three_clusters;
    use crate::plan::arrange::tests::column_plan;
    use crate::plan::arrange::{SearchMethod, SearchOptions, arrange, every_objective};

    /// Two hundred seeded instances of six to nine processors, the objectives in turn, against the optimum.
    #[test]
    fn near_the_optimum() {
        let mut excess = [0.0, 0.0];
        for seed in 0..200u64 {
            let p = 6 + seed as usize % 4;
            let mut random = Random::new(seed);
            let weights: Vec<f64> = (0..p).map(|_| 9f64.powf(random.unit())).collect();
            let platform = three_clusters(p);
            let plan = column_plan(&platform, &weights, 900, 1100);
            let objective = every_objective()[seed as usize % 6];
            let cost = |search| {
                arrange(&plan, &platform, objective, SearchOptions::new(search, seed))
                    .unwrap()
                    .cost_after
                    .total
            };
            let best = cost(SearchMethod::Exhaustive);
            for (sum, search) in excess.iter_mut().zip([SearchMethod::Heuristic, SearchMethod::Local]) {
                let found = cost(search);
                assert!(found >= best * (1.0 - 1e-12), "seed {seed}: {found} is under the optimum {best}");
                if found > best {
                    *sum += (found / best - 1.0) / 200.0;
                }
            }
        }
        assert!(excess[0] <= 0.05, "heuristic: {} over the optimum", excess[0]);
        assert!(excess[1] <= 0.01, "local: {} over the optimum", excess[1]);
    }
}
