//! Traces in Chrome's trace-event format, one lane per processor: open them in chrome://tracing or Perfetto.

use crate::trace::{Activity, Trace};
use serde_json::{Value, json};

/// The trace as a JSON object; times in microseconds.
pub fn chrome_trace(trace: &Trace, names: &[String]) -> Value {
    let mut events = Vec::new();
    for (i, name) in names.iter().enumerate() {
        events.push(json!({"name": "thread_name", "ph": "M", "pid": 0, "tid": i, "args": {"name": name}}));
    }
    for (i, lane) in trace.lanes.iter().enumerate() {
        for event in &lane.events {
            let (what, colour) = match event.activity {
                Activity::Compute => ("compute", "good"),
                Activity::Communicate => ("communicate", "bad"),
                Activity::Idle => ("idle", "grey"),
            };
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
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rect::Rank;
    use crate::trace::Lane;

    #[test]
    fn one_lane_per_processor() {
        let mut lane = Lane::default();
        lane.push(Activity::Compute, 0.0, 1.0, None);
        lane.push(Activity::Communicate, 1.0, 1.5, Some(Rank(1)));
        let trace = Trace { lanes: vec![lane, Lane::default()] };
        let value = chrome_trace(&trace, &["a".into(), "b".into()]);
        let events = value["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 4);
        assert_eq!(events[3]["dur"], 500_000.0);
        assert_eq!(events[3]["args"]["peer"], "b");
    }
}
