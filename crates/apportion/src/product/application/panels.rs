//! The operands that one processor needs, by pivot block: its own parts and received pieces.

mod panel;

use super::Product;
use crate::geometry::{Rank, Rect, Span};
use crate::kernels::{View, ViewMut, prefetch};
use crate::matrix::Element;
use crate::run::BufferPool;
use crate::schedule::{DataPath, MatmulSchedule, Operand, OperandPiece, Parcel, Update};
use panel::Panel;
use std::collections::BTreeMap;

/// The panels of one processor.
#[derive(Debug)]
pub(super) struct Panels<'a, T> {
    schedule: &'a MatmulSchedule,
    rank: Rank,
    /// By the first inner index and the first column.
    panels: BTreeMap<(u64, u64), Panel<T>>,
    spare: BufferPool<T>,
    bytes: u64,
    peak: u64,
}

impl<'a, T: Element> Panels<'a, T> {
    /// Creates an empty set of panels, with memory for the first copies.
    pub(crate) fn new(schedule: &'a MatmulSchedule, rank: Rank, path: DataPath) -> Self {
        let mut spare = BufferPool::default();
        if path == DataPath::Packed {
            spare.extend(first_copies(schedule, rank));
        }
        Self { schedule, rank, panels: BTreeMap::new(), spare, bytes: 0, peak: 0 }
    }

    /// Peak number of bytes of panels.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// Copies a piece that has arrived to where updates expect it; `view` returns parts of the piece.
    pub(crate) fn take<'v>(
        &mut self,
        product: &Product<'_, T>,
        piece: &OperandPiece,
        view: impl Fn(&OperandPiece) -> View<'v, T>,
    ) where
        T: 'v,
    {
        for (start, part) in self.by_panel(piece) {
            let key = self.panel(start, column_of(piece));
            let panel = self.panels.get_mut(&key).expect("the panel was made before");
            panel.fill(product, (&part, view(&part)), &mut self.spare);
        }
    }

    /// The same for a piece in memory that may be kept: what is all of an operand of a pivot block stays
    /// there.
    pub(crate) fn keep(&mut self, product: &Product<'_, T>, piece: &OperandPiece, parcel: &Parcel<T>) {
        for (start, part) in self.by_panel(piece) {
            let key = self.panel(start, column_of(piece));
            let panel = self.panels.get_mut(&key).expect("the panel was made before");
            if !panel.keep(&part, piece.rect, parcel) {
                let view = super::tile_of(piece.rect, parcel.elements(), part.rect);
                panel.fill(product, (&part, view), &mut self.spare);
            }
        }
    }

    /// Copies a piece, the processor's own or a received one, row by row to `out`.
    pub(crate) fn give(&mut self, product: &Product<'_, T>, piece: &OperandPiece, out: &mut [T]) {
        let (rows, cols) = (piece.rect.rows.len() as usize, piece.rect.cols.len() as usize);
        let mut out = ViewMut::dense(out, rows, cols);
        if let Some(own) = product.own_view(piece) {
            return copy(own, out);
        }
        for (start, part) in self.by_panel(piece) {
            let key = self.panel(start, column_of(piece));
            let panel = self.panels.get_mut(&key).expect("the panel was made before");
            panel.complete(product, part.operand, &mut self.spare);
            let place = part.rect.relative_to(piece.rect);
            let [i, j] = [place.rows.start as usize, place.cols.start as usize];
            let source = panel.view(product, &part);
            copy(source, out.tile(i, j, source.rows(), source.cols()));
        }
    }

    /// Frees the panels of these inner indices and columns.
    pub(crate) fn free(&mut self, Rect { rows: inner, cols }: Rect) {
        let held = self.panels.range((inner.start, 0)..(inner.end, 0)).map(|(key, _)| *key);
        let keys: Vec<_> = held.filter(|key| cols.start <= key.1 && key.1 < cols.end).collect();
        for key in keys {
            if let Some(panel) = self.panels.remove(&key) {
                self.bytes -= panel.bytes();
                self.spare.extend(panel.into_copies());
            }
        }
    }

    /// Prepares the operands of an update: copies own parts in at first use.
    pub(crate) fn gather(&mut self, product: &Product<'_, T>, update: &Update) {
        let key = self.panel(update.inner.start, update.rect.cols.start);
        let panel = self.panels.get_mut(&key).expect("the panel was made before");
        for operand in [Operand::A, Operand::B] {
            panel.complete(product, operand, &mut self.spare);
        }
    }

    /// The operands of an update; [`Panels::gather`] must have been called for it.
    pub(crate) fn operands<'s>(
        &'s self,
        product: &'s Product<'_, T>,
        update: &Update,
    ) -> (View<'s, T>, View<'s, T>) {
        let panel = &self.panels[&self.key(update.inner.start, update.rect.cols.start)];
        assert!(panel.inner().contains(update.inner), "an update is within a pivot block");
        let a = OperandPiece { operand: Operand::A, rect: Rect::new(update.rect.rows, update.inner) };
        let b = OperandPiece { operand: Operand::B, rect: Rect::new(update.inner, update.rect.cols) };
        let a = if self.schedule.a_stays() { product.view(&a) } else { panel.view(product, &a) };
        (a, panel.view(product, &b))
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

    /// The key of the panel of an inner index and a column, which is made if there is none.
    fn panel(&mut self, inner: u64, column: u64) -> (u64, u64) {
        let key = self.key(inner, column);
        let (schedule, rank) = (self.schedule, self.rank);
        self.panels.entry(key).or_insert_with(|| {
            let end = key.0.saturating_add(schedule.order().block).min(schedule.inner().end);
            let panel = Panel::new(schedule, rank, Span::new(key.0, end), schedule.group(column));
            self.bytes += panel.bytes();
            self.peak = self.peak.max(self.bytes);
            panel
        });
        key
    }
}

