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

use super::{Choice, Field, Minimise, PlanOptions, Sizing, in_order_of_preference};
use crate::error::Result;
use crate::model::only_ratios;
use crate::plan::Shape;
pub(super) use shares::{HOPELESS, HOPELESS_OF_FEW};
use trials::Trials;

/// Parts of the budget: for subsets; then, for all processors and for the best subset each, for levels, for
/// shares, and for another mapping.
const FOR_SUBSETS: f64 = 0.25;
const FOR_LEVELS: f64 = 0.05;
const FOR_SHARES: f64 = 0.15;
/// The same up to [`FEW_PROCESSORS`], whose forecasts cost less than they are counted for.
const FOR_FEW_SHARES: f64 = 1.0;
pub(super) const FEW_PROCESSORS: usize = 16;
const FOR_MAPPING: f64 = 0.03;

/// The candidates with those that improve on the best, which is the first, again in order of preference.
pub(super) fn improved(field: &Field<'_>, shape: Shape, choices: Vec<Choice>) -> Result<Vec<Choice>> {
    let wishes = field.wishes;
    let timed = wishes.minimise == Minimise::Time && !only_ratios(field.models);
    if !timed || field.platform.network.is_free() || field.platform.len() < 2 {
        return Ok(choices);
    }
    let Some(seconds) = choices[0].rank else { return Ok(choices) };
    let open = wishes.method.is_none() && wishes.form.levels.is_none();
    let mut some = Vec::new();
    if open && !wishes.keep_all {
        let mut trials = Trials::new(field, shape, seconds, seconds, FOR_SUBSETS);
        some = subsets::search(&mut trials)?;
    }
    // Each with a budget of its own, that of the fastest plan so far.
    let known = some.iter().filter_map(|choice| choice.rank).fold(seconds, f64::min);
    // Among few processors the subsets say who stays out. All of them are divided as where none may, with the
    // same budget, so that the result is no slower.
    let keeping = PlanOptions { keep_all: true, ..wishes.clone() };
    let of_all = Field::new(field.platform, field.models, field.models_block, &keeping);
    let mut choices = match field.platform.len() <= FEW_PROCESSORS {
        true => refined(&of_all, shape, choices, seconds, open)?,
        false => refined(field, shape, choices, known, open)?,
    };
    if !some.is_empty() {
        let all = choices[0].rank.unwrap_or(seconds);
        for choice in refined(field, shape, some, known, open)? {
            let gain = all - choice.rank.unwrap_or(all);
            let left_out = choice.left_out.clone().map(|out| LeftOut { seconds: gain, ..out });
            choices.extend((gain > 0.0).then_some(Choice { left_out, ..choice }));
        }
    }
    Ok(in_order_of_preference(choices))
}

/// Candidates for the same processors with those that improve on the best of them, in order of preference.
/// The budget is that of a product of `known` seconds.
fn refined(
    field: &Field<'_>,
    shape: Shape,
    choices: Vec<Choice>,
    known: f64,
    open: bool,
) -> Result<Vec<Choice>> {
    let mut choices = in_order_of_preference(choices);
    let trials = |choices: &[Choice], part| {
        let best = choices[0].rank.unwrap_or(f64::INFINITY);
        Trials::new(field, shape, best, known.min(best), part)
    };
    if open {
        let found = mapping::by_levels(&mut trials(&choices, FOR_LEVELS), &choices[0])?;
        choices.extend(found);
        choices = in_order_of_preference(choices);
    }
    if field.wishes.sizing == Sizing::ByForecast {
        let part = if field.platform.len() <= FEW_PROCESSORS { FOR_FEW_SHARES } else { FOR_SHARES };
        let found = shares::search(&mut trials(&choices, part), &choices)?;
        choices.extend(found);
        choices = in_order_of_preference(choices);
    }
    if open {
        let found = mapping::arranged(&mut trials(&choices, FOR_MAPPING), &choices[0])?;
        choices.extend(found);
    }
    Ok(in_order_of_preference(choices))
}
