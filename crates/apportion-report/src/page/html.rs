//! The page: results that were read, as HTML with pictures in it.

use super::entry::{Entry, Table, Tile, Times};
use crate::canvas::Canvas;
use crate::curves::SpeedPlot;
use crate::events::{chart_on, job_colours};
use crate::gantt::{COLOURS, Timeline, timeline_on};
use crate::markup::{escape, percent};
use crate::svg::{plan_colours, plan_on};
use crate::{plot, wide_axes};
use apportion::plan::Plan;
use apportion::units::{show_count, show_seconds};
use std::fmt::Write;

/// Widths of pictures: on screens that are wide enough and on paper, and on a phone.
const WIDE: f64 = 1020.0;
const NARROW: f64 = 328.0;
/// Widths of the picture of a plan beside its shares, and of one among several.
const PLAN: f64 = 420.0;
const SMALL: f64 = 160.0;
/// The largest number of characters of a tile's value in large type.
const LONG: usize = 11;
/// The largest number of rows of a table; the rest is counted.
const MOST_ROWS: usize = 200;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

pub(super) fn page(entries: &[Entry]) -> String {
    let (heading, kind) = match entries {
        [one] => (one.title.clone(), one.kind),
        several => (format!("{} results beside each other", several.len()), "Comparison"),
    };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{0} · apportion</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <p class=\"kind\">{1}</p>\n<h1>{0}</h1>\n",
        escape(&heading),
        escape(kind)
    );
    if let [one] = entries {
        let _ = writeln!(out, "<p class=\"kind\">{}</p>", escape(&one.file));
    }
    out.push_str("</header>\n<main>\n");
    if entries.len() > 1 {
        overview(&mut out, entries);
    }
    for (number, entry) in entries.iter().enumerate() {
        article(&mut out, entry, number, entries.len() > 1);
    }
    let _ = write!(
        out,
        "</main>\n<footer>Made by apportion {}. The page needs no network and no other file.</footer>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// Several results: their times, and their plans.
fn overview(out: &mut String, entries: &[Entry]) {
    out.push_str("<section class=\"overview\" id=\"overview\">\n<h3>Times</h3>\n");
    let longest = entries.iter().flat_map(|e| [e.measured, e.forecast]).flatten().fold(0.0, f64::max);
    let least = entries.iter().filter_map(Entry::seconds).fold(f64::INFINITY, f64::min);
    // Times of different problems have no ratio.
    let problem = |entry: &Entry| entry.plan.as_ref().map(Plan::problem);
    let mut timed = entries.iter().filter(|entry| entry.seconds().is_some());
    let first = timed.next().and_then(problem);
    let alike = least > 0.0 && first.is_some() && timed.all(|entry| problem(entry) == first);
    let swatch = |colour: &str, word: &str| format!("<li><i style=\"background:{colour}\"></i>{word}</li>");
    let _ = writeln!(
        out,
        "<ul class=\"legend\">{}{}</ul>\n<div class=\"scroll\"><table class=\"times\">\n<thead><tr><th>result</th>\
         <th>kind</th><th>time</th>{}<th>ideal</th></tr></thead>\n<tbody>",
        swatch(BARS[0], "measured"),
        swatch(BARS[1], "forecast"),
        if alike { "<th>of the least</th>" } else { "" }
    );
    for (number, entry) in entries.iter().enumerate() {
        let bar = |seconds: Option<f64>, colour: &str| {
            seconds.map_or_else(String::new, |seconds| {
                let width = if longest > 0.0 { 170.0 * seconds / longest } else { 0.0 };
                format!(
                    "<span class=\"pair\"><span style=\"width:{width:.1}px;background:{colour}\"></span>{}</span>",
                    show_seconds(seconds)
                )
            })
        };
        let ratio = match (alike, entry.seconds()) {
            (false, _) => String::new(),
            (true, None) => "<td>-</td>".into(),
            (true, Some(seconds)) => format!("<td>{:.2} ×</td>", seconds / least),
        };
        let _ = writeln!(
            out,
            "<tr><td><a href=\"#result-{}\">{}</a></td><td>{}</td><td>{}{}</td>{ratio}\
             <td>{}</td></tr>",
            number + 1,
            escape(&entry.file),
            escape(entry.kind),
            bar(entry.measured, BARS[0]),
            bar(entry.forecast, BARS[1]),
            entry.ideal.map_or_else(|| "-".into(), show_seconds)
        );
    }
    out.push_str("</tbody></table></div>\n");
    let planned: Vec<(usize, &Entry, &Plan)> =
        entries.iter().enumerate().filter_map(|(i, e)| Some((i, e, e.plan.as_ref()?))).collect();
    if planned.len() > 1 {
        out.push_str("<h3>Plans</h3>\n<div class=\"gallery\">\n");
        for (number, entry, plan) in planned {
            let _ = writeln!(
                out,
                "<figure>{}<figcaption><b><a href=\"#result-{}\">{}</a></b>{}</figcaption></figure>",
                plan_on(plan, &[], SMALL),
                number + 1,
                escape(&entry.file),
                escape(&entry.title)
            );
        }
        out.push_str("</div>\n");
    }
    out.push_str("</section>\n");
}

/// The colours of bars: measured, and forecast.
const BARS: [&str; 2] = ["#3a9bd1", "#e0a63a"];

fn article(out: &mut String, entry: &Entry, number: usize, several: bool) {
    let _ = writeln!(out, "<article id=\"result-{}\">", number + 1);
    if several {
        let _ = writeln!(
            out,
            "<h2>{}</h2>\n<p class=\"kind\">{}: {}</p>",
            escape(&entry.file),
            escape(entry.kind),
            escape(&entry.title)
        );
    }
    tiles(out, &entry.tiles);
    for note in &entry.notes {
        let _ = writeln!(out, "<p>{}</p>", text(note));
    }
    if let Some(plan) = &entry.plan {
        plan_section(out, plan);
    }
    timeline(out, entry);
    chart(out, entry);
    reasons(out, entry);
    speeds(out, entry);
    for table in entry.tables.iter().filter(|table| !table.rows.is_empty()) {
        let _ = writeln!(out, "<section>\n<h3>{}</h3>", escape(table.heading));
        put_table(out, table);
        out.push_str("</section>\n");
    }
    origin(out, entry);
    out.push_str("</article>\n");
}

fn tiles(out: &mut String, tiles: &[Tile]) {
    out.push_str("<dl class=\"tiles\">\n");
    for Tile { label, value, note } in tiles {
        let note = if note.is_empty() { String::new() } else { format!("<small>{}</small>", escape(note)) };
        let class = if value.chars().count() > LONG { " class=\"long\"" } else { "" };
        let _ = writeln!(out, "<div><dt>{label}</dt><dd{class}>{}{note}</dd></div>", escape(value));
    }
    out.push_str("</dl>\n");
}

/// A picture for wide screens and paper, and one for phones.
fn both(draw: impl Fn(f64) -> String, widths: [f64; 2]) -> String {
    let [wide, narrow] = widths;
    format!("<div class=\"wide\">{}</div><div class=\"narrow\">{}</div>", draw(wide), draw(narrow))
}

/// The line that names what the pointer is on.
const HINT: &str = "<output class=\"hint\">Point at a part of the picture to name it.</output>";

fn plan_section(out: &mut String, plan: &Plan) {
    let _ = writeln!(
        out,
        "<section class=\"plan\">\n<h3>The plan</h3>\n<div class=\"split\">\n<figure>{}{HINT}</figure>",
        both(|width| plan_on(plan, &[], width), [PLAN, NARROW])
    );
    let colours = plan_colours(plan, &[]);
    let total: u64 = plan.shares.iter().sum();
    let forecast = plan.forecast.as_ref();
    let head = if forecast.is_some() { "<th>computes</th>" } else { "" };
    let _ = writeln!(
        out,
        "<div class=\"scroll\"><table>\n<thead><tr><th>processor</th><th>share</th><th>of all</th>{head}</tr></thead>\n<tbody>"
    );
    for (i, name) in plan.processors.iter().enumerate().take(MOST_ROWS) {
        let time = forecast.map_or_else(String::new, |f| format!("<td>{}</td>", show_seconds(f.compute[i])));
        let _ = writeln!(
            out,
            "<tr><td><i style=\"background:{}\"></i>{}</td><td>{}</td><td>{} %</td>{time}</tr>",
            colours[i],
            escape(name),
            show_count(u128::from(plan.shares[i])),
            percent(plan.shares[i], total)
        );
    }
    out.push_str("</tbody></table></div>\n");
    let more = plan.processors.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        let _ = writeln!(out, "<p class=\"kind\">and {more} more processors</p>");
    }
    out.push_str("</div>\n</section>\n");
}

