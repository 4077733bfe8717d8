//! Seeded machines of two levels.

use apportion::error::Result;
use apportion::model::{Machine, WorkUnit};
use apportion::plan::Shape;
use apportion::platform::parse_platform;
use apportion::random::Random;
use apportion::select::{Choice, PlanOptions, Sizing, plan_matmul};

/// The product of every table.
pub const SIDE: u64 = 2048;
/// The pivot block: few, so that forecasts of a thousand machines take minutes.
pub const BLOCK: u64 = 256;

/// Processors in two to three clusters, of 1 to 8 Gflop/s each. Links inside a cluster are ten times as fast
/// as between clusters, where they have `bandwidth` bytes per second.
pub fn two_levels(random: &mut Random, most: usize, bandwidth: f64) -> Result<Machine> {
    let p = 2 + random.below(most - 1);
    let clusters = 2 + random.below(2);
    let mut text = String::new();
    for i in 0..p {
        let speed = 1e9 * 8f64.powf(random.unit());
        text += &format!(
            "[[processor]]\nname = \"p{i}\"\ncluster = \"c{}\"\nspeed = \"{speed} flop/s\"\n",
            i % clusters
        );
    }
    text += &format!("[network]\nlatency = \"50 us\"\nbandwidth = {bandwidth}\n");
    for c in 0..clusters.min(p) {
        text +=
            &format!("[[network.link]]\nbetween = [\"c{c}\", \"c{c}\"]\nbandwidth = {}\n", 10.0 * bandwidth);
    }
    let platform = parse_platform(&text, "two levels")?;
    Machine::from_platform(platform, WorkUnit::MultiplyAdd)
}

/// The best plan with these options.
pub fn best_plan(machine: &Machine, options: &PlanOptions) -> Result<Choice> {
    let shape = Shape::new(SIDE, SIDE, SIDE, "example")?;
    Ok(plan_matmul(shape, machine, options)?.remove(0))
}

/// Every processor, with shares in proportion to the speeds.
pub fn plain() -> PlanOptions {
    PlanOptions { keep_all: true, sizing: Sizing::Proportional, ..PlanOptions::open(BLOCK, 8) }
}

/// The part of a plan's time that its processors wait for data, on average over those with a share.
pub fn communication(choice: &Choice) -> f64 {
    let Some(forecast) = &choice.plan.forecast else { return 0.0 };
    let shares = &choice.plan.shares;
    let active = shares.iter().filter(|share| **share > 0).count().max(1);
    forecast.communicate.iter().sum::<f64>() / active as f64 / forecast.seconds
}
