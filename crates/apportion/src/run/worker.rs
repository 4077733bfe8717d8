//! One processor of a run: executes its steps over any transport.

use super::mailboxes::StopSignal;
use super::session::Session;
use super::transport::Transport;
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::Processor;
use crate::schedule::{Executable, MessageOf, Step, Work};
use crate::trace::{Activity, Lane};
use std::any::Any;
use std::collections::BTreeMap;
use std::time::Instant;

/// State of one processor.
pub(super) struct Worker<'a, 'w, E: Executable> {
    pub app: &'a E,
    pub session: &'w Session<'w>,
    pub rank: Rank,
    pub stop: &'w StopSignal<'w>,
    pub local: E::Local<'a>,
    /// The fraction of the job done before this run, and the fraction that this run adds.
    pub part: [f64; 2],
}

/// A worker's data and activities at its end.
pub(super) type Finished<'a, E> = (<E as Executable>::Local<'a>, Lane);

impl<'a, E: Executable> Worker<'a, '_, E> {
    /// Executes all steps; times count from `epoch`.
    pub fn work<C: Transport<E>>(mut self, epoch: Instant, transport: &mut C) -> Result<Finished<'a, E>> {
        let (app, now) = (self.app, || epoch.elapsed().as_secs_f64());
        let mut lane = Lane::default();
        let mut expected: BTreeMap<(Rank, u64), MessageOf<E>> = BTreeMap::new();
        let (all, share) = (app.work(self.rank), app.share(self.rank));
        let mut done = 0.0;
        for step in app.steps(self.rank) {
            self.stop.check()?;
            self.session.world().check()?;
            for message in step.sent() {
                lane.sent[message.to.0] += message.elements();
                lane.messages[message.to.0] += 1;
            }
            match step {
                Step::Send(message) => {
                    lane.carried += message.elements();
                    transport.send(&message, app, &mut self.local)?;
                }
                Step::Broadcast(broadcast) => {
                    lane.carried += broadcast.elements();
                    transport.broadcast(&broadcast, app, &mut self.local)?;
                }
                Step::PostReceive(message) => {
                    transport.post_receive(&message)?;
                    expected.insert((message.from, message.tag), message);
                }
                Step::WaitReceive { from, tag } => {
                    let message = expected.remove(&(from, tag)).expect("a schedule posts before it waits");
                    let since = now();
                    let [started, arrived] = transport.receive(&message, app, &mut self.local)?;
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
                    let amount = app.amount(&self.local, &work);
                    let before = if all > 0.0 { done / all } else { 1.0 };
                    let (local, rank) = (&mut self.local, self.rank);
                    let at = (rank, share, self.part);
                    lane.cpu_seconds += paced(self.session, self.stop, at, (amount, before), |threads| {
                        app.compute(local, &work, threads)
                    })?;
                    lane.push(Activity::Compute, since, now(), None);
                    done += amount;
                    self.session.monitor().advance(amount as u64);
                }
                Step::Free(piece) => app.free(&mut self.local, &piece),
            }
        }
        transport.flush()?;
        while let Some(work) = app.take_left(self.rank) {
            self.stop.check()?;
            let (since, amount) = (now(), work.amount());
            let before = if all > 0.0 { (done / all).min(1.0) } else { 1.0 };
            let at = (self.rank, share, self.part);
            lane.cpu_seconds += paced(self.session, self.stop, at, (amount, before), |threads| {
                app.compute_left(&work, threads)
            })?;
            lane.push(Activity::Compute, since, now(), None);
            done += amount;
            self.session.monitor().advance(amount as u64);
        }
        lane.peak_bytes = app.peak_bytes(&self.local);
        Ok((self.local, lane))
    }
}

/// Does work of this amount at the speed of a processor with a share of this size. `done` is the fraction of its
/// work in this run that was done before; `part` are the fractions of the job before and in this run. Returns
/// the CPU seconds.
fn paced(
    session: &Session<'_>,
    stop: &StopSignal<'_>,
    (rank, share, part): (Rank, f64, [f64; 2]),
    (amount, done): (f64, f64),
    work: impl FnOnce(usize) -> f64,
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
