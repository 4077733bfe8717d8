//! Optimisers against slow, obviously right searches over every candidate.

use super::shape;
use apportion::geometry::{Rank, Rect, Span};
use apportion::model::{Model, Point};
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::{Layout, Metrics, Part, shapes, shares};
use proptest::prelude::*;

/// Volume of the layout whose processor 1 owns the last `high` rows of the last `wide` columns.
fn corner_volume(m: u64, k: u64, n: u64, high: u64, wide: u64) -> u64 {
    let part = |owner, rows, cols| Part::new(Rank(owner), Rect::new(rows, cols));
    let parts = [
        part(0, Span::new(0, m - high), Span::new(0, n)),
        part(0, Span::new(m - high, m), Span::new(0, n - wide)),
        part(1, Span::new(m - high, m), Span::new(n - wide, n)),
    ];
    let layout = Layout::new(shape(m, k, n), 2, parts).unwrap();
    Metrics::of_layout(&layout, 1.0).volume.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Becker 2010, Theorem 5.1: of all corner rectangles of the same area the square moves least.
    #[test]
    fn no_corner_rectangle_moves_less_than_the_square(
        m in 2u64..22, k in 1u64..9, n in 2u64..22, ratio in 1.0f64..30.0,
    ) {
        let Ok(layout) = shapes::SquareCorner.layout(shape(m, k, n), &[ratio, 1.0]) else {
            // Refused only where the square does not fit.
            prop_assert!(((m * n) as f64 / (ratio + 1.0)).sqrt() > m.min(n) as f64);
            return Ok(());
        };
        let (area, side) = (layout.shares()[1], ((m * n) as f64 / (ratio + 1.0)).sqrt());
        prop_assert!((area as f64 - side * side).abs() <= 2.0 * side + 1.0, "the area is off by more than rounding");
        let ours = Metrics::of_layout(&layout, 1.0).volume.unwrap();
        let touches_an_edge = layout.parts().len() < 3;
        for high in 1..m {
            for wide in 1..n {
                if high * wide >= area && !touches_an_edge {
                    let theirs = corner_volume(m, k, n, high, wide);
                    prop_assert!(ours <= theirs, "{high} x {wide} moves {theirs}, ours of {area} moves {ours}");
                }
            }
        }
    }
}

/// The least sum of r_i + c_i over all ways to put the processors into columns, with exact (real) cut lines.
fn best_columns(m: f64, n: f64, weights: &[f64]) -> f64 {
    fn place(
        i: usize,
        weights: &[f64],
        columns: &mut Vec<Vec<usize>>,
        price: &dyn Fn(&[Vec<usize>]) -> f64,
    ) -> f64 {
        if i == weights.len() {
            return price(columns);
        }
        let mut best = f64::INFINITY;
        for at in 0..columns.len() {
            columns[at].push(i);
            best = best.min(place(i + 1, weights, columns, price));
            columns[at].pop();
        }
        columns.push(vec![i]);
        best = best.min(place(i + 1, weights, columns, price));
        columns.pop();
        best
    }
    let total: f64 = weights.iter().sum();
    let price = |columns: &[Vec<usize>]| {
        let width = |c: &Vec<usize>| n * c.iter().map(|&i| weights[i]).sum::<f64>() / total;
        columns.iter().map(|c| m + c.len() as f64 * width(c)).sum()
    };
    place(0, weights, &mut Vec::new(), &price)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    #[test]
    fn columns_are_the_best_of_all_column_partitions(
        m in 2_000u64..9_000, n in 2_000u64..9_000, weights in prop::collection::vec(0.1f64..10.0, 1..7),
    ) {
        let layout = shapes::Columns::default().layout(shape(m, 10, n), &weights).unwrap();
        let lines = |sets: Vec<apportion::geometry::SpanSet>| sets.iter().map(apportion::geometry::SpanSet::len).sum::<u64>();
        let ours = (lines(layout.rows_by_owner()) + lines(layout.cols_by_owner())) as f64;
        let best = best_columns(m as f64, n as f64, &weights);
        // A column's width is rounded by less than one, and counted once for each of its processors.
        prop_assert!(ours <= best + weights.len() as f64, "{ours} against {best}");
    }
}

/// Speed functions whose time never falls as the size grows, some with a cap.
fn model() -> impl Strategy<Value = Model> {
    let steps = prop::collection::vec((1u32..15, 1.0f64..3.0), 1..5);
    (steps, 0.01f64..1.0, prop::option::weighted(0.3, 3u32..40)).prop_map(|(steps, first, cap)| {
        let (mut size, mut per_unit) = (0.0, first);
        let points = steps.into_iter().map(|(step, slower)| {
            size += f64::from(step);
            per_unit *= slower;
            Point::new(size, size * per_unit)
        });
        Model::piecewise("p", points.collect(), cap.map(f64::from)).unwrap()
    })
}

/// The least longest time of n units, by dynamic programming over every share of every processor.
fn best_makespan(models: &[Model], n: usize) -> f64 {
    let mut best: Vec<f64> = (0..=n).map(|x| if x == 0 { 0.0 } else { f64::INFINITY }).collect();
    for model in models {
        let time: Vec<f64> = (0..=n).map(|x| model.seconds(x as f64)).collect();
        best = (0..=n)
            .map(|x| (0..=x).map(|y| best[x - y].max(time[y])).fold(f64::INFINITY, f64::min))
            .collect();
    }
    best[n]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn fpm_ends_as_soon_as_any_shares(models in prop::collection::vec(model(), 1..6), n in 0u64..90) {
        let best = best_makespan(&models, n as usize);
        match shares::fpm(&models, n) {
            Ok(found) => {
                prop_assert_eq!(found.iter().sum::<u64>(), n);
                prop_assert!(shares::makespan(&models, &found) <= best * (1.0 + 1e-9));
            }
            Err(error) => {
                prop_assert!(best.is_infinite(), "refused, but {} is possible", best);
                prop_assert_eq!(error.exit_code(), 1);
            }
        }
    }
}
