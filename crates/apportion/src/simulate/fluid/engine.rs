//! The event loop: ranks advance through their actions; messages start, drain and arrive.

use super::fabric::Fabric;
use super::flows::Flows;
use super::hosts::Hosts;
use super::messages::Messages;
use super::queue::{Queue, What};
use super::rules::Fluid;
use super::{Action, Deployment, Then};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::simulate::record::Record;
use crate::trace::Activity;
use std::collections::VecDeque;

/// Seconds that `MPI_Test` takes in SimGrid (its option `smpi/test`).
const TEST: f64 = 1e-4;

/// The two ends and the tag of a request.
type Key = (Rank, Rank, u64);

/// The event that a rank waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum On {
    /// One message, as its sender or its receiver.
    Message { id: u32, sending: bool },
    /// All its sends.
    Sends,
    /// All its posted requests.
    All,
    /// Its own computation, or the end of its sleep.
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
    /// The request that it asks for, while that takes time.
    asked: Option<Key>,
    /// Requests that were complete when it asked, and for which it has not waited since.
    caught: Vec<Key>,
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
    /// Number of tests since the last one that found its request complete.
    failed_tests: u32,
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
            failed_tests: 0,
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
                What::Latency(_) | What::Awake(_) => true,
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
            What::Awake(rank) => self.awake(rank as usize),
            _ => self.stale = self.stale.saturating_sub(1),
        }
    }

    fn sleep(&mut self, rank: usize, seconds: f64) -> Option<On> {
        self.events.push(self.now + seconds, What::Awake(rank as u32));
        Some(On::Work)
    }

    /// Ends a sleep, and answers the test that it was part of.
    fn awake(&mut self, rank: usize) {
        if let Some((since, _)) = self.ranks[rank].blocked.take() {
            self.record.push(Rank(rank), Activity::Idle, since, self.now, None);
        }
        self.ready.push(rank as u32);
        let Some(key) = self.ranks[rank].asked.take() else { return };
        let Some((sending, place)) = self.request(rank, key) else { return };
        let id = self.ranks[rank].requests[usize::from(sending)][place];
        if !self.messages.get(id).complete(sending) {
            self.failed_tests += 1;
            return;
        }
        self.failed_tests = 0;
        self.ranks[rank].requests[usize::from(sending)].remove(place);
        self.messages.release(id);
        self.ranks[rank].caught.push(key);
    }

    /// The oldest request of a rank with these ends and this tag: true if it is a send, and its place.
    fn request(&self, rank: usize, (from, to, tag): Key) -> Option<(bool, usize)> {
        let (sending, peer) = if to.0 == rank { (false, from) } else { (true, to) };
        let place = self.ranks[rank].requests[usize::from(sending)].iter().position(|&id| {
            let message = self.messages.get(id);
            message.tag == tag && (if sending { message.to } else { message.from }) == peer.0 as u32
        });
        place.map(|place| (sending, place))
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
            Action::Sleep(seconds) => self.sleep(rank, seconds),
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
                let key = (from, to, tag);
                let state = &mut self.ranks[rank];
                if let Some(place) = state.caught.iter().position(|caught| *caught == key) {
                    state.caught.swap_remove(place);
                    return Ok(None);
                }
                let Some((sending, place)) = self.request(rank, key) else {
                    return Err(Error::infeasible(
                        format!(
                            "processor {rank} waits for a message from {} to {} with tag {tag} that it did not post",
                            from.0, to.0
                        ),
                        "post it with isend or irecv first, and wait for it once",
                    ));
                };
                let id = self.ranks[rank].requests[usize::from(sending)].remove(place);
                let id = id.expect("the place of a request");
                if self.messages.get(id).complete(sending) {
                    self.messages.release(id);
                    None
                } else {
                    Some(On::Message { id, sending })
                }
            }
            Action::Test { from, to, tag } => {
                let key = (from, to, tag);
                if self.request(rank, key).is_none() {
                    return Ok(None);
                }
                self.ranks[rank].asked = Some(key);
                self.sleep(rank, TEST * f64::from(1 + self.failed_tests))
            }
            Action::Flush => (self.ranks[rank].open[1] > 0).then_some(On::Sends),
            Action::AwaitAll => {
                self.ranks[rank].caught.clear();
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
