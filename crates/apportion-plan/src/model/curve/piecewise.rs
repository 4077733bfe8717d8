//! Speed that is linear between neighbouring points (Lastovetsky and Reddy 2007, section 3.2, Fig. 6).

use crate::model::Point;

/// Units per second at `x`, constant outside the points. O(log points).
pub(super) fn speed(points: &[Point], x: f64) -> f64 {
    let last = points.len() - 1;
    if x <= points[0].size {
        return points[0].speed();
    }
    if x >= points[last].size {
        return points[last].speed();
    }
    let right = points.partition_point(|p| p.size <= x);
    let (a, b) = (&points[right - 1], &points[right]);
    let t = (x - a.size) / (b.size - a.size);
    a.speed() + t * (b.speed() - a.speed())
}

/// The longest time up to and including each point. Between two points time is monotone (its derivative
/// `at_zero / speed^2` keeps its sign), so these are the running maxima of time itself.
pub(super) fn peaks(points: &[Point]) -> Vec<f64> {
    let mut longest = 0.0_f64;
    points
        .iter()
        .map(|p| {
            longest = longest.max(p.seconds);
            longest
        })
        .collect()
}

/// The largest number of units such that it and any smaller one take at most `seconds`. O(log points), closed
/// form.
pub(super) fn units_within(points: &[Point], peaks: &[f64], seconds: f64) -> f64 {
    if seconds <= points[0].seconds {
        return seconds * points[0].speed();
    }
    // Up to point `reached` every size is in time; between it and the next, solve x / s(x) = T.
    let reached = peaks.partition_point(|&t| t <= seconds) - 1;
    let a = points[reached];
    match points.get(reached + 1) {
        None => seconds * a.speed(),
        Some(b) => crossing(&a, b, seconds),
    }
}

/// The size between two points that takes `seconds`, which lie between the times of the points.
pub(super) fn crossing(a: &Point, b: &Point, seconds: f64) -> f64 {
    let slope = (b.speed() - a.speed()) / (b.size - a.size);
    let at_zero = a.speed() - slope * a.size;
    // x = T (at_zero + slope x)
    let x = seconds * at_zero / (1.0 - seconds * slope);
    if x.is_nan() { a.size } else { x.clamp(a.size, b.size) }
}
