//! The steps of a matrix product C = A B on a layout, one file per flow.

mod broadcast;
mod bulk;
mod inner;
mod memory;
mod one_to_all;
mod owner_index;
mod pieces;
mod ring;
mod size;
mod traffic;

pub(crate) use inner::Boxes;
pub use memory::{DataPath, predicted_memory};
use owner_index::{Band, OwnerIndex};
pub(crate) use pieces::MatmulMessage;
pub use pieces::{MatmulStep, Operand, OperandPiece, Update};
use pieces::{cast, separated};
pub(crate) use traffic::{Exchange, Traffic};

use super::{Application, Flow, ScheduleOptions, Step};
use crate::geometry::{Rank, Rect, Span, SpanSet};
use crate::plan::{Layout, OwnedLines, Part, communication_free};

/// The steps of a matrix product on a layout, for every processor, generated one at a time.
#[derive(Debug, Clone)]
pub struct MatmulSchedule {
    layout: Layout,
    order: ScheduleOptions,
    rows: Vec<SpanSet>,
    cols: Vec<SpanSet>,
    rects: Vec<Vec<Rect>>,
    a: Vec<Vec<Part>>,
    b: Vec<Vec<Part>>,
    /// Parts of C that need no message; used by the bulk flow with overlap only.
    free: Vec<OwnedLines>,
    /// Starts of the column groups after the first, if the columns are processed in groups (broadcast on
    /// strips).
    groups: Vec<u64>,
    /// True if A is only read in place.
    a_stays: bool,
    /// The inner indices of the sum.
    inner: Span,
    /// Processors that own a part of A or B that travels; used by the broadcast flow only.
    owners: Vec<Rank>,
    bands_of_a: OwnerIndex,
    bands_of_b: OwnerIndex,
    /// What boxes add, if the layout cuts the inner dimension.
    boxes: Option<Box<Boxes>>,
}

impl MatmulSchedule {
    /// Creates the schedule of C = A B on `layout`. On a layout that cuts the inner dimension, every flow but
    /// bulk goes by turns; [`ScheduleOptions::check_layout`] refuses those that do not serve it.
    pub fn new(layout: &Layout, order: ScheduleOptions) -> Self {
        let p = layout.processors();
        let by_owner = |parts: Vec<Part>| {
            let mut out = vec![Vec::new(); p];
            for part in parts {
                out[part.owner.0].push(part);
            }
            out
        };
        let divides = order.flow == Flow::Bulk && order.overlaps();
        let by_columns = match order.flow {
            Flow::Broadcast if layout.boxes().is_none() => broadcast::columns_of_b(layout),
            _ => None,
        };
        let order = ScheduleOptions { block: order.block.clamp(1, layout.shape().k), ..order };
        let index = |of: fn(&Layout) -> OwnerIndex| match layout.boxes() {
            None => of(layout),
            Some(_) => OwnerIndex::default(),
        };
        let a_stays = by_columns.is_some();
        let groups = by_columns.iter().flatten().map(|part| part.cols.start).skip(1).collect();
        let a = by_owner(layout.parts_of_a());
        let b = by_owner(by_columns.unwrap_or_else(|| layout.parts_of_b()));
        let owns = |rank: &usize| !b[*rank].is_empty() || !a_stays && !a[*rank].is_empty();
        let takes_turns = order.flow == Flow::Broadcast;
        Self {
            owners: (0..p).filter(|rank| takes_turns && owns(rank)).map(Rank).collect(),
            a_stays,
            groups,
            order,
            boxes: Boxes::of(layout, order),
            rows: layout.rows_by_owner(),
            cols: layout.cols_by_owner(),
            rects: layout.rects_by_owner(),
            a,
            b,
            inner: Span::new(0, layout.shape().k),
            free: if divides { communication_free(layout) } else { Vec::new() },
            bands_of_a: index(OwnerIndex::of_a),
            bands_of_b: index(OwnerIndex::of_b),
            layout: layout.clone(),
        }
    }

    /// Restricts the schedule to the part of the product that sums over these inner indices. The layouts of A
    /// and B do not change.
    ///
    /// # Panics
    /// If the indices do not begin with a pivot block or reach beyond the inner dimension, or if the layout
    /// cuts the inner dimension.
    #[must_use]
    pub fn within(self, inner: Span) -> Self {
        assert!(self.boxes.is_none(), "a layout with boxes has no segments");
        assert!(inner.start.is_multiple_of(self.order.block), "a segment begins with a pivot block");
        assert!(inner.end <= self.layout.shape().k, "a segment lies within the inner dimension");
        Self { inner, ..self }
    }

