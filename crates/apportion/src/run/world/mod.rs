//! The processes of a job as one value: a single process, ranks as threads with memory of their own, or MPI.
//!
//! All communication consists of messages of words between two ranks. Thus every wait can be interrupted, and
//! the collective operations use the same trees in the same order on every engine.

mod agreement;
mod collectives;
mod engine;
mod hosts;
mod letters;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod mpi;
#[cfg(not(all(unix, target_pointer_width = "64", target_endian = "little")))]
mod no_mpi;
mod redistribute;
mod threads;

pub use agreement::{Fact, hash_elements};
pub use hosts::Hosts;
pub(crate) use letters::Awaited;
pub use redistribute::redistribute;
pub(crate) use redistribute::redistribute_views;
pub(crate) use threads::first_failure;

use crate::error::{Error, Result};
use crate::run::Monitor;
use crate::run::shared::SharedMemory;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
pub(in crate::run) use engine::Pending;
pub(in crate::run) use engine::Transfer;
use engine::{Engine, Solo};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tag of all messages that are not a schedule's.
const COLLECTIVE: u16 = 0x7ffe;

/// Tags of a schedule's messages are below this.
pub(in crate::run) const TAGS: u64 = 0x7ff0;

/// Number of tests for a message before the thread sleeps between tests.
const EAGER: u32 = 1000;

/// All processes of a job. Every rank must call the collective operations in the same order.
///
/// * [`World::solo`]: one process. The processors of a plan are its threads and share its memory. This is the
///   default engine.
/// * [`World::threads`]: ranks as threads of this process, each with memory of its own. A program that runs
///   here runs under MPI.
/// * [`World::mpi`]: the processes that mpirun started.
///
/// In a world of more than one rank, rank r runs processor r of a plan.
///
/// ```
/// use apportion::run::{Monitor, World};
/// let sums = World::threads(4, &Monitor::new(), |world| {
///     Ok(world.all_reduce(&[world.rank() as u64], |x, y| x + y)?[0])
/// })?;
/// assert_eq!(sums, [6; 4]);
/// # Ok::<(), apportion::Error>(())
/// ```
#[derive(Debug)]
pub struct World {
    engine: Box<dyn Engine>,
    monitor: Monitor,
    received: AtomicU64,
    stall_timeout: Option<Duration>,
    /// The names of the ranks' hosts; none where all ranks are threads of this process.
    hosts: Vec<String>,
    /// Where all ranks are on one host, and can.
    shared: OnceLock<SharedMemory>,
}

/// For how long something has been waited for.
#[derive(Debug)]
pub(super) struct Waiting {
    start: Instant,
    tries: u32,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), tries: 0 }
    }
}

impl World {
    fn new(engine: impl Engine + 'static, monitor: &Monitor) -> Self {
        let (monitor, received, shared) = (monitor.clone(), AtomicU64::new(0), OnceLock::new());
        Self { engine: Box::new(engine), monitor, received, stall_timeout: None, hosts: Vec::new(), shared }
    }

    /// A world of this process only. `monitor` interrupts all waits.
    pub fn solo(monitor: &Monitor) -> Self {
        Self::new(Solo, monitor)
    }

    /// Runs `work` on `size` ranks, each a thread with its own [`World`], and returns the results by rank. If
    /// a rank fails or panics, the others are stopped, and its error is returned.
    ///
    /// # Errors
    /// The first error of any rank; [`Error::WorkerLost`] for a panic.
    ///
    /// # Panics
    /// If `size` is 0, or the system cannot start another thread.
    pub fn threads<R: Send>(
        size: usize,
        monitor: &Monitor,
        work: impl Fn(&World) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        threads::run(size, monitor, work)
    }

    /// The same world, in which no message is waited for longer than this: a rank that has stopped ends the
    /// others with [`Error::WorkerLost`]. Choose more than the longest computation between two messages.
    #[must_use]
    pub(super) fn with_stall_timeout(mut self, limit: Option<Duration>) -> Self {
        self.stall_timeout = limit;
        self
    }

    /// What stops the process's waits and follows its progress.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// This process's rank, from 0.
    pub fn rank(&self) -> usize {
        self.engine.rank()
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.engine.size()
    }

    /// A rank as errors name it, with its host where the ranks are processes: `rank 1 (beta)`.
    pub fn name_of(&self, rank: usize) -> String {
        self.hosts.get(rank).map_or_else(|| format!("rank {rank}"), |host| format!("rank {rank} ({host})"))
    }

    /// The text of an error that a rank met, with the rank in front unless the text names it.
    fn with_rank(&self, rank: usize, text: &str) -> String {
        let name = self.name_of(rank);
        if text.contains(&name) { text.to_owned() } else { format!("{name}: {text}") }
    }

    /// True if one process runs all processors of a plan, as threads that share its memory.
    pub fn is_solo(&self) -> bool {
        self.engine.is_solo()
    }

