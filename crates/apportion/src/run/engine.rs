//! Execution of an application on a world: the processors of this process as threads, or only this rank's
//! processor.

use super::clock;
use super::mailboxes::{Mailboxes, StartBarrier, StopSignal};
use super::messages::{Messages, reserve};
use super::session::Session;
use super::transport::{Parcels, SharedMemory};
use super::worker::{Finished, Worker, lost};
use super::world::{World, first_failure};
use crate::error::Result;
use crate::geometry::Rank;
use crate::platform::Topology;
use crate::schedule::Executable;
use crate::threads::{self, Started};
use crate::trace::{Lane, Trace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which the progress of messages is driven during an update.
const NUDGE: Duration = Duration::from_millis(1);

/// Data of the processors of this process after a run, and their activities, by rank.
#[derive(Debug)]
pub struct RunOutput<L> {
    /// Data of each processor.
    pub locals: Vec<L>,
    /// Activities of each processor.
    pub lanes: Vec<Lane>,
}

/// Runs an application's schedule. Every rank of the session's world must call it.
///
/// Compute times follow each processor's `slowdown`, or its given speed function. A processor is pinned to
/// its `cores` and uses the same number of threads. In a single process, messages follow the platform's
/// network if it says `emulate`. Under MPI, if the application overlaps communication and computation, a
/// second thread drives the progress of messages meanwhile, unless the ranks are on one host and share
/// memory.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) if the monitor was stopped;
/// [`Error::WorkerLost`](crate::Error::WorkerLost) with the name of a processor that panicked. The other
/// processors of this process are stopped. Other MPI processes wait for messages that will not come: end them
/// with [`World::abort`](super::World::abort).
///
/// # Panics
/// If the sizes of the application, the world and the platform differ.
pub fn run<'a, E: Executable>(app: &'a E, session: &Session<'_>) -> Result<RunOutput<E::Local<'a>>> {
    let (p, platform) = (app.processors(), session.platform());
    assert_eq!(platform.len(), p, "the platform has the application's processors");
    let work = (0..p).map(|rank| app.work(Rank(rank))).sum();
    let part = session.begin(work);
    let finished = if session.world().is_solo() {
        on_threads(app, session, part)?
    } else {
        assert_eq!(session.world().size(), p, "one rank for each processor");
        vec![on_rank(app, session, part)?]
    };
    let (locals, lanes) = finished.into_iter().unzip();
    Ok(RunOutput { locals, lanes })
}

/// The trace of all processors, on every rank.
pub(crate) fn trace_of_all(lanes: Vec<Lane>, world: &World) -> Result<Trace> {
    if world.size() == 1 {
        return Ok(Trace { lanes });
    }
    let text = serde_json::to_vec(&lanes).expect("a lane is plain data");
    let all = world.all_gather(&text)?;
    let lanes =
        all.iter().flat_map(|text| -> Vec<Lane> { serde_json::from_slice(text).expect("a lane was sent") });
    Ok(Trace { lanes: lanes.collect() })
}

/// Runs all processors, one thread each; the first failure is the error of the run.
fn on_threads<'a, E: Executable>(
    app: &'a E,
    session: &Session<'_>,
    part: [f64; 2],
) -> Result<Vec<Finished<'a, E>>> {
    let (p, platform) = (app.processors(), session.platform());
    let (stop, start) = (StopSignal::new(session.monitor()), StartBarrier::new(p));
    let mailboxes = Mailboxes::new(p, &platform.network);
    let (parcels, epoch) = (Parcels::default(), OnceLock::new());
    let one = |rank: usize| {
        let processor = &platform.processors[rank];
        clock::pin(&processor.cores);
        clock::wake_promptly();
        let rank = Rank(rank);
        let work = AssertUnwindSafe(|| -> Result<(E::Local<'a>, Lane)> {
            // The thread that uses the memory allocates it, so that it is local to the thread's core.
            let local = app.hold(rank);
            start.pass(&stop)?;
            // The clock starts when all threads are ready.
            let epoch = *epoch.get_or_init(Instant::now);
            let mut transport =
                SharedMemory { rank, mailboxes: &mailboxes, parcels: &parcels, stop: &stop, epoch };
            Worker { app, session, rank, stop: &stop, local, part }.work(epoch, &mut transport)
        });
        let outcome = catch_unwind(work).unwrap_or_else(|panic| Err(lost(processor, panic)));
        if outcome.is_err() {
            stop.fail();
        }
        outcome
    };
    let outcomes = threads::scope(|scope| {
        let one = &one;
        let started = |rank| {
            // The others wait for all: without this one they must give up.
            threads::start(scope, move || one(rank)).inspect_err(|_| stop.fail())
        };
        let workers: Vec<_> = (0..p).map(started).collect();
        let outcome =
            |worker: Result<Started<'_, _>>| worker?.join().expect("a worker's panic is caught inside");
        workers.into_iter().map(outcome).collect()
    });
    first_failure(outcomes)
}

/// Runs this rank's processor on this thread.
fn on_rank<'a, E: Executable>(app: &'a E, session: &Session<'_>, part: [f64; 2]) -> Result<Finished<'a, E>> {
    let world = session.world();
    let rank = Rank(world.rank());
    let processor = &session.platform().processors[rank.0];
    let (stop, over) = (StopSignal::new(session.monitor()), AtomicBool::new(false));
    let work = || {
        clock::pin(&processor.cores);
        clock::wake_promptly();
        let local = app.hold(rank);
        reserve(world, app, rank)?;
        world.barrier()?;
        let epoch = Instant::now();
        let worker = Worker { app, session, rank, stop: &stop, local, part };
        let bus = session.platform().network.topology == Topology::Bus;
        let in_turns = bus && app.senders(0).is_some();
        worker.work(epoch, &mut Messages::new(world, epoch, in_turns))
    };
    threads::scope(|scope| {
        if app.overlaps() && world.needs_progress() {
            // Messages also progress without it, more slowly.
            let _ = threads::start(scope, || {
                // On its own worker's cores, not on another's.
                clock::pin(&processor.cores);
                while !over.load(Ordering::Relaxed) {
                    world.progress();
                    std::thread::sleep(NUDGE);
                }
            });
        }
        let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|why| Err(lost(processor, why)));
        over.store(true, Ordering::Relaxed);
        outcome
    })
}
