//! Traces in Chrome's trace-event format, one lane per processor: open them in chrome://tracing or Perfetto.

use super::Timeline;
use apportion::trace::{KINDS, Trace};
use serde_json::{Value, json};

/// Names that viewers know for the colours of [`KINDS`].
const COLOURS: [&str; 4] = ["good", "yellow", "bad", "grey"];

/// The trace as a JSON object; times in microseconds. Each lane distinguishes compute, send (wait until sent
/// data have left), receive, and wait (for data not sent yet), with the other end as `peer`. Messages under
/// way are asynchronous events beside the lane of their receiver. At the end, counters show the elements that
/// each processor received from each other one, and the messages; viewers show them beside the lanes. The forecast's
/// lanes, if there are any, are a second process.
pub fn chrome_timeline(timeline: &Timeline<'_>) -> Value {
    let Timeline { trace, names, .. } = timeline;
    let mut events = Vec::new();
    if timeline.forecast.is_some() {
        for (pid, name) in ["measured", "forecast"].into_iter().enumerate() {
            events.push(json!({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}));
        }
    }
    add_lanes(&mut events, trace, names, 0);
    if let Some(forecast) = &timeline.forecast {
        add_lanes(&mut events, forecast, names, 1);
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

fn add_lanes(events: &mut Vec<Value>, trace: &Trace, names: &[String], pid: usize) {
    for (i, name) in names.iter().enumerate() {
        events.push(json!({"name": "thread_name", "ph": "M", "pid": pid, "tid": i, "args": {"name": name}}));
    }
    for (i, lane) in trace.lanes.iter().enumerate() {
        for event in &lane.events {
            let (what, colour) = (KINDS[event.kind()], COLOURS[event.kind()]);
            let mut value = json!({
                "name": what, "cat": what, "ph": "X", "pid": pid, "tid": i, "cname": colour,
                "ts": event.start * 1e6, "dur": (event.end - event.start) * 1e6,
            });
            if let Some(peer) = event.peer {
                value["args"] = json!({ "peer": names.get(peer.0) });
            }
            events.push(value);
        }
        for (number, flight) in lane.flights.iter().enumerate() {
            let peer = |rank: usize| names.get(rank).map_or("", String::as_str);
            let what = format!("message {} to {}", peer(flight.from.0), peer(i));
            for (phase, at) in [("b", flight.start), ("e", flight.end)] {
                events.push(json!({
                    "name": what, "cat": "message", "ph": phase, "pid": pid, "tid": i,
                    "id": format!("{pid}.{i}.{number}"), "ts": at * 1e6,
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::geometry::Rank;
    use apportion::trace::{Activity, Lane};

    fn trace() -> Trace {
        let mut lane = Lane::default();
        lane.push(Activity::Compute, 0.0, 1.0, None);
        lane.push(Activity::Communicate, 1.0, 1.5, Some(Rank(1)));
        lane.push(Activity::Communicate, 1.5, 1.75, None);
        lane.push(Activity::Idle, 1.75, 2.0, Some(Rank(1)));
        (lane.sent[1], lane.messages[1]) = (700, 3);
        Trace { lanes: vec![lane, Lane::default()] }
    }

    #[test]
    fn one_lane_per_processor() {
        let value = chrome_timeline(&Timeline::new(&trace(), &["a".into(), "b".into()]));
        let events = value["traceEvents"].as_array().unwrap();
        let names: Vec<&str> = events[2..].iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["compute", "receive", "send", "wait", "a to b"]);
        assert_eq!(events[3]["dur"], 500_000.0);
        assert_eq!(events[3]["args"]["peer"], "b");
        assert_eq!(events[6]["args"], json!({"elements": 700, "messages": 3}));
    }

    #[test]
    fn the_forecast_is_a_second_process_and_messages_have_a_beginning_and_an_end() {
        let (mut measured, forecast) = (trace(), trace());
        measured.lanes[1].fly(Rank(0), 0.5, 1.5);
        let names = ["a".to_owned(), "b".to_owned()];
        let timeline = Timeline { forecast: Some(&forecast), ..Timeline::new(&measured, &names) };
        let value = chrome_timeline(&timeline);
        let events = value["traceEvents"].as_array().unwrap();
        let of =
            |pid: u64, what: &str| events.iter().filter(|e| e["pid"] == pid && e["name"] == what).count();
        assert_eq!((of(0, "process_name"), of(1, "process_name")), (1, 1));
        assert_eq!((of(0, "compute"), of(1, "compute")), (1, 1));
        assert_eq!((of(0, "message a to b"), of(1, "message a to b")), (2, 0));
        let ends: Vec<f64> =
            events.iter().filter(|e| e["cat"] == "message").map(|e| e["ts"].as_f64().unwrap()).collect();
        assert_eq!(ends, [0.5e6, 1.5e6]);
    }
}
