//! The matrix product as an [`Executable`]: the data of its processors, and how pieces of A and B are packed,
//! unpacked and computed with.

mod boxes;
mod panels;

use crate::error::Result;
use crate::geometry::{Rank, Rect};
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::{Element, LocalBlocks};
use crate::run::{Session, parallel, run};
use crate::schedule::{
    Application, DataPath, Executable, MatmulSchedule, MatmulStep, Operand, OperandPiece, Update, Work,
};
use crate::trace::Lane;
use boxes::BoxProduct;
use panels::Panels;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The rectangles of C that one processor writes, each a view into a block of this process.
type Tiles<'a, T> = Vec<(Rect, ViewMut<'a, T>)>;

/// C = A B over a semiring, by a schedule: this process's blocks of the operands and of C.
#[derive(Debug)]
pub(crate) struct Product<'a, T> {
    kernel: Kernel<T>,
    schedule: &'a MatmulSchedule,
    a: &'a LocalBlocks<T>,
    b: &'a LocalBlocks<T>,
    path: DataPath,
    /// True to start from the semiring's zero; false to add to the content of C.
    fresh: bool,
    /// By rank, until the processor takes them.
    tiles: Vec<Mutex<Tiles<'a, T>>>,
}

impl<'a, T: Element> Product<'a, T> {
    /// Creates a product whose blocks of C are `c`. Every rectangle of every processor in `here` must be
    /// within one of them. A single process has A, B and C complete, in one block each; a rank has its own
    /// parts.
    ///
    /// # Panics
    /// If a rectangle is in no block.
    pub fn new(
        kernel: Kernel<T>,
        schedule: &'a MatmulSchedule,
        [a, b]: [&'a LocalBlocks<T>; 2],
        c: &'a mut LocalBlocks<T>,
        (here, path): (Range<usize>, DataPath),
    ) -> Self {
        let owned = here.flat_map(|rank| schedule.rects(Rank(rank)).iter().map(move |rect| (*rect, rank)));
        let tiles = tiles_by_rank(schedule.processors(), owned.collect(), c);
        Self { kernel, schedule, a, b, path, fresh: true, tiles }
    }

    /// The same product, added to the content of C.
    pub fn adding(self) -> Self {
        Self { fresh: false, ..self }
    }

    /// The blocks of an operand.
    fn blocks(&self, operand: Operand) -> &'a LocalBlocks<T> {
        if operand == Operand::B { self.b } else { self.a }
    }

    /// A view of a piece in place.
    ///
    /// # Panics
    /// If this process does not hold it in one block.
    fn view(&self, piece: &OperandPiece) -> View<'a, T> {
        let blocks = self.blocks(piece.operand);
        let holds = blocks.iter().find(|(held, _)| held.intersect(piece.rect) == piece.rect);
        let (held, elements) = holds.expect("a piece is read where it is held, one block at a time");
        tile_of(*held, elements, piece.rect)
    }
}

/// Runs a schedule's product on this process's blocks of A and B. The blocks of C are overwritten. Every
/// rectangle of C that a processor in `here` owns must be within one of them.
///
/// # Errors
/// Those of [`run`].
pub(crate) fn computed<T: Element>(
    kernel: Kernel<T>,
    schedule: &MatmulSchedule,
    sides: [&LocalBlocks<T>; 2],
    c: &mut LocalBlocks<T>,
    (session, path): (&Session<'_>, DataPath),
) -> Result<Vec<Lane>> {
    let here = session.world().processors_here(session.platform().len());
    if schedule.layout().boxes().is_some() {
        return Ok(run(&BoxProduct::new(kernel, schedule, sides, c, (here, path)), session)?.lanes);
    }
    Ok(run(&Product::new(kernel, schedule, sides, c, (here, path)), session)?.lanes)
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
pub(crate) struct Held<'a, T> {
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
        = Held<'l, T>
    where
        Self: 'l;

    fn hold(&self, rank: Rank) -> Held<'_, T> {
        let mut c = std::mem::take(&mut *self.tiles[rank.0].lock().unwrap_or_else(PoisonError::into_inner));
        if self.fresh {
            // Every element is written here, so that the pages exist before the clock starts, near the thread
            // that uses them.
            let zero = self.kernel.zero();
            c.iter_mut().for_each(|(_, tile)| (0..tile.rows()).for_each(|i| tile.row(i).fill(zero)));
        }
        let (own_a, own_b) = self.schedule.own(rank);
        let elements = own_a.iter().chain(own_b).map(|part| part.rect().area()).sum::<u64>()
            + self.schedule.rects(rank).iter().map(|rect| rect.area()).sum::<u64>();
        let own_bytes = elements * size_of::<T>() as u64;
        Held { c, panels: Panels::new(self.schedule, rank), own_bytes }
    }

    fn pack(&self, held: &mut Held<'_, T>, piece: &OperandPiece, out: &mut [T]) {
        held.panels.give(self, piece, out);
    }

    fn unpack(&self, held: &mut Held<'_, T>, piece: &OperandPiece, elements: &[T]) {
        held.panels.take(self, piece, |part| tile_of(piece.rect, elements, part.rect));
    }

    fn compute(&self, held: &mut Held<'_, T>, update: &Update, threads: usize) -> f64 {
        let Update { rect, inner } = *update;
        let (a, b) = if self.path == DataPath::InPlace {
            let a = OperandPiece { operand: Operand::A, rect: Rect::new(rect.rows, inner) };
            let b = OperandPiece { operand: Operand::B, rect: Rect::new(inner, rect.cols) };
            (self.view(&a), self.view(&b))
        } else {
            held.panels.gather(self, update);
            held.panels.operands(self, update)
        };
        let tile = held.c.iter_mut().find(|(held, _)| held.intersect(rect) == rect);
        let (whole, tile) = tile.expect("an update is in one of the processor's rectangles");
        let [i, j] = [rect.rows.start - whole.rows.start, rect.cols.start - whole.cols.start];
        let c = tile.tile(i as usize, j as usize, rect.rows.len() as usize, rect.cols.len() as usize);
        debug_assert_eq!(update.amount(), a.rows() as f64 * a.cols() as f64 * b.cols() as f64);
        parallel::update(self.kernel, threads, a, b, c)
    }

    fn free(&self, held: &mut Held<'_, T>, piece: &OperandPiece) {
        held.panels.free(piece.rect);
    }

    fn peak_bytes(&self, held: &Held<'_, T>) -> u64 {
        held.own_bytes + held.panels.peak_bytes()
    }

    fn shares_memory(&self) -> bool {
        self.path != DataPath::Packed
    }

    fn take_shared(&self, held: &mut Held<'_, T>, piece: &OperandPiece) {
        if self.path == DataPath::Copied {
            held.panels.take(self, piece, |part| self.view(part));
        }
    }
}

#[cfg(test)]
mod tests;
