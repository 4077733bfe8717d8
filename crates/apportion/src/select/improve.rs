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
use crate::geometry::Rank;
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
    let timed = wishes.minimise == Minimise::Time && !field.machine.only_ratios();
    if !timed || field.machine.platform.network.is_free() || field.machine.processors() < 2 {
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
    let few = field.machine.processors() <= FEW_PROCESSORS;
    let all = choices.clone();
    let mut choices = refined(field, shape, choices, if few { seconds } else { known }, open)?;
    if few && open && !wishes.keep_all && !idle(field, &choices[0]).is_empty() {
        // Small shares may still be better than none, which a search that has reached none does not find.
        let keeping = PlanOptions { keep_all: true, ..wishes.clone() };
        let of_all = Field::new(field.machine, &keeping);
        choices.extend(refined(&of_all, shape, all, seconds, open)?);
        choices = in_order_of_preference(choices);
    }
    if !some.is_empty() {
        let all = choices[0].rank.unwrap_or(seconds);
        for choice in refined(field, shape, some, known, open)? {
            let gain = all - choice.rank.unwrap_or(all);
            let left_out = choice.left_out.clone().map(|out| LeftOut { seconds: gain, ..out });
            choices.extend((gain > 0.0).then_some(Choice { left_out, ..choice }));
        }
    }
    let mut choices = in_order_of_preference(choices);
    if open && !wishes.keep_all {
        name_idle_processors(field, &mut choices);
    }
    Ok(choices)
}

/// The processors without a share that could have some.
fn idle(field: &Field<'_>, choice: &Choice) -> Vec<Rank> {
    let shares = choice.plan.shares.iter().zip(&field.machine.models).enumerate();
    shares.filter(|(_, (share, model))| **share == 0 && !model.is_stopped()).map(|(i, _)| Rank(i)).collect()
}

/// Where the shares of the best choice leave processors idle, they stay out like those of a smaller subset:
/// the others alone are faster than the fastest choice in which all work.
fn name_idle_processors(field: &Field<'_>, choices: &mut [Choice]) {
    let (ranks, Some(seconds)) = (idle(field, &choices[0]), choices[0].rank) else { return };
    if ranks.is_empty() || choices[0].left_out.is_some() {
        return;
    }
    let with_all = choices.iter().filter(|choice| idle(field, choice).is_empty());
    let gain = with_all.filter_map(|choice| choice.rank).fold(f64::INFINITY, f64::min) - seconds;
    if gain > 0.0 && gain.is_finite() {
        choices[0].left_out = Some(LeftOut { ranks, seconds: gain });
    }
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
        let part = if field.machine.processors() <= FEW_PROCESSORS { FOR_FEW_SHARES } else { FOR_SHARES };
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