/// The words of [`apportion::trace::KINDS`] in the page.
const KINDS: [&str; 4] = ["computes", "waits until its messages have left", "receives", "waits"];

fn timeline(out: &mut String, entry: &Entry) {
    let (measured, predicted) = (entry.lanes.as_ref(), entry.forecast_lanes.as_ref());
    let Some(trace) = measured.or(predicted) else { return };
    if trace.lanes.iter().all(|lane| lane.events.is_empty()) {
        return;
    }
    let names: Vec<String> = match &entry.plan {
        Some(plan) => plan.processors.clone(),
        None => entry.times.iter().map(|times| times.name.clone()).collect(),
    };
    let forecast = predicted.filter(|_| measured.is_some());
    let timeline = Timeline { title: ["Timeline", ""], names: &names, trace, forecast };
    let swatches = KINDS.into_iter().zip(COLOURS).map(|(word, colour)| {
        let colour = if word == "waits" { "var(--wait)" } else { colour };
        format!("<li><i style=\"background:{colour}\"></i>{word}</li>")
    });
    let strips =
        [("messages from it are under way", COLOURS[1]), ("messages to it are under way", COLOURS[2])];
    let strips = strips
        .map(|(word, colour)| format!("<li><i class=\"thin\" style=\"background:{colour}\"></i>{word}</li>"));
    let _ = writeln!(
        out,
        "<section>\n<h3>Timeline</h3>\n<figure class=\"timeline\"><ul class=\"legend\">{}{}</ul>{}{HINT}",
        swatches.collect::<String>(),
        strips.concat(),
        both(|width| timeline_on(&timeline, Canvas::Page(width)), [WIDE, NARROW])
    );
    let what = match (measured, forecast) {
        (Some(_), Some(_)) => "As measured; beneath each processor, paler, as the forecast had it.",
        (Some(_), None) => "As measured.",
        _ => "As simulated.",
    };
    let _ = writeln!(out, "<figcaption>{what}</figcaption></figure>\n</section>");
}

