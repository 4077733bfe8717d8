//! Units of different cost in contiguous parts: the layers of a model, the blocks of a mesh, the iterations of a loop.
//!
//! Source: Pinar, Tabak and Aykanat, "One-dimensional partitioning for heterogeneous systems: theory and practice",
//! Journal of Parallel and Distributed Computing 68 (2008), doi:10.1016/j.jpdc.2008.07.005. Their probe fills the
//! processors one after the other up to a time, by binary search in prefix sums, and a search for the least feasible
//! time surrounds it. Added: speed functions in place of single numbers, caps by a second list, and the best order of
//! the processors by the same probe over sets of them.

use super::Limits;
use crate::error::{Error, Result};
use crate::model::Model;
use std::collections::HashMap;

/// Largest number of states of a search over sets of processors.
const MOST_STATES: usize = 1 << 14;
/// Largest number of steps of the search for the least sum of times.
const MOST_STEPS: f64 = 3e9;
/// Halvings of a bracket of times: more than the bits of a double.
const HALVINGS: usize = 200;

/// Units in a row, each with a cost and perhaps with a size in memory.
///
/// A cost is the size of a unit as speeds and speed functions count it: a unit of cost 2 takes as long as two units of
/// cost 1 together, and a part the time of the sum of its costs.
///
/// # Example
/// ```
/// use apportion_plan::{model::Model, plan::shares::Chain};
/// // The embedding and the head of a model cost as much as four of its layers.
/// let chain = Chain::new(&[4.0, 1.0, 1.0, 1.0, 1.0, 4.0])?;
/// let models = [Model::constant("fast", 2.0)?, Model::constant("slow", 1.0)?];
/// assert_eq!(chain.least_makespan(&models, &[], &[])?.shares, [5, 1]);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// Cost of the first i units.
    cost: Vec<f64>,
    /// Bytes of the first i units, if they count.
    bytes: Option<Vec<f64>>,
    second: Option<Second>,
}

/// A second kind of work on each unit, such as answers beside prompts: a part takes the weighted sum of its times for
/// both kinds.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondKind {
    /// The fraction of the first kind in that sum.
    pub weight: f64,
    /// Cost of each unit.
    pub costs: Vec<f64>,
    /// Speed functions of the processors for it, by rank.
    pub models: Vec<Model>,
}

#[derive(Debug, Clone, PartialEq)]
struct Second {
    weight: f64,
    /// Cost of the first i units.
    cost: Vec<f64>,
    models: Vec<Model>,
}

/// Contiguous parts of a [`Chain`].
#[derive(Debug, Clone, PartialEq)]
pub struct ChainParts {
    /// Number of units of each processor, by rank.
    pub shares: Vec<u64>,
    /// The processors in the order of their parts: the first has the first units.
    pub order: Vec<usize>,
    /// Cost of each processor's part, by rank.
    pub costs: Vec<f64>,
}

/// Room for the parts of one processor.
#[derive(Clone, Copy)]
struct Room {
    units: usize,
    bytes: f64,
}

impl Chain {
    /// The most units of which each has a cost or a place of its own.
    pub const MOST_UNITS: u64 = 1 << 28;

    /// A chain of units with these costs.
    ///
    /// # Errors
    /// No unit; a cost that is not a number of at least 0; only costs of 0.
    pub fn new(costs: &[f64]) -> Result<Self> {
        let cost = prefix_sums(costs, "`costs`")?;
        if cost[costs.len()] == 0.0 {
            let what = if costs.is_empty() { "there are none" } else { "all costs are 0" };
            return Err(Error::input("`costs`", what, "give the cost of each unit"));
        }
        Ok(Self { cost, bytes: None, second: None })
    }

    /// With a second kind of work on each unit; the models that divide the chain are those of the first.
    ///
    /// # Errors
    /// Not one cost for each unit, or one that is not at least 0; a weight that is not from 0 to 1.
    pub fn with_second(self, kind: &SecondKind) -> Result<Self> {
        let SecondKind { weight, costs, models } = kind;
        if costs.len() != self.units() {
            let what = format!("there are {} of the second kind for {} units", costs.len(), self.units());
            return Err(Error::input("`costs`", what, "give one number of each kind for each unit"));
        }
        if !(0.0..=1.0).contains(weight) {
            let what = format!("{weight} is not a fraction from 0 to 1");
            return Err(Error::input("`mix`", what, "0.3 means three tenths of the first kind"));
        }
        let cost = prefix_sums(costs, "`costs`")?;
        let models = models.iter().map(Model::without_cap).collect();
        Ok(Self { second: Some(Second { weight: *weight, cost, models }), ..self })
    }

