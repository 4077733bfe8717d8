//! What every method of two dimensions promises about its layouts, beyond covering each element once.

use super::{layouts, shape};
use apportion::plan::shapes::{LayoutMethod, LeastCost, Method, Objective};
use apportion::plan::{Layout, Metrics, Shape, message_steps, outlines, star_volume};
use apportion_testing::cases;
use proptest::prelude::*;

/// Methods that serve any number of processors and any weights.
const UNIVERSAL: [Method; 6] =
    [Method::Rows, Method::Columns, Method::Grid, Method::Cartesian, Method::NagamochiAbe, Method::Recursive];

/// Layouts of every method, and of the choices among methods.
fn all(shape: Shape, weights: &[f64]) -> Vec<(String, Layout)> {
    let methods = layouts(shape, weights);
    for method in UNIVERSAL {
        assert!(methods.iter().any(|(m, _)| *m == method), "{method} serves any input");
    }
    let mut all: Vec<_> = methods.into_iter().map(|(method, layout)| (method.to_string(), layout)).collect();
    all.push(("least cost".into(), LeastCost::default().layout(shape, weights).unwrap()));
    for objective in [Objective::Sum, Objective::Largest, Objective::Volume] {
        all.push((
            format!("{objective:?}"),
            LeastCost { objective, whole: None }.layout(shape, weights).unwrap(),
        ));
    }
    all
}

fn check(name: &str, layout: &Layout, weights: &[f64]) {
    let metrics = Metrics::of_layout(layout, 1.0);
    let (sum, volume) = (metrics.sum_half_perimeters.unwrap(), metrics.volume.unwrap());
    assert!(outlines(layout) >= sum - 1e-9, "{name}: an outline is at least a projection on both axes");
    let table = metrics.volume_matrix.unwrap();
    let directions = table.iter().flatten().filter(|&&moved| moved > 0).count() as u64;
    let steps = message_steps(layout);
    assert!(steps >= directions && (steps == 0) == (directions == 0), "{name}: {steps} {directions}");
    for centre in 0..layout.processors() {
        // What neither comes from the centre nor goes to it travels twice.
        let far = |to: usize, from: usize| if to == centre || from == centre { 1 } else { 2 };
        let rows = table.iter().enumerate();
        let by_hand: u64 = rows
            .flat_map(|(to, row)| row.iter().enumerate().map(move |(from, moved)| moved * far(to, from)))
            .sum();
        assert_eq!(star_volume(layout, centre).unwrap(), by_hand, "{name}: {volume} on a star of {centre}");
    }
    for (share, weight) in layout.shares().iter().zip(weights) {
        assert!(*weight > 0.0 || *share == 0, "{name}: a processor without weight has a share of {share}");
    }
}

/// Weights, some of them zero, at least one positive.
fn weights() -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![1 => Just(0.0), 3 => 0.01f64..1.0, 2 => 1.0f64..100.0, 1 => Just(1.0)];
    prop::collection::vec(one, 1..10).prop_filter("one works", |w| w.iter().any(|&x| x > 0.0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(20, 60)))]

    #[test]
    fn weights_of_zero_and_small_matrices(w in weights(), m in 1u64..14, k in 1u64..9, n in 1u64..14) {
        let first = all(shape(m, k, n), &w);
        for (name, layout) in &first {
            check(name, layout, &w);
        }
        prop_assert_eq!(all(shape(m, k, n), &w), first, "the same input gives the same layouts");
    }

    /// Shares follow the weights as well as a matrix with room for it allows (a Cartesian layout cannot).
    #[test]
    fn shares_follow_the_weights(w in prop::collection::vec(1.0f64..10.0, 1..12)) {
        let shape = shape(4001, 10, 2999);
        let total: f64 = w.iter().sum();
        for (name, layout) in layouts(shape, &w).iter().filter(|(method, _)| *method != Method::Cartesian) {
            for (share, weight) in layout.shares().iter().zip(&w) {
                let ratio = *share as f64 / (weight / total * shape.elements() as f64);
                prop_assert!((ratio - 1.0).abs() < 0.03, "{}: {}", name, ratio);
            }
        }
    }
}

#[test]
fn more_processors_than_elements() {
    for (m, n) in [(1, 1), (1, 13), (13, 1), (7, 11), (2, 3)] {
        for p in [1, 2, 3, 7, 13, 50] {
            for (name, layout) in all(shape(m, 3, n), &vec![1.0; p]) {
                check(&name, &layout, &vec![1.0; p]);
            }
        }
    }
}
