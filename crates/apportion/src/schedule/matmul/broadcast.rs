//! Broadcast flow: the processors take turns to broadcast their parts to all processors that need them
//! (Tinetti, chapter 3, sections 3.4.1 to 3.4.4).
//!
//! On strips of whole rows, this is Tinetti's algorithm. A and C are distributed in strips. B is distributed
//! in column blocks of equal width among the processors that have a share, whatever the heights of the
//! strips; the first of them get one left-over column each. In each turn one column block of B is broadcast,
//! in blocks of some of its rows, and every processor updates these columns of C. With one block there are P
//! broadcasts and P computations. A never moves and is read in place.
//!
//! On any other layout, A and B are distributed like C, and the processors take turns within each pivot
//! block: each sends its own part of the block to the processors that need it, and every processor then
//! computes the updates whose operands are complete.
//!
//! With overlap, the turns of the look-ahead are in flight during a computation. For equal turns on a bus
//! ([`crate::simulate::BroadcastTime`]), the time is P (t_b + t_c) without overlap, and t_b + (P - 1)
//! max(t_b, t_c) + t_c with it.

use super::{MatmulSchedule, MatmulStep, Operand, OperandPiece, Step, Update, cast};
use crate::geometry::{Rank, Rect, Span};
use crate::plan::{Layout, Part, Shape};
use crate::schedule::Application;
use std::collections::{BTreeMap, VecDeque};

/// Equal column blocks of B for the processors with a share, if C is distributed in strips of whole rows;
/// otherwise `None`.
pub(super) fn columns_of_b(layout: &Layout) -> Option<Vec<Part>> {
    let Shape { k, n, .. } = layout.shape();
    if layout.parts().iter().any(|part| part.cols != Span::new(0, n)) {
        return None;
    }
    let shares = layout.shares();
    let owners: Vec<Rank> = (0..shares.len()).filter(|&i| shares[i] > 0).map(Rank).collect();
    let (each, left) = (n / owners.len() as u64, n % owners.len() as u64);
    let width = |i: u64| each + u64::from(i < left);
    let start = |i: u64| i * each + i.min(left);
    let part = |(i, &owner): (u64, &Rank)| Part {
        owner,
        rows: Span::new(0, k),
        cols: Span::new(start(i), start(i) + width(i)),
    };
    Some((0..).zip(&owners).map(part).filter(|part| !part.cols.is_empty()).collect())
}

/// One turn: the owner whose parts are sent, and their inner indices.
#[derive(Debug, Clone, Copy)]
struct Turn {
    owner: Rank,
    inner: Span,
    /// Data that no processor needs once the updates of this turn are computed.
    done: Option<OperandPiece>,
}

/// All turns in order. They are numbered and generated on demand, so they are never all in memory.
struct Turns<'a> {
    schedule: &'a MatmulSchedule,
    blocks: u64,
}

impl<'a> Turns<'a> {
    fn new(schedule: &'a MatmulSchedule) -> Self {
        Self { schedule, blocks: schedule.inner.len().div_ceil(schedule.order.block) }
    }

    fn len(&self) -> u64 {
        self.schedule.owners.len() as u64 * self.blocks
    }

    /// On strips: all blocks of one owner, then those of the next owner. Otherwise: the parts of all owners
    /// in one pivot block, then the next block, so that only the pivot blocks in flight are held.
    fn get(&self, number: u64) -> Turn {
        let whole = self.schedule.inner;
        let owners = self.schedule.owners.len() as u64;
        let (owner, block) = if self.schedule.a_stays() {
            (number / self.blocks, number % self.blocks)
        } else {
            (number % owners, number / owners)
        };
        let owner = self.schedule.owners[owner as usize];
        let start = whole.start + block * self.schedule.order.block;
        let inner = Span::new(start, start.saturating_add(self.schedule.order.block).min(whole.end));
        let done = if self.schedule.a_stays() {
            self.schedule
                .own(owner)
                .1
                .first()
                .map(|part| OperandPiece { operand: Operand::B, rect: Rect::new(inner, part.cols) })
        } else {
            (number % owners == owners - 1).then(|| self.schedule.all(inner))
        };
        Turn { owner, inner, done }
    }
}