    /// With the bytes of each unit, which the memory of a processor caps.
    ///
    /// # Errors
    /// Not one number for each unit, or one that is not at least 0.
    pub fn with_memory(self, bytes: &[f64]) -> Result<Self> {
        if bytes.len() != self.units() {
            let what = format!("there are {} for {} units", bytes.len(), self.units());
            return Err(Error::input("`memory` of units", what, "give one number for each unit"));
        }
        Ok(Self { bytes: Some(prefix_sums(bytes, "`memory` of units")?), ..self })
    }

    /// Number of units.
    pub(crate) fn units(&self) -> usize {
        self.cost.len() - 1
    }

    /// Cost of the units from `from` to below `to`.
    pub fn cost(&self, from: usize, to: usize) -> f64 {
        self.cost[to] - self.cost[from]
    }

    /// Cost of all units.
    pub fn total(&self) -> f64 {
        self.cost[self.units()]
    }

    /// Contiguous parts of these numbers of units, by rank; the processors have them in this order.
    pub fn parts(&self, order: &[usize], shares: &[u64]) -> ChainParts {
        let mut costs = vec![0.0; shares.len()];
        let mut from = 0;
        for &processor in order {
            let to = from + shares[processor] as usize;
            costs[processor] = self.cost(from, to);
            from = to;
        }
        ChainParts { shares: shares.to_vec(), order: order.to_vec(), costs }
    }

    /// The seconds of each processor's part, by rank; infinite where the processor has no room for it.
    ///
    /// # Errors
    /// As [`Chain::least_makespan`], but for caps.
    pub fn seconds(
        &self,
        models: &[Model],
        limits: &[Limits],
        memory: &[Option<u64>],
        parts: &ChainParts,
    ) -> Result<Vec<f64>> {
        let task = Task::new(self, models, limits, memory)?;
        let mut seconds = vec![0.0; models.len()];
        let mut from = 0;
        for &processor in &parts.order {
            let to = from + parts.shares[processor] as usize;
            seconds[processor] = match to <= task.capacity(processor, from) {
                true => task.seconds(processor, from, to),
                false => f64::INFINITY,
            };
            from = to;
        }
        Ok(seconds)
    }

    /// The seconds of each processor, by rank, if it had all units and no cap.
    ///
    /// # Errors
    /// As [`Chain::least_makespan`], but for caps.
    pub(crate) fn seconds_alone(&self, models: &[Model]) -> Result<Vec<f64>> {
        let task = Task::new(self, models, &[], &[])?;
        Ok((0..models.len()).map(|processor| task.seconds(processor, 0, self.units())).collect())
    }

    /// The time in which all processors would end together if units were divisible and no processor had a cap. With one
    /// kind of work, no parts are faster, in any order; with two, no parts that mix both kinds alike.
    ///
    /// # Errors
    /// No processor has a speed.
    pub fn ideal_seconds(&self, models: &[Model]) -> Result<f64> {
        if self.second.is_some() {
            let speed: f64 = self.seconds_alone(models)?.into_iter().map(f64::recip).sum();
            return Ok(speed.recip());
        }
        let total = self.total();
        let models: Vec<Model> = models.iter().map(Model::without_cap).collect();
        let done =
            |seconds: f64| models.iter().map(|m| m.largest_within(seconds, total)).sum::<f64>() >= total;
        let working = models.iter().filter(|model| !model.is_stopped());
        let Some(high) = working.map(|model| model.longest(total)).reduce(f64::min) else {
            return Err(Error::infeasible("no processor has a speed", "give one a speed above 0"));
        };
        Ok(least(high, |seconds| done(seconds).then_some(())).map_or(high, |(_, seconds)| seconds))
    }

    /// The parts that minimise the longest time, the processors in the order of their ranks. A time function that
    /// falls with size counts by its running maximum. `memory` has the bytes of each processor (`None`: no cap), and
    /// is empty where the units have no sizes; `limits` may cap numbers of units. O(p log n) for each halving of the
    /// time.
    ///
    /// # Errors
    /// No models, limits other than maxima (exit code 2); caps that leave units over (exit code 1).
    pub fn least_makespan(
        &self,
        models: &[Model],
        limits: &[Limits],
        memory: &[Option<u64>],
    ) -> Result<ChainParts> {
        let task = Task::new(self, models, limits, memory)?;
        let order: Vec<usize> = (0..models.len()).collect();
        let (parts, _) = task.least(&order).ok_or_else(|| task.too_small())?;
        Ok(parts)
    }

