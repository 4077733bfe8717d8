//! Simulation of a schedule with a virtual clock: the forecast.
//!
//! Processors compute at given rates. A message takes latency + bytes / bandwidth on its link (Hockney), and
//! a link carries one message at a time (`LinkBookings`). Sends are buffered: a message travels as soon as
//! it is sent. A device computes when all its operands are on its host (`device_work`).

mod collectives;
mod device_work;
mod effort;
mod explain;
mod fluid;
mod record;
pub(crate) mod recurrence;
mod replay;
mod simgrid;

pub(crate) use effort::Effort;
pub use explain::{Cause, Doing, History, Wait};
pub use fluid::{
    Action, Deployment, Fluid, Host, Outcome, Tcp, Then, Weights, forecast_fluid, simulate_actions,
    simulate_fluid,
};

pub use replay::{parse_traces, read_traces};
pub use simgrid::export_simgrid;

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::plan::Forecast;
use crate::platform::{DeviceMemory, Load, Network, NumberHasher, Transit};
use crate::schedule::{Application, Medium, Posting, Step, StepOf, Work};
use crate::trace::{Activity, Trace};
use device_work::DeviceWork;
use effort::{MESSAGE, PIECE, STEP};
use record::{Events, Record, Totals};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::BuildHasherDefault;

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
/// lowest rank is first. Every event is kept: up to 300 bytes a message. [`forecast`] keeps their sums.
///
/// # Errors
/// A rate that is not positive for a processor that computes; a schedule that deadlocks (exit code 1; the
/// message names the processors that wait for each other).
pub fn simulate<A: Application>(schedule: &A, costs: CostModel<'_>) -> Result<Trace> {
    let events = Events::new(schedule.processors(), false);
    to_the_end(schedule, costs, events).map(|events| events.outcome().trace)
}

/// The times of [`simulate`], bit for bit, without its events: about 100 bytes for each message that was sent
/// and that its receiver has not waited for yet, and for each pair of processors that has exchanged any.
///
/// # Errors
/// Those of [`simulate`].
pub fn forecast<A: Application>(schedule: &A, costs: CostModel<'_>) -> Result<Forecast> {
    to_the_end(schedule, costs, Totals::new(schedule.processors())).map(Totals::forecast)
}

/// As [`forecast`], but gives up as soon as some processor is busy after `limit`, which is cheap where the
/// schedule takes much longer than that, or as soon as the work is spent: `None`.
pub(crate) fn forecast_within<A: Application>(
    schedule: &A,
    costs: CostModel<'_>,
    limit: f64,
    effort: &Effort,
) -> Result<Option<Forecast>> {
    let totals = run(schedule, costs, Totals::new(schedule.processors()), limit, effort)?;
    Ok(totals.filter(|totals| totals.seconds() <= limit).map(Totals::forecast))
}

/// Like [`simulate`], and also returns every wait of every processor.
///
/// # Errors
/// Those of [`simulate`].
pub fn simulate_explained<A: Application>(schedule: &A, costs: CostModel<'_>) -> Result<Outcome> {
    to_the_end(schedule, costs, Events::new(schedule.processors(), true)).map(Events::outcome)
}

fn to_the_end<A: Application, R: Record>(schedule: &A, costs: CostModel<'_>, record: R) -> Result<R> {
    let record = run(schedule, costs, record, f64::INFINITY, &Effort::unlimited())?;
    Ok(record.expect("nothing limits it"))
}

/// The record up to the end, or up to what happens after `limit`; `None` if the work is spent before.
fn run<A: Application, R: Record>(
    schedule: &A,
    costs: CostModel<'_>,
    record: R,
    limit: f64,
    effort: &Effort,
) -> Result<Option<R>> {
    let p = schedule.processors();
    assert_eq!(costs.rates.len(), p, "one rate per processor");
    let mut ready: BinaryHeap<Reverse<(Clock, usize)>> = (0..p).map(|i| Reverse((Clock(0.0), i))).collect();
    let mut steps: Vec<_> = (0..p).map(|i| schedule.steps(Rank(i))).collect();
    let mut state = State {
        schedule,
        costs,
        medium: Medium::new(costs.network),
        held: vec![0; p],
        flushing: vec![None; p],
        inboxes: vec![Inbox::default(); p],
        waiting: vec![None; p],
        last_sent: vec![None; p],
        devices: costs.network.devices.keys().map(|rank| (*rank, DeviceWork::default())).collect(),
        woken: Vec::new(),
        taken: vec![0; p],
        spent: 0.0,
        record,
    };
    let scale = effort::scale(p);
    while let Some(Reverse((Clock(mut now), i))) = ready.pop() {
        // Most steps take no time, and the same processor goes on.
        loop {
            if now > limit {
                // What this processor has just ended is on record: it takes longer than the limit.
                return Ok(Some(state.record));
            }
            effort.spend(scale * (STEP + std::mem::take(&mut state.spent)));
            if effort.is_spent() {
                return Ok(None);
            }
            let Some(step) = steps[i].next() else {
                let now = state.last_work(Rank(i), now);
                state.record.ends(Rank(i), now);
                break;
            };
            state.taken[i] += 1;
            let later = state.step(Rank(i), step, now)?;
            ready.extend(state.woken.drain(..).map(|(at, rank)| Reverse((Clock(at), rank.0))));
            let Some(later) = later else { break };
            if ready.peek().is_some_and(|Reverse(first)| *first < (Clock(later), i)) {
                ready.push(Reverse((Clock(later), i)));
                break;
            }
            now = later;
        }
    }
    let waits = |rank: usize| state.waiting[rank].is_some();
    if let Some(rank) = (0..p).find(|&rank| state.flushing[rank].is_some() && !waits(rank)) {
        return Err(Error::infeasible(
            format!("deadlock: a message of processor {rank} waits for an earlier turn that never comes"),
            "this is a defect of the schedule: please report it",
        ));
    }
    let first = (0..p).filter_map(|to| Some((state.waiting[to]?.0.0, to))).min();
    if let Some((from, to)) = first {
        return Err(Error::infeasible(
            format!("deadlock: processor {to} waits for a message that processor {from} never sends"),
            "this is a defect of the schedule: please report it",
        ));
    }
    Ok(Some(state.record))
}