/// Steps of `rank`: O(p R) per pivot block for R rectangles.
pub(super) fn steps(schedule: &MatmulSchedule, rank: Rank) -> impl Iterator<Item = MatmulStep> + '_ {
    let turns = Turns::new(schedule);
    let possible = updates_by_turn(schedule, rank);
    let ahead = schedule.order.ahead() as u64;
    let count = turns.len();
    let mut next = 0;
    let mut awaits: VecDeque<Option<MatmulStep>> = VecDeque::new();
    (0..count).flat_map(move |number| {
        let mut steps = Vec::new();
        let mut sends = false;
        while next < count && next <= number.saturating_add(ahead) {
            let (start, arrival) = post(schedule, rank, turns.get(next), next);
            sends |= start.is_some() && arrival.is_none();
            steps.extend(start);
            awaits.push_back(arrival);
            next += 1;
        }
        steps.extend(awaits.pop_front().flatten());
        if sends && ahead == 0 {
            steps.push(Step::WaitSends);
        }
        let Turn { owner, inner, done } = turns.get(number);
        let boxes = possible.get(&owner).into_iter().flatten();
        steps.extend(boxes.filter_map(|update| {
            let inner = update.inner.intersect(inner);
            (!inner.is_empty()).then_some(Step::Compute(Update { inner, ..*update }))
        }));
        steps.extend(done.map(Step::Free));
        if ahead > 0 && number + 1 == count {
            steps.push(Step::WaitSends);
        }
        steps
    })
}

/// The owner of a turn, if it sends anything.
pub(super) fn senders(schedule: &MatmulSchedule, turn: u64) -> Option<Vec<Rank>> {
    let turns = Turns::new(schedule);
    (turn < turns.len()).then(|| {
        let Turn { owner, inner, .. } = turns.get(turn);
        let sends = match schedule.a_stays() {
            true => {
                (0..schedule.processors()).map(Rank).any(|rank| rank != owner && schedule.has_share(rank))
            }
            false => !schedule.receivers(owner, inner).is_empty(),
        };
        if sends { vec![owner] } else { Vec::new() }
    })
}

/// The steps that `rank` starts in a turn, and the waits that follow.
fn post(
    schedule: &MatmulSchedule,
    rank: Rank,
    turn: Turn,
    tag: u64,
) -> (Option<MatmulStep>, Option<MatmulStep>) {
    if turn.owner == rank {
        let p = schedule.processors();
        let to = match schedule.a_stays() {
            // Cut across the bands of C's columns, which the index does not cover.
            true => (1..p).map(|d| Rank((rank.0 + d) % p)).collect(),
            false => schedule.receivers(rank, turn.inner),
        };
        let messages = to.into_iter().map(|to| schedule.message(rank, to, turn.inner, tag));
        return (cast(messages.filter(|message| !message.pieces.is_empty()).collect()), None);
    }
    let message = schedule.message(turn.owner, rank, turn.inner, tag);
    if message.pieces.is_empty() {
        return (None, None);
    }
    (Some(Step::PostReceive(message)), Some(Step::WaitReceive { from: turn.owner, tag }))
}

