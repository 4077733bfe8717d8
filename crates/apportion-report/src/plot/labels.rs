//! Names beside the right ends of the curves, none on another, joined to their curves by thin lines.

use super::curves::{alternating, last_of};
use super::scale::Scale;
use super::style::Style;
use super::{CHARACTER, Plot, Series, TYPE};
use crate::canvas::Canvas;
use crate::markup::escape;
use crate::text::shortened;
use std::borrow::Cow;
use std::fmt::Write;

/// Height of a line of text, and of the lines of a crowded list.
const LINES: [f64; 2] = [16.0, 11.5];
/// Number of lines from which the list is crowded.
const CROWDED: usize = 22;
/// Width of the space between the area and the names, with a sample of the line in it.
const SAMPLE: f64 = 58.0;
/// Maximum number of characters of a name, where there is room.
const LONGEST_NAME: usize = 34;
/// Maximum number of names of one label.
const MOST_NAMES: usize = 4;

/// A label: its lines of text, the styles that its sample shows, and the point that it belongs to.
struct Label {
    words: Vec<String>,
    styles: Vec<Style>,
    at: [f64; 2],
    marked: bool,
}

pub(super) struct Labels {
    labels: Vec<Label>,
    line: f64,
    font: f64,
}

impl Labels {
    pub(crate) fn new(
        plot: &Plot,
        series: &[Cow<'_, Series>],
        groups: &[Vec<usize>],
        canvas: Canvas,
    ) -> Self {
        let longest = if canvas == Canvas::File { LONGEST_NAME } else { canvas.longest_name() };
        let mut labels: Vec<Label> = groups
            .iter()
            .map(|group| Label {
                words: names(group.iter().map(|&i| series[i].name.as_str()).collect(), longest),
                styles: group
                    .iter()
                    .take(4)
                    .map(|&i| Style::of(series[i].colour, series[i].dashed))
                    .collect(),
                at: last_of(&series[group[0]]),
                marked: series[group[0]].marked.as_ref().is_none_or(|m| !m.is_empty()),
            })
            .collect();
        let right = plot.values(0).fold(f64::NEG_INFINITY, f64::max);
        labels.extend(plot.references.iter().map(|(height, name)| Label {
            words: names(vec![name], longest),
            styles: Vec::new(),
            at: [right, *height],
            marked: false,
        }));
        let lines: usize = labels.iter().map(|l| l.words.len()).sum();
        let crowded = lines > CROWDED && canvas == Canvas::File;
        let (line, font) = if crowded { (LINES[1], 9.0) } else { (LINES[0], TYPE) };
        Self { labels, line, font }
    }

    pub(crate) fn height(&self) -> f64 {
        self.labels.iter().map(|l| self.tall(l)).sum()
    }

    /// The height of a label; one of several names has a little space around it.
    fn tall(&self, label: &Label) -> f64 {
        let lines = label.words.len();
        self.line * lines as f64 + if lines > 1 { 0.4 * self.line } else { 0.0 }
    }

    pub(crate) fn width(&self) -> f64 {
        let words = self.labels.iter().flat_map(|l| &l.words).map(|w| w.chars().count());
        SAMPLE + words.max().unwrap_or(0) as f64 * self.font * CHARACTER
    }

    pub(crate) fn draw(&self, svg: &mut String, [xs, ys]: [&Scale; 2]) {
        let place = |l: &Label| [xs.place(l.at[0]), ys.place(l.at[1])];
        let mut order: Vec<(&Label, [f64; 2])> = self.labels.iter().map(|l| (l, place(l))).collect();
        order.sort_by(|a, b| a.1[1].total_cmp(&b.1[1]));
        let wanted: Vec<[f64; 2]> = order.iter().map(|(l, at)| [at[1], self.tall(l)]).collect();
        let _ = writeln!(svg, "<g font-size=\"{}\">", self.font);
        for ((label, at), y) in order.iter().zip(spread(&wanted, [ys.to, ys.from])) {
            self.draw_label(svg, label, *at, [xs.to, y]);
        }
        svg.push_str("</g>\n");
    }

    fn draw_label(&self, svg: &mut String, label: &Label, at: [f64; 2], [right, y]: [f64; 2]) {
        let [from, to] = [right + 22.0, right + SAMPLE - 8.0];
        let _ = writeln!(
            svg,
            "<path d=\"M{:.2} {:.2}L{from:.2} {y:.2}\" fill=\"none\" stroke=\"#b0b0b0\" stroke-width=\"0.7\"/>",
            at[0], at[1]
        );
        for (i, style) in label.styles.iter().enumerate() {
            let dashes = match label.styles.len() {
                1 => style.dashes(),
                several => alternating(i, several),
            };
            let _ = write!(
                svg,
                "<path d=\"M{from:.2} {y:.2}H{to:.2}\" stroke=\"{}\" stroke-width=\"2\"{dashes}/>",
                style.stroke()
            );
        }
        if let (true, [style]) = (label.marked, label.styles.as_slice()) {
            let mut path = String::new();
            style.mark(&mut path, [(from + to) / 2.0, y], 3.0);
            let (fill, stroke) = (style.fill(), style.stroke());
            let _ =
                write!(svg, "<path d=\"{path}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.5\"/>");
        }
        let slant = if label.styles.is_empty() { " font-style=\"italic\"" } else { "" };
        for (i, word) in label.words.iter().enumerate() {
            let row = y + self.line * (i as f64 - (label.words.len() - 1) as f64 / 2.0) + 0.36 * self.font;
            let _ = writeln!(
                svg,
                "<text class=\"label\" x=\"{:.2}\" y=\"{row:.2}\"{slant}>{}</text>",
                right + SAMPLE - 2.0,
                escape(word)
            );
        }
    }
}

/// The names of coinciding curves, one a line.
fn names(all: Vec<&str>, longest: usize) -> Vec<String> {
    let shown = all.iter().take(MOST_NAMES).map(|name| shortened(name, longest));
    let mut lines: Vec<String> = shown.collect();
    if all.len() > MOST_NAMES {
        lines.push(format!("{} others", all.len() - MOST_NAMES));
    }
    let last = lines.len() - 1;
    lines.iter_mut().take(last).for_each(|line| line.push_str(" ="));
    lines
}

/// Centres for texts of the given wanted centres (ascending) and heights, so that none is on another: as near
/// as possible to what is wanted, within the bounds where there is room.
pub(in super::super) fn spread(wanted: &[[f64; 2]], [top, bottom]: [f64; 2]) -> Vec<f64> {
    // Clusters of touching texts: first text, centre of mass of the wanted tops, height.
    let mut clusters: Vec<(usize, f64, f64)> = Vec::new();
    let mut sums: Vec<(f64, usize)> = Vec::new();
    for (i, [centre, height]) in wanted.iter().enumerate() {
        let (mut first, mut tall) = (i, *height);
        // The sum of (wanted top - offset within the cluster) over its members, and their number.
        let mut sum = (centre - height / 2.0, 1);
        while let (Some(&(start, begin, before)), Some(&(others, count))) = (clusters.last(), sums.last()) {
            let own = (sum.0 / sum.1 as f64).clamp(top.min(bottom - tall), (bottom - tall).max(top));
            if begin + before <= own + 1e-9 {
                break;
            }
            first = start;
            sum = (others + sum.0 - before * sum.1 as f64, count + sum.1);
            tall += before;
            clusters.pop();
            sums.pop();
        }
        let begin = (sum.0 / sum.1 as f64).min(bottom - tall).max(top);
        clusters.push((first, begin, tall));
        sums.push(sum);
    }
    let mut centres = Vec::with_capacity(wanted.len());
    for (k, (first, begin, _)) in clusters.iter().enumerate() {
        let end = clusters.get(k + 1).map_or(wanted.len(), |next| next.0);
        let mut at = *begin;
        for [_, height] in &wanted[*first..end] {
            centres.push(at + height / 2.0);
            at += height;
        }
    }
    centres
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_stay_where_there_is_room() {
        assert_eq!(spread(&[[20.0, 10.0], [50.0, 10.0]], [0.0, 100.0]), [20.0, 50.0]);
        assert_eq!(spread(&[[50.0, 10.0], [50.0, 10.0]], [0.0, 100.0]), [45.0, 55.0]);
        assert_eq!(spread(&[[0.0, 10.0], [99.0, 10.0]], [0.0, 100.0]), [5.0, 95.0]);
        assert_eq!(names(vec!["a", "b"], LONGEST_NAME), ["a =", "b"]);
        assert_eq!(names(vec!["a", "b", "c", "d", "e", "f"], LONGEST_NAME).last().unwrap(), "2 others");
    }

    proptest! {
        /// No text is on another, and all are within the bounds if they fit.
        #[test]
        fn no_text_is_on_another(mut wanted in prop::collection::vec(0f64..340.0, 0..22)) {
            wanted.sort_by(f64::total_cmp);
            let texts: Vec<[f64; 2]> = wanted.iter().map(|y| [*y, 15.0]).collect();
            let centres = spread(&texts, [0.0, 340.0]);
            prop_assert_eq!(centres.len(), texts.len());
            for pair in centres.windows(2) {
                prop_assert!(pair[1] - pair[0] >= 15.0 - 1e-6, "{:?}", centres);
            }
            for y in &centres {
                prop_assert!((7.5 - 1e-6..=332.5 + 1e-6).contains(y), "{:?}", centres);
            }
        }
    }
}
