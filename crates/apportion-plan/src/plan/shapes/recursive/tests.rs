//! Against closed forms, all cuts, and bounds.

use super::*;
use proptest::prelude::*;

fn cost(weights: &[f64]) -> f64 {
    search(weights, &descending(weights), 1.0, 1.0, Total::Sum).cost(weights, 1.0, 1.0, Total::Sum)
}

fn bound(weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| 2.0 * (w / total).sqrt()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Sorting loses little: runs of the sorted processors, followed by exchanges, come within a
    /// hundredth of all cuts.
    #[test]
    fn close_to_all_cuts(weights in prop::collection::vec(0.05f64..1.0, 2..6), wide in 0.3f64..3.0) {
        let order = descending(&weights);
        let sum: f64 = weights.iter().sum();
        let areas: Vec<f64> = weights.iter().map(|w| w / sum * wide).collect();
        let ours = search(&weights, &order, 1.0, wide, Total::Sum).cost(&weights, 1.0, wide, Total::Sum);
        let cuts = all_cuts(&areas, 1.0, wide, Total::Sum);
        prop_assert!(ours <= cuts * 1.01, "{}", ours / cuts);
        // The largest half-perimeter is never above that of any cuts.
        let total = Total::Largest;
        let ours = search(&weights, &order, 1.0, wide, total).cost(&weights, 1.0, wide, total);
        prop_assert!(ours <= all_cuts(&areas, 1.0, wide, total) * (1.0 + 1e-9));
    }

    /// Never above the optimal columns, never below the bound, never above the published guarantee.
    #[test]
    fn between_the_bound_and_the_columns(
        weights in prop::collection::vec(0.01f64..1.0, 1..30), skew in 0.2f64..8.0,
    ) {
        let skewed: Vec<f64> = weights.iter().map(|w| w.powf(skew)).collect();
        let ours = cost(&skewed);
        let columns = columns_cost(&skewed, &descending(&skewed), 1.0, 1.0, Total::Sum);
        prop_assert!(ours <= columns + 1e-9, "{} {}", ours, columns);
        prop_assert!(ours >= bound(&skewed) - 1e-9);
        prop_assert!(ours <= bound(&skewed) * 2.0 / 3.0_f64.sqrt());
        let order = descending(&skewed);
        for total in [Total::Sum, Total::Largest] {
            let quick = search_quickly(&skewed, &order, 1.0, 1.0, total).cost(&skewed, 1.0, 1.0, total);
            prop_assert!(quick <= columns_cost(&skewed, &order, 1.0, 1.0, total) + 1e-9);
        }
    }

    /// Three processors: never above the closed forms (DeFlumere and Lastovetsky 2014). Up to six: within
    /// 1.104.
    #[test]
    fn few_processors_are_served_best(
        weights in prop::collection::vec(0.01f64..1.0, 2..7), skew in 0.2f64..8.0,
    ) {
        let skewed: Vec<f64> = weights.iter().map(|w| w.powf(skew)).collect();
        prop_assert!(cost(&skewed) <= 1.104 * bound(&skewed));
        if let Some(three) = skewed.get(..3) {
            let sum: f64 = three.iter().sum();
            let mut area: Vec<f64> = three.iter().map(|w| w / sum).collect();
            area.sort_by(|a, b| b.total_cmp(a));
            let roots = [area[1].sqrt(), area[2].sqrt()];
            let corner = if roots[0] + roots[1] <= 1.0 { 2.0 + 2.0 * (roots[0] + roots[1]) } else { 4.0 };
            let strip = if roots[1] <= 1.0 - area[1] { 3.0 + 2.0 * roots[1] } else { 4.0 };
            let closed = corner.min(strip).min(3.0 + area[1] + area[2]);
            prop_assert!(cost(three) <= closed * (1.0 + CLOSE), "{:?} {} {}", area, cost(three), closed);
        }
    }

    /// The price found by looking ahead is never less than that of the tiling built, for either
    /// objective.
    #[test]
    fn prices_are_those_of_tilings(weights in prop::collection::vec(0.01f64..1.0, 2..7), wide in 0.2f64..5.0) {
        let order = descending(&weights);
        for total in [Total::Sum, Total::Largest] {
            let mut search = Search::new(&weights, &order, 1.0, wide, total);
            let run = Run { from: 0, to: order.len(), high: 1.0 };
            let depth = search.depth(run);
            let price = search.best(run, depth).0;
            let (cost, tiling) = search.build(run);
            let built = tiling.cost(&weights, 1.0, wide, total);
            prop_assert!((built - cost).abs() < 1e-9, "{} {}", built, cost);
            prop_assert!((built - price).abs() < 1e-9, "{} {}", built, price);
            let polished = super::search(&weights, &order, 1.0, wide, total).cost(&weights, 1.0, wide, total);
            prop_assert!(polished <= built + 1e-9);
        }
    }

    /// No part's half-perimeter is below its square's.
    #[test]
    fn the_largest_is_at_least_a_square(weights in prop::collection::vec(0.01f64..1.0, 1..12)) {
        let order = descending(&weights);
        let sum: f64 = weights.iter().sum();
        let tiling = search(&weights, &order, 1.0, 1.0, Total::Largest);
        let least = 2.0 * (weights[order[0]] / sum).sqrt();
        let largest = tiling.cost(&weights, 1.0, 1.0, Total::Largest);
        prop_assert!(largest >= least - 1e-9);
        let by_sum = search(&weights, &order, 1.0, 1.0, Total::Sum).cost(&weights, 1.0, 1.0, Total::Largest);
        prop_assert!(largest <= by_sum + 1e-9);
    }
}

