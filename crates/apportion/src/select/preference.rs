//! The one rule for choices: the least value of the criterion wins. Among equals the least volume wins, then
//! the first in the order of preference.

use super::Choice;

/// Values that differ by less than this fraction are equal: only rounding tells them apart.
const EQUAL: f64 = 1e-9;

/// Seconds that no machine can tell from nothing.
const NOTHING: f64 = 1e-30;

/// True if `value` exceeds `least` by no more than rounding, or than the fraction `margin`.
fn within(value: f64, least: f64, margin: f64) -> bool {
    value <= least * (1.0 + margin.max(EQUAL)) + NOTHING
}

/// The index of the preferred one of some costs, each with a volume: of those whose cost exceeds the least by
/// no more than the fraction `margin` (0 for rounding only), the first of the least volume. `None` among the
/// costs is never preferred.
pub fn preferred(costs: &[Option<(f64, u64)>], margin: f64) -> Option<usize> {
    let least = costs.iter().flatten().map(|c| c.0).fold(f64::INFINITY, f64::min);
    let near = |(i, cost): (usize, &Option<(f64, u64)>)| {
        cost.filter(|c| within(c.0, least, margin)).map(|(_, volume)| (volume, i))
    };
    costs.iter().enumerate().filter_map(near).min().map(|(_, i)| i)
}

/// Sorts candidates, the preferred one first: by rank, equal ones by volume, then in the order given. Those
/// without a rank come last. If none has one, the volume decides.
pub fn in_order_of_preference(mut choices: Vec<Choice>) -> Vec<Choice> {
    let least = choices.iter().filter_map(|c| c.rank).fold(f64::INFINITY, f64::min);
    let key = |c: &Choice| {
        let near = c.rank.map_or(least == f64::INFINITY, |r| within(r, least, 0.0));
        (!near, if near { 0.0 } else { c.rank.unwrap_or(f64::INFINITY) }, c.volume())
    };
    choices.sort_by(|a, b| {
        let ((x, s, v), (y, t, w)) = (key(a), key(b));
        x.cmp(&y).then(s.total_cmp(&t)).then(v.cmp(&w))
    });
    choices
}

/// What decided between two candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The criterion: the values differ.
    Criterion,
    /// The volume: the criterion's values are equal, or there are none.
    Volume,
    /// Their order: both are equal.
    Order,
}

impl DecidedBy {
    /// What put `best` before `other`.
    pub fn between(best: &Choice, other: &Choice) -> Self {
        let equal = match (best.rank, other.rank) {
            (Some(a), Some(b)) => within(a.max(b), a.min(b), 0.0),
            _ => true,
        };
        match (equal, best.volume() == other.volume()) {
            (false, _) => Self::Criterion,
            (true, false) => Self::Volume,
            (true, true) => Self::Order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_wins_then_the_volume_then_the_order() {
        assert_eq!(preferred(&[Some((2.0, 1)), Some((1.0, 9))], 0.0), Some(1));
        assert_eq!(preferred(&[Some((1.0, 9)), Some((1.0 + 1e-12, 3)), Some((1.0, 3))], 0.0), Some(1));
        assert_eq!(preferred(&[None, Some((1e-300, 5)), Some((1e-301, 6))], 0.0), Some(1));
        assert_eq!(preferred(&[None, None], 0.0), None);
        // One percent of margin: the second is close enough, and moves less.
        assert_eq!(preferred(&[Some((1.0, 9)), Some((1.005, 3))], 0.01), Some(1));
        assert_eq!(preferred(&[Some((1.0, 9)), Some((1.005, 3))], 0.001), Some(0));
    }
}
