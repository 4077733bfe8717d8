//! Flows against a simulation without bundles, which solves for the rate of every flow at every event.

use super::*;
use crate::geometry::Rank;
use crate::platform::{Network, parse_platform};
use crate::simulate::fluid::{Fluid, Tcp, Weights};
use proptest::prelude::*;

/// Six processors in three clusters, which share uplinks and one trunk.
fn network(duplex: bool, uplinks: bool) -> Network {
    let mut text: String =
        (0..6).map(|i| format!("[[processor]]\nname = \"n{i}\"\ncluster = \"c{}\"\n", i / 2)).collect();
    text += &format!("[network]\nbandwidth = 100.0\nlatency = 0.5\nduplex = {duplex}\n");
    if uplinks {
        for (cluster, speed) in [("c0", 150), ("c1", 90), ("c2", 300)] {
            text +=
                &format!("[[network.uplink]]\nof = \"{cluster}\"\nbandwidth = {speed}.0\nlatency = 0.5\n");
        }
    }
    parse_platform(&text, "test").unwrap().network
}

/// A flow: its start, its pair, and its amount.
type Start = (f64, [usize; 2], f64);

/// When each flow ends, by [`Flows`], where components of this many bundles are large.
fn ours(network: &Network, rules: &Fluid, starts: &[Start], large: usize) -> Vec<f64> {
    let placement: Vec<usize> = (0..1 + starts.iter().flat_map(|start| start.1).max().unwrap_or(0)).collect();
    let mut fabric = Fabric::new(network, &placement, rules);
    let mut flows = Flows { large, ..Flows::new(0.0) };
    let mut ends = vec![f64::NAN; starts.len()];
    let (mut events, mut carried, mut ended): (Vec<Next>, Vec<(u32, usize)>, Vec<u32>) = Default::default();
    let mut left: Vec<usize> = (0..starts.len()).collect();
    left.sort_by(|&x, &y| starts[y].0.total_cmp(&starts[x].0));
    loop {
        events.retain(|event| flows.current(event.what));
        events.sort_by(|x, y| y.time.total_cmp(&x.time));
        let next = left.last().map_or(f64::INFINITY, |&i| starts[i].0);
        let Some(event) = events.pop_if(|event| event.time <= next) else {
            let Some(i) = left.pop() else { return ends };
            let path = fabric.between(starts[i].1[0], starts[i].1[1]);
            let id = flows.start(&fabric, path, starts[i].2, 1.0, next, |event| events.push(event));
            carried.retain(|(known, _)| *known != id);
            carried.push((id, i));
            flows.share(&fabric, next, |event| events.push(event));
            continue;
        };
        flows.finish(&fabric, event.what, event.time, &mut ended, |event| events.push(event));
        for id in &ended {
            let (_, i) = carried.iter().find(|(known, _)| known == id).unwrap();
            assert!(ends[*i].is_nan(), "a flow ends once");
            ends[*i] = event.time;
        }
        flows.share(&fabric, event.time, |event| events.push(event));
    }
}

/// When each flow ends: every wire is a link, every flow has its own rate, and nothing is kept between
/// events.
fn oracle(network: &Network, rules: &Fluid, starts: &[Start]) -> Vec<f64> {
    let mut ends = vec![f64::NAN; starts.len()];
    let mut rest: Vec<f64> = starts.iter().map(|start| start.2).collect();
    let mut now = 0.0;
    loop {
        let runs: Vec<usize> =
            (0..starts.len()).filter(|&i| starts[i].0 <= now && ends[i].is_nan()).collect();
        let mut sharing = Sharing::default();
        let mut links: BTreeMap<u64, u32> = BTreeMap::new();
        let routes: Vec<_> =
            runs.iter().map(|&i| route(network, rules, starts[i].1, &mut links, &mut sharing)).collect();
        for (uses, weight, bound) in routes {
            sharing.flows(1, weight, bound, uses.into_iter());
        }
        let mut rates = Vec::new();
        sharing.solve(&mut rates);
        let soonest =
            runs.iter().zip(&rates).map(|(&i, rate)| now + rest[i] / rate).fold(f64::INFINITY, f64::min);
        let begins =
            starts.iter().map(|start| start.0).filter(|&start| start > now).fold(f64::INFINITY, f64::min);
        let next = soonest.min(begins);
        if next.is_infinite() {
            return ends;
        }
        for (&i, rate) in runs.iter().zip(&rates) {
            rest[i] -= rate * (next - now);
            if rest[i] <= 1e-9 * starts[i].2 {
                ends[i] = next;
            }
        }
        now = next;
    }
}

