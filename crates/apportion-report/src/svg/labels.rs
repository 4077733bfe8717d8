//! Names of regions: within them, or beside the picture with a line to each that is too small.

use super::picture::{Picture, touch};
use super::{CHARACTER, FOOT};
use crate::markup::{INK, escape, percent};
use crate::spread;
use crate::text::shortened;
use apportion::geometry::Rect;
use apportion::plan::Plan;
use apportion::units::show_count;
use std::fmt::Write;

/// The smallest font size of a region's label, and that of a name beside the picture.
const TYPES: [f64; 2] = [8.0, 10.0];
/// Space that a name beside the picture takes across its line.
const LINE: f64 = 13.0;
/// Length of a line to a name beside the picture.
const LEADER: f64 = 22.0;
/// Maximum number of names beside the picture; with more, regions without a name are counted.
const MOST_BESIDE: usize = 40;
/// Maximum number of pieces of a region that are named, and of rectangles that are joined to pieces.
const MOST_PIECES: usize = 6;
const MOST_RECTANGLES: usize = 100;
/// A region whose longer side is less than this is ringed.
const TINY: f64 = 7.0;
/// Maximum number of characters of a name.
const LONGEST_NAME: usize = 24;

/// The names of a picture.
pub(super) struct Labels {
    /// The attribute of names within regions, by which a page knows them.
    class: &'static str,
    inside: String,
    beside: Vec<Beside>,
    /// Regions without a name.
    unnamed: usize,
    /// Names are under the picture, turned, rather than on its right.
    beneath: bool,
    size: [f64; 2],
}

/// A name beside the picture, and the middle and the longer side of its region.
struct Beside {
    name: String,
    at: [f64; 2],
    long: f64,
}

impl Labels {
    pub(crate) fn new(picture: &Picture, plan: &Plan, beneath: bool) -> Self {
        Self::of(picture, plan, beneath, TYPES[0])
    }

    /// The names within their regions alone, in type of at least this size.
    pub(crate) fn within(picture: &Picture, plan: &Plan, least: f64) -> Self {
        let class = " class=\"inside\"";
        Self { class, beside: Vec::new(), unnamed: 0, ..Self::of(picture, plan, false, least) }
    }

    fn of(picture: &Picture, plan: &Plan, beneath: bool, least: f64) -> Self {
        let total: u64 = plan.shares.iter().sum();
        let (mut inside, mut beside) = (String::new(), Vec::new());
        for (i, rects) in picture.rects.iter().enumerate() {
            let name = shortened(&plan.processors[i], LONGEST_NAME);
            let words = [name, format!("{} %", percent(plan.shares[i], total))];
            for (k, piece) in named(rects).into_iter().enumerate() {
                let Some(largest) = piece.iter().max_by_key(|r| (r.area(), std::cmp::Reverse(**r))) else {
                    continue;
                };
                let place = picture.place(*largest);
                // The share belongs to all pieces together: only the first names it.
                let words = if k == 0 { &words[..] } else { &words[..1] };
                if !draw_label(&mut inside, place, words, least) {
                    let [left, top, right, bottom] = place;
                    let at = [(left + right) / 2.0, (top + bottom) / 2.0];
                    let long = (right - left).max(bottom - top);
                    beside.push(Beside { name: words.join(", "), at, long });
                }
            }
        }
        let unnamed = if beside.len() > MOST_BESIDE { beside.len() } else { 0 };
        if unnamed > 0 {
            beside.clear();
        }
        Self { class: "", inside, beside, unnamed, beneath, size: picture.size }
    }

    /// Room for the names beside the picture.
    pub(crate) fn depth(&self) -> f64 {
        let longest = self.beside.iter().map(|b| b.name.chars().count()).max();
        let remark = if self.unnamed > 0 && self.beneath { 16.0 } else { 0.0 };
        longest.map_or(remark, |longest| LEADER + longest as f64 * TYPES[1] * CHARACTER + 4.0)
    }

