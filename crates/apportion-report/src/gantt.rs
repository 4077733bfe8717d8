//! The picture of a trace: one lane per processor over a time axis.

mod shapes;

use super::canvas::{Canvas, LEAST_TYPE};
use super::markup::{INK, escape};
use super::text::{shortened, wrapped};
use apportion::trace::{Event, KINDS, Lane, Trace};
use apportion::units::{show_count, show_figures, show_seconds};
use shapes::{activities, arrows, by_sender, received, sent};
use std::fmt::Write;

/// Margin around everything.
pub(super) const MARGIN: f64 = 20.0;
/// Height of title and legend.
const HEAD: f64 = 92.0;
/// Width of the time axis.
pub(super) const WIDTH: f64 = 900.0;
/// Maximum number of events of all lanes that have a title each, which a pointer on them shows.
const MOST_TITLES: usize = 4000;
/// Maximum number of messages that are drawn as lines from lane to lane.
const MOST_ARROWS: usize = 160;
/// Height of a lane's strips of messages, and of its forecast, as fractions of its bar.
const STRIP: f64 = 0.18;
const FORECAST: f64 = 0.55;

/// The colours of [`KINDS`] (from Okabe and Ito; the most common kind gets the calmest, and none that of an error).
pub(super) const COLOURS: [&str; 4] = ["#56b4e9", "#e69f00", "#009e73", "#dddddd"];

/// What a picture of a trace shows.
#[derive(Debug, Clone, Copy)]
pub struct Timeline<'a> {
    /// The heading: what ran, and a line beneath it. Empty: the number of processors and the time.
    pub title: [&'a str; 2],
    /// The names of the processors.
    pub names: &'a [String],
    /// Their lanes.
    pub trace: &'a Trace,
    /// The lanes that were forecast, which are shown under those measured.
    pub forecast: Option<&'a Trace>,
}

impl<'a> Timeline<'a> {
    /// A trace without title and forecast.
    pub fn new(trace: &'a Trace, names: &'a [String]) -> Self {
        Self { title: [""; 2], names, trace, forecast: None }
    }
}

/// Where a lane is drawn.
struct Place {
    top: f64,
    bar: f64,
}

/// The time axis: the place of the start, pixels per second, and the length in pixels.
#[derive(Clone, Copy)]
struct Axis {
    left: f64,
    scale: f64,
    width: f64,
}

/// Draws a trace as a self-contained SVG 1.1 document with one lane per processor. Its time is coloured by
/// activity (compute; wait until sent data have left; receive; wait for data not sent yet), and white after
/// its end. Two strips under each bar show when messages from it and to it are under way, also while it
/// computes; up to 160 messages are also lines from the sender's lane to the receiver's. The forecast's lanes
/// are half as high, under the measured ones.
///
/// Lanes are 44 pixels high, or less if there are many. A lane of more than 1,500 events is drawn by columns
/// of one pixel, each divided in the proportions of its time. Up to 4,000 events have a title each, which viewers
/// show under the pointer. The same trace gives the same bytes. O(events).
pub fn timeline_svg(timeline: &Timeline<'_>) -> String {
    timeline_on(timeline, Canvas::File)
}

