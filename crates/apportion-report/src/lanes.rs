//! The lanes of a trace as JSON, in `run.json` and in the output of `simulate`, and read back for pages.

use apportion::geometry::Rank;
use apportion::trace::{Activity, Event, Flight, KINDS, Lane, Trace};
use serde_json::{Value, json};

/// Maximum number of events of all lanes; more are joined.
const MOST_EVENTS: usize = 4000;
/// Maximum number of messages; more are left out.
const MOST_MESSAGES: usize = 1000;
/// Least number of pieces of time in which the events of a lane are joined.
const LEAST_PIECES: usize = 8;

/// The lanes of a trace by rank: `events` are `[from, to, what, peer]` in seconds since the start, where `what` is
/// one of [`KINDS`] and `peer` the other end's rank or null; `messages` to the lane's processor are
/// `[sender, from, to]`.
///
/// Of more than 4,000 events each lane's are joined by pieces of time: those of a piece become one of each kind,
/// with the same sums. More than 1,000 messages are left out. O(events).
pub fn lanes_value(trace: &Trace) -> Value {
    let count: usize = trace.lanes.iter().map(|lane| lane.events.len()).sum();
    let pieces = MOST_EVENTS / KINDS.len() / trace.lanes.len().max(1);
    let piece = trace.seconds() / pieces.max(LEAST_PIECES) as f64;
    let messages: usize = trace.lanes.iter().map(|lane| lane.flights.len()).sum();
    let lane = |lane: &Lane| {
        let joined = if count > MOST_EVENTS { joined(&lane.events, piece) } else { lane.events.clone() };
        let events = joined.iter().map(|event| {
            let peer = event.peer.map(|peer| peer.0);
            json!([rounded(event.start), rounded(event.end), KINDS[event.kind()], peer])
        });
        let flights = lane.flights.iter().filter(|_| messages <= MOST_MESSAGES);
        let flights = flights.map(|f| json!([f.from.0, rounded(f.start), rounded(f.end)]));
        json!({"events": events.collect::<Vec<_>>(), "messages": flights.collect::<Vec<_>>()})
    };
    trace.lanes.iter().map(lane).collect()
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

/// The trace of such lanes; `None` if they are none.
pub(super) fn read_lanes(value: &Value) -> Option<Trace> {
    let number = |value: &Value| value.as_f64().filter(|x| x.is_finite() && *x >= 0.0);
    let rank = |value: &Value| value.as_u64().map(|rank| Rank(rank as usize));
    let lane = |lane: &Value| {
        let mut read = Lane::default();
        for event in lane["events"].as_array()? {
            let kind = KINDS.iter().position(|kind| event[2] == *kind)?;
            let activity = [Activity::Compute, Activity::Communicate, Activity::Communicate, Activity::Idle];
            let (start, end, peer) = (number(&event[0])?, number(&event[1])?, rank(&event[3]));
            read.events.push(Event { activity: activity[kind], start, end, peer });
        }
        for flight in lane["messages"].as_array()? {
            let (from, start, end) = (rank(&flight[0])?, number(&flight[1])?, number(&flight[2])?);
            read.flights.push(Flight { from, start, end });
        }
        Some(read)
    };
    let lanes = value.as_array()?.iter().map(lane).collect::<Option<Vec<Lane>>>()?;
    Some(Trace { lanes })
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
        let read = read_lanes(&lanes_value(&trace)).unwrap();
        assert_eq!(read.lanes.len(), 2);
        for (new, old) in read.lanes[0].events.iter().zip(&trace.lanes[0].events) {
            assert_eq!((new.kind(), new.peer), (old.kind(), old.peer));
            assert!((new.start - old.start).abs() < 1e-8 && (new.end - old.end).abs() < 1e-8);
        }
        assert_eq!(read.lanes[0].events.len(), trace.lanes[0].events.len());
        assert_eq!(read.lanes[0].flights.len(), trace.lanes[0].flights.len());
        for damaged in ["{}", "[1]", "[{\"events\": [[0, 1, \"sleep\", null]], \"messages\": []}]"] {
            assert!(read_lanes(&serde_json::from_str(damaged).unwrap()).is_none(), "{damaged}");
        }
    }

    /// A long trace stays small, and the time of each kind stays what it was.
    #[test]
    fn many_events_are_joined() {
        let trace = Trace { lanes: vec![lane(3000), lane(100)] };
        let value = lanes_value(&trace);
        let read = read_lanes(&value).unwrap();
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
