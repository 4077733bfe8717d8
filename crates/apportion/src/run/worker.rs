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
                    lane.cpu_seconds +=
                        self.compute(&work, if all > 0.0 { done / all } else { 1.0 }, share)?;
                    lane.push(Activity::Compute, since, now(), None);
                    done += work.amount();
                    self.session.monitor().advance(work.amount() as u64);
                }
                Step::Free(piece) => app.free(&mut self.local, &piece),
            }
        }
        transport.flush()?;
        lane.peak_bytes = app.peak_bytes(&self.local);
        Ok((self.local, lane))
    }

    /// Does a unit of work at the processor's speed for a share of this size; `done` is the fraction of its
    /// work in this run that was done before. Returns the CPU seconds.
    fn compute(&mut self, work: &E::Work, done: f64, share: f64) -> Result<f64> {
        let mut throttle = self.session.throttle(self.rank.0);
        let [before, part] = self.part;
        throttle.reached(before + part * done);
        let seconds = throttle.given_seconds(share, work.amount());
        let threads = self.session.platform().processors[self.rank.0].cores.len().max(1);
        let (app, local) = (self.app, &mut self.local);
        throttle.compute(self.stop, seconds, || app.compute(local, work, threads))
    }
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
