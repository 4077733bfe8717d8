//! Simulation of a schedule with a virtual clock: the forecast.
//!
//! Processors compute at given rates. A message takes latency + bytes / bandwidth on its link (Hockney), and
//! a link carries one message at a time (`LinkBookings`). Sends are buffered: a message travels as soon as
//! it is sent.

pub(crate) mod apart;
mod broadcast_time;
mod collectives;
mod explain;
mod fluid;
mod replay;
mod simgrid;

pub use broadcast_time::BroadcastTime;
pub use explain::{Cause, Doing, History, Wait};
pub use fluid::{
    Action, Deployment, Fluid, Host, Outcome, Tcp, Then, Weights, simulate_actions, simulate_fluid,
};

pub use replay::{parse_traces, read_traces};
pub use simgrid::export_simgrid;

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::{Network, Transit};
use crate::schedule::{Application, Medium, Message, Posting, Step, StepOf, Work};
use crate::trace::{Activity, Lane, Trace};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Inputs of the simulator besides the schedule.
#[derive(Debug, Clone, Copy)]
pub struct CostModel<'a> {
    /// Multiply-adds per second of each processor, at the size of its share.
    pub rates: &'a [f64],
    /// The network.
    pub network: &'a Network,
    /// Bytes of one element.
    pub element: u64,
}

/// Simulates the schedule with a virtual clock. O(steps log p). Deterministic: among simultaneous events the
/// lowest rank is first.
///
/// # Errors
/// A rate that is not positive for a processor that computes; a schedule that deadlocks (exit code 1; the
/// message names the processors that wait for each other).
pub fn simulate<A: Application>(schedule: &A, conditions: CostModel<'_>) -> Result<Trace> {
    run(schedule, conditions, None, f64::INFINITY).map(|o| o.trace)
}

/// As [`simulate`], but gives up as soon as some processor is busy after `limit`: `None`. Cheap where the
/// schedule takes much longer than that.
pub(crate) fn simulate_within<A: Application>(
    schedule: &A,
    conditions: CostModel<'_>,
    limit: f64,
) -> Result<Option<Trace>> {
    let trace = run(schedule, conditions, None, limit)?.trace;
    Ok((trace.seconds() <= limit).then_some(trace))
}

/// Like [`simulate`], and also returns every wait of every processor.
///
/// # Errors
/// Those of [`simulate`].
pub fn simulate_explained<A: Application>(schedule: &A, conditions: CostModel<'_>) -> Result<Outcome> {
    run(schedule, conditions, Some(History::new(schedule.processors())), f64::INFINITY)
}

fn run<A: Application>(
    schedule: &A,
    conditions: CostModel<'_>,
    history: Option<History>,
    limit: f64,
) -> Result<Outcome> {
    let p = schedule.processors();
    assert_eq!(conditions.rates.len(), p, "one rate per processor");
    let mut ready: BinaryHeap<Reverse<(Clock, usize)>> = (0..p).map(|i| Reverse((Clock(0.0), i))).collect();
    let mut steps: Vec<_> = (0..p).map(|i| schedule.steps(Rank(i))).collect();
    let mut state = State {
        schedule,
        conditions,
        medium: Medium::new(conditions.network),
        held: vec![0; p],
        flushing: vec![None; p],
        inboxes: vec![BTreeMap::new(); p],
        waiting: vec![None; p],
        lanes: vec![Lane::default(); p],
        last_sent: vec![None; p],
        woken: Vec::new(),
        taken: vec![0; p],
        history,
    };
    while let Some(Reverse((Clock(now), i))) = ready.pop() {
        if now > limit {
            // What this processor has just ended is on its lane: the trace is longer than the limit.
            return Ok(Outcome { trace: Trace { lanes: state.lanes }, history: state.history });
        }
        let Some(step) = steps[i].next() else {
            state.history.iter_mut().for_each(|h| h.ends[i] = now);
            continue;
        };
        state.taken[i] += 1;
        if let Some(later) = state.step(Rank(i), step, now)? {
            ready.push(Reverse((Clock(later), i)));
        }
        ready.extend(state.woken.drain(..).map(|(at, rank)| Reverse((Clock(at), rank.0))));
    }
    let waits = |rank: usize| state.waiting[rank].is_some();
    if let Some(rank) = (0..p).find(|&rank| state.flushing[rank].is_some() && !waits(rank)) {
        return Err(Error::infeasible(
            format!("deadlock: a message of processor {rank} waits for an earlier turn that never comes"),
            "this is a defect of the schedule: please report it",
        ));
    }
    let first = (0..p).filter_map(|to| Some((state.waiting[to]?.0.0.0, to))).min();
    if let Some((from, to)) = first {
        return Err(Error::infeasible(
            format!("deadlock: processor {to} waits for a message that processor {from} never sends"),
            "this is a defect of the schedule: please report it",
        ));
    }
    Ok(Outcome { trace: Trace { lanes: state.lanes }, history: state.history })
}

/// The sender and the tag of a message.
type Key = (Rank, u64);

/// A message in flight, as its receiver and sender see it.
#[derive(Debug, Clone, Copy)]
struct Sent {
    bytes: f64,
    posted: f64,
    transit: Transit,
}

struct State<'a, A> {
    schedule: &'a A,
    conditions: CostModel<'a>,
    medium: Medium<'a>,
    /// By rank: number of messages that wait for their turn on a bus.
    held: Vec<usize>,
    /// By rank: since when the processor has waited for such messages to leave.
    flushing: Vec<Option<f64>>,
    /// By receiver: messages that were booked, and that it has not waited for yet.
    inboxes: Vec<BTreeMap<Key, Sent>>,
    /// By receiver: the message that it waits for, and since when.
    waiting: Vec<Option<(Key, f64)>>,
    lanes: Vec<Lane>,
    /// By rank: the processor's message whose last byte leaves last.
    last_sent: Vec<Option<(Rank, u64, Sent)>>,
    woken: Vec<(f64, Rank)>,
    /// Number of steps begun.
    taken: Vec<usize>,
    history: Option<History>,
}

