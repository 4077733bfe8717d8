//! Shares by one number per processor: in proportion to speeds, integer-optimal or with left-over units to the
//! first, and equal ones.
//!
//! Source: Tinetti, chapter 3, equations (3.3) and (3.4): normalised relative power. Left-over units are
//! given to the processors that finish them soonest (Beaumont et al. 2001; Lastovetsky and Reddy 2007,
//! Algorithm 1.2), or as in Tinetti's section 3.4.1: ws_i gets the whole part of pw_i n rows, and the rows that
//! are left over are given one each to ws_0, ws_1, …

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time with a total order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seconds(pub f64);

impl Eq for Seconds {}
impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The shares that minimise `max share_i / speed_i` and add up to `n`. O(p log p).
///
/// A processor with a speed of zero gets no units. Ties go to the lower rank.
///
/// # Panics
/// If a speed is negative, infinite or NaN, or none is positive.
///
/// # Example
/// ```
/// use apportion_plan::plan::shares::proportional;
/// assert_eq!(proportional(10, &[9.0, 1.0]), [9, 1]);
/// assert_eq!(proportional(4, &[1.0, 1.0, 1.0]), [2, 1, 1]);
/// ```
pub fn proportional(n: u64, speeds: &[f64]) -> Vec<u64> {
    let weights = scaled(speeds);
    let total: f64 = weights.iter().sum();
    let mut shares: Vec<u64> = weights
        .iter()
        // Slightly less than the exact quotient: rounding must never distribute more than n.
        .map(|w| ((n as f64 * (w / total)) * (1.0 - 1e-15)).floor() as u64)
        .collect();
    let mut left = n.saturating_sub(shares.iter().sum());
    let mut next: BinaryHeap<Reverse<(Seconds, usize)>> = weights
        .iter()
        .enumerate()
        .filter(|(_, w)| **w > 0.0)
        .map(|(i, w)| Reverse((Seconds((shares[i] + 1) as f64 / w), i)))
        .collect();
    while left > 0 {
        let Some(Reverse((_, i))) = next.pop() else {
            break;
        };
        shares[i] += 1;
        left -= 1;
        next.push(Reverse((Seconds((shares[i] + 1) as f64 / weights[i]), i)));
    }
    shares
}

/// The speeds over the largest of them, so that their sum never overflows.
///
/// # Panics
/// If a speed is negative, infinite or NaN, or none is positive.
pub(super) fn scaled(speeds: &[f64]) -> Vec<f64> {
    assert!(speeds.iter().all(|s| s.is_finite() && *s >= 0.0), "speeds are finite and not negative");
    let largest = speeds.iter().copied().fold(0.0, f64::max);
    assert!(largest > 0.0, "at least one speed is positive");
    speeds.iter().map(|s| s / largest).collect()
}

/// Slack that keeps an exact quotient from being rounded down.
const EXACT: f64 = 1e-9;

/// The rule for left-over units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeftOver {
    /// Each goes to the processor that finishes it soonest, as in [`proportional`].
    #[default]
    Soonest,
    /// One each goes to the first processors, as in [`left_over_first`].
    First,
}

impl LeftOver {
    /// Shares of `n` units in proportion to the speeds, by this rule.
    pub fn shares(self, n: u64, speeds: &[f64]) -> Vec<u64> {
        match self {
            Self::Soonest => proportional(n, speeds),
            Self::First => left_over_first(n, speeds),
        }
    }
}

/// The whole part of each processor's proportional share of `n`; what is left over goes one each to the first
/// processors that have a speed. O(p).
///
/// The longest time is never shorter than that of [`proportional`].
///
/// # Panics
/// As [`proportional`].
///
/// # Example
/// ```
/// use apportion_plan::plan::shares::left_over_first;
/// assert_eq!(left_over_first(96, &[6.0, 24.0]), [20, 76]); // 19.2 and 76.8
/// ```
pub fn left_over_first(n: u64, speeds: &[f64]) -> Vec<u64> {
    let weights = scaled(speeds);
    let total: f64 = weights.iter().sum();
    let mut left = n;
    let mut shares: Vec<u64> = weights
        .iter()
        .map(|w| {
            let share = ((n as f64 * w / total + EXACT).floor() as u64).min(left);
            left -= share;
            share
        })
        .collect();
    // Fewer are left than there are processors with a speed.
    for (share, _) in shares.iter_mut().zip(speeds).filter(|(_, s)| **s > 0.0) {
        let more = left.min(1);
        *share += more;
        left -= more;
    }
    shares
}

