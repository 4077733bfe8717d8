//! Forecasts worked out by hand.

use super::*;
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Metrics, Shape, shapes};
use crate::platform::Topology;
use crate::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use proptest::prelude::*;

fn cube(n: u64) -> Shape {
    Shape::new(n, n, n, "test").unwrap()
}

fn run(layout: &crate::plan::Layout, order: ScheduleOptions, rates: &[f64], network: &Network) -> Trace {
    simulate(&MatmulSchedule::new(layout, order), CostModel { rates, network, element: 8 }).unwrap()
}

/// N = 100, 3:1, 1000 bytes per second: square side 50, 2 * 50 * 50 elements in each direction.
#[test]
fn square_corner_in_bulk_by_hand() {
    let layout = shapes::SquareCorner.layout(cube(100), &[3.0, 1.0]).unwrap();
    let mut network = Network::uniform(0.5, 1000.0);
    let order = ScheduleOptions::new(Flow::Bulk, 10);
    let rates = [7500.0, 2500.0]; // 750,000 and 250,000 multiply-adds: 100 s each
    let message = 0.5 + 5000.0 * 8.0 / 1000.0;
    let trace = run(&layout, order, &rates, &network);
    assert!((trace.seconds() - (message + 100.0)).abs() < 1e-9);
    network.duplex = false;
    let trace = run(&layout, order, &rates, &network);
    assert!((trace.seconds() - (2.0 * message + 100.0)).abs() < 1e-9);
}

/// With overlap: max(communication, free part) + rest. Free: 50 x 50 of the fast processor's 7,500 elements.
#[test]
fn overlap_hides_the_free_part() {
    let layout = shapes::SquareCorner.layout(cube(100), &[3.0, 1.0]).unwrap();
    let network = Network::uniform(0.0, 1000.0);
    let order = ScheduleOptions::new(Flow::Bulk, 100).with_look_ahead(1);
    let trace = run(&layout, order, &[7500.0, 2500.0], &network);
    // Communication takes 40 s; the free third of 100 s fits in: the fast processor ends at 40 + 66.7, the
    // slow one at 140.
    assert!((trace.compute()[0] - 100.0).abs() < 1e-9);
    let ends: Vec<f64> = trace.lanes.iter().map(|l| l.events.last().unwrap().end).collect();
    assert!((ends[0] - (40.0 + 200.0 / 3.0)).abs() < 1e-9, "{ends:?}");
    assert!((ends[1] - 140.0).abs() < 1e-9);
}

#[test]
fn a_star_pays_twice_between_its_ends() {
    let layout = shapes::Rows::default().layout(cube(90), &[1.0; 3]).unwrap();
    let full = Network::uniform(0.0, 1e3);
    let mut star = full.clone();
    star.topology = Topology::Star { centre: Rank(1) };
    let order = ScheduleOptions::new(Flow::Bulk, 90);
    let seconds = |network: &Network| run(&layout, order, &[1e12; 3], network).seconds();
    assert!(seconds(&star) > 1.5 * seconds(&full));
}

/// One-to-all on a bus: every element is transferred once, for any number of receivers.
#[test]
fn a_bus_carries_what_several_need_once() {
    let layout = shapes::Rows::default().layout(cube(60), &[1.0; 4]).unwrap();
    let mut network = Network::uniform(0.0, 1e3);
    let order = ScheduleOptions::new(Flow::OneToAll, 60);
    network.topology = Topology::Bus;
    let trace = run(&layout, order, &[1e12; 4], &network);
    assert!((trace.seconds() - 60.0 * 60.0 * 8.0 / 1e3).abs() < 1e-3);
    // Each receiver gets the elements of the formula.
    assert_eq!(Some(trace.volume_matrix().iter().flatten().sum()), Metrics::of_layout(&layout, 1.0).volume);
}

#[test]
fn a_bus_carries_all_one_after_the_other() {
    let layout = shapes::Columns::default().layout(cube(60), &[1.0; 4]).unwrap();
    let volume = Metrics::of_layout(&layout, 1.0).volume.unwrap() as f64;
    let mut network = Network::uniform(0.0, 1e3);
    network.topology = Topology::Bus;
    let order = ScheduleOptions::new(Flow::Bulk, 60);
    let trace = run(&layout, order, &[1e12; 4], &network);
    assert!((trace.seconds() - volume * 8.0 / 1e3).abs() < 1e-3);
}

/// A network whose messages compete for wires of every kind.
fn crowded() -> Network {
    let mut text = String::from("[network]\nlatency = \"1 ms\"\nbandwidth = \"80 kB/s\"\n");
    for i in 0..6 {
        text += &format!("[[processor]]\nname = \"p{i}\"\ncluster = \"c{}\"\n", i / 2);
    }
    for (of, speed) in [("c0", 30), ("c1", 20), ("p4", 10)] {
        text +=
            &format!("[[network.uplink]]\nof = \"{of}\"\nbandwidth = \"{speed} kB/s\"\nlatency = \"1 ms\"\n");
    }
    crate::platform::parse_platform(&text, "crowded").unwrap().network
}