    /// The same with the processors in the best order: exact for up to 14 processors, and for more as long as few of
    /// them differ; else the best of the orders by speed, improved by exchanges.
    ///
    /// # Errors
    /// As [`Chain::least_makespan`].
    pub fn least_makespan_any_order(
        &self,
        models: &[Model],
        limits: &[Limits],
        memory: &[Option<u64>],
    ) -> Result<ChainParts> {
        let task = Task::new(self, models, limits, memory)?;
        let classes = Classes::of(&task);
        match classes.states() {
            Some(states) => task.least_over_sets(&classes, states),
            None => task.least_by_exchanges(),
        }
        .ok_or_else(|| task.too_small())
    }

    /// The parts that minimise the sum of the times: what one user of a pipeline waits for. Where one processor can
    /// hold all, no parts are better than the fastest one's. O(p n^2), and for any order O(2^p p n^2).
    ///
    /// # Errors
    /// As [`Chain::least_makespan`]; more units and processors than that takes seconds for (exit code 2).
    pub fn least_latency(
        &self,
        models: &[Model],
        limits: &[Limits],
        memory: &[Option<u64>],
        any_order: bool,
    ) -> Result<ChainParts> {
        let task = Task::new(self, models, limits, memory)?;
        let classes = Classes::of(&task);
        let squares = (self.units() * self.units()) as f64;
        let work = |states: usize| squares * states as f64 * models.len() as f64;
        let in_order = |order: &[usize]| task.least_sum_in_order(order);
        if work(1) > MOST_STEPS {
            let what = format!("{} units on {} processors are too many", self.units(), models.len());
            return Err(Error::input(
                "`objective = latency`",
                what,
                "give fewer units, each of several layers",
            ));
        }
        let order: Vec<usize> = (0..models.len()).collect();
        let found = match classes.states().filter(|states| any_order && work(*states) <= MOST_STEPS) {
            Some(states) => task.least_sum_over_sets(&classes, states),
            None if any_order => {
                let orders = [order, task.fastest_first()];
                let found = orders.iter().filter_map(|order| in_order(order));
                found.min_by(|a, b| task.sum(a).total_cmp(&task.sum(b)))
            }
            None => in_order(&order),
        };
        found.ok_or_else(|| task.too_small())
    }
}

/// The least time of at most `high` with an answer, to the last bits, and its answer. What has an answer in a time has
/// one in any longer time.
fn least<T>(high: f64, mut answer: impl FnMut(f64) -> Option<T>) -> Option<(T, f64)> {
    let mut high = high * (1.0 + 1e-9);
    let mut found = answer(high)?;
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        // Large steps at first: the answer may be many orders below.
        let middle = if high > 4.0 * low { (low.max(high * 1e-6) * high).sqrt() } else { 0.5 * (low + high) };
        if middle <= low || middle >= high {
            break;
        }
        match answer(middle) {
            Some(better) => (found, high) = (better, middle),
            None => low = middle,
        }
    }
    Some((found, high))
}

/// The sums of the first i numbers.
fn prefix_sums(numbers: &[f64], place: &str) -> Result<Vec<f64>> {
    let mut sums = Vec::with_capacity(numbers.len() + 1);
    let mut sum = 0.0;
    sums.push(sum);
    for (i, &number) in numbers.iter().enumerate() {
        if !(number >= 0.0 && number.is_finite()) {
            let what = format!("unit {i} has {number}");
            return Err(Error::input(place, what, "give a number of at least 0 for each unit"));
        }
        sum += number;
        sums.push(sum);
    }
    if !sum.is_finite() {
        return Err(Error::input(place, "their sum is too large for a double", "give smaller numbers"));
    }
    Ok(sums)
}

/// A chain, and the processors that shall have it.
struct Task<'a> {
    chain: &'a Chain,
    models: Vec<Model>,
    rooms: Vec<Room>,
}

impl<'a> Task<'a> {
    fn new(chain: &'a Chain, models: &[Model], limits: &[Limits], memory: &[Option<u64>]) -> Result<Self> {
        if models.is_empty() {
            return Err(Error::input("models", "there are none", "give one model per processor"));
        }
        for (what, count) in [("limits", limits.len()), ("memory", memory.len())] {
            if count != 0 && count != models.len() {
                let words = format!("there are {count} for {} processors", models.len());
                return Err(Error::input(what, words, "give one per processor"));
            }
        }
        if let Some(second) = chain.second.as_ref().filter(|second| second.models.len() != models.len()) {
            let what = format!(
                "there are {} of the second kind for {} processors",
                second.models.len(),
                models.len()
            );
            return Err(Error::input("models", what, "give one of each kind per processor"));
        }
        if limits.iter().any(|limit| limit.least > 0 || limit.multiple_of != 1) {
            let what = "`min` and `multiple_of` cannot be used with units of different cost";
            return Err(Error::input("limits", what, "remove them; `max` may stay"));
        }
        let room = |i: usize| {
            // A cap of a model is a number of units, and stands for memory where the units have no sizes.
            let by_model = models[i].max_size().filter(|_| chain.bytes.is_none());
            let most = limits.get(i).and_then(|limit| limit.most).unwrap_or(u64::MAX);
            let units = by_model.map_or(u64::MAX, |cap| cap as u64).min(most);
            let bytes = memory.get(i).copied().flatten().filter(|_| chain.bytes.is_some());
            Room {
                units: usize::try_from(units).unwrap_or(usize::MAX),
                bytes: bytes.map_or(f64::INFINITY, |bytes| bytes as f64),
            }
        };
        let rooms = (0..models.len()).map(room).collect();
        Ok(Self { chain, models: models.iter().map(Model::without_cap).collect(), rooms })
    }

