//! `apportion study`.

use crate::console::{Console, monitor};
use crate::output::is_csv;
use apportion::error::{Error, Result};
use apportion::explore::{Distribution, Study, StudyRatio, StudyRow, study};
use apportion::output::write_whole;
use apportion::report::{Plot, Series, plot_svg, table};
use apportion::units;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion study --draws 100000 --processors 2..3\n  \
    apportion study --most-unequal 100 --searched 0 -o study.csv --svg pictures")]
pub struct Arguments {
    /// Numbers of processors: one, or a range.
    #[arg(long, value_name = "P|P..P", default_value = "1..40", value_parser = range)]
    pub processors: RangeInclusive<usize>,
    /// Draws for each number of processors.
    #[arg(long, value_name = "N", default_value_t = 2_000_000)]
    pub draws: u64,
    /// Draws for each that are also laid out by every method that auto compares, the slow search included.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub searched: u64,
    /// How speeds are drawn: uniform, simplex, log-uniform or pareto.
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub distribution: Distribution,
    /// Drop draws whose fastest is more than so many times as fast as their slowest.
    #[arg(long, value_name = "RATIO")]
    pub most_unequal: Option<f64>,
    /// Seed of the draws.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the figures: .csv, or .json.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw study-columns.svg and study-non-rectangular.svg in this directory.
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let csv = args.output.as_deref().map(is_csv).transpose()?;
    let wanted = Study {
        processors: args.processors.clone(),
        draws: args.draws,
        searched: args.searched,
        distribution: args.distribution,
        most_unequal: args.most_unequal,
        seed: args.seed,
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let monitor = monitor();
    let rows = console.watch("drawing", monitor, || study(&wanted, threads, monitor))?;
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
        let [columns, best] = plots(&wanted, &rows);
        write_whole(directory.join("study-columns.svg"), plot_svg(&columns).as_bytes())?;
        write_whole(directory.join("study-non-rectangular.svg"), plot_svg(&best).as_bytes())?;
    }
    if let (Some(path), Some(csv)) = (&args.output, csv) {
        let text = if csv { csv_of(&rows) } else { format!("{:#}\n", value(&wanted, &rows)) };
        write_whole(path, text.as_bytes())?;
    }
    console.result(|| value(&wanted, &rows), || text(&rows));
    Ok(())
}

/// Reads `3` or `1..40`; both ends are meant.
fn range(text: &str) -> std::result::Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (first.trim().parse(), last.trim_start_matches('=').trim().parse()) {
        (Ok(first), Ok(last)) => Ok(first..=last),
        _ => Err("write a number or a range, such as 1..40".to_owned()),
    }
}

fn value(wanted: &Study, rows: &[StudyRow]) -> Value {
    json!({
        "distribution": wanted.distribution.to_string(),
        "draws": wanted.draws,
        "searched": wanted.searched,
        "most_unequal": wanted.most_unequal,
        "seed": wanted.seed,
        "rows": rows,
    })
}

fn csv_of(rows: &[StudyRow]) -> String {
    let mut out = "processors,draws".to_owned();
    for name in ["columns", "corner", "columns_at_corner", "best", "searched", "columns_at_searched"] {
        if name == "corner" || name == "searched" {
            let _ = write!(out, ",{name}_draws");
        }
        let _ = write!(out, ",{name}_mean,{name}_ci,{name}_min,{name}_max");
    }
    out.push('\n');
    for row in rows {
        let _ = write!(out, "{},{}", row.processors, row.draws);
        put(&mut out, Some(row.columns));
        let _ = write!(out, ",{}", row.corner.map_or(0, |c| c.draws));
        put(&mut out, row.corner.map(|c| c.ratio));
        put(&mut out, row.corner.map(|c| c.columns));
        put(&mut out, Some(row.best));
        let _ = write!(out, ",{}", row.searched.map_or(0, |s| s.draws));
        put(&mut out, row.searched.map(|s| s.ratio));
        put(&mut out, row.searched.map(|s| s.columns));
        out.push('\n');
    }
    out
}

fn put(out: &mut String, ratio: Option<StudyRatio>) {
    let _ = match ratio {
        Some(r) => write!(out, ",{},{},{},{}", r.mean, r.ci, r.min, r.max),
        None => write!(out, ",,,,"),
    };
}

fn text(rows: &[StudyRow]) -> String {
    let figure = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
    let lines = rows.iter().map(|row| {
        let corner = row.corner;
        let part = corner.map_or(0.0, |c| 100.0 * c.draws as f64 / row.draws as f64);
        vec![
            row.processors.to_string(),
            figure(Some(row.columns.mean)),
            figure(Some(row.columns.min)),
            if corner.is_some() { format!("{part:.2} %") } else { "-".to_owned() },
            figure(corner.map(|c| c.columns.mean)),
            figure(corner.map(|c| c.ratio.mean)),
            corner.map_or_else(|| "-".to_owned(), |c| format!("{:.7}", c.ratio.min)),
            figure(Some(row.best.mean)),
            figure(row.searched.map(|s| s.columns.mean)),
            figure(row.searched.map(|s| s.ratio.mean)),
            figure(row.searched.map(|s| s.ratio.max)),
        ]
    });
    let header = [
        "p",
        "columns",
        "min",
        "corner wins",
        "columns there",
        "corner",
        "min",
        "best of both",
        "columns, searched",
        "search",
        "max",
    ];
    format!("cost / lower bound, means but where named min or max\n\n{}", table(&header, lines))
}

/// Figures 4.4 and 4.5 of Becker 2010, with the portfolio's mean beside them.
fn plots(wanted: &Study, rows: &[StudyRow]) -> [Plot; 2] {
    let series = |name: &str, colour, dashed, height: &dyn Fn(&StudyRow) -> Option<f64>| Series {
        name: name.to_owned(),
        points: rows.iter().map(|r| [r.processors as f64, height(r).unwrap_or(f64::NAN)]).collect(),
        dashed,
        colour,
    };
    // As in the thesis, two and three processors stand for the draws where the square corner wins.
    let corner = |row: &StudyRow| row.corner.filter(|_| (2..=3).contains(&row.processors));
    let limit = wanted.most_unequal.map_or_else(String::new, |most| format!(", at most {most}:1"));
    let draws = units::show_count(u128::from(wanted.draws));
    let beneath = format!("{draws} draws each, {} speeds{limit}", wanted.distribution);
    let plot = |title: &str, series: Vec<Series>| Plot {
        title: [title.to_owned(), beneath.clone()],
        axes: ["processors".to_owned(), "cost / lower bound".to_owned()],
        series: series.into_iter().filter(|s| s.points.iter().any(|p| p[1].is_finite())).collect(),
        references: Vec::new(),
    };
    [
        plot(
            "Optimal columns",
            vec![
                series("mean", 0, false, &|r| Some(r.columns.mean)),
                series("minimum", 0, true, &|r| Some(r.columns.min)),
            ],
        ),
        plot(
            "Columns, but the square corner for 2 and 3 where it wins",
            vec![
                series("mean", 0, false, &|r| Some(corner(r).map_or(r.columns.mean, |c| c.ratio.mean))),
                series("minimum", 0, true, &|r| Some(corner(r).map_or(r.columns.min, |c| c.ratio.min))),
                series("mean, best of all methods", 1, false, &|r| r.searched.map(|s| s.ratio.mean)),
            ],
        ),
    ]
}
