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
    here.write("other.toml", TWO.replace("\"fast\"", "\"a\"").replace("\"slow\"", "\"b\""));
    here.write("plan.json", PLAN);
    here
}

/// A plan is for the processors that it names, also if the platform has as many.
#[test]
fn a_plan_for_other_processors_is_refused() {
    let here = bench();
    here.matrix("A.npy", &super::bench::whole::<f64>(10, 20, 1));
    here.matrix("B.npy", &super::bench::whole::<f64>(20, 30, 2));
    for command in [
        "simulate --plan plan.json --platform other.toml",
        "arrange --plan plan.json --platform other.toml",
        "matmul A.npy B.npy --plan plan.json --platform other.toml",
    ] {
        let error = here.fails(2, command);
        assert!(error.contains("lacks \"fast\" and 1 more of the plan's 2 processors"), "{error}");
        here.done(&command.replace("other", "two"));
    }
}

#[test]
fn a_processor_listed_twice_is_refused() {
    let here = bench();
    let twice = PLAN.replace("\"fast\", \"slow\"", "\"fast\", \"fast\"");
    here.write("plan.json", twice);
    for command in ["simulate", "arrange"] {
        let error = here.fails(2, &format!("{command} --plan plan.json --platform two.toml"));
        assert!(error.contains("plan.json: processors: \"fast\" is listed twice"), "{error}");
    }
}

/// Pictures are SVG: another format's name is refused before the work.
#[test]
fn a_picture_of_another_format_is_refused() {
    let here = bench();
    for command in [
        "simulate --plan plan.json --platform two.toml --trace x.png",
        "simulate --shape 20x20 --platform two.toml --sweep ratio=1..3 --svg x.png",
        "arrange --plan plan.json --platform two.toml --svg x.PNG",
        "partition --shape 10x10 --speeds 1,2 --svg x.pdf",
        "plot --platform two.toml --svg x.jpg",
        "matmul A.npy B.npy --svg x.png",
        "matmul A.npy B.npy --trace x.png",
    ] {
        let error = here.fails(2, command);
        assert!(error.contains("use a name that ends in .svg"), "{error}");
    }
    here.done("simulate --plan plan.json --platform two.toml --trace x.svg");
}

/// A long inner dimension or many small rectangles: refused in one line before memory is taken, or simulated
/// by the flows that can.
#[test]
#[ignore = "slow"]
fn plans_too_large_to_simulate() {
    let here = bench();
    let long = PLAN.replace("\"k\": 20", "\"k\": 1000000000000");
    here.write("plan.json", long);
    let error = here.fails(1, "simulate --plan plan.json --platform two.toml");
    assert!(error.contains("too many to simulate") && error.contains("--block"), "{error}");
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

    let repeated = PLAN
        .replace("\"m\": 10, \"k\": 20, \"n\": 30", "\"m\": 10000, \"k\": 10000, \"n\": 10000")
        .replace("[270, 30]", "[50000000, 50000000], \"repeat\": [2, 2]")
        .replace("[0, 9], \"cols\": [0, 30]", "[0, 1], \"cols\": [0, 1]")
        .replace(
            "[9, 10], \"cols\": [0, 30]}",
            "[0, 1], \"cols\": [1, 2]}, {\"owner\": 1, \"rows\": [1, 2], \
                  \"cols\": [0, 1]}, {\"owner\": 0, \"rows\": [1, 2], \"cols\": [1, 2]}",
        );
    here.write("repeated.json", repeated);
    let error = here.fails(1, "simulate --plan repeated.json --platform two.toml");
    assert!(error.contains("rectangles") && error.contains("repeat a larger block"), "{error}");
}

/// Without --sweep, a shape is not a plan: one line, whatever else is asked for.
#[test]
fn a_shape_without_a_sweep_is_refused() {
    let here = bench();
    for more in ["", "--trace x.json", "--explain 0", "--export-simgrid to"] {
        here.fails(2, &format!("simulate --platform two.toml --shape 20x20 {more}"));
    }
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

/// Times beyond the range of numbers are an error, not `null`.
#[test]
fn endless_times_are_refused() {
    let here = bench();
    here.done("simulate --plan plan.json --platform two.toml --export-simgrid to");
    here.write("slow.toml", TWO.replace("9 Gflop/s", "1e-308 flop/s"));
    let error = here.fails(2, "simulate --traces to --platform slow.toml");
    assert!(error.contains("1e-308 is not between"), "{error}");
}

/// Traces of programs have no flow.
#[test]
fn traces_have_no_flow() {
    let here = bench();
    here.done("simulate --plan plan.json --platform two.toml --export-simgrid to");
    let text = here.done("simulate --traces to --platform two.toml");
    assert!(!text.contains("flow") && text.contains("forecast"), "{text}");
}
