//! How curves are distinguished: colour, dashes and marker.

use super::super::palette::lines;
use std::fmt::Write;

/// Lengths of dashes and gaps; the first is a solid line.
const DASHES: [&str; 4] = ["", "11 4", "9 3 2 3", "2 3"];
/// Dashes of a bound.
const BOUND: &str = "5 3";
/// Number of shapes of markers.
const MARKERS: usize = 6;

/// The style of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    pub(crate) colour: usize,
    dash: usize,
    marker: usize,
    hollow: bool,
}

impl Style {
    /// The style of a number: 84 differ, and the first seven in colour and marker.
    pub(crate) fn of(number: usize, hollow: bool) -> Self {
        // Hollow marks are rings.
        let marker = if hollow { 0 } else { number % MARKERS };
        Self { colour: number % 7, dash: number / 7 % DASHES.len(), marker, hollow }
    }

    pub(crate) fn stroke(self) -> String {
        lines(self.colour)
    }

    /// The attribute of its dashes.
    pub(crate) fn dashes(self) -> String {
        match if self.hollow { BOUND } else { DASHES[self.dash] } {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        }
    }

    pub(crate) fn fill(self) -> String {
        if self.hollow { "#ffffff".into() } else { self.stroke() }
    }

    /// Adds the outline of a marker to a path.
    pub(crate) fn mark(self, path: &mut String, [x, y]: [f64; 2], r: f64) {
        let (a, b) = (0.9 * r, 1.25 * r);
        let _ = match self.marker {
            0 => {
                write!(path, "M{:.2} {y:.2}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 -{} 0z", x - r, 2.0 * r, 2.0 * r)
            }
            1 => write!(path, "M{:.2} {:.2}h{:.2}v{:.2}h-{:.2}z", x - a, y - a, 2.0 * a, 2.0 * a, 2.0 * a),
            2 => write!(path, "M{x:.2} {:.2}l{b:.2} {:.2}h-{:.2}z", y - b, 1.9 * b, 2.0 * b),
            3 => write!(path, "M{x:.2} {:.2}l{b:.2} {b:.2}l-{b:.2} {b:.2}l-{b:.2} -{b:.2}z", y - b),
            4 => write!(path, "M{x:.2} {:.2}l{b:.2} -{:.2}h-{:.2}z", y + b, 1.9 * b, 2.0 * b),
            _ => {
                write!(path, "M{:.2} {:.2}l{d:.2} {d:.2}m0 -{d:.2}l-{d:.2} {d:.2}", x - a, y - a, d = 2.0 * a)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_four_styles_differ() {
        let mut seen = Vec::new();
        for number in 0..84 {
            let style = Style::of(number, false);
            assert!(!seen.contains(&style), "{number}");
            seen.push(style);
        }
        assert_eq!(Style::of(84, false), seen[0]);
    }
}
