//! The messages of partial sums.

use super::{Boxes, Chain, MatmulMessage, MatmulStep, Operand, OperandPiece, Step};
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

impl Chain {
    /// A piece's message from the processor at a place to the one before it.
    fn hop(&self, place: usize, (number, piece): (u64, Rect)) -> Hop {
        let ranks = &self.cell.chain;
        Hop {
            wave: number + (ranks.len() - 1 - place) as u64,
            tag: self.tag + number,
            from: ranks[place],
            to: ranks[place - 1],
            piece,
        }
    }
}

impl Boxes {
    /// The messages of a processor's chains, in order.
    fn hops(&self, rank: Rank) -> Vec<Hop> {
        let mut hops = Vec::new();
        for &(number, place) in &self.places[rank.0] {
            let chain = &self.chains[number];
            let last = chain.cell.chain.len() - 1;
            for piece in (0..).zip(chain.pieces()) {
                hops.extend((place < last).then(|| chain.hop(place + 1, piece)));
                hops.extend((place > 0).then(|| chain.hop(place, piece)));
            }
        }
        hops.sort_unstable();
        hops
    }

    /// The messages of partial sums of all processors, each with its elements, in an order that contains
    /// those of all processors: both ends have handled all earlier ones.
    pub fn sums(&self) -> Vec<(Rank, Rank, u64)> {
        let mut waves: Vec<Vec<(Rank, Rank, u64)>> = Vec::new();
        // Tags ascend, and a wave has one hop of each.
        for chain in &self.chains {
            for piece in (0..).zip(chain.pieces()) {
                for place in 1..chain.cell.chain.len() {
                    let hop = chain.hop(place, piece);
                    let wave = hop.wave as usize;
                    waves.resize(waves.len().max(wave + 1), Vec::new());
                    waves[wave].push((hop.from, hop.to, hop.piece.area()));
                }
            }
        }
        waves.concat()
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
