//! Overlays of boxes: the elements of C with the processors that compute partial sums of them, and the inner
//! indices at which one processor needs the same lines of A and B.

use super::Cuboid;
use crate::geometry::{Rank, Rect, Span, SpanSet};
use std::collections::BTreeSet;
use std::ops::Range;

/// Elements of C of which the same processors compute partial sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The elements.
    pub(crate) rect: Rect,
    /// The processors, in the order of their least inner indices: the first is the owner.
    pub(crate) chain: Vec<Rank>,
}

/// Inner indices at which a processor computes the same elements of C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The inner indices.
    pub(crate) inner: Span,
    /// The elements of C, as disjoint rectangles.
    pub(crate) faces: Vec<Rect>,
    /// Their rows: the rows of A that it needs.
    pub(crate) rows: SpanSet,
    /// Their columns: the columns of B that it needs.
    pub(crate) cols: SpanSet,
}

/// Columns with the processors that compute there, one after the other.
#[derive(Debug, Default, PartialEq)]
struct Row {
    cols: Vec<Span>,
    /// Where the processors of each end in the list of all.
    ends: Vec<usize>,
    ranks: Vec<Rank>,
}

impl Row {
    /// The boxes of a band of rows, in the order of their chains; `once` if no processor has several.
    fn of(here: &[&Cuboid], once: bool) -> Self {
        let cuts = between(here.iter().map(|one| one.cols));
        let reach = |one: &Cuboid| {
            let at = |col: u64| cuts.partition_point(|cols| cols.start < col);
            at(one.cols.start)..at(one.cols.end)
        };
        let reaches: Vec<Range<usize>> = here.iter().map(|one| reach(one)).collect();
        let mut room = vec![0; cuts.len() + 1];
        reaches.iter().cloned().flatten().for_each(|piece| room[piece + 1] += 1);
        for piece in 0..cuts.len() {
            room[piece + 1] += room[piece];
        }
        let (mut chains, mut filled) = (vec![Rank(0); room[cuts.len()]], room.clone());
        for (one, reach) in here.iter().zip(reaches) {
            for piece in reach {
                if once || !chains[room[piece]..filled[piece]].contains(&one.owner) {
                    chains[filled[piece]] = one.owner;
                    filled[piece] += 1;
                }
            }
        }
        let mut row = Self::default();
        for (piece, cols) in cuts.into_iter().enumerate() {
            row.push(cols, &chains[room[piece]..filled[piece]]);
        }
        row
    }

    /// Adds columns on the right; joins them with those before if the processors are the same.
    fn push(&mut self, cols: Span, chain: &[Rank]) {
        let before = self.ends.len().checked_sub(2).map_or(0, |i| self.ends[i]);
        match self.cols.last_mut() {
            Some(last) if self.ranks[before..] == *chain => last.end = cols.end,
            _ => {
                self.cols.push(cols);
                self.ranks.extend(chain);
                self.ends.push(self.ranks.len());
            }
        }
    }

    fn cells(&self, rows: Span) -> impl Iterator<Item = Cell> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let chains = starts.zip(&self.ends).map(|(start, end)| self.ranks[start..*end].to_vec());
        self.cols.iter().zip(chains).map(move |(cols, chain)| Cell { rect: Rect::new(rows, *cols), chain })
    }
}

/// The cells of all boxes, from top to bottom; they cover C once. Cells whose processors are the same are
/// joined along rows, and equal rows of cells are joined. O(R log R + B R + S) for R boxes, whose ends cut
/// the rows into B bands, and S processors in all cells before they are joined.
pub(crate) fn cells(boxes: &[Cuboid]) -> Vec<Cell> {
    let mut boxes: Vec<&Cuboid> = boxes.iter().collect();
    boxes.sort_by_key(|one| (one.inner.start, one.owner));
    let rows: Vec<Span> = boxes.iter().map(|one| one.rows).collect();
    let owners: BTreeSet<Rank> = boxes.iter().map(|one| one.owner).collect();
    let once = owners.len() == boxes.len();
    let mut bands: Vec<(Span, Row)> = Vec::new();
    let mut here: Vec<&Cuboid> = Vec::new();
    for band in between(rows.iter().copied()) {
        here.clear();
        here.extend(rows.iter().zip(&boxes).filter(|(rows, _)| rows.contains(band)).map(|(_, one)| *one));
        let row = Row::of(&here, once);
        match bands.last_mut() {
            Some((last, same)) if *same == row => last.end = band.end,
            _ => bands.push((band, row)),
        }
    }
    bands.iter().flat_map(|(rows, row)| row.cells(*rows)).collect()
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