    /// The end of the longest part from `from` on that a processor has room for.
    fn capacity(&self, processor: usize, from: usize) -> usize {
        let Room { units, bytes } = self.rooms[processor];
        let end = from.saturating_add(units).min(self.chain.units());
        match &self.chain.bytes {
            Some(sums) => end.min(last_within(sums, from, sums[from] + bytes)),
            None => end,
        }
    }

    /// The end of the longest part from `from` on that a processor has room for and does within `seconds`.
    fn furthest(&self, processor: usize, from: usize, seconds: f64) -> usize {
        if self.chain.second.is_some() {
            // The longest times of both kinds grow with the part.
            let (mut end, mut above) = (from, self.capacity(processor, from) + 1);
            while above - end > 1 {
                let middle = end + (above - end) / 2;
                match self.longest(processor, from, middle) <= seconds {
                    true => end = middle,
                    false => above = middle,
                }
            }
            return end;
        }
        let cost = self.models[processor].units_within(seconds, self.chain.total());
        let end = last_within(&self.chain.cost, from, self.chain.cost[from] + cost);
        end.min(self.capacity(processor, from))
    }

    /// The longest time of a part from `from` on that ends at `to` or before.
    fn longest(&self, processor: usize, from: usize, to: usize) -> f64 {
        self.time(processor, from, to, Model::longest)
    }

    fn seconds(&self, processor: usize, from: usize, to: usize) -> f64 {
        self.time(processor, from, to, Model::seconds)
    }

    /// A time of a part, of all kinds of work.
    fn time(&self, processor: usize, from: usize, to: usize, of: impl Fn(&Model, f64) -> f64) -> f64 {
        let first = of(&self.models[processor], self.chain.cost(from, to));
        match &self.chain.second {
            None => first,
            Some(Second { weight, cost, models }) => {
                weight * first + (1.0 - weight) * of(&models[processor], cost[to] - cost[from])
            }
        }
    }

    /// The ends of the parts in an order if each part is the longest that is done within `seconds`; `None` if units
    /// are left over. The prefix that is reached so is the longest of all divisions within that time, since a later
    /// start never ends sooner.
    fn probe(&self, order: &[usize], seconds: f64) -> Option<Vec<usize>> {
        let mut from = 0;
        let ends: Vec<usize> = (order.iter())
            .map(|&processor| {
                from = self.furthest(processor, from, seconds);
                from
            })
            .collect();
        (from == self.chain.units()).then_some(ends)
    }

    /// The parts with the shortest longest time in an order, and that time.
    fn least(&self, order: &[usize]) -> Option<(ChainParts, f64)> {
        let (ends, seconds) = self.least_time(|seconds| self.probe(order, seconds))?;
        Some((self.parts(order, &ends), seconds))
    }

    /// The least time with an answer, and its answer.
    fn least_time<T>(&self, answer: impl FnMut(f64) -> Option<T>) -> Option<(T, f64)> {
        let longest = |processor| self.longest(processor, 0, self.chain.units());
        least((0..self.models.len()).map(longest).fold(0.0, f64::max), answer)
    }

    fn parts(&self, order: &[usize], ends: &[usize]) -> ChainParts {
        let mut shares = vec![0; order.len()];
        let mut from = 0;
        for (&processor, &end) in order.iter().zip(ends) {
            shares[processor] = (end - from) as u64;
            from = end;
        }
        self.chain.parts(order, &shares)
    }

    fn sum(&self, parts: &ChainParts) -> f64 {
        let mut from = 0;
        let time = |&processor: &usize| {
            let begin = from;
            from += parts.shares[processor] as usize;
            self.seconds(processor, begin, from)
        };
        parts.order.iter().map(time).sum()
    }

