//! Non-rectangular layouts by recursion: at every step a cut, or one processor around the others' block.
//!
//! Source: the recursion of NRRP (Beaumont, Eyraud-Dubois and Lambert, TPDS 30(1), 2019), widened: more cuts,
//! blocks of several proportions, two blocks and squares on the diagonal, optimal columns as the end of every
//! branch, look-ahead with a memory.

use super::columns::{best_columns, columns_cost};
use super::square_corner::diagonal;
use super::tiling::{Objective, Tiling, Total};
use super::{LayoutMethod, descending};
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
/// number of processors. Never more than [`Columns`](super::Columns) in real arithmetic.
///
/// Processors are sorted. Every step divides a run of them on its rectangle by the choice that is cheapest
/// when looking a few steps ahead: optimal columns (in either direction); a cut of the rectangle (the most
/// balanced, the fastest alone, a third); the fastest around a block with the others, around two blocks, or
/// around squares on the diagonal. The search is repeated with the processors in two groups, and followed by
/// exchanges of processors and changes of the blocks' proportions. About O(p log^2 p) for similar weights;
/// the work is bounded, so that no input takes longer than seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recursive {
    /// What is minimised.
    pub(crate) objective: Objective,
    /// The matrix to which half-perimeters are relative, if only a part of it is laid out.
    pub(crate) whole: Option<Shape>,
    /// True to look ahead as little as possible ([`MethodOptions::quick`](super::MethodOptions::quick)).
    pub(crate) quick: bool,
}

impl LayoutMethod for Recursive {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let frame = self.objective.frame(shape, self.whole);
        let by = if self.quick { search_quickly } else { search };
        let tiling = by(weights, &descending(weights), frame.high, frame.wide, frame.total);
        Ok(frame.layout(&tiling, weights))
    }
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
        if order.len() <= MOST_SLICED {
            let cuts = polish(best_cuts(weights, order, high, wide, total), weights, high, wide, total);
            consider((cuts.cost(weights, high, wide, total), cuts));
        }
    }
    best.1
}

