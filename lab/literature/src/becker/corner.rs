//! The square corner for two processors by its formulae: (4.1) to (4.4), (5.1) to (5.17), Theorems 5.1 and
//! 5.2.

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::Result;
use apportion::geometry::{Rank, Rect, Span};
use apportion::plan::shapes::{LayoutMethod, SquareCorner, StraightLine};
use apportion::plan::{Layout, Metrics, Part, Shape, lower_bound, outlines};

/// Order of the matrices: rounding to whole lines is a millionth.
const SIZE: u64 = 1_000_000;
/// Ratios for which limits are nearly reached: of the corner, and of the line, which is then one column wide.
const LARGE: f64 = 1e8;
const LARGE_OF_LINE: f64 = SIZE as f64 - 1.0;

fn shape() -> Result<Shape> {
    Shape::new(SIZE, SIZE, SIZE, "chapters 4 and 5")
}

/// A rectangle of the second processor, `high` x `wide` of the unit square, in one of the four corners; the
/// first one has the rest.
fn in_corner(high: f64, wide: f64, corner: usize) -> Result<Layout> {
    let [high, wide] = [high, wide].map(|side| ((side * SIZE as f64).round() as u64).clamp(1, SIZE));
    let at_end = |end: bool, length: u64| {
        if end {
            [Span::new(SIZE - length, SIZE), Span::new(0, SIZE - length)]
        } else {
            [Span::new(0, length), Span::new(length, SIZE)]
        }
    };
    let ([rows, other_rows], [cols, other_cols]) =
        (at_end(corner / 2 == 1, high), at_end(corner % 2 == 1, wide));
    let all = Span::new(0, SIZE);
    let rest = [Rect::new(other_rows, all), Rect::new(rows, other_cols)];
    let rest = rest.into_iter().filter(|rect| !rect.is_empty()).map(|rect| Part::new(Rank(0), rect));
    Layout::new(shape()?, 2, rest.chain([Part::new(Rank(1), Rect::new(rows, cols))]))
}

/// The volume in N^2.
fn volume(layout: &Layout) -> f64 {
    Metrics::of_layout(layout, 1.0).volume.map_or(f64::NAN, |v| v as f64 / (SIZE as f64).powi(2))
}

/// Elements of the busiest direction in N^2.
fn busiest(layout: &Layout) -> f64 {
    let most = Metrics::of_layout(layout, 1.0).largest_direction();
    most.map_or(f64::NAN, |v| v as f64 / (SIZE as f64).powi(2))
}

fn line(ratio: f64) -> Result<Layout> {
    StraightLine.layout(shape()?, &[ratio, 1.0])
}

fn corner(ratio: f64) -> Result<Layout> {
    SquareCorner.layout(shape()?, &[ratio, 1.0])
}

/// The side of the square, (5.17) for N = 1.
fn side(ratio: f64) -> f64 {
    1.0 / (1.0 + ratio).sqrt()
}

/// The ratios of the figures.
fn ratios() -> impl Iterator<Item = f64> {
    (4..=100).map(|i| f64::from(i) / 4.0)
}

/// A formula that layouts meet to within rounding.
fn equal(what: &str, formula: &str, off: f64) -> Check {
    Check::new(what, formula, format!("within {off:.1e}"), off < 1e-5).within("0.00001")
}

pub struct Formulae;

