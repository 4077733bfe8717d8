//! Properties of every flow: every message is received, and every product is computed once, on operands that
//! have arrived.

use super::*;
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Metrics, Shape, shapes};
use crate::schedule::Messages;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn layouts(shape: Shape, weights: &[f64]) -> Vec<Layout> {
    let mut out = vec![
        shapes::Rows::default().layout(shape, weights).unwrap(),
        shapes::Columns::default().layout(shape, weights).unwrap(),
    ];
    out.extend(shapes::StraightLine.layout(shape, weights));
    out.extend(shapes::SquareCorner.layout(shape, weights));
    out
}

/// Walks a schedule element by element and returns the table of moved elements, `[to][from]`.
fn check(schedule: &MatmulSchedule) -> Vec<Vec<u64>> {
    let p = schedule.processors();
    let Shape { m, k, n } = schedule.layout().shape();
    let mut sent: BTreeMap<(Rank, Rank, u64), MatmulMessage> = BTreeMap::new();
    let mut received = BTreeMap::new();
    let mut table = vec![vec![0; p]; p];
    let mut computed = vec![0u32; (m * n * k) as usize];
    for rank in (0..p).map(Rank) {
        // Available elements of A and B: own ones, then those that were waited for.
        let mut have: BTreeSet<(Operand, u64, u64)> = BTreeSet::new();
        let take = |have: &mut BTreeSet<_>, operand, rect: Rect| {
            for r in rect.rows.start..rect.rows.end {
                for c in rect.cols.start..rect.cols.end {
                    assert!(have.insert((operand, r, c)), "an element came twice");
                }
            }
        };
        let (a, b) = schedule.own(rank);
        for part in a {
            take(&mut have, Operand::A, part.rect());
        }
        for part in b {
            take(&mut have, Operand::B, part.rect());
        }
        let mut posted = BTreeMap::new();
        for step in schedule.steps(rank) {
            match step {
                Step::Send(_) | Step::Broadcast(_) => {
                    for message in step.sent() {
                        assert_eq!(message.from, rank);
                        for OperandPiece { operand, rect } in &message.pieces {
                            let corners =
                                [(rect.rows.start, rect.cols.start), (rect.rows.end - 1, rect.cols.end - 1)];
                            assert!(
                                corners.iter().all(|&(r, c)| have.contains(&(*operand, r, c))),
                                "sent before it came"
                            );
                        }
                        assert!(sent.insert((rank, message.to, message.tag), message.clone()).is_none());
                    }
                }
                Step::PostReceive(message) => {
                    assert_eq!(message.to, rank);
                    table[rank.0][message.from.0] += message.elements();
                    received.insert((message.from, rank, message.tag), message.clone());
                    posted.insert((message.from, message.tag), message);
                }
                Step::WaitReceive { from, tag } => {
                    for piece in posted.remove(&(from, tag)).expect("posted before awaited").pieces {
                        take(&mut have, piece.operand, piece.rect);
                    }
                }
                Step::Compute(Update { rect, inner }) => {
                    assert!(schedule.pivots().any(|pivot| pivot.contains(inner)));
                    for i in inner.start..inner.end {
                        for r in rect.rows.start..rect.rows.end {
                            assert!(have.contains(&(Operand::A, r, i)), "A({r}, {i}) is not there");
                            for c in rect.cols.start..rect.cols.end {
                                assert!(have.contains(&(Operand::B, i, c)), "B({i}, {c}) is not there");
                                computed[((r * n + c) * k + i) as usize] += 1;
                            }
                        }
                    }
                }
                Step::WaitSends | Step::Free(_) => {}
            }
        }
        assert!(posted.is_empty(), "everything posted is awaited");
    }
    assert_eq!(sent, received);
    assert!(computed.iter().all(|&x| x == 1), "every product is computed exactly once");
    table
}

