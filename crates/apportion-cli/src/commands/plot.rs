//! `apportion plot`.

use crate::args::Sources;
use crate::console::Console;
use crate::prepare::processors::Processors;
use apportion::error::Result;
use apportion::model::Model;
use apportion::output::write_whole;
use apportion::plan::shares;
use apportion::report::{Plot, Series, pairs, plot_svg};
use apportion::units;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Sizes at which a curve is drawn.
const SAMPLES: u32 = 400;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion plot --models models.json --svg speeds.svg\n  \
    apportion plot --platform platforms/fpm-2007-table-2.toml --units 100000000 --svg line.svg")]
pub struct Arguments {
    #[command(flatten)]
    pub sources: Sources,
    /// Draw the line through the origin on which so many units end together, and each share on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 53))]
    pub units: Option<u64>,
    /// The largest size shown; default: the last point, or half as much again as the largest share.
    #[arg(long, value_name = "SIZE", value_parser = clap::value_parser!(u64).range(1..=1 << 53))]
    pub to: Option<u64>,
    /// The picture to write.
    #[arg(long, value_name = "FILE")]
    pub svg: PathBuf,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let Processors { models, platform, .. } = args.sources.processors(1.0)?;
    let division = args.units.map(|n| shares::fpm(&models, n).map(|shares| (n, shares))).transpose()?;
    let to = args.to.map_or_else(|| widest(&models, division.as_ref().map(|d| &d.1)), |to| to as f64);
    let mut series: Vec<Series> = Vec::new();
    for (colour, model) in models.iter().enumerate() {
        series.push(curve(model, to, model.processor().to_owned(), colour, false));
        if model.has_band() {
            let name = |edge: &str| format!("{} at its {edge}", model.processor());
            series.push(curve(&model.slowest(), to, name("slowest"), colour, true));
            series.push(curve(&model.fastest(), to, name("fastest"), colour, true));
        }
    }
    let mut subtitle = match (&args.sources.platform, &args.sources.models) {
        (None, Some(models)) => models.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        (None, None) => "given speeds".into(),
        (Some(_), _) => platform.name,
    };
    if let Some((n, shares)) = &division {
        let seconds = shares::makespan(&models, shares);
        let fastest = series.iter().flat_map(|s| &s.points).map(|p| p[1]).fold(0.0, f64::max);
        let end = to.min(seconds * fastest);
        let mut line: Vec<[f64; 2]> = shares.iter().map(|&x| [x as f64, x as f64 / seconds]).collect();
        line.extend([[0.0, 0.0], [end, end / seconds]]);
        line.sort_by(|a, b| a[0].total_cmp(&b[0]));
        line.retain(|p| p[0] <= end);
        series.push(Series {
            name: format!("all end after {}", units::show_seconds(seconds)),
            points: line,
            dashed: true,
            colour: models.len(),
        });
        subtitle = format!("{} units divided, {subtitle}", units::show_count(u128::from(*n)));
    }
    let names = [scaled(&mut series, 0), scaled(&mut series, 1)];
    let plot = Plot {
        title: ["Speed as a function of size".into(), subtitle],
        axes: [format!("{}units", names[0]), format!("{}units per second", names[1])],
        series,
        references: Vec::new(),
    };
    write_whole(&args.svg, plot_svg(&plot).as_bytes())?;
    let path = args.svg.display().to_string();
    let curves = plot.series.len();
    console.result(
        || json!({"svg": path, "curves": curves, "shares": division.as_ref().map(|d| &d.1)}),
        || pairs(&[("picture", path.clone()), ("curves", curves.to_string())]),
    );
    Ok(())
}

/// The largest size worth showing.
fn widest(models: &[Model], shares: Option<&Vec<u64>>) -> f64 {
    match shares {
        Some(shares) => 1.5 * shares.iter().copied().max().unwrap_or(1) as f64,
        None => models.iter().filter_map(|m| m.points().last()).map(|p| p.size).fold(1.0, f64::max),
    }
}

/// Brings one axis below a thousand or so, in powers of a thousand; how to call what it is then in.
fn scaled(series: &mut [Series], axis: usize) -> &'static str {
    let most = series.iter().flat_map(|s| &s.points).map(|p| p[axis]).fold(0.0, f64::max);
    let names = [("", 1.0), ("thousand ", 1e3), ("million ", 1e6), ("billion ", 1e9), ("trillion ", 1e12)];
    let (name, factor) = names.into_iter().rev().find(|(_, f)| most >= 5.0 * f).unwrap_or(names[0]);
    series.iter_mut().flat_map(|s| &mut s.points).for_each(|p| p[axis] /= factor);
    name
}

/// Speed from 0 to `to`, no further than the cap.
fn curve(model: &Model, to: f64, name: String, colour: usize, dashed: bool) -> Series {
    let end = model.max_size().map_or(to, |cap| cap.min(to));
    let at = |i: u32| end * f64::from(i) / f64::from(SAMPLES);
    let points = (1..=SAMPLES).map(|i| [at(i), model.speed(at(i))]).collect();
    Series { name, points, dashed, colour }
}
