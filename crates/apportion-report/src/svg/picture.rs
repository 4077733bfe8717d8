//! Regions and borders of a plan, in pixels.

use super::clusters::regions;
use super::slices::{Slices, slices};
use super::{CORNER, FEW, FOOT, LONGEST, SIDE, SMALL, WIDE, alike};
use crate::canvas::Canvas;
use crate::markup::{INK, escape, percent};
use apportion::geometry::{Rect, Span, SpanSet};
use apportion::plan::{Division, Layout, Plan, Problem, Shape};
use apportion::units::show_count;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Least height of a bar in a page.
const BAR: f64 = 36.0;

/// Room above slices for their inner indices.
const ABOVE: f64 = 12.0;

/// Above this number of rectangles, pairs that touch are not looked for.
const MOST_COMPARED: usize = 700;

/// Rectangles by owner, and the scale at which they are drawn.
pub(super) struct Picture {
    canvas: Canvas,
    pub(crate) rects: Vec<Vec<Rect>>,
    /// Left and top in pixels, beside which the rows are named.
    pub(crate) corner: [f64; 2],
    /// Width and height in pixels.
    pub(crate) size: [f64; 2],
    /// Pixels per column and per row.
    scale: [f64; 2],
    /// The sides are in proportion.
    to_scale: bool,
    /// The columns and the inner indices of slices, if the inner dimension is cut.
    slices: Vec<(Span, Span)>,
    /// Number of slices, drawn or not.
    all: usize,
}

impl Picture {
    /// Of a graph, `raster` is drawn, if there is one.
    pub(crate) fn of(plan: &Plan, raster: Option<&Layout>, canvas: Canvas) -> Self {
        let bar = |n: u64| Slices { rects: bar(&plan.shares), cols: n.max(1), slices: Vec::new(), all: 1 };
        let (Slices { rects, cols, slices, all }, rows, sides) = match (&plan.division, raster) {
            (
                Division::Matmul(layout) | Division::Grid(layout) | Division::Factorisation { layout, .. },
                _,
            )
            | (Division::Graph { .. }, Some(layout)) => {
                let (drawn, m) = (slices(layout), layout.shape().m);
                let sides = drawn.cols as f64 / m as f64;
                (drawn, m, sides)
            }
            (Division::Units { n } | Division::Graph { n, .. }, _) => (bar(*n), 1, LONGEST),
        };
        let ratio = sides.clamp(1.0 / LONGEST, LONGEST);
        let (corner, side, wide) = match canvas {
            Canvas::File => {
                let [side, wide] = if plan.processors.len() <= FEW { SMALL } else { [SIDE, WIDE] };
                // The inner indices of slices stand above them.
                let room = if slices.is_empty() { 0.0 } else { ABOVE };
                ([CORNER[0], CORNER[1] + room], side, wide)
            }
            // Units have no rows. In a page they may be as high as a bar.
            Canvas::Page(width) => {
                let left = if rows == 1 { 2.0 } else { 24.0 };
                ([left, 2.0], width - left - 2.0, width - left - 2.0)
            }
        };
        let size = if ratio > 1.5 {
            [wide, wide / ratio]
        } else if ratio >= 1.0 {
            [side, side / ratio]
        } else {
            [side * ratio, side]
        };
        // In a page a bar has room for names.
        let size = match canvas {
            Canvas::Page(_) if rows == 1 => [size[0], size[1].max(BAR)],
            _ => size,
        };
        let scale = [size[0] / cols as f64, size[1] / rows as f64];
        Self { canvas, rects, corner, size, scale, to_scale: ratio == sides, slices, all }
    }

    /// Left, top, right and bottom of a rectangle, in pixels.
    pub(crate) fn place(&self, rect: Rect) -> [f64; 4] {
        let x = |col: u64| self.corner[0] + col as f64 * self.scale[0];
        let y = |row: u64| self.corner[1] + row as f64 * self.scale[1];
        [x(rect.cols.start), y(rect.rows.start), x(rect.cols.end), y(rect.rows.end)]
    }

