//! Lastovetsky's slides on grid partitioning: the grid's cost (slides 21 to 25), Cartesian layouts (28 to
//! 36).

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, short};
use apportion::error::Result;
use apportion::plan::shapes::{self, Grid, LayoutMethod, Mesh};
use apportion::plan::{Metrics, Shape};
use apportion::random::Random;

const SIZE: u64 = 12_000;
/// Speed matrices of one size and seed.
const SEEDS: u64 = 20;

fn shape() -> Result<Shape> {
    Shape::new(SIZE, SIZE, SIZE, "slides")
}

/// Algorithm 3: r from the root downwards until it divides p, and how often that is tried.
fn algorithm_3(p: usize) -> ([usize; 2], usize) {
    let mut r = (p as f64).sqrt() as usize;
    let mut tried = 1;
    while r > 1 && !p.is_multiple_of(r) {
        r -= 1;
        tried += 1;
    }
    ([r, p / r], tried)
}

/// Grids: cost r + c, whatever the mapping.
pub struct Grids;

impl Experiment for Grids {
    fn about(&self) -> About {
        About {
            ids: &["slides-grid"],
            source: "Lastovetsky, slides 21-25",
            shows: "grid partitioning: cost r + c by Algorithm 3, whatever the mapping",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        let mut table =
            Table::new("Sum of half-perimeters of grids", &["p", "r x c", "r + c", "here, three mappings"]);
        let (mut off, mut shapes_agree) = (0.0_f64, true);
        for p in 1..=24 {
            let ([r, c], _) = algorithm_3(p);
            let Mesh { rows, cols } = Mesh::cheapest(p, SIZE, SIZE);
            let divisors = (1..=p).filter(|d| p.is_multiple_of(*d)).map(|d| d + p / d);
            shapes_agree &= rows + cols == r + c && divisors.min() == Some(r + c);
            let mut random = Random::new(p as u64);
            let mut costs = Vec::new();
            for _ in 0..3 {
                let speeds: Vec<f64> = (0..p).map(|_| 1.0 + 9.0 * random.unit()).collect();
                let cost =
                    Metrics::of_layout(&Grid::default().layout(shape()?, &speeds)?, 1.0).sum_half_perimeters;
                costs.push(cost.unwrap_or(f64::NAN));
            }
            off = costs.iter().map(|cost| (cost - (r + c) as f64).abs()).fold(off, f64::max);
            let costs: Vec<String> = costs.into_iter().map(short).collect();
            table.row([p.to_string(), format!("{r} x {c}"), (r + c).to_string(), costs.join(" ")]);
        }
        report.tables.push(table);
        report.checks.push(Check::new(
            "the sum of half-perimeters is r + c, whatever the mapping",
            "r + c",
            format!("within {off:.1e}"),
            off < 1e-9,
        ));
        report.checks.push(Check::new(
            "Algorithm 3 finds the least r + c, and the library its shape",
            "yes",
            if shapes_agree { "yes" } else { "no" },
            shapes_agree,
        ));
        let slowest =
            (1..=10_000_usize).map(|p| algorithm_3(p).1 as f64 / (p as f64).sqrt()).fold(0.0, f64::max);
        report.checks.push(Check::new(
            "Algorithm 2 is bounded by O(p^(3/2)): divisions that Algorithm 3 tries, up to p = 10,000",
            "at most p^(3/2)",
            format!("at most {} sqrt(p)", short(slowest)),
            slowest <= 1.0,
        ));
        Ok(report)
    }
}

/// Cartesian layouts: exact for rank one, approximate otherwise.
pub struct Cartesian;

/// Largest time over ideal time of a Cartesian layout by the slides' Algorithm 5, in real numbers: arrange by
/// speed, take heights and widths as row and column sums, arrange again by areas, until nothing changes; and
/// the number of times that this took, `None` where it did not end.
fn algorithm_5(speeds: &[f64], rows: usize, cols: usize) -> (f64, Option<usize>) {
    let mut order: Vec<usize> = (0..speeds.len()).collect();
    order.sort_by(|a, b| speeds[*b].total_cmp(&speeds[*a]));
    let total: f64 = speeds.iter().sum();
    let sorted = order.clone();
    let mut worst = f64::INFINITY;
    let mut rounds = None;
    for round in 1..=100 {
        let at = |i: usize, j: usize| speeds[order[i * cols + j]];
        let heights: Vec<f64> = (0..rows).map(|i| (0..cols).map(|j| at(i, j)).sum::<f64>() / total).collect();
        let widths: Vec<f64> = (0..cols).map(|j| (0..rows).map(|i| at(i, j)).sum::<f64>() / total).collect();
        let area = |place: usize| heights[place / cols] * widths[place % cols];
        worst = (0..speeds.len()).map(|k| area(k) / (speeds[order[k]] / total)).fold(0.0, f64::max);
        // Step 4: the larger the area, the faster its processor.
        let mut places: Vec<usize> = (0..speeds.len()).collect();
        places.sort_by(|a, b| area(*b).total_cmp(&area(*a)));
        let mut next = vec![0; speeds.len()];
        for (place, processor) in places.into_iter().zip(&sorted) {
            next[place] = *processor;
        }
        if next == order {
            rounds = Some(round);
            break;
        }
        order = next;
    }
    (worst, rounds)
}

/// Largest time over ideal time by Algorithm 5 for speeds whose order by speed, row by row, has rank one:
/// each row is more than twice as fast as the next, and within a row the fastest is less than twice as fast
/// as the slowest.
fn in_order() -> f64 {
    let mut worst = 0.0_f64;
    for (rows, cols) in [(2, 2), (2, 3), (3, 3), (3, 4)] {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed);
            let within: Vec<f64> = (0..cols).map(|_| 1.0 + 0.9 * random.unit()).collect();
            let rows_of: Vec<f64> = (0..rows).map(|i| 2.5_f64.powi(i)).collect();
            let speeds: Vec<f64> = rows_of.iter().flat_map(|u| within.iter().map(move |v| u * v)).collect();
            worst = worst.max(algorithm_5(&speeds, rows as usize, cols).0);
        }
    }
    worst
}

