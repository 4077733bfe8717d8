//! Execution of an application on a world: the processors of this process as threads, or only this rank's
//! processor.

use super::clock;
use super::mailboxes::{Mailboxes, StartBarrier, StopSignal};
use super::session::Session;
use super::team::WorkerThread;
use super::transport::{Holder, LocalPart, Messages, Order, Parcels, SharedMemory, Transport, reserve};
use super::world::{World, first_failure};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::{Processor, Topology};
use crate::schedule::{Executable, Message, Piece, Step, Work};
use crate::threads;
use crate::threads::Started;
use crate::trace::{Activity, Lane, Trace};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
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
    let places: Vec<Mutex<Option<E::Local<'a>>>> = (0..app.processors()).map(|_| Mutex::new(None)).collect();
    let enter = |rank: Rank, then: &mut Then<'_, E::Piece, E::Work>| {
        // The thread that uses the memory allocates it, so that it is local to the thread's core.
        let mut local_part = LocalPart::new(app, rank);
        let lane = then(&mut local_part)?;
        *places[rank.0].lock().unwrap_or_else(PoisonError::into_inner) = Some(local_part.local);
        Ok(lane)
    };
    let lanes = run_all(&Job { order: app, enter: &enter, element: size_of::<E::Element>() }, session)?;
    let locals =
        places.into_iter().filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(RunOutput { locals: locals.collect(), lanes })
}

/// What a worker does with the data of its processor.
type Then<'t, P, W> = dyn FnMut(&mut dyn Holder<P, W>) -> Result<Lane> + 't;

/// See [`Job::enter`].
type Enter<'a, P, W> = dyn Fn(Rank, &mut Then<'_, P, W>) -> Result<Lane> + Sync + 'a;

/// An application without the types of its elements and data.
struct Job<'a, P, W> {
    order: &'a Order<'a, P, W>,
    /// Allocates the data of a processor, lends it, and keeps it where nothing failed.
    enter: &'a Enter<'a, P, W>,
    /// Bytes of an element.
    element: usize,
}

/// Runs the processors of this process. Returns their activities.
fn run_all<P: Piece, W: Work>(job: &Job<'_, P, W>, session: &Session<'_>) -> Result<Vec<Lane>> {
    let (p, platform) = (job.order.processors(), session.platform());
    assert_eq!(platform.len(), p, "the platform has the application's processors");
    let work = (0..p).map(|rank| job.order.work(Rank(rank))).sum();
    let part = session.begin(work);
    if session.world().is_solo() {
        return on_threads(job, session, part);
    }
    assert_eq!(session.world().size(), p, "one rank for each processor");
    Ok(vec![on_rank(job, session, part)?])
}

/// The trace of all processors, on every rank.
pub fn trace_of_all(lanes: Vec<Lane>, world: &World) -> Result<Trace> {
    if world.size() == 1 {
        return Ok(Trace { lanes });
    }
    Ok(Trace { lanes: world.all_gather_values(&lanes)?.concat() })
}

