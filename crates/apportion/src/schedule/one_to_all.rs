//! One-to-all flow: heterogeneous SUMMA on any layout (Malik 2016, section 3.2.1; Becker 2010, section 2.3.2).
//!
//! For each pivot block: the owners of the block column of A and of the block row of B send it to everyone who
//! needs it, then all update their parts of C. With overlap the next block is under way during the update.

use super::{Schedule, Step, Update};
use crate::rect::{Rank, Span};

/// Steps of `rank`: per pivot block O(bands of its rows and columns x log p + its messages).
pub(super) fn steps(schedule: &Schedule, rank: Rank) -> impl Iterator<Item = Step> + '_ {
    let pivots: Vec<Span> = schedule.pivots().collect();
    let count = pivots.len();
    let overlap = schedule.order.overlap;
    let mut upcoming: Option<Vec<Step>> = None;
    (0..count).flat_map(move |t| {
        let mut steps = Vec::new();
        let mut post = |t: usize| {
            let (starts, awaits) = schedule.posts(rank, pivots[t], t as u64);
            steps.extend(starts);
            awaits.collect()
        };
        let awaits = upcoming.take().unwrap_or_else(|| post(t));
        if overlap && t + 1 < count {
            upcoming = Some(post(t + 1));
        }
        let talks = !steps.is_empty();
        steps.extend(awaits);
        if talks && !overlap {
            steps.push(Step::Flush);
        }
        steps.extend(
            schedule.rects(rank).iter().map(|&rect| Step::Compute(Update { rect, inner: pivots[t] })),
        );
        steps.push(Step::Release(pivots[t]));
        if overlap && t + 1 == count {
            steps.push(Step::Flush);
        }
        steps
    })
}
