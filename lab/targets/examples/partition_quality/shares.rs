//! Shares that consider communication, against shares in proportion to the speeds and random changes.

use super::machines::{SIDE, best_plan, communication, plain, two_levels};
use super::on_all_cores;
use apportion::error::Result;
use apportion::plan::Shape;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::random::Random;
use apportion::select::{PlanOptions, Sizing, areas, forecast};
use apportion::simulate::CostModel;

/// Random changes of the shares of each machine.
const CHANGES: usize = 200;

/// The gain where communication takes a quarter to two fifths of the time.
pub fn table(machines: usize, seed: u64) -> Result<()> {
    let shape = Shape::new(SIDE, SIDE, SIDE, "example")?;
    let found = on_all_cores(machines, |i| {
        let mut random = Random::new(seed + i as u64);
        loop {
            let bandwidth = 1e7 * 100f64.powf(random.unit());
            let machine = two_levels(&mut random, 8, bandwidth)?;
            let before = best_plan(&machine, &plain())?;
            if !(0.25..0.42).contains(&communication(&before)) {
                continue;
            }
            let after = best_plan(&machine, &PlanOptions { sizing: Sizing::ByForecast, ..plain() })?;
            let weights = areas(&machine.models, shape)?;
            let method: Option<Method> = before.plan.method.parse().ok();
            let mut changed = f64::INFINITY;
            for draw in 0..CHANGES {
                let spread = [0.05, 0.1, 0.2, 0.4, 0.8][draw % 5];
                let mut other = |w: &f64| w * (spread * (2.0 * random.unit() - 1.0)).exp();
                let other: Vec<f64> = weights.iter().map(&mut other).collect();
                let Some(Ok(layout)) = method.map(|m| m.layout(shape, &other, &MethodOptions::default()))
                else {
                    continue;
                };
                let rates = machine.rates(&layout.shares());
                let costs = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
                changed = changed.min(forecast(&layout, before.order, costs)?.seconds);
            }
            let [before, after] = [before.rank, after.rank].map(|x| x.unwrap_or(0.0));
            return Ok([before, after, changed]);
        }
    })?;
    let gains: Vec<f64> = found.iter().map(|f| 1.0 - f[1] / f[0]).collect();
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    let beaten = found.iter().filter(|f| f[1] > f[2] * (1.0 + 1e-9)).count();
    let by = found.iter().map(|f| f[1] / f[2] - 1.0).fold(0.0, f64::max);
    println!(
        "\nshares by forecast, {machines} machines on which communication takes about a third of the time"
    );
    println!(
        "  less time than in proportion to the speeds: mean {:.1} %, least {:.1} % (targets 5 to 15 %, never worse)",
        100.0 * mean,
        100.0 * least
    );
    println!(
        "  beaten by the best of {CHANGES} random changes: {beaten}, by {:.2} % at most (targets 0)",
        100.0 * by
    );
    Ok(())
}
