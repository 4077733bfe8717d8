//! The product on a layout that cuts the inner dimension: processors hold the faces of C that they compute,
//! and add the partial sums that they receive.

use super::panels::copy;
use super::{Tiles, tile_of, tiles_by_rank};
use crate::geometry::{Rank, Rect, Span, SpanSet};
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::{BlockViews, Element, LocalBlocks, Scaling};
use crate::run::{BufferPool, parallel};
use crate::schedule::{
    Application, DataPath, Executable, MatmulSchedule, MatmulStep, Operand, OperandPiece, Update,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// C = A B over a semiring, by a schedule with boxes: this process's blocks of the operands and of C.
#[derive(Debug)]
pub(super) struct BoxProduct<'a, T> {
    kernel: Kernel<T>,
    schedule: &'a MatmulSchedule,
    sides: [BlockViews<'a, T>; 2],
    path: DataPath,
    /// The tiles of C that a processor owns, by rank, until it takes them.
    tiles: Vec<Mutex<Tiles<'a, T>>>,
}

impl<'a, T: Element> BoxProduct<'a, T> {
    /// As [`Product::new`](super::Product::new).
    pub(crate) fn new(
        kernel: Kernel<T>,
        schedule: &'a MatmulSchedule,
        sides: [BlockViews<'a, T>; 2],
        c: &'a mut LocalBlocks<T>,
        (here, path): (Range<usize>, DataPath),
    ) -> Self {
        let owned = |rank: usize| {
            let is_own = |tile: &&Rect| schedule.rects(Rank(rank)).iter().any(|own| contains(*own, **tile));
            schedule
                .tiles(Rank(rank))
                .iter()
                .filter(is_own)
                .map(move |tile| (*tile, rank))
                .collect::<Vec<_>>()
        };
        let tiles = tiles_by_rank(schedule.processors(), here.flat_map(owned).collect(), c);
        Self { kernel, schedule, sides, path, tiles }
    }

    /// A view of a piece of A or B in place.
    fn view(&self, piece: &OperandPiece) -> View<'a, T> {
        let blocks = &self.sides[usize::from(piece.operand == Operand::B)];
        let (held, elements) =
            blocks.iter().find(|(held, _)| contains(*held, piece.rect)).expect("a piece is read where it is");
        tile_of(*held, elements, piece.rect)
    }
}

fn contains(outer: Rect, inner: Rect) -> bool {
    outer.intersect(inner) == inner
}

/// Data of one processor.
#[derive(Debug)]
pub(super) struct BoxData<'a, T> {
    rank: Rank,
    /// Tiles of C that it owns.
    owned: Tiles<'a, T>,
    /// Tiles of C of which it computes partial sums for others.
    partial: Vec<(Rect, Vec<T>)>,
    /// Operands by the first inner index.
    panels: BTreeMap<u64, Panel<'a, T>>,
    spare: BufferPool<T>,
    own_bytes: u64,
    bytes: u64,
    peak: u64,
}

/// The operands of the inner indices of a turn: A's needed rows x inner, and inner x B's needed columns.
#[derive(Debug)]
struct Panel<'a, T> {
    inner: Span,
    rows: &'a SpanSet,
    cols: &'a SpanSet,
    a: Vec<T>,
    b: Vec<T>,
}

impl<T: Element> Panel<'_, T> {
    fn bytes(&self) -> u64 {
        ((self.a.len() + self.b.len()) * size_of::<T>()) as u64
    }

    /// Offset of a piece within the panel, and the distance between its rows.
    fn place(&self, piece: &OperandPiece) -> (usize, usize) {
        let rect = piece.rect;
        let (row, col, stride) = if piece.operand == Operand::B {
            let first = self.cols.position(rect.cols.start).expect("only needed columns arrive");
            (rect.rows.start - self.inner.start, first, self.cols.len())
        } else {
            let first = self.rows.position(rect.rows.start).expect("only needed rows arrive");
            (first, rect.cols.start - self.inner.start, self.inner.len())
        };
        ((row * stride + col) as usize, stride as usize)
    }

    fn view(&self, piece: &OperandPiece) -> View<'_, T> {
        let (first, stride) = self.place(piece);
        let data = if piece.operand == Operand::B { &self.b[first..] } else { &self.a[first..] };
        View::new(data, piece.rect.rows.len() as usize, piece.rect.cols.len() as usize, stride)
    }

    fn fill(&mut self, piece: &OperandPiece, source: View<T>) {
        let (first, stride) = self.place(piece);
        let data = if piece.operand == Operand::B { &mut self.b[first..] } else { &mut self.a[first..] };
        copy(source, ViewMut::new(data, source.rows(), source.cols(), stride));
    }
}

