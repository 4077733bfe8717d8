//! The matrix product as an [`Executable`]: the data of its processors, and how pieces of A and B are packed,
//! unpacked and computed with.

mod boxes;
mod panels;
mod tail;

use crate::error::Result;
use crate::geometry::{Rank, Rect, Span};
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::{BlockViews, Element, LocalBlocks};
use crate::run::{Session, parallel, run};
use crate::schedule::{
    Application, DataPath, Executable, MatmulSchedule, MatmulStep, Operand, OperandPiece, Parcel, Update,
    Work,
};
use crate::trace::Lane;
use boxes::BoxProduct;
use panels::Panels;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tail::Tail;
pub use tail::TailOutcome;

/// The rectangles of C that one processor writes, each a view into a block of this process.
type Tiles<'a, T> = Vec<(Rect, ViewMut<'a, T>)>;

/// C = A B over a semiring, by a schedule: this process's blocks of the operands and of C.
#[derive(Debug)]
pub(crate) struct Product<'a, T> {
    kernel: Kernel<T>,
    schedule: &'a MatmulSchedule,
    a: BlockViews<'a, T>,
    b: BlockViews<'a, T>,
    path: DataPath,
    /// True to start from the semiring's zero; false to add to the content of C.
    fresh: bool,
    /// By rank, until the processor takes them.
    tiles: Vec<Mutex<Tiles<'a, T>>>,
    tail: Option<Tail<'a, T>>,
}

impl<'a, T: Element> Product<'a, T> {
    /// Creates a product whose blocks of C are `c`. Every rectangle of every processor in `here` must be
    /// within one of them. A single process has A, B and C complete, in one block each; a rank has its own
    /// parts.
    ///
    /// # Panics
    /// If a rectangle is in no block.
    pub(crate) fn new(
        kernel: Kernel<T>,
        schedule: &'a MatmulSchedule,
        [a, b]: [BlockViews<'a, T>; 2],
        c: &'a mut LocalBlocks<T>,
        (here, path): (Range<usize>, DataPath),
    ) -> Self {
        let owned = here.flat_map(|rank| schedule.rects(Rank(rank)).iter().map(move |rect| (*rect, rank)));
        let tiles = tiles_by_rank(schedule.processors(), owned.collect(), c);
        Self { kernel, schedule, a, b, path, fresh: true, tiles, tail: None }
    }

    /// The same product, added to the content of C.
    pub(crate) fn adding(self) -> Self {
        Self { fresh: false, ..self }
    }

    /// The same product, whose processors leave the last `fraction` of their rectangles to a queue. An update
    /// takes up to `threads` threads.
    ///
    /// # Panics
    /// If operands are not read in place.
    pub(crate) fn with_tail(mut self, fraction: f64, threads: usize) -> Self {
        assert!(self.path == DataPath::InPlace, "only processors that share memory can share tiles");
        self.tail = Some(Tail::of(self.schedule, &mut self.tiles, fraction, threads));
        self
    }

    /// Who computed the tail, if there is one.
    pub(crate) fn tail_outcome(&self) -> Option<TailOutcome> {
        self.tail.as_ref().map(|tail| tail.outcome(self.schedule.processors()))
    }

    /// Carries out an update in place by the kernel of a processor, within a tile of C.
    fn update(
        &self,
        kernel: Kernel<T>,
        update: &Update,
        (whole, tile): (Rect, &mut ViewMut<'_, T>),
        threads: usize,
    ) -> f64 {
        let Update { rect, inner } = *update;
        let a = self.view(&OperandPiece { operand: Operand::A, rect: Rect::new(rect.rows, inner) });
        let b = self.view(&OperandPiece { operand: Operand::B, rect: Rect::new(inner, rect.cols) });
        let [i, j] = [rect.rows.start - whole.rows.start, rect.cols.start - whole.cols.start];
        let c = tile.tile(i as usize, j as usize, rect.rows.len() as usize, rect.cols.len() as usize);
        parallel::update(kernel, threads, a, b, c)
    }

    /// The blocks of an operand.
    fn blocks(&self, operand: Operand) -> &BlockViews<'a, T> {
        if operand == Operand::B { &self.b } else { &self.a }
    }

    /// A view of a piece in place.
    ///
    /// # Panics
    /// If this process does not hold it in one block.
    fn view(&self, piece: &OperandPiece) -> View<'a, T> {
        self.view_if_held(piece).expect("a piece is read where it is held, one block at a time")
    }

