//! Cases worked out by hand.

use super::*;
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Layout, Metrics, Shape, shapes};
use crate::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use crate::simulate::simulate;
use proptest::prelude::*;

const B: fn(f64) -> Load = |bytes| Load { horizontal: bytes, vertical: 0.0 };

fn send(to: usize, bytes: f64, then: Then) -> Action {
    Action::Send { to: Rank(to), tag: 0, load: B(bytes), then }
}

fn receive(from: usize, then: Then) -> Action {
    Action::Receive { from: Rank(from), tag: 0, then }
}

fn run(network: &Network, rules: &Fluid, scripts: &[&[Action]]) -> Result<Outcome> {
    let hosts = vec![Host { speed: 10.0, cores: 1 }; scripts.len()];
    let placement: Vec<usize> = (0..scripts.len()).collect();
    let names: Vec<String> = placement.iter().map(|i| format!("p{i}")).collect();
    let machine = Deployment { hosts: &hosts, placement: &placement, names: &names, network };
    simulate_actions(&mut scripts.iter().map(|s| s.iter().copied()).collect::<Vec<_>>(), machine, rules, true)
}

fn seconds(network: &Network, rules: &Fluid, scripts: &[&[Action]]) -> f64 {
    run(network, rules, scripts).unwrap().history.unwrap().ends.into_iter().fold(0.0, f64::max)
}

/// Two simultaneous messages halve each other's rate; the end of the shorter one frees the link.
#[test]
fn two_flows_share_a_link() {
    let network = Network::uniform(1.0, 100.0);
    let rules = Fluid { eager: u64::MAX, ..Fluid::default() };
    let both: &[Action] = &[send(1, 100.0, Then::Forget), send(1, 300.0, Then::Forget), Action::Flush];
    let first: &[Action] = &[receive(0, Then::Wait)];
    let all: &[Action] = &[receive(0, Then::Wait), receive(0, Then::Wait)];
    // 100 of each in 2 s, then 200 more in 2 s.
    assert_eq!(seconds(&network, &rules, &[both, all]), 5.0);
    let outcome = run(&network, &rules, &[both, first]).unwrap();
    assert_eq!(outcome.history.unwrap().ends, [5.0, 3.0]);
}

#[test]
fn a_rendezvous_waits_for_both_ends() {
    let network = Network::uniform(1.0, 100.0);
    let late: &[Action] = &[Action::Compute(50.0), receive(0, Then::Wait)];
    let send: &[Action] = &[send(1, 200.0, Then::Wait)];
    let ends = |rules: &Fluid| run(&network, rules, &[send, late]).unwrap().history.unwrap().ends;
    assert_eq!(ends(&Fluid::default()), [8.0, 8.0]);
    assert_eq!(ends(&Fluid { detached: 201, ..Fluid::default() }), [0.0, 8.0]);
    assert_eq!(ends(&Fluid { eager: 201, ..Fluid::default() }), [3.0, 5.0]);
    assert_eq!(ends(&Fluid::default().with_eager(201).unwrap()), [0.0, 5.0]);
    assert_eq!(ends(&Fluid { envelope: 100, ..Fluid::default() }), [9.0, 9.0]);
}

#[test]
fn half_duplex_bus_and_star_share_what_they_should() {
    let exchange =
        |other: usize| [send(other, 100.0, Then::Forget), receive(other, Then::Wait), Action::Flush];
    let (a, b) = (exchange(1), exchange(0));
    let rules = Fluid::fair();
    let mut network = Network::uniform(0.0, 100.0);
    assert_eq!(seconds(&network, &rules, &[&a, &b]), 1.0);
    network.duplex = false;
    assert_eq!(seconds(&network, &rules, &[&a, &b]), 2.0);
    network.duplex = true;
    network.topology = Topology::Bus;
    let (c, d) = (exchange(3), exchange(2));
    assert_eq!(seconds(&network, &rules, &[&a, &b, &c, &d]), 4.0);
    // Relayed through rank 2: two hops at once, each direction on its own links.
    let mut star = Network::uniform(0.5, 100.0);
    star.topology = Topology::Star { centre: Rank(2) };
    assert_eq!(seconds(&star, &rules, &[&a, &b, &[]]), 2.0);
}

