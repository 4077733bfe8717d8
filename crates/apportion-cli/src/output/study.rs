//! The Monte Carlo study's figures as text, JSON, CSV and pictures.

use super::extended;
use apportion::explore::{Study, StudyRatio, StudyRow};
use apportion::units;
use apportion_report::{Plot, Series, table};
use serde_json::{Value, json};
use std::fmt::Write;

/// The JSON for programs.
pub fn value(wanted: &Study, rows: &[StudyRow]) -> Value {
    let drawn = json!({"distribution": wanted.distribution});
    extended(extended(drawn, wanted), json!({"rows": rows}))
}

/// One line per number of processors.
pub fn csv_of(rows: &[StudyRow]) -> String {
    let mut out = "processors,draws".to_owned();
    for name in ["columns", "corner", "columns_at_corner", "best", "searched", "columns_at_searched"] {
        if name == "corner" || name == "searched" {
            let _ = write!(out, ",{name}_draws");
        }
        let _ = write!(out, ",{name}_mean,{name}_ci,{name}_min,{name}_max");
    }
    // Only where machines were drawn: tables of costs stay as they are.
    let drawn = rows.iter().any(|row| row.subsets.is_some());
    if drawn {
        out += ",left_out";
        for name in ["gain", "over_bound"] {
            let _ = write!(out, ",{name}_mean,{name}_ci,{name}_min,{name}_max");
        }
    }
    let deep = rows.iter().any(|row| row.boxes.is_some());
    for name in ["boxes", "flat"].iter().filter(|_| deep) {
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
        if drawn {
            let _ = write!(out, ",{}", row.subsets.map_or(0, |s| s.left_out));
            put(&mut out, row.subsets.map(|s| s.gain));
            put(&mut out, row.subsets.map(|s| s.over_bound));
        }
        if deep {
            put(&mut out, row.boxes.map(|b| b.boxes));
            put(&mut out, row.boxes.map(|b| b.flat));
        }
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

/// The text for readers.
pub fn text(rows: &[StudyRow]) -> String {
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
    let costs = table(&header, lines);
    format!(
        "cost / lower bound; means, unless the column is named min or max\n\n{costs}{}{}",
        subsets(rows),
        boxes(rows)
    )
}

/// What leaving processors out gains on random machines, if any were drawn.
fn subsets(rows: &[StudyRow]) -> String {
    let lines: Vec<Vec<String>> = rows
        .iter()
        .filter_map(|row| {
            let found = row.subsets?;
            Some(vec![
                row.processors.to_string(),
                format!("{:.0} %", 100.0 * found.left_out as f64 / found.draws as f64),
                format!("{:.3}", found.gain.mean),
                format!("{:.3}", found.gain.max),
                format!("{:.3}", found.over_bound.mean),
                format!("{:.3}", found.over_bound.max),
            ])
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let header = ["p", "leave some out", "all / auto", "max", "auto / bound", "max"];
    let heading = "time on machines of two clusters: of all processors over auto, and of auto over its bound";
    format!("\n{heading}\n\n{}", table(&header, lines))
}

/// How near boxes come to the least volume, if products with a long inner dimension were drawn.
fn boxes(rows: &[StudyRow]) -> String {
    let line = |row: &StudyRow| {
        let found = row.boxes?;
        let figures = [found.flat.mean, found.flat.max, found.boxes.mean, found.boxes.max];
        Some([row.processors.to_string()].into_iter().chain(figures.map(|x| format!("{x:.3}"))).collect())
    };
    let lines: Vec<Vec<String>> = rows.iter().filter_map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    let heading = "volume / least volume of any plan, m : k : n from 1:1:1 to 1:64:1";
    let header = ["p", "rectangles of C", "max", "boxes", "max"];
    format!("\n{heading}\n\n{}", table(&header, lines))
}

/// Figures 4.4 and 4.5 of Becker 2010, with the portfolio's mean beside them.
pub fn plots(wanted: &Study, rows: &[StudyRow]) -> [Plot; 2] {
    let series = |name: &str, colour, dashed, height: &dyn Fn(&StudyRow) -> Option<f64>| Series {
        name: name.to_owned(),
        points: rows.iter().map(|r| [r.processors as f64, height(r).unwrap_or(f64::NAN)]).collect(),
        dashed,
        colour,
        ..Series::default()
    };
    let limit = wanted.most_unequal.map_or_else(String::new, |most| format!(", at most {most}:1"));
    let draws = units::show_count(u128::from(wanted.draws));
    let searched = units::show_count(u128::from(wanted.searched));
    let beneath = format!("{draws} draws each, {} speeds{limit}", wanted.distribution);
    let plot = |title: &str, series: Vec<Series>| Plot {
        title: [title.to_owned(), beneath.clone()],
        axes: ["processors".to_owned(), "sum of half-perimeters / lower bound".to_owned()],
        series: series.into_iter().filter(|s| s.points.iter().any(|p| p[1].is_finite())).collect(),
        ..Plot::default()
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
            "Columns or square corner, whichever costs less, and the best of all methods",
            vec![
                series("mean", 0, false, &|r| Some(r.best.mean)),
                series("minimum", 0, true, &|r| Some(r.best.min)),
                series(&format!("all methods, {searched} draws"), 1, false, &|r| {
                    r.searched.map(|s| s.ratio.mean)
                }),
                series(&format!("columns, same {searched} draws"), 2, true, &|r| {
                    r.searched.map(|s| s.columns.mean)
                }),
            ],
        ),
    ]
}
