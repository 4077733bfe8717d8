//! Three processors: Tables 6.1 and 6.2 (stars), Figures 6.9 and 6.10 (fully connected).

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::Result;
use apportion::plan::shapes::{LayoutMethod, SquareCorner, StraightLine};
use apportion::plan::{Layout, Metrics, Shape, star_volume};
use apportion_report::{Plot, Series};

const SIZE: u64 = 60_000;

fn shape() -> Result<Shape> {
    Shape::new(SIZE, SIZE, SIZE, "table")
}

fn square() -> f64 {
    (SIZE as f64).powi(2)
}

/// Areas of three processors that fit two squares: the last has s2 > s3.
const AREAS: [[f64; 3]; 4] = [[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.5, 0.25, 0.25], [0.75, 0.16, 0.09]];

/// A layout of three processors.
type Line = &'static dyn LayoutMethod;
/// A volume by centre and areas.
type Formula = fn(usize, [f64; 3]) -> f64;

/// Tables 6.1 and 6.2.
pub struct Tables;

/// Table 6.1: the volume of the straight line by its centre, which is a bound for centres 2 and 3.
fn table_6_1(centre: usize, [_, s2, s3]: [f64; 3]) -> f64 {
    match centre {
        0 => 1.0 + 2.0 * s2 + 2.0 * s3,
        1 => 1.0 + s2 + 2.0 * s3,
        _ => 1.0 + 2.0 * s2 + s3,
    }
}

/// Table 6.2 as printed: the volume of the square corner by its centre.
fn table_6_2(centre: usize, [_, s2, s3]: [f64; 3]) -> f64 {
    let (a, b) = (s2.sqrt(), s3.sqrt());
    match centre {
        0 => 2.0 * (a + b),
        1 => 2.0 * (2.0 * a + b),
        _ => 2.0 * (a + 2.0 * b),
    }
}

