//! Non-rectangular layouts by recursion: at every step a cut, or one processor around the others' block.
//!
//! Source: the recursion of NRRP (Beaumont, Eyraud-Dubois and Lambert, TPDS 30(1), 2019), widened: more cuts,
//! blocks of several proportions, two blocks and squares on the diagonal, optimal columns as the end of every
//! branch, look-ahead with a memory.

use super::columns::{best_columns, columns_cost};
use super::descending;
use super::objective::{Objective, in_whole_numbers};
use super::polish::polish;
use super::slicing::{MOST_PROCESSORS, best_cuts};
use super::square_corner::diagonal;
use super::steps::{Areas, Choice, FEW, Run, regrouped};
use super::tiling::{Tiling, Total};
use crate::error::Result;
use crate::plan::{Layout, Shape};
use std::collections::HashMap;

/// Number of items visited before the search ends every open branch with columns: a few seconds.
const MOST_WORK: usize = 20_000_000;

/// Numbers of processors, each with the number of steps to look ahead up to it; above them, one step.
const LOOK_AHEAD: [(usize, usize); 5] = [(FEW, FEW - 1), (16, 5), (64, 4), (200, 3), (1000, 2)];

/// Steps to look ahead in a quick search.
const QUICK: usize = 1;

/// A branch this close to the lower bound is not searched further.
const CLOSE: f64 = 1e-4;

/// Rectangles, and L-shaped or diagonal surroundings of blocks, such that k sum(r_i + c_i) is small, for any
/// number of processors. Never more than [`columns`](super::columns()) in real arithmetic.
///
/// Processors are sorted. Every step divides a run of them on its rectangle by the choice that is cheapest
/// when looking a few steps ahead: optimal columns (in either direction); a cut of the rectangle (the most
/// balanced, the fastest alone, a third); the fastest around a block with the others, around two blocks, or
/// around squares on the diagonal. The search is repeated with the processors in two groups, and followed by
/// exchanges of processors and changes of the blocks' proportions. About O(p log^2 p) for similar weights;
/// the work is bounded, so that no input takes longer than seconds.
///
/// # Errors
/// None; the signature is that of every method.
pub fn recursive(shape: Shape, weights: &[f64]) -> Result<Layout> {
    Ok(recursive_for(shape, weights, Objective::Volume, shape, false))
}

/// The same for an objective, on a part of the matrix `whole`; `quick` is [`MethodOptions::quick`].
///
/// [`MethodOptions::quick`]: super::MethodOptions::quick
pub(super) fn recursive_for(
    shape: Shape,
    weights: &[f64],
    objective: Objective,
    whole: Shape,
    quick: bool,
) -> Layout {
    let (high, wide, total) = objective.sides(shape, whole);
    let by = if quick { quickly } else { search };
    let tiling = by(weights, &descending(weights), high, wide, total);
    in_whole_numbers(&tiling, (shape, weights), (high, wide))
}

/// The tiling found for some processors, fastest first, on a `high` x `wide` rectangle.
pub(super) fn search(weights: &[f64], order: &[usize], high: f64, wide: f64, total: Total) -> Tiling {
    let found = |order: &[usize], aim| {
        let (_, tiling) =
            Search::new(weights, order, high, wide, aim).build(Run { from: 0, to: order.len(), high });
        let tiling = polish(tiling, weights, high, wide, aim);
        let tiling = if aim == total { tiling } else { polish(tiling, weights, high, wide, total) };
        (tiling.cost(weights, high, wide, total), tiling)
    };
    let mut best = found(order, Total::Sum);
    let mut consider = |other: (f64, Tiling)| {
        if other.0 < best.0 {
            best = other;
        }
    };
    for order in regrouped(weights, order) {
        consider(found(&order, Total::Sum));
    }
    if total == Total::Largest {
        // Looking ahead for the largest alone leaves ties that the sum decides well: both are tried.
        consider(found(order, total));
        if order.len() <= MOST_PROCESSORS {
            let cuts = polish(best_cuts(weights, order, high, wide, total), weights, high, wide, total);
            consider((cuts.cost(weights, high, wide, total), cuts));
        }
    }
    best.1
}

