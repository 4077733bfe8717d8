//! The Gantt chart of a simulated workcell: one lane per unit of a resource.

use super::canvas::{Canvas, LEAST_TYPE};
use super::gantt::{MARGIN, WIDTH, draw_axis};
use super::markup::{INK, escape};
use super::palette::colours;
use super::text::shortened;
use apportion::record::{EventBar, EventChart, EventLane};
use std::fmt::Write;

/// Height of a lane and of the bar in it.
const PITCH: f64 = 26.0;
const BAR: f64 = 20.0;
/// The attribute of bars in which a job is done and waits.
const PALE: &str = " fill-opacity=\"0.3\"";
/// Width of an average character, as a part of the font size.
const CHARACTER: f64 = 0.58;
/// Most jobs in the legend; the rest is counted.
const MOST_NAMED: usize = 32;

/// Most characters of a name.
const LONGEST_NAME: usize = 24;

/// Draws the chart of a simulated workcell as a self-contained SVG 1.1 document. Each unit of a resource has a lane,
/// coloured by the jobs that hold it: full while the job runs, pale while it is done and waits for the rule that follows.
/// The same chart gives the same bytes. O(bars).
pub fn events_svg(chart: &EventChart) -> String {
    chart_on(chart, Canvas::File)
}

/// The colour of each job.
pub(super) fn job_colours(chart: &EventChart) -> Vec<String> {
    colours(&chart.jobs.iter().map(String::as_str).collect::<Vec<_>>(), &[])
}

/// Draws a chart on a canvas.
pub(super) fn chart_on(chart: &EventChart, canvas: Canvas) -> String {
    let names: Vec<&str> = chart.jobs.iter().map(String::as_str).collect();
    let colours = job_colours(chart);
    let shorten = |name: &str| shortened(name, canvas.longest_name());
    let longest = chart.lanes.iter().map(|lane| shorten(&lane.name).chars().count()).max().unwrap_or(0);
    let text = longest as f64 * 13.0 * CHARACTER + 10.0;
    let (left, length, width) = match canvas {
        Canvas::File => (MARGIN + text, WIDTH, MARGIN + text + WIDTH + 2.0 * MARGIN),
        Canvas::Page(width) => (text, width - text - 14.0, width),
    };
    let legend =
        (canvas == Canvas::File).then(|| Legend::new(&names, &chart.used(), MARGIN + text + WIDTH - MARGIN));
    let top = legend.as_ref().map_or(10.0, |legend| 52.0 + 22.0 * legend.rows as f64);
    let bottom = top + PITCH * chart.lanes.len() as f64;
    let title = escape(&chart.title);
    let height = bottom + if canvas == Canvas::File { 56.0 } else { 48.0 };
    let mut svg = canvas.head([width, height], &format!(" fill=\"{INK}\""), &title);
    if let Some(legend) = legend {
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{title}</text>"
        );
        legend.draw(&mut svg, chart, &colours);
    }
    let scale = if chart.seconds > 0.0 { length / chart.seconds } else { 0.0 };
    draw_axis(&mut svg, [left, top, bottom], chart.seconds, [scale, length]);
    for (i, EventLane { name, bars }) in chart.lanes.iter().enumerate() {
        let y = top + PITCH * i as f64 + (PITCH - BAR) / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"13\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            y + BAR / 2.0 + 4.5,
            escape(&shorten(name))
        );
        let inside = if canvas == Canvas::File { (11.0, "") } else { (LEAST_TYPE, " class=\"inside\"") };
        for bar in &merge_bars(bars, scale) {
            let (Some(name), Some(colour)) = (names.get(bar.job), colours.get(bar.job)) else { continue };
            draw_bar(&mut svg, bar, [left, y, scale], name, colour, inside);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Bars narrower than half a pixel are joined with their neighbours, so that the picture stays small.
fn merge_bars(bars: &[EventBar], scale: f64) -> Vec<EventBar> {
    let half = |from: f64, to: f64| (to - from) * scale < 0.5;
    let mut joined: Vec<EventBar> = Vec::new();
    for bar in bars {
        match joined.last_mut() {
            Some(last) if half(bar.from, bar.to) && half(last.to, bar.from) && half(last.from, bar.to) => {
                last.to = bar.to;
            }
            _ => joined.push(*bar),
        }
    }
    joined
}

fn draw_bar(
    svg: &mut String,
    bar: &EventBar,
    [left, y, scale]: [f64; 3],
    name: &str,
    colour: &str,
    (font, class): (f64, &str),
) {
    let EventBar { from, to, waits, .. } = *bar;
    let (x, width) = (left + from * scale, (to - from) * scale);
    let pale = if waits { PALE } else { "" };
    let words = if waits { " (waits)" } else { "" };
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{BAR}\" fill=\"{colour}\"{pale} \
         stroke=\"#ffffff\" stroke-width=\"0.5\"><title>{}{words}, {from} s to {to} s</title></rect>",
        escape(name),
    );
    if !waits && name.chars().count() as f64 * font * CHARACTER + 4.0 < width {
        let _ = writeln!(
            svg,
            "<text{class} x=\"{:.2}\" y=\"{:.1}\" font-size=\"{font}\" text-anchor=\"middle\">{}</text>",
            x + width / 2.0,
            y + BAR / 2.0 + 4.0,
            escape(name)
        );
    }
}

