//! Shares that are multiples of blocks that differ between processors.
//!
//! For a time T each processor does up to some number of its blocks, and the question is whether blocks of
//! several sizes add up to n: bounded change-making. Near a solution in fractions there is one in whole
//! numbers: at most 2 B + 1 blocks away, for a largest block of B units (Eisenbrand and Weismantel, ACM
//! Transactions on Algorithms 16(1), 2020, DOI 10.1145/3340322), so only sums near n are tried, however large
//! n is.

use super::fpm::{bracket, floors, longest};
use super::limits::Allowed;
use super::{Limits, fpm_within, gcd};
use crate::error::{Error, Result};
use crate::model::Model;

/// Maximum number of sums that are tried, over all sizes of blocks.
const MOST_SUMS: u128 = 1 << 28;

/// Shares of `n` units; each within its limits and a multiple of its own block. Optimal if no time function
/// decreases. O(64 d B^2) for d sizes of blocks, the largest of B times their common divisor.
///
/// # Errors
/// Blocks that cannot add up to `n`; too many sums.
pub(super) fn mixed(models: &[Model], n: u64, allowed: &[Allowed]) -> Result<Vec<u64>> {
    let mut steps: Vec<u64> = allowed.iter().map(|a| a.step).collect();
    steps.sort_unstable_by(|a, b| b.cmp(a));
    steps.dedup();
    let unit = steps.iter().fold(0, |g, &s| gcd(g, s));
    let needed = n - allowed.iter().map(|a| a.least).sum::<u64>();
    if !needed.is_multiple_of(unit) {
        return Err(unreachable(n, &steps));
    }
    let coins: Vec<u64> = steps.iter().map(|s| s / unit).collect();
    // Blocks of each size beyond the least shares that are done within a time.
    let counts = |seconds: f64| -> Vec<u64> {
        let done = floors(models, allowed, seconds);
        let blocks = |step: u64| {
            let mine = allowed.iter().zip(&done).filter(|(a, _)| a.step == step);
            mine.map(|(a, &x)| (x - a.least) / step).sum()
        };
        steps.iter().map(|&s| blocks(s)).collect()
    };
    let change = |seconds: f64| change(&coins, &counts(seconds), needed / unit);
    let mut high = longest(models, allowed).max(f64::MIN_POSITIVE);
    // Rounding in the last bits must not make the upper end too small.
    let mut found = change(high)?;
    for _ in 0..8 {
        if found.is_none() {
            high *= 1.0 + 1e-12;
            found = change(high)?;
        }
    }
    let Some(mut best) = found else { return Err(unreachable(n, &steps)) };
    let (mut low, _) = bracket(models, n, allowed);
    // By then at most n units are done: perhaps exactly n.
    if let Some(counts) = change(low)? {
        (high, best) = (low, counts);
    }
    while low < high {
        let middle = f64::from_bits(low.to_bits() + (high.to_bits() - low.to_bits()) / 2);
        if middle <= low || middle >= high {
            break;
        }
        match change(middle)? {
            Some(counts) => (high, best) = (middle, counts),
            None => low = middle,
        }
    }
    let mut shares = vec![0; models.len()];
    for (&step, blocks) in steps.iter().zip(best) {
        let members: Vec<usize> = (0..models.len()).filter(|&i| allowed[i].step == step).collect();
        let own: Vec<Model> = members.iter().map(|&i| models[i].clone()).collect();
        let limit = |a: &Allowed| Limits { least: a.least, most: Some(a.most), multiple_of: step };
        let limits: Vec<Limits> = members.iter().map(|&i| limit(&allowed[i])).collect();
        let units = members.iter().map(|&i| allowed[i].least).sum::<u64>() + blocks * step;
        for (&i, share) in members.iter().zip(fpm_within(&own, units, &limits)?) {
            shares[i] = share;
        }
    }
    Ok(shares)
}

