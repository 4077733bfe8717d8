//! The event loop: ranks advance through their actions; messages start, drain and arrive.

use super::fabric::Fabric;
use super::flows::Flows;
use super::hosts::Hosts;
use super::messages::{Message, Messages};
use super::queue::{Queue, What};
use super::rules::Fluid;
use super::{Action, Deployment, Then};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::simulate::record::Record;
use crate::trace::Activity;
use std::collections::VecDeque;

/// The event that a rank waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum On {
    /// One message, as its sender or its receiver.
    Message { id: u32, sending: bool },
    /// All its sends.
    Sends,
    /// All its posted requests.
    All,
    /// Its own computation.
    Work,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) step: usize,
    pub blocked: Option<(f64, On)>,
    /// Number of incomplete requests: receives, sends.
    pub(super) open: [u32; 2],
    /// Requests that a later action may name: receives, sends.
    requests: [VecDeque<u32>; 2],
    /// The last of the messages that travel with its next message.
    pub(super) riders: Option<u32>,
    pub ended: bool,
}

/// The state of a simulation.
pub(super) struct Engine<'a, R> {
    pub(super) rules: &'a Fluid,
    pub(super) fabric: Fabric<'a>,
    pub(super) flows: Flows,
    /// By flow: its message.
    pub(super) carried: Vec<u32>,
    /// Flows that end at one event.
    ended: Vec<u32>,
    hosts: Hosts<'a>,
    pub messages: Messages,
    pub ranks: Vec<State>,
    pub(super) events: Queue,
    /// Number of obsolete events in the queue.
    pub(super) stale: usize,
    /// Ranks that can continue, each at most once.
    pub(super) ready: Vec<u32>,
    pub(super) now: f64,
    pub record: R,
}

impl<'a, R: Record> Engine<'a, R> {
    pub fn new(on: &Deployment<'a>, rules: &'a Fluid, record: R) -> Self {
        let ranks = on.placement.len();
        Self {
            rules,
            fabric: Fabric::new(on.network, on.placement, rules),
            flows: Flows::new(rules.coarse),
            carried: Vec::new(),
            ended: Vec::new(),
            hosts: Hosts::new(on.hosts, on.placement),
            messages: Messages::new(ranks),
            ranks: (0..ranks).map(|_| State::default()).collect(),
            events: Queue::default(),
            stale: 0,
            ready: (0..ranks as u32).collect(),
            now: 0.0,
            record,
        }
    }

    /// Runs all scripts to their ends or to a deadlock, which leaves some ranks blocked.
    pub fn run<P: Iterator<Item = Action>>(&mut self, scripts: &mut [P]) -> Result<()> {
        loop {
            // An action of a rank never unblocks another rank at the same moment: only events do.
            let mut ready = std::mem::take(&mut self.ready);
            ready.sort_unstable();
            for rank in ready.drain(..) {
                self.advance(rank as usize, &mut scripts[rank as usize])?;
            }
            self.ready = ready;
            let (events, stale) = (&mut self.events, &mut self.stale);
            self.flows.share(&self.fabric, self.now, |next| events.next(next, stale));
            self.forget_stale();
            let Some((now, what)) = self.events.pop() else { return Ok(()) };
            self.now = now;
            self.happen(what);
            while let Some(what) = self.events.pop_at(now) {
                self.happen(what);
            }
        }
    }