/// The legend: jobs in rows that are filled from left to right.
struct Legend {
    /// Text, job if it has a colour, and place.
    entries: Vec<(String, Option<usize>, [f64; 2])>,
    rows: usize,
}

impl Legend {
    fn new(names: &[&str], used: &[usize], width: f64) -> Self {
        let mut texts: Vec<(String, Option<usize>)> = used
            .iter()
            .take(MOST_NAMED)
            .map(|&job| (shortened(names[job], LONGEST_NAME), Some(job)))
            .collect();
        if used.len() > MOST_NAMED {
            texts.push((format!("and {} more", used.len() - MOST_NAMED), None));
        }
        texts.push(("pale: done, waits".into(), None));
        let (mut x, mut row) = (MARGIN, 0);
        let mut entries = Vec::new();
        for (text, job) in texts {
            let wide =
                text.chars().count() as f64 * 13.0 * CHARACTER + if job.is_some() { 36.0 } else { 16.0 };
            if x > MARGIN && x + wide > width {
                (x, row) = (MARGIN, row + 1);
            }
            entries.push((text, job, [x, 40.0 + 22.0 * row as f64]));
            x += wide;
        }
        Self { entries, rows: row + 1 }
    }

    fn draw(&self, svg: &mut String, chart: &EventChart, colours: &[String]) {
        for (text, job, [x, y]) in &self.entries {
            let mut x = *x;
            if let Some(job) = job {
                let pale = if chart.only_waits(*job) { PALE } else { "" };
                let _ = write!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y}\" width=\"14\" height=\"14\" fill=\"{}\"{pale}/>",
                    colours[*job]
                );
                x += 20.0;
            }
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{}\" font-size=\"13\">{}</text>",
                y + 12.0,
                escape(text)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(from: f64, to: f64, job: usize, waits: bool) -> EventBar {
        EventBar { from, to, job, waits }
    }

    fn chart(jobs: &[&str], seconds: f64, bars: Vec<EventBar>) -> EventChart {
        let jobs = jobs.iter().map(|name| (*name).to_owned()).collect();
        let lanes = vec![EventLane { name: "M1".into(), bars }];
        EventChart { title: "<&>: 68 s".into(), seconds, jobs, lanes, left_out: 0 }
    }

    /// From 8 to 68 s of 68 s: 794 of 900 pixels.
    #[test]
    fn bars_are_where_the_events_are() {
        let chart = chart(&["mill", "load"], 68.0, vec![bar(8.0, 68.0, 0, false), bar(16.0, 68.0, 1, true)]);
        let svg = events_svg(&chart);
        let found =
            |words: &str| svg.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}"));
        assert!(found("<title>mill, 8 s to 68 s<").contains("width=\"794.12\""));
        assert!(found("<title>load (waits), 16 s to 68 s<").contains("fill-opacity=\"0.3\""));
        assert!(svg.contains(">M1<") && svg.contains("&lt;&amp;&gt;: 68 s"));
        assert!(svg.contains(">pale: done, waits<"));
        assert_eq!(svg, events_svg(&chart));
    }

    /// The legend has the colours that are seen: of a job that only ever waits, the pale one.
    #[test]
    fn a_job_that_only_waits_is_pale_in_the_legend() {
        let svg = events_svg(&chart(
            &["a", "wait for press"],
            9.0,
            vec![bar(0.0, 5.0, 0, false), bar(5.0, 9.0, 1, true)],
        ));
        let swatches: Vec<&str> = svg.lines().filter(|line| line.contains("width=\"14\"")).collect();
        let pale: Vec<&&str> = swatches.iter().filter(|line| line.contains(PALE)).collect();
        assert!(swatches.len() == 2 && pale.len() == 1 && pale[0].contains("wait for press"), "{swatches:?}");
    }

    /// Nothing has no time; many short bars stay few.
    #[test]
    fn empty_and_long_runs_are_drawn() {
        let none = events_svg(&chart(&["j"], 0.0, Vec::new()));
        assert!(!none.contains("NaN") && !none.contains("inf"));
        let many = (0..20_000).map(|i| bar(f64::from(i), f64::from(i) + 0.5, 0, false)).collect();
        let svg = events_svg(&chart(&["j"], 20_000.0, many));
        assert!(svg.len() < 800_000, "{}", svg.len());
    }
}
