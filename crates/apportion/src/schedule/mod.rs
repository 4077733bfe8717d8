//! In which order: for each processor a list of steps, made on demand from a layout.
//!
//! One schedule, several readers: the engines run it, the simulator reads it against a clock, the tests count
//! its bytes.

mod broadcast;
mod bulk;
mod one_to_all;
mod ring;
mod step;

pub use step::{Broadcast, Message, Operand, Piece, Step, Update};

use crate::plan::{Layout, Part, communication_free};
use crate::rect::{Rank, Rect, Span, SpanSet};
use std::fmt;
use std::str::FromStr;

/// How the operands travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flow {
    /// Pivot block by pivot block: owners of the pivot column of A and row of B send it to all who need it
    /// (heterogeneous SUMMA; Malik 2016, section 3.2.1).
    OneToAll,
    /// Pieces of the pivot block are forwarded from neighbour to neighbour (Malik 2016, section 3.2.1).
    Ring,
    /// All communication first, then all computation (Becker 2010, sections 5.2 and 5.6.1).
    Bulk,
    /// The processors take turns to broadcast what they own, strips of A and C staying where they are (Tinetti,
    /// chapter 3, section 3.4).
    Broadcast,
}

impl Flow {
    /// Every flow.
    pub const ALL: [Self; 4] = [Self::OneToAll, Self::Bulk, Self::Ring, Self::Broadcast];
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OneToAll => "one-to-all",
            Self::Bulk => "bulk",
            Self::Ring => "ring",
            Self::Broadcast => "broadcast",
        })
    }
}

impl FromStr for Flow {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|f| f.to_string() == text)
            .ok_or_else(|| format!("unknown flow \"{text}\" (use one-to-all, ring, bulk or broadcast)"))
    }
}

/// A flow with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// How the operands travel.
    pub flow: Flow,
    /// Pivot block size: indices of the inner dimension that one update takes; at least 1.
    pub block: u64,
    /// True to compute while data travel: the next pivot blocks are on their way during an update (all but bulk);
    /// what needs no message is computed first (bulk).
    pub overlap: bool,
    /// How many pivot blocks are on their way during an update, with overlap; at least 1. Each takes the memory of one
    /// more pivot block. The bulk flow has none.
    pub look_ahead: u64,
}

impl Order {
    /// Pivot blocks under way during an update: none without overlap.
    pub(crate) fn ahead(self) -> usize {
        if self.overlap { usize::try_from(self.look_ahead.max(1)).unwrap_or(usize::MAX) } else { 0 }
    }
}

/// The steps of a matrix product on a layout, for every processor, produced one at a time.
#[derive(Debug, Clone)]
pub struct Schedule {
    layout: Layout,
    order: Order,
    rows: Vec<SpanSet>,
    cols: Vec<SpanSet>,
    rects: Vec<Vec<Rect>>,
    a: Vec<Vec<Part>>,
    b: Vec<Vec<Part>>,
    free: Vec<(SpanSet, SpanSet)>,
    /// Where the columns are taken one group after the other (broadcast on strips): where each begins, from the second.
    groups: Vec<u64>,
    /// True if A is only used where it lies.
    a_stays: bool,
    /// Made for the ring flow only.
    rings: ring::Rings,
}

impl Schedule {
    /// The schedule of C = A B on `layout`.
    pub fn matmul(layout: &Layout, order: Order) -> Self {
        let p = layout.processors();
        let by_owner = |parts: Vec<Part>| {
            let mut out = vec![Vec::new(); p];
            for part in parts {
                out[part.owner.0].push(part);
            }
            out
        };
        let (rows, cols) = (layout.rows_by_owner(), layout.cols_by_owner());
        let rings = match order.flow {
            Flow::Ring => ring::Rings::new(layout, &rows, &cols),
            _ => ring::Rings::default(),
        };
        let by_columns = match order.flow {
            Flow::Broadcast => broadcast::columns_of_b(layout),
            _ => None,
        };
        Self {
            a_stays: by_columns.is_some(),
            groups: by_columns.iter().flatten().map(|part| part.cols.start).skip(1).collect(),
            order: Order { block: order.block.clamp(1, layout.shape().k), ..order },
            rows,
            cols,
            rings,
            rects: layout.rects_by_owner(),
            a: by_owner(layout.parts_of_a()),
            b: by_owner(by_columns.unwrap_or_else(|| layout.parts_of_b())),
            free: communication_free(layout),
            layout: layout.clone(),
        }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Flow, block size (clamped to the inner dimension) and overlap.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        self.layout.processors()
    }