/// Two processors: the closed forms, min(3, 2 + 2 sqrt(a2)).
#[test]
fn two_processors_are_solved() {
    for ratio in [1.0, 2.0, 2.9, 3.1, 10.0, 1000.0_f64] {
        let closed = (2.0 + 2.0 * (1.0 / (1.0 + ratio)).sqrt()).min(3.0);
        assert!((cost(&[1.0, ratio]) - closed).abs() < 1e-9, "{ratio}");
    }
}

/// Far more than look-ahead can afford: still no more than columns, and in bounded time.
#[test]
fn ten_thousand_processors() {
    let weights: Vec<f64> = (1..=10_000).map(|i| 1.0 / f64::from(i)).collect();
    let order = descending(&weights);
    let columns = columns_cost(&weights, &order, 1.0, 1.0, Total::Sum);
    assert!(cost(&weights) <= columns && cost(&weights) < 1.03 * bound(&weights));
    let shape = Shape::new(3000, 3000, 3000, "test").unwrap();
    assert_eq!(Recursive::default().layout(shape, &weights).unwrap().shares().iter().sum::<u64>(), 9_000_000);
}

#[test]
fn awkward_inputs() {
    let shape = Shape::new(3, 2, 5, "test").unwrap();
    assert_eq!(Recursive::default().layout(shape, &[0.0, 1.0]).unwrap().shares(), [0, 15]);
    let many = Recursive::default().layout(shape, &[1.0; 40]).unwrap();
    assert_eq!(many.shares().iter().sum::<u64>(), 15);
    let steep: Vec<f64> = (0..300).map(|i| 0.1_f64.powi(i)).collect();
    assert_eq!(Recursive::default().layout(shape, &steep).unwrap().shares()[0], 14);
}

/// The quick search looks ahead by one step only, and loses less than a hundredth on the mean.
#[test]
fn the_quick_search_loses_little() {
    let mut random = crate::random::Random::new(5);
    for (p, most) in [(6, 1.01), (12, 1.005), (40, 1.005)] {
        let mut lost = 0.0;
        for _ in 0..20 {
            let weights: Vec<f64> = (0..p).map(|_| 20f64.powf(random.unit())).collect();
            let order = descending(&weights);
            let quick =
                search_quickly(&weights, &order, 1.0, 1.0, Total::Sum).cost(&weights, 1.0, 1.0, Total::Sum);
            lost += quick / cost(&weights) / 20.0;
        }
        assert!((1.0 - 1e-3..most).contains(&lost), "{p}: {lost}");
    }
}

/// The smallest cost of all recursive straight cuts, with any processors on either side: slow and
/// obviously right.
fn all_cuts(areas: &[f64], high: f64, wide: f64, total: Total) -> f64 {
    if areas.len() == 1 {
        return high + wide;
    }
    let whole: f64 = areas.iter().sum();
    let mut best = f64::INFINITY;
    for mask in 1..1u32 << (areas.len() - 1) {
        let side = |wanted| (0..areas.len()).filter(move |i| mask >> i & 1 == wanted).map(|i| areas[i]);
        let (one, two): (Vec<f64>, Vec<f64>) = (side(1).collect(), side(0).collect());
        let part = one.iter().sum::<f64>() / whole;
        let cost = |cut: [f64; 4]| {
            total.of(all_cuts(&one, cut[0], cut[1], total), all_cuts(&two, cut[2], cut[3], total))
        };
        let rows = cost([high * part, wide, high * (1.0 - part), wide]);
        best = best.min(rows).min(cost([high, wide * part, high, wide * (1.0 - part)]));
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_cuts_cost_less(weights in prop::collection::vec(0.02f64..1.0, 2..6), wide in 0.3f64..3.0) {
        let order: Vec<usize> = (0..weights.len()).collect();
        for total in [Total::Sum, Total::Largest] {
            let found = best_cuts(&weights, &order, 1.0, wide, total).cost(&weights, 1.0, wide, total);
            let oracle = all_cuts(&weights, 1.0, wide, total);
            prop_assert!((found - oracle).abs() < 1e-9, "{:?} {} {}", total, found, oracle);
        }
    }
}