    fn fastest_first(&self) -> Vec<usize> {
        // By the time of a part of the whole.
        let part = |model: &Model, all: f64| model.seconds(all / self.models.len() as f64);
        let time = |i: usize| self.time(i, 0, self.chain.units(), part);
        let seconds: Vec<f64> = (0..self.models.len()).map(time).collect();
        let mut order: Vec<usize> = (0..self.models.len()).collect();
        order.sort_by(|&a, &b| seconds[a].total_cmp(&seconds[b]));
        order
    }

    /// The least longest time over all orders. For a time, each set of processors reaches a longest prefix: that of
    /// the set without its last processor, and then that one's longest part.
    fn least_over_sets(&self, classes: &Classes, states: usize) -> Option<ChainParts> {
        let reached = |seconds: f64| {
            let mut furthest = vec![0; states];
            let mut last = vec![0; states];
            for set in 1..states {
                for class in classes.in_set(set) {
                    let from = furthest[set - classes.weights[class]];
                    let end = self.furthest(classes.members[class][0], from, seconds);
                    if end > furthest[set] || furthest[set] == 0 {
                        (furthest[set], last[set]) = (end, class);
                    }
                }
            }
            (furthest[states - 1] == self.chain.units()).then_some(last)
        };
        let (last, seconds) = self.least_time(reached)?;
        let order = classes.order(&last, states - 1);
        let ends = self.probe(&order, seconds)?;
        Some(self.parts(&order, &ends))
    }

    /// The best of a few orders, improved by exchanging two processors as long as that helps.
    fn least_by_exchanges(&self) -> Option<ChainParts> {
        let given: Vec<usize> = (0..self.models.len()).collect();
        let fastest = self.fastest_first();
        let slowest = fastest.iter().rev().copied().collect();
        let orders = [given, fastest, slowest].into_iter();
        let (mut order, (mut best, mut seconds)) = orders
            .filter_map(|order| self.least(&order).map(|found| (order, found)))
            .min_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b))?;
        let mut tries = 4 * MOST_STATES / self.models.len();
        let mut again = true;
        while again {
            again = false;
            for distance in 1..order.len() {
                for i in 0..order.len() - distance {
                    if tries == 0 {
                        return Some(best);
                    }
                    tries -= 1;
                    order.swap(i, i + distance);
                    // An order without an answer just below the best time is no better.
                    let better = self.probe(&order, seconds * (1.0 - 1e-9)).and_then(|_| self.least(&order));
                    match better {
                        Some(found) => {
                            (best, seconds) = found;
                            again = true;
                        }
                        None => order.swap(i, i + distance),
                    }
                }
            }
        }
        Some(best)
    }

    /// The least sum of times in an order. `sums[j]`: of the first processors with the first j units.
    fn least_sum_in_order(&self, order: &[usize]) -> Option<ChainParts> {
        let n = self.chain.units();
        let mut sums = vec![f64::INFINITY; n + 1];
        sums[0] = 0.0;
        let mut begins: Vec<Vec<usize>> = Vec::with_capacity(order.len());
        for &processor in order {
            let mut next = sums.clone();
            let mut begin: Vec<usize> = (0..=n).collect();
            self.extend_sums(processor, &sums, |to, from, sum| {
                if sum < next[to] {
                    (next[to], begin[to]) = (sum, from);
                }
            });
            begins.push(begin);
            sums = next;
        }
        if sums[n].is_infinite() {
            return None;
        }
        let mut ends = vec![n; order.len()];
        for i in (1..order.len()).rev() {
            ends[i - 1] = begins[i][ends[i]];
        }
        Some(self.parts(order, &ends))
    }

    /// Tells every sum of times that one more processor makes of those before it, but for those without a unit of it.
    fn extend_sums(&self, processor: usize, sums: &[f64], mut tell: impl FnMut(usize, usize, f64)) {
        for (from, &before) in sums.iter().enumerate().filter(|(_, before)| before.is_finite()) {
            for to in from + 1..=self.capacity(processor, from) {
                tell(to, from, before + self.seconds(processor, from, to));
            }
        }
    }

    /// The least sum of times over all orders.
    fn least_sum_over_sets(&self, classes: &Classes, states: usize) -> Option<ChainParts> {
        let n = self.chain.units();
        let mut sums = vec![vec![f64::INFINITY; n + 1]; states];
        let mut last = vec![vec![(0, 0); n + 1]; states];
        sums[0][0] = 0.0;
        for set in 1..states {
            let mut here = vec![f64::INFINITY; n + 1];
            let mut by = vec![(0, 0); n + 1];
            for class in classes.in_set(set) {
                let before = &sums[set - classes.weights[class]];
                for (to, &sum) in before.iter().enumerate().filter(|(_, sum)| sum.is_finite()) {
                    if sum < here[to] {
                        (here[to], by[to]) = (sum, (class, to));
                    }
                }
                self.extend_sums(classes.members[class][0], before, |to, from, sum| {
                    if sum < here[to] {
                        (here[to], by[to]) = (sum, (class, from));
                    }
                });
            }
            (sums[set], last[set]) = (here, by);
        }
        if sums[states - 1][n].is_infinite() {
            return None;
        }
        let (mut order, mut ends) = (Vec::new(), Vec::new());
        let (mut set, mut to) = (states - 1, n);
        let mut left = classes.members.clone();
        while set > 0 {
            let (class, from) = last[set][to];
            order.push(left[class].pop().expect("the set has a member of the class"));
            ends.push(to);
            (set, to) = (set - classes.weights[class], from);
        }
        order.reverse();
        ends.reverse();
        Some(self.parts(&order, &ends))
    }

    /// The error where the caps leave units over.
    fn too_small(&self) -> Error {
        let held: f64 = self.rooms.iter().map(|room| room.bytes).sum();
        let what = match &self.chain.bytes {
            Some(sums) if held < sums[self.chain.units()] => format!(
                "the units need {:.0} bytes and the processors' memory has {held:.0}",
                sums[self.chain.units()]
            ),
            _ => "contiguous parts within the processors' caps leave units over".into(),
        };
        Error::infeasible(
            what,
            "add processors or memory, raise `max`, or let them change places (`any_order`)",
        )
    }
}

