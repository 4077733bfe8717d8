//! Improvements of the best candidate where messages cost time: processors that stay out, methods for the
//! levels of a hierarchy, shares that consider communication, and another mapping. Each is accepted only if
//! its forecast is lower.
//!
//! The searches simulate as many schedules as take about a hundredth of the forecast, or 50 ms. The number
//! follows from sizes and forecasts, never from a clock: equal input gives equal plans.

mod shares;
mod slivers;
mod subsets;
mod trials;

use crate::error::Result;
use crate::geometry::Rank;
use crate::plan::arrange::{CostFunction, Pivots, SearchMethod, SearchOptions, arrange};
use crate::plan::shapes::MethodOptions;
use crate::plan::{Hierarchy, Layout, Shape, interrupts_by_owner};
use crate::platform::Topology;
use crate::select::candidates::{Candidate, candidates};
use crate::select::improve::slivers::{LEAST_GAIN, without_slivers};
use crate::select::{Appraiser, Choice, Minimise, PlanOptions, Sizing, in_order_of_preference};
pub(super) use shares::{HOPELESS, HOPELESS_OF_FEW};
pub(super) use slivers::prefer_fewer;
pub use subsets::LeftOut;
pub(super) use trials::Trials;

/// Parts of the budget: for subsets; then, for all processors and for the best subset each, for levels, for
/// shares, and for another mapping.
const FOR_SUBSETS: f64 = 0.25;
const FOR_LEVELS: f64 = 0.05;
const FOR_SHARES: f64 = 0.15;
/// The same up to [`FEW_PROCESSORS`], whose forecasts cost less than they are counted for: for all processors, and for
/// those that an earlier search has left.
const FOR_FEW_SHARES: f64 = 1.2;
const FOR_FEW_SHARES_AGAIN: f64 = 0.6;
pub(super) const FEW_PROCESSORS: usize = 16;
const FOR_MAPPING: f64 = 0.03;

/// The candidates with those that improve on the best, which is the first, again in order of preference.
pub(super) fn improve(appraiser: &Appraiser<'_>, shape: Shape, choices: Vec<Choice>) -> Result<Vec<Choice>> {
    let options = appraiser.options;
    let timed = options.minimise == Minimise::Time && !appraiser.machine.only_ratios();
    let network = &appraiser.machine.platform.network;
    let free = network.is_free() && network.devices.is_empty();
    if !timed || free || appraiser.machine.processors() < 2 {
        return Ok(choices);
    }
    let Some(seconds) = choices[0].rank else { return Ok(choices) };
    let open = options.is_open();
    let mut some = Vec::new();
    if open && !options.keep_all {
        let mut trials = Trials::new(appraiser, shape, seconds, seconds, FOR_SUBSETS);
        some = subsets::search(&mut trials)?;
    }
    // Each with a budget of its own, that of the fastest plan so far.
    let known = some.iter().filter_map(|choice| choice.rank).fold(seconds, f64::min);
    let few = appraiser.machine.processors() <= FEW_PROCESSORS;
    let all = choices.clone();
    let mut choices = refine(appraiser, shape, choices, if few { seconds } else { known }, false)?;
    if few && open && !options.keep_all && !idle(appraiser, &choices[0]).is_empty() {
        // Small shares may still be better than none, which a search that has reached none does not find.
        let keeping = PlanOptions { keep_all: true, ..options.clone() };
        let of_all = Appraiser::new(appraiser.machine, &keeping);
        choices.extend(refine(&of_all, shape, all, seconds, true)?);
        choices = in_order_of_preference(choices);
    }
    if !some.is_empty() {
        let all = choices[0].rank.unwrap_or(seconds);
        for choice in refine(appraiser, shape, some, known, true)? {
            let gain = all - choice.rank.unwrap_or(all);
            let left_out = choice.left_out.clone().map(|out| LeftOut { seconds: gain, ..out });
            choices.extend((gain > -LEAST_GAIN * all).then_some(Choice { left_out, ..choice }));
        }
    }
    let mut choices = in_order_of_preference(choices);
    if open && !options.keep_all {
        name_idle_processors(appraiser, &mut choices);
        choices = without_slivers(appraiser, shape, choices)?;
    }
    Ok(choices)
}

/// The processors without a share that could have some.
fn idle(appraiser: &Appraiser<'_>, choice: &Choice) -> Vec<Rank> {
    let shares = choice.plan.shares.iter().zip(&appraiser.machine.models).enumerate();
    shares.filter(|(_, (share, model))| **share == 0 && !model.is_stopped()).map(|(i, _)| Rank(i)).collect()
}

/// Where the shares of the best choice leave processors idle, they stay out like those of a smaller subset:
/// the others alone are faster than the fastest choice in which all work.
fn name_idle_processors(appraiser: &Appraiser<'_>, choices: &mut [Choice]) {
    let (ranks, Some(seconds)) = (idle(appraiser, &choices[0]), choices[0].rank) else { return };
    if ranks.is_empty() || choices[0].left_out.is_some() {
        return;
    }
    let with_all = choices.iter().filter(|choice| idle(appraiser, choice).is_empty());
    let gain = with_all.filter_map(|choice| choice.rank).fold(f64::INFINITY, f64::min) - seconds;
    if gain > 0.0 && gain.is_finite() {
        choices[0].left_out = Some(LeftOut { ranks, seconds: gain });
    }
}

