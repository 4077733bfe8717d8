//! The matrix product as an [`Executable`]: the data of its processors, and how pieces of A, B and C are packed,
//! unpacked and computed with.
//!
//! Every processor updates its tiles of C. On a layout that cuts the inner dimension, it does not own some of
//! them: they have memory of their own, and their partial sums travel to the owner, who adds them to its own.

mod on_device;
mod panels;
mod tail;

use super::multiply::empty_blocks;
use crate::error::Result;
use crate::geometry::{Rank, Rect, Span};
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::{BlockViews, Element, LocalBlocks, Scaling};
use crate::platform::Platform;
use crate::run::{Session, fill, parallel, run, usable_threads, worker_threads};
use crate::schedule::{
    Application, DataPath, Executable, MatmulSchedule, MatmulStep, Operand, OperandPiece, Parcel, Step,
    Update, Work,
};
use crate::trace::Lane;
use on_device::OnDevice;
use panels::Panels;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tail::Tail;
pub(crate) use tail::TailOutcome;

/// The tiles of C that one processor updates, each a view into a block of this process.
type Tiles<'a, T> = Vec<(Rect, ViewMut<'a, T>)>;

/// C = A B over a semiring, by a schedule: this process's blocks of the operands and of C.
#[derive(Debug)]
pub(crate) struct Product<'a, T> {
    kernel: Kernel<T>,
    schedule: &'a MatmulSchedule,
    sides: [BlockViews<'a, T>; 2],
    path: DataPath,
    /// True to start from the semiring's zero; false to add to the content of C.
    fresh: bool,
    /// By rank, until the processor takes them.
    tiles: Vec<Mutex<Tiles<'a, T>>>,
    tail: Option<Tail<'a, T>>,
    /// By rank; the network has the memories of those that are devices.
    platform: Option<&'a Platform>,
}

impl<'a, T: Element> Product<'a, T> {
    /// Creates a product whose blocks of C are `c`. Every tile that a processor in `here` owns must be within
    /// one of them. A single process has A, B and C complete, in one block each; a rank has its own parts.
    ///
    /// # Panics
    /// If a tile is in no block.
    pub(crate) fn new(
        kernel: Kernel<T>,
        schedule: &'a MatmulSchedule,
        sides: [BlockViews<'a, T>; 2],
        c: &'a mut LocalBlocks<T>,
        here: Range<usize>,
        path: DataPath,
    ) -> Self {
        let owned = here.flat_map(|rank| {
            let tiles = schedule.tiles(Rank(rank)).iter();
            tiles.filter(move |tile| schedule.owns(Rank(rank), **tile)).map(move |tile| (*tile, rank))
        });
        let tiles = tiles_by_rank(schedule.processors(), owned.collect(), c);
        Self { kernel, schedule, sides, path, fresh: true, tiles, tail: None, platform: None }
    }

    /// The same product, with the [memory](partial_sums) of the tiles that processors do not own.
    fn with_partial_sums(mut self, partial: &'a mut [LocalBlocks<T>]) -> Self {
        for (tiles, blocks) in self.tiles.iter_mut().zip(partial) {
            let tiles = tiles.get_mut().unwrap_or_else(PoisonError::into_inner);
            for (tile, elements) in blocks {
                let [.., rows, cols] = place(*tile);
                tiles.push((*tile, ViewMut::dense(elements, rows, cols)));
            }
        }
        self
    }

    /// The same product, some of whose processors are devices of this platform.
    pub(crate) fn on(self, platform: &'a Platform) -> Self {
        Self { platform: Some(platform).filter(|platform| !platform.network.devices.is_empty()), ..self }
    }

    /// The same product, added to the content of C.
    pub(crate) fn adding(self) -> Self {
        Self { fresh: false, ..self }
    }

    /// The same product, whose processors leave the last `fraction` of their tiles to a queue. An update takes
    /// up to `threads` threads. The queue is emptied after all steps, so it cannot hold partial sums, which are
    /// sent in a step: layouts that cut the inner dimension have no tail.
    ///
    /// # Panics
    /// If operands are not read in place, or the layout cuts the inner dimension.
    fn with_tail(mut self, fraction: f64, threads: usize) -> Self {
        assert!(self.path == DataPath::InPlace, "only processors that share memory can share tiles");
        assert!(
            self.schedule.layout().boxes().is_none(),
            "partial sums are sent before the tail is computed"
        );
        self.tail = Some(Tail::of(self.schedule, &mut self.tiles, fraction, threads));
        self
    }

    /// Who computed the tail, if there is one.
    pub(crate) fn tail_outcome(&self) -> Option<TailOutcome> {
        self.tail.as_ref().map(|tail| tail.outcome(self.schedule.processors()))
    }

    /// The operands of an update in place.
    fn operands(&self, update: &Update) -> [View<'a, T>; 2] {
        let Update { rect, inner } = *update;
        [(Operand::A, rect.rows), (Operand::B, rect.cols)]
            .map(|(operand, lines)| self.view(&OperandPiece::new(operand, lines, inner)))
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
        let blocks = &self.sides[usize::from(piece.operand == Operand::B)];
        let (held, elements) = blocks.iter().find(|(held, _)| held.contains(piece.rect))?;
        Some(tile_of(*held, elements, piece.rect))
    }

    /// The same for a rank, which holds its own parts only; `None` where processors copy what they use.
    fn own_view(&self, piece: &OperandPiece) -> Option<View<'a, T>> {
        if self.path == DataPath::Packed { self.view_if_held(piece) } else { None }
    }
}

