//! Straight line against square corner: tables, pictures and checks of a pair of figures.

use crate::experiment::{Check, Report, Table, short};
use crate::laboratory::Times;
use apportion_report::{Plot, Series};

/// One ratio of a figure.
pub struct Line {
    pub ratio: u64,
    /// Of straight line and square corner: measured and forecast, seconds of the original.
    pub times: [[Times; 2]; 2],
    /// Seconds of the original's fastest party alone.
    pub alone: f64,
}

/// A quantity of the times.
#[derive(Clone, Copy)]
struct What {
    name: &'static str,
    of: fn(&Times) -> f64,
}

const COMMUNICATION: What = What { name: "communication", of: |times| times.communication };
const EXECUTION: What = What { name: "execution", of: |times| times.execution };

/// All ratios of a pair of figures, and how often they were measured.
pub struct Lines {
    pub lines: Vec<Line>,
    pub repeated: String,
}

/// A pair of figures: communication and execution.
pub struct Figures<'a> {
    pub ids: &'a [&'a str],
    pub setting: String,
    /// The published ratio above which the square corner is faster.
    pub crossover: u64,
}

/// Tables, pictures and the checks of the crossovers.
pub fn report(figures: &Figures<'_>, measured: &Lines) -> Report {
    let lines = &measured.lines;
    let mut report = Report::default();
    for (id, what) in figures.ids.iter().zip([COMMUNICATION, EXECUTION]) {
        let figure = id.trim_start_matches("becker-");
        let header = ["ratio", "straight line", "forecast", "square corner", "forecast", "the fast alone"];
        let columns = if what.name == EXECUTION.name { 6 } else { 5 };
        let title = format!("Figure {figure}: {}, {}, seconds of the original", what.name, figures.setting);
        let mut table = Table::new(title, &header[..columns]);
        for line in lines {
            let times = line.times.iter().flatten().map(|t| format!("{:.2}", (what.of)(t)));
            let alone = format!("{:.2}", line.alone);
            let cells = [format!("{}:1", line.ratio)].into_iter().chain(times).chain([alone]);
            table.row(cells.take(columns));
        }
        report.tables.push(table);
        report.checks.push(crossover(figures, figure, what, lines, 0));
        report.checks.push(crossover(figures, figure, what, lines, 1));
        report.draw(id, &plot(figures, figure, what, lines));
    }
    report.note(format!(
        "Seconds are those of the original: measured here on emulated processors and links, and multiplied by the \
         scale. {}",
        measured.repeated
    ));
    report.note(copies(lines));
    report
}

/// How much longer than their forecast the communications took: copies and wake-ups.
fn copies(lines: &[Line]) -> String {
    let mut excess: Vec<f64> = lines
        .iter()
        .flat_map(|line| &line.times)
        .map(|[now, then]| now.communication / then.communication - 1.0)
        .collect();
    excess.sort_by(f64::total_cmp);
    format!(
        "Measured communication takes {:.2} % longer than the network model's (median; at most {:.2} %): the \
         copies of the data and the threads' wake-ups.",
        100.0 * excess[excess.len() / 2],
        100.0 * excess[excess.len() - 1]
    )
}

/// Above the published ratio the square corner must be faster, and below it the straight line. `which`: 0 is
/// measured, 1 is forecast.
fn crossover(figures: &Figures<'_>, figure: &str, what: What, lines: &[Line], which: usize) -> Check {
    let faster = |line: &Line| (what.of)(&line.times[1][which]) < (what.of)(&line.times[0][which]);
    let at = figures.crossover;
    let met = lines.iter().all(|l| l.ratio == at || faster(l) == (l.ratio > at));
    let first = lines.iter().rev().take_while(|l| faster(l)).last();
    let here = first.map_or_else(|| "at no ratio".to_owned(), |l| format!("from {}:1 on", l.ratio));
    let how = ["measured", "forecast"][which];
    let text = format!("figure {figure}, {}, {how}: the square corner is faster", what.name);
    Check::new(text, format!("above {at}:1"), here, met)
        .within("a step of the ratios, at the crossover itself")
}

/// The largest ratio at which the square corner is faster than the fast one alone.
pub fn worth(lines: &[Line], published: f64, model: f64) -> Check {
    let beats = |which: usize| {
        let better = lines.iter().filter(|l| l.times[1][which].execution < l.alone);
        better.map(|l| l.ratio).max().map_or_else(|| "no ratio".into(), |r| format!("{r}:1"))
    };
    let last = lines.last().map_or(0, |l| l.ratio);
    let here = format!(
        "{} measured, {} forecast, of ratios up to {last}:1; {}:1 by the model",
        beats(0),
        beats(1),
        short(if model < 100.0 { (10.0 * model).round() / 10.0 } else { model.round() })
    );
    let met = (model / published - 1.0).abs() <= 0.1;
    Check::new(
        "the square corner is faster than the fast processor alone up to",
        format!("about {published}:1"),
        here,
        met,
    )
    .within("10 %")
}

fn plot(figures: &Figures<'_>, figure: &str, what: What, lines: &[Line]) -> Plot {
    let series = |name: &str, party: usize, which: usize| Series {
        name: if which == 1 { format!("{name}, forecast") } else { name.to_owned() },
        points: lines.iter().map(|line| [line.ratio as f64, (what.of)(&line.times[party][which])]).collect(),
        dashed: which == 1,
        colour: party,
        ..Series::default()
    };
    let alone = Series {
        name: "the fast alone".into(),
        points: lines.iter().map(|line| [line.ratio as f64, line.alone]).collect(),
        dashed: true,
        colour: 2,
        ..Series::default()
    };
    Plot {
        title: [format!("As Fig. {figure} of Becker 2010: {}", what.name), figures.setting.clone()],
        axes: ["ratio of speeds".into(), "seconds of the original".into()],
        series: [("straight line", 0), ("square corner", 1)]
            .into_iter()
            .flat_map(|(name, party)| [0, 1].map(|which| series(name, party, which)))
            .chain((what.name == EXECUTION.name).then_some(alone))
            .collect(),
        references: Vec::new(),
        ..Plot::default()
    }
}
