//! Redistribution from the rectangles that ranks hold to those that they need.

use super::World;
use super::collectives::{packed, unpacked};
use crate::error::Result;
use crate::geometry::{Rect, Span};
use crate::matrix::{BlockViews, Element, LocalBlocks, views_of};

/// Returns the rectangles of a matrix that this rank wants; each rank holds some rectangles of it. Every
/// element travels once, directly from a rank that holds it. If several ranks hold an element, the lowest one
/// sends it; a rank's own elements are not sent. Elements that no rank holds are `T::ZERO`. All ranks must
/// call it. O(p R) for R rectangles of all ranks.
///
/// # Errors
/// Interrupted; another rank failed.
pub fn redistribute<T: Element>(
    world: &World,
    mine: &LocalBlocks<T>,
    wanted: &[Rect],
) -> Result<LocalBlocks<T>> {
    redistribute_views(world, &views_of(mine), wanted)
}

/// [`redistribute`] of borrowed blocks.
pub(crate) fn redistribute_views<T: Element>(
    world: &World,
    mine: &BlockViews<'_, T>,
    wanted: &[Rect],
) -> Result<LocalBlocks<T>> {
    let mut result: LocalBlocks<T> =
        wanted.iter().map(|rect| (*rect, vec![T::ZERO; rect.area() as usize])).collect();
    for (rect, elements) in mine {
        result.iter_mut().for_each(|(to, target)| copy_common(*rect, elements, *to, target));
    }
    if world.size() == 1 {
        return Ok(result);
    }
    let owned: Vec<Rect> = mine.iter().map(|(rect, _)| *rect).collect();
    let owned = rects_of_all(world, &owned)?;
    let wanted = rects_of_all(world, wanted)?;
    let exchange = Exchange { owned, wanted };
    let (rank, size) = (world.rank(), world.size());
    // In cyclic order, so that the ranks do not all address one rank at the same time.
    for distance in 1..size {
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        let bytes: Vec<u8> = exchange.pieces(rank, to).iter().flat_map(|rect| cut(mine, *rect)).collect();
        let expected = exchange.pieces(from, rank);
        let count = expected.iter().map(|rect| rect.area() as usize * size_of::<T>()).sum::<usize>();
        let words = |bytes: usize| if bytes == 0 { 0 } else { 1 + bytes.div_ceil(8) };
        let going = if bytes.is_empty() { Vec::new() } else { packed(&bytes) };
        if going.is_empty() && count == 0 {
            continue;
        }
        let coming = exchange_if(world, going, to, words(count), from)?;
        let Some(coming) = coming else { continue };
        let came = unpacked(&coming);
        let mut rest = &came[..];
        for rect in expected {
            let (bytes, others) = rest.split_at(rect.area() as usize * size_of::<T>());
            let elements: Vec<T> =
                bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
            result.iter_mut().for_each(|(to, target)| copy_common(rect, &elements, *to, target));
            rest = others;
        }
    }
    Ok(result)
}

/// Sends and receives the messages that are not empty; both ends know which these are.
fn exchange_if(
    world: &World,
    going: Vec<u64>,
    to: usize,
    count: usize,
    from: usize,
) -> Result<Option<Vec<u64>>> {
    match (going.is_empty(), count) {
        (false, 0) => world.send(going, to).map(|()| None),
        (true, count) => world.recv(count, from).map(Some),
        (false, count) => world.exchange(going, to, count, from).map(Some),
    }
}

/// The rectangles that each rank holds and wants.
struct Exchange {
    owned: Vec<Vec<Rect>>,
    wanted: Vec<Vec<Rect>>,
}

impl Exchange {
    /// The rectangles that one rank sends to another, in the same order at both ends: those that the other
    /// wants and does not hold, without those that a lower rank sends.
    fn pieces(&self, from: usize, to: usize) -> Vec<Rect> {
        let mut pieces = Vec::new();
        for wanted in &self.wanted[to] {
            for owned in &self.owned[from] {
                let mut left = vec![owned.intersect(*wanted)];
                let others = self.owned[..from].iter().chain([&self.owned[to]]).flatten();
                for other in others {
                    left = left.into_iter().flat_map(|rect| without(rect, *other)).collect();
                }
                pieces.extend(left.into_iter().filter(|rect| !rect.is_empty()));
            }
        }
        pieces
    }
}

/// The difference of two rectangles: at most four rectangles.
fn without(rect: Rect, other: Rect) -> Vec<Rect> {
    let common = rect.intersect(other);
    if common.is_empty() {
        return vec![rect];
    }
    let parts = [
        Rect::new(Span::new(rect.rows.start, common.rows.start), rect.cols),
        Rect::new(Span::new(common.rows.end, rect.rows.end), rect.cols),
        Rect::new(common.rows, Span::new(rect.cols.start, common.cols.start)),
        Rect::new(common.rows, Span::new(common.cols.end, rect.cols.end)),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// Every rank's rectangles, on all ranks.
fn rects_of_all(world: &World, rects: &[Rect]) -> Result<Vec<Vec<Rect>>> {
    let numbers: Vec<u64> =
        rects.iter().flat_map(|r| [r.rows.start, r.rows.end, r.cols.start, r.cols.end]).collect();
    let rect = |n: &[u64]| Rect::new(Span::new(n[0], n[1]), Span::new(n[2], n[3]));
    let all = world.all_gather_numbers(&numbers)?;
    Ok(all.iter().map(|numbers| numbers.chunks_exact(4).map(rect).collect()).collect())
}

/// The bytes of a rectangle that lies within one block of a rank.
fn cut<T: Element>(blocks: &BlockViews<'_, T>, rect: Rect) -> Vec<u8> {
    let mut elements = vec![T::ZERO; rect.area() as usize];
    let holds = blocks.iter().find(|(owned, _)| owned.intersect(rect) == rect);
    let (owned, source) = holds.expect("only what is owned is sent");
    copy_common(*owned, source, rect, &mut elements);
    bytemuck::cast_slice(&elements).to_vec()
}

/// Copies the intersection of two rectangles.
fn copy_common<T: Copy>(from: Rect, source: &[T], to: Rect, target: &mut [T]) {
    let common = from.intersect(to);
    if common.is_empty() {
        return;
    }
    let width = common.cols.len() as usize;
    let at = |rect: &Rect, row: u64| {
        (row - rect.rows.start) as usize * rect.cols.len() as usize
            + (common.cols.start - rect.cols.start) as usize
    };
    for row in common.rows.start..common.rows.end {
        let (first, place) = (at(&from, row), at(&to, row));
        target[place..place + width].copy_from_slice(&source[first..first + width]);
    }
}
