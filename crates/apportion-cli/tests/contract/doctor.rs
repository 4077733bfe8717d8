//! `doctor`: what this machine has, in 80 columns and as JSON.

use super::Bench;
use apportion_testing::holds;
use serde_json::{Value, json};

#[test]
fn a_machine_is_described_in_eighty_columns() {
    let bench = Bench::new();
    for columns in ["", "200"] {
        let mut command = bench.command("doctor -q");
        if !columns.is_empty() {
            command.env("COLUMNS", columns);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        holds(
            &text,
            &["processor", "cores", "NUMA nodes", "CPU quota", "memory", "MPI", "BLAS", "devices", "clock"],
        );
        let long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{text}");
    }
    assert!(bench.names().is_empty());
}

#[test]
fn the_same_as_one_object() {
    let bench = Bench::new();
    let said = bench.json("doctor");
    let detected = bench.json("detect --by core");
    for field in ["model", "instructions", "quota_cores", "memory_limit_bytes"] {
        assert_eq!(said[field], detected[field], "{field}");
    }
    let cores =
        said["kinds"].as_array().unwrap().iter().map(|kind| kind["cores"].as_u64().unwrap()).sum::<u64>();
    let processors = detected["processors"].as_array().unwrap().len();
    assert_eq!(cores as usize, processors);
    assert_eq!(said["cpu_shares"].as_array().unwrap().len(), processors);
    for share in said["cpu_shares"].as_array().unwrap() {
        assert!(share["mean"].as_f64().is_some_and(|mean| mean > 0.0 && mean <= 1.0), "{share}");
    }
    let clock = &said["clock"];
    let quantile = |field: &str| clock[field].as_f64().unwrap();
    assert!(
        quantile("low") <= 1.0 && quantile("high") >= 1.0 && quantile("resolution_seconds") > 0.0,
        "{clock}"
    );
    // What is missing has a remedy, and what is there is not missing.
    let advice = said["advice"].as_array().unwrap();
    assert!(
        advice.iter().all(|one| one["remedy"].as_str().is_some_and(|text| !text.is_empty())),
        "{advice:?}"
    );
    let lacks = |word: &str| advice.iter().any(|one| one["what"].as_str().unwrap().contains(word));
    for (field, word) in [("mpi", "no MPI library"), ("blas", "no BLAS")] {
        assert_eq!(said[field].as_array().unwrap().is_empty(), lacks(word), "{field}");
    }
    assert_eq!(said["devices"] == Value::Null, lacks("no OpenCL library"));
}

/// A library that does not exist is not found, and one that is no MPI library is left out.
#[cfg(target_os = "linux")]
#[test]
fn a_named_library_is_looked_at() {
    let bench = Bench::new();
    bench.write("libodd.so", "no library");
    let mut command = bench.command("doctor --json");
    let output = command.env("APPORTION_MPI", bench.path("libodd.so")).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let odd = |one: &Value| one["library"].as_str().is_some_and(|file| file.contains("libodd"));
    assert!(!said["mpi"].as_array().unwrap().iter().any(odd), "{said}");
    // Without any program on PATH there is no launcher, and no package manager to name.
    let mut command = bench.command("doctor --json");
    let output = command.env("PATH", "").output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["launchers"], json!([]));
    for one in said["advice"].as_array().unwrap() {
        assert!(!one["remedy"].as_str().unwrap().starts_with("apt "), "{one}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Bench::new().command("doctor -q").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}
