//! The operands that one processor holds: its own parts of A and B, and what has arrived, by pivot block.

use crate::matrix::{Element, Matrix};
use crate::rect::{Rank, Rect, Span};
use crate::schedule::{Operand, Piece, Schedule, Update};
use std::collections::BTreeMap;

/// One pivot block's operands: A's needed rows x inner, and inner x B's needed columns, both row by row.
struct Panel<T> {
    inner: Span,
    a: Vec<T>,
    b: Vec<T>,
}

/// A processor's operands: its own parts of the factors, and copies of others' parts once their message is there.
pub(super) struct Blocks<'a, T> {
    schedule: &'a Schedule,
    rank: Rank,
    a: &'a Matrix<T>,
    b: &'a Matrix<T>,
    panels: BTreeMap<u64, Panel<T>>,
    spare: Vec<Vec<T>>,
    held: u64,
    peak: u64,
}

/// A tile of an operand within a panel: its first element's place, and the distance between rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands<'a, T> {
    /// A's rows from the tile's first on, row by row.
    pub a: &'a [T],
    /// Elements between rows of `a`.
    pub a_stride: usize,
    /// B's rows from the tile's first column on.
    pub b: &'a [T],
    /// Elements between rows of `b`.
    pub b_stride: usize,
}

impl<'a, T: Element> Blocks<'a, T> {
    /// No panel yet; `held` bytes are counted elsewhere (the processor's own parts and its part of C).
    pub fn new(schedule: &'a Schedule, rank: Rank, a: &'a Matrix<T>, b: &'a Matrix<T>, held: u64) -> Self {
        Self { schedule, rank, a, b, panels: BTreeMap::new(), spare: Vec::new(), held, peak: held }
    }

    /// Most bytes held at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// Takes over the pieces of a message that arrived, from their owner's parts, to where updates look for them.
    pub fn take(&mut self, pieces: &[Piece]) {
        let (a, b) = (self.a, self.b);
        for &Piece { operand, rect } in pieces {
            let (matrix, inner) = match operand {
                Operand::A => (a, rect.cols),
                Operand::B => (b, rect.rows),
            };
            // One piece may span several panels (all of them in the bulk flow).
            let block = self.schedule.order().block;
            let mut start = inner.start - inner.start % block;
            while start < inner.end {
                let part = self.panel(start).inner.intersect(inner);
                let rect = match operand {
                    Operand::A => Rect::new(rect.rows, part),
                    Operand::B => Rect::new(part, rect.cols),
                };
                self.copy(start, operand, rect, matrix);
                start += block;
            }
        }
    }

    /// Forgets the panels of these inner indices.
    pub fn release(&mut self, inner: Span) {
        let starts: Vec<u64> = self.panels.range(inner.start..inner.end).map(|(s, _)| *s).collect();
        for start in starts {
            if let Some(panel) = self.panels.remove(&start) {
                self.held -= bytes(&panel);
                self.spare.extend([panel.a, panel.b]);
            }
        }
    }

    /// Makes sure that the operands of an update are together: copies own parts in at first use.
    pub fn gather(&mut self, inner: Span) {
        self.panel(inner.start);
    }

    /// The operands of an update; [`Blocks::gather`] must have been called for its inner indices.
    pub fn operands(&self, update: &Update) -> Operands<'_, T> {
        let panel = &self.panels[&update.inner.start];
        debug_assert_eq!(panel.inner, update.inner, "updates take whole pivot blocks");
        let (rows, cols) = (self.schedule.rows(self.rank), self.schedule.cols(self.rank));
        let first =
            |position: Option<u64>| position.expect("an update lies in the processor's part") as usize;
        let (row, col) =
            (first(rows.position(update.rect.rows.start)), first(cols.position(update.rect.cols.start)));
        let a_stride = panel.inner.len() as usize;
        Operands {
            a: &panel.a[row * a_stride..],
            a_stride,
            b: &panel.b[col..],
            b_stride: cols.len() as usize,
        }
    }

    /// The panel that starts at `start`, made from the processor's own parts if it is new.
    fn panel(&mut self, start: u64) -> &Panel<T> {
        if !self.panels.contains_key(&start) {
            let block = self.schedule.order().block;
            let inner = Span::new(start, (start + block).min(self.schedule.layout().shape().k));
            let (rows, cols) = (self.schedule.rows(self.rank).len(), self.schedule.cols(self.rank).len());
            let (a, b) = (self.buffer(rows * inner.len()), self.buffer(inner.len() * cols));
            let panel = Panel { inner, a, b };
            self.held += bytes(&panel);
            self.peak = self.peak.max(self.held);
            self.panels.insert(start, panel);
            let (own_a, own_b) = self.schedule.own(self.rank);
            let (a, b) = (self.a, self.b);
            for part in own_a {
                let rect = Rect::new(part.rows, part.cols.intersect(inner));
                self.copy(start, Operand::A, rect, a);
            }
            for part in own_b {
                let rect = Rect::new(part.rows.intersect(inner), part.cols);
                self.copy(start, Operand::B, rect, b);
            }
        }
        &self.panels[&start]
    }

    /// A buffer of a released panel, or a new one: pages that are in use already cost nothing more.
    fn buffer(&mut self, length: u64) -> Vec<T> {
        let length = length as usize;
        let fit = (0..self.spare.len()).filter(|&i| self.spare[i].capacity() >= length);
        let best = fit.min_by_key(|&i| self.spare[i].capacity());
        let mut buffer = best.map_or_else(Vec::new, |i| self.spare.swap_remove(i));
        buffer.resize(length, T::ZERO);
        buffer
    }

    /// Copies a rectangle of an operand from the matrix into a panel, row by row.
    fn copy(&mut self, start: u64, operand: Operand, rect: Rect, matrix: &Matrix<T>) {
        if rect.is_empty() {
            return;
        }
        let (rows, cols) = (self.schedule.rows(self.rank), self.schedule.cols(self.rank));
        let panel = self.panels.get_mut(&start).expect("the panel was made before");
        let width = rect.cols.len() as usize;
        // A piece lies in one span of the needed rows or columns: its lines are neighbours in the panel too.
        let (target, stride, first_row, first_col) = match operand {
            Operand::A => {
                let first = rows.position(rect.rows.start).expect("only needed rows arrive");
                (&mut panel.a, panel.inner.len(), first, rect.cols.start - panel.inner.start)
            }
            Operand::B => {
                let first = cols.position(rect.cols.start).expect("only needed columns arrive");
                (&mut panel.b, cols.len(), rect.rows.start - panel.inner.start, first)
            }
        };
        for (i, row) in (rect.rows.start..rect.rows.end).enumerate() {
            let to = ((first_row + i as u64) * stride + first_col) as usize;
            let from = rect.cols.start as usize;
            target[to..to + width].copy_from_slice(&matrix.row(row as usize)[from..from + width]);
        }
    }
}

fn bytes<T>(panel: &Panel<T>) -> u64 {
    ((panel.a.len() + panel.b.len()) * size_of::<T>()) as u64
}