    /// The rows of C, and so of A, that a processor needs.
    pub fn rows(&self, rank: Rank) -> &SpanSet {
        &self.rows[rank.0]
    }

    /// The columns of C, and so of B, that a processor needs.
    pub fn cols(&self, rank: Rank) -> &SpanSet {
        &self.cols[rank.0]
    }

    /// A processor's rectangles of C.
    pub fn rects(&self, rank: Rank) -> &[Rect] {
        &self.rects[rank.0]
    }

    /// A processor's own rectangles of A (m x k) and of B (k x n).
    pub fn own(&self, rank: Rank) -> (&[Part], &[Part]) {
        (&self.a[rank.0], &self.b[rank.0])
    }

    /// True if A's elements never travel: updates use them where they lie.
    pub(crate) fn a_stays(&self) -> bool {
        self.a_stays
    }

    /// The columns that travel and are updated together with this one: all, but for the broadcast flow on strips.
    pub(crate) fn group(&self, column: u64) -> Span {
        let group = self.groups.partition_point(|&start| start <= column);
        let start = if group == 0 { 0 } else { self.groups[group - 1] };
        Span::new(start, self.groups.get(group).copied().unwrap_or(self.layout.shape().n))
    }

    /// Everything with these inner indices: what is released when they are done with.
    fn all(&self, inner: Span) -> Rect {
        Rect::new(inner, Span::new(0, self.layout.shape().n))
    }

    /// The pivot blocks of the inner dimension, in order.
    pub fn pivots(&self) -> impl Iterator<Item = Span> + use<> {
        Span::new(0, self.layout.shape().k).blocks(self.order.block)
    }

    /// The steps of one processor, in order.
    pub fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = Step> + '_> {
        match self.order.flow {
            Flow::OneToAll => Box::new(one_to_all::steps(self, rank)),
            Flow::Bulk => Box::new(bulk::steps(self, rank)),
            Flow::Ring => Box::new(ring::steps(self, rank)),
            Flow::Broadcast => Box::new(broadcast::steps(self, rank)),
        }
    }

    /// What `from` sends to `to` of the operands' inner indices `inner`; `None` if nothing.
    fn message(&self, from: Rank, to: Rank, inner: Span, tag: u64) -> Option<Message> {
        let mut pieces = Vec::new();
        for part in &self.a[from.0] {
            let cols = part.cols.intersect(inner);
            if !cols.is_empty() {
                pieces.extend(
                    self.rows[to.0]
                        .intersect(part.rows)
                        .map(|rows| Piece { operand: Operand::A, rect: Rect::new(rows, cols) }),
                );
            }
        }
        for part in &self.b[from.0] {
            let rows = part.rows.intersect(inner);
            if !rows.is_empty() {
                pieces.extend(
                    self.cols[to.0]
                        .intersect(part.cols)
                        .map(|cols| Piece { operand: Operand::B, rect: Rect::new(rows, cols) }),
                );
            }
        }
        (!pieces.is_empty()).then_some(Message { from, to, tag, pieces })
    }

    /// Starts of all sends and receives of `rank` for `inner`: sends first, to the next ranks in turn, so that
    /// not all begin with the same receiver.
    fn posts(&self, rank: Rank, inner: Span, tag: u64) -> (Vec<Step>, Vec<Step>) {
        let p = self.processors();
        let others = || (1..p).map(move |d| Rank((rank.0 + d) % p));
        let messages = others().filter_map(|to| self.message(rank, to, inner, tag));
        let mut starts: Vec<Step> = if self.order.flow == Flow::OneToAll {
            Broadcast::step(messages.collect()).into_iter().collect()
        } else {
            messages.map(Step::Send).collect()
        };
        let mut awaits = Vec::new();
        for from in others() {
            if let Some(message) = self.message(from, rank, inner, tag) {
                awaits.push(Step::Await { from, tag });
                starts.push(Step::Receive(message));
            }
        }
        (starts, awaits)
    }
}

#[cfg(test)]
mod tests;
