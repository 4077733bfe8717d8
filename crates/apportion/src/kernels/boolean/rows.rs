//! Row by row: each 1 of A adds a row of B.

#![allow(unsafe_code)]

use crate::kernels::boolean::BitMatrix;
use crate::kernels::boolean::matrix::{CHUNK, Chunk};
use crate::kernels::boolean::wide::Wide;

/// Rows of C of at most this many chunks are kept in registers while bits of A lead straight to rows of B. In
/// wider ones the columns of all ones are listed first, which costs less than to read A once for each strip.
const NARROW: usize = 4;

/// Whether [`narrow`] multiplies; otherwise [`listed`] does.
pub(super) fn is_narrow(b: &BitMatrix) -> bool {
    b.width() <= NARROW
}

/// C |= A B where rows of B and C have at most [`NARROW`] chunks.
///
/// # Safety
/// The processor has the feature of `W`; the same holds for all functions below.
///
/// # Panics
/// If rows have more chunks.
#[inline(always)]
pub(super) unsafe fn narrow<W: Wide>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match b.width() {
            0 => (),
            1 => exactly::<W, 1>(c, a, b),
            2 => exactly::<W, 2>(c, a, b),
            3 => exactly::<W, 3>(c, a, b),
            NARROW => exactly::<W, NARROW>(c, a, b),
            width => unreachable!("{width} chunks are a wide row"),
        }
    }
}

/// Where rows of B and C have `WIDTH` chunks.
///
/// Each word of A that has ones adds two rows at a time, one of them twice where the number of ones is odd: a
/// branch on a single 1 would be mispredicted so often that it would take longer than the row.
#[inline(always)]
unsafe fn exactly<W: Wide, const WIDTH: usize>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    let rows_of_a = a.chunks().chunks_exact(a.width().max(1));
    let rows_of_c = c.chunks_mut().as_chunks_mut::<WIDTH>().0.iter_mut();
    let b = b.chunks().as_chunks::<WIDTH>().0;
    for (chunks, row) in rows_of_a.zip(rows_of_c) {
        // SAFETY: guaranteed by the caller, here and below.
        let mut sums = row.each_ref().map(|chunk| unsafe { W::load(chunk) });
        for (chunk, b) in chunks.iter().zip(b.chunks(64 * CHUNK)) {
            // SAFETY: as above.
            let mut places = unsafe { W::load(chunk).places() };
            while places != 0 {
                let place = places.trailing_zeros() as usize;
                places &= places - 1;
                let (b, mut left) = (&b[64 * place..], chunk.0[place]);
                while left != 0 {
                    let first = left.trailing_zeros() as usize;
                    left &= left - 1;
                    let second = if left == 0 { first } else { left.trailing_zeros() as usize };
                    left &= left.wrapping_sub(1);
                    for (sum, (x, y)) in sums.iter_mut().zip(b[first].iter().zip(&b[second])) {
                        // SAFETY: as above.
                        *sum = unsafe { sum.or(W::load(x)).or(W::load(y)) };
                    }
                }
            }
        }
        for (chunk, sum) in row.iter_mut().zip(sums) {
            // SAFETY: as above.
            unsafe { sum.store(chunk) }
        }
    }
}

/// C |= A B, each row of C in strips of at most `WIDEST` chunks, as many as fit the registers.
#[inline(always)]
pub(super) unsafe fn listed<W: Wide, const WIDEST: usize>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    let mut room = Vec::new();
    for i in 0..a.rows() {
        let (ones, row, mut start) = (a.ones_of(i, &mut room), c.row_mut(i), 0);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if WIDEST >= 8 {
                strips::<W, 8>(row, &mut start, ones, b);
            }
            if WIDEST >= 4 {
                strips::<W, 4>(row, &mut start, ones, b);
            }
            strips::<W, 2>(row, &mut start, ones, b);
            strips::<W, 1>(row, &mut start, ones, b);
        }
    }
}

/// From `start` on, `STRIP` chunks at a time, which stay in registers while the rows of B pass by.
#[inline(always)]
unsafe fn strips<W: Wide, const STRIP: usize>(
    row: &mut [Chunk],
    start: &mut usize,
    ones: &[usize],
    b: &BitMatrix,
) {
    for strip in row[*start..].as_chunks_mut::<STRIP>().0 {
        // SAFETY: guaranteed by the caller, here and below.
        let mut sums = strip.each_ref().map(|chunk| unsafe { W::load(chunk) });
        for &p in ones {
            for (sum, from) in sums.iter_mut().zip(&b.row(p)[*start..][..STRIP]) {
                // SAFETY: as above.
                *sum = unsafe { sum.or(W::load(from)) };
            }
        }
        for (chunk, sum) in strip.iter_mut().zip(sums) {
            // SAFETY: as above.
            unsafe { sum.store(chunk) }
        }
        *start += STRIP;
    }
}
