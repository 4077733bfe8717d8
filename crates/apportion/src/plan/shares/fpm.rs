//! Shares from speed functions, so that all processors end at the same moment.
//!
//! Source: Lastovetsky and Reddy 2007, section 3, Algorithms 1, 1.1 and 1.2. Their line through the origin of the
//! (size, speed) plane with slope 1/T meets each speed function at the size that takes T; here T itself is searched,
//! which adds hard caps at no cost.

use super::proportional::Seconds;
use crate::error::{Error, Result};
use crate::model::Model;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The shares that minimise the longest time and add up to `n`. O(p log n log points).
///
/// Never exceeds a model's `max_size`. Optimal over all integer shares where every time function is
/// non-decreasing (any straight line through the origin meets the speed function once).
///
/// # Errors
/// No models, or the caps together hold fewer than `n` units (the message says how many are missing).
///
/// # Example
/// ```
/// use apportion::{Model, shares::fpm};
/// let fast = Model::constant("fast", 9.0)?;
/// let slow = Model::constant("slow", 1.0)?;
/// assert_eq!(fpm(&[fast, slow], 1000)?, [900, 100]);
/// # Ok::<(), apportion::Error>(())
/// ```
pub fn fpm(models: &[Model], n: u64) -> Result<Vec<u64>> {
    let (below, _) = bracket(models, n)?;
    let mut shares = floors(models, n, below);
    let mut left = n - shares.iter().sum::<u64>();
    let next = |i: usize, share: u64| {
        let size = (share + 1) as f64;
        (!models[i].max_size().is_some_and(|cap| size > cap))
            .then(|| Reverse((Seconds(models[i].seconds(size)), i)))
    };
    let mut heap: BinaryHeap<_> = (0..models.len()).filter_map(|i| next(i, shares[i])).collect();
    while left > 0 {
        let Some(Reverse((_, i))) = heap.pop() else {
            unreachable!("the caps were checked to hold all units");
        };
        shares[i] += 1;
        left -= 1;
        heap.extend(next(i, shares[i]));
    }
    Ok(shares)
}

