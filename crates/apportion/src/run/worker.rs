//! One processor of a run: executes its steps over any transport.

use super::holder::{Holder, Order};
use super::mailboxes::StopSignal;
use super::session::Session;
use super::transport::Transport;
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::Processor;
use crate::schedule::{Message, Piece, Step, Work};
use crate::trace::{Activity, Lane};
use std::any::Any;
use std::collections::BTreeMap;
use std::time::Instant;

/// State of one processor, with messages of pieces `P` and work `W`.
pub(super) struct Worker<'w, P, W> {
    pub order: &'w Order<'w, P, W>,
    pub holder: &'w mut dyn Holder<P, W>,
    pub session: &'w Session<'w>,
    pub rank: Rank,
    pub stop: &'w StopSignal<'w>,
    /// The fraction of the job done before this run, and the fraction that this run adds.
    pub part: [f64; 2],
}

impl<P: Piece, W: Work> Worker<'_, P, W> {
    /// Executes all steps; times count from `epoch`. Returns the processor's activities.
    pub fn work(self, epoch: Instant, transport: &mut dyn Transport<P, W>) -> Result<Lane> {
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
                    lane.cpu_seconds +=
                        paced(self.session, self.stop, at, (amount, before), &mut |threads| {
                            holder.compute(&work, threads)
                        })?;
                    lane.push(Activity::Compute, since, now(), None);
                    done += amount;
                    self.session.monitor().advance(amount as u64);
                }
                Step::Free(piece) => holder.free(&piece),
            }
        }
        transport.flush()?;
        while let Some(work) = holder.take_left() {
            self.stop.check()?;
            let (since, amount) = (now(), work.amount());
            let before = if all > 0.0 { (done / all).min(1.0) } else { 1.0 };
            lane.cpu_seconds += paced(self.session, self.stop, at, (amount, before), &mut |threads| {
                holder.compute_left(&work, threads)
            })?;
            lane.push(Activity::Compute, since, now(), None);
            done += amount;
            self.session.monitor().advance(amount as u64);
        }
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
    (amount, done): (f64, f64),
    work: &mut dyn FnMut(usize) -> f64,
) -> Result<f64> {
    let mut throttle = session.throttle(rank.0);
    throttle.reached(part[0] + part[1] * done);
    let seconds = throttle.given_seconds(share, amount);
    let threads = session.platform().processors[rank.0].cores.len().max(1);
    throttle.compute(stop, seconds, || work(threads))
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
