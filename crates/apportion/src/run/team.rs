//! The threads of a processor: its worker, and helpers that carry out updates together with it.
//!
//! The worker posts a job, takes ranges of it like everybody else, closes it when nothing is left, and waits for those
//! who are still at theirs. A helper that comes late finds the job closed: nobody waits for a thread that has not begun.
//! Helpers look for the next job for a short time before they sleep, and outlive runs ([`idle`]).

#![allow(unsafe_code)]

mod idle;

use super::clock::{self, Pinned};
use super::sync::{Condvar, Mutex, locked};
use crate::error::Result;
use crate::kernels::{self, Alone, PackedMemory, Team, ViewMut};
use crate::matrix::Element;
use crate::threads;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a helper looks for the next job before it sleeps, and the worker for the last helper: longer than what the
/// engine does between two updates, shorter than what a sleeping program may notice.
const SPIN: Duration = Duration::from_micros(100);
/// Looks before the time is up, or the core is offered to others.
const LOOKS: usize = 64;
/// A thread takes at most this part of what is left of a job, divided by the number of threads.
const PART: usize = 4;

/// What helpers are asked to do.
#[derive(Clone, Copy)]
struct Job {
    /// Valid while the job is open, or someone is in it.
    work: *const (dyn Fn(Range<usize>) + Sync),
    count: usize,
}

// SAFETY: the work may be called by several threads, and lives while the job is open or someone is in it.
unsafe impl Send for Job {}

/// What the threads of a team know of each other.
struct Shared {
    threads: usize,
    /// Some threads have no core of their own: those who look offer theirs to others.
    crowded: bool,
    state: Mutex<State>,
    /// That of the state, for those who look for a job without the lock.
    posted: AtomicU64,
    /// That of the state, for the worker.
    inside: AtomicUsize,
    /// The first number of the job that nobody has taken.
    next: AtomicUsize,
    news: Condvar,
    left: Condvar,
}

struct State {
    /// Number of jobs so far.
    posted: u64,
    /// The job, while it is open.
    job: Option<Job>,
    /// Helpers that are in the job.
    inside: usize,
    /// Helpers that sleep.
    asleep: usize,
    /// The team is no longer needed.
    ends: bool,
    /// The first panic of a helper in the job.
    panic: Option<Box<dyn Any + Send>>,
    used: Used,
}

/// CPU seconds, and the elapsed seconds of the same time.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    cpu: f64,
    wall: f64,
}

/// The begin of a time.
struct Begin(Instant, f64);

impl Begin {
    fn now() -> Self {
        Self(Instant::now(), clock::thread_cpu_seconds())
    }

    /// What this thread has used since.
    fn used(&self) -> Used {
        Used { cpu: clock::thread_cpu_seconds() - self.1, wall: self.0.elapsed().as_secs_f64() }
    }
}

impl Shared {
    fn new(threads: usize, crowded: bool) -> Self {
        let state = State {
            posted: 0,
            job: None,
            inside: 0,
            asleep: 0,
            ends: false,
            panic: None,
            used: Used::default(),
        };
        Self {
            threads,
            crowded,
            state: Mutex::new(state),
            posted: AtomicU64::new(0),
            inside: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            news: Condvar::new(),
            left: Condvar::new(),
        }
    }

    /// Opens a job.
    fn post(&self, job: Job) {
        let mut state = locked(&self.state);
        self.next.store(0, Ordering::Relaxed);
        state.job = Some(job);
        state.posted += 1;
        self.posted.store(state.posted, Ordering::Release);
        let asleep = state.asleep > 0;
        drop(state);
        if asleep {
            self.news.notify_all();
        }
    }

