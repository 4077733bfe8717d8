//! Colours that colour-blind readers can distinguish and that dark text is legible on.
//!
//! Source: Okabe and Ito 2008, "Color universal design".

use std::collections::BTreeMap;

/// Okabe and Ito's colours, with grey for black, the most distinct first: red, green, blue.
const HUES: [[u8; 3]; 8] = [
    [0, 114, 178],
    [230, 159, 0],
    [0, 158, 115],
    [204, 121, 167],
    [240, 228, 66],
    [213, 94, 0],
    [86, 180, 233],
    [150, 150, 150],
];

/// Fractions of white, ordered so that neighbours differ: from the one that gives dark text a contrast of
/// 4.5:1 to the one that still shows a hue.
const TINTS: [f64; 6] = [0.3, 0.56, 0.42, 0.68, 0.36, 0.62];

/// One colour per processor, as `#rrggbb`: a hue per cluster, in the order in which they first appear, and a
/// tint per member.
pub(super) fn colours(clusters: &[&str]) -> Vec<String> {
    let mut numbers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut colours = Vec::with_capacity(clusters.len());
    for &cluster in clusters {
        let next = numbers.len();
        let (hue, members) = numbers.entry(cluster).or_insert((next, 0));
        // Once the hues are used up, they are repeated in other tints.
        let white = TINTS[(*hue / HUES.len() + *members) % TINTS.len()];
        let mix = |part: u8| (f64::from(part) * (1.0 - white) + 255.0 * white).round() as u8;
        let [red, green, blue] = HUES[*hue % HUES.len()].map(mix);
        colours.push(format!("#{red:02x}{green:02x}{blue:02x}"));
        *members += 1;
    }
    colours
}

/// The colour of a line on white, as `#rrggbb`: the hues that are dark enough, the most distinct first.
pub(super) fn lines(number: usize) -> String {
    let [red, green, blue] = HUES[[0, 5, 2, 3, 1, 6, 7][number % 7]];
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.1's relative luminance.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let x = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if x <= 0.04045 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn dark_text_can_be_read_on_every_colour() {
        let clusters: Vec<String> = (0..42).map(|i| i.to_string()).collect();
        let all = colours(&clusters.iter().map(String::as_str).collect::<Vec<_>>());
        let ink = luminance(super::super::svg::INK);
        for colour in all {
            assert!((luminance(&colour) + 0.05) / (ink + 0.05) >= 4.5, "{colour}");
        }
    }

    #[test]
    fn a_cluster_shares_a_hue() {
        let all = colours(&["a", "b", "a", "b", "c"]);
        assert_eq!(all, ["#4d9cc9", "#eebc4d", "#8fc1dd", "#f4d58f", "#4dbb9d"]);
    }
}
