//! What travels in each pivot block, as sizes only: for forecasts that need no pieces.

use super::{MatmulSchedule, Operand, OwnerIndex};
use crate::geometry::{Rank, Span};

/// All that one processor sends to another while some inner indices are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// Sender.
    pub(crate) from: Rank,
    /// Receiver.
    pub(crate) to: Rank,
    /// Number of the pair, from 0 in the order of (from, to).
    pub(crate) pair: usize,
    /// Elements of A.
    pub(crate) horizontal: u64,
    /// Elements of B.
    pub(crate) vertical: u64,
}

/// Lines of one operand that one processor sends to another for these inner indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lines {
    from: Rank,
    to: Rank,
    operand: Operand,
    inner: Span,
    lines: u64,
    pair: usize,
    /// Its place in the order of the exchanges of a window.
    place: u32,
}

/// The exchanges of a schedule, window by window of inner indices, in ascending order. Each pair of
/// processors has one exchange in a window. O(S log S) to set up, for S members of all bands times their
/// owners; a window takes the number of its exchanges, and those that begin with it are sorted in.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// By first inner index.
    flows: Vec<Lines>,
    next: usize,
    /// Those of the present window, in the order of its exchanges.
    active: Vec<Lines>,
    pairs: Vec<(Rank, Rank)>,
    found: Vec<Exchange>,
    /// The length of the present window, if every flow covers it.
    whole: Option<u64>,
}

impl Traffic {
    /// The exchanges of a layout without boxes; `by_sender` orders those of a window by sender, then
    /// receiver. Otherwise they are by receiver, and then in the order in which the receiver waits for them:
    /// in turn, from the next rank on.
    pub(crate) fn new(schedule: &MatmulSchedule, by_sender: bool) -> Self {
        let mut flows = Vec::new();
        lines_of(&schedule.bands_of_a, Operand::A, &mut flows);
        lines_of(&schedule.bands_of_b, Operand::B, &mut flows);
        let processors = schedule.rects.len();
        let mut flows = gathered(flows, processors, |flow| flow.from.0);
        for own in flows.chunk_by_mut(|x, y| x.from == y.from) {
            own.sort_unstable_by_key(|flow| (flow.to, flow.operand, flow.inner));
        }
        flows.dedup_by(|next, kept| {
            let same = (next.from, next.to, next.operand, next.inner)
                == (kept.from, kept.to, kept.operand, kept.inner);
            kept.lines += if same { next.lines } else { 0 };
            same
        });
        let mut pairs: Vec<(Rank, Rank)> = Vec::new();
        for flow in &mut flows {
            if pairs.last() != Some(&(flow.from, flow.to)) {
                pairs.push((flow.from, flow.to));
            }
            flow.pair = pairs.len() - 1;
        }
        if !by_sender {
            // By receiver: senders remain in order, and begin with the next rank.
            flows = gathered(flows, processors, |flow| flow.to.0);
            for own in flows.chunk_by_mut(|x, y| x.to == y.to) {
                own.rotate_left(own.partition_point(|flow| flow.from < flow.to));
            }
        }
        flows.iter_mut().zip(0..).for_each(|(flow, place)| flow.place = place);
        flows.sort_by_key(|flow| flow.inner.start);
        Self { flows, next: 0, active: Vec::new(), pairs, found: Vec::new(), whole: None }
    }

    /// The pairs that exchange anything, by number.
    pub(crate) fn pairs(&self) -> &[(Rank, Rank)] {
        &self.pairs
    }

