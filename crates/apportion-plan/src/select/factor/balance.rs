//! Block columns that a forecast has corrected.
//!
//! A layout by speed gives everybody updates in proportion to the speed of large products. Panels, narrow updates and
//! whole columns make some busier than others; who is busier counts as slower in the next layout, as in DFPA
//! (Lastovetsky and Reddy 2009), where speeds are learned in the same way from measured times.

use super::{FactorLayout, FactorOptions, Factorisation, appraise, lay_out};
use crate::error::Result;
use crate::model::Machine;
use crate::plan::Plan;
use crate::select::rebalance::scaled;

/// Layouts that are tried.
const ROUNDS: usize = 3;

/// More plans by the same layout, for speeds that forecasts have corrected: those of the given plans first.
///
/// # Errors
/// Those of a forecast.
pub(super) fn corrected(
    problem: Factorisation,
    machine: &Machine,
    layout: FactorLayout,
    options: &FactorOptions<'_>,
    given: &[Plan],
) -> Result<Vec<Plan>> {
    let weights = options.weights.unwrap_or(machine);
    let (mut slower, mut more) = (vec![1.0; machine.processors()], Vec::new());
    let mut last = fastest(given).cloned();
    for _ in 0..ROUNDS {
        let Some(Plan { division, forecast: Some(forecast), .. }) = &last else { break };
        let busy: Vec<f64> = forecast.compute.iter().copied().filter(|seconds| *seconds > 0.0).collect();
        let mean = busy.iter().sum::<f64>() / busy.len() as f64;
        for (slower, seconds) in slower.iter_mut().zip(&forecast.compute) {
            *slower *= if *seconds > 0.0 { seconds / mean } else { 1.0 };
        }
        let corrected = weights.with_models(scaled(&weights.models, &slower)?);
        let mut next = Vec::new();
        for blocks in lay_out(problem, layout, &corrected, options.element)? {
            let plan = appraise(problem, machine, options.times, layout.name(), &blocks, options.element)?;
            next.extend((plan.division != *division).then_some(plan));
        }
        last = fastest(&next).cloned();
        more.extend(next);
    }
    Ok(more)
}

fn fastest(plans: &[Plan]) -> Option<&Plan> {
    let seconds = |plan: &Plan| plan.forecast.as_ref().map_or(f64::INFINITY, |forecast| forecast.seconds);
    plans.iter().min_by(|a, b| seconds(a).total_cmp(&seconds(b)))
}

#[cfg(test)]
mod tests {
    use super::super::candidate_blocks;
    use super::super::tests::{machine, with_devices};
    use super::*;
    use crate::geometry::Rank;
    use crate::plan::{Factors, TileMap};
    use crate::platform::Network;
    use crate::select::plan_factorisation;

    /// The least forecast of all owners, and of panels by these or by the fastest.
    fn best_of_all(problem: Factorisation, machine: &Machine) -> f64 {
        let (count, p) = (problem.n.div_ceil(problem.block) as usize, machine.processors());
        let mut best = f64::INFINITY;
        for number in 0..p.pow(count as u32) {
            let owner = |column: usize| Rank(number / p.pow(column as u32) % p);
            let columns = TileMap::columns(problem.n, problem.block, p, (0..count).map(owner).collect());
            for columns in [columns.clone(), columns.factored_by(vec![Rank(0); count]).unwrap()] {
                let plan = appraise(problem, machine, None, "any", &columns, 8).unwrap();
                best = best.min(plan.forecast.unwrap().seconds);
            }
        }
        best
    }

    /// The plan by this layout in these blocks, and how many times the least of all its forecast takes.
    fn beside_best(
        problem: Factorisation,
        machine: &Machine,
        layout: Option<FactorLayout>,
        blocks: &[u64],
    ) -> (f64, f64) {
        let options = FactorOptions { layout, columns_only: true, ..FactorOptions::new(blocks, 8) };
        let plans = plan_factorisation(problem.factors, problem.n, machine, options).unwrap();
        let seconds = plans[0].forecast.as_ref().unwrap().seconds;
        (seconds, seconds / best_of_all(problem, machine))
    }

    /// Among few block columns the plan is near the best of all, and corrections bring it nearer.
    #[test]
    fn plans_are_near_the_best_of_all() {
        let (mut worst, mut gained) = (1.0_f64, false);
        for factors in Factors::ALL {
            for (speeds, latency) in [(&[9.0, 1.0][..], 1e-6), (&[3.0, 1.0], 1e-4), (&[2.0, 1.0, 1.0], 1e-5)]
            {
                let machine = machine(speeds, Network::uniform(latency, 1e9));
                let problem =
                    Factorisation { factors, n: 700, block: if speeds.len() == 2 { 70 } else { 100 } };
                let (planned, beside) =
                    beside_best(problem, &machine, Some(FactorLayout::Greedy), &[problem.block]);
                let first = lay_out(problem, FactorLayout::Greedy, &machine, 8).unwrap();
                let first = first
                    .iter()
                    .map(|blocks| appraise(problem, &machine, None, "greedy", blocks, 8).unwrap())
                    .map(|plan| plan.forecast.unwrap().seconds)
                    .fold(f64::INFINITY, f64::min);
                assert!(planned <= first);
                gained |= planned < 0.99 * first;
                worst = worst.max(beside);
            }
        }
        assert!(gained && worst <= 1.1, "{worst}");
    }

    /// A core and a device: the core factors the panels of the device, which therefore has more columns than its speed
    /// alone would give it; with blocks of any width the plan is as fast as the best of all in eight.
    #[test]
    fn plans_with_a_device_are_near_the_best_of_all() {
        for factors in Factors::ALL {
            for speeds in [[1.0, 1.0], [1.0, 4.0], [4.0, 1.0], [1.0, 20.0]] {
                let machine = with_devices(&speeds, &[1], None, 1e10);
                let problem = Factorisation { factors, n: 800, block: 100 };
                let (_, same) = beside_best(problem, &machine, None, &[problem.block]);
                let (_, any) = beside_best(problem, &machine, None, &candidate_blocks(problem.n, 2));
                assert!(same <= 1.1 && any <= 1.01, "{factors} {speeds:?}: {same} {any}");
            }
        }
    }
}
