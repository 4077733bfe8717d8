//! Boxes of the m x n x k multiply-adds of a product: layouts that also cut the inner dimension.
//!
//! A processor computes the partial sums of its boxes. The owner of an element of C is the processor whose
//! box covers it at inner index 0; partial sums travel to it. The elements of A and B belong to the
//! processors whose boxes cover them at the same inner index, cut in proportion as in every
//! [`Layout`](super::Layout).

mod overlay;

pub(crate) use overlay::{Cell, Segment, between, cells, segments};

use super::{Layout, OwnedLines, Part, Shape, merged};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use std::collections::BTreeMap;

/// The largest number of boxes of a layout: their overlay takes seconds.
const MOST_BOXES: usize = 4096;

/// Rows x columns x inner indices of a product, and the processor that computes their partial sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuboid {
    /// The rank of the processor.
    pub owner: Rank,
    /// Its rows of A and C.
    pub rows: Span,
    /// Its columns of B and C.
    pub cols: Span,
    /// Its columns of A and rows of B.
    pub inner: Span,
}

impl Cuboid {
    /// A box from its face of C and its inner indices.
    pub fn new(owner: Rank, face: Rect, inner: Span) -> Self {
        Self { owner, rows: face.rows, cols: face.cols, inner }
    }

    /// Its elements of C.
    pub(crate) fn face(&self) -> Rect {
        Rect::new(self.rows, self.cols)
    }

    /// Its face of C with its owner.
    pub(super) fn part(&self) -> Part {
        Part::new(self.owner, self.face())
    }

    /// Number of multiply-adds.
    pub(crate) fn work(&self) -> u128 {
        u128::from(self.face().area()) * u128::from(self.inner.len())
    }

    /// True if there is no multiply-add.
    pub(crate) fn is_empty(&self) -> bool {
        self.face().is_empty() || self.inner.is_empty()
    }
}

/// The boxes that are not empty, in reading order, each within the product.
///
/// # Errors
/// A reversed range, a box outside the product, an owner that does not exist, or too many boxes: exit code 2.
pub(super) fn checked(
    shape: Shape,
    processors: usize,
    boxes: impl IntoIterator<Item = Cuboid>,
) -> Result<Vec<Cuboid>> {
    let mut kept = Vec::new();
    for one in boxes {
        let Cuboid { owner, rows, cols, inner } = one;
        let place = || {
            format!(
                "layout: box rows [{}, {}] cols [{}, {}] inner [{}, {}] of processor {}",
                rows.start, rows.end, cols.start, cols.end, inner.start, inner.end, owner.0
            )
        };
        if [rows, cols, inner].iter().any(|span| span.start > span.end) {
            let remedy = "write [first, one past the last]";
            return Err(Error::input(place(), "a range ends before it starts", remedy));
        }
        if rows.end > shape.m || cols.end > shape.n || inner.end > shape.k {
            let what = format!(
                "reaches outside the {} x {} matrix or the inner dimension of {}",
                shape.m, shape.n, shape.k
            );
            return Err(Error::input(place(), what, "keep every box within the product"));
        }
        if owner.0 >= processors {
            let what = format!("processor {} does not exist (there are {processors})", owner.0);
            return Err(Error::input(place(), what, "number owners from 0"));
        }
        if !one.is_empty() {
            kept.push(one);
        }
    }
    if kept.len() > MOST_BOXES {
        let what = format!("{} entries with inner ranges, more than {MOST_BOXES}", kept.len());
        return Err(Error::input("layout", what, "use fewer and larger boxes"));
    }
    kept.sort_by_key(|b| (b.rows.start, b.cols.start, b.inner.start, b.owner));
    Ok(kept)
}

/// Checks that every multiply-add is covered once. At each inner index where boxes end or begin, the faces of
/// those that begin must be disjoint and cover the same elements of C as the faces of those that end.
/// O(R^2) for R boxes.
pub(super) fn check_cover(shape: Shape, boxes: &[Cuboid]) -> Result<()> {
    let whole = Rect::new(Span::new(0, shape.m), Span::new(0, shape.n));
    let mut at: BTreeMap<u64, [Vec<Rect>; 2]> = BTreeMap::new();
    at.entry(0).or_default()[0].push(whole);
    at.entry(shape.k).or_default()[1].push(whole);
    for one in boxes {
        at.entry(one.inner.start).or_default()[1].push(one.face());
        at.entry(one.inner.end).or_default()[0].push(one.face());
    }
    for (index, [ended, begun]) in at {
        let (before, after) = (merged(&ended), merged(&begun));
        let twice = area(&after) < area(&begun);
        let differs = (0..before.len().max(after.len())).find(|&i| before.get(i) != after.get(i));
        if let Some(rect) = differs.and_then(|i| before.get(i).or(after.get(i))).or(begun.first())
            && (twice || differs.is_some())
        {
            return Err(Error::input(
                "layout",
                format!(
                    "element ({}, {}) or a neighbour is covered twice, or not at all, at inner index {}",
                    rect.rows.start,
                    rect.cols.start,
                    index.min(shape.k - 1)
                ),
                "cover each row, column and inner index exactly once",
            ));
        }
    }
    Ok(())
}

