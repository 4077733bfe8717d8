//! When messages arrive: each wire carries one message at a time, in the order of booking.
//!
//! The threads engine asks it with the time of day, the simulator with a virtual clock: one rule, two readers.

use super::{Network, Route, Topology, Wire};
use crate::rect::Rank;
use std::collections::BTreeMap;

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

/// When a message travels, in seconds on the caller's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transit {
    /// Its first byte leaves.
    pub start: f64,
    /// Its last byte has left the sender.
    pub sent: f64,
    /// Its last byte has arrived.
    pub arrival: f64,
}

/// The wires of a network and the moment until which each is taken.
#[derive(Debug, Clone)]
pub struct Wires<'a> {
    network: &'a Network,
    taken: BTreeMap<Wire, f64>,
}

impl<'a> Wires<'a> {
    /// All wires idle.
    pub fn new(network: &'a Network) -> Self {
        Self { network, taken: BTreeMap::new() }
    }

    /// Books the way of a message posted at `now`: every hop takes `latency + bytes / bandwidth` (Hockney) on
    /// all its wires, after whatever was booked there before; a relay passes a message on once it has it whole.
    pub fn book(&mut self, from: Rank, to: Rank, load: Load, now: f64) -> Transit {
        let mut transit = Transit { start: now, sent: now, arrival: now };
        for (i, hop) in self.network.route(from, to).iter().enumerate() {
            let taken = |wire| self.taken.get(wire).copied().unwrap_or(0.0);
            let free = hop.crossings.iter().map(|c| taken(&c.wire)).fold(0.0, f64::max);
            let start = transit.arrival.max(free);
            let end = start + hop.link.seconds(load.horizontal, load.vertical);
            self.taken.extend(hop.crossings.iter().map(|c| (c.wire, end)));
            if i == 0 {
                (transit.start, transit.sent) = (start, end);
            }
            transit.arrival = end;
        }
        transit
    }

    /// Books a broadcast posted at `now`, to each receiver so much, `once` in all with every byte counted once. A bus
    /// carries it as one message, at the pace of the slowest receiver's link; elsewhere there is one for each, in this
    /// order.
    pub fn book_broadcast(&mut self, from: Rank, to: &[(Rank, Load)], once: Load, now: f64) -> Vec<Transit> {
        if self.network.topology != Topology::Bus {
            return to.iter().map(|&(to, load)| self.book(from, to, load, now)).collect();
        }
        let hops = to.iter().flat_map(|&(to, _)| self.network.route(from, to));
        let seconds = |hop: &Route| hop.link.seconds(once.horizontal, once.vertical);
        let Some(slowest) = hops.max_by(|a, b| seconds(a).total_cmp(&seconds(b))) else {
            return Vec::new();
        };
        let taken = |wire| self.taken.get(wire).copied().unwrap_or(0.0);
        let start = slowest.crossings.iter().map(|c| taken(&c.wire)).fold(now, f64::max);
        let end = start + seconds(&slowest);
        self.taken.extend(slowest.crossings.iter().map(|c| (c.wire, end)));
        vec![Transit { start, sent: end, arrival: end }; to.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Topology;

    const FOUR: Load = Load { horizontal: 1.0, vertical: 3.0 };

    #[test]
    fn a_half_duplex_wire_carries_one_message_at_a_time() {
        let mut network = Network::uniform(1.0, 2.0);
        let book = |network: &Network| {
            let mut wires = Wires::new(network);
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
            let mut wires = Wires::new(network);
            let first: Vec<f64> =
                wires.book_broadcast(Rank(0), &to, once, 0.0).iter().map(|t| t.arrival).collect();
            (first, wires.book(Rank(1), Rank(0), FOUR, 0.0).arrival)
        };
        // Each on a wire of its own, with its own size; on a bus all at once, and the next message after it.
        assert_eq!(book(&network), (vec![3.0, 1.5], 3.0));
        network.topology = Topology::Bus;
        assert_eq!(book(&network), (vec![3.5, 3.5], 6.5));
    }

    #[test]
    fn a_relay_takes_two_hops() {
        let mut network = Network::uniform(0.0, 2.0);
        network.topology = Topology::Star { centre: Rank(1) };
        let transit = Wires::new(&network).book(Rank(0), Rank(2), FOUR, 0.0);
        assert_eq!((transit.sent, transit.arrival), (2.0, 4.0));
    }
}
