//! What layouts with boxes cost: elements that travel, and elements of C that need no message.

use super::{Cuboid, cells, segments};
use crate::geometry::SpanSet;
use crate::plan::{Layout, Shape, merged};

/// Elements that travel: for each processor the distinct elements of A and B that its boxes need and of C
/// that they compute, without those of each matrix that its owner has anyway.
pub(in crate::plan) fn volume(layout: &Layout, boxes: &[Cuboid]) -> u64 {
    let Shape { m, k, n } = layout.shape();
    let touched: u128 = (0..layout.processors()).map(|rank| touched(own(boxes, rank))).sum();
    let [m, k, n] = [m, k, n].map(u128::from);
    u64::try_from(touched - m * k - k * n - m * n).unwrap_or(u64::MAX)
}

/// Distinct elements of the three matrices that one processor's boxes touch.
fn touched<'a>(own: impl Iterator<Item = &'a Cuboid> + Clone) -> u128 {
    let lines: u128 = segments(own.clone())
        .iter()
        .map(|s| u128::from(s.inner.len()) * (u128::from(s.rows.len()) + u128::from(s.cols.len())))
        .sum();
    let faces: Vec<_> = own.map(Cuboid::face).collect();
    lines + merged(&faces).iter().map(|rect| u128::from(rect.area())).sum::<u128>()
}

/// The boxes of one processor.
pub(in crate::plan) fn own(boxes: &[Cuboid], rank: usize) -> impl Iterator<Item = &Cuboid> + Clone {
    boxes.iter().filter(move |one| one.owner.0 == rank)
}

/// Elements as `[receiver][sender]`. Partial sums go from each processor of a cell to the one before it.
pub(in crate::plan) fn directions(layout: &Layout, boxes: &[Cuboid]) -> Vec<Vec<u64>> {
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
pub(in crate::plan) fn communication_free(
    processors: usize,
    boxes: &[Cuboid],
    owned: &[(SpanSet, SpanSet)],
) -> Vec<u64> {
    let mut free = vec![0; processors];
    for cell in cells(boxes) {
        if let [alone] = cell.chain[..] {
            let (rows, cols) = &owned[alone.0];
            free[alone.0] += rows.count_in(cell.rect.rows) * cols.count_in(cell.rect.cols);
        }
    }
    free
}