/// Runs a schedule's product on this process's blocks of A and B. The blocks of C are overwritten. Every tile
/// that a processor of this process owns must be within one of them. Processors leave the fraction `tail` of
/// their tiles to a [queue](Product::with_tail).
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
    let mut partial = partial_sums(schedule, &here);
    let product = Product::new(kernel, schedule, sides, c, here, path).with_partial_sums(&mut partial);
    let mut product = product.on(session.platform());
    if tail > 0.0 {
        let threads = session.platform().processors.iter().map(|p| usable_threads(&p.cores)).max();
        product = product.with_tail(tail, threads.unwrap_or(1).max(1));
    }
    let lanes = run(&product, session)?.lanes;
    Ok((lanes, product.tail_outcome()))
}

/// Memory for the tiles that the processors of this process do not own, by rank.
fn partial_sums<T: Element>(schedule: &MatmulSchedule, here: &Range<usize>) -> Vec<LocalBlocks<T>> {
    let of = |rank: usize| {
        let tiles = schedule.tiles(Rank(rank)).iter().copied().filter(|_| here.contains(&rank));
        empty_blocks(&tiles.filter(|tile| !schedule.owns(Rank(rank), *tile)).collect::<Vec<_>>())
    };
    (0..schedule.processors()).map(of).collect()
}

/// The tiles of each processor, by rank, as views into the blocks of C.
///
/// # Panics
/// If a tile is in no block.
fn tiles_by_rank<T>(
    processors: usize,
    owned: Vec<(Rect, usize)>,
    c: &mut LocalBlocks<T>,
) -> Vec<Mutex<Tiles<'_, T>>> {
    let block = |rect: &Rect| c.iter().position(|(held, _)| held.contains(*rect));
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

/// A rectangle as the corner, rows and columns of a tile.
fn place(rect: Rect) -> [usize; 4] {
    [rect.rows.start, rect.cols.start, rect.rows.len(), rect.cols.len()].map(|at| at as usize)
}

/// A part of a tile.
fn part_of<'t, T>((whole, tile): &'t mut (Rect, ViewMut<'_, T>), part: Rect) -> ViewMut<'t, T> {
    let [i, j, rows, cols] = place(part.relative_to(*whole));
    tile.tile(i, j, rows, cols)
}

/// The parts of a rectangle of C that are in the tiles of a processor.
fn parts_of<'t, T>(tiles: &'t mut Tiles<'_, T>, rect: Rect) -> impl Iterator<Item = (Rect, ViewMut<'t, T>)> {
    tiles.iter_mut().filter_map(move |tile| {
        let part = tile.0.intersect(rect);
        (!part.is_empty()).then(|| (part, part_of(tile, part)))
    })
}

/// Data of one processor: its tiles of C, and copies of operands unless it reads them in place.
#[derive(Debug)]
pub(crate) struct ProcessorData<'a, T> {
    kernel: Kernel<T>,
    c: Tiles<'a, T>,
    panels: Panels<'a, T>,
    own_bytes: u64,
    device: Option<OnDevice<T>>,
}

