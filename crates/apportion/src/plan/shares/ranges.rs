//! The smallest longest time over all whole shares, for any time functions: sums of ranges of sizes.
//!
//! Time as a function of size only rises or only falls between two turns, so the sizes that a processor does
//! within T are a few ranges, and so are the sums of several processors' sizes. Their number depends on the
//! turns, not on the number of units.

use super::limits::Allowed;
use super::{fpm_within, ideal_seconds, makespan};
use crate::error::{Error, Result};
use crate::model::Model;

/// Maximum number of pairs of ranges that are added for one time.
const MOST_PAIRS: usize = 4_000_000;

/// Ranges of numbers of steps, ascending and apart.
type Ranges = Vec<(u64, u64)>;

/// Shares of `n` units within `allowed`, all with the same step, which divides `n`; optimal for any time
/// functions. O(100 p pairs of ranges).
///
/// # Errors
/// Too many separate ranges; those of [`fpm_within`].
pub(super) fn least_time(models: &[Model], n: u64, allowed: &[Allowed], fpm: Vec<u64>) -> Result<Vec<u64>> {
    let (mut low, mut high) = (ideal_seconds(models, n)? * (1.0 - 1e-9), makespan(models, &fpm));
    let mut best = fpm;
    // Each round halves the distance of the two times as the computer counts doubles.
    while low < high {
        let middle = f64::from_bits(low.to_bits() + (high.to_bits() - low.to_bits()) / 2);
        if middle <= low || middle >= high {
            break;
        }
        match shares_within(models, n, allowed, middle)? {
            Some(shares) => {
                high = makespan(models, &shares).min(middle);
                best = shares;
            }
            None => low = middle,
        }
    }
    Ok(best)
}

/// Shares that finish within `seconds`, if there are any.
fn shares_within(models: &[Model], n: u64, allowed: &[Allowed], seconds: f64) -> Result<Option<Vec<u64>>> {
    let step = allowed[0].step;
    let sizes: Vec<Ranges> = models
        .iter()
        .zip(allowed)
        .map(|(m, a)| m.ranges_within(seconds, (a.least / step, a.most / step), step))
        .collect();
    if sizes.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    let wanted = n / step;
    let largest = |ranges: &Ranges| u128::from(ranges[ranges.len() - 1].1);
    let mut rest: u128 = sizes.iter().map(largest).sum();
    if rest < u128::from(wanted) {
        return Ok(None);
    }
    let mut sums: Vec<Ranges> = vec![vec![(0, 0)]];
    for mine in &sizes {
        rest -= largest(mine);
        // The remaining processors could not make up for smaller sums.
        let least = u128::from(wanted).saturating_sub(rest) as u64;
        sums.push(sum(&sums[sums.len() - 1], mine, (least, wanted))?);
    }
    if !contains(&sums[sizes.len()], wanted) {
        return Ok(None);
    }
    let mut shares = vec![0; models.len()];
    let mut left = wanted;
    for i in (0..models.len()).rev() {
        let share =
            share_of(&sizes[i], &sums[i], left).expect("the sum was made of a size and a smaller sum");
        shares[i] = share * step;
        left -= share;
    }
    Ok(Some(shares))
}

/// All sums of a number of each, between the two ends.
fn sum(a: &Ranges, b: &Ranges, (least, most): (u64, u64)) -> Result<Ranges> {
    if a.len() * b.len() > MOST_PAIRS {
        return Err(Error::infeasible(
            "`method = exact`: time rises and falls too often to try every sum of sizes",
            "use `method = fpm`, fewer points, or multiples of a larger block",
        ));
    }
    let mut all: Ranges = Vec::with_capacity(a.len() * b.len());
    for x in a {
        for y in b {
            let (from, to) = (x.0.saturating_add(y.0).max(least), x.1.saturating_add(y.1).min(most));
            if from <= to {
                all.push((from, to));
            }
        }
    }
    all.sort_unstable();
    let mut merged: Ranges = Vec::with_capacity(all.len());
    for (from, to) in all {
        match merged.last_mut() {
            Some(before) if before.1.saturating_add(1) >= from => before.1 = before.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    Ok(merged)
}

fn contains(ranges: &Ranges, x: u64) -> bool {
    let after = ranges.partition_point(|r| r.0 <= x);
    after > 0 && x <= ranges[after - 1].1
}

/// A size that leaves one of the smaller sums: none if possible, else the largest.
fn share_of(sizes: &Ranges, sums: &Ranges, left: u64) -> Option<u64> {
    if sizes[0].0 == 0 && contains(sums, left) {
        return Some(0);
    }
    sizes.iter().rev().find_map(|&(from, to)| {
        sums.iter().find_map(|&(low, high)| {
            let share = to.min(left.checked_sub(low)?);
            (share >= from && left - share <= high).then_some(share)
        })
    })
}

/// Shares by [`least_time`] if time falls somewhere, otherwise `fpm`'s own, which are then optimal.
///
/// # Errors
/// As [`least_time`].
pub(super) fn least_time_or_fpm(
    models: &[Model],
    n: u64,
    allowed: &[Allowed],
    limits: &[super::Limits],
) -> Result<Vec<u64>> {
    let fpm = fpm_within(models, n, limits)?;
    let falls = models.iter().any(|m| m.falls(n as f64).is_some());
    if falls { least_time(models, n, allowed, fpm) } else { Ok(fpm) }
}
