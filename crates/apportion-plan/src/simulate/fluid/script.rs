//! Conversion of a schedule's steps to actions.

use super::{Action, Then};
use crate::geometry::Rank;
use crate::platform::Network;
use crate::schedule::{Application, Broadcast, Message, Step, StepOf, Work};
use crate::trace::Lane;
use std::collections::VecDeque;

/// The actions of one processor. Counts the elements that it sends and receives.
pub(super) struct Script<'a, A: Application> {
    steps: Box<dyn Iterator<Item = StepOf<A>> + 'a>,
    rank: Rank,
    element: u64,
    /// The bus on which a broadcast is one message.
    medium: Option<&'a Network>,
    /// Remaining actions of a broadcast.
    rest: VecDeque<Action>,
    /// Counts of elements and messages, if anyone wants them.
    counts: Option<Lane>,
}

impl<'a, A: Application> Script<'a, A> {
    /// The actions for elements of `element` bytes on a network, which is given if all hear a broadcast.
    pub(crate) fn new(
        schedule: &'a A,
        rank: Rank,
        element: u64,
        medium: Option<&'a Network>,
        counts: bool,
    ) -> Self {
        let counts = counts.then(Lane::default);
        Self { steps: schedule.steps(rank), rank, element, medium, rest: VecDeque::new(), counts }
    }

    fn send(&mut self, message: &Message<A::Piece>) -> Action {
        if let Some(counts) = &mut self.counts {
            counts.sent[message.to.0] += message.elements();
            counts.messages[message.to.0] += 1;
        }
        let load = message.load(self.element);
        Action::Send { to: message.to, tag: message.tag, load, then: Then::Forget }
    }

    /// Sends a message to each receiver. On a medium that all receivers hear, they travel with the message to
    /// the slowest receiver, which then carries every byte once.
    fn broadcast(&mut self, broadcast: &Broadcast<A::Piece>) {
        let actions: Vec<Action> = broadcast.messages.iter().map(|message| self.send(message)).collect();
        self.rest.extend(actions);
        let Some(network) = self.medium else { return };
        let once = broadcast.load(self.element);
        let seconds = |action: &Action| match *action {
            Action::Send { to, .. } => {
                let route = network.route(self.rank, to);
                route.iter().map(|hop| hop.link.seconds(once.horizontal, once.vertical)).sum()
            }
            _ => 0.0,
        };
        let slowest =
            (0..self.rest.len()).max_by(|&a, &b| seconds(&self.rest[a]).total_cmp(&seconds(&self.rest[b])));
        let Some(slowest) = slowest else { return };
        let last = self.rest.len() - 1;
        self.rest.swap(slowest, last);
        for (place, action) in self.rest.iter_mut().enumerate() {
            if let Action::Send { to, tag, load, .. } = action {
                if place == last {
                    *load = once;
                } else {
                    *action = Action::Along { to: *to, tag: *tag, load: *load };
                }
            }
        }
    }

    fn carries(&mut self, elements: impl FnOnce() -> u64) {
        if let Some(counts) = &mut self.counts {
            counts.carried += elements();
        }
    }

    /// Writes the counts to the lane.
    pub(crate) fn count(self, lane: &mut Lane) {
        let Lane { sent, received, messages, carried, .. } = self.counts.unwrap_or_default();
        *lane = Lane { sent, received, messages, carried, ..std::mem::take(lane) };
    }
}

impl<A: Application> Iterator for Script<'_, A> {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        loop {
            if let Some(action) = self.rest.pop_front() {
                return Some(action);
            }
            return Some(match self.steps.next()? {
                Step::Send(message) => {
                    self.carries(|| message.elements());
                    self.send(&message)
                }
                Step::Broadcast(broadcast) => {
                    self.carries(|| broadcast.elements());
                    self.broadcast(&broadcast);
                    continue;
                }
                Step::PostReceive(message) => {
                    if let Some(counts) = &mut self.counts {
                        counts.received[message.from.0] += message.elements();
                    }
                    Action::Receive { from: message.from, tag: message.tag, then: Then::Remember }
                }
                Step::WaitReceive { from, tag } => Action::Await { from, to: self.rank, tag },
                Step::WaitSends => Action::Flush,
                Step::Compute(work) => Action::Compute(work.amount()),
                Step::Free(_) => continue,
            });
        }
    }
}
