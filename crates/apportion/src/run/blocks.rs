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

/// A processor's operands. Reads only its own parts of the factors; the rest has to arrive.
pub(super) struct Blocks<'a, T> {
    schedule: &'a Schedule,
    rank: Rank,
    a: &'a Matrix<T>,
    b: &'a Matrix<T>,
    panels: BTreeMap<u64, Panel<T>>,
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
        Self { schedule, rank, a, b, panels: BTreeMap::new(), held, peak: held }
    }

    /// Most bytes held at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// Copies pieces of this processor's own parts, in order, for a message.
    pub fn pack(&self, pieces: &[Piece]) -> Vec<T> {
        let mut data = Vec::with_capacity(pieces.iter().map(|p| p.rect.area() as usize).sum());
        for Piece { operand, rect } in pieces {
            let matrix = match operand {
                Operand::A => self.a,
                Operand::B => self.b,
            };
            for row in rect.rows.start..rect.rows.end {
                data.extend_from_slice(
                    &matrix.row(row as usize)[rect.cols.start as usize..rect.cols.end as usize],
                );
            }
        }
        data
    }

    /// Puts the pieces of a message that arrived where updates look for them.
    pub fn unpack(&mut self, pieces: &[Piece], data: &[T]) {
        let mut at = 0;
        for piece in pieces {
            let size = piece.rect.area() as usize;
            self.place(*piece, &data[at..at + size]);
            at += size;
        }
        assert_eq!(at, data.len(), "a message holds what its pieces say");
    }

    /// Forgets the panels of these inner indices.
    pub fn release(&mut self, inner: Span) {
        let starts: Vec<u64> = self.panels.range(inner.start..inner.end).map(|(s, _)| *s).collect();
        for start in starts {
            if let Some(panel) = self.panels.remove(&start) {
                self.held -= bytes(&panel);
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

    /// One piece may span several panels (all of them in the bulk flow).
    fn place(&mut self, piece: Piece, data: &[T]) {
        let (rows, cols) = (piece.rect.rows, piece.rect.cols);
        let inner = match piece.operand {
            Operand::A => cols,
            Operand::B => rows,
        };
        let block = self.schedule.order().block;
        let mut start = inner.start - inner.start % block;
        while start < inner.end {
            let panel = self.panel(start);
            let part = panel.inner.intersect(inner);
            let rect = match piece.operand {
                Operand::A => Rect::new(rows, part),
                Operand::B => Rect::new(part, cols),
            };
            let width = cols.len() as usize;
            self.copy(start, piece.operand, rect, |row, column| {
                let from = (row - rows.start) as usize * width + (column - cols.start) as usize;
                &data[from..]
            });
            start += block;
        }
    }

    /// The panel that starts at `start`, made from the processor's own parts if it is new.
    fn panel(&mut self, start: u64) -> &Panel<T> {
        if !self.panels.contains_key(&start) {
            let block = self.schedule.order().block;
            let inner = Span::new(start, (start + block).min(self.schedule.layout().shape().k));
            let (rows, cols) = (self.schedule.rows(self.rank).len(), self.schedule.cols(self.rank).len());
            let panel = Panel {
                inner,
                a: vec![T::ZERO; (rows * inner.len()) as usize],
                b: vec![T::ZERO; (inner.len() * cols) as usize],
            };
            self.held += bytes(&panel);
            self.peak = self.peak.max(self.held);
            self.panels.insert(start, panel);
            let (own_a, own_b) = self.schedule.own(self.rank);
            let (a, b) = (self.a, self.b);
            for part in own_a {
                let rect = Rect::new(part.rows, part.cols.intersect(inner));
                self.copy(start, Operand::A, rect, |row, col| &a.row(row as usize)[col as usize..]);
            }
            for part in own_b {
                let rect = Rect::new(part.rows.intersect(inner), part.cols);
                self.copy(start, Operand::B, rect, |row, col| &b.row(row as usize)[col as usize..]);
            }
        }
        &self.panels[&start]
    }

    /// Copies a rectangle into a panel, row by row; `source(row, first column)` gives where a row is read.
    fn copy<'d>(&mut self, start: u64, operand: Operand, rect: Rect, source: impl Fn(u64, u64) -> &'d [T])
    where
        T: 'd,
    {
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
            target[to..to + width].copy_from_slice(&source(row, rect.cols.start)[..width]);
        }
    }
}

fn bytes<T>(panel: &Panel<T>) -> u64 {
    ((panel.a.len() + panel.b.len()) * size_of::<T>()) as u64
}
