//! A division as a picture: the part of most vertices in each cell of a raster.

use crate::coordinates::Coordinates;
use apportion::error::Result;
use apportion::geometry::{Rank, Rect, Span};
use apportion::plan::{Layout, Part, Shape};
use std::collections::BTreeMap;

/// Most cells along the longer side.
const CELLS: f64 = 160.0;

/// The first two axes of the vertices' places in cells, each of the part that most of its vertices are of, or that of the
/// cell before it where it has none; the last axis points upwards. O(vertices).
///
/// # Errors
/// None that vertices can cause.
pub fn raster(coordinates: &Coordinates, parts: &[u32], processors: usize) -> Result<Layout> {
    let axis = |axis: usize| {
        let places = || {
            (0..parts.len()).map(move |vertex| coordinates.point(vertex).get(axis).copied().unwrap_or(0.0))
        };
        let (low, high) =
            (places().fold(f64::INFINITY, f64::min), places().fold(f64::NEG_INFINITY, f64::max));
        (low, (high - low).max(f64::MIN_POSITIVE))
    };
    let [(left, width), (bottom, height)] = [axis(0), axis(1)];
    // As many cells as vertices at most: in a mesh, each has one.
    let most = (parts.len() as f64).sqrt().clamp(1.0, CELLS);
    let longer = width.max(height);
    let [cols, rows] = [width, height].map(|side| (most * side / longer).round().max(1.0) as u64);
    let mut cells: BTreeMap<(u64, u64), BTreeMap<u32, u64>> = BTreeMap::new();
    for (vertex, part) in parts.iter().enumerate() {
        let point = coordinates.point(vertex);
        let cell = |place: f64, low: f64, side: f64, count: u64| {
            (((place - low) / side * count as f64) as u64).min(count - 1)
        };
        let col = cell(point[0], left, width, cols);
        let row = rows - 1 - cell(point.get(1).copied().unwrap_or(bottom), bottom, height, rows);
        *cells.entry((row, col)).or_default().entry(*part).or_default() += 1;
    }
    let owner = |found: &BTreeMap<u32, u64>| {
        found.iter().max_by_key(|(_, count)| **count).map_or(0, |(part, _)| *part)
    };
    let mut last = cells.values().next().map_or(0, owner);
    // Rectangles that are done, and those that end with the row before.
    let (mut done, mut open): (Vec<Part>, Vec<Part>) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let mut runs: Vec<Part> = Vec::new();
        for col in 0..cols {
            last = cells.get(&(row, col)).map_or(last, owner);
            match runs.last_mut() {
                Some(run) if run.owner.0 == last as usize => run.cols.end = col + 1,
                _ => {
                    let rect = Rect::new(Span::new(row, row + 1), Span::new(col, col + 1));
                    runs.push(Part::new(Rank(last as usize), rect));
                }
            }
        }
        for run in &mut runs {
            let above = |part: &Part| part.owner == run.owner && part.cols == run.cols;
            if let Some(found) = open.iter().position(above) {
                run.rows.start = open.swap_remove(found).rows.start;
            }
        }
        done.append(&mut open);
        open = runs;
    }
    done.append(&mut open);
    Layout::new(Shape::new(rows, 1, cols, "the picture")?, processors, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four vertices in a square, and one far to the right whose row has nothing between.
    #[test]
    fn cells_by_hand() {
        let places = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [4.0, 1.0]].concat();
        let coordinates = Coordinates::new(2, places, "points").unwrap();
        let layout = raster(&coordinates, &[0, 0, 1, 1, 2], 3).unwrap();
        assert_eq!((layout.shape().m, layout.shape().n), (1, 2));
        let mesh: Vec<f64> = (0..9).flat_map(|v| [f64::from(v % 3), f64::from(v / 3)]).collect();
        let coordinates = Coordinates::new(2, mesh, "mesh").unwrap();
        let layout = raster(&coordinates, &[0, 0, 1, 0, 0, 1, 1, 1, 1], 2).unwrap();
        assert_eq!(layout.shares(), [4, 5]);
        // The first row of the picture is the last of the mesh.
        let rect = |rows: [u64; 2], cols: [u64; 2]| {
            Rect::new(Span::new(rows[0], rows[1]), Span::new(cols[0], cols[1]))
        };
        assert_eq!(layout.parts()[0], Part::new(Rank(1), rect([0, 1], [0, 3])));
        // Rows with the same cuts are one rectangle.
        assert!(layout.parts().contains(&Part::new(Rank(0), rect([1, 3], [0, 2]))), "{:?}", layout.parts());
    }
}
