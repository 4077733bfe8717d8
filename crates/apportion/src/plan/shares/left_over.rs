//! Who gets the units that are left over after rounding down.
//!
//! Source: Tinetti, chapter 3, section 3.4.1: ws_i gets the whole part of pw_i n rows, and the rows that are
//! left over are given one each to ws_0, ws_1, …

use super::proportional;

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
/// use apportion::plan::shares::left_over_first;
/// assert_eq!(left_over_first(96, &[6.0, 24.0]), [20, 76]); // 19.2 and 76.8
/// ```
pub fn left_over_first(n: u64, speeds: &[f64]) -> Vec<u64> {
    assert!(speeds.iter().all(|s| s.is_finite() && *s >= 0.0), "speeds are finite and not negative");
    let largest = speeds.iter().copied().fold(0.0, f64::max);
    assert!(largest > 0.0, "at least one speed is positive");
    let total: f64 = speeds.iter().map(|s| s / largest).sum();
    let mut left = n;
    let mut shares: Vec<u64> = speeds
        .iter()
        .map(|s| {
            let share = ((n as f64 * (s / largest) / total + EXACT).floor() as u64).min(left);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
