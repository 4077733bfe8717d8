//! The event clock: logic step, dispatching, (7.4) to (7.6), until nothing more happens.

use super::deadlock::{nothing_can_fire, partial, stuck};
use super::dispatch::Dispatcher;
use super::state::{LATEST, State};
use super::{Conflict, End, EventMatrices, EventRun, LogicStep, Nanos, Place, Workcell};
use apportion::error::{Error, Result};
use apportion::kernels::BitMatrix;
use apportion::run::Monitor;
use std::collections::BTreeMap;

/// Limits and repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventOptions {
    /// The end of the simulated time; `None` until nothing more happens.
    pub until: Option<Nanos>,
    /// The number of firings after which a simulation ends.
    pub firings: u64,
    /// Number of replications of each variant, with durations of their own.
    pub replications: u64,
    /// Seed of random durations.
    pub seed: u64,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self { until: None, firings: 100_000, replications: 1, seed: 1 }
    }
}

/// Firings of all simulations together that are kept: about a gigabyte of events.
const MOST_FIRINGS: u64 = 5_000_000;
/// Places and rules of all simulations together.
const MOST_CELLS: u64 = 50_000_000;

/// Simulates a workcell and its scenarios, all at once: every step is one product for all of them. Returns
/// one run for each variant and replication, variant by variant.
///
/// Each scenario has its own clock. A step finds the rules that can fire, by (7.3); dispatching withdraws its
/// permission from those that lose a conflict; the others fire. Several steps may happen at the same time.
/// The same input and seed give the same runs.
///
/// Costs a product of scenarios x places x rules a step; there are at most three times as many steps as
/// firings.
///
/// # Errors
/// Interrupted; too many simulations for the memory, or a rule that releases what is free (exit code 2);
/// those of the logic step.
pub fn simulate_workcell(
    workcell: &Workcell,
    options: &EventOptions,
    logic: &mut dyn LogicStep,
    monitor: &Monitor,
) -> Result<Vec<EventRun>> {
    let variants = workcell.variants();
    let columns = (variants.len() as u64).saturating_mul(options.replications);
    let cells = columns.saturating_mul((workcell.places() + workcell.rules.len()) as u64);
    let refuse = |what: String| {
        Err(Error::input(
            "`replications`",
            what,
            "lower `replications` or `firings`, or end earlier with `until`",
        ))
    };
    if cells > MOST_CELLS {
        return refuse(format!("{columns} simulations of this workcell need too much memory"));
    }
    let matrices = EventMatrices::of(workcell);
    let mut columns: Vec<Column<'_>> = Vec::new();
    for (variant, workcell) in variants.iter().enumerate() {
        for replication in 0..options.replications {
            let state = State::new(workcell, options.seed, replication);
            columns.push(Column { state, variant, replication, conflicts: BTreeMap::new(), end: None });
        }
    }
    let dispatcher = Dispatcher::new(workcell);
    columns.iter_mut().for_each(|column| column.state.happen(0));
    let mut fired = 0;
    while columns.iter().any(|column| column.end.is_none()) {
        if monitor.is_stopped() {
            return Err(Error::Interrupted);
        }
        if fired > MOST_FIRINGS {
            return refuse(format!("{} simulations fire more than {MOST_FIRINGS} times", columns.len()));
        }
        let live = |columns: &[Column<'_>]| columns.iter().filter(|column| column.end.is_none()).count();
        let before = live(&columns);
        fired += step(&mut columns, &matrices, &dispatcher, options, logic)?;
        monitor.advance((before - live(&columns)) as u64);
    }
    Ok(columns.into_iter().map(|column| column.finished(options)).collect())
}

/// A simulation: a column of the state matrix.
struct Column<'a> {
    state: State<'a>,
    variant: usize,
    replication: u64,
    conflicts: BTreeMap<(Place, Vec<usize>), Conflict>,
    end: Option<End>,
}

