//! The Gantt chart of a simulated workcell: one lane per unit of a resource.

use super::gantt::{MARGIN, WIDTH, draw_axis};
use super::markup::{INK, escape};
use super::palette::colours;
use super::text;
use apportion_events::{EventRun, Nanos, Segment, Workcell, seconds};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Height of a lane and of the bar in it.
const PITCH: f64 = 26.0;
const BAR: f64 = 20.0;
/// Width of an average character, as a part of the font size.
const CHARACTER: f64 = 0.58;
/// Most jobs in the legend and most lanes; the rest is counted.
const MOST_NAMED: usize = 32;
const MOST_LANES: usize = 200;

/// Most characters of a name.
const LONGEST_NAME: usize = 24;

/// A bar: from and to, the job, and whether it waits.
type Bar = ([Nanos; 2], usize, bool);

/// Draws a simulation as a self-contained SVG 1.1 document. Each unit of a resource has a lane, coloured by
/// the jobs that hold it: full while the job runs, pale while it is done and waits for the rule that follows.
/// Jobs that hold no resource have lanes of their own. Shows at most 200 lanes. The same run gives the same
/// bytes. O(segments log segments).
pub fn events_svg(workcell: &Workcell, run: &EventRun) -> String {
    let lanes = lanes(workcell, run);
    let names: Vec<&str> = workcell.jobs.iter().map(|job| job.name.as_str()).collect();
    let colours = colours(&names, &[]);
    let shown = &lanes[..lanes.len().min(MOST_LANES)];
    let mut used: Vec<usize> = shown.iter().flat_map(|(_, bars)| bars.iter().map(|bar| bar.1)).collect();
    used.sort_unstable();
    used.dedup();
    let longest = shown.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let left = MARGIN + longest as f64 * 13.0 * CHARACTER + 10.0;
    let legend = Legend::new(&names, &used, left + WIDTH - MARGIN);
    let top = 52.0 + 22.0 * legend.rows as f64;
    let bottom = top + PITCH * shown.len() as f64;
    let (width, height) = (left + WIDTH + 2.0 * MARGIN, bottom + 56.0);
    let title = titled(workcell, run, lanes.len() - shown.len());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"{INK}\" role=\"img\">\n<title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{0}</text>\n",
        escape(&title)
    );
    legend.draw(&mut svg, &colours);
    let total = seconds(run.ended);
    let scale = if total > 0.0 { WIDTH / total } else { 0.0 };
    draw_axis(&mut svg, [left, top, bottom], total, scale);
    for (i, (name, bars)) in shown.iter().enumerate() {
        let y = top + PITCH * i as f64 + (PITCH - BAR) / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"13\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            y + BAR / 2.0 + 4.5,
            escape(name)
        );
        for (bar, colour) in merge_bars(bars, scale).iter().map(|bar| (bar, &colours[bar.1])) {
            draw_bar(&mut svg, bar, [left, y, scale], colour, names[bar.1]);
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
fn lanes(workcell: &Workcell, run: &EventRun) -> Vec<(String, Vec<Bar>)> {
    let mut held: BTreeMap<(usize, usize), Vec<&Segment>> = BTreeMap::new();
    let mut free: BTreeMap<usize, Vec<&Segment>> = BTreeMap::new();
    for segment in run.segments.iter().filter(|segment| segment.left > segment.start) {
        match segment.on {
            Some(unit) => held.entry(unit).or_default().push(segment),
            None => free.entry(segment.job).or_default().push(segment),
        }
    }
    let bars = |segments: &[&Segment]| -> Vec<Bar> {
        let mut bars: Vec<Bar> = segments
            .iter()
            .flat_map(|s| [([s.start, s.done], s.job, false), ([s.done, s.left], s.job, true)])
            .filter(|([from, to], ..)| to > from)
            .collect();
        bars.sort_unstable();
        bars
    };
    let mut lanes = Vec::new();
    for ((resource, unit), segments) in held {
        let resource = &workcell.resources[resource];
        let name = shortened(&resource.name);
        let name = if resource.capacity > 1 { format!("{name} #{}", unit + 1) } else { name };
        lanes.push((name, bars(&segments)));
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
            lanes.push((name, bars(row)));
        }
    }
    lanes
}

/// Bars narrower than half a pixel are joined with their neighbours, so that the picture stays small.
fn merge_bars(bars: &[Bar], scale: f64) -> Vec<Bar> {
    let half = |from: Nanos, to: Nanos| seconds(to.saturating_sub(from)) * scale < 0.5;
    let mut joined: Vec<Bar> = Vec::new();
    for &([from, to], job, waits) in bars {
        match joined.last_mut() {
            Some(([start, end], ..)) if half(from, to) && half(*end, from) && half(*start, to) => *end = to,
            _ => joined.push(([from, to], job, waits)),
        }
    }
    joined
}

fn draw_bar(
    svg: &mut String,
    &([from, to], _, waits): &Bar,
    [left, y, scale]: [f64; 3],
    colour: &str,
    name: &str,
) {
    let (x, width) = (left + seconds(from) * scale, seconds(to - from) * scale);
    let pale = if waits { " fill-opacity=\"0.3\"" } else { "" };
    let words = if waits { " (waits)" } else { "" };
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{BAR}\" fill=\"{colour}\"{pale} \
         stroke=\"#ffffff\" stroke-width=\"0.5\"><title>{}{words}, {} s to {} s</title></rect>",
        escape(name),
        seconds(from),
        seconds(to)
    );
    if !waits && name.chars().count() as f64 * 11.0 * CHARACTER + 4.0 < width {
        let _ = writeln!(
            svg,
            "<text x=\"{:.2}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"middle\">{}</text>",
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

    fn draw(&self, svg: &mut String, colours: &[String]) {
        for (text, job, [x, y]) in &self.entries {
            let mut x = *x;
            if let Some(job) = job {
                let _ = write!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y}\" width=\"14\" height=\"14\" fill=\"{}\"/>",
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
