//! Plans against platforms, and plans of any size.

use super::bench::{Bench, TWO};
use serde_json::json;

const PLAN: &str = r#"{"format": "apportion-plan", "version": 1, "method": "rows",
    "problem": {"kind": "matmul", "m": 10, "k": 20, "n": 30}, "processors": ["fast", "slow"],
    "shares": [270, 30], "layout": [{"owner": 0, "rows": [0, 9], "cols": [0, 30]},
    {"owner": 1, "rows": [9, 10], "cols": [0, 30]}]}"#;

fn bench() -> Bench {
    let here = Bench::new();
    here.write("two.toml", TWO);
    here.write("plan.json", PLAN);
    here
}

/// A long inner dimension or many small rectangles: refused in one line before memory is taken, or simulated
/// by the flows that can.
#[test]
#[ignore = "slow"]
fn plans_too_large_to_simulate() {
    let here = bench();
    let long = PLAN.replace("\"k\": 20", "\"k\": 1000000000000");
    here.write("plan.json", long);
    here.done("simulate --plan plan.json --platform two.toml --block 1048576");

    let side = 300;
    let cell = |i: u64, j: u64| json!({"owner": (i + j) % 2, "rows": [i, i + 1], "cols": [j, j + 1]});
    let cells: Vec<_> = (0..side).flat_map(|i| (0..side).map(move |j| cell(i, j))).collect();
    let plan = json!({"format": "apportion-plan", "version": 1, "method": "cells",
        "problem": {"kind": "matmul", "m": side, "k": side, "n": side}, "processors": ["fast", "slow"],
        "shares": [side * side / 2, side * side / 2], "layout": cells});
    here.write("cells.json", plan.to_string());
    here.done("simulate --plan cells.json --platform two.toml");
    let error = here.fails(1, "simulate --plan cells.json --platform two.toml --flow broadcast");
    assert!(error.contains("too many to sort"), "{error}");
}

/// The exported command carries the model, and a directory's name may have blanks.
#[test]
fn the_exported_command_follows_the_model() {
    let here = bench();
    for (tcp, option) in
        [("cm02", "model:CM02 --cfg=network/optim"), ("lv08", "model:LV08"), ("smpi", "model:SMPI")]
    {
        let line = format!("simulate --plan plan.json --platform two.toml --tcp {tcp} --export-simgrid to");
        let found = here.json(&line);
        let command = found["command"].as_str().unwrap().to_owned();
        assert!(command.contains(option) && !command.contains("crosstraffic"), "{command}");
    }
    let blank = ["simulate", "--plan", "plan.json", "--platform", "two.toml", "--export-simgrid", "a b"];
    let found = here.json(&blank[..]);
    let command = found["command"].as_str().unwrap().to_owned();
    assert!(
        command.starts_with("cd '") && command.contains("a b' && smpirun -np 2 -platform platform.xml"),
        "{command}"
    );
}

/// Traces of programs have no flow.
#[test]
fn traces_have_no_flow() {
    let here = bench();
    here.done("simulate --plan plan.json --platform two.toml --export-simgrid to");
    let text = here.done("simulate --traces to --platform two.toml");
    assert!(!text.contains("flow") && text.contains("forecast"), "{text}");
}
