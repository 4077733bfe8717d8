//! Ring flow: pieces of the pivot block are forwarded from neighbour to neighbour (Malik 2016, section 3.2.1).
//!
//! The rows of A fall into bands that the same processors need; those processors, from left to right, form a ring
//! round which each piece travels, from its owner on, until all have it. B's columns do the same from top to
//! bottom. Nobody talks to more than the neighbours of its bands.

use super::{Message, Operand, Piece, Schedule, Step, Update};
use crate::rect::{Rank, Rect, Span};
use std::collections::BTreeMap;

/// Hops of `rank` for the operands' indices `inner`: by hop number, what it sends and what it receives, by peer.
fn hops(schedule: &Schedule, rank: Rank, inner: Span) -> BTreeMap<u64, Hop> {
    let mut hops: BTreeMap<u64, Hop> = BTreeMap::new();
    for (operand, bands) in [(Operand::A, &schedule.bands_of_a), (Operand::B, &schedule.bands_of_b)] {
        for (band, place) in bands.with(rank).filter(|(band, _)| band.members.len() > 1) {
            let size = band.members.len();
            for (indices, owner) in band.owned_of(inner) {
                let rect = match operand {
                    Operand::A => Rect::new(band.lines, indices),
                    Operand::B => Rect::new(indices, band.lines),
                };
                let piece = Piece { operand, rect };
                // The piece reaches this place after so many hops, and leaves it with the next one.
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

/// What one processor sends and receives in one hop, by peer.
#[derive(Debug, Default)]
struct Hop {
    sent: BTreeMap<Rank, Vec<Piece>>,
    received: BTreeMap<Rank, Vec<Piece>>,
}

/// Steps of `rank`. With overlap the first hop of the next pivot block is under way during an update.
pub(super) fn steps(schedule: &Schedule, rank: Rank) -> impl Iterator<Item = Step> + '_ {
    let pivots: Vec<Span> = schedule.pivots().collect();
    let count = pivots.len();
    let overlap = schedule.order.overlap;
    let p = schedule.processors() as u64;
    let posted = move |t: usize, inner: Span| Posted::new(schedule, rank, inner, t as u64 * p);
    let mut upcoming: Option<Posted> = None;
    (0..count).flat_map(move |t| {
        let mut steps = Vec::new();
        let mut now = upcoming.take().unwrap_or_else(|| posted(t, pivots[t]));
        let talks = now.talks();
        steps.append(&mut now.starts);
        steps.append(&mut now.rest);
        if overlap && t + 1 < count {
            let mut next = posted(t + 1, pivots[t + 1]);
            steps.append(&mut next.starts);
            upcoming = Some(next);
        } else if talks || overlap {
            steps.push(Step::Flush);
        }
        let update = |&rect: &Rect| Step::Compute(Update { rect, inner: pivots[t] });
        steps.extend(schedule.rects(rank).iter().map(update));
        steps.push(Step::Release(pivots[t]));
        steps
    })
}

/// The communication of one pivot block: what starts it, and the hops that wait for earlier ones.
struct Posted {
    starts: Vec<Step>,
    rest: Vec<Step>,
}

impl Posted {
    /// Tags run from `tag` on, one per hop.
    fn new(schedule: &Schedule, rank: Rank, inner: Span, tag: u64) -> Self {
        let hops = hops(schedule, rank, inner);
        let last = hops.keys().next_back().copied().unwrap_or(0);
        let (mut starts, mut rest) = (Vec::new(), Vec::new());
        for (number, hop) in &hops {
            let received = hop.received.iter().map(|(from, pieces)| {
                let message = Message { from: *from, to: rank, tag: tag + number, pieces: pieces.clone() };
                Step::Receive(message)
            });
            starts.extend(received);
        }
        for number in 1..=last {
            let Some(hop) = hops.get(&number) else { continue };
            let sends = hop.sent.iter().map(|(to, pieces)| {
                let message = Message { from: rank, to: *to, tag: tag + number, pieces: pieces.clone() };
                Step::Send(message)
            });
            if number == 1 {
                starts.extend(sends);
            } else {
                rest.extend(sends);
            }
            rest.extend(hop.received.keys().map(|from| Step::Await { from: *from, tag: tag + number }));
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
    use crate::schedule::{Flow, Order};

    /// Strips share B only: its ring runs from the top to the bottom and back, whoever owns the pivot block.
    #[test]
    fn strips_talk_to_the_next_one_only() {
        let shape = Shape::new(40, 40, 40, "test").unwrap();
        let layout = shapes::rows(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
        let order = Order { flow: Flow::Ring, block: 10, overlap: false };
        let schedule = Schedule::matmul(&layout, order);
        for rank in 0..4 {
            for step in schedule.steps(Rank(rank)) {
                match step {
                    Step::Send(message) => assert_eq!(message.to.0, (rank + 1) % 4),
                    Step::Receive(message) => assert_eq!(message.from.0, (rank + 3) % 4),
                    _ => {}
                }
            }
        }
    }
}
