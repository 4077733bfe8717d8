//! How long planning takes on random platforms, compared with its limit: 1 % of the forecast, or 50 ms.
//!
//! `cargo run --release -p targets --example planning_time [PLATFORMS] [SEED] [FIRST] [LEAST] [MOST]` plans
//! each product as `auto` does, up to three times (the shortest counts), and prints a line for each, from the
//! first one on. Platforms have LEAST to MOST processors (16 to 1,000). Networks are full, half duplex,
//! buses, stars, clusters, and clusters behind shared uplinks.

use apportion::error::Result;
use apportion::model::{Machine, WorkUnit};
use apportion::plan::Shape;
use apportion::platform::parse_platform;
use apportion::random::Random;
use apportion::select::{PlanOptions, plan_matmul};
use harness::Sample;
use std::time::Instant;

/// Pivot block.
const BLOCK: u64 = 256;
/// Above this number of seconds a plan is made once.
const LONG: f64 = 1.0;
const NETWORKS: [&str; 6] = ["full", "half duplex", "bus", "star", "clusters", "uplinks"];

struct Case {
    network: &'static str,
    machine: Machine,
    shape: Shape,
}

fn case(random: &mut Random, [least, most]: [f64; 2]) -> Result<Case> {
    let p = (least * (most / least).powf(random.unit())) as usize;
    let network = NETWORKS[random.below(NETWORKS.len())];
    let side = || BLOCK * 4;
    let mut sides = [0; 3].map(|_| (side() as f64 * 40f64.powf(random.unit())) as u64);
    if random.below(2) == 0 {
        sides = [sides[0]; 3];
    }
    let latency = 1e-6 * 100f64.powf(random.unit());
    let bandwidth = 1e8 * 100f64.powf(random.unit());
    let spread = 50f64.powf(random.unit());
    let clusters = (2 + random.below(8)).min(p);
    let mut text = format!("[network]\nlatency = {latency:?}\nbandwidth = {bandwidth:?}\n");
    match network {
        "half duplex" => text += "duplex = false\n",
        "bus" => text += "topology = \"bus\"\n",
        "star" => text += "topology = \"star\"\ncentre = \"p0\"\n",
        "clusters" => {
            for c in 0..clusters {
                let inside = 10.0 * bandwidth;
                text +=
                    &format!("[[network.link]]\nbetween = [\"c{c}\", \"c{c}\"]\nbandwidth = {inside:?}\n");
            }
        }
        "uplinks" => {
            for c in 0..clusters {
                let shared = 4.0 * bandwidth;
                text += &format!("[[network.uplink]]\nof = \"c{c}\"\nbandwidth = {shared:?}\n");
            }
        }
        _ => {}
    }
    for i in 0..p {
        let speed = 2e9 * spread.powf(random.unit());
        text += &format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{speed} flop/s\"\n");
        if ["clusters", "uplinks"].contains(&network) {
            text += &format!("cluster = \"c{}\"\n", i % clusters);
        }
    }
    let platform = parse_platform(&text, "example")?;
    let machine = Machine::from_platform(platform, WorkUnit::MultiplyAdd)?;
    Ok(Case { network, machine, shape: Shape::new(sides[0], sides[1], sides[2], "example")? })
}

fn main() -> Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let count = numbers.first().map_or(100, |&n| n);
    let seed = numbers.get(1).map_or(1, |&n| n);
    let mut ratios = Vec::new();
    println!("number | p | network | m x k x n | method, flow | forecast s | planning s | of its limit");
    let first = numbers.get(2).map_or(0, |&n| n);
    let processors = [(3, 16), (4, 1000)].map(|(at, default)| numbers.get(at).map_or(default, |&n| n) as f64);
    for number in first..first + count {
        let case = case(&mut Random::new(seed * 1_000_003 + number), processors)?;
        let mut least = f64::INFINITY;
        let options = PlanOptions::open(BLOCK, 8);
        let mut best = None;
        for _ in 0..3 {
            let begin = Instant::now();
            best = plan_matmul(case.shape, &case.machine, &options)?.into_iter().next();
            least = least.min(begin.elapsed().as_secs_f64());
            if least > LONG {
                break;
            }
        }
        let best = best.expect("there is a plan");
        let forecast = best.plan.forecast.as_ref().map(|f| f.seconds);
        let limit = (0.01 * forecast.unwrap_or(0.0)).max(0.05);
        ratios.push(least / limit);
        let Shape { m, k, n, .. } = case.shape;
        println!(
            "{number} | {} | {} | {m} x {k} x {n} | {}, {:?} | {} | {least:.4} | {:.2}",
            case.machine.processors(),
            case.network,
            best.plan.method,
            best.order.flow,
            forecast.map_or("none".into(), |s| format!("{s:.9}")),
            least / limit
        );
    }
    let over = ratios.iter().filter(|r| **r > 1.5).count();
    let ratios = Sample::of(ratios);
    println!(
        "of the limit: median {:.2}, nine in ten {:.2}, most {:.2}; more than 1.5: {over} of {count}",
        ratios.median(),
        ratios.at(0.9),
        ratios.most()
    );
    Ok(())
}