    /// Closes the job and waits for those who are in it. Returns the first panic of a helper.
    fn close(&self) -> Option<Box<dyn Any + Send>> {
        locked(&self.state).job = None;
        self.look(|| self.inside.load(Ordering::Acquire) == 0);
        let mut state = locked(&self.state);
        while state.inside > 0 {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.panic.take()
    }

    /// Takes ranges of the job until nothing is left: large ones first, so that few threads meet at the counter, small
    /// ones last, so that all end together.
    fn work(&self, job: Job) {
        let mut at = self.next.load(Ordering::Relaxed);
        while at < job.count {
            let length = ((job.count - at) / (PART * self.threads)).max(1);
            let taken =
                self.next.compare_exchange_weak(at, at + length, Ordering::Relaxed, Ordering::Relaxed);
            let Err(now) = taken else {
                // SAFETY: this thread is in the job, or has posted it: the worker waits.
                let work = unsafe { &*job.work };
                work(at..at + length);
                at = self.next.load(Ordering::Relaxed);
                continue;
            };
            at = now;
        }
    }

    /// [`Shared::work`]; after a panic nothing of the job is left.
    fn try_work(&self, job: Job) -> std::thread::Result<()> {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.work(job)));
        if outcome.is_err() {
            self.next.store(job.count, Ordering::Relaxed);
        }
        outcome
    }

    /// Looks for something to become true for a short time.
    fn look(&self, is_true: impl Fn() -> bool) {
        // Under loom, looking would never end.
        if cfg!(loom) {
            return;
        }
        let begin = Instant::now();
        while begin.elapsed() < SPIN {
            for _ in 0..LOOKS {
                if is_true() {
                    return;
                }
                std::hint::spin_loop();
            }
            if self.crowded {
                std::thread::yield_now();
            }
        }
    }

    /// Ends the helpers.
    fn end(&self) {
        locked(&self.state).ends = true;
        // Those who look for a job find that there is news.
        self.posted.store(u64::MAX, Ordering::Release);
        self.news.notify_all();
    }

    /// The life of a helper.
    fn help(&self) {
        let mut seen = 0;
        loop {
            self.look(|| self.posted.load(Ordering::Acquire) != seen);
            let mut state = locked(&self.state);
            while state.posted == seen && !state.ends {
                state.asleep += 1;
                state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.asleep -= 1;
            }
            if state.ends {
                return;
            }
            seen = state.posted;
            let Some(job) = state.job else { continue };
            state.inside += 1;
            self.inside.store(state.inside, Ordering::Release);
            drop(state);
            let begin = Begin::now();
            let outcome = self.try_work(job);
            let Used { cpu, wall } = begin.used();
            let mut state = locked(&self.state);
            state.used.cpu += cpu;
            state.used.wall += wall;
            if let Err(panic) = outcome {
                state.panic.get_or_insert(panic);
            }
            state.inside -= 1;
            self.inside.store(state.inside, Ordering::Release);
            let is_last = state.inside == 0;
            drop(state);
            if is_last {
                self.left.notify_one();
            }
        }
    }
}

/// A worker and its helpers. The thread that has it is the worker.
pub(crate) struct ThreadTeam {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
    cores: Vec<usize>,
    /// A process that was forked has no helpers.
    process: u32,
    /// What the worker packs, from one run to the next.
    memory: PackedMemory,
    /// True while a job is open.
    is_busy: Cell<bool>,
}

impl ThreadTeam {
    /// Starts the helpers of a worker, each on one of these cores: the first is the worker's. A thread that could be on
    /// another's core would be woken there, and wait for it.
    ///
    /// # Errors
    /// The system refuses a thread.
    fn start(cores: &[usize], threads: usize) -> Result<Self> {
        let distinct: BTreeSet<usize> = cores.iter().copied().collect();
        let crowded = distinct.len() < threads || !clock::absent_cores(cores).is_empty();
        let shared = Arc::new(Shared::new(threads, crowded));
        let mut team = Self {
            shared,
            helpers: Vec::new(),
            cores: cores.to_vec(),
            process: std::process::id(),
            memory: PackedMemory::default(),
            is_busy: Cell::new(false),
        };
        for number in 1..threads {
            let (shared, cores) = (Arc::clone(&team.shared), cores.to_vec());
            // Helpers that were started before a refusal end with the team.
            team.helpers.push(threads::start_free(move || {
                clock::pin(&cores);
                let _core = (number < cores.len()).then(|| Pinned::to(&cores[number..=number]));
                shared.help();
            })?);
        }
        Ok(team)
    }

    /// Does work that shares jobs, and sets the worker's clock forward or back so that it counts the mean CPU time of
    /// the threads: what each would have taken alone on its core.
    pub(crate) fn timed(&self, work: impl FnOnce(&Self)) {
        if self.helpers.is_empty() {
            return work(self);
        }
        let begin = Begin::now();
        work(self);
        let own = begin.used();
        let helped = std::mem::take(&mut locked(&self.shared.state).used);
        let wall = own.wall + helped.wall;
        if wall > 0.0 {
            let part = ((own.cpu + helped.cpu) / wall).min(1.0);
            clock::add_worker_cpu_seconds(part * own.wall - own.cpu);
        }
    }
}

