//! Row and column interrupts (5.5.3, Figure 5.11), and the part that needs no message (5.5.4, Figure 5.12).

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::Result;
use apportion::plan::shapes::{Grid, LayoutMethod, SquareCorner, SquareEdge, SquareMiddle, StraightLine};
use apportion::plan::{Layout, Metrics, Shape, interrupts, outlines};

const SIZE: u64 = 120_000;

fn shape() -> Result<Shape> {
    Shape::new(SIZE, SIZE, SIZE, "section 5.5")
}

/// A way to lay out two processors.
type Place = &'static dyn LayoutMethod;
/// Figure 5.11: the polygons of the thesis, by its letters.
const PLACES: [(&str, &str, Place); 4] = [
    ("A", "corner", &SquareCorner),
    ("B", "straight line", &StraightLine),
    ("C", "edge", &SquareEdge),
    ("D", "middle", &SquareMiddle),
];
/// Ratios at which the square's side is a whole number of lines.
const RATIOS: [f64; 3] = [3.0, 8.0, 24.0];

/// Interrupts, volume, outlines and half-perimeters of bounding rectangles, in N and N^2.
fn counts(layout: &Layout) -> [f64; 4] {
    let metrics = Metrics::of_layout(layout, 1.0);
    let n = SIZE as f64;
    [
        interrupts(layout) as f64 / n,
        metrics.volume.map_or(f64::NAN, |v| v as f64 / (n * n)),
        outlines(layout),
        metrics.sum_half_perimeters.unwrap_or(f64::NAN),
    ]
}

pub struct Interrupts;

