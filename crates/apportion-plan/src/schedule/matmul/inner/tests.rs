//! Schedules with boxes: every message is received, every multiply-add is computed once on operands that have
//! arrived, and every partial sum reaches the owner once.

use super::*;
use crate::plan::{Cuboid, Metrics, Shape, random_layout};
use crate::schedule::{Application, DataPath, predicted_memory};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A processor between steps.
struct State<'a> {
    steps: std::iter::Peekable<Box<dyn Iterator<Item = MatmulStep> + 'a>>,
    have: BTreeSet<(Operand, u64, u64)>,
    /// Sum of each element of C as the set of inner indices in it.
    sums: BTreeMap<(u64, u64), BTreeSet<u64>>,
    posted: BTreeMap<(Rank, u64), MatmulMessage>,
    held: u64,
    most: u64,
}

/// Runs all processors step by step on sets, each as far as it gets, and returns the table of moved elements
/// and the largest number of operands that each held for a turn.
fn check(schedule: &MatmulSchedule) -> (Vec<Vec<u64>>, Vec<u64>) {
    let p = schedule.processors();
    let Shape { m, k, n } = schedule.layout().shape();
    let elements = |rect: Rect| {
        (rect.rows.start..rect.rows.end)
            .flat_map(move |r| (rect.cols.start..rect.cols.end).map(move |c| (r, c)))
    };
    let mut states: Vec<State<'_>> = (0..p)
        .map(|rank| {
            let (a, b) = schedule.own(Rank(rank));
            let own = |operand, parts: &[crate::plan::Part]| {
                parts
                    .iter()
                    .flat_map(|part| elements(part.rect()))
                    .map(move |(r, c)| (operand, r, c))
                    .collect::<Vec<_>>()
            };
            State {
                steps: schedule.steps(Rank(rank)).peekable(),
                have: own(Operand::A, a).into_iter().chain(own(Operand::B, b)).collect(),
                sums: BTreeMap::new(),
                posted: BTreeMap::new(),
                held: 0,
                most: 0,
            }
        })
        .collect();
    // Messages under way; partial sums with what they contained when they were sent.
    type Sums = BTreeMap<(u64, u64), BTreeSet<u64>>;
    let mut mail: BTreeMap<(Rank, Rank, u64), (MatmulMessage, Sums)> = BTreeMap::new();
    let mut table = vec![vec![0; p]; p];
    loop {
        let mut moved = false;
        for rank in 0..p {
            while let Some(step) = states[rank].steps.peek() {
                if let Step::WaitReceive { from, tag } = step
                    && !mail.contains_key(&(*from, Rank(rank), *tag))
                {
                    break;
                }
                let step = states[rank].steps.next().unwrap();
                moved = true;
                let state = &mut states[rank];
                for message in step.sent() {
                    assert_eq!(message.from, Rank(rank));
                    let mut sums = BTreeMap::new();
                    for piece in &message.pieces {
                        for (r, c) in elements(piece.rect) {
                            match piece.operand {
                                Operand::C => {
                                    sums.insert((r, c), state.sums[&(r, c)].clone());
                                }
                                operand => {
                                    assert!(state.have.contains(&(operand, r, c)), "sent before it came")
                                }
                            }
                        }
                    }
                    let key = (message.from, message.to, message.tag);
                    assert!(mail.insert(key, (message.clone(), sums)).is_none(), "tags are unique");
                }
                match step {
                    Step::PostReceive(message) => {
                        assert_eq!(message.to, Rank(rank));
                        table[rank][message.from.0] += message.elements();
                        state.posted.insert((message.from, message.tag), message);
                    }
                    Step::WaitReceive { from, tag } => {
                        let (sent, sums) = mail.remove(&(from, Rank(rank), tag)).unwrap();
                        assert_eq!(state.posted.remove(&(from, tag)), Some(sent.clone()), "posted as sent");
                        for piece in &sent.pieces {
                            for (r, c) in elements(piece.rect) {
                                if piece.operand == Operand::C {
                                    let own = state.sums.get_mut(&(r, c)).unwrap();
                                    for l in &sums[&(r, c)] {
                                        assert!(own.insert(*l), "summed twice");
                                    }
                                } else {
                                    assert!(state.have.insert((piece.operand, r, c)), "came twice");
                                }
                            }
                        }
                    }
                    Step::Compute(Update { rect, inner }) => {
                        for l in inner.start..inner.end {
                            for (r, c) in elements(rect) {
                                assert!(state.have.contains(&(Operand::A, r, l)), "A({r}, {l}) is missing");
                                assert!(state.have.contains(&(Operand::B, l, c)), "B({l}, {c}) is missing");
                                assert!(state.sums.entry((r, c)).or_default().insert(l), "computed twice");
                            }
                        }
                        // A panel of the turn is made with its first update.
                        let turn = schedule.pivot_of(Rank(rank), inner.start).unwrap();
                        let (rows, cols) = schedule.lines_at(Rank(rank), inner.start).unwrap();
                        assert!(turn.contains(inner));
                        state.held = state.held.max(turn.len() * (rows.len() + cols.len()));
                        state.most = state.most.max(state.held);
                    }
                    Step::Free(_) => state.held = 0,
                    _ => {}
                }
            }
        }
        if !moved {
            break;
        }
    }
    assert!(mail.is_empty(), "everything sent is received");
    for (rank, state) in states.iter_mut().enumerate() {
        assert!(state.steps.next().is_none(), "processor {rank} waits forever");
        assert!(state.posted.is_empty());
        for rect in schedule.rects(Rank(rank)) {
            for at in elements(*rect) {
                assert_eq!(state.sums[&at].len() as u64, k, "the owner has every inner index");
            }
        }
    }
    assert_eq!(
        (0..p).map(|rank| schedule.rects(Rank(rank)).iter().map(|r| r.area()).sum::<u64>()).sum::<u64>(),
        m * n
    );
    (table, states.iter().map(|state| state.most).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    /// Elements by formula = by schedule, by direction, for both flows with and without overlap.
    #[test]
    fn flows_move_what_the_formula_says(
        m in 1u64..8, k in 1u64..14, n in 1u64..8, p in 1usize..6, cuts in 1usize..9, block in 1u64..9,
        ahead in 0u64..4, seed: u64,
    ) {
        let layout = random_layout(Shape::new(m, k, n, "test").unwrap(), p, cuts, seed);
        prop_assume!(layout.boxes().is_some());
        let metrics = Metrics::of_layout(&layout, 1.0);
        for flow in [Flow::OneToAll, Flow::Bulk] {
            let order = ScheduleOptions::new(flow, block).with_look_ahead(ahead);
            order.check_layout(&layout).unwrap();
            let schedule = MatmulSchedule::new(&layout, order);
            let (table, held) = check(&schedule);
            prop_assert_eq!(Some(&table), metrics.volume_matrix.as_ref());
            let copied = predicted_memory(&layout, order, 1, DataPath::Copied);
            let in_place = predicted_memory(&layout, order, 1, DataPath::InPlace);
            for rank in 0..p {
                prop_assert!(in_place[rank] + held[rank] <= copied[rank]);
                if schedule.boxes.as_ref().unwrap().segments(Rank(rank)).len() < 2 {
                    prop_assert_eq!(in_place[rank] + held[rank], copied[rank]);
                }
            }
            let work = (0..p).map(|rank| schedule.work(Rank(rank)) as u128).collect::<Vec<_>>();
            prop_assert_eq!(work, layout.work());
        }
    }
}

/// Two slabs of 3 and 9 inner indices in blocks of at most 3: three turns each, of one and of three indices.
#[test]
fn processors_of_unequal_depth_keep_pace() {
    let slab = |owner: usize, inner: [u64; 2]| Cuboid {
        owner: Rank(owner),
        rows: [0, 4].into(),
        cols: [0, 2].into(),
        inner: inner.into(),
    };
    let shape = Shape::new(4, 12, 2, "test").unwrap();
    let layout = Layout::of_boxes(shape, 2, [slab(0, [0, 3]), slab(1, [3, 12])]).unwrap();
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 3));
    let inner = |rank| {
        let step = |step| if let Step::Compute(Update { inner, .. }) = step { Some(inner) } else { None };
        schedule.steps(Rank(rank)).filter_map(step).collect::<Vec<Span>>()
    };
    assert_eq!(inner(0), [Span::new(0, 1), Span::new(1, 2), Span::new(2, 3)]);
    assert_eq!(inner(1), [Span::new(3, 6), Span::new(6, 9), Span::new(9, 12)]);
    // Own parts of A, of B and of C's face, and four rows and two columns of one index, or of three.
    let held = predicted_memory(&layout, schedule.order(), 1, DataPath::Copied);
    assert_eq!(held, [3 * 4 + 3 * 2 + 8 + 6, 9 * 4 + 9 * 2 + 8 + 18]);
}