// SAFETY: the counter gives each number once, and `close` waits for all who are in the job, also after a panic.
unsafe impl Team for ThreadTeam {
    fn threads(&self) -> usize {
        self.shared.threads
    }

    fn share(&self, count: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        // Work that shares work of its own does so alone.
        if count < 2 || self.helpers.is_empty() || self.is_busy.replace(true) {
            return Alone.share(count, work);
        }
        let work: *const (dyn Fn(Range<usize>) + Sync + '_) = work;
        // SAFETY: only the lifetime differs. Nobody calls it after `close`, below.
        let work: *const (dyn Fn(Range<usize>) + Sync) = unsafe { std::mem::transmute(work) };
        let job = Job { work, count };
        self.shared.post(job);
        let own = self.shared.try_work(job);
        let others = self.shared.close();
        self.is_busy.set(false);
        if let Some(panic) = own.err().or(others) {
            resume_unwind(panic);
        }
    }
}

impl Drop for ThreadTeam {
    fn drop(&mut self) {
        self.shared.end();
        for helper in self.helpers.drain(..) {
            // Panics are caught inside.
            let _ = helper.join();
        }
    }
}

// The team of a thread.

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// What the calling thread is while it works for a processor.
struct Worker {
    cores: Vec<usize>,
    team: Option<Rc<ThreadTeam>>,
    /// With helpers it stays on the first core.
    core: Option<Pinned>,
}

/// The calling thread works for a processor, until this is dropped.
pub(crate) struct WorkerThread {
    /// What the thread was before.
    before: Option<Worker>,
}

impl WorkerThread {
    /// Pins the calling thread to these cores. It has the helpers of the last worker on the same cores, if they are idle;
    /// otherwise they are started when they are needed.
    pub(crate) fn on(cores: &[usize]) -> Self {
        clock::pin(cores);
        clock::wake_promptly();
        let threads = clock::usable_threads(cores);
        // A team of one starts no thread.
        let alone = || ThreadTeam::start(cores, 1).ok().filter(|_| threads == 1);
        let team = idle::take(cores, threads).or_else(alone).map(Rc::new);
        let core = team.as_ref().filter(|_| threads > 1).map(|_| Pinned::to(&cores[..1]));
        let worker = Worker { cores: cores.to_vec(), team, core };
        Self { before: WORKER.replace(Some(worker)) }
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        let worker = WORKER.replace(self.before.take());
        let Some(Worker { team, core, .. }) = worker else { return };
        drop(core);
        if let Some(team) = team.and_then(Rc::into_inner) {
            idle::keep(team);
        }
    }
}

/// Does work with the team of the calling thread, or with another one of this many threads if it has none.
///
/// # Errors
/// The system refuses a thread; nothing is done then.
pub(crate) fn with_team<R>(threads: usize, work: impl FnOnce(&ThreadTeam) -> R) -> Result<R> {
    let led = WORKER.with_borrow_mut(|worker| -> Result<_> {
        let Some(worker) = worker else { return Ok(None) };
        let most = clock::usable_threads(&worker.cores);
        if worker.team.is_none() && threads <= most {
            worker.team = Some(Rc::new(ThreadTeam::start(&worker.cores, most)?));
            worker.core = Some(Pinned::to(&worker.cores[..1]));
        }
        Ok(worker.team.clone().filter(|team| team.threads() >= threads))
    })?;
    if let Some(team) = led {
        return Ok(work(&team));
    }
    let team = idle::take(&[], threads).map_or_else(|| ThreadTeam::start(&[], threads), Ok)?;
    let result = work(&team);
    idle::keep(team);
    Ok(result)
}

/// Number of threads of the calling worker's team.
pub(crate) fn worker_threads() -> usize {
    WORKER.with_borrow(|worker| worker.as_ref().map_or(1, |worker| clock::usable_threads(&worker.cores)))
}

/// Writes to every element of a tile of C before it is used, by the team of the calling thread if it has one.
pub(crate) fn fill<T: Element>(tile: &mut ViewMut<'_, T>, value: T) {
    let threads = worker_threads();
    // A refusal of threads is the error of the first update.
    if threads < 2 || with_team(threads, |team| kernels::fill(tile, value, team)).is_err() {
        kernels::fill(tile, value, &Alone);
    }
}

#[cfg(all(test, loom))]
mod interleavings;
#[cfg(all(test, not(loom)))]
mod tests;
