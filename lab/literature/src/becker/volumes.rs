//! Volumes against the ratio of two processors: Figures 5.3 to 5.7. Layouts beside the formulae.

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, short};
use apportion::error::Result;
use apportion::plan::shapes::{Communication, Hybrid, LayoutMethod, SquareCorner, StraightLine};
use apportion::plan::{Layout, Metrics, Shape};
use apportion_report::{Plot, Series};

/// Order of the matrices whose layouts are counted.
const SIZE: u64 = 100_000;

/// What the curves of a figure count.
type Count = fn(&Layout) -> f64;

/// All elements over N^2.
fn volume(layout: &Layout) -> f64 {
    Metrics::of_layout(layout, 1.0).volume.map_or(f64::NAN, |v| v as f64) / (SIZE as f64).powi(2)
}

/// Elements of the busiest direction over N^2.
fn dominant(layout: &Layout) -> f64 {
    Metrics::of_layout(layout, 1.0).largest_direction().map_or(f64::NAN, |v| v as f64) / (SIZE as f64).powi(2)
}

/// Elements from one processor to another over N^2.
fn direction(layout: &Layout, from: usize, to: usize) -> f64 {
    let table = Metrics::of_layout(layout, 1.0).volume_matrix;
    table.map_or(f64::NAN, |t| t[to][from] as f64) / (SIZE as f64).powi(2)
}

/// (5.4).
fn line(_: f64) -> f64 {
    1.0
}

/// (5.1) with (5.6).
fn corner(ratio: f64) -> f64 {
    2.0 / (1.0 + ratio).sqrt()
}

/// (5.8).
fn line_dominant(ratio: f64) -> f64 {
    ratio / (1.0 + ratio)
}

/// (5.11): from the faster processor to the slower.
pub fn corner_to_slow(ratio: f64) -> f64 {
    let share = 1.0 / (1.0 + ratio);
    2.0 * (share.sqrt() - share)
}

/// (5.12): from the slower processor to the faster.
pub fn corner_to_fast(ratio: f64) -> f64 {
    2.0 / (1.0 + ratio)
}

/// (5.13).
fn corner_dominant(ratio: f64) -> f64 {
    corner_to_slow(ratio).max(corner_to_fast(ratio))
}

fn shape() -> Result<Shape> {
    Shape::new(SIZE, SIZE, SIZE, "figure")
}

/// The ratio, by bisection between 1 and 25, at which the corner's layout begins to count less than the
/// line's.
fn crossover(count: Count) -> Result<f64> {
    let (mut low, mut high) = (1.0, 25.0);
    while high - low > 1e-4 {
        let ratio: f64 = 0.5 * (low + high);
        let weights = [ratio, 1.0];
        let less = count(&SquareCorner.layout(shape()?, &weights)?)
            < count(&StraightLine.layout(shape()?, &weights)?);
        if less { high = ratio } else { low = ratio }
    }
    Ok(high)
}

/// A curve: its name, the layouts, what is counted, and the formula.
struct Curve {
    name: &'static str,
    method: &'static dyn LayoutMethod,
    count: Count,
    formula: fn(f64) -> f64,
}

const LINE: Curve = Curve { name: "straight line", method: &StraightLine, count: volume, formula: line };
const CORNER: Curve = Curve { name: "square corner", method: &SquareCorner, count: volume, formula: corner };
const HYBRID: Curve = Curve {
    name: "hybrid",
    method: &Hybrid { communication: Communication::Serial, centre: None },
    count: volume,
    formula: |ratio| line(ratio).min(corner(ratio)),
};

/// A figure: id, title, and its curves.
struct Figure {
    id: &'static str,
    title: &'static str,
    curves: &'static [Curve],
}

