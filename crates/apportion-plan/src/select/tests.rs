//! The choice among candidates.

use super::balance::ideal_seconds;
use super::*;
use crate::model::{Model, WorkUnit};
use crate::platform::Platform;
use crate::random::Random;

/// A machine of these constant speeds, for the models' pivot block.
fn constant(speeds: &[f64], block: u64) -> Machine {
    let models = speeds.iter().map(|&s| Model::constant("p", s).unwrap()).collect();
    Machine::new(Platform::from_speeds(speeds).unwrap(), models, block)
}

/// All processors, with shares in proportion to their speeds.
fn plain() -> PlanOptions {
    PlanOptions { keep_all: true, sizing: Sizing::Proportional, ..PlanOptions::open(64, 8) }
}

#[test]
fn the_method_follows_ratio_and_network() {
    let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
    for (ratio, duplex, expected) in [
        (9.0, false, "square-corner"),
        (2.5, false, "straight-line"),
        (2.5, true, "square-corner"),
        (1.5, true, "straight-line"),
    ] {
        let mut machine = constant(&[ratio * 1e6, 1e6], 64);
        machine.platform.network = Network::uniform(1e-4, 1e6);
        machine.platform.network.duplex = duplex;
        let options = &PlanOptions { flow: Some(Flow::Bulk), inner_cuts: false, ..plain() };
        let choices = plan_matmul(shape, &machine, options).unwrap();
        // Straight-line and columns give the same layout for two processors.
        let best = &choices[0].plan.method;
        let same = expected == "straight-line" && best == "columns";
        assert!(best == expected || same, "{ratio} {duplex}: {best}");
    }
}

#[test]
fn speeds_without_a_network_are_ranked_by_volume() {
    let shape = Shape::new(100, 100, 100, "test").unwrap();
    let machine = Machine::from_speeds(&[9.0, 1.0]).unwrap();
    let choices = plan_matmul(shape, &machine, &PlanOptions::open(64, 8)).unwrap();
    assert_eq!(choices[0].plan.method, "square-corner");
    assert!(choices.iter().all(|c| c.plan.forecast.is_none()), "ratios give no seconds");
    let relative = choices[0].plan.relative_times.as_ref().unwrap();
    assert_eq!(relative.iter().copied().fold(0.0, f64::max), choices[0].plan.metrics.imbalance);
    // A tenth of 100 x 100 is not the square of a whole number: the tolerance is that deviation, and at most
    // a row of 32.
    let shares = &choices[0].plan.shares;
    let late = (shares[0] as f64 / 9000.0).max(shares[1] as f64 / 1000.0);
    assert!((choices[0].plan.metrics.imbalance - late).abs() < 1e-12 && late <= 1.032, "{shares:?}");
}

/// A hierarchy's open levels optimise the criterion and see the network: no named methods are better.
#[test]
fn open_levels_are_chosen_by_the_objective() {
    let shape = Shape::new(300, 300, 300, "test").unwrap();
    let mut machine = constant(&[8e6, 4e6, 1e6, 1e6], 64);
    for (i, processor) in machine.platform.processors.iter_mut().enumerate() {
        processor.cluster = ["a", "a", "b", "b"][i].to_owned();
    }
    machine.platform.network = Network::uniform(1e-3, 1e6);
    let best = |minimise, levels: [Option<Method>; 2]| {
        let constraints = LayoutConstraints { levels: Some(levels.to_vec()), ..LayoutConstraints::default() };
        let options = PlanOptions { constraints, minimise, flow: Some(Flow::Bulk), ..plain() };
        plan_matmul(shape, &machine, &options).map(|choices| choices[0].clone())
    };
    for minimise in [Minimise::Time, Minimise::Sum, Minimise::Largest, Minimise::Volume] {
        let open = best(minimise, [None, None]).unwrap();
        for above in [Method::Columns, Method::SquareCorner, Method::Rows] {
            for below in [Method::Columns, Method::StraightLine, Method::Rows] {
                let Ok(named) = best(minimise, [Some(above), Some(below)]) else { continue };
                let even = named.plan.metrics.imbalance <= open.plan.metrics.imbalance;
                let worse = named.rank.unwrap() >= open.rank.unwrap() * (1.0 - 1e-9);
                assert!(worse || (minimise != Minimise::Time && !even), "{minimise:?} {}", named.plan.method);
            }
        }
    }
}

