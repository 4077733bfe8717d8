//! The outer loops: A and B cut into blocks that fit the caches, copied so that tiles read them straight on.

#![allow(unsafe_code)]

use super::super::{View, ViewMut};
use super::Tropical;
use super::tile::Tile;
use std::ops::Range;

/// Depth of a block: a strip of B, 192 bytes wide, takes half of a first-level cache.
const DEPTH: usize = 128;
/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;
/// Bytes of a packed block of A: half a second-level cache.
const A_BYTES: usize = 512 << 10;
/// Bytes of a packed block of B: a share of the last cache.
const B_BYTES: usize = 4 << 20;

/// # Panics
/// Unless A is m x k, B k x n and C m x n.
pub(super) fn check_shapes<T>(a: &View<T>, b: &View<T>, c: &ViewMut<T>) {
    assert!(
        a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
        "the shapes {} x {}, {} x {} and {} x {} fit",
        a.rows(),
        a.cols(),
        b.rows(),
        b.cols(),
        c.rows(),
        c.cols()
    );
}

/// C := C over A x B with the given tile. Shapes must fit; integers must be tame.
pub(super) fn product<T: Tropical, const MIN: bool>(
    tile: &Tile<T>,
    a: View<T>,
    b: View<T>,
    mut c: ViewMut<T>,
) {
    check_shapes(&a, &b, &c);
    let element = size_of::<T>();
    let (most_rows, most_cols) = (A_BYTES / (DEPTH * element), B_BYTES / (DEPTH * element));
    let deepest = a.cols().min(DEPTH);
    let mut a_block = Packed::new(deepest * a.rows().min(most_rows).next_multiple_of(tile.rows));
    let mut b_block = Packed::new(deepest * b.cols().min(most_cols).next_multiple_of(tile.cols));
    for depth in pieces(a.cols(), DEPTH, 1) {
        for cols in pieces(b.cols(), most_cols, tile.cols) {
            pack_rows::<T, MIN>(&mut b_block, b, &depth, &cols, tile.cols);
            for rows in pieces(a.rows(), most_rows, tile.rows) {
                pack_cols::<T, MIN>(&mut a_block, a, &rows, &depth, tile.rows);
                let part = c.tile(rows.start, cols.start, rows.len(), cols.len());
                sweep::<T, MIN>(tile, depth.len(), a_block.elements(), b_block.elements(), part);
            }
        }
    }
}

/// 0..n in near-equal pieces of at most about `most`, all but the last a multiple of `unit`.
fn pieces(n: usize, most: usize, unit: usize) -> impl Iterator<Item = Range<usize>> {
    let length = n.div_ceil(n.div_ceil(most).max(1)).next_multiple_of(unit).max(1);
    (0..n).step_by(length).map(move |start| start..(start + length).min(n))
}

/// Memory for a packed block that starts on a cache line, so that no vector straddles two.
struct Packed<T> {
    memory: Vec<T>,
    length: usize,
}

impl<T: Tropical> Packed<T> {
    /// Room for blocks of up to `most` elements.
    fn new(most: usize) -> Self {
        Self { memory: vec![T::NOUGHT; most + LINE / size_of::<T>()], length: 0 }
    }

    /// The first `length` elements, to be filled.
    fn reset(&mut self, length: usize) -> &mut [T] {
        self.length = length;
        let start = self.memory.as_ptr().align_offset(LINE);
        &mut self.memory[start..][..length]
    }

    fn elements(&self) -> &[T] {
        &self.memory[self.memory.as_ptr().align_offset(LINE)..][..self.length]
    }
}

/// A block of B as strips of `width` columns, row after row, the last strip filled up with zeros.
fn pack_rows<T: Tropical, const MIN: bool>(
    block: &mut Packed<T>,
    b: View<T>,
    depth: &Range<usize>,
    cols: &Range<usize>,
    width: usize,
) {
    let block = block.reset(depth.len() * cols.len().next_multiple_of(width));
    for (p, row) in depth.clone().enumerate() {
        for (strip, from) in b.row(row)[cols.clone()].chunks(width).enumerate() {
            let to = &mut block[(strip * depth.len() + p) * width..][..width];
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.packed::<MIN>();
            }
            to[from.len()..].fill(T::zero::<MIN>().packed::<MIN>());
        }
    }
}

/// A block of A as strips of `height` rows, column after column, the last strip filled up with zeros.
fn pack_cols<T: Tropical, const MIN: bool>(
    block: &mut Packed<T>,
    a: View<T>,
    rows: &Range<usize>,
    depth: &Range<usize>,
    height: usize,
) {
    let block = block.reset(depth.len() * rows.len().next_multiple_of(height));
    for (strip, to) in block.chunks_exact_mut(depth.len() * height).enumerate() {
        let first = rows.start + strip * height;
        if height == 8 && first + 8 <= rows.end {
            interleave::<T, MIN>(to, std::array::from_fn(|i| &a.row(first + i)[depth.clone()]));
            continue;
        }
        for i in 0..height {
            let to = to[i..].iter_mut().step_by(height);
            if first + i < rows.end {
                to.zip(&a.row(first + i)[depth.clone()]).for_each(|(to, from)| *to = from.packed::<MIN>());
            } else {
                to.for_each(|to| *to = T::zero::<MIN>().packed::<MIN>());
            }
        }
    }
}

/// Eight rows, column after column, with all bounds known beforehand.
fn interleave<T: Tropical, const MIN: bool>(to: &mut [T], rows: [&[T]; 8]) {
    let depth = to.len() / 8;
    let rows = rows.map(|row| &row[..depth]);
    for (p, to) in to.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *to = std::array::from_fn(|i| rows[i][p].packed::<MIN>());
    }
}

/// All tiles of a part of C, a strip of B at a time.
fn sweep<T: Tropical, const MIN: bool>(
    tile: &Tile<T>,
    depth: usize,
    a_block: &[T],
    b_block: &[T],
    mut c: ViewMut<T>,
) {
    let mut edge = vec![T::zero::<MIN>(); tile.rows * tile.cols];
    for (b_strip, j) in b_block.chunks_exact(depth * tile.cols).zip((0..).step_by(tile.cols)) {
        for (a_strip, i) in a_block.chunks_exact(depth * tile.rows).zip((0..).step_by(tile.rows)) {
            let (rows, cols) = (tile.rows.min(c.rows() - i), tile.cols.min(c.cols() - j));
            let mut part = c.tile(i, j, rows, cols);
            let (a, b) = (a_strip.as_ptr(), b_strip.as_ptr());
            if rows == tile.rows && cols == tile.cols {
                let stride = part.stride();
                // SAFETY: the strips hold `depth` columns and rows of the tile's height and width, `part` is a
                // whole tile, and `Element::tiles` offers only what the processor has.
                unsafe { (tile.update)(depth, a, b, part.as_mut_ptr(), stride) }
                continue;
            }
            edge.fill(T::zero::<MIN>());
            // SAFETY: as above, with `edge` as the whole tile.
            unsafe { (tile.update)(depth, a, b, edge.as_mut_ptr(), tile.cols) }
            for (i, best) in edge.chunks_exact(tile.cols).take(rows).enumerate() {
                for (old, new) in part.row(i).iter_mut().zip(best) {
                    *old = new.over::<MIN>(*old);
                }
            }
        }
    }
}
