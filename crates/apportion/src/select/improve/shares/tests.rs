//! Against random changes of the shares, on random two-level platforms.

use crate::model::{Machine, Model, WorkUnit};
use crate::plan::Shape;
use crate::plan::shapes::{Method, MethodOptions};
use crate::platform::{Platform, parse_platform};
use crate::random::Random;
use crate::schedule::Flow;
use crate::select::{Choice, PlanOptions, Sizing, areas, forecast, plan_matmul};
use crate::simulate::CostModel;

/// Two clusters of two to three nodes of these speeds, with fast links inside and a slow one between.
pub(in crate::select::improve) fn two_level(random: &mut Random, between: f64, speed: f64) -> Machine {
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
            let conditions = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
            changed = changed.min(forecast(&layout, order, conditions).unwrap().seconds);
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
