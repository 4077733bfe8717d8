//! A line plot: several series over one axis, as a self-contained picture.

mod axes;
mod curves;
mod labels;
mod scale;
mod style;

pub(super) use labels::spread;

use super::canvas::Canvas;
use super::markup::{INK, escape};
use apportion::units::show_count;
use std::borrow::Cow;
use std::fmt::Write;

/// Left, top, right and bottom of the plotting area, before room is made for labels.
const AREA: [f64; 4] = [92.0, 74.0, 640.0, 414.0];
/// Left, top and bottom in a page; the right end leaves room for the labels.
const PAGE_AREA: [f64; 3] = [72.0, 12.0, 292.0];
/// Size of ordinary type.
const TYPE: f64 = 12.0;
/// Width of an average character, as a fraction of the font size.
const CHARACTER: f64 = 0.58;
/// Maximum number of different curves drawn: more cannot be distinguished, and the picture stays small.
const MOST_CURVES: usize = 100;
/// The same in a page, whose labels are never small.
const MOST_IN_PAGE: usize = 12;
/// Maximum number of points of a curve that are drawn.
const MOST_POINTS: usize = 2000;
/// Ratio of the largest to the smallest value from which an axis is logarithmic by default.
const WIDE: [f64; 2] = [50.0, 20.0];

/// The contents of a plot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plot {
    /// The heading, and a line beneath it.
    pub title: [String; 2],
    /// The labels of the horizontal and the vertical axis: quantity and unit.
    pub axes: [String; 2],
    /// The curves; each is labelled at its right end.
    pub series: Vec<Series>,
    /// Heights of horizontal lines across the plot, with their names.
    pub references: Vec<(f64, String)>,
    /// Points that are marked with a ring and a line down to the axis, with their texts.
    pub marks: Vec<([f64; 2], String)>,
    /// Remarks beneath the plot.
    pub notes: Vec<String>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Its name, at the end of the curve.
    pub name: String,
    /// Points from left to right; those that are not finite leave a gap.
    pub points: Vec<[f64; 2]>,
    /// Drawn in short dashes with hollow marks, as for a bound or a minimum.
    pub dashed: bool,
    /// Number of its style: colour, dashes and marker. Series with the same number share them.
    pub colour: usize,
    /// A shaded area: horizontal place, lower and upper edge.
    pub band: Vec<[f64; 3]>,
    /// The points with markers, such as those that were measured; `None`: all, if there are at most 60.
    pub marked: Option<Vec<[f64; 2]>>,
}

/// Draws a plot as a self-contained SVG 1.1 document, with logarithmic axes where [`wide_axes`] suggests
/// them. The same plot gives the same bytes.
pub fn plot_svg(plot: &Plot) -> String {
    plot_svg_on(plot, wide_axes(plot))
}

/// Whether the horizontal and the vertical axis should be logarithmic: all values are positive, and their
/// range exceeds a factor of 50 (horizontal) or 20 (vertical).
pub fn wide_axes(plot: &Plot) -> [bool; 2] {
    [0, 1].map(|axis| {
        let values = || plot.values(axis).filter(|x| *x != 0.0 || axis == 0);
        let (least, most) = values().fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
        least > 0.0 && most.is_finite() && most > WIDE[axis] * least
    })
}

/// As [`plot_svg`], with logarithmic axes where `logarithmic` (horizontal, vertical) is true. On such an axis
/// values that are not positive are drawn at its lower end.
///
/// Every curve has a combination of colour, dashes and marker of its own, and its name beside its right end.
/// Curves that coincide everywhere share a label ("a = b"); where curves coincide in part, their dashes
/// alternate. An axis that does not start at zero has a break and a remark. Of more than 100 curves, 100
/// spread over the range are drawn, which a remark says.
pub fn plot_svg_on(plot: &Plot, logarithmic: [bool; 2]) -> String {
    draw(plot, logarithmic, Canvas::File)
}

