//! Shares of least time by the cheaper method that is right: `fpm` where time rises with size, else `exact`.

use super::{Limits, exact_interpolated, fpm_within, makespan};
use crate::error::Result;
use crate::model::Model;

/// Where the time of a processor falls with size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fall {
    /// Rank of the processor.
    pub rank: usize,
    /// A larger task takes less time from this size on …
    pub from: f64,
    /// … up to this size.
    pub to: f64,
}

impl Fall {
    /// That of the first processor whose time falls somewhere below `n` units.
    pub fn first_of(models: &[Model], n: u64) -> Option<Self> {
        let fall =
            |(rank, model): (usize, &Model)| model.falls(n as f64).map(|[from, to]| Self { rank, from, to });
        models.iter().enumerate().find_map(fall)
    }
}

/// The result of [`least_time`].
#[derive(Debug, Clone, PartialEq)]
pub struct OptimalShares {
    /// Units of each processor, by rank.
    pub shares: Vec<u64>,
    /// The first processor whose time falls with size, if any.
    pub fall: Option<Fall>,
    /// True if the shares are those of [`exact_interpolated`], which finish sooner than those of
    /// [`fpm_within`].
    pub exact: bool,
    /// Why [`exact_interpolated`] cannot tell whether the shares of [`fpm_within`] are the best.
    pub unproven: Option<String>,
}

