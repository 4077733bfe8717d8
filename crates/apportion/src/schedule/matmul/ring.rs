//! Ring flow: pieces of the pivot block are forwarded from neighbour to neighbour (Malik 2016, section
//! 3.2.1).
//!
//! The rows of A form bands, each needed by the same processors. These processors, from left to right, form a
//! ring. Each piece travels round the ring from its owner until all have it. B's columns travel in the same
//! way from top to bottom. A processor communicates only with its neighbours in its bands.

use super::{MatmulMessage, MatmulSchedule, MatmulStep, Operand, OperandPiece, Step, Update};
use crate::geometry::{Rank, Rect, Span};
use crate::schedule::Application;
use std::collections::{BTreeMap, VecDeque};

/// Hops of `rank` for the operands' indices `inner`: by hop number, the data that it sends and receives, by
/// peer.
fn hops(schedule: &MatmulSchedule, rank: Rank, inner: Span) -> BTreeMap<u64, Hop> {
    let mut hops: BTreeMap<u64, Hop> = BTreeMap::new();
    for (operand, bands) in [(Operand::A, &schedule.bands_of_a), (Operand::B, &schedule.bands_of_b)] {
        for (band, place) in bands.with(rank).filter(|(band, _)| band.members.len() > 1) {
            let size = band.members.len();
            for (indices, owner) in band.owned_of(inner) {
                let rect = match operand {
                    Operand::B => Rect::new(indices, band.lines),
                    _ => Rect::new(band.lines, indices),
                };
                let piece = OperandPiece { operand, rect };
                // Number of hops until the piece reaches this position; the next hop forwards it.
                let reached = (place + size - owner) % size;
                if reached > 0 {
                    let from = band.members[(place + size - 1) % size];
                    hops.entry(reached as u64).or_default().received.entry(from).or_default().push(piece);
                }
                if reached + 1 < size {
                    let to = band.members[(place + 1) % size];
                    hops.entry(reached as u64 + 1).or_default().sent.entry(to).or_default().push(piece);
                }
            }
        }
    }
    hops
}

/// The data that one processor sends and receives in one hop, by peer.
#[derive(Debug, Default)]
struct Hop {
    sent: BTreeMap<Rank, Vec<OperandPiece>>,
    received: BTreeMap<Rank, Vec<OperandPiece>>,
}

/// Steps of `rank`. With overlap, the first hop of the next pivot block is in flight during an update. With a
/// look-ahead of several blocks, each update overlaps one hop of each of these blocks, so that the hops of a
/// block are spread over several updates.
pub(super) fn steps(schedule: &MatmulSchedule, rank: Rank) -> impl Iterator<Item = MatmulStep> + '_ {
    let count = schedule.pivot_count();
    let ahead = schedule.order.ahead();
    let p = schedule.processors() as u64;
    let posted = move |t: usize, inner: Span| Posted::new(schedule, rank, inner, t as u64 * p);
    let mut next = 0;
    // What remains of blocks t, t + 1, …
    let mut under_way: VecDeque<Posted> = VecDeque::new();
    (0..count).flat_map(move |t| {
        let mut steps = Vec::new();
        if t == 0 && count > 0 {
            under_way.push_back(posted(0, schedule.pivot(0)));
            next = 1;
        }
        let mut now = under_way.pop_front().expect("block t was posted");
        let talks = now.talks();
        steps.append(&mut now.starts);
        steps.extend(now.rest.drain(..).flatten());
        for block in &mut under_way {
            steps.extend(block.rest.pop_front().into_iter().flatten());
        }
        while next < count && next <= t.saturating_add(ahead) {
            let mut block = posted(next, schedule.pivot(next));
            steps.append(&mut block.starts);
            under_way.push_back(block);
            next += 1;
        }
        if t + 1 == count && ahead > 0 || talks && ahead == 0 {
            steps.push(Step::WaitSends);
        }
        let inner = schedule.pivot(t);
        let update = |&rect: &Rect| Step::Compute(Update { rect, inner });
        steps.extend(schedule.rects(rank).iter().map(update));
        steps.push(Step::Free(schedule.all(inner)));
        if ahead == 0 && next < count {
            under_way.push_back(posted(next, schedule.pivot(next)));
            next += 1;
        }
        steps
    })
}

/// The communication of one pivot block: the steps that start it, and the hops that wait for earlier ones.
struct Posted {
    starts: Vec<MatmulStep>,
    /// By hop: the steps that wait for its arrivals and forward them.
    rest: VecDeque<Vec<MatmulStep>>,
}

impl Posted {
    /// Tags count up from `tag`, one per hop.
    fn new(schedule: &MatmulSchedule, rank: Rank, inner: Span, tag: u64) -> Self {
        let hops = hops(schedule, rank, inner);
        let last = hops.keys().next_back().copied().unwrap_or(0);
        let (mut starts, mut rest) = (Vec::new(), VecDeque::new());
        for (number, hop) in &hops {
            let received = hop.received.iter().map(|(from, pieces)| {
                let message =
                    MatmulMessage { from: *from, to: rank, tag: tag + number, pieces: pieces.clone() };
                Step::PostReceive(message)
            });
            starts.extend(received);
        }
        let sends = |number: u64| {
            let sent = hops.get(&number).into_iter().flat_map(|hop| &hop.sent);
            sent.map(move |(to, pieces)| {
                Step::Send(MatmulMessage { from: rank, to: *to, tag: tag + number, pieces: pieces.clone() })
            })
        };
        starts.extend(sends(1));
        for number in 1..=last {
            let received = hops.get(&number).into_iter().flat_map(|hop| hop.received.keys());
            let mut stage: Vec<MatmulStep> =
                received.map(|from| Step::WaitReceive { from: *from, tag: tag + number }).collect();
            stage.extend(sends(number + 1));
            rest.push_back(stage);
        }
        Self { starts, rest }
    }

    fn talks(&self) -> bool {
        !self.starts.is_empty() || !self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Shape, shapes};
    use crate::schedule::{Flow, ScheduleOptions};

    /// Strips share only B: its ring runs from top to bottom and back, for every owner of the pivot block.
    #[test]
    fn strips_talk_to_the_next_one_only() {
        let shape = Shape::new(40, 40, 40, "test").unwrap();
        let layout = shapes::rows(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
        let order = ScheduleOptions::new(Flow::Ring, 10);
        let schedule = MatmulSchedule::new(&layout, order);
        for rank in 0..4 {
            for step in schedule.steps(Rank(rank)) {
                match step {
                    Step::Send(message) => assert_eq!(message.to.0, (rank + 1) % 4),
                    Step::PostReceive(message) => assert_eq!(message.from.0, (rank + 3) % 4),
                    _ => {}
                }
            }
        }
    }
}