/// Largest time over ideal time of the library's layout.
fn library(speeds: &[f64]) -> Result<f64> {
    let layout = shapes::Cartesian::default().layout(shape()?, speeds)?;
    let total: f64 = speeds.iter().sum();
    let whole = layout.shape().elements() as f64;
    let loads = layout.shares().into_iter().zip(speeds).map(|(share, s)| share as f64 / whole / (s / total));
    Ok(loads.fold(0.0, f64::max))
}

impl Experiment for Cartesian {
    fn about(&self) -> About {
        About {
            ids: &["slides-cartesian"],
            source: "Lastovetsky, slides 28-36",
            shows: "Cartesian partitioning: exact for speeds of rank one, beside Algorithm 5",
            kind: Kind::Computed,
            seconds: 2,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        let header = ["speeds", "shape", "Algorithm 5, mean", "worst", "here, mean", "worst"];
        let mut table = Table::new("Largest time over ideal time, 20 matrices of speeds each", &header);
        let mut exact = 0.0_f64;
        let (mut better, mut rounds) = (true, Vec::new());
        for (rows, cols) in [(2, 2), (2, 3), (3, 3), (3, 4)] {
            for rank_one in [true, false] {
                let (mut theirs, mut ours) = (Vec::new(), Vec::new());
                for seed in 0..SEEDS {
                    let mut random = Random::new(seed + 100 * (rows * 10 + cols) as u64);
                    let mut draw = || 1.0 + 4.0 * random.unit();
                    let (u, v): (Vec<f64>, Vec<f64>) =
                        ((0..rows).map(|_| draw()).collect(), (0..cols).map(|_| draw()).collect());
                    let speeds: Vec<f64> = match rank_one {
                        true => u.iter().flat_map(|x| v.iter().map(move |y| x * y)).collect(),
                        false => (0..rows * cols).map(|_| draw()).collect(),
                    };
                    let (worst, took) = algorithm_5(&speeds, rows, cols);
                    theirs.push(worst);
                    rounds.push(took);
                    ours.push(library(&speeds)?);
                }
                let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
                let worst = |x: &[f64]| x.iter().copied().fold(0.0, f64::max);
                let kind = if rank_one { "rank one" } else { "any" };
                table.row([
                    kind.to_owned(),
                    format!("{rows} x {cols}"),
                    format!("{:.4}", mean(&theirs)),
                    format!("{:.4}", worst(&theirs)),
                    format!("{:.4}", mean(&ours)),
                    format!("{:.4}", worst(&ours)),
                ]);
                if rank_one {
                    exact = exact.max(worst(&ours));
                }
                better &= mean(&ours) <= mean(&theirs) + 1e-3;
            }
        }
        report.tables.push(table);
        report.checks.push(Check::near(
            "speeds of rank one: largest time over ideal time, at most",
            1.0,
            exact,
            0.002,
        ));
        report.checks.push(Check::near(
            "Algorithm 5 is optimal where the arrangement by speed has rank one: largest time over ideal \
             time",
            1.0,
            in_order(),
            1e-9,
        ));
        report.note(
            "Speeds that have rank one in another arrangement only are beyond Algorithm 5, whose Step 1 \
             sorts them (lines \"rank one\" of the table); the library looks for their factors.",
        );
        let ended = rounds.iter().all(Option::is_some);
        let most = rounds.iter().flatten().max().copied().unwrap_or(0);
        report.checks.push(Check::new(
            "Algorithm 5 ends: Step 5 stops it",
            "always",
            if ended {
                format!("in each of {} cases, after {most} rounds at most", rounds.len())
            } else {
                "not always".into()
            },
            ended,
        ));
        report.checks.push(
            Check::new(
                "the mean of each line is no larger than Algorithm 5's",
                "Algorithm 5, which is approximate",
                if better { "no larger" } else { "larger" },
                better,
            )
            .within("0.001"),
        );
        Ok(report)
    }
}
