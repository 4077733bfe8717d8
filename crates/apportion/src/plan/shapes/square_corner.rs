//! Square-corner partitioning of two processors: the slower one owns a square in the lower right corner.
//!
//! Source: Becker 2010, Algorithms 4.1 and 5.1, Theorems 5.1 and 5.2.

use super::{layout, serves};
use crate::error::{Error, Result};
use crate::plan::{Layout, Shape};
use crate::rect::Span;

/// The slower processor's part is a square of side sqrt(s2 m n), the faster one's the rest. O(1).
///
/// Volume 2 k side: less than a straight line's from 3:1 on (square matrices). Each side is rounded up or
/// down so that the load balances best; the two differ by one at most.
///
/// # Errors
/// Not two processors, or a square that is longer than the matrix is high or wide: exit code 1.
pub fn square_corner(shape: Shape, weights: &[f64]) -> Result<Layout> {
    serves("square-corner", weights.len(), 2, 2)?;
    let (slow, fast) = if weights[1] <= weights[0] { (1, 0) } else { (0, 1) };
    let share = weights[slow] / (weights[0] + weights[1]);
    let exact = (share * shape.m as f64 * shape.n as f64).sqrt();
    let limit = shape.m.min(shape.n);
    if exact > limit as f64 {
        return Err(Error::infeasible(
            format!("a square of side {exact:.0} does not fit into a corner of {} x {}", shape.m, shape.n),
            "use straight-line or hybrid for this shape and ratio",
        ));
    }
    let finish = |(high, wide): (u64, u64)| {
        let square = high as f64 * wide as f64;
        let rest = shape.m as f64 * shape.n as f64 - square;
        let time = |area: f64, weight: f64| if area == 0.0 { 0.0 } else { area / weight };
        time(square, weights[slow]).max(time(rest, weights[fast]))
    };
    let below = (exact.floor() as u64).min(limit);
    let above = (below + 1).min(limit);
    let (high, wide) = [(below, below), (below, above), (above, above)]
        .into_iter()
        .min_by(|&a, &b| finish(a).total_cmp(&finish(b)))
        .expect("three candidates");
    let (row, col) = (shape.m - high, shape.n - wide);
    Ok(layout(
        shape,
        2,
        [
            (fast, Span::new(0, row), Span::new(0, shape.n)),
            (fast, Span::new(row, shape.m), Span::new(0, col)),
            (slow, Span::new(row, shape.m), Span::new(col, shape.n)),
        ],
    ))
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
        assert_eq!(square_corner(cube, &[1.0, 9.0]).unwrap().shares(), [9, 91]);
        assert_eq!(square_corner(cube, &[1.0, 0.0]).unwrap().shares(), [100, 0]);
        let dot = Shape::new(1, 1, 1, "test").unwrap();
        assert_eq!(square_corner(dot, &[1.0, 1.0]).unwrap().shares().iter().sum::<u64>(), 1);
    }
}
