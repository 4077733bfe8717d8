//! Shares from speed functions (functional performance models), so that all processors finish at the same
//! time.
//!
//! Source: Lastovetsky and Reddy 2007, section 3, Algorithms 1, 1.1 and 1.2. Their line through the origin of
//! the (size, speed) plane with slope 1/T meets each speed function at the size that takes T; here T itself
//! is searched, which adds hard caps at no cost.

use super::limits::{Allowed, resolve};
use super::proportional::Seconds;
use super::{Limits, multiples};
use crate::error::{Error, Result};
use crate::model::Model;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The shares that minimise the longest time and add up to `n`. O(p log n log points).
///
/// No share exceeds its model's `max_size`. The result is optimal over all integer shares if no time function
/// decreases, that is, if every line through the origin meets the speed function once.
///
/// # Errors
/// No models (exit code 2), or caps that together hold fewer than `n` units (exit code 1).
///
/// # Example
/// ```
/// use apportion_plan::{model::Model, plan::shares::fpm};
/// let fast = Model::constant("fast", 9.0)?;
/// let slow = Model::constant("slow", 1.0)?;
/// assert_eq!(fpm(&[fast, slow], 1000)?, [900, 100]);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
pub fn fpm(models: &[Model], n: u64) -> Result<Vec<u64>> {
    fpm_within(models, n, &[])
}

/// [`fpm`] with limits on each share; an empty slice means no limits. Optimal over all shares within the
/// limits.
///
/// If granularities differ between processors, the problem is one of change-making. Its cost then grows with
/// the square of the largest granularity, over the common divisor of all.
///
/// # Errors
/// As [`fpm`]; limits that contradict each other, or a common granularity that does not divide `n`. The
/// message states the difference.
pub fn fpm_within(models: &[Model], n: u64, limits: &[Limits]) -> Result<Vec<u64>> {
    let allowed = resolve(models, n, limits)?;
    let step = allowed[0].step;
    if allowed.iter().any(|a| a.step != step) {
        return multiples::mixed(models, n, &allowed);
    }
    if !n.is_multiple_of(step) {
        return Err(Error::infeasible(
            format!("{n} units are no multiple of the block of {step}: {} are left over", n % step),
            format!(
                "divide {} or {} units, or choose a block that divides {n}",
                n - n % step,
                n - n % step + step
            ),
        ));
    }
    let (below, above) = bracket(models, n, &allowed);
    let mut shares = floors(models, &allowed, below);
    fill(&mut shares, &floors(models, &allowed, above), step, n);
    let mut left = n - shares.iter().sum::<u64>();
    let next = |i: usize, share: u64| {
        (share < allowed[i].most).then(|| Reverse((Seconds(models[i].seconds((share + step) as f64)), i)))
    };
    let mut heap: BinaryHeap<_> = (0..models.len()).filter_map(|i| next(i, shares[i])).collect();
    while left > 0 {
        let Some(Reverse((_, i))) = heap.pop() else {
            unreachable!("the largest shares were checked to hold all units");
        };
        shares[i] += step;
        left -= step;
        heap.extend(next(i, shares[i]));
    }
    Ok(shares)
}

/// Hands out what is left of `n` units up to `most`, in proportion to the room below `most`, and leaves fewer
/// blocks than there are processors. Where time does not grow with size, many units end at one and the same
/// time, and it does not matter who takes them.
pub(super) fn fill(shares: &mut [u64], most: &[u64], step: u64, n: u64) {
    let left = u128::from((n - shares.iter().sum::<u64>()) / step);
    let rooms: Vec<u128> =
        shares.iter().zip(most).map(|(x, most)| u128::from(most.saturating_sub(*x) / step)).collect();
    let room = rooms.iter().sum::<u128>();
    if left <= shares.len() as u128 || room == 0 {
        return;
    }
    for (share, mine) in shares.iter_mut().zip(rooms) {
        *share += (mine.min(left * mine / room.max(left)) as u64) * step;
    }
}

/// The time at which all processors would finish together if units were divisible: a lower bound for all
/// shares, also where time falls with size.
///
/// # Errors
/// As [`fpm`].
pub fn ideal_seconds(models: &[Model], n: u64) -> Result<f64> {
    shortest(models, n, Model::largest_within)
}

/// The time at which all would finish together if units were divisible and no processor had a cap: what
/// imbalance is relative to.
///
/// # Errors
/// As [`fpm`] without caps.
pub(crate) fn balanced_seconds(models: &[Model], n: u64) -> Result<f64> {
    if models.iter().all(|model| model.max_size().is_none()) {
        return ideal_seconds(models, n);
    }
    ideal_seconds(&models.iter().map(Model::without_cap).collect::<Vec<_>>(), n)
}

/// The time at which all would finish together if each did only sizes up to which time stays below it.
///
/// # Errors
/// As [`fpm`].
pub(super) fn together_seconds(models: &[Model], n: u64) -> Result<f64> {
    shortest(models, n, Model::units_within)
}

