//! Messages between the workers of one machine, on [emulated links](super::emulated_links) if the platform
//! requests it, and the stop signal that ends all workers together.
//!
//! A message is a permission: once it has arrived, the receiver copies the pieces from their owner's part of
//! the factor, which never changes during a run. Each element is copied once.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::{Network, Transit};
use crate::run::emulated_links::{EmulatedLinks, Senders};
use crate::run::session::Monitor;
use crate::run::sync::{Condvar, Mutex, locked, wait};
use crate::schedule::Posting;
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

/// Mailboxes of all workers, and the links between them if they are emulated.
pub(crate) struct Mailboxes<'a> {
    boxes: Vec<Mailbox>,
    links: Option<EmulatedLinks<'a>>,
}

/// The messages to one worker that have arrived, by sender and tag.
#[derive(Debug, Default)]
struct Mailbox {
    arrivals: Mutex<BTreeMap<(Rank, u64), Transit>>,
    news: Condvar,
}

impl<'a> Mailboxes<'a> {
    /// Creates the mailboxes. Links are emulated if the network says so; otherwise a message arrives at once. On
    /// an emulated bus a message waits for its turn, given the senders of each.
    pub(crate) fn new(processors: usize, network: &'a Network, senders: &'a Senders<'a>) -> Self {
        Self {
            boxes: (0..processors).map(|_| Mailbox::default()).collect(),
            links: network.emulate.then(|| EmulatedLinks::new(processors, network, senders)),
        }
    }

    /// The time at which a worker posts now, by the clock that started at `epoch`: on emulated links, that at
    /// which its last wait should have ended, if it has not computed since.
    pub(crate) fn now(&self, rank: Rank, epoch: Instant) -> f64 {
        let time = self.links.as_ref().and_then(|links| links.time(rank));
        time.unwrap_or_else(|| epoch.elapsed().as_secs_f64())
    }

    /// Posts a message at the time that it says.
    pub(crate) fn post(&self, posting: Posting) {
        if let Some(links) = &self.links {
            return links.post(posting);
        }
        let Posting { from, tag, to, at, .. } = posting;
        for (to, _) in to {
            let mailbox = &self.boxes[to.0];
            locked(&mailbox.arrivals).insert((from, tag), Transit { start: at, sent: at, arrival: at });
            mailbox.news.notify_all();
        }
    }

    /// The worker posts nothing until it [resumes](Self::resume): messages of others need not wait for its own.
    pub(crate) fn suspend(&self, rank: Rank) {
        if let Some(links) = &self.links {
            links.suspend(rank);
        }
    }

    /// The worker may post from now on.
    pub(crate) fn resume(&self, rank: Rank, epoch: Instant) {
        if let Some(links) = &self.links {
            links.resume(rank, epoch.elapsed().as_secs_f64());
        }
    }

    /// Waits until all messages of a worker have left it.
    pub(crate) fn flush(&self, rank: Rank, epoch: Instant, halt: &StopSignal<'_>) -> Result<()> {
        match &self.links {
            Some(links) => links.flush(rank, epoch, halt),
            None => halt.check(),
        }
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
        if let Some(links) = &self.links {
            return links.receive(at, from, tag, epoch, halt);
        }
        let mailbox = &self.boxes[at.0];
        let mut arrivals = locked(&mailbox.arrivals);
        loop {
            if let Some(transit) = arrivals.remove(&(from, tag)) {
                return Ok(transit);
            }
            halt.check()?;
            arrivals = wait(&mailbox.news, arrivals);
        }
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