impl Experiment for Formulae {
    fn about(&self) -> About {
        About {
            ids: &["becker-4.2", "becker-4.3", "becker-5.2", "becker-5.1"],
            source: "Becker 2010, 4.2 and 5.2-5.5",
            shows: "the square corner for two: half-perimeters, volumes, limits, and its two theorems",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        half_perimeters(&mut report)?;
        volumes(&mut report)?;
        first_theorem(&mut report)?;
        second_theorem(&mut report)?;
        limits(&mut report)?;
        Ok(report)
    }
}

/// 4.2.2 and 4.2.4.
fn half_perimeters(report: &mut Report) -> Result<()> {
    let (mut rectangles, mut corners, mut squares) = (0.0_f64, 0.0_f64, 0.0_f64);
    for ratio in ratios() {
        rectangles = rectangles.max((outlines(&line(ratio)?) - 3.0).abs());
        squares = squares.max((outlines(&corner(ratio)?) - (2.0 + 2.0 * side(ratio))).abs());
        for stretch in [0.8, 1.0, 1.25] {
            let (x, y) = (side(ratio) * stretch, side(ratio) / stretch);
            corners = corners.max((outlines(&in_corner(y, x, 3)?) - (2.0 + x + y)).abs());
        }
    }
    report.checks.push(equal(
        "Section 4.2.2: half-perimeters of two rectangles",
        "3 at every ratio",
        rectangles,
    ));
    report.checks.push(equal(
        "(4.1): half-perimeters with a rectangle of x by y in the corner",
        "2 + x + y",
        corners,
    ));
    report.checks.push(equal(
        "(4.2), (5.16): half-perimeters with a square in the corner",
        "2 + 2 sqrt(s2)",
        squares,
    ));
    let (mut low, mut high): (f64, f64) = (1.0, 25.0);
    while high - low > 1e-4 {
        let ratio = 0.5 * (low + high);
        if outlines(&corner(ratio)?) < outlines(&line(ratio)?) { high = ratio } else { low = ratio }
    }
    report.checks.push(Check::near(
        "(4.3): half-perimeters are fewer than 3 above the ratio",
        3.0,
        high,
        1e-3,
    ));
    let layout = corner(LARGE)?;
    let bound = lower_bound(shape()?, &layout.shares());
    report.checks.push(Check::near(
        "Section 4.2.4: half-perimeters of the corner as s2 goes to 0",
        2.0,
        outlines(&layout),
        1e-3,
    ));
    report.checks.push(Check::near("Section 4.2.4: the lower bound (4.4) as s2 goes to 0", 2.0, bound, 1e-3));
    let off = ratios().map(|ratio| {
        let by_hand = 2.0 * ((ratio / (1.0 + ratio)).sqrt() + side(ratio));
        Ok((lower_bound(shape()?, &corner(ratio)?.shares()) - by_hand).abs())
    });
    let off = off.collect::<Result<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
    report.checks.push(equal("(4.4): the lower bound", "2 (sqrt(s1) + sqrt(s2))", off));
    Ok(())
}

/// (5.1), (5.2), (5.6), (5.7), (5.17), and any corner.
fn volumes(report: &mut Report) -> Result<()> {
    let [mut square, mut rectangle, mut share, mut first, mut length] = [0.0_f64; 5];
    for ratio in ratios() {
        let layout = corner(ratio)?;
        square = square.max((volume(&layout) - 2.0 * side(ratio)).abs());
        share = share.max((layout.shares()[1] as f64 / (SIZE as f64).powi(2) - 1.0 / (1.0 + ratio)).abs());
        let rect = layout.rects_by_owner()[1][0];
        length = length.max((rect.rows.len() as f64 / SIZE as f64 - side(ratio)).abs());
        let table = Metrics::of_layout(&line(ratio)?, 1.0).volume_matrix.unwrap_or_default();
        let to_second = table.get(1).map_or(f64::NAN, |row| row[0] as f64 / (SIZE as f64).powi(2));
        first = first.max((to_second - ratio / (1.0 + ratio)).abs());
        for stretch in [0.8, 1.25] {
            let (high, wide) = (side(ratio) * stretch, side(ratio) / stretch);
            rectangle = rectangle.max((volume(&in_corner(high, wide, 3)?) - (high + wide)).abs());
        }
    }
    report.checks.push(equal("(5.1): volume of the square corner", "2 N sqrt(s2)", square));
    report.checks.push(equal(
        "(5.2): volume with a rectangle of alpha by beta",
        "alpha N + beta N",
        rectangle,
    ));
    report.checks.push(equal("(5.6): the share of the second", "1 / (1 + r)", share));
    report.checks.push(equal("(5.17): the side of the square", "N / sqrt(r + 1)", length));
    report.checks.push(equal(
        "(5.7), (5.8): the straight line, 1 to 2",
        "(1 - s2) N^2 = r / (1 + r) N^2",
        first,
    ));
    let volumes: Vec<f64> = (0..4).map(|at| Ok(volume(&in_corner(0.3, 0.3, at)?))).collect::<Result<_>>()?;
    let off = volumes.iter().map(|v| (v - 0.6).abs()).fold(0.0, f64::max);
    report.checks.push(equal("Algorithm 5.1: any corner will do, side 0.3", "0.6 N^2 in each", off));
    Ok(())
}

/// Theorem 5.1 at the ratios of the figures.
fn first_theorem(report: &mut Report) -> Result<()> {
    let mut wrong = 0;
    for ratio in ratios() {
        let difference = volume(&corner(ratio)?) - volume(&line(ratio)?);
        let as_proved = match ratio.total_cmp(&3.0) {
            std::cmp::Ordering::Greater => difference < 0.0,
            std::cmp::Ordering::Equal => difference == 0.0,
            std::cmp::Ordering::Less => difference > 0.0,
        };
        wrong += usize::from(!as_proved);
    }
    report.checks.push(Check::new(
        "Theorem 5.1: the corner moves less than the line above 3:1, as much at 3:1, more below",
        "at all 97 ratios",
        format!("at {} of 97", 97 - wrong),
        wrong == 0,
    ));
    Ok(())
}

/// Theorem 5.2: of all rectangles in the corner the square moves least, and the second derivative of its
/// proof.
fn second_theorem(report: &mut Report) -> Result<()> {
    let mut table = Table::new(
        "Theorem 5.2: volume with a rectangle of height alpha in the corner, s2 = 0.09, in N^2",
        &["alpha", "beta", "alpha + beta", "here"],
    );
    let (mut least, mut at) = (f64::INFINITY, 0.0);
    for i in 10..=90 {
        let alpha = f64::from(i) / 100.0;
        let here = volume(&in_corner(alpha, 0.09 / alpha, 3)?);
        if here < least {
            (least, at) = (here, alpha);
        }
        if [10, 20, 30, 45, 90].contains(&i) {
            table.row([short(alpha), short(0.09 / alpha), short(alpha + 0.09 / alpha), short(here)]);
        }
    }
    report.tables.push(table);
    report.checks.push(Check::near(
        "Theorem 5.2: height alpha of least volume, for s2 = 0.09",
        0.3,
        at,
        1e-12,
    ));
    // C(alpha) = alpha + s2 / alpha, for N = 1; the second difference is the second derivative.
    let c = |alpha: f64| alpha + 0.09 / alpha;
    let step = 1e-3;
    let second = (c(0.3 + step) - 2.0 * c(0.3) + c(0.3 - step)) / (step * step);
    let printed = 1.0 + 2.0 * 0.09 / 0.3_f64.powi(3);
    report.checks.push(
        Check::near(
            "Theorem 5.2, proof: second derivative at s2 = 0.09, alpha = 0.3, N = 1",
            printed,
            second,
            1e-3,
        )
        .unless(
            Verdict::PublishedWrong,
            "The derivative of N - s2 N / alpha^2 is 2 s2 N / alpha^3, here 6.667, without the N that \
                 the proof has kept. It is positive all the same, and the theorem holds.",
        ),
    );
    Ok(())
}

/// (5.4), (5.5), (5.9), (5.14), at a ratio of 10^8.
fn limits(report: &mut Report) -> Result<()> {
    let (line, corner) = (line(LARGE_OF_LINE)?, corner(LARGE)?);
    report.checks.push(Check::near("(5.4): volume of the line as r grows, in N^2", 1.0, volume(&line), 1e-5));
    let vanishing = |what: &str, here: f64| Check::new(what, 0, short(here), here < 1e-3).within("0.001 N^2");
    report.checks.push(vanishing("(5.5): volume of the corner as r grows, in N^2", volume(&corner)));
    report.checks.push(Check::near(
        "(5.9): busiest direction of the line as r grows, in N^2",
        1.0,
        busiest(&line),
        1e-5,
    ));
    report
        .checks
        .push(vanishing("(5.14): busiest direction of the corner as r grows, in N^2", busiest(&corner)));
    report.note(
        "Limits are taken at a ratio of 10^8 for the corner, whose side is then a ten-thousandth of \
         N, and of 10^6 for the line, which is then one column wide.",
    );
    Ok(())
}