/// The links of a pair with their shares, the weight and the bound; new links are added to the problem.
fn route(
    network: &Network,
    rules: &Fluid,
    [from, to]: [usize; 2],
    links: &mut BTreeMap<u64, u32>,
    sharing: &mut Sharing,
) -> (Vec<(u32, f64)>, f64, f64) {
    let mut uses: Vec<(u32, f64)> = Vec::new();
    let (mut latency, mut weight, mut bound) = (0.0, 0.0, f64::INFINITY);
    for (back, [from, to]) in [(false, [from, to]), (true, [to, from])] {
        if back && !rules.tcp.cross_traffic {
            continue;
        }
        for crossing in network.route(Rank(from), Rank(to)).iter().flat_map(|hop| &hop.crossings) {
            let next = links.len() as u32;
            let link = *links.entry(crossing.wire.number()).or_insert_with(|| {
                sharing.link(crossing.capacity);
                next
            });
            let share = if back { 0.05 } else { 1.0 };
            match uses.iter_mut().find(|known| known.0 == link) {
                Some(known) => known.1 += share,
                None => uses.push((link, share)),
            }
            if !back {
                latency += crossing.link.latency;
                weight += rules.tcp.per_link / crossing.capacity;
                bound = bound.min(crossing.capacity);
            }
        }
    }
    let weight = if rules.weights == Weights::Latency { weight + latency } else { 1.0 };
    (uses, weight, bound.min(rules.tcp.window / (2.0 * latency)))
}

proptest! {
    /// Flows begin at few moments and have few sizes, so that many begin or end at once, on the same pair
    /// too.
    #[test]
    fn flows_end_as_without_bundles(
        starts in prop::collection::vec((0u32..8, (0usize..6, 1usize..6), 1u32..5), 1..40),
        (duplex, uplinks, weighted, acknowledged) in any::<(bool, bool, bool, bool)>(),
        large in prop_oneof![Just(1), 2_usize..20, Just(usize::MAX)],
    ) {
        let network = network(duplex, uplinks);
        let weights = if weighted { Weights::Latency } else { Weights::Equal };
        let rules = Fluid { weights, tcp: Tcp { cross_traffic: acknowledged, ..Tcp::default() }, ..Fluid::fair() };
        let starts: Vec<Start> = starts
            .into_iter()
            .map(|(at, (from, by), size)| (f64::from(at), [from, (from + by) % 6], 100.0 * f64::from(size)))
            .collect();
        let (ours, theirs) = (ours(&network, &rules, &starts, large), oracle(&network, &rules, &starts));
        for (i, (end, expected)) in ours.iter().zip(&theirs).enumerate() {
            prop_assert!((end - expected).abs() <= 1e-6 * expected, "flow {i}: {end}, not {expected}");
        }
    }
}

/// Two flows of one pair share its wire of 100 units a second, not the uplink's 150. Worked by hand.
#[test]
fn flows_of_a_pair_share_its_wire() {
    // At 50 each until 1; then 50 for all three. At 2 the first ends, and the others get 75 each: 100 units
    // end at 10/3. Of 175, the last has 25 left then, and the wire of its own pair carries 100.
    let starts = [(0.0, [0, 4], 100.0), (0.0, [0, 4], 200.0), (1.0, [1, 5], 175.0)];
    let expected = [2.0, 10.0 / 3.0, 43.0 / 12.0];
    for large in [1, usize::MAX] {
        let ends = ours(&network(true, true), &Fluid::fair(), &starts, large);
        assert!(ends.iter().zip(expected).all(|(end, wanted)| (end - wanted).abs() < 1e-12), "{ends:?}");
    }
}

/// Two links change places twice, and the flow that crosses both changes over. Worked by hand.
#[test]
fn links_change_places() {
    let mut text: String =
        (0..6).map(|i| format!("[[processor]]\nname = \"n{i}\"\ncluster = \"c{}\"\n", i / 2)).collect();
    text += "[network]\n";
    for (cluster, speed) in [("c0", 120), ("c1", 1000), ("c2", 90)] {
        text += &format!("[[network.uplink]]\nof = \"{cluster}\"\nbandwidth = {speed}.0\n");
    }
    let network = parse_platform(&text, "test").unwrap().network;
    // a crosses the uplinks of c0 and c2; b that of c0, c and d that of c2. Rates of a, b, c, d: until 1: 60,
    // 60 (c0 is full); until 2: 30, 90, 30, 30 (c2 comes first); until 3: 45, 75, 45 (d has ended); until 4:
    // 60, 60 (c0 comes first again); until 5: b alone has 120.
    let starts = [(0.0, [0, 4], 195.0), (0.0, [1, 2], 405.0), (1.0, [3, 5], 75.0), (1.0, [2, 4], 30.0)];
    for large in [1, 2, usize::MAX] {
        let ends = ours(&network, &Fluid::fair(), &starts, large);
        assert!(
            ends.iter().zip([4.0, 5.0, 3.0, 2.0]).all(|(end, wanted)| (end - wanted).abs() < 1e-12),
            "{ends:?}"
        );
    }
}

