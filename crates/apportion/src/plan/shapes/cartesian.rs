//! Cartesian layouts: rectangles that make up columns and rows, so that each has at most four neighbours.
//!
//! Source: Beaumont et al. 2001, preceded by Lastovetsky's shape search (Becker 2010, Algorithm 2.5; slides,
//! Algorithms 4 and 5). The inner solver is this project's own: alternating optima.

use super::{consecutive, descending, grid_shape, layout};
use crate::error::Result;
use crate::plan::shares::proportional;
use crate::plan::{Layout, Shape};

/// Maximum number of rounds of sorting and solving.
const MOST_ROUNDS: usize = 50;

/// Number of lines of each direction that the inner solver starts from.
const MOST_STARTS: usize = 16;

/// An r x c grid of straight cuts, with r and c as in [`grid_shape`], that keeps the largest `h_i w_j / s_ij`
/// small.
///
/// Processors are placed row by row from the fastest to the slowest. Heights and widths are fitted, the
/// processors are sorted again by the areas, and this repeats until the arrangement no longer changes. The
/// balance is perfect (up to rounding) if the arranged weights have rank one; otherwise some imbalance is
/// inherent, and the metrics report it. At most 50 rounds of at most 33 starts, with O(p) for each
/// alternation of a start; alternations end when they gain less than 1e-9.
///
/// # Errors
/// None; the signature is that of every method.
pub fn cartesian(shape: Shape, weights: &[f64]) -> Result<Layout> {
    let order = descending(weights);
    let (rows, cols) = grid_shape(order.len(), shape.m, shape.n);
    let (cells, heights, widths) = arrange(weights, &order, rows, cols);
    let speed = |i: usize, j: usize| weights[cells[i * cols + j]];
    let (heights, widths) = whole_numbers(shape, &heights, &widths, speed);
    let (rows, cols) = (consecutive(&heights), consecutive(&widths));
    Ok(layout(
        shape,
        weights.len(),
        cells.iter().enumerate().map(|(at, &p)| (p, rows[at / widths.len()], cols[at % widths.len()])),
    ))
}

/// The processors (row by row), the heights and the widths, both of sum 1.
fn arrange(weights: &[f64], order: &[usize], rows: usize, cols: usize) -> (Vec<usize>, Vec<f64>, Vec<f64>) {
    let mut cells = order.to_vec();
    let mut least = f64::INFINITY;
    let mut best = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..MOST_ROUNDS {
        let (time, heights, widths) = fit(rows, cols, |i, j| weights[cells[i * cols + j]]);
        let mut by_area: Vec<usize> = (0..cells.len()).collect();
        let area = |at: usize| heights[at / cols] * widths[at % cols];
        // Cells of equal area keep the order of their processors, so that a fixed point is recognised.
        by_area.sort_by(|&a, &b| {
            area(b).total_cmp(&area(a)).then(weights[cells[b]].total_cmp(&weights[cells[a]])).then(a.cmp(&b))
        });
        let mut next = cells.clone();
        by_area.iter().zip(order).for_each(|(&at, &p)| next[at] = p);
        let same = next.iter().zip(&cells).all(|(&a, &b)| weights[a] == weights[b]);
        if time < least {
            least = time;
            best = (cells, heights, widths);
        }
        if same {
            break;
        }
        cells = next;
    }
    best
}

/// Heights and widths of sum 1 that keep the largest h_i w_j / s_ij small, and that value.
///
/// For given widths the best heights are in proportion to min_j s_ij / w_j, and vice versa: the two optima
/// alternate until nothing improves. They start from the sums (exact for rank one) and with one line's cells
/// all tight, for up to [`MOST_STARTS`] lines of each direction (exact for two rows or two columns).
fn fit(rows: usize, cols: usize, speed: impl Fn(usize, usize) -> f64) -> (f64, Vec<f64>, Vec<f64>) {
    let best_heights = |widths: &[f64]| -> Vec<f64> {
        (0..rows).map(|i| (0..cols).map(|j| speed(i, j) / widths[j]).fold(f64::INFINITY, f64::min)).collect()
    };
    let best_widths = |heights: &[f64]| -> Vec<f64> {
        (0..cols).map(|j| (0..rows).map(|i| speed(i, j) / heights[i]).fold(f64::INFINITY, f64::min)).collect()
    };
    let sums = (0..cols).map(|j| (0..rows).map(|i| speed(i, j)).sum()).collect();
    let tight_rows = spread(rows).map(|i| (0..cols).map(|j| speed(i, j)).collect());
    let tight_cols = spread(cols).map(|j| best_widths(&(0..rows).map(|i| speed(i, j)).collect::<Vec<_>>()));
    let starts: Vec<Vec<f64>> = std::iter::once(sums).chain(tight_rows).chain(tight_cols).collect();
    let mut best = (f64::INFINITY, Vec::new(), Vec::new());
    for mut widths in starts {
        normalise(&mut widths);
        let mut least = f64::INFINITY;
        loop {
            let mut heights = best_heights(&widths);
            normalise(&mut heights);
            widths = best_widths(&heights);
            let time = 1.0 / normalise(&mut widths);
            if time < best.0 {
                best = (time, heights, widths.clone());
            }
            if time >= least * (1.0 - 1e-9) {
                break;
            }
            least = time;
        }
    }
    best
}

/// At most [`MOST_STARTS`] of 0..n, evenly spaced.
fn spread(n: usize) -> impl Iterator<Item = usize> {
    let count = n.min(MOST_STARTS);
    (0..count).map(move |i| i * n / count)
}

