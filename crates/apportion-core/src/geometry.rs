//! Half-open index ranges, rectangles, and sets of indices: the geometry of every layout.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A processor's number in the platform, the plan and the schedule: 0, 1, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rank(pub usize);

/// A half-open range of indices, `[start, end)`. Written as `[start, end]` in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(from = "[u64; 2]", into = "[u64; 2]")]
pub struct Span {
    /// First index.
    pub start: u64,
    /// One past the last index.
    pub end: u64,
}

impl Span {
    /// `[start, end)`; an end before the start makes an empty span at `start`.
    pub fn new(start: u64, end: u64) -> Self {
        Self { start, end: end.max(start) }
    }

    /// Number of indices.
    pub fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// True if there is no index.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The common part (empty if none).
    pub fn intersect(self, other: Self) -> Self {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// True if all indices of `other` are in this span.
    pub fn contains(self, other: Self) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// Maps the span from an axis of length `from` to one of length `to`, in proportion, with both ends
    /// rounded to nearest.
    ///
    /// The map is monotone and takes 0 to 0 and `from` to `to`, so that a partition remains a partition.
    pub fn rescale(self, from: u64, to: u64) -> Self {
        Self::new(rescale_cut(self.start, from, to), rescale_cut(self.end, from, to))
    }

    /// Pieces of at most `block` indices, aligned to multiples of `block` from the span's own start.
    pub fn blocks(self, block: u64) -> impl Iterator<Item = Self> {
        let block = block.max(1);
        let count = self.len().div_ceil(block);
        (0..count)
            .map(move |i| Self::new(self.start + i * block, (self.start + (i + 1) * block).min(self.end)))
    }
}

/// `round(cut * to / from)` in integers, half up.
fn rescale_cut(cut: u64, from: u64, to: u64) -> u64 {
    if from == to || from == 0 {
        return cut.min(to);
    }
    let (cut, from, to) = (u128::from(cut), u128::from(from), u128::from(to));
    ((2 * cut * to + from) / (2 * from)) as u64
}

impl From<[u64; 2]> for Span {
    fn from([start, end]: [u64; 2]) -> Self {
        // Kept as read (not normalised): a reversed range is refused by the layout's check.
        Self { start, end }
    }
}

impl From<Span> for [u64; 2] {
    fn from(span: Span) -> Self {
        [span.start, span.end]
    }
}

/// A rectangle of matrix elements: rows × columns, both half-open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct Rect {
    /// Row range.
    pub rows: Span,
    /// Column range.
    pub cols: Span,
}

impl Rect {
    /// The rectangle `rows × cols`.
    pub fn new(rows: Span, cols: Span) -> Self {
        Self { rows, cols }
    }

    /// Number of elements.
    pub fn area(self) -> u64 {
        self.rows.len() * self.cols.len()
    }

    /// True if there is no element.
    pub fn is_empty(self) -> bool {
        self.rows.is_empty() || self.cols.is_empty()
    }

    /// The common part (empty if none).
    pub fn intersect(self, other: Self) -> Self {
        Self::new(self.rows.intersect(other.rows), self.cols.intersect(other.cols))
    }

    /// True if the other rectangle is within this one.
    pub fn contains(self, other: Self) -> bool {
        self.intersect(other) == other
    }

    /// The same rectangle, counted from the upper left corner of another one that it is in.
    pub fn relative_to(self, outer: Self) -> Self {
        let rows = Span::new(self.rows.start - outer.rows.start, self.rows.end - outer.rows.start);
        let cols = Span::new(self.cols.start - outer.cols.start, self.cols.end - outer.cols.start);
        Self::new(rows, cols)
    }
}

/// A number of rows and of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
}

/// The numbers of two rectangles of a list that share an element; `None` if all are disjoint. No rectangle
/// may be empty. A sweep over the rows that keeps the rectangles of the current row by column: O(R log R) for
/// R of them.
pub fn first_overlap(rects: &[Rect]) -> Option<[usize; 2]> {
    let sorted = |key: fn(&Rect) -> u64| {
        let mut order: Vec<usize> = (0..rects.len()).collect();
        order.sort_by_key(|&i| key(&rects[i]));
        order
    };
    let mut ended = sorted(|rect| rect.rows.end).into_iter().peekable();
    let mut active: BTreeMap<u64, usize> = BTreeMap::new();
    for i in sorted(|rect| rect.rows.start) {
        let Rect { rows, cols } = rects[i];
        while let Some(done) = ended.next_if(|&done| rects[done].rows.end <= rows.start) {
            active.remove(&rects[done].cols.start);
        }
        let left = active.range(..=cols.start).next_back().filter(|&(_, &j)| rects[j].cols.end > cols.start);
        let right = active.range(cols.start..).next().filter(|&(&start, _)| start < cols.end);
        if let Some((_, &j)) = left.or(right) {
            return Some([j, i]);
        }
        active.insert(cols.start, i);
    }
    None
}

/// Sorts spans that are not empty, and joins those that meet.
fn merge(spans: &mut Vec<Span>) {
    spans.sort_unstable();
    spans.dedup_by(|span, last| {
        let meets = span.start <= last.end;
        if meets {
            last.end = last.end.max(span.end);
        }
        meets
    });
}

