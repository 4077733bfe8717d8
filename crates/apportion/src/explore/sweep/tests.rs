//! Crossovers of the literature, and laws of any sweep.

use super::*;
use crate::explore::{SweepQuestion, factor_candidates, sweep_candidates};
use crate::platform::Network;
use crate::schedule::Flow;
use crate::select::{orders, plan_factorisation};

fn contenders(methods: &[Method], flow: Option<Flow>) -> Vec<Candidate> {
    methods
        .iter()
        .map(|&m| Candidate {
            name: m.to_string(),
            way: LayoutSource::By(m),
            orders: orders(flow, 1000, false, 1),
        })
        .collect()
}

fn models(speeds: &[f64]) -> Vec<Model> {
    speeds.iter().map(|&s| Model::constant("p", s).unwrap()).collect()
}

fn swept(text: &str, duplex: bool, contenders: &[Candidate]) -> Result<SweepResult> {
    swept_by(None, text, duplex, contenders)
}

fn swept_by(
    sharing: Option<&Fluid>,
    text: &str,
    duplex: bool,
    contenders: &[Candidate],
) -> Result<SweepResult> {
    let mut platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
    platform.network = Network::uniform(0.0, 1e8);
    platform.network.duplex = duplex;
    let shape = Shape::new(1000, 1000, 1000, "t").unwrap();
    let machine = Machine::new(platform, models(&[5e12, 5e12]), 1);
    let setting = SweepSetup { shape, machine: &machine, element: 8, sharing };
    sweep(&setting, contenders, &text.parse().unwrap(), &Monitor::new())
}

/// Becker 2010, Theorems 5.1 and 5.2: a square corner overtakes the straight line at 3:1 where a link carries
/// one transfer at a time, at 2:1 where both directions work at once.
#[test]
fn the_square_corner_overtakes_the_straight_line() {
    for (duplex, crossing) in [(false, 3.0), (true, 2.0)] {
        let both = contenders(&[Method::StraightLine, Method::SquareCorner], Some(Flow::Bulk));
        let found = swept("ratio=1..25", duplex, &both).unwrap();
        assert_eq!(found.points.len(), 25);
        let [one] = found.crossovers[..] else { panic!("{:?}", found.crossovers) };
        assert_eq!((one.from, one.to), (0, 1));
        assert!((one.at - crossing).abs() < 0.02, "{duplex}: {}", one.at);
        // The square's side is a whole number: just at the crossover both take the same time.
        let before = found.points.iter().filter(|p| p.value < crossing - 0.02);
        assert!(before.into_iter().all(|p| p.winner == Some(0)));
    }
}

/// Two messages that share a half-duplex link fairly end at the same time as the later of two in turn: the
/// crossover is the same.
#[test]
fn crossovers_under_fair_sharing() {
    for (duplex, crossing) in [(false, 3.0), (true, 2.0)] {
        let both = contenders(&[Method::StraightLine, Method::SquareCorner], Some(Flow::Bulk));
        let found = swept_by(Some(&Fluid::fair()), "ratio=1..25", duplex, &both).unwrap();
        let [one] = found.crossovers[..] else { panic!("{:?}", found.crossovers) };
        assert!((one.at - crossing).abs() < 0.02, "{duplex}: {}", one.at);
    }
    // Rendezvous: the same bulk exchange, since all processors receive at once.
    let ring = contenders(&[Method::Rows], Some(Flow::Ring));
    let fifo = swept("latency=1us..1s", true, &ring).unwrap();
    let late = swept_by(Some(&Fluid::default()), "latency=1us..1s", true, &ring).unwrap();
    assert_eq!(fifo.points.len(), late.points.len());
    for (a, b) in fifo.points.iter().zip(&late.points) {
        let seconds = |p: &SweepPoint| p.forecasts[0].unwrap().seconds;
        assert!(
            seconds(b) >= seconds(a) * (1.0 - 1e-12),
            "a message that waits for its receiver is no earlier"
        );
    }
}

