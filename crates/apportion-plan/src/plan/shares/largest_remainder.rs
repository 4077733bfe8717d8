//! Shares in proportion to one speed per processor, by largest remainders.
//!
//! Source: Hamilton's method of apportionment; Balinski and Young, "Fair Representation", 2nd edition, 2001.
//! With limits, quotas are the proportional ones of those processors that no limit binds.

use super::limits::{Allowed, resolve};
use super::proportional::scaled;
use super::{Limits, even};
use crate::error::{Error, Result};
use crate::model::Model;
use std::cmp::Ordering;

/// Each processor's quota n speed_i / sum of the speeds, rounded down; the units that are left go one each to
/// the largest remainders, ties to the lower rank. No share differs from its quota by one or more.
/// O(p log p).
///
/// [`proportional`](super::proportional()) ends sooner, but may give a slow processor nothing although half
/// of a unit is its quota.
///
/// # Panics
/// If a speed is negative, infinite or NaN, or none is positive.
///
/// # Example
/// ```
/// use apportion_plan::plan::shares::largest_remainder;
/// assert_eq!(largest_remainder(100, &[13.626, 47.990, 9.596, 28.788]), [14, 48, 9, 29]);
/// ```
pub fn largest_remainder(n: u64, speeds: &[f64]) -> Vec<u64> {
    let speeds = scaled(speeds);
    let most = speeds.iter().map(|s| if *s > 0.0 { n } else { 0 });
    let allowed: Vec<Allowed> = most.map(|most| Allowed { least: 0, most, step: 1 }).collect();
    round_quotas(n, &quotas(n, &speeds, &allowed), &allowed)
}

/// [`largest_remainder`] by the models' speeds at an equal share (or at their caps), within their caps and
/// these limits; an empty slice means no limits. Processors at a limit have that share; the others' shares
/// are in proportion.
///
/// # Errors
/// As [`fpm_within`](super::fpm_within). Multiples that differ between processors: exit code 2.
pub fn largest_remainder_within(models: &[Model], n: u64, limits: &[Limits]) -> Result<Vec<u64>> {
    let allowed = resolve(models, n, limits)?;
    let step = allowed[0].step;
    if allowed.iter().any(|a| a.step != step) {
        let what = "shares by largest remainder have one multiple for all processors";
        return Err(Error::input("`multiple_of`", what, "give one number, or use fpm"));
    }
    if !n.is_multiple_of(step) {
        return Err(Error::infeasible(
            format!("{n} units are no multiple of the block of {step}: {} are left over", n % step),
            format!("divide {} or {} units", n - n % step, n - n % step + step),
        ));
    }
    let equal = (n as f64 / models.len() as f64).max(1.0);
    let speed = |model: &Model| model.speed(model.max_size().map_or(equal, |cap| cap.min(equal)));
    let speeds: Vec<f64> =
        models.iter().map(|model| if model.is_stopped() { 0.0 } else { speed(model) }).collect();
    let blocks: Vec<Allowed> =
        allowed.iter().map(|a| Allowed { least: a.least / step, most: a.most / step, step: 1 }).collect();
    let shares = round_quotas(n / step, &quotas(n / step, &speeds, &blocks), &blocks);
    Ok(shares.into_iter().map(|blocks| blocks * step).collect())
}

/// Equal shares of the processors that can take work: [`even`] without those of speed 0.
///
/// # Panics
/// If there is none.
pub fn even_among(models: &[Model], n: u64) -> Vec<u64> {
    let working = models.iter().filter(|model| !model.is_stopped()).count();
    let mut shares = even(n, working).into_iter();
    let share = |model: &Model| if model.is_stopped() { 0 } else { shares.next().unwrap_or(0) };
    models.iter().map(share).collect()
}

