//! The search for better plans against every subset, method and flow, against random changes of the shares, and
//! against named levels, on random machines.

use super::slivers::LEAST_GAIN;
use crate::geometry::Rank;
use crate::model::{Machine, Model, WorkUnit};
use crate::plan::shapes::{Method, MethodOptions};
use crate::plan::{LayoutConstraints, Shape};
use crate::platform::{Platform, parse_platform};
use crate::random::Random;
use crate::schedule::Flow;
use crate::select::{Choice, PlanOptions, Sizing, areas, forecast, orders, plan_matmul};
use crate::simulate::CostModel;

/// Two clusters of two to three nodes of these speeds, with fast links inside and a slow one between.
fn two_level(random: &mut Random, between: f64, speed: f64) -> Machine {
    let members = [2 + random.below(2), 2 + random.below(2)];
    let mut text = String::new();
    for (c, count) in members.into_iter().enumerate() {
        for i in 0..count {
            text += &format!("[[processor]]\nname = \"c{c}n{i}\"\ncluster = \"c{c}\"\n");
        }
    }
    text += &format!(
        "[network]\nlatency = 1e-5\nbandwidth = {between}\n[[network.link]]\nbetween = [\"c0\", \"c0\"]\n\
         bandwidth = {}\n[[network.link]]\nbetween = [\"c1\", \"c1\"]\nbandwidth = {}\n",
        10.0 * between,
        10.0 * between
    );
    let platform = parse_platform(&text, "two levels").unwrap();
    let models = platform.names().into_iter();
    let mut model = |name| Model::constant(name, 1e6 * 8f64.powf(random.unit()) * speed).unwrap();
    let models = models.map(&mut model).collect();
    Machine::new(platform, models, 1)
}

/// 200 random changes of the shares in proportion to the speeds do not beat the search, and neither do these
/// shares themselves.
#[test]
fn no_random_change_is_better() {
    let mut random = Random::new(3);
    let shape = Shape::new(600, 600, 600, "test").unwrap();
    let mut gained = 0.0;
    for _ in 0..8 {
        let between = 1e5 * 3f64.powf(random.unit());
        let machine = two_level(&mut random, between, 1.0);
        let options = |sizing| PlanOptions {
            method: Some(Method::Columns),
            flow: Some(Flow::Bulk),
            sizing,
            ..PlanOptions::open(100, 8)
        };
        let best = |sizing| plan_matmul(shape, &machine, &options(sizing)).unwrap()[0].rank.unwrap();
        let (plain, ours) = (best(Sizing::Proportional), best(Sizing::ByForecast));
        assert!(ours <= plain, "{ours} {plain}");
        gained += 1.0 - ours / plain;
        let weights = areas(&machine.models, shape).unwrap();
        let mut changed = f64::INFINITY;
        for draw in 0..200 {
            let spread = [0.05, 0.1, 0.2, 0.4, 0.8][draw % 5];
            let other: Vec<f64> =
                weights.iter().map(|w| w * (spread * (2.0 * random.unit() - 1.0)).exp()).collect();
            let layout = Method::Columns.layout(shape, &other, &MethodOptions::default()).unwrap();
            let order = options(Sizing::Proportional).orders()[0];
            let rates = machine.rates(&layout.shares());
            let cost_model = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
            changed = changed.min(forecast(&layout, order, cost_model).unwrap().seconds);
        }
        assert!(ours <= changed * 1.005, "{ours} with, {plain} without, {changed} at random");
    }
    assert!(gained / 8.0 > 0.02, "{}", gained / 8.0);
}

/// The best plan of a method on a small platform.
fn best(platform: &Platform, method: Method, flow: Option<Flow>) -> Choice {
    let machine = Machine::from_platform(platform.clone(), WorkUnit::MultiplyAdd).unwrap();
    let options = PlanOptions { method: Some(method), flow, ..PlanOptions::open(64, 8) };
    let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
    plan_matmul(shape, &machine, &options).unwrap().swap_remove(0)
}

