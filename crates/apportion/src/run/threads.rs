//! The embedded engine: one thread per processor, messages by memory, emulated where the platform says so.

use super::blocks::{Blocks, Factors};
use super::mailboxes::{Mailboxes, StartBarrier, StopSignal};
use super::monitor::Monitor;
use super::worker::{Courier, Worker, WorkerOutput, lost};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::kernels::Kernel;
use crate::kernels::Real;
use crate::matrix::{Element, LocalBlocks, Matrix};
use crate::platform::Platform;
use crate::schedule::{Broadcast, Message, Schedule};
use crate::simulate::load_of;
use crate::trace::Trace;
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
    factors: Factors<'a, T>,
    schedule: &'a Schedule,
    platform: &'a Platform,
    post: Mailboxes<'a>,
    halt: StopSignal<'a>,
    gate: StartBarrier,
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
    let begin = vec![None; p];
    let (tiles, trace) = run_part(kernel, Factors { a, b }, schedule, platform, monitor, begin)?;
    Ok(RunOutput { c: assembled(shape.m as usize, shape.n as usize, tiles), trace })
}

/// Carries out a schedule that adds to what each processor's tiles hold; `None` for nothing yet.
pub(super) fn run_part<T: Element>(
    kernel: Kernel<T>,
    factors: Factors<'_, T>,
    schedule: &Schedule,
    platform: &Platform,
    monitor: &Monitor,
    tiles: Vec<Option<LocalBlocks<T>>>,
) -> Result<(Vec<LocalBlocks<T>>, Trace)> {
    let p = schedule.processors();
    let shared = Shared {
        kernel,
        factors,
        schedule,
        platform,
        post: Mailboxes::new(p, &platform.network),
        halt: StopSignal::new(monitor),
        gate: StartBarrier::new(p),
        epoch: OnceLock::new(),
    };
    let (tiles, lanes) = all_workers(&shared, tiles)?.into_iter().map(|o| (o.tiles, o.lane)).unzip();
    Ok((tiles, Trace { lanes }))
}

/// Runs every worker to its end; the first failure is the error of all.
fn all_workers<T: Element>(
    shared: &Shared<'_, T>,
    tiles: Vec<Option<LocalBlocks<T>>>,
) -> Result<Vec<WorkerOutput<T>>> {
    let p = shared.schedule.processors();
    let outcomes: Vec<Result<WorkerOutput<T>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = tiles
            .into_iter()
            .enumerate()
            .map(|(i, tiles)| scope.spawn(move || guarded(shared, Rank(i), tiles)))
            .collect();
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
pub(super) fn assembled<T: Element>(m: usize, n: usize, tiles: Vec<LocalBlocks<T>>) -> Matrix<T> {
    let mut c = Matrix::zeros(m, n);
    for (rect, tile) in tiles.into_iter().flatten() {
        let width = rect.cols.len() as usize;
        for (i, row) in tile.chunks_exact(width).enumerate() {
            let at = (rect.rows.start as usize + i) * n + rect.cols.start as usize;
            c.as_mut_slice()[at..at + width].copy_from_slice(row);
        }
    }
    c
}

/// Runs a processor's worker; its failure or panic ends all.
fn guarded<T: Element>(
    shared: &Shared<'_, T>,
    rank: Rank,
    tiles: Option<LocalBlocks<T>>,
) -> Result<WorkerOutput<T>> {
    let processor = &shared.platform.processors[rank.0];
    let Shared { kernel, factors, schedule, post, halt, .. } = shared;
    let work = AssertUnwindSafe(|| {
        let at = (*schedule, rank);
        // New tiles are made by the thread that will use them, so that their memory is near.
        let worker = match tiles {
            None => Worker::new(*kernel, at, processor, *factors, halt),
            Some(tiles) => Worker::going_on(*kernel, at, processor, *factors, halt, tiles),
        };
        shared.gate.pass(halt)?;
        // The clock starts with everybody ready.
        let epoch = *shared.epoch.get_or_init(Instant::now);
        worker.work(epoch, &mut Permissions { rank, factors: *factors, post, halt, epoch, last_sent: 0.0 })
    });
    let outcome = catch_unwind(work).unwrap_or_else(|panic| Err(lost(processor, panic)));
    if outcome.is_err() {
        halt.fail();
    }
    outcome
}

/// Messages by memory: each is a permission to copy its pieces from their owner's part of the factors, which never
/// change during a run. Each element is copied once.
struct Permissions<'a, 'w, T> {
    rank: Rank,
    factors: Factors<'a, T>,
    post: &'a Mailboxes<'w>,
    halt: &'a StopSignal<'a>,
    epoch: Instant,
    /// When the last byte sent so far leaves.
    last_sent: f64,
}

impl<'a, T: Element> Courier<T> for Permissions<'a, '_, T> {
    type Own = Factors<'a, T>;

    fn send(&mut self, message: &Message, _: &mut Blocks<'_, T, Self::Own>) -> Result<()> {
        let load = load_of(message, size_of::<T>() as u64);
        let now = self.epoch.elapsed().as_secs_f64();
        let left = self.post.send((self.rank, message.to, message.tag), load, now);
        self.last_sent = self.last_sent.max(left);
        Ok(())
    }

    fn broadcast(&mut self, broadcast: &Broadcast, _: &mut Blocks<'_, T, Self::Own>) -> Result<()> {
        let element = size_of::<T>() as u64;
        let now = self.epoch.elapsed().as_secs_f64();
        let left = self.post.broadcast(broadcast, element, now);
        self.last_sent = self.last_sent.max(left);
        Ok(())
    }

    fn expect(&mut self, _: &Message) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, message: &Message, blocks: &mut Blocks<'_, T, Self::Own>) -> Result<f64> {
        let transit = self.post.receive((self.rank, message.from, message.tag), self.epoch, self.halt)?;
        message.pieces.iter().for_each(|piece| blocks.take(*piece, &self.factors));
        Ok(transit.start)
    }

    fn flush(&mut self) -> Result<()> {
        self.halt.sleep_until(self.epoch, self.last_sent)
    }
}

#[cfg(test)]
mod tests;