impl<'a, T: Element> BoxData<'a, T> {
    /// The panel with this inner index. A new one is filled with the processor's own parts.
    fn panel(&mut self, product: &BoxProduct<'a, T>, index: u64) -> &mut Panel<'a, T> {
        let (schedule, rank) = (product.schedule, self.rank);
        let inner = schedule.turn_of(rank, index).expect("a processor gets what its boxes need");
        let Self { panels, spare, bytes, peak, .. } = self;
        panels.entry(inner.start).or_insert_with(|| {
            let (rows, cols) = schedule.lines_at(rank, index).expect("the index is in a box");
            let (a, b) = (spare.take(rows.len() * inner.len()), spare.take(inner.len() * cols.len()));
            let mut panel = Panel { inner, rows, cols, a, b };
            *bytes += panel.bytes();
            *peak = (*peak).max(*bytes);
            let (own_a, own_b) = schedule.own(rank);
            let own_a = own_a.iter().flat_map(|part| {
                let within = part.cols.intersect(inner);
                rows.intersect(part.rows).map(move |rows| (Operand::A, Rect::new(rows, within)))
            });
            let own_b = own_b.iter().flat_map(|part| {
                let within = part.rows.intersect(inner);
                cols.intersect(part.cols).map(move |cols| (Operand::B, Rect::new(within, cols)))
            });
            for (operand, rect) in own_a.chain(own_b).filter(|(_, rect)| !rect.is_empty()) {
                let piece = OperandPiece { operand, rect };
                panel.fill(&piece, product.view(&piece));
            }
            panel
        })
    }

    /// The parts of a rectangle of C in the processor's tiles.
    fn parts(&mut self, rect: Rect) -> impl Iterator<Item = (Rect, ViewMut<'_, T>)> {
        let meets = move |whole: &Rect| !whole.intersect(rect).is_empty();
        let place = move |whole: Rect| {
            let Rect { rows, cols } = whole.intersect(rect).relative_to(whole);
            [rows.start, cols.start, rows.len(), cols.len()].map(|at| at as usize)
        };
        let owned = self.owned.iter_mut().filter(move |(whole, _)| meets(whole)).map(move |(whole, tile)| {
            let [i, j, high, wide] = place(*whole);
            (whole.intersect(rect), tile.tile(i, j, high, wide))
        });
        let partial = self.partial.iter_mut().filter(move |(whole, _)| meets(whole));
        owned.chain(partial.map(move |(whole, elements)| {
            let [i, j, high, wide] = place(*whole);
            let columns = whole.cols.len() as usize;
            (whole.intersect(rect), ViewMut::new(&mut elements[i * columns + j..], high, wide, columns))
        }))
    }

    /// A rectangle of C within one tile.
    fn tile(&mut self, rect: Rect) -> ViewMut<'_, T> {
        let (part, tile) = self.parts(rect).next().expect("an update is in the processor's tiles");
        assert!(part == rect, "an update is in one of the processor's tiles");
        tile
    }
}

impl<T: Element> Application for BoxProduct<'_, T> {
    type Piece = OperandPiece;
    type Work = Update;

    fn processors(&self) -> usize {
        self.schedule.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = MatmulStep> + '_> {
        self.schedule.steps(rank)
    }

    fn senders(&self, tag: u64) -> Option<Vec<Rank>> {
        self.schedule.senders(tag)
    }

    fn overlaps(&self) -> bool {
        self.schedule.overlaps()
    }

    fn share(&self, rank: Rank) -> f64 {
        self.schedule.share(rank)
    }

    fn work(&self, rank: Rank) -> f64 {
        self.schedule.work(rank)
    }
}

impl<'p, T: Element> Executable for BoxProduct<'p, T> {
    type Element = T;
    type Local<'l>
        = BoxData<'p, T>
    where
        Self: 'l;

