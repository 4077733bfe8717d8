//! Square corners that are smaller than in proportion, for runs that compute while data travel.
//!
//! Source: Becker 2010, section 6.1.4 (and 5.5.4): the fastest processor computes C1, which needs no message
//! (II), while data travel (I). Then all compute: the fastest the rest C2 of its part (III), the others their
//! squares X and Y (IV, V). The run takes t = max(I, II) + max(III, IV, V).

use super::{descending, square_corner};
use crate::error::Result;
use crate::plan::{Layout, Shape};

/// The square corner with C2, X, Y, … in proportion to the weights, so that III, IV, V, … take equally long.
/// O(p log p).
///
/// With sides f a_i, where a_i are those in proportion, a their sum and A = m n, the part C2 and the squares
/// together are A - (m - f a)(n - f a) = f a (m + n) - f^2 a^2, and each square is s_i of it where its area
/// is f^2 s_i A. Hence f = a (m + n) / (A + a^2): on a square matrix 2 q / (1 + q^2) with q = sum sqrt(s_i).
/// f is at most 1 where the squares in proportion fit, and f a at most the shorter side only there.
///
/// # Errors
/// As [`square_corner`](super::square_corner()).
pub fn square_corner_for_overlap(shape: Shape, weights: &[f64]) -> Result<Layout> {
    square_corner_scaled(shape, weights, overlap_factor(shape, weights))
}

/// The factor f of [`square_corner_for_overlap`].
fn overlap_factor(shape: Shape, weights: &[f64]) -> f64 {
    let order = descending(weights);
    let total: f64 = weights.iter().sum();
    let [m, n] = [shape.m as f64, shape.n as f64];
    let a: f64 = order[1..].iter().map(|&i| (weights[i] / total * m * n).sqrt()).sum();
    a * (m + n) / (m * n + a * a)
}

/// The square corner with sides `factor` times those in proportion to the weights.
///
/// # Errors
/// As [`square_corner`](super::square_corner()).
pub fn square_corner_scaled(shape: Shape, weights: &[f64], factor: f64) -> Result<Layout> {
    let order = descending(weights);
    let total: f64 = weights.iter().sum();
    let mut scaled: Vec<f64> = weights.iter().map(|w| factor * factor * w / total).collect();
    scaled[order[0]] = 1.0 - order[1..].iter().map(|&i| scaled[i]).sum::<f64>();
    square_corner(shape, &scaled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Metrics, communication_free};

    fn cube(n: u64) -> Shape {
        Shape::new(n, n, n, "test").unwrap()
    }

    /// The thesis's formula, from the layout: elements of C per second for each processor, and seconds per
    /// element that travels in the busiest direction.
    fn formula(layout: &Layout, rates: [f64; 3], per_element: f64) -> f64 {
        let metrics = Metrics::of_layout(layout, 1.0);
        let moved = metrics.largest_direction().unwrap() as f64 * per_element;
        let free = metrics.communication_free.unwrap()[0];
        let shares = layout.shares();
        let rest = [shares[0] - free, shares[1], shares[2]];
        let later = rest.iter().zip(rates).map(|(&c, rate)| c as f64 / rate).fold(0.0, f64::max);
        moved.max(free as f64 / rates[0]) + later
    }

    /// 90:5:5 on 1000 x 1000: q = 2 sqrt(0.05) = 0.4472, f = 0.8944 / 1.2 = 0.7454, sides 166.7 for 223.6.
    /// 1,000,000 elements of C take 2 s in all and 8 bytes travel at 5 MB/s. In proportion: I = 0.556 s, II =
    /// 305,000 / 450,000 = 0.68 s, then 2 s. For overlap: II = 444,000 / 450,000 = 0.99 s, then 1.11 s.
    #[test]
    fn ninety_five_five_by_hand() {
        let (weights, rates) = ([90.0, 5.0, 5.0], [450e3, 25e3, 25e3]);
        let layout = square_corner_for_overlap(cube(1000), &weights).unwrap();
        for rect in layout.rects_by_owner()[1..].iter().flatten() {
            assert!((166..=167).contains(&rect.rows.len()), "{rect:?}");
        }
        let free = communication_free(&layout);
        assert!((free[0].0.len() as i64 - 667).abs() <= 1);
        let t = formula(&layout, rates, 8.0 / 5e6);
        assert!((t - 2.10).abs() < 0.015, "{t}");
        let plain = formula(&square_corner(cube(1000), &weights).unwrap(), rates, 8.0 / 5e6);
        assert!((plain - 2.68).abs() < 0.02, "{plain}");
    }

    /// Two processors, 9:1: q = sqrt(0.1), f = 0.6325 / 1.1 = 0.575: a side of 182, and C2 : X = 9 : 1.
    #[test]
    fn two_processors_by_hand() {
        let layout = square_corner_for_overlap(cube(1000), &[9.0, 1.0]).unwrap();
        let (square, free) = (layout.shares()[1], Metrics::of_layout(&layout, 1.0).communication_free);
        assert!((square as f64).sqrt() > 181.0 && (square as f64).sqrt() < 183.0, "{square}");
        let rest = layout.shares()[0] - free.unwrap()[0];
        assert!((rest as f64 / square as f64 - 9.0).abs() < 0.15, "{rest} {square}");
    }

    /// At 2:1:1 nothing is free, and the shares are those in proportion; what does not fit is refused.
    #[test]
    fn limits() {
        let meeting = [2.0, 1.0, 1.0];
        assert_eq!(
            square_corner_for_overlap(cube(1000), &meeting).unwrap().shares(),
            square_corner(cube(1000), &meeting).unwrap().shares()
        );
        // 100 x 400 at 24:1: a = 40, f = 40 x 500 / (40,000 + 1600).
        let long = Shape::new(100, 10, 400, "test").unwrap();
        assert!((overlap_factor(long, &[24.0, 1.0]) - 20_000.0 / 41_600.0).abs() < 1e-12);
        assert_eq!(square_corner_for_overlap(cube(9), &[1.0, 1.0, 1.0]).unwrap_err().exit_code(), 1);
        assert_eq!(square_corner_for_overlap(cube(9), &[1.0]).unwrap().shares(), [81]);
        let half = square_corner_scaled(cube(1000), &[3.0, 1.0], 0.5).unwrap();
        assert_eq!(half.shares(), [937_500, 62_500]);
    }
}
