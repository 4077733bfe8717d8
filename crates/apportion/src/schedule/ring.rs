//! Ring flow: pieces of the pivot block are forwarded from neighbour to neighbour (Malik 2016, section 3.2.1).
//!
//! The rows of A fall into bands that the same processors need; those processors, from left to right, form a ring
//! round which each piece travels, from its owner on, until all have it. B's columns do the same from top to
//! bottom. Nobody talks to more than the neighbours of its bands.

use super::{Message, Operand, Piece, Schedule, Step, Update};
use crate::plan::{Layout, Part};
use crate::rect::{Rank, Rect, Span, SpanSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One band of lines, the ring of those who need it, and who owns what of it.
#[derive(Debug, Clone)]
struct Ring {
    operand: Operand,
    members: Vec<Rank>,
    /// Owned parts of the operand within the band, each with its owner's place in the ring.
    parts: Vec<(usize, Rect)>,
}

/// All rings of a layout.
#[derive(Debug, Clone, Default)]
pub(super) struct Rings {
    rings: Vec<Ring>,
    /// The rings that each processor is a member of, with its place.
    of: Vec<Vec<(usize, usize)>>,
}

impl Rings {
    /// O(bands x p) for up to 2 R bands.
    pub fn new(layout: &Layout, rows: &[SpanSet], cols: &[SpanSet]) -> Self {
        let left = |rank: Rank, band: Span| first(layout, rank, |p| (p.rows, p.cols.start), band);
        let top = |rank: Rank, band: Span| first(layout, rank, |p| (p.cols, p.rows.start), band);
        let mut rings = bands(Operand::A, rows, left, &layout.parts_of_a());
        rings.extend(bands(Operand::B, cols, top, &layout.parts_of_b()));
        let mut of = vec![Vec::new(); layout.processors()];
        for (i, ring) in rings.iter().enumerate() {
            for (place, rank) in ring.members.iter().enumerate() {
                of[rank.0].push((i, place));
            }
        }
        Self { rings, of }
    }

    /// Hops of `rank` for the operands' indices `inner`: by hop number, what it sends and what it receives, by peer.
    fn hops(&self, rank: Rank, inner: Span) -> BTreeMap<u64, Hop> {
        let mut hops: BTreeMap<u64, Hop> = BTreeMap::new();
        for &(ring, place) in &self.of[rank.0] {
            let Ring { operand, members, parts } = &self.rings[ring];
            let size = members.len();
            for &(owner, rect) in parts {
                let rect = match operand {
                    Operand::A => Rect::new(rect.rows, rect.cols.intersect(inner)),
                    Operand::B => Rect::new(rect.rows.intersect(inner), rect.cols),
                };
                if rect.is_empty() {
                    continue;
                }
                let piece = Piece { operand: *operand, rect };
                // The piece reaches this place after so many hops, and leaves it with the next one.
                let reached = (place + size - owner) % size;
                if reached > 0 {
                    let from = members[(place + size - 1) % size];
                    hops.entry(reached as u64).or_default().received.entry(from).or_default().push(piece);
                }
                if reached + 1 < size {
                    let to = members[(place + 1) % size];
                    hops.entry(reached as u64 + 1).or_default().sent.entry(to).or_default().push(piece);
                }
            }
        }
        hops
    }
}

/// What one processor sends and receives in one hop, by peer.
#[derive(Debug, Default)]
struct Hop {
    sent: BTreeMap<Rank, Vec<Piece>>,
    received: BTreeMap<Rank, Vec<Piece>>,
}

/// Where a processor's part of a band begins across it.
fn first(layout: &Layout, rank: Rank, lines: impl Fn(&Part) -> (Span, u64), band: Span) -> u64 {
    let own = layout.parts().iter().filter(|p| p.owner == rank);
    own.map(lines).filter(|(s, _)| !s.intersect(band).is_empty()).map(|(_, at)| at).min().unwrap_or(0)
}

/// The bands of lines between cuts, each with its ring; bands nobody shares need none.
fn bands(
    operand: Operand,
    needed: &[SpanSet],
    place: impl Fn(Rank, Span) -> u64,
    parts: &[Part],
) -> Vec<Ring> {
    let cuts: BTreeSet<u64> = needed.iter().flat_map(SpanSet::spans).flat_map(|s| [s.start, s.end]).collect();
    let cuts: Vec<u64> = cuts.into_iter().collect();
    let mut rings = Vec::new();
    for band in cuts.windows(2).map(|w| Span::new(w[0], w[1])) {
        let mut members: Vec<(u64, Rank)> = (0..needed.len())
            .map(Rank)
            .filter(|r| needed[r.0].count_in(band) > 0)
            .map(|r| (place(r, band), r))
            .collect();
        if members.len() < 2 {
            continue;
        }
        members.sort_unstable();
        let members: Vec<Rank> = members.into_iter().map(|(_, r)| r).collect();
        let owned = parts.iter().filter_map(|part| {
            let rect = match operand {
                Operand::A => Rect::new(part.rows.intersect(band), part.cols),
                Operand::B => Rect::new(part.rows, part.cols.intersect(band)),
            };
            let owner = members.iter().position(|r| *r == part.owner)?;
            (!rect.is_empty()).then_some((owner, rect))
        });
        rings.push(Ring { operand, parts: owned.collect(), members });
    }
    rings
}

/// Steps of `rank`. With overlap the first hop of the next pivot block is under way during an update; looking ahead to
/// several blocks, one more hop of each: the hops of a block are spread over as many updates.
pub(super) fn steps(schedule: &Schedule, rank: Rank) -> impl Iterator<Item = Step> + '_ {
    let pivots: Vec<Span> = schedule.pivots().collect();
    let count = pivots.len();
    let ahead = schedule.order.ahead();
    let p = schedule.processors() as u64;
    let posted = move |t: usize, inner: Span| Posted::new(&schedule.rings, rank, inner, t as u64 * p);
    let mut next = 0;
    // Blocks t, t + 1, …: what remains of each.
    let mut under_way: VecDeque<Posted> = VecDeque::new();
    (0..count).flat_map(move |t| {
        let mut steps = Vec::new();
        if t == 0 && count > 0 {
            under_way.push_back(posted(0, pivots[0]));
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
            let mut block = posted(next, pivots[next]);
            steps.append(&mut block.starts);
            under_way.push_back(block);
            next += 1;
        }
        if t + 1 == count && ahead > 0 || talks && ahead == 0 {
            steps.push(Step::Flush);
        }
        let update = |&rect: &Rect| Step::Compute(Update { rect, inner: pivots[t] });
        steps.extend(schedule.rects(rank).iter().map(update));
        steps.push(Step::Release(schedule.all(pivots[t])));
        if ahead == 0 && next < count {
            under_way.push_back(posted(next, pivots[next]));
            next += 1;
        }
        steps
    })
}

