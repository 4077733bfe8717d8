//! Shares that are safe over the whole width of the speed bands.
//!
//! Source: the bands are those of Lastovetsky and Reddy 2007, section 2 (fluctuating workload); the criteria
//! are the smallest worst case, and the regret of Kouvelis and Yu, "Robust Discrete Optimization", 1997.

use super::{Limits, fpm_within, makespan};
use crate::error::Result;
use crate::model::Model;
use serde::Serialize;

/// Shares with the smallest worst case, and the cost of this safety.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RobustShares {
    /// Units of each processor.
    #[serde(skip)]
    pub shares: Vec<u64>,
    /// The longest time if every processor is as slow as its band allows: never exceeded inside the bands.
    pub worst_seconds: f64,
    /// The longest time at the mean times.
    pub expected_seconds: f64,
    /// The longest time of the shares that are best at the mean times ([`fpm_within`]): at the mean times …
    pub plain_expected_seconds: f64,
    /// … and in the worst case.
    pub plain_worst_seconds: f64,
}

/// The shares that minimise the longest time over all times inside the bands. O(p log n log points).
///
/// Processors fluctuate independently inside their bands, so the worst case of max t_i(x_i) is max
/// high_i(x_i): the problem is to divide by the slow edges ([`Model::slowest`]). Guarantee: for any times
/// inside the bands, these shares finish by `worst_seconds`, and no integer shares have a smaller bound (if
/// time never decreases along the slow edges). Between points the edges are interpolated like the model
/// itself.
///
/// # Errors
/// As [`fpm_within`].
pub fn robust(models: &[Model], n: u64, limits: &[Limits]) -> Result<RobustShares> {
    let slowest: Vec<Model> = models.iter().map(Model::slowest).collect();
    let shares = fpm_within(&slowest, n, limits)?;
    let plain = fpm_within(models, n, limits)?;
    Ok(RobustShares {
        worst_seconds: makespan(&slowest, &shares),
        expected_seconds: makespan(models, &shares),
        plain_expected_seconds: makespan(models, &plain),
        plain_worst_seconds: makespan(&slowest, &plain),
        shares,
    })
}

/// The regret of `shares`: the largest ratio of their time to that of the best shares, over the p scenarios
/// in which one working processor is at its slow edge and all others at their fast edges. 1.0 means that no
/// other shares are ever better. O(p^2 log n log points).
///
/// If the slow edge is a multiple of the fast one, this is the largest ratio over the whole box of times: a
/// slower last processor only increases the ratio, and faster others only improve the best shares.
///
/// # Errors
/// As [`fpm_within`].
pub fn regret(models: &[Model], shares: &[u64], limits: &[Limits]) -> Result<f64> {
    let n = shares.iter().sum();
    let mut scenario: Vec<Model> = models.iter().map(Model::fastest).collect();
    let mut worst = 1.0_f64;
    for (i, model) in models.iter().enumerate().filter(|(i, _)| shares[*i] > 0) {
        let fast = std::mem::replace(&mut scenario[i], model.slowest());
        let best = makespan(&scenario, &fpm_within(&scenario, n, limits)?);
        worst = worst.max(makespan(&scenario, shares) / best);
        scenario[i] = fast;
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::super::compositions;
    use super::*;
    use crate::model::Point;
    use proptest::prelude::*;

    fn banded(seconds: f64, low: f64, high: f64) -> Model {
        Model::piecewise("p", vec![Point::new(1.0, seconds).with_band(low, high)], None).unwrap()
    }

    #[test]
    fn an_unsteady_processor_gets_less() {
        // Equally fast on average, but the second may take three times as long.
        let models = [banded(1.0, 1.0, 1.0), banded(1.0, 0.5, 3.0)];
        let safe = robust(&models, 80, &[]).unwrap();
        assert_eq!(safe.shares, [60, 20]);
        assert_eq!((safe.worst_seconds, safe.expected_seconds), (60.0, 60.0));
        assert_eq!((safe.plain_worst_seconds, safe.plain_expected_seconds), (120.0, 40.0));
        // Second at 0.5 s: 27 and 53 units would end at 27 s.
        assert_eq!(regret(&models, &safe.shares, &[]).unwrap(), 60.0 / 27.0);
        assert_eq!(regret(&[banded(1.0, 1.0, 1.0)], &[80], &[]).unwrap(), 1.0);
    }

    proptest! {
        #[test]
        fn no_shares_promise_less_and_no_times_break_the_promise(
            raw in prop::collection::vec((0.1f64..1.0, 1.0f64..3.0, 1.0f64..3.0, 0.0f64..1.0), 1..4),
            n in 1u64..16,
        ) {
            let models: Vec<Model> = raw.iter().map(|&(t, down, up, _)| banded(t, t / down, t * up)).collect();
            let actual: Vec<Model> = raw
                .iter()
                .map(|&(t, down, up, at)| Model::constant("p", 1.0 / (t / down + at * (t * up - t / down))).unwrap())
                .collect();
            let slowest: Vec<Model> = models.iter().map(Model::slowest).collect();
            let safe = robust(&models, n, &[]).unwrap();
            prop_assert!(makespan(&actual, &safe.shares) <= safe.worst_seconds * (1.0 + 1e-9));
            let all = compositions(n, models.len());
            let least = all.iter().map(|c| makespan(&slowest, c)).fold(f64::INFINITY, f64::min);
            prop_assert!(safe.worst_seconds <= least * (1.0 + 1e-9));
            // The regret over the box, sampled.
            let best = all.iter().map(|c| makespan(&actual, c)).fold(f64::INFINITY, f64::min);
            let bound = regret(&models, &safe.shares, &[]).unwrap();
            prop_assert!(makespan(&actual, &safe.shares) / best <= bound * (1.0 + 1e-9));
        }
    }
}
