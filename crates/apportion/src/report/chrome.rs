//! Traces in Chrome's trace-event format, one lane per processor: open them in chrome://tracing or Perfetto.

use crate::trace::{KINDS, Trace};
use serde_json::{Value, json};

/// Names that viewers know for the colours of [`KINDS`].
const COLOURS: [&str; 4] = ["good", "yellow", "bad", "grey"];

/// The trace as a JSON object; times in microseconds. Each lane distinguishes compute, send (wait until sent
/// data have left), receive, and wait (for data not sent yet), with the other end as `peer`. At the end,
/// counters show the elements that each processor received from each other one, and the messages; viewers
/// show them beside the lanes.
pub fn chrome_trace(trace: &Trace, names: &[String]) -> Value {
    let mut events = Vec::new();
    for (i, name) in names.iter().enumerate() {
        events.push(json!({"name": "thread_name", "ph": "M", "pid": 0, "tid": i, "args": {"name": name}}));
    }
    for (i, lane) in trace.lanes.iter().enumerate() {
        for event in &lane.events {
            let (what, colour) = (KINDS[event.kind()], COLOURS[event.kind()]);
            let mut value = json!({
                "name": what, "cat": what, "ph": "X", "pid": 0, "tid": i, "cname": colour,
                "ts": event.start * 1e6, "dur": (event.end - event.start) * 1e6,
            });
            if let Some(peer) = event.peer {
                value["args"] = json!({ "peer": names.get(peer.0) });
            }
            events.push(value);
        }
    }
    let end = trace.seconds() * 1e6;
    for (from, lane) in trace.lanes.iter().enumerate() {
        for (to, name) in names.iter().enumerate().filter(|(to, _)| lane.messages[*to] > 0) {
            let counter = format!("{} to {name}", names[from]);
            let counts = json!({"elements": lane.sent[to], "messages": lane.messages[to]});
            events.push(json!({"name": counter, "ph": "C", "pid": 0, "ts": end, "args": counts}));
        }
    }
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rank;
    use crate::trace::{Activity, Lane};

    #[test]
    fn one_lane_per_processor() {
        let mut lane = Lane::default();
        lane.push(Activity::Compute, 0.0, 1.0, None);
        lane.push(Activity::Communicate, 1.0, 1.5, Some(Rank(1)));
        lane.push(Activity::Communicate, 1.5, 1.75, None);
        lane.push(Activity::Idle, 1.75, 2.0, Some(Rank(1)));
        (lane.sent[1], lane.messages[1]) = (700, 3);
        let trace = Trace { lanes: vec![lane, Lane::default()] };
        let value = chrome_trace(&trace, &["a".into(), "b".into()]);
        let events = value["traceEvents"].as_array().unwrap();
        let names: Vec<&str> = events[2..].iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["compute", "receive", "send", "wait", "a to b"]);
        assert_eq!(events[3]["dur"], 500_000.0);
        assert_eq!(events[3]["args"]["peer"], "b");
        assert_eq!(events[6]["args"], json!({"elements": 700, "messages": 3}));
    }
}