/// The last index from `from` on whose sum is at most `most`.
fn last_within(sums: &[f64], from: usize, most: f64) -> usize {
    from + sums[from + 1..].partition_point(|sum| *sum <= most)
}

/// Processors that do not differ are one class: a set is then a number of members of each, written as a number whose
/// digits have the classes' weights.
struct Classes {
    /// The ranks of each class.
    members: Vec<Vec<usize>>,
    /// Product of (members + 1) of the classes before.
    weights: Vec<usize>,
}

impl Classes {
    fn of(task: &Task<'_>) -> Self {
        let key = |i: usize| {
            let (model, room) = (&task.models[i], task.rooms[i]);
            let bits = |model: &Model| -> (String, Vec<[u64; 2]>) {
                let points = model.points().iter().map(|p| [p.size.to_bits(), p.seconds.to_bits()]);
                (format!("{:?} {}", model.interpolation(), model.is_stopped()), points.collect())
            };
            let second = task.chain.second.as_ref().map(|second| bits(&second.models[i]));
            (bits(model), second, room.units, room.bytes.to_bits())
        };
        let mut known = HashMap::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        for i in 0..task.models.len() {
            let class = *known.entry(key(i)).or_insert(members.len());
            match members.get_mut(class) {
                Some(class) => class.push(i),
                None => members.push(vec![i]),
            }
        }
        let mut weight = 1_usize;
        let weights = members
            .iter()
            .map(|members| {
                let mine = weight;
                weight = weight.saturating_mul(members.len() + 1);
                mine
            })
            .collect();
        Self { members, weights }
    }

    /// Number of sets, if it is small enough to try them all.
    fn states(&self) -> Option<usize> {
        let last = self.weights.len() - 1;
        let states = self.weights[last].saturating_mul(self.members[last].len() + 1);
        (states <= MOST_STATES).then_some(states)
    }

    /// The classes with a member in a set.
    fn in_set(&self, set: usize) -> impl Iterator<Item = usize> {
        (0..self.members.len())
            .filter(move |&class| !(set / self.weights[class]).is_multiple_of(self.members[class].len() + 1))
    }

