//! Text and numbers within pictures.

use apportion::input::harmless;

/// The colour of text and lines.
pub(super) const INK: &str = "#1a1a1a";

/// A percentage, with enough digits to distinguish it from zero.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let x = 100.0 * part as f64 / whole.max(1) as f64;
    match x {
        0.0 | 0.1.. => format!("{x:.1}"),
        1e-5.. => format!("{x:.*}", (1.0 - x.log10().floor()) as usize),
        _ => format!("{x:.0e}"),
    }
}

/// Text that XML can hold: markup is escaped, and characters that XML forbids, or that do harm to readers, become
/// U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}