/// `[to][from]` if each of the processors with a share owns an equal number of columns of B (to within one)
/// and sends them to all others.
fn from_equal_blocks(layout: &Layout) -> Vec<Vec<u64>> {
    let (shares, Shape { k, n, .. }) = (layout.shares(), layout.shape());
    let owners: Vec<usize> = (0..shares.len()).filter(|&i| shares[i] > 0).collect();
    let mut table = vec![vec![0; shares.len()]; shares.len()];
    for column in 0..n {
        // The first blocks are the wider ones.
        let wide = n.div_ceil(owners.len() as u64);
        let first = n % owners.len() as u64 * wide;
        let block = if n % owners.len() as u64 == 0 || column < first {
            column / wide
        } else {
            n % owners.len() as u64 + (column - first) / (wide - 1)
        };
        let from = owners[block as usize];
        owners.iter().filter(|&&to| to != from).for_each(|&to| table[to][from] += k);
    }
    table
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Bytes by formula = bytes by schedule, by direction, for every flow on every layout.
    #[test]
    fn flows_move_what_the_formula_says(
        m in 1u64..12, k in 1u64..12, n in 1u64..12, block in 1u64..14, overlap: bool, look_ahead in 1u64..5,
        weights in prop::collection::vec(0.1f64..10.0, 1..5),
    ) {
        let shape = Shape::new(m, k, n, "test").unwrap();
        for layout in layouts(shape, &weights) {
            let metrics = Metrics::of_layout(&layout, 1.0);
            let mut orders = Flow::ALL.map(|flow| ScheduleOptions::new(flow, block)).to_vec();
            orders.push(ScheduleOptions::new(Flow::Bulk, block).with_messages(Messages::Separate));
            for order in orders {
                let flow = order.flow;
                let order = order.with_look_ahead(u64::from(overlap) * look_ahead);
                let table = check(&MatmulSchedule::new(&layout, order));
                prop_assert_eq!(table.iter().flatten().sum::<u64>(), metrics.volume.unwrap());
                let expected = metrics.volume_matrix.as_ref().unwrap();
                if flow == Flow::Ring {
                    // Neighbours forward elements of other owners: each processor still receives each element
                    // once.
                    let received = |t: &[Vec<u64>]| t.iter().map(|row| row.iter().sum()).collect::<Vec<u64>>();
                    prop_assert_eq!(received(&table), received(expected));
                } else if flow == Flow::Broadcast && layout.parts().iter().all(|p| p.cols.len() == n) {
                    // B is distributed in equal column blocks: the total is the same, the senders differ.
                    prop_assert_eq!(&table, &from_equal_blocks(&layout));
                } else {
                    prop_assert_eq!(&table, expected);
                }
            }
        }
    }
}

/// With a look-ahead of n blocks, exactly n + 1 blocks have been sent when the first update begins.
#[test]
fn as_many_blocks_are_under_way_as_are_looked_ahead_to() {
    let layout = shapes::Rows::default().layout(Shape::new(40, 40, 40, "test").unwrap(), &[1.0; 4]).unwrap();
    for flow in [Flow::OneToAll, Flow::Ring] {
        for look_ahead in [1, 2, 3, 9, u64::MAX] {
            let order = ScheduleOptions::new(flow, 5).with_look_ahead(look_ahead);
            let schedule = MatmulSchedule::new(&layout, order);
            let mut blocks = BTreeSet::new();
            for rank in (0..4).map(Rank) {
                for step in schedule.steps(rank).take_while(|s| !matches!(s, Step::Compute(_))) {
                    if let Step::PostReceive(message) = step {
                        blocks.extend(message.pieces.iter().map(|piece| piece.rect.rows.start / 5));
                    }
                }
            }
            assert_eq!(blocks.len() as u64, look_ahead.saturating_add(1).min(8), "{flow}");
        }
    }
}

/// Section 5.5.1: a straight line takes 2 messages, a square in the corner 4, on an edge 5, in the middle 6;
/// three processors 6 and 8.
#[test]
fn separate_messages_are_the_steps_of_the_thesis() {
    let shape = Shape::new(100, 100, 100, "test").unwrap();
    let count = |layout: &Layout, messages| {
        let schedule =
            MatmulSchedule::new(layout, ScheduleOptions::new(Flow::Bulk, 50).with_messages(messages));
        let sends = |rank| schedule.steps(Rank(rank)).map(|step| step.sent().len()).sum::<usize>();
        (0..layout.processors()).map(sends).sum::<usize>()
    };
    let two: [(&dyn LayoutMethod, usize); 4] = [
        (&shapes::StraightLine, 2),
        (&shapes::SquareCorner, 4),
        (&shapes::SquareEdge, 5),
        (&shapes::SquareMiddle, 6),
    ];
    for (method, steps) in two {
        let layout = method.layout(shape, &[8.0, 1.0]).unwrap();
        assert_eq!(count(&layout, Messages::Separate), steps);
        assert_eq!(count(&layout, Messages::Together), 2);
    }
    for (method, steps) in [(two[0].0, 6), (two[1].0, 8)] {
        let layout = method.layout(shape, &[8.0, 2.0, 1.0]).unwrap();
        assert_eq!(count(&layout, Messages::Separate), steps);
    }
    for layout in layouts(Shape::new(37, 11, 53, "test").unwrap(), &[5.0, 3.0, 1.0, 1.0]) {
        assert_eq!(count(&layout, Messages::Separate) as u64, crate::plan::message_steps(&layout));
    }
}

#[test]
fn the_free_part_is_computed_before_the_wait() {
    let shape = Shape::new(100, 100, 100, "test").unwrap();
    let layout = shapes::SquareCorner.layout(shape, &[9.0, 1.0]).unwrap();
    let order = ScheduleOptions::new(Flow::Bulk, 50).with_look_ahead(1);
    let schedule = MatmulSchedule::new(&layout, order);
    let free: u64 = schedule
        .steps(Rank(0))
        .take_while(|s| !matches!(s, Step::WaitReceive { .. }))
        .map(|s| if let Step::Compute(u) = s { u.rect.area() * u.inner.len() } else { 0 })
        .sum();
    let expected = Metrics::of_layout(&layout, 1.0).communication_free.unwrap()[0];
    assert_eq!(free, expected * 100);
}
