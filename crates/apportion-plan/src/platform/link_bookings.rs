//! Arrival times of messages: each wire carries one message at a time, in the order of booking. While a relay
//! is still receiving a message, the wire that will forward it is free for others.
//!
//! The threads engine uses it with real time, the simulator with virtual time: both follow one rule.

use crate::geometry::Rank;
use crate::platform::{Network, Route, Topology, Wire};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// A message's size by the direction in which its data travel.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Bytes of A's pieces: along rows.
    pub horizontal: f64,
    /// Bytes of B's pieces: along columns.
    pub vertical: f64,
}

impl Load {
    /// All bytes.
    pub fn bytes(self) -> f64 {
        self.horizontal + self.vertical
    }
}

/// The times of a message, in seconds on the caller's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transit {
    /// Its first byte leaves.
    pub start: f64,
    /// Its last byte has left the sender.
    pub sent: f64,
    /// Its last byte has arrived.
    pub arrival: f64,
}

/// The wires of a network, and the time until which each is booked.
#[derive(Debug, Clone)]
pub struct LinkBookings<'a> {
    network: &'a Network,
    taken: HashMap<u64, f64, BuildHasherDefault<NumberHasher>>,
    /// Idle intervals before that time, in order: each is followed by a relayed message.
    gaps: BTreeMap<Wire, Vec<(f64, f64)>>,
}

impl<'a> LinkBookings<'a> {
    /// All wires idle.
    pub fn new(network: &'a Network) -> Self {
        Self { network, taken: HashMap::default(), gaps: BTreeMap::new() }
    }

    /// Books the path of a message posted at `now`. Every hop takes `latency + bytes / bandwidth` (Hockney)
    /// on all its wires, after everything booked there before. A relay forwards a message once it has
    /// received all of it; until then its wire serves later messages, in pieces if they are longer. The time
    /// at which a wire becomes idle therefore does not depend on the order in which different senders book.
    pub fn book(&mut self, from: Rank, to: Rank, load: Load, now: f64) -> Transit {
        match self.network.topology {
            Topology::Star { centre } if from != centre && to != centre => {
                let (start, sent) = self.cross(from, centre, load, now, now);
                let (_, arrival) = self.cross(centre, to, load, sent, now);
                Transit { start, sent, arrival }
            }
            _ => {
                let (start, sent) = self.cross(from, to, load, now, now);
                Transit { start, sent, arrival: sent }
            }
        }
    }

    /// Books one hop of a message that is `ready` and was posted at `now`; returns the start and the end.
    fn cross(&mut self, from: Rank, to: Rank, load: Load, ready: f64, now: f64) -> (f64, f64) {
        if let Some((wire, link)) = self.network.only_wire(from, to) {
            return self.occupy(wire, ready, link.seconds(load.horizontal, load.vertical), now);
        }
        let hop = self.network.hop(from, to);
        let seconds = hop.link.seconds(load.horizontal, load.vertical);
        match hop.crossings.as_slice() {
            [crossing] => self.occupy(crossing.wire, ready, seconds, now),
            crossings => {
                let taken = |wire: &Wire| self.taken.get(&wire.number()).copied().unwrap_or(0.0);
                let free = crossings.iter().map(|c| taken(&c.wire)).fold(0.0, f64::max);
                let start = ready.max(free);
                self.taken.extend(crossings.iter().map(|c| (c.wire.number(), start + seconds)));
                (start, start + seconds)
            }
        }
    }

    /// Books a wire for `seconds` from `ready` on, idle intervals first; returns the start and the end.
    fn occupy(&mut self, wire: Wire, ready: f64, seconds: f64, now: f64) -> (f64, f64) {
        let until = self.taken.entry(wire.number()).or_insert(0.0);
        let taken = *until;
        let (mut left, mut first) = (seconds, None);
        if let Some(gaps) = self.gaps.get_mut(&wire).filter(|gaps| !gaps.is_empty()) {
            let mut rest = Vec::new();
            for &(from, to) in gaps.iter().filter(|gap| gap.1 > now) {
                let start = from.max(ready);
                // A remainder of a message that is only rounding is not waited for.
                if start >= to || left <= 1e-9 * seconds {
                    rest.push((from, to));
                    continue;
                }
                let end = to.min(start + left);
                left -= end - start;
                first = Some((first.map_or(start, |(start, _)| start), end));
                rest.extend([(from, start), (end, to)].into_iter().filter(|(from, to)| from < to));
            }
            *gaps = rest;
        }
        if let Some(stretch) = first.filter(|_| left <= 1e-9 * seconds) {
            return stretch;
        }
        let start = taken.max(ready);
        if start > taken.max(now) {
            self.gaps.entry(wire).or_default().push((taken.max(now), start));
        }
        *until = start + left;
        (first.map_or(start, |(start, _)| start), start + left)
    }

