//! Traces: the timed events of each processor in a run or a simulation.

use crate::geometry::Rank;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// The activity of a processor during an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// Computes.
    Compute,
    /// Waits for a message in transit, packs or unpacks.
    Communicate,
    /// Waits for a message that has not been sent yet.
    Idle,
}

/// An interval of one processor's time, in seconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The activity.
    pub activity: Activity,
    /// Start of the interval.
    pub start: f64,
    /// End of the interval.
    pub end: f64,
    /// The rank at the other end of the message, if there is one.
    pub peer: Option<Rank>,
}

/// The kinds of events that traces and pictures distinguish; [`Event::kind`] is an index into them.
pub const KINDS: [&str; 4] = ["compute", "send", "receive", "wait"];

impl Event {
    /// The index of this event's kind in [`KINDS`]. Communication without a peer is waiting until all sent
    /// messages have left.
    pub fn kind(&self) -> usize {
        match (self.activity, self.peer) {
            (Activity::Compute, _) => 0,
            (Activity::Communicate, None) => 1,
            (Activity::Communicate, Some(_)) => 2,
            (Activity::Idle, _) => 3,
        }
    }
}

/// Counts by rank. Ranks with a count of zero take no memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts(BTreeMap<usize, u64>);

impl Counts {
    /// The counts that are not zero, by rank.
    pub fn iter(&self) -> impl Iterator<Item = &u64> {
        self.0.values()
    }
}

impl Index<usize> for Counts {
    type Output = u64;
    fn index(&self, rank: usize) -> &u64 {
        self.0.get(&rank).unwrap_or(&0)
    }
}

impl IndexMut<usize> for Counts {
    fn index_mut(&mut self, rank: usize) -> &mut u64 {
        self.0.entry(rank).or_insert(0)
    }
}

impl<'a> IntoIterator for &'a Counts {
    type Item = &'a u64;
    type IntoIter = std::collections::btree_map::Values<'a, usize, u64>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.values()
    }
}

/// The time of a message from its first byte at the sender to its last byte at the receiver, in seconds since
/// the start. Under MPI it ends when the receiver looks: when it arrived before is not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Flight {
    /// The sender.
    pub from: Rank,
    /// Its first byte leaves.
    pub start: f64,
    /// Its last byte has arrived.
    pub end: f64,
}

/// One processor's events and counters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Lane {
    /// The events, ordered by time; they do not overlap.
    pub events: Vec<Event>,
    /// Messages to this processor that took time; they may overlap.
    #[serde(default)]
    pub flights: Vec<Flight>,
    /// Elements sent to each processor.
    pub sent: Counts,
    /// Elements received from each processor.
    pub received: Counts,
    /// Messages sent to each processor; a broadcast counts as one message to each receiver.
    pub messages: Counts,
    /// Elements sent, where those of a broadcast count once, as on a bus.
    pub carried: u64,
    /// Bytes that went up to a device, and that came down.
    #[serde(default)]
    pub device_bytes: [u64; 2],
    /// CPU seconds of computation; 0 in a simulation. Compute time over CPU time is the effective slowdown.
    pub cpu_seconds: f64,
    /// The largest number of bytes of matrix data held at once.
    pub peak_bytes: u64,
}

impl Lane {
    /// Adds an event. An event of no duration is dropped; one that continues the last event is merged with
    /// it.
    pub fn push(&mut self, activity: Activity, start: f64, end: f64, peer: Option<Rank>) {
        if end <= start {
            return;
        }
        match self.events.last_mut() {
            Some(last) if last.activity == activity && last.peer == peer && start <= last.end => {
                last.end = end;
            }
            _ => self.events.push(Event { activity, start, end, peer }),
        }
    }

    /// Adds a message to this processor. One of no duration is dropped; one that follows the last without a
    /// gap, from the same sender, is merged with it.
    pub fn fly(&mut self, from: Rank, start: f64, end: f64) {
        if !(start.is_finite() && end > start) {
            return;
        }
        match self.flights.last_mut() {
            Some(last) if last.from == from && last.start <= start && start <= last.end => {
                last.end = last.end.max(end);
            }
            _ => self.flights.push(Flight { from, start, end }),
        }
    }

    /// Seconds spent on an activity.
    pub fn seconds(&self, activity: Activity) -> f64 {
        // Not sum(): that of nothing is -0.0.
        self.events.iter().filter(|e| e.activity == activity).fold(0.0, |sum, e| sum + (e.end - e.start))
    }
}

/// The lanes of all processors, by rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// One per processor.
    pub lanes: Vec<Lane>,
}

impl Trace {
    /// Lanes without events.
    pub fn empty(processors: usize) -> Self {
        Self { lanes: vec![Lane::default(); processors] }
    }

    /// Appends a later trace of the same processors; its times are shifted to start at the end of the last
    /// event.
    pub fn append(&mut self, next: Self) {
        let begin = self.seconds();
        self.append_at(begin, next);
    }

