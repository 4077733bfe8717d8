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
//! (Tinetti, 3.6 and 3.11), the time is P (t_b + t_c) without overlap, and t_b + (P - 1)
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

    /// The turns that concern a processor: its own, those of the owners of what it needs, and the last of
    /// each pivot block. On strips all of them.
    fn concerning(&self, rank: Rank) -> Concern {
        let owners = &self.schedule.owners;
        if self.schedule.a_stays() {
            return Concern { round: 1, turns: vec![0], rounds: self.len() };
        }
        let rects = self.schedule.rects(rank);
        let of_a = |part: &Part| rects.iter().any(|rect| !part.rows.intersect(rect.rows).is_empty());
        let of_b = |part: &Part| rects.iter().any(|rect| !part.cols.intersect(rect.cols).is_empty());
        let concerns = |owner: &Rank| {
            let (a, b) = self.schedule.own(*owner);
            *owner == rank || a.iter().any(of_a) || b.iter().any(of_b)
        };
        let last = owners.len() as u64 - 1;
        let turns = (0..).zip(owners).filter(|(turn, owner)| *turn == last || concerns(owner));
        Concern { round: last + 1, turns: turns.map(|(turn, _)| turn).collect(), rounds: self.blocks }
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

/// Steps of `rank`: O(R) per pivot block for the R processors whose parts it needs; on strips, for all.
pub(super) fn steps(schedule: &MatmulSchedule, rank: Rank) -> impl Iterator<Item = MatmulStep> + '_ {
    steps_of(schedule, rank, Turns::new(schedule).concerning(rank))
}

/// The steps of some turns, the last of all among them.
fn steps_of(
    schedule: &MatmulSchedule,
    rank: Rank,
    concern: Concern,
) -> impl Iterator<Item = MatmulStep> + '_ {
    let turns = Turns::new(schedule);
    let possible: Vec<(Rank, Update)> = updates_by_turn(schedule, rank)
        .into_iter()
        .flat_map(|(turn, updates)| updates.into_iter().map(move |update| (turn, update)))
        .collect();
    let ahead = schedule.order.ahead() as u64;
    let mut next = 0;
    let mut awaits: VecDeque<Option<MatmulStep>> = VecDeque::new();
    (0..concern.len()).flat_map(move |at| {
        let number = concern.number(at);
        let mut steps = Vec::new();
        let mut sends = false;
        while next < concern.len() && concern.number(next) <= number.saturating_add(ahead) {
            let posted = concern.number(next);
            let (start, arrival) = post(schedule, rank, turns.get(posted), posted);
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
        let first = possible.partition_point(|(turn, _)| *turn < owner);
        let boxes = possible[first..].iter().take_while(|(turn, _)| *turn == owner);
        steps.extend(boxes.filter_map(|(_, update)| {
            let inner = update.inner.intersect(inner);
            (!inner.is_empty()).then_some(Step::Compute(Update { inner, ..*update }))
        }));
        steps.extend(done.map(Step::Free));
        if ahead > 0 && at + 1 == concern.len() {
            steps.push(Step::WaitSends);
        }
        steps
    })
}

/// The turns in which a processor has something to do, in order: the same ones in each of some rounds.
struct Concern {
    /// Turns of a round, and those of them that concern it.
    round: u64,
    turns: Vec<u64>,
    rounds: u64,
}

impl Concern {
    fn len(&self) -> u64 {
        self.turns.len() as u64 * self.rounds
    }

    fn number(&self, at: u64) -> u64 {
        let each = self.turns.len() as u64;
        at / each * self.round + self.turns[(at % each) as usize]
    }
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
    use crate::plan::shapes::LayoutMethod;
    use crate::plan::{Metrics, shapes};
    use crate::schedule::{Flow, ScheduleOptions};
    use proptest::prelude::*;

    fn order(block: u64, overlap: bool) -> ScheduleOptions {
        ScheduleOptions::new(Flow::Broadcast, block).with_look_ahead(u64::from(overlap))
    }

    /// 3.4.1: equal column blocks; the left-over columns belong to the first processors; no block for a
    /// processor without rows.
    #[test]
    fn b_lies_in_equal_column_blocks() {
        let shape = Shape::new(6, 5, 11, "test").unwrap();
        let layout = shapes::Rows::default().layout(shape, &[4.0, 1e-9, 1.0, 1.0]).unwrap();
        let schedule = MatmulSchedule::new(&layout, order(5, false));
        let widths: Vec<u64> =
            (0..4).map(|i| schedule.own(Rank(i)).1.iter().map(|p| p.cols.len()).sum()).collect();
        assert_eq!(widths, [4, 0, 4, 3]);
        let corner = shapes::SquareCorner.layout(shape, &[9.0, 1.0]).unwrap();
        assert!(columns_of_b(&corner).is_none());
    }

    proptest! {
        /// Turns that do not concern a processor have no steps for it: the steps are those of going through
        /// all.
        #[test]
        fn only_empty_turns_are_left_out(
            speeds in prop::collection::vec(0.05f64..1.0, 1..10), sides in (10u64..70, 1u64..70, 10u64..70),
            block in 1u64..40, ahead in 0u64..40, method in 0usize..9,
        ) {
            let shape = Shape::new(sides.0, sides.1, sides.2, "test").unwrap();
            let method = shapes::Method::candidates().nth(method).unwrap_or(shapes::Method::Columns);
            let Ok(layout) = method.layout(shape, &speeds, &shapes::MethodOptions::default()) else { return Ok(()) };
            let order = ScheduleOptions::new(Flow::Broadcast, block).with_look_ahead(ahead);
            let schedule = MatmulSchedule::new(&layout, order);
            let turns = Turns::new(&schedule);
            for rank in (0..speeds.len()).map(Rank) {
                let all = Concern { round: 1, turns: vec![0], rounds: turns.len() };
                let expected: Vec<MatmulStep> = steps_of(&schedule, rank, all).collect();
                prop_assert_eq!(steps(&schedule, rank).collect::<Vec<MatmulStep>>(), expected);
            }
        }
    }

    /// 3.4.2: P broadcasts to the P - 1 others and P computations each; 3.4.4: in N blocks, N times as many.
    #[test]
    fn p_broadcasts_and_p_computations() {
        let shape = Shape::new(40, 30, 20, "test").unwrap();
        let layout = shapes::Rows::default().layout(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
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
        let layout = shapes::Rows::default().layout(shape, &[4.0, 3.0, 2.0, 1.0]).unwrap();
        let schedule = MatmulSchedule::new(&layout, order(10, false));
        let casts = (0..4).flat_map(|rank| schedule.steps(Rank(rank))).filter_map(|step| match step {
            Step::Broadcast(cast) => Some(cast),
            _ => None,
        });
        let (carried, received) = casts.fold((0, 0), |(carried, received), cast| {
            (
                carried + cast.elements(),
                received + cast.messages.iter().map(crate::schedule::Message::elements).sum::<u64>(),
            )
        });
        assert_eq!(carried, 30 * 20);
        assert_eq!(Some(received), Metrics::of_layout(&layout, 1.0).volume);
    }
}
