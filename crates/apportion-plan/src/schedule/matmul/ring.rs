//! Ring flow: pieces of the pivot block are forwarded from neighbour to neighbour (Malik 2016, section
//! 3.2.1).
//!
//! The rows of A form bands, each needed by the same processors. These processors, from left to right, form a
//! ring. Each piece travels round the ring from its owner until all have it. B's columns travel in the same
//! way from top to bottom. A processor communicates only with its neighbours in its bands.

use super::owner_index::Band;
use super::{MatmulMessage, MatmulSchedule, MatmulStep, Operand, OperandPiece, Step, Update};
use crate::geometry::{Rank, Rect, Span};
use crate::schedule::Application;
use std::collections::VecDeque;

/// Steps of `rank`, generated hop by hop: with many processors, the pieces of a pivot block do not fit into
/// memory for all of them. With overlap, the first hop of the next pivot block is in flight during an update.
/// With a look-ahead of several blocks, each update overlaps one hop of each of these blocks, so that the
/// hops of a block are spread over several updates.
pub(super) fn steps(schedule: &MatmulSchedule, rank: Rank) -> impl Iterator<Item = MatmulStep> + '_ {
    let count = schedule.pivot_count();
    let ahead = schedule.order.ahead();
    let mut next = 0;
    // What remains of blocks t, t + 1, …
    let mut under_way: VecDeque<Rounds<'_>> = VecDeque::new();
    (0..count).flat_map(move |t| {
        let (first, now) = match under_way.pop_front() {
            Some(now) => (None, now),
            None => {
                next = t + 1;
                let now = Rounds::new(schedule, rank, t);
                (Some(now), now)
            }
        };
        let mut stages: Vec<(Rounds<'_>, u64)> = now.stages().map(|hop| (now, hop)).collect();
        let talks = !stages.is_empty();
        stages.extend(under_way.iter_mut().filter_map(|block| Some((*block, block.take()?))));
        let mut posted = Vec::new();
        while ahead > 0 && next < count && next <= t.saturating_add(ahead) {
            posted.push(Rounds::new(schedule, rank, next));
            next += 1;
        }
        under_way.extend(&posted);
        let flushes = t + 1 == count && ahead > 0 || talks && ahead == 0;
        let inner = schedule.pivot(t);
        let update = move |&rect: &Rect| Step::Compute(Update { rect, inner });
        (first.into_iter().flat_map(Rounds::starts))
            .chain(stages.into_iter().flat_map(|(block, hop)| block.stage(hop)))
            .chain(posted.into_iter().flat_map(Rounds::starts))
            .chain(flushes.then_some(Step::WaitSends))
            .chain(schedule.rects(rank).iter().map(update))
            .chain([Step::Free(schedule.all(inner))])
    })
}

/// The communication of one processor for one pivot block.
#[derive(Clone, Copy)]
struct Rounds<'a> {
    schedule: &'a MatmulSchedule,
    rank: Rank,
    inner: Span,
    /// Tags count up from here, one per hop.
    tag: u64,
    /// The first hop that has not been waited for, and the last of all; hops count from 1.
    next: u64,
    last: u64,
}

impl<'a> Rounds<'a> {
    fn new(schedule: &'a MatmulSchedule, rank: Rank, block: usize) -> Self {
        let (inner, tag) = (schedule.pivot(block), block as u64 * schedule.processors() as u64);
        let mut rounds = Self { schedule, rank, inner, tag, next: 1, last: 0 };
        let hops = rounds.rings().flat_map(|(_, band, place)| {
            let size = band.members.len();
            // A piece is sent on in the hop after the one that brought it, unless all have it.
            let last = move |owner: usize| ((place + size - owner) % size + 1).min(size - 1) as u64;
            band.owned_of(inner).map(move |(_, owner)| last(owner))
        });
        rounds.last = hops.max().unwrap_or(0);
        rounds
    }

    /// The bands in whose rings the processor is, with its position.
    fn rings(&self) -> impl Iterator<Item = (Operand, &'a Band, usize)> + use<'a> {
        let schedule = self.schedule;
        let of = |operand, bands: &'a super::OwnerIndex, rank| {
            bands.with(rank).map(move |(band, place)| (operand, band, place))
        };
        let a = of(Operand::A, &schedule.bands_of_a, self.rank);
        a.chain(of(Operand::B, &schedule.bands_of_b, self.rank)).filter(|(_, band, _)| band.members.len() > 1)
    }

