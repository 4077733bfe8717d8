//! Simulated loops: unequal, noisy, and changing.

use super::*;
use crate::platform::Emulated;
use crate::random::Random;

/// A loop over emulated processors, each slower by a factor, with noise.
struct Loop {
    processors: Vec<Emulated>,
    slower: Vec<f64>,
    noise: f64,
    random: Random,
}

impl Loop {
    fn new(texts: &[&str]) -> Self {
        let processors: Vec<Emulated> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Self { slower: vec![1.0; processors.len()], processors, noise: 0.0, random: Random::new(7) }
    }

    fn noisy(self, noise: f64, seed: u64) -> Self {
        Self { noise, random: Random::new(seed), ..self }
    }

    /// Times without noise.
    fn times(&self, shares: &[u64]) -> Vec<f64> {
        let of_one = |((p, slower), &share): ((&Emulated, &f64), &u64)| match share {
            0 => 0.0,
            _ => p.seconds(share as f64) * slower,
        };
        self.processors.iter().zip(&self.slower).zip(shares).map(of_one).collect()
    }

    /// (longest - shortest) / shortest without noise.
    fn spread(&self, shares: &[u64]) -> f64 {
        let times: Vec<f64> = self.times(shares).into_iter().filter(|t| *t > 0.0).collect();
        let (least, longest) = times.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &t| (l.min(t), h.max(t)));
        longest / least - 1.0
    }

    /// Longest time without noise over the time that all would need together at the same speeds.
    fn loss(&self, shares: &[u64]) -> f64 {
        let times = self.times(shares);
        let speeds: f64 = shares.iter().zip(&times).map(|(x, t)| *x as f64 / t).sum();
        times.iter().copied().fold(0.0, f64::max) * speeds / shares.iter().sum::<u64>() as f64
    }

    /// One round with noise: roughly normal, the sum of twelve uniform numbers.
    fn round(&mut self, balancer: &mut Balancer) -> Decision {
        let mut times = self.times(balancer.shares());
        for time in &mut times {
            let normal: f64 = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
            *time *= (1.0 + self.noise * normal).max(0.1);
        }
        balancer.observe(&times).unwrap()
    }

    /// Rounds until the shares stay, with at most this loss.
    fn rounds_to(&mut self, balancer: &mut Balancer, loss: f64) -> usize {
        (1..100).find(|_| !self.round(balancer).is_move() && self.loss(balancer.shares()) <= loss).unwrap()
    }

    fn moves(&mut self, balancer: &mut Balancer, rounds: usize) -> usize {
        (0..rounds).filter(|_| self.round(balancer).is_move()).count()
    }
}

const FLAT: [&str; 4] = ["peak 9e4", "peak 4e4", "peak 3e4", "peak 1e4"];

#[test]
fn unequal_processors_are_within_five_percent_after_five_rounds() {
    let loops: [&[&str]; 5] = [
        &FLAT,
        &["peak 3e5", "peak 1e5"],
        // Speeds that depend on the share: caches, start-up, paging.
        &["peak 9e4, knee 2e4 0.8", "peak 4e4", "peak 3e4, ramp 2e3", "peak 1e4"],
        &["peak 9e4, ramp 5e3", "peak 1e4, ramp 1e3"],
        &["peak 1e5, knee 3e4 0.5", "peak 9e4, knee 1e4 0.7", "peak 2e4"],
    ];
    for texts in loops {
        let mut work = Loop::new(texts);
        let mut balancer = Balancer::new(100_000, texts.len()).unwrap().with_warm_up(0);
        for _ in 0..5 {
            work.round(&mut balancer);
        }
        assert!(work.spread(balancer.shares()) <= 0.05, "{texts:?}: {}", work.spread(balancer.shares()));
        assert_eq!(work.moves(&mut balancer, 50), 0, "{texts:?}: it stays there");
    }
}

/// A processor that starts to page beyond the even share: the cliff is approached from both sides.
#[test]
fn a_cliff_is_learnt() {
    let mut work = Loop::new(&["peak 9e4, cliff 5.5e4 0.5", "peak 2e4"]);
    let mut balancer = Balancer::new(100_000, 2).unwrap().with_warm_up(0);
    let took = work.rounds_to(&mut balancer, 1.02);
    assert!(took <= 8, "{took} rounds");
}

