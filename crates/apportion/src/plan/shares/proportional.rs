//! Shares in proportion to one speed per processor, integer-optimal.
//!
//! Source: Tinetti, chapter 3, equations (3.3) and (3.4): normalised relative power. Left-over units are
//! given to the processors that finish them soonest (Beaumont et al. 2001; Lastovetsky and Reddy 2007,
//! Algorithm 1.2).

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
/// use apportion::plan::shares::proportional;
/// assert_eq!(proportional(10, &[9.0, 1.0]), [9, 1]);
/// assert_eq!(proportional(4, &[1.0, 1.0, 1.0]), [2, 1, 1]);
/// ```
pub fn proportional(n: u64, speeds: &[f64]) -> Vec<u64> {
    assert!(speeds.iter().all(|s| s.is_finite() && *s >= 0.0), "speeds are finite and not negative");
    // Scaled by the largest, so that the sum never overflows.
    let largest = speeds.iter().copied().fold(0.0, f64::max);
    assert!(largest > 0.0, "at least one speed is positive");
    let weights: Vec<f64> = speeds.iter().map(|s| s / largest).collect();
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

#[cfg(test)]
mod tests {
    use super::super::compositions;
    use super::*;
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
}
