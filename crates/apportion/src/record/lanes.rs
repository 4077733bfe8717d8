//! The lanes of a trace as `run.json` and the output of `simulate` have them.

use crate::geometry::Rank;
use crate::trace::{Activity, Event, Flight, KINDS, Lane, Trace};
use serde::{Deserialize, Serialize};

/// Maximum number of events of all lanes; more are joined.
const MOST_EVENTS: usize = 4000;
/// Maximum number of messages; more are left out.
const MOST_MESSAGES: usize = 1000;
/// Least number of pieces of time in which the events of a lane are joined.
const LEAST_PIECES: usize = 8;

/// The lanes of a trace, by rank. In JSON, `events` are `[from, to, what, peer]` in seconds since the start, where `what`
/// is one of [`KINDS`] and `peer` the other end's rank or null; `messages` to the lane's processor are
/// `[sender, from, to]`.
///
/// Of more than 4,000 events each lane's are joined by pieces of time: those of a piece become one of each kind,
/// with the same sums. More than 1,000 messages are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lanes(Vec<LaneRecord>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LaneRecord {
    events: Vec<(f64, f64, Kind, Option<usize>)>,
    messages: Vec<(usize, f64, f64)>,
}

/// One of [`KINDS`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Compute,
    Send,
    Receive,
    Wait,
}

impl Lanes {
    /// Those of a trace. O(events).
    pub fn new(trace: &Trace) -> Self {
        let count: usize = trace.lanes.iter().map(|lane| lane.events.len()).sum();
        let pieces = MOST_EVENTS / KINDS.len() / trace.lanes.len().max(1);
        let piece = trace.seconds() / pieces.max(LEAST_PIECES) as f64;
        let messages: usize = trace.lanes.iter().map(|lane| lane.flights.len()).sum();
        let lane = |lane: &Lane| {
            let joined = if count > MOST_EVENTS { joined(&lane.events, piece) } else { lane.events.clone() };
            let events = joined.iter().map(|event| {
                let kind = [Kind::Compute, Kind::Send, Kind::Receive, Kind::Wait][event.kind()];
                (rounded(event.start), rounded(event.end), kind, event.peer.map(|peer| peer.0))
            });
            let flights = lane.flights.iter().filter(|_| messages <= MOST_MESSAGES);
            let messages = flights.map(|f| (f.from.0, rounded(f.start), rounded(f.end)));
            LaneRecord { events: events.collect(), messages: messages.collect() }
        };
        Self(trace.lanes.iter().map(lane).collect())
    }

    /// The trace of such lanes, without counts; `None` if a time is negative.
    pub fn to_trace(&self) -> Option<Trace> {
        let is_time = |(start, end): (f64, f64)| start >= 0.0 && end >= 0.0;
        let lane = |lane: &LaneRecord| {
            let mut times = lane.events.iter().map(|event| (event.0, event.1));
            let mut flights = lane.messages.iter().map(|message| (message.1, message.2));
            (times.all(is_time) && flights.all(is_time)).then(|| Lane {
                events: lane
                    .events
                    .iter()
                    .map(|&(start, end, kind, peer)| {
                        let activity = match kind {
                            Kind::Compute => Activity::Compute,
                            Kind::Send | Kind::Receive => Activity::Communicate,
                            Kind::Wait => Activity::Idle,
                        };
                        Event { activity, start, end, peer: peer.map(Rank) }
                    })
                    .collect(),
                flights: lane
                    .messages
                    .iter()
                    .map(|&(from, start, end)| Flight { from: Rank(from), start, end })
                    .collect(),
                ..Lane::default()
            })
        };
        let lanes = self.0.iter().map(lane).collect::<Option<Vec<Lane>>>()?;
        Some(Trace { lanes })
    }
}

/// To nanoseconds: no clock tells less.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

/// The events by pieces of time: in each piece the events of a kind become one, one kind after the other.
fn joined(events: &[Event], piece: f64) -> Vec<Event> {
    let mut all: Vec<Event> = Vec::new();
    for group in events.chunk_by(|a, b| (a.start / piece).floor() == (b.start / piece).floor()) {
        let mut at = group[0].start;
        for kind in 0..KINDS.len() {
            let of_kind: Vec<&Event> = group.iter().filter(|event| event.kind() == kind).collect();
            let Some(first) = of_kind.first() else { continue };
            let seconds: f64 = of_kind.iter().map(|event| event.end - event.start).sum();
            let peer = first.peer.filter(|_| kind == 2 || of_kind.iter().all(|e| e.peer == first.peer));
            all.push(Event { start: at, end: at + seconds, peer, ..**first });
            at += seconds;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(count: usize) -> Lane {
        let mut lane = Lane::default();
        for i in 0..count {
            let at = i as f64 * 0.01;
            lane.push(Activity::Compute, at, at + 0.004, None);
            lane.push(Activity::Communicate, at + 0.004, at + 0.006, Some(Rank(1)));
            lane.push(Activity::Communicate, at + 0.006, at + 0.007, None);
            lane.push(Activity::Idle, at + 0.007, at + 0.01, Some(Rank(i % 2)));
            lane.fly(Rank(1), at, at + 0.005);
        }
        lane
    }

    #[test]
    fn lanes_are_read_as_they_were_written() {
        let trace = Trace { lanes: vec![lane(20), Lane::default()] };
        let text = serde_json::to_string(&Lanes::new(&trace)).unwrap();
        let read = serde_json::from_str::<Lanes>(&text).unwrap().to_trace().unwrap();
        assert_eq!(read.lanes.len(), 2);
        for (new, old) in read.lanes[0].events.iter().zip(&trace.lanes[0].events) {
            assert_eq!((new.kind(), new.peer), (old.kind(), old.peer));
            assert!((new.start - old.start).abs() < 1e-8 && (new.end - old.end).abs() < 1e-8);
        }
        assert_eq!(read.lanes[0].events.len(), trace.lanes[0].events.len());
        assert_eq!(read.lanes[0].flights.len(), trace.lanes[0].flights.len());
        for damaged in ["{}", "[1]", "[{\"events\": [[0, 1, \"sleep\", null]], \"messages\": []}]"] {
            assert!(serde_json::from_str::<Lanes>(damaged).is_err(), "{damaged}");
        }
        let early = "[{\"events\": [[-1, 1, \"wait\", null]], \"messages\": []}]";
        assert!(serde_json::from_str::<Lanes>(early).unwrap().to_trace().is_none());
    }

    /// A long trace stays small, and the time of each kind stays what it was.
    #[test]
    fn many_events_are_joined() {
        let trace = Trace { lanes: vec![lane(3000), lane(100)] };
        let read = Lanes::new(&trace).to_trace().unwrap();
        assert!(read.lanes.iter().map(|l| l.events.len()).sum::<usize>() <= MOST_EVENTS + 8);
        assert!(read.lanes.iter().all(|l| l.flights.is_empty()));
        for (new, old) in read.lanes.iter().zip(&trace.lanes) {
            for kind in 0..KINDS.len() {
                let sum = |lane: &Lane| -> f64 {
                    lane.events.iter().filter(|e| e.kind() == kind).map(|e| e.end - e.start).sum()
                };
                assert!((sum(new) - sum(old)).abs() < 1e-5 * sum(old).max(1.0), "{kind}");
            }
            assert!(new.events.windows(2).all(|pair| pair[0].end <= pair[1].start + 1e-8));
        }
    }
}