/// The time at which divisible units would all end together: no shares end sooner.
///
/// # Errors
/// As [`fpm`].
pub fn ideal_seconds(models: &[Model], n: u64) -> Result<f64> {
    let (_, above) = bracket(models, n)?;
    let (mut low, mut high) = (0.0, above);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        let units: f64 = models.iter().map(|m| m.units_within(middle, n as f64)).sum();
        if units >= n as f64 {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Whole units that fit into `seconds` on each processor.
fn floors(models: &[Model], n: u64, seconds: f64) -> Vec<u64> {
    models.iter().map(|m| m.units_within(seconds, n as f64).floor() as u64).collect()
}

/// Two times: by the first at most n whole units are done, by the second at least n; at most p units apart,
/// or as close as doubles get.
fn bracket(models: &[Model], n: u64) -> Result<(f64, f64)> {
    if models.is_empty() {
        return Err(Error::input("models", "there is none", "give one model per processor"));
    }
    let caps: f64 = models.iter().map(|m| m.max_size().map_or(n as f64, |c| c.floor().min(n as f64))).sum();
    if caps < n as f64 {
        return Err(Error::infeasible(
            format!("the processors' memory holds {caps} of {n} units: {} are missing", n as f64 - caps),
            "add processors, raise max_size, or divide a smaller problem",
        ));
    }
    let count = |seconds: f64| -> u128 { floors(models, n, seconds).iter().map(|&x| u128::from(x)).sum() };
    let (mut low, mut high) = (0.0, models.iter().map(|m| m.longest(n as f64)).fold(0.0, f64::max));
    // Rounding in the last bit must not leave the upper end short.
    while count(high) < u128::from(n) {
        high *= 1.0 + 1e-12;
    }
    let (mut at_low, mut at_high) = (0, count(high));
    while at_high - at_low > models.len() as u128 {
        let middle = if low > 0.0 && high > 2.0 * low {
            (low * high).sqrt()
        } else if low == 0.0 && high > f64::MIN_POSITIVE * 4.0 {
            // Towards zero in large steps: the answer may be many orders below.
            high * 1e-3
        } else {
            0.5 * (low + high)
        };
        if middle <= low || middle >= high {
            break;
        }
        let units = count(middle);
        if units <= u128::from(n) {
            (low, at_low) = (middle, units);
        } else {
            (high, at_high) = (middle, units);
        }
    }
    Ok((low, high))
}

#[cfg(test)]
mod tests {
    use super::super::makespan;
    use super::*;
    use crate::model::Point;
    use proptest::prelude::*;

    /// The least longest time over all integer shares, by dynamic programming: slow and obviously right.
    fn oracle(models: &[Model], n: u64) -> Option<f64> {
        let n = n as usize;
        let mut best = vec![f64::INFINITY; n + 1];
        best[0] = 0.0;
        for model in models {
            let mut next = vec![f64::INFINITY; n + 1];
            for done in 0..=n {
                for share in 0..=done {
                    let time = best[done - share].max(model.seconds(share as f64));
                    next[done] = next[done].min(time);
                }
            }
            best = next;
        }
        best[n].is_finite().then_some(best[n])
    }

    #[test]
    fn a_paging_processor_by_hand() {
        // One processor does 10 units a second up to 50 and collapses to 1 a second at 100.
        let paging =
            Model::piecewise("a", vec![Point::new(50.0, 5.0), Point::new(100.0, 100.0)], None).unwrap();
        let steady = Model::constant("b", 5.0).unwrap();
        let shares = fpm(&[paging.clone(), steady.clone()], 100).unwrap();
        // Proportional shares by the speeds at n / p = 50 would give 67 and 33: 67 units page.
        // By hand: s(61) = 10 - 11 * 9 / 50 = 8.02, 61 / 8.02 = 7.6 s beside 39 / 5 = 7.8 s.
        assert_eq!(shares, [61, 39]);
        assert_eq!(
            makespan(&[paging.clone(), steady.clone()], &shares),
            oracle(&[paging, steady], 100).unwrap()
        );
    }

    #[test]
    fn caps_hold_and_too_small_caps_are_infeasible() {
        let capped = Model::piecewise("a", vec![Point::new(10.0, 1.0)], Some(30.0)).unwrap();
        let slow = Model::constant("b", 0.001).unwrap();
        assert_eq!(fpm(&[capped.clone(), slow], 100).unwrap(), [30, 70]);
        let error = fpm(&[capped.clone(), capped], 100).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("40 are missing"), "{error}");
    }

    fn model() -> impl Strategy<Value = Model> {
        // Speeds that never rise faster than size: time is monotone.
        let knots = prop::collection::vec((1u32..20, 0.2f64..1.0), 1..5);
        (knots, prop::option::weighted(0.3, 5u32..60)).prop_map(|(knots, cap)| {
            let (mut size, mut speed) = (0.0, 20.0);
            let points = knots
                .iter()
                .map(|&(step, factor)| {
                    size += f64::from(step);
                    speed *= factor;
                    Point::new(size, size / speed)
                })
                .collect();
            Model::piecewise("p", points, cap.map(f64::from)).unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn agrees_with_dynamic_programming(models in prop::collection::vec(model(), 1..5), n in 0u64..60) {
            match (fpm(&models, n), oracle(&models, n)) {
                (Ok(shares), Some(best)) => {
                    prop_assert_eq!(shares.iter().sum::<u64>(), n);
                    prop_assert!(makespan(&models, &shares) <= best * (1.0 + 1e-9));
                    prop_assert!(ideal_seconds(&models, n).unwrap() <= best * (1.0 + 1e-9));
                }
                (Err(error), None) => prop_assert_eq!(error.exit_code(), 1),
                (ours, theirs) => prop_assert!(false, "{ours:?} against {theirs:?}"),
            }
        }
    }

    #[test]
    fn wide_ranges_converge() {
        let models: Vec<Model> = [1e-6, 1.0, 1e9].map(|s| Model::constant("p", s).unwrap()).to_vec();
        let shares = fpm(&models, 1 << 50).unwrap();
        assert_eq!(shares.iter().sum::<u64>(), 1 << 50);
        assert_eq!(shares[0], 1);
        assert_eq!(fpm(&models, 0).unwrap(), [0, 0, 0]);
    }
}
