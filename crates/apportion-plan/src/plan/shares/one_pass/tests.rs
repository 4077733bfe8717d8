//! Whole runs on a simulated clock, and every unit exactly once.

use super::simulator::{Job, Kind, Policy, Rival, Rule, Truth};
use super::*;
use crate::random::Random;

const SEEDS: u64 = 9;

/// The median over jobs and noise of several seeds.
fn median(seconds: impl Fn(u64) -> f64) -> f64 {
    let mut all: Vec<f64> = (0..SEEDS).map(seconds).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// A row of the comparison: one job for each seed.
struct Row {
    name: String,
    /// Start-up of each processor, and seconds of work for the fastest.
    start_up: f64,
    work: f64,
    kind: Kind,
    jobs: Vec<Job>,
}

impl Row {
    fn new(speeds: &[f64], start_up: f64, work: f64, kind: Kind) -> Self {
        let truths: Vec<Truth> = speeds.iter().map(|&speed| Truth::new(start_up, speed)).collect();
        let jobs = (0..SEEDS).map(|seed| Job::new(kind, work, truths.clone(), 5 + seed)).collect();
        let name = format!("{speeds:?}, start-up {start_up} s, work {work} s, {kind:?}");
        Self { name, start_up, work, kind, jobs }
    }

    fn seconds(&self, policy: impl Fn(&Job) -> Box<dyn Policy>) -> f64 {
        median(|seed| self.jobs[seed as usize].seconds(&mut *policy(&self.jobs[seed as usize]), 100 + seed))
    }

    fn ours(&self, options: impl Fn(&Job) -> OnePassOptions) -> f64 {
        self.seconds(|job| Box::new(OnePass::new(&[0..job.units()], options(job)).unwrap()))
    }

    fn rival(&self, rule: &Rule) -> f64 {
        self.seconds(|job| Box::new(Rival::new(rule.clone(), job.units(), job.truths.len())))
    }

    fn best_rival(&self) -> f64 {
        let mut rules = vec![Rule::Guided, Rule::Factoring, Rule::AdaptiveWeighted, Rule::Adaptive];
        rules.extend([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64].map(Rule::Queue));
        rules.iter().map(|rule| self.rival(rule)).fold(self.jobs[0].alone(), f64::min)
    }
}

/// What a first run knows, and the second.
fn nothing(job: &Job) -> OnePassOptions {
    OnePassOptions { processors: job.truths.len(), ..OnePassOptions::default() }
}

fn lines(job: &Job) -> OnePassOptions {
    let mean = job.work() / job.units() as f64;
    let line = |truth: &Truth| Line { start_up: truth.start_up, per_unit: mean / truth.speed };
    OnePassOptions { lines: Some(job.truths.iter().map(|truth| Some(line(truth))).collect()), ..nothing(job) }
}

fn rows(machines: &[&[f64]]) -> Vec<Row> {
    let mut rows = Vec::new();
    for speeds in machines {
        for work in [5.0, 30.0] {
            for start_up in [0.0, 0.05, 0.5, 2.0] {
                for kind in [Kind::Alike, Kind::Ramp, Kind::Heavy] {
                    rows.push(Row::new(speeds, start_up, work, kind));
                }
            }
        }
    }
    rows
}

/// Asserts that at most one in ten of these ratios is above 1.05, and none above `most`.
fn assert_near(ratios: &[f64], most: f64) {
    let above = ratios.iter().filter(|ratio| **ratio > 1.05).count();
    let largest = ratios.iter().copied().fold(0.0, f64::max);
    assert!(
        10 * above <= ratios.len() && largest <= most,
        "{above} of {} above 1.05, largest {largest}",
        ratios.len()
    );
}

/// A first run against the best of 16 rules and the fastest alone, chosen afterwards for each row.
#[test]
fn a_first_run_is_near_the_best_rival_in_hindsight() {
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for row in rows(&[&[1.0, 1.0], &[3.0, 1.0], &[4.0, 2.0, 1.0, 1.0]]) {
        let (ours, best) = (row.ours(nothing), row.best_rival());
        match row.start_up <= 0.02 * row.work {
            true => small.push(ours / best),
            false => large.push((ours - 2.0 * row.start_up) / best),
        }
        if row.start_up == 0.0 && row.kind != Kind::Heavy {
            assert!(ours <= 1.05 * row.jobs[0].ideal(), "{}: {ours}", row.name);
        }
    }
    assert_near(&small, 1.10);
    assert_near(&large, 1.10);
}

/// With many processors, the second start-up that learning takes is a large part of the time.
#[test]
fn many_processors_lose_little_more_than_two_start_ups() {
    let mut uneven = vec![1.0; 10];
    uneven[0] = 10.0;
    let machines: [&[f64]; 4] = [&[1.0; 8], &[1.0; 16], &[8.0, 4.0, 4.0, 2.0, 2.0, 1.0, 1.0, 1.0], &uneven];
    for row in rows(&machines) {
        let (ours, best) = (row.ours(nothing), row.best_rival());
        assert!(ours <= 1.3 * best + 2.0 * row.start_up, "{}: {ours} of {best}", row.name);
    }
}

/// A hundred processors of speeds from 0.2 to 1.2, with 20 units each: first pieces are small for all of them.
#[test]
fn a_hundred_uneven_processors_end_together() {
    let mut random = Random::new(1);
    let speeds: Vec<f64> = (0..100).map(|_| 0.2 + random.unit()).collect();
    let row = Row::new(&speeds, 0.05, 3000.0, Kind::Alike);
    let (ours, ideal) = (row.ours(nothing), row.jobs[0].ideal());
    assert!(ours <= 1.15 * ideal, "{ours} of {ideal}");
}

#[test]
fn a_second_run_is_nearly_ideal() {
    for mut row in rows(&[&[1.0, 1.0], &[3.0, 1.0], &[4.0, 2.0, 1.0, 1.0]]) {
        if row.kind != Kind::Alike {
            continue;
        }
        // Of four processors with a noise of 3 %, the latest is 3 % late with any division.
        row.jobs.iter_mut().for_each(|job| job.noise = 0.02);
        let (ours, ideal) = (row.ours(lines), row.jobs[0].ideal());
        assert!(ours <= 1.03 * ideal, "{}: {ours} of {ideal}", row.name);
    }
}

#[test]
fn known_costs_and_speeds_help() {
    for speeds in [&[1.0, 1.0][..], &[4.0, 2.0, 1.0, 1.0], &[1.0; 8]] {
        for kind in [Kind::Ramp, Kind::Heavy] {
            let row = Row::new(speeds, 0.05, 30.0, kind);
            let ideal = row.jobs[0].ideal();
            let costs = |job: &Job| Some(job.before.windows(2).map(|pair| pair[1] - pair[0]).collect());
            let with_costs = row.ours(|job| OnePassOptions { costs: costs(job), ..nothing(job) });
            assert!(with_costs <= 1.07 * ideal, "{}: {with_costs} of {ideal}", row.name);
            let second = row.ours(|job| OnePassOptions { costs: costs(job), ..lines(job) });
            assert!(second <= 1.04 * ideal, "{}: {second} of {ideal}", row.name);
        }
        let hints = |job: &Job| OnePassOptions { hints: Some(speeds.to_vec()), ..nothing(job) };
        let row = Row::new(speeds, 0.5, 30.0, Kind::Alike);
        assert!(row.ours(hints) <= 1.02 * row.ours(nothing), "{}", row.name);
        for (kind, most) in [(Kind::Alike, 1.05), (Kind::Ramp, 1.05), (Kind::Heavy, 1.12)] {
            let row = Row::new(speeds, 0.05, 30.0, kind);
            let (ours, weighted) = (row.ours(hints), row.rival(&Rule::Weighted(speeds.to_vec())));
            assert!(ours <= most * weighted, "{}: {ours} of {weighted}", row.name);
        }
    }
}

/// A processor that is five times slower for two seconds, or from then on.
#[test]
fn disturbances_are_taken_over_by_the_others() {
    for (from, to) in [(1.0, 3.0), (8.0, 10.0), (1.0, f64::INFINITY), (8.0, f64::INFINITY)] {
        let mut row = Row::new(&[1.0; 4], 0.05, 60.0, Kind::Alike);
        for job in &mut row.jobs {
            job.truths[0] = job.truths[0].clone().disturbed(from..to, 5.0);
        }
        let even = row.rival(&Rule::Queue(1));
        let best = (1..7).map(|k| row.rival(&Rule::Queue(1 << k))).fold(even, f64::min);
        let (first, second) = (row.ours(nothing), row.ours(lines));
        let name = format!(
            "from {from} to {to}: {first} and {second}, the best queue {best}, the even split {even}"
        );
        if to.is_finite() || from < 2.0 {
            assert!(first <= 1.05 * best, "{name}");
        }
        // A piece that runs cannot be taken back: what the slow processor has is done slowly.
        assert!(first <= 0.9 * even.max(1.2 * best) && second <= 0.9 * even.max(1.2 * best), "{name}");
    }
}

/// Processes that stay, whose pieces cost a message of 0.2 ms: against the best queue, chosen afterwards for
/// each row.
#[test]
fn processes_that_stay_are_near_the_best_queue() {
    let message = |job: &Job| OnePassOptions { message: Some(2e-4), ..nothing(job) };
    for speeds in [&[1.0, 1.0][..], &[3.0, 1.0], &[4.0, 2.0, 1.0, 1.0], &[1.0; 16]] {
        for work in [0.05, 0.5, 5.0, 30.0] {
            for kind in [Kind::Alike, Kind::Ramp, Kind::Heavy] {
                let row = Row::new(speeds, 2e-4, work, kind);
                let best =
                    (0..8).map(|k| row.rival(&Rule::Queue(1 << k))).fold(row.jobs[0].alone(), f64::min);
                let ours = row.ours(message);
                // Learning costs some messages, which matters for work of milliseconds.
                assert!(ours <= 1.05 * best + 5.0 * 2e-4, "{}: {ours} of {best}", row.name);
            }
        }
    }
}

/// A process's first unit also imports. It may take thousands of times as long as those that follow.
#[test]
fn a_trial_of_processes_that_stay_says_little() {
    let mut policy = OnePass::new(
        &[0..6000],
        OnePassOptions { processors: 2, message: Some(2e-4), ..OnePassOptions::default() },
    )
    .unwrap();
    assert_eq!((policy.next(0, 0.0), policy.next(1, 0.0)), (Order::Run(0..1), Order::Run(1..2)));
    // By the trial alone, the first would be done in 15,000 s; it shows what follows after eight units.
    policy.ended(0, 5.0);
    assert_eq!(policy.next(0, 5.0), Order::Run(2..10));
    policy.ended(0, 5.008);
    // Then the second, whose trial took longer, is believed to become faster as well.
    let Order::Run(piece) = policy.next(0, 5.008) else { panic!("no piece") };
    policy.ended(1, 5.01);
    assert_eq!(policy.next(1, 5.01), Order::Run(piece.end..piece.end + 8));
    assert!(policy.expected_end(5.01).is_some_and(|end| (7.0..10.0).contains(&end)));
    let wrong = OnePassOptions { processors: 1, message: Some(f64::NAN), ..OnePassOptions::default() };
    assert!(OnePass::new(&[0..1], wrong).unwrap_err().to_string().contains("`message`"));
}

/// Where start-up is longer than all the work, the second processor gets its first piece and no more.
#[test]
fn a_processor_that_does_not_pay_is_left_out_early() {
    let mut policy =
        OnePass::new(&[0..1000], OnePassOptions { processors: 2, ..OnePassOptions::default() }).unwrap();
    let seconds = |p: usize, units: f64| [0.1 + 0.001 * units, 3.0 + 0.05 * units][p];
    let mut ends = [0.0, 0.0];
    let mut pieces = [0, 0];
    while policy.remaining() > 0 {
        let p = if ends[0] <= ends[1] { 0 } else { 1 };
        let now: f64 = ends[p];
        policy.ended(p, now);
        match policy.next(p, now) {
            Order::Run(units) => {
                pieces[p] += 1;
                ends[p] = now + seconds(p, (units.end - units.start) as f64);
            }
            Order::Wait { until } => ends[p] = until.max(now + 0.01),
            Order::Leave => ends[p] = f64::INFINITY,
        }
    }
    assert_eq!(pieces[1], 1);
    assert!(pieces[0] <= 12, "{pieces:?}");
}

/// Whatever the times, failures and losses: units are handed out one by one exactly as often as their pieces failed, and
/// once more; and processors that ask until they may leave are never stuck.
#[test]
fn every_unit_is_run_exactly_once() {
    let mut random = Random::new(11);
    for round in 0..400 {
        let processors = 1 + random.below(6);
        let units = [0, 1, 2, 7, 60, 3000][random.below(6)] as u64;
        let cost = |random: &mut Random| [0.0, 0.0, 1.0, 3.0, 1e6 * random.unit()][random.below(5)];
        let costs = (random.below(2) == 0).then(|| (0..units).map(|_| cost(&mut random)).collect());
        let hints = (random.below(2) == 0).then(|| (0..processors).map(|_| 0.1 + random.unit()).collect());
        let line = |random: &mut Random| Line { start_up: random.unit(), per_unit: 1e-3 + random.unit() };
        let lines = (random.below(2) == 0)
            .then(|| (0..processors).map(|_| (random.below(3) > 0).then(|| line(&mut random))).collect());
        let fixed = random.below(3) == 0;
        let message = (random.below(3) == 0).then(|| 0.1 * random.unit());
        let options = OnePassOptions { processors, hints, lines, costs, fixed, message };
        // Every third round resumes: some ranges are done.
        let middle = units / 2;
        let remaining = if round % 3 == 0 { vec![middle..units, 0..units / 4] } else { vec![0..units] };
        let mut wanted: Vec<u64> = remaining.iter().cloned().flatten().collect();
        wanted.sort_unstable();
        let mut policy = OnePass::new(&remaining, options).unwrap();
        let mut done = Vec::new();
        let mut ends = vec![0.0; processors];
        let mut running: Vec<Option<Range<u64>>> = vec![None; processors];
        let mut lost = 0;
        let mut steps = 0;
        while let Some(p) = (0..processors)
            .filter(|&p| ends[p] < f64::INFINITY)
            .min_by(|&p, &q| f64::total_cmp(&ends[p], &ends[q]))
        {
            let now = ends[p];
            steps += 1;
            assert!(
                steps < 100_000,
                "{round}: stuck with {} units, {ends:?} {running:?} {policy:?}",
                policy.remaining()
            );
            if let Some(range) = running[p].take() {
                match random.below(8) {
                    0 => policy.failed(p, now, true),
                    1 if lost + 1 < processors => {
                        policy.failed(p, now, true);
                        policy.lost(p);
                        lost += 1;
                    }
                    _ => {
                        policy.ended(p, now);
                        done.extend(range);
                    }
                }
                (0..processors).filter(|&q| running[q].is_none()).for_each(|q| ends[q] = now);
            }
            assert!(policy.expected_end(now).is_none_or(|end| end >= now), "{round}");
            match policy.next(p, now) {
                Order::Run(range) => {
                    assert!(range.start < range.end);
                    running[p] = Some(range);
                    ends[p] = now + [0.0, 1e-3, random.unit(), 100.0 * random.unit()][random.below(4)];
                }
                Order::Wait { until } => {
                    assert!(until >= now, "{until} {now}");
                    ends[p] = until.max(now + 1e-6);
                }
                Order::Leave => ends[p] = f64::INFINITY,
            }
        }
        done.sort_unstable();
        assert_eq!(done, wanted, "round {round}");
    }
}

/// Runs of 2^53 units, and of as many as there can be, in seconds that are exact or not.
#[test]
fn huge_ranges_are_divided() {
    for units in [1 << 53, u64::MAX] {
        let mut policy =
            OnePass::new(&[0..units], OnePassOptions { processors: 3, ..OnePassOptions::default() }).unwrap();
        let (mut at, mut now) = (0, 0.0);
        let mut turns = 0;
        while policy.remaining() > 0 {
            for p in 0..3 {
                if let Order::Run(range) = policy.next(p, now) {
                    assert_eq!(range.start, at);
                    at = range.end;
                    turns += 1;
                }
            }
            now += 1.0;
            (0..3).for_each(|p| policy.ended(p, now));
        }
        assert_eq!(at, units);
        assert!(turns < 10_000, "{turns}");
    }
}

#[test]
fn a_given_up_piece_is_not_run_again() {
    let options = OnePassOptions { processors: 2, ..OnePassOptions::default() };
    let mut policy = OnePass::new(&[0..100], options).unwrap();
    let Order::Run(first) = policy.next(0, 0.0) else { panic!("no piece") };
    policy.failed(0, 1.0, false);
    assert_eq!(policy.remaining(), 100 - (first.end - first.start));
    let Order::Run(second) = policy.next(0, 1.0) else { panic!("no piece") };
    assert_eq!(second.start, first.end);
    policy.failed(0, 2.0, true);
    assert_eq!(policy.next(1, 2.0), Order::Run(second));
}

#[test]
fn one_processor_takes_all() {
    let options = OnePassOptions { processors: 1, ..OnePassOptions::default() };
    let mut policy = OnePass::new(&[0..100], options).unwrap();
    assert_eq!(policy.next(0, 0.0), Order::Run(0..100));
    policy.ended(0, 4.0);
    assert_eq!(policy.next(0, 4.0), Order::Leave);
    let estimate = policy.estimate(0).unwrap();
    assert_eq!(estimate.pieces, 1);
    assert!((estimate.line.start_up + 100.0 * estimate.line.per_unit - 4.0).abs() < 0.5, "{estimate:?}");
}

/// Shares by hand: 0.5 + n / 100 = 1 + m / 50 with n + m = 250 gives n = 183.3.
#[test]
fn fixed_parts_end_together() {
    let line = |start_up: f64, per_unit: f64| Some(Line { start_up, per_unit });
    let lines = Some(vec![line(0.5, 0.01), line(1.0, 0.02), line(100.0, 0.01)]);
    let options = OnePassOptions { processors: 3, lines, fixed: true, ..OnePassOptions::default() };
    let mut policy = OnePass::new(&[0..250], options).unwrap();
    assert!((policy.ideal().unwrap().seconds - 2.3333).abs() < 1e-3);
    assert!((policy.alone(1).unwrap().seconds - 6.0).abs() < 1e-3);
    assert!((policy.even_split().unwrap().seconds - 100.8333).abs() < 1e-3);
    assert_eq!(policy.fastest_alone(), Some(0));
    assert_eq!(policy.next(0, 0.0), Order::Run(0..183));
    assert_eq!(policy.next(1, 0.0), Order::Run(183..250));
    assert!(matches!(policy.next(2, 0.0), Order::Wait { .. }));
    assert!(policy.expected_end(1.0).is_some_and(|end| (end - 2.34).abs() < 0.02));
}

#[test]
fn wrong_options_are_refused() {
    let refused = |remaining: &[Range<u64>], options: OnePassOptions| {
        OnePass::new(remaining, options).unwrap_err().to_string()
    };
    let two = || OnePassOptions { processors: 2, ..OnePassOptions::default() };
    assert!(refused(&[0..1], OnePassOptions::default()).contains("`processors`"));
    assert!(refused(&[0..5, 4..6], two()).contains("0..5 and 4..6 overlap"));
    assert!(
        refused(&[0..1], OnePassOptions { hints: Some(vec![1.0]), ..two() }).contains("1 for 2 processors")
    );
    assert!(refused(&[0..1], OnePassOptions { hints: Some(vec![1.0, f64::NAN]), ..two() }).contains("NaN"));
    let line = Line { start_up: -1.0, per_unit: 1.0 };
    assert!(
        refused(&[0..1], OnePassOptions { lines: Some(vec![None, Some(line)]), ..two() }).contains("-1 s")
    );
    let costs = |costs: &[f64]| OnePassOptions { costs: Some(costs.into()), ..two() };
    assert!(refused(&[0..3], costs(&[1.0])).contains("1 costs for 3 units"));
    assert!(refused(&[0..2], costs(&[1.0, -1.0])).contains("unit 1 is -1"));
}
