//! The picture of a plan: the parts of C and their owners.

use super::legend::Legend;
use super::palette::colours;
use crate::geometry::{Rect, Span, SpanSet};
use crate::plan::{Division, Plan, Problem};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The colour of text and lines.
pub(super) const INK: &str = "#1a1a1a";

/// Margin around everything.
const MARGIN: f64 = 24.0;
/// Height of the two lines of title.
const TITLE: f64 = 52.0;
/// Longest side of the picture.
const SIDE: f64 = 600.0;
/// Longest side of a picture that is much wider than high: the legend goes beneath it.
const WIDE: f64 = 900.0;
/// Ratio of sides beyond which a picture is no longer to scale.
const LONGEST: f64 = 10.0;
/// The smallest font size of a region's label.
const SMALLEST_TYPE: f64 = 8.0;
/// Width of an average character of a sans-serif font, as a fraction of its size.
const CHARACTER: f64 = 0.62;

/// Draws a plan as a self-contained SVG 1.1 document: every processor's region in the colour of its cluster,
/// with its name and percentage if there is room, and a legend. 1-D shares are drawn as a bar.
///
/// `clusters` holds the cluster of each processor, by rank; a processor beyond its end is its own cluster.
/// The picture has the matrix's proportions, up to 10:1. The same plan gives the same bytes. O(R log R) for R
/// rectangles.
pub fn plan_svg(plan: &Plan, clusters: &[String]) -> String {
    let names = plan.processors.iter().enumerate();
    let clusters: Vec<&str> = names.map(|(i, name)| clusters.get(i).unwrap_or(name).as_str()).collect();
    let colours = colours(&clusters);
    let legend = Legend::new(plan, &clusters, &colours);
    let picture = Picture::of(plan);
    let [width, height] = picture.size;
    let beneath = width > 1.5 * height;
    let (lines, place) = if beneath {
        let columns = (width / legend.column()) as usize;
        (legend.lines_for(columns), [MARGIN, MARGIN + TITLE + height + 12.0])
    } else {
        (legend.lines_in(height.max(0.75 * SIDE)), [MARGIN + width + 28.0, MARGIN + TITLE])
    };
    let table = legend.size(lines);
    let [title, costs] = titles(plan);
    let text = (title.chars().count() as f64 * 18.0).max(costs.chars().count() as f64 * 13.0) * CHARACTER;
    let page = [
        (place[0] + table[0]).max(MARGIN + width).max(MARGIN + text) + MARGIN,
        (place[1] + table[1]).max(MARGIN + TITLE + height) + MARGIN,
    ];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0}\" height=\"{1:.0}\" viewBox=\"0 0 {0:.0} {1:.0}\" \
         font-family=\"Helvetica, Arial, sans-serif\" role=\"img\">\n<title>{2}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"{3}\" font-size=\"18\" font-weight=\"bold\" fill=\"{INK}\">{2}</text>\n\
         <text x=\"{MARGIN}\" y=\"{4}\" font-size=\"13\" fill=\"{INK}\">{5}</text>\n",
        page[0].ceil(),
        page[1].ceil(),
        escape(&title),
        MARGIN + 14.0,
        MARGIN + 36.0,
        escape(&costs),
    );
    picture.draw(&mut svg, plan, &colours);
    legend.draw(&mut svg, place, lines);
    svg.push_str("</svg>\n");
    svg
}

/// The title lines: the subject and its costs.
fn titles(plan: &Plan) -> [String; 2] {
    let p = plan.processors.len();
    let processors =
        if p == 1 { "1 processor".to_owned() } else { format!("{} processors", grouped(p as u64)) };
    let what = match plan.problem() {
        Problem::Matmul(s) => format!("C of {} × {}, k = {}", grouped(s.m), grouped(s.n), grouped(s.k)),
        Problem::Units { n } => format!("{} units", grouped(n)),
    };
    let metrics = &plan.metrics;
    let mut costs = Vec::new();
    if let Some(volume) = metrics.volume {
        costs.push(format!("volume {} elements", grouped(volume)));
    }
    if let (Some(cost), Some(bound)) = (metrics.sum_half_perimeters, metrics.lower_bound) {
        costs.push(format!("half-perimeters {cost:.3} = {:.3} × lower bound", cost / bound));
    }
    if metrics.imbalance.is_finite() {
        costs.push(format!("imbalance {:.4}", metrics.imbalance));
    }
    [format!("{}: {what}, {processors}", plan.method), costs.join(" · ")]
}

/// Rectangles by owner, and the scale at which they are drawn.
struct Picture {
    rects: Vec<Vec<Rect>>,
    /// Width and height in pixels.
    size: [f64; 2],
    /// Pixels per column and per row.
    scale: [f64; 2],
}

