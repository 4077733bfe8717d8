//! Laws of every 2-D method, on small matrices, against counting element by element.
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

use apportion::error::Result;
use apportion::plan::shapes::*;
use apportion::plan::{Layout, Metrics, Shape, message_steps, outlines, star_volume};
use proptest::prelude::*;

type Method = fn(Shape, &[f64]) -> Result<Layout>;

const METHODS: [(&str, Method); 20] = [
    ("rows", rows),
    ("straight-line", straight_line),
    ("columns", columns),
    ("column-groups", |s, w| {
        column_groups(s, w, &[(0..w.len() / 2).collect(), (w.len() / 2..w.len()).collect()])
    }),
    ("grid", grid),
    ("cartesian", cartesian),
    ("nagamochi-abe", nagamochi_abe),
    ("square-corner", square_corner),
    ("square-edge", square_edge),
    ("square-middle", square_middle),
    ("square-rectangle", square_rectangle),
    ("block-rectangle", block_rectangle),
    ("hybrid serial", |s, w| hybrid(s, w, Communication::Serial)),
    ("hybrid parallel", |s, w| hybrid(s, w, Communication::Parallel)),
    ("hybrid on a star", |s, w| hybrid_three(s, w, Communication::Serial, Some(1))),
    ("recursive", recursive),
    ("least cost", |s, w| least_cost(s, w).map(|(_, layout)| layout)),
    ("sum", |s, w| choose(s, w, Objective::Sum).map(|(_, layout)| layout)),
    ("largest", |s, w| choose(s, w, Objective::Largest).map(|(_, layout)| layout)),
    ("volume", |s, w| choose(s, w, Objective::Volume).map(|(_, layout)| layout)),
];

/// Methods that serve any number of processors and any speeds.
const UNIVERSAL: [&str; 10] = [
    "rows",
    "columns",
    "column-groups",
    "grid",
    "cartesian",
    "nagamochi-abe",
    "recursive",
    "least cost",
    "sum",
    "largest",
];

/// Who owns each element of C.
fn paint(layout: &Layout) -> Vec<Vec<usize>> {
    let Shape { m, n, .. } = layout.shape();
    let mut map = vec![vec![usize::MAX; n as usize]; m as usize];
    for part in layout.parts() {
        for row in part.rows.start..part.rows.end {
            for col in part.cols.start..part.cols.end {
                assert_eq!(map[row as usize][col as usize], usize::MAX, "covered twice");
                map[row as usize][col as usize] = part.owner.0;
            }
        }
    }
    assert!(map.iter().flatten().all(|&owner| owner != usize::MAX), "not covered");
    map
}

/// The index of C that an index of the inner dimension belongs to: cuts are rounded half up.
fn origin(inner: u64, from: u64, to: u64) -> usize {
    (0..from).rev().find(|&at| (2 * at * to + from) / (2 * from) <= inner).expect("cut 0 is 0") as usize
}

