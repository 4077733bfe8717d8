//! A workcell without conflicts as a timed event graph: a linear system over max-plus.

use super::cycle::{CycleEdge, maximum_cycle};
use super::{Arrivals, Cycle, Nanos, Place, SharedPlace, Workcell, shared_places};
use apportion::error::{Error, Result};
use apportion::matrix::Matrix;

/// Most states of the max-plus matrix.
const MOST_STATES: usize = 4096;

/// Rule `to` fires for the k-th time at least `time` after rule `from` fired for the (k - `tokens`)-th time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GraphEdge {
    /// The rule that gives.
    pub(crate) from: usize,
    /// The rule that takes.
    pub(crate) to: usize,
    /// The duration of the job, or the reset time of the resource.
    pub(crate) time: Nanos,
    /// Jobs done and units free at the start.
    pub(crate) tokens: u64,
    /// The job or resource.
    pub(crate) place: Place,
}

/// A timed event graph: every job, resource and kind of parts is taken by one rule at most and given by one
/// rule at most, and all durations are fixed. With x(k) the times at which the rules fire for the k-th time,
///
/// x(k) = A_0 x(k) + A_1 x(k - 1) + … + A_m x(k - m) + u(k)
///
/// over max-plus, where u(k) holds the times at which parts arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventGraph {
    /// Number of rules.
    pub(crate) rules: usize,
    /// The edges.
    pub(crate) edges: Vec<GraphEdge>,
    /// For each rule the arrivals of the parts that it takes, and of what is only there at the start.
    pub(crate) inputs: Vec<(usize, Arrivals)>,
}

/// The circuit that determines the cycle time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphCycle {
    /// The cycle; its mean is in nanoseconds.
    pub cycle: Cycle,
    /// The rules on it, in order.
    pub rules: Vec<usize>,
    /// The jobs and resources between them; empty if arrivals are the slowest.
    pub places: Vec<Place>,
    /// Tokens on the circuit.
    pub tokens: u64,
}

impl EventGraph {
    /// The event graph of a workcell, or why it is none.
    pub fn of(workcell: &Workcell) -> std::result::Result<Self, String> {
        if let Some(SharedPlace { place, rules }) = shared_places(workcell).into_iter().next() {
            let names = named(workcell, &rules);
            return Err(format!("{} is taken by {} rules ({names})", workcell.name_of(place), rules.len()));
        }
        if let Some(job) = workcell.jobs.iter().find(|job| job.duration.fixed().is_none()) {
            return Err(format!("the duration of job \"{}\" is random", job.name));
        }
        let (takers, givers) = (workcell.takers(), workcell.givers());
        let mut graph = Self { rules: workcell.rules.len(), edges: Vec::new(), inputs: Vec::new() };
        for number in 0..workcell.places() {
            let place = workcell.place(number);
            let Some(&to) = takers[number].first() else { continue };
            let (time, tokens) = match place {
                Place::Job(job) => {
                    let job = &workcell.jobs[job];
                    (job.duration.fixed().unwrap_or(0), job.done)
                }
                Place::Resource(resource) => {
                    let resource = &workcell.resources[resource];
                    (resource.reset, resource.capacity)
                }
                Place::Part(part) => {
                    graph.inputs.push((to, workcell.parts[part].arrivals.clone()));
                    continue;
                }
            };
            match givers[number][..] {
                [] => graph.inputs.push((to, Arrivals::AtStart(tokens))),
                [from] => graph.edges.push(GraphEdge { from, to, time, tokens, place }),
                ref rules => {
                    let (count, names) = (rules.len(), named(workcell, rules));
                    return Err(format!("{} is given by {count} rules ({names})", workcell.name_of(place)));
                }
            }
        }
        Ok(graph)
    }

    /// The circuit with the largest mean, whose mean is the max-plus eigenvalue: the time between two firings
    /// of a rule in the long run. Parts that arrive at intervals count; those of a finite supply do not limit
    /// the long run. `None` if nothing limits it. O(rules + edges) a round of
    /// [`maximum_cycle`].
    pub fn cycle(&self) -> Option<GraphCycle> {
        let mut edges: Vec<CycleEdge> = self.edges.iter().map(CycleEdge::from).collect();
        let mut nodes = self.rules;
        let mut sources = Vec::new();
        for (rule, arrivals) in &self.inputs {
            if let Arrivals::Every { every, .. } = arrivals {
                edges.push(CycleEdge { from: nodes, to: nodes, time: *every, tokens: 1 });
                sources.push(*rule);
                nodes += 1;
            }
        }
        let cycle = maximum_cycle(nodes, &edges)?;
        let rule = |edge: &usize| match edges[*edge].from {
            node if node < self.rules => node,
            source => sources[source - self.rules],
        };
        let rules = cycle.edges.iter().map(rule).collect();
        let places = cycle.edges.iter().filter_map(|&e| Some(self.edges.get(e)?.place)).collect();
        let tokens = cycle.edges.iter().map(|&e| edges[e].tokens).sum();
        Some(GraphCycle { cycle, rules, places, tokens })
    }

