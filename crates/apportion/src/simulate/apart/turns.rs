//! The broadcast flow.

use super::clocks::{Clocks, Flight};
use crate::geometry::{Rank, Span};
use crate::platform::Link;
use crate::schedule::{Application, Exchange, MatmulSchedule, Traffic};
use std::collections::VecDeque;

/// Turns between two checks of the limit.
const PATIENCE: u64 = 64;

/// Posts the messages of turns, in order.
struct Turns<'s> {
    schedule: &'s MatmulSchedule,
    /// Number of pivot blocks.
    blocks: u64,
    traffic: Traffic,
    links: Vec<Link>,
    free: Vec<f64>,
    /// The exchanges of the pivot block whose turns are posted, by sender, and the first that is not posted.
    window: Vec<Exchange>,
    posted: usize,
}

impl Turns<'_> {
    /// The owner of a turn and its inner indices.
    fn get(&self, number: u64) -> (Rank, Span) {
        let owners = self.schedule.owners().len() as u64;
        let (owner, block) = match self.schedule.a_stays() {
            true => (number / self.blocks, number % self.blocks),
            false => (number % owners, number / owners),
        };
        (self.schedule.owners()[owner as usize], self.schedule.pivot(block as usize))
    }

    /// Posts the messages of the next turn.
    fn post(&mut self, number: u64, clocks: &mut Clocks<'_>, flying: &mut Vec<Flight>) {
        let (owner, inner) = self.get(number);
        if self.schedule.a_stays() {
            return self.post_columns(number, (owner, inner), clocks, flying);
        }
        if number.is_multiple_of(self.schedule.owners().len() as u64) {
            self.window.clear();
            self.window.extend_from_slice(self.traffic.window(inner).0);
            self.posted = 0;
        }
        while let Some(e) = self.window.get(self.posted).filter(|e| e.from == owner) {
            let (link, free) = (&self.links[e.pair], &mut self.free[e.pair]);
            flying.push(clocks.post((e.from, e.to), [e.horizontal, e.vertical], link, free));
            self.posted += 1;
        }
    }

    /// On strips: the owner's columns of B, to everyone else with a share.
    fn post_columns(
        &mut self,
        number: u64,
        (owner, inner): (Rank, Span),
        clocks: &mut Clocks<'_>,
        flying: &mut Vec<Flight>,
    ) {
        let p = self.schedule.processors();
        if number.is_multiple_of(self.blocks) {
            // An owner's turns follow each other: its wires are used by no others.
            self.free.clear();
            self.free.resize(p, 0.0);
        }
        let columns: u64 = self.schedule.own(owner).1.iter().map(|part| part.cols.len()).sum();
        for to in (0..p).map(Rank).filter(|to| *to != owner && self.schedule.has_share(*to)) {
            let link = clocks.link(owner, to);
            let sizes = [0, inner.len() * columns];
            flying.push(clocks.post((owner, to), sizes, &link, &mut self.free[to.0]));
        }
    }
}

/// All turns: the owner posts its part; everyone waits for it and computes what has become possible. `None`
/// once a processor is late.
pub(super) fn run(schedule: &MatmulSchedule, clocks: &mut Clocks<'_>) -> Option<()> {
    let traffic = Traffic::new(schedule, true);
    let links: Vec<Link> = traffic.pairs().iter().map(|&(from, to)| clocks.link(from, to)).collect();
    let blocks = schedule.pivot_count() as u64;
    let free = vec![0.0; links.len()];
    let mut turns = Turns { schedule, blocks, traffic, links, free, window: Vec::new(), posted: 0 };
    let updates = schedule.updates_by_turn();
    let (count, ahead) = (schedule.owners().len() as u64 * blocks, schedule.order().ahead() as u64);
    let mut flying: VecDeque<Vec<Flight>> = VecDeque::new();
    let mut spare: Vec<Flight> = Vec::new();
    let mut next = 0;
    for number in 0..count {
        while next < count && next <= number.saturating_add(ahead) {
            let mut posted = std::mem::take(&mut spare);
            posted.clear();
            turns.post(next, clocks, &mut posted);
            flying.push_back(posted);
            next += 1;
        }
        let arriving = flying.pop_front().unwrap_or_default();
        arriving.iter().for_each(|flight| clocks.arrive(flight));
        let (owner, inner) = turns.get(number);
        if ahead == 0 && !arriving.is_empty() {
            clocks.flush(owner);
        }
        spare = arriving;
        for (rank, update) in &updates[owner.0] {
            let inner = update.inner.intersect(inner);
            if !inner.is_empty() {
                clocks.compute(*rank, &update.rect, inner.len());
            }
        }
        if ahead > 0 && number + 1 == count {
            (0..schedule.processors()).for_each(|rank| clocks.flush(Rank(rank)));
        }
        if number % PATIENCE == 0 && clocks.is_late() {
            return None;
        }
    }
    Some(())
}
