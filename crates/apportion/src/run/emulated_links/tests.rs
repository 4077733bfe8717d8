use super::*;
use crate::geometry::Rank;
use crate::plan::shapes::{Columns, LayoutMethod, SquareCorner};
use crate::plan::{Layout, Shape};
use crate::platform::{Load, Topology};
use crate::random::Random;
use crate::run::session::Monitor;
use crate::schedule::{
    Application, Flow, MatmulSchedule, OperandPiece, ScheduleOptions, Step, StepOf, Update,
};
use crate::simulate::{CostModel, simulate_explained};
use std::time::Duration;

fn posting(from: usize, to: usize, tag: u64, at: f64) -> Posting {
    let to = vec![(Rank(to), Load { horizontal: 1000.0, vertical: 0.0 })];
    Posting { from: Rank(from), tag, to, once: None, at }
}

fn emulated(latency: f64, bandwidth: f64, topology: Topology, duplex: bool) -> Network {
    let mut network = Network::uniform(latency, bandwidth);
    (network.emulate, network.topology, network.duplex) = (true, topology, duplex);
    network
}

/// Both ends of a half-duplex link post at time 0, rank 1 first: its message still follows that of rank 0, which
/// is booked only once it is known that rank 0 posts no more.
#[test]
fn of_two_messages_at_once_the_lower_rank_s_is_first() {
    let network = emulated(0.0, 1e6, Topology::Full, false);
    let monitor = Monitor::new();
    let (stop, epoch) = (StopSignal::new(&monitor), Instant::now());
    let links = EmulatedLinks::new(2, &network, &|_| None);
    links.post(posting(1, 0, 7, 0.0));
    links.suspend(Rank(1));
    assert_eq!(locked(&links.links).postings.len(), 1, "rank 0 may still post");
    links.post(posting(0, 1, 8, 0.0));
    links.post(posting(0, 1, 9, 0.0));
    links.flush(Rank(0), epoch, &stop).unwrap();
    let starts = [(1, 0, 8), (1, 0, 9), (0, 1, 7)]
        .map(|(at, from, tag)| links.receive(Rank(at), Rank(from), tag, epoch, &stop).unwrap().start);
    assert_eq!(starts, [0.0, 0.001, 0.002]);
    assert_eq!(links.time(Rank(0)), Some(0.003), "its last wait ended when the message of rank 1 arrived");
}

/// Rank 1 computes: a message of rank 0 at a later time need not wait for it.
#[test]
fn a_processor_that_computes_delays_no_message() {
    let network = emulated(0.0, 1e6, Topology::Full, false);
    let links = EmulatedLinks::new(2, &network, &|_| None);
    links.suspend(Rank(1));
    links.resume(Rank(0), 0.5);
    links.post(posting(0, 1, 0, 0.5));
    assert_eq!(locked(&links.links).postings.len(), 0);
    links.resume(Rank(1), 0.25);
    links.post(posting(1, 0, 0, 0.25));
    assert_eq!(locked(&links.links).arrivals[&(Rank(0), Rank(1), 0)].start, 0.501, "it is late");
}

/// The owner of turn 1 posts first; on a bus its message still starts after that of turn 0.
#[test]
fn a_bus_carries_turn_by_turn() {
    let network = emulated(0.0, 1e6, Topology::Bus, true);
    let monitor = Monitor::new();
    let (stop, epoch) = (StopSignal::new(&monitor), Instant::now());
    let senders = |turn: u64| [vec![Rank(0)], vec![Rank(1)]].get(turn as usize).cloned();
    let links = EmulatedLinks::new(2, &network, &senders);
    links.post(posting(1, 0, 1, 0.0));
    links.resume(Rank(0), 0.001);
    links.post(posting(0, 1, 0, 0.001));
    let first = links.receive(Rank(1), Rank(0), 0, epoch, &stop).unwrap();
    let second = links.receive(Rank(0), Rank(1), 1, epoch, &stop).unwrap();
    assert_eq!((first.start, second.start), (0.001, 0.002));
    links.flush(Rank(1), epoch, &stop).unwrap();
    assert_eq!(locked(&links.links).processors[1].sent, 0.003);
}