    /// The inner indices of the sum: all, unless the schedule is restricted to a segment by
    /// [`within`](Self::within).
    pub fn inner(&self) -> Span {
        self.inner
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Flow, block size (clamped to the inner dimension) and overlap.
    pub fn order(&self) -> ScheduleOptions {
        self.order
    }

    /// The rows of A (and of C) that a processor needs.
    pub(crate) fn rows(&self, rank: Rank) -> &SpanSet {
        &self.rows[rank.0]
    }

    /// The columns of B (and of C) that a processor needs.
    pub(crate) fn cols(&self, rank: Rank) -> &SpanSet {
        &self.cols[rank.0]
    }

    /// A processor's rectangles of C: those that it owns.
    pub fn rects(&self, rank: Rank) -> &[Rect] {
        &self.rects[rank.0]
    }

    /// A processor's rectangles of the result: those of C that it owns, and if C is symmetric also the mirror images of
    /// those below the diagonal.
    pub fn result_rects(&self, rank: Rank) -> Vec<Rect> {
        let parts = self.layout.parts_of_c().into_iter();
        parts.filter(|part| part.owner == rank).map(|part| part.rect()).collect()
    }

    /// A processor's own rectangles of A (m x k) and of B (k x n).
    pub fn own(&self, rank: Rank) -> (&[Part], &[Part]) {
        (&self.a[rank.0], &self.b[rank.0])
    }

    /// The rectangles of C that a processor computes: those that it owns, and those of which it computes
    /// partial sums for others.
    pub fn tiles(&self, rank: Rank) -> &[Rect] {
        self.boxes.as_ref().map_or(self.rects(rank), |boxes| boxes.tiles(rank))
    }

    /// True if a processor owns one of its [tiles](Self::tiles) of C; of the others it computes partial sums.
    pub fn owns(&self, rank: Rank, tile: Rect) -> bool {
        self.boxes.is_none() || self.rects(rank).iter().any(|own| own.contains(tile))
    }

    /// The rows of A and columns of B that a processor needs for an inner index; `None` without work there.
    pub fn lines_at(&self, rank: Rank, inner: u64) -> Option<(&SpanSet, &SpanSet)> {
        let Some(boxes) = &self.boxes else { return Some((self.rows(rank), self.cols(rank))) };
        let at = Span::new(inner, inner + 1);
        let found = boxes.segments(rank).iter().find(|segment| segment.inner.contains(at))?;
        Some((&found.rows, &found.cols))
    }

    /// The inner indices whose operands a processor holds together with those of this one: its pivot block,
    /// or with boxes those of the same turn in the same box. `None` without work there.
    pub fn pivot_of(&self, rank: Rank, inner: u64) -> Option<Span> {
        if let Some(boxes) = &self.boxes {
            return boxes.turn_of(rank, inner);
        }
        let start = inner - inner % self.order.block;
        Some(Span::new(start, start.saturating_add(self.order.block).min(self.inner.end)))
    }

    /// The owners that take turns in the broadcast flow, in their order.
    pub(crate) fn owners(&self) -> &[Rank] {
        &self.owners
    }

    /// By owner: the updates that become possible with its turns, each with the processor that computes it.
    /// Broadcast flow only. O(R) for each rectangle of C, for R rectangles of A and B that it meets.
    pub(crate) fn updates_by_turn(&self) -> Vec<Vec<(Rank, Update)>> {
        let mut all = vec![Vec::new(); self.rects.len()];
        for rank in (0..self.rects.len()).map(Rank) {
            for (owner, updates) in broadcast::updates_by_turn(self, rank) {
                all[owner.0].extend(updates.into_iter().map(|update| (rank, update)));
            }
        }
        all
    }

    /// The bands of an operand: lines that the same processors need. None with inner cuts.
    pub(crate) fn bands(&self, operand: Operand) -> &[Band] {
        match operand {
            Operand::B => self.bands_of_b.bands(),
            _ => self.bands_of_a.bands(),
        }
    }

    /// What the analysis of a schedule grows with: the processors in all bands of lines, and the exchanges of
    /// a band's lines between an owner and another processor.
    pub(crate) fn members_and_exchanges(&self) -> (usize, usize) {
        let bands = || self.bands_of_a.bands().iter().chain(self.bands_of_b.bands());
        let members = bands().map(|band| band.members.len()).sum();
        (members, bands().map(|band| band.owned.len() * (band.members.len() - 1)).sum())
    }

    /// Bulk flow with overlap: a processor's rectangles that need no message, and the others.
    pub(crate) fn split_rects(&self, rank: Rank) -> (Vec<Rect>, Vec<Rect>) {
        bulk::split_rects(self, rank)
    }

    /// True if a processor has a part of C.
    pub(crate) fn has_share(&self, rank: Rank) -> bool {
        !self.rects[rank.0].is_empty()
    }

    /// True if the elements of A never travel: updates read them in place.
    pub fn a_stays(&self) -> bool {
        self.a_stays
    }

    /// The group of columns that are sent and updated together with this one: all columns, except for the
    /// broadcast flow on strips.
    pub fn group(&self, column: u64) -> Span {
        let group = self.groups.partition_point(|&start| start <= column);
        let start = if group == 0 { 0 } else { self.groups[group - 1] };
        Span::new(start, self.groups.get(group).copied().unwrap_or(self.layout.shape().n))
    }

    /// The region with these inner indices, to be freed once they are no longer needed.
    fn all(&self, inner: Span) -> OperandPiece {
        let rect = Rect::new(inner, Span::new(0, self.layout.shape().n));
        OperandPiece { operand: Operand::B, rect }
    }

    /// The pivot blocks of the inner dimension, in order.
    pub fn pivots(&self) -> impl Iterator<Item = Span> + use<> {
        self.inner.blocks(self.order.block)
    }

    /// Number of pivot blocks.
    pub(crate) fn pivot_count(&self) -> usize {
        usize::try_from(self.inner.len().div_ceil(self.order.block)).unwrap_or(usize::MAX)
    }

    /// The pivot block with this number: the blocks of a long inner dimension are never all in memory.
    pub(crate) fn pivot(&self, number: usize) -> Span {
        let start = self.inner.start + number as u64 * self.order.block;
        Span::new(start, start.saturating_add(self.order.block).min(self.inner.end))
    }

    /// The message from `from` to `to` with the operands' inner indices `inner`.
    fn message(&self, from: Rank, to: Rank, inner: Span, tag: u64) -> MatmulMessage {
        let mut pieces = Vec::new();
        for part in &self.a[from.0] {
            let cols = part.cols.intersect(inner);
            if !cols.is_empty() {
                pieces.extend(
                    self.rows[to.0]
                        .intersect(part.rows)
                        .map(|rows| OperandPiece::new(Operand::A, rows, cols)),
                );
            }
        }
        for part in &self.b[from.0] {
            let rows = part.rows.intersect(inner);
            if !rows.is_empty() {
                pieces.extend(
                    self.cols[to.0]
                        .intersect(part.cols)
                        .map(|cols| OperandPiece::new(Operand::B, cols, rows)),
                );
            }
        }
        MatmulMessage { from, to, tag, pieces }
    }

    /// The messages from `from` to `to`: one, or one for each rectangle, tagged in order from `tag`.
    fn messages(&self, from: Rank, to: Rank, inner: Span, tag: u64) -> Vec<MatmulMessage> {
        let message = self.message(from, to, inner, tag);
        if self.order.sends_separately() { separated(message) } else { vec![message] }
    }

    /// Starts all sends and receives of `rank` for `inner`; the second part waits for the receives. Sends
    /// come first and go to the next ranks in cyclic order, so that not all processors send to the same
    /// receiver first. Messages are generated one at a time.
    fn posts(
        &self,
        rank: Rank,
        inner: Span,
        tag: u64,
    ) -> (impl Iterator<Item = MatmulStep> + '_, impl Iterator<Item = MatmulStep> + use<>) {
        let (to, from) = (self.receivers(rank, inner), self.senders(rank, inner));
        let tags = |from: Rank| self.messages(from, rank, inner, tag).into_iter().map(move |m| (from, m.tag));
        let (awaited, separate): (Vec<Rank>, Vec<(Rank, u64)>) = match self.order.sends_separately() {
            true => (Vec::new(), from.iter().flat_map(|&from| tags(from)).collect()),
            false => (from.clone(), Vec::new()),
        };
        let together = awaited.into_iter().map(move |from| (from, tag));
        let awaits = together.chain(separate).map(|(from, tag)| Step::WaitReceive { from, tag });
        let message = move |to| self.message(rank, to, inner, tag);
        let (together, singly) =
            if self.order.flow == Flow::OneToAll { (to, Vec::new()) } else { (Vec::new(), to) };
        let cast = cast(together.into_iter().map(message).collect());
        let each = move |from, to| self.messages(from, to, inner, tag);
        let sends =
            cast.into_iter().chain(singly.into_iter().flat_map(move |to| each(rank, to)).map(Step::Send));
        let receives = from.into_iter().flat_map(move |from| each(from, rank)).map(Step::PostReceive);
        (sends.chain(receives), awaits)
    }

    /// The ranks that need something that `rank` owns with these inner indices, starting after `rank`.
    fn receivers(&self, rank: Rank, inner: Span) -> Vec<Rank> {
        let mut found = Vec::new();
        let now = |span: Span| !span.intersect(inner).is_empty();
        self.a[rank.0]
            .iter()
            .filter(|p| now(p.cols))
            .for_each(|p| self.bands_of_a.needing(p.rows, &mut found));
        self.b[rank.0]
            .iter()
            .filter(|p| now(p.rows))
            .for_each(|p| self.bands_of_b.needing(p.cols, &mut found));
        Self::in_turn(rank, found)
    }

    /// The ranks that own something with these inner indices that `rank` needs, starting after `rank`.
    fn senders(&self, rank: Rank, inner: Span) -> Vec<Rank> {
        let mut found = Vec::new();
        self.bands_of_a.owning(rank, inner, &mut found);
        self.bands_of_b.owning(rank, inner, &mut found);
        Self::in_turn(rank, found)
    }

    /// The ranks that send something of a pivot block, by ascending rank.
    fn senders_of(&self, inner: Span) -> Vec<Rank> {
        let sends = |rank: &Rank| !self.receivers(*rank, inner).is_empty();
        (0..self.processors()).map(Rank).filter(sends).collect()
    }

    /// Each other rank once, in cyclic order from the next rank on.
    fn in_turn(rank: Rank, mut found: Vec<Rank>) -> Vec<Rank> {
        found.retain(|other| *other != rank);
        found.sort_unstable();
        found.dedup();
        let later = found.partition_point(|other| *other < rank);
        found.rotate_left(later);
        // Ranks are found once for each band; their list lives as long as their messages.
        found.shrink_to_fit();
        found
    }
}

impl Application for MatmulSchedule {
    type Piece = OperandPiece;
    type Work = Update;

