//! The policy with a virtual clock, and the count of moved elements against a count element by element.

use super::*;
use crate::geometry::Rank;
use crate::model::{Machine, Model};
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Shape, shapes};
use crate::platform::{Network, Platform};
use crate::schedule::{DataPath, Flow, ScheduleOptions};
use crate::select::Moves;
use crate::simulate::{CostModel, simulate};

/// Processors that compute at given rates until a fraction of the work is done, then at other rates.
struct Virtual {
    platform: Platform,
    rates: [Vec<f64>; 2],
    turn: f64,
    clock: f64,
    layouts: Vec<Vec<u64>>,
}

impl Segments for Virtual {
    fn run(&mut self, schedule: &MatmulSchedule) -> Result<Trace> {
        let done = schedule.inner().end as f64 / schedule.layout().shape().k as f64;
        let rates = &self.rates[usize::from(done > self.turn)];
        let costs = CostModel { rates, network: &self.platform.network, element: 8 };
        let trace = simulate(schedule, costs)?;
        self.clock += trace.seconds();
        Ok(trace)
    }

    fn relocate(&mut self, to: &MatmulSchedule, _: Span, arrivals: &[f64]) -> Result<Vec<f64>> {
        self.layouts.push(to.layout().shares());
        self.clock += arrivals.iter().copied().fold(0.0, f64::max);
        Ok(arrivals.to_vec())
    }

    fn now(&self) -> f64 {
        self.clock
    }
}

const K: u64 = 4096;

/// Total time over the ideal time of an oracle, for processors of which the first becomes `slowdown` times
/// slower half-way.
fn against_oracle(
    speeds: &[f64],
    slowdown: f64,
    network: Network,
    segments: u64,
) -> (f64, Adaptation, Virtual) {
    let mut platform = Platform::from_speeds(speeds).unwrap();
    platform.network = network;
    let models = speeds.iter().map(|&s| Model::constant("p", s * 1e6).unwrap()).collect();
    let machine = &Machine::new(platform, models, 64);
    let shape = Shape::new(600, K, 700, "test").unwrap();
    let layout = shapes::Columns::default().layout(shape, speeds).unwrap();
    let order = ScheduleOptions::new(Flow::OneToAll, 64).with_look_ahead(1);
    let path = DataPath::InPlace;
    let rebalance = Rebalance { machine, order, element: 8, path };
    let before: Vec<f64> = speeds.iter().map(|s| s * 64e6).collect();
    let mut after = before.clone();
    after[0] /= slowdown;
    let mut engine = Virtual {
        platform: machine.platform.clone(),
        rates: [before.clone(), after.clone()],
        turn: 0.5,
        clock: 0.0,
        layouts: vec![layout.shares()],
    };
    let (trace, adaptation) =
        adapt(&layout, "columns", Adaptive { segments }, &rebalance, &mut engine).unwrap();
    let half = 0.5 * shape.flops() / 2.0;
    let ideal = half / before.iter().sum::<f64>() + half / after.iter().sum::<f64>();
    assert!((trace.seconds() - engine.clock).abs() < 1e-9 * engine.clock);
    let received: u64 = trace.lanes.iter().flat_map(|l| &l.received).sum();
    let sent: u64 = trace.lanes.iter().flat_map(|l| &l.sent).sum();
    assert_eq!(received, sent);
    (trace.seconds() / ideal, adaptation, engine)
}

#[test]
fn a_processor_three_times_slower_half_way_costs_little_over_an_oracle() {
    for speeds in [&[1.0, 1.0][..], &[3.0, 1.0], &[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0, 1.0]] {
        for network in [Network::free(), Network::uniform(1e-5, 5e9)] {
            let (ratio, adaptation, _) = against_oracle(speeds, 3.0, network.clone(), 24);
            assert!((0.999..1.15).contains(&ratio), "{speeds:?}: {ratio}");
            assert!(!adaptation.repartitions.is_empty() && adaptation.moved_elements() > 0);
            // One segment is the product without adaptation.
            let (fixed, left, _) = against_oracle(speeds, 3.0, network, 1);
            assert!(left.repartitions.is_empty() && left.segments == 1);
            // One segment ends after the slowdown, so it runs at the later speeds: all wait for the slower
            // processor.
            let (all, first) = (speeds.iter().sum::<f64>(), speeds[0]);
            let oracle = 0.5 + 0.5 * all / (all - first * (1.0 - 1.0 / 3.0));
            assert!(
                (fixed * oracle / 3.0 - 1.0).abs() < 0.02,
                "{speeds:?}: {fixed}, by hand {}",
                3.0 / oracle
            );
        }
    }
    let (ratio, ..) = against_oracle(&[1.0, 1.0], 3.0, Network::uniform(0.0, 1e3), 24);
    assert!(ratio > 1.3, "over a network that slow nothing is worth moving: {ratio}");
}

