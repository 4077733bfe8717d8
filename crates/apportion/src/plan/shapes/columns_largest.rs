//! Columns of rectangles whose largest half-perimeter is small.
//!
//! A column of total fraction s whose fastest processor has the fraction f costs s wide + f/s high: only the
//! fastest and the sum count, so that the best columns need not be runs of the sorted processors.

use super::columns::best_columns;
use super::tiling::Tiling;

/// Up to this number of processors every set partition is tried: 21,147 for nine.
const FEW: usize = 9;

/// Up to this number of processors all runs of the sorted processors are tried.
const MOST: usize = 4000;

/// Columns of some processors, given from the fastest to the slowest, on a `high` x `wide` rectangle: the
/// optimum for up to nine processors, or the best runs of the sorted processors for up to 4,000; above that
/// the columns of least sum. O(p^2) between.
pub(super) fn columns_of_least_largest(weights: &[f64], order: &[usize], high: f64, wide: f64) -> Tiling {
    match order.len() {
        0..=FEW => partitions(weights, order, (high, wide), None),
        _ if order.len() <= MOST => runs(weights, order, high, wide),
        _ => best_columns(weights, order, high, wide),
    }
}

/// Columns of `rows` processors each: the best partition for few processors, or runs of the sorted ones.
pub(super) fn grid_of_least_largest(
    weights: &[f64],
    order: &[usize],
    (high, wide): (f64, f64),
    rows: usize,
) -> Tiling {
    if order.len() <= FEW {
        partitions(weights, order, (high, wide), Some(rows))
    } else {
        Tiling::columns(order.chunks(rows))
    }
}

/// The best set partition, into columns of `size` processors each if it is given.
fn partitions(weights: &[f64], order: &[usize], (high, wide): (f64, f64), size: Option<usize>) -> Tiling {
    struct Search<'a> {
        areas: Vec<f64>,
        sides: (f64, f64),
        size: Option<usize>,
        groups: Vec<Vec<usize>>,
        best: (f64, Vec<Vec<usize>>),
        order: &'a [usize],
    }
    impl Search<'_> {
        fn place(&mut self, at: usize) {
            if at == self.order.len() {
                let full = |g: &Vec<usize>| self.size.is_none_or(|size| g.len() == size);
                let cost = self.groups.iter().map(|g| self.cost(g)).fold(0.0, f64::max);
                if self.groups.iter().all(full) && cost < self.best.0 * (1.0 - 1e-12) {
                    self.best = (cost, self.groups.clone());
                }
                return;
            }
            for g in 0..=self.groups.len() {
                if self.groups.get(g).is_some_and(|group| Some(group.len()) == self.size) {
                    continue;
                }
                match self.groups.get_mut(g) {
                    Some(group) => group.push(at),
                    None => self.groups.push(vec![at]),
                }
                self.place(at + 1);
                self.groups[g].pop();
                if self.groups[g].is_empty() {
                    self.groups.pop();
                }
            }
        }

        /// The half-perimeter of the column's fastest processor, its first.
        fn cost(&self, group: &[usize]) -> f64 {
            let sum: f64 = group.iter().map(|&at| self.areas[at]).sum();
            self.areas[group[0]] / sum * self.sides.0 + sum * self.sides.1
        }
    }
    let all: f64 = order.iter().map(|&i| weights[i]).sum();
    let mut search = Search {
        areas: order.iter().map(|&i| weights[i] / all).collect(),
        sides: (high, wide),
        size,
        groups: Vec::new(),
        best: (f64::INFINITY, vec![(0..order.len()).collect()]),
        order,
    };
    search.place(0);
    let groups: Vec<Vec<usize>> =
        search.best.1.into_iter().map(|g| g.into_iter().map(|at| order[at]).collect()).collect();
    Tiling::columns(groups.iter().map(Vec::as_slice))
}

/// The best columns that are runs of the sorted processors.
fn runs(weights: &[f64], order: &[usize], high: f64, wide: f64) -> Tiling {
    let p = order.len();
    let all: f64 = order.iter().map(|&i| weights[i]).sum();
    let mut sums = vec![0.0; p + 1];
    for (at, &i) in order.iter().enumerate() {
        sums[at + 1] = sums[at] + weights[i] / all;
    }
    let mut best = vec![(0.0, 0); p + 1];
    for to in 1..=p {
        let cost = |from: usize| {
            let sum = sums[to] - sums[from];
            (weights[order[from]] / all / sum * high + sum * wide).max(best[from].0)
        };
        let least = (0..to).map(|from| (cost(from), from)).min_by(|a, b| a.0.total_cmp(&b.0));
        best[to] = least.expect("a run ends here");
    }
    let mut cuts = vec![p];
    while let Some(&to) = cuts.last().filter(|to| **to > 0) {
        cuts.push(best[to].1);
    }
    cuts.reverse();
    Tiling::columns(cuts.windows(2).map(|w| &order[w[0]..w[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::descending;
    use crate::plan::shapes::tiling::Total;
    use proptest::prelude::*;

    fn largest(tiling: &Tiling, weights: &[f64]) -> f64 {
        tiling.cost(weights, 1.0, 1.0, Total::Largest)
    }

    /// Every map of processors to columns: slow and obviously right.
    fn every_map(weights: &[f64]) -> f64 {
        let p = weights.len();
        let all: f64 = weights.iter().sum();
        (0..p.pow(p as u32))
            .map(|code| {
                let column = |i: usize| code / p.pow(i as u32) % p;
                let sum = |c: usize| (0..p).filter(|&i| column(i) == c).map(|i| weights[i]).sum::<f64>();
                (0..p).map(|i| weights[i] / sum(column(i)) + sum(column(i)) / all).fold(0.0, f64::max)
            })
            .fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn no_columns_have_a_smaller_largest(weights in prop::collection::vec(0.05f64..1.0, 1..6)) {
            let order = descending(&weights);
            let found = largest(&columns_of_least_largest(&weights, &order, 1.0, 1.0), &weights);
            prop_assert!((found - every_map(&weights)).abs() < 1e-9);
        }

        /// Runs are never better than partitions, and never worse than the columns of least sum.
        #[test]
        fn runs_are_between(weights in prop::collection::vec(0.05f64..1.0, 1..9)) {
            let order = descending(&weights);
            let by_runs = largest(&runs(&weights, &order, 1.0, 1.0), &weights);
            let best = largest(&columns_of_least_largest(&weights, &order, 1.0, 1.0), &weights);
            prop_assert!(by_runs >= best - 1e-9);
            prop_assert!(by_runs <= largest(&best_columns(&weights, &order, 1.0, 1.0), &weights) + 1e-9);
        }
    }

    /// The slowest in a column of its own, the others stacked: by hand.
    #[test]
    fn three_by_hand() {
        for (weights, expected) in
            [([3.0, 3.0, 2.0], 1.25), ([2.0, 2.0, 1.0], 1.3), ([5.0, 5.0, 4.0], 1.0 + 4.0 / 14.0)]
        {
            let found = columns_of_least_largest(&weights, &[0, 1, 2], 1.0, 1.0);
            assert!((largest(&found, &weights) - expected).abs() < 1e-12, "{weights:?}");
        }
        let many: Vec<f64> = (1..=5000).map(f64::from).collect();
        let order = descending(&many);
        assert!(largest(&columns_of_least_largest(&many, &order, 1.0, 1.0), &many).is_finite());
    }
}