    /// The engine's name in reports: `"threads"` or `"mpi"`.
    pub fn engine(&self) -> &'static str {
        self.engine.name()
    }

    /// The processors of `count` that this process runs: all of them in a single process, otherwise the
    /// processor of its rank.
    ///
    /// # Panics
    /// If there are several ranks and their number is not `count`.
    pub fn processors_here(&self, count: usize) -> std::ops::Range<usize> {
        if self.is_solo() {
            return 0..count;
        }
        assert_eq!(self.size(), count, "one rank for each processor");
        self.rank()..self.rank() + 1
    }

    /// Number of words that this rank has received so far, in collective operations and as messages. For
    /// tests of the cost of an operation.
    #[cfg(test)]
    pub(crate) fn received_words(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Returns an error once the job is to stop.
    pub(crate) fn check(&self) -> Result<()> {
        let is_over = self.engine.has_failed() || self.monitor.is_stopped();
        if is_over { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Starts sending words. The transfer owns the memory until it is done.
    pub(super) fn start_send(&self, words: Vec<u64>, to: usize, tag: u16) -> Transfer {
        self.engine.start_send(words, to, tag)
    }

    /// Starts receiving words from a rank; they must fill `room` exactly.
    pub(super) fn start_receive(&self, room: Vec<u64>, from: usize, tag: u16) -> Transfer {
        self.count_received(room.len());
        self.engine.start_receive(room, from, tag)
    }

    /// True once a transfer is done.
    pub(super) fn is_done(&self, transfer: &mut Transfer) -> Result<bool> {
        self.engine.is_done(transfer).map_err(|code| {
            let why = format!(
                "MPI cannot deliver a message from or to it (error {code}): it has lost the others' step"
            );
            Error::WorkerLost { processor: format!("of {}", self.name_of(transfer.peer)), why }
        })
    }

    /// Waits for a transfer without occupying the core.
    pub(super) fn wait(&self, transfer: &mut Transfer) -> Result<()> {
        let mut waiting = Waiting::new();
        while !self.is_done(transfer)? {
            self.pause(&mut waiting, transfer.peer, Some(transfer))?;
        }
        Ok(())
    }

    /// The same, and does something else again and again until then.
    pub(super) fn wait_and(
        &self,
        transfer: &mut Transfer,
        mut meanwhile: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut waiting = Waiting::new();
        while !self.is_done(transfer)? {
            meanwhile()?;
            self.pause(&mut waiting, transfer.peer, None)?;
        }
        Ok(())
    }

    /// Pauses while something is waited for, from or at this rank: briefly at first, longer and longer then,
    /// or until there is news of the transfer.
    pub(super) fn pause(&self, waiting: &mut Waiting, peer: usize, on: Option<&Transfer>) -> Result<()> {
        self.check()?;
        let elapsed = waiting.start.elapsed();
        if self.stall_timeout.is_some_and(|limit| elapsed > limit) {
            return Err(stalled(&self.name_of(peer), elapsed));
        }
        waiting.tries += 1;
        if on.is_some_and(|transfer| self.engine.wait_for_news(transfer)) {
            return Ok(());
        }
        if waiting.tries < EAGER {
            std::thread::yield_now();
        } else {
            // Sleeps longer each time, up to half a millisecond.
            let micros = u64::from(waiting.tries - EAGER) / 8 + 20;
            std::thread::sleep(Duration::from_micros(micros.min(500)));
        }
        Ok(())
    }

    /// Counts words that came otherwise than in a message's transfer.
    pub(super) fn count_received(&self, words: usize) {
        self.received.fetch_add(words as u64, Ordering::Relaxed);
    }

    /// True if any thread of this process may use the world, one at a time. False if another program has
    /// initialised MPI for a single thread.
    pub fn is_for_any_thread(&self) -> bool {
        self.engine.is_for_any_thread()
    }

    /// True if a second thread can drive the progress of messages while this one computes, and must: in
    /// shared memory they need no library to advance.
    pub(super) fn needs_progress(&self) -> bool {
        !self.shares_memory() && self.engine.needs_progress()
    }

    /// Drives the progress of messages.
    pub(super) fn progress(&self) {
        self.engine.progress();
    }

    /// Sends words and waits until they have left this rank.
    ///
    /// # Errors
    /// Interrupted, or another rank failed.
    pub(crate) fn send(&self, words: Vec<u64>, to: usize) -> Result<()> {
        self.wait(&mut self.start_send(words, to, COLLECTIVE))
    }

    /// Receives this number of words.
    ///
    /// # Errors
    /// Interrupted, or another rank failed.
    pub(crate) fn recv(&self, words: usize, from: usize) -> Result<Vec<u64>> {
        let mut transfer = self.start_receive(vec![0; words], from, COLLECTIVE);
        self.wait(&mut transfer)?;
        Ok(transfer.into_words())
    }

    /// Sends words to one rank while receiving from another, which may be the same.
    ///
    /// # Errors
    /// Interrupted, or another rank failed.
    pub(crate) fn exchange(&self, words: Vec<u64>, to: usize, count: usize, from: usize) -> Result<Vec<u64>> {
        let mut coming = self.start_receive(vec![0; count], from, COLLECTIVE);
        let mut going = self.start_send(words, to, COLLECTIVE);
        self.wait(&mut coming)?;
        self.wait(&mut going)?;
        Ok(coming.into_words())
    }

    /// Version string of the engine's library: MPI's, or a note that there is none.
    pub fn library(&self) -> String {
        self.engine.library()
    }

    /// Leaves the world. Every rank must call it, with no message in flight.
    pub fn finalize(self) {
        self.engine.finalize();
    }

    /// Ends all processes of the world at once. If the ranks are threads, this ends the process.
    pub fn abort(&self, code: u8) -> ! {
        self.engine.abort(code)
    }
}

/// The name of this machine.
pub fn host_name() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    if name.is_empty() { "host".into() } else { name }
}

/// The error of a rank that is waited for in vain.
fn stalled(rank: &str, waited: Duration) -> Error {
    let why = format!(
        "nothing has come from it, or gone to it, for {:.1} s: it has stopped, or waits for another that has",
        waited.as_secs_f64()
    );
    Error::WorkerLost { processor: format!("of {rank}"), why }
}

#[cfg(test)]
mod tests;
