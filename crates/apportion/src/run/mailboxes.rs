//! Messages between the workers of one machine, on emulated wires if the platform requests it, and the stop
//! signal that ends all workers together.
//!
//! A message is a permission: once it has arrived, the receiver copies the pieces from their owner's part of
//! the factor, which never changes during a run. Each element is copied once.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::{Network, Transit};
use crate::run::session::Monitor;
use crate::run::sync::{Condvar, Mutex, locked, wait};
use crate::schedule::{Medium, Posting};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Stops all workers: on request of the user, or because one of them failed.
#[derive(Debug)]
pub struct StopSignal<'a> {
    monitor: &'a Monitor,
    failed: AtomicBool,
}

impl<'a> StopSignal<'a> {
    pub(crate) fn new(monitor: &'a Monitor) -> Self {
        Self { monitor, failed: AtomicBool::new(false) }
    }

    /// Stops all workers.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Returns an error once the workers are to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) || self.monitor.is_stopped() {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// Stops all workers if the worker that holds this panics: the others would wait for it forever.
#[derive(Debug)]
pub(crate) struct StopOnPanic<'a>(pub &'a StopSignal<'a>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

/// Mailboxes of all workers and the wires between them.
#[derive(Debug)]
pub(crate) struct Mailboxes<'a> {
    boxes: Vec<Mailbox>,
    medium: Option<Mutex<Medium<'a>>>,
}

#[derive(Debug, Default)]
struct Mailbox {
    letters: Mutex<Letters>,
    news: Condvar,
}

/// The messages of one worker.
#[derive(Debug, Default)]
struct Letters {
    /// Messages to it, by sender and tag.
    arrivals: BTreeMap<(Rank, u64), Transit>,
    /// Number of its messages that wait for their turn.
    waiting: usize,
    /// Time at which the last byte of its other messages leaves.
    sent: f64,
}

impl<'a> Mailboxes<'a> {
    /// Creates the mailboxes. Wires are emulated if the network says so; otherwise a message arrives at once.
    pub(crate) fn new(processors: usize, network: &'a Network) -> Self {
        Self {
            boxes: (0..processors).map(|_| Mailbox::default()).collect(),
            medium: network.emulate.then(|| Mutex::new(Medium::new(network))),
        }
    }

    /// Posts a message at the time that it says. On an emulated bus it waits for its turn, given the senders
    /// of each turn ([`Application::senders`](crate::schedule::Application::senders)).
    pub(crate) fn post(&self, posting: Posting, senders: &dyn Fn(u64) -> Option<Vec<Rank>>) {
        let Some(medium) = &self.medium else {
            let now = posting.at;
            let transits = vec![Transit { start: now, sent: now, arrival: now }; posting.to.len()];
            return self.deliver(&posting, &transits);
        };
        let now = posting.at;
        locked(&self.boxes[posting.from.0].letters).waiting += 1;
        for (posting, transits) in locked(medium).post(posting, now, senders) {
            self.deliver(&posting, &transits);
            let sender = &self.boxes[posting.from.0];
            locked(&sender.letters).waiting -= 1;
            sender.news.notify_all();
        }
    }

    /// Announces a booked message to its receivers and its sender.
    fn deliver(&self, posting: &Posting, transits: &[Transit]) {
        for ((to, _), transit) in posting.to.iter().zip(transits) {
            let mailbox = &self.boxes[to.0];
            locked(&mailbox.letters).arrivals.insert((posting.from, posting.tag), *transit);
            mailbox.news.notify_all();
        }
        let mut letters = locked(&self.boxes[posting.from.0].letters);
        letters.sent = transits.iter().map(|transit| transit.sent).fold(letters.sent, f64::max);
    }

    /// Waits until all messages of a worker have left it.
    pub(crate) fn flush(&self, rank: Rank, epoch: Instant, halt: &StopSignal<'_>) -> Result<()> {
        let mailbox = &self.boxes[rank.0];
        let mut letters = locked(&mailbox.letters);
        while letters.waiting > 0 {
            halt.check()?;
            letters = wait(&mailbox.news, letters);
        }
        let sent = letters.sent;
        drop(letters);
        halt.sleep_until(epoch, sent)
    }

    /// Waits until a message has arrived by the clock that started at `epoch`.
    pub(crate) fn receive(
        &self,
        at: Rank,
        from: Rank,
        tag: u64,
        epoch: Instant,
        halt: &StopSignal<'_>,
    ) -> Result<Transit> {
        let mailbox = &self.boxes[at.0];
        let mut letters = locked(&mailbox.letters);
        let transit = loop {
            if let Some(transit) = letters.arrivals.remove(&(from, tag)) {
                break transit;
            }
            halt.check()?;
            letters = wait(&mailbox.news, letters);
        };
        drop(letters);
        halt.sleep_until(epoch, transit.arrival)?;
        Ok(transit)
    }
}

/// Releases all workers once the last has arrived; ends early if a worker failed before it arrived.
#[derive(Debug)]
pub(crate) struct StartBarrier {
    missing: Mutex<usize>,
    open: Condvar,
}

impl StartBarrier {
    pub(crate) fn new(workers: usize) -> Self {
        Self { missing: Mutex::new(workers), open: Condvar::new() }
    }

    pub(crate) fn pass(&self, halt: &StopSignal<'_>) -> Result<()> {
        let mut missing = locked(&self.missing);
        *missing -= 1;
        self.open.notify_all();
        while *missing > 0 {
            halt.check()?;
            missing = wait(&self.open, missing);
        }
        Ok(())
    }
}

#[cfg(all(test, loom))]
mod interleavings;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::platform::{Load, Topology};

    /// The owner of turn 1 posts first; on an emulated bus its message still starts after that of turn 0.
    #[test]
    fn an_emulated_bus_carries_turn_by_turn() {
        let mut network = Network::uniform(0.0, 1e6);
        network.emulate = true;
        network.topology = Topology::Bus;
        let monitor = Monitor::new();
        let (stop, epoch) = (StopSignal::new(&monitor), Instant::now());
        let mailboxes = Mailboxes::new(2, &network);
        let senders = |turn: u64| [vec![Rank(0)], vec![Rank(1)]].get(turn as usize).cloned();
        let post = |from: usize, tag: u64, at: f64| {
            let to = vec![(Rank(1 - from), Load { horizontal: 1000.0, vertical: 0.0 })];
            mailboxes.post(Posting { from: Rank(from), tag, to, once: None, at }, &senders);
        };
        post(1, 1, 0.0);
        assert_eq!(locked(&mailboxes.boxes[1].letters).waiting, 1);
        post(0, 0, 0.001);
        let first = mailboxes.receive(Rank(1), Rank(0), 0, epoch, &stop).unwrap();
        let second = mailboxes.receive(Rank(0), Rank(1), 1, epoch, &stop).unwrap();
        assert_eq!((first.start, second.start), (0.001, 0.002));
        mailboxes.flush(Rank(1), epoch, &stop).unwrap();
        assert_eq!(locked(&mailboxes.boxes[1].letters).sent, 0.003);
    }
}
