//! By tables of all unions of four rows of B, which each row of C looks up.

#![allow(unsafe_code)]

use crate::kernels::boolean::BitMatrix;
use crate::kernels::boolean::matrix::{CHUNK, Chunk};
use crate::kernels::boolean::wide::Wide;
use std::ops::Range;

/// All unions of [`GROUP`] rows.
type Table = [Chunk; 1 << GROUP];
/// The tables for one word of A.
struct Tables([Table; 64 / GROUP]);

/// Rows of B that one table covers. The 16 tables for a word of A take 16 KiB, within a first-level cache.
pub(super) const GROUP: usize = 4;

/// C |= A B.
///
/// # Safety
/// The processor has the feature of `W`; the same holds for all functions below.
#[inline(always)]
pub(super) unsafe fn by_tables<W: Wide>(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    let m = a.rows();
    // Word after word, in the order in which they are read: rows a power of two apart would compete for the
    // same cache lines.
    let words: Vec<u64> =
        (0..a.cols().div_ceil(64)).flat_map(|w| (0..m).map(move |i| a.words(i)[w])).collect();
    let mut tables = Tables([[Chunk([0; CHUNK]); 1 << GROUP]; 64 / GROUP]);
    let mut strip = Vec::with_capacity(m);
    let mut unfinished = Vec::with_capacity(m);
    let mut rest = vec![Chunk([0; CHUNK]); a.cols().div_ceil(64) + 1];
    for place in 0..b.width() {
        strip.clear();
        strip.extend((0..m).map(|i| c.row(i)[place]));
        unfinished.clear();
        // SAFETY: guaranteed by the caller, here and below.
        unsafe {
            unite::<W>(&mut rest, b, place);
            unfinished.extend((0..m).filter(|&i| !W::load(&strip[i]).covers(W::load(&rest[0]))));
        }
        for (at, words) in words.chunks_exact(m.max(1)).enumerate() {
            if unfinished.is_empty() {
                break;
            }
            for (table, first) in tables.0.iter_mut().zip((64 * at..).step_by(GROUP)) {
                // SAFETY: guaranteed by the caller.
                unsafe { fill::<W>(table, b, place, first..b.rows().min(first + GROUP)) }
            }
            let mut kept = 0;
            for at_row in 0..unfinished.len() {
                let i: usize = unfinished[at_row];
                // SAFETY: guaranteed by the caller.
                let done = unsafe { add::<W>(&mut strip[i], words[i], &tables, &rest[at + 1]) };
                unfinished[kept] = i;
                kept += usize::from(!done);
            }
            unfinished.truncate(kept);
        }
        for (i, &chunk) in strip.iter().enumerate() {
            c.row_mut(i)[place] = chunk;
        }
    }
}

/// Sets each element to the union of all rows of B from its word of A on: what a row of C may still gain.
#[inline(always)]
unsafe fn unite<W: Wide>(rest: &mut [Chunk], b: &BitMatrix, place: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut union = W::load(&Chunk([0; CHUNK]));
        for (at, rest) in rest.iter_mut().enumerate().rev() {
            for row in 64 * at..b.rows().min(64 * (at + 1)) {
                union = union.or(W::load(&b.row(row)[place]));
            }
            union.store(rest);
        }
    }
}

/// Adds the table entries that the word's groups of bits select, one from each table. True if the sum has all
/// that the row may still gain.
#[inline(always)]
unsafe fn add<W: Wide>(chunk: &mut Chunk, word: u64, tables: &Tables, rest: &Chunk) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sum = W::load(chunk);
        for (t, table) in tables.0.iter().enumerate() {
            sum = sum.or(W::load(&table[(word >> (t * GROUP)) as usize % (1 << GROUP)]));
        }
        sum.store(chunk);
        sum.covers(W::load(rest))
    }
}

/// Sets entry x to the union of the rows whose bits are set in x. Each entry takes one union, with the entry
/// that lacks the highest bit of x.
#[inline(always)]
unsafe fn fill<W: Wide>(table: &mut Table, b: &BitMatrix, place: usize, rows: Range<usize>) {
    table[0] = Chunk([0; CHUNK]);
    for (bit, row) in rows.enumerate() {
        let (known, new) = table.split_at_mut(1 << bit);
        for (new, known) in new.iter_mut().zip(known) {
            // SAFETY: guaranteed by the caller.
            unsafe { W::load(known).or(W::load(&b.row(row)[place])).store(new) }
        }
    }
}