    fn processors(&self) -> usize {
        self.layout.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = MatmulStep> + '_> {
        if let Some(boxes) = &self.boxes {
            return Box::new(inner::steps(self, boxes, rank));
        }
        match self.order.flow {
            Flow::OneToAll => Box::new(one_to_all::steps(self, rank)),
            Flow::Bulk => Box::new(bulk::steps(self, rank)),
            Flow::Ring => Box::new(ring::steps(self, rank)),
            Flow::Broadcast => Box::new(broadcast::steps(self, rank)),
        }
    }

    fn senders(&self, tag: u64) -> Option<Vec<Rank>> {
        match self.order.flow {
            // Processors are at different inner indices: there is no order to keep.
            _ if self.boxes.is_some() => None,
            Flow::OneToAll => one_to_all::senders(self, tag),
            Flow::Broadcast => broadcast::senders(self, tag),
            Flow::Ring | Flow::Bulk => None,
        }
    }

    fn overlaps(&self) -> bool {
        self.order.overlaps()
    }

    /// Number of elements of C that are updated by a pivot block.
    fn share(&self, rank: Rank) -> f64 {
        if let Some(boxes) = &self.boxes {
            return boxes.size(rank) as f64;
        }
        self.rects(rank).iter().map(|rect| rect.area()).sum::<u64>() as f64
    }

    /// Its rectangles of C.
    fn results(&self, rank: Rank) -> u64 {
        self.share(rank) as u64
    }

    /// Number of multiply-adds.
    fn work(&self, rank: Rank) -> f64 {
        match &self.boxes {
            None => self.share(rank) * self.inner.len() as f64,
            Some(boxes) => boxes.work(rank),
        }
    }
}

#[cfg(test)]
mod tests;
