//! The loops of a team of threads: it packs A and B once for all, and shares out the tiles of C.
//!
//! A product is a sequence of stages. The units of a stage are independent of each other, so that threads take them
//! as they come: first tiles of C that blocks packed before update, then blocks to pack for the next stage. A thread
//! that is late does fewer of them.

#![allow(unsafe_code)]

use crate::kernels::packed::block::{
    BlockSizes, MicroKernel, PackedMemory, longest, pack_cols, pack_rows, pieces, sweep,
};
use crate::kernels::packed::vector::{Number, Operation, Vector};
use crate::kernels::team::Shared;
use crate::kernels::view::check_shapes;
use crate::kernels::{Team, View, ViewMut};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Multiply-adds below which one thread is done before others could help.
const SMALL: usize = 1 << 18;

/// Rows of A, and the memory for them as strips of the tile's height.
#[derive(Clone)]
struct Rows<'a, T> {
    rows: Range<usize>,
    packed: Shared<'a, T>,
}

/// Units of work that are independent of each other: tiles of C, then blocks of B and strips of A to pack.
pub(super) struct Stage<'a, T> {
    a: View<'a, T>,
    b: View<'a, T>,
    c: &'a ViewMut<'a, T>,
    depth: Range<usize>,
    /// The columns of the panel of B, and its strips, block after block.
    cols: Range<usize>,
    panel: Shared<'a, T>,
    /// Columns of each block of B but the last.
    width: usize,
    /// Rows of C to update.
    update: Option<Rows<'a, T>>,
    packs_b: bool,
    /// Rows of A to pack.
    pack: Option<Rows<'a, T>>,
}

impl<T> Stage<'_, T> {
    /// Number of blocks of B.
    fn blocks(&self) -> usize {
        self.cols.len().div_ceil(self.width)
    }

    /// The columns of a block of B.
    fn block(&self, number: usize) -> Range<usize> {
        let start = self.cols.start + number * self.width;
        start..(start + self.width).min(self.cols.end)
    }

    /// Where a block of B is in the panel.
    fn place(&self, number: usize, cols: usize) -> Range<usize> {
        let block = self.block(number);
        let start = (block.start - self.cols.start) * self.depth.len();
        start..start + block.len().next_multiple_of(cols) * self.depth.len()
    }

    /// Where strips of A are in their block.
    fn strips(&self, strips: &Range<usize>, rows: usize) -> Range<usize> {
        strips.start * rows * self.depth.len()..strips.end * rows * self.depth.len()
    }

    /// Strips of A to update C with, blocks of B to pack, strips of A to pack.
    fn counts(&self, rows: usize) -> [usize; 3] {
        let strips = |of: &Option<Rows<'_, T>>| of.as_ref().map_or(0, |of| of.rows.len().div_ceil(rows));
        [strips(&self.update), if self.packs_b { self.blocks() } else { 0 }, strips(&self.pack)]
    }

    /// Number of units.
    fn units(&self, rows: usize) -> usize {
        let [strips, blocks, to_pack] = self.counts(rows);
        strips * self.blocks() + blocks + to_pack
    }
}

