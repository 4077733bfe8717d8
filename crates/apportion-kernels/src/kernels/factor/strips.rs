//! Triangular systems whose right-hand sides are taken a strip at a time, packed row after row, so that it stays in the
//! first-level cache while the triangle passes by.

use crate::kernels::Real;
use crate::kernels::packed::{PackedMemory, Substitution, TilePlace};
use std::ops::Range;

/// The triangle of a system, packed for substitution, and a strip of its unknowns.
///
/// Unknowns are numbered in the order in which they are solved for. The block of the unknowns of a tile holds the
/// coefficients that [`Substitution`] describes; the blocks follow each other.
pub(super) struct Strips<'m, T> {
    pub kernel: Substitution<T>,
    blocks: &'m mut [T],
    /// Unknowns x right-hand sides, of which there are [`Strips::lanes`].
    pub strip: &'m mut [T],
}

impl<'m, T: Real> Strips<'m, T> {
    /// Elements of memory for triangles of n rows: of blocks and of a strip.
    pub(crate) fn room(kernel: &Substitution<T>, n: usize) -> [usize; 2] {
        let (count, rows) = (n.div_ceil(kernel.rows()).max(1), kernel.rows());
        [rows * rows * count * (count + 1) / 2, count * rows * kernel.lanes()]
    }

    /// In memory of the lengths that [`Strips::room`] gives.
    pub(crate) fn new(kernel: Substitution<T>, blocks: &'m mut [T], strip: &'m mut [T]) -> Self {
        // Unknowns that fill the last tile must be numbers: others may take longer to compute with.
        strip.fill(T::ZERO);
        Self { kernel, blocks, strip }
    }

    /// Number of right-hand sides of a strip.
    pub(crate) fn lanes(&self) -> usize {
        self.kernel.lanes()
    }

    /// Packs a triangle of n rows by its elements: `element(i, j)` for j <= i, of the diagonal the reciprocal.
    #[inline(always)]
    pub(crate) fn pack(&mut self, n: usize, element: impl Fn(usize, usize) -> T) {
        let rows = self.kernel.rows();
        for block in 0..n.div_ceil(rows) {
            let (first, here) = (block * rows, rows.min(n - block * rows));
            let place = self.place(block);
            for (j, column) in self.blocks[place].chunks_exact_mut(rows).enumerate() {
                // Columns left of the square on the diagonal, then those of the square.
                let above = (j + 1).saturating_sub(first).min(here);
                column[..above].fill(T::ZERO);
                column[here..].fill(T::ZERO);
                let below = column[..here].iter_mut().enumerate().skip(above);
                below.for_each(|(i, x)| *x = -element(first + i, j));
                if (first..first + here).contains(&j) {
                    column[j - first] = element(j, j);
                }
            }
        }
    }

    /// Where a block is.
    fn place(&self, block: usize) -> Range<usize> {
        let size = self.kernel.rows() * self.kernel.rows();
        let start = size * block * (block + 1) / 2;
        start..start + size * (block + 1)
    }

    /// Where the unknowns of a block are in the strip.
    fn tile(&self, block: usize) -> TilePlace {
        let (depth, lanes) = (block * self.kernel.rows(), self.lanes());
        TilePlace { known: 0, depth, tile: depth * lanes, stride: lanes }
    }

    /// Solves for the unknowns of some blocks, given those before.
    pub(crate) fn solve(&mut self, blocks: Range<usize>) {
        for block in blocks {
            let (place, tile) = (self.place(block), self.tile(block));
            self.kernel.solve(&self.blocks[place], self.strip, tile);
        }
    }

    /// Solves for the n unknowns of a triangle.
    pub(crate) fn solve_all(&mut self, n: usize) {
        self.solve(0..n.div_ceil(self.kernel.rows()));
    }

    /// Solves for the unknowns of a block, which is not packed yet: the strip holds rows of the triangle itself, those
    /// from `first` on, transposed, and it is the Cholesky factor of a matrix of n rows. False if there is none.
    pub(crate) fn factor(&mut self, block: usize, first: usize, n: usize) -> bool {
        let (rows, lanes) = (self.kernel.rows(), self.lanes());
        let (place, tile) = (self.place(block), self.tile(block));
        let (lane, order) = (tile.depth - first, rows.min(n - tile.depth));
        let packed = &mut self.blocks[place];
        for (column, x) in packed.chunks_exact_mut(rows).zip(self.strip.chunks_exact(lanes)).take(tile.depth)
        {
            column.iter_mut().zip(&x[lane..]).for_each(|(to, from)| *to = -*from);
            column[order..].fill(T::ZERO);
        }
        self.kernel.factor(packed, self.strip, tile, [lane, order])
    }
}

/// Calls a function with memory for triangles of n rows.
pub(super) fn with_strips<T: Real, R>(n: usize, work: impl FnOnce(Strips<'_, T>) -> R) -> R {
    let kernel = Substitution::best();
    let mut memory = PackedMemory::of_thread();
    let [blocks, strip] = memory.blocks(Strips::room(&kernel, n));
    let result = work(Strips::new(kernel, blocks, strip));
    memory.keep();
    result
}
