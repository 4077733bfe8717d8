//! Booking of posted messages: at once, or in the order of turns on a bus.

use super::{Broadcast, Message, Piece};
use crate::geometry::Rank;
use crate::platform::{LinkBookings, Load, Network, Topology, Transit};
use std::collections::BTreeMap;

/// A message or a broadcast that its sender has posted.
#[derive(Debug, Clone)]
pub struct Posting {
    /// The sender.
    pub from: Rank,
    /// The message's tag.
    pub tag: u64,
    /// Receivers, each with the size of its message.
    pub to: Vec<(Rank, Load)>,
    /// The size of a broadcast, each byte counted once.
    pub once: Option<Load>,
    /// Time of posting.
    pub at: f64,
}

impl Posting {
    /// A message of `element` bytes an element, posted at `at`.
    pub fn message<P: Piece>(message: &Message<P>, element: u64, at: f64) -> Self {
        let to = vec![(message.to, message.load(element))];
        Self { from: message.from, tag: message.tag, to, once: None, at }
    }

    /// A broadcast. All of its messages have the same tag.
    pub fn broadcast<P: Piece>(broadcast: &Broadcast<P>, element: u64, at: f64) -> Self {
        Self {
            from: broadcast.from,
            tag: broadcast.messages[0].tag,
            to: broadcast.messages.iter().map(|message| (message.to, message.load(element))).collect(),
            once: Some(broadcast.load(element)),
            at,
        }
    }
}

/// The wires of a network, and the messages that wait for their turn on a bus.
#[derive(Debug)]
pub struct Medium<'a> {
    wires: LinkBookings<'a>,
    turns: Option<Turns>,
}

/// The state of a bus that carries messages turn by turn.
#[derive(Debug, Default)]
struct Turns {
    /// The turn whose messages are carried; `None` before the first.
    now: Option<u64>,
    /// Its senders that have not posted yet.
    missing: Vec<Rank>,
    /// Messages of later turns.
    held: BTreeMap<u64, Vec<Posting>>,
}

impl<'a> Medium<'a> {
    /// An idle network.
    pub fn new(network: &'a Network) -> Self {
        let turns = (network.topology == Topology::Bus).then(Turns::default);
        Self { wires: LinkBookings::new(network), turns }
    }

    /// Posts a message. Returns the messages that are booked at its time, each with the times for its
    /// receivers: this one, unless it waits for its turn, and those that waited for this one. `senders` are
    /// those of a turn ([`Application::senders`](super::Application::senders)).
    pub fn post(
        &mut self,
        posting: Posting,
        senders: &dyn Fn(u64) -> Option<Vec<Rank>>,
    ) -> Vec<(Posting, Vec<Transit>)> {
        let now = posting.at;
        let due = match &mut self.turns {
            Some(turns) => turns.post(posting, senders),
            None => vec![posting],
        };
        due.into_iter()
            .map(|posting| {
                let transits = self.book(&posting, now);
                (posting, transits)
            })
            .collect()
    }

    /// Books one message posted at `now`; `None` on a bus, where it may have to wait for its turn.
    pub(crate) fn book_at_once(&mut self, from: Rank, to: Rank, load: Load, now: f64) -> Option<Transit> {
        self.turns.is_none().then(|| self.wires.book(from, to, load, now))
    }

    fn book(&mut self, posting: &Posting, now: f64) -> Vec<Transit> {
        match posting.once {
            Some(once) => self.wires.book_broadcast(posting.from, &posting.to, once, now),
            None => {
                posting.to.iter().map(|&(to, load)| self.wires.book(posting.from, to, load, now)).collect()
            }
        }
    }
}

impl Turns {
    /// The messages that may be booked now that this one is posted, in their order.
    fn post(&mut self, posting: Posting, senders: &dyn Fn(u64) -> Option<Vec<Rank>>) -> Vec<Posting> {
        self.held.entry(posting.tag).or_default().push(posting);
        let mut due = Vec::new();
        loop {
            if self.missing.is_empty() {
                let next = self.now.map_or(0, |turn| turn + 1);
                let Some(missing) = senders(next) else {
                    // No more turns: nothing waits.
                    due.extend(std::mem::take(&mut self.held).into_values().flatten());
                    return due;
                };
                (self.now, self.missing) = (Some(next), missing);
            }
            // A message of an earlier turn is not held either.
            let later = self.held.split_off(&self.now.map_or(0, |turn| turn + 1));
            let ready = std::mem::replace(&mut self.held, later);
            for posting in ready.into_values().flatten() {
                self.missing.retain(|rank| *rank != posting.from);
                due.push(posting);
            }
            if !self.missing.is_empty() {
                return due;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Load = Load { horizontal: 4.0, vertical: 0.0 };

    fn posting(from: usize, tag: u64, at: f64) -> Posting {
        Posting { from: Rank(from), tag, to: vec![(Rank(2), BYTES)], once: None, at }
    }

    /// Turn 0 has two senders, turn 1 none, turn 2 one. Whoever posts first, turn 2 comes last.
    #[test]
    fn a_bus_carries_turn_by_turn() {
        let mut network = Network::uniform(0.0, 1.0);
        let senders = |turn: u64| [vec![Rank(0), Rank(1)], vec![], vec![Rank(3)]].get(turn as usize).cloned();
        let order = |network: &Network| {
            let mut medium = Medium::new(network);
            let mut booked = Vec::new();
            for (from, tag, at) in [(3, 2, 0.0), (1, 0, 0.5), (0, 0, 1.0)] {
                let due = medium.post(posting(from, tag, at), &senders);
                booked.push(due.iter().map(|(p, times)| (p.from.0, times[0].start)).collect::<Vec<_>>());
            }
            booked
        };
        // Every pair has its own wire.
        assert_eq!(order(&network), [vec![(3, 0.0)], vec![(1, 0.5)], vec![(0, 1.0)]]);
        network.topology = Topology::Bus;
        assert_eq!(order(&network), [vec![], vec![(1, 0.5)], vec![(0, 4.5), (3, 8.5)]]);
    }

    /// Without turns a bus carries messages as they come.
    #[test]
    fn without_turns_nothing_waits() {
        let mut network = Network::uniform(0.0, 1.0);
        network.topology = Topology::Bus;
        let mut medium = Medium::new(&network);
        for (number, from) in [3, 1, 0].into_iter().enumerate() {
            let due = medium.post(posting(from, from as u64, 0.0), &|_| None);
            assert_eq!(due[0].1[0].start, 4.0 * number as f64);
        }
    }
}