/// Alone, the fastest of three takes 10^9 / (15 * 10^9) s. Messages of 10 ms cost more than the others save,
/// by every flow and by an open one.
#[test]
fn a_named_method_leaves_out_processors_whose_messages_cost_too_much() {
    let text = "[[processor]]\nname = \"a\"\nspeed = \"30 Gflop/s\"\n[[processor]]\nname = \"b\"\n\
                speed = \"1 Gflop/s\"\n[[processor]]\nname = \"c\"\nspeed = \"9 Gflop/s\"\n\
                [network]\nbandwidth = \"10 Mbit/s\"\nlatency = \"10 ms\"\nduplex = false\n";
    let platform = parse_platform(text, "three").unwrap();
    for flow in Flow::ALL.map(Some).into_iter().chain([None]) {
        let found = best(&platform, Method::Columns, flow);
        assert_eq!(found.plan.shares, [1_000_000, 0, 0], "{flow:?}");
        assert!((found.rank.unwrap() * 15.0 - 1.0).abs() < 1e-6, "{flow:?} {:?}", found.rank);
    }
}

/// The best of every subset, method and flow, in proportion to the speeds: slow and obviously right.
fn brute_force(shape: Shape, machine: &Machine, block: u64) -> f64 {
    let p = machine.processors();
    let mut best = f64::INFINITY;
    for set in 1..1usize << p {
        let subset: Vec<usize> = (0..p).filter(|i| set >> i & 1 == 1).collect();
        let weights = areas(&machine.select(&subset).models, shape).unwrap();
        for method in Method::candidates() {
            let Ok(layout) = method.layout(shape, &weights, &MethodOptions::default()) else { continue };
            let layout = layout.among(&subset, p).unwrap();
            let rates = machine.rates(&layout.shares());
            let cost_model = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
            for order in orders(None, block, false, 1) {
                best = best.min(forecast(&layout, order, cost_model).unwrap().seconds);
            }
        }
    }
    best
}

/// Four nodes, two of them behind a slow link.
fn old_nodes() -> Machine {
    let text = ["new1", "new2", "old1", "old2"]
        .map(|n| format!("[[processor]]\nname = \"{n}\"\nspeed = \"10 Gflop/s\"\n"))
        .concat()
        + "[network]\nlatency = \"50 us\"\nbandwidth = \"10 Gbit/s\"\n"
        + &["old1", "old2"]
            .map(|n| format!("[[network.uplink]]\nof = \"{n}\"\nbandwidth = \"10 Mbit/s\"\n"))
            .concat();
    let platform = parse_platform(&text, "test").unwrap();
    let models = platform.names().into_iter().map(|n| Model::constant(n, 5e9).unwrap()).collect();
    Machine::new(platform, models, 1)
}

#[test]
fn nodes_behind_a_slow_link_stay_out() {
    let machine = old_nodes();
    let shape = Shape::new(20_000, 20_000, 20_000, "test").unwrap();
    let options = PlanOptions { sizing: Sizing::Proportional, ..PlanOptions::open(1000, 8) };
    let best = plan_matmul(shape, &machine, &options).unwrap().remove(0);
    let out = best.left_out.clone().unwrap();
    assert_eq!(out.ranks, [Rank(2), Rank(3)]);
    assert_eq!(best.plan.shares[2..], [0, 0]);
    assert_eq!(best.plan.processors.len(), 4);
    let all = PlanOptions { keep_all: true, ..options };
    let all = plan_matmul(shape, &machine, &all).unwrap().remove(0);
    assert!(all.left_out.is_none() && all.plan.shares.iter().all(|s| *s > 0));
    let saved = all.rank.unwrap() - best.rank.unwrap();
    assert!((out.seconds - saved).abs() < 1e-9 * saved && saved > 0.0, "{} {saved}", out.seconds);
}

/// On seeded platforms of four processors, but for processors that would save less than 2 %.
#[test]
fn no_subset_is_faster() {
    let mut random = Random::new(5);
    let shape = Shape::new(240, 240, 240, "test").unwrap();
    let (mut left, mut cases) = (0, 0);
    for _ in 0..10 {
        let between = 3e2 * 1000f64.powf(random.unit());
        let machine = two_level(&mut random, between, 1.0 / 30.0).select(&[0, 1, 2, 3]);
        let options = PlanOptions { sizing: Sizing::Proportional, ..PlanOptions::open(60, 8) };
        let best = plan_matmul(shape, &machine, &options).unwrap().remove(0);
        let oracle = brute_force(shape, &machine, 60);
        assert!(best.rank.unwrap() <= oracle * (1.0 + LEAST_GAIN), "{:?} {oracle}", best.rank);
        left += usize::from(best.left_out.is_some());
        cases += 1;
    }
    assert!(left > 0 && left < cases, "{left} of {cases} platforms leave processors out");
}

