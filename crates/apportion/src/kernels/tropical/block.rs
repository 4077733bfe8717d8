//! The outer loops: they cut A and B into blocks that fit the caches, and copy them so that tiles read memory
//! in order.

#![allow(unsafe_code)]

use crate::kernels::tropical::element::Element;
use crate::kernels::tropical::tile::MicroKernel;
use crate::kernels::view::check_shapes;
use crate::kernels::{View, ViewMut};
use std::cell::RefCell;
use std::ops::Range;
use std::slice::from_raw_parts_mut;

/// Bytes in a row of a block: its depth is 384 elements of eight bytes, or 768 of four. Each block reads and
/// writes C once. At 2,048 x 2,048 x 2,048, depths of 128, 256 and 384 reach 0.77, 0.85 and 0.89 of the
/// registers' peak in f64; 384 and 768 reach about 0.80 and 0.83 in i32 (one Zen 5 core), although a strip of
/// B no longer fits the first-level cache.
const DEPTH_BYTES: usize = 3 << 10;
/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;
/// Bytes of a packed block of A: half a second-level cache.
const A_BYTES: usize = 512 << 10;
/// Bytes of a packed block of B: a share of the last cache.
const B_BYTES: usize = 4 << 20;

/// C := C over A x B with the given tile. Returns false, with C updated by only some of the sums, if an
/// integer is too large for plain sums. Shapes must fit. Inlined, as is everything below, into functions
/// compiled for the tile's registers, since packing also benefits from vectors.
#[inline(always)]
pub(super) fn product<T: Element, const MIN: bool>(
    tile: &MicroKernel<T>,
    a: View<T>,
    b: View<T>,
    mut c: ViewMut<T>,
) -> bool {
    check_shapes(&a, &b, &c);
    let element = size_of::<T>();
    let most = DEPTH_BYTES / element;
    let (most_rows, most_cols) = (A_BYTES / DEPTH_BYTES, B_BYTES / DEPTH_BYTES);
    let deepest = a.cols().min(most);
    let a_length = deepest * a.rows().min(most_rows).next_multiple_of(tile.rows);
    let b_length = deepest * b.cols().min(most_cols).next_multiple_of(tile.cols);
    with_scratch(a_length, b_length, |a_block, b_block| {
        for depth in pieces(a.cols(), most, 1) {
            for cols in pieces(b.cols(), most_cols, tile.cols) {
                let b_block = &mut b_block[..depth.len() * cols.len().next_multiple_of(tile.cols)];
                if !pack_rows::<T, MIN>(b_block, b, &depth, &cols, tile.cols) {
                    return false;
                }
                for rows in pieces(a.rows(), most_rows, tile.rows) {
                    let a_block = &mut a_block[..depth.len() * rows.len().next_multiple_of(tile.rows)];
                    if !pack_cols::<T, MIN>(tile, a_block, a, &rows, &depth) {
                        return false;
                    }
                    let part = c.tile(rows.start, cols.start, rows.len(), cols.len());
                    sweep::<T, MIN>(tile, depth.len(), a_block, b_block, part);
                }
            }
        }
        true
    })
}

/// 0..n in near-equal pieces of at most about `most`, all but the last a multiple of `unit`.
fn pieces(n: usize, most: usize, unit: usize) -> impl Iterator<Item = Range<usize>> {
    let length = n.div_ceil(n.div_ceil(most).max(1)).next_multiple_of(unit).max(1);
    (0..n).step_by(length).map(move |start| start..(start + length).min(n))
}

/// A cache line of memory.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "only its room is wanted")] [u8; LINE]);

thread_local! {
    /// Each thread's memory for packed blocks. It is kept between products, since fresh pages would cost as
    /// much as the packing.
    static SCRATCH: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with two blocks of the given numbers of elements, both aligned to cache lines, so that no
/// vector straddles two. Their contents are unspecified.
#[inline(always)]
fn with_scratch<T: Element, R>(a: usize, b: usize, work: impl FnOnce(&mut [T], &mut [T]) -> R) -> R {
    let lines = |elements: usize| (elements * size_of::<T>()).div_ceil(LINE);
    SCRATCH.with_borrow_mut(|scratch| {
        let needed = lines(a) + lines(b);
        if scratch.len() < needed {
            scratch.resize(needed, Line([0; LINE]));
        }
        let (for_a, for_b) = scratch.split_at_mut(lines(a));
        // SAFETY: the lines are initialised bytes, enough of them, and aligned for any number; every bit
        // pattern is a number of the four types that are `Tropical`; the two slices do not overlap and live
        // as long as the borrow.
        let (for_a, for_b) = unsafe {
            (
                from_raw_parts_mut(for_a.as_mut_ptr().cast(), a),
                from_raw_parts_mut(for_b.as_mut_ptr().cast(), b),
            )
        };
        work(for_a, for_b)
    })
}

/// A block of B as strips of `width` columns, row after row, with the last strip padded with zeros. False if
/// an element is too large for plain sums.
#[inline(always)]
fn pack_rows<T: Element, const MIN: bool>(
    block: &mut [T],
    b: View<T>,
    depth: &Range<usize>,
    cols: &Range<usize>,
    width: usize,
) -> bool {
    let mut tame = true;
    for (p, row) in depth.clone().enumerate() {
        for (strip, from) in b.row(row)[cols.clone()].chunks(width).enumerate() {
            let to = &mut block[(strip * depth.len() + p) * width..][..width];
            to[..from.len()].copy_from_slice(from);
            to[from.len()..].fill(T::zero::<MIN>());
            tame &= T::prepare::<MIN>(to);
        }
    }
    tame
}

/// A block of A as strips of `tile.rows` rows, column after column, with the last strip padded with zeros.
/// False if an element is too large for plain sums.
#[inline(always)]
fn pack_cols<T: Element, const MIN: bool>(
    tile: &MicroKernel<T>,
    block: &mut [T],
    a: View<T>,
    rows: &Range<usize>,
    depth: &Range<usize>,
) -> bool {
    let height = tile.rows;
    let mut tame = true;
    for (strip, whole) in block.chunks_exact_mut(depth.len() * height).enumerate() {
        let first = rows.start + strip * height;
        let (mut done, to) = (0, &mut *whole);
        if let Some(interleave) = tile.interleave.filter(|_| first + 8 <= rows.end) {
            done = depth.len() / 8 * 8;
            let from: [&[T]; 8] = std::array::from_fn(|i| &a.row(first + i)[depth.clone()]);
            // SAFETY: there are eight rows of at least `done` elements, a multiple of eight, and room for
            // them all. `Element::tiles` offers only tiles that the processor supports, and only tiles of
            // eight rows have the function.
            unsafe { interleave(done, from.map(<[T]>::as_ptr), to.as_mut_ptr()) }
        }
        let to = &mut to[done * height..];
        for i in 0..if to.is_empty() { 0 } else { height } {
            let to = to[i..].iter_mut().step_by(height);
            if first + i < rows.end {
                to.zip(&a.row(first + i)[depth.clone()][done..]).for_each(|(to, from)| *to = *from);
            } else {
                to.for_each(|to| *to = T::zero::<MIN>());
            }
        }
        // While the strip is in the first-level cache.
        tame &= T::prepare::<MIN>(whole);
    }
    tame
}

/// All tiles of a part of C, one strip of B at a time.
#[inline(always)]
fn sweep<T: Element, const MIN: bool>(
    tile: &MicroKernel<T>,
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
                // SAFETY: the strips hold `depth` columns and rows of the tile's height and width, `part` is
                // a whole tile, and `Element::tiles` offers only tiles that the processor supports.
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
