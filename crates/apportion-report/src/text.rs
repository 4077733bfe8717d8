//! Aligned text.

use anstyle::{AnsiColor, Style};
pub(super) use apportion::input::shortened;
use comfy_table::{CellAlignment, Table, presets};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Width of a line where nothing else is known.
const COLUMNS: usize = 80;

/// The width of a line, if it was set.
static WIDTH: AtomicUsize = AtomicUsize::new(0);

/// Sets the width of a line for all tables and pairs of this process, such as a terminal's. By default tables
/// have 80 columns, and the values of pairs are not broken.
pub fn set_text_width(columns: usize) {
    WIDTH.store(columns.max(20), Ordering::Relaxed);
}

/// Whether texts have colours, and characters beyond ASCII.
static COLOUR: AtomicBool = AtomicBool::new(false);
static ASCII: AtomicBool = AtomicBool::new(false);

/// Sets how the texts of this process may look: with colours (by default without), and with ASCII characters
/// only (by default with any).
pub fn set_text_look(colour: bool, ascii: bool) {
    COLOUR.store(colour, Ordering::Relaxed);
    ASCII.store(ascii, Ordering::Relaxed);
}

/// What a colour says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning {
    /// All is well.
    Good,
    /// A processor computes.
    Compute,
    /// Details that most readers skip.
    Aside,
}

/// Text in the colour of its meaning, if texts have colours.
pub(super) fn paint(meaning: Meaning, text: &str) -> String {
    if !COLOUR.load(Ordering::Relaxed) {
        return text.to_owned();
    }
    let style = match meaning {
        Meaning::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
        Meaning::Compute => Style::new().fg_color(Some(AnsiColor::Blue.into())),
        Meaning::Aside => Style::new().dimmed(),
    };
    format!("{style}{text}{style:#}")
}

/// A bar of `width` characters, of which the fraction `part` is full.
pub(super) fn text_bar(part: f64, width: usize) -> String {
    let (full, empty) = if ASCII.load(Ordering::Relaxed) { ("#", ".") } else { ("█", "░") };
    let count = (part.clamp(0.0, 1.0) * width as f64).round() as usize;
    paint(Meaning::Compute, &full.repeat(count)) + &empty.repeat(width - count)
}

/// Text in lines no longer than the line, if its width was set ([`set_text_width`]), broken at blanks.
pub fn wrap_text(text: &str) -> String {
    let width = Some(WIDTH.load(Ordering::Relaxed)).filter(|width| *width > 0).unwrap_or(usize::MAX);
    text.lines().map(|line| wrapped(line, width).join("\n")).collect::<Vec<_>>().join("\n")
}

/// A number with three significant digits.
pub(crate) fn three_digits(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    match 2 - x.abs().log10().floor() as i32 {
        ..0 => format!("{x:.0}"),
        decimals @ 0..=6 => format!("{x:.0$}", decimals as usize),
        _ => format!("{x:.2e}"),
    }
}

/// A table with a header; the first column is left-aligned, the others right-aligned. A table wider than the
/// line ([`set_text_width`]) continues beneath: the first column is repeated, and the other columns follow.
pub fn table<R: IntoIterator<Item = Vec<String>>>(header: &[&str], rows: R) -> String {
    let width = Some(WIDTH.load(Ordering::Relaxed)).filter(|width| *width > 0);
    fit_table(header, rows.into_iter().collect(), width.unwrap_or(COLUMNS))
}