/// The ring and broadcast flows refuse boxes by name.
#[test]
fn other_flows_are_refused() {
    let layout = random_layout(Shape::new(4, 4, 4, "test").unwrap(), 3, 6, 1);
    assert!(layout.boxes().is_some());
    for flow in [Flow::Ring, Flow::Broadcast] {
        let order = ScheduleOptions::new(flow, 2);
        let error = MatmulSchedule::new(&layout, order).check_size().unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains(&format!("the {flow} flow")), "{error}");
    }
    let separate = ScheduleOptions::new(Flow::Bulk, 2).with_messages(crate::schedule::Messages::Separate);
    assert_eq!(separate.check_layout(&layout).unwrap_err().exit_code(), 1);
}

/// A chain of many processors is cut into pieces, so that hops overlap: the owner of a large C receives each
/// element once, whoever computes it.
#[test]
fn chains_are_cut_into_pieces() {
    let slab = |owner: usize| Cuboid {
        owner: Rank(owner),
        rows: [0, 1000].into(),
        cols: [0, 100].into(),
        inner: [owner as u64, owner as u64 + 1].into(),
    };
    let shape = Shape::new(1000, 5, 100, "test").unwrap();
    let layout = Layout::of_boxes(shape, 5, (0..5).map(slab)).unwrap();
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 3));
    let received: Vec<u64> = schedule
        .steps(Rank(0))
        .filter_map(
            |step| if let Step::PostReceive(message) = step { Some(message.elements()) } else { None },
        )
        .collect();
    assert_eq!(received, [10_000; 10]);
    let (first, last) = (schedule.steps(Rank(4)), schedule.steps(Rank(0)));
    assert_eq!(first.filter(|step| matches!(step, Step::Send(_))).count(), 10);
    assert_eq!(last.filter(|step| matches!(step, Step::Send(_))).count(), 0);
}