impl Picture {
    fn of(plan: &Plan) -> Self {
        let (rects, cols, rows, ratio) = match &plan.division {
            Division::Matmul(layout) => {
                let (m, n) = (layout.shape().m, layout.shape().n);
                (layout.rects_by_owner(), n, m, n as f64 / m as f64)
            }
            Division::Units { n } => (bar(&plan.shares), (*n).max(1), 1, LONGEST),
        };
        let ratio = ratio.clamp(1.0 / LONGEST, LONGEST);
        let size = if ratio > 1.5 {
            [WIDE, WIDE / ratio]
        } else if ratio >= 1.0 {
            [SIDE, SIDE / ratio]
        } else {
            [SIDE * ratio, SIDE]
        };
        Self { rects, size, scale: [size[0] / cols as f64, size[1] / rows as f64] }
    }

    /// Left, top, right and bottom of a rectangle, in pixels.
    fn place(&self, rect: Rect) -> [f64; 4] {
        let x = |col: u64| MARGIN + col as f64 * self.scale[0];
        let y = |row: u64| MARGIN + TITLE + row as f64 * self.scale[1];
        [x(rect.cols.start), y(rect.rows.start), x(rect.cols.end), y(rect.rows.end)]
    }

    fn draw(&self, svg: &mut String, plan: &Plan, colours: &[String]) {
        let total: u64 = plan.shares.iter().sum();
        let label = |i: usize| [plan.processors[i].clone(), format!("{} %", percent(plan.shares[i], total))];
        svg.push_str("<g shape-rendering=\"crispEdges\">\n");
        for (i, rects) in self.rects.iter().enumerate().filter(|(_, rects)| !rects.is_empty()) {
            let _ = write!(svg, "<path fill=\"{}\" d=\"", colours[i]);
            for [left, top, right, bottom] in rects.iter().map(|r| self.place(*r)) {
                let _ = write!(svg, "M{left:.2} {top:.2}H{right:.2}V{bottom:.2}H{left:.2}Z");
            }
            let _ = writeln!(svg, "\"><title>{}</title></path>", escape(&label(i).join(", ")));
        }
        svg.push_str("</g>\n");
        self.draw_borders(svg);
        svg.push_str("<g text-anchor=\"middle\">\n");
        for (i, rects) in self.rects.iter().enumerate() {
            if let Some(largest) = rects.iter().max_by_key(|r| (r.area(), std::cmp::Reverse(**r))) {
                draw_label(svg, self.place(*largest), &label(i));
            }
        }
        svg.push_str("</g>\n");
    }

    /// Lines where the owner changes, and around the whole.
    fn draw_borders(&self, svg: &mut String) {
        let (across, down) =
            (borders(&self.rects, |r| (r.rows, r.cols)), borders(&self.rects, |r| (r.cols, r.rows)));
        let width = if self.rects.len() > 60 { 0.7 } else { 1.5 };
        let _ = write!(
            svg,
            "<path fill=\"none\" stroke=\"{INK}\" stroke-width=\"{width}\" stroke-linecap=\"square\" d=\""
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
}

/// For every cut across the first of the two axes: the spans of the second along which it separates owners.
/// An edge that two rectangles of one owner share cancels out.
fn borders(rects: &[Vec<Rect>], axes: impl Fn(&Rect) -> (Span, Span)) -> BTreeMap<u64, SpanSet> {
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

/// Two lines of text, or the first alone, or neither; upright or rotated, whichever can be larger.
fn draw_label(svg: &mut String, [left, top, right, bottom]: [f64; 4], words: &[String; 2]) {
    let (width, height) = (right - left, bottom - top);
    let length = |word: &String| word.chars().count() as f64 * CHARACTER;
    let largest = |lines: usize, along: f64, across: f64| {
        let longest = words[..lines].iter().map(length).fold(0.1, f64::max);
        (0.86 * along / longest).min(0.85 * across / (1.25 * lines as f64)).min(22.0)
    };
    // One line only if two do not fit; turned only if that gains much.
    let choice = [2, 1].into_iter().find_map(|lines| {
        let (upright, turned) = (largest(lines, width, height), largest(lines, height, width));
        let best = if 0.6 * turned > upright { (lines, true, turned) } else { (lines, false, upright) };
        (best.2 >= SMALLEST_TYPE).then_some(best)
    });
    let Some((lines, turned, size)) = choice else { return };
    let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
    let turn = if turned { format!(" transform=\"rotate(-90 {x:.2} {y:.2})\"") } else { String::new() };
    let _ = write!(svg, "<text font-size=\"{size:.1}\" fill=\"{INK}\"{turn}>");
    for (i, word) in words[..lines].iter().enumerate() {
        let base = y + size * (0.35 + 1.2 * (i as f64 - (lines - 1) as f64 / 2.0));
        let _ = write!(svg, "<tspan x=\"{x:.2}\" y=\"{base:.2}\">{}</tspan>", escape(word));
    }
    svg.push_str("</text>\n");
}

/// A percentage, with enough digits to distinguish it from zero.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let x = 100.0 * part as f64 / whole.max(1) as f64;
    match x {
        0.0 | 0.1.. => format!("{x:.1}"),
        1e-5.. => format!("{x:.*}", (1.0 - x.log10().floor()) as usize),
        _ => format!("{x:.0e}"),
    }
}

/// An integer with separated thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Text that XML can hold: markup is escaped, and characters that XML forbids become U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