    /// Pairs of processors whose regions touch along an edge; none if there are very many regions.
    pub(crate) fn neighbours(&self) -> Vec<(usize, usize)> {
        let owned = self.rects.iter().enumerate().flat_map(|(i, rects)| rects.iter().map(move |r| (i, r)));
        let all: Vec<(usize, &Rect)> = owned.take(MOST_COMPARED + 1).collect();
        if all.len() > MOST_COMPARED {
            return Vec::new();
        }
        let pairs = all.iter().enumerate().flat_map(|(k, a)| all[..k].iter().map(move |b| (b, a)));
        pairs.filter(|(a, b)| a.0 != b.0 && touch(a.1, b.1)).map(|(a, b)| (a.0, b.0)).collect()
    }

    pub(crate) fn draw(&self, svg: &mut String, plan: &Plan, colours: &[String], groups: [&[&str]; 2]) {
        let total: u64 = plan.shares.iter().sum();
        svg.push_str("<g shape-rendering=\"crispEdges\">\n");
        for (i, rects) in self.rects.iter().enumerate().filter(|(_, rects)| !rects.is_empty()) {
            let _ = write!(svg, "<path fill=\"{}\" d=\"", colours[i]);
            for [left, top, right, bottom] in rects.iter().map(|r| self.place(*r)) {
                let _ = write!(svg, "M{left:.2} {top:.2}H{right:.2}V{bottom:.2}H{left:.2}Z");
            }
            let words = format!("{}, {} %", plan.processors[i], percent(plan.shares[i], total));
            let _ = writeln!(svg, "\"><title>{}</title></path>", escape(&words));
        }
        svg.push_str("</g>\n");
        let thin = if self.rects.len() > 60 { 0.7 } else { 1.2 };
        self.draw_borders(svg, &self.rects, thin);
        // Clusters within sites, then sites.
        let [sites, clusters] = groups;
        if !alike(sites, clusters) {
            self.draw_group_borders(svg, clusters, 2.4 * thin);
        }
        self.draw_group_borders(svg, sites, 3.6 * thin);
    }

    /// Thicker lines between groups of processors, if there are groups.
    fn draw_group_borders(&self, svg: &mut String, groups: &[&str], width: f64) {
        let regions: Vec<Vec<Rect>> =
            regions(groups, &self.rects).into_iter().map(|(_, rects)| rects).collect();
        if regions.is_empty() {
            return;
        }
        self.draw_borders(svg, &regions, width);
    }

    /// Lines where the owner changes, and around the whole.
    fn draw_borders(&self, svg: &mut String, rects: &[Vec<Rect>], width: f64) {
        let (across, down) = (borders(rects, |r| (r.rows, r.cols)), borders(rects, |r| (r.cols, r.rows)));
        let _ = write!(
            svg,
            "<path fill=\"none\" stroke=\"{INK}\" stroke-width=\"{width:.2}\" stroke-linecap=\"square\" d=\""
        );
        for (&row, set) in &across {
            for cols in set.spans() {
                let [left, y, right, _] = self.place(Rect::new(Span::new(row, row), *cols));
                let _ = write!(svg, "M{left:.2} {y:.2}H{right:.2}");
            }
        }
        for (&col, set) in &down {
            for rows in set.spans() {
                let [x, top, _, bottom] = self.place(Rect::new(*rows, Span::new(col, col)));
                let _ = write!(svg, "M{x:.2} {top:.2}V{bottom:.2}");
            }
        }
        svg.push_str("\"/>\n");
    }

