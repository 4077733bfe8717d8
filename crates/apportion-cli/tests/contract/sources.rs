//! Sources of speeds: measured models, their cache, platform files; each file is read back by the next
//! command.

use super::Bench;
use super::bench::{TWO, whole};
use apportion::model::Models;
use serde_json::{Value, json};
use std::path::PathBuf;

fn cached(bench: &Bench) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(bench.cache().join("apportion"));
    let mut found: Vec<PathBuf> = entries.into_iter().flatten().map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn speeds_are_measured_once_and_kept() {
    let bench = Bench::with_empty_cache();
    bench.matrix("a.npy", &whole::<f64>(40, 30, 1));
    bench.matrix("b.npy", &whole::<f64>(30, 20, 2));
    let run = "matmul a.npy b.npy -o c.npy --block 32";
    let first = bench.json(run);
    assert_eq!(first["verified"], true);
    let files = cached(&bench);
    assert_eq!(files.len(), 1, "{files:?}");
    let remembered = || -> Value { serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap() };
    let kept = remembered();
    let models = Models::parse(&kept["models"].to_string(), "kept").unwrap();
    assert_eq!((models.kernel.as_str(), models.block()), ("gemm-f64", Some(32)));
    assert_eq!(models.models.len(), first["processors"].as_array().unwrap().len());

    // The marker in the cache shows that the file is read, not measured again; --remeasure replaces it.
    let marked = |field: &str, value: Value| {
        let mut marked = remembered();
        marked["models"]["unit"] = "marked by a test".into();
        if !field.is_empty() {
            marked["conditions"][field] = value;
        }
        std::fs::write(&files[0], marked.to_string()).unwrap();
    };
    marked("", Value::Null);
    bench.json(run);
    assert_eq!(remembered()["models"]["unit"], "marked by a test", "the cache is used");
    bench.json(&format!("{run} --remeasure"));
    assert_eq!(cached(&bench), files);
    assert_eq!(remembered()["models"]["unit"], models.unit, "--remeasure rewrites it");

    // Speeds of other conditions, and a damaged cache, are replaced by a measurement; neither is an error.
    for (field, value) in [("release", json!("0.1")), ("capacities", json!([])), ("quota", json!(0.5))] {
        marked(field, value);
        bench.json(run);
        assert_eq!(remembered()["models"]["unit"], models.unit, "{field}");
    }
    for damaged in ["{", "{}", "null", "{\"models\": 3}"] {
        std::fs::write(&files[0], damaged).unwrap();
        bench.json(run);
        assert_eq!(remembered()["models"]["unit"], models.unit, "{damaged}");
    }
}

/// Speeds that are three times too high are found out by the first long run, and replaced.
#[test]
#[ignore = "slow"]
fn a_run_corrects_the_speeds_that_it_was_planned_by() {
    let bench = Bench::with_empty_cache();
    let size = 1200;
    bench.matrix("a.npy", &whole::<f64>(size, size, 1));
    let run = ["matmul", "a.npy", "a.npy", "-o", "c.npy", "--platform", "two.toml", "--reproducible"];
    bench.write(
        "two.toml",
        "name = \"two\"\n[[processor]]\nname = \"fast\"\n[[processor]]\nname = \"slow\"\nslowdown = 4\n",
    );
    bench.json(&run);
    let [file] = &cached(&bench)[..] else { panic!("one file") };
    let read = || -> Value { serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap() };
    let mut kept = read();
    for model in kept["models"]["models"].as_array_mut().unwrap() {
        for point in model["points"].as_array_mut().unwrap() {
            point["seconds"] = (point["seconds"].as_f64().unwrap() / 3.0).into();
        }
    }
    std::fs::write(file, kept.to_string()).unwrap();
    let told = bench.run(&run);
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("slower than measured before"), "{told}");
    let seconds = |value: &Value| value["models"]["models"][0]["points"][3]["seconds"].as_f64().unwrap();
    let ratio = seconds(&read()) / seconds(&kept);
    assert!((1.5..6.0).contains(&ratio), "about three times as long: {ratio}");
}