#[test]
fn ideal_time_is_work_over_speed() {
    let shape = Shape::new(10, 20, 30, "test").unwrap();
    let rates = constant(&[2.0, 1.0], 10).rates(&[200, 100]);
    assert_eq!(rates, [20.0, 10.0]);
    assert_eq!(ideal_seconds(shape.flops() / 2.0, &rates), 200.0);
}

/// One slow link among three processors: slabs of the inner dimension avoid it although they move more, and
/// `auto` is no slower than the named methods. Found by an independent user.
#[test]
fn auto_is_no_slower_than_inner_cuts_that_avoid_a_slow_link() {
    let text = r#"
        [[processor]]
        name = "n0"
        speed = "900 Mflop/s"
        [[processor]]
        name = "n1"
        speed = "100 Mflop/s"
        [[processor]]
        name = "n2"
        speed = "900 Mflop/s"
        [network]
        latency = "1 us"
        bandwidth = "10 Gbit/s"
        [[network.link]]
        between = ["n0", "n2"]
        bandwidth = "1 MB/s"
        latency = "2 ms"
    "#;
    let platform = crate::platform::parse_platform(text, "test").unwrap();
    let machine = Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap();
    for [m, k, n] in [[1000, 1000, 1000], [300, 300, 300], [100, 200, 1000]] {
        let shape = Shape::new(m, k, n, "test").unwrap();
        let seconds = |method: Option<Method>| {
            let options = PlanOptions { method, ..PlanOptions::open(256, 8) };
            let best = plan_matmul(shape, &machine, &options).unwrap().remove(0);
            best.plan.forecast.unwrap().seconds
        };
        let open = seconds(None);
        for method in [Method::Inner, Method::Boxes, Method::Columns] {
            assert!(open <= seconds(Some(method)) * (1.0 + 1e-9), "{method} on {m} x {k} x {n}");
        }
    }
}

/// Every method with every flow, overlapped or not, and every way to size parts that can be typed: slow, and
/// obviously the least that `auto` has to reach.
fn least_typed(shape: Shape, machine: &Machine) -> (f64, String) {
    let mut least = (f64::INFINITY, String::new());
    for method in Method::all().filter(|&method| method != Method::ColumnGroups) {
        for order in orders(None, 128, false, 1) {
            for sizing in [Sizing::Proportional, Sizing::ByForecast, Sizing::ForOverlap] {
                let (flow, overlap) = (Some(order.flow), order.overlaps());
                let options =
                    PlanOptions { method: Some(method), flow, overlap, sizing, ..PlanOptions::open(128, 8) };
                if sizing == Sizing::ForOverlap && method != Method::SquareCorner {
                    continue;
                }
                let Ok(choices) = plan_matmul(shape, machine, &options) else { continue };
                let seconds = choices[0].plan.forecast.as_ref().unwrap().seconds;
                if seconds < least.0 {
                    least = (seconds, format!("{method}, {order}, {sizing:?}"));
                }
            }
        }
    }
    least
}

