//! Limits on shares: minimum, maximum and granularity.

use crate::error::{Error, Result};
use crate::model::Model;
use serde::{Deserialize, Serialize};

/// Limits on the share of one processor, in addition to its model's `max_size`.
///
/// # Example
/// ```
/// use apportion_plan::{model::Model, plan::shares::{Limits, fpm_within}};
/// let models = [Model::constant("fast", 9.0)?, Model::constant("slow", 1.0)?];
/// let blocks = Limits { multiple_of: 64, ..Limits::default() };
/// assert_eq!(fpm_within(&models, 1024, &[blocks, blocks])?, [960, 64]);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The minimum share; default 0. A processor with a minimum share is never left out.
    pub least: u64,
    /// The maximum share; default: no limit.
    pub most: Option<u64>,
    /// The share is a multiple of this many units; default 1.
    pub multiple_of: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { least: 0, most: None, multiple_of: 1 }
    }
}

/// Effective limits: both ends are multiples of `step`, with caps and n taken into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    pub(crate) least: u64,
    pub(crate) most: u64,
    pub(crate) step: u64,
}

/// The number of an option, or another one.
///
/// Optimised code compares the number of an absent option too, and then drops the outcome. That number is
/// memory which nothing wrote, so valgrind reports each division to programs in C. The hint forbids it.
fn number_or<T>(option: Option<T>, other: T) -> T {
    match option {
        Some(number) => std::hint::black_box(number),
        None => other,
    }
}

/// Combines the limits with the caps of the models and n; an empty slice means no limits.
///
/// # Errors
/// No model; not one limit per model; a granularity of 0; no multiple between the ends; minimum shares that
/// add up to more than n, or maximum shares that add up to less (the message states the difference).
pub(super) fn resolve(models: &[Model], n: u64, limits: &[Limits]) -> Result<Vec<Allowed>> {
    if models.is_empty() {
        return Err(Error::input("models", "there are none", "give one model per processor"));
    }
    if !limits.is_empty() && limits.len() != models.len() {
        return Err(Error::input(
            "limits",
            format!("there are {} for {} processors", limits.len(), models.len()),
            "give one per processor",
        ));
    }
    let mut allowed = Vec::with_capacity(models.len());
    for (i, model) in models.iter().enumerate() {
        let limit = limits.get(i).copied().unwrap_or_default();
        let step = limit.multiple_of;
        if step == 0 {
            return Err(Error::input(
                format!("granularity of \"{}\"", model.processor()),
                "0 units are no block",
                "give at least 1",
            ));
        }
        // A float above the largest u64 saturates.
        let cap = number_or(model.max_size(), f64::INFINITY) as u64;
        let most = cap.min(number_or(limit.most, u64::MAX)).min(n);
        let most = most - most % step;
        let least = limit.least.checked_next_multiple_of(step).unwrap_or(u64::MAX);
        if least > most {
            return Err(Error::infeasible(
                format!(
                    "\"{}\" must take at least {} units but can take only {most}",
                    model.processor(),
                    limit.least
                ),
                "lower `min`, raise `max` or its max_size, or divide more units",
            ));
        }
        allowed.push(Allowed { least, most, step });
    }
    let sum = |f: fn(&Allowed) -> u64| allowed.iter().map(|a| u128::from(f(a))).sum::<u128>();
    let (least, most) = (sum(|a| a.least), sum(|a| a.most));
    if most < u128::from(n) {
        return Err(Error::infeasible(
            format!("the processors can take {most} of {n} units: {} are missing", u128::from(n) - most),
            "add processors, raise `max` or max_size, or divide a smaller problem",
        ));
    }
    if least > u128::from(n) {
        return Err(Error::infeasible(
            format!(
                "the minimum shares add up to {least}, {} more than the {n} units",
                least - u128::from(n)
            ),
            "lower `min`, or divide more units",
        ));
    }
    Ok(allowed)
}
