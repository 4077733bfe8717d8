//! The states of a message: posted, in flight, arrived.

use super::engine::{Engine, On};
use super::queue::What;
use crate::geometry::Rank;
use crate::platform::Load;
use crate::simulate::explain::Wait;
use crate::simulate::record::Record;
use crate::trace::Activity;

impl<R: Record> Engine<'_, R> {
    /// Posts a send.
    pub(super) fn send(&mut self, key: (usize, usize, u64), load: Load) -> u32 {
        let id = self.messages.post(key, true);
        let message = self.messages.get_mut(id);
        let path = self.fabric.between(key.0, key.1);
        let (path, amount) = self.fabric.loaded(path, load);
        message.bytes = load.bytes();
        message.amount = amount;
        message.path = path;
        message.sent = self.now;
        message.detached = amount < self.rules.detached as f64;
        message.take_along(self.ranks[key.0].riders.take());
        if !message.detached {
            self.ranks[key.0].open[1] += 1;
        }
        if !message.received.is_nan() || amount < self.rules.eager as f64 {
            self.depart(id);
        }
        id
    }

    /// Posts a message that travels with its sender's next one.
    pub(super) fn ride(&mut self, key: (usize, usize, u64), load: Load) {
        let id = self.messages.post(key, true);
        let message = self.messages.get_mut(id);
        message.bytes = load.bytes();
        message.sent = self.now;
        message.detached = true;
        message.rides = true;
        message.take_along(self.ranks[key.0].riders.replace(id));
    }

    /// Posts a receive.
    pub(super) fn receive(&mut self, key: (usize, usize, u64)) -> u32 {
        let id = self.messages.post(key, false);
        let message = self.messages.get_mut(id);
        message.received = self.now;
        let (sent, started, done) = (!message.sent.is_nan(), !message.started.is_nan(), message.done);
        let rides = message.rides;
        if !done {
            self.ranks[key.1].open[0] += 1;
        }
        if sent && !started && !rides {
            self.depart(id);
        }
        id
    }

    /// Starts a message.
    fn depart(&mut self, id: u32) {
        let mut along = Some(id);
        while let Some(each) = along {
            let message = self.messages.get_mut(each);
            message.started = self.now;
            along = message.rider();
        }
        let message = self.messages.get(id);
        let (path, amount) = (message.path, message.amount + self.rules.envelope as f64);
        let latency = self.fabric.kind(self.fabric.kind_of(path)).latency * self.fabric.factors(amount).0;
        if latency > 0.0 {
            self.events.push(self.now + latency, What::Latency(id));
        } else {
            self.drain(id);
        }
    }

    /// Ends the latency of a message: it begins to drain.
    pub(super) fn drain(&mut self, id: u32) {
        let message = self.messages.get(id);
        let (path, amount) = (message.path, message.amount + self.rules.envelope as f64);
        let factor = self.fabric.factors(amount).1;
        let (events, stale) = (&mut self.events, &mut self.stale);
        let next = |next| events.next(next, stale);
        let flow = self.flows.start(&self.fabric, path, (amount, factor), self.now, next);
        if flow as usize >= self.carried.len() {
            self.carried.resize(flow as usize + 1, 0);
        }
        self.carried[flow as usize] = id;
    }

    /// Handles the arrival of the last byte of a message and of those that travel with it.
    pub(super) fn arrive(&mut self, id: u32) {
        let mut along = Some(id);
        while let Some(each) = along {
            along = self.messages.get(each).rider();
            self.conclude(each);
        }
    }

    fn conclude(&mut self, id: u32) {
        let message = self.messages.get_mut(id);
        message.done = true;
        let (from, to) = (message.from as usize, message.to as usize);
        let (sends, receives) = (!message.detached, !message.received.is_nan());
        message.holders += 1; // until both ends know
        self.record.fly(Rank(from), Rank(to), message.started, self.now);
        if sends {
            self.complete(from, id, true);
        }
        if receives {
            self.complete(to, id, false);
        }
        self.messages.release(id);
    }

    /// Completes the request of one end: the rank continues if it was waiting for it.
    fn complete(&mut self, rank: usize, id: u32, sending: bool) {
        let state = &mut self.ranks[rank];
        state.open[usize::from(sending)] -= 1;
        let Some((since, on)) = state.blocked else { return };
        let over = match on {
            On::Message { .. } => on == On::Message { id, sending },
            On::Sends => sending && state.open[1] == 0,
            On::All => state.open == [0, 0],
            On::Work => false,
        };
        if !over {
            return;
        }
        state.blocked = None;
        self.ready.push(rank as u32);
        let m = self.messages.get(id);
        let peer = Some(Rank(if sending { m.to } else { m.from } as usize));
        let (now, step) = (self.now, self.ranks[rank].step - 1);
        self.record.push(Rank(rank), Activity::Idle, since, m.started, peer);
        self.record.push(Rank(rank), Activity::Communicate, since.max(m.started), now, peer);
        self.record.waits(Rank(rank), R::detail(m.bytes, m.sent), |bytes, sent| Wait {
            step,
            from: Rank(m.from as usize),
            to: Rank(m.to as usize),
            tag: m.tag,
            bytes,
            since,
            until: now,
            sent,
            received: m.received,
            started: m.started,
        });
        if let On::Message { .. } = on {
            self.messages.release(id);
        }
    }
}