/// C := C + A B over the semiring by all threads of a team, with the given tile: each element has the bits that one
/// thread would give it. Returns false, with C updated by only some of the sums, if an integer is too large for plain
/// sums.
///
/// Besides the operands it needs memory for a panel of B of at most 16 MiB and two blocks of A of 4 MiB.
///
/// # Safety
/// The processor has the tile's instruction set.
///
/// # Panics
/// If the shapes do not fit: A is m x k, B k x n, C m x n.
pub(in crate::kernels) unsafe fn product_together<T: Number>(
    tile: &MicroKernel<T>,
    a: View<T>,
    b: View<T>,
    c: ViewMut<T>,
    team: &dyn Team,
) -> bool {
    check_shapes(&a, &b, &c);
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    if team.threads() < 2 || m.saturating_mul(k).saturating_mul(n) <= SMALL {
        // SAFETY: guaranteed by the caller.
        return unsafe { tile.product(a, b, c) };
    }
    let sizes = BlockSizes::of(size_of::<T>(), [m, k, n], [tile.rows, tile.cols]);
    let most_cols = sizes.most_panel_cols();
    let width = longest(n.min(most_cols), sizes.most_cols(), tile.cols);
    let rows: Vec<Range<usize>> = pieces(m, sizes.most_rows(), tile.rows).collect();
    let mut memory = PackedMemory::of_thread();
    let [panel, first, second] = memory.blocks(sizes.together());
    let panel = Shared::new(panel);
    let blocks = [Shared::new(first), Shared::new(second)];
    let of_rows =
        |number: usize| rows.get(number).map(|rows| Rows { rows: rows.clone(), packed: blocks[number % 2] });
    let tame = AtomicBool::new(true);
    let carry_out = |stage: &Stage<'_, T>| {
        team.share(stage.units(tile.rows), &|units| {
            // SAFETY: a team passes each unit once and waits for all, and a stage begins when the one before it is
            // done; only tiles that the processor supports are offered.
            if !unsafe { (tile.part)(tile, stage, units) } {
                tame.store(false, Ordering::Relaxed);
            }
        });
        tame.load(Ordering::Relaxed)
    };
    'all: for depth in pieces(k, sizes.most_depth(), 1) {
        for cols in pieces(n, most_cols, tile.cols) {
            let stage = |update, packs_b, pack| Stage {
                a,
                b,
                c: &c,
                depth: depth.clone(),
                cols: cols.clone(),
                panel,
                width,
                update,
                packs_b,
                pack,
            };
            if !carry_out(&stage(None, true, of_rows(0))) {
                break 'all;
            }
            for number in 0..rows.len() {
                if !carry_out(&stage(of_rows(number), false, of_rows(number + 1))) {
                    break 'all;
                }
            }
        }
    }
    memory.keep();
    tame.into_inner()
}

/// Does some units of a stage. False if an element is too large for plain sums.
///
/// # Safety
/// The processor has the registers of `V`, and the caller is compiled for them. Each unit is done once, and what it
/// reads was packed in an earlier stage.
#[inline(always)]
pub(super) unsafe fn part<V: Vector, O: Operation<V>>(
    tile: &MicroKernel<V::Element>,
    stage: &Stage<'_, V::Element>,
    units: Range<usize>,
) -> bool {
    let [strips, blocks_to_pack, _] = stage.counts(tile.rows);
    let (depth, tiles) = (stage.depth.len(), strips * stage.blocks());
    let mut tame = true;
    let mut at = units.start;
    while at < units.end {
        if let Some(update) = stage.update.as_ref().filter(|_| at < tiles) {
            // Strips of A that follow each other, with one block of B.
            let (number, first) = (at / strips, at % strips);
            let these = first..strips.min(first + units.end - at);
            let (block, start) = (stage.block(number), first * tile.rows);
            let rows = (these.len() * tile.rows).min(update.rows.len() - start);
            // SAFETY: both were packed in an earlier stage, and this unit alone has these elements of C.
            unsafe {
                let a = update.packed.part(stage.strips(&these, tile.rows));
                let b = stage.panel.part(stage.place(number, tile.cols));
                let c = stage.c.part(update.rows.start + start, block.start, rows, block.len());
                sweep::<V, O>(tile, depth, a, b, c);
            }
            at += these.len();
        } else if at - tiles < blocks_to_pack {
            let number = at - tiles;
            // SAFETY: this unit alone has this part of the panel; the rest is guaranteed by the caller.
            tame &= unsafe {
                let to = stage.panel.part_mut(stage.place(number, tile.cols));
                pack_rows::<V, O>(to, stage.b, &stage.depth, &stage.block(number), tile.cols)
            };
            at += 1;
        } else if let Some(pack) = &stage.pack {
            let first = at - tiles - blocks_to_pack;
            let these = first..first + units.end - at;
            let rows = pack.rows.start + first * tile.rows
                ..pack.rows.end.min(pack.rows.start + these.end * tile.rows);
            // SAFETY: as above.
            tame &= unsafe {
                let to = pack.packed.part_mut(stage.strips(&these, tile.rows));
                pack_cols::<V, O>(tile, to, stage.a, &rows, &stage.depth)
            };
            at = units.end;
        } else {
            unreachable!("unit {at} is one of the stage");
        }
    }
    tame
}
