//! Shares with the smallest longest time for arbitrary time functions. The optimal loads may be uneven.
//!
//! Source: the problem is HPOPTA's (Lastovetsky and Reddy, IEEE Transactions on Parallel and Distributed
//! Systems, 2018); the method here is a binary search over the measured times with subset sums on bitsets.

use super::limits::{Allowed, resolve};
use super::{Limits, fpm_within, ideal_seconds, makespan};
use crate::error::{Error, Result};
use crate::model::Model;

/// Maximum number of table entries (two bytes each).
const LARGEST_TABLE: u128 = 1 << 28;

/// Maximum number of blocks of units for which every size is tried.
const MOST_SUMS: u64 = 4096;

/// The shares that minimise the longest time and add up to `n`, where every share is 0 or a measured size of
/// its processor. Among several optima, those with the fewest processors are returned.
///
/// Time functions are arbitrary: they may fall, jump and rise again. Only points whose size is a whole number
/// are used. O(p m n / 64 log(p m)) time for m points each, and O(p n) memory; sizes are counted in units of
/// their greatest common divisor.
///
/// # Errors
/// No combination of sizes adds up to `n` (exit code 1); the message states the largest smaller sum.
///
/// # Example
/// ```
/// use apportion_plan::{model::{Model, Point}, plan::shares::exact};
/// // Size 6 happens to be slow: two unequal shares end sooner than the even ones.
/// let points = vec![Point::new(4.0, 4.0), Point::new(6.0, 60.0), Point::new(8.0, 8.0)];
/// let model = Model::piecewise("p", points, None)?;
/// assert_eq!(exact(&[model.clone(), model], 12)?, [8, 4]);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
pub fn exact(models: &[Model], n: u64) -> Result<Vec<u64>> {
    exact_within(models, n, &[])
}

/// [`exact`] with limits: a share is a measured size within them, or 0 if the minimum share is 0.
///
/// # Errors
/// As [`exact`], and those of the limits.
pub fn exact_within(models: &[Model], n: u64, limits: &[Limits]) -> Result<Vec<u64>> {
    solve(&measured_sizes(models, n, limits)?, n, "measured sizes")
}

/// Minimises the longest time over **all** integer shares within the limits, by each model's own
/// interpolation without monotone repair.
///
/// Up to 4096 blocks of units every sum is tried: O(p n^2 / 64 log(p n)), and those with the fewest
/// processors are returned. Above, ranges of sizes are added, whose number does not depend on `n`.
///
/// # Errors
/// As [`exact_within`]; time functions that rise and fall too often; granularities that differ, where time
/// falls and more than 4096 blocks are divided.
pub fn exact_interpolated(models: &[Model], n: u64, limits: &[Limits]) -> Result<Vec<u64>> {
    let allowed = resolve(models, n, limits)?;
    let unit = allowed.iter().fold(n, |g, a| gcd(g, a.step)).max(1);
    if n / unit > MOST_SUMS {
        let falls = models.iter().any(|m| m.falls(n as f64).is_some());
        if falls && allowed.iter().any(|a| a.step != allowed[0].step) {
            return Err(too_fine(n, MOST_SUMS * unit));
        }
        return least_time_or_fpm(models, n, &allowed, limits);
    }
    let choices: Vec<Choices> = models
        .iter()
        .zip(&allowed)
        .map(|(model, a)| {
            let sizes = (a.least.max(a.step)..=a.most).step_by(a.step as usize);
            Choices { options: sizes.map(|x| (x, model.seconds(x as f64))).collect(), may_rest: a.least == 0 }
        })
        .collect();
    solve(&choices, n, "limits")
}

/// The possible shares of one processor.
pub(super) struct Choices {
    /// Sizes > 0 with their times.
    pub(crate) options: Vec<(u64, f64)>,
    /// True if its share may be 0.
    pub(crate) may_rest: bool,
}

/// The whole measured sizes within the limits.
fn measured_sizes(models: &[Model], n: u64, limits: &[Limits]) -> Result<Vec<Choices>> {
    let allowed = resolve(models, n, limits)?;
    Ok(models
        .iter()
        .zip(&allowed)
        .map(|(model, a)| Choices {
            options: model
                .points()
                .iter()
                .map(|p| (p.size, p.seconds))
                .filter(|&(x, _)| x.fract() == 0.0 && x >= 1.0)
                .map(|(x, t)| (x as u64, t))
                .filter(|(x, _)| (a.least..=a.most).contains(x) && x.is_multiple_of(a.step))
                .collect(),
            may_rest: a.least == 0,
        })
        .collect())
}

