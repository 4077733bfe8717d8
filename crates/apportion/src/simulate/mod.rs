//! A schedule against a clock: the forecast.
//!
//! Processors compute at given rates; a message takes latency + bytes / bandwidth on its wire (Hockney), wires
//! carry one message at a time ([`Wires`]). Sends are buffered: a message travels as soon as it is sent.

mod broadcast_time;

pub use broadcast_time::BroadcastTime;

use crate::error::{Error, Result};
use crate::platform::{Load, Network, Transit, Wires};
use crate::rect::Rank;
use crate::schedule::{Broadcast, Message, Operand, Schedule, Step};
use crate::trace::{Activity, Lane, Trace};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What the simulator needs to know besides the schedule.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// Multiply-adds per second of each processor, at the size of its share.
    pub rates: &'a [f64],
    /// The network.
    pub network: &'a Network,
    /// Bytes of one element.
    pub element: u64,
}

/// Bytes of a message by direction.
pub(crate) fn load_of(message: &Message, element: u64) -> Load {
    let bytes = |operand| (message.elements_of(operand) * element) as f64;
    Load { horizontal: bytes(Operand::A), vertical: bytes(Operand::B) }
}

/// Bytes of a broadcast by direction, each counted once.
pub(crate) fn load_of_broadcast(broadcast: &Broadcast, element: u64) -> Load {
    let bytes = |operand| (broadcast.elements_of(operand) * element) as f64;
    Load { horizontal: bytes(Operand::A), vertical: bytes(Operand::B) }
}

/// Runs the schedule against a virtual clock. O(steps log p); deterministic: ties go to the lower rank.
///
/// # Errors
/// A rate that is not positive for a processor that computes, or a schedule that deadlocks (exit code 1; the
/// message names who waits for whom).
pub fn simulate(schedule: &Schedule, conditions: Conditions<'_>) -> Result<Trace> {
    let p = schedule.processors();
    assert_eq!(conditions.rates.len(), p, "one rate per processor");
    let mut ready: BinaryHeap<Reverse<(Clock, usize)>> = (0..p).map(|i| Reverse((Clock(0.0), i))).collect();
    let mut steps: Vec<_> = (0..p).map(|i| schedule.steps(Rank(i))).collect();
    let mut state = State {
        conditions,
        wires: Wires::new(conditions.network),
        transits: BTreeMap::new(),
        waiting: BTreeMap::new(),
        lanes: vec![Lane::default(); p],
        last_sent: vec![0.0; p],
        woken: Vec::new(),
    };
    while let Some(Reverse((Clock(now), i))) = ready.pop() {
        let Some(step) = steps[i].next() else { continue };
        if let Some(later) = state.step(Rank(i), step, now)? {
            ready.push(Reverse((Clock(later), i)));
        }
        ready.extend(state.woken.drain(..).map(|(at, rank)| Reverse((Clock(at), rank.0))));
    }
    if let Some(((from, to, _), _)) = state.waiting.iter().next() {
        return Err(Error::infeasible(
            format!("deadlock: processor {} waits for a message that processor {} never sends", to.0, from.0),
            "this is a defect of the schedule: please report it",
        ));
    }
    Ok(Trace { lanes: state.lanes })
}

type Key = (Rank, Rank, u64);

struct State<'a> {
    conditions: Conditions<'a>,
    wires: Wires<'a>,
    transits: BTreeMap<Key, Transit>,
    waiting: BTreeMap<Key, f64>,
    lanes: Vec<Lane>,
    last_sent: Vec<f64>,
    woken: Vec<(f64, Rank)>,
}

impl State<'_> {
    /// Does one step at `now`; the time when the processor goes on, or `None` if it is blocked.
    fn step(&mut self, rank: Rank, step: Step, now: f64) -> Result<Option<f64>> {
        Ok(match step {
            Step::Send(message) => {
                let load = load_of(&message, self.conditions.element);
                let transit = self.wires.book(message.from, message.to, load, now);
                self.lanes[rank.0].carried += message.elements();
                self.send(&message, transit);
                Some(now)
            }
            Step::Broadcast(broadcast) => {
                let element = self.conditions.element;
                let to: Vec<(Rank, Load)> =
                    broadcast.messages.iter().map(|m| (m.to, load_of(m, element))).collect();
                let once = load_of_broadcast(&broadcast, element);
                self.lanes[rank.0].carried += broadcast.elements();
                let transits = self.wires.book_broadcast(rank, &to, once, now);
                for (message, transit) in broadcast.messages.iter().zip(transits) {
                    self.send(message, transit);
                }
                Some(now)
            }
            Step::Receive(message) => {
                self.lanes[rank.0].received[message.from.0] += message.elements();
                Some(now)
            }
            Step::Await { from, tag } => {
                let key = (from, rank, tag);
                match self.transits.remove(&key) {
                    Some(transit) => Some(self.arrive(key, transit, now)),
                    None => {
                        self.waiting.insert(key, now);
                        None
                    }
                }
            }
            Step::Flush => {
                let end = now.max(self.last_sent[rank.0]);
                self.lanes[rank.0].push(Activity::Communicate, now, end, None);
                Some(end)
            }
            Step::Compute(update) => {
                let rate = self.conditions.rates[rank.0];
                if !(rate.is_finite() && rate > 0.0) {
                    return Err(Error::infeasible(
                        format!("processor {} has work but its speed is {rate}", rank.0),
                        "give it a positive speed or no share",
                    ));
                }
                let end = now + update.work() / rate;
                self.lanes[rank.0].push(Activity::Compute, now, end, None);
                Some(end)
            }
            Step::Release(_) => Some(now),
        })
    }

    /// Counts a message that was booked, and wakes its receiver if it waits already.
    fn send(&mut self, message: &Message, transit: Transit) {
        let lane = &mut self.lanes[message.from.0];
        lane.sent[message.to.0] += message.elements();
        lane.messages[message.to.0] += 1;
        let last = &mut self.last_sent[message.from.0];
        *last = last.max(transit.sent);
        let key = (message.from, message.to, message.tag);
        match self.waiting.remove(&key) {
            Some(since) => {
                let at = self.arrive(key, transit, since);
                self.woken.push((at, message.to));
            }
            None => {
                self.transits.insert(key, transit);
            }
        }
    }

    /// The receiver waited since `since`: idle until the message starts, communicating until it is there.
    fn arrive(&mut self, (from, to, _): Key, transit: Transit, since: f64) -> f64 {
        let end = since.max(transit.arrival);
        let lane = &mut self.lanes[to.0];
        lane.push(Activity::Idle, since, transit.start, Some(from));
        lane.push(Activity::Communicate, since.max(transit.start), end, Some(from));
        end
    }
}

/// A time that orders totally.
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