/// Within 3 %: the search for shares ends with its budget, and may miss a layout whose best shares are far
/// from those in proportion, as on the first machine.
///
/// Two processors of 5:2 on a slow link of one direction at a time, where a corner for the slow one is best
/// at 6.6:1 only, and three at random.
#[test]
#[ignore = "slow"]
fn auto_is_the_best_that_can_be_typed() {
    let mut random = Random::new(11);
    let mut machines =
        vec![("duplex = false\nbandwidth = \"400 Mbit/s\"\n".to_owned(), vec![5.0, 2.0], [500; 3])];
    for network in ["duplex = false\n", "topology = \"bus\"\n", ""] {
        let speeds: Vec<f64> = (0..2 + random.below(2)).map(|_| 9f64.powf(random.unit())).collect();
        let bandwidth = 1e7 * 100f64.powf(random.unit());
        let network = format!("{network}latency = 1e-5\nbandwidth = {bandwidth}\n");
        let sides = [(); 3].map(|()| 100 + random.below(500) as u64);
        machines.push((network, speeds, sides));
    }
    for (network, speeds, [m, k, n]) in machines {
        let mut text = format!("[network]\n{network}");
        for (i, speed) in speeds.iter().enumerate() {
            text += &format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{speed} Gflop/s\"\n");
        }
        let platform = crate::platform::parse_platform(&text, "test").unwrap();
        let machine = Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap();
        let shape = Shape::new(m, k, n, "test").unwrap();
        let ours = plan_matmul(shape, &machine, &PlanOptions::open(128, 8)).unwrap().remove(0);
        let seconds = ours.plan.forecast.unwrap().seconds;
        let (least, how) = least_typed(shape, &machine);
        assert!(seconds <= least * 1.03, "{} {seconds}, {how} {least}: {text}", ours.plan.method);
    }
}

/// Two to six processors in two clusters on slow links, and a product.
fn random_case(random: &mut Random) -> (Machine, Shape) {
    let p = 2 + random.below(5);
    let first = 1 + random.below(p - 1);
    let mut text = String::new();
    for i in 0..p {
        let (speed, cluster) = ([1, 1, 2, 2, 5, 8][random.below(6)], if i < first { "a" } else { "b" });
        text += &format!(
            "[[processor]]\nname = \"c{i}\"\nspeed = \"{speed} Gflop/s\"\ncluster = \"{cluster}\"\n"
        );
    }
    let latency = [0.02, 0.1, 1.0, 2.0, 5.0][random.below(5)];
    let bandwidth = [40, 80, 160, 400, 1000][random.below(5)];
    text += &format!("[network]\nlatency = \"{latency} ms\"\nbandwidth = \"{bandwidth} Mbit/s\"\n");
    text += &match random.below(4) {
        0 => "topology = \"bus\"\n".to_owned(),
        1 => "topology = \"star\"\ncentre = \"c0\"\n".to_owned(),
        other => format!(
            "duplex = {}\n[[network.link]]\nbetween = [\"a\", \"b\"]\nbandwidth = \"{} Mbit/s\"\n",
            other == 2,
            bandwidth / 2
        ),
    };
    let platform = crate::platform::parse_platform(&text, "test").unwrap();
    let machine = Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap();
    let sides = [(); 3].map(|()| 200 + random.below(1400) as u64);
    let [m, k, n] = if random.below(2) == 0 { [sides[0]; 3] } else { sides };
    (machine, Shape::new(m, k, n, "test").unwrap())
}

fn seconds(shape: Shape, machine: &Machine, options: &PlanOptions) -> f64 {
    plan_matmul(shape, machine, options).map_or(f64::INFINITY, |choices| choices[0].rank.unwrap())
}

/// Where the pivot block is open, no block that could be typed is faster by more than a hundredth, but on one machine in
/// six: there the fastest processor alone is best with large blocks, and a division with small ones.
#[test]
#[ignore = "slow"]
fn the_pivot_block_is_the_best_that_can_be_typed() {
    let mut random = Random::new(5);
    let (mut others, mut missed, mut gained) = (0, Vec::new(), 1.0_f64);
    for _ in 0..6 {
        let (machine, shape) = random_case(&mut random);
        let plain = PlanOptions { sizing: Sizing::Proportional, ..PlanOptions::open(256, 8) };
        let open = PlanOptions { open_block: true, ..plain.clone() };
        let best = plan_matmul(shape, &machine, &open).unwrap().remove(0);
        let ours = best.rank.unwrap();
        others += usize::from(best.order.block != 256);
        let typed = |block: u64| seconds(shape, &machine, &PlanOptions { block, ..plain.clone() });
        let least = [32, 64, 128, 512, 1024, 2048].map(typed).into_iter().fold(f64::INFINITY, f64::min);
        missed.extend((ours > 1.01 * least).then_some(ours / least));
        gained = gained.max(typed(256) / ours);
    }
    assert!(missed.len() <= 1 && missed.iter().all(|ratio| *ratio < 1.03), "{missed:?}");
    assert!(others > 1 && gained > 1.02, "{others} of 6 machines have another block, {gained}");
}