impl<T: Element> ProcessorData<'_, T> {
    /// Adds partial sums to the processor's own, which come first: its inner indices are lower.
    fn add(&mut self, rect: Rect, sums: &[T]) {
        let one = self.kernel.one();
        for (part, mut tile) in parts_of(&mut self.c, rect) {
            let sums = tile_of(rect, sums, part);
            for i in 0..tile.rows() {
                self.kernel.finish(Scaling::none(one), tile.row(i), Some(sums.row(i)));
            }
        }
    }
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

    fn results(&self, rank: Rank) -> u64 {
        self.schedule.results(rank)
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
            // Every element is written here, so that the pages exist before the clock starts, near the threads
            // that use them.
            let zero = self.kernel.zero();
            c.iter_mut().for_each(|(_, tile)| fill(tile, zero));
            self.tail.iter().for_each(|tail| tail.fill(rank, zero));
        }
        let (own_a, own_b) = self.schedule.own(rank);
        let elements = own_a.iter().chain(own_b).map(|part| part.rect().area()).sum::<u64>()
            + self.schedule.tiles(rank).iter().map(|tile| tile.area()).sum::<u64>();
        let own_bytes = elements * size_of::<T>() as u64;
        let device = self.platform.and_then(|platform| OnDevice::new(self, platform, rank, &mut c));
        let kernel = self.kernel.on(rank);
        if device.is_none() {
            // The rectangles that the first pivots update are those of all pivots.
            let updates = self.schedule.steps(rank).filter_map(|step| match step {
                Step::Compute(update) => Some(update),
                _ => None,
            });
            let mut updates = updates.peekable();
            let first = updates.peek().map(|first| first.inner);
            let mut largest = [0; 2];
            for update in updates.take_while(|update| Some(update.inner) == first) {
                let [.., rows, cols] = place(update.rect);
                largest = [largest[0].max(rows), largest[1].max(cols)];
            }
            if let Some(inner) = first {
                let [rows, cols] = largest;
                kernel.reserve([rows, inner.len() as usize, cols], worker_threads());
            }
        }
        ProcessorData { kernel, c, panels: Panels::new(self.schedule, rank, self.path), own_bytes, device }
    }

    fn pack(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece, out: &mut [T]) {
        if piece.operand != Operand::C {
            return held.panels.give(self, piece, out);
        }
        let [.., rows, cols] = place(piece.rect);
        let mut out = ViewMut::dense(out, rows, cols);
        for (part, mut tile) in parts_of(&mut held.c, piece.rect) {
            let [i, j, rows, cols] = place(part.relative_to(piece.rect));
            let mut out = out.tile(i, j, rows, cols);
            (0..rows).for_each(|row| out.row(row).copy_from_slice(tile.row(row)));
        }
    }

    fn unpack(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece, elements: &[T]) {
        match piece.operand {
            Operand::C => {
                held.add(piece.rect, elements);
            }
            _ => held.panels.take(self, piece, |part| tile_of(piece.rect, elements, part.rect)),
        }
    }

    fn accept(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece, parcel: &Parcel<T>) {
        match piece.operand {
            Operand::C => {
                held.add(piece.rect, parcel.elements());
            }
            _ => held.panels.keep(self, piece, parcel),
        }
    }

    fn compute(&self, held: &mut ProcessorData<'_, T>, update: &Update, threads: usize) -> Result<f64> {
        let ProcessorData { kernel, c, panels, device, .. } = held;
        if device.as_ref().is_some_and(OnDevice::computes_last) {
            return Ok(0.0);
        }
        let Some((rect, tile)) = parts_of(c, update.rect).next() else {
            assert!(self.tail.is_some(), "an update is in the processor's tiles, or in the tail");
            return Ok(0.0);
        };
        assert!(rect == update.rect || self.tail.is_some(), "an update is in one tile");
        let update = Update { rect, ..*update };
        let [a, b] = match self.path {
            DataPath::InPlace => self.operands(&update),
            _ => panels.operands(self, &update),
        };
        debug_assert_eq!(update.amount(), a.rows() as f64 * a.cols() as f64 * b.cols() as f64);
        match device {
            Some(device) => device.update(rect, [a, b]),
            None => parallel::update(*kernel, threads, a, b, tile).map(|()| 0.0),
        }
    }

    fn amount(&self, held: &ProcessorData<'_, T>, update: &Update) -> f64 {
        if held.device.as_ref().is_some_and(OnDevice::computes_last) {
            return 0.0;
        }
        if self.tail.is_none() {
            return update.amount();
        }
        let own = held.c.iter().map(|(tile, _)| tile.intersect(update.rect)).find(|rect| !rect.is_empty());
        own.map_or(0.0, |rect| Update { rect, ..*update }.amount())
    }

    fn take_left(&self, held: &mut ProcessorData<'_, T>, rank: Rank) -> Option<Update> {
        let inner = self.schedule.layout().shape().k;
        match &mut held.device {
            Some(device) => device.next_step(inner),
            None => self.tail.as_ref()?.take(rank, Span::new(0, inner)),
        }
    }

    fn compute_left(&self, held: &mut ProcessorData<'_, T>, update: &Update, threads: usize) -> Result<f64> {
        match &mut held.device {
            Some(device) => device.finish(self, &mut held.c, update),
            None => {
                self.tail.as_ref().map_or(Ok(0.0), |tail| tail.compute(self, update, threads).map(|()| 0.0))
            }
        }
    }

    fn free(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece) {
        held.panels.free(piece.rect);
    }

    fn device_bytes(&self, held: &ProcessorData<'_, T>) -> [u64; 2] {
        held.device.as_ref().map_or([0; 2], OnDevice::moved)
    }

    fn peak_bytes(&self, held: &ProcessorData<'_, T>) -> u64 {
        held.own_bytes + held.panels.peak_bytes()
    }

    fn shares_memory(&self) -> bool {
        self.path != DataPath::Packed
    }

    /// Partial sums are in the memory of one processor only.
    fn is_shared(&self, piece: &OperandPiece) -> bool {
        self.shares_memory() && piece.operand != Operand::C
    }

    fn take_shared(&self, held: &mut ProcessorData<'_, T>, piece: &OperandPiece) {
        if self.path == DataPath::Copied {
            held.panels.take(self, piece, |part| self.view(part));
        }
    }
}

#[cfg(test)]
mod tests;