/// As [`timeline_svg`], on a canvas.
pub(super) fn timeline_on(timeline: &Timeline<'_>, canvas: Canvas) -> String {
    let Timeline { trace, forecast, .. } = timeline;
    let seconds = forecast.map_or(0.0, Trace::seconds).max(trace.seconds());
    let names: Vec<String> = (0..trace.lanes.len())
        .map(|i| {
            timeline.names.get(i).map_or_else(|| i.to_string(), |name| shortened(name, canvas.longest_name()))
        })
        .collect();
    let whole: f64 = if forecast.is_some() { 66.0 } else { 44.0 };
    let pitch = (1000.0 / names.len().max(1) as f64).clamp(6.0, whole).floor();
    let of_forecast = if forecast.is_some() { FORECAST } else { 0.0 };
    let bar = (pitch * 0.88).max(pitch - 6.0) / (1.0 + 2.0 * STRIP + of_forecast * (1.0 + 2.0 * STRIP));
    let (head, least) = match canvas {
        Canvas::File => (HEAD, 5.0),
        Canvas::Page(_) => (10.0, LEAST_TYPE),
    };
    let font = (bar * 0.62).clamp(least, 13.0);
    // Of very thin lanes some have names.
    let named = (font / pitch).ceil().max(1.0) as usize;
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let small = least.max(9.0);
    let extra = if forecast.is_some() && bar > small + 3.0 { 8.0 * small * 0.6 } else { 0.0 };
    let text = (longest as f64 * font * 0.6).max(extra) + 8.0;
    let (left, length, width) = match canvas {
        Canvas::File => (MARGIN + text, WIDTH, MARGIN + text + WIDTH + 2.0 * MARGIN),
        Canvas::Page(width) => (text, width - text - 14.0, width),
    };
    let bottom = head + pitch * names.len() as f64;
    let height = bottom + 48.0 + if canvas == Canvas::File { 8.0 } else { 0.0 };
    let [title, beneath] = titles(timeline, &names);
    let fit = |text: &str, size: f64| {
        wrapped(text, ((width - 2.0 * MARGIN) / (size * 0.55)) as usize)
            .into_iter()
            .next()
            .unwrap_or_default()
    };
    let mut svg = canvas.head([width, height], &format!(" fill=\"{INK}\""), &escape(&title));
    if canvas == Canvas::File {
        let _ = write!(
            svg,
            "<text x=\"{MARGIN}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{}</text>\n\
             <text x=\"{MARGIN}\" y=\"48\" font-size=\"13\">{}</text>\n",
            escape(&fit(&title, 16.0)),
            escape(&fit(&beneath, 13.0)),
        );
        draw_legend(&mut svg);
    }
    let scale = if seconds > 0.0 { length / seconds } else { 0.0 };
    let axis = Axis { left, scale, width: length };
    draw_axis(&mut svg, [left, head, bottom], seconds, [scale, length]);
    let places: Vec<Place> = (0..names.len()).map(|i| Place { top: head + pitch * i as f64, bar }).collect();
    let events = |trace: &Trace| trace.lanes.iter().map(|lane| lane.events.len()).sum::<usize>();
    let titled = events(trace) + forecast.map_or(0, events) <= MOST_TITLES;
    let (from, forecast_from) = (by_sender(trace), forecast.map(by_sender));
    for (i, (lane, name)) in trace.lanes.iter().zip(&names).enumerate() {
        let top = places[i].top;
        if i % named == 0 {
            draw_name(&mut svg, [left - 6.0, top + bar / 2.0, font], name, &exchanged(lane, &names));
        }
        let whose = titled.then_some((name.as_str(), &names[..]));
        draw_lane(&mut svg, lane, &from[i], axis, &places[i], whose);
        let predicted = forecast.zip(forecast_from.as_ref()).filter(|(f, _)| i < f.lanes.len());
        if let Some((forecast, from)) = predicted {
            let place = Place { top: top + bar * (1.0 + 2.0 * STRIP), bar: bar * FORECAST };
            if extra > 0.0 {
                let at = [left - 6.0, place.top + place.bar / 2.0, small];
                draw_name(&mut svg, at, "forecast", "by the models, before the run");
            }
            svg.push_str("<g class=\"forecast\" opacity=\"0.6\">\n");
            let whose = format!("forecast: {name}");
            let whose = titled.then_some((whose.as_str(), &names[..]));
            draw_lane(&mut svg, &forecast.lanes[i], &from[i], axis, &place, whose);
            svg.push_str("</g>\n");
        }
    }
    let flights: usize = trace.lanes.iter().map(|l| l.flights.len()).sum();
    if (1..=MOST_ARROWS).contains(&flights) {
        let tops: Vec<[f64; 2]> = places.iter().map(|p| [p.top, p.bar]).collect();
        let path = arrows(trace, scale, &tops);
        let _ = writeln!(
            svg,
            "<path class=\"message\" transform=\"translate({left:.2} 0)\" d=\"{path}\" stroke=\"{INK}\" stroke-width=\"0.7\" \
             fill=\"none\"/>"
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn titles(timeline: &Timeline<'_>, names: &[String]) -> [String; 2] {
    let plural = if names.len() == 1 { "" } else { "s" };
    let count = format!("{} processor{plural}", show_count(names.len() as u128));
    let seconds = show_seconds(timeline.trace.seconds());
    match timeline.title {
        ["", ""] => [format!("{count}, {seconds}"), String::new()],
        [title, beneath] => [title.to_owned(), beneath.to_owned()],
    }
}

fn draw_name(svg: &mut String, [x, y, font]: [f64; 3], name: &str, about: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{font:.1}\" text-anchor=\"end\">{}<title>{}</title></text>",
        y + font * 0.36,
        escape(name),
        escape(about)
    );
}

/// A bar of activities, and a strip for each direction of messages. With the name of its processor and those of
/// all, every activity has a title.
fn draw_lane(
    svg: &mut String,
    lane: &Lane,
    from: &[[f64; 2]],
    axis: Axis,
    place: &Place,
    whose: Option<(&str, &[String])>,
) {
    let Place { top, bar } = *place;
    let Axis { left, scale, width } = axis;
    let strip = bar * STRIP;
    let start = format!("transform=\"translate({left:.2} 0)\"");
    let mut draw = |word: &str, colour: &str, shape: &str, title: &str| {
        let _ = match title {
            "" => writeln!(svg, "<path class=\"{word}\" {start} fill=\"{colour}\" d=\"{shape}\"/>"),
            title => writeln!(
                svg,
                "<path class=\"{word}\" {start} fill=\"{colour}\" d=\"{shape}\"><title>{}</title></path>",
                escape(title)
            ),
        };
    };
    match whose {
        Some((name, names)) => {
            for event in &lane.events {
                let shape = shapes::event(event, scale, [top, bar]);
                let (word, colour) = (KINDS[event.kind()], COLOURS[event.kind()]);
                draw(word, colour, &shape, &step_text(event, name, names));
            }
        }
        None => {
            let shapes = activities(&lane.events, scale, [top, bar], width);
            for ((word, colour), shape) in KINDS.into_iter().zip(COLOURS).zip(shapes) {
                if !shape.is_empty() {
                    draw(word, colour, &shape, "");
                }
            }
        }
    }
    let outgoing = sent(from, scale, [top + bar, strip]);
    let incoming = received(lane, scale, [top + bar + strip, strip]);
    let title = |what: &str| whose.map_or_else(String::new, |(name, _)| format!("{name}: {what}"));
    for (word, colour, shape, what) in [
        ("outgoing", COLOURS[1], outgoing, "messages from it are under way"),
        ("incoming", COLOURS[2], incoming, "messages to it are under way"),
    ] {
        if !shape.is_empty() {
            draw(word, colour, &shape, &title(what));
        }
    }
}

/// What a processor does in an event, and when: `core0 receives from core1: 1.2 ms, from 3.0 ms to 4.2 ms`.
fn step_text(event: &Event, name: &str, names: &[String]) -> String {
    let peer = event.peer.and_then(|peer| names.get(peer.0)).map_or("others", String::as_str);
    let what = match event.kind() {
        0 => "computes".to_owned(),
        1 => "waits until its messages have left".to_owned(),
        2 => format!("receives from {peer}"),
        _ if event.peer.is_none() => "waits".to_owned(),
        _ => format!("waits for {peer}"),
    };
    let [length, start, end] = [event.end - event.start, event.start, event.end].map(show_seconds);
    format!("{name} {what}: {length}, from {start} to {end}")
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

fn draw_legend(svg: &mut String) {
    let kinds = ["computes", "sends", "receives", "waits for others"];
    let bars = kinds.into_iter().zip(COLOURS).map(|(word, colour)| (word, colour, 14.0));
    let strips = [("messages out", COLOURS[1], 4.0), ("messages in", COLOURS[2], 4.0)];
    let mut x = MARGIN;
    for (word, colour, height) in bars.chain(strips) {
        let y = 67.0 - height / 2.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"14\" height=\"{height}\" fill=\"{colour}\" stroke=\"{INK}\" \
             stroke-width=\"0.3\"/><text x=\"{:.1}\" y=\"71\" font-size=\"12\">{word}</text>",
            x + 19.0
        );
        x += 36.0 + word.chars().count() as f64 * 6.6;
    }
}

/// Lines at round times, labelled in the unit that suits the last; pixels per second, and the axis's length.
pub(super) fn draw_axis(
    svg: &mut String,
    [left, top, bottom]: [f64; 3],
    seconds: f64,
    [scale, length]: [f64; 2],
) {
    let (unit, per_second) = match seconds {
        s if s < 1e-3 => ("µs", 1e6),
        s if s < 1.0 => ("ms", 1e3),
        s if s < 1200.0 => ("s", 1.0),
        s if s < 36_000.0 => ("min", 1.0 / 60.0),
        _ => ("h", 1.0 / 3600.0),
    };
    let whole = seconds * per_second;
    // Labels are at most seven digits wide.
    let most = (length / 56.0).clamp(2.0, 10.0);
    let power = 10f64.powf((whole.max(1e-9) / most / 2.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0, 20.0].map(|x| x * power).into_iter().find(|s| whole / s <= most);
    let step = step.unwrap_or(20.0 * power);
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let ticks = if whole > 0.0 { (whole / step + 1e-9) as usize } else { 0 };
    for i in 0..=ticks {
        let (x, value) = (left + i as f64 * step / per_second * scale, i as f64 * step);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.2} {:.2}V{:.2}\" stroke=\"#bbbbbb\" stroke-width=\"0.6\"/>\
             <text x=\"{x:.2}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"middle\">{}</text>",
            top - 4.0,
            bottom + 4.0,
            bottom + 20.0,
            show_figures(value, decimals)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.2}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"middle\">time since the start, {unit}</text>",
        left + length / 2.0,
        bottom + 40.0
    );
}

#[cfg(test)]
mod tests;
