//! Worked by hand.

use super::*;
use crate::platform::Topology;

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

/// Two messages at once halve each other's rate; the shorter one's end frees the link.
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
    // Relayed through rank 2: two hops at once, each way on links of their own.
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

/// The chain has no gap: from the end of the last rank back to the start.
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