/// Measured speeds are those of their pivot block: smaller ones are slower than that, and are not tried.
#[test]
fn blocks_are_not_smaller_than_that_of_the_speeds() {
    let text =
        "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n[network]\nbandwidth = \"100 Mbit/s\"\n";
    let models = |speed: f64| ["a", "b"].map(|name| Model::constant(name, speed).unwrap()).to_vec();
    let machine = |block: u64| {
        let platform = crate::platform::parse_platform(text, "test").unwrap();
        Machine::new(platform, models(1e9 / block as f64), block)
    };
    let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
    let options = PlanOptions {
        method: Some(Method::Columns),
        flow: Some(Flow::OneToAll),
        overlap: true,
        open_block: true,
        sizing: Sizing::Proportional,
        ..PlanOptions::open(256, 8)
    };
    let block = |machine: &Machine| plan_matmul(shape, machine, &options).unwrap()[0].order.block;
    assert!(block(&machine(1)) < 100);
    assert_eq!(block(&machine(256)), 256);
    // A plan that is given has the block that it was made with.
    let machine = machine(1);
    let plan = plan_matmul(shape, &machine, &options).unwrap().remove(0);
    let again = order_plan(&plan.plan, &machine, &options).unwrap().remove(0);
    assert_eq!((again.order, again.rank), (plan.order, plan.rank));
}

/// By volume, the least of all methods wins whether or not speeds have a unit.
#[test]
fn the_least_volume_wins_for_ratios_too() {
    let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
    for (speeds, least) in [(vec![1.0; 8], 3_000_000), (vec![7.0, 1.0, 1.0, 1.0], 1_500_100)] {
        let platform = Platform::from_speeds(&speeds).unwrap();
        let options = PlanOptions { minimise: Minimise::Volume, ..PlanOptions::open(256, 8) };
        for make in [Model::ratio, Model::constant] {
            let models = speeds.iter().map(|&s| make("p".to_owned(), s).unwrap()).collect();
            let machine = Machine::new(platform.clone(), models, 1);
            let best = plan_matmul(shape, &machine, &options).unwrap().remove(0);
            assert!(best.volume() <= least, "{} {}", best.plan.method, best.volume());
        }
    }
}

/// By every method that serves three processors, the one of speed 0 gets nothing, and the others their
/// shares.
#[test]
fn a_processor_of_speed_0_gets_nothing() {
    let shape = Shape::new(60, 50, 80, "test").unwrap();
    let mut platform = Platform::from_speeds(&[3.0, 0.0, 1.0]).unwrap();
    platform.network = Network::uniform(1e-6, 1e6);
    for method in Method::all().map(Some).chain([None]) {
        for make in [Model::ratio, Model::constant] {
            let models = [3e5, 0.0, 1e5].map(|s| make("p".to_owned(), s).unwrap()).to_vec();
            let machine = Machine::new(platform.clone(), models, 1);
            let options = PlanOptions { method, ..PlanOptions::open(16, 8) };
            let Ok(choices) = plan_matmul(shape, &machine, &options) else {
                let limited = [Method::ColumnGroups, Method::SquareEdge, Method::SquareMiddle];
                assert!(method.is_some_and(|method| limited.contains(&method)), "{method:?}");
                continue;
            };
            let plan = &choices[0].plan;
            assert_eq!(plan.shares[1], 0, "{method:?}");
            assert!(plan.metrics.imbalance < 4.0 && plan.shares.iter().sum::<u64>() == 4800, "{method:?}");
        }
    }
    assert!(Platform::from_speeds(&[0.0, 0.0]).is_err());
}