/// Constant speeds by hand: 100,000 units at 9 : 4 : 3 : 1.
#[test]
fn constant_speeds_take_one_change() {
    let mut work = Loop::new(&FLAT);
    let mut balancer = Balancer::new(170_000, 4).unwrap().with_warm_up(0);
    let decision = work.round(&mut balancer);
    assert_eq!(decision.shares, [90_000, 40_000, 30_000, 10_000]);
    assert_eq!(decision.offsets, [0, 90_000, 130_000, 160_000, 170_000]);
    // 42,500 units at 1e4 a second took 4.25 s; 1 s is left.
    assert!((decision.gain - 3.25).abs() < 1e-9, "{}", decision.gain);
    assert!((decision.spread - 8.0).abs() < 1e-9, "{}", decision.spread);
    // The first keeps its 42,500, the last its final 10,000; the ranges of the others do not overlap.
    assert_eq!(decision.moved, 117_500);
    assert_eq!(work.round(&mut balancer).reason, Reason::Balanced);
}

#[test]
fn noise_of_ten_percent_does_not_make_shares_oscillate() {
    for (texts, seeds) in
        [(&FLAT[..], 0..12), (&["peak 9e4", "peak 8e4"], 40..52), (&["peak 5e4"; 16], 80..86)]
    {
        for seed in seeds {
            let mut work = Loop::new(texts).noisy(0.1, seed);
            let mut balancer = Balancer::new(100_000, texts.len()).unwrap().with_warm_up(0);
            let early = work.moves(&mut balancer, 60);
            assert!(early <= 6, "{texts:?} {seed}: {early} changes");
            let settled = balancer.shares().to_vec();
            let late = work.moves(&mut balancer, 300);
            assert!(late <= 3, "{texts:?} {seed}: {late} changes");
            let gone: u64 = settled.iter().zip(balancer.shares()).map(|(a, b)| a.abs_diff(*b)).sum();
            assert!(gone <= 20_000, "{texts:?} {seed}: {settled:?} {:?}", balancer.shares());
            assert!(work.loss(balancer.shares()) < 1.15, "{seed}: {}", work.loss(balancer.shares()));
            let noise = balancer.noise().unwrap();
            assert!((0.04..0.2).contains(&noise), "{noise}");
        }
    }
}

#[test]
fn a_processor_that_becomes_slower_or_faster_is_followed() {
    for (noise, loss, rounds) in [(0.0, 1.01, 3), (0.02, 1.05, 6), (0.1, 1.2, 20)] {
        for seed in 0..8 {
            let mut work = Loop::new(&FLAT).noisy(noise, seed);
            let mut balancer = Balancer::new(100_000, 4).unwrap().with_warm_up(0);
            work.moves(&mut balancer, 40);
            for slower in [3.0, 1.0] {
                work.slower[0] = slower;
                let took = work.rounds_to(&mut balancer, loss);
                assert!(took <= rounds, "noise {noise}, seed {seed}, {slower}: {took} rounds");
            }
        }
    }
}

/// A single slow round, as another process may cause it, moves nothing.
#[test]
fn one_disturbed_round_is_ignored() {
    let mut work = Loop::new(&FLAT).noisy(0.02, 3);
    let mut balancer = Balancer::new(100_000, 4).unwrap().with_warm_up(0);
    work.moves(&mut balancer, 20);
    let shares = balancer.shares().to_vec();
    work.slower[2] = 10.0;
    work.round(&mut balancer);
    work.slower[2] = 1.0;
    assert_eq!(work.moves(&mut balancer, 20), 0);
    assert_eq!(balancer.shares(), shares);
}

#[test]
fn equal_times_give_equal_states_bit_for_bit_and_texts_hold_them() {
    let mut work = Loop::new(&["peak 9e4, knee 2e4 0.8", "peak 4e4", "peak 3e4, ramp 2e3"]).noisy(0.1, 5);
    let mut one = Balancer::new(99_991, 3).unwrap().with_warm_up(0);
    let mut restored = one.clone();
    for round in 0..80 {
        work.slower[1] = if round < 40 { 1.0 } else { 2.0 };
        let times: Vec<f64> =
            work.times(one.shares()).into_iter().map(|t| t * (1.0 + 0.1 * work.random.unit())).collect();
        // The other one is written and read after every round.
        restored = Balancer::from_json(&restored.to_json()).unwrap();
        assert_eq!(one.observe(&times).unwrap(), restored.observe(&times).unwrap());
        assert_eq!(one, restored);
        assert_eq!(one.to_json(), restored.to_json());
    }
    assert_eq!(one.rounds(), 80);
}

