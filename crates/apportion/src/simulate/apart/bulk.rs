//! The bulk flow.

use super::clocks::{Clocks, Flight};
use crate::geometry::{Rank, Rect};
use crate::schedule::{Application, MatmulSchedule, Traffic};

/// All messages at once, then all updates; with overlap, those that need no message before the others.
pub(super) fn run(schedule: &MatmulSchedule, clocks: &mut Clocks<'_>) {
    let ranks = || (0..schedule.processors()).map(Rank);
    let mut traffic = Traffic::new(schedule, false);
    let mut talks = vec![false; schedule.processors()];
    let mut flying: Vec<Flight> = Vec::new();
    for e in traffic.window(schedule.inner()).0 {
        let link = clocks.link(e.from, e.to);
        flying.push(clocks.post((e.from, e.to), [e.horizontal, e.vertical], &link, &mut 0.0));
        (talks[e.from.0], talks[e.to.0]) = (true, true);
    }
    let overlaps = |rank: Rank| schedule.order().overlaps() && talks[rank.0];
    let update = |clocks: &mut Clocks<'_>, rank: Rank, rects: &[Rect]| {
        for rect in rects {
            schedule.pivots().for_each(|inner| clocks.compute(rank, rect, inner.len()));
        }
    };
    let mut rest: Vec<Option<Vec<Rect>>> = vec![None; schedule.processors()];
    for rank in ranks().filter(|rank| overlaps(*rank)) {
        let (free, others) = schedule.divided(rank);
        update(clocks, rank, &free);
        rest[rank.0] = Some(others);
    }
    flying.iter().for_each(|flight| clocks.arrive(flight));
    for rank in ranks() {
        if talks[rank.0] && !overlaps(rank) {
            clocks.flush(rank);
        }
        match &rest[rank.0] {
            Some(others) => update(clocks, rank, others),
            None => update(clocks, rank, schedule.rects(rank)),
        }
        if overlaps(rank) {
            clocks.flush(rank);
        }
    }
}
