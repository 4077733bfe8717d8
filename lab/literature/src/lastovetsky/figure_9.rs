//! Figures 8 and 9 of Lastovetsky and Reddy 2007 by the shipped surfaces: surfaces as curves, and the
//! speed-up of the network over X1 alone.

use super::table_2::SHIPPED;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, short};
use apportion::error::Result;
use apportion::model::{Surface, Surfaces};
use apportion::plan::shares::{fpm, makespan};
use apportion_report::{Plot, Series};

pub struct Figure9;

/// Sizes of the matrices whose curves are drawn.
const SIZES: [f64; 5] = [1000.0, 3000.0, 5000.0, 7000.0, 9000.0];

impl Experiment for Figure9 {
    fn about(&self) -> About {
        About {
            ids: &["fpm-9", "fpm-8.a", "fpm-8.d"],
            source: "Lastovetsky and Reddy 2007, 3.2 and 4",
            shows: "surfaces as curves, their cut at n = 9,000, and the speed-up over the fastest alone",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let surfaces = Surfaces::parse(SHIPPED, "fpm-2007-surfaces.json")?;
        let mut report = Report::default();
        let (x1, x5) = (&surfaces.surfaces[0], &surfaces.surfaces[4]);
        let million = |surface: &Surface, rows: f64, n: f64| surface.speed(&[rows, n]) / 1e6;
        let curves = |of: &dyn Fn(f64, f64) -> f64| -> Vec<Series> {
            let curve = |(colour, n): (usize, f64)| Series {
                name: format!("n = {n}"),
                points: (1..=40).map(|i| n * f64::from(i) / 40.0).map(|rows| [rows, of(rows, n)]).collect(),
                colour,
                ..Series::default()
            };
            SIZES.into_iter().enumerate().map(curve).collect()
        };
        let picture = |letter: &str, what: &str, axis: &str, series: Vec<Series>| Plot {
            title: [format!("As Fig. 8({letter}) of Lastovetsky and Reddy 2007"), what.into()],
            axes: ["rows n1".into(), axis.into()],
            series,
            ..Plot::default()
        };
        let speed = "million multiply-adds a second";
        report.draw("fpm-8.a", &picture("a", "speed of X1", speed, curves(&|rows, n| million(x1, rows, n))));
        report.draw("fpm-8.b", &picture("b", "speed of X5", speed, curves(&|rows, n| million(x5, rows, n))));
        let ratio = |rows: f64, n: f64| million(x1, rows, n) / million(x5, rows, n);
        report.draw("fpm-8.c", &picture("c", "speed of X1 over that of X5", "ratio", curves(&ratio)));
        let models = surfaces.section(&[None, Some(9000.0)])?;
        let cut = [0, 4].map(|i| Series {
            name: models[i].processor().to_owned(),
            points: (1..=60).map(|k| 150.0 * f64::from(k)).map(|x| [x, models[i].speed(x) * 81.0]).collect(),
            colour: i,
            ..Series::default()
        });
        report.draw("fpm-8.d", &picture("d", "the plane n = 9,000", speed, cut.into()));
        let lattice =
            || SIZES.into_iter().flat_map(|n| [0.02, 0.1, 0.3, 0.5, 0.8, 1.0].map(|part| (part * n, n)));
        let ratios: Vec<f64> = lattice().map(|(rows, n)| ratio(rows, n)).collect();
        let [least, most] = [
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratios.iter().copied().fold(0.0, f64::max),
        ];
        report.checks.push(
            Check::new(
                "Figure 8(c): the relative speed of X1 and X5 varies significantly with n1 and n",
                "significantly",
                format!("between {} and {}", short(least), short(most)),
                most > 4.0 * least,
            )
            .within("a factor of 4 or more, as 3.75 to 57 in section 4"),
        );
        let off = (1..=60)
            .map(|k| 150.0 * f64::from(k))
            .map(|rows| (models[0].speed(rows) * 81e6 / x1.speed(&[rows, 9000.0]) - 1.0).abs());
        let off = off.fold(0.0, f64::max);
        report.checks.push(
            Check::new(
                "Figure 8(d): the curve of X1 is its surface at n = 9,000",
                "equal",
                format!("within {off:.1e}"),
                off < 1e-2,
            )
            .within("1 %, between the points of the section"),
        );
        speed_up(&mut report, &surfaces)?;
        Ok(report)
    }
}

/// Figure 9: the product on X1 alone over the product on all, divided by the speed functions.
fn speed_up(report: &mut Report, surfaces: &Surfaces) -> Result<()> {
    let mut table = Table::new(
        "Figure 9: speed-up over X1 alone, without communication",
        &["n", "X1 alone, s", "all, s", "speed-up"],
    );
    let mut points = Vec::new();
    for n in (1..=10).map(|i| 1000 * i) {
        let models = surfaces.section(&[None, Some(n as f64)])?;
        let all = makespan(&models, &fpm(&models, n)?);
        let alone = models[0].seconds(n as f64);
        table.row([n.to_string(), format!("{alone:.2}"), format!("{all:.2}"), format!("{:.2}", alone / all)]);
        points.push([n as f64, alone / all]);
    }
    report.tables.push(table);
    let here: Vec<String> = points.iter().map(|p| format!("{:.2}", p[1])).collect();
    let above = points.iter().all(|p| p[1] > 1.0);
    report.checks.push(Check::new(
        "Figure 9: the network is faster than its most powerful computer",
        "at every size",
        if above { "at every size" } else { "not at every size" },
        above,
    ));
    report.checks.push(Check::incomparable(
        "Figure 9: the speed-ups at n = 1,000 to 10,000",
        "a picture without numbers",
        here.join(", "),
        "The curve is not in the text, and neither are the processors' speeds: the surfaces follow from \
         three ratios. Copies of B over the 100 Mbit/s switch, which the paper's times may include, are left \
         out.",
    ));
    report.draw(
        "fpm-9",
        &Plot {
            title: [
                "As Fig. 9 of Lastovetsky and Reddy 2007: speed-up over X1 alone".into(),
                "eight processors after Table 2, by the shipped surfaces, without communication".into(),
            ],
            axes: ["n, of n x n matrices".into(), "times as fast".into()],
            series: vec![Series { name: "speed functions".into(), points, ..Series::default() }],
            ..Plot::default()
        },
    );
    Ok(())
}