    /// The same where its times count from `begin`.
    pub fn append_at(&mut self, begin: f64, next: Self) {
        for (lane, next) in self.lanes.iter_mut().zip(next.lanes) {
            lane.events.extend(next.events.iter().map(|e| Event {
                start: begin + e.start,
                end: begin + e.end,
                ..*e
            }));
            let shifted = |f: &Flight| Flight { start: begin + f.start, end: begin + f.end, ..*f };
            lane.flights.extend(next.flights.iter().map(shifted));
            let add = |all: &mut Counts, new: &Counts| new.0.iter().for_each(|(&rank, n)| all[rank] += n);
            add(&mut lane.sent, &next.sent);
            add(&mut lane.received, &next.received);
            add(&mut lane.messages, &next.messages);
            lane.carried += next.carried;
            lane.cpu_seconds += next.cpu_seconds;
            lane.device_bytes = [0, 1].map(|way| lane.device_bytes[way] + next.device_bytes[way]);
            lane.peak_bytes = lane.peak_bytes.max(next.peak_bytes);
        }
    }

    /// Replaces the events of each lane by one of each activity, with the same sums and the same end, and
    /// drops the times of messages: the trace of a long run then takes little memory.
    pub fn condense(&mut self) {
        let end = self.seconds();
        for lane in &mut self.lanes {
            let [compute, communicate] =
                [Activity::Compute, Activity::Communicate].map(|activity| lane.seconds(activity));
            lane.events.clear();
            lane.flights.clear();
            lane.push(Activity::Compute, 0.0, compute, None);
            lane.push(Activity::Communicate, compute, compute + communicate, None);
            lane.push(Activity::Idle, compute + communicate, end, None);
        }
    }

    /// Seconds from the start to the end of the last event.
    pub fn seconds(&self) -> f64 {
        self.lanes.iter().filter_map(|l| l.events.last()).map(|e| e.end).fold(0.0, f64::max)
    }

    /// Seconds that each processor computes.
    pub fn compute(&self) -> Vec<f64> {
        self.lanes.iter().map(|l| l.seconds(Activity::Compute)).collect()
    }

    /// Seconds that each processor waits for data in transit.
    pub fn communicate(&self) -> Vec<f64> {
        self.lanes.iter().map(|l| l.seconds(Activity::Communicate)).collect()
    }

    /// Seconds until the end of the trace during which each processor neither computes nor communicates.
    pub fn idle(&self) -> Vec<f64> {
        let whole = self.seconds();
        self.lanes
            .iter()
            .map(|l| {
                let busy = l.seconds(Activity::Compute) + l.seconds(Activity::Communicate);
                (whole - busy).max(0.0)
            })
            .collect()
    }

    /// `[to][from]`: elements that each processor received.
    pub fn volume_matrix(&self) -> Vec<Vec<u64>> {
        let p = self.lanes.len();
        self.lanes.iter().map(|l| (0..p).map(|from| l.received[from]).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up() {
        let mut fast = Lane::default();
        fast.push(Activity::Compute, 0.0, 1.0, None);
        fast.push(Activity::Compute, 1.0, 2.0, None);
        fast.push(Activity::Communicate, 2.0, 2.5, Some(Rank(1)));
        fast.push(Activity::Idle, 2.5, 2.5, None);
        let mut slow = Lane::default();
        slow.push(Activity::Compute, 0.0, 4.0, None);
        let trace = Trace { lanes: vec![fast, slow] };
        assert_eq!(trace.lanes[0].events.len(), 2);
        assert_eq!(trace.seconds(), 4.0);
        assert_eq!(trace.compute(), [2.0, 4.0]);
        assert_eq!(trace.idle(), [1.5, 0.0]);
        let mut twice = Trace::empty(2);
        twice.append(trace.clone());
        twice.append(trace);
        assert_eq!(twice.seconds(), 8.0);
        assert_eq!(twice.compute(), [4.0, 8.0]);
        assert_eq!(twice.lanes[0].events[2].start, 4.0);
        let sums = (twice.seconds(), twice.compute(), twice.communicate(), twice.idle());
        twice.condense();
        assert_eq!(sums, (twice.seconds(), twice.compute(), twice.communicate(), twice.idle()));
        assert!(twice.lanes.iter().all(|lane| lane.events.len() <= 3));
    }

    #[test]
    fn messages_of_a_sender_without_a_gap_are_one() {
        let mut lane = Lane::default();
        lane.fly(Rank(1), 0.0, 1.0);
        lane.fly(Rank(1), 1.0, 2.0);
        lane.fly(Rank(2), 2.0, 3.0);
        lane.fly(Rank(2), 3.0, 3.0);
        lane.fly(Rank(2), f64::NAN, 4.0);
        assert_eq!(lane.flights.len(), 2);
        assert_eq!((lane.flights[0].start, lane.flights[0].end), (0.0, 2.0));
        let mut all = Trace { lanes: vec![lane.clone()] };
        all.append_at(10.0, Trace { lanes: vec![lane] });
        assert_eq!(all.lanes[0].flights[2].start, 10.0);
    }
}