#[test]
fn cores_are_shared_by_computations() {
    let network = Network::free();
    let hosts = [Host { speed: 10.0, cores: 2 }];
    let names: Vec<String> = (0..3).map(|i| format!("p{i}")).collect();
    let machine = Deployment { hosts: &hosts, placement: &[0, 0, 0], names: &names, network: &network };
    let mut scripts = [10.0, 20.0, 20.0].map(|work| [Action::Compute(work)].into_iter());
    let outcome = simulate_actions(&mut scripts, machine, &Fluid::default(), true).unwrap();
    // Three on two cores: 10 units in 1.5 s; the rest alone.
    let ends = outcome.history.unwrap().ends;
    assert!(ends.iter().zip([1.5, 2.5, 2.5]).all(|(a, b)| (a - b).abs() < 1e-12), "{ends:?}");
}

#[test]
fn a_deadlock_names_its_circle() {
    let network = Network::uniform(0.0, 1.0);
    let to = |next: usize, from: usize| [send(next, 9.0, Then::Wait), receive(from, Then::Wait)];
    let (a, b, c) = (to(1, 2), to(2, 0), to(0, 1));
    let error = run(&network, &Fluid::default(), &[&a, &b, &c]).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    let expected = "p0 waits to send 9 bytes with tag 0 to p1, which waits to send 9 bytes with tag 0 to p2, \
        which waits to send 9 bytes with tag 0 to p0 (";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(run(&network, &Fluid::fair(), &[&a, &b, &c]).is_ok());
    let waits: &[Action] = &[receive(1, Then::Wait)];
    let error = run(&network, &Fluid::fair(), &[waits, &[]]).unwrap_err();
    assert!(error.to_string().contains("p0 waits for tag 0 from p1, which has ended"), "{error}");
}

/// The chain has no gap from the start of the run to the end of the last rank.
#[test]
fn the_chain_of_causes_covers_the_time() {
    let network = Network::uniform(1.0, 100.0);
    let first: &[Action] = &[Action::Compute(30.0), send(1, 200.0, Then::Wait)];
    let second: &[Action] = &[receive(0, Then::Wait), Action::Compute(20.0)];
    let history = run(&network, &Fluid::default(), &[first, second]).unwrap().history.unwrap();
    let chain = history.chain(history.last());
    let times: Vec<(f64, f64)> = chain.iter().map(|c| (c.start, c.end)).collect();
    assert_eq!(times, [(0.0, 3.0), (3.0, 6.0), (6.0, 8.0)]);
    let wait = history.waits[1][0];
    assert_eq!((wait.since, wait.until, wait.sent, wait.received, wait.step), (0.0, 6.0, 3.0, 0.0, 0));
}

fn product(
    layout: &Layout,
    order: ScheduleOptions,
    (rates, network): (&[f64], &Network),
    rules: &Fluid,
) -> Trace {
    let names: Vec<String> = (0..rates.len()).map(|i| format!("p{i}")).collect();
    let costs = CostModel { rates, network, element: 8 };
    simulate_fluid(&MatmulSchedule::new(layout, order), costs, &names, rules, false).unwrap().trace
}

fn laid_out(n: u64, weights: &[f64]) -> Layout {
    shapes::Columns::default().layout(Shape::new(n, n, n, "test").unwrap(), weights).unwrap()
}

/// On a bus every element is transferred once, for any number of receivers; without that rule, once per
/// receiver. Counts stay the same.
#[test]
fn a_bus_carries_a_broadcast_once() {
    let layout = shapes::Rows::default().layout(Shape::new(60, 60, 60, "test").unwrap(), &[1.0; 4]).unwrap();
    let mut network = Network::uniform(0.0, 1e3);
    network.topology = Topology::Bus;
    let volume = Metrics::of_layout(&layout, 1.0).volume.unwrap();
    for flow in [Flow::OneToAll, Flow::Broadcast] {
        for overlap in [false, true] {
            let order = ScheduleOptions::new(flow, 20).with_look_ahead(u64::from(overlap));
            let on = (&[1e12; 4][..], &network);
            let once = product(&layout, order, on, &Fluid::fair());
            let each = product(&layout, order, on, &Fluid { broadcasts: false, ..Fluid::fair() });
            // Only B moves, and three of four processors need each element of it.
            assert!((once.seconds() - 60.0 * 60.0 * 8.0 / 1e3).abs() < 1e-3, "{}", once.seconds());
            assert!((each.seconds() - 3.0 * once.seconds()).abs() < 1e-3, "{}", each.seconds());
            for trace in [&once, &each] {
                assert_eq!(trace.volume_matrix().iter().flatten().sum::<u64>(), volume);
                assert_eq!(trace.lanes.iter().map(|l| l.carried).sum::<u64>(), 3600);
            }
            // Only one processor sends at a time: transfers in turn and at once take the same time.
            let costs = CostModel { rates: on.0, network: &network, element: 8 };
            let fifo = simulate(&MatmulSchedule::new(&layout, order), costs).unwrap();
            assert!((fifo.seconds() / once.seconds() - 1.0).abs() < 1e-6);
        }
    }
}

