//! The resources that pairs compete for.

use super::*;

#[test]
fn a_star_relays_and_a_bus_shares() {
    let mut network = Network::uniform(1.0, 10.0);
    network.topology = Topology::Star { centre: Rank(1) };
    let route = network.route(Rank(0), Rank(2));
    assert_eq!(
        route.iter().map(|r| r.crossings[0].wire).collect::<Vec<_>>(),
        [Wire::Pair(Rank(0), Rank(1)), Wire::Pair(Rank(1), Rank(2))]
    );
    network.topology = Topology::Bus;
    assert_eq!(
        network.route(Rank(0), Rank(2))[0].crossings[0].wire,
        network.route(Rank(2), Rank(1))[0].crossings[0].wire
    );
}

#[test]
fn half_duplex_shares_one_wire_and_hockney_adds_up() {
    let mut network = Network::uniform(0.5, 100.0);
    assert_ne!(
        network.route(Rank(0), Rank(1))[0].crossings[0].wire,
        network.route(Rank(1), Rank(0))[0].crossings[0].wire
    );
    network.duplex = false;
    assert_eq!(
        network.route(Rank(0), Rank(1))[0].crossings[0].wire,
        network.route(Rank(1), Rank(0))[0].crossings[0].wire
    );
    assert_eq!(network.link(Rank(0), Rank(1)).seconds(150.0, 50.0), 2.5);
}

#[test]
fn the_most_specific_exception_wins() {
    let names: Vec<(String, String)> =
        [("a1", "s/a"), ("a2", "s/a"), ("b1", "s/b")].map(|(n, c)| (n.to_string(), c.to_string())).to_vec();
    let exception = |x: &str, y: &str, bandwidth: f64| Exception {
        between: (x.into(), y.into()),
        latency: None,
        bandwidth: Some((bandwidth, bandwidth)),
        directed: false,
        shared: None,
    };
    let network = Network::resolved(
        Link { latency: 0.0, horizontal: 1.0, vertical: 1.0 },
        &names,
        &[
            exception("a1", "a2", 5.0),
            exception("s/a", "s/a", 4.0),
            exception("s", "s", 2.0),
            exception("s/b", "s/a", 3.0),
        ],
    );
    assert_eq!(network.link(Rank(0), Rank(1)).horizontal, 5.0);
    assert_eq!(network.link(Rank(0), Rank(2)).horizontal, 3.0);
    assert_eq!(network.link(Rank(2), Rank(1)).horizontal, 3.0);
    assert_eq!(network.link(Rank(1), Rank(1)), Link::FREE);
}

/// Two clusters of two behind one link each, and a trunk between them.
const TREE: &str = "[[processor]]\nname = \"a1\"\ncluster = \"s/a\"\n[[processor]]\nname = \"a2\"\ncluster = \"s/a\"\n\
    [[processor]]\nname = \"b1\"\ncluster = \"s/b\"\n[[processor]]\nname = \"b2\"\ncluster = \"s/b\"\n[network]\n";

fn parse(network: &str) -> Network {
    crate::platform::parse_platform(&format!("{TREE}{network}"), "tree").unwrap().network
}

#[test]
fn a_shared_link_is_one_wire_for_all_pairs() {
    let text =
        "bandwidth = 10\n[[network.link]]\nbetween = [\"s/b\", \"s/a\"]\nbandwidth = 3\nshared = true\n";
    let mut network = parse(text);
    let wire = |n: &Network, a, b| n.route(Rank(a), Rank(b))[0].crossings[0].wire;
    assert_eq!(wire(&network, 0, 2), wire(&network, 1, 3));
    assert_eq!(wire(&network, 0, 2), Wire::Shared { number: 0, backward: true });
    assert_ne!(wire(&network, 0, 2), wire(&network, 2, 0));
    assert_eq!(wire(&network, 0, 1), Wire::Pair(Rank(0), Rank(1)));
    assert_eq!(network.route(Rank(2), Rank(0))[0].crossings[0].capacity, 3.0);
    network.duplex = false;
    assert_eq!(wire(&network, 0, 2), wire(&network, 3, 1));
}

#[test]
fn uplinks_are_crossed_up_to_the_common_ancestor() {
    let text = "[[network.uplink]]\nof = \"s/a\"\nbandwidth = 5\nlatency = 1\n[[network.uplink]]\nof = \"a1\"\nbandwidth = 9\n\
        [[network.uplink]]\nof = \"s\"\nbandwidth = 1\n";
    let network = parse(text);
    let wires = |a, b| -> Vec<Wire> {
        let route = network.route(Rank(a), Rank(b)).remove(0);
        route.crossings.iter().filter(|c| c.capacity.is_finite()).map(|c| c.wire).collect()
    };
    let uplink = |number, down| Wire::Uplink { number, down };
    assert_eq!(wires(0, 1), [uplink(1, false)]);
    assert_eq!(wires(0, 2), [uplink(1, false), uplink(0, false)]);
    assert_eq!(wires(3, 0), [uplink(0, true), uplink(1, true)]);
    assert_eq!(network.link(Rank(0), Rank(2)), Link { latency: 1.0, horizontal: 5.0, vertical: 5.0 });
    assert!(!network.is_free());
}

#[test]
fn another_bandwidth_keeps_the_ratios() {
    let names = [("a".to_string(), "a".to_string()), ("b".into(), "b".into()), ("c".into(), "b".into())];
    let slow = Exception {
        between: ("a".into(), "b".into()),
        latency: Some(0.5),
        bandwidth: Some((10.0, 20.0)),
        directed: false,
        shared: None,
    };
    let default = Link { latency: 0.1, horizontal: 40.0, vertical: 40.0 };
    let network = Network::resolved(default, &names, &[slow]);
    let faster = network.at_bandwidth(100.0).at_latency(1.0);
    assert_eq!(faster.link(Rank(0), Rank(1)), Link { latency: 1.0, horizontal: 100.0, vertical: 200.0 });
    assert_eq!(faster.link(Rank(1), Rank(2)), Link { latency: 0.2, horizontal: 400.0, vertical: 400.0 });
    let given = Network::free().at_bandwidth(5.0).at_latency(2.0);
    assert_eq!(given.link(Rank(0), Rank(1)), Link { latency: 2.0, horizontal: 5.0, vertical: 5.0 });
}
