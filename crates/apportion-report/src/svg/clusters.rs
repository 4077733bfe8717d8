//! Names of clusters in the picture.

use super::CHARACTER;
use super::labels::pieces;
use super::picture::Picture;
use crate::markup::{INK, escape};
use crate::text::shortened;
use apportion::geometry::Rect;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Size of the names.
const TYPE: f64 = 11.0;
/// Regions with more rectangles get no name.
const MOST_RECTANGLES: usize = 400;
/// Least height of the rectangle in the corner: below, the name would be on the processor's.
const LEAST_HEIGHT: f64 = 88.0;

/// The regions of groups of processors; none if there is one group, or each processor is its own.
pub(super) fn regions<'a>(groups: &[&'a str], rects: &[Vec<Rect>]) -> Vec<(&'a str, Vec<Rect>)> {
    let mut regions: BTreeMap<&str, Vec<Rect>> = BTreeMap::new();
    let mut members: BTreeMap<&str, usize> = BTreeMap::new();
    for (&group, rects) in groups.iter().zip(rects) {
        regions.entry(group).or_default().extend(rects);
        *members.entry(group).or_default() += 1;
    }
    if regions.len() < 2 || members.values().all(|count| *count == 1) {
        return Vec::new();
    }
    regions.into_iter().collect()
}

/// Each group's name on white in the corner of its largest piece where it fits: the upper one for sites, the
/// lower one for the clusters within them.
pub(super) fn draw_names(svg: &mut String, picture: &Picture, groups: &[&str], lower: bool) {
    for (name, rects) in regions(groups, &picture.rects) {
        if rects.len() > MOST_RECTANGLES {
            continue;
        }
        let Some(piece) = pieces(&rects).into_iter().next() else { continue };
        // The corner is that of the piece's first or last rectangle in reading order.
        let corner = if lower { piece.iter().max() } else { piece.iter().min() };
        let Some([left, top, right, bottom]) = corner.map(|r| picture.place(*r)) else { continue };
        let name = shortened(name, 20);
        let width = name.chars().count() as f64 * TYPE * CHARACTER + 8.0;
        if right - left < width + 4.0 || bottom - top < LEAST_HEIGHT {
            continue;
        }
        let y = if lower { bottom - 18.0 } else { top + 3.0 };
        let x = left + 3.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"15\" rx=\"2\" fill=\"#ffffff\" \
             fill-opacity=\"0.85\"/><text class=\"cluster\" x=\"{:.2}\" y=\"{:.2}\" font-size=\"{TYPE}\" font-weight=\"bold\" \
             fill=\"{INK}\">{}</text>",
            x + 4.0,
            y + 11.5,
            escape(&name)
        );
    }
}
