//! Lastovetsky's slides 7 to 19 and 31: generalised blocks, columns, the largest half-perimeter, and the
//! order of processors in a Cartesian optimum.

use crate::becker::rectangles::{Column, algorithm_2_1, every_partition};
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, short};
use apportion::error::Result;
use apportion::plan::shapes::{Cartesian, Columns, Grid, LayoutMethod, Method, MethodOptions, Objective};
use apportion::plan::{Layout, Metrics, Shape, repeat_block};
use apportion::random::Random;

pub struct ColumnBased;

impl Experiment for ColumnBased {
    fn about(&self) -> About {
        About {
            ids: &["slides-columns"],
            source: "Lastovetsky, slides 7-19 and 31",
            shows: "generalised blocks, the largest half-perimeter, and the order of a Cartesian optimum",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        block_cyclic(&mut report)?;
        generalised_blocks(&mut report)?;
        largest(&mut report)?;
        order(&mut report)?;
        Ok(report)
    }
}

fn square(n: u64) -> Result<Shape> {
    Shape::new(n, n, n, "slides")
}

fn draw(count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| 1.0 + 4.0 * random.unit()).collect()
}

/// Slides 7 and 8: the 2-D block-cyclic distribution of ScaLAPACK on 2 x 3 processors.
fn block_cyclic(report: &mut Report) -> Result<()> {
    let (n, r) = (48, 2);
    let grid = Grid::default().layout(Shape::new(2 * r, n, 3 * r, "block")?, &[1.0; 6])?;
    let layout = repeat_block(square(n)?, &grid)?;
    let table = Metrics::of_layout(&layout, 1.0).volume_matrix.unwrap_or_default();
    // Rows n/2 or n/3, by how the grid lies.
    let rows = layout.rows_by_owner()[0].len();
    let (a, b) = (rows, layout.cols_by_owner()[0].len());
    let by_hand = a * (n - b) + b * (n - a);
    let received: Vec<u64> = table.iter().map(|row| row.iter().sum()).collect();
    let same = received.iter().all(|&elements| elements == by_hand) && a * b == n * n / 6;
    report.checks.push(Check::new(
        "slide 8: elements that each of 2 x 3 processors receives, 2-D block cyclic, n = 48, r = 2",
        format!("(n/p) r of A and (n/q) r of B in each step without an own pivot: {by_hand}"),
        received.first().copied().unwrap_or(0),
        same,
    ));
    let half: f64 = table.len() as f64 * (a + b) as f64 / n as f64;
    let volume = received.iter().sum::<u64>() as f64 / (n * n) as f64;
    report.checks.push(Check::near(
        "slide 8: the volume follows from the half-perimeters of the rectangles of a generalised block",
        half - 2.0,
        volume,
        1e-12,
    ));
    Ok(())
}

/// Slides 9 to 12: generalised blocks, divided among unlike processors, and rounded.
fn generalised_blocks(report: &mut Report) -> Result<()> {
    let speeds = draw(5, 1);
    let block = Columns::default().layout(square(60)?, &speeds)?;
    let layout = repeat_block(square(600)?, &block)?;
    let same = layout.shares().iter().zip(block.shares()).all(|(&share, one)| share == 100 * one);
    report.checks.push(Check::new(
        "slide 11: blocks of a processor are its part of a generalised block times their number",
        "N_GB n_i",
        if same { "equal, 100 generalised blocks" } else { "different" },
        same,
    ));
    let cost = |layout: &Layout| Metrics::of_layout(layout, 1.0).volume.unwrap_or(0) as f64;
    report.checks.push(Check::near(
        "slide 9: with generalised blocks the volume is that of one block, scaled",
        cost(&block) / 3600.0,
        cost(&layout) / 360_000.0,
        1e-12,
    ));
    let mut table = Table::new(
        "Slide 12: five processors, the sum of half-perimeters after rounding, and the largest load",
        &["block", "half-perimeters", "real-valued", "largest load over ideal"],
    );
    let exact = algorithm_2_1(&speeds).cost;
    let total: f64 = speeds.iter().sum();
    let mut off = Vec::new();
    for side in [10_u64, 100, 1000, 10_000] {
        let layout = Columns::default().layout(square(side)?, &speeds)?;
        let sum = Metrics::of_layout(&layout, 1.0).sum_half_perimeters.unwrap_or(f64::NAN);
        let loads = layout
            .shares()
            .into_iter()
            .zip(&speeds)
            .map(|(share, speed)| share as f64 / (side * side) as f64 / (speed / total));
        let load = loads.fold(0.0, f64::max);
        table.row([side.to_string(), short(sum), short(exact), format!("{load:.4}")]);
        off.push(((sum / exact - 1.0).abs()).max(load - 1.0));
    }
    report.tables.push(table);
    report.checks.push(
        Check::new(
            "slide 12: rounding off the optimal real-valued solution is asymptotically optimal",
            "goes to 0",
            off.iter().map(|off| format!("{:.3} %", 100.0 * off)).collect::<Vec<_>>().join(", "),
            off.windows(2).all(|pair| pair[1] < pair[0]) && off[3] < 1e-3,
        )
        .within("0.1 % for a block of 10,000"),
    );
    Ok(())
}

