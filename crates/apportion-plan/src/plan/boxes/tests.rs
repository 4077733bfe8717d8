//! Costs and owners of boxes against counting element by element.

use super::*;
use crate::plan::{Layout, Metrics, Plan};
use crate::random::Random;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A layout of boxes by random cuts across random sides; each box belongs to a random processor, so that some
/// have several boxes and some none.
pub(crate) fn random_layout(shape: Shape, processors: usize, cuts: usize, seed: u64) -> Layout {
    let mut draws = Random::new(seed);
    let mut below = move |n: u64| (draws.unit() * n as f64) as u64;
    let whole = |side| Span::new(0, side);
    let mut boxes = vec![[whole(shape.m), whole(shape.n), whole(shape.k)]];
    for _ in 0..cuts {
        let (at, side) = (below(boxes.len() as u64) as usize, below(3) as usize);
        let span = boxes[at][side];
        if span.len() > 1 {
            let cut = span.start + 1 + below(span.len() - 1);
            let mut other = boxes[at];
            (boxes[at][side].end, other[side].start) = (cut, cut);
            boxes.push(other);
        }
    }
    let owned = boxes.into_iter().map(|[rows, cols, inner]| Cuboid {
        owner: Rank(below(processors as u64) as usize),
        rows,
        cols,
        inner,
    });
    Layout::of_boxes(shape, processors, owned.collect::<Vec<_>>()).unwrap()
}

fn shape(m: u64, k: u64, n: u64) -> Shape {
    Shape::new(m, k, n, "test").unwrap()
}

/// The processor that computes each multiply-add, by (row, column, inner index).
fn computing(layout: &Layout) -> BTreeMap<[u64; 3], usize> {
    let mut owners = BTreeMap::new();
    for one in layout.cuboids() {
        for i in one.rows.start..one.rows.end {
            for j in one.cols.start..one.cols.end {
                for l in one.inner.start..one.inner.end {
                    assert!(owners.insert([i, j, l], one.owner.0).is_none(), "({i}, {j}, {l}) twice");
                }
            }
        }
    }
    let Shape { m, k, n } = layout.shape();
    assert_eq!(owners.len() as u64, m * k * n);
    owners
}

/// Where a line of C is on an axis of `from` if the cuts are moved to one of `to` by rounding each to
/// nearest: the last line whose own start is moved to `index` or before.
fn line_of(index: u64, from: u64, to: u64) -> u64 {
    (0..from).rev().find(|cut| (2 * cut * to + from) / (2 * from) <= index).unwrap()
}

/// Elements as `[to][from]` by three loops: operands from their owners, partial sums along the processors in
/// the order of their first inner index.
fn counted(layout: &Layout) -> Vec<Vec<u64>> {
    let Shape { m, k, n } = layout.shape();
    let computing = computing(layout);
    let mut moved = BTreeSet::new();
    for (&[i, j, l], &to) in &computing {
        moved.insert(("a", i, l, to, computing[&[i, line_of(l, n, k), l]]));
        moved.insert(("b", l, j, to, computing[&[line_of(l, m, k), j, l]]));
    }
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let mut chain: Vec<usize> = Vec::new();
        for l in 0..k {
            let one = computing[&[i, j, l]];
            if !chain.contains(&one) {
                chain.push(one);
            }
        }
        chain.windows(2).for_each(|pair| {
            moved.insert(("c", i, j, pair[0], pair[1]));
        });
    }
    let p = layout.processors();
    let mut table = vec![vec![0; p]; p];
    moved.iter().filter(|(.., to, from)| to != from).for_each(|(.., to, from)| table[*to][*from] += 1);
    table
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn formulae_agree_with_counting(
        m in 1u64..7, k in 1u64..9, n in 1u64..7, p in 1usize..5, cuts in 0usize..9, seed: u64,
    ) {
        let layout = random_layout(shape(m, k, n), p, cuts, seed);
        let metrics = Metrics::of_layout(&layout, 1.0);
        let table = counted(&layout);
        prop_assert_eq!(metrics.volume.unwrap(), table.iter().flatten().sum::<u64>());
        prop_assert!(metrics.volume_bound.unwrap() <= metrics.volume.unwrap());
        prop_assert_eq!(metrics.volume_matrix.as_ref().unwrap(), &table);
        prop_assert_eq!(layout.shares().iter().sum::<u64>(), m * n);
        prop_assert_eq!(layout.work().iter().sum::<u128>(), u128::from(m * k * n));
        // Every element of A and B has one owner.
        let area = |parts: Vec<Part>| parts.iter().map(|part| part.rect().area()).sum::<u64>();
        prop_assert_eq!((area(layout.parts_of_a()), area(layout.parts_of_b())), (m * k, k * n));
        // Elements of C whose processor receives nothing for them.
        let computing = computing(&layout);
        let mut free = vec![0; p];
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let own = computing[&[i, j, 0]];
            let alone = (0..k).all(|l| {
                let at = |i, j| computing[&[i, j, l]];
                [at(i, j), at(i, line_of(l, n, k)), at(line_of(l, m, k), j)] == [own; 3]
            });
            free[own] += u64::from(alone);
        }
        prop_assert_eq!(metrics.communication_free.as_ref().unwrap(), &free);
        // The cells cover C, in the order of inner indices.
        for cell in cells(&layout.cuboids()) {
            let (i, j) = (cell.rect.rows.start, cell.rect.cols.start);
            let mut chain: Vec<Rank> = Vec::new();
            for l in 0..k {
                let one = Rank(computing[&[i, j, l]]);
                if !chain.contains(&one) { chain.push(one) }
            }
            prop_assert_eq!(&cell.chain, &chain);
        }
        // The file keeps it, and forgets no box.
        let names = (0..p).map(|i| format!("p{i}")).collect();
        let plan = Plan::of_layout("boxes", names, layout, 1.0);
        prop_assert_eq!(Plan::parse(&plan.to_json(), "plan.json").unwrap(), plan);
    }

    /// The check of the cover agrees with painting every multiply-add.
    #[test]
    fn cover_check_agrees_with_painting(
        boxes in prop::collection::vec((0u64..3, 1u64..4, 0u64..3, 1u64..4, 0u64..3, 1u64..4), 1..6)
    ) {
        let s = shape(3, 3, 3);
        let span = |at: u64, length: u64| Span::new(at, (at + length).min(3));
        let boxes: Vec<Cuboid> = boxes.iter()
            .map(|&(r, h, c, w, i, d)| Cuboid {
                owner: Rank(0), rows: span(r, h), cols: span(c, w), inner: span(i, d),
            })
            .collect();
        let mut painted = [0; 27];
        for one in &boxes {
            for i in one.rows.start..one.rows.end {
                for j in one.cols.start..one.cols.end {
                    for l in one.inner.start..one.inner.end {
                        painted[(9 * i + 3 * j + l) as usize] += 1;
                    }
                }
            }
        }
        let exact = painted.iter().all(|&x| x == 1);
        prop_assert_eq!(Layout::of_boxes(s, 1, boxes).is_ok(), exact);
    }
}