/// Many flows between sites with random uplinks: levels that are brought up to date are those of solutions
/// from scratch. Bottlenecks change places all the time. Half of the networks are trees, with up to four
/// links on a path.
#[test]
fn levels_brought_up_to_date_are_those_from_scratch() {
    for seed in 0..8_u64 {
        // A linear congruential generator with Knuth's constants.
        let mut state = seed;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let sites = 12;
        let tree = seed >= 4;
        let name = |site: usize| if tree { format!("s{}/c{site}", site / 4) } else { format!("c{site}") };
        let mut text: String = (0..2 * sites)
            .map(|i| format!("[[processor]]\nname = \"n{i}\"\ncluster = \"{}\"\n", name(i / 2)))
            .collect();
        text += "[network]\nbandwidth = 100.0\nlatency = 0.001\n";
        let upper = (0..sites / 4).filter(|_| tree).map(|site| (format!("s{site}"), 600.0));
        for (name, least) in (0..sites).map(|site| (name(site), 50.0)).chain(upper) {
            let speed = least + 350.0 * unit();
            text += &format!("[[network.uplink]]\nof = \"{name}\"\nbandwidth = {speed}\nlatency = 0.001\n");
        }
        let network = parse_platform(&text, "test").unwrap().network;
        let starts: Vec<Start> = (0..1500)
            .map(|_| {
                let from = (unit() * 2.0 * sites as f64) as usize;
                let to = (from + 1 + (unit() * (2.0 * sites as f64 - 1.0)) as usize) % (2 * sites);
                (40.0 * unit(), [from, to], 10.0 + 190.0 * unit())
            })
            .collect();
        let rules = if seed % 2 == 0 {
            Fluid::fair()
        } else {
            Fluid {
                weights: Weights::Latency,
                tcp: Tcp { cross_traffic: true, ..Tcp::default() },
                ..Fluid::fair()
            }
        };
        let (updated, solved) =
            (ours(&network, &rules, &starts, 8), ours(&network, &rules, &starts, usize::MAX));
        for (i, (end, expected)) in updated.iter().zip(&solved).enumerate() {
            assert!(
                (end - expected).abs() <= 1e-9 * expected,
                "seed {seed}, flow {i}: {end}, not {expected}"
            );
        }
    }
}

proptest! {
    #[test]
    fn ends_come_in_order(ends in prop::collection::vec((0.0f64..9.0, any::<bool>()), 0..40)) {
        let (mut all, mut plain) = (Ends::default(), Vec::new());
        for (id, (end, leaves)) in (0..).zip(ends) {
            let end = end.floor();
            all.push(end, (id, 0));
            plain.push((end, (id, 0)));
            plain.sort_by(|a: &(f64, Member), b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            prop_assert_eq!(all.first(), plain.first().copied());
            if leaves {
                all.pop();
                plain.remove(0);
                prop_assert_eq!(all.first(), plain.first().copied());
            }
        }
    }
}

/// 100 units at 10 per second, then at 40: worked by hand.
#[test]
fn a_new_rate_moves_the_next_end() {
    let mut bundle = Bundle::default();
    bundle.begin((0, 0), 100.0, (1, 2.0));
    bundle.ends.push(100.0, (0, 0));
    assert_eq!(bundle.next(100.0), None, "no rate is known");
    bundle.flow_at(10.0, 2.0);
    assert_eq!(bundle.next(100.0), Some(12.0));
    assert_eq!(bundle.next(100.0), None, "it is in the queue");
    bundle.flow_at(40.0, 8.0);
    assert_eq!(bundle.next(100.0), Some(9.0));
    assert_eq!(bundle.reach(9.0), 100.0);
    // One that joins then has its own 80 units before it.
    let end = bundle.drained(9.0) + 80.0;
    assert_eq!(bundle.next(end), Some(11.0));
}

fn listed(on: &OnLink) -> Vec<(u32, u32)> {
    (0..on.len()).map(|place| on.at(place)).collect()
}

proptest! {
    /// The same bundles in the same order as in one plain list, on which rates depend to the last bit.
    #[test]
    fn a_link_lists_its_bundles_in_order(changes in prop::collection::vec((any::<bool>(), 0_usize..8), 0..60)) {
        let (mut on, mut plain) = (OnLink::default(), Vec::new());
        for (birth, (starts, place)) in (1..).zip(changes) {
            if starts || plain.is_empty() {
                on.push((birth % 5, birth));
                plain.push((birth % 5, birth));
            } else {
                let ended = plain.remove(place % plain.len());
                on.retain(|bundle| bundle != ended);
            }
            prop_assert_eq!(listed(&on), plain.clone());
        }
    }

    /// Ended bundles stay at most until they are half of the list.
    #[test]
    fn a_link_forgets_what_ended(ends in prop::collection::vec(0_usize..20, 0..20)) {
        let (mut on, mut lives) = (OnLink::default(), (1..=20).collect::<std::collections::BTreeSet<u32>>());
        (1..=20).for_each(|birth| on.push((birth, birth)));
        for place in ends {
            if lives.remove(&(place as u32 + 1)) {
                on.end(|(_, birth)| lives.contains(&birth));
            }
            let known: Vec<u32> = listed(&on).into_iter().map(|b| b.1).filter(|b| lives.contains(b)).collect();
            prop_assert_eq!(&known, &lives.iter().copied().collect::<Vec<_>>());
            prop_assert!(on.len() <= 2 * lives.len() + 1);
        }
    }
}
