//! Where time rises and where it falls with size.

use super::{Interpolation, Model, piecewise};

/// A size at which a time function may turn: between neighbouring ones it only rises or only falls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turn {
    size: f64,
    seconds: f64,
    /// The shortest time at this turn and all later ones.
    least_after: f64,
}

/// The turns at these sizes, ascending, with the time at each.
pub(super) fn turns(sizes_and_times: impl DoubleEndedIterator<Item = (f64, f64)>) -> Vec<Turn> {
    let mut least_after = f64::INFINITY;
    let mut turns: Vec<Turn> = sizes_and_times
        .rev()
        .map(|(size, seconds)| {
            least_after = least_after.min(seconds);
            Turn { size, seconds, least_after }
        })
        .collect();
    turns.reverse();
    turns
}

impl Model {
    /// The first sizes between which the time function falls, below `limit` units and the cap: larger tasks
    /// there take less time than smaller ones. `None` where time never falls, as `fpm` assumes.
    pub(crate) fn falls(&self, limit: f64) -> Option<[f64; 2]> {
        let limit = self.max_size().map_or(limit, |cap| cap.min(limit));
        let falls = |pair: &[Turn]| pair[1].seconds < pair[0].seconds && pair[0].size < limit;
        let first = self.turns.windows(2).position(falls)?;
        let rest = &self.turns[first + 1..];
        let end = rest.windows(2).take_while(|pair| falls(pair)).count();
        Some([self.turns[first].size, rest[end].size])
    }

    /// The largest size that takes at most `seconds`, though smaller ones may take longer: no more than that
    /// can be done in this time. At most `limit` and the cap. O(log points).
    pub(crate) fn largest_within(&self, seconds: f64, limit: f64) -> f64 {
        let limit = self.max_size().map_or(limit, |cap| cap.min(limit));
        let last = self.turns.partition_point(|turn| turn.least_after <= seconds);
        let x = match (last.checked_sub(1).map(|i| self.turns[i]), self.turns.get(last)) {
            (None, _) => seconds * self.points[0].speed(),
            (Some(_), None) => seconds * self.speed_at_end(),
            // Time rises through `seconds` between these two.
            (Some(low), Some(high)) => match &self.akima {
                Some(akima) => akima.crossing(&self.points, low.size, high.size, seconds),
                None => piecewise::crossing(&self.points[last - 1], &self.points[last], seconds),
            },
        };
        x.clamp(0.0, limit)
    }

    fn speed_at_end(&self) -> f64 {
        match self.interpolation {
            Interpolation::Constant => self.points[0].speed(),
            _ => self.points[self.points.len() - 1].speed(),
        }
    }

    /// The ranges of whole multiples of `step`, as numbers of steps from `from` to `to`, that take at most
    /// `seconds`; ascending and apart. O(points + ranges log size).
    pub(crate) fn ranges_within(&self, seconds: f64, from: u64, to: u64, step: u64) -> Vec<(u64, u64)> {
        let in_time = |x: u64| self.seconds((x * step) as f64) <= seconds;
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut start = from;
        let ends = self.turns.iter().map(|turn| (turn.size / step as f64).floor() as u64).chain([to]);
        for end in ends {
            let end = end.min(to);
            if start > end {
                continue;
            }
            // Monotone from `start` to `end`: the sizes in time are at one side.
            let range = match (in_time(start), in_time(end)) {
                (true, true) => Some((start, end)),
                (false, false) => None,
                (true, false) => Some((start, last_of(start, end, in_time))),
                (false, true) => Some((last_of(start, end, |x| !in_time(x)) + 1, end)),
            };
            if let Some((low, high)) = range {
                match found.last_mut() {
                    Some(before) if before.1 + 1 >= low => before.1 = high,
                    _ => found.push((low, high)),
                }
            }
            start = end + 1;
        }
        found
    }
}

/// The last of the numbers from `low`, for which `holds` is true, up to `high`, for which it is false.
fn last_of(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use crate::model::{Interpolation, Model, Point};
    use proptest::prelude::*;

    fn model(points: &[(u32, u32)], akima: bool) -> Model {
        let points = points.iter().map(|&(x, t)| Point::new(f64::from(x), f64::from(t))).collect();
        let interpolation = if akima { Interpolation::Akima } else { Interpolation::PiecewiseLinear };
        Model::new("p", interpolation, points, None).unwrap()
    }

    #[test]
    fn a_fall_is_found_with_its_sizes() {
        let up = model(&[(1, 1), (2, 2), (4, 5)], false);
        assert_eq!(up.falls(1e9), None);
        let down = model(&[(1, 1), (2, 9), (4, 5), (6, 3), (8, 7)], false);
        assert_eq!(down.falls(1e9), Some([2.0, 6.0]));
        assert_eq!(down.falls(2.0), None, "nothing is done beyond 2 units");
        assert_eq!(Model::constant("p", 3.0).unwrap().falls(1e9), None);
    }

    proptest! {
        #[test]
        fn ranges_and_largest_size_agree_with_every_size(
            raw in prop::collection::btree_map(1u32..60, 1u32..40, 1..9),
            seconds in 0.5f64..50.0, step in 1u64..4, akima: bool,
        ) {
            let points: Vec<(u32, u32)> = raw.into_iter().collect();
            let model = model(&points, akima);
            let ranges = model.ranges_within(seconds, 1, 80, step);
            for x in 1..=80 {
                let inside = ranges.iter().any(|r| (r.0..=r.1).contains(&x));
                let time = model.seconds((x * step) as f64);
                // An extremum between two whole sizes may hide from their ends, but not by more than
                // rounding.
                prop_assert!(inside == (time <= seconds) || (time - seconds).abs() < 1e-9 * seconds || akima, "{x}");
            }
            let largest = model.largest_within(seconds, 1e6);
            prop_assert!(model.seconds(largest) <= seconds * (1.0 + 1e-9));
            for i in 1..200 {
                let more = largest * (1.0 + 0.01 * f64::from(i)) + 1e-6;
                prop_assert!(model.seconds(more) >= seconds * (1.0 - 1e-9), "{more} beyond {largest}");
            }
        }
    }
}