/// A table within a number of columns of text.
fn fit_table(header: &[&str], rows: Vec<Vec<String>>, width: usize) -> String {
    let whole = plain(header.iter().map(|h| (*h).to_owned()).collect(), &rows);
    let most = |text: &str| text.lines().map(columns_of).max().unwrap_or(0);
    if most(&whole) <= width || header.len() < 3 {
        return whole;
    }
    let cell = |row: &Vec<String>, i: usize| row.get(i).cloned().unwrap_or_default();
    let mut blocks = Vec::new();
    let mut rest: Vec<usize> = (1..header.len()).collect();
    while !rest.is_empty() {
        // The most columns that fit, but one at least.
        let block = |count: usize| {
            let chosen: Vec<usize> = std::iter::once(0).chain(rest[..count].iter().copied()).collect();
            let rows: Vec<Vec<String>> =
                rows.iter().map(|row| chosen.iter().map(|&i| cell(row, i)).collect()).collect();
            plain(chosen.iter().map(|&i| header[i].to_owned()).collect(), &rows)
        };
        let count = (1..=rest.len()).rev().find(|&count| most(&block(count)) <= width).unwrap_or(1);
        blocks.push(block(count));
        rest.drain(..count);
    }
    blocks.join("\n")
}

fn plain(header: Vec<String>, rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table.add_rows(rows);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_cell_alignment(if i == 0 { CellAlignment::Left } else { CellAlignment::Right });
    }
    trimmed(&table.to_string())
}

/// Names and values in two aligned columns. If the width of a line was set ([`set_text_width`]), values that
/// are too long continue under their beginning.
pub fn pairs(pairs: &[(&str, String)]) -> String {
    let width = Some(WIDTH.load(Ordering::Relaxed)).filter(|width| *width > 0);
    pairs_within(pairs, width.unwrap_or(usize::MAX))
}

fn pairs_within(pairs: &[(&str, String)], columns: usize) -> String {
    let width = pairs.iter().map(|(name, _)| columns_of(name)).max().unwrap_or(0);
    let room = columns.saturating_sub(width + 2).max(30);
    let mut out = String::new();
    for (name, value) in pairs {
        let lines = wrapped(value, room);
        for (i, line) in lines.iter().enumerate() {
            let name = if i == 0 { *name } else { "" };
            out.push_str(&format!("{name}{}  {line}\n", " ".repeat(width - columns_of(name))));
        }
        if lines.is_empty() {
            out.push_str(&format!("{name}\n"));
        }
    }
    out
}

/// Text in lines of at most a number of characters, broken at blanks; a longer word is a line of its own.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    if columns_of(text) <= width {
        return if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if columns_of(line) + 1 + columns_of(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// Without trailing blanks; ends with a line break.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.000_412_4, "0.000412"),
            (3.2e-9, "3.20e-9"),
            (0.1, "0.100"),
            (29.96, "30.0"),
            (123.4, "123"),
            (45_678.0, "45678"),
            (f64::NAN, "NaN"),
        ];
        for (x, text) in cases {
            assert_eq!(three_digits(x), text);
        }
    }

    #[test]
    fn columns_align() {
        let text = table(&["name", "x"], [vec!["a".into(), "1".into()], vec!["long".into(), "100".into()]]);
        assert_eq!(text, "name    x\na       1\nlong  100\n");
        assert_eq!(pairs(&[("a", "1".into()), ("bcd", "2".into())]), "a    1\nbcd  2\n");
    }

    /// A wide table continues beneath with its first column; a short row is filled.
    #[test]
    fn wide_tables_continue_beneath() {
        let rows = vec![
            vec!["rows".to_owned(), "1".into(), "2".into(), "333333".into()],
            vec!["columns".to_owned(), "refused".into()],
        ];
        let header = ["method", "cost", "volume", "forecast"];
        let text = fit_table(&header, rows.clone(), 24);
        let expected = "method      cost  volume\nrows           1       2\ncolumns  refused\n\n\
                        method   forecast\nrows       333333\ncolumns\n";
        assert_eq!(text, expected);
        assert_eq!(fit_table(&header, rows, 80).lines().count(), 3);
    }

    #[test]
    fn long_values_continue_under_their_beginning() {
        let value = ["word"; 30].join(" ");
        let both = [("name", value), ("b", String::new())];
        assert_eq!(pairs(&both).lines().count(), 2);
        let text = pairs_within(&both, COLUMNS);
        assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("      word"), "{text}");
        assert_eq!(text.split_whitespace().filter(|w| *w == "word").count(), 30);
        assert_eq!(wrapped("a longerword b", 4), ["a", "longerword", "b"]);
    }
}
