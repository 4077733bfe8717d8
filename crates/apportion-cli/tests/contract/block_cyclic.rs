//! A block-cyclic plan from the command line: written with its `repeat`, run and simulated from the file.

use super::bench::Bench;
use std::path::Path;

/// A file of NumPy's format, version 1.0: f64, C order.
fn write_npy(path: &Path, rows: usize, cols: usize) {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    header.push_str(&" ".repeat(117 - header.len()));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.as_bytes());
    (0..rows * cols).for_each(|i| bytes.extend(((i * 7 % 11) as f64 - 5.0).to_le_bytes()));
    std::fs::write(path, bytes).expect("the file is written");
}

#[test]
fn a_block_cyclic_plan_is_written_simulated_and_run() {
    let directory = Bench::new();
    let run = |line: &str| directory.json(line);
    let plan = run(
        "partition --shape 45x31x38 --speeds 3,2,1,1 --method columns --granularity 2 --repeat 8x6 -o plan.json",
    );
    assert_eq!(plan["repeat"], serde_json::json!([8, 6]));
    let shares: u64 = plan["shares"].as_array().expect("shares").iter().filter_map(|s| s.as_u64()).sum();
    assert_eq!(shares, 45 * 38);
    write_npy(&directory.join("a.npy"), 45, 31);
    write_npy(&directory.join("b.npy"), 31, 38);
    std::fs::write(
        directory.join("four.toml"),
        ["p0", "p1", "p2", "p3"]
            .map(|p| format!("[[processor]]\nname = \"{p}\"\nspeed = \"1 Gflop/s\"\n"))
            .concat(),
    )
    .expect("the platform is written");
    let forecast = run("simulate --plan plan.json --platform four.toml --block 8");
    // Two operations for each element of C and each of 31 pivots, at 1 Gflop/s and with a free network: the
    // largest share decides.
    let largest = plan["shares"].as_array().unwrap().iter().filter_map(|s| s.as_f64()).fold(0.0, f64::max);
    let by_hand = 2.0 * 31.0 * largest / 1e9;
    let seconds = forecast["seconds"].as_f64().expect("seconds");
    assert!((seconds / by_hand - 1.0).abs() < 1e-6, "{seconds} s, by hand {by_hand} s");
    let report = run("matmul a.npy b.npy --plan plan.json --platform four.toml --block 8");
    assert_eq!(report["verified"], true);
    assert_eq!(report["volume"], plan["metrics"]["volume"]);
}