/// One step of all simulations; returns the number of rules that fired.
fn step(
    columns: &mut [Column<'_>],
    matrices: &EventMatrices,
    dispatcher: &Dispatcher,
    options: &EventOptions,
    logic: &mut dyn LogicStep,
) -> Result<u64> {
    let (places, rules) = (matrices.conditions.rows(), matrices.conditions.cols());
    // Not v, not r, not u; nothing is there where a simulation has ended.
    let mut missing = BitMatrix::zeros(columns.len(), places);
    for (row, column) in columns.iter().enumerate() {
        let workcell = column.state.workcell;
        let empty = |&number: &usize| column.end.is_some() || column.state.is_missing(workcell.place(number));
        (0..places).filter(empty).for_each(|number| missing.set(row, number));
    }
    let mut violated = logic.violated(&missing)?;
    // Not v_D: dispatching holds back the losers of conflicts.
    let mut held_back = BitMatrix::zeros(columns.len(), matrices.permitted.len());
    let mut some = vec![false; columns.len()];
    for (row, column) in columns.iter_mut().enumerate().filter(|(_, column)| column.end.is_none()) {
        let candidates: Vec<usize> = zeros(violated.words(row), rules).collect();
        some[row] = !candidates.is_empty();
        let chosen = dispatcher.choose(&column.state, &candidates, &mut column.conflicts);
        for loser in candidates.iter().filter(|rule| chosen.binary_search(rule).is_err()) {
            let at = matrices.permitted.binary_search(loser).expect("rules in conflict have a column of F_D");
            held_back.set(row, at);
        }
    }
    violated.or_product(&held_back, &matrices.permission);
    let mut fires = BitMatrix::zeros(columns.len(), rules);
    for (row, column) in columns.iter_mut().enumerate().filter(|(row, _)| some[*row]) {
        for rule in zeros(violated.words(row), rules) {
            fires.set(row, rule);
            column.state.take(rule)?;
        }
    }
    let product = |matrix: &BitMatrix| {
        let mut result = BitMatrix::zeros(columns.len(), matrix.cols());
        result.or_product(&fires, matrix);
        result
    };
    let (releases, starts) = (product(&matrices.releases), product(&matrices.starts));
    let products = product(&matrices.products);
    for (row, column) in columns.iter_mut().enumerate().filter(|(_, column)| column.end.is_none()) {
        let state = &mut column.state;
        ones(releases.words(row), releases.cols()).for_each(|resource| state.release(resource));
        ones(starts.words(row), starts.cols()).for_each(|job| state.start(job));
        ones(products.words(row), products.cols()).for_each(|product| state.produce(product));
        column.go_on(some[row], options);
    }
    Ok(fires.ones() as u64)
}

impl Column<'_> {
    /// After a step: lets happen what is due, advances the clock where nothing could fire, or ends.
    fn go_on(&mut self, fired: bool, options: &EventOptions) {
        let state = &mut self.state;
        if fired {
            if state.firings.iter().sum::<u64>() >= options.firings {
                self.end = Some(End::Limit);
            } else {
                state.happen(state.now);
            }
            return;
        }
        match state.next() {
            None => self.end = Some(stuck(state)),
            // Parts may arrive forever at a cell that is blocked.
            Some(_)
                if state.coming().all(|place| matches!(place, Place::Part(_))) && nothing_can_fire(state) =>
            {
                self.end = Some(stuck(state));
            }
            Some(time) if options.until.is_some_and(|until| time > until) => {
                self.end = Some(partial(state).map_or(End::Until, End::Deadlocked));
            }
            Some(time) if time > LATEST => self.end = Some(End::Limit),
            Some(time) => state.happen(time),
        }
    }

    fn finished(mut self, options: &EventOptions) -> EventRun {
        let end = self.end.expect("every simulation has ended");
        let makespan = self.state.records.last().map_or(0, |record| record.time);
        let ended = match (&end, options.until) {
            (End::Until, Some(until)) => until,
            _ => makespan,
        };
        self.state.close(ended);
        let State { records, segments, firings, produced, .. } = self.state;
        let mut conflicts: Vec<Conflict> = self.conflicts.into_values().collect();
        conflicts.sort_by_key(|conflict| conflict.first);
        EventRun {
            variant: self.variant,
            replication: self.replication,
            end,
            makespan,
            ended,
            records,
            segments,
            firings,
            products: produced,
            conflicts,
        }
    }
}

/// The places of the ones among the first `count` bits.
fn ones(words: &[u64], count: usize) -> impl Iterator<Item = usize> + '_ {
    bits(words, count, 0)
}

/// The places of the zeros among the first `count` bits.
fn zeros(words: &[u64], count: usize) -> impl Iterator<Item = usize> + '_ {
    bits(words, count, u64::MAX)
}

/// The places of the bits that differ from those of `turned`.
fn bits(words: &[u64], count: usize, turned: u64) -> impl Iterator<Item = usize> + '_ {
    let rest = |word: u64| std::iter::successors(Some(word), |&left| Some(left & left.wrapping_sub(1)));
    let places = words.iter().enumerate().flat_map(move |(at, &word)| {
        rest(word ^ turned)
            .take_while(|&left| left != 0)
            .map(move |left| at * 64 + left.trailing_zeros() as usize)
    });
    places.take_while(move |&place| place < count)
}