/// Real shares that add up to `n`, in proportion to the speeds where no limit binds. The limits must allow
/// them. O(p^2) at worst.
fn quotas(n: u64, speeds: &[f64], allowed: &[Allowed]) -> Vec<f64> {
    // Scaled by the largest, so that the sum never overflows.
    let largest = speeds.iter().copied().fold(0.0, f64::max);
    let mut quotas: Vec<Option<f64>> = vec![None; speeds.len()];
    loop {
        let bound: f64 = quotas.iter().flatten().sum();
        let free = || (0..speeds.len()).filter(|&i| quotas[i].is_none());
        let total: f64 = free().map(|i| speeds[i] / largest).sum();
        let quota = |i: usize| match total > 0.0 {
            true => (n as f64 - bound) * (speeds[i] / largest / total),
            false => 0.0,
        };
        let under = |i: usize| (allowed[i].least as f64 - quota(i)).max(0.0);
        let over = |i: usize| (quota(i) - allowed[i].most as f64).max(0.0);
        // Where more is missing below than is too much above, the minimum shares bind in the end, too.
        let (missing, excess): (f64, f64) = (free().map(under).sum(), free().map(over).sum());
        if missing == 0.0 && excess == 0.0 {
            return (0..speeds.len()).map(|i| quotas[i].unwrap_or_else(|| quota(i))).collect();
        }
        let at_limit: Vec<(usize, f64)> = match missing >= excess {
            true => free().filter(|&i| under(i) > 0.0).map(|i| (i, allowed[i].least as f64)).collect(),
            false => free().filter(|&i| over(i) > 0.0).map(|i| (i, allowed[i].most as f64)).collect(),
        };
        at_limit.into_iter().for_each(|(i, limit)| quotas[i] = Some(limit));
    }
}

