//! Axes, grid, horizontal references, and marked points.

use super::Plot;
use super::scale::Scale;
use crate::markup::{INK, escape};
use std::fmt::Write;

/// The colour of the grid.
const GRID: &str = "#e3e3e3";
/// The least distance of two texts beside each other on a mark.
const APART: f64 = 14.0;

pub(super) fn draw(svg: &mut String, plot: &Plot, xs: &Scale, ys: &Scale) {
    let [left, right, top, bottom] = [xs.from, xs.to, ys.to, ys.from];
    let _ = writeln!(svg, "<g stroke=\"{GRID}\" stroke-width=\"1\">");
    for (y, _) in ys.ticks() {
        let y = ys.place(y);
        let _ = writeln!(svg, "<line x1=\"{left}\" y1=\"{y:.2}\" x2=\"{right}\" y2=\"{y:.2}\"/>");
    }
    svg.push_str("</g>\n");
    for (y, label) in ys.ticks() {
        let (x, y) = (left - 10.0, ys.place(y) + 4.0);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.2}\" text-anchor=\"end\">{label}</text>");
    }
    for (x, label) in xs.ticks() {
        let x = xs.place(x);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.2}\" y1=\"{bottom}\" x2=\"{x:.2}\" y2=\"{}\" stroke=\"{INK}\"/>\
             <text x=\"{x:.2}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 5.0,
            bottom + 20.0,
        );
    }
    let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
    let name = |axis: usize, scale: &Scale| {
        format!("{}{}", escape(&plot.axes[axis]), if scale.logarithmic { " (log scale)" } else { "" })
    };
    let aside = (left - 68.0).max(14.0);
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"{INK}\"/>\n\
         <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"13\">{}</text>\n\
         <text x=\"{aside}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"13\" \
         transform=\"rotate(-90 {aside} {y})\">{}</text>",
        bottom + 42.0,
        name(0, xs),
        name(1, ys),
    );
    for (scale, x, y, turn) in [(xs, left + 12.0, bottom, 0), (ys, left, bottom - 12.0, -90)] {
        if scale.broken().is_some() {
            draw_break(svg, [x, y], turn);
        }
    }
    for (height, _) in &plot.references {
        let y = ys.place(*height);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{y:.2}\" x2=\"{right}\" y2=\"{y:.2}\" stroke=\"{INK}\" stroke-width=\"1.2\"/>"
        );
    }
}

/// Two strokes across an axis, with a gap between them.
fn draw_break(svg: &mut String, [x, y]: [f64; 2], turn: i32) {
    let _ = writeln!(
        svg,
        "<g class=\"break\" transform=\"translate({x} {y}) rotate({turn})\">\
         <path d=\"M-4 6L0 -6H6L2 6z\" fill=\"#ffffff\"/>\
         <path d=\"M-4 6L0 -6M2 6L6 -6\" stroke=\"{INK}\" stroke-width=\"1.2\"/></g>"
    );
}

/// Rings on the curves, each with its text as a title if `titled`, with a dotted line down to the axis and a text along it where there is room.
pub(super) fn draw_marks(svg: &mut String, plot: &Plot, [xs, ys]: [&Scale; 2], titled: bool) {
    let mut last = f64::NEG_INFINITY;
    for (point, text) in &plot.marks {
        let (x, y) = (xs.place(point[0]), ys.place(point[1]));
        let title = match titled {
            true => format!(" pointer-events=\"all\"><title>{}</title></circle>", escape(text)),
            false => "/>".to_owned(),
        };
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.2} {:.2}V{:.2}\" stroke=\"{INK}\" stroke-width=\"0.8\" stroke-dasharray=\"1 3\"/>\
             <circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"5\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"1.3\"{title}",
            ys.to, ys.from
        );
        if x - last < APART {
            continue;
        }
        last = x;
        // In the emptier half of the line, on the side of the area.
        let (at, anchor) =
            if y - ys.to > ys.from - y { (ys.to + 4.0, "end") } else { (ys.from - 6.0, "start") };
        let beside = if x + APART < xs.to { x + 13.0 } else { x - 4.0 };
        let _ = writeln!(
            svg,
            "<text x=\"{beside:.2}\" y=\"{at:.2}\" text-anchor=\"{anchor}\" transform=\"rotate(-90 {beside:.2} {at:.2})\" \
             stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\" stroke-linejoin=\"round\">{}</text>",
            escape(text)
        );
    }
}
