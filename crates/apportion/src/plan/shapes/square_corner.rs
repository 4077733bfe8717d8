//! Square corners: every slower processor owns a square, the fastest the rest.
//!
//! Source: Becker 2010, Algorithms 4.1 and 5.1, Theorems 5.1 and 5.2 (two processors), section 6.1 (three),
//! section 8.1 (more, on the diagonal), section 8.3 (rectangular products).

use super::descending;
use super::tiling::Tiling;
use crate::error::{Error, Result};
use crate::plan::{Layout, Shape};

/// Squares of sides sqrt(s_i m n) on the diagonal: the slowest processor's in the lower right corner, the
/// next one's in the upper left, and further ones after that. The fastest processor (ties: the first) has the
/// rest. O(p log p).
///
/// Volume 2 k sum of the sides. No square shares a row or column with another, so that only the fastest
/// communicates with others (the five rules of section 8.1). Sides are rounded up or down so that loads
/// balance best, and differ by one at most.
///
/// # Errors
/// Squares that do not fit along the shorter side without sharing rows or columns: exit code 1. For a single
/// square that is too long, a strip across the shorter side moves less than any corner.
pub fn square_corner(shape: Shape, weights: &[f64]) -> Result<Layout> {
    let order = descending(weights);
    let total: f64 = weights.iter().sum();
    let area = shape.m as f64 * shape.n as f64;
    let sides: Vec<f64> = order[1..].iter().map(|&i| (weights[i] / total * area).sqrt()).collect();
    let length: f64 = sides.iter().sum();
    let limit = shape.m.min(shape.n) as f64;
    // The tolerance lets squares meet at their corners (2:1:1).
    if length > limit * (1.0 + 1e-12) {
        let (what, remedy) = if let &[side] = sides.as_slice() {
            (
                format!("a square of side {side:.0} does not fit into a corner of {} x {}", shape.m, shape.n),
                "use straight-line or hybrid: a strip moves less than any corner here",
            )
        } else {
            (
                format!(
                    "the sides of the squares, {:.1} to {:.1}, add up to {:.6} times the shorter side of \
                     {} x {}, more than 1, and would overlap on the diagonal (on a square matrix three \
                     processors need sqrt(s2) + sqrt(s3) <= 1, such as 2:1:1)",
                    sides.last().unwrap_or(&0.0),
                    sides[0],
                    length / limit,
                    shape.m,
                    shape.n
                ),
                "use recursive or auto, which support any speeds",
            )
        };
        return Err(Error::infeasible(what, remedy));
    }
    Ok(diagonal(&order).layout(shape, weights, 1.0))
}

/// Squares on the diagonal, for processors given from the fastest to the slowest.
pub(super) fn diagonal(order: &[usize]) -> Tiling {
    match *order {
        [owner] => Tiling::Whole(owner),
        _ => Tiling::Corners {
            owner: order[0],
            blocks: order[1..].iter().map(|&i| (1.0, Tiling::Whole(i))).collect(),
        },
    }
}

/// The square of the slower of two processors.
pub(super) struct Square {
    /// Rank of the faster processor.
    pub fast: usize,
    /// Rank of the slower processor.
    pub slow: usize,
    /// Rows of the slower one's square.
    pub high: u64,
    /// Columns of the slower one's square.
    pub wide: u64,
}

