//! Carries messages between the workers of one machine, on emulated wires if the platform asks for it, and
//! makes one worker's end the end of all.

use super::monitor::Monitor;
use crate::error::{Error, Result};
use crate::platform::{Load, Network, Transit, Wires};
use crate::rect::Rank;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tells all workers to end: because the user asked, or because one of them failed.
#[derive(Debug)]
pub(super) struct Halt<'a> {
    monitor: &'a Monitor,
    failed: AtomicBool,
}

impl<'a> Halt<'a> {
    pub fn new(monitor: &'a Monitor) -> Self {
        Self { monitor, failed: AtomicBool::new(false) }
    }

    /// Ends all.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// The run's progress.
    pub fn monitor(&self) -> &Monitor {
        self.monitor
    }

    /// An error once all are to end.
    pub fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) || self.monitor.is_stopped() {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// A message on its way: its elements, and when it travels.
#[derive(Debug)]
pub(super) struct Parcel<T> {
    pub data: Vec<T>,
    pub transit: Transit,
}

/// Mailboxes of all workers and the wires between them.
#[derive(Debug)]
pub(super) struct Post<'a, T> {
    boxes: Vec<Mailbox<T>>,
    wires: Option<Mutex<Wires<'a>>>,
}

#[derive(Debug)]
struct Mailbox<T> {
    parcels: Mutex<BTreeMap<(Rank, u64), Parcel<T>>>,
    arrived: Condvar,
}

impl<'a, T> Post<'a, T> {
    /// Wires are emulated if the network says so; else a message arrives at once.
    pub fn new(processors: usize, network: &'a Network) -> Self {
        Self {
            boxes: (0..processors)
                .map(|_| Mailbox { parcels: Mutex::default(), arrived: Condvar::new() })
                .collect(),
            wires: network.emulate.then(|| Mutex::new(Wires::new(network))),
        }
    }

    /// Hands a message over at `now`; the time at which its last byte has left the sender.
    pub fn send(&self, to: (Rank, Rank, u64), load: Load, data: Vec<T>, now: f64) -> f64 {
        let (from, to, tag) = to;
        let transit = match &self.wires {
            None => Transit { start: now, sent: now, arrival: now },
            Some(wires) => locked(wires).book(from, to, load, now),
        };
        let mailbox = &self.boxes[to.0];
        locked(&mailbox.parcels).insert((from, tag), Parcel { data, transit });
        mailbox.arrived.notify_all();
        transit.sent
    }

    /// Waits for a message and for its arrival on the clock that started at `epoch`.
    pub fn receive(
        &self,
        at: Rank,
        from: Rank,
        tag: u64,
        epoch: Instant,
        halt: &Halt<'_>,
    ) -> Result<Parcel<T>> {
        let mailbox = &self.boxes[at.0];
        let mut parcels = locked(&mailbox.parcels);
        let parcel = loop {
            if let Some(parcel) = parcels.remove(&(from, tag)) {
                break parcel;
            }
            halt.check()?;
            parcels = mailbox
                .arrived
                .wait_timeout(parcels, Duration::from_millis(20))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        };
        drop(parcels);
        halt.sleep_until(epoch, parcel.transit.arrival)?;
        Ok(parcel)
    }
}

/// A lock whose holder panicked still guards whole data here: each critical section is one map operation.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets all workers through once the last has come; ends early if one failed on its way.
#[derive(Debug)]
pub(super) struct Gate {
    missing: Mutex<usize>,
    open: Condvar,
}

impl Gate {
    pub fn new(workers: usize) -> Self {
        Self { missing: Mutex::new(workers), open: Condvar::new() }
    }

    pub fn pass(&self, halt: &Halt<'_>) -> Result<()> {
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
