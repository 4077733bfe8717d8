//! Column-based layouts: columns of rectangles, in the number and composition that are best, or given.
//!
//! Source: Beaumont et al. 2001 (Becker 2010, Algorithm 2.1, O(p^3)); here as a concave least-weight
//! subsequence in O(p log p) (Bui, Vidal and Ha 2018).

use super::tiling::{Objective, Tiling, Total};
use super::{LayoutMethod, descending};
use crate::error::{Error, Result};
use crate::plan::{Layout, Shape};
use std::ops::Range;

/// Columns whose widths, and rectangles whose heights, are in proportion to the weights, such that the
/// objective, by default k sum(r_i + c_i), is the smallest of all column-based layouts of these areas. O(p log
/// p).
///
/// Processors of similar weight share a column, with the fastest in the leftmost; a weight of zero gets no
/// part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns {
    /// What is minimised.
    pub(crate) objective: Objective,
    /// The matrix to which half-perimeters are relative, if only a part of it is laid out.
    pub(crate) whole: Option<Shape>,
}

impl LayoutMethod for Columns {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let order = descending(weights);
        let frame = self.objective.frame(shape, self.whole);
        let tiling = match frame.total {
            Total::Sum => best_columns(weights, &order, frame.high, frame.wide),
            Total::Largest => columns_of_least_largest(weights, &order, frame.high, frame.wide),
        };
        Ok(frame.layout(&tiling, weights))
    }
}

/// The optimal columns of some processors, given from the fastest to the slowest, on a `high` x `wide`
/// rectangle.
pub(super) fn best_columns(weights: &[f64], order: &[usize], high: f64, wide: f64) -> Tiling {
    let ascending: Vec<f64> = order.iter().rev().map(|&i| weights[i]).collect();
    let p = order.len();
    let ranges = split(&ascending, wide / high);
    Tiling::columns(ranges.into_iter().rev().map(|r| &order[p - r.end..p - r.start]))
}

/// The cost of [`best_columns`]: the sum of the half-perimeters, or the largest.
pub(super) fn columns_cost(weights: &[f64], order: &[usize], high: f64, wide: f64, total: Total) -> f64 {
    let ascending: Vec<f64> = order.iter().rev().map(|&i| weights[i]).collect();
    let all: f64 = ascending.iter().sum();
    let column = |r: Range<usize>| {
        let (count, fastest) = (r.len() as f64, ascending[r.end - 1]);
        let sum: f64 = ascending[r].iter().sum();
        let width = sum / all * wide;
        match total {
            Total::Sum => high + count * width,
            Total::Largest => fastest / sum * high + width,
        }
    };
    split(&ascending, wide / high).into_iter().map(column).fold(0.0, |sum, cost| total.of(sum, cost))
}

/// The cheapest split of ascending weights into consecutive columns, where a column of q processors and total
/// fraction w costs 1 + q w `aspect`.
fn split(ascending: &[f64], aspect: f64) -> Vec<Range<usize>> {
    let p = ascending.len();
    let total: f64 = ascending.iter().sum();
    let mut prefix = vec![0.0; p + 1];
    for (i, w) in ascending.iter().enumerate() {
        prefix[i + 1] = prefix[i] + w / total;
    }
    let mut best = vec![0.0; p + 1];
    let mut from = vec![0; p + 1];
    let cost =
        |best: &[f64], i: usize, j: usize| best[i] + 1.0 + (j - i) as f64 * (prefix[j] - prefix[i]) * aspect;
    // Candidates (i, first j that i serves best), increasing in both: the quadrangle inequality holds, so the
    // best last cut moves only to the right.
    let mut candidates = std::collections::VecDeque::from([(0usize, 1usize)]);
    for j in 1..=p {
        while candidates.get(1).is_some_and(|&(_, start)| start <= j) {
            candidates.pop_front();
        }
        let i = candidates[0].0;
        best[j] = cost(&best, i, j);
        from[j] = i;
        if j == p {
            break;
        }
        while let Some(&(rival, start)) = candidates.back() {
            let start = start.max(j + 1);
            if cost(&best, j, start) <= cost(&best, rival, start) {
                candidates.pop_back();
                if candidates.is_empty() {
                    candidates.push_back((j, j + 1));
                    break;
                }
                continue;
            }
            // First place in (start, p] where j is better, by bisection.
            let (mut worse, mut better) = (start, p + 1);
            while better - worse > 1 {
                let middle = worse + (better - worse) / 2;
                if cost(&best, j, middle) <= cost(&best, rival, middle) {
                    better = middle;
                } else {
                    worse = middle;
                }
            }
            if better <= p {
                candidates.push_back((j, better));
            }
            break;
        }
    }
    let mut ranges = Vec::new();
    let mut end = p;
    while end > 0 {
        ranges.push(from[end]..end);
        end = from[end];
    }
    ranges.reverse();
    ranges
}

