//! The legend of a picture: colour, name, share, part of the whole and ratio to the smallest.

use super::markup::{INK, escape, percent};
use super::text::shortened;
use apportion::plan::Plan;
use apportion::units::show_count;
use std::fmt::Write;

/// Above this number of processors the legend lists clusters, if that list is shorter.
const MOST_PROCESSORS: usize = 64;

/// Maximum number of entries shown; the rest is counted.
const MOST_ENTRIES: usize = 240;

/// Above this number of entries they are set in small type.
const ROOMY: usize = 26;

/// Maximum number of characters of a name.
const LONGEST_NAME: usize = 24;

/// Lines of text with a swatch, ready to be placed.
pub(super) struct Legend {
    heading: &'static str,
    entries: Vec<Entry>,
    left_out: usize,
    /// The sum of all shares, and the smallest that is not zero, including entries that are left out.
    total: u64,
    least: u64,
    font: f64,
    line: f64,
    /// The clusters of processors are listed.
    clustered: bool,
    /// Widths of name, cluster, share, percentage and ratio.
    widths: [f64; 5],
}

struct Entry {
    name: String,
    cluster: String,
    share: u64,
    colour: String,
}

impl Legend {
    /// The processors of a plan, or their clusters if these are far fewer.
    pub(super) fn new(plan: &Plan, clusters: &[&str], colours: &[String]) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let mut members: Vec<usize> = Vec::new();
        let mut numbers = std::collections::BTreeMap::new();
        for ((&cluster, colour), &share) in clusters.iter().zip(colours).zip(&plan.shares) {
            let number = *numbers.entry(cluster).or_insert(entries.len());
            if number == entries.len() {
                entries.push(Entry {
                    name: cluster.to_owned(),
                    cluster: String::new(),
                    share: 0,
                    colour: colour.clone(),
                });
                members.push(0);
            }
            entries[number].share += share;
            members[number] += 1;
        }
        let processors = plan.processors.len();
        let by_cluster = processors > MOST_PROCESSORS && 2 * entries.len() <= processors;
        if by_cluster {
            for (entry, count) in entries.iter_mut().zip(members) {
                entry.name = format!("{} ({count})", shortened(&entry.name, LONGEST_NAME));
            }
        } else {
            let all = plan.processors.iter().zip(&plan.shares).zip(colours).zip(clusters);
            entries = all
                .map(|(((name, &share), colour), cluster)| Entry {
                    name: shortened(name, LONGEST_NAME),
                    cluster: shortened(cluster, LONGEST_NAME),
                    share,
                    colour: colour.clone(),
                })
                .collect();
        }
        let total = plan.shares.iter().sum();
        let least = entries.iter().map(|e| e.share).filter(|s| *s > 0).min().unwrap_or(1);
        let left_out = entries.len().saturating_sub(MOST_ENTRIES);
        let (font, line) = if entries.len() > ROOMY { (10.0, 13.0) } else { (13.0, 21.0) };
        let heading = if by_cluster { "cluster (processors)" } else { "processor" };
        let clustered = !by_cluster && (2..processors).contains(&numbers.len());
        let mut legend =
            Self { heading, entries, clustered, left_out, total, least, font, line, widths: [0.0; 5] };
        let rows: Vec<[String; 5]> = legend.rows().map(|(_, words)| words).collect();
        for (i, width) in legend.widths.iter_mut().enumerate() {
            let longest = rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
            *width = if longest > 0 { longest as f64 * font * 0.57 + font } else { 0.0 };
        }
        legend.entries.truncate(MOST_ENTRIES);
        legend
    }

    /// Width of one column, its gap included.
    pub(super) fn column(&self) -> f64 {
        1.5 * self.font + self.widths.iter().sum::<f64>() + 2.0 * self.font
    }

    /// Number of lines that fit a height, including the heading.
    pub(super) fn lines_in(&self, height: f64) -> usize {
        ((height / self.line) as usize).max(2)
    }

    /// Number of lines if set in the given number of columns, including the heading.
    pub(super) fn lines_for(&self, columns: usize) -> usize {
        self.entries.len().div_ceil(columns.max(1)).max(1) + 1
    }

    /// Width and height when set in columns of `lines` lines.
    pub(super) fn size(&self, lines: usize) -> [f64; 2] {
        let columns = self.entries.len().div_ceil(lines - 1);
        let note = if self.left_out > 0 { 1 } else { 0 };
        [columns as f64 * self.column(), (lines.min(self.entries.len() + 1) + note) as f64 * self.line]
    }

    /// Heading and entries: the colour, and the words of the five columns.
    fn rows(&self) -> impl Iterator<Item = (Option<&str>, [String; 5])> {
        let cluster = if self.clustered { "cluster" } else { "" };
        let heading = [self.heading, cluster, "share", "%", "× least"].map(str::to_owned);
        std::iter::once((None, heading)).chain(self.entries.iter().map(move |e| {
            let ratio = e.share as f64 / self.least as f64;
            let ratio = if ratio < 100.0 { format!("{ratio:.2}") } else { show_count(ratio.round() as u128) };
            let cluster = if self.clustered { e.cluster.clone() } else { String::new() };
            let words = [
                e.name.clone(),
                cluster,
                show_count(u128::from(e.share)),
                percent(e.share, self.total),
                ratio,
            ];
            (Some(e.colour.as_str()), words)
        }))
    }

    /// Draws the legend from (left, top), in columns of `lines` lines, each under the heading.
    pub(super) fn draw(&self, svg: &mut String, [left, top]: [f64; 2], lines: usize) {
        let _ = writeln!(svg, "<g font-size=\"{}\" fill=\"{INK}\">", self.font);
        let rows: Vec<_> = self.rows().collect();
        let Some((heading, entries)) = rows.split_first() else { return };
        for (c, column) in entries.chunks(lines - 1).enumerate() {
            let x = left + c as f64 * self.column();
            for (i, (colour, words)) in std::iter::once(heading).chain(column).enumerate() {
                let y = top + i as f64 * self.line;
                if let Some(colour) = colour {
                    let (size, up) = (self.font, 0.85 * self.font);
                    let _ = writeln!(
                        svg,
                        "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"{size}\" height=\"{size}\" fill=\"{colour}\" \
                         stroke=\"{INK}\" stroke-width=\"0.5\"/>",
                        y + self.line - up - 0.35 * self.font
                    );
                }
                self.draw_row(
                    svg,
                    [x + 1.5 * self.font, y + self.line - 0.35 * self.font],
                    words,
                    colour.is_none(),
                );
            }
        }
        if self.left_out > 0 {
            let y = top + lines.min(rows.len()) as f64 * self.line + self.font;
            let _ = writeln!(
                svg,
                "<text x=\"{left:.2}\" y=\"{y:.2}\">and {} more</text>",
                show_count(self.left_out as u128)
            );
        }
        svg.push_str("</g>\n");
    }

    fn draw_row(&self, svg: &mut String, [x, y]: [f64; 2], words: &[String; 5], heading: bool) {
        let style = if heading { " font-weight=\"bold\"" } else { "" };
        let _ = write!(svg, "<text y=\"{y:.2}\"{style}><tspan x=\"{x:.2}\">{}</tspan>", escape(&words[0]));
        if self.clustered {
            let _ = write!(svg, "<tspan x=\"{:.2}\">{}</tspan>", x + self.widths[0], escape(&words[1]));
        }
        let mut right = x + self.widths[0] + self.widths[1];
        for (word, width) in words.iter().zip(self.widths).skip(2) {
            right += width;
            let _ = write!(svg, "<tspan x=\"{right:.2}\" text-anchor=\"end\">{word}</tspan>");
        }
        svg.push_str("</text>\n");
    }
}
