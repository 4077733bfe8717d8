//! The Gantt chart of a simulated workcell: one lane per unit of a resource.

use super::canvas::{Canvas, LEAST_TYPE};
use super::gantt::{MARGIN, WIDTH, draw_axis};
use super::markup::{INK, escape};
use super::palette::colours;
use super::text;
use apportion_events::{EventRun, Nanos, Segment, Workcell, seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Height of a lane and of the bar in it.
const PITCH: f64 = 26.0;
const BAR: f64 = 20.0;
/// The attribute of bars in which a job is done and waits.
const PALE: &str = " fill-opacity=\"0.3\"";
/// Width of an average character, as a part of the font size.
const CHARACTER: f64 = 0.58;
/// Most jobs in the legend and most lanes; the rest is counted.
const MOST_NAMED: usize = 32;
const MOST_LANES: usize = 200;

/// Most characters of a name.
const LONGEST_NAME: usize = 24;

/// A bar: from and to, the job, and whether it waits.
type Bar = ([Nanos; 2], usize, bool);

/// What the chart of a simulated workcell shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventChart {
    /// The workcell, its makespan, products and end.
    pub title: String,
    /// The end of the time axis, in seconds.
    pub seconds: f64,
    /// The names of the jobs.
    pub jobs: Vec<String>,
    /// One lane for each unit of a resource, and those of jobs that hold none.
    pub lanes: Vec<EventLane>,
    /// The number of lanes that are left out.
    pub left_out: usize,
}

/// A lane of an [`EventChart`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventLane {
    /// The resource, or the job that holds none.
    pub name: String,
    /// The jobs, ordered by time.
    pub bars: Vec<EventBar>,
}

/// A job in a lane of an [`EventChart`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EventBar {
    /// Its start, in seconds.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Its index in [`EventChart::jobs`].
    pub job: usize,
    /// It is done, and waits for the rule that follows.
    pub waits: bool,
}

/// Draws a simulation as a self-contained SVG 1.1 document: its [`EventChart`]. Each unit of a resource has a
/// lane, coloured by the jobs that hold it: full while the job runs, pale while it is done and waits for the rule
/// that follows. Jobs that hold no resource have lanes of their own. Shows at most 200 lanes. The same run gives
/// the same bytes. O(segments log segments).
pub fn events_svg(workcell: &Workcell, run: &EventRun) -> String {
    chart_on(&EventChart::new(workcell, run), Canvas::File)
}

impl EventChart {
    /// The chart of a run.
    pub fn new(workcell: &Workcell, run: &EventRun) -> Self {
        let mut lanes = lanes(workcell, run);
        let left_out = lanes.len().saturating_sub(MOST_LANES);
        lanes.truncate(MOST_LANES);
        Self {
            title: titled(workcell, run, left_out),
            seconds: seconds(run.ended),
            jobs: workcell.jobs.iter().map(|job| job.name.clone()).collect(),
            lanes,
            left_out,
        }
    }

    /// The colour of each job.
    pub(super) fn colours(&self) -> Vec<String> {
        colours(&self.jobs.iter().map(String::as_str).collect::<Vec<_>>(), &[])
    }

    /// True if a job is drawn only where it is done and waits.
    pub(super) fn only_waits(&self, job: usize) -> bool {
        self.lanes.iter().flat_map(|lane| &lane.bars).filter(|bar| bar.job == job).all(|bar| bar.waits)
    }

    /// The jobs that are drawn.
    pub(super) fn used(&self) -> Vec<usize> {
        let mut used: Vec<usize> =
            self.lanes.iter().flat_map(|lane| lane.bars.iter().map(|b| b.job)).collect();
        used.sort_unstable();
        used.dedup();
        used
    }
}