/// Many processors: whole clusters behind slow links are left out, and the result is never slower than the
/// fastest alone or any cluster alone.
#[test]
fn whole_clusters_stay_out() {
    let mut text = String::new();
    for c in 0..4 {
        for i in 0..4 {
            text += &format!("[[processor]]\nname = \"c{c}n{i}\"\ncluster = \"c{c}\"\n");
        }
    }
    text += "[network]\nlatency = 1e-4\nbandwidth = 1e5\n";
    for c in 0..4 {
        text += &format!("[[network.link]]\nbetween = [\"c{c}\", \"c{c}\"]\nbandwidth = 1e9\n");
    }
    let platform = parse_platform(&text, "clusters").unwrap();
    let models =
        (0..16).map(|i| Model::constant(format!("p{i}"), if i < 4 { 4e8 } else { 1e8 }).unwrap()).collect();
    let machine = Machine::new(platform, models, 1);
    let shape = Shape::new(2000, 2000, 2000, "test").unwrap();
    let options = PlanOptions { sizing: Sizing::Proportional, ..PlanOptions::open(500, 8) };
    let best = plan_matmul(shape, &machine, &options).unwrap().remove(0);
    let out: Vec<usize> = best.left_out.unwrap().ranks.iter().map(|rank| rank.0).collect();
    assert_eq!(out, (4..16).collect::<Vec<usize>>());
    assert!(best.rank.unwrap() <= 8e9 / 4e8);
}

/// A processor with more than half of the work is not cut off by a wire that carries what the others need.
/// With shares in proportion the fastest alone is best; with shares by forecast the two fast ones are.
#[test]
fn the_larger_part_of_the_work_is_not_cut_off() {
    let text = "[[processor]]\nname = \"big\"\nspeed = \"900 Mflop/s\"\n[[processor]]\nname = \"small\"\nspeed = \"120 \
        Mflop/s\"\n[[processor]]\nname = \"far\"\nspeed = \"50 Mflop/s\"\n[network]\nbandwidth = 1.2e6\n\
        [[network.uplink]]\nof = \"far\"\nbandwidth = 1e4\n";
    let platform = parse_platform(text, "test").unwrap();
    let speeds = [450e6, 60e6, 25e6];
    let models =
        platform.names().into_iter().zip(speeds).map(|(n, s)| Model::constant(n, s).unwrap()).collect();
    let machine = Machine::new(platform, models, 1);
    let shape = Shape::new(2000, 2000, 2000, "test").unwrap();
    let options = PlanOptions::open(100, 8);
    let best = plan_matmul(shape, &machine, &options).unwrap().remove(0);
    let pair = plan_matmul(shape, &machine.select(&[0, 1]), &options).unwrap().remove(0);
    assert!(pair.rank.unwrap() < 0.95 * 8e9 / 450e6, "{:?}", pair.rank);
    assert!(best.rank.unwrap() <= pair.rank.unwrap() * 1.01, "{:?} {:?}", best.rank, pair.rank);
}

/// Auto is never slower than any named combination of methods for the levels, nor than any method alone.
#[test]
fn no_named_levels_are_faster() {
    let mut random = Random::new(11);
    let shape = Shape::new(240, 240, 240, "test").unwrap();
    let mut by_levels = 0;
    for _ in 0..6 {
        let between = 1e4 * 10f64.powf(random.unit());
        // Slow enough for every combination to be affordable.
        let machine = two_level(&mut random, between, 0.01);
        let plain = PlanOptions { sizing: Sizing::Proportional, ..PlanOptions::open(60, 8) };
        let best = plan_matmul(shape, &machine, &plain).unwrap().remove(0);
        by_levels += usize::from(best.plan.method.contains('/'));
        for above in [Method::Columns, Method::SquareCorner, Method::StraightLine] {
            for below in [Method::Columns, Method::Rows, Method::Recursive] {
                let levels = Some(vec![Some(above), Some(below)]);
                let constraints = LayoutConstraints { levels, ..LayoutConstraints::default() };
                let named = PlanOptions { constraints, ..plain.clone() };
                let Ok(named) = plan_matmul(shape, &machine, &named) else { continue };
                let (ours, theirs) = (best.rank.unwrap(), named[0].rank.unwrap());
                assert!(
                    ours <= theirs * (1.0 + 1e-9),
                    "{} {ours}, {above}/{below} {theirs}",
                    best.plan.method
                );
            }
        }
    }
    assert!(by_levels > 0, "no platform gains by levels");
}
