//! Speed as an Akima spline: smooth, local, and without the overshoot of a global cubic spline.
//!
//! Source: H. Akima, "A new method of interpolation and smooth curve fitting based on local procedures",
//! Journal of the ACM 17(4), 1970, equations (1), (9) and (12).

use crate::model::Point;

/// A cubic in `u = x - start` on one interval between points: `c0 + c1 u + c2 u^2 + c3 u^3`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cubic {
    start: f64,
    width: f64,
    c: [f64; 4],
}

/// The spline, and the extrema of its time function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Akima {
    cubics: Vec<Cubic>,
    /// Sizes between which time is monotone, each with the longest time up to it.
    turns: Vec<(f64, f64)>,
}

impl Akima {
    /// The spline of speed through `points` (sorted). It is a straight line if there are fewer than five
    /// points, and on an interval where the cubic would fall below half the lower or exceed twice the higher
    /// of its end speeds: a speed must stay positive and near the measured ones. O(points).
    pub(super) fn new(points: &[Point]) -> Self {
        let slopes = (points.len() >= 5).then(|| slopes(points));
        let cubics: Vec<Cubic> = points
            .windows(2)
            .enumerate()
            .map(|(i, ends)| {
                let line = Cubic::line(&ends[0], &ends[1]);
                let Some(slopes) = &slopes else { return line };
                let cubic = Cubic::hermite(&ends[0], &ends[1], slopes[i], slopes[i + 1]);
                if cubic.stays_near(&ends[0], &ends[1]) { cubic } else { line }
            })
            .collect();
        let mut turns = vec![(points[0].size, points[0].seconds)];
        let mut longest = points[0].seconds;
        for (cubic, end) in cubics.iter().zip(&points[1..]) {
            for u in cubic.time_turns() {
                longest = longest.max((cubic.start + u) / cubic.at(u));
                turns.push((cubic.start + u, longest));
            }
            longest = longest.max(end.seconds);
            turns.push((end.size, longest));
        }
        Self { cubics, turns }
    }

    /// Units per second at `x`, constant outside the points. O(log points).
    pub(super) fn speed(&self, points: &[Point], x: f64) -> f64 {
        let last = points.len() - 1;
        if x <= points[0].size {
            points[0].speed()
        } else if x >= points[last].size {
            points[last].speed()
        } else {
            let cubic = &self.cubics[points.partition_point(|p| p.size <= x) - 1];
            cubic.at(x - cubic.start)
        }
    }

    /// The longest time of any size up to `x`.
    pub(super) fn longest(&self, points: &[Point], x: f64) -> f64 {
        let passed = self.turns.partition_point(|turn| turn.0 <= x);
        let before = if passed == 0 { 0.0 } else { self.turns[passed - 1].1 };
        before.max(x / self.speed(points, x))
    }

    /// The largest number of units such that it and any smaller one take at most `seconds`: the monotone
    /// repair of a time function that may turn. O(log points) and a bisection to the last bit.
    pub(super) fn units_within(&self, points: &[Point], seconds: f64) -> f64 {
        if seconds <= points[0].seconds {
            return seconds * points[0].speed();
        }
        let reached = self.turns.partition_point(|turn| turn.1 <= seconds) - 1;
        let Some(next) = self.turns.get(reached + 1) else {
            return seconds * points[points.len() - 1].speed();
        };
        self.crossing(points, self.turns[reached].0, next.0, seconds)
    }

    /// The sizes between which time is monotone, with their times.
    pub(super) fn turns<'a>(
        &'a self,
        points: &'a [Point],
    ) -> impl DoubleEndedIterator<Item = (f64, f64)> + 'a {
        self.turns.iter().map(|turn| (turn.0, turn.0 / self.speed(points, turn.0)))
    }

    /// The size between two turns that takes `seconds`. Time rises between them: from at most T to more than
    /// T.
    pub(super) fn crossing(&self, points: &[Point], low: f64, high: f64, seconds: f64) -> f64 {
        let (mut low, mut high) = (low, high);
        let cubic = &self.cubics[points.partition_point(|p| p.size <= low) - 1];
        loop {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                return low;
            }
            if middle <= seconds * cubic.at(middle - cubic.start) {
                low = middle;
            } else {
                high = middle;
            }
        }
    }
}

/// Akima's slope at every point; two more chords are extrapolated at each end.
fn slopes(points: &[Point]) -> Vec<f64> {
    let chord = |a: &Point, b: &Point| (b.speed() - a.speed()) / (b.size - a.size);
    let mut m: Vec<f64> = vec![0.0; 2];
    m.extend(points.windows(2).map(|w| chord(&w[0], &w[1])));
    m[1] = 2.0 * m[2] - m[3];
    m[0] = 2.0 * m[1] - m[2];
    let n = m.len();
    m.push(2.0 * m[n - 1] - m[n - 2]);
    m.push(2.0 * m[n] - m[n - 1]);
    m.windows(4)
        .map(|w| {
            let (left, right) = ((w[3] - w[2]).abs(), (w[1] - w[0]).abs());
            let sum = left + right;
            if sum > 0.0 { (left * w[1] + right * w[2]) / sum } else { 0.5 * (w[1] + w[2]) }
        })
        .collect()
}

impl Cubic {
    fn line(a: &Point, b: &Point) -> Self {
        let width = b.size - a.size;
        Self { start: a.size, width, c: [a.speed(), (b.speed() - a.speed()) / width, 0.0, 0.0] }
    }

