use super::interpreter::interpret;
use super::{cell, example, run};
use crate::{
    Arrivals, Dispatching, Duration, End, EventOptions, EventRun, Job, PartSource, Resource, Rule, What,
    Workcell,
};
use apportion::error::Result;
use apportion::random::Random;

/// Some of the numbers below `count`, ascending.
fn some(random: &mut Random, count: usize, most: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..random.below(most + 1)).map(|_| random.below(count)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    if count == 0 { Vec::new() } else { chosen }
}

/// Any rules over a few jobs, resources and parts; most get stuck somewhere, some never rest.
fn any_cell(seed: u64) -> Workcell {
    let random = &mut Random::new(seed);
    let dispatching = |random: &mut Random| Dispatching::NAMES[random.below(6)].1;
    let duration = |random: &mut Random| match random.below(5) {
        0 => Duration::Uniform(1, 9),
        1 => Duration::Triangular(0, 3, 5),
        _ => Duration::Fixed(random.below(6) as u64),
    };
    let mut cell = Workcell { dispatching: dispatching(random), ..Workcell::default() };
    for i in 0..1 + random.below(6) {
        let done = random.below(3) as u64;
        cell.jobs.push(Job { name: format!("j{i}"), duration: duration(random), done });
    }
    for i in 0..random.below(4) {
        cell.resources.push(Resource {
            name: format!("r{i}"),
            capacity: 1 + random.below(3) as u64,
            reset: if random.below(3) == 0 { random.below(4) as u64 } else { 0 },
            dispatching: (random.below(2) == 0).then(|| dispatching(random)),
        });
    }
    for i in 0..random.below(3) {
        let arrivals = match random.below(3) {
            0 => Arrivals::AtStart(random.below(6) as u64),
            1 => Arrivals::At((0..random.below(5) as u64).map(|k| k * k).collect()),
            _ => Arrivals::Every { first: 2, every: 1 + random.below(4) as u64, count: Some(7) },
        };
        cell.parts.push(PartSource { name: format!("p{i}"), arrivals });
    }
    cell.products = vec!["a".into(), "b".into()];
    for i in 0..1 + random.below(8) {
        let rule = Rule {
            name: format!("rule{i}"),
            done: some(random, cell.jobs.len(), 2),
            free: some(random, cell.resources.len(), 2),
            parts: some(random, cell.parts.len(), 1),
            start: some(random, cell.jobs.len(), 2),
            release: some(random, cell.resources.len(), 1),
            produce: some(random, 2, 1),
            priority: random.below(3) as i64,
        };
        if rule.done.len() + rule.free.len() + rule.parts.len() > 0 {
            cell.rules.push(rule);
        }
    }
    if cell.rules.is_empty() {
        cell.rules.push(Rule { name: "only".into(), done: vec![0], ..Rule::default() });
    }
    cell
}

fn events(run: &EventRun) -> Vec<(u64, What, usize)> {
    let mut events: Vec<_> = run.records.iter().map(|r| (r.time, r.what, r.index)).collect();
    events.sort_unstable();
    events
}

/// What an interpreter says and what the matrices say.
fn compare(cell: &Workcell, options: &EventOptions) -> Result<Vec<EventRun>> {
    let found = run(cell, options);
    let until = options.until.expect("a limit");
    for (variant, cell) in cell.variants().iter().enumerate() {
        for replication in 0..options.replications {
            let wanted = interpret(cell, until, options.firings, [options.seed, replication]);
            let Ok(runs) = &found else {
                continue;
            };
            let run = &runs[variant * options.replications as usize + replication as usize];
            let (wanted, limited) = wanted.expect("the matrices found no wrong release");
            assert_eq!(events(run), wanted, "{cell:?}");
            assert_eq!(run.end == End::Limit, limited);
        }
    }
    if found.is_err() {
        let wrong =
            |replication| interpret(cell, until, options.firings, [options.seed, replication]).is_err();
        assert!((0..options.replications).any(wrong), "{cell:?}");
    }
    found
}

