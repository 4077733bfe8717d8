//! Speed functions as curves.

use apportion::model::{Model, only_ratios};
use apportion::plan::shares;
use apportion::report::{Plot, Series};
use apportion::units;

/// Number of sizes at which a curve is drawn.
const SAMPLES: u32 = 400;

/// Speeds as functions of size up to `to`, and the line through the origin on which a division of units
/// finishes.
pub fn speeds(
    models: &[Model],
    division: Option<&(u64, Vec<u64>)>,
    to: Option<u64>,
    subtitle: String,
) -> Plot {
    let to = to.map_or_else(|| widest(models, division.map(|d| &d.1)), |to| to as f64);
    let mut series: Vec<Series> = Vec::new();
    for (colour, model) in models.iter().enumerate() {
        series.push(curve(model, to, model.processor().to_owned(), colour, false));
        if model.has_band() {
            let name = |edge: &str| format!("{} at its {edge}", model.processor());
            series.push(curve(&model.slowest(), to, name("slowest"), colour, true));
            series.push(curve(&model.fastest(), to, name("fastest"), colour, true));
        }
    }
    let mut subtitle = subtitle;
    if let Some((n, shares)) = division {
        let line = finish(models, shares, to, &series);
        series.push(line);
        subtitle = format!("{} units divided, {subtitle}", units::show_count(u128::from(*n)));
    }
    let names = [scaled(&mut series, 0), scaled(&mut series, 1)];
    let speed = if only_ratios(models) { "relative speed" } else { "units per second" };
    Plot {
        title: ["Speed as a function of size".into(), subtitle],
        axes: [format!("{}units", names[0]), format!("{}{speed}", names[1])],
        series,
        references: Vec::new(),
    }
}

/// The line on which all shares take the time of the slowest, no higher than the other curves.
fn finish(models: &[Model], shares: &[u64], to: f64, series: &[Series]) -> Series {
    let seconds = shares::makespan(models, shares);
    let fastest = series.iter().flat_map(|s| &s.points).map(|p| p[1]).fold(0.0, f64::max);
    let end = to.min(seconds * fastest);
    let mut line: Vec<[f64; 2]> = shares.iter().map(|&x| [x as f64, x as f64 / seconds]).collect();
    line.extend([[0.0, 0.0], [end, end / seconds]]);
    line.sort_by(|a, b| a[0].total_cmp(&b[0]));
    line.retain(|p| p[0] <= end);
    let name = match only_ratios(models) {
        true => "all finish together".to_owned(),
        false => format!("all finish after {}", units::show_seconds(seconds)),
    };
    Series { name, points: line, dashed: true, colour: models.len() }
}

/// The largest size to show.
fn widest(models: &[Model], shares: Option<&Vec<u64>>) -> f64 {
    match shares {
        Some(shares) => 1.5 * shares.iter().copied().max().unwrap_or(1) as f64,
        None => models.iter().filter_map(|m| m.points().last()).map(|p| p.size).fold(1.0, f64::max),
    }
}

/// Scales one axis to below about a thousand by a power of a thousand; returns the power's name.
fn scaled(series: &mut [Series], axis: usize) -> &'static str {
    let most = series.iter().flat_map(|s| &s.points).map(|p| p[axis]).fold(0.0, f64::max);
    let names = [("", 1.0), ("thousand ", 1e3), ("million ", 1e6), ("billion ", 1e9), ("trillion ", 1e12)];
    let (name, factor) = names.into_iter().rev().find(|(_, f)| most >= 5.0 * f).unwrap_or(names[0]);
    series.iter_mut().flat_map(|s| &mut s.points).for_each(|p| p[axis] /= factor);
    name
}

/// Speed from 0 to `to`, but not beyond the cap.
fn curve(model: &Model, to: f64, name: String, colour: usize, dashed: bool) -> Series {
    let end = model.max_size().map_or(to, |cap| cap.min(to));
    let at = |i: u32| end * f64::from(i) / f64::from(SAMPLES);
    let points = (1..=SAMPLES).map(|i| [at(i), model.speed(at(i))]).collect();
    Series { name, points, dashed, colour }
}
