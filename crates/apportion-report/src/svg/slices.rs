//! What a picture of a layout shows: C, or slices of C side by side if the inner dimension is cut.

use apportion::geometry::{Rect, Span};
use apportion::plan::{Cuboid, Layout};

/// Largest number of slices; of more, these are spread over the inner dimension.
const MOST_SLICES: usize = 8;

/// The rectangles to draw, in a matrix of these many columns.
#[derive(Debug, Clone)]
pub(crate) struct Slices {
    /// By owner.
    pub(crate) rects: Vec<Vec<Rect>>,
    pub(crate) cols: u64,
    /// If the inner dimension is cut: the columns of each slice, and its inner indices.
    pub(crate) slices: Vec<(Span, Span)>,
    /// Number of slices, drawn or not.
    pub(crate) all: usize,
}

/// The owners of C, or for each span between cuts of the inner dimension the processors that compute there.
pub(crate) fn slices(layout: &Layout) -> Slices {
    let n = layout.shape().n;
    let Some(boxes) = layout.boxes() else {
        return Slices { rects: layout.rects_by_owner(), cols: n, slices: Vec::new(), all: 1 };
    };
    let mut cuts: Vec<u64> = boxes.iter().flat_map(|one| [one.inner.start, one.inner.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let spans: Vec<Span> = cuts.windows(2).map(|pair| Span::new(pair[0], pair[1])).collect();
    let shown: Vec<Span> = match spans.len() {
        few if few <= MOST_SLICES => spans.clone(),
        many => (0..MOST_SLICES).map(|i| spans[i * (many - 1) / (MOST_SLICES - 1)]).collect(),
    };
    let gap = n.div_ceil(12);
    let mut rects = vec![Vec::new(); layout.processors()];
    let mut places = Vec::new();
    for (i, inner) in (0..).zip(shown) {
        let left = i * (n + gap);
        places.push((Span::new(left, left + n), inner));
        let moved = |one: &Cuboid| Rect::new(one.rows, Span::new(one.cols.start + left, one.cols.end + left));
        for one in boxes.iter().filter(|one| one.inner.contains(inner)) {
            rects[one.owner.0].push(moved(one));
        }
    }
    let cols = places.last().map_or(n, |(place, _)| place.end);
    Slices { rects, cols, slices: places, all: spans.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::plan::shapes::LayoutMethod;
    use apportion::plan::{Shape, shapes};

    #[test]
    fn slices_are_side_by_side() {
        let shape = Shape::new(10, 90, 24, "test").unwrap();
        let few = slices(&shapes::Inner.layout(shape, &[1.0; 3]).unwrap());
        assert_eq!((few.cols, few.all), (76, 3));
        let at = |i: usize| few.rects[i][0].cols;
        assert_eq!([0, 1, 2].map(at), [[0, 24], [26, 50], [52, 76]].map(Span::from));
        assert_eq!(few.slices[1], (Span::new(26, 50), Span::new(30, 60)));
        let many = slices(&shapes::Inner.layout(shape, &[1.0; 30]).unwrap());
        assert_eq!((many.slices.len(), many.all), (8, 30));
        let ends = (many.slices[0].1, many.slices[7].1);
        assert_eq!(ends, (Span::new(0, 3), Span::new(87, 90)));
        let plain = slices(&shapes::Rows::default().layout(shape, &[1.0; 3]).unwrap());
        assert_eq!((plain.cols, plain.slices.len()), (24, 0));
    }
}
