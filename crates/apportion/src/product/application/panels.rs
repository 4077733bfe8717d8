//! Copies of the operands that one processor needs, by pivot block: its own parts and received pieces.

use super::Product;
use crate::geometry::{Rank, Rect, Span, SpanSet};
use crate::kernels::{View, ViewMut};
use crate::matrix::Element;
use crate::run::Spare;
use crate::schedule::{MatmulSchedule, Operand, OperandPiece, Update};
use std::collections::BTreeMap;

/// One pivot block's operands for one group of columns, both row-major: A's needed rows x inner (empty if A
/// is read in place), and inner x B's needed columns of the group.
#[derive(Debug)]
struct Panel<T> {
    inner: Span,
    cols: SpanSet,
    a: Vec<T>,
    b: Vec<T>,
}

/// The panels of one processor.
#[derive(Debug)]
pub(super) struct Panels<'a, T> {
    schedule: &'a MatmulSchedule,
    rank: Rank,
    /// By the first inner index and the first column.
    panels: BTreeMap<(u64, u64), Panel<T>>,
    spare: Spare<T>,
    bytes: u64,
    peak: u64,
}

impl<'a, T: Element> Panels<'a, T> {
    /// Creates an empty set of panels.
    pub fn new(schedule: &'a MatmulSchedule, rank: Rank) -> Self {
        Self { schedule, rank, panels: BTreeMap::new(), spare: Spare::default(), bytes: 0, peak: 0 }
    }

    /// Peak number of bytes of panels.
    pub fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// Stores a piece that has arrived where updates expect it; `view` returns parts of the piece.
    pub fn take<'v>(
        &mut self,
        product: &Product<'_, T>,
        piece: &OperandPiece,
        view: impl Fn(&OperandPiece) -> View<'v, T>,
    ) where
        T: 'v,
    {
        for (start, part) in self.by_panel(piece) {
            let key = self.panel(product, start, column_of(piece));
            let (schedule, rank) = (self.schedule, self.rank);
            let panel = self.panels.get_mut(&key).expect("the panel was made before");
            panel.fill(schedule, rank, &part, view(&part));
        }
    }

    /// Copies a piece, the processor's own or a received one, row by row to `out`.
    pub fn give(&mut self, product: &Product<'_, T>, piece: &OperandPiece, out: &mut [T]) {
        let (rows, cols) = (piece.rect.rows.len() as usize, piece.rect.cols.len() as usize);
        let mut out = ViewMut::dense(out, rows, cols);
        for (start, part) in self.by_panel(piece) {
            let key = self.panel(product, start, column_of(piece));
            let panel = &self.panels[&key];
            let place = part.rect.relative_to(piece.rect);
            let [i, j] = [place.rows.start as usize, place.cols.start as usize];
            let source = panel.view(self.schedule, self.rank, &part);
            copy(source, out.tile(i, j, source.rows(), source.cols()));
        }
    }

    /// Frees the panels of these inner indices and columns.
    pub fn free(&mut self, Rect { rows: inner, cols }: Rect) {
        let held = self.panels.range((inner.start, 0)..(inner.end, 0)).map(|(key, _)| *key);
        let keys: Vec<_> = held.filter(|key| cols.start <= key.1 && key.1 < cols.end).collect();
        for key in keys {
            if let Some(panel) = self.panels.remove(&key) {
                self.bytes -= panel.bytes();
                self.spare.0.extend([panel.a, panel.b]);
            }
        }
    }

    /// Prepares the operands of an update: copies own parts in at first use.
    pub fn gather(&mut self, product: &Product<'_, T>, update: &Update) {
        self.panel(product, update.inner.start, update.rect.cols.start);
    }

    /// The operands of an update; [`Panels::gather`] must have been called for it.
    pub fn operands<'s>(
        &'s self,
        product: &'s Product<'_, T>,
        update: &Update,
    ) -> (View<'s, T>, View<'s, T>) {
        let panel = &self.panels[&self.key(update.inner.start, update.rect.cols.start)];
        assert!(panel.inner.contains(update.inner), "an update is within a pivot block");
        let a = OperandPiece { operand: Operand::A, rect: Rect::new(update.rect.rows, update.inner) };
        let b = OperandPiece { operand: Operand::B, rect: Rect::new(update.inner, update.rect.cols) };
        let (schedule, rank) = (self.schedule, self.rank);
        let a = if schedule.a_stays() { product.view(&a) } else { panel.view(schedule, rank, &a) };
        (a, panel.view(schedule, rank, &b))
    }

    /// The key of a panel.
    fn key(&self, inner: u64, column: u64) -> (u64, u64) {
        (inner - inner % self.schedule.order().block, self.schedule.group(column).start)
    }

    /// Cuts a piece at the borders of pivot blocks (in the bulk flow it spans all of them). Each part comes
    /// with the start of its block.
    fn by_panel(&self, piece: &OperandPiece) -> Vec<(u64, OperandPiece)> {
        let OperandPiece { operand, rect } = *piece;
        let (inner, block) = (piece.inner(), self.schedule.order().block);
        let first = inner.start - inner.start % block;
        let cut = |start: u64| {
            let part = Span::new(start, start.saturating_add(block)).intersect(inner);
            let rect = match operand {
                Operand::B => Rect::new(part, rect.cols),
                _ => Rect::new(rect.rows, part),
            };
            (start, OperandPiece { operand, rect })
        };
        (first..inner.end).step_by(usize::try_from(block).unwrap_or(usize::MAX)).map(cut).collect()
    }

    /// The key of the panel of an inner index and a column. A new panel is created from the processor's own
    /// parts.
    fn panel(&mut self, product: &Product<'_, T>, inner: u64, column: u64) -> (u64, u64) {
        let key = self.key(inner, column);
        if self.panels.contains_key(&key) {
            return key;
        }
        let (schedule, rank) = (self.schedule, self.rank);
        let end = key.0.saturating_add(schedule.order().block).min(schedule.inner().end);
        let inner = Span::new(key.0, end);
        let group = schedule.group(column);
        let cols = SpanSet::union(schedule.cols(rank).intersect(group));
        let rows = if schedule.a_stays() { 0 } else { schedule.rows(rank).len() };
        let (a, b) = (self.spare.take(rows * inner.len()), self.spare.take(inner.len() * cols.len()));
        let mut panel = Panel { inner, cols, a, b };
        self.bytes += panel.bytes();
        self.peak = self.peak.max(self.bytes);
        let (own_a, own_b) = schedule.own(rank);
        let own_a = own_a.iter().filter(|_| !schedule.a_stays()).map(|part| {
            let rect = Rect::new(part.rows, part.cols.intersect(inner));
            OperandPiece { operand: Operand::A, rect }
        });
        let own_b = own_b.iter().map(|part| {
            let rect = Rect::new(part.rows.intersect(inner), part.cols.intersect(group));
            OperandPiece { operand: Operand::B, rect }
        });
        for piece in own_a.chain(own_b).filter(|piece| !piece.rect.is_empty()) {
            panel.fill(schedule, rank, &piece, product.view(&piece));
        }
        self.panels.insert(key, panel);
        key
    }
}