/// Every winner is the fastest of its row, and winners change exactly at crossovers.
#[test]
fn winners_change_at_crossovers() {
    let all: Vec<Method> = Method::candidates().collect();
    let contenders = contenders(&all, None);
    for text in ["bandwidth=1MB/s..10GB/s", "latency=1us..1s", "processors=1..9"] {
        let found = swept(text, false, &contenders).unwrap();
        for point in &found.points {
            let best = point.forecasts.iter().flatten().map(|f| f.seconds).fold(f64::INFINITY, f64::min);
            let won = point.forecasts[point.winner.unwrap()].unwrap().seconds;
            assert!(won <= best * (1.0 + 1e-12));
        }
        let mut now = found.points[0].winner;
        for pair in found.points.windows(2) {
            for one in found.crossovers.iter().filter(|c| c.at > pair[0].value && c.at <= pair[1].value) {
                assert_eq!(now, Some(one.from), "{text}");
                now = Some(one.to);
            }
            assert_eq!(now, pair[1].winner, "{text}");
        }
    }
}

#[test]
fn what_cannot_be_swept_is_said() {
    let layout =
        Method::Rows.layout(Shape::new(1000, 1000, 1000, "t").unwrap(), &[1.0; 2], &MethodOptions::default());
    let given = [Candidate {
        way: LayoutSource::Given(Box::new(layout.unwrap())),
        ..contenders(&[Method::Rows], None).remove(0)
    }];
    assert_eq!(swept("ratio=1..2", true, &given).unwrap_err().exit_code(), 2);
    assert_eq!(swept("latency=1us..1ms", true, &given).unwrap().points.len(), 13);
    assert_eq!(at_ratio(&models(&[1.0]), 2.0).unwrap_err().exit_code(), 2);
    let three = at_ratio(&models(&[1.0, 1.0, 2.0]), 2.0).unwrap();
    let speeds: Vec<f64> = three.iter().map(|m| m.speed(1.0)).collect();
    assert!((speeds[0] - 2.0).abs() < 1e-12 && (speeds[2] / speeds[1] - 2.0).abs() < 1e-12);
}

#[test]
fn ranges_are_read_and_divided() {
    let sweep: ParameterSweep = "bandwidth=100Mbit/s..10Gbit/s".parse().unwrap();
    assert_eq!((sweep.from, sweep.to), (12.5e6, 1.25e9));
    let three = ParameterSweep { points: Some(3), ..sweep }.values();
    assert!(three.len() == 3 && (three[1] - 125e6).abs() < 1.0, "{three:?}");
    let ratio: ParameterSweep = "ratio=1..25".parse().unwrap();
    assert_eq!(ratio.values().len(), 25);
    let many: ParameterSweep = "processors=2..4096".parse().unwrap();
    let values = many.values();
    assert!(values.iter().all(|v| v.fract() == 0.0) && values.windows(2).all(|w| w[0] < w[1]));
    for bad in [
        "",
        "bandwidth",
        "speed=1..2",
        "ratio=1",
        "ratio=2..1",
        "ratio=0..3",
        "processors=1.5..3",
        "bandwidth=1us..2us",
        "bandwidth=1..10",
        "bandwidth=10..100Mbit/s",
        "latency=1us..1e-3",
        "processors=2..1e9",
        "ratio=nan..inf",
        "latency=-1us..1us",
    ] {
        assert!(bad.parse::<ParameterSweep>().is_err(), "{bad}");
    }
}

#[test]
fn values_are_shown_in_their_units() {
    assert_eq!(Parameter::Bandwidth.show(12.5e6), "100 Mbit/s");
    assert_eq!(Parameter::Bandwidth.show(125e6), "1 Gbit/s");
    assert_eq!(Parameter::Ratio.show(2.99987), "3");
    assert_eq!(Parameter::Ratio.show(12.3456), "12.35");
    assert_eq!(Parameter::Processors.show(64.0), "64");
}

