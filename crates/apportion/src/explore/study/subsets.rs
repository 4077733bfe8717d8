//! What leaving processors out gains on random machines of two levels.

use crate::model::{Machine, WorkUnit};
use crate::plan::Shape;
use crate::platform::parse_platform;
use crate::random::Random;
use crate::select::{PlanOptions, plan_matmul};

/// Side of the product, and its pivot block: eight blocks.
const SIDE: u64 = 2048;
const BLOCK: u64 = 256;

/// Multiply-adds per second of all processors together, for each of them.
const SPEED: f64 = 1e9;

/// The outcome of one draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Priced {
    /// True if `auto` leaves processors out.
    pub left_out: bool,
    /// The time of the best plan for all processors over that of `auto`.
    pub gain: f64,
    /// The forecast over the bound that no plan can beat.
    pub over_bound: f64,
}

/// Plans a product on processors of these relative speeds, in two clusters. The bandwidth between the
/// clusters is 1 MB/s to 1 GB/s, its logarithm uniform; inside it is ten times as high.
pub(super) fn priced(speeds: &[f64], random: &mut Random) -> Priced {
    let machine = machine(speeds, 1e6 * 1e3f64.powf(random.unit()), random);
    let shape = Shape { m: SIDE, k: SIDE, n: SIDE };
    let best = |keep_all| {
        let options = PlanOptions { keep_all, ..PlanOptions::open(BLOCK, 8) };
        let choices = plan_matmul(shape, &machine, &options);
        choices.expect("columns serve every machine").remove(0)
    };
    let (all, open) = (best(true), best(false));
    Priced {
        left_out: open.left_out.is_some(),
        gain: all.rank.unwrap_or(1.0) / open.rank.unwrap_or(1.0),
        over_bound: open.plan.metrics.forecast_over_bound.unwrap_or(1.0),
    }
}

fn machine(speeds: &[f64], bandwidth: f64, random: &mut Random) -> Machine {
    let total: f64 = speeds.iter().sum();
    let mut text = String::new();
    let mut present = [false; 2];
    for (i, speed) in speeds.iter().enumerate() {
        let cluster = random.below(2);
        present[cluster] = true;
        let flops = 2.0 * SPEED * (speed / total * speeds.len() as f64).max(1e-6);
        text += &format!(
            "[[processor]]\nname = \"p{i}\"\ncluster = \"c{cluster}\"\nspeed = \"{flops} flop/s\"\n"
        );
    }
    text += &format!("[network]\nlatency = \"50 us\"\nbandwidth = {bandwidth}\n");
    for cluster in (0..2).filter(|&cluster| present[cluster]) {
        let inside = 10.0 * bandwidth;
        text +=
            &format!("[[network.link]]\nbetween = [\"c{cluster}\", \"c{cluster}\"]\nbandwidth = {inside}\n");
    }
    let platform = parse_platform(&text, "two levels").expect("a sound platform file");
    Machine::from_platform(platform, WorkUnit::MultiplyAdd).expect("every processor has a speed")
}
