//! Leaving processors out: auto against every subset with every method and flow, and the certificate of time
//! against the best of all these plans.

use super::machines::{BLOCK, SIDE, best_plan, two_levels};
use super::on_all_cores;
use apportion::error::Result;
use apportion::model::{Machine, Model};
use apportion::plan::Shape;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::random::Random;
use apportion::select::{PlanOptions, Sizing, areas, forecast, orders};
use apportion::simulate::CostModel;
use std::time::Instant;

/// The least forecast of all subsets, methods and flows, with shares in proportion to the speeds.
fn brute_force(machine: &Machine) -> Result<f64> {
    let shape = Shape::new(SIDE, SIDE, SIDE, "example")?;
    let p = machine.platform.len();
    let mut best = f64::INFINITY;
    for set in 1..1usize << p {
        let subset: Vec<usize> = (0..p).filter(|i| set >> i & 1 == 1).collect();
        let weights = areas(&machine.select(&subset).models, shape)?;
        for method in Method::candidates() {
            let Ok(layout) = method.layout(shape, &weights, &MethodOptions::default()) else { continue };
            let layout = layout.among(&subset, p)?;
            let rates = machine.rates(&layout.shares());
            let costs = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
            for order in orders(None, BLOCK, false, 1) {
                best = best.min(forecast(&layout, order, costs)?.seconds);
            }
        }
    }
    Ok(best)
}

/// One line for auto beside brute force, and one for the certificate.
pub fn table(machines: usize, seed: u64) -> Result<()> {
    let found = on_all_cores(machines, |i| {
        let mut random = Random::new(seed + i as u64);
        // From links that nothing should cross to links that cost next to nothing.
        let bandwidth = 1e6 * 1e3f64.powf(random.unit());
        let mut machine = two_levels(&mut random, 8, bandwidth)?;
        // Slow enough for the search to have time: planning takes a hundredth of the forecast.
        for model in &mut machine.models {
            *model = Model::constant(model.processor(), model.speed(1.0) / 100.0)?;
        }
        machine.platform.network = machine.platform.network.at_bandwidth(bandwidth / 100.0);
        let clock = Instant::now();
        let options = PlanOptions { sizing: Sizing::Proportional, ..PlanOptions::open(BLOCK, 8) };
        let ours = best_plan(&machine, &options)?;
        let seconds = clock.elapsed().as_secs_f64();
        let shared = best_plan(&machine, &PlanOptions::open(BLOCK, 8))?;
        let all = best_plan(&machine, &PlanOptions { keep_all: true, ..options })?;
        let bound = shared.plan.metrics.time_bound.unwrap_or(0.0);
        let [ours, shared, all, left] =
            [ours.rank, shared.rank, all.rank, ours.left_out.map(|_| 1.0)].map(|x| x.unwrap_or(0.0));
        Ok([ours, brute_force(&machine)?, all, left, bound, shared, seconds / ours])
    })?;
    let mean = |of: &dyn Fn(&[f64; 7]) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
    let most = |of: &dyn Fn(&[f64; 7]) -> f64| found.iter().map(of).fold(0.0, f64::max);
    let slower = found.iter().filter(|f| f[0] > f[1] * (1.0 + 1e-9)).count();
    println!("\nprocessors that stay out, {machines} machines of 2 to 8 processors in two or three clusters");
    println!("  slower than the best subset by brute force: {slower} (target 0)");
    println!("  some stay out: {:.1} %", 100.0 * mean(&|f| f[3]));
    println!(
        "  time of all processors / auto: mean {:.3}, max {:.2}",
        mean(&|f| f[2] / f[0]),
        most(&|f| f[2] / f[0])
    );
    println!("  planning / forecast: mean {:.5}, max {:.5} (target 0.01)", mean(&|f| f[6]), most(&|f| f[6]));
    let under = found.iter().filter(|f| f[1].min(f[5]) < f[4] * (1.0 - 1e-9)).count();
    println!("\ncertificate of time, the same machines");
    println!("  plans under the bound: {under} (target 0)");
    println!(
        "  forecast of auto / bound: mean {:.3}, max {:.3}",
        mean(&|f| f[5] / f[4]),
        most(&|f| f[5] / f[4])
    );
    Ok(())
}