/// Up to this number of processors every set partition is tried: 21,147 for nine.
const FEW: usize = 9;

/// Up to this number of processors all runs of the sorted processors are tried.
const MOST: usize = 4000;

/// Columns of small largest half-perimeter, for processors given from the fastest to the slowest, on a `high` x `wide` rectangle: the
/// optimum for up to nine processors, or the best runs of the sorted processors for up to 4,000; above that
/// the columns of least sum. O(p^2) between.
///
/// A column of total fraction s whose fastest processor has the fraction f costs s wide + f/s high: only the
/// fastest and the sum count, so that the best columns need not be runs of the sorted processors.
pub(super) fn columns_of_least_largest(weights: &[f64], order: &[usize], high: f64, wide: f64) -> Tiling {
    match order.len() {
        0..=FEW => partitions(weights, order, high, wide, None),
        _ if order.len() <= MOST => runs(weights, order, high, wide),
        _ => best_columns(weights, order, high, wide),
    }
}

/// Columns of `rows` processors each: the best partition for few processors, or runs of the sorted ones.
pub(super) fn grid_of_least_largest(
    weights: &[f64],
    order: &[usize],
    high: f64,
    wide: f64,
    rows: usize,
) -> Tiling {
    if order.len() <= FEW {
        partitions(weights, order, high, wide, Some(rows))
    } else {
        Tiling::columns(order.chunks(rows))
    }
}

/// The best set partition, into columns of `size` processors each if it is given.
fn partitions(weights: &[f64], order: &[usize], high: f64, wide: f64, size: Option<usize>) -> Tiling {
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

/// One column for each group, from the left, as wide as the group's sum of weights. Its members are placed
/// from the top in the given order, as high as their weights. O(p log p).
///
/// Loads balance as well as whole numbers allow; volume k (c m + sum of r_j w_j - m - n) for c columns of r_j
/// processors and width w_j.
///
/// Source: the more restricted column-based layout of Kalinov and Lastovetsky 2001 (Becker 2010, Algorithm
/// 2.2; Lastovetsky's slides, Algorithm 1).
///
/// # Errors
/// A processor that does not exist, that is in two groups, or that has a weight but no group: exit code 2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnGroups<'a> {
    /// The ranks of each column, from left to right and from top to bottom.
    pub(crate) groups: &'a [Vec<usize>],
}