impl<A: Application> State<'_, A> {
    /// Performs one step at `now`. Returns the time at which the processor continues, or `None` if it is
    /// blocked.
    fn step(&mut self, rank: Rank, step: StepOf<A>, now: f64) -> Result<Option<f64>> {
        self.count(rank, step.sent());
        let element = self.conditions.element;
        Ok(match step {
            Step::Send(message) => {
                self.lanes[rank.0].carried += message.elements();
                self.post(Posting::message(&message, element, now), now);
                Some(now)
            }
            Step::Broadcast(broadcast) => {
                self.lanes[rank.0].carried += broadcast.elements();
                self.post(Posting::broadcast(&broadcast, element, now), now);
                Some(now)
            }
            Step::PostReceive(message) => {
                self.lanes[rank.0].received[message.from.0] += message.elements();
                Some(now)
            }
            Step::WaitReceive { from, tag } => match self.inboxes[rank.0].remove(&(from, tag)) {
                Some(sent) => Some(self.arrive((from, rank, tag), sent, now)),
                None => {
                    self.waiting[rank.0] = Some(((from, tag), now));
                    None
                }
            },
            Step::WaitSends if self.held[rank.0] > 0 => {
                self.flushing[rank.0] = Some(now);
                None
            }
            Step::WaitSends => Some(self.flush(rank, now)),
            Step::Compute(update) => {
                let rate = self.conditions.rates[rank.0];
                if !(rate.is_finite() && rate > 0.0) {
                    return Err(Error::infeasible(
                        format!("processor {} has work but its speed is {rate}", rank.0),
                        "give it a positive speed or no share",
                    ));
                }
                let end = now + update.amount() / rate;
                self.lanes[rank.0].push(Activity::Compute, now, end, None);
                Some(end)
            }
            Step::Free(_) => Some(now),
        })
    }

    /// Counts messages that a processor posts.
    fn count(&mut self, rank: Rank, messages: &[Message<A::Piece>]) {
        let lane = &mut self.lanes[rank.0];
        for message in messages {
            lane.sent[message.to.0] += message.elements();
            lane.messages[message.to.0] += 1;
        }
    }

    /// Posts a message. It is booked at once unless it waits for its turn on a bus; messages that waited for
    /// it are booked after it.
    fn post(&mut self, posting: Posting, now: f64) {
        self.held[posting.from.0] += 1;
        let schedule = self.schedule;
        for (posting, transits) in self.medium.post(posting, now, &|turn| schedule.senders(turn)) {
            let from = posting.from;
            self.held[from.0] -= 1;
            for (&(to, load), transit) in posting.to.iter().zip(transits) {
                let sent = Sent { bytes: load.bytes(), posted: posting.at, transit };
                self.send((from, to, posting.tag), sent);
            }
            if self.held[from.0] == 0
                && let Some(since) = self.flushing[from.0].take()
            {
                let end = self.flush(from, since);
                self.woken.push((end, from));
            }
        }
    }

    /// Waits since `since` until every message has left. Returns the time of that.
    fn flush(&mut self, rank: Rank, since: f64) -> f64 {
        let last = self.last_sent[rank.0];
        let end = last.map_or(since, |(_, _, sent)| since.max(sent.transit.sent));
        self.lanes[rank.0].push(Activity::Communicate, since, end, None);
        if let Some((to, tag, sent)) = last {
            self.note(rank, (rank, to, tag), &sent, (since, end));
        }
        end
    }

    /// Wakes the receiver of a message that was booked if it is already waiting.
    fn send(&mut self, (from, to, tag): (Rank, Rank, u64), sent: Sent) {
        self.lanes[to.0].fly(from, sent.transit.start, sent.transit.arrival);
        let last = &mut self.last_sent[from.0];
        if last.is_none_or(|(_, _, l)| l.transit.sent <= sent.transit.sent) {
            *last = Some((to, tag, sent));
        }
        match self.waiting[to.0].take_if(|(key, _)| *key == (from, tag)) {
            Some((_, since)) => {
                let at = self.arrive((from, to, tag), sent, since);
                self.woken.push((at, to));
            }
            None => {
                self.inboxes[to.0].insert((from, tag), sent);
            }
        }
    }

    /// The receiver has waited since `since`: it is idle until the message starts and communicates until it
    /// arrives.
    fn arrive(&mut self, (from, to, tag): (Rank, Rank, u64), sent: Sent, since: f64) -> f64 {
        let transit = sent.transit;
        let end = since.max(transit.arrival);
        let lane = &mut self.lanes[to.0];
        lane.push(Activity::Idle, since, transit.start, Some(from));
        lane.push(Activity::Communicate, since.max(transit.start), end, Some(from));
        self.note(to, (from, to, tag), &sent, (since, end));
        end
    }

    /// Records that a processor waited for a message.
    fn note(
        &mut self,
        rank: Rank,
        (from, to, tag): (Rank, Rank, u64),
        sent: &Sent,
        (since, until): (f64, f64),
    ) {
        if let Some(history) = &mut self.history
            && until > since
        {
            history.waits[rank.0].push(Wait {
                step: self.taken[rank.0] - 1,
                from,
                to,
                tag,
                bytes: sent.bytes,
                since,
                until,
                sent: sent.posted,
                received: f64::NAN,
                started: sent.transit.start,
            });
        }
    }
}

/// A time with a total order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Clock(f64);

impl Eq for Clock {}
impl PartialOrd for Clock {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Clock {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests;