/// 40 processors of four clusters, whose uplinks all messages share: coarse rates give nearly the exact time,
/// with the same counts; with 0, rates follow every change.
#[test]
fn coarse_rates_are_nearly_exact() {
    let mut text: String =
        (0..40).map(|i| format!("[[processor]]\nname = \"n{i}\"\ncluster = \"c{}\"\n", i / 10)).collect();
    text += "[network]\n";
    for (of, speed) in (0..40).map(|i| (format!("n{i}"), 100)).chain((0..4).map(|c| (format!("c{c}"), 300))) {
        text += &format!("[[network.uplink]]\nof = \"{of}\"\nbandwidth = {speed}e3\nlatency = 1e-4\n");
    }
    let platform = crate::platform::parse_platform(&text, "test").unwrap();
    let weights: Vec<f64> = (0..40).map(|i| f64::from(1 + i * 7919 % 10)).collect();
    let rates: Vec<f64> = weights.iter().map(|w| w * 1e5).collect();
    let layout = laid_out(400, &weights);
    for flow in [Flow::Bulk, Flow::OneToAll, Flow::Ring] {
        let order = ScheduleOptions::new(flow, 100);
        let run =
            |coarse| product(&layout, order, (&rates, &platform.network), &Fluid { coarse, ..Fluid::fair() });
        let exact = run(0.0);
        for coarse in [0.01, 0.05] {
            let near = run(coarse);
            let off = near.seconds() / exact.seconds() - 1.0;
            assert!(off.abs() < 2.0 * coarse, "{flow}, {coarse}: off by {off}");
            assert_eq!(near.volume_matrix(), exact.volume_matrix());
        }
    }
}

/// All receivers get the message at the same moment; the sender waits only for the one that carries the
/// others.
#[test]
fn riders_arrive_with_their_carrier() {
    let mut network = Network::uniform(1.0, 100.0);
    network.topology = Topology::Bus;
    let along = |to| Action::Along { to: Rank(to), tag: 0, load: B(50.0) };
    let sender = [along(1), along(3), send(2, 200.0, Then::Wait)];
    let late = [Action::Compute(70.0), receive(0, Then::Wait)];
    let early = [receive(0, Then::Wait), Action::Compute(10.0)];
    let ends =
        run(&network, &Fluid::fair(), &[&sender, &early, &early, &late]).unwrap().history.unwrap().ends;
    assert_eq!(ends, [3.0, 4.0, 4.0, 7.0]);
}

