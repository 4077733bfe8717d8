//! Arrangement: the default searches against every arrangement, where that is cheap.

use super::machines::{SIDE, two_levels};
use super::on_all_cores;
use apportion::error::Result;
use apportion::plan::arrange::{CostFunction, Pivots, SearchMethod, SearchOptions, arrange};
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Plan, Shape};
use apportion::random::Random;

/// The excess of the searches over the optimum.
pub fn table(machines: usize, seed: u64) -> Result<()> {
    let shape = Shape::new(SIDE, SIDE, SIDE, "example")?;
    let found = on_all_cores(machines, |i| {
        let mut random = Random::new(seed + i as u64);
        let machine = two_levels(&mut random, 7, 1e8)?;
        let p = machine.platform.len();
        // Every second layout has no columns: only owners of equal shares can be exchanged.
        let (method, weights) = match i % 2 {
            0 => (Method::Columns, machine.models.iter().map(|m| m.speed(1.0)).collect()),
            _ => (Method::Recursive, vec![1.0; p]),
        };
        let layout = method.layout(shape, &weights, &MethodOptions::default())?;
        let plan = Plan::of_layout(method.to_string(), machine.platform.names(), layout, 1.0);
        let pivots = if i % 4 < 2 { Pivots::Ring } else { Pivots::OneToAll };
        let cost = |search| {
            let found = arrange(
                &plan,
                &machine.platform,
                CostFunction::Bandwidth(pivots),
                SearchOptions::new(search, 1),
            )?;
            Ok((found.cost_before.total, found.cost_after.total))
        };
        let over = |cost: f64, best: f64| if best > 0.0 { cost / best - 1.0 } else { 0.0 };
        let (given, best) = cost(SearchMethod::Exhaustive)?;
        Ok([given, cost(SearchMethod::Heuristic)?.1, cost(SearchMethod::Local)?.1]
            .map(|found| over(found, best)))
    })?;
    println!("\narrangement, {machines} layouts of 2 to 7 processors: excess over the optimum, mean and max");
    for (i, name) in ["as given", "heuristic", "local"].into_iter().enumerate() {
        let mean = found.iter().map(|f| f[i]).sum::<f64>() / found.len() as f64;
        let most = found.iter().map(|f| f[i]).fold(0.0, f64::max);
        let target = if i == 0 { "" } else { " (target 0)" };
        println!("  {name:<10} {:.2} %, {:.1} %{target}", 100.0 * mean, 100.0 * most);
    }
    Ok(())
}
