//! Messages between the workers of one machine, on emulated wires if the platform requests it, and the stop
//! signal that ends all workers together.
//!
//! A message is a permission: once it has arrived, the receiver copies the pieces from their owner's part of
//! the factor, which never changes during a run. Each element is copied once.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::{LinkBookings, Load, Network, Transit};
use crate::run::monitor::Monitor;
use crate::schedule::{Broadcast, Piece};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Stops all workers: on request of the user, or because one of them failed.
#[derive(Debug)]
pub(crate) struct StopSignal<'a> {
    monitor: &'a Monitor,
    failed: AtomicBool,
}

impl<'a> StopSignal<'a> {
    pub fn new(monitor: &'a Monitor) -> Self {
        Self { monitor, failed: AtomicBool::new(false) }
    }

    /// Stops all workers.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Returns an error once the workers are to stop.
    pub fn check(&self) -> Result<()> {
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
    wires: Option<Mutex<LinkBookings<'a>>>,
}

#[derive(Debug)]
struct Mailbox {
    arrivals: Mutex<BTreeMap<(Rank, u64), Transit>>,
    news: Condvar,
}

impl<'a> Mailboxes<'a> {
    /// Creates the mailboxes. Wires are emulated if the network says so; otherwise a message arrives at once.
    pub fn new(processors: usize, network: &'a Network) -> Self {
        Self {
            boxes: (0..processors)
                .map(|_| Mailbox { arrivals: Mutex::default(), news: Condvar::new() })
                .collect(),
            wires: network.emulate.then(|| Mutex::new(LinkBookings::new(network))),
        }
    }

    /// Sends a message at `now`. Returns the time at which its last byte has left the sender.
    pub fn send(&self, (from, to, tag): (Rank, Rank, u64), load: Load, now: f64) -> f64 {
        let transit = match &self.wires {
            None => Transit { start: now, sent: now, arrival: now },
            Some(wires) => locked(wires).book(from, to, load, now),
        };
        let mailbox = &self.boxes[to.0];
        locked(&mailbox.arrivals).insert((from, tag), transit);
        mailbox.news.notify_all();
        transit.sent
    }

    /// Sends a broadcast at `now`. Returns the time at which its last byte has left the sender.
    pub fn broadcast<P: Piece>(&self, broadcast: &Broadcast<P>, element: u64, now: f64) -> f64 {
        let once = broadcast.load(element);
        let to: Vec<(Rank, Load)> =
            broadcast.messages.iter().map(|message| (message.to, message.load(element))).collect();
        let transits = match &self.wires {
            None => vec![Transit { start: now, sent: now, arrival: now }; to.len()],
            Some(wires) => locked(wires).book_broadcast(broadcast.from, &to, once, now),
        };
        for (message, transit) in broadcast.messages.iter().zip(&transits) {
            let mailbox = &self.boxes[message.to.0];
            locked(&mailbox.arrivals).insert((message.from, message.tag), *transit);
            mailbox.news.notify_all();
        }
        transits.iter().map(|transit| transit.sent).fold(now, f64::max)
    }

    /// Waits until a message has arrived by the clock that started at `epoch`.
    pub fn receive(
        &self,
        (at, from, tag): (Rank, Rank, u64),
        epoch: Instant,
        halt: &StopSignal<'_>,
    ) -> Result<Transit> {
        let mailbox = &self.boxes[at.0];
        let mut arrivals = locked(&mailbox.arrivals);
        let transit = loop {
            if let Some(transit) = arrivals.remove(&(from, tag)) {
                break transit;
            }
            halt.check()?;
            arrivals = mailbox
                .news
                .wait_timeout(arrivals, Duration::from_millis(20))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        };
        drop(arrivals);
        halt.sleep_until(epoch, transit.arrival)?;
        Ok(transit)
    }
}

/// Locks, ignoring poisoning: each critical section is one map operation, so a panic leaves the data whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Releases all workers once the last has arrived; ends early if a worker failed before it arrived.
#[derive(Debug)]
pub(crate) struct StartBarrier {
    missing: Mutex<usize>,
    open: Condvar,
}

impl StartBarrier {
    pub fn new(workers: usize) -> Self {
        Self { missing: Mutex::new(workers), open: Condvar::new() }
    }

    pub fn pass(&self, halt: &StopSignal<'_>) -> Result<()> {
        let mut missing = locked(&self.missing);
        *missing -= 1;
        self.open.notify_all();
        while *missing > 0 {
            halt.check()?;
            missing = self
                .open
                .wait_timeout(missing, Duration::from_millis(20))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok(())
    }
}