    /// The exchanges of the next window, and whether they are those of the window before.
    pub(crate) fn window(&mut self, inner: Span) -> (&[Exchange], bool) {
        let before = self.active.len();
        self.active.retain(|flow| flow.inner.end > inner.start);
        let mut changed = self.active.len() != before;
        while let Some(&flow) = self.flows.get(self.next).filter(|flow| flow.inner.start < inner.end) {
            self.next += 1;
            if flow.inner.end > inner.start {
                self.active.push(flow);
                changed = true;
            }
        }
        if changed {
            // A few sorted runs, which a stable sort merges.
            self.active.sort_by_key(|flow| flow.place);
        }
        let whole = self.active.iter().all(|flow| covers(flow.inner, inner)).then(|| inner.len());
        if !changed && whole.is_some() && whole == self.whole {
            return (&self.found, true);
        }
        self.whole = whole;
        self.found.clear();
        for flow in &self.active {
            let elements = flow.lines * flow.inner.intersect(inner).len();
            let (horizontal, vertical) = match flow.operand {
                Operand::B => (0, elements),
                _ => (elements, 0),
            };
            match self.found.last_mut() {
                Some(last) if last.pair == flow.pair => {
                    last.horizontal += horizontal;
                    last.vertical += vertical;
                }
                _ => self.found.push(Exchange {
                    from: flow.from,
                    to: flow.to,
                    pair: flow.pair,
                    horizontal,
                    vertical,
                }),
            }
        }
        (&self.found, false)
    }
}

/// The flows by a rank, otherwise in their order. O(flows + processors).
fn gathered(flows: Vec<Lines>, processors: usize, rank: impl Fn(&Lines) -> usize) -> Vec<Lines> {
    let mut first = vec![0; processors + 1];
    flows.iter().for_each(|flow| first[rank(flow) + 1] += 1);
    (0..processors).for_each(|rank| first[rank + 1] += first[rank]);
    let mut order = vec![0; flows.len()];
    for (at, flow) in flows.iter().enumerate() {
        order[first[rank(flow)]] = at;
        first[rank(flow)] += 1;
    }
    order.into_iter().map(|at| flows[at]).collect()
}

fn covers(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The lines of one operand that each processor sends to each other one, by the bands that both need.
fn lines_of(index: &OwnerIndex, operand: Operand, flows: &mut Vec<Lines>) {
    for band in index.bands() {
        for &(inner, owner) in &band.owned {
            let from = band.members[owner];
            let others = band.members.iter().filter(|to| **to != from);
            let lines = band.lines.len();
            flows.extend(others.map(|&to| Lines { from, to, operand, inner, lines, pair: 0, place: 0 }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Shape;
    use crate::plan::shapes::{Method, MethodOptions};
    use crate::schedule::{Application, Flow, Message, ScheduleOptions, Step};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The exchanges of every window are the messages of the one-to-all flow.
        #[test]
        fn exchanges_are_the_messages(
            speeds in prop::collection::vec(0.05f64..1.0, 1..9), sides in (9u64..60, 1u64..60, 9u64..60),
            block in 1u64..20, by_sender: bool, method in 0usize..8,
        ) {
            let shape = Shape::new(sides.0, sides.1, sides.2, "test").unwrap();
            let method = Method::candidates().nth(method).unwrap_or(Method::Columns);
            let Ok(layout) = method.layout(shape, &speeds, &MethodOptions::default()) else { return Ok(()) };
            let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, block));
            let mut sent: BTreeMap<(u64, Rank, Rank), (u64, u64)> = BTreeMap::new();
            for rank in (0..speeds.len()).map(Rank) {
                for step in schedule.steps(rank) {
                    if let Step::PostReceive(Message { from, to, tag, pieces }) = step {
                        let own = |operand| {
                            let own = pieces.iter().filter(|piece| piece.operand == operand);
                            own.map(|piece| piece.rect.area()).sum::<u64>()
                        };
                        sent.insert((tag, from, to), (own(Operand::A), own(Operand::B)));
                    }
                }
            }
            let mut traffic = Traffic::new(&schedule, by_sender);
            let mut found = BTreeMap::new();
            let mut before = Vec::new();
            for (tag, inner) in (0..).zip(schedule.pivots()) {
                let (exchanges, same) = traffic.window(inner);
                prop_assert!(!same || before == exchanges);
                before = exchanges.to_vec();
                for e in &before {
                    found.insert((tag, e.from, e.to), (e.horizontal, e.vertical));
                }
            }
            prop_assert_eq!(found, sent);
        }
    }
}