fn chart(out: &mut String, entry: &Entry) {
    let Some(chart) = &entry.chart else { return };
    let colours = job_colours(chart);
    let used = chart.used();
    let swatches = used.iter().take(32).map(|&job| {
        let pale = if chart.only_waits(job) { ";opacity:0.3" } else { "" };
        format!("<li><i style=\"background:{}{pale}\"></i>{}</li>", colours[job], escape(&chart.jobs[job]))
    });
    let _ = writeln!(
        out,
        "<section>\n<h3>Timeline</h3>\n<figure class=\"chart\"><ul class=\"legend\">{}<li>pale: done, waits</li></ul>{}{HINT}",
        swatches.collect::<String>(),
        both(|width| chart_on(chart, Canvas::Page(width)), [WIDE, NARROW])
    );
    if chart.left_out > 0 {
        let _ = writeln!(out, "<figcaption>{} more lanes are not shown.</figcaption>", chart.left_out);
    }
    out.push_str("</figure>\n</section>\n");
}

fn reasons(out: &mut String, entry: &Entry) {
    let list = |texts: &[String]| {
        let items: String = texts.iter().map(|t| format!("<li>{}</li>\n", text(t))).collect();
        format!("<ul class=\"words\">\n{items}</ul>\n")
    };
    if !entry.times.is_empty() || !entry.reasons.is_empty() {
        let heading = match entry.kind {
            "Plan" | "Simulation" => "Where the time goes",
            "Speed functions" => "What was measured",
            _ => "Where the time went",
        };
        let _ = writeln!(out, "<section>\n<h3>{heading}</h3>");
        stack(out, &entry.times);
        out.push_str(&list(&entry.reasons));
        out.push_str("</section>\n");
    }
    if !entry.remedies.is_empty() {
        let heading =
            if entry.kind == "Speed functions" { "How good they are" } else { "What would make it faster" };
        let _ = writeln!(out, "<section>\n<h3>{heading}</h3>\n{}</section>", list(&entry.remedies));
    }
}

