//! The embedded engine: one thread per processor, messages by memory, emulated where the platform says so.

use super::blocks::Blocks;
use super::clock;
use super::governor::Governor;
use super::kernel::Kernel;
use super::kernels::{Real, Tile};
use super::monitor::Monitor;
use super::post::{Gate, Halt, Post};
use crate::error::{Error, Result};
use crate::matrix::{Element, Matrix};
use crate::platform::Platform;
use crate::rect::{Rank, Rect};
use crate::schedule::{Message, Schedule, Step, Update};
use crate::simulate::load_of;
use crate::trace::{Activity, Lane, Trace};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Instant;

/// What a run returns.
#[derive(Debug)]
pub struct RunOutput<T> {
    /// The product.
    pub c: Matrix<T>,
    /// What each processor did when.
    pub trace: Trace,
}

/// What the workers of one run share.
struct Shared<'a, T> {
    kernel: Kernel<T>,
    a: &'a Matrix<T>,
    b: &'a Matrix<T>,
    schedule: &'a Schedule,
    platform: &'a Platform,
    post: Post<'a>,
    halt: Halt<'a>,
    gate: Gate,
    epoch: OnceLock<Instant>,
}

/// Computes C = A B over plus-times: [`run_kernel`] with [`Kernel::plus_times`].
///
/// # Errors
/// As [`run_kernel`].
///
/// # Panics
/// As [`run_kernel`].
pub fn run_threads<T: Real>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    schedule: &Schedule,
    platform: &Platform,
    monitor: &Monitor,
) -> Result<RunOutput<T>> {
    run_kernel(Kernel::plus_times(), (a, b), schedule, platform, monitor)
}

/// Computes C = A B over the kernel's semiring as the schedule says, one thread per processor.
///
/// A worker reads only its own parts of A and B; all else arrives by message. Compute times follow each
/// processor's `slowdown`; messages follow the network if `emulate` is set.
///
/// # Errors
/// [`Error::Interrupted`] if the monitor was stopped; [`Error::WorkerLost`] with its name if a worker panicked
/// (the others are stopped within a fraction of a second).
///
/// # Panics
/// If the matrices, the schedule and the platform do not fit together.
pub fn run_kernel<T: Element>(
    kernel: Kernel<T>,
    (a, b): (&Matrix<T>, &Matrix<T>),
    schedule: &Schedule,
    platform: &Platform,
    monitor: &Monitor,
) -> Result<RunOutput<T>> {
    let shape = schedule.layout().shape();
    let sizes = |m: &Matrix<T>| (m.rows() as u64, m.cols() as u64);
    assert_eq!((sizes(a), sizes(b)), ((shape.m, shape.k), (shape.k, shape.n)), "matrices fit the schedule");
    let p = schedule.processors();
    assert_eq!(platform.len(), p, "the platform has the schedule's processors");
    monitor.begin((shape.flops() / 2.0) as u64);
    let shared = Shared {
        kernel,
        a,
        b,
        schedule,
        platform,
        post: Post::new(p, &platform.network),
        halt: Halt::new(monitor),
        gate: Gate::new(p),
        epoch: OnceLock::new(),
    };
    let outputs = all_workers(&shared)?;
    Ok(assembled(shape.m as usize, shape.n as usize, outputs))
}

/// Runs every worker to its end; the first failure is the error of all.
fn all_workers<T: Element>(shared: &Shared<'_, T>) -> Result<Vec<WorkerOutput<T>>> {
    let p = shared.schedule.processors();
    let outcomes: Vec<Result<WorkerOutput<T>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..p).map(|i| scope.spawn(move || Worker::guarded(shared, Rank(i)))).collect();
        workers.into_iter().map(|w| w.join().expect("a worker's panic is caught inside")).collect()
    });
    let mut outputs = Vec::with_capacity(p);
    let mut failure: Option<Error> = None;
    for outcome in outcomes {
        match outcome {
            Ok(output) => outputs.push(output),
            // The worker that failed first tells why; those that it stopped only say that they were.
            Err(error) if matches!(failure, None | Some(Error::Interrupted)) => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(outputs), Err)
}