/// Divides `n` units into equal shares; the first n mod p processors get one unit more. O(p).
///
/// # Panics
/// If there is no processor.
pub(crate) fn even(n: u64, processors: usize) -> Vec<u64> {
    assert!(processors > 0, "shares need a processor");
    let p = processors as u64;
    (0..p).map(|i| n / p + u64::from(i < n % p)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shares::compositions;
    use proptest::prelude::*;

    #[test]
    fn hybrid_cpu_by_hand() {
        // Ten fast cores (3.6) and ten slow ones: the slow ones limit an equal split, which reaches 20 / 46 =
        // 43 % of the weighted one.
        let speeds: Vec<f64> = [3.6; 10].into_iter().chain([1.0; 10]).collect();
        let shares = proportional(4600, &speeds);
        assert_eq!(&shares[..10], [360; 10]);
        assert_eq!(&shares[10..], [100; 10]);
    }

    #[test]
    fn awkward_sizes() {
        assert_eq!(proportional(0, &[1.0, 2.0]), [0, 0]);
        assert_eq!(proportional(1, &[1.0, 2.0, 3.0]), [0, 0, 1]);
        assert_eq!(proportional(7, &[1.0]), [7]);
        assert_eq!(proportional(5, &[0.0, 1.0]), [0, 5]);
        assert_eq!(proportional(3, &[1e308, 1e308, 1e-308]), [2, 1, 0]);
        assert_eq!(proportional(1 << 53, &[1.0, 1.0]), [1 << 52, 1 << 52]);
    }

    proptest! {
        #[test]
        fn no_other_shares_end_sooner(n in 0u64..12, speeds in prop::collection::vec(0.1f64..10.0, 1..4)) {
            let time = |shares: &[u64]| shares.iter().zip(&speeds).map(|(&x, s)| x as f64 / s).fold(0.0, f64::max);
            let shares = proportional(n, &speeds);
            prop_assert_eq!(shares.iter().sum::<u64>(), n);
            let best = compositions(n, speeds.len()).iter().map(|c| time(c)).fold(f64::INFINITY, f64::min);
            prop_assert!(time(&shares) <= best * (1.0 + 1e-12));
        }
    }

    #[test]
    fn as_tinetti_defines_them() {
        assert_eq!(left_over_first(96, &[6.0, 24.0]), [20, 76]);
        assert_eq!(proportional(96, &[6.0, 24.0]), [19, 77]);
        // 2.5, 2.5, 5: two whole parts of 2, and the row that is left over.
        assert_eq!(left_over_first(10, &[1.0, 1.0, 2.0]), [3, 2, 5]);
        // 1.75 each: three rows are left over.
        assert_eq!(left_over_first(7, &[1.0; 4]), [2, 2, 2, 1]);
        assert_eq!(left_over_first(7, &[0.0, 1.0, 1.0]), [0, 4, 3]);
        assert_eq!(left_over_first(30, &[0.1, 0.2]), [10, 20]);
    }

    proptest! {
        #[test]
        fn every_unit_once_and_never_sooner(
            n in 0u64..500, speeds in prop::collection::vec(0.1f64..10.0, 1..8),
        ) {
            let shares = left_over_first(n, &speeds);
            prop_assert_eq!(shares.iter().sum::<u64>(), n);
            let times = |shares: &[u64]| -> Vec<f64> {
                shares.iter().zip(&speeds).map(|(&x, s)| x as f64 / s).collect()
            };
            let time = |shares: &[u64]| times(shares).into_iter().fold(0.0, f64::max);
            prop_assert!(time(&shares) >= time(&proportional(n, &speeds)) * (1.0 - 1e-12));
            let total: f64 = speeds.iter().sum();
            for (share, s) in shares.iter().zip(&speeds) {
                let exact = n as f64 * s / total;
                let more = *share as f64 - exact.floor();
                prop_assert!((-EXACT..=1.0 + EXACT).contains(&more), "{}", more);
            }
        }
    }

    #[test]
    fn leftovers_go_to_the_first() {
        assert_eq!(even(10, 4), [3, 3, 2, 2]);
        assert_eq!(even(2, 3), [1, 1, 0]);
        assert_eq!(even(0, 2), [0, 0]);
    }
}
