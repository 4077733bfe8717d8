//! The one-to-all flow.

use super::clocks::{Clocks, Flight};
use crate::geometry::Rank;
use crate::platform::Link;
use crate::schedule::{Application, MatmulSchedule, Traffic};
use std::collections::VecDeque;

/// All pivot blocks: each processor posts what it sends, waits for what it needs, and computes. `None` once
/// one is late.
pub(super) fn run(schedule: &MatmulSchedule, clocks: &mut Clocks<'_>) -> Option<()> {
    let ranks = || (0..schedule.processors()).map(Rank);
    let (count, ahead) = (schedule.pivot_count(), schedule.order().ahead());
    let mut traffic = Traffic::new(schedule, false);
    let links: Vec<Link> = traffic.pairs().iter().map(|&(from, to)| clocks.link(from, to)).collect();
    let mut free = vec![0.0; links.len()];
    let mut talks = vec![false; schedule.processors()];
    let mut flying: VecDeque<Vec<Flight>> = VecDeque::new();
    let mut spare: Vec<Flight> = Vec::new();
    let mut next = 0;
    for number in 0..count {
        while next < count && next <= number.saturating_add(ahead) {
            let mut posted = std::mem::take(&mut spare);
            posted.clear();
            for e in traffic.window(schedule.pivot(next)).0 {
                let sizes = [e.horizontal, e.vertical];
                posted.push(clocks.post((e.from, e.to), sizes, &links[e.pair], &mut free[e.pair]));
                (talks[e.from.0], talks[e.to.0]) = (true, true);
            }
            flying.push_back(posted);
            next += 1;
        }
        let arriving = flying.pop_front().unwrap_or_default();
        arriving.iter().for_each(|flight| clocks.arrive(flight));
        spare = arriving;
        let inner = schedule.pivot(number).len();
        for rank in ranks() {
            if ahead == 0 && std::mem::take(&mut talks[rank.0]) {
                clocks.flush(rank);
            }
            schedule.rects(rank).iter().for_each(|rect| clocks.compute(rank, rect, inner));
            if ahead > 0 && number + 1 == count {
                clocks.flush(rank);
            }
        }
        if clocks.is_late() {
            return None;
        }
    }
    Some(())
}