/// Puts the parts of C in their places.
fn assembled<T: Element>(m: usize, n: usize, outputs: Vec<WorkerOutput<T>>) -> RunOutput<T> {
    let mut c = Matrix::zeros(m, n);
    let mut lanes = Vec::with_capacity(outputs.len());
    for output in outputs {
        for (rect, tile) in output.tiles {
            let width = rect.cols.len() as usize;
            for (i, row) in tile.chunks_exact(width).enumerate() {
                let at = (rect.rows.start as usize + i) * n + rect.cols.start as usize;
                c.as_mut_slice()[at..at + width].copy_from_slice(row);
            }
        }
        lanes.push(output.lane);
    }
    RunOutput { c, trace: Trace { lanes } }
}

struct WorkerOutput<T> {
    tiles: Vec<(Rect, Vec<T>)>,
    lane: Lane,
}

struct Worker<'s, 'a, T> {
    shared: &'s Shared<'a, T>,
    rank: Rank,
    blocks: Blocks<'s, T>,
    governor: Governor,
    threads: usize,
    tiles: Vec<(Rect, Vec<T>)>,
    expected: BTreeMap<(Rank, u64), Message>,
    lane: Lane,
    epoch: Instant,
    /// When the last byte sent so far leaves.
    last_sent: f64,
}

impl<'s, 'a, T: Element> Worker<'s, 'a, T> {
    /// Runs a worker; its failure or panic ends all.
    fn guarded(shared: &'s Shared<'a, T>, rank: Rank) -> Result<WorkerOutput<T>> {
        let work = AssertUnwindSafe(|| Worker::start(shared, rank).and_then(Worker::work));
        let outcome = catch_unwind(work).unwrap_or_else(|panic| {
            let why = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                .unwrap_or_else(|| "it panicked".into());
            Err(Error::WorkerLost { processor: shared.platform.processors[rank.0].name.clone(), why })
        });
        if outcome.is_err() {
            shared.halt.fail();
        }
        outcome
    }