    /// The ranks in the order that the last classes of sets describe.
    fn order(&self, last: &[usize], all: usize) -> Vec<usize> {
        let mut left = self.members.clone();
        let (mut set, mut order) = (all, Vec::new());
        while set > 0 {
            let class = last[set];
            order.push(left[class].pop().expect("the set has a member of the class"));
            set -= self.weights[class];
        }
        order.reverse();
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;
    use proptest::prelude::*;

    fn constants(speeds: &[f64]) -> Vec<Model> {
        speeds.iter().map(|&speed| Model::constant("p", speed).unwrap()).collect()
    }

    #[test]
    fn layers_by_hand() {
        // Twelve of cost: 2:1 would be 8 and 4; 4 + 1 + 1 + 1 + 1 = 8 and 4.
        let chain = Chain::new(&[4.0, 1.0, 1.0, 1.0, 1.0, 4.0]).unwrap();
        let parts = chain.least_makespan(&constants(&[2.0, 1.0]), &[], &[]).unwrap();
        assert_eq!((parts.shares, parts.order), (vec![5, 1], vec![0, 1]));
        assert_eq!(parts.costs, [8.0, 4.0]);
        // The slow one first must take a 4 alone, or nothing: 4 / 1 beside 8 / 2.
        let parts = chain.least_makespan(&constants(&[1.0, 2.0]), &[], &[]).unwrap();
        assert_eq!(parts.shares, [1, 5]);
        // A heavy unit in the middle of the row: only the fast one should have it.
        let chain = Chain::new(&[1.0, 1.0, 9.0]).unwrap();
        let models = constants(&[3.0, 1.0]);
        assert_eq!(chain.least_makespan(&models, &[], &[]).unwrap().shares, [3, 0]);
        let parts = chain.least_makespan_any_order(&models, &[], &[]).unwrap();
        assert_eq!((parts.shares, parts.order), (vec![1, 2], vec![1, 0]));
    }

    #[test]
    fn memory_caps_parts_and_latency_takes_the_fastest_that_holds_all() {
        let chain = Chain::new(&[1.0; 8])
            .unwrap()
            .with_memory(&[10.0, 10.0, 10.0, 10.0, 30.0, 10.0, 10.0, 10.0])
            .unwrap();
        let models = constants(&[4.0, 1.0]);
        let shares = |memory: [u64; 2]| {
            let memory = memory.map(Some);
            let found = chain.least_latency(&models, &[], &memory, false)?;
            Ok::<_, Error>((found.shares, chain.least_makespan(&models, &[], &memory)?.shares))
        };
        assert_eq!(shares([100, 100]).unwrap(), (vec![8, 0], vec![7, 1]));
        assert_eq!(shares([75, 100]).unwrap(), (vec![5, 3], vec![5, 3]));
        assert_eq!(shares([40, 100]).unwrap(), (vec![4, 4], vec![4, 4]));
        let error = shares([40, 50]).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("need 100 bytes and the processors' memory has 90"), "{error}");
    }

    #[test]
    fn what_cannot_be_divided_is_refused() {
        let code = |costs: &[f64]| Chain::new(costs).unwrap_err().exit_code();
        assert_eq!([code(&[]), code(&[0.0, 0.0]), code(&[1.0, -1.0]), code(&[f64::NAN])], [2; 4]);
        assert_eq!(code(&[f64::MAX, f64::MAX]), 2);
        let chain = Chain::new(&[1.0, 0.0, 2.0]).unwrap();
        assert_eq!(chain.clone().with_memory(&[1.0]).unwrap_err().exit_code(), 2);
        let models = constants(&[1.0]);
        assert_eq!(chain.least_makespan(&[], &[], &[]).unwrap_err().exit_code(), 2);
        let least = Limits { least: 1, ..Limits::default() };
        assert_eq!(chain.least_makespan(&models, &[least], &[]).unwrap_err().exit_code(), 2);
        let most = Limits { most: Some(2), ..Limits::default() };
        assert_eq!(chain.least_makespan(&models, &[most], &[]).unwrap_err().exit_code(), 1);
        assert_eq!(chain.least_makespan(&models, &[], &[]).unwrap().shares, [3]);
    }

    /// All ways to cut n units among processors in an order.
    fn best_by_trying(task: &Task<'_>, order: &[usize], measure: fn(&[f64]) -> f64) -> f64 {
        fn go(
            task: &Task<'_>,
            order: &[usize],
            from: usize,
            times: &mut Vec<f64>,
            measure: fn(&[f64]) -> f64,
        ) -> f64 {
            let Some((&processor, rest)) = order.split_first() else {
                return if from == task.chain.units() { measure(times) } else { f64::INFINITY };
            };
            let mut best = f64::INFINITY;
            for to in from..=task.capacity(processor, from) {
                times.push(task.seconds(processor, from, to));
                best = best.min(go(task, rest, to, times, measure));
                times.pop();
            }
            best
        }
        go(task, order, 0, &mut Vec::new(), measure)
    }

    fn orders(p: usize) -> Vec<Vec<usize>> {
        if p == 0 {
            return vec![Vec::new()];
        }
        let longer = |order: Vec<usize>| {
            (0..p).map(move |at| {
                let mut order = order.clone();
                order.insert(at, p - 1);
                order
            })
        };
        orders(p - 1).into_iter().flat_map(longer).collect()
    }

    fn model() -> impl Strategy<Value = Model> {
        let falling = (1u32..6, 1u32..6).prop_map(|(speed, less)| {
            let (speed, slow) = (f64::from(speed), f64::from(speed) / (1.0 + f64::from(less)));
            Model::piecewise("p", vec![Point::new(2.0, 2.0 / speed), Point::new(6.0, 6.0 / slow)], None)
                .unwrap()
        });
        prop_oneof![(1u32..6).prop_map(|s| Model::constant("p", f64::from(s)).unwrap()), falling]
    }

