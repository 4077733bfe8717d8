//! The hybrid of square corner and straight line (Becker 2010, sections 5.3.3 and 5.4.3).

use super::hybrid_three::choice_of_three;
use super::{retain_balanced, serves, square_corner, straight_line};
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

/// The square corner if it moves no more than the straight line by exact shares and balances as well in whole
/// rows and columns, otherwise the straight line.
///
/// On square matrices with two processors the switch is at 3:1 for serial and at 2:1 for parallel
/// communication; at the switch point the two are equal and the square corner is taken.
///
/// This is the smallest volume of all corner rectangles a x b of the slower share, also on rectangular
/// products m x k x n. Inside the matrix (a < m, b < n) the lines that both processors touch make the volume
/// k (a + b), which is smallest for the square (Becker 2010, Proposition 8.2). At a = m the faster one no
/// longer touches the b columns, and the volume drops to k m for any b (k n at b = n). If the square's side
/// exceeds the shorter side, the case that the thesis leaves open, a strip across the shorter side is
/// therefore the optimum: k min(m, n), less than any corner, since a + b > min(m, n). It is already the
/// optimum if the side is more than half the shorter side. The inner dimension k only scales: A's and B's
/// parts are cut in C's proportions, so that no side has to fit into it.
///
/// For three processors, fully connected, see [`hybrid_three`](super::hybrid_three()). O(1).
///
/// # Errors
/// Neither two nor three processors: exit code 1.
pub fn hybrid(shape: Shape, weights: &[f64], communication: Communication) -> Result<Layout> {
    hybrid_choice(shape, weights, communication, None).map(|(_, layout)| layout)
}

/// The layout that [`hybrid`] or [`hybrid_three`](super::hybrid_three()) takes, and its name.
///
/// # Errors
/// As for those.
pub fn hybrid_choice(
    shape: Shape,
    weights: &[f64],
    communication: Communication,
    centre: Option<usize>,
) -> Result<(&'static str, Layout)> {
    serves("hybrid", weights.len(), 2, 3)?;
    if weights.len() == 3 {
        return choice_of_three(shape, weights, communication, centre);
    }
    let slow = weights[0].min(weights[1]) / (weights[0] + weights[1]);
    let line = straight_line(shape, weights)?;
    // The line of a processor that gets nothing would run along the shorter side.
    let cut = if line.volume() > 0 { line.volume() } else { shape.k * shape.m.min(shape.n) };
    let volumes = [corner_volumes(shape, slow), line_volumes(cut, slow)];
    let [corner_moves, line_moves]: [f64; 2] = match communication {
        Communication::Serial => volumes.map(|directions| directions.iter().sum()),
        Communication::Parallel => volumes.map(largest),
    };
    let mut candidates = vec![("straight-line", line)];
    let fits = side(shape, slow) <= shape.m.min(shape.n) as f64;
    // The tolerance makes the switch point itself (a tie in exact arithmetic) a square corner.
    if fits && corner_moves <= line_moves * (1.0 + 1e-12) {
        candidates.push(("square-corner", square_corner(shape, weights)?));
        retain_balanced(&mut candidates, weights, |(_, layout)| layout);
    }
    Ok(candidates.pop().expect("the best balanced one is retained"))
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

/// Elements to the slow and to the fast processor by a line across which `moved` elements travel: (5.7), for
/// any shape.
fn line_volumes(moved: u64, slow: f64) -> [f64; 2] {
    [(1.0 - slow) * moved as f64, slow * moved as f64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Span;
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

    /// Whole rows balance 2:1 on three rows, and whole columns and squares do not.
    #[test]
    fn balance_goes_before_volume() {
        let shape = |m, n| Shape::new(m, 5, n, "test").unwrap();
        let shares = |shape, weights: &[f64]| hybrid(shape, weights, Communication::Serial).unwrap().shares();
        assert_eq!(shares(shape(3, 20), &[2.0, 1.0]), [40, 20]);
        assert_eq!(shares(shape(20, 3), &[2.0, 1.0]), [40, 20]);
        // A square of 3 x 3 is a quarter of 4 x 9, as one row is, and moves less.
        let corner = hybrid(shape(4, 9), &[3.0, 1.0], Communication::Serial).unwrap();
        assert_eq!((corner.shares(), corner.volume()), (vec![27, 9], 30));
    }

    /// Exhaustive on small matrices: no corner rectangle, of whichever processor, moves less than
    /// k min(2 sqrt(s m n), m, n), and the hybrid reaches that up to the rounding of two sides. The sum of
    /// half-perimeters is never below min(3, 2 + 2 sqrt(s)), which the scaled corner has (Proposition 8.1).
    #[test]
    fn no_corner_rectangle_moves_less() {
        for (m, k, n) in (1..=9).flat_map(|m| (1..=9).map(move |n| (m, 1 + (m * n) % 4, n))) {
            let shape = Shape::new(m, k, n, "test").unwrap();
            for (high, wide) in (1..=m).flat_map(|a| (1..=n).map(move |b| (a, b))) {
                let corner = crate::plan::shapes::layout(
                    shape,
                    2,
                    [
                        (0, Span::new(0, m - high), Span::new(0, n)),
                        (0, Span::new(m - high, m), Span::new(0, n - wide)),
                        (1, Span::new(m - high, m), Span::new(n - wide, n)),
                    ],
                );
                let metrics = Metrics::of_layout(&corner, 1.0);
                let moved = metrics.volume.unwrap();
                let [rest, area] = [m * n - high * wide, high * wide].map(|x| x as f64);
                let slow = rest.min(area);
                let least = (2.0 * slow.sqrt()).min(m.min(n) as f64) * k as f64;
                assert!(moved as f64 >= least - 1e-9, "{shape:?} {high} {wide}");
                let cost = metrics.sum_half_perimeters.unwrap();
                assert!(cost >= (2.0 + 2.0 * (slow / (m * n) as f64).sqrt()).min(3.0) - 1e-9);
                let line = straight_line(shape, &[rest, area]).unwrap();
                if line.volume() > k * m.min(n) {
                    // The cut of the longer side would balance worse.
                    continue;
                }
                let ours = hybrid(shape, &[rest, area], Communication::Serial).unwrap().volume();
                assert!(ours <= moved + 2 * k, "{shape:?} {high} {wide}: {ours} {moved}");
            }
        }
    }
}