    fn hermite(a: &Point, b: &Point, slope_a: f64, slope_b: f64) -> Self {
        let width = b.size - a.size;
        let chord = (b.speed() - a.speed()) / width;
        let c2 = (3.0 * chord - 2.0 * slope_a - slope_b) / width;
        let c3 = (slope_a + slope_b - 2.0 * chord) / (width * width);
        Self { start: a.size, width, c: [a.speed(), slope_a, c2, c3] }
    }

    fn at(&self, u: f64) -> f64 {
        let [c0, c1, c2, c3] = self.c;
        c0 + u * (c1 + u * (c2 + u * c3))
    }

    fn slope(&self, u: f64) -> f64 {
        let [_, c1, c2, c3] = self.c;
        c1 + u * (2.0 * c2 + u * 3.0 * c3)
    }

    /// True if the cubic keeps between half the lower and twice the higher end speed.
    fn stays_near(&self, a: &Point, b: &Point) -> bool {
        let (lower, higher) = (a.speed().min(b.speed()), a.speed().max(b.speed()));
        let [_, c1, c2, c3] = self.c;
        quadratic_roots(3.0 * c3, 2.0 * c2, c1)
            .into_iter()
            .filter(|&u| u > 0.0 && u < self.width)
            .all(|u| (0.5 * lower..=2.0 * higher).contains(&self.at(u)))
    }

    /// The extrema of time x / s(x) inside the interval: the roots of s - x s', which itself turns at most
    /// once for x > 0, where s'' = 0.
    fn time_turns(&self) -> Vec<f64> {
        let [_, _, c2, c3] = self.c;
        let h = |u: f64| self.at(u) - (self.start + u) * self.slope(u);
        let inflection = -c2 / (3.0 * c3);
        let mut edges = vec![0.0];
        if inflection > 0.0 && inflection < self.width {
            edges.push(inflection);
        }
        edges.push(self.width);
        edges
            .windows(2)
            .filter(|e| (h(e[0]) > 0.0) != (h(e[1]) > 0.0))
            .map(|e| {
                let (mut low, mut high) = (e[0], e[1]);
                let sign = h(low) > 0.0;
                for _ in 0..80 {
                    let middle = 0.5 * (low + high);
                    if (h(middle) > 0.0) == sign { low = middle } else { high = middle }
                }
                0.5 * (low + high)
            })
            .collect()
    }
}

/// The real roots of `a u^2 + b u + c`, without cancellation.
fn quadratic_roots(a: f64, b: f64, c: f64) -> Vec<f64> {
    let discriminant = b * b - 4.0 * a * c;
    if discriminant < 0.0 {
        return Vec::new();
    }
    let q = -0.5 * (b + discriminant.sqrt().copysign(b));
    [q / a, c / q].into_iter().filter(|u| u.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Interpolation, Model};

    fn model(sizes: &[f64], speeds: &[f64]) -> Model {
        let points = sizes.iter().zip(speeds).map(|(&x, &s)| Point::new(x, x / s)).collect();
        Model::new("p", Interpolation::Akima, points, None).unwrap()
    }

    #[test]
    fn akimas_own_data() {
        // The points of the 1970 paper (section 4), one to the right; values from an independent
        // implementation (SciPy's Akima1DInterpolator).
        let sizes: Vec<f64> = (1..=11).map(f64::from).collect();
        let paper = model(&sizes, &[10., 10., 10., 10., 10., 10., 10.5, 15., 50., 60., 85.]);
        let expected = [
            (5.5, 10.0),
            (6.5, 10.179435483870968),
            (7.5, 11.732202447163514),
            (8.25, 20.83807491000379),
            (8.5, 31.308142288745735),
            (9.5, 54.85834478021978),
            (10.5, 70.859375),
        ];
        for (x, speed) in expected {
            assert!((paper.speed(x) - speed).abs() < 1e-9 * speed, "{x}: {}", paper.speed(x));
        }
        let uneven = model(&[1., 2., 4., 7., 11., 16.], &[9., 10., 8., 7.5, 3., 2.5]);
        for (x, speed) in [(1.5, 9.801470588235295), (5.0, 7.8088532858001685), (15.0, 2.1872436974789915)] {
            assert!((uneven.speed(x) - speed).abs() < 1e-9 * speed, "{x}: {}", uneven.speed(x));
        }
        assert_eq!((uneven.speed(0.5), uneven.speed(99.0)), (9.0, 2.5));
    }

    #[test]
    fn few_points_are_joined_by_lines() {
        let four = model(&[1., 2., 4., 7.], &[9., 10., 8., 7.5]);
        let lines = Model::piecewise("p", four.points().to_vec(), None).unwrap();
        for i in 1..100 {
            let x = 0.1 * f64::from(i);
            assert!((four.speed(x) - lines.speed(x)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_cliff_never_makes_a_speed_that_is_not_positive() {
        let cliff = model(&[1., 2., 3., 4., 4.1, 9., 20.], &[100., 99., 95., 90., 1., 0.9, 0.8]);
        for i in 1..4000 {
            let x = 0.005 * f64::from(i);
            assert!(cliff.speed(x) >= 0.4 && cliff.speed(x) <= 200.0, "{x}: {}", cliff.speed(x));
        }
    }
}