    fn hold(&self, rank: Rank) -> BoxData<'p, T> {
        let zero = self.kernel.zero();
        let mut owned =
            std::mem::take(&mut *self.tiles[rank.0].lock().unwrap_or_else(PoisonError::into_inner));
        // Written here, so that the pages exist before the clock starts, near the thread that uses them.
        owned.iter_mut().for_each(|(_, tile)| (0..tile.rows()).for_each(|i| tile.row(i).fill(zero)));
        let tiles = self.schedule.tiles(rank);
        let others = tiles.iter().filter(|tile| owned.iter().all(|(own, _)| own != *tile));
        let partial = others.map(|tile| (*tile, vec![zero; tile.area() as usize])).collect();
        let (own_a, own_b) = self.schedule.own(rank);
        let elements = own_a.iter().chain(own_b).map(|part| part.rect().area()).sum::<u64>()
            + tiles.iter().map(|tile| tile.area()).sum::<u64>();
        BoxData {
            rank,
            owned,
            partial,
            panels: BTreeMap::new(),
            spare: BufferPool::default(),
            own_bytes: elements * size_of::<T>() as u64,
            bytes: 0,
            peak: 0,
        }
    }

    /// A processor sends its own parts of A and B, and its partial sums.
    fn pack(&self, data: &mut BoxData<'p, T>, piece: &OperandPiece, out: &mut [T]) {
        let (rows, cols) = (piece.rect.rows.len() as usize, piece.rect.cols.len() as usize);
        let mut out = ViewMut::dense(out, rows, cols);
        if piece.operand != Operand::C {
            return copy(self.view(piece), out);
        }
        for (part, mut tile) in data.parts(piece.rect) {
            let at = part.relative_to(piece.rect);
            let mut out = out.tile(at.rows.start as usize, at.cols.start as usize, tile.rows(), tile.cols());
            (0..tile.rows()).for_each(|i| out.row(i).copy_from_slice(tile.row(i)));
        }
    }

    /// Partial sums are added: the processor's own first, since its inner indices are lower.
    fn unpack(&self, data: &mut BoxData<'p, T>, piece: &OperandPiece, elements: &[T]) {
        let (rows, cols) = (piece.rect.rows.len() as usize, piece.rect.cols.len() as usize);
        let (received, one) = (View::dense(elements, rows, cols), self.kernel.one());
        if piece.operand != Operand::C {
            return data.panel(self, piece.inner().start).fill(piece, received);
        }
        for (part, mut tile) in data.parts(piece.rect) {
            let at = part.relative_to(piece.rect);
            let received =
                received.tile(at.rows.start as usize, at.cols.start as usize, tile.rows(), tile.cols());
            for i in 0..tile.rows() {
                self.kernel.finish(Scaling::none(one), tile.row(i), Some(received.row(i)));
            }
        }
    }

    fn compute(&self, data: &mut BoxData<'p, T>, update: &Update, threads: usize) -> f64 {
        let Update { rect, inner } = *update;
        let a = OperandPiece { operand: Operand::A, rect: Rect::new(rect.rows, inner) };
        let b = OperandPiece { operand: Operand::B, rect: Rect::new(inner, rect.cols) };
        if self.path == DataPath::InPlace {
            return self.update_in_place(data, (&a, &b), rect, threads);
        }
        data.panel(self, inner.start);
        // The panel and the tile are borrowed at once: the panel leaves the map meanwhile.
        let key = self.schedule.turn_of(data.rank, inner.start).map_or(0, |turn| turn.start);
        let panel = data.panels.remove(&key).expect("the panel was made");
        let kernel = self.kernel.on(data.rank);
        let seconds = parallel::update(kernel, threads, panel.view(&a), panel.view(&b), data.tile(rect));
        data.panels.insert(key, panel);
        seconds
    }

    fn free(&self, data: &mut BoxData<'p, T>, piece: &OperandPiece) {
        if let Some(panel) = data.panels.remove(&piece.inner().start) {
            data.bytes -= panel.bytes();
            data.spare.extend([panel.a, panel.b]);
        }
    }

    fn peak_bytes(&self, data: &BoxData<'p, T>) -> u64 {
        data.own_bytes + data.peak
    }

    fn shares_memory(&self) -> bool {
        self.path != DataPath::Packed
    }

    /// Partial sums are in the memory of one processor only.
    fn is_shared(&self, piece: &OperandPiece) -> bool {
        self.shares_memory() && piece.operand != Operand::C
    }

    fn take_shared(&self, data: &mut BoxData<'p, T>, piece: &OperandPiece) {
        if self.path == DataPath::Copied {
            data.panel(self, piece.inner().start).fill(piece, self.view(piece));
        }
    }
}

impl<T: Element> BoxProduct<'_, T> {
    fn update_in_place(
        &self,
        data: &mut BoxData<'_, T>,
        (a, b): (&OperandPiece, &OperandPiece),
        rect: Rect,
        threads: usize,
    ) -> f64 {
        // A process alone has each operand in one block.
        let kernel = self.kernel.on(data.rank);
        parallel::update(kernel, threads, self.view(a), self.view(b), data.tile(rect))
    }
}

#[cfg(test)]
mod tests;