#[test]
fn processors_that_keep_their_speed_are_left_alone() {
    let (ratio, adaptation, engine) = against_oracle(&[5.0, 2.0, 1.0], 1.0, Network::free(), 16);
    assert_eq!((adaptation.segments, adaptation.repartitions.len()), (16, 0));
    assert_eq!(engine.layouts.len(), 1);
    assert!(ratio < 1.02, "{ratio}");
}

#[test]
fn segments_are_whole_pivot_blocks() {
    let shape = Shape::new(3, 100, 3, "test").unwrap();
    let layout = shapes::Columns::default().layout(shape, &[1.0]).unwrap();
    let order = ScheduleOptions::new(Flow::Bulk, 16);
    let schedule = MatmulSchedule::new(&layout, order);
    for most in [0, 1, 3, 7, 1000] {
        let spans = segments(&schedule, most);
        assert_eq!(spans.len() as u64, most.clamp(1, 7));
        assert_eq!((spans[0].start, spans[spans.len() - 1].end), (0, 100));
        assert!(spans.windows(2).all(|w| w[0].end == w[1].start && w[1].start % 16 == 0));
    }
}

/// Every message of the whole product is a message of one segment, or is split among segments.
#[test]
fn volumes_of_segments_add_up() {
    let shape = Shape::new(30, 100, 40, "test").unwrap();
    let layout = shapes::Columns::default().layout(shape, &[3.0, 2.0, 1.0]).unwrap();
    for flow in Flow::ALL {
        let order = ScheduleOptions::new(flow, 16);
        let whole = MatmulSchedule::new(&layout, order);
        let volume = |schedule: &MatmulSchedule| {
            let rates = vec![1.0; 3];
            let costs = CostModel { rates: &rates, network: &Network::free(), element: 8 };
            let trace = simulate(schedule, costs).unwrap();
            trace.lanes.iter().flat_map(|l| &l.received).sum::<u64>()
        };
        let parts: u64 = segments(&whole, 4).into_iter().map(|s| volume(&whole.clone().within(s))).sum();
        assert_eq!(parts, volume(&whole), "{flow}");
    }
}

#[test]
fn moves_are_the_elements_whose_owner_changes() {
    let shape = Shape::new(13, 17, 11, "test").unwrap();
    let old = shapes::Columns::default().layout(shape, &[3.0, 2.0, 1.0]).unwrap();
    let new = shapes::SquareCorner.layout(shape, &[1.0, 8.0, 1.0]).unwrap();
    let rest = Span::new(5, 17);
    let moves = Moves::between(&old, &new, rest);
    let owner = |parts: &[crate::plan::Part], i: u64, j: u64| -> Rank {
        parts
            .iter()
            .find(|p| (p.rows.start..p.rows.end).contains(&i) && (p.cols.start..p.cols.end).contains(&j))
            .unwrap()
            .owner
    };
    let mut horizontal = vec![vec![0; 3]; 3];
    let mut vertical = horizontal.clone();
    let count = |table: &mut Vec<Vec<u64>>, from: Rank, to: Rank| {
        if from != to {
            table[to.0][from.0] += 1;
        }
    };
    for (i, j) in (0..13).flat_map(|i| (0..11).map(move |j| (i, j))) {
        count(&mut horizontal, owner(old.parts(), i, j), owner(new.parts(), i, j));
    }
    let ((a, b), (c, d)) = ((old.parts_of_a(), new.parts_of_a()), (old.parts_of_b(), new.parts_of_b()));
    for (i, l) in (0..13).flat_map(|i| (5..17).map(move |l| (i, l))) {
        count(&mut horizontal, owner(&a, i, l), owner(&b, i, l));
    }
    for (l, j) in (5..17).flat_map(|l| (0..11).map(move |j| (l, j))) {
        count(&mut vertical, owner(&c, l, j), owner(&d, l, j));
    }
    assert_eq!(moves, Moves { horizontal, vertical });
    assert!(moves.total() > 0);
    assert_eq!(Moves::between(&old, &old, rest).total(), 0);
}