/// The communication of one pivot block: what starts it, and the hops that wait for earlier ones.
struct Posted {
    starts: Vec<Step>,
    /// By hop: what waits for its arrivals, and passes them on.
    rest: VecDeque<Vec<Step>>,
}

impl Posted {
    /// Tags run from `tag` on, one per hop.
    fn new(rings: &Rings, rank: Rank, inner: Span, tag: u64) -> Self {
        let hops = rings.hops(rank, inner);
        let last = hops.keys().next_back().copied().unwrap_or(0);
        let (mut starts, mut rest) = (Vec::new(), VecDeque::new());
        for (number, hop) in &hops {
            let received = hop.received.iter().map(|(from, pieces)| {
                let message = Message { from: *from, to: rank, tag: tag + number, pieces: pieces.clone() };
                Step::Receive(message)
            });
            starts.extend(received);
        }
        let sends = |number: u64| {
            let sent = hops.get(&number).into_iter().flat_map(|hop| &hop.sent);
            sent.map(move |(to, pieces)| {
                Step::Send(Message { from: rank, to: *to, tag: tag + number, pieces: pieces.clone() })
            })
        };
        starts.extend(sends(1));
        for number in 1..=last {
            let received = hops.get(&number).into_iter().flat_map(|hop| hop.received.keys());
            let mut stage: Vec<Step> =
                received.map(|from| Step::Await { from: *from, tag: tag + number }).collect();
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
    use crate::schedule::{Flow, Order};

    /// Strips share B only: its ring runs from the top to the bottom and back, whoever owns the pivot block.
    #[test]
    fn strips_talk_to_the_next_one_only() {
        let shape = Shape::new(40, 40, 40, "test").unwrap();
        let layout = shapes::rows(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
        let order = Order { flow: Flow::Ring, block: 10, overlap: false, look_ahead: 1 };
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

    /// Three columns of unequal heights: A's bands are cut wherever any rectangle begins or ends.
    #[test]
    fn bands_follow_irregular_overlaps() {
        let shape = Shape::new(12, 12, 12, "test").unwrap();
        let layout =
            shapes::column_groups(shape, &[1.0, 1.0, 2.0, 1.0, 1.0], &[vec![0, 1], vec![2], vec![3, 4]]);
        let layout = layout.unwrap();
        let rings = Rings::new(&layout, &layout.rows_by_owner(), &layout.cols_by_owner());
        let of_a: Vec<Vec<usize>> = rings
            .rings
            .iter()
            .filter(|r| r.operand == Operand::A)
            .map(|r| r.members.iter().map(|m| m.0).collect())
            .collect();
        assert_eq!(of_a, [vec![0, 2, 3], vec![1, 2, 4]]);
    }
}
