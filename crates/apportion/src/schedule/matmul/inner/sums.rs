//! The messages of partial sums.

use super::{Boxes, MatmulMessage, MatmulStep, Operand, OperandPiece, Step};
use crate::geometry::{Rank, Rect};

/// A message of partial sums. Both ends handle messages in this order; each message depends on earlier ones
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hop {
    /// The piece's number plus that of the hops before: hops of one wave can travel at the same time.
    wave: u64,
    tag: u64,
    from: Rank,
    to: Rank,
    piece: Rect,
}

impl Boxes {
    /// The messages of a processor's chains, in order.
    fn hops(&self, rank: Rank) -> Vec<Hop> {
        let mut hops = Vec::new();
        for &(number, place) in &self.places[rank.0] {
            let chain = &self.chains[number];
            let ranks = &chain.cell.chain;
            let last = ranks.len() - 1;
            for (q, piece) in (0..).zip(chain.pieces()) {
                // From the processor at this place to the one before it.
                let hop = |place: usize| Hop {
                    wave: q + (last - place) as u64,
                    tag: chain.tag + q,
                    from: ranks[place],
                    to: ranks[place - 1],
                    piece,
                };
                hops.extend((place < last).then(|| hop(place + 1)));
                hops.extend((place > 0).then(|| hop(place)));
            }
        }
        hops.sort_unstable();
        hops
    }
}

/// The steps that move partial sums, made one by one: a receive is posted one ahead of the one that is waited
/// for.
pub(super) fn partial_sums(boxes: &Boxes, rank: Rank) -> impl Iterator<Item = MatmulStep> {
    let hops = boxes.hops(rank);
    let sends = hops.iter().any(|hop| hop.from == rank);
    let (count, mut later) = (1 + hops.len(), 0);
    let steps_at = move |i: usize| {
        let message = |hop: &Hop| {
            let piece = OperandPiece { operand: Operand::C, rect: hop.piece };
            MatmulMessage { from: hop.from, to: hop.to, tag: hop.tag, pieces: vec![piece] }
        };
        let mut post = || {
            let next = hops[later..].iter().position(|hop| hop.to == rank);
            let found = next.map(|skipped| later + skipped);
            later = found.map_or(hops.len(), |found| found + 1);
            found.map(|found| Step::PostReceive(message(&hops[found])))
        };
        match i.checked_sub(1).map(|i| &hops[i]) {
            None => [post(), None],
            Some(hop) if hop.to == rank => [post(), Some(Step::WaitReceive { from: hop.from, tag: hop.tag })],
            Some(hop) => [Some(Step::Send(message(hop))), None],
        }
    };
    (0..count).flat_map(steps_at).flatten().chain(sends.then_some(Step::WaitSends))
}