/// Numbers of coins, at most `counts` of each, that add up to `sum`, if there are any. `coins` descend and
/// have no common divisor.
fn change(coins: &[u64], counts: &[u64], sum: u64) -> Result<Option<Vec<u64>>> {
    let (mut base, mut left) = (Vec::with_capacity(coins.len()), sum);
    for (&coin, &count) in coins.iter().zip(counts) {
        let used = count.min(left / coin);
        base.push(used);
        left -= used * coin;
    }
    if left == 0 {
        return Ok(Some(base));
    }
    let largest = u128::from(coins[0]);
    let room: u128 = coins.iter().zip(counts).map(|(&c, &k)| u128::from(c) * u128::from(k)).sum();
    if room < u128::from(sum) {
        return Ok(None);
    }
    // Deviations from `base`, in coins and in value.
    let most = 2 * largest + 2;
    let spread = (largest + 1) * largest;
    let below = spread.min(u128::from(sum - left)) as i128;
    let above = (spread + u128::from(left)).min(room - u128::from(sum - left)) as i128;
    let width = (below + above + 1) as u128;
    if width * (coins.len() as u128 + 1) > MOST_SUMS {
        return Err(Error::infeasible(
            format!("blocks of up to {largest} times their common divisor are too many sums to try"),
            "choose multiples with a larger common divisor, or the same for all",
        ));
    }
    let (width, zero) = (width as usize, below as usize);
    let mut reached = vec![vec![false; width]];
    reached[0][zero] = true;
    let ends: Vec<(usize, usize)> = base
        .iter()
        .zip(counts)
        .map(|(&used, &count)| {
            let near = |x: u64| u128::from(x).min(most) as usize;
            (near(used), near(count - used))
        })
        .collect();
    for (&coin, &(fewer, more)) in coins.iter().zip(&ends) {
        let next = within_reach(&reached[reached.len() - 1], coin as usize, fewer, more);
        reached.push(next);
    }
    let mut at = zero + left as usize;
    if at >= width || !reached[coins.len()][at] {
        return Ok(None);
    }
    let mut used = base;
    for i in (0..coins.len()).rev() {
        let (coin, (fewer, more)) = (coins[i] as i128, ends[i]);
        let before = |by: i128| {
            let place = at as i128 - by * coin;
            (0..width as i128).contains(&place) && reached[i][place as usize]
        };
        let mut deviations = (0..=(fewer.max(more)) as i128).flat_map(|d| [d, -d]);
        let by = deviations
            .find(|&d| d <= more as i128 && -d <= fewer as i128 && before(d))
            .expect("the sum was reached from one of these");
        used[i] = (used[i] as i128 + by) as u64;
        at = (at as i128 - by * coin) as usize;
    }
    Ok(Some(used))
}

/// The sums from which the given ones are left by -`fewer` to `more` coins: a window over each residue.
fn within_reach(sums: &[bool], coin: usize, fewer: usize, more: usize) -> Vec<bool> {
    let mut out = vec![false; sums.len()];
    for residue in 0..coin.min(sums.len()) {
        let at = |i: usize| residue + i * coin;
        let places = (sums.len() - residue).div_ceil(coin);
        // `inside` counts the sums between i - more and i + fewer.
        let mut inside = (0..places.min(fewer)).filter(|&i| sums[at(i)]).count();
        for i in 0..places {
            if i + fewer < places && sums[at(i + fewer)] {
                inside += 1;
            }
            if i > more && sums[at(i - more - 1)] {
                inside -= 1;
            }
            out[at(i)] = inside > 0;
        }
    }
    out
}

fn unreachable(n: u64, steps: &[u64]) -> Error {
    let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
    Error::infeasible(
        format!("no multiples of {} within the limits add up to {n} units", steps.join(" and ")),
        "divide another number of units, or choose smaller blocks",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;
    use proptest::prelude::*;

    /// 15, 27 and 6 units of 48 are done by 2.994 s: the first processor's next block of 3 takes 3 s, up
    /// to 24.
    #[test]
    fn all_units_may_be_done_at_the_lower_end() {
        let points = [(1.0, 2.0), (16.0, 3.0), (24.0, 3.0)].map(|(x, t)| Point::new(x, t));
        let models = [
            Model::piecewise("a", points.to_vec(), None).unwrap(),
            Model::constant("b", 28.0 / 3.0).unwrap(),
            Model::constant("c", 7.0 / 3.0).unwrap(),
        ];
        let limits = [3, 3, 1].map(|multiple_of| Limits { multiple_of, ..Limits::default() });
        assert_eq!(fpm_within(&models, 48, &limits).unwrap(), [15, 27, 6]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// Against all numbers of coins.
        #[test]
        fn change_is_found_where_there_is_some(
            raw in prop::collection::btree_map(1u64..12, 0u64..9, 1..5),
            sum in 0u64..150,
        ) {
            let divisor = raw.keys().fold(0, |g, &c| gcd(g, c));
            let coins: Vec<u64> = raw.keys().rev().map(|c| c / divisor).collect();
            let counts: Vec<u64> = raw.values().rev().copied().collect();
            let mut sums = std::collections::BTreeSet::from([0]);
            for (&coin, &count) in coins.iter().zip(&counts) {
                sums = sums.iter().flat_map(|s| (0..=count).map(move |k| s + k * coin)).collect();
            }
            match change(&coins, &counts, sum).unwrap() {
                Some(used) => {
                    prop_assert_eq!(used.iter().zip(&coins).map(|(k, c)| k * c).sum::<u64>(), sum);
                    prop_assert!(used.iter().zip(&counts).all(|(k, most)| k <= most), "{used:?}");
                }
                None => prop_assert!(!sums.contains(&sum)),
            }
        }
    }
}
