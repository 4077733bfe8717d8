//! Auto against everything that a user can type: methods, flows, overlap, shares and pivot blocks.

use super::machines::{BLOCK, best_plan, two_levels};
use super::on_all_cores;
use apportion::error::Result;
use apportion::model::Machine;
use apportion::plan::shapes::Method;
use apportion::random::Random;
use apportion::schedule::Flow;
use apportion::select::{PlanOptions, Sizing, orders};

/// The least forecast of all that can be typed.
fn least_typed(machine: &Machine) -> f64 {
    let each = orders(None, BLOCK, false, 1).into_iter().map(|order| (Some(order.flow), order.overlaps()));
    let flows: Vec<(Option<Flow>, bool)> = each.chain([(None, false)]).collect();
    let mut least = f64::INFINITY;
    for method in Method::all().filter(|method| *method != Method::ColumnGroups) {
        for &(flow, overlap) in &flows {
            for (block, sizing) in [64, 128, 256, 512, 1024]
                .into_iter()
                .flat_map(|block| [Sizing::Proportional, Sizing::ByForecast].map(|sizing| (block, sizing)))
            {
                let options = PlanOptions {
                    method: Some(method),
                    flow,
                    overlap,
                    sizing,
                    ..PlanOptions::open(block, 8)
                };
                // A method that does not serve these processors.
                let Ok(found) = best_plan(machine, &options) else { continue };
                least = least.min(found.rank.unwrap_or(f64::INFINITY));
            }
        }
    }
    least
}

/// How often another choice is faster, and by how much.
pub fn table(machines: usize, seed: u64) -> Result<()> {
    let found = on_all_cores(machines, |i| {
        let mut random = Random::new(seed + i as u64);
        let bandwidth = 1e6 * 100f64.powf(random.unit());
        let machine = two_levels(&mut random, 6, bandwidth)?;
        let open = PlanOptions { open_block: true, ..PlanOptions::open(BLOCK, 8) };
        let ours = best_plan(&machine, &open)?.rank.unwrap_or(f64::INFINITY);
        Ok(ours / least_typed(&machine))
    })?;
    let beyond = |part: f64| found.iter().filter(|ratio| **ratio > 1.0 + part).count();
    println!("\nauto beside the best that can be typed, {machines} machines");
    println!("  slower by more than 1 %: {}, by more than 2 %: {} (targets 0)", beyond(0.01), beyond(0.02));
    println!("  time of auto / the best: max {:.3}", found.iter().copied().fold(0.0, f64::max));
    Ok(())
}
