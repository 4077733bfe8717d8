use super::{cell, example, run};
use crate::cycle::{CycleEdge, maximum_cycle};
use crate::{Duration, EventGraph, EventOptions, Job, Place, Rule, Workcell};
use apportion::kernels::{View, ViewMut, max_plus};
use apportion::random::Random;

const SECOND: u64 = 1_000_000_000;

/// A random graph as a workcell: nodes are rules, edges are jobs.
fn any_graph(seed: u64) -> (usize, Vec<CycleEdge>) {
    let random = &mut Random::new(seed);
    let nodes = 1 + random.below(5);
    let mut edge = |from, to| {
        let (time, tokens) = (random.below(20) as u64 * SECOND, random.below(3) as u64);
        CycleEdge { from, to, time, tokens }
    };
    // A circle through all nodes makes it strongly connected.
    let mut edges: Vec<CycleEdge> = (0..nodes).map(|i| edge(i, (i + 1) % nodes)).collect();
    edges.extend((0..nodes).map(|i| edge(i, (i * 3 + seed as usize) % nodes)));
    (nodes, edges)
}

fn as_cell(nodes: usize, edges: &[CycleEdge]) -> Workcell {
    let mut cell = Workcell::default();
    let leaves = |at: fn(&CycleEdge) -> usize, node| {
        (0..edges.len()).filter(|&e| at(&edges[e]) == node).collect::<Vec<usize>>()
    };
    for (i, edge) in edges.iter().enumerate() {
        cell.jobs.push(Job { name: i.to_string(), duration: Duration::Fixed(edge.time), done: edge.tokens });
    }
    for node in 0..nodes {
        let (start, done) = (leaves(|e| e.from, node), leaves(|e| e.to, node));
        cell.rules.push(Rule { name: node.to_string(), start, done, ..Rule::default() });
    }
    cell
}

/// (time, tokens) of the best of all simple cycles, one by one.
fn best_of_all(nodes: usize, edges: &[CycleEdge]) -> Option<(u64, u64)> {
    fn walk(
        at: usize,
        first: usize,
        edges: &[CycleEdge],
        path: &mut Vec<usize>,
        sum: (u64, u64),
        best: &mut Option<(u64, u64)>,
    ) {
        for edge in edges.iter().filter(|e| e.from == at && e.to >= first) {
            let sum = (sum.0 + edge.time, sum.1 + edge.tokens);
            if edge.to == first {
                let more = |old: (u64, u64)| match (sum.1, old.1) {
                    (_, 0) => false,
                    (0, _) => true,
                    _ => sum.0 * old.1 > old.0 * sum.1,
                };
                if best.is_none_or(more) {
                    *best = Some(sum);
                }
            } else if !path.contains(&edge.to) {
                path.push(edge.to);
                walk(edge.to, first, edges, path, sum, best);
                path.pop();
            }
        }
    }
    let mut best = None;
    (0..nodes).for_each(|first| walk(first, first, edges, &mut vec![first], (0, 0), &mut best));
    best
}

/// Karp's maximum cycle mean of a max-plus matrix.
fn karp(states: usize, matrix: &[f64]) -> f64 {
    let mut walks = vec![vec![0.0; states]];
    for k in 0..states {
        let mut next = vec![f64::NEG_INFINITY; states];
        max_plus(
            View::dense(matrix, states, states),
            View::dense(&walks[k], states, 1),
            ViewMut::dense(&mut next, states, 1),
        );
        walks.push(next);
    }
    let of = |i: usize| {
        let mean = |k: usize| (walks[states][i] - walks[k][i]) / (states - k) as f64;
        (0..states).map(mean).fold(f64::INFINITY, f64::min)
    };
    let reached = (0..states).filter(|&i| walks[states][i] > f64::NEG_INFINITY);
    reached.map(of).fold(f64::NEG_INFINITY, f64::max)
}

/// Howard's policies, all simple cycles, Karp on the matrix, the recursion and the simulation.
#[test]
fn every_way_to_the_cycle_time_agrees() {
    let (mut blocked, mut live) = (0, 0);
    for seed in 0..600 {
        let (nodes, edges) = any_graph(seed);
        let cell = as_cell(nodes, &edges);
        let graph = EventGraph::of(&cell).unwrap();
        let (found, wanted) = (graph.cycle().unwrap(), best_of_all(nodes, &edges).unwrap());
        let (time, tokens) = (u128::from(wanted.0), u128::from(wanted.1));
        assert_eq!(found.cycle.time * tokens, time * found.cycle.tokens, "seed {seed}");
        // The circuit is one, and has the mean that is claimed.
        let on = &found.cycle.edges;
        for (i, &edge) in on.iter().enumerate() {
            assert_eq!(edges[edge].to, edges[on[(i + 1) % on.len()]].from);
        }
        let sum = |part: fn(&CycleEdge) -> u64| on.iter().map(|&e| u128::from(part(&edges[e]))).sum::<u128>();
        assert_eq!(sum(|e| e.time) * tokens, time * sum(|e| e.tokens));
        if wanted.1 == 0 {
            blocked += 1;
            assert_eq!(graph.firing_times(None, 3).unwrap_err().exit_code(), 1);
            assert_eq!(graph.matrix().unwrap_err().exit_code(), 1);
            continue;
        }
        live += 1;
        let matrix = graph.matrix().unwrap();
        let mean = wanted.0 as f64 / SECOND as f64 / wanted.1 as f64;
        let by_karp = karp(matrix.rows(), matrix.as_slice());
        assert!((by_karp - mean).abs() < 1e-9, "seed {seed}: {by_karp} against {mean}");
        // Circuits have at most ten tokens, so their numbers divide 2520.
        let times = graph.firing_times(None, 6000).unwrap();
        for fires in &times {
            let grown = u128::from(fires[5999] - fires[5999 - 2520]);
            assert_eq!(grown * tokens, time * 2520, "seed {seed}");
        }
        let options = EventOptions { firings: 400, ..EventOptions::default() };
        let run = run(&cell, &options).unwrap().remove(0);
        for (rule, fires) in times.iter().enumerate() {
            let simulated = &run.fired()[rule];
            assert_eq!(simulated[..], fires[..simulated.len()], "seed {seed}, rule {rule}");
        }
    }
    assert!(blocked > 50 && live > 200, "{blocked} {live}");
}