/// The time by which `n` divisible units are done, where a model does `units(model, time, limit)`.
fn shortest(models: &[Model], n: u64, units_of: impl Fn(&Model, f64, f64) -> f64) -> Result<f64> {
    let allowed = resolve(models, n, &[])?;
    let (_, above) = bracket(models, n, &allowed);
    let (mut low, mut high) = (0.0, above);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        let units: f64 = models.iter().map(|m| units_of(m, middle, n as f64)).sum();
        if units >= n as f64 {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Whole blocks that fit into `seconds` on each processor, in units; at least its minimum share.
pub(super) fn floors(models: &[Model], allowed: &[Allowed], seconds: f64) -> Vec<u64> {
    models.iter().zip(allowed).map(|(m, a)| floor(m, a, seconds)).collect()
}

fn floor(model: &Model, allowed: &Allowed, seconds: f64) -> u64 {
    let units = model.units_within(seconds, allowed.most as f64) as u64;
    (units - units % allowed.step).clamp(allowed.least, allowed.most)
}

/// The longest time of any share within the limits.
pub(super) fn longest(models: &[Model], allowed: &[Allowed]) -> f64 {
    models.iter().zip(allowed).map(|(m, a)| m.longest(a.most as f64)).fold(0.0, f64::max)
}

/// Two times: by the first at most n whole units are done, by the second at least n. They are at most p
/// blocks apart, or as close as doubles allow.
pub(super) fn bracket(models: &[Model], n: u64, allowed: &[Allowed]) -> (f64, f64) {
    let count = |seconds: f64| {
        models.iter().zip(allowed).map(|(m, a)| u128::from(floor(m, a, seconds))).sum::<u128>()
    };
    let (mut low, mut high) = (0.0, longest(models, allowed));
    let enough = allowed.iter().map(|a| u128::from(a.step)).sum::<u128>();
    // Rounding in the last bits must not make the upper end too small.
    let mut more = 1e-12;
    while count(high) < u128::from(n) && high < f64::MAX {
        high = (high * (1.0 + more)).min(f64::MAX);
        more *= 2.0;
    }
    let (mut at_low, mut at_high) = (0, count(high));
    while at_high - at_low > enough {
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
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::super::{compositions, makespan, shortest_makespan};
    use super::*;
    use crate::model::Point;
    use proptest::prelude::*;

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
            shortest_makespan(&[paging, steady], 100)
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

    #[test]
    fn limits_bind_and_say_what_is_missing() {
        let models = [9.0, 1.0].map(|s| Model::constant("p", s).unwrap());
        let none = Limits::default();
        let at_most = |most| Limits { most: Some(most), ..none };
        let at_least = |least| Limits { least, ..none };
        let blocks = |multiple_of| Limits { multiple_of, ..none };
        assert_eq!(fpm_within(&models, 100, &[at_most(70), none]).unwrap(), [70, 30]);
        assert_eq!(fpm_within(&models, 100, &[none, at_least(25)]).unwrap(), [75, 25]);
        assert_eq!(fpm_within(&models, 96, &[blocks(32), blocks(32)]).unwrap(), [96, 0]);
        // Different blocks: 96 / 9 = 10.7 s beside 4 s, where 64 and 36 would take 36 s.
        assert_eq!(fpm_within(&models, 100, &[blocks(32), none]).unwrap(), [96, 4]);
        for (limits, part) in [
            ([at_most(70), at_most(20)], "10 are missing"),
            ([at_least(70), at_least(40)], "10 more than"),
            ([blocks(32), blocks(32)], "4 are left over"),
            ([Limits { least: 5, most: Some(4), ..none }, none], "at least 5"),
        ] {
            let error = fpm_within(&models, 100, &limits).unwrap_err();
            assert_eq!(error.exit_code(), 1);
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(fpm_within(&models, 100, &[blocks(0), none]).unwrap_err().exit_code(), 2);
        assert_eq!(fpm_within(&models, 100, &[none]).unwrap_err().exit_code(), 2);
    }

    fn limits() -> impl Strategy<Value = Limits> {
        (0u64..12, prop::option::of(0u64..40), prop::sample::select(vec![1u64, 1, 2, 3])).prop_map(
            |(least, most, multiple_of)| Limits { least: least.saturating_sub(6), most, multiple_of },
        )
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
            let best = shortest_makespan(&models, n);
            match (fpm(&models, n), best.is_finite()) {
                (Ok(shares), true) => {
                    prop_assert_eq!(shares.iter().sum::<u64>(), n);
                    prop_assert!(makespan(&models, &shares) <= best * (1.0 + 1e-9));
                    prop_assert!(ideal_seconds(&models, n).unwrap() <= best * (1.0 + 1e-9));
                }
                (Err(error), false) => prop_assert_eq!(error.exit_code(), 1),
                (ours, theirs) => prop_assert!(false, "{ours:?} against {theirs:?}"),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn limits_agree_with_trying_everything(
            raw in prop::collection::vec((model(), limits()), 1..4),
            n in 0u64..30,
            common in prop::option::of(1u64..5),
        ) {
            let (models, mut limits): (Vec<Model>, Vec<Limits>) = raw.into_iter().unzip();
            if let Some(multiple_of) = common {
                limits.iter_mut().for_each(|l| l.multiple_of = multiple_of);
            }
            let keeps = |shares: &Vec<u64>| shares.iter().zip(&limits).all(|(&x, l)| {
                x >= l.least && l.most.is_none_or(|most| x <= most) && x.is_multiple_of(l.multiple_of)
            });
            let all = compositions(n, models.len());
            let best = all.iter().filter(|c| keeps(c)).map(|c| makespan(&models, c)).fold(f64::INFINITY, f64::min);
            match fpm_within(&models, n, &limits) {
                Ok(shares) => {
                    prop_assert_eq!(shares.iter().sum::<u64>(), n);
                    prop_assert!(keeps(&shares), "{shares:?}");
                    prop_assert!(makespan(&models, &shares) <= best * (1.0 + 1e-9));
                }
                Err(error) => {
                    prop_assert_eq!(error.exit_code(), 1);
                    prop_assert!(best.is_infinite(), "{error}");
                }
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