/// The updates that `rank` can compute after each turn. An update belongs to the later of the turns of the
/// owners of its parts of A and B. The rank's own parts are always available; an update that needs only those
/// is computed in the rank's own turn.
pub(super) fn updates_by_turn(schedule: &MatmulSchedule, rank: Rank) -> BTreeMap<Rank, Vec<Update>> {
    let mut found: BTreeMap<Rank, Vec<Update>> = BTreeMap::new();
    for &rect in schedule.rects(rank) {
        let owned = |parts: &[Vec<Part>], overlaps: &dyn Fn(&Part) -> bool| -> Vec<Part> {
            parts.iter().flatten().filter(|part| overlaps(part)).copied().collect()
        };
        let a = owned(&schedule.a, &|part| !part.rows.intersect(rect.rows).is_empty());
        let b = owned(&schedule.b, &|part| !part.cols.intersect(rect.cols).is_empty());
        let mut boxes = BTreeMap::new();
        for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
            let inner = a.cols.intersect(b.rows);
            if inner.is_empty() {
                continue;
            }
            let turn = match (a.owner == rank, b.owner == rank) {
                (false, false) => a.owner.max(b.owner),
                (true, _) => b.owner,
                (false, true) => a.owner,
            };
            let part = Rect::new(a.rows.intersect(rect.rows), b.cols.intersect(rect.cols));
            boxes.insert((turn, part, inner.start), inner.end);
        }
        for ((turn, rect, start), end) in boxes {
            let list = found.entry(turn).or_default();
            match list.last_mut() {
                // Adjacent updates along the inner dimension are merged.
                Some(last) if last.rect == rect && last.inner.end == start => last.inner.end = end,
                _ => list.push(Update { rect, inner: Span::new(start, end) }),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Metrics, shapes};
    use crate::schedule::{Flow, ScheduleOptions};

    fn order(block: u64, overlap: bool) -> ScheduleOptions {
        ScheduleOptions::new(Flow::Broadcast, block).with_look_ahead(u64::from(overlap))
    }

    /// 3.4.1: equal column blocks; the left-over columns belong to the first processors; no block for a
    /// processor without rows.
    #[test]
    fn b_lies_in_equal_column_blocks() {
        let shape = Shape::new(6, 5, 11, "test").unwrap();
        let layout = shapes::rows(shape, &[4.0, 1e-9, 1.0, 1.0]).unwrap();
        let schedule = MatmulSchedule::new(&layout, order(5, false));
        let widths: Vec<u64> =
            (0..4).map(|i| schedule.own(Rank(i)).1.iter().map(|p| p.cols.len()).sum()).collect();
        assert_eq!(widths, [4, 0, 4, 3]);
        let corner = shapes::square_corner(shape, &[9.0, 1.0]).unwrap();
        assert!(columns_of_b(&corner).is_none());
    }

    /// 3.4.2: P broadcasts to the P - 1 others and P computations each; 3.4.4: in N blocks, N times as many.
    #[test]
    fn p_broadcasts_and_p_computations() {
        let shape = Shape::new(40, 30, 20, "test").unwrap();
        let layout = shapes::rows(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
        for (block, blocks) in [(30, 1), (10, 3), (7, 5)] {
            for overlap in [false, true] {
                let schedule = MatmulSchedule::new(&layout, order(block, overlap));
                for rank in (0..4).map(Rank) {
                    let steps: Vec<MatmulStep> = schedule.steps(rank).collect();
                    let count = |kind: fn(&MatmulStep) -> bool| steps.iter().filter(|s| kind(s)).count();
                    assert_eq!(count(|s| matches!(s, Step::Broadcast(b) if b.messages.len() == 3)), blocks);
                    assert_eq!(count(|s| matches!(s, Step::WaitReceive { .. })), 3 * blocks);
                    assert_eq!(count(|s| matches!(s, Step::Compute(_))), 4 * blocks);
                }
            }
        }
    }

    /// Every element of B is broadcast once: on a bus k n elements, not (p - 1) k n.
    #[test]
    fn a_bus_carries_b_once() {
        let shape = Shape::new(40, 30, 20, "test").unwrap();
        let layout = shapes::rows(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
        let schedule = MatmulSchedule::new(&layout, order(10, false));
        let casts = (0..4).flat_map(|rank| schedule.steps(Rank(rank))).filter_map(|step| match step {
            Step::Broadcast(cast) => Some(cast),
            _ => None,
        });
        let (carried, received) = casts.fold((0, 0), |(carried, received), cast| {
            (
                carried + cast.elements(),
                received + cast.messages.iter().map(crate::schedule::MatmulMessage::elements).sum::<u64>(),
            )
        });
        assert_eq!(carried, 30 * 20);
        assert_eq!(Some(received), Metrics::of_layout(&layout, 1.0).volume);
    }
}
