//! A bus carries turn by turn, whichever processor is ready first.

use apportion::geometry::{Rank, Rect, Span};
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::{Shape, shapes};
use apportion::platform::{Network, Topology};
use apportion::schedule::{
    Application, Flow, MatmulSchedule, OperandPiece, ScheduleOptions, Step, StepOf, Update,
};
use apportion::simulate::{CostModel, simulate};

/// A product whose processors first compute for a while.
struct Late<'a> {
    schedule: &'a MatmulSchedule,
    /// By rank: multiply-adds before the first step.
    pauses: Vec<u64>,
    ordered: bool,
}

impl Application for Late<'_> {
    type Piece = OperandPiece;
    type Work = Update;

    fn processors(&self) -> usize {
        self.schedule.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        let rect = Rect::new(Span::new(0, 1), Span::new(0, 1));
        let pause = Step::Compute(Update { rect, inner: Span::new(0, self.pauses[rank.0]) });
        Box::new(std::iter::once(pause).chain(self.schedule.steps(rank)))
    }

    fn senders(&self, tag: u64) -> Option<Vec<Rank>> {
        self.schedule.senders(tag).filter(|_| self.ordered)
    }
}

const SPEEDS: [f64; 4] = [40e6, 30e6, 20e6, 10e6];

fn bus(latency: f64, bandwidth: f64) -> Network {
    let mut network = Network::uniform(latency, bandwidth);
    network.topology = Topology::Bus;
    network
}

/// Seconds with each processor later than the one before by a microsecond, or earlier.
fn both_ways(schedule: &MatmulSchedule, rates: &[f64], network: &Network) -> [f64; 2] {
    let p = rates.len() as u64;
    let costs = CostModel { rates, network, element: 8 };
    [false, true].map(|reversed| {
        let place = |rank: u64| if reversed { p - 1 - rank } else { rank };
        let pauses = (0..p).map(|rank| 1 + 40 * place(rank)).collect();
        simulate(&Late { schedule, pauses, ordered: true }, costs).unwrap().seconds()
    })
}

/// Seconds of a turn's broadcast and of its computation (Tinetti, 3.7 and 3.8), and of the product (3.11).
fn overlapped(shape: Shape, latency: f64, bandwidth: f64, speeds: &[f64], blocks: u64) -> [f64; 3] {
    let turns = (speeds.len() as u64 * blocks) as f64;
    let broadcast = latency + 8.0 / bandwidth * shape.k as f64 * shape.n as f64 / turns;
    let operations = (2.0 * shape.k as f64 - 1.0) * shape.m as f64 * shape.n as f64;
    let compute = operations / (turns * speeds.iter().sum::<f64>());
    [broadcast, compute, broadcast + (turns - 1.0) * broadcast.max(compute) + compute]
}

/// Tinetti, Figure 3.12: the first broadcast travels alone, and each of the others during a computation. It
/// takes the time (3.11) even if the owner of the last turn is ready first.
#[test]
fn overlapped_broadcasts_take_the_equation_s_time_in_any_order() {
    let shape = Shape::new(100, 100, 100, "test").unwrap();
    for p in [2, 4] {
        let speeds = &SPEEDS[..p];
        let layout = shapes::Rows::default().layout(shape, speeds).unwrap();
        let rates: Vec<f64> = speeds.iter().map(|s| s / 2.0).collect();
        for (latency, bandwidth) in [(0.002, 2e6), (0.0001, 8e7)] {
            for (blocks, look_ahead) in [(1, 1), (1, 2), (10, 1), (10, 3)] {
                let order = ScheduleOptions::new(Flow::Broadcast, 100 / blocks).with_look_ahead(look_ahead);
                let schedule = MatmulSchedule::new(&layout, order);
                let [.., wanted] = overlapped(shape, latency, bandwidth, speeds, blocks);
                for seconds in both_ways(&schedule, &rates, &bus(latency, bandwidth)) {
                    let excess = seconds / wanted - 1.0;
                    assert!(excess < 0.01, "{p} processors, {order:?}: {seconds} {wanted}");
                }
            }
        }
    }
}

/// Without the order of turns, the owner of the last turn would delay all others by a broadcast.
#[test]
fn unordered_broadcasts_take_longer() {
    let shape = Shape::new(100, 100, 100, "test").unwrap();
    let layout = shapes::Rows::default().layout(shape, &[1.0, 1.0]).unwrap();
    let schedule =
        MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::Broadcast, 100).with_look_ahead(1));
    let [broadcast, compute, wanted] = overlapped(shape, 0.0, 1e6, &[20e6, 20e6], 1);
    let network = bus(0.0, 1e6);
    let costs = CostModel { rates: &[10e6, 10e6], network: &network, element: 8 };
    let late = |ordered| Late { schedule: &schedule, pauses: vec![40, 1], ordered };
    let [with, without] = [true, false].map(|o| simulate(&late(o), costs).unwrap().seconds());
    assert!(with < 1.01 * wanted, "{with} {wanted}");
    assert!(without > wanted + 0.9 * broadcast.min(compute), "{without} {wanted}");
}

/// The same for pivot blocks whose parts several processors send, on strips and on columns.
#[test]
fn pivot_blocks_keep_their_order() {
    let shape = Shape::new(120, 120, 120, "test").unwrap();
    for layout in [
        shapes::Rows::default().layout(shape, &SPEEDS).unwrap(),
        shapes::Columns::default().layout(shape, &SPEEDS).unwrap(),
    ] {
        for flow in [Flow::OneToAll, Flow::Broadcast] {
            for (block, look_ahead) in [(60, 1), (10, 1), (10, 2), (120, 1)] {
                let schedule = MatmulSchedule::new(
                    &layout,
                    ScheduleOptions::new(flow, block).with_look_ahead(look_ahead),
                );
                let [first, last] = both_ways(&schedule, &SPEEDS.map(|s| s / 2.0), &bus(0.0, 4e6));
                assert!((last / first - 1.0).abs() < 0.01, "{flow} {block} {look_ahead}: {first} {last}");
            }
        }
    }
}