/// A column of the group that a piece belongs to: pieces of A travel only if all columns are one group.
fn column_of(piece: &OperandPiece) -> u64 {
    if piece.operand == Operand::B { piece.rect.cols.start } else { 0 }
}

impl<T: Element> Panel<T> {
    fn bytes(&self) -> u64 {
        ((self.a.len() + self.b.len()) * size_of::<T>()) as u64
    }

    /// Offset of a piece within the panel, and the distance between its rows.
    fn place(&self, schedule: &MatmulSchedule, rank: Rank, piece: &OperandPiece) -> (usize, usize) {
        // A piece is in one span of the needed rows or columns: its lines are adjacent in the panel too.
        let rect = piece.rect;
        let (row, col, stride) = if piece.operand == Operand::B {
            let first = self.cols.position(rect.cols.start).expect("only needed columns arrive");
            (rect.rows.start - self.inner.start, first, self.cols.len())
        } else {
            let first = schedule.rows(rank).position(rect.rows.start).expect("only needed rows arrive");
            (first, rect.cols.start - self.inner.start, self.inner.len())
        };
        ((row * stride + col) as usize, stride as usize)
    }

    /// A piece within the panel.
    fn view(&self, schedule: &MatmulSchedule, rank: Rank, piece: &OperandPiece) -> View<'_, T> {
        let (first, stride) = self.place(schedule, rank, piece);
        let data = if piece.operand == Operand::B { &self.b[first..] } else { &self.a[first..] };
        View::new(data, piece.rect.rows.len() as usize, piece.rect.cols.len() as usize, stride)
    }

    /// Copies a piece within the panel from its source.
    fn fill(&mut self, schedule: &MatmulSchedule, rank: Rank, piece: &OperandPiece, source: View<T>) {
        let (first, stride) = self.place(schedule, rank, piece);
        let data = if piece.operand == Operand::B { &mut self.b[first..] } else { &mut self.a[first..] };
        copy(source, ViewMut::new(data, source.rows(), source.cols(), stride));
    }
}

/// Copies one tile to another of the same size.
pub(super) fn copy<T: Copy>(source: View<T>, mut target: ViewMut<T>) {
    (0..source.rows()).for_each(|i| target.row(i).copy_from_slice(source.row(i)));
}