/// Number of indices in any of the spans, which are used up.
pub fn union_length(spans: &mut Vec<Span>) -> u64 {
    spans.retain(|span| !span.is_empty());
    merge(spans);
    spans.iter().map(|span| span.len()).sum()
}

/// A set of indices kept as sorted, disjoint, non-adjacent spans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpanSet {
    spans: Vec<Span>,
    /// `before[i]` = number of indices in the spans before span i.
    before: Vec<u64>,
}

impl SpanSet {
    /// The union of any spans, in any order.
    pub fn union(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut spans: Vec<Span> = spans.into_iter().filter(|s| !s.is_empty()).collect();
        merge(&mut spans);
        let mut before = Vec::with_capacity(spans.len());
        let mut sum = 0;
        for span in &spans {
            before.push(sum);
            sum += span.len();
        }
        Self { spans, before }
    }

    /// The spans, ascending.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Number of indices.
    pub fn len(&self) -> u64 {
        match (self.spans.last(), self.before.last()) {
            (Some(span), Some(before)) => before + span.len(),
            _ => 0,
        }
    }

    /// True if there is no index.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The parts of `span` inside the set, ascending.
    pub fn intersect(&self, span: Span) -> impl Iterator<Item = Span> + '_ {
        let first = self.spans.partition_point(|s| s.end <= span.start);
        self.spans[first..]
            .iter()
            .take_while(move |s| s.start < span.end)
            .map(move |s| s.intersect(span))
            .filter(|s| !s.is_empty())
    }

    /// The parts of `span` outside the set, ascending.
    pub fn subtract_from(&self, span: Span) -> Vec<Span> {
        let mut rest = Vec::new();
        let mut at = span.start;
        for part in self.intersect(span) {
            if part.start > at {
                rest.push(Span::new(at, part.start));
            }
            at = part.end;
        }
        if at < span.end {
            rest.push(Span::new(at, span.end));
        }
        rest
    }

    /// Number of indices of `span` in the set.
    pub fn count_in(&self, span: Span) -> u64 {
        self.intersect(span).map(Span::len).sum()
    }

    /// The position of `index` among the indices of the set, from 0; `None` if it is not in the set.
    pub fn position(&self, index: u64) -> Option<u64> {
        let i = self.spans.partition_point(|s| s.end <= index);
        let span = self.spans.get(i)?;
        (span.start <= index).then(|| self.before[i] + index - span.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescaling_keeps_a_partition_a_partition() {
        let cuts = [0, 3, 4, 9, 10];
        for to in [1, 2, 7, 10, 1000] {
            let spans: Vec<Span> = cuts.windows(2).map(|w| Span::new(w[0], w[1]).rescale(10, to)).collect();
            assert_eq!(spans[0].start, 0);
            assert_eq!(spans.last().unwrap().end, to);
            assert!(spans.windows(2).all(|w| w[0].end == w[1].start));
        }
    }

    /// Against all pairs, on rectangles in a small field.
    #[test]
    fn an_overlap_is_found_where_there_is_one() {
        let mut random = crate::random::Random::new(5);
        let mut found = [0, 0];
        for _ in 0..2000 {
            let mut side = |most: u64| {
                let start = (random.unit() * most as f64) as u64;
                Span::new(start, start + 1 + (random.unit() * 3.0) as u64)
            };
            let rects: Vec<Rect> = (0..4).map(|_| Rect::new(side(9), side(9))).collect();
            let share = |i: usize, j: usize| !rects[i].intersect(rects[j]).is_empty();
            let any = (0..4).any(|i| (0..i).any(|j| share(i, j)));
            let overlap = first_overlap(&rects);
            assert_eq!(overlap.is_some(), any, "{rects:?}");
            assert!(overlap.is_none_or(|[i, j]| i != j && share(i, j)), "{rects:?}");
            found[usize::from(any)] += 1;
        }
        assert!(found[0] > 100 && found[1] > 100, "{found:?}");
    }

    #[test]
    fn blocks_cover_the_span() {
        let blocks: Vec<Span> = Span::new(2, 9).blocks(3).collect();
        assert_eq!(blocks, [Span::new(2, 5), Span::new(5, 8), Span::new(8, 9)]);
        assert_eq!(Span::new(4, 4).blocks(3).count(), 0);
    }

    #[test]
    fn a_set_merges_counts_and_numbers() {
        let set = SpanSet::union([Span::new(5, 8), Span::new(0, 2), Span::new(7, 9)]);
        assert_eq!(set.spans(), [Span::new(0, 2), Span::new(5, 9)]);
        assert_eq!(set.len(), 6);
        assert_eq!(set.position(1), Some(1));
        assert_eq!(set.position(3), None);
        assert_eq!(set.position(6), Some(3));
        assert_eq!(set.count_in(Span::new(1, 6)), 2);
        assert_eq!(set.subtract_from(Span::new(1, 10)), [Span::new(2, 5), Span::new(9, 10)]);
    }
}
