//! The rings that a layout's data travel in: one for each band of rows (pieces of A) and of columns (pieces
//! of B).
//!
//! A band of rows is between two neighbouring horizontal cuts of the layout: every row in it meets the same
//! rectangles. Malik 2016, section 3.2.1, calls its height the "overlap" of those rectangles.

use super::distance::Distances;
use crate::geometry::{Rank, Span};
use crate::plan::Layout;

/// One ring: the rectangles that a band meets, in order.
#[derive(Debug, Clone)]
pub(super) struct Ring {
    /// Height of a band of rows, or width of a band of columns, in elements.
    pub(crate) width: u64,
    /// Owner, and the extent across the band, of each rectangle.
    pub(crate) stops: Vec<(Rank, Span)>,
}

/// All rings of a layout.
#[derive(Debug, Clone)]
pub(super) struct Rings {
    /// A's rings, from top to bottom.
    pub(crate) rows: Vec<Ring>,
    /// B's rings, from left to right.
    pub(crate) cols: Vec<Ring>,
}

impl Rings {
    /// The rings of any layout. O(bands x rectangles in a band).
    pub(super) fn of(layout: &Layout) -> Self {
        let parts = || layout.parts().iter();
        Self {
            rows: bands(parts().map(|p| (p.rows, p.cols, p.owner)).collect()),
            cols: bands(parts().map(|p| (p.cols, p.rows, p.owner)).collect()),
        }
    }
}

/// Bands of (along, across, owner) rectangles: a sweep over the cuts that keeps the rectangles it meets.
fn bands(mut parts: Vec<(Span, Span, Rank)>) -> Vec<Ring> {
    parts.sort_unstable();
    let mut cuts: Vec<u64> = parts.iter().flat_map(|p| [p.0.start, p.0.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut active: Vec<(Span, Span, Rank)> = Vec::new();
    let mut waiting = parts.into_iter().peekable();
    cuts.windows(2)
        .map(|cut| {
            active.retain(|p| p.0.end > cut[0]);
            while let Some(part) = waiting.next_if(|p| p.0.start == cut[0]) {
                let place = active.partition_point(|p| p.1 < part.1);
                active.insert(place, part);
            }
            Ring { width: cut[1] - cut[0], stops: active.iter().map(|p| (p.2, p.1)).collect() }
        })
        .collect()
}

/// The cost of one link of a ring, by the direction `axis` (0 along rows, 1 along columns), per element.
pub(super) fn links<'a>(
    ring: &'a Ring,
    distances: &'a Distances<'_>,
    owner: &'a [usize],
    axis: usize,
) -> impl Iterator<Item = f64> + 'a {
    let stops = &ring.stops;
    (0..if stops.len() > 1 { stops.len() } else { 0 }).map(move |i| {
        let next = (i + 1) % stops.len();
        distances.between(owner[stops[i].0.0], owner[stops[next].0.0])[axis]
    })
}

/// One-to-all: the holder of the pivot sends to all others in its ring. The result is the mean over all
/// positions of the pivot.
///
/// `owner[i]` has the places of the layout's owner i. Not in the source, which gives a cost function for the
/// ring flow only, and takes the pivot's worst position. A product takes every position once: its sum is this
/// mean times the number of positions.
pub(super) fn one_to_all(rings: &Rings, distances: &Distances<'_>, owner: &[usize]) -> (f64, f64) {
    let sum = |rings: &[Ring], axis: usize| -> f64 {
        let mean = |ring: &Ring| {
            let mut reached: Vec<Rank> = ring.stops.iter().map(|s| s.0).collect();
            reached.sort_unstable();
            reached.dedup();
            let all: u64 = ring.stops.iter().map(|s| s.1.len()).sum();
            let from = |source: Rank| -> f64 {
                reached.iter().map(|to| distances.between(owner[source.0], owner[to.0])[axis]).sum()
            };
            let held = ring.stops.iter().map(|s| s.1.len() as f64 / all as f64 * from(s.0));
            ring.width as f64 * held.sum::<f64>()
        };
        rings.iter().map(mean).sum()
    };
    (sum(&rings.rows, 0), sum(&rings.cols, 1))
}

/// The maximum over all positions across the rings of the sum of the weights of each ring's stop there.
pub(super) fn most_at_one_cut(rings: &[Ring], weight: impl Fn(&Ring, usize) -> f64) -> f64 {
    let mut cuts: Vec<u64> = rings.iter().flat_map(|r| r.stops.iter().map(|s| s.1.start)).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut sums = vec![0.0; cuts.len()];
    for ring in rings {
        for (i, stop) in ring.stops.iter().enumerate() {
            let weight = weight(ring, i);
            let first = cuts.partition_point(|&c| c < stop.1.start);
            for (sum, _) in sums[first..].iter_mut().zip(&cuts[first..]).take_while(|(_, c)| **c < stop.1.end)
            {
                *sum += weight;
            }
        }
    }
    sums.into_iter().max_by(f64::total_cmp).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Shape;
    use crate::plan::shapes::{LayoutMethod, SquareCorner};

    #[test]
    fn the_bands_of_a_square_corner() {
        let layout = SquareCorner.layout(Shape::new(10, 10, 10, "t").unwrap(), &[84.0, 16.0]).unwrap();
        let rings = Rings::of(&layout);
        let seen: Vec<(u64, usize)> = rings.rows.iter().map(|r| (r.width, r.stops.len())).collect();
        assert_eq!(seen, [(6, 1), (4, 2)]);
        assert_eq!(rings.rows[1].stops[1], (Rank(1), Span::new(6, 10)));
        // The upper rectangle spans all columns; the lower band of columns meets it and the square.
        let seen: Vec<(u64, usize)> = rings.cols.iter().map(|r| (r.width, r.stops.len())).collect();
        assert_eq!(seen, [(6, 2), (4, 2)]);
    }

    #[test]
    fn the_heaviest_column_is_found() {
        let ring = |width, cuts: &[u64]| Ring {
            width,
            stops: cuts.windows(2).map(|c| (Rank(0), Span::new(c[0], c[1]))).collect(),
        };
        let rings = [ring(1, &[0, 2, 9]), ring(1, &[0, 5, 9])];
        // Columns 0-1: 1 + 1; 2-4: 2 + 1; 5-8: 2 + 2.
        assert_eq!(most_at_one_cut(&rings, |_, i| (i + 1) as f64), 4.0);
        assert_eq!(most_at_one_cut(&rings, |_, i| 2.0 - i as f64), 4.0);
    }
}
