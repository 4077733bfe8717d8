//! The operands that one processor holds: its own parts of A and B, and what has arrived, by pivot block.

use crate::geometry::{Rank, Rect, Span, SpanSet};
use crate::matrix::{Element, Matrix};
use crate::schedule::{Operand, Piece, Schedule, Update};
use std::collections::BTreeMap;

/// Where elements of the operands are copied from.
pub(super) trait Source<T> {
    /// Copies a piece, row by row, to the front of `into`, where rows are `stride` elements apart.
    fn copy(&self, piece: Piece, into: &mut [T], stride: usize);

    /// A piece where it lies, from its first element on, and how far apart its rows are; `None` if it can only be copied.
    fn view(&self, _: Piece) -> Option<(&[T], usize)> {
        None
    }
}

/// Both factors, whole, in this process's memory.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a, T> {
    pub a: &'a Matrix<T>,
    pub b: &'a Matrix<T>,
}

impl<T: Element> Source<T> for Factors<'_, T> {
    fn copy(&self, Piece { operand, rect }: Piece, into: &mut [T], stride: usize) {
        let matrix = match operand {
            Operand::A => self.a,
            Operand::B => self.b,
        };
        let cols = rect.cols.start as usize..rect.cols.end as usize;
        for (i, row) in (rect.rows.start..rect.rows.end).enumerate() {
            into[i * stride..][..cols.len()].copy_from_slice(&matrix.row(row as usize)[cols.clone()]);
        }
    }

    fn view(&self, Piece { operand, rect }: Piece) -> Option<(&[T], usize)> {
        let matrix = match operand {
            Operand::A => self.a,
            Operand::B => self.b,
        };
        let first = rect.rows.start as usize * matrix.cols() + rect.cols.start as usize;
        Some((&matrix.as_slice()[first..], matrix.cols()))
    }
}

/// A rectangle of an operand alone, row by row.
pub(super) struct Parcel<'a, T> {
    pub rect: Rect,
    pub elements: &'a [T],
}

impl<T: Element> Source<T> for Parcel<'_, T> {
    fn copy(&self, Piece { rect, .. }: Piece, into: &mut [T], stride: usize) {
        let down = (rect.rows.start - self.rect.rows.start) as usize;
        let right = (rect.cols.start - self.rect.cols.start) as usize;
        let (width, cols) = (self.rect.cols.len() as usize, rect.cols.len() as usize);
        for i in 0..rect.rows.len() as usize {
            let row = &self.elements[(down + i) * width + right..][..cols];
            into[i * stride..][..cols].copy_from_slice(row);
        }
    }
}

/// One pivot block's operands for one group of columns: A's needed rows x inner (nothing where A is used in place), and
/// inner x B's needed columns of the group, both row by row.
struct Panel<T> {
    inner: Span,
    cols: SpanSet,
    a: Vec<T>,
    b: Vec<T>,
}

/// A processor's operands: its own parts of the factors, which `S` has, and copies of others' parts once their
/// message is there.
pub(super) struct Blocks<'a, T, S> {
    schedule: &'a MatmulSchedule,
    rank: Rank,
    own: S,
    /// By the first inner index and the first column.
    panels: BTreeMap<(u64, u64), Panel<T>>,
    spare: Spare<T>,
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

impl<'a, T: Element, S: Source<T>> Blocks<'a, T, S> {
    /// No panel yet; the processor's own parts of A and B and its part of C count as held.
    pub fn new(schedule: &'a MatmulSchedule, rank: Rank, own: S) -> Self {
        let (own_a, own_b) = schedule.own(rank);
        let elements: u64 = own_a.iter().chain(own_b).map(|p| p.rect().area()).sum::<u64>()
            + schedule.rects(rank).iter().map(|r| r.area()).sum::<u64>();
        let held = elements * size_of::<T>() as u64;
        Self { schedule, rank, own, panels: BTreeMap::new(), spare: Spare::default(), held, peak: held }
    }