    fn longest(times: &[f64]) -> f64 {
        times.iter().copied().fold(0.0, f64::max)
    }

    fn sum(times: &[f64]) -> f64 {
        times.iter().sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Makespan and latency, in the given and in the best order, beside all cuts and all orders.
        #[test]
        fn agrees_with_trying_everything(
            raw in prop::collection::vec((0u32..6, 0u32..4), 1..8),
            processors in prop::collection::vec((model(), prop::option::of(0u64..12), prop::option::of(0u64..6)), 1..4),
        ) {
            prop_assume!(raw.iter().any(|(cost, _)| *cost > 0));
            let (costs, bytes): (Vec<f64>, Vec<f64>) = raw.iter().map(|&(c, b)| (f64::from(c), f64::from(b))).unzip();
            let chain = Chain::new(&costs).unwrap().with_memory(&bytes).unwrap();
            let models: Vec<Model> = processors.iter().map(|(model, ..)| model.clone()).collect();
            let memory: Vec<Option<u64>> = processors.iter().map(|(_, memory, _)| *memory).collect();
            let limits: Vec<Limits> =
                processors.iter().map(|(.., most)| Limits { most: *most, ..Limits::default() }).collect();
            let task = Task::new(&chain, &models, &limits, &memory).unwrap();
            let given: Vec<usize> = (0..models.len()).collect();
            let over_orders = |measure: fn(&[f64]) -> f64| {
                orders(models.len()).iter().map(|order| best_by_trying(&task, order, measure)).fold(f64::INFINITY, f64::min)
            };
            let times = |parts: &ChainParts| -> Vec<f64> {
                models.iter().zip(&parts.costs).map(|(model, &cost)| model.seconds(cost)).collect()
            };
            let cases = [
                (chain.least_makespan(&models, &limits, &memory), longest as fn(&[f64]) -> f64, best_by_trying(&task, &given, longest)),
                (chain.least_makespan_any_order(&models, &limits, &memory), longest, over_orders(longest)),
                (task.least_by_exchanges().ok_or_else(|| task.too_small()), longest, f64::NAN),
                (chain.least_latency(&models, &limits, &memory, false), sum, best_by_trying(&task, &given, sum)),
                (chain.least_latency(&models, &limits, &memory, true), sum, over_orders(sum)),
            ];
            for (found, measure, best) in cases {
                match found {
                    Ok(parts) => {
                        prop_assert_eq!(parts.shares.iter().sum::<u64>(), raw.len() as u64);
                        let mut order = parts.order.clone();
                        order.sort_unstable();
                        prop_assert_eq!(&order, &given);
                        let mut from = 0;
                        for &i in &parts.order {
                            let to = from + parts.shares[i] as usize;
                            prop_assert!(to <= task.capacity(i, from));
                            prop_assert!((chain.cost(from, to) - parts.costs[i]).abs() < 1e-12);
                            from = to;
                        }
                        let ours = measure(&times(&parts));
                        prop_assert!(best.is_nan() || ours <= best * (1.0 + 1e-9) + 1e-12, "{ours} beside {best}");
                    }
                    Err(error) => {
                        prop_assert_eq!(error.exit_code(), 1);
                        prop_assert!(best.is_nan() || best.is_infinite());
                    }
                }
            }
        }
    }

    #[test]
    fn a_million_units_and_a_thousand_processors() {
        let costs: Vec<f64> =
            (0..1_000_000_u32).map(|i| 0.1 + f64::from(i.wrapping_mul(2_654_435_761) % 1000)).collect();
        let chain = Chain::new(&costs).unwrap();
        let models = constants(&(0..1000).map(|i| 1.0 + f64::from(i % 7)).collect::<Vec<_>>());
        let parts = chain.least_makespan(&models, &[], &[]).unwrap();
        assert_eq!(parts.shares.iter().sum::<u64>(), 1_000_000);
        let longest = models.iter().zip(&parts.costs).map(|(m, &c)| m.seconds(c)).fold(0.0, f64::max);
        let ideal = chain.total() / models.iter().map(|m| m.speed(1.0)).sum::<f64>();
        assert!((chain.ideal_seconds(&models).unwrap() / ideal - 1.0).abs() < 1e-9);
        assert!(longest >= ideal && longest < 1.01 * ideal, "{longest} beside {ideal}");
        let order = chain.least_makespan_any_order(&models, &[], &[]).unwrap();
        assert_eq!(order.shares.iter().sum::<u64>(), 1_000_000);
    }
}