/// `what` names the possible shares in errors.
fn solve(choices: &[Choices], n: u64, what: &str) -> Result<Vec<u64>> {
    let unit = choices.iter().flat_map(|c| &c.options).fold(n, |g, o| gcd(g, o.0)).max(1);
    if (u128::from(n / unit) + 1) * (choices.len() as u128 + 1) > LARGEST_TABLE
        || choices.len() >= usize::from(u16::MAX)
    {
        let most = LARGEST_TABLE / (choices.len() as u128 + 1) * u128::from(unit);
        return Err(too_fine(n, u64::try_from(most).unwrap_or(u64::MAX)));
    }
    let n_blocks = (n / unit) as usize;
    let options: Vec<Vec<(usize, f64)>> =
        choices.iter().map(|c| c.options.iter().map(|&(x, t)| ((x / unit) as usize, t)).collect()).collect();
    let within = |seconds: f64| -> Vec<Sizes> {
        options
            .iter()
            .zip(choices)
            .map(|(o, c)| {
                let sizes = o.iter().filter(|o| o.1 <= seconds).map(|o| o.0).collect();
                Sizes { sizes, may_rest: c.may_rest }
            })
            .collect()
    };
    let feasible = |seconds: f64| reaches(&within(seconds), n_blocks);
    let mut times: Vec<f64> = options.iter().flatten().map(|o| o.1).chain([0.0]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let longest = times[times.len() - 1];
    if !feasible(longest) {
        return Err(unreachable_sum(&within(longest), n, unit, what));
    }
    let best = times[times.partition_point(|&t| !feasible(t))];
    Ok(fewest(&within(best), n_blocks).into_iter().map(|x| x as u64 * unit).collect())
}

/// The sizes of one processor that finish in time.
struct Sizes {
    sizes: Vec<usize>,
    may_rest: bool,
}

impl Sizes {
    fn largest(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
}

/// Whether one size of each processor (or none) can add up to n.
fn reaches(processors: &[Sizes], n: usize) -> bool {
    let mut rest: u128 = processors.iter().map(|s| s.largest() as u128).sum();
    if rest < n as u128 {
        return false;
    }
    let mut sums = Bits::zero(n);
    for sizes in processors {
        rest -= sizes.largest() as u128;
        // The remaining sizes could not compensate for smaller sums.
        let lowest = (n as u128).saturating_sub(rest) as usize;
        sums = sums.plus_one_of(sizes, lowest);
    }
    sums.contains(n)
}

/// A set of sums 0..=n, one bit each.
struct Bits {
    bytes: Vec<u8>,
    /// No sum is larger.
    highest: usize,
}

impl Bits {
    /// The set {0} within 0..=n.
    fn zero(n: usize) -> Self {
        let mut bytes = vec![0; n / 8 + 1];
        bytes[0] = 1;
        Self { bytes, highest: 0 }
    }

    fn contains(&self, sum: usize) -> bool {
        self.bytes.get(sum / 8).is_some_and(|b| b >> (sum % 8) & 1 == 1)
    }

    /// Every sum plus every size (or 0): those from `lowest` on are complete, lower ones may be missing.
    fn plus_one_of(&self, sizes: &Sizes, lowest: usize) -> Self {
        let room = self.bytes.len();
        let used = (self.highest / 8 + 2).min(room);
        // Shifted by 0..8 bits once, so that any shift is an offset in bytes.
        let shifted: Vec<Vec<u8>> = (0..8)
            .map(|bit| {
                let mut carry = 0_u8;
                self.bytes[..used]
                    .iter()
                    .map(|&b| {
                        let out = (b << bit) | carry;
                        carry = if bit == 0 { 0 } else { b >> (8 - bit) };
                        out
                    })
                    .collect()
            })
            .collect();
        let mut bytes = if sizes.may_rest { self.bytes.clone() } else { vec![0; room] };
        for &size in &sizes.sizes {
            let (offset, bit) = (size / 8, size % 8);
            let (from, to) = (offset.max(lowest / 8), room.min(offset + used));
            if from < to {
                let source = &shifted[bit][from - offset..to - offset];
                bytes[from..to].iter_mut().zip(source).for_each(|(d, s)| *d |= s);
            }
        }
        Self { bytes, highest: (self.highest + sizes.largest()).min(room * 8) }
    }
}

/// Sizes that add up to n with the fewest working processors. The caller has checked that such sizes exist.
fn fewest(processors: &[Sizes], n: usize) -> Vec<usize> {
    const NEVER: u16 = u16::MAX;
    let mut rows = vec![vec![NEVER; n + 1]];
    rows[0][0] = 0;
    for p in processors {
        let before = &rows[rows.len() - 1];
        let one_more: Vec<u16> = before.iter().map(|c| c.saturating_add(1)).collect();
        let mut row = if p.may_rest { before.clone() } else { vec![NEVER; n + 1] };
        for &size in p.sizes.iter().filter(|&&x| x <= n) {
            row[size..].iter_mut().zip(&one_more).for_each(|(d, s)| *d = (*d).min(*s));
        }
        rows.push(row);
    }
    let mut shares = vec![0; processors.len()];
    let mut sum = n;
    for (i, p) in processors.iter().enumerate().rev() {
        let (count, before) = (rows[i + 1][sum], &rows[i]);
        if p.may_rest && before[sum] == count {
            continue;
        }
        let fits = |x: &usize| *x <= sum && before[sum - *x] == count - 1;
        shares[i] = p.sizes.iter().copied().find(fits).expect("the row was made from one of these sizes");
        sum -= shares[i];
    }
    shares
}

pub(in crate::plan) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn too_fine(n: u64, most: u64) -> Error {
    Error::infeasible(
        format!("`method = exact`: {n} units are too many to try every sum, at most {most} here"),
        "use `method = fpm`, or multiples of a larger common block",
    )
}

/// The error for a sum that cannot be reached, with the next smaller sum that can.
fn unreachable_sum(processors: &[Sizes], n: u64, unit: u64, what: &str) -> Error {
    let blocks = (n / unit) as usize;
    let sums = processors.iter().fold(Bits::zero(blocks), |sums, sizes| sums.plus_one_of(sizes, 0));
    let below = (0..blocks).rev().find(|&s| sums.contains(s));
    let near = below.map_or("or to any smaller number".into(), |s| {
        format!("the largest smaller sum is {}", s as u64 * unit)
    });
    Error::infeasible(
        format!("no {what} add up to {n} units, {near}"),
        "allow sizes between the measured ones with `any_size`, widen `min`, `max` or `multiple_of`, or \
         divide another number of units",
    )
}

/// Maximum number of pairs of ranges that are added for one time.
const MOST_PAIRS: usize = 4_000_000;

/// Ranges of numbers of steps, ascending and apart.
type Ranges = Vec<(u64, u64)>;

/// The smallest longest time over all whole shares, for any time functions, by sums of ranges of sizes. Time as a
/// function of size only rises or only falls between two turns, so the sizes that a processor does within T are a
/// few ranges, and so are the sums of several processors' sizes. Their number depends on the turns, not on the
/// number of units.
///
/// Shares of `n` units within `allowed`, all with the same step, which divides `n`; optimal for any time
/// functions. O(100 p pairs of ranges).
///
/// # Errors
/// Too many separate ranges; those of [`fpm_within`].
pub(super) fn least_time_by_ranges(
    models: &[Model],
    n: u64,
    allowed: &[Allowed],
    fpm: Vec<u64>,
) -> Result<Vec<u64>> {
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
        .map(|(m, a)| m.ranges_within(seconds, a.least / step, a.most / step, step))
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
        sums.push(sum(&sums[sums.len() - 1], mine, least, wanted)?);
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
fn sum(a: &Ranges, b: &Ranges, least: u64, most: u64) -> Result<Ranges> {
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

/// Shares by [`least_time_by_ranges`] if time falls somewhere, otherwise `fpm`'s own, which are then optimal.
///
/// # Errors
/// As [`least_time_by_ranges`].
fn least_time_or_fpm(models: &[Model], n: u64, allowed: &[Allowed], limits: &[Limits]) -> Result<Vec<u64>> {
    let fpm = fpm_within(models, n, limits)?;
    let falls = models.iter().any(|m| m.falls(n as f64).is_some());
    if falls { least_time_by_ranges(models, n, allowed, fpm) } else { Ok(fpm) }
}

#[cfg(test)]
mod tests {
    use super::super::compositions;
    use super::*;
    use crate::model::Point;
    use proptest::prelude::*;

    fn model(text: &str) -> Model {
        let points = text
            .split_whitespace()
            .map(|p| p.split_once(':').unwrap())
            .map(|(x, t)| Point::new(x.parse().unwrap(), t.parse().unwrap()))
            .collect();
        Model::piecewise("p", points, None).unwrap()
    }

    #[test]
    fn the_published_example() {
        let models = [
            "8:1 3:2 12:2 9:3 15:3 10:4 14:5 1:6 16:10 13:11 4:12 2:13 7:13 5:14 6:14 11:20",
            "8:1 9:3 5:4 6:4 4:6 3:7 7:8 2:10 1:12 11:13 12:13 13:16 10:16 16:17 14:18 15:20",
            "1:1 7:1 3:4 4:4 2:7 5:8 6:9 9:13 8:14 10:14 12:15 15:16 13:18 14:18 16:19 11:19",
            "6:2 2:3 5:3 3:4 4:4 1:6 7:7 8:9 9:13 11:13 10:14 15:15 12:16 14:17 13:19 16:20",
        ]
        .map(model);
        let shares = exact(&models, 16).unwrap();
        assert_eq!(shares, [8, 8, 0, 0]);
        assert_eq!(makespan(&models, &shares), 1.0);
        assert_eq!(makespan(&models, &[4, 4, 4, 4]), 12.0);
        assert_eq!(exact(&models, 0).unwrap(), [0, 0, 0, 0]);
    }

    #[test]
    fn a_sum_that_no_sizes_make_is_said_with_the_next_below() {
        let models = [model("4:1 10:2"), model("4:1")];
        let error = exact(&models, 9).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("largest smaller sum is 8"), "{error}");
        assert_eq!(exact(&models, 14).unwrap(), [10, 4]);
        let must = Limits { least: 1, ..Limits::default() };
        assert!(exact_within(&models, 4, &[must, must]).is_err(), "both have to work");
        assert_eq!(exact_within(&models, 8, &[must, must]).unwrap(), [4, 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn agrees_with_trying_everything(
            raw in prop::collection::vec(prop::collection::btree_map(1u32..20, 1u32..12, 1..10), 1..5),
            n in 0u64..30,
            scale in 1u64..4,
        ) {
            let models: Vec<Model> = raw
                .iter()
                .map(|points| {
                    let scaled = points.iter().map(|(&x, &t)| Point::new(f64::from(x) * scale as f64, f64::from(t)));
                    Model::piecewise("p", scaled.collect(), None).unwrap()
                })
                .collect();
            let times = |shares: &[u64]| -> Option<(u32, usize)> {
                let mut longest = 0;
                for (share, points) in shares.iter().zip(&raw) {
                    if *share > 0 {
                        longest = longest.max(*points.get(&u32::try_from(*share).unwrap())?);
                    }
                }
                Some((longest, shares.iter().filter(|&&x| x > 0).count()))
            };
            let best = compositions(n, raw.len()).iter().filter_map(|c| times(c)).min();
            match (exact(&models, n * scale), best) {
                (Ok(shares), Some(best)) => {
                    prop_assert_eq!(shares.iter().sum::<u64>(), n * scale);
                    let unscaled: Vec<u64> = shares.iter().map(|x| x / scale).collect();
                    prop_assert_eq!(times(&unscaled), Some(best));
                }
                (Err(error), None) => prop_assert_eq!(error.exit_code(), 1),
                (ours, theirs) => prop_assert!(false, "{ours:?} against {theirs:?}"),
            }
        }

        #[test]
        fn every_size_between_the_points(
            raw in prop::collection::vec(prop::collection::btree_map(1u32..20, 1u32..12, 1..5), 1..4),
            n in 0u64..16,
        ) {
            let models: Vec<Model> = raw
                .iter()
                .map(|points| points.iter().map(|(&x, &t)| Point::new(f64::from(x), f64::from(t))).collect())
                .map(|points| Model::piecewise("p", points, None).unwrap())
                .collect();
            let shares = exact_interpolated(&models, n, &[]).unwrap();
            let best = compositions(n, models.len()).iter().map(|c| makespan(&models, c)).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(makespan(&models, &shares), best);
        }
    }
}