/// Slide 15: the largest half-perimeter instead of their sum.
fn largest(report: &mut Report) -> Result<()> {
    let (mut off, mut never_more, mut less) = (0.0_f64, true, 0);
    let cases: Vec<(usize, u64)> = (2..=8).flat_map(|count| (0..5).map(move |seed| (count, seed))).collect();
    for &(count, seed) in &cases {
        let speeds = draw(count, 10 * count as u64 + seed);
        let of = |objective| {
            let options = MethodOptions { objective, ..MethodOptions::default() };
            let layout = Method::Columns.layout(square(100_000)?, &speeds, &options)?;
            Ok::<f64, apportion::Error>(
                Metrics::of_layout(&layout, 1.0).largest_half_perimeter.unwrap_or(f64::NAN),
            )
        };
        let [by_sum, here] = [of(Objective::Sum)?, of(Objective::Largest)?];
        let best = every_partition(&speeds, |columns: &[Column]| {
            columns.iter().map(|column| column.width + column.fastest / column.width).fold(0.0, f64::max)
        });
        off = off.max((here - best).abs());
        never_more &= here <= by_sum + 1e-4;
        less += usize::from(here < by_sum - 1e-3);
    }
    report.checks.push(
        Check::new(
            "slide 15: columns of least largest half-perimeter, against all partitions into columns",
            "the least",
            format!("within {off:.1e}, in {} cases", cases.len()),
            off < 1e-4,
        )
        .within("0.0001, the rounding to whole lines"),
    );
    report.checks.push(Check::new(
        "slide 15: the largest half-perimeter is another objective than their sum",
        "an option of its own",
        format!("smaller in {less} of {} cases, never larger", cases.len()),
        never_more && less > 0,
    ));
    Ok(())
}

/// The largest time over the ideal one of the best heights and widths for processors in this arrangement: at
/// an optimum the cells that limit it join all rows and columns, so that every spanning tree of them is
/// tried.
fn best_of_arrangement(speeds: &[f64], rows: usize, cols: usize) -> f64 {
    let cells = rows * cols;
    let mut best = 0.0_f64;
    for chosen in (0_u32..1 << cells).filter(|set| set.count_ones() as usize == rows + cols - 1) {
        let mut heights = vec![None; rows];
        let mut widths: Vec<Option<f64>> = vec![None; cols];
        heights[0] = Some(1.0);
        for _ in 0..rows + cols {
            for cell in (0..cells).filter(|cell| chosen >> cell & 1 == 1) {
                let (i, j) = (cell / cols, cell % cols);
                match (heights[i], widths[j]) {
                    (Some(h), None) => widths[j] = Some(speeds[cell] / h),
                    (None, Some(w)) => heights[i] = Some(speeds[cell] / w),
                    _ => {}
                }
            }
        }
        let (Some(h), Some(w)) = (
            heights.into_iter().collect::<Option<Vec<f64>>>(),
            widths.into_iter().collect::<Option<Vec<f64>>>(),
        ) else {
            continue;
        };
        if (0..cells).all(|cell| h[cell / cols] * w[cell % cols] <= speeds[cell] * (1.0 + 1e-9)) {
            best = best.max(h.iter().sum::<f64>() * w.iter().sum::<f64>());
        }
    }
    speeds.iter().sum::<f64>() / best
}

/// Calls `visit` with every order of `items`.
fn every_order(items: &mut Vec<f64>, from: usize, visit: &mut dyn FnMut(&[f64])) {
    if from + 1 >= items.len() {
        return visit(items);
    }
    for i in from..items.len() {
        items.swap(from, i);
        every_order(items, from + 1, visit);
        items.swap(from, i);
    }
}

/// Slide 31: some optimum has its processors in a non-increasing order.
fn order(report: &mut Report) -> Result<()> {
    let (mut off, mut library, mut linear, mut cases) = (0.0_f64, 0.0_f64, 0, 0);
    for (rows, cols) in [(2, 2), (2, 3)] {
        for seed in 0..10 {
            let mut speeds = draw(rows * cols, 1000 * (rows * cols) as u64 + seed);
            speeds.sort_by(|a, b| b.total_cmp(a));
            let in_line = best_of_arrangement(&speeds, rows, cols);
            let (mut all, mut ordered) = (f64::INFINITY, f64::INFINITY);
            every_order(&mut speeds.clone(), 0, &mut |order| {
                let time = best_of_arrangement(order, rows, cols);
                all = all.min(time);
                let falls = (0..order.len()).all(|cell| {
                    (cell % cols == 0 || order[cell - 1] >= order[cell])
                        && (cell < cols || order[cell - cols] >= order[cell])
                });
                if falls {
                    ordered = ordered.min(time);
                }
            });
            let layout = Cartesian::default().layout(square(120_000)?, &speeds)?;
            let total: f64 = speeds.iter().sum();
            let here = layout
                .shares()
                .into_iter()
                .zip(&speeds)
                .map(|(share, speed)| share as f64 / 120_000_f64.powi(2) / (speed / total));
            library = library.max(here.fold(0.0, f64::max) / all - 1.0);
            off = off.max(ordered / all - 1.0);
            linear += usize::from(in_line <= all * (1.0 + 1e-9));
            cases += 1;
        }
    }
    report.checks.push(
        Check::new(
            "slide 31: some optimal Cartesian partitioning has speeds that fall along its rows and columns",
            "always",
            format!("within {:.1e} of the best of all arrangements, in {cases} cases", off + 0.0),
            off < 1e-9,
        )
        .within("1e-9"),
    );
    report.checks.push(
        Check::new(
            "slide 30: the library's Cartesian layout is the optimum over all arrangements",
            "the least largest time",
            format!("within {library:.1e}"),
            library < 1e-4,
        )
        .within("0.0001, the rounding to whole lines"),
    );
    report.note(format!(
        "Slide 31 is read as an order along rows and along columns. One row after the other, as Step 1 of \
         Algorithms 4 and 5 arranges them, the optimum is reached in {linear} of {cases} cases."
    ));
    Ok(())
}