/// Scales to sum 1 and returns the previous sum.
fn normalise(values: &mut [f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    values.iter_mut().for_each(|v| *v /= sum);
    sum
}

/// Whole heights and widths: rounded, then each side in turn made optimal for the other while that helps.
fn whole_numbers(
    shape: Shape,
    heights: &[f64],
    widths: &[f64],
    speed: impl Fn(usize, usize) -> f64,
) -> (Vec<u64>, Vec<u64>) {
    let mut high = proportional(shape.m, heights);
    let mut wide = proportional(shape.n, widths);
    let slowest = |high: &[u64], wide: &[u64]| {
        let mut time = 0.0_f64;
        for (i, h) in high.iter().enumerate() {
            for (j, w) in wide.iter().enumerate() {
                time = time.max((h * w) as f64 / speed(i, j));
            }
        }
        time
    };
    let mut least = slowest(&high, &wide);
    loop {
        // The capacity of a line for each unit of time, over the lines of the other side that are not empty.
        let capacity = |lengths: &[u64], cell: &dyn Fn(usize) -> f64| {
            let used = (0..lengths.len()).filter(|&j| lengths[j] > 0);
            used.map(|j| cell(j) / lengths[j] as f64).fold(f64::INFINITY, f64::min)
        };
        let rows: Vec<f64> = (0..high.len()).map(|i| capacity(&wide, &|j| speed(i, j))).collect();
        let new_high = proportional(shape.m, &rows);
        let cols: Vec<f64> = (0..wide.len()).map(|j| capacity(&new_high, &|i| speed(i, j))).collect();
        let new_wide = proportional(shape.n, &cols);
        let time = slowest(&new_high, &new_wide);
        if time >= least {
            return (high, wide);
        }
        (least, high, wide) = (time, new_high, new_wide);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use proptest::prelude::*;

    /// The exact optimum for a 2 x c grid of given speeds: at the optimum the tight cells connect all lines,
    /// so that every choice of one tight row for each column, and one column for both rows, is tried.
    fn exact(speeds: &[Vec<f64>]) -> f64 {
        let cols = speeds[0].len();
        let mut best = f64::INFINITY;
        for both in 0..cols {
            for mask in 0..1u32 << cols {
                let (h0, h1) = (speeds[0][both], speeds[1][both]);
                let w: Vec<f64> = (0..cols)
                    .map(|j| if mask >> j & 1 == 0 { speeds[0][j] / h0 } else { speeds[1][j] / h1 })
                    .collect();
                let fits = (0..cols).all(|j| {
                    h0 * w[j] <= speeds[0][j] * (1.0 + 1e-12) && h1 * w[j] <= speeds[1][j] * (1.0 + 1e-12)
                });
                if fits {
                    best = best.min(1.0 / ((h0 + h1) * w.iter().sum::<f64>()));
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn fit_is_exact_for_two_rows(a in prop::collection::vec(0.2f64..5.0, 2..6), seed in 0.2f64..5.0) {
            let b: Vec<f64> = a.iter().rev().map(|x| x * seed + 0.3).collect();
            let speeds = vec![a, b];
            let (time, heights, widths) = fit(2, speeds[0].len(), |i, j| speeds[i][j]);
            let optimum = exact(&speeds);
            prop_assert!(time >= optimum * (1.0 - 1e-9));
            prop_assert!(time <= optimum * (1.0 + 1e-9), "{} {}", time, optimum);
            let really = (0..2).flat_map(|i| (0..widths.len()).map(move |j| (i, j)))
                .map(|(i, j)| heights[i] * widths[j] / speeds[i][j]).fold(0.0, f64::max);
            prop_assert!((really - time).abs() < 1e-9 * time);
        }

        /// Arranged weights of rank one: loads in proportion, exactly.
        #[test]
        fn rank_one_is_balanced(a in 1u64..6, b in 1u64..6, c in 1u64..6, d in 1u64..6) {
            let weights: Vec<f64> = [a * c, a * d, b * c, b * d].iter().map(|&x| x as f64).collect();
            let size = (a + b) * (c + d);
            let layout = cartesian(Shape::new(size, 1, size, "test").unwrap(), &weights).unwrap();
            let shares: Vec<f64> = layout.shares().iter().map(|&s| s as f64).collect();
            for (share, weight) in shares.iter().zip(&weights) {
                prop_assert!((share / weight - size as f64).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn cuts_are_straight_and_cost_rows_plus_columns() {
        let shape = Shape::new(100, 100, 100, "test").unwrap();
        let weights: Vec<f64> = (1..=12).map(f64::from).collect();
        let layout = cartesian(shape, &weights).unwrap();
        assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(5 * 100 * 100));
        let mut cuts: Vec<u64> = layout.parts().iter().map(|p| p.cols.start).collect();
        cuts.sort_unstable();
        cuts.dedup();
        assert_eq!(cuts.len(), 4);
        assert!(layout.shares()[0] < layout.shares()[11]);
    }

    #[test]
    fn awkward_inputs() {
        let dot = Shape::new(1, 1, 1, "test").unwrap();
        assert_eq!(cartesian(dot, &[1.0; 6]).unwrap().shares().iter().sum::<u64>(), 1);
        assert_eq!(cartesian(dot, &[0.0, 3.0]).unwrap().shares(), [0, 1]);
        let shape = Shape::new(10, 10, 3, "test").unwrap();
        assert_eq!(cartesian(shape, &[1.0, 1.0, 0.0, 1.0]).unwrap().shares(), [12, 9, 0, 9]);
    }
}