    /// A view of a piece in place, if this process holds it in one block.
    fn view_if_held(&self, piece: &OperandPiece) -> Option<View<'a, T>> {
        let blocks = self.blocks(piece.operand);
        let (held, elements) = blocks.iter().find(|(held, _)| held.intersect(piece.rect) == piece.rect)?;
        Some(tile_of(*held, elements, piece.rect))
    }

    /// The same for a rank, which holds its own parts only; `None` where processors copy what they use.
    fn own_view(&self, piece: &OperandPiece) -> Option<View<'a, T>> {
        if self.path == DataPath::Packed { self.view_if_held(piece) } else { None }
    }
}

/// Runs a schedule's product on this process's blocks of A and B. The blocks of C are overwritten. Every
/// rectangle of C that a processor in `here` owns must be within one of them. Processors leave the fraction
/// `tail` of their rectangles to a queue; boxes have none.
///
/// # Errors
/// Those of [`run`].
pub(crate) fn computed<T: Element>(
    kernel: Kernel<T>,
    schedule: &MatmulSchedule,
    sides: [BlockViews<'_, T>; 2],
    c: &mut LocalBlocks<T>,
    (session, path, tail): (&Session<'_>, DataPath, f64),
) -> Result<(Vec<Lane>, Option<TailOutcome>)> {
    let here = session.world().processors_here(session.platform().len());
    if schedule.layout().boxes().is_some() {
        let product = BoxProduct::new(kernel, schedule, sides, c, (here, path));
        return Ok((run(&product, session)?.lanes, None));
    }
    let mut product = Product::new(kernel, schedule, sides, c, (here, path));
    if tail > 0.0 {
        let threads = session.platform().processors.iter().map(|p| p.cores.len()).max();
        product = product.with_tail(tail, threads.unwrap_or(1).max(1));
    }
    let lanes = run(&product, session)?.lanes;
    Ok((lanes, product.tail_outcome()))
}

/// The rectangles of each processor, by rank, as views into the blocks of C.
///
/// # Panics
/// If a rectangle is in no block.
fn tiles_by_rank<T>(
    processors: usize,
    owned: Vec<(Rect, usize)>,
    c: &mut LocalBlocks<T>,
) -> Vec<Mutex<Tiles<'_, T>>> {
    let block = |rect: &Rect| c.iter().position(|(held, _)| held.intersect(*rect) == *rect);
    let block = |rect: &Rect| block(rect).expect("a processor's part of C is here");
    let owned: Vec<(Rect, usize, usize)> =
        owned.into_iter().map(|(rect, rank)| (rect, rank, block(&rect))).collect();
    let mut tiles: Vec<Tiles<'_, T>> = (0..processors).map(|_| Vec::new()).collect();
    for (number, (held, elements)) in c.iter_mut().enumerate() {
        let mine: Vec<_> = owned.iter().filter(|(.., block)| *block == number).collect();
        let whole = ViewMut::dense(elements, held.rows.len() as usize, held.cols.len() as usize);
        let places: Vec<Rect> = mine.iter().map(|(rect, ..)| rect.relative_to(*held)).collect();
        for ((rect, rank, _), tile) in mine.into_iter().zip(whole.into_tiles(&places)) {
            tiles[*rank].push((*rect, tile));
        }
    }
    tiles.into_iter().map(Mutex::new).collect()
}

/// A rectangle of a block.
fn tile_of<T>(held: Rect, elements: &[T], rect: Rect) -> View<'_, T> {
    let whole = View::dense(elements, held.rows.len() as usize, held.cols.len() as usize);
    let [i, j] = [rect.rows.start - held.rows.start, rect.cols.start.saturating_sub(held.cols.start)];
    whole.tile(i as usize, j as usize, rect.rows.len() as usize, rect.cols.len() as usize)
}

/// Data of one processor: its tiles of C, and copies of operands unless it reads them in place.
#[derive(Debug)]
pub(crate) struct ProcessorData<'a, T> {
    kernel: Kernel<T>,
    c: Tiles<'a, T>,
    panels: Panels<'a, T>,
    own_bytes: u64,
}

