//! Rectangles on homogeneous and heterogeneous networks: section 2.3, Algorithms 2.1 and 2.2.

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, short};
use apportion::error::Result;
use apportion::plan::shapes::{Columns, Grid, LayoutMethod, Method, MethodOptions};
use apportion::plan::{Layout, Metrics, Shape};
use apportion::random::Random;

/// Order of the matrices: rounding to whole lines is a millionth.
const SIZE: u64 = 1_000_000;

fn shape() -> Result<Shape> {
    Shape::new(SIZE, SIZE, SIZE, "section 2.3")
}

/// Half-perimeters and volume of a layout, in N and N^2.
fn costs(layout: &Layout) -> [f64; 2] {
    let metrics = Metrics::of_layout(layout, 1.0);
    let volume = metrics.volume.map_or(f64::NAN, |v| v as f64 / (SIZE as f64).powi(2));
    [metrics.sum_half_perimeters.unwrap_or(f64::NAN), volume]
}

/// A layout of given columns (Algorithm 2.2).
fn in_columns(groups: Vec<Vec<usize>>, speeds: &[f64]) -> Result<Layout> {
    let options = MethodOptions { groups: Some(groups), ..MethodOptions::default() };
    Method::ColumnGroups.layout(shape()?, speeds, &options)
}

fn speeds(count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| 0.05 + random.unit()).collect()
}

/// Algorithm 2.1 as printed: the least sum of half-perimeters, and the number of candidates tried.
pub struct Programmed {
    pub cost: f64,
    pub candidates: u64,
}

pub fn algorithm_2_1(speeds: &[f64]) -> Programmed {
    let total: f64 = speeds.iter().sum();
    let mut s: Vec<f64> = speeds.iter().map(|s| s / total).collect();
    s.sort_by(|a, b| b.total_cmp(a));
    let p = s.len();
    let sum = |from: usize, to: usize| s[from..to].iter().sum::<f64>();
    // beta[q]: the least cost of the first q processors in c columns; a column of j costs 1 + j times its
    // width.
    let mut beta: Vec<f64> =
        (0..=p).map(|q| if q == 0 { f64::INFINITY } else { 1.0 + q as f64 * sum(0, q) }).collect();
    let (mut best, mut candidates) = (beta[p], 0);
    for c in 2..=p {
        let mut next = vec![f64::INFINITY; p + 1];
        for q in c..=p {
            for j in 1..=q - c + 1 {
                candidates += 1;
                next[q] = next[q].min(beta[q - j] + 1.0 + j as f64 * sum(q - j, q));
            }
        }
        beta = next;
        best = best.min(beta[p]);
    }
    Programmed { cost: best, candidates }
}

/// A column of a partition: its processors' number, their sum and the fastest, of a total of 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Column {
    pub count: usize,
    pub width: f64,
    pub fastest: f64,
}

/// The least cost over all partitions of the processors into columns.
pub fn every_partition(speeds: &[f64], cost: fn(&[Column]) -> f64) -> f64 {
    fn place(speeds: &[f64], columns: &mut Vec<Column>, cost: fn(&[Column]) -> f64, best: &mut f64) {
        let Some((&first, rest)) = speeds.split_first() else {
            *best = best.min(cost(columns));
            return;
        };
        for i in 0..=columns.len() {
            if i == columns.len() {
                columns.push(Column::default());
            }
            let before = columns[i];
            let Column { count, width, fastest } = before;
            columns[i] = Column { count: count + 1, width: width + first, fastest: fastest.max(first) };
            place(rest, columns, cost, best);
            columns[i] = before;
            columns.retain(|column| column.count > 0);
        }
    }
    let total: f64 = speeds.iter().sum();
    let speeds: Vec<f64> = speeds.iter().map(|s| s / total).collect();
    let mut best = f64::INFINITY;
    place(&speeds, &mut Vec::new(), cost, &mut best);
    best
}

/// The sum of half-perimeters of columns.
fn sum_of_half_perimeters(columns: &[Column]) -> f64 {
    columns.iter().map(|column| 1.0 + column.count as f64 * column.width).sum()
}

pub struct Rectangles;

