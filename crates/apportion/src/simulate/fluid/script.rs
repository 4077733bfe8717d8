//! A schedule's steps as actions.

use super::{Action, Then};
use crate::rect::Rank;
use crate::schedule::{Message, Schedule, Step};
use crate::simulate::load_of;
use crate::trace::Lane;
use std::collections::VecDeque;

/// The actions of one processor, which counts the elements that it sends and receives.
pub(super) struct Script<'a> {
    steps: Box<dyn Iterator<Item = Step> + 'a>,
    rank: Rank,
    element: u64,
    /// What remains of a broadcast: here its messages go one by one, on a bus too.
    rest: VecDeque<Message>,
    counts: Lane,
}

impl<'a> Script<'a> {
    pub fn new(schedule: &'a Schedule, rank: Rank, element: u64) -> Self {
        Self { steps: schedule.steps(rank), rank, element, rest: VecDeque::new(), counts: Lane::default() }
    }

    fn send(&mut self, message: &Message) -> Action {
        self.counts.sent[message.to.0] += message.elements();
        self.counts.messages[message.to.0] += 1;
        let load = load_of(message, self.element);
        Action::Send { to: message.to, tag: message.tag, load, then: Then::Forget }
    }

    /// Hands over what was counted.
    pub fn count(self, lane: &mut Lane) {
        lane.sent = self.counts.sent;
        lane.received = self.counts.received;
        lane.messages = self.counts.messages;
        lane.carried = self.counts.carried;
    }
}

impl Iterator for Script<'_> {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        loop {
            if let Some(message) = self.rest.pop_front() {
                return Some(self.send(&message));
            }
            return Some(match self.steps.next()? {
                Step::Send(message) => {
                    self.counts.carried += message.elements();
                    self.send(&message)
                }
                Step::Broadcast(broadcast) => {
                    self.counts.carried += broadcast.elements();
                    self.rest.extend(broadcast.messages);
                    continue;
                }
                Step::Receive(message) => {
                    self.counts.received[message.from.0] += message.elements();
                    Action::Receive { from: message.from, tag: message.tag, then: Then::Remember }
                }
                Step::Await { from, tag } => Action::Await { from, to: self.rank, tag },
                Step::Flush => Action::Flush,
                Step::Compute(update) => Action::Compute(update.work()),
                Step::Release(_) => continue,
            });
        }
    }
}
