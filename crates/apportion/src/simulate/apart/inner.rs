//! Layouts that cut the inner dimension, with any flow.

use super::clocks::{Clocks, Flight};
use crate::geometry::Rank;
use crate::platform::Link;
use crate::schedule::{Application, Boxes, Flow, MatmulSchedule};
use std::collections::VecDeque;

/// A pair of processors, with the time from which its wire is free.
struct Pair {
    from: Rank,
    to: Rank,
    link: Link,
    free: f64,
}

/// All turns, then the partial sums. `None` once one processor is late.
pub(super) fn run(schedule: &MatmulSchedule, boxes: &Boxes, clocks: &mut Clocks<'_>) -> Option<()> {
    let ranks = || (0..schedule.processors()).map(Rank);
    let overlaps = schedule.order().overlaps();
    let ahead = if schedule.order().flow == Flow::Bulk { 0 } else { schedule.order().ahead() as u64 };
    let sums = boxes.sums();
    let mut pairs: Vec<(Rank, Rank)> =
        ranks().flat_map(|from| boxes.receivers(from).iter().map(move |to| (from, *to))).collect();
    pairs.extend(sums.iter().map(|(from, to, _)| (*from, *to)));
    pairs.sort_unstable();
    pairs.dedup();
    let first: Vec<usize> =
        (0..=schedule.processors()).map(|rank| pairs.partition_point(|(from, _)| from.0 < rank)).collect();
    let number = |from: Rank, to: Rank| {
        let of_sender = &pairs[first[from.0]..first[from.0 + 1]];
        let place = of_sender.binary_search_by_key(&to, |(_, to)| *to);
        first[from.0] + place.expect("every pair that talks is listed")
    };
    // By receiver, in the order of its waits.
    let incoming: Vec<Vec<usize>> =
        ranks().map(|to| boxes.senders(to).iter().map(|from| number(*from, to)).collect()).collect();
    let of = |&(from, to): &(Rank, Rank)| Pair { from, to, link: clocks.link(from, to), free: 0.0 };
    let mut wires: Vec<Pair> = pairs.iter().map(of).collect();
    let mut talks = vec![false; schedule.processors()];
    // By turn, receiver after receiver.
    let mut flying: VecDeque<Vec<Flight>> = VecDeque::new();
    let mut next = 0;
    for turn in 0..boxes.turns() {
        while next < boxes.turns() && next <= turn.saturating_add(ahead) {
            let mut posted = Vec::new();
            for wire in incoming.iter().flatten() {
                let Pair { from, to, link, free } = &mut wires[*wire];
                let elements = boxes.elements(schedule, *from, *to, next);
                if elements != [0; 2] {
                    posted.push(clocks.post((*from, *to), elements, link, free));
                    (talks[from.0], talks[to.0]) = (true, true);
                }
            }
            flying.push_back(posted);
            next += 1;
        }
        flying.pop_front().into_iter().flatten().for_each(|flight| clocks.arrive(&flight));
        for rank in ranks() {
            if std::mem::take(&mut talks[rank.0]) && !overlaps {
                clocks.flush(rank);
            }
            boxes.each_update(schedule, rank, turn, |update| {
                clocks.compute(rank, &update.rect, update.inner.len());
            });
        }
        if clocks.is_late() {
            return None;
        }
    }
    let mut sends = vec![false; schedule.processors()];
    for (from, to, elements) in sums {
        let Pair { link, free, .. } = &mut wires[number(from, to)];
        let flight = clocks.post((from, to), [elements, 0], link, free);
        clocks.arrive(&flight);
        sends[from.0] = true;
    }
    for rank in ranks().filter(|rank| sends[rank.0] || overlaps) {
        clocks.flush(rank);
    }
    Some(())
}