/// Candidates for the same processors with those that improve on the best of them, in order of preference.
/// The budget is that of a product of `known` seconds, less if the search was made for other processors before
/// (`again`).
fn refine(
    appraiser: &Appraiser<'_>,
    shape: Shape,
    choices: Vec<Choice>,
    known: f64,
    again: bool,
) -> Result<Vec<Choice>> {
    let open = appraiser.options.is_open();
    let mut choices = in_order_of_preference(choices);
    let trials = |choices: &[Choice], part| {
        let best = choices[0].rank.unwrap_or(f64::INFINITY);
        Trials::new(appraiser, shape, best, known.min(best), part)
    };
    if open {
        let found = lay_out_by_levels(&mut trials(&choices, FOR_LEVELS), &choices[0])?;
        choices.extend(found);
        choices = in_order_of_preference(choices);
    }
    if appraiser.options.sizing == Sizing::ByForecast {
        let part = match (appraiser.machine.processors() <= FEW_PROCESSORS, again) {
            (true, false) => FOR_FEW_SHARES,
            (true, true) => FOR_FEW_SHARES_AGAIN,
            (false, _) => FOR_SHARES,
        };
        let found = shares::search(&mut trials(&choices, part), &choices)?;
        choices.extend(found);
        choices = in_order_of_preference(choices);
    }
    if open {
        let found = rearrange(&mut trials(&choices, FOR_MAPPING), &choices[0])?;
        choices.extend(found);
    }
    Ok(in_order_of_preference(choices))
}

// Layouts that follow the network: methods for the levels of a hierarchy, and other places for the parts.

/// Up to this number of processors, other mappings are looked for.
const MOST_PROCESSORS: usize = 64;
/// Nanoseconds of laying out one combination of methods, or of one mapping, for each processor.
const LAYOUT_WORK: f64 = 10_000.0;
/// At most this number of combinations are laid out.
const MOST_COMBINATIONS: f64 = 121.0;

/// The best layout with a method for each level of the platform's clusters, for the processors of the best
/// candidate, if it beats that one. Layouts whose clusters have least in common are tried first.
fn lay_out_by_levels(trials: &mut Trials<'_>, best: &Choice) -> Result<Option<Choice>> {
    let (appraiser, p) = (trials.appraiser, trials.appraiser.machine.processors());
    let active: Vec<usize> = (0..p).filter(|&i| best.plan.shares[i] > 0).collect();
    let paths: Vec<String> =
        active.iter().map(|&i| appraiser.machine.platform.processors[i].cluster.clone()).collect();
    let hierarchy = Hierarchy::of_paths(&paths);
    let work = LAYOUT_WORK * active.len() as f64 * MOST_COMBINATIONS;
    // With one cluster, its level is all there is.
    if hierarchy.levels() < 2 || hierarchy.members.len() < 2 || p > MOST_PROCESSORS || !trials.spend(work) {
        return Ok(None);
    }
    let centre = appraiser.options.method_options.centre.and_then(|c| active.iter().position(|&i| i == c));
    let mut options = PlanOptions {
        method_options: MethodOptions { centre, quick: true, ..appraiser.options.method_options.clone() },
        ..appraiser.options.clone()
    };
    options.constraints.levels = Some(vec![None; hierarchy.levels().min(2)]);
    let Ok(found) = candidates(trials.shape, &appraiser.machine.select(&active), &options) else {
        return Ok(None);
    };
    let mut cluster = vec![0; active.len()];
    for (number, member) in hierarchy.members.iter().enumerate() {
        member.ranks().into_iter().for_each(|rank| cluster[rank] = number);
    }
    let common = |layout: &Layout| -> Result<u64> {
        Ok(interrupts_by_owner(&layout.among(&cluster, hierarchy.members.len())?).iter().sum())
    };
    let found = found.into_iter().map(|found| Ok((common(&found.layout)?, found)));
    let mut found = found.collect::<Result<Vec<_>>>()?;
    found.sort_by_key(|(common, _)| *common);
    let mut better = None;
    for (_, Candidate { method, layout, order, overrun }) in found {
        if !trials.may_go_on() {
            break;
        }
        if let Some(choice) = trials.attempt(&method, &layout.among(&active, p)?, order)? {
            better = Some(Choice { memory_overrun: overrun, left_out: best.left_out.clone(), ..choice });
        }
    }
    Ok(better)
}

/// The best candidate with its parts at other places, if that is faster: mapped by the cost of the links, by
/// all arrangements where there are few.
fn rearrange(trials: &mut Trials<'_>, best: &Choice) -> Result<Option<Choice>> {
    let (platform, mut better) = (&trials.appraiser.machine.platform, None);
    let uniform = platform.network.topology == Topology::Bus || platform.network.is_uniform();
    if uniform || platform.len() > MOST_PROCESSORS {
        return Ok(None);
    }
    for pivots in [Pivots::OneToAll, Pivots::Ring] {
        if !trials.spend(LAYOUT_WORK * platform.len() as f64) {
            break;
        }
        let Ok(found) = arrange(
            &best.plan,
            platform,
            CostFunction::Bandwidth(pivots),
            SearchOptions::new(SearchMethod::Heuristic, 1),
        ) else {
            continue;
        };
        let layout = found.plan.layout()?;
        if let Some(choice) = trials.attempt(&best.plan.method, layout, best.order)? {
            let Choice { memory_overrun, left_out, sizing_gain, .. } = best.clone();
            let sizing_gain = sizing_gain.map(|gain| gain + best.rank.unwrap_or(0.0) - trials.best());
            better = Some(Choice { memory_overrun, left_out, sizing_gain, ..choice });
        }
    }
    Ok(better)
}

#[cfg(test)]
mod tests;