/// The sender and the tag of a message. Millions are in inboxes at once: ranks are below 2^32.
type Key = (u32, u64);

/// Messages of one receiver.
type Inbox<D> = HashMap<Key, Sent<D>, BuildHasherDefault<NumberHasher>>;

fn key(from: Rank, tag: u64) -> Key {
    (from.0 as u32, tag)
}

/// A message in flight, as its receiver sees it, and `D` for the record.
#[derive(Debug, Clone, Copy)]
struct Sent<D> {
    start: f64,
    arrival: f64,
    detail: D,
}

/// The message of a sender whose last byte leaves last.
#[derive(Debug, Clone, Copy)]
struct Last<D> {
    to: Rank,
    tag: u64,
    leaves: f64,
    sent: Sent<D>,
}

struct State<'a, A, R: Record> {
    schedule: &'a A,
    costs: CostModel<'a>,
    medium: Medium<'a>,
    /// By rank: number of messages that wait for their turn on a bus.
    held: Vec<usize>,
    /// By rank: since when the processor has waited for such messages to leave.
    flushing: Vec<Option<f64>>,
    /// By receiver: messages that were booked, and that it has not waited for yet.
    inboxes: Vec<Inbox<R::Detail>>,
    /// By receiver: the message that it waits for, and since when.
    waiting: Vec<Option<(Key, f64)>>,
    /// By rank.
    last_sent: Vec<Option<Last<R::Detail>>>,
    /// What the devices have to do.
    devices: BTreeMap<Rank, DeviceWork>,
    woken: Vec<(f64, Rank)>,
    /// Number of steps begun.
    taken: Vec<usize>,
    /// Work since the last step, in nominal nanoseconds.
    spent: f64,
    record: R,
}