#[test]
fn a_changed_text_is_refused() {
    let mut balancer = Balancer::new(10, 2).unwrap().with_warm_up(0);
    balancer.observe(&[1.0, 2.0]).unwrap();
    let text = balancer.to_json();
    for (from, to) in [
        ("apportion-balancer", "other"),
        ("\"units\":10", "\"units\":11"),
        ("\"version\":2", "\"version\":1"),
        ("\"tolerance\":0.05", "\"tolerance\":-1"),
        ("\"seconds\":1.0", "\"seconds\":-1.0"),
        ("\"seconds\":1.0", "\"seconds\":1e300"),
        ("\"rounds\":1", "\"round\":1"),
        ("{", ""),
    ] {
        assert!(text.contains(from), "{text}");
        let error = Balancer::from_json(&text.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

/// Numbers of a text that no loop reaches are taken as they are.
#[test]
fn an_extreme_text_goes_on() {
    let text = Balancer::new(10, 2).unwrap().with_warm_up(0).to_json();
    let text = text.replace("\"failed\":0", &format!("\"failed\":{}", u32::MAX));
    let mut balancer = Balancer::from_json(&text).unwrap();
    for _ in 0..9 {
        balancer.observe(&[1.0, 9.0]).unwrap();
    }
    assert!(text.contains("4294967295") && balancer.shares()[0] > balancer.shares()[1]);
}

#[test]
fn moving_must_be_earned() {
    // Speeds of 100 and 50 units a second.
    let times = |shares: &[u64]| vec![shares[0] as f64 / 100.0, shares[1] as f64 / 50.0];
    let with = |per_unit: f64, rounds: f64| {
        let cost = MovingCost { per_change: 0.5, per_unit, rounds };
        let mut balancer = Balancer::new(300, 2).unwrap().with_warm_up(0).with_moving_cost(cost).unwrap();
        balancer.observe(&times(&[150, 150])).unwrap()
    };
    // 3 s become 2 s by moving 50 units: 0.5 + 50 * 0.1 = 5.5 s are earned in 6 rounds, not in 5.
    let decision = with(0.1, 5.0);
    assert_eq!((decision.reason, decision.moved), (Reason::MovingCost, 0));
    assert!((decision.cost - 5.5).abs() < 1e-12 && (decision.gain - 1.0).abs() < 1e-12);
    let decision = with(0.1, 6.0);
    assert_eq!((decision.reason, decision.moved), (Reason::Faster, 50));
    assert!(with(1e6, f64::INFINITY).is_move());
}

#[test]
fn small_savings_are_left_alone() {
    let mut balancer = Balancer::new(1000, 2).unwrap().with_warm_up(0).with_hysteresis(0.2).unwrap();
    // 1.2 and 1.0 s: 1.09 s at best, 9 % less.
    assert_eq!(balancer.observe(&[1.2, 1.0]).unwrap().reason, Reason::SmallGain);
    assert_eq!(balancer.shares(), [500, 500]);
    let mut balancer = balancer.clone().with_hysteresis(0.0).unwrap();
    assert!(balancer.observe(&[1.2, 1.0]).unwrap().is_move());
}

#[test]
fn limits_hold_in_every_round() {
    let blocks = Limits { least: 64, most: Some(6400), multiple_of: 64 };
    let mut work = Loop::new(&["peak 9e4", "peak 1e4", "peak 10"]);
    let mut balancer = Balancer::new(12_800, 3).unwrap().with_warm_up(0).with_limits(&[blocks; 3]).unwrap();
    for _ in 0..5 {
        work.round(&mut balancer);
        assert!(
            balancer.shares().iter().all(|x| x % 64 == 0 && (64..=6400).contains(x)),
            "{:?}",
            balancer.shares()
        );
    }
    assert_eq!(balancer.shares(), [6400, 6336, 64]);
    let error = Balancer::new(100, 3).unwrap().with_warm_up(0).with_limits(&[blocks; 3]).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert_eq!(
        Balancer::new(100, 3).unwrap().with_warm_up(0).with_limits(&[blocks; 2]).unwrap_err().exit_code(),
        2
    );
}

#[test]
fn it_starts_from_speeds_and_models() {
    let balancer =
        Balancer::new(1700, 4).unwrap().with_warm_up(0).with_speeds(&[9.0, 4.0, 3.0, 1.0]).unwrap();
    assert_eq!(balancer.shares(), [900, 400, 300, 100]);
    assert!(balancer.models().unwrap().iter().all(Model::is_ratio));
    // Right ratios: the first round is balanced, in whatever unit.
    let mut work = Loop::new(&FLAT);
    let mut right = balancer.clone();
    assert_eq!(work.round(&mut right).reason, Reason::Balanced);
    assert!((right.models().unwrap()[0].speed(900.0) / 9e4 - 1.0).abs() < 1e-9);
    // Wrong ratios: the first round corrects them.
    let mut wrong =
        Balancer::new(1700, 4).unwrap().with_warm_up(0).with_speeds(&[1.0, 1.0, 1.0, 5.0]).unwrap();
    assert!(work.round(&mut wrong).is_move());
    assert_eq!(wrong.shares(), [900, 400, 300, 100]);
    // Ratios that leave a processor without units settle in the unit of the others.
    let mut none = Balancer::new(10, 2).unwrap().with_warm_up(0).with_speeds(&[1e6, 1.0]).unwrap();
    assert_eq!(none.shares(), [10, 0]);
    assert_eq!(none.observe(&[5.0, 0.0]).unwrap().reason, Reason::NothingBetter);
    let stopped = Balancer::new(10, 2).unwrap().with_warm_up(0).with_speeds(&[1.0, 0.0]).unwrap();
    assert_eq!(stopped.shares(), [10, 0]);
    for bad in [&[1.0][..], &[1.0, -1.0], &[1.0, f64::NAN]] {
        assert_eq!(
            Balancer::new(10, 2).unwrap().with_warm_up(0).with_speeds(bad).unwrap_err().exit_code(),
            2
        );
    }
    let models = [9e4, 1e4].map(|s| Model::constant("p", s).unwrap().with_cap(800.0).unwrap());
    let balancer = Balancer::new(1000, 2).unwrap().with_warm_up(0).with_models(&models).unwrap();
    assert_eq!(balancer.shares(), [800, 200], "caps hold");
    let least = Limits { least: 300, ..Limits::default() };
    let balancer = balancer.with_limits(&[Limits::default(), least]).unwrap();
    assert_eq!(balancer.shares(), [700, 300], "in any order of the calls");
}

#[test]
fn warm_up_rounds_are_not_used() {
    let mut balancer = Balancer::new(100, 2).unwrap().with_warm_up(2);
    for _ in 0..2 {
        assert_eq!(balancer.observe(&[9.0, 1.0]).unwrap().reason, Reason::WarmingUp);
    }
    assert!(balancer.models().is_err());
    assert_eq!(balancer.observe(&[1.0, 1.0]).unwrap().reason, Reason::Balanced);
}

#[test]
fn other_shares_may_be_adopted() {
    let mut work = Loop::new(&FLAT);
    let mut balancer = Balancer::new(1700, 4).unwrap().with_warm_up(0);
    work.round(&mut balancer);
    balancer.adopt(&[800, 500, 300, 100]).unwrap();
    assert_eq!(balancer.offsets(), [0, 800, 1300, 1600, 1700]);
    work.moves(&mut balancer, 5);
    assert_eq!(balancer.shares(), [900, 400, 300, 100]);
    assert_eq!(balancer.adopt(&[1700]).unwrap_err().exit_code(), 2);
    assert_eq!(balancer.adopt(&[u64::MAX, 1701, 0, 0]).unwrap_err().exit_code(), 2);
}

#[test]
fn awkward_input() {
    for (units, processors) in [(0, 2), (2, 0), (u64::MAX, 2), (2, usize::MAX)] {
        assert_eq!(Balancer::new(units, processors).unwrap_err().exit_code(), 2);
    }
    let new = || Balancer::new(2, 3).unwrap().with_warm_up(0);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(new().with_tolerance(bad).unwrap_err().exit_code(), 2);
    }
    assert!(new().with_hysteresis(1.0).is_err() && new().with_hysteresis(f64::NAN).is_err());
    let mut balancer = new();
    assert_eq!(balancer.shares(), [1, 1, 0]);
    let before = balancer.clone();
    for bad in [&[1.0][..], &[1.0, 0.0, 0.0], &[f64::NAN, 1.0, 1.0], &[1e300, 1.0, 1.0]] {
        assert_eq!(balancer.observe(bad).unwrap_err().exit_code(), 2);
    }
    assert_eq!(balancer, before, "a refused round leaves no trace");
    // The third is tried in place of the slow one.
    assert_eq!(balancer.observe(&[1.0, 9.0, f64::NAN]).unwrap().shares, [1, 0, 1]);
    let mut alone = Balancer::new(5, 1).unwrap().with_warm_up(0);
    assert_eq!(alone.observe(&[3.0]).unwrap().reason, Reason::Balanced);
}