/// Draws a chart on a canvas.
pub(super) fn chart_on(chart: &EventChart, canvas: Canvas) -> String {
    let names: Vec<&str> = chart.jobs.iter().map(String::as_str).collect();
    let colours = chart.colours();
    let shorten = |name: &str| text::shortened(name, canvas.longest_name());
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

fn titled(workcell: &Workcell, run: &EventRun, hidden: usize) -> String {
    let products: u64 = run.products.iter().sum();
    let count = match products {
        0 => String::new(),
        1 => ", 1 product".into(),
        _ => format!(", {products} products"),
    };
    let more = if hidden > 0 { format!(" ({hidden} lanes not shown)") } else { String::new() };
    format!("{}: {} s{count}, {}{more}", workcell.name, seconds(run.makespan), run.end.word())
}

fn shortened(name: &str) -> String {
    text::shortened(name, LONGEST_NAME)
}

/// The lanes with their names, in the order of the file; units that nothing held have none.
fn lanes(workcell: &Workcell, run: &EventRun) -> Vec<EventLane> {
    let mut held: BTreeMap<(usize, usize), Vec<&Segment>> = BTreeMap::new();
    let mut free: BTreeMap<usize, Vec<&Segment>> = BTreeMap::new();
    for segment in run.segments.iter().filter(|segment| segment.left > segment.start) {
        match segment.on {
            Some(unit) => held.entry(unit).or_default().push(segment),
            None => free.entry(segment.job).or_default().push(segment),
        }
    }
    let bars = |segments: &[&Segment]| -> Vec<EventBar> {
        let mut bars: Vec<Bar> = segments
            .iter()
            .flat_map(|s| [([s.start, s.done], s.job, false), ([s.done, s.left], s.job, true)])
            .filter(|([from, to], ..)| to > from)
            .collect();
        bars.sort_unstable();
        let bar =
            |([from, to], job, waits): Bar| EventBar { from: seconds(from), to: seconds(to), job, waits };
        bars.into_iter().map(bar).collect()
    };
    let mut lanes = Vec::new();
    for ((resource, unit), segments) in held {
        let resource = &workcell.resources[resource];
        let name = shortened(&resource.name);
        let name = if resource.capacity > 1 { format!("{name} #{}", unit + 1) } else { name };
        lanes.push(EventLane { name, bars: bars(&segments) });
    }
    for (job, mut segments) in free {
        segments.sort_by_key(|segment| segment.start);
        // Instances that overlap are drawn beneath each other.
        let mut rows: Vec<Vec<&Segment>> = Vec::new();
        for segment in segments {
            match rows.iter_mut().find(|row| row.last().is_some_and(|last| last.left <= segment.start)) {
                Some(row) => row.push(segment),
                None => rows.push(vec![segment]),
            }
        }
        for (i, row) in rows.iter().enumerate() {
            let name = if i == 0 { shortened(&workcell.jobs[job].name) } else { String::new() };
            lanes.push(EventLane { name, bars: bars(row) });
        }
    }
    lanes
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
        let mut texts: Vec<(String, Option<usize>)> =
            used.iter().take(MOST_NAMED).map(|&job| (shortened(names[job]), Some(job))).collect();
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
    use apportion::run::Monitor;
    use apportion_events::{EventMatrices, EventOptions, LocalLogic, parse_workcell, simulate_workcell};

    fn drawn(text: &str) -> String {
        let cell = parse_workcell(text, "cell.toml").unwrap();
        let matrices = EventMatrices::of(&cell);
        let mut logic = LocalLogic::new(&matrices);
        let runs = simulate_workcell(&cell, &EventOptions::default(), &mut logic, &Monitor::new()).unwrap();
        events_svg(&cell, &runs[0])
    }

    /// M1 mills from 8 to 68 s of 68 s: 794 of 900 pixels; the robot waits with the second part from 16 s.
    #[test]
    fn bars_are_where_the_events_are() {
        let text = include_str!("../../../examples/mdem/deadlock.toml");
        let svg = drawn(text);
        let bar =
            |words: &str| svg.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}"));
        assert!(bar("<title>mill, 8 s to 68 s<").contains("width=\"794.12\""));
        assert!(bar("<title>load (waits), 16 s to 68 s<").contains("fill-opacity=\"0.3\""));
        assert!(svg.contains(">pallet #1<") && svg.contains(">pallet #2<") && svg.contains(">M1<"));
        assert!(svg.contains("greedy robot: 68 s, deadlock") && svg.contains(">pale: done, waits<"));
        assert_eq!(svg, drawn(text));
    }

    /// The legend has the colours that are seen: of a job that only ever waits, the pale one.
    #[test]
    fn a_job_that_only_waits_is_pale_in_the_legend() {
        let svg = drawn(include_str!("../../../examples/mdem/flow-line.toml"));
        let swatches: Vec<&str> = svg.lines().filter(|line| line.contains("width=\"14\"")).collect();
        let pale: Vec<&&str> = swatches.iter().filter(|line| line.contains(PALE)).collect();
        assert!(swatches.len() == 4 && pale.len() == 1 && pale[0].contains("wait for press"), "{swatches:?}");
    }

    #[test]
    fn strange_names_and_empty_runs_are_drawn() {
        let text = "name = \"<&>\"\n[[part]]\nname=\"p\"\ncount=0\n[[job]]\nname=\"j\"\nduration=1\n\
            [[rule]]\nname=\"r\"\nparts=[\"p\"]\nstart=[\"j\"]\n";
        let svg = drawn(text);
        assert!(svg.contains("&lt;&amp;&gt;: 0 s, finished") && !svg.contains("NaN") && !svg.contains("inf"));
        // Jobs without resources overlap: three lanes; many short ones stay few bars.
        let three = drawn(&text.replace("count=0", "count=3"));
        assert_eq!(three.matches("<title>j, 0 s to 1 s</title>").count(), 3);
        let many = text.replace("count=0", "count=20000\nevery=1").replace("duration=1", "duration=0.5");
        assert!(drawn(&many).len() < 800_000, "{}", drawn(&many).len());
    }
}
