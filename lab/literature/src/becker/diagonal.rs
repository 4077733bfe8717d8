//! Four and more squares (8.1), rectangular matrices (8.2), and products of them (8.3).

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::Result;
use apportion::geometry::{Rank, Rect, Span};
use apportion::plan::shapes::{Communication, Hybrid, LayoutMethod, SquareCorner};
use apportion::plan::{Layout, Part, Shape};

pub struct Diagonal;

impl Experiment for Diagonal {
    fn about(&self) -> About {
        About {
            ids: &["becker-8.1", "becker-8.2", "becker-8.3"],
            source: "Becker 2010, 8",
            shows: "squares on the diagonal by their five rules; Propositions 8.1 and 8.2, and the case left \
                 open",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        rules(&mut report)?;
        rectangles(&mut report);
        products(&mut report)?;
        open_case(&mut report)?;
        Ok(report)
    }
}

/// A figure, and speeds of which those of the squares come last.
struct Case {
    figure: &'static str,
    speeds: &'static [f64],
}

/// Figure 8.2 has four partitions, Figure 8.3 more; in the last case the squares bisect the matrix.
const CASES: [Case; 3] = [
    Case { figure: "8.2", speeds: &[91.0, 4.0, 4.0, 1.0] },
    Case { figure: "8.3", speeds: &[964.0, 9.0, 9.0, 9.0, 9.0] },
    Case { figure: "8.3, bisected", speeds: &[6.0, 1.0, 1.0, 1.0] },
];

/// The five rules of 8.1.
fn rules(report: &mut Report) -> Result<()> {
    for Case { figure, speeds } in &CASES {
        let n = 9_000;
        let layout = SquareCorner.layout(Shape::new(n, n, n, "8.1")?, speeds)?;
        let rects = layout.rects_by_owner();
        let squares: Vec<Rect> = rects[1..].iter().flatten().copied().collect();
        let all_square = squares.len() == speeds.len() - 1
            && squares.iter().all(|r| r.rows.len().abs_diff(r.cols.len()) <= 1);
        let apart = |a: Span, b: Span| a.end <= b.start || b.end <= a.start;
        let strangers = (0..squares.len()).all(|i| {
            (0..i).all(|j| apart(squares[i].rows, squares[j].rows) && apart(squares[i].cols, squares[j].cols))
        });
        let one_each = rects.iter().all(|own| !own.is_empty()) && rects.len() == speeds.len();
        let total: f64 = speeds.iter().sum();
        let off = layout
            .shares()
            .into_iter()
            .zip(*speeds)
            .map(|(share, speed)| (share as f64 / (n * n) as f64 / (speed / total) - 1.0).abs());
        let off = off.fold(0.0, f64::max);
        let whole = |parts: Vec<Part>| -> u64 { parts.iter().map(|part| part.rect().area()).sum() };
        let alike = [layout.parts_of_a(), layout.parts_of_b()].into_iter().all(|parts| {
            let same = parts.iter().all(|part| layout.parts().contains(part));
            same && whole(parts) == n * n
        });
        let rules = [
            ("rule 1: all but one are squares", all_square),
            ("rule 2: no two squares share a row or a column", strangers),
            ("rule 3: a partition for each cluster", one_each),
            ("rule 5: A, B and C are partitioned alike", alike),
        ];
        for (rule, holds) in rules {
            let what = format!("Figure {figure}: {rule}");
            report.checks.push(Check::new(what, "yes", if holds { "yes" } else { "no" }, holds));
        }
        report.checks.push(
            Check::new(
                format!("Figure {figure}: rule 4: areas in proportion to speeds"),
                "equal",
                format!("within {:.2} %", 100.0 * off),
                off < 0.005,
            )
            .within("0.5 %"),
        );
    }
    let n = 9_000;
    let bisected = SquareCorner.layout(Shape::new(n, n, n, "8.1")?, &[6.0, 1.0, 1.0, 1.0])?;
    let pieces = components(&bisected.rects_by_owner()[0]);
    report.checks.push(Check::new(
        "Figure 8.3: squares that bisect the matrix leave the first cluster pieces, one logical partition",
        2,
        pieces,
        pieces == 2,
    ));
    Ok(())
}

/// The number of pieces of a region whose rectangles share an edge.
fn components(rects: &[Rect]) -> usize {
    let common = |a: Span, b: Span| a.start.max(b.start) < a.end.min(b.end);
    let meets = |a: Span, b: Span| a.end == b.start || b.end == a.start;
    let joined = |a: &Rect, b: &Rect| {
        (common(a.rows, b.rows) && meets(a.cols, b.cols)) || (common(a.cols, b.cols) && meets(a.rows, b.rows))
    };
    let mut group: Vec<usize> = (0..rects.len()).collect();
    for (i, j) in (0..rects.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
        if joined(&rects[i], &rects[j]) {
            let (from, to) = (group[i], group[j]);
            group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
        }
    }
    group.sort_unstable();
    group.dedup();
    group.len()
}

/// Proposition 8.1: Gamma = alpha y + beta x of a rectangle alpha x beta in one of x by y.
fn rectangles(report: &mut Report) {
    let (x, y, area) = (2.0, 8.0, 1.0);
    let gamma = |alpha: f64| alpha * y + area / alpha * x;
    let least = (1..=4000).map(|i| f64::from(i) / 1000.0).min_by(|a, b| gamma(*a).total_cmp(&gamma(*b)));
    let alpha = least.unwrap_or(f64::NAN);
    report.checks.push(Check::near(
        "Proposition 8.1: alpha / beta of the least Gamma in a matrix of x by y = 2 by 8",
        x / y,
        alpha / (area / alpha),
        1e-2,
    ));
    let (beta, c) = (area / alpha, 0.2);
    let wider = c * beta / (alpha - c);
    report.checks.push(Check::near(
        "(8.2): the area is kept by c' = c beta / (alpha - c)",
        alpha * beta,
        (alpha - c) * (beta + wider),
        1e-12,
    ));
    // S(c), its first and second derivative at some c, by differences.
    let s = |c: f64| x * (beta + c * beta / (alpha - c)) + y * (alpha - c);
    let step = 1e-5;
    let first = (s(c + step) - s(c - step)) / (2.0 * step);
    let second = (s(c + 1e-3) - 2.0 * s(c) + s(c - 1e-3)) / 1e-6;
    let printed = 2.0 * alpha * c * y - y * c * c;
    report.checks.push(
        Check::near("Proposition 8.1, proof: dS/dc at alpha = 0.5, c = 0.2", printed, first, 1e-3).unless(
            Verdict::PublishedWrong,
            "dS/dc is x alpha beta / (alpha - c)^2 - y. The next lines multiply by (alpha - c)^2 without \
             saying so, and the printed derivative, 1.28, is (alpha - c)^2 = 0.09 times the true one, 14.2. \
             The sign is the same.",
        ),
    );
    report.checks.push(
        Check::near(
            "Proposition 8.1, proof: second derivative of S at alpha = 0.5, c = 0.2",
            2.0 * y * (alpha - c),
            second,
            1e-2,
        )
        .unless(
            Verdict::PublishedWrong,
            "It is 2 x alpha beta / (alpha - c)^3 > 0 for every c < alpha, here 148; the printed one, 4.8, \
             is the derivative of the line before. Since S is convex, the minimum at c = 0 is the only one, \
             and the paragraph on negative c, which has the first derivative under the name of the second, \
             is not needed.",
        ),
    );
}

/// The layout of a rectangle of `high` rows in the corner of a product, for a number of elements of the
/// second processor.
fn corner(shape: Shape, high: u64, elements: u64) -> Result<Layout> {
    let wide = (elements as f64 / high as f64).round() as u64;
    let (rows, cols) = (Span::new(shape.m - high, shape.m), Span::new(shape.n - wide, shape.n));
    let rest = [
        Rect::new(Span::new(0, rows.start), Span::new(0, shape.n)),
        Rect::new(rows, Span::new(0, cols.start)),
    ];
    let rest = rest.into_iter().filter(|rect| !rect.is_empty()).map(|rect| Part::new(Rank(0), rect));
    Layout::new(shape, 2, rest.chain([Part::new(Rank(1), Rect::new(rows, cols))]))
}

/// (8.3) and Proposition 8.2: the volume n (alpha + beta) of a product m x n by n x p.
fn products(report: &mut Report) -> Result<()> {
    // m = 600, n = 700, p = 1200 of the thesis: the inner dimension is `k` here.
    let shape = Shape::new(600, 700, 1200, "8.3")?;
    let elements = 240 * 240;
    let mut table = Table::new(
        "Volume of a product of 600 x 700 by 700 x 1200 with a rectangle of 57,600 elements in the corner",
        &["alpha", "beta", "n (alpha + beta)", "here"],
    );
    let (mut off, mut least) = (0, (u64::MAX, 0));
    for high in [96, 120, 160, 200, 225, 240, 256, 288, 320, 360, 480, 576] {
        let here = corner(shape, high, elements)?.volume();
        let by_formula = 700 * (high + elements / high);
        off = off.max(here.abs_diff(by_formula));
        least = least.min((here, high));
        table.row([high, elements / high, by_formula, here].map(|x| x.to_string()));
    }
    report.tables.push(table);
    report.checks.push(Check::new(
        "(8.3): volume with alpha x beta in the corner",
        "n (alpha + beta)",
        format!("within {off}"),
        off == 0,
    ));
    report.checks.push(Check::new(
        "Proposition 8.2: the rectangle of least volume",
        "240 x 240",
        format!("{0} x {1}", least.1, elements / least.1),
        least.1 == 240,
    ));
    let [other, same] = [Shape::new(600, 700, 1200, "8.3")?, Shape::new(900, 700, 800, "8.3")?]
        .map(|shape| corner(shape, 240, elements).map(|layout| layout.volume()));
    let (other, same) = (other?, same?);
    report.checks.push(Check::new(
        "8.3: the volume depends on n alone: 600 x 700 x 1200 and 900 x 700 x 800",
        "equal",
        format!("{other} and {same}"),
        other == same,
    ));
    // 8.2 against 8.3: the rectangle scaled to C moves more.
    let scaled = corner(shape, 160, 160 * 360)?.volume();
    report.checks.push(Check::new(
        "8.3: the rectangle scaled as by Proposition 8.1 does not minimise the volume of a product",
        "more than the square",
        format!("{} against {}", scaled, least.0),
        scaled > least.0,
    ));
    Ok(())
}

/// The case that 8.3 leaves open: the square would be longer than the matrix is high.
fn open_case(report: &mut Report) -> Result<()> {
    let shape = Shape::new(100, 300, 2000, "8.3")?;
    let mut table = Table::new(
        "A square that does not fit: 100 x 300 by 300 x 2000, least volume over all rectangles, and the \
         library's",
        &["ratio", "side of the square", "least", "height", "here"],
    );
    let mut equal = true;
    for ratio in [1.0_f64, 3.0, 9.0, 15.0] {
        let elements = (100.0 * 2000.0 / (1.0 + ratio)).round() as u64;
        // Every height at which the rectangle fits; at the full height it is a strip.
        let fits = |high: &u64| elements.div_ceil(*high) <= shape.n;
        let mut least = (u64::MAX, 0);
        for high in (1..=shape.m).filter(fits) {
            least = least.min((corner(shape, high, elements)?.volume(), high));
        }
        let library = Hybrid { communication: Communication::Serial, centre: None };
        let here = library.layout(shape, &[ratio, 1.0])?.volume();
        equal &= here == least.0;
        table.row([
            format!("{ratio}:1"),
            short((elements as f64).sqrt()),
            least.0.to_string(),
            least.1.to_string(),
            here.to_string(),
        ]);
    }
    report.tables.push(table);
    report.checks.push(Check::new(
        "8.3, the open case: a strip across the shorter side moves least where the square is longer than \
         that side",
        "left open",
        if equal {
            "a strip of n min(m, p) elements, by trying every rectangle"
        } else {
            "another rectangle"
        },
        equal,
    ));
    report.note(
        "In the open case a rectangle alpha x beta of the same area moves n (alpha + beta) > n 2 m as long \
         as it is shorter than the matrix is high, and a strip of full height n m only: no row of C is then \
         shared.",
    );
    Ok(())
}
