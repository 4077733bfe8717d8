//! Bulk flow: all communication first, then all computation (Becker 2010, sections 5.2, 5.6.1 and 5.6.5).
//!
//! With overlap, the part of C that needs no message is computed while the data travel (section 5.5.4): t =
//! max(communication, free part) + the rest.

use super::{MatmulSchedule, MatmulStep, Step, Update};
use crate::geometry::{Rank, Rect};
use crate::plan::OwnedLines;

/// Steps of `rank`, generated on demand.
pub(super) fn steps(schedule: &MatmulSchedule, rank: Rank) -> impl Iterator<Item = MatmulStep> + '_ {
    let whole = schedule.inner;
    let (starts, awaits) = schedule.posts(rank, whole, 0);
    let mut starts = starts.peekable();
    let talks = starts.peek().is_some();
    let overlaps = schedule.order.overlaps() && talks;
    let (free, rest) =
        if overlaps { split_rects(schedule, rank) } else { (Vec::new(), schedule.rects(rank).to_vec()) };
    let flush = |now: bool| now.then_some(Step::WaitSends);
    starts
        .chain(updates(schedule, free))
        .chain(awaits)
        .chain(flush(talks && !overlaps))
        .chain(updates(schedule, rest))
        .chain(flush(overlaps))
        .chain([Step::Free(schedule.all(whole))])
}

/// Iterates over the blocks within the same rectangles, so that C stays in cache if it fits.
fn updates(schedule: &MatmulSchedule, rects: Vec<Rect>) -> impl Iterator<Item = MatmulStep> + '_ {
    let update = |rect| move |inner| Step::Compute(Update { rect, inner });
    rects.into_iter().flat_map(move |rect| schedule.pivots().map(update(rect)))
}

/// A processor's rectangles, split into the part that needs no message and the rest.
pub(super) fn split_rects(schedule: &MatmulSchedule, rank: Rank) -> (Vec<Rect>, Vec<Rect>) {
    let OwnedLines { rows: free_rows, cols: free_cols } = &schedule.free[rank.0];
    let (mut free, mut rest) = (Vec::new(), Vec::new());
    for rect in schedule.rects(rank) {
        for rows in free_rows.intersect(rect.rows) {
            free.extend(free_cols.intersect(rect.cols).map(|cols| Rect::new(rows, cols)));
            rest.extend(free_cols.subtract_from(rect.cols).into_iter().map(|cols| Rect::new(rows, cols)));
        }
        rest.extend(free_rows.subtract_from(rect.rows).into_iter().map(|rows| Rect::new(rows, rect.cols)));
    }
    (free, rest)
}
