//! Contract of `partition --units`: methods, limits, bands, energy, clusters, and errors.

use super::bench::Bench;
use serde_json::{Value, json};
use std::path::Path;

/// A models file: for each processor its points.
fn models(directory: &Path, points: &[(&str, Value)]) {
    let models: Vec<Value> =
        points.iter().map(|(p, points)| json!({"processor": p, "points": points})).collect();
    let file =
        json!({"format": "apportion-models", "version": 1, "kernel": "k", "unit": "u", "models": models});
    std::fs::write(directory.join("models.json"), file.to_string()).expect("the file can be written");
}

#[test]
fn exact_takes_uneven_loads_where_they_end_sooner() {
    let here = Bench::new();
    // Size 6 happens to be slow.
    let points = json!([{"size": 4, "seconds": 4}, {"size": 6, "seconds": 60}, {"size": 8, "seconds": 8}]);
    models(&here, &[("a", points.clone()), ("b", points)]);
    let plan = here.json("partition --units 12 --models models.json --method exact -o plan.json");
    assert_eq!((&plan["shares"], &plan["method"]), (&json!([8, 4]), &json!("exact")));
    assert_eq!(plan["forecast"]["seconds"], 8.0);
    let written: Value = serde_json::from_slice(&here.bytes("plan.json")).unwrap();
    assert_eq!(written, plan);
    let missing = here.fails(1, "partition --units 13 --models models.json --method exact");
    assert!(missing.contains("12"), "{missing}");
    // Any size: 13 = 9 + 4 by the models' interpolation.
    let any = here.json("partition --units 13 --models models.json --method exact --any-size");
    assert_eq!(any["shares"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).sum::<u64>(), 13);
    // Without measured sizes any whole share may be taken.
    assert_eq!(here.json("partition --units 10 --speeds 9,1 --method exact")["shares"], json!([9, 1]));
}

#[test]
fn limits_hold() {
    let here = Bench::new();
    let shares =
        |flags: &str| here.json(&format!("partition --units 1024 --speeds 9,1 {flags}"))["shares"].clone();
    assert_eq!(shares("--multiple-of 64"), json!([960, 64]));
    assert_eq!(shares("--max 800,1024"), json!([800, 224]));
    assert_eq!(shares("--min 300"), json!([724, 300]));
    assert_eq!(shares("--multiple-of 64,100 --method exact"), json!([1024, 0]));
}

#[test]
fn caps_of_models_hold() {
    let here = Bench::new();
    let file = r#"{"format": "apportion-models", "version": 1, "kernel": "k", "unit": "u", "models": [
        {"processor": "a", "max_size": 30, "points": [{"size": 10, "seconds": 1}]},
        {"processor": "b", "max_size": 50, "points": [{"size": 10, "seconds": 1}]}]}"#;
    here.write("models.json", file);
    assert_eq!(here.json("partition --units 80 --models models.json")["shares"], json!([30, 50]));
}

#[test]
fn robust_promises_less_in_the_worst_case_and_says_its_regret() {
    let here = Bench::new();
    models(
        &here,
        &[
            ("steady", json!([{"size": 100, "seconds": 1.0}])),
            ("moody", json!([{"size": 100, "seconds": 1.0, "low": 0.9, "high": 3.0}])),
        ],
    );
    let plan = here.json("partition --units 100 --models models.json --robust");
    assert_eq!((&plan["shares"], &plan["method"]), (&json!([75, 25]), &json!("robust")));
    let number = |field: &str| plan["robust"][field].as_f64().unwrap();
    assert!((number("worst_seconds") - 0.75).abs() < 1e-12);
    assert!((number("plain_worst_seconds") - 1.5).abs() < 1e-12);
    assert!((number("expected_seconds") - 0.75).abs() < 1e-12);
    assert!(number("regret") >= 1.0 && number("regret") < number("plain_regret"));
    let text = here.run("partition --units 100 --models models.json --robust");
    assert!(String::from_utf8(text.stdout).unwrap().contains("regret"));
}

#[test]
fn time_is_weighed_against_energy() {
    let here = Bench::new();
    let points = |t: f64, e: f64| json!([{"size": 1, "seconds": t, "energy": e}, {"size": 2, "seconds": 2.0 * t, "energy": 2.0 * e}]);
    models(&here, &[("quick", points(1.0, 9.0)), ("frugal", points(3.0, 1.0))]);
    let both = here.json("partition --units 2 --models models.json --objective both");
    let front: Vec<(f64, f64)> = both["front"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["seconds"].as_f64().unwrap(), t["joules"].as_f64().unwrap()))
        .collect();
    assert_eq!(front, [(2.0, 18.0), (3.0, 10.0), (6.0, 2.0)]);
    assert_eq!(both["shares"], json!([2, 0]), "the plan is the fastest");
    here.json("partition --units 2 --models models.json --objective energy -o plan.json");
    let plan: Value = serde_json::from_slice(&here.bytes("plan.json")).unwrap();
    assert_eq!(plan["shares"], json!([0, 2]), "the plan is the most frugal");
    assert!(plan.get("front").is_none(), "a plan file holds a plan");
    models(&here, &[("quick", json!([{"size": 1, "seconds": 1}]))]);
    let none = here.fails(2, "partition --units 1 --models models.json --objective both");
    assert!(none.contains("energy"), "{none}");
}

#[test]
fn clusters_first_is_as_good_as_flat() {
    let here = Bench::new();
    let mut platform = String::new();
    for (i, (speed, cluster)) in
        [(5.0, "north/old"), (1.5, "south"), (2.5, "north/new"), (7.0, "north/old")].iter().enumerate()
    {
        platform += &format!("[[processor]]\nname = \"p{i}\"\nspeed = {speed}\ncluster = \"{cluster}\"\n");
    }
    here.write("platform.toml", platform);
    let flat = here.json("partition --units 1001 --platform platform.toml");
    let plan = here.json("partition --units 1001 --platform platform.toml --hierarchical");
    assert_eq!(plan["forecast"]["seconds"], flat["forecast"]["seconds"]);
    let clusters = plan["clusters"].as_array().unwrap();
    let names: Vec<&str> = clusters.iter().map(|c| c["cluster"].as_str().unwrap()).collect();
    assert_eq!(names, ["north", "north/old", "south", "north/new"]);
    for cluster in clusters {
        let (units, flat) = (cluster["units"].as_u64().unwrap(), cluster["flat_units"].as_u64().unwrap());
        assert!(units.abs_diff(flat) <= 1, "{cluster}");
    }
    let ends = clusters[0]["units"].as_u64().unwrap() + clusters[2]["units"].as_u64().unwrap();
    assert_eq!(ends, 1001, "the top level divides everything");
}
