//! The optimal column-based layout: columns of rectangles, in the number and composition that move least.
//!
//! Source: Beaumont et al. 2001 (Becker 2010, Algorithm 2.1, O(p^3)); here as a concave least-weight
//! subsequence in O(p log p) (Bui, Vidal and Ha 2018).

use super::columns_largest::columns_of_least_largest;
use super::descending;
use super::objective::{Objective, in_whole_numbers};
use super::tiling::{Tiling, Total};
use crate::error::Result;
use crate::plan::{Layout, Shape};
use std::ops::Range;

/// Columns whose widths, and rectangles whose heights, are in proportion to the weights, such that k sum(r_i
/// + c_i) is the smallest of all column-based layouts of these areas. O(p log p).
///
/// Processors of similar weight share a column, with the fastest in the leftmost; a weight of zero gets no
/// part.
///
/// # Errors
/// None; the signature is that of every method.
pub fn columns(shape: Shape, weights: &[f64]) -> Result<Layout> {
    Ok(columns_for(shape, weights, Objective::Volume, shape))
}

/// The columns that are best for an objective, on a part of the matrix `whole`.
pub(super) fn columns_for(shape: Shape, weights: &[f64], objective: Objective, whole: Shape) -> Layout {
    let order = descending(weights);
    let (high, wide, total) = objective.sides(shape, whole);
    let tiling = match total {
        Total::Sum => best_columns(weights, &order, high, wide),
        Total::Largest => columns_of_least_largest(weights, &order, high, wide),
    };
    in_whole_numbers(&tiling, (shape, weights), (high, wide))
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
        let layout = columns(shape, &[1.0; 9]).unwrap();
        let metrics = Metrics::of_layout(&layout, 1.0);
        assert_eq!(metrics.sum_half_perimeters, Some(6.0));
        assert_eq!(layout.shares(), [900; 9]);
    }

    #[test]
    fn awkward_inputs() {
        let shape = Shape::new(7, 5, 3, "test").unwrap();
        assert_eq!(columns(shape, &[2.0]).unwrap().shares(), [21]);
        assert_eq!(columns(shape, &[1.0, 0.0, 1.0]).unwrap().shares()[1], 0);
        let many = columns(shape, &[1.0; 50]).unwrap();
        assert_eq!(many.shares().iter().sum::<u64>(), 21);
    }
}