/// The tiling found with the least look-ahead, in one order of the processors and without polish.
fn quickly(weights: &[f64], order: &[usize], high: f64, wide: f64, total: Total) -> Tiling {
    let mut search = Search { most_steps: QUICK, ..Search::new(weights, order, high, wide, Total::Sum) };
    let (_, tiling) = search.build(Run { from: 0, to: order.len(), high });
    if total == Total::Sum {
        return tiling;
    }
    // By the sum, and by the largest alone: as in the thorough search.
    let mut search = Search { most_steps: QUICK, ..Search::new(weights, order, high, wide, total) };
    let (_, other) = search.build(Run { from: 0, to: order.len(), high });
    let cost = |tiling: &Tiling| tiling.cost(weights, high, wide, total);
    if cost(&other) < cost(&tiling) { other } else { tiling }
}

/// The search for one problem.
struct Search<'a> {
    weights: &'a [f64],
    order: &'a [usize],
    areas: Areas,
    known: HashMap<(usize, usize, u64, usize), (f64, Choice)>,
    work: usize,
    /// The most steps to look ahead.
    most_steps: usize,
}

impl<'a> Search<'a> {
    fn new(weights: &'a [f64], order: &'a [usize], high: f64, wide: f64, total: Total) -> Self {
        Self {
            weights,
            order,
            areas: Areas::new(weights, order, high * wide, total),
            known: HashMap::new(),
            work: 0,
            most_steps: usize::MAX,
        }
    }

    /// Steps to look ahead.
    fn depth(&self, run: Run) -> usize {
        let count = run.to - run.from;
        if self.work > MOST_WORK {
            return 0;
        }
        LOOK_AHEAD.iter().find(|(most, _)| count <= *most).map_or(1, |&(_, steps)| steps).min(self.most_steps)
    }

    /// The tiling and its cost. Small runs follow the look-ahead, which sees to their end. In larger ones the
    /// best step other than columns is followed to its end, and kept if it is cheaper than columns.
    fn build(&mut self, run: Run) -> (f64, Tiling) {
        let count = run.to - run.from;
        let depth = self.depth(run);
        if count <= FEW || depth == 0 {
            let (_, choice) = self.best(run, depth);
            return self.follow(run, choice);
        }
        let (columns, choice) = self.best(run, 0);
        let mut ahead = (f64::INFINITY, choice);
        if columns > self.areas.bound(run) * (1.0 + CLOSE) {
            for step in self.areas.choices(run) {
                let cost = self.price(run, step, depth - 1, ahead.0);
                if cost < ahead.0 {
                    ahead = (cost, step);
                }
            }
            // The parts look further ahead than this step did: the known costs are valid for small runs only.
            self.known = HashMap::new();
            let (cost, tiling) = self.follow(run, ahead.1);
            if cost < columns {
                return (cost, tiling);
            }
        }
        self.follow(run, choice)
    }