/// Pivot blocks among which the first that is copied is looked for.
const FIRST_BLOCKS: usize = 64;

/// Memory for the operands of the first pivot block of which a rank has a part and receives another: those
/// must be copied together. Its pages are touched here, before the clock starts.
fn first_copies<T: Element>(schedule: &MatmulSchedule, rank: Rank) -> Vec<Vec<T>> {
    let mut copies = Vec::new();
    for operand in [Operand::A, Operand::B] {
        let lengths = schedule.pivots().take(FIRST_BLOCKS).filter_map(|inner| {
            let panel: Panel<T> = Panel::new(schedule, rank, inner, schedule.group(0));
            panel.is_mixed(schedule, operand).then(|| panel.elements(operand) as usize)
        });
        if let Some(length) = lengths.max() {
            let mut copy = vec![T::ZERO; length];
            // Zeros that were never read may still be without memory.
            std::hint::black_box(&mut copy).fill(T::ZERO);
            copies.push(copy);
        }
    }
    copies
}

/// A column of the group that a piece belongs to: pieces of A travel only if all columns are one group.
fn column_of(piece: &OperandPiece) -> u64 {
    if piece.operand == Operand::B { piece.rect.cols.start } else { 0 }
}

/// Rows that are fetched ahead of the copy, with both of their ends.
const AHEAD: usize = 2;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Copies one tile to another of the same size. Rows of a few cache lines and more are fetched ahead:
/// processors foresee the next line, but not the next row of a strided tile.
pub(super) fn copy<T: Copy>(source: View<T>, mut target: ViewMut<T>) {
    let bytes = source.cols() * size_of::<T>();
    let lines = if bytes >= 4 * LINE && source.rows() > AHEAD { bytes.div_ceil(LINE) } else { 0 };
    for i in 0..source.rows() {
        if lines > 0 && i + AHEAD < source.rows() {
            let (from, to) = (source.row(i + AHEAD).as_ptr(), target.row(i + AHEAD).as_ptr());
            for line in 0..lines {
                prefetch(from.cast::<u8>().wrapping_add(line * LINE));
                prefetch(to.cast::<u8>().wrapping_add(line * LINE));
            }
        }
        target.row(i).copy_from_slice(source.row(i));
    }
}