/// Every way to cut small cubes once in each direction is accepted; with one box moved or missing, refused.
#[test]
fn covers_are_exact() {
    let s = shape(2, 2, 2);
    let halves = [Span::new(0, 1), Span::new(1, 2)];
    let one = |i: usize| Cuboid {
        owner: Rank(0),
        rows: halves[i & 1],
        cols: halves[i >> 1 & 1],
        inner: halves[i >> 2],
    };
    let all: Vec<Cuboid> = (0..8).map(one).collect();
    assert!(Layout::of_boxes(s, 1, all.clone()).is_ok());
    for i in 0..8 {
        let mut bad = all.clone();
        bad.remove(i);
        let error = Layout::of_boxes(s, 1, bad.clone()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("covered twice, or not at all"), "{error}");
        bad.push(all[(i + 1) % 8]);
        assert!(Layout::of_boxes(s, 1, bad).is_err());
    }
    for (bad, words) in [
        (Cuboid { inner: Span { start: 2, end: 1 }, ..one(0) }, "ends before it starts"),
        (Cuboid { inner: Span::new(1, 3), ..one(0) }, "inner dimension of 2"),
        (Cuboid { owner: Rank(1), ..one(0) }, "does not exist"),
    ] {
        let error = Layout::of_boxes(s, 1, [bad]).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let many = (0..5000).map(|i| Cuboid {
        owner: Rank(0),
        rows: Span::new(0, 1),
        cols: Span::new(0, 1),
        inner: Span::new(i, i + 1),
    });
    assert!(Layout::of_boxes(shape(1, 5000, 1), 1, many).unwrap_err().to_string().contains("4096"));
}

/// Without inner cuts, boxes are an ordinary layout.
#[test]
fn whole_boxes_are_parts() {
    let s = shape(4, 5, 6);
    let one = |owner, rows: [u64; 2]| Cuboid {
        owner: Rank(owner),
        rows: rows.into(),
        cols: [0, 6].into(),
        inner: [0, 5].into(),
    };
    let layout = Layout::of_boxes(s, 2, [one(0, [0, 3]), one(1, [3, 4])]).unwrap();
    assert_eq!(layout.boxes(), None);
    assert_eq!(layout.shares(), [18, 6]);
    assert_eq!(layout.cuboids().len(), 2);
    layout.refuse_boxes("test").unwrap();
}

/// Three slabs across the inner dimension, by hand: nothing of A and B travels, C twice.
#[test]
fn slabs_by_hand() {
    let slab = |owner: usize, inner: [u64; 2]| Cuboid {
        owner: Rank(owner),
        rows: [0, 3].into(),
        cols: [0, 5].into(),
        inner: inner.into(),
    };
    let layout =
        Layout::of_boxes(shape(3, 10, 5), 3, [slab(2, [0, 2]), slab(0, [2, 5]), slab(1, [5, 10])]).unwrap();
    assert_eq!(layout.rects_by_owner()[2], [Rect::new(Span::new(0, 3), Span::new(0, 5))]);
    assert_eq!(layout.work(), [45, 75, 30]);
    // 45 / 10, 75 / 10 and 30 / 10; one of the halves is rounded up.
    assert_eq!(layout.shares(), [5, 7, 3]);
    assert_eq!(layout.sizes(), [15, 15, 15]);
    let metrics = Metrics::of_layout(&layout, 1.0);
    // 2 sqrt(135) + 15, 55 and 2 sqrt(90) + 10 elements are touched at least, and 95 are there: 27.2.
    assert_eq!((metrics.volume, metrics.volume_bound), (Some(30), Some(28)));
    assert_eq!(metrics.volume_matrix, Some(vec![vec![0, 15, 0], vec![0, 0, 0], vec![15, 0, 0]]));
    assert_eq!(metrics.sum_half_perimeters, Some(6.0));
    assert_eq!(metrics.communication_free, Some(vec![0, 0, 0]));
    assert_eq!(layout.refuse_boxes("ring").unwrap_err().exit_code(), 1);
}
