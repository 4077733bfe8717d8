//! Which plan wins on ten machines, and how near it is to what any plan could do: the table of
//! `docs/theory/choosing.md`.
//!
//! `cargo run --release -p targets --example ten_machines`

use apportion::error::Result;
use apportion::model::{Machine, WorkUnit};
use apportion::plan::Shape;
use apportion::platform::parse_platform;
use apportion::select::{Choice, PlanOptions, Sizing, plan_matmul};
use std::time::Instant;

/// The pivot block.
const BLOCK: u64 = 256;

/// A name, Gflop/s of each cluster's processors, and the network.
struct Example {
    name: &'static str,
    clusters: Vec<Vec<f64>>,
    network: &'static str,
    shape: [u64; 3],
}

fn machine(name: &'static str, clusters: &[&[f64]], network: &'static str) -> Example {
    let clusters = clusters.iter().map(|speeds| speeds.to_vec()).collect();
    Example { name, clusters, network, shape: [20_000; 3] }
}

fn machines() -> Vec<Example> {
    let equal = |speed: f64, count: usize| vec![speed; count];
    let uneven: Vec<f64> = (0..16).map(|i| 10.0 + 35.0 * f64::from(i) / 15.0).collect();
    let gpu: Vec<f64> = [vec![2000.0], equal(30.0, 8)].concat();
    vec![
        machine("8 equal (50 Gflop/s), 10 Gbit/s", &[&equal(50.0, 8)], "bandwidth = \"10 Gbit/s\"\n"),
        machine("16 uneven (10-45 Gflop/s), 1 Gbit/s", &[&uneven], "bandwidth = \"1 Gbit/s\"\n"),
        machine(
            "90 and 10 Gflop/s, 1 Gbit/s, one transfer at a time",
            &[&[90.0, 10.0]],
            "bandwidth = \"1 Gbit/s\"\nduplex = false\n",
        ),
        machine("100, 20 and 10 Gflop/s, 1 Gbit/s", &[&[100.0, 20.0, 10.0]], "bandwidth = \"1 Gbit/s\"\n"),
        machine(
            "a GPU (2 Tflop/s) and 8 cores (30 Gflop/s), 100 Gbit/s",
            &[&gpu],
            "bandwidth = \"100 Gbit/s\"\n",
        ),
        machine(
            "2 nodes, and 2 behind 10 Mbit/s (10 Gflop/s each), 1 Gbit/s",
            &[&[10.0, 10.0], &[10.0], &[10.0]],
            "bandwidth = \"1 Gbit/s\"\n[[network.uplink]]\nof = \"c1\"\nbandwidth = \"10 Mbit/s\"\n\
             [[network.uplink]]\nof = \"c2\"\nbandwidth = \"10 Mbit/s\"\n",
        ),
        machine(
            "2 clusters of 4 (50 Gflop/s), 1 Gbit/s, one shared link of 100 Mbit/s",
            &[&equal(50.0, 4), &equal(50.0, 4)],
            "bandwidth = \"1 Gbit/s\"\n[[network.link]]\nbetween = [\"c0\", \"c1\"]\nbandwidth = \"100 Mbit/s\"\n\
             shared = true\n",
        ),
        machine(
            "2 clusters of 4 (100 and 25 Gflop/s), 10 Gbit/s, one shared link of 2 Gbit/s",
            &[&equal(100.0, 4), &equal(25.0, 4)],
            "bandwidth = \"10 Gbit/s\"\n[[network.link]]\nbetween = [\"c0\", \"c1\"]\nbandwidth = \"2 Gbit/s\"\n\
             shared = true\n",
        ),
        machine(
            "8 workstations (2 Gflop/s) on one bus, 100 Mbit/s",
            &[&equal(2.0, 8)],
            "bandwidth = \"100 Mbit/s\"\ntopology = \"bus\"\n",
        ),
        Example {
            shape: [2048, 65_536, 2048],
            ..machine(
                "8 equal (50 Gflop/s), 1 Gbit/s, 2048 x 65536 x 2048",
                &[&equal(50.0, 8)],
                "bandwidth = \"1 Gbit/s\"\n",
            )
        },
    ]
}

fn text_of(machine: &Example) -> String {
    let mut text = String::new();
    for (c, speeds) in machine.clusters.iter().enumerate() {
        for (i, speed) in speeds.iter().enumerate() {
            text += &format!(
                "[[processor]]\nname = \"c{c}n{i}\"\ncluster = \"c{c}\"\nspeed = \"{speed} Gflop/s\"\n"
            );
        }
    }
    text + "[network]\nlatency = \"20 us\"\n" + machine.network
}

/// What stays out, and what that saves.
fn out(choice: &Choice) -> String {
    choice.left_out.as_ref().map_or(String::from("none"), |out| {
        format!("{}, which would add {:.3} s", out.ranks.len(), out.seconds)
    })
}

fn main() -> Result<()> {
    println!("machine | winner | forecast s | plain s | over bound | stay out | planned in ms");
    println!("--- | --- | --- | --- | --- | --- | ---");
    for machine in machines() {
        let Example { name, shape: [m, k, n], .. } = machine;
        let platform = parse_platform(&text_of(&machine), name)?;
        let machine = Machine::from_platform(platform, WorkUnit::MultiplyAdd)?;
        let shape = Shape::new(m, k, n, "ten machines")?;
        let open = PlanOptions { inner_cuts: true, ..PlanOptions::open(BLOCK, 8) };
        let plain = PlanOptions {
            keep_all: true,
            inner_cuts: false,
            sizing: Sizing::Proportional,
            ..PlanOptions::open(BLOCK, 8)
        };
        let begun = Instant::now();
        let best = plan_matmul(shape, &machine, &open)?.remove(0);
        let took = begun.elapsed().as_secs_f64() * 1e3;
        let plain = plan_matmul(shape, &machine, &plain)?.remove(0);
        println!(
            "{} | {}, {} | {:.3} | {:.3} | {} | {} | {took:.0}",
            name,
            best.plan.method,
            best.order,
            best.rank.unwrap_or(f64::NAN),
            plain.rank.unwrap_or(f64::NAN),
            best.plan.metrics.forecast_over_bound.map_or("-".into(), |ratio| format!("{ratio:.3}")),
            out(&best),
        );
    }
    Ok(())
}
