//! The picture of a trace: one lane per processor over a time axis.

use super::svg::{INK, escape};
use crate::trace::{Event, KINDS, Lane, Trace};
use crate::units::{show_count, show_seconds};
use std::fmt::Write;

/// Margin around everything.
const MARGIN: f64 = 20.0;
/// Height of title and legend.
const HEAD: f64 = 66.0;
/// Width of the time axis.
const WIDTH: f64 = 900.0;
/// Maximum number of characters of a name.
const LONGEST_NAME: usize = 24;
/// Above this number of events a lane is drawn by pixel columns, so that the picture stays small.
const MOST_EVENTS: usize = 1500;

/// The colours of [`KINDS`] (from Okabe and Ito; the most common kind gets the calmest).
const COLOURS: [&str; 4] = ["#56b4e9", "#e69f00", "#d55e00", "#dddddd"];

/// Draws a trace as a self-contained SVG 1.1 document with one lane per processor. Its time is coloured by
/// activity (compute; wait until sent data have left; receive; wait for data not sent yet), and white after
/// its end.
///
/// Lanes are 36 pixels high, or less if there are many. A lane of more than 1,500 events is drawn by columns
/// of one pixel, each divided in the proportions of its time. The same trace gives the same bytes. O(events).
pub fn trace_svg(trace: &Trace, names: &[String]) -> String {
    let seconds = trace.seconds();
    let names: Vec<String> = (0..trace.lanes.len())
        .map(|i| names.get(i).map_or_else(|| i.to_string(), |name| shortened(name)))
        .collect();
    let pitch = (1000.0 / names.len().max(1) as f64).clamp(6.0, 44.0).floor();
    let (bar, font) = ((pitch * 0.82).max(pitch - 8.0), (pitch * 0.6).clamp(5.0, 13.0));
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let left = MARGIN + longest as f64 * font * 0.62 + 8.0;
    let bottom = HEAD + pitch * names.len() as f64;
    let (width, height) = (left + WIDTH + 2.0 * MARGIN, bottom + 40.0);
    let title = format!(
        "{} processor{}, {}",
        names.len(),
        if names.len() == 1 { "" } else { "s" },
        show_seconds(seconds)
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"{INK}\" role=\"img\">\n<title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{0}</text>\n",
        escape(&title)
    );
    draw_legend(&mut svg);
    let scale = if seconds > 0.0 { WIDTH / seconds } else { 0.0 };
    draw_axis(&mut svg, [left, bottom], seconds, scale);
    for (i, (lane, name)) in trace.lanes.iter().zip(&names).enumerate() {
        let top = HEAD + pitch * i as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{font:.1}\" text-anchor=\"end\">{}<title>{}</title></text>",
            left - 6.0,
            top + bar / 2.0 + font * 0.36,
            escape(name),
            escape(&exchanged(lane, &names))
        );
        let shapes = if lane.events.len() > MOST_EVENTS {
            columns(&lane.events, scale, [top, bar])
        } else {
            events(&lane.events, scale, [top, bar])
        };
        let painted = KINDS.iter().zip(COLOURS).zip(shapes);
        for ((word, colour), shape) in painted.filter(|(_, shape)| !shape.is_empty()) {
            let place = format!("transform=\"translate({left:.2} 0)\"");
            let _ = writeln!(svg, "<path class=\"{word}\" {place} fill=\"{colour}\" d=\"{shape}\"/>");
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The elements that a processor sent to each other one, shown when the pointer is on its name.
fn exchanged(lane: &Lane, names: &[String]) -> String {
    let to = |(to, name): (usize, &String)| {
        let (messages, elements) = (lane.messages[to], lane.sent[to]);
        (messages > 0).then(|| {
            format!("to {name}: {} elements, messages: {messages}", show_count(u128::from(elements)))
        })
    };
    let sent: Vec<String> = names.iter().enumerate().filter_map(to).collect();
    if sent.is_empty() { "sent nothing".into() } else { sent.join("; ") }
}

/// A rectangle of a path, by left edge, top, width and height.
fn rectangle(path: &mut String, [x, y, width, height]: [f64; 4]) {
    let _ = write!(path, "M{x:.2} {y:.2}h{width:.2}v{height:.2}h-{width:.2}z");
}

/// Every event separately.
fn events(events: &[Event], scale: f64, [top, bar]: [f64; 2]) -> [String; 4] {
    let mut shapes: [String; 4] = Default::default();
    for event in events {
        let width = (event.end - event.start) * scale;
        rectangle(&mut shapes[event.kind()], [event.start * scale, top, width, bar]);
    }
    shapes
}

/// Columns of one pixel, divided from bottom to top in the proportions of their time; equal neighbours are
/// joined.
fn columns(events: &[Event], scale: f64, [top, bar]: [f64; 2]) -> [String; 4] {
    let mut times = vec![[0.0; 4]; WIDTH as usize];
    for event in events {
        let (from, to) = (event.start * scale, (event.end * scale).min(WIDTH));
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

fn draw_legend(svg: &mut String) {
    for (i, (word, colour)) in KINDS.iter().zip(COLOURS).enumerate() {
        let x = MARGIN + 95.0 * i as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"40\" width=\"14\" height=\"14\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"52\" font-size=\"13\">{word}</text>",
            x + 20.0
        );
    }
}

/// Lines at round times, labelled in the unit that suits the last.
fn draw_axis(svg: &mut String, [left, bottom]: [f64; 2], seconds: f64, scale: f64) {
    let (unit, per_second) = match seconds {
        s if s < 1e-3 => ("µs", 1e6),
        s if s < 1.0 => ("ms", 1e3),
        _ => ("s", 1.0),
    };
    let whole = seconds * per_second;
    let power = 10f64.powf((whole.max(1e-9) / 8.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|x| x * power).into_iter().find(|s| whole / s <= 10.0);
    let step = step.unwrap_or(10.0 * power);
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let ticks = if whole > 0.0 { (whole / step + 1e-9) as usize } else { 0 };
    for i in 0..=ticks {
        let (x, value) = (left + i as f64 * step / per_second * scale, i as f64 * step);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.2} {:.2}V{:.2}\" stroke=\"#bbbbbb\" stroke-width=\"0.6\"/>\
             <text x=\"{x:.2}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"middle\">{value:.decimals$} {unit}</text>",
            HEAD - 4.0,
            bottom + 4.0,
            bottom + 20.0
        );
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    name.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rank;
    use crate::trace::Activity;

    fn lane(events: &[(Activity, f64, f64, Option<usize>)]) -> Lane {
        let mut lane = Lane::default();
        events.iter().for_each(|&(what, from, to, peer)| lane.push(what, from, to, peer.map(Rank)));
        lane
    }

    #[test]
    fn every_kind_has_its_colour_and_place() {
        let trace = Trace {
            lanes: vec![
                lane(&[(Activity::Compute, 0.0, 2.0, None), (Activity::Communicate, 2.0, 3.0, None)]),
                lane(&[(Activity::Idle, 0.0, 1.0, Some(0)), (Activity::Communicate, 1.0, 4.0, Some(0))]),
            ],
        };
        let svg = trace_svg(&trace, &["a<b".into(), "b".into()]);
        assert!(svg.contains("a&lt;b") && svg.contains(">4.0 s<") && svg.contains("2 processors, 4"));
        for (word, width) in [("compute", "450"), ("send", "225"), ("wait", "225"), ("receive", "675")] {
            let path = svg.lines().find(|l| l.contains(&format!("class=\"{word}\""))).unwrap();
            assert!(path.contains(&format!("h{width}.00v")), "{path}");
        }
        assert_eq!(svg, trace_svg(&trace, &["a<b".into(), "b".into()]));
    }

    /// Columns and events cover the same time, kind by kind.
    #[test]
    fn many_events_take_the_same_area() {
        let mut many = Lane::default();
        for i in 0..4000 {
            let at = f64::from(i) / 1000.0;
            let what = if i % 4 == 0 { Activity::Idle } else { Activity::Compute };
            many.push(what, at, at + 0.001, Some(Rank(i as usize % 2)));
        }
        let scale = WIDTH / 4.0;
        let area = |path: &str| -> f64 {
            let sides = path.split('h').skip(1).step_by(2).map(|rest| {
                let (width, rest) = rest.split_once('v').unwrap();
                width.parse::<f64>().unwrap() * rest.parse::<f64>().unwrap_or(0.0)
            });
            sides.sum()
        };
        let (exact, coarse) =
            (events(&many.events, scale, [0.0, 20.0]), columns(&many.events, scale, [0.0, 20.0]));
        for (kind, share) in [(0, 0.75), (3, 0.25)] {
            for path in [&exact[kind], &coarse[kind]] {
                assert!((area(path) / (WIDTH * 20.0) - share).abs() < 0.02, "{kind}: {}", area(path));
            }
        }
        assert!(coarse.iter().map(String::len).sum::<usize>() < 120_000);
    }

    #[test]
    fn an_empty_trace_is_drawn_too() {
        assert!(trace_svg(&Trace::default(), &[]).ends_with("</svg>\n"));
        let svg = trace_svg(&Trace { lanes: vec![Lane::default()] }, &[]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
