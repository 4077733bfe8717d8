//! Improvements of the best candidate where messages cost time: processors that stay out, methods for the
//! levels of a hierarchy, shares that consider communication, and another mapping. Each is accepted only if
//! its forecast is lower.
//!
//! The searches simulate as many schedules as take about a hundredth of the forecast, or 50 ms. The number
//! follows from sizes and forecasts, never from a clock: equal input gives equal plans.

mod mapping;
mod shares;
mod subsets;
mod trials;

pub use subsets::LeftOut;

use super::{Choice, Field, Minimise, Sizing, in_order_of_preference};
use crate::error::Result;
use crate::model::only_ratios;
use crate::plan::Shape;
use trials::Trials;

/// Parts of the budget: for subsets, for levels and mappings, and for shares.
const FOR_SUBSETS: f64 = 0.4;
const FOR_MAPPING: f64 = 0.1;
const FOR_SHARES: f64 = 0.4;

/// The candidates with those that improve on the best, which is the first, again in order of preference.
pub(super) fn improved(field: &Field<'_>, shape: Shape, mut choices: Vec<Choice>) -> Result<Vec<Choice>> {
    let wishes = field.wishes;
    let timed = wishes.minimise == Minimise::Time && !only_ratios(field.models);
    if !timed || field.platform.network.is_free() || field.platform.len() < 2 {
        return Ok(choices);
    }
    let Some(seconds) = choices[0].rank else { return Ok(choices) };
    let open = wishes.method.is_none() && wishes.form.levels.is_none();
    if open && !wishes.keep_all {
        let mut trials = Trials::new(field, shape, seconds, FOR_SUBSETS);
        choices.extend(subsets::search(&mut trials, seconds)?);
        choices = in_order_of_preference(choices);
    }
    let best = |choices: &[Choice]| choices[0].rank.unwrap_or(seconds);
    if open {
        let mut trials = Trials::new(field, shape, best(&choices), FOR_MAPPING);
        let found = mapping::by_levels(&mut trials, &choices)?;
        choices.extend(found);
        choices = in_order_of_preference(choices);
    }
    if wishes.sizing == Sizing::ByForecast {
        let mut trials = Trials::new(field, shape, best(&choices), FOR_SHARES);
        let found = shares::search(&mut trials, &choices)?;
        choices.extend(found);
        choices = in_order_of_preference(choices);
    }
    if open {
        let mut trials = Trials::new(field, shape, best(&choices), FOR_MAPPING);
        let found = mapping::arranged(&mut trials, &choices[0])?;
        choices.extend(found);
        choices = in_order_of_preference(choices);
    }
    Ok(choices)
}