/// Everything that [`Metrics`] says about the layout itself, counted on the owner map.
fn check(name: &str, layout: &Layout) -> std::result::Result<(), TestCaseError> {
    let Shape { m, k, n } = layout.shape();
    let (rows, cols, inner, p) = (m as usize, n as usize, k as usize, layout.processors());
    let c = paint(layout);
    let a: Vec<Vec<usize>> = c.iter().map(|row| (0..k).map(|l| row[origin(l, n, k)]).collect()).collect();
    let b: Vec<Vec<usize>> = (0..k).map(|l| c[origin(l, m, k)].clone()).collect();
    let mut table = vec![vec![0; p]; p];
    let (mut cost, mut largest, mut free) = (0.0, 0.0_f64, vec![0; p]);
    for to in 0..p {
        let my_rows: Vec<usize> = (0..rows).filter(|&i| c[i].contains(&to)).collect();
        let my_cols: Vec<usize> = (0..cols).filter(|&j| c.iter().any(|row| row[j] == to)).collect();
        let half = my_rows.len() as f64 / m as f64 + my_cols.len() as f64 / n as f64;
        cost += half;
        largest = largest.max(half);
        for l in 0..inner {
            my_rows.iter().map(|&i| a[i][l]).filter(|&from| from != to).for_each(|from| table[to][from] += 1);
            my_cols.iter().map(|&j| b[l][j]).filter(|&from| from != to).for_each(|from| table[to][from] += 1);
        }
        for (i, j) in my_rows.iter().flat_map(|&i| my_cols.iter().map(move |&j| (i, j))) {
            let own = c[i][j] == to && a[i].iter().all(|&x| x == to) && b.iter().all(|row| row[j] == to);
            free[to] += u64::from(own);
        }
    }
    let metrics = Metrics::of_layout(layout, 1.0);
    let (sum, bound) = (
        metrics.sum_half_perimeters.expect("right by construction"),
        metrics.lower_bound.expect("right by construction"),
    );
    prop_assert!((sum - cost).abs() < 1e-9, "{}: {} {}", name, sum, cost);
    prop_assert!(
        (metrics.largest_half_perimeter.expect("right by construction") - largest).abs() < 1e-9,
        "{}",
        name
    );
    prop_assert!(sum >= bound - 1e-9, "{}: {} below {}", name, sum, bound);
    prop_assert_eq!(
        metrics.volume.expect("right by construction"),
        table.iter().flatten().sum::<u64>(),
        "{}",
        name
    );
    prop_assert_eq!(metrics.volume_matrix.as_ref().expect("right by construction"), &table, "{}", name);
    prop_assert_eq!(metrics.communication_free.as_ref().expect("right by construction"), &free, "{}", name);
    prop_assert!(outlines(layout) >= sum - 1e-9, "{}", name);
    let steps = message_steps(layout);
    let directions = table.iter().flatten().filter(|&&moved| moved > 0).count() as u64;
    prop_assert!(steps >= directions && (steps == 0) == (directions == 0), "{}: {}", name, steps);
    let relayed = star_volume(layout, p - 1).expect("right by construction");
    prop_assert!(
        relayed >= metrics.volume.expect("right by construction")
            && relayed <= 2 * metrics.volume.expect("right by construction"),
        "{}",
        name
    );
    Ok(())
}

/// Weights, some of them zero, at least one positive.
fn weights() -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![1 => Just(0.0), 3 => 0.01f64..1.0, 2 => 1.0f64..100.0, 1 => Just(1.0)];
    prop::collection::vec(one, 1..10).prop_filter("somebody works", |w| w.iter().any(|&x| x > 0.0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn metrics_are_those_of_the_owner_map(w in weights(), m in 1u64..14, k in 1u64..9, n in 1u64..14) {
        let shape = Shape::new(m, k, n, "test").expect("right by construction");
        for (name, method) in METHODS {
            match method(shape, &w) {
                Ok(layout) => {
                    check(name, &layout)?;
                    let idle = layout.shares().iter().zip(&w).all(|(&share, &weight)| weight > 0.0 || share == 0);
                    prop_assert!(idle, "{}: a processor without weight has a share", name);
                    prop_assert_eq!(layout, method(shape, &w).expect("right by construction"), "{}", name);
                }
                Err(error) => {
                    prop_assert_eq!(error.exit_code(), 1, "{}: {}", name, error);
                    prop_assert!(!UNIVERSAL.contains(&name), "{}: {}", name, error);
                }
            }
        }
    }

    /// Loads balance as well as a matrix with room for it allows (Cartesian layouts have inherent imbalance).
    #[test]
    fn shares_follow_the_weights(w in prop::collection::vec(1.0f64..10.0, 1..12)) {
        let shape = Shape::new(4001, 10, 2999, "test").expect("right by construction");
        let total: f64 = w.iter().sum();
        for (name, method) in METHODS.iter().filter(|(name, _)| *name != "cartesian") {
            let Ok(layout) = method(shape, &w) else { continue };
            for (share, weight) in layout.shares().iter().zip(&w) {
                let ratio = *share as f64 / (weight / total * shape.elements() as f64);
                prop_assert!((ratio - 1.0).abs() < 0.03, "{}: {}", name, ratio);
            }
        }
    }
}

#[test]
fn primes_dots_and_crowds() {
    for (m, n) in [(1, 1), (1, 13), (13, 1), (7, 11), (2, 3)] {
        let shape = Shape::new(m, 3, n, "test").expect("right by construction");
        for p in [1, 2, 3, 7, 13, 50] {
            for (name, method) in METHODS {
                match method(shape, &vec![1.0; p]) {
                    Ok(layout) => check(name, &layout).expect("right by construction"),
                    Err(error) => assert!(!UNIVERSAL.contains(&name), "{name}: {error}"),
                }
            }
        }
    }
}