    /// The lengths of the sides.
    pub(crate) fn draw_sides(&self, svg: &mut String, plan: &Plan) {
        let count = |n: u64| show_count(u128::from(n));
        let note = if self.to_scale { "" } else { " (not to scale)" };
        let (rows, cols) = match plan.problem() {
            Problem::Matmul(Shape { m, n, .. }) | Problem::Grid { m, n } => {
                (format!("{} rows", count(m)), format!("{} columns{note}", count(n)))
            }
            Problem::Factorisation { n, .. } | Problem::Syrk { n, .. } => {
                (format!("{} rows", count(n)), format!("{} columns{note}", count(n)))
            }
            Problem::Units { n } => (String::new(), format!("{} units", count(n))),
            Problem::Graph { n, .. } => (String::new(), format!("{} vertices", count(n))),
        };
        let cols = match (self.slices.len(), self.all) {
            (0, _) => cols,
            (shown, all) if shown < all => format!("{cols}, {shown} of {all} slices of the inner dimension"),
            _ => format!("{cols}, by slices of the inner dimension"),
        };
        let [left, top] = self.corner;
        // In a page their type would be too small.
        let named = if self.canvas == Canvas::File { &self.slices[..] } else { &[] };
        for (place, inner) in named {
            let [from, _, to, _] = self.place(Rect::new(Span::new(0, 0), *place));
            let _ = writeln!(
                svg,
                "<text font-size=\"10\" text-anchor=\"middle\" fill=\"{INK}\" x=\"{:.2}\" y=\"{:.2}\">{}–{}</text>",
                (from + to) / 2.0,
                top - 6.0,
                count(inner.start),
                count(inner.end)
            );
        }
        let (x, y) = (left + self.size[0] / 2.0, top + self.size[1] / 2.0);
        let turned = left - 12.0;
        let foot = top + self.size[1] + FOOT - 6.0;
        let _ = writeln!(
            svg,
            "<g font-size=\"12\" text-anchor=\"middle\" fill=\"{INK}\"><text x=\"{x:.2}\" y=\"{foot:.2}\">{cols}</text>\
             <text x=\"{turned}\" y=\"{y:.2}\" transform=\"rotate(-90 {turned} {y:.2})\">{rows}</text></g>"
        );
    }
}

/// Whether two rectangles share more than a corner.
pub(super) fn touch(a: &Rect, b: &Rect) -> bool {
    let beside = |a: Span, b: Span| a.end == b.start || b.end == a.start;
    let along = |a: Span, b: Span| a.start < b.end && b.start < a.end;
    (beside(a.rows, b.rows) && along(a.cols, b.cols)) || (beside(a.cols, b.cols) && along(a.rows, b.rows))
}

/// For every cut across the first of the two axes: the spans of the second along which it separates owners.
/// An edge that two rectangles of one owner share cancels out.
pub(super) fn borders(rects: &[Vec<Rect>], axes: impl Fn(&Rect) -> (Span, Span)) -> BTreeMap<u64, SpanSet> {
    let mut lines: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    for own in rects {
        let mut edges: BTreeMap<u64, [Vec<Span>; 2]> = BTreeMap::new();
        for rect in own {
            let (axis, along) = axes(rect);
            edges.entry(axis.start).or_default()[0].push(along);
            edges.entry(axis.end).or_default()[1].push(along);
        }
        for (at, sides) in edges {
            let [starts, ends] = sides.map(SpanSet::union);
            let kept = lines.entry(at).or_default();
            for (one, other) in [(&starts, &ends), (&ends, &starts)] {
                kept.extend(one.spans().iter().flat_map(|span| other.subtract_from(*span)));
            }
        }
    }
    lines.into_iter().map(|(at, spans)| (at, SpanSet::union(spans))).collect()
}

/// The lines where the owner changes, and around the whole, each from [row, column] to [row, column].
pub(crate) fn outlines_of(rects: &[Vec<Rect>]) -> Vec<[[u64; 2]; 2]> {
    let across = borders(rects, |r| (r.rows, r.cols)).into_iter().flat_map(|(row, set)| {
        set.spans().iter().map(|s| [[row, s.start], [row, s.end]]).collect::<Vec<_>>()
    });
    let down = borders(rects, |r| (r.cols, r.rows)).into_iter().flat_map(|(col, set)| {
        set.spans().iter().map(|s| [[s.start, col], [s.end, col]]).collect::<Vec<_>>()
    });
    across.chain(down).collect()
}

/// 1-D shares as rectangles in one row.
fn bar(shares: &[u64]) -> Vec<Vec<Rect>> {
    let mut at = 0;
    let place = |share: &u64| {
        let cols = Span::new(at, at + share);
        at = cols.end;
        if *share == 0 { Vec::new() } else { vec![Rect::new(Span::new(0, 1), cols)] }
    };
    shares.iter().map(place).collect()
}
