//! Every layout covers C, A and B exactly once; every metric is recounted by its definition on painted
//! matrices.

use super::{layouts, shape};
use apportion::plan::{Layout, Metrics, Part, Shape, lower_bound};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The owner of every element; panics where one is covered twice or not at all.
fn painted(rows: u64, cols: u64, parts: &[Part]) -> Vec<Vec<usize>> {
    let mut map = vec![vec![None; cols as usize]; rows as usize];
    for part in parts {
        for r in part.rows.start..part.rows.end {
            for c in part.cols.start..part.cols.end {
                let before = map[r as usize][c as usize].replace(part.owner.0);
                assert_eq!(before, None, "({r}, {c}) is covered twice");
            }
        }
    }
    map.into_iter()
        .map(|row| row.into_iter().map(|o| o.expect("an element has no owner")).collect())
        .collect()
}

fn close(ours: f64, by_hand: f64) {
    assert!((ours - by_hand).abs() <= 1e-9 * by_hand.abs().max(1.0), "{ours} against {by_hand}");
}

fn check(layout: &Layout) {
    let Shape { m, k, n } = layout.shape();
    let p = layout.processors();
    let c = painted(m, n, layout.parts());
    let a = painted(m, k, &layout.parts_of_a());
    let b = painted(k, n, &layout.parts_of_b());
    let (mut rows, mut cols) = (vec![BTreeSet::new(); p], vec![BTreeSet::new(); p]);
    let mut shares = vec![0; p];
    for (r, line) in c.iter().enumerate() {
        for (col, &owner) in line.iter().enumerate() {
            shares[owner] += 1;
            rows[owner].insert(r);
            cols[owner].insert(col);
        }
    }
    // A processor needs its rows of A and its columns of B whole; what others own of them travels.
    let mut table = vec![vec![0u64; p]; p];
    let mut free = vec![0u64; p];
    for i in 0..p {
        for &owner in rows[i].iter().flat_map(|&r| &a[r]).filter(|&&o| o != i) {
            table[i][owner] += 1;
        }
        for &owner in b.iter().flat_map(|line| cols[i].iter().map(|&col| &line[col])).filter(|&&o| o != i) {
            table[i][owner] += 1;
        }
        for r in 0..m as usize {
            for col in 0..n as usize {
                let at_hand = a[r].iter().all(|&o| o == i) && b.iter().all(|line| line[col] == i);
                free[i] += u64::from(c[r][col] == i && at_hand);
            }
        }
    }
    let half = |i: usize| rows[i].len() as f64 / m as f64 + cols[i].len() as f64 / n as f64;
    let metrics = Metrics::of_layout(layout, 1.5);
    assert_eq!(layout.shares(), shares);
    for i in 0..p {
        assert_eq!(layout.rows_by_owner()[i].len(), rows[i].len() as u64, "r of {i}");
        assert_eq!(layout.cols_by_owner()[i].len(), cols[i].len() as u64, "c of {i}");
    }
    close(metrics.sum_half_perimeters.unwrap(), (0..p).map(half).sum());
    close(metrics.largest_half_perimeter.unwrap(), (0..p).map(half).fold(0.0, f64::max));
    let bound = 2.0 * shares.iter().map(|&s| (s as f64 / (m * n) as f64).sqrt()).sum::<f64>();
    close(metrics.lower_bound.unwrap(), bound);
    close(lower_bound(layout.shape(), &shares), bound);
    assert!(metrics.sum_half_perimeters.unwrap() >= bound - 1e-9, "no layout beats the bound");
    assert_eq!(metrics.volume, Some(table.iter().flatten().sum()));
    assert_eq!(metrics.largest_direction(), table.iter().flatten().max().copied());
    assert_eq!(metrics.volume_matrix, Some(table));
    assert_eq!(metrics.communication_free, Some(free));
    assert_eq!(metrics.imbalance, 1.5);
}

#[test]
fn awkward_sizes() {
    for (m, k, n) in [(1, 1, 1), (1, 9, 1), (1, 3, 30), (30, 2, 1), (13, 7, 11), (20, 50, 20)] {
        for weights in [&[9.0, 1.0][..], &[1.0, 1.0], &[1.0, 24.0], &[2.0], &[2.0, 1.0, 1.0], &[1.0; 9]] {
            for (_, layout) in layouts(shape(m, k, n), weights) {
                check(&layout);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    #[test]
    fn any_size_and_weights(
        m in 1u64..25, k in 1u64..25, n in 1u64..25,
        weights in prop::collection::vec(0.01f64..10.0, 1..7),
    ) {
        for (_, layout) in layouts(shape(m, k, n), &weights) {
            check(&layout);
        }
    }
}