    pub(crate) fn draw(&self, svg: &mut String, corner: [f64; 2]) {
        let _ = writeln!(svg, "<g{} text-anchor=\"middle\">\n{}</g>", self.class, self.inside);
        let [left, top] = corner;
        let [right, bottom] = [left + self.size[0], top + self.size[1]];
        if self.unnamed > 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{left}\" y=\"{:.2}\" font-size=\"11\" font-style=\"italic\" fill=\"{INK}\">\
                 too small for a name: {} parts</text>",
                bottom + if self.beneath { FOOT + 10.0 } else { FOOT - 6.0 },
                show_count(self.unnamed as u128)
            );
            return;
        }
        let mut order: Vec<&Beside> = self.beside.iter().collect();
        let along = |b: &Beside| if self.beneath { b.at[0] } else { b.at[1] };
        order.sort_by(|a, b| along(a).total_cmp(&along(b)));
        let wanted: Vec<[f64; 2]> = order.iter().map(|b| [along(b), LINE]).collect();
        let bounds = if self.beneath { [left, right] } else { [top, bottom] };
        for (name, centre) in order.into_iter().zip(spread(&wanted, bounds)) {
            let [x, y] = name.at;
            let _ = if self.beneath {
                let foot = bottom + FOOT + 2.0;
                writeln!(
                    svg,
                    "<path class=\"leader\" d=\"M{x:.2} {y:.2}V{:.2}L{centre:.2} {foot:.2}\" fill=\"none\" stroke=\"{INK}\" \
                     stroke-width=\"0.6\"/><text font-size=\"{}\" fill=\"{INK}\" text-anchor=\"end\" x=\"{across:.2}\" y=\"{down:.2}\" \
                     transform=\"rotate(-90 {across:.2} {down:.2})\">{}</text>",
                    bottom + 2.0,
                    TYPES[1],
                    escape(&name.name),
                    across = centre + 3.5,
                    down = foot + 3.0
                )
            } else {
                writeln!(
                    svg,
                    "<path class=\"leader\" d=\"M{x:.2} {y:.2}L{right:.2} {y:.2}L{:.2} {centre:.2}\" fill=\"none\" \
                     stroke=\"{INK}\" stroke-width=\"0.6\"/><text font-size=\"{}\" fill=\"{INK}\" x=\"{:.2}\" y=\"{:.2}\">{}</text>",
                    right + LEADER - 4.0,
                    TYPES[1],
                    right + LEADER,
                    centre + 3.5,
                    escape(&name.name)
                )
            };
            let (radius, fill) = if name.long < TINY { (TINY, "none") } else { (1.6, INK) };
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{INK}\" stroke-width=\"1.2\"/>"
            );
        }
    }
}

/// The pieces of a region that get a name each: all if they are few, otherwise the largest rectangle (of
/// blocks that repeat, say).
fn named(rects: &[Rect]) -> Vec<Vec<Rect>> {
    let largest = || rects.iter().max_by_key(|r| (r.area(), std::cmp::Reverse(**r)));
    let one = || largest().map(|r| vec![*r]).into_iter().collect();
    if rects.len() > MOST_RECTANGLES {
        return one();
    }
    let pieces = pieces(rects);
    if pieces.len() > MOST_PIECES { one() } else { pieces }
}

/// The connected pieces of a region, largest first.
pub(super) fn pieces(rects: &[Rect]) -> Vec<Vec<Rect>> {
    let mut pieces: Vec<Vec<Rect>> = Vec::new();
    for rect in rects {
        let (joined, mut rest): (Vec<_>, Vec<_>) =
            pieces.into_iter().partition(|piece| piece.iter().any(|r| touch(r, rect)));
        rest.push(joined.into_iter().flatten().chain([*rect]).collect());
        pieces = rest;
    }
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.iter().map(|r| r.area()).sum::<u64>()));
    pieces
}

/// Lines of text, or the first alone, or none; upright or rotated, whichever can be larger. Returns whether
/// the name is there.
fn draw_label(svg: &mut String, [left, top, right, bottom]: [f64; 4], words: &[String], least: f64) -> bool {
    let (width, height) = (right - left, bottom - top);
    let length = |word: &String| word.chars().count() as f64 * CHARACTER;
    let largest = |lines: usize, along: f64, across: f64| {
        let longest = words[..lines].iter().map(length).fold(0.1, f64::max);
        (0.9 * along / longest).min(0.85 * across / (1.2 * lines as f64)).min(20.0)
    };
    // One line only if two do not fit; turned only if that gains much.
    let choice = (1..=words.len()).rev().find_map(|lines| {
        let (upright, turned) = (largest(lines, width, height), largest(lines, height, width));
        let best = if 0.6 * turned > upright { (lines, true, turned) } else { (lines, false, upright) };
        (best.2 >= least).then_some(best)
    });
    let Some((lines, turned, size)) = choice else { return false };
    let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
    let turn = if turned { format!(" transform=\"rotate(-90 {x:.2} {y:.2})\"") } else { String::new() };
    let _ = write!(svg, "<text font-size=\"{size:.1}\" fill=\"{INK}\"{turn}>");
    for (i, word) in words[..lines].iter().enumerate() {
        let base = y + size * (0.35 + 1.2 * (i as f64 - (lines - 1) as f64 / 2.0));
        let _ = write!(svg, "<tspan x=\"{x:.2}\" y=\"{base:.2}\">{}</tspan>", escape(word));
    }
    svg.push_str("</text>\n");
    true
}