proptest! {
    /// No forecast is below any processor's work or the load of the busiest link. Messages that share no link
    /// take as long as in turn. Twice the bandwidth never makes a bulk exchange slower.
    #[test]
    fn fair_forecasts_obey_their_laws(
        weights in prop::collection::vec(0.5f64..10.0, 1..6), n in 4u64..40, block in 1u64..20,
        (overlap, duplex, kind) in (any::<bool>(), any::<bool>(), 0..3usize), eager in prop_oneof![Just(u64::MAX), 0u64..4000],
    ) {
        let layout = laid_out(n, &weights);
        let mut network = Network::uniform(1e-3, 1e4);
        network.duplex = duplex;
        network.topology = [Topology::Full, Topology::Bus, Topology::Star { centre: Rank(0) }][kind];
        let rules = Fluid { eager, ..Fluid::fair() };
        for flow in Flow::ALL {
            let order = ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap));
            let trace = product(&layout, order, (&weights, &network), &rules);
            let work = layout.shares().iter().zip(&weights).map(|(&s, w)| (s * n) as f64 / w).fold(0.0, f64::max);
            let table = trace.volume_matrix();
            let mut links: std::collections::BTreeMap<_, u64> = std::collections::BTreeMap::new();
            for (to, row) in table.iter().enumerate() {
                for (from, &elements) in row.iter().enumerate().filter(|(_, n)| **n > 0) {
                    for hop in network.route(Rank(from), Rank(to)) {
                        hop.crossings.iter().for_each(|c| *links.entry(c.wire).or_default() += elements);
                    }
                }
            }
            let carried: u64 = trace.lanes.iter().map(|l| l.carried).sum();
            let busiest = if kind == 1 { carried } else { links.values().copied().max().unwrap_or(0) };
            let least = work.max(busiest as f64 * 8.0 / 1e4);
            prop_assert!(trace.seconds() >= least * (1.0 - 1e-9), "{flow}: {} {least}", trace.seconds());
        }
        let bulk = ScheduleOptions::new(Flow::Bulk, block).with_look_ahead(u64::from(overlap));
        let seconds = |network: &Network, rules: &Fluid| product(&layout, bulk, (&weights, network), rules).seconds();
        if kind == 0 && duplex {
            let costs = CostModel { rates: &weights, network: &network, element: 8 };
            let fifo = simulate(&MatmulSchedule::new(&layout, bulk), costs).unwrap().seconds();
            prop_assert!((seconds(&network, &Fluid::fair()) / fifo - 1.0).abs() < 1e-9);
        }
        let faster = network.at_bandwidth(2e4);
        prop_assert!(seconds(&faster, &rules) <= seconds(&network, &rules) * (1.0 + 1e-9));
    }
}

/// Wires and uplinks whose speed depends on the direction of the data or of the message: worked by hand.
#[test]
fn a_message_takes_of_each_hop_what_it_needs_there() {
    let read = |network: &str| {
        let text = format!("[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n[network]\n{network}");
        crate::platform::parse_platform(&text, "test").unwrap().network
    };
    let sent = [send(1, 1e6, Then::Forget), Action::Flush];
    let strided = [
        Action::Send {
            to: Rank(1),
            tag: 0,
            load: Load { horizontal: 0.0, vertical: 1e6 },
            then: Then::Forget,
        },
        Action::Flush,
    ];
    let got = [receive(0, Then::Wait)];
    let rules = Fluid::fair();
    let uplink = "[[network.uplink]]\nof = \"a\"\nbandwidth = 15e6\n";
    // 1 MB takes 50 ms contiguous or 12.5 ms strided on the wire, and 66.7 ms on the uplink.
    let network = read(&format!("bandwidth = {{ horizontal = 20e6, vertical = 80e6 }}\n{uplink}"));
    for one in [&sent[..], &strided[..]] {
        assert!((seconds(&network, &rules, &[one, &got]) - 1.0 / 15.0).abs() < 1e-9);
    }
    // The wire is the slowest, and leaves a part of the uplink to others.
    let network = read(
        "bandwidth = { horizontal = 10e6, vertical = 80e6 }\n[[network.uplink]]\nof = \"a\"\nbandwidth = 15e6\n",
    );
    assert!((seconds(&network, &rules, &[&sent, &got]) - 0.1).abs() < 1e-9);
    let both = [send(1, 1e6, Then::Forget), send(1, 1e6, Then::Forget), Action::Flush];
    let all = [receive(0, Then::Wait), receive(0, Then::Wait)];
    assert!((seconds(&network, &rules, &[&both, &all]) - 0.2).abs() < 1e-9);
    // A half-duplex wire that is infinitely fast one way: 1 MB at 5 MB/s the other way, 2 MB in turn.
    let one_way =
        "duplex = false\n[[network.link]]\nbetween = [\"b\", \"a\"]\nbandwidth = 5e6\ndirected = true\n";
    let network = read(one_way);
    let back = [send(0, 1e6, Then::Forget), receive(0, Then::Wait), Action::Flush];
    let forth = [send(1, 1e6, Then::Forget), receive(1, Then::Wait), Action::Flush];
    assert!((seconds(&network, &rules, &[&forth, &back]) - 0.2).abs() < 1e-9);
    let twice = [back[0], back[0], receive(0, Then::Wait), Action::Flush];
    let gets = [forth[0], receive(1, Then::Wait), receive(1, Then::Wait), Action::Flush];
    assert!((seconds(&network, &rules, &[&gets, &twice]) - 0.4).abs() < 1e-9);
    let network = read(&format!("{one_way}{uplink}"));
    assert!((seconds(&network, &rules, &[&forth, &back]) - 0.2).abs() < 1e-9);
}
