//! The balancer as a search by repeated measurement: what DFPA promises.

use super::*;
use crate::plan::shares::{fpm, makespan};
use crate::platform::Emulated;

fn processors() -> Vec<Emulated> {
    ["peak 2e6, knee 1e5 0.8, cliff 4e6 0.05", "peak 1e6, cliff 6e5 0.02", "peak 4e5, ramp 2e3", "peak 3e5"]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect()
}

fn times(processors: &[Emulated], shares: &[u64], factor: impl Fn(usize) -> f64) -> Vec<f64> {
    processors.iter().zip(shares).enumerate().map(|(i, (p, &x))| p.seconds(x as f64) * factor(i)).collect()
}

fn search(n: u64, tolerance: f64) -> Balancer {
    Balancer::new(n, 4).unwrap().with_tolerance(tolerance).unwrap().searching()
}

/// Rounds until the search ends, and how.
fn run(balancer: &mut Balancer, factor: impl Fn(usize) -> f64) -> (Reason, usize) {
    for round in 1.. {
        let seconds = times(&processors(), balancer.shares(), &factor);
        let decision = balancer.observe(&seconds).unwrap();
        if !decision.is_move() {
            return (decision.reason, round);
        }
        assert!(round < 100);
    }
    unreachable!()
}

/// Shapes from files, heights measured: one round is enough, whereas equal shares need several.
#[test]
fn known_models_save_rounds_even_if_all_are_slower_today() {
    let models: Vec<Model> = processors().iter().map(|p| p.sweep("p", 1e3, 5e6, 2000).unwrap()).collect();
    let fresh = search(3_000_000, 0.05);
    let seeded = fresh.clone().with_models(&models).unwrap();
    assert_eq!(run(&mut seeded.clone(), |_| 1.0), (Reason::Balanced, 1));
    let uneven = |i: usize| [3.0, 1.5, 1.0, 1.0][i];
    let (slow, unseeded) = (run(&mut seeded.clone(), uneven), run(&mut fresh.clone(), uneven));
    assert!(slow.1 <= 3 && slow.1 < unseeded.1, "{slow:?} against {unseeded:?}");
    let capped: Vec<Model> = models.iter().map(|m| m.clone().with_cap(1e5).unwrap()).collect();
    assert_eq!(fresh.clone().with_models(&capped).unwrap_err().exit_code(), 1);
    assert_eq!(fresh.with_models(&models[..2]).unwrap_err().exit_code(), 2);
}

#[test]
fn balance_is_found_without_models() {
    let processors = processors();
    for n in [10_000, 300_000, 2_000_000, 8_000_000] {
        let mut balancer = search(n, 0.03);
        let (reason, rounds) = run(&mut balancer, |_| 1.0);
        assert_eq!(reason, Reason::Balanced, "{n}");
        assert!(rounds <= 15, "{n}: {rounds}");
        assert_eq!(balancer.shares().iter().sum::<u64>(), n);
        let full: Vec<Model> =
            processors.iter().map(|p| p.sweep("p", 1.0, n as f64, 20_000).unwrap()).collect();
        let ideal = makespan(&full, &fpm(&full, n).unwrap());
        let ours = times(&processors, balancer.shares(), |_| 1.0).into_iter().fold(0.0, f64::max);
        assert!(ours <= 1.03 * ideal, "{n}: {ours} against {ideal}");
    }
}

#[test]
fn a_processor_that_slows_down_is_followed() {
    let mut balancer = search(2_000_000, 0.03);
    assert_eq!(run(&mut balancer, |_| 1.0).0, Reason::Balanced);
    let before = balancer.shares()[0];
    let (reason, rounds) = run(&mut balancer, |i| if i == 0 { 3.0 } else { 1.0 });
    assert_eq!(reason, Reason::Balanced);
    assert!(rounds <= 6, "{rounds}");
    assert!(balancer.shares()[0] < before);
}

#[test]
fn a_unit_that_cannot_be_split_ends_the_search() {
    let mut balancer = Balancer::new(2, 3).unwrap().with_tolerance(0.1).unwrap().searching();
    assert_eq!(balancer.shares(), [1, 1, 0]);
    // The third is tried in place of the slow one.
    assert!(balancer.observe(&[1.0, 9.0, 0.0]).unwrap().is_move());
    assert_eq!(balancer.shares(), [1, 0, 1]);
    assert_eq!(balancer.observe(&[1.0, 0.0, 1.5]).unwrap().reason, Reason::NothingBetter);
    assert_eq!(balancer.shares(), [1, 0, 1]);
}