    /// Books a broadcast posted at `now`, given the size for each receiver, and `once`, the total size with
    /// every byte counted once. A bus carries it as one message, at the speed of the slowest receiver's link;
    /// other networks carry one message per receiver, in this order.
    pub(crate) fn book_broadcast(
        &mut self,
        from: Rank,
        to: &[(Rank, Load)],
        once: Load,
        now: f64,
    ) -> Vec<Transit> {
        if self.network.topology != Topology::Bus {
            return to.iter().map(|&(to, load)| self.book(from, to, load, now)).collect();
        }
        let hops = to.iter().flat_map(|&(to, _)| self.network.route(from, to));
        let seconds = |hop: &Route| hop.link.seconds(once.horizontal, once.vertical);
        let Some(slowest) = hops.max_by(|a, b| seconds(a).total_cmp(&seconds(b))) else {
            return Vec::new();
        };
        let taken = |wire: &Wire| self.taken.get(&wire.number()).copied().unwrap_or(0.0);
        let start = slowest.crossings.iter().map(|c| taken(&c.wire)).fold(now, f64::max);
        let end = start + seconds(&slowest);
        self.taken.extend(slowest.crossings.iter().map(|c| (c.wire.number(), end)));
        vec![Transit { start, sent: end, arrival: end }; to.len()]
    }
}

/// A hash of one number. Order plays no part, and the numbers are not chosen by a user who could make them
/// collide.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // The finaliser of SplitMix64.
        let mut x = (self.0 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = x ^ x >> 31;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Topology;
    use proptest::prelude::*;

    const FOUR: Load = Load { horizontal: 1.0, vertical: 3.0 };

    #[test]
    fn a_half_duplex_wire_carries_one_message_at_a_time() {
        let mut network = Network::uniform(1.0, 2.0);
        let book = |network: &Network| {
            let mut wires = LinkBookings::new(network);
            let first = wires.book(Rank(0), Rank(1), FOUR, 5.0);
            let second = wires.book(Rank(1), Rank(0), FOUR, 6.0);
            (first.arrival, second.start, second.arrival)
        };
        assert_eq!(book(&network), (8.0, 6.0, 9.0));
        network.duplex = false;
        assert_eq!(book(&network), (8.0, 8.0, 11.0));
    }

    #[test]
    fn a_bus_carries_a_broadcast_once() {
        let mut network = Network::uniform(1.0, 2.0);
        let to = [(Rank(1), FOUR), (Rank(2), Load { horizontal: 1.0, vertical: 0.0 })];
        let once = Load { horizontal: 2.0, vertical: 3.0 };
        let book = |network: &Network| {
            let mut wires = LinkBookings::new(network);
            let first: Vec<f64> =
                wires.book_broadcast(Rank(0), &to, once, 0.0).iter().map(|t| t.arrival).collect();
            (first, wires.book(Rank(1), Rank(0), FOUR, 0.0).arrival)
        };
        // Each on a wire of its own, with its own size; on a bus all at once, and the next message after it.
        assert_eq!(book(&network), (vec![3.0, 1.5], 3.0));
        network.topology = Topology::Bus;
        assert_eq!(book(&network), (vec![3.5, 3.5], 6.5));
    }

    /// A message relayed by the centre occupies the centre's wire only after the centre has received it.
    #[test]
    fn a_relayed_message_leaves_the_wire_to_others_until_it_is_there() {
        let mut network = Network::uniform(0.0, 1.0);
        network.topology = Topology::Star { centre: Rank(1) };
        let bytes = |horizontal| Load { horizontal, vertical: 0.0 };
        let mut wires = LinkBookings::new(&network);
        assert_eq!(wires.book(Rank(0), Rank(2), bytes(3.0), 0.0).arrival, 6.0);
        // Three of its four bytes go before the relayed message, the last after it.
        let own = wires.book(Rank(1), Rank(2), bytes(4.0), 0.0);
        assert_eq!((own.start, own.arrival), (0.0, 7.0));
        assert_eq!(wires.book(Rank(1), Rank(2), bytes(1.0), 2.0).arrival, 8.0);
    }

    proptest! {
        /// In any order of booking, each receiver gets the last of its messages at the same time.
        #[test]
        fn the_order_of_senders_is_all_one(
            messages in prop::collection::vec((0usize..4, 1usize..4, 0.1f64..9.0), 1..24), centre in 0usize..4,
        ) {
            let mut network = Network::uniform(0.25, 3.0);
            network.topology = Topology::Star { centre: Rank(centre) };
            let last = |order: &dyn Fn(usize) -> usize| {
                let mut wires = LinkBookings::new(&network);
                let mut last = [0.0f64; 4];
                for from in (0..4).map(order) {
                    for &(_, offset, horizontal) in messages.iter().filter(|m| m.0 == from) {
                        let to = (from + offset) % 4;
                        let load = Load { horizontal, vertical: 0.0 };
                        last[to] = last[to].max(wires.book(Rank(from), Rank(to), load, 0.0).arrival);
                    }
                }
                last
            };
            let (one, other) = (last(&|i| i), last(&|i| 3 - i));
            for (x, y) in one.iter().zip(&other) {
                prop_assert!((x - y).abs() <= 1e-6, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_relay_takes_two_hops() {
        let mut network = Network::uniform(0.0, 2.0);
        network.topology = Topology::Star { centre: Rank(1) };
        let transit = LinkBookings::new(&network).book(Rank(0), Rank(2), FOUR, 0.0);
        assert_eq!((transit.sent, transit.arrival), (2.0, 4.0));
    }
}
