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
const TINTS: [f64; 8] = [0.3, 0.56, 0.42, 0.68, 0.36, 0.62, 0.49, 0.74];

/// One colour per processor, as `#rrggbb`: a hue per group, in the order in which they first appear, and a
/// tint per member.
///
/// `neighbours` holds pairs of processors that touch. A tint differs from those of the neighbours of the same
/// hue if there are fewer than eight of them.
pub(super) fn colours(groups: &[&str], neighbours: &[(usize, usize)]) -> Vec<String> {
    let mut numbers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut beside: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    for &(a, b) in neighbours {
        beside[a].push(b);
        beside[b].push(a);
    }
    let mut chosen: Vec<(usize, usize)> = Vec::with_capacity(groups.len());
    for (i, &group) in groups.iter().enumerate() {
        let next = numbers.len();
        let (number, members) = numbers.entry(group).or_insert((next, 0));
        let hue = *number % HUES.len();
        // Once the hues are used up, they are repeated in other tints.
        let preferred = *number / HUES.len() + *members;
        let taken: Vec<usize> =
            beside[i].iter().filter_map(|&j| chosen.get(j)).filter(|c| c.0 == hue).map(|c| c.1).collect();
        let candidates = (0..TINTS.len()).map(|k| (preferred + k) % TINTS.len());
        let tint = candidates.clone().find(|tint| !taken.contains(tint));
        chosen.push((hue, tint.unwrap_or(preferred % TINTS.len())));
        *members += 1;
    }
    chosen.into_iter().map(|(hue, tint)| tinted(hue, TINTS[tint])).collect()
}

fn tinted(hue: usize, white: f64) -> String {
    let mix = |part: u8| (f64::from(part) * (1.0 - white) + 255.0 * white).round() as u8;
    let [red, green, blue] = HUES[hue].map(mix);
    format!("#{red:02x}{green:02x}{blue:02x}")
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
        let clusters: Vec<String> = (0..64).map(|i| i.to_string()).collect();
        let all = colours(&clusters.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
        let ink = luminance(super::super::markup::INK);
        for colour in all {
            assert!((luminance(&colour) + 0.05) / (ink + 0.05) >= 4.5, "{colour}");
        }
    }

    #[test]
    fn a_cluster_shares_a_hue() {
        let all = colours(&["a", "b", "a", "b", "c"], &[]);
        assert_eq!(all, ["#4d9cc9", "#eebc4d", "#8fc1dd", "#f4d58f", "#4dbb9d"]);
    }

    /// Members 0 and 8 of a cluster would have the same tint; where they touch they do not.
    #[test]
    fn neighbours_differ() {
        let groups = ["a"; 20];
        assert_eq!(colours(&groups, &[])[0], colours(&groups, &[])[8]);
        let touching = [(0, 8), (1, 8), (8, 16), (9, 8), (0, 16)];
        let all = colours(&groups, &touching);
        for (a, b) in touching {
            assert_ne!(all[a], all[b], "{a} and {b}");
        }
    }
}
