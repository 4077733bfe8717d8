//! Section 3 of Lastovetsky and Reddy 2007: Algorithms 1, 1.1 and 1.2 as printed, with the number of
//! bisections, beside the library's shares; Propositions 1 to 4.

use super::table_2::SHIPPED;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::Result;
use apportion::model::{Model, Surfaces};
use apportion::plan::shares::{exact_interpolated, fpm, makespan};
use apportion_report::{Plot, Series};

/// Algorithm 1.1: the approximation, the lines at its end, and the number of bisections.
struct Approximation {
    shares: Vec<u64>,
    bisections: u32,
    /// Slopes of the initial lines U and L, in units a second over units.
    initial: [f64; 2],
    /// The slope of the upper line at the end.
    upper: f64,
}

/// Where the line through the origin with this slope meets a speed function, up to `most`.
fn meets(model: &Model, slope: f64, most: f64) -> f64 {
    // x / s(x) rises with x: every line meets the function once.
    let (mut low, mut high) = (0.0, most);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if model.speed(middle) > slope * middle { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Algorithm 1.1 as printed.
fn algorithm_1_1(models: &[Model], n: u64) -> Approximation {
    let (p, most) = (models.len() as f64, 2.0 * n as f64);
    let even = n as f64 / p;
    let speeds = || models.iter().map(|model| model.speed(even));
    let mut upper = speeds().fold(0.0, f64::max) / even;
    let mut lower = speeds().fold(f64::INFINITY, f64::min) / even;
    let initial = [upper, lower];
    let at = |slope: f64| -> Vec<f64> { models.iter().map(|model| meets(model, slope, most)).collect() };
    let mut bisections = 0;
    loop {
        let (x_upper, x_lower) = (at(upper), at(lower));
        if x_upper.iter().zip(&x_lower).all(|(u, l)| l - u < 1.0) {
            let shares = x_upper.iter().map(|x| x.floor() as u64).collect();
            return Approximation { shares, bisections, initial, upper };
        }
        let middle = (0.5 * (upper.atan() + lower.atan())).tan();
        if at(middle).iter().sum::<f64>() <= n as f64 {
            upper = middle
        } else {
            lower = middle
        }
        bisections += 1;
    }
}

/// Algorithm 1.2 as printed, and the number of its steps.
fn algorithm_1_2(models: &[Model], shares: &mut [u64], n: u64) -> u64 {
    let mut steps = 0;
    while shares.iter().sum::<u64>() < n {
        let seconds = |i: usize| models[i].seconds((shares[i] + 1) as f64);
        let next = (0..shares.len()).min_by(|&i, &j| seconds(i).total_cmp(&seconds(j))).expect("processors");
        shares[next] += 1;
        steps += 1;
    }
    steps
}

/// The x at which all end together and add up to n.
fn ideal(models: &[Model], n: u64) -> Vec<f64> {
    let (mut low, mut high) = (0.0, 1e12);
    for _ in 0..300 {
        let slope = if low > 0.0 { f64::sqrt(low * high) } else { high * 1e-3 };
        let sum: f64 = models.iter().map(|model| meets(model, slope, 2.0 * n as f64)).sum();
        if sum <= n as f64 { high = slope } else { low = slope }
    }
    models.iter().map(|model| meets(model, high, 2.0 * n as f64)).collect()
}

pub struct SetPartition;

impl Experiment for SetPartition {
    fn about(&self) -> About {
        About {
            ids: &["fpm-3", "fpm-4"],
            source: "Lastovetsky and Reddy 2007, 3",
            shows: "Algorithms 1.1 and 1.2 as printed: bisections, optimality, and the library's shares",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let surfaces = Surfaces::parse(SHIPPED, "fpm-2007-surfaces.json")?;
        let mut report = Report::default();
        let mut table = Table::new(
            "Rows of an n x n product on the eight processors of Table 2",
            &["n", "bisections", "over log2 n", "left to 1.2", "steps", "makespan, s", "fpm", "exact"],
        );
        let (mut floors, mut sums, mut optimal, mut same) = (true, true, 0.0_f64, 0.0_f64);
        for n in (1..=10).map(|i| 1000 * i) {
            let models = surfaces.section(&[None, Some(n as f64)])?;
            let Approximation { mut shares, bisections, .. } = algorithm_1_1(&models, n);
            let x = ideal(&models, n);
            // Proposition 1: n_i is the floor of x_i or one less; a whole x_i may be rounded either way.
            floors &= shares.iter().zip(&x).all(|(&share, &x)| {
                let below = (x + 1e-6).floor() as u64;
                share == below || share + 1 == below
            });
            let left = n - shares.iter().sum::<u64>();
            sums &= left <= 2 * models.len() as u64;
            let steps = algorithm_1_2(&models, &mut shares, n);
            let times = [&shares, &fpm(&models, n)?, &exact_interpolated(&models, n, &[])?]
                .map(|s| makespan(&models, s));
            optimal = optimal.max((times[0] / times[2] - 1.0).abs());
            same = same.max((times[1] / times[0] - 1.0).abs());
            table.row([
                n.to_string(),
                bisections.to_string(),
                format!("{:.2}", f64::from(bisections) / (n as f64).log2()),
                left.to_string(),
                steps.to_string(),
                format!("{:.4}", times[0]),
                format!("{:.4}", times[1]),
                format!("{:.4}", times[2]),
            ]);
        }
        report.tables.push(table);
        let yes = |holds: bool| if holds { "at all ten sizes" } else { "not at all sizes" };
        report.checks.push(Check::new(
            "Proposition 1: Algorithm 1.1 ends at the floor of x_i or one less",
            "at all ten sizes",
            yes(floors),
            floors,
        ));
        report.checks.push(Check::new(
            "Algorithm 1, step 1: n - 2 p to n units are given out",
            "at all ten sizes",
            yes(sums),
            sums,
        ));
        let above = |x: f64| format!("within {:.1e}", x);
        report.checks.push(
            Check::new(
                "Proposition 2: Algorithm 1.2 ends at the optimum",
                "optimal",
                above(optimal),
                optimal < 1e-9,
            )
            .within("1e-9, against all integer shares"),
        );
        report.checks.push(
            Check::new(
                "the library's shares (fpm) take as long as Algorithm 1's",
                "equal",
                above(same),
                same < 1e-9,
            )
            .within("1e-9"),
        );
        growth(&mut report)?;
        proof(&mut report);
        report.draw("fpm-4", &lines(&surfaces)?);
        report.note(
            "Speed functions are the sections of the shipped surfaces (fpm-table-2). The library searches \
             the common time instead of the slope; the line of slope 1 / T meets a speed function at the \
             size that takes T.",
        );
        Ok(report)
    }
}

/// Propositions 3 and 4: bisections of speed functions of one form as n grows a million times.
fn growth(report: &mut Report) -> Result<()> {
    let mut table = Table::new(
        "Bisections on p processors whose speeds fall from 1, 2, … p to a third over n units",
        &["p", "n = 10^3", "10^4", "10^5", "10^6", "10^7", "10^8", "10^9"],
    );
    let mut slopes = Vec::new();
    let mut steps_ok = true;
    for p in [2_usize, 4, 8, 16] {
        let mut counts = Vec::new();
        for n in (3..=9).map(|e| 10_u64.pow(e)) {
            let models: Vec<Model> = (1..=p)
                .map(|i| {
                    // Concave and falling, in proportion to n: points of s(x) = i (1 - 2 x / 3 n), x up to n.
                    let points = (1..=20).map(|k| {
                        let x = n as f64 * f64::from(k) / 20.0;
                        apportion::model::Point::new(x, x / (i as f64 * (1.0 - x / (1.5 * n as f64))))
                    });
                    Model::piecewise(format!("p{i}"), points.collect(), None)
                })
                .collect::<Result<_>>()?;
            let Approximation { mut shares, bisections, .. } = algorithm_1_1(&models, n);
            steps_ok &= algorithm_1_2(&models, &mut shares, n) <= 2 * p as u64;
            counts.push(bisections);
        }
        // Bisections for each doubling of n.
        slopes.push(f64::from(counts[6] - counts[0]) / 1e6_f64.log2());
        table.row([p.to_string()].into_iter().chain(counts.iter().map(u32::to_string)));
    }
    report.tables.push(table);
    let here: Vec<String> = slopes.iter().map(|slope| format!("{slope:.2}")).collect();
    let met = slopes.iter().all(|slope| (0.5..2.0).contains(slope));
    report.checks.push(
        Check::new(
            "Proposition 3: bisections of Algorithm 1.1 for each doubling of n, with 2, 4, 8, 16 processors",
            "a constant: k = O(log2 n)",
            here.join(", "),
            met,
        )
        .within("between 1/2 and 2, whatever p"),
    );
    report.checks.push(Check::new(
        "Proposition 4: Algorithm 1.2 takes at most 2 p steps",
        "2 p",
        if steps_ok { "at most 2 p" } else { "more" },
        steps_ok,
    ));
    Ok(())
}

/// The number of bisections in the proof of Proposition 3.
fn proof(report: &mut Report) {
    let (n, fraction) = (1024.0_f64, 0.5_f64);
    let printed = n.log2() / (1.0 - fraction);
    let right = n.log2() / -(1.0 - fraction).log2();
    report.checks.push(
        Check::near(
            "Proposition 3, proof: k of (1 - D)^k n = 1 for D = 1/2, n = 1,024",
            printed,
            right,
            1e-9,
        )
        .unless(
            Verdict::PublishedWrong,
            "(1/2)^10 x 1024 = 1: k = log2 n / -log2(1 - D) = 10, and not log2 n / (1 - D) = 20. The order, \
             log2 n, is the same.",
        ),
    );
}

/// Figures 3 and 4: speed functions, the initial lines, and the line at which the algorithm ends.
fn lines(surfaces: &Surfaces) -> Result<Plot> {
    let n = 5000;
    let models = surfaces.section(&[None, Some(n as f64)])?;
    let chosen: Vec<Model> = [0, 4].into_iter().map(|i| models[i].clone()).collect();
    let found = algorithm_1_1(&chosen, n);
    let mut series: Vec<Series> = chosen
        .iter()
        .enumerate()
        .map(|(colour, model)| Series {
            name: model.processor().to_owned(),
            points: (1..=100).map(|i| f64::from(i) * 50.0).map(|x| [x, model.speed(x)]).collect(),
            colour,
            ..Series::default()
        })
        .collect();
    let highest = series.iter().flat_map(|s| &s.points).map(|p| p[1]).fold(0.0, f64::max);
    let [upper, lower] = found.initial;
    for (name, slope, colour) in [("U", upper, 2), ("L", lower, 3), ("found", found.upper, 4)] {
        let end = (highest / slope).min(n as f64);
        let points = vec![[0.0, 0.0], [end, end * slope]];
        series.push(Series { name: name.into(), points, dashed: true, colour, ..Series::default() });
    }
    Ok(Plot {
        title: [
            "As Figs 3 and 4 of Lastovetsky and Reddy 2007: lines through the origin".into(),
            format!("X1 and X5 at n = 5,000, {} and {} rows", found.shares[0], short(found.shares[1] as f64)),
        ],
        axes: ["rows".into(), "rows a second".into()],
        series,
        ..Plot::default()
    })
}