    /// The times at which each rule fires, by the max-plus recursion: up to a time, and for a number of
    /// firings each at most. O(firings x edges).
    ///
    /// # Errors
    /// A circuit without tokens: its rules never fire (exit code 1).
    pub fn firing_times(&self, until: Option<Nanos>, most: u64) -> Result<Vec<Vec<Nanos>>> {
        let order = self.order()?;
        let mut entering: Vec<Vec<&GraphEdge>> = vec![Vec::new(); self.rules];
        self.edges.iter().for_each(|edge| entering[edge.to].push(edge));
        let mut inputs: Vec<Vec<&Arrivals>> = vec![Vec::new(); self.rules];
        self.inputs.iter().for_each(|(rule, arrivals)| inputs[*rule].push(arrivals));
        let mut times: Vec<Vec<Nanos>> = vec![Vec::new(); self.rules];
        for k in 0..most {
            let mut some = false;
            for &rule in &order {
                if times[rule].len() as u64 != k {
                    continue;
                }
                let after = |edge: &&GraphEdge| match k.checked_sub(edge.tokens) {
                    None => Some(0),
                    Some(before) => times[edge.from].get(before as usize)?.checked_add(edge.time),
                };
                let arrive = inputs[rule].iter().map(|arrivals| arrivals.time(k));
                let mut all = entering[rule].iter().map(after).chain(arrive);
                let time = all.try_fold(0, |latest: Nanos, time| Some(latest.max(time?)));
                if let Some(time) = time.filter(|time| until.is_none_or(|until| *time <= until)) {
                    times[rule].push(time);
                    some = true;
                }
            }
            if !some {
                break;
            }
        }
        Ok(times)
    }

    /// The matrix A = A_0* A_1 of x(k) = A x(k - 1) over max-plus, in seconds; -inf where there is no path.
    /// Its first rows are the rules; the others are the tokens of places with several, and the arrivals at
    /// intervals. Its eigenvalue is the mean of [`EventGraph::cycle`].
    ///
    /// # Errors
    /// A circuit without tokens (exit code 1); more than 4,096 states (exit code 2).
    pub fn matrix(&self) -> Result<Matrix<f64>> {
        let delays = self.edges.iter().map(|edge| edge.tokens.saturating_sub(1) as usize).sum::<usize>();
        let sources = self.inputs.iter().filter(|(_, arrivals)| matches!(arrivals, Arrivals::Every { .. }));
        let states = self.rules + delays + sources.clone().count();
        if states > MOST_STATES {
            return Err(Error::input(
                "`max_plus`",
                format!("the max-plus system has {states} states, more than {MOST_STATES}"),
                "lower the capacities, or leave the matrix out",
            ));
        }
        let mut matrix = Matrix::new(states, states, vec![f64::NEG_INFINITY; states * states]);
        let add = |matrix: &mut Matrix<f64>, to: usize, from: usize, time: f64| {
            let element = &mut matrix.as_mut_slice()[to * states + from];
            *element = element.max(time);
        };
        // A_1: edges with one token; those with several pass through states that hold one each.
        let mut next = self.rules;
        for edge in self.edges.iter().filter(|edge| edge.tokens > 0) {
            let mut from = edge.from;
            for _ in 1..edge.tokens {
                add(&mut matrix, next, from, 0.0);
                (from, next) = (next, next + 1);
            }
            add(&mut matrix, edge.to, from, super::seconds(edge.time));
        }
        let mut without: Vec<(usize, usize, f64)> = self
            .edges
            .iter()
            .filter(|edge| edge.tokens == 0)
            .map(|edge| (edge.from, edge.to, super::seconds(edge.time)))
            .collect();
        for (rule, arrivals) in sources {
            if let Arrivals::Every { every, .. } = arrivals {
                add(&mut matrix, next, next, super::seconds(*every));
                without.push((next, *rule, 0.0));
                next += 1;
            }
        }
        // A_0*: rules in an order in which each comes after those that it waits for at the same k.
        let sources = self.rules + delays..states;
        for rule in sources.chain(self.order()?) {
            for &(_, to, time) in without.iter().filter(|(from, ..)| *from == rule) {
                for column in 0..states {
                    let before = matrix.row(rule)[column];
                    add(&mut matrix, to, column, before + time);
                }
            }
        }
        Ok(matrix)
    }

    /// The rules, each after those that it follows without a token.
    fn order(&self) -> Result<Vec<usize>> {
        let mut waits = vec![0; self.rules];
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.rules];
        for edge in self.edges.iter().filter(|edge| edge.tokens == 0) {
            waits[edge.to] += 1;
            after[edge.from].push(edge.to);
        }
        let mut order: Vec<usize> = (0..self.rules).filter(|&rule| waits[rule] == 0).collect();
        let mut at = 0;
        while at < order.len() {
            for &next in &after[order[at]] {
                waits[next] -= 1;
                if waits[next] == 0 {
                    order.push(next);
                }
            }
            at += 1;
        }
        if order.len() < self.rules {
            let what = "the rules on a circuit wait for each other and never fire";
            return Err(Error::infeasible(what, "let a job on the circuit be done at the start"));
        }
        Ok(order)
    }
}

impl From<&GraphEdge> for CycleEdge {
    fn from(edge: &GraphEdge) -> Self {
        Self { from: edge.from, to: edge.to, time: edge.time, tokens: edge.tokens }
    }
}

fn named(workcell: &Workcell, rules: &[usize]) -> String {
    let names = rules.iter().take(4).map(|&rule| workcell.rules[rule].name.as_str());
    let more = if rules.len() > 4 { ", …" } else { "" };
    names.collect::<Vec<_>>().join(", ") + more
}