/// The sides of the square for two processors, as [`square_corner`] makes it.
pub(super) fn one_square(shape: Shape, weights: &[f64]) -> Result<Square> {
    let slow = usize::from(weights[1] <= weights[0]);
    let square = square_corner(shape, weights)?.rects_by_owner()[slow].first().copied().unwrap_or_default();
    Ok(Square { fast: 1 - slow, slow, high: square.rows.len(), wide: square.cols.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use crate::plan::shapes::straight_line;

    fn metrics(n: u64, ratio: f64) -> Metrics {
        let shape = Shape::new(n, n, n, "test").unwrap();
        Metrics::of_layout(&square_corner(shape, &[ratio, 1.0]).unwrap(), 1.0)
    }

    #[test]
    fn volume_is_two_n_roots_of_the_share() {
        let n = 1000.0_f64;
        for ratio in 3..=25 {
            let side = n / (f64::from(ratio) + 1.0).sqrt();
            let volume = metrics(1000, f64::from(ratio)).volume.unwrap() as f64;
            assert!((volume - 2.0 * n * side).abs() <= n, "{ratio}: {volume}");
        }
        assert_eq!(metrics(1000, 3.0).volume, Some(1_000_000));
        assert_eq!(metrics(1000, 9.0).volume, Some(632_000));
    }

    /// Equations (5.10) to (5.12): 2 sqrt(s2) (1 - sqrt(s2)) N^2 one way, 2 s2 N^2 the other.
    #[test]
    fn directions_are_those_of_the_thesis() {
        let n = 1200;
        for (ratio, side) in [(3.0, 600), (8.0, 400), (15.0, 300), (24.0, 240)] {
            let table = metrics(n, ratio).volume_matrix.unwrap();
            assert_eq!(table[1][0], 2 * side * (n - side));
            assert_eq!(table[0][1], 2 * side * side);
        }
    }

    #[test]
    fn crossovers_are_at_three_and_two_to_one() {
        let line = |ratio: f64| {
            let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
            Metrics::of_layout(&straight_line(shape, &[ratio, 1.0]).unwrap(), 1.0)
        };
        for ratio in [1.0, 1.5, 2.5, 2.9, 3.1, 4.0, 25.0] {
            let serial = metrics(1000, ratio).volume < line(ratio).volume;
            assert_eq!(serial, ratio > 3.0, "serial {ratio}");
        }
        for ratio in [1.0, 1.5, 1.9, 2.1, 2.5, 3.0, 25.0] {
            let parallel = metrics(1000, ratio).largest_direction() < line(ratio).largest_direction();
            assert_eq!(parallel, ratio > 2.0, "parallel {ratio}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let flat = Shape::new(10, 10, 1000, "test").unwrap();
        assert_eq!(square_corner(flat, &[1.0, 1.0]).unwrap_err().exit_code(), 1);
        let cube = Shape::new(10, 10, 10, "test").unwrap();
        assert_eq!(square_corner(cube, &[1.0; 3]).unwrap_err().exit_code(), 1);
        assert_eq!(square_corner(cube, &[5.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap_err().exit_code(), 1);
        // Just beyond 2:1:1 the message shows by how much, and names the limit.
        let error = square_corner(cube, &[1.9999, 1.0, 1.0]).unwrap_err().to_string();
        assert!(error.contains("1.000013 times") && error.contains("2:1:1"), "{error}");
        assert_eq!(square_corner(cube, &[1.0, 9.0]).unwrap().shares(), [9, 91]);
        assert_eq!(square_corner(cube, &[1.0, 0.0]).unwrap().shares(), [100, 0]);
        let dot = Shape::new(1, 1, 1, "test").unwrap();
        assert_eq!(square_corner(dot, &[1.0, 1.0]).unwrap().shares().iter().sum::<u64>(), 1);
    }

    /// (6.6): 2 N (sqrt(s2) + sqrt(s3)); (6.7): 2:1:1 is the limit, where the squares meet.
    #[test]
    fn three_processors() {
        let cube = Shape::new(1000, 1000, 1000, "test").unwrap();
        for weights in [[90.0, 9.0, 1.0], [80.0, 4.0, 16.0], [2.0, 1.0, 1.0], [25.0, 61.0, 4.0]] {
            let sides: f64 = weights.iter().map(|w| w / weights.iter().sum::<f64>()).map(f64::sqrt).sum();
            let fast = weights.iter().copied().fold(0.0, f64::max) / weights.iter().sum::<f64>();
            let exact = 2e6 * (sides - fast.sqrt());
            match square_corner(cube, &weights) {
                Ok(layout) => {
                    let metrics = Metrics::of_layout(&layout, 1.0);
                    assert!((metrics.volume.unwrap() as f64 - exact).abs() <= 4000.0, "{weights:?}");
                    let slow: Vec<usize> = descending(&weights)[1..].to_vec();
                    let table = metrics.volume_matrix.unwrap();
                    assert_eq!((table[slow[0]][slow[1]], table[slow[1]][slow[0]]), (0, 0));
                }
                Err(error) => assert!(exact > 2e6, "{weights:?}: {error}"),
            }
        }
        assert!(square_corner(cube, &[2.0, 1.0, 1.0]).is_ok());
        assert!(square_corner(cube, &[1.99, 1.0, 1.0]).is_err());
    }

    /// Section 8.1: squares only, no two in the same row or column, areas in proportion, one part each.
    #[test]
    fn the_five_rules_of_the_diagonal() {
        let cube = Shape::new(900, 900, 900, "test").unwrap();
        let weights = [1.0, 4.0, 65.0, 1.0, 9.0, 1.0];
        let layout = square_corner(cube, &weights).unwrap();
        assert_eq!(layout.shares(), [10_000, 40_000, 650_000, 10_000, 90_000, 10_000]);
        let metrics = Metrics::of_layout(&layout, 1.0);
        assert_eq!(metrics.volume, Some(2 * 900 * (100 + 200 + 100 + 300 + 100)));
        let table = metrics.volume_matrix.unwrap();
        for (to, line) in table.iter().enumerate() {
            for (from, &moved) in line.iter().enumerate() {
                assert_eq!(moved > 0, (to == 2) != (from == 2), "{to} {from}");
            }
        }
        for (i, rects) in layout.rects_by_owner().iter().enumerate().filter(|(i, _)| *i != 2) {
            assert_eq!((rects.len(), rects[0].rows.len()), (1, rects[0].cols.len()), "{i}");
        }
    }
}