#[test]
fn matrices_and_interpreter_agree_on_any_rules() {
    let options = EventOptions { until: Some(60), firings: 200, replications: 2, seed: 9 };
    let mut ends = std::collections::BTreeMap::new();
    for seed in 0..1500 {
        let word = match compare(&any_cell(seed), &options) {
            Ok(runs) => runs[0].end.word(),
            Err(_) => "refused",
        };
        *ends.entry(word).or_insert(0) += 1;
    }
    // Every way to end comes up.
    assert_eq!(ends.len(), 6, "{ends:?}");
}

#[test]
fn examples_agree_with_the_interpreter() {
    let day = EventOptions { until: Some(86_400_000_000_000), firings: 3000, replications: 1, seed: 1 };
    for text in [example!("tacconi-lewis"), example!("flow-line"), example!("rail"), example!("deadlock")] {
        let runs = compare(&cell(text), &day).unwrap();
        assert!(runs.iter().all(|run| run.records.len() > 10));
    }
}

/// Thousands of rules: twenty lines of a hundred machines each, with resources that lines share.
#[test]
fn thousands_of_rules() {
    let mut cell = Workcell { products: vec!["x".into()], ..Workcell::default() };
    for line in 0..20 {
        cell.parts.push(PartSource { name: format!("p{line}"), arrivals: Arrivals::AtStart(3) });
        for at in 0..100 {
            let number = line * 100 + at;
            let duration = Duration::Fixed(1 + (number * 7 % 13) as u64);
            cell.jobs.push(Job { name: format!("j{number}"), duration, done: 0 });
            let resource = Resource { name: format!("r{number}"), capacity: 1, reset: 0, dispatching: None };
            cell.resources.push(resource);
            // Every tenth machine also needs a tool that all lines share.
            let shared = if at % 10 == 5 { vec![2000] } else { Vec::new() };
            cell.rules.push(Rule {
                name: format!("start {number}"),
                done: if at == 0 { vec![] } else { vec![number - 1] },
                parts: if at == 0 { vec![line] } else { vec![] },
                free: [vec![number], shared].concat(),
                start: vec![number],
                release: [
                    if at == 0 { vec![] } else { vec![number - 1] },
                    if at % 10 == 6 { vec![2000] } else { vec![] },
                ]
                .concat(),
                ..Rule::default()
            });
        }
        let last = line * 100 + 99;
        cell.rules.push(Rule {
            name: format!("out {line}"),
            done: vec![last],
            release: vec![last],
            produce: vec![0],
            ..Rule::default()
        });
    }
    let tool = Resource { name: "tool".into(), capacity: 4, reset: 0, dispatching: None };
    cell.resources.push(tool);
    let options = EventOptions { until: Some(1_000_000), ..EventOptions::default() };
    let run = compare(&cell, &options).unwrap().remove(0);
    assert_eq!((run.end, &run.products[..]), (End::Finished, &[60][..]));
    assert_eq!(run.firings.iter().sum::<u64>(), 60 * 101);
}

#[test]
fn replications_draw_times_of_their_own_and_repeat() {
    let text = "[[part]]\nname=\"p\"\ncount=4\n[[resource]]\nname=\"m\"\n\
        [[job]]\nname=\"j\"\nduration={ exponential = 5 }\n\
        [[rule]]\nname=\"in\"\nparts=[\"p\"]\nfree=[\"m\"]\nstart=[\"j\"]\n\
        [[rule]]\nname=\"out\"\ndone=[\"j\"]\nrelease=[\"m\"]\nproduce=[\"q\"]\n";
    let options = EventOptions { replications: 400, seed: 3, ..EventOptions::default() };
    let runs = run(&cell(text), &options).unwrap();
    assert_eq!(runs, run(&cell(text), &options).unwrap());
    assert_ne!(runs[0].makespan, runs[1].makespan);
    // Four exponential times of 5 s each: mean 20 s, standard deviation 10 s.
    let mean = runs.iter().map(|run| run.makespan as f64 / 1e9).sum::<f64>() / 400.0;
    assert!((mean - 20.0).abs() < 2.0, "{mean}");
    let other = run(&cell(text), &EventOptions { seed: 4, ..options }).unwrap();
    assert_ne!(other[0].makespan, runs[0].makespan);
}
