//! How much does repartitioning during a run recover when a processor becomes slower?
//!
//! `cargo bench -p targets --bench adaptive` multiplies 2,000 x 4,096 x 2,000 on two emulated processors of
//! which one turns three times slower half-way, with and without `--adaptive` in turn, and prints seconds
//! over those of an oracle that knew (medians of five): W seconds of CPU time, half of them at 1/8 + 1/8,
//! half at 1/8 + 1/24, are 5 W. It needs an otherwise idle machine.

use apportion::matrix::{Matrix, write_npy};
use apportion::output::OutputFile;
use apportion_testing::binary;
use harness::Sample;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const PLATFORM: &str = "[[processor]]\nname = \"steady\"\nslowdown = 8\n\
    [[processor]]\nname = \"tiring\"\nslowdown = 8\nslowdown_after = { work = 0.5, slowdown = 24 }\n";

const RUNS: usize = 5;

fn main() {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::write(place.path().join("turning.toml"), PLATFORM).expect("a small file");
    for (name, rows, cols) in [("a.npy", 2000, 4096), ("b.npy", 4096, 2000)] {
        let elements = (0..rows * cols).map(|i| ((i * 31) % 17) as f64 - 8.0).collect();
        let mut file = OutputFile::create(place.path().join(name)).expect("a file of 66 MB");
        write_npy(&mut file, &Matrix::<f64>::new(rows, cols, elements)).expect("a file of 66 MB");
        file.commit().expect("a file of 66 MB");
    }
    let mut rows: [Vec<Value>; 2] = Default::default();
    run(place.path(), &["--fresh"]);
    for _ in 0..RUNS {
        rows[0].push(run(place.path(), &[]));
        rows[1].push(run(place.path(), &["--adaptive"]));
    }
    for (name, reports) in ["plain", "adaptive"].iter().zip(&rows) {
        let ratios = Sample::of(reports.iter().map(over_oracle));
        let repartitions: Vec<usize> = reports.iter().map(repartitions).collect();
        println!(
            "{name:9} seconds / ideal of an oracle: median {:.3} ({:.3} to {:.3}), repartitions {repartitions:?}",
            ratios.median(),
            ratios.least(),
            ratios.most()
        );
    }
}

fn run(place: &Path, flags: &[&str]) -> Value {
    let product = ["matmul", "a.npy", "b.npy", "-o", "c.npy", "--platform", "turning.toml", "--block", "64"];
    let out = Command::new(binary())
        .args(product)
        .args(["--flow", "one-to-all", "--json", "--quiet"])
        .args(flags)
        .current_dir(place)
        .output()
        .expect("the binary starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("one JSON object")
}

fn over_oracle(report: &Value) -> f64 {
    let processors = report["processors"].as_array().expect("two processors");
    let cpu: f64 = processors.iter().map(|p| p["cpu_seconds"].as_f64().expect("CPU seconds")).sum();
    report["seconds"].as_f64().expect("seconds") / (5.0 * cpu)
}

fn repartitions(report: &Value) -> usize {
    report["adaptive"]["repartitions"].as_array().map_or(0, Vec::len)
}