#[test]
fn measured_models_divide_work() {
    let bench = Bench::with_empty_cache();
    bench.write("two.toml", TWO);
    let measure = "measure --platform two.toml --sizes 64,400 --block 16 --max-seconds 0.05";
    bench.done(&format!("{measure} -o models.json"));
    let models = bench.value("models.json");
    assert_eq!((&models["format"], &models["version"]), (&"apportion-models".into(), &1.into()));
    assert_eq!((&models["kernel"], &models["parameters"]["block"]), (&"gemm-f64".into(), &16.0.into()));
    for (model, name) in models["models"].as_array().unwrap().iter().zip(["fast", "slow"]) {
        assert_eq!(model["processor"], name);
        let sizes: Vec<f64> =
            model["points"].as_array().unwrap().iter().map(|p| p["size"].as_f64().unwrap()).collect();
        assert_eq!(sizes, [64.0, 400.0]);
    }
    let plan = bench.json("partition --units 1000 --models models.json");
    assert_eq!(plan["processors"], serde_json::json!(["fast", "slow"]));
    assert_eq!(plan["shares"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).sum::<u64>(), 1000);
    let sources = "--models models.json --platform two.toml";
    bench.done(&format!("partition --shape 60x60 -o plan.json {sources}"));
    let forecast = bench.json(&format!("simulate --plan plan.json {sources}"));
    assert_eq!(forecast["processors"][0]["name"], "fast");
    bench.matrix("a.npy", &whole::<f64>(60, 60, 1));
    let report = bench.json("matmul a.npy a.npy --models models.json");
    assert_eq!(report["verified"], true);
    assert!(cached(&bench).is_empty(), "given models need no measuring");
}

#[test]
fn a_detected_platform_is_read_back() {
    let bench = Bench::with_empty_cache();
    bench.done("detect -o platform.toml");
    let platform = apportion::platform::read_platform(&bench.path("platform.toml")).unwrap();
    let speeds = vec!["2"; platform.len()].join(",");
    let plan = bench.json(&format!("partition --units 100 --platform platform.toml --speeds {speeds}"));
    assert_eq!(plan["processors"], serde_json::json!(platform.names()));
    bench.fails(2, "partition --units 100 --platform platform.toml");
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
    let bench = Bench::with_empty_cache();
    bench.write("two.toml", TWO);
    for name in ["one", "two"] {
        let (plan, svg) = (format!("{name}.json"), format!("{name}.svg"));
        bench.done(&format!("partition --shape 70x50x60 --platform two.toml -o {plan} --svg {svg}"));
    }
    assert_eq!(bench.text("one.json"), bench.text("two.json"));
    assert_eq!(bench.text("one.svg"), bench.text("two.svg"));
}

/// What a race found for each processor is remembered, and runs; a table of other length is not believed.
#[test]
#[ignore = "slow"]
fn processors_keep_kernels_of_their_own() {
    let bench = Bench::with_empty_cache();
    let size = 1720;
    bench.matrix("a.npy", &whole::<f64>(size, size, 1));
    bench.write("two.toml", TWO);
    let run = "matmul a.npy a.npy -o c.npy --platform two.toml";
    bench.json(run);
    let path = cached(&bench).into_iter().find(|path| path.to_string_lossy().contains("fastest")).unwrap();
    let mut race: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(race["by_processor"].as_array().unwrap().len(), 2, "{race}");
    let Some(blas) = race["flops"].as_object().unwrap().keys().find(|name| *name != "gemm-f64").cloned()
    else {
        return;
    };
    race["by_processor"] = json!(["gemm-f64", blas]);
    std::fs::write(&path, race.to_string()).unwrap();
    let mixed = bench.json(run);
    assert_eq!((&mixed["kernel"]["name"], &mixed["verified"]), (&json!("gemm-f64-mixed"), &json!(true)));
    assert_eq!(mixed["kernel"]["by_processor"][1]["name"], json!(blas));
    race["by_processor"] = json!(["gemm-f64"]);
    std::fs::write(&path, race.to_string()).unwrap();
    bench.json(run);
    let again: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(again["by_processor"].as_array().unwrap().len(), 2, "it races again");
}
