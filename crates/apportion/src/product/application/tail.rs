//! The dynamic tail of a product in shared memory: tiles of C that any processor of the process may compute.

use super::{Product, Tiles, part_of};
use crate::error::Result;
use crate::geometry::{Rank, Rect, Span};
use crate::kernels::ViewMut;
use crate::matrix::Element;
use crate::run::{fill, parallel};
use crate::schedule::{Application, MatmulSchedule, Step, TailCut, TailQueue, Update};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// What processors computed of the tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TailOutcome {
    /// Number of tiles in the queue.
    pub tiles: u64,
    /// Elements of C in the tail, by the rank of their owner.
    pub(crate) left: Vec<u64>,
    /// Elements of C in the tail, by the rank that computed them.
    pub computed: Vec<u64>,
    /// Elements that another processor than their owner computed.
    pub moved: u64,
}

impl TailOutcome {
    /// Both together: of two parts of a run.
    pub(crate) fn and(&self, next: &Self) -> Self {
        let sum = |x: &[u64], y: &[u64]| x.iter().zip(y).map(|(x, y)| x + y).collect();
        Self {
            tiles: self.tiles + next.tiles,
            left: sum(&self.left, &next.left),
            computed: sum(&self.computed, &next.computed),
            moved: self.moved + next.moved,
        }
    }

    /// The share of each processor as carried out: its plan's share, less what it left, plus what it took.
    pub(crate) fn carried_out(&self, shares: &[u64]) -> Vec<u64> {
        shares
            .iter()
            .zip(self.left.iter().zip(&self.computed))
            .map(|(share, (left, done))| share - left + done)
            .collect()
    }
}

/// A tile of the queue.
#[derive(Debug)]
struct Tile<'a, T> {
    rect: Rect,
    owner: Rank,
    /// Until a processor takes it.
    view: Mutex<Option<ViewMut<'a, T>>>,
}

/// The queue, its tiles, and the order of their sums.
#[derive(Debug)]
pub(super) struct Tail<'a, T> {
    tiles: Vec<Tile<'a, T>>,
    queue: Mutex<TailQueue>,
    /// Updates of each owner, in the order of its steps.
    updates: Vec<Vec<Update>>,
    /// The processor that took each tile.
    taken: Mutex<Vec<Option<Rank>>>,
}

impl<'a, T: Element> Tail<'a, T> {
    /// Leaves the last `fraction` of the rectangles in `tiles` to a queue, and keeps the others there. On any
    /// processor an update takes up to `threads` threads.
    pub(crate) fn of(
        schedule: &MatmulSchedule,
        by_rank: &mut [Mutex<Tiles<'a, T>>],
        fraction: f64,
        threads: usize,
    ) -> Self {
        // Each thread has two rows at least, as it would without a tail.
        let least = 2 * threads as u64;
        let (mut tiles, mut updates) = (Vec::new(), Vec::new());
        for (rank, own) in by_rank.iter_mut().enumerate() {
            let own = own.get_mut().unwrap_or_else(PoisonError::into_inner);
            let of_rank: Vec<Update> = schedule
                .steps(Rank(rank))
                .filter_map(|step| if let Step::Compute(update) = step { Some(update) } else { None })
                .collect();
            let parts: BTreeSet<Rect> = of_rank.iter().map(|update| update.rect).collect();
            let mut kept = Tiles::new();
            for (rect, view) in std::mem::take(own) {
                let inside = |part: &&Rect| !part.intersect(rect).is_empty();
                let cut = TailCut::of(rect, fraction, least)
                    .filter(|cut| parts.iter().filter(inside).all(|part| cut.respects(*part, least)));
                let Some(cut) = cut else {
                    kept.push((rect, view));
                    continue;
                };
                let pieces: Vec<Rect> = std::iter::once(cut.kept).chain(cut.tiles).collect();
                let places: Vec<Rect> = pieces.iter().map(|piece| piece.relative_to(rect)).collect();
                let mut views = pieces.into_iter().zip(view.into_tiles(&places));
                kept.extend(views.next());
                tiles.extend(views.map(|(rect, view)| Tile {
                    rect,
                    owner: Rank(rank),
                    view: Mutex::new(Some(view)),
                }));
            }
            *own = kept;
            updates.push(of_rank);
        }
        let owners: Vec<Rank> = tiles.iter().map(|tile| tile.owner).collect();
        let queue = Mutex::new(TailQueue::new(by_rank.len(), &owners));
        let taken = Mutex::new(vec![None; tiles.len()]);
        Self { tiles, queue, updates, taken }
    }

    /// The next tile for a processor, as the whole update of the tile.
    pub(crate) fn take(&self, rank: Rank, inner: Span) -> Option<Update> {
        let tile = self.queue.lock().unwrap_or_else(PoisonError::into_inner).take(rank)?;
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)[tile] = Some(rank);
        Some(Update { rect: self.tiles[tile].rect, inner })
    }

    /// Fills the tiles of an owner.
    pub(crate) fn fill(&self, owner: Rank, zero: T) {
        for tile in self.tiles.iter().filter(|tile| tile.owner == owner) {
            if let Some(view) = tile.view.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                fill(view, zero);
            }
        }
    }

    /// Computes a tile: the updates of its owner, in their order, as far as they are in the tile.
    pub(crate) fn compute(&self, product: &Product<'a, T>, whole: &Update, threads: usize) -> Result<()> {
        let tile = self.tiles.iter().find(|tile| tile.rect == whole.rect).expect("a taken tile is a tile");
        let view = tile.view.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut view = (tile.rect, view.expect("a tile is taken once"));
        let kernel = product.kernel.on(tile.owner);
        for update in &self.updates[tile.owner.0] {
            let part = Update { rect: update.rect.intersect(tile.rect), ..*update };
            if !part.rect.is_empty() {
                let [a, b] = product.operands(&part);
                parallel::update(kernel, threads, a, b, part_of(&mut view, part.rect))?;
            }
        }
        Ok(())
    }

    /// Who computed what.
    pub(crate) fn outcome(&self, processors: usize) -> TailOutcome {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut outcome = TailOutcome {
            tiles: self.tiles.len() as u64,
            left: vec![0; processors],
            computed: vec![0; processors],
            moved: 0,
        };
        for (tile, by) in self.tiles.iter().zip(taken.iter()) {
            let (area, by) = (tile.rect.area(), by.unwrap_or(tile.owner));
            outcome.left[tile.owner.0] += area;
            outcome.computed[by.0] += area;
            outcome.moved += if by == tile.owner { 0 } else { area };
        }
        outcome
    }
}
