//! One-to-all flow: heterogeneous SUMMA on any layout (Malik 2016, section 3.2.1; Becker 2010, section
//! 2.3.2).
//!
//! For each pivot block, the owners of the block column of A and of the block row of B send it to all
//! processors that need it. Then all processors update their parts of C. With overlap, the blocks of the
//! look-ahead are in flight during the update.

use super::{MatmulSchedule, MatmulStep, Step, Update};
use crate::geometry::Rank;
use std::collections::VecDeque;

/// Steps of `rank`, generated one at a time: with many processors, the steps of a pivot block do not fit into
/// memory for all of them. Cost per pivot block: O(bands of its rows and columns x log p + its messages).
pub(super) fn steps(schedule: &MatmulSchedule, rank: Rank) -> impl Iterator<Item = MatmulStep> + '_ {
    let count = schedule.pivot_count();
    let ahead = schedule.order.ahead();
    let mut next = 0;
    let mut awaits = VecDeque::new();
    (0..count).flat_map(move |t| {
        let mut starts = Vec::new();
        while next < count && next <= t.saturating_add(ahead) {
            let (posts, arrivals) = schedule.posts(rank, schedule.pivot(next), next as u64);
            starts.push(posts);
            awaits.push_back(arrivals);
            next += 1;
        }
        let mut starts = starts.into_iter().flatten().peekable();
        let flushed = ahead == 0 && starts.peek().is_some();
        let inner = schedule.pivot(t);
        let update = move |&rect| Step::Compute(Update { rect, inner });
        let flush = |now: bool| now.then_some(Step::WaitSends);
        starts
            .chain(awaits.pop_front().into_iter().flatten())
            .chain(flush(flushed))
            .chain(schedule.rects(rank).iter().map(update))
            .chain([Step::Free(schedule.all(inner))])
            .chain(flush(ahead > 0 && t + 1 == count))
    })
}

/// The senders of a pivot block, which is one turn. O(p) per turn.
pub(super) fn senders(schedule: &MatmulSchedule, turn: u64) -> Option<Vec<Rank>> {
    let turn = usize::try_from(turn).ok().filter(|&turn| turn < schedule.pivot_count())?;
    Some(schedule.senders_of(schedule.pivot(turn)))
}