    /// Keeps the size of the queue within a small multiple of the pending events.
    fn forget_stale(&mut self) {
        if self.stale > 4096 && self.stale > self.events.len() / 2 {
            let (flows, hosts) = (&self.flows, &self.hosts);
            self.events.retain(|what| match what {
                What::Latency(_) => true,
                What::Drained { .. } | What::Reached { .. } => flows.current(what),
                What::Computed { rank, version } => hosts.current(rank, version),
            });
            self.stale = 0;
        }
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Latency(message) => self.drain(message),
            What::Drained { .. } | What::Reached { .. } if self.flows.current(what) => {
                let mut ended = std::mem::take(&mut self.ended);
                let (events, stale) = (&mut self.events, &mut self.stale);
                let next = |next| events.next(next, stale);
                self.flows.finish(&self.fabric, what, self.now, &mut ended, next);
                ended.iter().for_each(|&flow| self.arrive(self.carried[flow as usize]));
                self.ended = ended;
            }
            What::Computed { rank, version } if self.hosts.current(rank, version) => {
                let events = &mut self.events;
                self.hosts.finish(rank as usize, self.now, |rank, time, version| {
                    events.push(time, What::Computed { rank, version });
                });
                let rank = rank as usize;
                if let Some((since, _)) = self.ranks[rank].blocked.take() {
                    self.record.push(Rank(rank), Activity::Compute, since, self.now, None);
                }
                self.ready.push(rank as u32);
            }
            _ => self.stale = self.stale.saturating_sub(1),
        }
    }

    /// Executes a rank's actions until one blocks it.
    fn advance(&mut self, rank: usize, script: &mut impl Iterator<Item = Action>) -> Result<()> {
        for action in script.by_ref() {
            let on = self.act(rank, action)?;
            self.ranks[rank].step += 1;
            if let Some(on) = on {
                self.ranks[rank].blocked = Some((self.now, on));
                return Ok(());
            }
        }
        self.ranks[rank].ended = true;
        self.record.ends(Rank(rank), self.now);
        Ok(())
    }

    /// Starts an action. Returns the event that the rank then waits for, if any.
    fn act(&mut self, rank: usize, action: Action) -> Result<Option<On>> {
        Ok(match action {
            Action::Compute(amount) => self.compute(rank, amount)?.then_some(On::Work),
            Action::Send { to, tag, load, then } => {
                let id = self.send((rank, to.0, tag), load);
                self.hold(rank, id, true, then)
            }
            Action::Along { to, tag, load } => {
                self.ride((rank, to.0, tag), load);
                None
            }
            Action::Receive { from, tag, then } => {
                let id = self.receive((from.0, rank, tag));
                self.hold(rank, id, false, then)
            }
            Action::Await { from, to, tag } => {
                let (sending, peer) = if to.0 == rank { (false, from) } else { (true, to) };
                let messages = &self.messages;
                let requests = &mut self.ranks[rank].requests[usize::from(sending)];
                let of = |m: &Message| if sending { m.to } else { m.from };
                let place = requests.iter().position(|&id| {
                    let message = messages.get(id);
                    message.tag == tag && of(message) == peer.0 as u32
                });
                let Some(id) = place.and_then(|place| requests.remove(place)) else {
                    return Err(Error::infeasible(
                        format!(
                            "processor {rank} waits for a message from {} to {} with tag {tag} that it did not post",
                            from.0, to.0
                        ),
                        "post it with isend or irecv first, and wait for it once",
                    ));
                };
                if self.messages.get(id).complete(sending) {
                    self.messages.release(id);
                    None
                } else {
                    Some(On::Message { id, sending })
                }
            }
            Action::Flush => (self.ranks[rank].open[1] > 0).then_some(On::Sends),
            Action::AwaitAll => {
                for ids in &mut self.ranks[rank].requests {
                    ids.drain(..).for_each(|id| self.messages.release(id));
                }
                (self.ranks[rank].open != [0, 0]).then_some(On::All)
            }
        })
    }

    /// Returns true if the computation takes time.
    fn compute(&mut self, rank: usize, amount: f64) -> Result<bool> {
        if amount <= 0.0 {
            return Ok(false);
        }
        let speed = self.hosts.speed(rank);
        if !(speed.is_finite() && speed > 0.0) {
            return Err(Error::infeasible(
                format!("processor {rank} has work but its speed is {speed}"),
                "give it a positive speed or no share",
            ));
        }
        let events = &mut self.events;
        self.hosts.start(rank, amount, self.now, |rank, time, version| {
            events.push(time, What::Computed { rank, version });
        });
        Ok(true)
    }

    /// Handles a request that was just posted, as `then` says.
    fn hold(&mut self, rank: usize, id: u32, sending: bool, then: Then) -> Option<On> {
        let message = self.messages.get_mut(id);
        let complete = message.complete(sending);
        match then {
            Then::Remember => {
                message.holders += 1;
                self.ranks[rank].requests[usize::from(sending)].push_back(id);
                None
            }
            Then::Wait if !complete => {
                message.holders += 1;
                Some(On::Message { id, sending })
            }
            Then::Wait | Then::Forget => {
                self.messages.retire(id);
                None
            }
        }
    }
}
