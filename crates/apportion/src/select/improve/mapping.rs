//! Layouts that follow the network: methods for the levels of a hierarchy, and other places for the parts.

use super::trials::Trials;
use crate::error::Result;
use crate::plan::arrange::{CostFunction, Pivots, SearchMethod, SearchOptions, arrange};
use crate::plan::shapes::MethodOptions;
use crate::plan::{Hierarchy, Layout, interrupts_by_owner};
use crate::platform::Topology;
use crate::select::candidates::candidates;
use crate::select::{Choice, PlanOptions};

/// Up to this number of processors, other mappings are looked for.
const MOST_PROCESSORS: usize = 64;
/// Nanoseconds of laying out one combination of methods, or of one mapping, for each processor.
const LAYOUT_WORK: f64 = 10_000.0;
/// At most this number of combinations are laid out.
const MOST_COMBINATIONS: f64 = 121.0;

/// The best layout with a method for each level of the platform's clusters, for the processors of the best
/// candidate, if it beats that one. Layouts whose clusters have least in common are tried first.
pub(super) fn by_levels(trials: &mut Trials<'_>, best: &Choice) -> Result<Option<Choice>> {
    let (field, p) = (trials.field, trials.field.platform.len());
    let active: Vec<usize> = (0..p).filter(|&i| best.plan.shares[i] > 0).collect();
    let paths: Vec<String> = active.iter().map(|&i| field.platform.processors[i].cluster.clone()).collect();
    let hierarchy = Hierarchy::of_paths(&paths);
    let work = LAYOUT_WORK * active.len() as f64 * MOST_COMBINATIONS;
    // With one cluster, its level is all there is.
    if hierarchy.levels() < 2 || hierarchy.members.len() < 2 || p > MOST_PROCESSORS || !trials.spend(work) {
        return Ok(None);
    }
    let names: Vec<String> = active.iter().map(|&i| field.platform.processors[i].name.clone()).collect();
    let models: Vec<_> = active.iter().map(|&i| field.models[i].clone()).collect();
    let centre = field.wishes.terms.centre.and_then(|c| active.iter().position(|&i| i == c));
    let mut wishes = PlanOptions {
        terms: MethodOptions { centre, quick: true, ..field.wishes.terms.clone() },
        ..field.wishes.clone()
    };
    wishes.form.levels = Some(vec![None; hierarchy.levels().min(2)]);
    let platform = field.platform.select(&names);
    let Ok(found) = candidates(trials.shape, &platform, (&models, field.models_block), &wishes) else {
        return Ok(None);
    };
    let mut cluster = vec![0; active.len()];
    for (number, member) in hierarchy.members.iter().enumerate() {
        member.ranks().into_iter().for_each(|rank| cluster[rank] = number);
    }
    let common = |layout: &Layout| -> Result<u64> {
        Ok(interrupts_by_owner(&layout.among(&cluster, hierarchy.members.len())?).iter().sum())
    };
    let found = found.into_iter().map(|found| Ok((common(&found.1)?, found)));
    let mut found = found.collect::<Result<Vec<_>>>()?;
    found.sort_by_key(|(common, _)| *common);
    let mut better = None;
    for (_, (method, layout, order, narrowed)) in found {
        if !trials.may_go_on() {
            break;
        }
        if let Some(choice) = trials.attempt(&method, &layout.among(&active, p)?, order)? {
            better = Some(Choice { narrowed, left_out: best.left_out.clone(), ..choice });
        }
    }
    Ok(better)
}

/// The best candidate with its parts at other places, if that is faster: mapped by the cost of the links, by
/// all arrangements where there are few.
pub(super) fn arranged(trials: &mut Trials<'_>, best: &Choice) -> Result<Option<Choice>> {
    let (platform, mut better) = (trials.field.platform, None);
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
            let Choice { narrowed, left_out, resized, .. } = best.clone();
            let resized = resized.map(|gain| gain + best.rank.unwrap_or(0.0) - trials.best());
            better = Some(Choice { narrowed, left_out, resized, ..choice });
        }
    }
    Ok(better)
}

#[cfg(test)]
mod tests;