impl LayoutMethod for ColumnGroups<'_> {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let wrong =
            |what: String| Err(Error::input("column groups", what, "name every processor exactly once"));
        let mut seen = vec![false; weights.len()];
        for &processor in self.groups.iter().flatten() {
            match seen.get_mut(processor) {
                None => return wrong(format!("there is no processor {processor} among {}", weights.len())),
                Some(true) => return wrong(format!("processor {processor} is in the groups twice")),
                Some(place) => *place = true,
            }
        }
        if let Some(lost) = (0..weights.len()).find(|&i| weights[i] > 0.0 && !seen[i]) {
            return wrong(format!("processor {lost} is in no group"));
        }
        let working: Vec<Vec<usize>> = self
            .groups
            .iter()
            .map(|g| g.iter().copied().filter(|&i| weights[i] > 0.0).collect::<Vec<_>>())
            .filter(|g| !g.is_empty())
            .collect();
        Ok(Tiling::columns(working.iter().map(Vec::as_slice)).layout(shape, weights, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use proptest::prelude::*;

    fn price(weights: &[f64], groups: &[Vec<usize>], aspect: f64) -> f64 {
        let total: f64 = weights.iter().sum();
        groups
            .iter()
            .map(|g| 1.0 + g.len() as f64 * g.iter().map(|&i| weights[i]).sum::<f64>() / total * aspect)
            .sum()
    }

    /// Every set partition of 0..p into columns: slow and obviously right.
    fn cheapest(weights: &[f64], aspect: f64) -> f64 {
        fn place(i: usize, weights: &[f64], groups: &mut Vec<Vec<usize>>, aspect: f64) -> f64 {
            if i == weights.len() {
                return price(weights, groups, aspect);
            }
            let mut best = f64::INFINITY;
            for g in 0..=groups.len() {
                if g == groups.len() {
                    groups.push(vec![i]);
                } else {
                    groups[g].push(i);
                }
                best = best.min(place(i + 1, weights, groups, aspect));
                groups[g].pop();
                groups.retain(|group| !group.is_empty());
            }
            best
        }
        place(0, weights, &mut Vec::new(), aspect)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn optimal_over_all_column_partitions(
            weights in prop::collection::vec(0.01f64..10.0, 1..=9), aspect in 0.2f64..5.0,
        ) {
            let mut ascending = weights.clone();
            ascending.sort_by(f64::total_cmp);
            let groups: Vec<Vec<usize>> = split(&ascending, aspect).into_iter().map(Iterator::collect).collect();
            let ours = price(&ascending, &groups, aspect);
            prop_assert!(ours <= cheapest(&ascending, aspect) + 1e-9);
        }

        /// Against the plain O(p^2) recurrence.
        #[test]
        fn agrees_with_the_quadratic_recurrence(
            weights in prop::collection::vec(0.001f64..10.0, 1..=2000), aspect in 0.2f64..5.0,
        ) {
            let mut w = weights;
            w.sort_by(f64::total_cmp);
            let total: f64 = w.iter().sum();
            let mut prefix = vec![0.0];
            for x in &w {
                prefix.push(prefix[prefix.len() - 1] + x / total);
            }
            let mut best = vec![0.0_f64];
            for j in 1..=w.len() {
                let f = (0..j).map(|i| best[i] + 1.0 + (j - i) as f64 * (prefix[j] - prefix[i]) * aspect);
                best.push(f.fold(f64::INFINITY, f64::min));
            }
            let groups: Vec<Vec<usize>> = split(&w, aspect).into_iter().map(Iterator::collect).collect();
            prop_assert!((price(&w, &groups, aspect) - best[w.len()]).abs() < 1e-9);
        }
    }

    #[test]
    fn nine_equal_processors_make_a_grid() {
        let shape = Shape::new(90, 90, 90, "test").unwrap();
        let layout = Columns::default().layout(shape, &[1.0; 9]).unwrap();
        let metrics = Metrics::of_layout(&layout, 1.0);
        assert_eq!(metrics.sum_half_perimeters, Some(6.0));
        assert_eq!(layout.shares(), [900; 9]);
    }

    #[test]
    fn awkward_inputs() {
        let shape = Shape::new(7, 5, 3, "test").unwrap();
        assert_eq!(Columns::default().layout(shape, &[2.0]).unwrap().shares(), [21]);
        assert_eq!(Columns::default().layout(shape, &[1.0, 0.0, 1.0]).unwrap().shares()[1], 0);
        let many = Columns::default().layout(shape, &[1.0; 50]).unwrap();
        assert_eq!(many.shares().iter().sum::<u64>(), 21);
    }

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

    /// Figure 2.6's kind of example: a 3 x 3 grid of processors.
    #[test]
    fn three_columns_of_three() {
        let shape = Shape::new(120, 120, 120, "test").unwrap();
        let weights = [6.0, 3.0, 3.0, 1.0, 2.0, 3.0, 2.0, 2.0, 2.0];
        let groups = [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8]];
        let layout = ColumnGroups { groups: &groups }.layout(shape, &weights).unwrap();
        assert_eq!(layout.shares(), [3600, 1800, 1800, 600, 1200, 1800, 1200, 1200, 1200]);
        let spans: Vec<[u64; 2]> = layout.parts().iter().take(3).map(|p| p.cols.into()).collect();
        assert_eq!(spans, [[0, 60], [60, 90], [90, 120]]);
        assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(4 * 120 * 120));
    }

    #[test]
    fn wrong_groups_are_named() {
        let shape = Shape::new(4, 4, 4, "test").unwrap();
        for groups in [vec![vec![0, 1], vec![3]], vec![vec![0, 1], vec![1, 2]], vec![vec![0], vec![2]]] {
            assert_eq!(
                ColumnGroups { groups: &groups }.layout(shape, &[1.0; 3]).unwrap_err().exit_code(),
                2,
                "{groups:?}"
            );
        }
        let idle =
            ColumnGroups { groups: &[vec![0], vec![], vec![2]] }.layout(shape, &[1.0, 0.0, 1.0]).unwrap();
        assert_eq!(idle.shares(), [8, 0, 8]);
    }

    proptest! {
        /// No arrangement given beats the optimal columns (up to rounding).
        #[test]
        fn never_better_than_the_optimal_columns(
            weights in prop::collection::vec(0.1f64..10.0, 1..7), picks in prop::collection::vec(0usize..3, 7),
        ) {
            let shape = Shape::new(2000, 2000, 2000, "test").unwrap();
            let mut groups = vec![Vec::new(); 3];
            (0..weights.len()).for_each(|i| groups[picks[i]].push(i));
            let cost = |layout: &Layout| Metrics::of_layout(layout, 1.0).sum_half_perimeters.unwrap();
            let ours = cost(&ColumnGroups { groups: &groups }.layout(shape, &weights).unwrap());
            let best = cost(&Columns::default().layout(shape, &weights).unwrap());
            prop_assert!(ours >= best - weights.len() as f64 / 1000.0);
        }
    }
}