/// Messages in inboxes are what a simulation of 10,000 processors holds most of: millions in the bulk flow.
#[test]
fn a_message_that_is_waited_for_takes_32_bytes() {
    assert_eq!(size_of::<(Key, Sent<<Totals as Record>::Detail>)>(), 32);
}

/// The same work is counted in every run; a forecast within it is that without a limit, and with less there
/// is none.
#[test]
fn work_is_counted() {
    let layout = shapes::Columns::default().layout(cube(60), &[3.0, 2.0, 1.0, 1.0]).unwrap();
    let mut network = Network::uniform(1e-3, 1e4);
    network.duplex = false;
    let costs = CostModel { rates: &[3e4, 2e4, 1e4, 1e4], network: &network, element: 8 };
    for flow in Flow::ALL {
        let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(flow, 10));
        let with = |effort: &Effort| forecast_within(&schedule, costs, f64::INFINITY, effort).unwrap();
        let all = Effort::unlimited();
        assert_eq!(with(&all), Some(forecast(&schedule, costs).unwrap()));
        let enough = Effort::new(1e-9 * all.spent() * 1.001);
        assert!(with(&enough).is_some() && !enough.is_spent());
        assert_eq!(enough.spent(), all.spent());
        let little = Effort::new(1e-9 * all.spent() * 0.9);
        assert!(with(&little).is_none() && little.is_spent() && little.remaining() == 0.0);
        // The limit can be moved.
        little.extend(2.0 * all.spent());
        assert!(with(&little).is_some());
    }
}

proptest! {
    /// Sums kept instead of events are those of the events, to the last bit.
    #[test]
    fn forecasts_are_the_sums_of_events(
        weights in prop::collection::vec(0.5f64..10.0, 1..7), n in 4u64..40, block in 1u64..20, ahead in 0u64..3,
        topology in 0..4, fluid: bool,
    ) {
        let layout = shapes::Columns::default().layout(cube(n), &weights).unwrap();
        let mut network = if topology == 3 { crowded() } else { Network::uniform(1e-3, 1e4) };
        match topology {
            1 => network.topology = Topology::Star { centre: Rank(0) },
            2 => network.topology = Topology::Bus,
            _ => {}
        }
        let costs = CostModel { rates: &weights, network: &network, element: 8 };
        let names: Vec<String> = (0..weights.len()).map(|i| format!("p{i}")).collect();
        for flow in Flow::ALL {
            let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(flow, block).with_look_ahead(ahead));
            let (trace, found) = if fluid {
                let rules = Fluid::fair();
                let outcome = simulate_fluid(&schedule, costs, &names, &rules, false).unwrap();
                (outcome.trace, forecast_fluid(&schedule, costs, &names, &rules).unwrap())
            } else {
                (simulate(&schedule, costs).unwrap(), forecast(&schedule, costs).unwrap())
            };
            let (compute, communicate) = (trace.compute(), trace.communicate());
            prop_assert_eq!(found, Forecast { seconds: trace.seconds(), compute, communicate });
        }
    }

    /// No forecast is below the slowest processor's work or its traffic, and counts agree with the formula.
    #[test]
    fn forecasts_respect_their_bounds(
        weights in prop::collection::vec(0.5f64..10.0, 1..5), n in 4u64..40, block in 1u64..20, overlap: bool,
    ) {
        let layout = shapes::Columns::default().layout(cube(n), &weights).unwrap();
        let metrics = Metrics::of_layout(&layout, 1.0);
        let network = Network::uniform(1e-3, 1e4);
        for flow in Flow::ALL {
            let trace = run(&layout, ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap)), &weights, &network);
            let work = layout.shares().iter().zip(&weights).map(|(&s, w)| (s * n) as f64 / w).fold(0.0, f64::max);
            let table = trace.volume_matrix();
            let busiest = table.iter().flatten().copied().max().unwrap() as f64 * 8.0 / 1e4;
            prop_assert!(trace.seconds() >= work.max(busiest) * (1.0 - 1e-12));
            prop_assert_eq!(table.iter().flatten().sum::<u64>(), metrics.volume.unwrap());
            if !matches!(flow, Flow::Ring | Flow::Broadcast) {
                prop_assert_eq!(&table, metrics.volume_matrix.as_ref().unwrap());
            }
            for lane in &trace.lanes {
                prop_assert!(lane.events.windows(2).all(|w| w[0].end <= w[1].start + 1e-12));
            }
        }
    }
}