impl Experiment for Tables {
    fn about(&self) -> About {
        About {
            ids: &["becker-table-6.1", "becker-table-6.2"],
            source: "Becker 2010, 6.1.1",
            shows: "volumes on a star, by the processor in its centre",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        let mut least = f64::INFINITY;
        let both: [(&str, Line, Formula); 2] =
            [("6.1", &StraightLine, table_6_1), ("6.2", &SquareCorner, table_6_2)];
        for (number, method, formula) in both {
            let title = format!("Table {number}: volume by centre, in N^2, printed and here");
            let mut table =
                Table::new(title, &["areas", "centre 1", "here", "centre 2", "here", "centre 3", "here"]);
            let mut met = [true; 3];
            for areas in AREAS {
                let layout = method.layout(shape()?, &areas)?;
                let mut cells = vec![areas.map(|a| a.to_string()).join(" ")];
                for (centre, met) in met.iter_mut().enumerate() {
                    let here = star_volume(&layout, centre)? as f64 / square();
                    let printed = formula(centre, areas);
                    cells.extend([format!("{printed:.4}"), format!("{here:.4}")]);
                    // The line's volumes of centres 2 and 3 are bounds from below.
                    *met &= match (number, centre) {
                        ("6.1", 1 | 2) => here > printed - 1e-3,
                        _ => (here - printed).abs() < 1e-3,
                    };
                }
                table.row(cells);
                if number == "6.2" {
                    least = least.min(table_6_1(0, areas) - table_6_2(0, areas));
                }
            }
            report.tables.push(table);
            for (centre, met) in met.into_iter().enumerate() {
                let sign = if number == "6.1" && centre > 0 { "more than printed" } else { "as printed" };
                let here = if met { sign } else { "not as printed" };
                let check = Check::new(format!("Table {number}, centre {}", centre + 1), sign, here, met)
                    .within("0.001 N^2");
                let exchanged = number == "6.2" && centre > 0;
                report.checks.push(if !exchanged {
                    check
                } else {
                    check.unless(
                        Verdict::PublishedWrong,
                        "The lines of centres 2 and 3 are exchanged. A centre's own \
                         square is not relayed, the other one's data cross two links.",
                    )
                });
            }
        }
        report.checks.push(Check::new(
            "with the fastest in the centre the square corner moves less",
            "always",
            format!("by {} N^2 or more", short(least)),
            least > -1e-9,
        ));
        Ok(report)
    }
}

/// Figures 6.9 and 6.10.
pub struct Surface;

/// (6.11).
fn z(s2: f64, s3: f64) -> f64 {
    s2.sqrt() + s3.sqrt() - 1.0 + (1.0 - s2 - s3) / 2.0
}

/// The s2 at which z is 0 for this s3; `None` if it is positive for every s2. z rises with s2 as long as
/// s1 = 1 - s2 - s3 is not negative, and ends at z(1 - s3, s3) = sqrt(1 - s3) + sqrt(s3) - 1, which is 0 for
/// s3 = 0 (the curve begins at s2 = 1) and positive for 0 < s3 < 1.
fn contour(s3: f64) -> Option<f64> {
    let (mut low, mut high) = (0.0, 1.0 - s3);
    if z(low, s3) >= 0.0 {
        return None;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if z(middle, s3) < 0.0 { low = middle } else { high = middle }
    }
    Some(0.5 * (low + high))
}

impl Experiment for Surface {
    fn about(&self) -> About {
        About {
            ids: &["becker-6.9", "becker-6.10"],
            source: "Becker 2010, 6.1.2",
            shows: "where the square corner moves less than the straight line, fully connected",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        let mut off = 0.0_f64;
        let mut cuts = Vec::new();
        for (colour, s3) in [0.01, 0.05, 0.1, 0.2].into_iter().enumerate() {
            let mut points = Vec::new();
            for i in 1..=25 {
                let s2 = f64::from(i) / 100.0;
                points.push([s2, z(s2, s3)]);
                let areas = [1.0 - s2 - s3, s2, s3];
                let Ok(corner) = SquareCorner.layout(shape()?, &areas) else { continue };
                let moved = |l: &Layout| Metrics::of_layout(l, 1.0).volume.unwrap_or(0) as f64;
                let difference = (moved(&corner) - moved(&StraightLine.layout(shape()?, &areas)?)) / square();
                // Twice z: volumes are 2 (sqrt s2 + sqrt s3) and 1 + s2 + s3.
                off = off.max((difference - 2.0 * z(s2, s3)).abs());
            }
            cuts.push(Series {
                name: format!("s3 = {s3}"),
                points,
                dashed: false,
                colour,
                ..Series::default()
            });
        }
        report.checks.push(Check::new(
            "layouts differ by 2 z N^2, z of (6.11)",
            "equal",
            format!("within {off:.1e} N^2"),
            off < 1e-3,
        ));
        let on_axis = z(0.5, 0.0);
        report.checks.push(Check::near("z at s2 = 1/2, s3 = 0", 0.5_f64.sqrt() - 0.75, on_axis, 1e-12));
        let start = contour(0.0).unwrap_or(f64::NAN);
        report.checks.push(Check::near("the curve z = 0 meets s3 = 0 at s2", 1.0, start, 1e-6));
        // s2 = s3 = s: 2 sqrt(s) - 1/2 - s = 0.
        let equal = (1.0 - 0.5_f64.sqrt()).powi(2);
        report.checks.push(Check::incomparable(
            "with s2 = s3 the corner wins in about 20 % of the ratios (6.1.5)",
            "about 20 %",
            format!(
                "s2 < {}: {:.0} % of all s2, which go to 1/2; {:.0} % of those to 1/3, where s1 is the \
                 fastest; {:.0} % of those to 1/4, where the squares fit",
                short(equal),
                200.0 * equal,
                300.0 * equal,
                400.0 * equal
            ),
            "The thesis does not say which ratios it counts: of s2 from 0 to 1/2, 1/3 or 1/4, and evenly \
             over s2 or otherwise.",
        ));
        report.draw(
            "becker-6.9",
            &Plot {
                title: [
                    "As Fig. 6.9 of Becker 2010: cuts through the surface (6.11)".into(),
                    "the square corner moves less where z < 0".into(),
                ],
                axes: ["s2".into(), "z".into()],
                series: cuts,
                references: vec![(0.0, "equal volumes".into())],
                ..Plot::default()
            },
        );
        // The curve is steep where s3 is small: the abscissae are squares.
        let points =
            (0..=100).map(|i| 0.2 * (f64::from(i) / 100.0).powi(2)).filter_map(|s3| Some([s3, contour(s3)?]));
        let line = Series {
            name: "z = 0".into(),
            points: points.collect(),
            dashed: false,
            colour: 0,
            ..Series::default()
        };
        let diagonal = (0..=20).map(|i| f64::from(i) / 100.0).map(|s| [s, s]).collect();
        report.draw(
            "becker-6.10",
            &Plot {
                title: [
                    "As Fig. 6.10 of Becker 2010: z = 0 of (6.11)".into(),
                    "the square corner moves less below the curve".into(),
                ],
                axes: ["s3".into(), "s2".into()],
                series: vec![
                    line,
                    Series {
                        name: "s2 = s3".into(),
                        points: diagonal,
                        dashed: true,
                        colour: 1,
                        ..Series::default()
                    },
                ],
                ..Plot::default()
            },
        );
        let mut table = Table::new("The curve z = 0", &["s3", "s2"]);
        for s3 in [0.0, 0.001, 0.02, 0.05, 0.1, 0.15] {
            table.row([s3.to_string(), contour(s3).map_or_else(|| "none".into(), short)]);
        }
        report.tables.push(table);
        Ok(report)
    }
}