impl Experiment for Rectangles {
    fn about(&self) -> About {
        About {
            ids: &["becker-2.3"],
            source: "Becker 2010, 2.3",
            shows: "volumes in one and in two dimensions, and the column-based Algorithms 2.1 and 2.2",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        homogeneous(&mut report)?;
        heterogeneous(&mut report)?;
        optimal_columns(&mut report)?;
        given_columns(&mut report)?;
        Ok(report)
    }
}

/// 2.3.1: p equal parts as strips and as squares.
fn homogeneous(report: &mut Report) -> Result<()> {
    let mut table = Table::new("Volume of p equal parts, in N^2", &["p", "strips", "squares"]);
    let (mut less, mut off) = (true, 0.0_f64);
    for p in [4_usize, 9, 16, 25, 36] {
        let equal = vec![1.0; p];
        let strips = costs(&in_columns((0..p).map(|i| vec![i]).collect(), &equal)?);
        let squares = costs(&Grid::default().layout(shape()?, &equal)?);
        less &= squares[1] < strips[1];
        let root = (p as f64).sqrt();
        off = off.max((strips[1] - (p as f64 - 1.0)).abs()).max((squares[1] - 2.0 * (root - 1.0)).abs());
        table.row([p.to_string(), short(strips[1]), short(squares[1])]);
    }
    report.tables.push(table);
    let here = "8 N^2 for nine strips, 4 N^2 for nine squares; so for 4, 16, 25 and 36";
    let here = if less { here } else { "not for every p" };
    report.checks.push(Check::new("a two-dimensional partitioning moves less", "less", here, less));
    report.checks.push(
        Check::new(
            "by the sums of half-perimeters, strips move (p - 1) N^2 and squares 2 (sqrt p - 1) N^2",
            "equal",
            format!("within {off:.1e} N^2"),
            off < 1e-5,
        )
        .within("0.00001 N^2"),
    );
    Ok(())
}

/// 2.3.2: areas in proportion to speeds, and the volume as the sum of half-perimeters less 2.
fn heterogeneous(report: &mut Report) -> Result<()> {
    let (mut volume, mut area) = (0.0_f64, 0.0_f64);
    for (seed, count) in (1..=40).map(|i| (i, 1 + i as usize)) {
        let speeds = speeds(count, seed);
        let layout = Columns::default().layout(shape()?, &speeds)?;
        let [sum, moved] = costs(&layout);
        volume = volume.max((moved - (sum - 2.0)).abs());
        let total: f64 = speeds.iter().sum();
        for (share, speed) in layout.shares().into_iter().zip(&speeds) {
            area = area.max((share as f64 / (SIZE as f64).powi(2) / (speed / total) - 1.0).abs());
        }
    }
    report.checks.push(
        Check::new(
            "the volume is the sum of half-perimeters less 2, for 2 to 41 rectangles",
            "sum (w + h) - 2",
            format!("within {volume:.1e}"),
            volume < 1e-9,
        )
        .within("1e-9"),
    );
    report.checks.push(
        Check::new(
            "areas are in proportion to speeds",
            "equal",
            format!("within {:.3} %", 100.0 * area),
            area < 1e-3,
        )
        .within("0.1 %"),
    );
    Ok(())
}

/// Algorithm 2.1 beside the library's columns, and beside all partitions into columns.
fn optimal_columns(report: &mut Report) -> Result<()> {
    let (mut off, mut above) = (0.0_f64, 0.0_f64);
    for (count, seed) in (1..=40).flat_map(|count| (0..5).map(move |seed| (count, seed))) {
        let speeds = speeds(count, 100 * count as u64 + seed);
        let printed = algorithm_2_1(&speeds).cost;
        let here = costs(&Columns::default().layout(shape()?, &speeds)?)[0];
        off = off.max((here - printed).abs());
        if count <= 8 {
            above = above.max(printed - every_partition(&speeds, sum_of_half_perimeters));
        }
    }
    report.checks.push(
        Check::new(
            "Algorithm 2.1 is optimal among all partitions into columns, up to 8 processors",
            "optimal",
            format!("at most {above:.1e} above the best"),
            above < 1e-12,
        )
        .within("1e-12"),
    );
    report.checks.push(
        Check::new(
            "the library's columns cost what Algorithm 2.1 costs, up to 40 processors",
            "equal",
            format!("within {off:.1e}"),
            off < 1e-4,
        )
        .within("0.0001, the rounding to whole lines"),
    );
    let candidates = |count: usize| algorithm_2_1(&vec![1.0; count]).candidates as f64;
    report.checks.push(Check::near(
        "Algorithm 2.1 runs in O(p^3): candidates for 80 processors over those for 40",
        8.0,
        candidates(80) / candidates(40),
        0.01,
    ));
    Ok(())
}

/// Algorithm 2.2 on 3 x 3 processors, as Figure 2.6.
fn given_columns(report: &mut Report) -> Result<()> {
    let speeds = [5.0, 1.0, 2.0, 4.0, 4.0, 1.0, 3.0, 2.0, 2.0];
    let layout = in_columns(vec![vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8]], &speeds)?;
    let mut table = Table::new(
        "Algorithm 2.2 on 3 x 3 processors of given speeds",
        &["processor", "speed", "width", "height", "by hand"],
    );
    let mut off = 0.0_f64;
    for (i, rects) in layout.rects_by_owner().into_iter().enumerate() {
        let column: f64 = speeds[i / 3 * 3..i / 3 * 3 + 3].iter().sum();
        let by_hand = [column / 24.0, speeds[i] / column];
        let [width, height] =
            [rects[0].cols.len(), rects[0].rows.len()].map(|lines| lines as f64 / SIZE as f64);
        off = off.max((width - by_hand[0]).abs()).max((height - by_hand[1]).abs());
        let [wide, high] = by_hand.map(short);
        table.row([
            (i + 1).to_string(),
            short(speeds[i]),
            short(width),
            short(height),
            format!("{wide} x {high}"),
        ]);
    }
    report.tables.push(table);
    report.checks.push(
        Check::new(
            "Algorithm 2.2: columns as wide as their speeds, rectangles as high as theirs",
            "equal",
            format!("within {off:.1e}"),
            off < 1e-5,
        )
        .within("0.00001"),
    );
    // Areas and columns leave no choice of widths and heights: c + sum of r_j w_j is the cost of every
    // partition into these columns.
    let cost = costs(&layout)[0];
    report.checks.push(Check::near(
        "Algorithm 2.2 is optimal: the sum of half-perimeters that these areas and columns allow",
        6.0,
        cost,
        1e-9,
    ));
    Ok(())
}
