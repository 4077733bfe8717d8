//! The operands that one processor needs, by pivot block: its own parts and received pieces.

mod panel;

use super::{Product, place};
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
        for part in self.by_panel(piece) {
            let (panel, spare) = self.panel(&part);
            panel.fill(product, &part, view(&part), spare);
        }
    }

    /// The same for a piece in memory that may be kept: what is all of an operand of a panel stays there.
    pub(crate) fn keep(&mut self, product: &Product<'_, T>, piece: &OperandPiece, parcel: &Parcel<T>) {
        for part in self.by_panel(piece) {
            let (panel, spare) = self.panel(&part);
            if !panel.keep(&part, piece.rect, parcel) {
                let view = super::tile_of(piece.rect, parcel.elements(), part.rect);
                panel.fill(product, &part, view, spare);
            }
        }
    }

    /// Copies a piece, the processor's own or a received one, row by row to `out`.
    pub(crate) fn give(&mut self, product: &Product<'_, T>, piece: &OperandPiece, out: &mut [T]) {
        let [.., rows, cols] = place(piece.rect);
        let mut out = ViewMut::dense(out, rows, cols);
        if let Some(own) = product.own_view(piece) {
            return copy(own, out);
        }
        for part in self.by_panel(piece) {
            let (panel, spare) = self.panel(&part);
            panel.complete(product, part.operand, spare);
            let [i, j, rows, cols] = place(part.rect.relative_to(piece.rect));
            copy(panel.view(product, &part), out.tile(i, j, rows, cols));
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

    /// The operands of an update. Own parts are copied in at first use.
    pub(crate) fn operands<'s>(
        &'s mut self,
        product: &'s Product<'_, T>,
        update: &Update,
    ) -> [View<'s, T>; 2] {
        let a = OperandPiece::new(Operand::A, update.rect.rows, update.inner);
        let b = OperandPiece::new(Operand::B, update.rect.cols, update.inner);
        let a_stays = self.schedule.a_stays();
        let (panel, spare) = self.panel(&b);
        assert!(panel.inner().contains(update.inner), "an update is within a pivot block");
        for operand in [Operand::A, Operand::B] {
            panel.complete(product, operand, spare);
        }
        [if a_stays { product.view(&a) } else { panel.view(product, &a) }, panel.view(product, &b)]
    }

    /// The inner indices of the panel that holds this one.
    fn pivot(&self, inner: u64) -> Span {
        self.schedule.pivot_of(self.rank, inner).expect("a processor gets what it needs")
    }

    /// Cuts a piece at the borders of panels: in the bulk flow it spans all pivot blocks.
    fn by_panel(&self, piece: &OperandPiece) -> Vec<OperandPiece> {
        let (mut parts, mut rest) = (Vec::new(), piece.inner());
        while !rest.is_empty() {
            let part = self.pivot(rest.start).intersect(rest);
            parts.push(OperandPiece::new(piece.operand, piece.lines(), part));
            rest.start = part.end;
        }
        parts
    }

    /// The panel of a piece, which is made if there is none, and the memory for its copies. All of A is in one
    /// group of columns: its pieces travel only then.
    fn panel(&mut self, piece: &OperandPiece) -> (&mut Panel<T>, &mut BufferPool<T>) {
        let (schedule, rank, inner) = (self.schedule, self.rank, self.pivot(piece.inner().start));
        let group = schedule.group(if piece.operand == Operand::B { piece.rect.cols.start } else { 0 });
        let Self { panels, spare, bytes, peak, .. } = self;
        let panel = panels.entry((inner.start, group.start)).or_insert_with(|| {
            let panel = Panel::new(schedule, rank, inner, group);
            *bytes += panel.bytes();
            *peak = (*bytes).max(*peak);
            panel
        });
        (panel, spare)
    }
}

/// Pivot blocks among which the first that is copied is looked for.
const FIRST_BLOCKS: usize = 64;

/// Memory for the operands of the first panel of which a rank has a part and receives another: those must be
/// copied together. Its pages are touched here, before the clock starts.
fn first_copies<T: Element>(schedule: &MatmulSchedule, rank: Rank) -> Vec<Vec<T>> {
    let mut copies = Vec::new();
    for operand in [Operand::A, Operand::B] {
        let pivots = schedule.pivots().take(FIRST_BLOCKS);
        let lengths = pivots.filter_map(|pivot| schedule.pivot_of(rank, pivot.start)).filter_map(|inner| {
            let panel: Panel<T> = Panel::new(schedule, rank, inner, schedule.group(0));
            panel.is_mixed(schedule, operand).then(|| panel.elements(operand))
        });
        if let Some(length) = lengths.max() {
            let mut copy = vec![T::ZERO; length as usize];
            // Zeros that were never read may still be without memory.
            std::hint::black_box(&mut copy).fill(T::ZERO);
            copies.push(copy);
        }
    }
    copies
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