/// The tiling found with the least look-ahead, in one order of the processors and without polish.
fn search_quickly(weights: &[f64], order: &[usize], high: f64, wide: f64, total: Total) -> Tiling {
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

/// Up to this number of processors every cut of both sides is tried.
const FEW: usize = 8;

/// Up to this number of processors all groups are tried for the first cut.
const FEWEST: usize = 6;

/// Up to this number of processors one more grouping is tried.
const MOST_REGROUPED: usize = 1000;

/// A run of the sorted processors on a rectangle of the given height; the width follows from their areas.
#[derive(Debug, Clone, Copy)]
struct Run {
    from: usize,
    to: usize,
    high: f64,
}

/// A way to divide a run.
#[derive(Debug, Clone, Copy)]
enum Choice {
    /// Optimal columns, or optimal rows.
    Columns { turned: bool },
    /// A cut into two runs, one below the other or side by side.
    Cut { rows: bool, at: usize },
    /// The first around a block of all others, of this height over width.
    Block { ratio: f64 },
    /// The first around two square blocks.
    TwoBlocks { at: usize },
    /// The first around squares on the diagonal.
    Squares,
}

/// Other orders to cut runs from: processors in two groups, each sorted. All groups for few processors;
/// otherwise the two that dealing in turn makes.
fn regrouped(weights: &[f64], order: &[usize]) -> Vec<Vec<usize>> {
    let p = order.len();
    let deal = |first: &dyn Fn(usize) -> bool| {
        let pick = |wanted| (0..p).filter(move |&i| first(i) == wanted).map(|i| order[i]);
        pick(true).chain(pick(false)).collect::<Vec<usize>>()
    };
    if p <= FEWEST {
        // The fastest is always in the first group.
        let groups = (1..1usize << p).step_by(2).map(|mask| deal(&|i| mask >> i & 1 == 1));
        return groups.filter(|group| group != order).collect();
    }
    if p > MOST_REGROUPED {
        return Vec::new();
    }
    let mut lead = 0.0;
    let first: Vec<bool> = order
        .iter()
        .map(|&i| {
            let here = lead <= 0.0;
            lead += if here { weights[i] } else { -weights[i] };
            here
        })
        .collect();
    vec![deal(&|i| first[i])]
}

/// Areas of the processors, fastest first, and their sums over runs.
struct Areas {
    total: Total,
    /// Areas from each place to the end: differences of runs stay exact for the smallest.
    sums: Vec<f64>,
    /// Square roots of the areas from each place to the end.
    roots: Vec<f64>,
}

impl Areas {
    /// Sums over the processors of `order`, whose areas make up `whole`.
    fn new(weights: &[f64], order: &[usize], whole: f64, total: Total) -> Self {
        let scale = whole / order.iter().rev().map(|&i| weights[i]).sum::<f64>();
        let mut sums = vec![0.0; order.len() + 1];
        let mut roots = sums.clone();
        for i in (0..order.len()).rev() {
            let area = weights[order[i]] * scale;
            sums[i] = sums[i + 1] + area;
            roots[i] = roots[i + 1] + area.sqrt();
        }
        Self { total, sums, roots }
    }

    /// Area of a run.
    fn area(&self, from: usize, to: usize) -> f64 {
        self.sums[from] - self.sums[to]
    }

    /// Lower bound of the cost of a run: that of squares.
    fn bound(&self, run: Run) -> f64 {
        2.0 * match self.total {
            Total::Sum => self.roots[run.from] - self.roots[run.to],
            Total::Largest => self.area(run.from, run.from + 1).sqrt(),
        }
    }

    /// The two parts of a cut.
    fn cut(&self, run: Run, rows: bool, at: usize) -> [Run; 2] {
        let Run { from, to, high } = run;
        let all = self.area(from, to);
        let part = |from, to| {
            let high = if rows { high * (self.area(from, to) / all) } else { high };
            Run { from, to, high }
        };
        [part(from, at), part(at, to)]
    }

    /// A run on a block of the given height over width.
    fn block(&self, from: usize, to: usize, ratio: f64) -> Run {
        Run { from, to, high: (self.area(from, to) * ratio).sqrt() }
    }

    /// The steps to consider.
    fn choices(&self, run: Run) -> Vec<Choice> {
        let Run { from, to, high } = run;
        let wide = self.area(from, to) / high;
        let count = to - from;
        let mut choices = Vec::new();
        let rows = high > wide;
        if count <= FEW {
            for at in from + 1..to {
                choices.extend([Choice::Cut { rows, at }, Choice::Cut { rows: !rows, at }]);
            }
        } else {
            let half = self.place(from, to, 0.5);
            let mut cuts = vec![half, half - 1, from + 1, self.place(from, to, 1.0 / 3.0)];
            cuts.retain(|&at| at > from && at < to);
            cuts.sort_unstable();
            cuts.dedup();
            choices.extend(cuts.into_iter().map(|at| Choice::Cut { rows, at }));
        }
        let others = self.area(from + 1, to);
        let n = (count - 1) as f64;
        let mut ratios = vec![1.0, n, 1.0 / n, 2.0, 0.5];
        ratios.truncate(if count == 2 { 1 } else { 5 });
        for ratio in ratios {
            let side = (others * ratio).sqrt();
            if side < high && others / side < wide {
                choices.push(Choice::Block { ratio });
            }
        }
        if count > 2 {
            let fits = |length: f64| length <= high.min(wide);
            if fits(self.roots[from + 1] - self.roots[to]) {
                choices.push(Choice::Squares);
            }
            let half = self.place(from + 1, to, 0.5);
            let mut cuts = vec![from + 2, half];
            cuts.dedup();
            for at in cuts.into_iter().filter(|&at| at < to) {
                if fits(self.area(from + 1, at).sqrt() + self.area(at, to).sqrt()) {
                    choices.push(Choice::TwoBlocks { at });
                }
            }
        }
        choices
    }

    /// The first place in (from, to) with at least a given fraction of the run's area before it.
    fn place(&self, from: usize, to: usize, part: f64) -> usize {
        let wanted = self.sums[from] - self.area(from, to) * part;
        let inside = &self.sums[from + 1..to];
        (from + 1 + inside.partition_point(|&rest| rest > wanted)).min(to - 1)
    }
}

/// Above this number of processors a tiling stays unchanged: exchanges are tried in pairs.
const MOST_POLISHED: usize = 64;

/// Maximum number of rounds over all pairs and blocks.
const MOST_ROUNDS: usize = 8;

/// Lowers the sum of half-perimeters (or the largest) on a `high` x `wide` rectangle until no exchange of two
/// processors and no change of one block's proportions reduces it, or for 8 rounds. O(p^3) per round, p
/// <= 64.
fn polish(mut tiling: Tiling, weights: &[f64], high: f64, wide: f64, total: Total) -> Tiling {
    // `seats[i]` is the weight in the place that the tiling calls processor i.
    let mut owners = Vec::new();
    tiling.each(weights, high, wide, &mut |owner, _, _| owners.push(owner));
    if owners.len() > MOST_POLISHED {
        return tiling;
    }
    let mut seats = weights.to_vec();
    let mut who: Vec<usize> = (0..weights.len()).collect();
    let mut cost = tiling.cost(&seats, high, wide, total);
    for _ in 0..MOST_ROUNDS {
        let before = cost;
        for (i, &a) in owners.iter().enumerate() {
            for &b in &owners[i + 1..] {
                if seats[a] == seats[b] {
                    continue;
                }
                seats.swap(a, b);
                let new = tiling.cost(&seats, high, wide, total);
                if new < cost {
                    cost = new;
                    who.swap(a, b);
                } else {
                    seats.swap(a, b);
                }
            }
        }
        for step in [1.2, 1.0 / 1.2, 1.03, 1.0 / 1.03] {
            for block in 0..tiling.ratios().len() {
                while cost.is_finite() {
                    *tiling.ratios()[block] *= step;
                    let new = tiling.cost(&seats, high, wide, total);
                    if new >= cost {
                        *tiling.ratios()[block] /= step;
                        break;
                    }
                    cost = new;
                }
            }
        }
        if cost >= before * (1.0 - 1e-9) {
            break;
        }
    }
    tiling.renamed(&who)
}

/// Up to this number of processors every cut is tried: below a million nodes.
const MOST_SLICED: usize = 7;

/// The smallest cost of recursive straight cuts of a `high` x `wide` rectangle with any processors on either
/// side of each, and the cuts. `order` has at most [`MOST_SLICED`] processors.
fn best_cuts(weights: &[f64], order: &[usize], high: f64, wide: f64, total: Total) -> Tiling {
    let search = Slicing { weights, order, total };
    let all = (1usize << order.len()) - 1;
    let found = search.best(all, high, wide, f64::INFINITY);
    found.map_or_else(|| Tiling::columns([order]), |(_, tiling)| tiling)
}

struct Slicing<'a> {
    weights: &'a [f64],
    order: &'a [usize],
    total: Total,
}

