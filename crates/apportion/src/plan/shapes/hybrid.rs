//! The hybrid of square corner and straight line (Becker 2010, sections 5.3.3 and 5.4.3).

use super::{hybrid_three, serves, square_corner, straight_line};
use crate::error::Result;
use crate::plan::{Layout, Shape};

/// Whether the two directions of a link work one after the other or at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Communication {
    /// One transfer at a time: the whole volume counts (HSCP-SC).
    Serial,
    /// Both directions at once: the busier one counts (HSCP-PC).
    Parallel,
}

/// The square corner where it moves no more than the straight line by exact shares, else the straight line.
///
/// On square matrices with two processors the switch is at 3:1 for serial and at 2:1 for parallel communication; at
/// the switch point the two are equal and the square corner is taken. Three processors: fully connected, see
/// [`hybrid_three`]. O(1).
///
/// # Errors
/// Neither two nor three processors: exit code 1.
pub fn hybrid(shape: Shape, weights: &[f64], communication: Communication) -> Result<Layout> {
    serves("hybrid", weights.len(), 2, 3)?;
    if weights.len() == 3 {
        return hybrid_three(shape, weights, communication, None);
    }
    let slow = weights[0].min(weights[1]) / (weights[0] + weights[1]);
    let (corner, line) = match communication {
        Communication::Serial => {
            (corner_volumes(shape, slow).iter().sum(), line_volumes(shape, slow).iter().sum())
        }
        Communication::Parallel => (largest(corner_volumes(shape, slow)), largest(line_volumes(shape, slow))),
    };
    let fits = side(shape, slow) <= shape.m.min(shape.n) as f64;
    // The tolerance makes the switch point itself (a tie in exact arithmetic) a square corner.
    if fits && corner <= line * (1.0 + 1e-12) {
        square_corner(shape, weights)
    } else {
        straight_line(shape, weights)
    }
}

fn largest(directions: [f64; 2]) -> f64 {
    directions[0].max(directions[1])
}

fn side(shape: Shape, slow: f64) -> f64 {
    (slow * shape.m as f64 * shape.n as f64).sqrt()
}

/// Elements to the slow and to the fast processor: (5.10), (5.12), for any shape.
fn corner_volumes(shape: Shape, slow: f64) -> [f64; 2] {
    let (m, k, n) = (shape.m as f64, shape.k as f64, shape.n as f64);
    let side = side(shape, slow);
    let to_fast = side * side * (k / n + k / m);
    [2.0 * k * side - to_fast, to_fast]
}

/// Elements to the slow and to the fast processor: (5.7), for any shape.
fn line_volumes(shape: Shape, slow: f64) -> [f64; 2] {
    let moved = shape.k as f64 * shape.m.min(shape.n) as f64;
    [(1.0 - slow) * moved, slow * moved]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use crate::plan::shapes::{square_corner, straight_line};

    fn cube(n: u64) -> Shape {
        Shape::new(n, n, n, "test").unwrap()
    }

    #[test]
    fn switches_at_three_and_two_to_one() {
        for n in [7, 100, 999, 1000, 4500] {
            for (communication, switch) in [(Communication::Serial, 3.0), (Communication::Parallel, 2.0)] {
                for ratio in [1.0, 1.9, 2.0, 2.1, 2.9, 3.0, 3.1, 25.0] {
                    let weights = [ratio, 1.0];
                    let ours = hybrid(cube(n), &weights, communication).unwrap();
                    let expected = if ratio >= switch { square_corner } else { straight_line };
                    assert_eq!(ours, expected(cube(n), &weights).unwrap(), "{n} {ratio} {communication:?}");
                }
            }
        }
    }

    /// Table 5.1: the three zones of the parallel hybrid, as fractions of N^2.
    #[test]
    fn zones_of_the_parallel_hybrid() {
        let zone = |ratio: f64| {
            let layout = hybrid(cube(2000), &[ratio, 1.0], Communication::Parallel).unwrap();
            Metrics::of_layout(&layout, 1.0).largest_direction().unwrap() as f64 / 4e6
        };
        let s2 = |ratio: f64| 1.0 / (1.0 + ratio);
        for ratio in [1.0, 1.3, 1.9] {
            assert!((zone(ratio) - ratio / (1.0 + ratio)).abs() < 1e-3);
        }
        for ratio in [2.0, 2.5, 2.99] {
            assert!((zone(ratio) - 2.0 * s2(ratio)).abs() < 2e-3);
        }
        for ratio in [3.0, 8.0, 25.0] {
            assert!((zone(ratio) - 2.0 * (s2(ratio).sqrt() - s2(ratio))).abs() < 2e-3);
        }
    }
}