    /// Most bytes held at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// Takes over a piece that has arrived, from `source`, to where updates look for it.
    pub fn take(&mut self, piece: Piece, source: &impl Source<T>) {
        // A column's group is that of the piece: pieces of A travel only where all columns are one group.
        let column = if piece.operand == Operand::B { piece.rect.cols.start } else { 0 };
        for (start, part) in self.by_panel(piece) {
            let key = self.panel(start, column);
            let (schedule, rank) = (self.schedule, self.rank);
            let panel = self.panels.get_mut(&key).expect("the panel was made before");
            panel.fill(schedule, rank, part, source);
        }
    }

    /// Copies a piece, the processor's own or one that has arrived, row by row to `out`.
    pub fn give(&mut self, piece: Piece, out: &mut [T]) {
        let width = piece.rect.cols.len() as usize;
        let column = if piece.operand == Operand::B { piece.rect.cols.start } else { 0 };
        for (start, part) in self.by_panel(piece) {
            let key = self.panel(start, column);
            let panel = &self.panels[&key];
            let (first, stride) = panel.place(self.schedule, self.rank, part);
            let source = match piece.operand {
                Operand::A => &panel.a[first..],
                Operand::B => &panel.b[first..],
            };
            let down = (part.rect.rows.start - piece.rect.rows.start) as usize;
            let right = (part.rect.cols.start - piece.rect.cols.start) as usize;
            let (rows, cols) = (part.rect.rows.len() as usize, part.rect.cols.len() as usize);
            for i in 0..rows {
                out[(down + i) * width + right..][..cols].copy_from_slice(&source[i * stride..][..cols]);
            }
        }
    }

    /// Forgets the panels of these inner indices and columns.
    pub fn release(&mut self, Rect { rows: inner, cols }: Rect) {
        let held = self.panels.range((inner.start, 0)..(inner.end, 0)).map(|(key, _)| *key);
        let keys: Vec<_> = held.filter(|key| cols.start <= key.1 && key.1 < cols.end).collect();
        for key in keys {
            if let Some(panel) = self.panels.remove(&key) {
                self.held -= panel.bytes();
                self.spare.0.extend([panel.a, panel.b]);
            }
        }
    }

    /// Makes sure that the operands of an update are together: copies own parts in at first use.
    pub fn gather(&mut self, update: &Update) {
        self.panel(update.inner.start, update.rect.cols.start);
    }

    /// A's part of an update where it lies, if A stays there.
    fn in_place(&self, rows: Span, inner: Span) -> Option<(&[T], usize)> {
        let piece = Piece { operand: Operand::A, rect: Rect::new(rows, inner) };
        if self.schedule.a_stays() { self.own.view(piece) } else { None }
    }

    /// Where a panel is kept.
    fn key(&self, inner: u64, column: u64) -> (u64, u64) {
        (inner - inner % self.schedule.order().block, self.schedule.group(column).start)
    }