/// Sum of the areas.
fn area(rects: &[Rect]) -> u128 {
    rects.iter().map(|rect| u128::from(rect.area())).sum()
}

/// Multiply-adds of each processor, by rank.
pub(super) fn work(processors: usize, boxes: &[Cuboid]) -> Vec<u128> {
    let mut work = vec![0; processors];
    boxes.iter().for_each(|one| work[one.owner.0] += one.work());
    work
}

/// Multiply-adds divided by k, in whole numbers that add up to m n: what is left over after rounding down
/// goes to the largest remainders, among equals to the lowest ranks.
pub(super) fn shares(shape: Shape, processors: usize, boxes: &[Cuboid]) -> Vec<u64> {
    let (work, k) = (work(processors, boxes), u128::from(shape.k));
    let mut shares: Vec<u64> = work.iter().map(|w| (w / k) as u64).collect();
    let mut order: Vec<usize> = (0..processors).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(work[i] % k), i));
    let left = shape.elements() - shares.iter().sum::<u64>();
    order.into_iter().take(left as usize).for_each(|i| shares[i] += 1);
    shares
}

/// Elements that travel: for each processor the distinct elements of A and B that its boxes need and of C
/// that they compute, without those of each matrix that its owner has anyway.
pub(super) fn volume(layout: &Layout, boxes: &[Cuboid]) -> u64 {
    let Shape { m, k, n } = layout.shape();
    let touched: u128 = (0..layout.processors()).map(|rank| touched_elements(own(boxes, rank))).sum();
    let [m, k, n] = [m, k, n].map(u128::from);
    u64::try_from(touched - m * k - k * n - m * n).unwrap_or(u64::MAX)
}

/// Distinct elements of the three matrices that one processor's boxes touch.
fn touched_elements<'a>(own: impl Iterator<Item = &'a Cuboid> + Clone) -> u128 {
    let lines: u128 = segments(own.clone())
        .iter()
        .map(|s| u128::from(s.inner.len()) * (u128::from(s.rows.len()) + u128::from(s.cols.len())))
        .sum();
    let faces: Vec<_> = own.map(Cuboid::face).collect();
    lines + merged(&faces).iter().map(|rect| u128::from(rect.area())).sum::<u128>()
}

/// The boxes of one processor.
fn own(boxes: &[Cuboid], rank: usize) -> impl Iterator<Item = &Cuboid> + Clone {
    boxes.iter().filter(move |one| one.owner.0 == rank)
}

/// Elements as `[receiver][sender]`. Partial sums go from each processor of a cell to the one before it.
pub(super) fn directions(layout: &Layout, boxes: &[Cuboid]) -> Vec<Vec<u64>> {
    let p = layout.processors();
    let mut table = vec![vec![0; p]; p];
    let (a, b) = (layout.parts_of_a(), layout.parts_of_b());
    for (to, line) in table.iter_mut().enumerate() {
        for segment in segments(own(boxes, to)) {
            for part in a.iter().filter(|part| part.owner.0 != to) {
                let inner = part.cols.intersect(segment.inner).len();
                line[part.owner.0] += segment.rows.count_in(part.rows) * inner;
            }
            for part in b.iter().filter(|part| part.owner.0 != to) {
                let inner = part.rows.intersect(segment.inner).len();
                line[part.owner.0] += segment.cols.count_in(part.cols) * inner;
            }
        }
    }
    for cell in cells(boxes) {
        for pair in cell.chain.windows(2) {
            table[pair[0].0][pair[1].0] += cell.rect.area();
        }
    }
    table
}

/// Elements of C that each processor computes without any message: those that it computes alone, in whole
/// rows of A and whole columns of B that it owns.
pub(super) fn communication_free(processors: usize, boxes: &[Cuboid], owned: &[OwnedLines]) -> Vec<u64> {
    let mut free = vec![0; processors];
    for cell in cells(boxes) {
        if let [alone] = cell.chain[..] {
            let OwnedLines { rows, cols } = &owned[alone.0];
            free[alone.0] += rows.count_in(cell.rect.rows) * cols.count_in(cell.rect.cols);
        }
    }
    free
}

#[cfg(test)]
pub(crate) mod tests;