    /// Pieces that have made `hops` hops when they get here, each with its ring.
    fn pieces(&self, hops: usize) -> impl Iterator<Item = (&'a Band, usize, OperandPiece)> + use<'a> {
        let inner = self.inner;
        self.rings().filter(move |(_, band, _)| hops < band.members.len()).flat_map(
            move |(operand, band, place)| {
                let back = if hops <= place { 0 } else { band.members.len() };
                let piece = move |indices| match operand {
                    Operand::B => OperandPiece { operand, rect: Rect::new(indices, band.lines) },
                    _ => OperandPiece { operand, rect: Rect::new(band.lines, indices) },
                };
                band.owned_by(place + back - hops, inner).map(move |indices| (band, place, piece(indices)))
            },
        )
    }

    /// All that arrives in a hop.
    fn received(&self, hop: u64) -> ByPeer {
        let mut received = ByPeer::default();
        self.pieces(hop as usize).for_each(|(band, place, piece)| received.add(before(band, place), piece));
        received.sorted()
    }

    /// The senders of all that arrives in a hop, and the sends that forward it in the next.
    fn passed_on(&self, hop: u64) -> (Vec<Rank>, ByPeer) {
        let (mut from, mut sent) = (Vec::new(), ByPeer::default());
        for (band, place, piece) in self.pieces(hop as usize) {
            let sender = before(band, place);
            if from.last() != Some(&sender) {
                from.push(sender);
            }
            // Unless all have it.
            if hop as usize + 1 < band.members.len() {
                sent.add(after(band, place), piece);
            }
        }
        from.sort_unstable();
        from.dedup();
        (from, sent.sorted())
    }

    /// The sends of a hop.
    fn sends(self, hop: u64, sent: ByPeer) -> impl Iterator<Item = MatmulStep> + use<> {
        let (from, tag) = (self.rank, self.tag + hop);
        sent.0.into_iter().map(move |(to, pieces)| Step::Send(MatmulMessage { from, to, tag, pieces }))
    }

    /// The steps that start the communication: all receives, and the sends of the first hop.
    fn starts(self) -> impl Iterator<Item = MatmulStep> + use<'a> {
        let receives = (1..=self.last).flat_map(move |hop| {
            let (to, tag) = (self.rank, self.tag + hop);
            let message = move |(from, pieces)| MatmulMessage { from, to, tag, pieces };
            self.received(hop).0.into_iter().map(message).map(Step::PostReceive)
        });
        receives.chain(self.sends(1, self.passed_on(0).1))
    }

    /// The hops that are still to be waited for.
    fn stages(&self) -> impl Iterator<Item = u64> + use<> {
        self.next..=self.last
    }

    /// The next of them, which then is not any more.
    fn take(&mut self) -> Option<u64> {
        let hop = self.stages().next()?;
        self.next += 1;
        Some(hop)
    }

    /// The steps that wait for the arrivals of a hop and forward them.
    fn stage(self, hop: u64) -> impl Iterator<Item = MatmulStep> + use<'a> {
        let tag = self.tag + hop;
        let (from, sent) = self.passed_on(hop);
        let waits = from.into_iter().map(move |from| Step::WaitReceive { from, tag });
        waits.chain(self.sends(hop + 1, sent))
    }
}

/// The neighbour from which a position of a ring receives.
fn before(band: &Band, place: usize) -> Rank {
    band.members[if place == 0 { band.members.len() - 1 } else { place - 1 }]
}

/// The neighbour to which it sends.
fn after(band: &Band, place: usize) -> Rank {
    band.members[if place + 1 == band.members.len() { 0 } else { place + 1 }]
}

/// Pieces by peer. A processor has few neighbours, and bands that follow each other have the same.
#[derive(Debug, Default)]
struct ByPeer(Vec<(Rank, Vec<OperandPiece>)>);

impl ByPeer {
    fn add(&mut self, peer: Rank, piece: OperandPiece) {
        match self.0.iter_mut().rev().find(|(known, _)| *known == peer) {
            Some((_, pieces)) => pieces.push(piece),
            None => self.0.push((peer, vec![piece])),
        }
    }

    /// In the order of peers.
    fn sorted(mut self) -> Self {
        self.0.sort_unstable_by_key(|(peer, _)| *peer);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::LayoutMethod;
    use crate::plan::{Shape, shapes};
    use crate::schedule::{Flow, ScheduleOptions};

    /// Strips share only B: its ring runs from top to bottom and back, for every owner of the pivot block.
    #[test]
    fn strips_talk_to_the_next_one_only() {
        let shape = Shape::new(40, 40, 40, "test").unwrap();
        let layout = shapes::Rows::default().layout(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
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
