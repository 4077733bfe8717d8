//! The recurrences against the simulation of events.

use super::*;
use crate::plan::shapes::{Method, MethodOptions};
use crate::plan::{Shape, random_layout};
use crate::platform::{Network, parse_platform};
use crate::schedule::ScheduleOptions;
use crate::simulate::{Effort, forecast_within, simulate};
use proptest::prelude::*;

fn forecast(schedule: &MatmulSchedule, costs: CostModel<'_>) -> Forecast {
    let trace = simulate(schedule, costs).unwrap();
    Forecast { seconds: trace.seconds(), compute: trace.compute(), communicate: trace.communicate() }
}

/// Three clusters whose links differ.
fn clusters(p: usize) -> Network {
    let mut text = String::from("[network]\nlatency = 0.5\nbandwidth = 40\n");
    for i in 0..p {
        text += &format!("[[processor]]\nname = \"n{i}\"\ncluster = \"c{}\"\nspeed = 1\n", i % 3);
    }
    for (a, b, bandwidth) in [(0, 1, "3"), (1, 2, "{ horizontal = 7, vertical = 11 }")] {
        if p > b {
            text += &format!("[[network.link]]\nbetween = [\"c{a}\", \"c{b}\"]\nbandwidth = {bandwidth}\n");
        }
    }
    parse_platform(&text, "test").unwrap().network
}

/// The recurrence is the simulation bit for bit, and the limit, a share of its time, cuts off what takes
/// longer.
fn agrees(
    schedule: &MatmulSchedule,
    speeds: &[f64],
    link: Option<(f64, f64)>,
    rate: f64,
    share: f64,
) -> Result<(), TestCaseError> {
    let network = match link {
        Some((latency, bandwidth)) => Network::uniform(latency, bandwidth),
        None => clusters(speeds.len()),
    };
    let rates: Vec<f64> = speeds.iter().map(|speed| speed * rate).collect();
    let costs = CostModel { rates: &rates, network: &network, element: 8 };
    prop_assert!(serves(schedule, costs));
    let slow = forecast(schedule, costs);
    let quick = timed(schedule, costs, f64::INFINITY, &Effort::unlimited()).unwrap();
    prop_assert_eq!(&quick, &slow);
    let limit = slow.seconds * share;
    let within = forecast_within(schedule, costs, limit, &Effort::unlimited()).unwrap();
    prop_assert_eq!(timed(schedule, costs, limit, &Effort::unlimited()).is_some(), within.is_some());
    prop_assert!(timed(schedule, costs, slow.seconds, &Effort::unlimited()).is_some());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Bit for bit, for every flow that is served, with and without overlap, on equal and on unequal links;
    /// and the limit cuts off exactly what takes longer.
    #[test]
    fn the_recurrence_is_the_simulation(
        speeds in prop::collection::vec(0.05f64..1.0, 1..10), sides in (10u64..70, 1u64..70, 10u64..70),
        block in 1u64..40, ahead in 0u64..4, method in 0usize..9, flow in 0usize..3,
        link in prop::option::of((0.0f64..2.0, 1.0f64..100.0)), rate in 1.0f64..1e4, share in 0.3f64..1.5,
    ) {
        let shape = Shape::new(sides.0, sides.1, sides.2, "test").unwrap();
        let method = Method::candidates().nth(method).unwrap_or(Method::Columns);
        let Ok(layout) = method.layout(shape, &speeds, &MethodOptions::default()) else { return Ok(()) };
        let flow = [Flow::OneToAll, Flow::Bulk, Flow::Broadcast][flow];
        let order = ScheduleOptions::new(flow, block).with_look_ahead(ahead);
        let schedule = MatmulSchedule::new(&layout, order);
        agrees(&schedule, &speeds, link, rate, share)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What lets a plan's search skip simulations: overlap is never slower, and the ring flow never faster
    /// than its bound.
    #[test]
    fn bounds_hold(
        speeds in prop::collection::vec(0.05f64..1.0, 1..10), sides in (10u64..70, 1u64..70, 10u64..70),
        block in 1u64..40, ahead in 1u64..4, method in 0usize..9, uniform: bool, rate in 1.0f64..1e4,
    ) {
        let shape = Shape::new(sides.0, sides.1, sides.2, "test").unwrap();
        let method = Method::candidates().nth(method).unwrap_or(Method::Columns);
        let Ok(layout) = method.layout(shape, &speeds, &MethodOptions::default()) else { return Ok(()) };
        let network = if uniform { Network::uniform(0.7, 9.0) } else { clusters(speeds.len()) };
        let rates: Vec<f64> = speeds.iter().map(|speed| speed * rate).collect();
        let costs = CostModel { rates: &rates, network: &network, element: 8 };
        let seconds = |flow, ahead| {
            let order = ScheduleOptions::new(flow, block).with_look_ahead(ahead);
            simulate(&MatmulSchedule::new(&layout, order), costs).unwrap().seconds()
        };
        for flow in [Flow::OneToAll, Flow::Bulk, Flow::Broadcast] {
            prop_assert!(seconds(flow, ahead) <= seconds(flow, 0) * (1.0 + 1e-9), "{flow}");
        }
        let ring = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::Ring, block));
        let least = least_seconds_of_ring(&ring, costs);
        prop_assert!(least <= seconds(Flow::Ring, 0) && least <= seconds(Flow::Ring, ahead));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The same for layouts that cut the inner dimension: boxes of two methods, and any boxes.
    #[test]
    fn the_recurrence_of_boxes_is_the_simulation(
        speeds in prop::collection::vec(0.05f64..1.0, 1..10), sides in (10u64..70, 1u64..70, 10u64..70),
        block in 1u64..40, ahead in 0u64..4, method in 0usize..3, flow in 0usize..4, seed: u64, cuts in 1usize..12,
        link in prop::option::of((0.0f64..2.0, 1.0f64..100.0)), rate in 1.0f64..1e4, share in 0.3f64..1.5,
    ) {
        let shape = Shape::new(sides.0, sides.1, sides.2, "test").unwrap();
        let layout = match [Some(Method::Inner), Some(Method::Boxes), None][method] {
            Some(method) => method.layout(shape, &speeds, &MethodOptions::default()),
            None => Ok(random_layout(shape, speeds.len(), cuts, seed)),
        };
        let Ok(layout) = layout else { return Ok(()) };
        prop_assume!(layout.boxes().is_some());
        let order = ScheduleOptions::new(Flow::ALL[flow], block).with_look_ahead(ahead);
        let schedule = MatmulSchedule::new(&layout, order);
        agrees(&schedule, &speeds, link, rate, share)?;
    }
}

/// Where messages compete for wires, or work for nothing, events decide.
#[test]
fn what_is_not_served() {
    let shape = Shape::new(30, 30, 30, "test").unwrap();
    let layout = Method::Columns.layout(shape, &[1.0; 4], &MethodOptions::default()).unwrap();
    let own = Network::uniform(1.0, 1.0);
    let (mut half, mut bus) = (own.clone(), own.clone());
    (half.duplex, bus.topology) = (false, crate::platform::Topology::Bus);
    let of = |flow, network: &Network, rate: f64| {
        let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(flow, 8));
        serves(&schedule, CostModel { rates: &[1.0, 1.0, 1.0, rate], network, element: 8 })
    };
    assert!(of(Flow::OneToAll, &own, 1.0));
    assert!(!of(Flow::OneToAll, &own, f64::NAN));
    assert!(!of(Flow::Ring, &own, 1.0));
    assert!(!of(Flow::Bulk, &half, 1.0));
    assert!(!of(Flow::Broadcast, &bus, 1.0));
}