/// The shares of `n` units that minimise the longest time.
///
/// [`fpm_within`] finds them if no time function falls. Where one falls between 0 and `n` units,
/// [`exact_interpolated`] is tried too, and its shares are taken if they finish sooner.
///
/// # Errors
/// As [`fpm_within`].
///
/// # Example
/// ```
/// use apportion_plan::{model::{Model, Point}, plan::shares::least_time};
/// // 5 units happen to be slow, 6 are not.
/// let times = [(1.0, 1.0), (5.0, 9.0), (6.0, 2.0)].map(|(x, t)| Point::new(x, t));
/// let model = Model::piecewise("p", times.to_vec(), None)?;
/// let divided = least_time(&[model.clone(), model], 7, &[])?;
/// assert!(divided.exact);
/// assert_eq!(divided.fall.map(|fall| (fall.from, fall.to)), Some((5.0, 6.0)));
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
pub fn least_time(models: &[Model], n: u64, limits: &[Limits]) -> Result<OptimalShares> {
    let shares = fpm_within(models, n, limits)?;
    let fall = Fall::first_of(models, n);
    let mut divided = OptimalShares { shares, fall, exact: false, unproven: None };
    if fall.is_none() {
        return Ok(divided);
    }
    match exact_interpolated(models, n, limits) {
        Ok(shares) if makespan(models, &shares) < makespan(models, &divided.shares) * (1.0 - 1e-9) => {
            (divided.shares, divided.exact) = (shares, true);
        }
        Ok(_) => {}
        Err(why) => divided.unproven = Some(why.to_string()),
    }
    Ok(divided)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;
    use crate::plan::shares::exact::least_time_by_ranges;
    use crate::plan::shares::limits::resolve;
    use crate::plan::shares::shortest_makespan as oracle;
    use crate::plan::shares::{fpm, ideal_seconds};
    use proptest::prelude::*;

    fn model(points: &[(u32, u32)]) -> Model {
        let points = points.iter().map(|&(x, t)| Point::new(f64::from(x), f64::from(t))).collect();
        Model::piecewise("p", points, None).unwrap()
    }

    /// Flat, stepwise, falling and rising time functions: a few times, each for many sizes.
    fn any() -> impl Strategy<Value = Model> {
        prop::collection::btree_map(1u32..40, 1u32..6, 1..8)
            .prop_map(|points| model(&points.into_iter().collect::<Vec<_>>()))
    }

    /// The same, but time never falls.
    fn stepwise() -> impl Strategy<Value = Model> {
        prop::collection::btree_map(1u32..40, 0u32..3, 1..8).prop_map(|points| {
            let mut seconds = 1;
            let rising: Vec<(u32, u32)> = points
                .into_iter()
                .map(|(size, more)| {
                    seconds += more;
                    (size, seconds)
                })
                .collect();
            model(&rising)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn any_time_functions_are_divided_best(models in prop::collection::vec(any(), 1..4), n in 0u64..60) {
            let best = oracle(&models, n);
            let found = least_time(&models, n, &[]).unwrap();
            prop_assert_eq!(found.shares.iter().sum::<u64>(), n);
            prop_assert!(makespan(&models, &found.shares) <= best * (1.0 + 1e-9));
            prop_assert!(ideal_seconds(&models, n).unwrap() <= best * (1.0 + 1e-9));
            // The method for many units, on few.
            let allowed = resolve(&models, n, &[]).unwrap();
            let shares = least_time_by_ranges(&models, n, &allowed, fpm(&models, n).unwrap()).unwrap();
            prop_assert_eq!(shares.iter().sum::<u64>(), n);
            prop_assert!(makespan(&models, &shares) <= best * (1.0 + 1e-9));
        }

        #[test]
        fn flat_and_stepwise_times_are_divided_best(models in prop::collection::vec(stepwise(), 1..4), n in 0u64..60) {
            let shares = fpm(&models, n).unwrap();
            prop_assert_eq!(shares.iter().sum::<u64>(), n);
            prop_assert!(makespan(&models, &shares) <= oracle(&models, n) * (1.0 + 1e-9));
        }

        /// Scaled up by a power of two the best time scales exactly; only whole units are finer.
        #[test]
        fn huge_sizes_end_and_are_no_worse(models in prop::collection::vec(any(), 1..4), n in 1u64..60, power in 20i32..46) {
            let scale = 2f64.powi(power);
            let scaled: Vec<Model> = models
                .iter()
                .map(|m| m.points().iter().map(|p| Point::new(p.size * scale, p.seconds)).collect())
                .map(|points| Model::piecewise("p", points, None).unwrap())
                .collect();
            let units = n << power;
            let found = least_time(&scaled, units, &[]).unwrap();
            prop_assert_eq!(found.shares.iter().sum::<u64>(), units);
            prop_assert!(makespan(&scaled, &found.shares) <= oracle(&models, n) * (1.0 + 1e-9));
        }

        #[test]
        fn blocks_of_several_sizes_are_divided_best(
            raw in prop::collection::vec((stepwise(), 1u64..7), 1..4), n in 0u64..60,
        ) {
            let (models, steps): (Vec<Model>, Vec<u64>) = raw.into_iter().unzip();
            let limits: Vec<Limits> =
                steps.iter().map(|&multiple_of| Limits { multiple_of, ..Limits::default() }).collect();
            let all = crate::plan::shares::compositions(n, models.len());
            let keeps = |shares: &&Vec<u64>| shares.iter().zip(&steps).all(|(x, s)| x.is_multiple_of(*s));
            let best = all.iter().filter(keeps).map(|c| makespan(&models, c)).fold(f64::INFINITY, f64::min);
            match fpm_within(&models, n, &limits) {
                Ok(shares) => {
                    prop_assert!(keeps(&&shares) && shares.iter().sum::<u64>() == n, "{shares:?}");
                    prop_assert!(makespan(&models, &shares) <= best * (1.0 + 1e-9), "{shares:?} for {best}");
                }
                Err(error) => prop_assert!(best.is_infinite(), "{error}"),
            }
        }
    }

    #[test]
    fn large_blocks_of_two_sizes_by_hand() {
        let models = [9.0, 1.0].map(|s| Model::constant("p", s).unwrap());
        let blocks = |multiple_of| Limits { multiple_of, ..Limits::default() };
        let shares = fpm_within(&models, 1_000_000_000_000, &[blocks(64), blocks(1)]).unwrap();
        // Nine tenths are a multiple of 64.
        assert_eq!(shares, [900_000_000_000, 100_000_000_000]);
        let shares = fpm_within(&models, 1_000_000_000_001, &[blocks(64), blocks(1)]).unwrap();
        assert_eq!(shares, [900_000_000_000, 100_000_000_001]);
        let error = fpm_within(&models, 1_000_000_001, &[blocks(64), blocks(2)]).unwrap_err();
        assert!(error.to_string().contains("64 and 2"), "{error}");
    }

    #[test]
    fn models_that_do_not_grow_with_size_are_divided_at_once() {
        let flat = Model::piecewise("p", vec![Point::new(1e3, 0.1), Point::new(1e12, 0.1)], None).unwrap();
        let shares = fpm(&[flat.clone(), flat.clone()], 1 << 53).unwrap();
        assert_eq!(shares.iter().sum::<u64>(), 1 << 53);
        let groups = [vec![0], vec![1, 2]];
        let shares = crate::plan::shares::hierarchical(&groups, &[flat.clone(), flat.clone(), flat], 1 << 50);
        assert_eq!(shares.unwrap().iter().sum::<u64>(), 1 << 50);
    }
}