    /// The operands of an update; [`Blocks::gather`] must have been called for it.
    pub fn operands(&self, update: &Update) -> Operands<'_, T> {
        let panel = &self.panels[&self.key(update.inner.start, update.rect.cols.start)];
        assert!(panel.inner.contains(update.inner), "an update lies within a pivot block");
        let rows = self.schedule.rows(self.rank);
        let first =
            |position: Option<u64>| position.expect("an update lies in the processor's part") as usize;
        let skipped = (update.inner.start - panel.inner.start) as usize;
        let (a, a_stride) = self.in_place(update.rect.rows, update.inner).unwrap_or_else(|| {
            let (row, stride) = (first(rows.position(update.rect.rows.start)), panel.inner.len() as usize);
            (&panel.a[row * stride + skipped..], stride)
        });
        let (col, b_stride) = (first(panel.cols.position(update.rect.cols.start)), panel.cols.len() as usize);
        Operands { a, a_stride, b: &panel.b[skipped * b_stride + col..], b_stride }
    }

    /// A piece cut at the borders of pivot blocks (it spans all of them in the bulk flow), with each block's start.
    fn by_panel(&self, Piece { operand, rect }: Piece) -> Vec<(u64, Piece)> {
        let inner = match operand {
            Operand::A => rect.cols,
            Operand::B => rect.rows,
        };
        let block = self.schedule.order().block;
        let first = inner.start - inner.start % block;
        let cut = |start: u64| {
            let part = Span::new(start, start + block).intersect(inner);
            let rect = match operand {
                Operand::A => Rect::new(rect.rows, part),
                Operand::B => Rect::new(part, rect.cols),
            };
            (start, Piece { operand, rect })
        };
        (first..inner.end).step_by(block as usize).map(cut).collect()
    }

    /// The panel of an inner index and a column, made from the processor's own parts if it is new; where it is kept.
    fn panel(&mut self, inner: u64, column: u64) -> (u64, u64) {
        let key = self.key(inner, column);
        if !self.panels.contains_key(&key) {
            let (schedule, rank) = (self.schedule, self.rank);
            let end = (key.0 + schedule.order().block).min(schedule.inner().end);
            let inner = Span::new(key.0, end);
            let group = schedule.group(column);
            let cols = SpanSet::union(schedule.cols(rank).intersect(group));
            let copied = self.in_place(Span::default(), Span::default()).is_none();
            let rows = if copied { schedule.rows(rank).len() } else { 0 };
            let (a, b) = (self.spare.take(rows * inner.len()), self.spare.take(inner.len() * cols.len()));
            let mut panel = Panel { inner, cols, a, b };
            self.held += panel.bytes();
            self.peak = self.peak.max(self.held);
            let (own_a, own_b) = schedule.own(rank);
            for part in own_a.iter().filter(|_| copied) {
                let rect = Rect::new(part.rows, part.cols.intersect(inner));
                panel.fill(schedule, rank, Piece { operand: Operand::A, rect }, &self.own);
            }
            for part in own_b {
                let rect = Rect::new(part.rows.intersect(inner), part.cols.intersect(group));
                panel.fill(schedule, rank, Piece { operand: Operand::B, rect }, &self.own);
            }
            self.panels.insert(key, panel);
        }
        key
    }
}

/// Buffers that are no longer needed, for those that will be.
pub(super) struct Spare<T>(pub Vec<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: bytemuck::Pod> Spare<T> {
    /// The smallest that is long enough, or a new one: pages that are in use already cost nothing more. Where none is long
    /// enough the longest is made longer, so that what lies spare is never more than was in use.
    pub fn take(&mut self, length: u64) -> Vec<T> {
        let length = length as usize;
        let fit = (0..self.0.len()).filter(|&i| self.0[i].capacity() >= length);
        let longest = || (0..self.0.len()).max_by_key(|&i| self.0[i].capacity());
        let best = fit.min_by_key(|&i| self.0[i].capacity()).or_else(longest);
        let Some(best) = best else { return vec![T::zeroed(); length] };
        let mut buffer = self.0.swap_remove(best);
        buffer.resize(length, T::zeroed());
        buffer
    }
}

impl<T: Element> Panel<T> {
    fn bytes(&self) -> u64 {
        ((self.a.len() + self.b.len()) * size_of::<T>()) as u64
    }

    /// Where a piece within the panel begins, and how far apart its rows are.
    fn place(&self, schedule: &MatmulSchedule, rank: Rank, Piece { operand, rect }: Piece) -> (usize, usize) {
        // A piece lies in one span of the needed rows or columns: its lines are neighbours in the panel too.
        let (row, col, stride) = match operand {
            Operand::A => {
                let first = schedule.rows(rank).position(rect.rows.start).expect("only needed rows arrive");
                (first, rect.cols.start - self.inner.start, self.inner.len())
            }
            Operand::B => {
                let first = self.cols.position(rect.cols.start).expect("only needed columns arrive");
                (rect.rows.start - self.inner.start, first, self.cols.len())
            }
        };
        ((row * stride + col) as usize, stride as usize)
    }

    /// Copies a piece within the panel from a source.
    fn fill(&mut self, schedule: &MatmulSchedule, rank: Rank, piece: Piece, source: &impl Source<T>) {
        if piece.rect.is_empty() {
            return;
        }
        let (first, stride) = self.place(schedule, rank, piece);
        let target = match piece.operand {
            Operand::A => &mut self.a,
            Operand::B => &mut self.b,
        };
        source.copy(piece, &mut target[first..], stride);
    }
}