/// A bar for each processor: computing, data on the way, and the rest.
fn stack(out: &mut String, times: &[Times]) {
    let longest = times.iter().map(|t| t.compute + t.communicate + t.idle).fold(0.0, f64::max);
    if longest <= 0.0 {
        return;
    }
    // Programs of units and workcells have no messages.
    let silent = times.iter().all(|t| t.communicate == 0.0);
    let parts = [
        ("computes", COLOURS[0], false),
        ("waits for data on the way", COLOURS[2], silent),
        ("waits or has no work", "var(--wait)", false),
    ];
    let shown = parts.iter().filter(|part| !part.2);
    let legend: String = shown
        .map(|(word, colour, _)| format!("<li><i style=\"background:{colour}\"></i>{word}</li>"))
        .collect();
    let _ = writeln!(out, "<ul class=\"legend\">{legend}</ul>\n<div class=\"stack\">");
    for Times { name, compute, communicate, idle } in times.iter().take(MOST_ROWS) {
        let name = escape(name);
        let bars: String = parts
            .iter()
            .zip([compute, communicate, idle])
            .filter(|(_, seconds)| **seconds > 0.0)
            .map(|((word, colour, _), seconds)| {
                let width = 100.0 * seconds / longest;
                let title = format!("{name} {word}: {}", show_seconds(*seconds));
                format!("<span style=\"width:{width:.2}%;background:{colour}\" title=\"{title}\"></span>")
            })
            .collect();
        let _ = writeln!(out, "<b title=\"{name}\">{name}</b><div>{bars}</div>");
    }
    out.push_str("</div>\n");
    let rows = times.iter().map(|t| {
        let mut row = vec![t.name.clone(), show_seconds(t.compute)];
        row.extend((!silent).then(|| show_seconds(t.communicate)));
        row.push(show_seconds(t.idle));
        row
    });
    let mut header = vec!["processor", "computes"];
    header.extend((!silent).then_some("data on the way"));
    header.push("waits or no work");
    put_table(out, &Table { heading: "", header, rows: rows.collect() });
}

fn speeds(out: &mut String, entry: &Entry) {
    let Some(models) = &entry.models else { return };
    // Constants are no curves.
    if models.models.iter().all(|model| model.points().len() < 2) {
        return;
    }
    let marked = entry.plan.as_ref().filter(|plan| plan.processors == models.names());
    let marked = marked.map_or_else(Vec::new, Plan::sizes);
    let drawing = SpeedPlot { marked, ..SpeedPlot::default() };
    let logarithmic = drawing.is_wide(&models.models);
    let contents = drawing.plot(&models.models, logarithmic);
    let axes = [logarithmic, wide_axes(&contents)[1]];
    let notes = contents.notes.join("; ");
    let _ = writeln!(
        out,
        "<section>\n<h3>Speed functions</h3>\n<figure class=\"plot\">{}{HINT}<figcaption>Speed by size; a unit: {}. {}.\
         </figcaption></figure>\n</section>",
        both(|width| plot::draw(&contents, axes, Canvas::Page(width)), [WIDE, NARROW]),
        escape(&models.unit),
        escape(&capital(&notes))
    );
}

/// The command and the machine.
fn origin(out: &mut String, entry: &Entry) {
    out.push_str("<section class=\"origin\">\n<h3>Made by</h3>\n");
    match &entry.command {
        Some(command) => {
            let _ = writeln!(
                out,
                "<div class=\"command\"><code>{}</code><button type=\"button\">Copy</button></div>",
                words(command)
            );
        }
        None => {
            out.push_str("<p>Plans and models do not record their command: equal ones are equal files.</p>\n")
        }
    }
    if !entry.machine.is_empty() {
        out.push_str("<dl class=\"facts\">\n");
        for (label, value) in &entry.machine {
            let _ = writeln!(out, "<dt>{label}</dt><dd>{}</dd>", escape(value));
        }
        out.push_str("</dl>\n");
    }
    out.push_str("</section>\n");
}

/// A command whose flags are not broken.
fn words(command: &str) -> String {
    let word = |word: &str| match word.starts_with('-') {
        true => format!("<span>{}</span>", escape(word)),
        false => escape(word),
    };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn put_table(out: &mut String, table: &Table) {
    let head: String = table.header.iter().map(|word| format!("<th>{}</th>", escape(word))).collect();
    let _ = writeln!(out, "<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>");
    for row in table.rows.iter().take(MOST_ROWS) {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    }
    out.push_str("</tbody></table></div>\n");
    let more = table.rows.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        let _ = writeln!(out, "<p class=\"kind\">and {more} more rows</p>");
    }
}

/// Units that stay on the line of their numbers.
const UNITS: [&str; 13] = ["%", "s", "ms", "us", "µs", "ns", "min", "h", "days", "B", "kB", "MB", "GB"];

/// A sentence: words between backquotes are code, and numbers stay with their units.
fn text(words: &str) -> String {
    let plain = |part: &str| {
        let mut joined = String::with_capacity(part.len());
        for (i, word) in part.split(' ').enumerate() {
            let unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
            let number = joined.ends_with(|c: char| c.is_ascii_digit());
            if i > 0 {
                joined.push(if unit && number { '\u{a0}' } else { ' ' });
            }
            joined.push_str(word);
        }
        escape(&joined)
    };
    let part = |(i, part): (usize, &str)| match i % 2 {
        0 => plain(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    words.split('`').enumerate().map(part).collect()
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}
