//! `measure --units`, `--shape` and `--carry-over`: emulated processors are sampled, so nothing is timed.

use super::bench::Bench;
use serde_json::Value;

const PAGING: &str = "[[processor]]\nname = \"a\"\nemulated = \"peak 2e9, knee 1e5 0.8, cliff 4e6 0.05\"\n\
    [[processor]]\nname = \"b\"\nemulated = \"peak 1e9, knee 3e5 0.7, cliff 6e6 0.1\"\n\
    [[processor]]\nname = \"c\"\nemulated = \"peak 4e8, knee 2e5 0.6, cliff 2e6 0.02\"\n";

/// Seconds of all points of a models file.
fn seconds(models: &Value) -> f64 {
    let points = |model: &Value| model["points"].as_array().unwrap().clone();
    let models = models["models"].as_array().unwrap();
    models.iter().flat_map(points).map(|point| point["seconds"].as_f64().unwrap()).sum()
}

fn shares(here: &Bench, line: &str) -> Vec<f64> {
    let plan = here.json(line);
    plan["shares"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect()
}

#[test]
fn a_measurement_for_one_division_is_short_and_its_shares_are_good() {
    let here = Bench::new();
    here.write("paging.toml", PAGING);
    for units in [2_000_000.0, 5_000_000.0] {
        let few = here.json(&format!("measure --platform paging.toml --units {units} -o few.json"));
        let range = format!("--smallest {} --largest {units}", units / 1e3);
        let many = here.json(&format!("measure --platform paging.toml {range} --adaptive -o many.json"));
        assert!(3.0 * seconds(&few) < seconds(&many), "{} against {}", seconds(&few), seconds(&many));
        let ours = shares(&here, &format!("partition --units {units} --models few.json"));
        let truth = shares(&here, &format!("partition --units {units} --platform paging.toml"));
        for (x, y) in ours.iter().zip(&truth) {
            assert!((x - y).abs() <= 0.02 * units, "{ours:?} {truth:?}");
        }
    }
    // A shape is the number of C's elements.
    let square = here.json("measure --platform paging.toml --shape 1000x2000");
    assert_eq!(square["models"], here.json("measure --platform paging.toml --units 2M")["models"]);
    let rough = here.json("measure --platform paging.toml --units 5M --accuracy 0.5");
    let fine = here.json("measure --platform paging.toml --units 5M --accuracy 0.01");
    assert!(seconds(&rough) < seconds(&fine));
}

#[test]
fn curves_are_carried_over_by_one_point() {
    let here = Bench::new();
    here.write("paging.toml", PAGING);
    here.write("twice.toml", PAGING.replace("peak 2e9", "peak 4e9").replace("peak 4e8", "peak 6e8"));
    here.done("measure --platform paging.toml --smallest 1e4 --largest 1e7 --adaptive -o known.json");
    let carried =
        here.json("measure --platform twice.toml --carry-over known.json --units 5M -o carried.json");
    for model in carried["models"].as_array().unwrap() {
        let points = model["points"].as_array().unwrap();
        let known = here.value("known.json");
        let known = known["models"].as_array().unwrap().iter().find(|m| m["processor"] == model["processor"]);
        assert!(points.len() <= known.unwrap()["points"].as_array().unwrap().len() + 1);
    }
    let ours = shares(&here, "partition --units 5M --models carried.json");
    let truth = shares(&here, "partition --units 5M --platform twice.toml");
    for (x, y) in ours.iter().zip(&truth) {
        assert!((x - y).abs() <= 0.02 * 5e6, "{ours:?} {truth:?}");
    }
    // Without units: the middle of each curve.
    here.done("measure --platform twice.toml --carry-over known.json -o middle.json");
    assert!(here.has("middle.json"));
}

#[cfg(unix)]
#[test]
fn kernels_and_programs_are_measured_for_a_division_too() {
    let here = Bench::new();
    let quick = "--max-repetitions 1 --max-seconds 0.01";
    let double = here.json(&format!(
        "measure --processors 2 --kernel gemm-f64 --block 8 --shape 64x64 --points 3 {quick} -o f64.json"
    ));
    assert_eq!(double["kernel"], "gemm-f64");
    let single = here.json(&format!(
        "measure --processors 2 --kernel gemm-f32 --block 8 --carry-over f64.json --units 4096 {quick}"
    ));
    assert_eq!(single["kernel"], "gemm-f32");
    for (old, new) in double["models"].as_array().unwrap().iter().zip(single["models"].as_array().unwrap()) {
        let repetitions = |point: &Value| point["repetitions"].as_u64().unwrap();
        let measured =
            new["points"].as_array().unwrap().iter().filter(|point| repetitions(point) > 0).count();
        assert_eq!(measured, 1, "{new}");
        // Twice as many elements of half the size: the first carried point.
        let first = |model: &Value| model["points"][0]["size"].as_f64().unwrap();
        assert!(first(new) <= 2.0 * first(old));
    }
    here.program("work", "#!/bin/sh\necho $APPORTION_SIZE >> sizes\necho 0.$1\n");
    let line = "measure --processors 2 --units 1000 --seconds-from stdout --points 4 --max-repetitions 1";
    let alone = here.json(&format!("{line} --alone --command './work {{size}}'"));
    for model in alone["models"].as_array().unwrap() {
        assert!((1..=4).contains(&model["points"].as_array().unwrap().len()));
    }
    assert!(here.text("sizes").lines().count() <= 16);
    let wrong = here.fails(2, "measure --processors 2 --kernel max-plus-f32 --carry-over f64.json");
    assert!(wrong.contains("f64.json: kernel: the curves are of \"gemm-f64\""), "{wrong}");
    for flags in [
        "--units 10 --sizes 4,5",
        "--units 10 --shape 4x4",
        "--units 10 --adaptive",
        "--units 0",
        "--carry-over f64.json --points 3",
        "--carry-over f64.json --command ./work",
        "--accuracy 0.1",
    ] {
        here.fails(2, &format!("measure --processors 2 {flags}"));
    }
}