/// Runs all processors, one thread each; the first failure is the error of the run.
fn on_threads<P: Piece, W: Work>(
    job: &Job<'_, P, W>,
    session: &Session<'_>,
    part: [f64; 2],
) -> Result<Vec<Lane>> {
    let (p, platform) = (job.order.processors(), session.platform());
    let (stop, start) = (StopSignal::new(session.monitor()), StartBarrier::new(p));
    let senders = |turn| job.order.senders(turn);
    let mailboxes = Mailboxes::new(p, &platform.network, &senders);
    let (parcels, epoch) = (Parcels::default(), OnceLock::new());
    let one = |rank: usize| {
        let processor = &platform.processors[rank];
        let _thread = WorkerThread::on(&processor.cores);
        let rank = Rank(rank);
        let mut with = |holder: &mut dyn Holder<P, W>| {
            start.pass(&stop)?;
            // The clock starts when all threads are ready.
            let epoch = *epoch.get_or_init(Instant::now);
            let mut transport =
                SharedMemory { rank, mailboxes: &mailboxes, parcels: &parcels, stop: &stop, epoch };
            let worker = Worker { order: job.order, holder, session, rank, stop: &stop, part };
            worker.work(epoch, &mut transport)
        };
        let work = AssertUnwindSafe(|| (job.enter)(rank, &mut with));
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
fn on_rank<P: Piece, W: Work>(job: &Job<'_, P, W>, session: &Session<'_>, part: [f64; 2]) -> Result<Lane> {
    let (world, order) = (session.world(), job.order);
    let rank = Rank(world.rank());
    let processor = &session.platform().processors[rank.0];
    let (stop, over) = (StopSignal::new(session.monitor()), AtomicBool::new(false));
    let mut with = |holder: &mut dyn Holder<P, W>| {
        reserve(world, order, rank, job.element)?;
        world.barrier()?;
        let epoch = Instant::now();
        let bus = session.platform().network.topology == Topology::Bus;
        let in_turns = bus && order.senders(0).is_some();
        let worker = Worker { order, holder, session, rank, stop: &stop, part };
        worker.work(epoch, &mut Messages::new(world, epoch, in_turns))
    };
    let work = || {
        let _pinned = clock::Pinned::to(&processor.cores);
        let _thread = WorkerThread::on(&processor.cores);
        (job.enter)(rank, &mut with)
    };
    threads::scope(|scope| {
        if order.overlaps() && world.needs_progress() {
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

// One processor of a run: executes its steps over any transport.

/// State of one processor, with messages of pieces `P` and work `W`.
pub(super) struct Worker<'w, P, W> {
    pub(crate) order: &'w Order<'w, P, W>,
    pub(crate) holder: &'w mut dyn Holder<P, W>,
    pub(crate) session: &'w Session<'w>,
    pub(crate) rank: Rank,
    pub(crate) stop: &'w StopSignal<'w>,
    /// The fraction of the job done before this run, and the fraction that this run adds.
    pub(crate) part: [f64; 2],
}

impl<P: Piece, W: Work> Worker<'_, P, W> {
    /// Executes all steps; times count from `epoch`. Returns the processor's activities.
    pub(crate) fn work(self, epoch: Instant, transport: &mut dyn Transport<P, W>) -> Result<Lane> {
        let (order, holder, rank) = (self.order, self.holder, self.rank);
        let now = || epoch.elapsed().as_secs_f64();
        let mut lane = Lane::default();
        let mut expected: BTreeMap<(Rank, u64), Message<P>> = BTreeMap::new();
        let (all, share) = (order.work(rank), order.share(rank));
        let at = (rank, share, self.part);
        let mut done = 0.0;
        for step in order.steps(rank) {
            self.stop.check()?;
            self.session.world().check()?;
            for message in step.sent() {
                lane.sent[message.to.0] += message.elements();
                lane.messages[message.to.0] += 1;
            }
            match step {
                Step::Send(message) => {
                    lane.carried += message.elements();
                    transport.send(&message, holder)?;
                }
                Step::Broadcast(broadcast) => {
                    lane.carried += broadcast.elements();
                    transport.broadcast(&broadcast, holder)?;
                }
                Step::PostReceive(message) => {
                    transport.post_receive(&message, holder)?;
                    expected.insert((message.from, message.tag), message);
                }
                Step::WaitReceive { from, tag } => {
                    let message = expected.remove(&(from, tag)).expect("a schedule posts before it waits");
                    let since = now();
                    let [started, arrived] = transport.receive(&message, holder)?;
                    let under_way = started.max(since);
                    lane.fly(from, started, arrived);
                    lane.received[from.0] += message.elements();
                    lane.push(Activity::Idle, since, under_way, Some(from));
                    lane.push(Activity::Communicate, under_way, now(), Some(from));
                }
                Step::WaitSends => {
                    let since = now();
                    transport.flush()?;
                    lane.push(Activity::Communicate, since, now(), None);
                }
                Step::Compute(work) => {
                    let since = now();
                    let amount = holder.amount(&work);
                    let before = if all > 0.0 { done / all } else { 1.0 };
                    transport.suspend();
                    lane.cpu_seconds += paced(self.session, self.stop, at, amount, before, &mut |threads| {
                        holder.compute(&work, threads)
                    })?;
                    transport.resume();
                    lane.push(Activity::Compute, since, now(), None);
                    done += amount;
                    self.session.monitor().advance(amount as u64);
                }
                Step::Free(piece) => holder.free(&piece),
            }
        }
        transport.flush()?;
        transport.suspend();
        while let Some(work) = holder.take_left() {
            self.stop.check()?;
            let (since, amount) = (now(), work.amount());
            let before = if all > 0.0 { (done / all).min(1.0) } else { 1.0 };
            lane.cpu_seconds += paced(self.session, self.stop, at, amount, before, &mut |threads| {
                holder.compute_left(&work, threads)
            })?;
            lane.push(Activity::Compute, since, now(), None);
            done += amount;
            self.session.monitor().advance(amount as u64);
        }
        lane.device_bytes = holder.device_bytes();
        lane.peak_bytes = holder.peak_bytes();
        Ok(lane)
    }
}

/// Does work of this amount at the speed of a processor with a share of this size. `done` is the fraction of
/// its work in this run that was done before; `part` are the fractions of the job before and in this run.
/// Returns the CPU seconds.
fn paced(
    session: &Session<'_>,
    stop: &StopSignal<'_>,
    (rank, share, part): (Rank, f64, [f64; 2]),
    amount: f64,
    done: f64,
    work: &mut dyn FnMut(usize) -> Result<f64>,
) -> Result<f64> {
    let mut throttle = session.throttle(rank.0);
    throttle.reached(part[0] + part[1] * done);
    let seconds = throttle.given_seconds(share, amount);
    let threads = clock::usable_threads(&session.platform().processors[rank.0].cores);
    throttle.try_compute(stop, seconds, || work(threads))
}

/// The error of a processor whose worker panicked.
pub(super) fn lost(processor: &Processor, panic: Box<dyn Any + Send>) -> Error {
    Error::WorkerLost { processor: processor.name.clone(), why: last_words(&*panic) }
}

/// The message of a panic.
pub(crate) fn last_words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "it panicked".into())
}