impl<A: Application, R: Record> State<'_, A, R> {
    /// Performs one step at `now`. Returns the time at which the processor continues, or `None` if it is
    /// blocked.
    fn step(&mut self, rank: Rank, step: StepOf<A>, now: f64) -> Result<Option<f64>> {
        let element = self.costs.element;
        Ok(match step {
            Step::Send(message) => {
                self.record.sends(rank, std::slice::from_ref(&message), || message.elements());
                self.spent += PIECE * message.pieces.len() as f64;
                let (to, tag, load) = (message.to, message.tag, message.load(element));
                match self.medium.book_at_once(rank, to, load, now) {
                    Some(transit) => self.booked(rank, to, tag, load, transit, now),
                    None => self.post(Posting::message(&message, element, now)),
                }
                Some(now)
            }
            Step::Broadcast(broadcast) => {
                self.record.sends(rank, &broadcast.messages, || broadcast.elements());
                let pieces: usize = broadcast.messages.iter().map(|message| message.pieces.len()).sum();
                self.spent += PIECE * pieces as f64;
                self.post(Posting::broadcast(&broadcast, element, now));
                Some(now)
            }
            Step::PostReceive(message) => {
                self.spent += PIECE * message.pieces.len() as f64;
                self.record.expects(&message);
                Some(now)
            }
            Step::WaitReceive { from, tag } => match self.inboxes[rank.0].remove(&key(from, tag)) {
                Some(sent) => Some(self.arrive(from, rank, tag, sent, now)),
                None => {
                    self.waiting[rank.0] = Some((key(from, tag), now));
                    None
                }
            },
            Step::WaitSends if self.held[rank.0] > 0 => {
                self.flushing[rank.0] = Some(now);
                None
            }
            Step::WaitSends => Some(self.flush(rank, now)),
            Step::Compute(update) => {
                let rate = self.costs.rates[rank.0];
                if !(rate.is_finite() && rate > 0.0) {
                    return Err(Error::infeasible(
                        format!("processor {} has work but its speed is {rate}", rank.0),
                        "give it a positive speed or no share",
                    ));
                }
                let seconds = update.amount() / rate;
                let end = match (self.device(rank), update.fetches()) {
                    (Some((memory, work)), Some(elements)) => {
                        work.idle(now) + memory.seconds_down(1, (elements * element) as f64) + seconds
                    }
                    (Some((memory, work)), None) => {
                        let memory_bytes = memory.bytes.filter(|_| !memory.resident);
                        work.push(memory, update.uploads(memory_bytes, element), element, seconds);
                        if memory.resident { work.start(now, memory) } else { now }
                    }
                    (None, _) => now + seconds,
                };
                self.record.push(rank, Activity::Compute, now, end, None);
                Some(end)
            }
            Step::Free(_) => Some(now),
        })
    }

    /// A processor that is a device: its memory and its work so far.
    fn device(&mut self, rank: Rank) -> Option<(&DeviceMemory, &mut DeviceWork)> {
        Some((self.costs.network.devices.get(&rank)?, self.devices.get_mut(&rank)?))
    }

    /// A device computes when its processor has done all steps. Returns when its results are on the host.
    fn last_work(&mut self, rank: Rank, now: f64) -> f64 {
        let bytes = (self.schedule.results(rank) * self.costs.element) as f64;
        let Some((memory, work)) = self.device(rank) else { return now };
        let end = work.end(now, memory, bytes);
        self.record.push(rank, Activity::Compute, now, end, None);
        end
    }

    /// Posts a message. It is booked at once unless it waits for its turn on a bus; messages that waited for
    /// it are booked after it.
    fn post(&mut self, posting: Posting) {
        self.held[posting.from.0] += 1;
        let schedule = self.schedule;
        for (posting, transits) in self.medium.post(posting, &|turn| schedule.senders(turn)) {
            let from = posting.from;
            self.held[from.0] -= 1;
            for (&(to, load), transit) in posting.to.iter().zip(transits) {
                self.booked(from, to, posting.tag, load, transit, posting.at);
            }
            if self.held[from.0] == 0
                && let Some(since) = self.flushing[from.0].take()
            {
                let end = self.flush(from, since);
                self.woken.push((end, from));
            }
        }
    }

    /// A message that was posted at `posted` is booked.
    fn booked(&mut self, from: Rank, to: Rank, tag: u64, load: Load, transit: Transit, posted: f64) {
        let Transit { start, sent: leaves, arrival } = transit;
        let sent = Sent { start, arrival, detail: R::detail(load.bytes(), posted) };
        self.spent += MESSAGE;
        self.send(from, Last { to, tag, leaves, sent });
    }

    /// Waits since `since` until every message has left. Returns the time of that.
    fn flush(&mut self, rank: Rank, since: f64) -> f64 {
        let last = self.last_sent[rank.0];
        let end = last.map_or(since, |last| since.max(last.leaves));
        self.record.push(rank, Activity::Communicate, since, end, None);
        if let Some(Last { to, tag, sent, .. }) = last {
            self.note(rank, rank, to, tag, sent, since, end);
        }
        end
    }

    /// Wakes the receiver of a message that was booked if it is already waiting.
    fn send(&mut self, from: Rank, message: Last<R::Detail>) {
        let Last { to, tag, leaves, sent } = message;
        self.record.fly(from, to, sent.start, sent.arrival);
        let last = &mut self.last_sent[from.0];
        if last.is_none_or(|last| last.leaves <= leaves) {
            *last = Some(message);
        }
        match self.waiting[to.0].take_if(|(awaited, _)| *awaited == key(from, tag)) {
            Some((_, since)) => {
                let at = self.arrive(from, to, tag, sent, since);
                self.woken.push((at, to));
            }
            None => {
                self.inboxes[to.0].insert(key(from, tag), sent);
            }
        }
    }

    /// The receiver has waited since `since`: it is idle until the message starts and communicates until it
    /// arrives.
    fn arrive(&mut self, from: Rank, to: Rank, tag: u64, sent: Sent<R::Detail>, since: f64) -> f64 {
        let end = since.max(sent.arrival);
        self.record.push(to, Activity::Idle, since, sent.start, Some(from));
        self.record.push(to, Activity::Communicate, since.max(sent.start), end, Some(from));
        self.note(to, from, to, tag, sent, since, end);
        end
    }

    /// Records that a processor waited for a message.
    fn note(
        &mut self,
        rank: Rank,
        from: Rank,
        to: Rank,
        tag: u64,
        Sent { start, detail, .. }: Sent<R::Detail>,
        since: f64,
        until: f64,
    ) {
        let step = self.taken[rank.0] - 1;
        self.record.waits(rank, detail, |bytes, sent| Wait {
            step,
            from,
            to,
            tag,
            bytes,
            since,
            until,
            sent,
            received: f64::NAN,
            started: start,
        });
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