/// As [`plot_svg_on`], on a canvas. In a page, title, subtitle and notes are the page's.
pub(super) fn draw(plot: &Plot, logarithmic: [bool; 2], canvas: Canvas) -> String {
    let most = if canvas == Canvas::File { MOST_CURVES } else { MOST_IN_PAGE };
    let (series, unseen) = curves::limit_points(&plot.series, most);
    let mut area = AREA;
    let horizontal = |area| scale::Scale::horizontal(plot.values(0), logarithmic[0], area);
    let (mut xs, mut ys) = (horizontal(area), scale::Scale::vertical(plot.values(1), logarithmic[1], area));
    let groups = curves::merged(&series, [&xs, &ys]);
    let labels = labels::Labels::new(plot, &series, &groups, canvas);
    if let Canvas::Page(width) = canvas {
        let [left, top, bottom] = PAGE_AREA;
        area = [left, top, (width - labels.width()).max(left + 100.0), bottom];
        xs = horizontal(area);
        ys = scale::Scale::vertical(plot.values(1), logarithmic[1], area);
    }
    let bottom = area[3].max(area[1] + labels.height());
    ys.from = bottom;
    let mut notes = plot.notes.clone();
    if unseen > 0 {
        let [shown, all] = [series.len(), plot.series.len()].map(|n| show_count(n as u128));
        notes.push(format!("{shown} of {all} curves are drawn, spread over their range"));
    }
    for (scale, name) in [(&xs, "horizontal"), (&ys, "vertical")] {
        notes.extend(scale.broken().map(|from| format!("the {name} axis starts at {from}, not at 0")));
    }
    if let Canvas::Page(width) = canvas {
        let mut svg = canvas.head([width, bottom + 50.0], &svg_type(), &escape(&plot.title[0]));
        draw_inside(&mut svg, plot, &series, &groups, &labels, [&xs, &ys], true);
        svg.push_str("</svg>\n");
        return svg;
    }
    let mut page = [AREA[2] + labels.width() + 24.0, bottom + 62.0];
    let fit =
        |text: &str, size: f64| super::text::wrapped(text, ((page[0] - 48.0) / (size * CHARACTER)) as usize);
    let (subtitle, notes): (Vec<_>, Vec<_>) =
        (fit(&plot.title[1], 13.0), notes.iter().flat_map(|note| fit(note, TYPE)).collect());
    // A long subtitle moves everything down.
    let shift = 16.0 * subtitle.len().saturating_sub(1) as f64;
    page[1] += shift + 16.0 * notes.len() as f64;
    let mut svg = canvas.head(page.map(f64::ceil), &svg_type(), &escape(&plot.title[0]));
    let _ = writeln!(
        svg,
        "<text x=\"24\" y=\"30\" font-size=\"17\" font-weight=\"bold\">{}</text>",
        escape(&plot.title[0])
    );
    for (i, line) in subtitle.iter().enumerate() {
        let y = 51.0 + 16.0 * i as f64;
        let _ = writeln!(svg, "<text x=\"24\" y=\"{y}\" font-size=\"13\">{}</text>", escape(line));
    }
    let _ = writeln!(svg, "<g transform=\"translate(0 {shift})\">");
    draw_inside(&mut svg, plot, &series, &groups, &labels, [&xs, &ys], false);
    for (i, note) in notes.iter().enumerate() {
        let y = bottom + 62.0 + 16.0 * i as f64;
        let _ = writeln!(svg, "<text x=\"24\" y=\"{y}\" font-style=\"italic\">{}</text>", escape(note));
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// The attributes of the type of a plot.
fn svg_type() -> String {
    format!(" font-size=\"{TYPE}\" fill=\"{INK}\"")
}

/// Axes, curves, marks (with titles if `titled`) and labels.
fn draw_inside(
    svg: &mut String,
    plot: &Plot,
    series: &[Cow<'_, Series>],
    groups: &[Vec<usize>],
    labels: &labels::Labels,
    [xs, ys]: [&scale::Scale; 2],
    titled: bool,
) {
    axes::draw(svg, plot, xs, ys);
    curves::draw(svg, series, groups, [xs, ys]);
    axes::draw_marks(svg, plot, [xs, ys], titled);
    labels.draw(svg, [xs, ys]);
}

impl Plot {
    /// All finite values on an axis.
    fn values(&self, axis: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        let points = self.series.iter().flat_map(move |s| {
            let edges = s.band.iter().flat_map(move |b| if axis == 0 { [b[0]; 2] } else { [b[1], b[2]] });
            let all = s.points.iter().chain(s.marked.iter().flatten());
            all.filter(|p| finite(p)).map(move |p| p[axis]).chain(edges)
        });
        let heights = self.references.iter().map(|r| r.0).filter(move |_| axis == 1);
        let marks = self.marks.iter().map(move |m| m.0[axis]);
        points.chain(heights).chain(marks).filter(|x| x.is_finite())
    }
}

fn finite(point: &[f64; 2]) -> bool {
    point.iter().all(|x| x.is_finite())
}

#[cfg(test)]
mod tests;