    /// A step, with its parts built.
    fn follow(&mut self, run: Run, choice: Choice) -> (f64, Tiling) {
        let Run { from, to, high } = run;
        let wide = self.areas.area(from, to) / high;
        let (own, total, order) = (high + wide, self.areas.total, self.order);
        if to - from == 1 {
            return (own, Tiling::Whole(order[from]));
        }
        match choice {
            Choice::Columns { turned } => {
                let order = &order[from..to];
                let (high, wide) = if turned { (wide, high) } else { (high, wide) };
                let tiling = best_columns(self.weights, order, high, wide);
                let cost = columns_cost(self.weights, order, high, wide, total);
                (cost, if turned { tiling.turned() } else { tiling })
            }
            Choice::Cut { rows, at } => {
                let [(a, first), (b, second)] = self.areas.cut(run, rows, at).map(|part| self.build(part));
                let parts = vec![first, second];
                (total.of(a, b), if rows { Tiling::Rows(parts) } else { Tiling::Cols(parts) })
            }
            Choice::Block { ratio } => {
                let (cost, inner) = self.build(self.areas.block(from + 1, to, ratio));
                let tiling = Tiling::Corners { owner: order[from], blocks: vec![(ratio, inner)] };
                (total.of(own, cost), tiling)
            }
            Choice::TwoBlocks { at } => {
                let runs = [self.areas.block(from + 1, at, 1.0), self.areas.block(at, to, 1.0)];
                let [(a, first), (b, second)] = runs.map(|block| self.build(block));
                let tiling =
                    Tiling::Corners { owner: order[from], blocks: vec![(1.0, first), (1.0, second)] };
                (total.of(own, total.of(a, b)), tiling)
            }
            Choice::Squares => {
                let squares = self.areas.bound(Run { from: from + 1, ..run });
                (total.of(own, squares), diagonal(&order[from..to]))
            }
        }
    }

    /// The smallest cost found by looking `depth` steps ahead, and the first step.
    fn best(&mut self, run: Run, depth: usize) -> (f64, Choice) {
        let Run { from, to, high } = run;
        let wide = self.areas.area(from, to) / high;
        let count = to - from;
        if count == 1 {
            return (high + wide, Choice::Columns { turned: false });
        }
        let depth = depth.min(count - 1);
        let key = (from, to, high.to_bits(), depth);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let order = &self.order[from..to];
        self.work += 2 * count;
        let upright = columns_cost(self.weights, order, high, wide, self.areas.total);
        let lying = columns_cost(self.weights, order, wide, high, self.areas.total);
        let mut best = (upright.min(lying), Choice::Columns { turned: lying < upright });
        let goal = self.areas.bound(run) * (1.0 + CLOSE);
        if depth > 0 {
            for choice in self.areas.choices(run) {
                if best.0 <= goal {
                    break;
                }
                let cost = self.price(run, choice, depth - 1, best.0);
                if cost < best.0 {
                    best = (cost, choice);
                }
            }
        }
        self.known.insert(key, best);
        best
    }

    /// The cost of a choice, or a value above `limit` once it is clear that it costs more.
    fn price(&mut self, run: Run, choice: Choice, depth: usize, limit: f64) -> f64 {
        let Run { from, to, high } = run;
        let total = self.areas.total;
        let own = high + self.areas.area(from, to) / high;
        // Without allocation: this is the search's innermost step.
        let (cut, one, two);
        let (own, parts): (f64, &[Run]) = match choice {
            Choice::Columns { .. } => return self.best(run, 0).0,
            Choice::Squares => {
                return self.areas.total.of(own, self.areas.bound(Run { from: from + 1, ..run }));
            }
            Choice::Cut { rows, at } => {
                cut = self.areas.cut(run, rows, at);
                (0.0, &cut)
            }
            Choice::Block { ratio } => {
                one = [self.areas.block(from + 1, to, ratio)];
                (own, &one)
            }
            Choice::TwoBlocks { at } => {
                two = [self.areas.block(from + 1, at, 1.0), self.areas.block(at, to, 1.0)];
                (own, &two)
            }
        };
        // The parts' bounds are replaced by their costs one after the other.
        let mut costs = [0.0; 2];
        let costs = &mut costs[..parts.len()];
        costs.iter_mut().zip(parts).for_each(|(cost, &part)| *cost = self.areas.bound(part));
        let sum = |costs: &[f64]| costs.iter().fold(own, |sum, &cost| total.of(sum, cost));
        for (i, &part) in parts.iter().enumerate() {
            if sum(costs) >= limit {
                break;
            }
            costs[i] = self.best(part, depth).0;
        }
        sum(costs)
    }
}

#[cfg(test)]
mod tests;
