//! Events and messages as paths of rectangles and lines.

use apportion::trace::{Event, Flight, Lane, Trace};
use std::fmt::Write;

/// Above this number of events a lane is drawn by pixel columns, so that the picture stays small.
const MOST_EVENTS: usize = 1500;

/// A lane's events: a path for each kind; the time axis is `width` pixels long.
pub(super) fn activities(all: &[Event], scale: f64, place: [f64; 2], width: f64) -> [String; 4] {
    if all.len() > MOST_EVENTS { columns(all, scale, place, width) } else { events(all, scale, place) }
}

/// One event.
pub(super) fn event(event: &Event, scale: f64, [top, bar]: [f64; 2]) -> String {
    let mut shape = String::new();
    rectangle(&mut shape, [event.start * scale, top, (event.end - event.start) * scale, bar]);
    shape
}

/// A rectangle of a path, by left edge, top, width and height.
fn rectangle(path: &mut String, [x, y, width, height]: [f64; 4]) {
    let _ = write!(path, "M{x:.2} {y:.2}h{width:.2}v{height:.2}h-{width:.2}z");
}

/// Every event separately.
pub(super) fn events(events: &[Event], scale: f64, [top, bar]: [f64; 2]) -> [String; 4] {
    let mut shapes: [String; 4] = Default::default();
    for event in events {
        let width = (event.end - event.start) * scale;
        rectangle(&mut shapes[event.kind()], [event.start * scale, top, width, bar]);
    }
    shapes
}

/// Columns of one pixel, divided from bottom to top in the proportions of their time; equal neighbours are
/// joined.
pub(super) fn columns(events: &[Event], scale: f64, [top, bar]: [f64; 2], width: f64) -> [String; 4] {
    let mut times = vec![[0.0; 4]; width as usize];
    for event in events {
        let (from, to) = (event.start * scale, (event.end * scale).min(width));
        for (pixel, time) in times.iter_mut().enumerate().skip(from as usize) {
            let (start, end) = (from.max(pixel as f64), to.min(pixel as f64 + 1.0));
            if end <= start {
                break;
            }
            time[event.kind()] += end - start;
        }
    }
    // In hundredths, so that columns that look the same are joined.
    let parts: Vec<[u32; 4]> = times.iter().map(|t| t.map(|x| (x * 100.0).round() as u32)).collect();
    let mut shapes: [String; 4] = Default::default();
    let mut pixel = 0;
    for group in parts.chunk_by(|a, b| a == b) {
        let mut foot = top + bar;
        for (shape, part) in shapes.iter_mut().zip(group[0]).filter(|(_, part)| *part > 0) {
            let height = bar * f64::from(part.min(100)) / 100.0;
            foot -= height;
            rectangle(shape, [pixel as f64, foot, group.len() as f64, height]);
        }
        pixel += group.len();
    }
    shapes
}

/// When messages to a processor are under way.
pub(super) fn received(lane: &Lane, scale: f64, place: [f64; 2]) -> String {
    strip(lane.flights.iter().map(|f| [f.start, f.end]).collect(), scale, place)
}

/// When messages from a processor are under way.
pub(super) fn sent(times: &[[f64; 2]], scale: f64, place: [f64; 2]) -> String {
    strip(times.to_vec(), scale, place)
}

/// The times of the messages from each processor.
pub(super) fn by_sender(trace: &Trace) -> Vec<Vec<[f64; 2]>> {
    let mut times = vec![Vec::new(); trace.lanes.len()];
    for Flight { from, start, end } in trace.lanes.iter().flat_map(|l| &l.flights) {
        if let Some(own) = times.get_mut(from.0) {
            own.push([*start, *end]);
        }
    }
    times
}

/// The union of intervals as rectangles; gaps of less than half a pixel are closed, so that there are at most
/// twice as many as pixels.
fn strip(mut times: Vec<[f64; 2]>, scale: f64, [top, height]: [f64; 2]) -> String {
    times.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let mut path = String::new();
    let mut open: Option<[f64; 2]> = None;
    let mut put = |[start, end]: [f64; 2]| {
        rectangle(&mut path, [start, top, (end - start).max(0.3), height]);
    };
    for [start, end] in times.into_iter().map(|t| t.map(|x| x * scale)) {
        match &mut open {
            Some(last) if start <= last[1] + 0.5 => last[1] = last[1].max(end),
            _ => {
                open.into_iter().for_each(&mut put);
                open = Some([start, end]);
            }
        }
    }
    open.into_iter().for_each(put);
    path
}

/// A line for every message, from the foot of the sender's bar to the receiver's, with a head.
pub(super) fn arrows(trace: &Trace, scale: f64, places: &[[f64; 2]]) -> String {
    let mut path = String::new();
    for (to, lane) in trace.lanes.iter().enumerate() {
        for flight in lane.flights.iter().filter(|f| f.from.0 < places.len()) {
            let ([sender, bar], [receiver, _]) = (places[flight.from.0], places[to]);
            let down = receiver > sender;
            let (from, at) = if down { (sender + bar, receiver) } else { (sender, receiver + bar) };
            let (x, end) = (flight.start * scale, flight.end * scale);
            let back = if down { -5.0 } else { 5.0 };
            let _ =
                write!(path, "M{x:.2} {from:.2}L{end:.2} {at:.2}m-2.5 {back}L{end:.2} {at:.2}l2.5 {back}");
        }
    }
    path
}
