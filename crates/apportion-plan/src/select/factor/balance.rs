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
    use super::*;
    use crate::geometry::Rank;
    use crate::model::WorkUnit;
    use crate::plan::{BlockColumns, Blocks, Factors};
    use crate::platform::{Network, Platform, Speed};
    use crate::select::plan_factorisation;

    fn machine(gigaflops: &[f64], network: Network) -> Machine {
        let mut platform = Platform::from_speeds(gigaflops).unwrap();
        for (processor, speed) in platform.processors.iter_mut().zip(gigaflops) {
            processor.speed = Some(Speed::Flops(speed * 1e9));
        }
        platform.network = network;
        Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap()
    }

    /// The least forecast of all owners, and of panels by these or by the fastest.
    fn best_of_all(problem: Factorisation, machine: &Machine) -> f64 {
        let (count, p) = (problem.n.div_ceil(problem.block) as usize, machine.processors());
        let mut best = f64::INFINITY;
        for number in 0..p.pow(count as u32) {
            let owner = |column: usize| Rank(number / p.pow(column as u32) % p);
            let columns = BlockColumns::new(problem.n, problem.block, p, (0..count).map(owner).collect());
            for columns in [columns.clone(), columns.factored_by(vec![Rank(0); count])] {
                let plan = appraise(problem, machine, None, "any", &Blocks::from(columns), 8).unwrap();
                best = best.min(plan.forecast.unwrap().seconds);
            }
        }
        best
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
                let options = FactorOptions {
                    layout: Some(FactorLayout::Greedy),
                    columns_only: true,
                    blocks: &[problem.block],
                    weights: None,
                    times: None,
                    element: 8,
                };
                let seconds = |plan: &Plan| plan.forecast.as_ref().unwrap().seconds;
                let planned = plan_factorisation(factors, problem.n, &machine, options).unwrap();
                let first = lay_out(problem, FactorLayout::Greedy, &machine, 8).unwrap();
                let first = first
                    .iter()
                    .map(|blocks| seconds(&appraise(problem, &machine, None, "greedy", blocks, 8).unwrap()))
                    .fold(f64::INFINITY, f64::min);
                assert!(seconds(&planned[0]) <= first);
                gained |= seconds(&planned[0]) < 0.99 * first;
                worst = worst.max(seconds(&planned[0]) / best_of_all(problem, &machine));
            }
        }
        assert!(gained && worst <= 1.1, "{worst}");
    }
}