impl<T: Element> Application for Product<'_, T> {
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

impl<T: Element> Executable for Product<'_, T> {
    type Element = T;
    type Local<'l>
        = ProcessorData<'l, T>
    where
        Self: 'l;

    fn hold(&self, rank: Rank) -> ProcessorData<'_, T> {
        let mut c = std::mem::take(&mut *self.tiles[rank.0].lock().unwrap_or_else(PoisonError::into_inner));
        if self.fresh {
            // Every element is written here, so that the pages exist before the clock starts, near the thread
            // that uses them.
            let zero = self.kernel.zero();
            c.iter_mut().for_each(|(_, tile)| (0..tile.rows()).for_each(|i| tile.row(i).fill(zero)));
            self.tail.iter().for_each(|tail| tail.fill(rank, zero));
        }
        let (own_a, own_b) = self.schedule.own(rank);
        let elements = own_a.iter().chain(own_b).map(|part| part.rect().area()).sum::<u64>()
            + self.schedule.rects(rank).iter().map(|rect| rect.area()).sum::<u64>();
        let own_bytes = elements * size_of::<T>() as u64;
        ProcessorData {
            kernel: self.kernel.on(rank),
            c,
            panels: Panels::new(self.schedule, rank, self.path),
            own_bytes,
        }
    }

    fn pack(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece, out: &mut [T]) {
        held.panels.give(self, piece, out);
    }

    fn unpack(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece, elements: &[T]) {
        held.panels.take(self, piece, |part| tile_of(piece.rect, elements, part.rect));
    }

    fn accept(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece, parcel: &Parcel<T>) {
        held.panels.keep(self, piece, parcel);
    }

    fn compute(&self, held: &mut ProcessorData<'_, T>, update: &Update, threads: usize) -> f64 {
        let Update { rect, .. } = *update;
        if self.path == DataPath::InPlace {
            // What is not in the processor's own tiles is in the tail.
            let mine = |(tile, _): &&mut (Rect, ViewMut<'_, T>)| !tile.intersect(rect).is_empty();
            let Some((whole, tile)) = held.c.iter_mut().find(mine) else { return 0.0 };
            let own = Update { rect: rect.intersect(*whole), ..*update };
            debug_assert!(own.rect == rect || self.tail.is_some(), "an update is in one rectangle");
            return self.update(held.kernel, &own, (*whole, tile), threads);
        }
        held.panels.gather(self, update);
        let (a, b) = held.panels.operands(self, update);
        let tile = held.c.iter_mut().find(|(held, _)| held.intersect(rect) == rect);
        let (whole, tile) = tile.expect("an update is in one of the processor's rectangles");
        let [i, j] = [rect.rows.start - whole.rows.start, rect.cols.start - whole.cols.start];
        let c = tile.tile(i as usize, j as usize, rect.rows.len() as usize, rect.cols.len() as usize);
        debug_assert_eq!(update.amount(), a.rows() as f64 * a.cols() as f64 * b.cols() as f64);
        parallel::update(held.kernel, threads, a, b, c)
    }

    fn amount(&self, held: &ProcessorData<'_, T>, update: &Update) -> f64 {
        if self.tail.is_none() {
            return update.amount();
        }
        let own = held.c.iter().map(|(tile, _)| tile.intersect(update.rect)).find(|rect| !rect.is_empty());
        own.map_or(0.0, |rect| Update { rect, ..*update }.amount())
    }

    fn take_left(&self, rank: Rank) -> Option<Update> {
        let inner = Span::new(0, self.schedule.layout().shape().k);
        self.tail.as_ref()?.take(rank, inner)
    }

    fn compute_left(&self, update: &Update, threads: usize) -> f64 {
        self.tail.as_ref().map_or(0.0, |tail| tail.compute(self, update, threads))
    }

    fn free(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece) {
        held.panels.free(piece.rect);
    }

    fn peak_bytes(&self, held: &ProcessorData<'_, T>) -> u64 {
        held.own_bytes + held.panels.peak_bytes()
    }

    fn shares_memory(&self) -> bool {
        self.path != DataPath::Packed
    }

    fn take_shared(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece) {
        if self.path == DataPath::Copied {
            held.panels.take(self, piece, |part| self.view(part));
        }
    }
}

#[cfg(test)]
mod tests;
