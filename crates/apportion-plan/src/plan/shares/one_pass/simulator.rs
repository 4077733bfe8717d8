//! A clock for policies: unequal, noisy and disturbed processors, and the rules of the literature.
//!
//! Sources: Polychronopoulos and Kuck 1987 (guided self-scheduling), Hummel, Schonberg and Flynn 1992
//! (factoring), Hummel, Schmidt, Uma and Wein 1996 (weighted factoring), Banicescu and Liu 2000 (adaptive factoring),
//! Banicescu, Velusamy and Devaprasad 2003 (adaptive weighted factoring).

use super::{OnePass, Order};
use crate::random::Random;
use std::ops::Range;

/// A processor as it is, which no policy sees.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    pub start_up: f64,
    pub speed: f64,
    /// Between these times the processor takes `slower` times longer.
    pub disturbed: Range<f64>,
    pub slower: f64,
}

impl Truth {
    pub(crate) fn new(start_up: f64, speed: f64) -> Self {
        Self { start_up, speed, disturbed: f64::INFINITY..f64::INFINITY, slower: 1.0 }
    }

    /// The processor takes `slower` times longer from `from` to `to`.
    pub(crate) fn disturbed(self, disturbed: Range<f64>, slower: f64) -> Self {
        Self { disturbed, slower, ..self }
    }

    /// When work of `seconds` of its own time that starts at `now` ends.
    fn end(&self, now: f64, seconds: f64) -> f64 {
        let before = (self.disturbed.start - now).clamp(0.0, seconds);
        let left = seconds - before;
        let from = now + before;
        if left <= 0.0 || from >= self.disturbed.end {
            return from + left;
        }
        let slowly = left.min((self.disturbed.end - from) / self.slower);
        from + slowly * self.slower + (left - slowly)
    }
}

/// Work on processors.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub truths: Vec<Truth>,
    /// Seconds before each unit, and of all, at speed 1.
    pub before: Vec<f64>,
    pub noise: f64,
}

/// What the units cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// The same.
    Alike,
    /// From 0.2 to 1.8 of the mean.
    Ramp,
    /// By a Pareto distribution of exponent 1.5, whose variance is infinite.
    Heavy,
}

impl Job {
    /// 2,000 units, with a noise of 3 %, that the fastest processor does in `work` seconds.
    pub(crate) fn new(kind: Kind, work: f64, truths: Vec<Truth>, seed: u64) -> Self {
        let units = 2000;
        let mut random = Random::new(seed);
        let costs: Vec<f64> = (0..units)
            .map(|i| match kind {
                Kind::Alike => 1.0,
                Kind::Ramp => 0.2 + 1.6 * i as f64 / units as f64,
                Kind::Heavy => (1.0 - random.unit()).powf(-1.0 / 1.5),
            })
            .collect();
        let fastest = truths.iter().fold(0.0_f64, |most, truth| most.max(truth.speed));
        let scale = work * fastest / costs.iter().sum::<f64>();
        let mut before = vec![0.0];
        for cost in costs {
            before.push(before[before.len() - 1] + cost * scale);
        }
        Self { truths, before, noise: 0.03 }
    }

    pub(crate) fn units(&self) -> u64 {
        self.before.len() as u64 - 1
    }

    pub(crate) fn work(&self) -> f64 {
        self.before[self.before.len() - 1]
    }

    /// The time of one piece on the fastest alone.
    pub(crate) fn alone(&self) -> f64 {
        self.truths.iter().map(|t| t.start_up + self.work() / t.speed).fold(f64::INFINITY, f64::min)
    }

    /// The time of one piece for each, or none, that all end together, without noise.
    pub(crate) fn ideal(&self) -> f64 {
        let (mut low, mut high) = (0.0, self.alone());
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let done: f64 = self.truths.iter().map(|t| (middle - t.start_up).max(0.0) * t.speed).sum();
            *(if done < self.work() { &mut low } else { &mut high }) = middle;
        }
        high
    }

    /// The time until the last unit is done.
    pub(crate) fn seconds(&self, policy: &mut dyn Policy, seed: u64) -> f64 {
        let mut random = Random::new(seed);
        let p = self.truths.len();
        // When each asks next, and whether a piece of it ends then.
        let mut asks = vec![0.0; p];
        let mut runs = vec![false; p];
        let mut last = 0.0;
        let mut at = 0;
        while let Some(i) =
            (0..p).filter(|&i| asks[i] < f64::INFINITY).min_by(|&i, &j| f64::total_cmp(&asks[i], &asks[j]))
        {
            let now = asks[i];
            if runs[i] {
                runs[i] = false;
                policy.ended(i, now);
                last = now;
                // Those that wait are asked again, after the one whose piece ended.
                (0..p).filter(|&j| j != i && !runs[j]).for_each(|j| asks[j] = now);
            }
            match policy.next(i, now) {
                Step::Run(units) => {
                    let to = (at + units).min(self.units());
                    let work = self.before[to as usize] - self.before[at as usize];
                    let truth = &self.truths[i];
                    let normal: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
                    let seconds =
                        (truth.start_up + work / truth.speed) * (1.0 + self.noise * normal).max(0.1);
                    asks[i] = truth.end(now, seconds);
                    runs[i] = true;
                    at = to;
                }
                Step::Wait(until) => asks[i] = until.max(now + 1e-3),
                Step::Leave => asks[i] = f64::INFINITY,
            }
        }
        assert_eq!(at, self.units(), "all are run");
        last
    }
}