/// Draws a figure from its layouts, and compares every point with the formula.
fn draw(figure: &Figure, report: &mut Report) -> Result<()> {
    let ratios: Vec<f64> = (4..=100).map(|i| f64::from(i) / 4.0).collect();
    let header: Vec<&str> =
        ["ratio"].into_iter().chain(figure.curves.iter().flat_map(|c| [c.name, "formula"])).collect();
    let number = figure.id.trim_start_matches("becker-");
    let mut table = Table::new(format!("Figure {number}: {}, in N^2", figure.title), &header);
    let mut off = 0.0_f64;
    let mut series = Vec::new();
    let mut columns = Vec::new();
    for (colour, curve) in figure.curves.iter().enumerate() {
        let mut points = Vec::new();
        for &ratio in &ratios {
            let counted = (curve.count)(&curve.method.layout(shape()?, &[ratio, 1.0])?);
            off = off.max((counted - (curve.formula)(ratio)).abs());
            points.push([ratio, counted]);
        }
        columns.push(points.clone());
        series.push(Series { name: curve.name.into(), points, dashed: false, colour, ..Series::default() });
    }
    for (i, &ratio) in ratios
        .iter()
        .enumerate()
        .filter(|(_, r)| [1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0, 15.0, 20.0, 25.0].contains(*r))
    {
        let cells = figure.curves.iter().zip(&columns);
        let cells = cells
            .flat_map(|(curve, points)| [points[i][1], (curve.formula)(ratio)].map(|x| format!("{x:.4}")));
        table.row([format!("{ratio}:1")].into_iter().chain(cells));
    }
    report.tables.push(table);
    report.checks.push(Check::new(
        format!("figure {number}: layouts move what the formulae say, at 97 ratios"),
        "equal",
        format!("within {off:.1e} N^2"),
        off < 1e-4,
    ));
    report.draw(
        figure.id,
        &Plot {
            title: [format!("As Fig. {number} of Becker 2010"), figure.title.into()],
            axes: ["ratio of speeds".into(), "elements, in N^2".into()],
            series,
            ..Plot::default()
        },
    );
    Ok(())
}

/// Figures 5.3 and 5.4.
pub struct Serial;

impl Experiment for Serial {
    fn about(&self) -> About {
        About {
            ids: &["becker-5.3", "becker-5.4"],
            source: "Becker 2010, 5.3",
            shows: "volume against ratio, serial communications: straight line, square corner, hybrid",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        let figures = [
            Figure { id: "becker-5.3", title: "volume, serial communications", curves: &[LINE, CORNER] },
            Figure {
                id: "becker-5.4",
                title: "volume, serial communications, hybrid",
                curves: &[LINE, HYBRID],
            },
        ];
        for figure in &figures {
            draw(figure, &mut report)?;
        }
        report.checks.push(Check::near("equal volumes at the ratio", 3.0, crossover(volume)?, 1e-3));
        let half = volume(&SquareCorner.layout(shape()?, &[15.0, 1.0])?);
        report.checks.push(Check::near("the corner's volume over the line's at 15:1", 0.5, half, 1e-4));
        Ok(report)
    }
}

/// Figures 5.5 to 5.7.
pub struct Parallel;

impl Experiment for Parallel {
    fn about(&self) -> About {
        About {
            ids: &["becker-5.5", "becker-5.6", "becker-5.7"],
            source: "Becker 2010, 5.4",
            shows: "busiest direction against ratio, parallel communications",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        const LINE_BUSY: Curve =
            Curve { name: "straight line", method: &StraightLine, count: dominant, formula: line_dominant };
        const CORNER_BUSY: Curve =
            Curve { name: "square corner", method: &SquareCorner, count: dominant, formula: corner_dominant };
        const HYBRID_BUSY: Curve = Curve {
            name: "hybrid",
            method: &Hybrid { communication: Communication::Parallel, centre: None },
            count: dominant,
            formula: |ratio| line_dominant(ratio).min(corner_dominant(ratio)),
        };
        const TO_SLOW: Curve = Curve {
            name: "corner, 1 to 2",
            method: &SquareCorner,
            count: |layout| direction(layout, 0, 1),
            formula: corner_to_slow,
        };
        const TO_FAST: Curve = Curve {
            name: "corner, 2 to 1",
            method: &SquareCorner,
            count: |layout| direction(layout, 1, 0),
            formula: corner_to_fast,
        };
        let mut report = Report::default();
        let figures = [
            Figure {
                id: "becker-5.5",
                title: "busiest direction, parallel communications",
                curves: &[LINE_BUSY, CORNER_BUSY],
            },
            Figure {
                id: "becker-5.6",
                title: "busiest direction, parallel communications, hybrid",
                curves: &[LINE_BUSY, HYBRID_BUSY],
            },
            Figure {
                id: "becker-5.7",
                title: "both directions, parallel communications",
                curves: &[LINE_BUSY, TO_SLOW, TO_FAST, HYBRID_BUSY],
            },
        ];
        for figure in &figures {
            draw(figure, &mut report)?;
        }
        report.checks.push(Check::near(
            "equal busiest directions at the ratio",
            2.0,
            crossover(dominant)?,
            1e-3,
        ));
        let both = [direction(&SquareCorner.layout(shape()?, &[3.0, 1.0])?, 0, 1), corner_to_fast(3.0)];
        report.checks.push(Check::new(
            "the corner's two directions are equal at 3:1",
            "1/2 each",
            short(both[0]),
            (both[0] - both[1]).abs() < 1e-9,
        ));
        Ok(report)
    }
}