impl Experiment for Interrupts {
    fn about(&self) -> About {
        About {
            ids: &["becker-5.11", "becker-5.5.3", "becker-5.12"],
            source: "Becker 2010, 5.5.3 and 5.5.4",
            shows: "row and column interrupts, TVC / I = N / 2, and the part that needs no message",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        let header =
            ["figure", "place", "ratio", "I / N", "volume / N^2", "volume / (I N)", "outlines", "bounding"];
        let mut table = Table::new("Figure 5.11: interrupts, volume and half-perimeters", &header);
        let [mut of_square, mut of_line, mut half] = [0.0_f64; 3];
        let mut proportional = [[f64::INFINITY, 0.0]; 4];
        for ratio in RATIOS {
            let side = 1.0 / (1.0_f64 + ratio).sqrt();
            for (i, (letter, name, place)) in PLACES.into_iter().enumerate() {
                let [interrupts, volume, outlines, bounding] =
                    counts(&place.layout(shape()?, &[ratio, 1.0])?);
                match name {
                    "straight line" => of_line = of_line.max((interrupts - 2.0).abs()),
                    _ => of_square = of_square.max((interrupts - 4.0 * side).abs()),
                }
                half = half.max((volume / interrupts - 0.5).abs());
                let slope = (outlines - 2.0) / volume;
                proportional[i] = [proportional[i][0].min(slope), proportional[i][1].max(slope)];
                let numbers = [interrupts, volume, volume / interrupts, outlines, bounding].map(short);
                table.row(
                    [letter.to_owned(), name.to_owned(), format!("{ratio}:1")].into_iter().chain(numbers),
                );
            }
        }
        report.tables.push(table);
        let equal = |what: &str, formula: &str, off: f64| {
            Check::new(what, formula, format!("within {off:.1e}"), off < 1e-9).within("1e-9")
        };
        report.checks.push(equal("(5.18): interrupts of a square anywhere", "4 sqrt(s2)", of_square));
        report.checks.push(equal("(5.18): interrupts of the straight line", "2 N", of_line));
        report.checks.push(equal("TVC / I for two processors, any of the four shapes", "N / 2", half));
        let [a, b, c, d] = proportional.map(|range| short(range[1]));
        report.checks.push(Check::new(
            "Figure 5.11: half-perimeters (less 2) per volume: the same for A and B, another for C and for D",
            "A = B, C and D differ",
            format!("A {a}, B {b}, C {c}, D {d}"),
            a == b && a != c && a != d && c != d,
        ));
        several(&mut report)?;
        free_part(&mut report)?;
        report.note(
            "The command has the interrupts of a plan as `interrupts` in the metrics of its JSON: `apportion \
             partition --shape 1200x1200 --speeds 8,1 --method square-corner --json`.",
        );
        Ok(report)
    }
}

/// The conclusion of 5.5.3 for more than two parts.
fn several(report: &mut Report) -> Result<()> {
    let mut table =
        Table::new("Equal squares: volume over I N", &["parts", "I / N", "volume / N^2", "volume / (I N)"]);
    let mut ratios = Vec::new();
    for parts in [4, 9, 16] {
        let [interrupts, volume, ..] = counts(&Grid::default().layout(shape()?, &vec![1.0; parts])?);
        table.row([parts.to_string(), short(interrupts), short(volume), short(volume / interrupts)]);
        ratios.push(volume / interrupts);
    }
    report.tables.push(table);
    let same = ratios.iter().all(|ratio| (ratio - 0.5).abs() < 1e-9);
    let here: Vec<String> = ratios.iter().map(|&ratio| short(ratio)).collect();
    report.checks.push(
        Check::new(
            "5.5.3: interrupts are proportional to the volume of any partitioning; TVC / (I N) of 4, 9, 16 \
             squares",
            "0.5",
            here.join(", "),
            same,
        )
        .unless(
            Verdict::PublishedWrong,
            "The thesis concludes this without proof. A line that q parts share is interrupted q times and \
             moved q - 1 times, so that TVC / I is N (q - 1) / q: N / 2 for q = 2 only, 2 N / 3 for nine \
             squares.",
        ),
    );
    Ok(())
}

/// Figure 5.12: the part of C that the first processor computes without any message.
fn free_part(report: &mut Report) -> Result<()> {
    let (mut off, mut pieces) = (0.0_f64, Vec::new());
    let mut areas = Vec::new();
    for (_, name, place) in PLACES.into_iter().filter(|(_, name, _)| *name != "straight line") {
        let layout = place.layout(shape()?, &[8.0, 1.0])?;
        let free = Metrics::of_layout(&layout, 1.0).communication_free.unwrap_or_default();
        let area = free.first().map_or(f64::NAN, |&free| free as f64 / (SIZE as f64).powi(2));
        off = off.max((area - (1.0_f64 - 1.0 / 3.0).powi(2)).abs());
        areas.push((name, area));
        // Rows and columns that the square does not touch: before it and after it.
        let rect = layout.rects_by_owner()[1][0];
        let count = |start: u64, end: u64| usize::from(start > 0) + usize::from(end < SIZE);
        pieces.push(count(rect.rows.start, rect.rows.end) * count(rect.cols.start, rect.cols.end));
    }
    report.checks.push(
        Check::new(
            "Figure 5.12: the area at 8:1",
            "(1 - sqrt(s2))^2 N^2",
            format!("within {off:.1e}"),
            off < 1e-9,
        )
        .within("1e-9"),
    );
    let line = StraightLine.layout(shape()?, &[8.0, 1.0])?;
    let none = Metrics::of_layout(&line, 1.0).communication_free.unwrap_or_default().iter().sum::<u64>();
    report.checks.push(Check::new("5.5.4: the straight line has no such part", 0, none, none == 0));
    let most = areas[1..].iter().all(|(_, area)| *area < areas[0].1);
    let here: Vec<String> = areas
        .iter()
        .zip(pieces)
        .map(|((name, area), pieces)| format!("{name} {} in {pieces}", short(*area)))
        .collect();
    report.checks.push(
        Check::new(
            "5.5.4: one corner maximises this area; at 8:1, in N^2",
            "most in the corner",
            format!("{} pieces", here.join(", ")),
            most,
        )
        .unless(
            Verdict::PublishedWrong,
            "The rows and columns that the square does not touch are N - sqrt(s2) N in number wherever it \
             is: the area is the same. The corner alone has it in one piece.",
        ),
    );
    Ok(())
}