/// Quotas in whole numbers that add up to `n`: rounded down, and one more for the largest remainders.
fn round_quotas(n: u64, quotas: &[f64], allowed: &[Allowed]) -> Vec<u64> {
    let within = |(quota, a): (&f64, &Allowed)| (quota.floor() as u64).clamp(a.least, a.most);
    let mut shares: Vec<u64> = quotas.iter().zip(allowed).map(within).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    let remainder = |i: usize| quotas[i] - quotas[i].floor();
    // Remainders that differ by rounding only are equal.
    let key = |i: usize| (remainder(i) * 1e9).round();
    order.sort_by(|&i, &j| key(j).partial_cmp(&key(i)).unwrap_or(Ordering::Equal).then(i.cmp(&j)));
    let mut sum: u64 = shares.iter().sum();
    // More than one round, or too many units, only where quotas exceed what doubles tell apart.
    while sum != n {
        for &i in &order {
            if sum < n && shares[i] < allowed[i].most {
                (shares[i], sum) = (shares[i] + 1, sum + 1);
            }
        }
        for &i in order.iter().rev() {
            if sum > n && shares[i] > allowed[i].least {
                (shares[i], sum) = (shares[i] - 1, sum - 1);
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::super::compositions;
    use super::*;
    use proptest::prelude::*;

    fn models(speeds: &[f64]) -> Vec<Model> {
        speeds.iter().map(|&s| Model::ratio("p", s).unwrap()).collect()
    }

    #[test]
    fn by_hand() {
        assert_eq!(largest_remainder(100, &[13.626, 47.990, 9.596, 28.788]), [14, 48, 9, 29]);
        assert_eq!(largest_remainder(10, &[86.0, 4.5, 4.75, 4.75]), [9, 0, 1, 0]);
        assert_eq!(largest_remainder(30, &[0.1, 0.2]), [10, 20]);
        assert_eq!(largest_remainder(4, &[1.0; 3]), [2, 1, 1]);
        assert_eq!(largest_remainder(5, &[0.0, 1.0, 1.0]), [0, 3, 2]);
        assert_eq!(largest_remainder(0, &[1.0, 2.0]), [0, 0]);
        assert_eq!(largest_remainder(1 << 53, &[1.0; 3]).iter().sum::<u64>(), 1 << 53);
        assert_eq!(largest_remainder(3, &[1e308, 1e308, 1e-308]), [2, 1, 0]);
        assert_eq!(even_among(&models(&[1.0, 0.0, 9.0]), 5), [3, 0, 2]);
    }

    #[test]
    fn limits_bind_and_the_others_stay_in_proportion() {
        let limit = |least, most, multiple_of| Limits { least, most, multiple_of };
        let of = |n, limits: &[Limits]| largest_remainder_within(&models(&[6.0, 3.0, 1.0]), n, limits);
        assert_eq!(of(100, &[]).unwrap(), [60, 30, 10]);
        // 40 of the first; 60 at 3:1.
        let free = limit(0, None, 1);
        assert_eq!(of(100, &[limit(0, Some(40), 1), free, free]).unwrap(), [40, 45, 15]);
        assert_eq!(of(100, &[free, free, limit(31, None, 1)]).unwrap(), [46, 23, 31]);
        assert_eq!(of(100, &[limit(0, None, 20); 3]).unwrap(), [60, 40, 0]);
        assert_eq!(of(100, &[limit(0, Some(30), 1); 3]).unwrap_err().exit_code(), 1);
        assert_eq!(of(90, &[limit(0, None, 20); 3]).unwrap_err().exit_code(), 1);
        assert_eq!(of(100, &[limit(0, None, 20), free, free]).unwrap_err().exit_code(), 2);
        // A cap of the model, and a processor that takes nothing.
        let capped = [models(&[6.0])[0].clone().with_cap(10.0).unwrap(), models(&[1.0])[0].clone()];
        assert_eq!(largest_remainder_within(&capped, 100, &[]).unwrap(), [10, 90]);
        assert_eq!(largest_remainder_within(&models(&[1.0, 0.0, 1.0]), 7, &[]).unwrap(), [4, 0, 3]);
    }

    proptest! {
        /// No whole shares are nearer to the quotas, by the sum of the squared differences (Hamilton's rule
        /// minimises it), and each is its quota rounded up or down. With limits: the same against all shares
        /// within them, for quotas found by bisection.
        #[test]
        fn nearest_to_the_quotas(
            n in 0u64..12, each in prop::collection::vec((1u32..40, 0u64..4, 2u64..9), 1..4), limited: bool,
        ) {
            let speeds: Vec<f64> = each.iter().map(|one| f64::from(one.0)).collect();
            let limits: Vec<Limits> = each
                .iter()
                .map(|&(_, least, more)| Limits { least, most: Some(least + more), multiple_of: 1 })
                .collect();
            let limits = if limited { limits } else { vec![Limits::default(); each.len()] };
            let Ok(shares) = largest_remainder_within(&models(&speeds), n, &limits) else { return Ok(()) };
            let most = |limit: &Limits| limit.most.unwrap_or(n).min(n) as f64;
            let at = |scale: f64| -> Vec<f64> {
                let each = speeds.iter().zip(&limits);
                each.map(|(s, limit)| (scale * s).clamp(limit.least as f64, most(limit))).collect()
            };
            let (mut low, mut high) = (0.0, 1e6);
            for _ in 0..200 {
                let middle = 0.5 * (low + high);
                if at(middle).iter().sum::<f64>() < n as f64 { low = middle } else { high = middle }
            }
            let quotas = at(high);
            let distance = |shares: &[u64]| -> f64 {
                shares.iter().zip(&quotas).map(|(&share, quota)| (share as f64 - quota).powi(2)).sum()
            };
            let allowed = |shares: &&Vec<u64>| {
                let mut each = shares.iter().zip(&limits);
                each.all(|(&share, limit)| share >= limit.least && share as f64 <= most(limit))
            };
            prop_assert_eq!(shares.iter().sum::<u64>(), n);
            prop_assert!(allowed(&&shares));
            let all = compositions(n, speeds.len());
            let least = all.iter().filter(allowed).map(|c| distance(c)).fold(f64::INFINITY, f64::min);
            prop_assert!(distance(&shares) <= least + 1e-6, "{shares:?} {quotas:?}");
            for (share, quota) in shares.iter().zip(&quotas) {
                prop_assert!((*share as f64 - quota).abs() < 1.0 + 1e-6);
            }
        }
    }
}