#[test]
fn graphs_of_several_parts_have_the_slowest_cycle() {
    for seed in 0..300 {
        // Two graphs and a one-way road between them.
        let (first, mut edges) = any_graph(seed);
        let (second, others) = any_graph(seed + 1000);
        edges.extend(others.iter().map(|e| CycleEdge { from: e.from + first, to: e.to + first, ..*e }));
        edges.push(CycleEdge { from: 0, to: first, time: 99 * SECOND, tokens: 0 });
        let (found, wanted) =
            (maximum_cycle(first + second, &edges).unwrap(), best_of_all(first + second, &edges));
        let (time, tokens) = wanted.unwrap();
        assert_eq!(found.time * u128::from(tokens), u128::from(time) * found.tokens, "seed {seed}");
    }
    assert_eq!(maximum_cycle(3, &[CycleEdge { from: 0, to: 1, time: 5, tokens: 1 }]), None);
    assert_eq!(maximum_cycle(0, &[]), None);
}

/// The train network of Heidergott, Olsder and van der Woude (2006, section 0.1):
/// x1(k+1) = max(x1 + 2, x2 + 5), x2(k+1) = max(x1 + 3, x2 + 3); its eigenvalue is 4.
#[test]
fn the_text_books_trains() {
    let edge = |from, to, time: u64| CycleEdge { from, to, time: time * SECOND, tokens: 1 };
    let edges = [edge(0, 0, 2), edge(1, 0, 5), edge(0, 1, 3), edge(1, 1, 3)];
    let graph = EventGraph::of(&as_cell(2, &edges)).unwrap();
    assert_eq!(graph.cycle().unwrap().cycle.mean(), 4e9);
    assert_eq!(graph.matrix().unwrap().as_slice(), [2.0, 5.0, 3.0, 3.0]);
    let times = graph.firing_times(None, 6).unwrap();
    assert_eq!(times[0].iter().map(|t| t / SECOND).collect::<Vec<_>>(), [0, 5, 8, 13, 16, 21]);
}

/// The oven bakes three trays in 75 s, which is faster than the press: 25 s and 2 s to open.
#[test]
fn the_flow_line_is_as_fast_as_its_press() {
    let workcell = cell(example!("flow-line"));
    let variants = workcell.variants();
    let wanted = [(27, "press"), (30, "oven"), (25, "oven")];
    let runs = run(&workcell, &EventOptions::default()).unwrap();
    for ((variant, run), (seconds, slowest)) in variants.iter().zip(&runs).zip(wanted) {
        let graph = EventGraph::of(variant).unwrap();
        let cycle = graph.cycle().unwrap();
        assert_eq!(cycle.cycle.mean() / 1e9, f64::from(seconds), "{}", variant.name);
        let names: Vec<String> = cycle.places.iter().map(|&place| variant.name_of(place)).collect();
        assert!(names.contains(&format!("resource \"{slowest}\"")), "{names:?}");
        // The simulation fires when the recursion says, and repeats with the cycle time.
        let times = graph.firing_times(None, 1000).unwrap();
        assert_eq!(run.fired(), times);
        let out = &times[5];
        assert_eq!(out.len(), 40);
        let tokens = cycle.tokens as usize;
        assert_eq!(out[39] - out[39 - tokens], cycle.tokens * seconds as u64 * SECOND);
    }
}

/// The timetable allows one departure an hour. Works on the lake line make it 74 minutes.
#[test]
fn the_timetable_holds_while_the_trains_are_faster() {
    let workcell = cell(example!("rail"));
    let [usual, works] = &workcell.variants()[..] else { panic!("two variants") };
    let cycle = EventGraph::of(usual).unwrap().cycle().unwrap();
    assert_eq!((cycle.cycle.mean() / 60e9, cycle.places.len()), (60.0, 0), "the slots are the slowest");
    let cycle = EventGraph::of(works).unwrap().cycle().unwrap();
    assert_eq!(cycle.cycle.mean() / 60e9, 74.0);
    let lake = Place::Job(works.jobs.iter().position(|job| job.name == "lake and back").unwrap());
    assert!(cycle.places.contains(&lake));
    // Departures of the lake line, in minutes.
    let day = EventOptions { until: Some(719 * 60 * SECOND), ..EventOptions::default() };
    let fired = |cell: &Workcell| run(cell, &day).unwrap()[0].fired()[2].clone();
    let departs = fired(usual).iter().map(|t| t / (60 * SECOND)).collect::<Vec<_>>();
    assert_eq!(departs, (0..12).map(|k| 60 * k).collect::<Vec<u64>>());
    let departs = fired(works).iter().map(|t| t / (60 * SECOND)).collect::<Vec<_>>();
    assert_eq!(departs, (0..10).map(|k| 74 * k).collect::<Vec<u64>>());
}
