//! Sources of speeds: measured models, their cache, platform files; each file is read back by the next
//! command.

use super::Bench;
use super::bench::{TWO, whole};
use std::path::PathBuf;

fn cached(bench: &Bench) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(bench.cache().join("apportion"));
    let mut found: Vec<PathBuf> = entries.into_iter().flatten().map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn speeds_are_measured_once_and_kept() {
    let bench = Bench::new();
    bench.matrix("a.npy", &whole::<f64>(40, 30, 1));
    bench.matrix("b.npy", &whole::<f64>(30, 20, 2));
    let run = ["matmul", "a.npy", "b.npy", "-o", "c.npy", "--block", "32"];
    let first = bench.json(&run);
    assert_eq!(first["verified"], true);
    let files = cached(&bench);
    assert_eq!(files.len(), 1, "{files:?}");
    let models = apportion::model::read_models(&files[0]).unwrap();
    assert_eq!((models.kernel.as_str(), models.block()), ("gemm-f64", Some(32)));
    assert_eq!(models.models.len(), first["processors"].as_array().unwrap().len());

    // The marker in the cache shows that the file is read, not measured again; --remeasure replaces it.
    let mut marked = models.clone();
    marked.unit = "marked by a test".into();
    std::fs::write(&files[0], marked.to_json()).unwrap();
    bench.json(&run);
    assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), marked.to_json(), "the cache is used");
    bench.json(&[&run[..], &["--remeasure"]].concat());
    assert_eq!(cached(&bench), files);
    assert_eq!(
        apportion::model::read_models(&files[0]).unwrap().unit,
        models.unit,
        "--remeasure rewrites it"
    );

    // A damaged cache is replaced by a measurement; it is not an error.
    std::fs::write(&files[0], "{").unwrap();
    bench.json(&run);
    assert!(apportion::model::read_models(&files[0]).is_ok());
}

#[test]
fn measured_models_divide_work() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    let measure =
        ["measure", "--platform", "two.toml", "--sizes", "64,400", "--block", "16", "--max-seconds", "0.05"];
    bench.done(&[&measure[..], &["-o", "models.json"]].concat());
    let models = bench.value("models.json");
    assert_eq!((&models["format"], &models["version"]), (&"apportion-models".into(), &1.into()));
    assert_eq!((&models["kernel"], &models["parameters"]["block"]), (&"gemm-f64".into(), &16.0.into()));
    for (model, name) in models["models"].as_array().unwrap().iter().zip(["fast", "slow"]) {
        assert_eq!(model["processor"], name);
        let sizes: Vec<f64> =
            model["points"].as_array().unwrap().iter().map(|p| p["size"].as_f64().unwrap()).collect();
        assert_eq!(sizes, [64.0, 400.0]);
    }
    let plan = bench.json(&["partition", "--units", "1000", "--models", "models.json"]);
    assert_eq!(plan["processors"], serde_json::json!(["fast", "slow"]));
    assert_eq!(plan["shares"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).sum::<u64>(), 1000);
    let sources = ["--models", "models.json", "--platform", "two.toml"];
    bench.done(&[&["partition", "--shape", "60x60", "-o", "plan.json"][..], &sources].concat());
    let forecast = bench.json(&[&["simulate", "--plan", "plan.json"][..], &sources].concat());
    assert_eq!(forecast["processors"][0]["name"], "fast");
    bench.matrix("a.npy", &whole::<f64>(60, 60, 1));
    let report = bench.json(&["matmul", "a.npy", "a.npy", "--models", "models.json"]);
    assert_eq!(report["verified"], true);
    assert!(cached(&bench).is_empty(), "given models need no measuring");
}

#[test]
fn a_detected_platform_is_read_back() {
    let bench = Bench::new();
    bench.done(&["detect", "-o", "platform.toml"]);
    let platform = apportion::platform::read_platform(&bench.path("platform.toml")).unwrap();
    let speeds = vec!["2"; platform.len()].join(",");
    let plan =
        bench.json(&["partition", "--units", "100", "--platform", "platform.toml", "--speeds", &speeds]);
    assert_eq!(plan["processors"], serde_json::json!(platform.names()));
    bench.fails(2, &["partition", "--units", "100", "--platform", "platform.toml"]);
}

#[test]
fn every_shipped_platform_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../platforms");
    let mut folders = vec![PathBuf::from(folder)];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "toml") {
                apportion::platform::read_platform(&path).unwrap_or_else(|e| panic!("{e}"));
                read += 1;
            }
        }
    }
    assert!(read >= 3, "{read}");
}

#[test]
fn the_same_call_writes_the_same_bytes() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    for name in ["one", "two"] {
        let (plan, svg) = (format!("{name}.json"), format!("{name}.svg"));
        bench.done(&[
            "partition",
            "--shape",
            "70x50x60",
            "--platform",
            "two.toml",
            "-o",
            &plan,
            "--svg",
            &svg,
        ]);
    }
    assert_eq!(bench.text("one.json"), bench.text("two.json"));
    assert_eq!(bench.text("one.svg"), bench.text("two.svg"));
}
