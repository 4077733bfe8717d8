//! Overlays of boxes: the elements of C with the processors that compute partial sums of them, and the inner
//! indices at which one processor needs the same lines of A and B.

use super::Cuboid;
use crate::geometry::{Rank, Rect, Span, SpanSet};

/// Elements of C of which the same processors compute partial sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The elements.
    pub rect: Rect,
    /// The processors, in the order of their least inner indices: the first is the owner.
    pub chain: Vec<Rank>,
}

/// Inner indices at which a processor computes the same elements of C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The inner indices.
    pub inner: Span,
    /// The elements of C, as disjoint rectangles.
    pub faces: Vec<Rect>,
    /// Their rows: the rows of A that it needs.
    pub rows: SpanSet,
    /// Their columns: the columns of B that it needs.
    pub cols: SpanSet,
}

/// Columns with the processors that compute there, one after the other.
type Row = Vec<(Span, Vec<Rank>)>;

/// The cells of all boxes, from top to bottom; they cover C once. Cells whose processors are the same are
/// joined along rows, and equal rows of cells are joined. O(R^2) for R boxes on layouts of one box for each
/// processor, O(R^3) at worst.
pub(crate) fn cells(boxes: &[Cuboid]) -> Vec<Cell> {
    let mut boxes: Vec<&Cuboid> = boxes.iter().collect();
    boxes.sort_by_key(|one| (one.inner.start, one.owner));
    let mut bands: Vec<(Span, Row)> = Vec::new();
    for band in between(boxes.iter().map(|one| one.rows)) {
        let here: Vec<&&Cuboid> = boxes.iter().filter(|one| one.rows.contains(band)).collect();
        let mut row: Row = Vec::new();
        for cols in between(here.iter().map(|one| one.cols)) {
            let mut chain = Vec::new();
            for one in here.iter().filter(|one| one.cols.contains(cols)) {
                if !chain.contains(&one.owner) {
                    chain.push(one.owner);
                }
            }
            match row.last_mut() {
                Some((last, same)) if *same == chain => last.end = cols.end,
                _ => row.push((cols, chain)),
            }
        }
        match bands.last_mut() {
            Some((last, same)) if *same == row => last.end = band.end,
            _ => bands.push((band, row)),
        }
    }
    let cells = |(rows, row): (Span, Row)| {
        row.into_iter().map(move |(cols, chain)| Cell { rect: Rect::new(rows, cols), chain })
    };
    bands.into_iter().flat_map(cells).collect()
}

/// The segments of one processor's boxes, ascending. O(R^2) for R boxes.
pub(crate) fn segments<'a>(own: impl IntoIterator<Item = &'a Cuboid>) -> Vec<Segment> {
    let own: Vec<&Cuboid> = own.into_iter().collect();
    let mut found: Vec<Segment> = Vec::new();
    for inner in between(own.iter().map(|one| one.inner)) {
        let mut faces: Vec<Rect> =
            own.iter().filter(|one| one.inner.contains(inner)).map(|one| one.face()).collect();
        faces.sort_unstable();
        match found.last_mut() {
            _ if faces.is_empty() => {}
            Some(last) if last.inner.end == inner.start && last.faces == faces => last.inner.end = inner.end,
            _ => {
                let rows = SpanSet::union(faces.iter().map(|face| face.rows));
                let cols = SpanSet::union(faces.iter().map(|face| face.cols));
                found.push(Segment { inner, faces, rows, cols });
            }
        }
    }
    found
}

/// The spans between neighbouring ends of these spans.
pub(crate) fn between(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut cuts: Vec<u64> = spans.flat_map(|span| [span.start, span.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|pair| Span::new(pair[0], pair[1])).collect()
}