    /// Takes memory and waits for the others, so that the clock starts with everybody ready.
    fn start(shared: &'s Shared<'a, T>, rank: Rank) -> Result<Self> {
        let processor = &shared.platform.processors[rank.0];
        clock::pin(&processor.cores);
        let schedule = shared.schedule;
        let tiles: Vec<(Rect, Vec<T>)> = schedule
            .rects(rank)
            .iter()
            .map(|rect| {
                let mut tile = Vec::new();
                // `resize` writes every element: the pages are there before the clock starts.
                tile.resize(rect.area() as usize, shared.kernel.zero());
                (*rect, tile)
            })
            .collect();
        let (own_a, own_b) = schedule.own(rank);
        let elements: u64 = own_a.iter().chain(own_b).map(|p| p.rect().area()).sum::<u64>()
            + schedule.rects(rank).iter().map(|r| r.area()).sum::<u64>();
        let held = elements * size_of::<T>() as u64;
        shared.gate.pass(&shared.halt)?;
        Ok(Self {
            shared,
            rank,
            blocks: Blocks::new(schedule, rank, shared.a, shared.b, held),
            governor: Governor::new(processor.slowdown),
            threads: processor.cores.len().max(1),
            tiles,
            expected: BTreeMap::new(),
            lane: Lane::new(schedule.processors()),
            epoch: *shared.epoch.get_or_init(Instant::now),
            last_sent: 0.0,
        })
    }

    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }

    fn work(mut self) -> Result<WorkerOutput<T>> {
        for step in self.shared.schedule.steps(self.rank) {
            self.shared.halt.check()?;
            match step {
                Step::Send(message) => self.send(&message),
                Step::Receive(message) => {
                    self.expected.insert((message.from, message.tag), message);
                }
                Step::Await { from, tag } => self.await_message(from, tag)?,
                Step::Flush => {
                    let now = self.now();
                    self.shared.halt.sleep_until(self.epoch, self.last_sent)?;
                    self.lane.push(Activity::Communicate, now, self.now(), None);
                }
                Step::Compute(update) => self.compute(&update)?,
                Step::Release(inner) => self.blocks.release(inner),
            }
        }
        self.lane.peak_bytes = self.blocks.peak_bytes();
        Ok(WorkerOutput { tiles: self.tiles, lane: self.lane })
    }

    fn send(&mut self, message: &Message) {
        let load = load_of(message, size_of::<T>() as u64);
        self.lane.sent[message.to.0] += message.elements();
        self.lane.messages += 1;
        let left = self.shared.post.send((self.rank, message.to, message.tag), load, self.now());
        self.last_sent = self.last_sent.max(left);
    }

    fn await_message(&mut self, from: Rank, tag: u64) -> Result<()> {
        let message = self.expected.remove(&(from, tag)).expect("a schedule posts before it awaits");
        let since = self.now();
        let shared = self.shared;
        let transit = shared.post.receive((self.rank, from, tag), self.epoch, &shared.halt)?;
        self.lane.received[from.0] += message.elements();
        self.blocks.take(&message.pieces);
        let under_way = transit.start.max(since);
        self.lane.push(Activity::Idle, since, under_way, Some(from));
        self.lane.push(Activity::Communicate, under_way, self.now(), Some(from));
        Ok(())
    }

    fn compute(&mut self, update: &Update) -> Result<()> {
        let start = self.now();
        let (blocks, threads, kernel) = (&mut self.blocks, self.threads, self.shared.kernel);
        let (rect, tile) = self
            .tiles
            .iter_mut()
            .find(|(rect, _)| rect.intersect(update.rect) == update.rect)
            .expect("an update lies in one of the processor's rectangles");
        let stride = rect.cols.len() as usize;
        let first = (update.rect.rows.start - rect.rows.start) as usize * stride
            + (update.rect.cols.start - rect.cols.start) as usize;
        let cpu = self.governor.compute(&self.shared.halt, || {
            blocks.gather(update.inner);
            let operands = blocks.operands(update);
            parallel(
                kernel,
                threads,
                Tile {
                    m: update.rect.rows.len() as usize,
                    k: update.inner.len() as usize,
                    n: update.rect.cols.len() as usize,
                    a: (operands.a, operands.a_stride),
                    b: (operands.b, operands.b_stride),
                    c: (&mut tile[first..], stride),
                },
            )
        })?;
        self.lane.cpu_seconds += cpu;
        self.shared.halt.monitor().advance(update.work() as u64);
        self.lane.push(Activity::Compute, start, self.now(), None);
        Ok(())
    }
}

/// The update on several threads, C's rows divided among them; the longest CPU time of the threads started.
pub(super) fn parallel<T: Element>(kernel: Kernel<T>, threads: usize, tile: Tile<'_, T>) -> f64 {
    let Tile { m, k, n, a: (a, lda), b, c: (c, ldc) } = tile;
    let threads = threads.min(m).max(1);
    if threads == 1 {
        kernel.update(Tile { m, k, n, a: (a, lda), b, c: (c, ldc) });
        return 0.0;
    }
    std::thread::scope(|scope| {
        let mut rest = c;
        let mut helpers = Vec::new();
        for t in 0..threads {
            let (first, end) = (t * m / threads, (t + 1) * m / threads);
            let rows = end - first;
            let length = if t + 1 == threads { rest.len() } else { rows * ldc };
            let (mine, others) = rest.split_at_mut(length);
            rest = others;
            let part = Tile { m: rows, k, n, a: (&a[first * lda..], lda), b, c: (mine, ldc) };
            helpers.push(scope.spawn(move || {
                kernel.update(part);
                clock::thread_cpu_seconds()
            }));
        }
        helpers.into_iter().map(|h| h.join().expect("a kernel does not panic")).fold(0.0, f64::max)
    })
}

#[cfg(test)]
mod tests;