impl Slicing<'_> {
    fn weight(&self, set: usize) -> f64 {
        self.members(set).map(|i| self.weights[i]).sum()
    }

    fn members(&self, set: usize) -> impl Iterator<Item = usize> + '_ {
        self.order.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1).map(|(_, &i)| i)
    }

    /// No rectangles of these areas within `high` x `wide` cost less.
    fn bound(&self, set: usize, high: f64, wide: f64) -> f64 {
        let scale = high * wide / self.weight(set);
        let short = high.min(wide);
        let least = |area: f64| if area.sqrt() <= short { 2.0 * area.sqrt() } else { short + area / short };
        self.members(set).map(|i| least(self.weights[i] * scale)).fold(0.0, |sum, c| self.total.of(sum, c))
    }

    /// The best cuts that cost less than `limit`.
    fn best(&self, set: usize, high: f64, wide: f64, mut limit: f64) -> Option<(f64, Tiling)> {
        if set.count_ones() == 1 {
            let cost = high + wide;
            return (cost < limit).then(|| (cost, Tiling::Whole(self.order[set.trailing_zeros() as usize])));
        }
        let mut best = None;
        let first = set & set.wrapping_neg();
        let all = self.weight(set);
        // The subsets that contain the first processor, each once.
        let mut one = (set - 1) & set;
        while one > 0 {
            if one & first != 0 {
                let part = self.weight(one) / all;
                for rows in [true, false] {
                    let (a, b) = if rows { (high * part, wide) } else { (high, wide * part) };
                    let (c, d) = if rows { (high - a, wide) } else { (high, wide - b) };
                    let rest = set & !one;
                    let rest_bound = self.bound(rest, c, d);
                    if self.total.of(self.bound(one, a, b), rest_bound) >= limit {
                        continue;
                    }
                    let room = |cost: f64| if self.total == Total::Sum { limit - cost } else { limit };
                    let Some((x, left)) = self.best(one, a, b, room(rest_bound)) else { continue };
                    let Some((y, right)) = self.best(rest, c, d, room(x)) else { continue };
                    let cost = self.total.of(x, y);
                    if cost < limit {
                        limit = cost;
                        let parts = vec![left, right];
                        best = Some((cost, if rows { Tiling::Rows(parts) } else { Tiling::Cols(parts) }));
                    }
                }
            }
            one = (one - 1) & set;
        }
        best
    }
}

#[cfg(test)]
mod tests;