/// What a free processor does.
pub(crate) enum Step {
    Run(u64),
    Wait(f64),
    Leave,
}

pub(crate) trait Policy {
    fn next(&mut self, processor: usize, now: f64) -> Step;
    fn ended(&mut self, processor: usize, now: f64);
}

impl Policy for OnePass {
    fn next(&mut self, processor: usize, now: f64) -> Step {
        match OnePass::next(self, processor, now) {
            Order::Run(range) => Step::Run(range.end - range.start),
            Order::Wait { until } => Step::Wait(until),
            Order::Leave => Step::Leave,
        }
    }

    fn ended(&mut self, processor: usize, now: f64) {
        OnePass::ended(self, processor, now);
    }
}

/// How the literature sizes pieces.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rule {
    /// This many equal pieces for each processor; 1 is the even split.
    Queue(u64),
    /// Guided self-scheduling: what is left by the number of processors.
    Guided,
    /// Factoring: batches of half of what is left, in equal pieces.
    Factoring,
    /// Factoring with pieces by known speeds.
    Weighted(Vec<f64>),
    /// Factoring with pieces by the speeds that the pieces so far have shown.
    AdaptiveWeighted,
    /// Adaptive factoring: by mean and variance of the times of units.
    Adaptive,
}

/// The pieces of a processor, added up.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    pieces: f64,
    units: f64,
    seconds: f64,
    /// Of the times of a unit, one for each piece.
    squares: f64,
}

impl Seen {
    fn mean(&self) -> f64 {
        self.seconds / self.units
    }

    /// The variance of the time of a unit: pieces average many.
    fn variance(&self) -> f64 {
        (self.squares / self.pieces - self.mean().powi(2)).max(0.0) * self.units / self.pieces
    }
}

/// One of the rules at work.
pub(crate) struct Rival {
    rule: Rule,
    units: u64,
    left: u64,
    batch: f64,
    of_batch: u64,
    running: Vec<Option<(u64, f64)>>,
    seen: Vec<Seen>,
}

impl Rival {
    pub(crate) fn new(rule: Rule, units: u64, processors: usize) -> Self {
        Self {
            rule,
            units,
            left: units,
            batch: 0.0,
            of_batch: 0,
            running: vec![None; processors],
            seen: vec![Seen::default(); processors],
        }
    }

    fn batch(&mut self, weight: f64) -> f64 {
        if self.of_batch == 0 {
            self.of_batch = self.running.len() as u64;
            self.batch = self.left as f64 / 2.0;
        }
        self.of_batch -= 1;
        self.batch * weight
    }

    fn size(&mut self, processor: usize) -> f64 {
        let p = self.running.len() as f64;
        match &self.rule {
            Rule::Queue(pieces) => (self.units as f64 / (p * *pieces as f64)).round(),
            Rule::Guided => self.left as f64 / p,
            Rule::Factoring => self.batch(1.0 / p),
            Rule::Weighted(speeds) => {
                let weight = speeds[processor] / speeds.iter().sum::<f64>();
                self.batch(weight)
            }
            Rule::AdaptiveWeighted => {
                // The first pieces are a tenth: they teach. Processors that have shown nothing are like the others.
                let known: Vec<f64> =
                    self.seen.iter().filter(|s| s.pieces > 0.0).map(|s| 1.0 / s.mean()).collect();
                if known.is_empty() {
                    return 0.1 * self.batch(1.0 / p);
                }
                let mean = known.iter().sum::<f64>() / known.len() as f64;
                let speed = |s: &Seen| if s.pieces > 0.0 { 1.0 / s.mean() } else { mean };
                let weight = speed(&self.seen[processor]) / self.seen.iter().map(speed).sum::<f64>();
                let part = if self.seen[processor].pieces > 0.0 { 1.0 } else { 0.1 };
                part * self.batch(weight)
            }
            Rule::Adaptive => {
                // Processors that have shown fewer than two pieces are like the others.
                let known = || self.seen.iter().filter(|s| s.pieces > 1.0);
                let me = self.seen[processor];
                if me.pieces < 2.0 {
                    return self.units as f64 / (40.0 * p);
                }
                let all = p / known().count() as f64;
                let d: f64 = all * known().map(|s| s.variance() / s.mean()).sum::<f64>();
                let t = (all * known().map(|s| 1.0 / s.mean()).sum::<f64>()).recip();
                let left = self.left as f64;
                (d + 2.0 * t * left - (d * d + 4.0 * d * t * left).sqrt()) / (2.0 * me.mean())
            }
        }
    }
}

impl Policy for Rival {
    fn next(&mut self, processor: usize, now: f64) -> Step {
        if self.left == 0 {
            return Step::Leave;
        }
        let size = self.size(processor);
        let units = (size.ceil() as u64).clamp(1, self.left);
        self.left -= units;
        self.running[processor] = Some((units, now));
        Step::Run(units)
    }

    fn ended(&mut self, processor: usize, now: f64) {
        if let Some((units, started)) = self.running[processor].take() {
            let (units, seconds) = (units as f64, now - started);
            let seen = &mut self.seen[processor];
            seen.pieces += 1.0;
            seen.units += units;
            seen.seconds += seconds;
            seen.squares += (seconds / units).powi(2);
        }
    }
}