/// A product of which only the messages are of interest.
struct Messages(MatmulSchedule);

impl Application for Messages {
    type Piece = OperandPiece;
    type Work = Update;

    fn processors(&self) -> usize {
        self.0.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        Box::new(self.0.steps(rank).filter(|step| !matches!(step, Step::Compute(_))))
    }

    fn senders(&self, tag: u64) -> Option<Vec<Rank>> {
        self.0.senders(tag)
    }
}

/// A wait of a processor, from and until.
#[derive(Debug, PartialEq)]
struct Interval {
    since: f64,
    until: f64,
}

/// The waits of one processor, whose thread loses its core now and then.
fn waits(
    app: &Messages,
    rank: Rank,
    links: &EmulatedLinks<'_>,
    stop: &StopSignal<'_>,
    seed: u64,
) -> Vec<Interval> {
    let (epoch, mut random) = (Instant::now(), Random::new(seed));
    let mut waits = Vec::new();
    for step in app.steps(rank) {
        if random.below(3) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(100) as u64));
        }
        let since = links.time(rank).expect("it is not suspended");
        match step {
            Step::Send(message) => links.post(Posting::message(&message, 8, since)),
            Step::Broadcast(broadcast) => links.post(Posting::broadcast(&broadcast, 8, since)),
            Step::WaitReceive { from, tag } => {
                links.receive(rank, from, tag, epoch, stop).expect("nothing stops");
            }
            Step::WaitSends => links.flush(rank, epoch, stop).expect("nothing stops"),
            Step::PostReceive(_) | Step::Free(_) | Step::Compute(_) => {}
        }
        let until = links.time(rank).expect("it is not suspended");
        if until > since {
            waits.push(Interval { since, until });
        }
    }
    links.suspend(rank);
    waits
}

/// Without computations, every wait of every processor is that of the forecast, bit for bit, in whatever order the
/// threads run: on links of both kinds, through a relay and on a bus.
#[test]
fn messages_take_the_times_of_the_forecast() {
    let shape = Shape::new(24, 24, 24, "test").unwrap();
    let corner: Layout = SquareCorner.layout(shape, &[9.0, 1.0]).unwrap();
    let columns: Layout = Columns::default().layout(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
    let topologies = [Topology::Full, Topology::Star { centre: Rank(1) }, Topology::Bus];
    let monitor = Monitor::new();
    let mut seed = 0;
    for (layout, p) in [(corner, 2), (columns, 4)] {
        for (topology, duplex) in topologies.into_iter().flat_map(|t| [(t, false), (t, true)]) {
            for (flow, look_ahead) in Flow::ALL.into_iter().flat_map(|flow| [(flow, 0), (flow, 2)]) {
                let order = ScheduleOptions::new(flow, 5).with_look_ahead(look_ahead);
                if order.check_layout(&layout).is_err() {
                    continue;
                }
                let network = emulated(5e-6, 1e8, topology, duplex);
                let app = Messages(MatmulSchedule::new(&layout, order));
                let costs = CostModel { rates: &vec![1.0; p], network: &network, element: 8 };
                let history = simulate_explained(&app, costs).unwrap().history.unwrap();
                let senders = |turn| app.senders(turn);
                let (links, stop) = (EmulatedLinks::new(p, &network, &senders), StopSignal::new(&monitor));
                let (app, links, stop) = (&app, &links, &stop);
                let found: Vec<Vec<Interval>> = std::thread::scope(|scope| {
                    seed += p as u64;
                    let start =
                        |i: usize| scope.spawn(move || waits(app, Rank(i), links, stop, seed + i as u64));
                    let workers: Vec<_> = (0..p).map(start).collect();
                    workers.into_iter().map(|worker| worker.join().unwrap()).collect()
                });
                for (rank, found) in found.iter().enumerate() {
                    let expected =
                        history.waits[rank].iter().map(|w| Interval { since: w.since, until: w.until });
                    let expected: Vec<_> = expected.collect();
                    assert_eq!(*found, expected, "{topology:?} duplex {duplex} {order:?} rank {rank}");
                }
            }
        }
    }
}