/// At each value the plan beside the methods is that of `partition`, and says whether a division pays. It wins nothing: the
/// methods compete.
#[test]
fn a_sweep_makes_the_plans_of_a_partition() {
    let mut platform = Platform::from_speeds(&[1.0, 1.0, 1.0]).unwrap();
    platform.network = Network::uniform(1e-4, 1e8);
    let machine = Machine::new(platform, models(&[2e9, 1e9, 0.5e9]), 1);
    let shape = Shape::new(600, 600, 600, "t").unwrap();
    let orders = orders(None, 100, false, 1);
    let parameter = Parameter::Bandwidth;
    let question = SweepQuestion {
        parameter,
        methods: None,
        levels: None,
        plan: None,
        orders: &orders,
        open_block: true,
    };
    let candidates = sweep_candidates(question).unwrap();
    let auto = candidates.iter().position(|one| one.name == "auto").unwrap();
    let setting = SweepSetup { shape, machine: &machine, element: 8, sharing: None };
    let wanted =
        ParameterSweep { points: Some(4), .."bandwidth=1MB/s..100MB/s".parse::<ParameterSweep>().unwrap() };
    let found = sweep(&setting, &candidates, &wanted, &Monitor::new()).unwrap();
    for point in &found.points {
        let mut there = machine.clone();
        there.platform.network = machine.platform.network.at_bandwidth(point.value);
        let options = PlanOptions { open_block: true, ..PlanOptions::open(100, 8) };
        let plan = plan_matmul(shape, &there, &options).unwrap().swap_remove(0).plan;
        assert_eq!(point.forecasts[auto].unwrap().seconds, plan.forecast.as_ref().unwrap().seconds);
        assert_eq!(point.baselines, plan.baselines);
        assert_eq!(point.pays(), plan.gain().map(|gain| gain > 1.0), "{}", point.value);
        assert!(point.winner != Some(auto) && point.gain() >= Some(-1e-9));
    }
    assert!(found.points.iter().any(|point| point.pays() == Some(true)));
}

/// The fastest layout that is compared is the plan that `plan_factorisation` makes, on stars, clusters and full networks.
#[test]
fn the_fastest_factorisation_is_the_plan() {
    for (number, network) in
        ["topology = \"star\"\ncentre = \"c0\"\n", "", "duplex = false\n"].into_iter().enumerate()
    {
        for (factors, speeds) in
            Factors::ALL.into_iter().zip([&[1.0, 5.0][..], &[8.0, 1.0, 2.0], &[1.0, 2.0, 5.0, 5.0]])
        {
            let processor = |(i, speed): (usize, &f64)| {
                format!("[[processor]]\nname = \"c{i}\"\nspeed = \"{speed} Gflop/s\"\n")
            };
            let processors: String = speeds.iter().enumerate().map(processor).collect();
            let text = format!(
                "{processors}[network]\nlatency = \"20 us\"\nbandwidth = \"{} Gbit/s\"\n{network}",
                10 / (number + 1)
            );
            let platform = crate::platform::parse_platform(&text, "test").unwrap();
            let machine = Machine::from_platform(platform, crate::model::WorkUnit::MultiplyAdd).unwrap();
            let (n, blocks) = (3000, [64, 128, 256]);
            let options = FactorOptions::new(&blocks, 8);
            let plan = plan_factorisation(factors, n, &machine, options).unwrap().remove(0);
            let shape = Shape::new(n, n, n, "test").unwrap();
            let setting = SweepSetup { shape, machine: &machine, element: 8, sharing: None };
            let candidates = factor_candidates(factors, None, &blocks).unwrap();
            let found = forecast_candidates(&setting, &candidates, &Monitor::new()).unwrap();
            let least = found.iter().flatten().map(|found| found.seconds).fold(f64::INFINITY, f64::min);
            let wanted = plan.forecast.unwrap().seconds;
            assert!(
                (least / wanted - 1.0).abs() < 1e-9,
                "{factors}, {network}: {least}, but the plan takes {wanted}"
            );
        }
    }
}
