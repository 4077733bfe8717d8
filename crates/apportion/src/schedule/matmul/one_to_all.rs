//! One-to-all flow: heterogeneous SUMMA on any layout (Malik 2016, section 3.2.1; Becker 2010, section
//! 2.3.2).
//!
//! For each pivot block, the owners of the block column of A and of the block row of B send it to all
//! processors that need it. Then all processors update their parts of C. With overlap, the blocks of the
//! look-ahead are in flight during the update.

use super::{MatmulSchedule, MatmulStep, Step, Update};
use crate::geometry::Rank;
use std::collections::VecDeque;

/// Steps of `rank`. Cost per pivot block: O(bands of its rows and columns x log p + its messages).
pub(super) fn steps(schedule: &MatmulSchedule, rank: Rank) -> impl Iterator<Item = MatmulStep> + '_ {
    let count = schedule.pivot_count();
    let ahead = schedule.order.ahead();
    let mut next = 0;
    let mut awaits: VecDeque<Vec<MatmulStep>> = VecDeque::new();
    (0..count).flat_map(move |t| {
        let mut steps = Vec::new();
        while next < count && next <= t.saturating_add(ahead) {
            let (starts, arrivals) = schedule.posts(rank, schedule.pivot(next), next as u64);
            steps.extend(starts);
            awaits.push_back(arrivals.collect());
            next += 1;
        }
        let talks = !steps.is_empty();
        steps.extend(awaits.pop_front().into_iter().flatten());
        if talks && ahead == 0 {
            steps.push(Step::WaitSends);
        }
        let inner = schedule.pivot(t);
        steps.extend(schedule.rects(rank).iter().map(|&rect| Step::Compute(Update { rect, inner })));
        steps.push(Step::Free(schedule.all(inner)));
        if ahead > 0 && t + 1 == count {
            steps.push(Step::WaitSends);
        }
        steps
    })
}

/// The senders of a pivot block, which is one turn. O(p) per turn.
pub(super) fn senders(schedule: &MatmulSchedule, turn: u64) -> Option<Vec<Rank>> {
    let turn = usize::try_from(turn).ok().filter(|&turn| turn < schedule.pivot_count())?;
    Some(schedule.senders_of(schedule.pivot(turn)))
}
