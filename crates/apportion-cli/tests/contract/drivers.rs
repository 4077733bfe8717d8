//! Drivers that fault, hang, or end the process that loads them: commands that name no device go on with one note.

use super::Bench;
use super::devices::compile;
use super::exports::installed;
use apportion::matrix::Matrix;
use apportion_testing::{Need, holds};
use serde_json::Value;
use std::process::Output;

/// Large enough for a product that looks for devices.
const SIDE: usize = 2_720;
const PRODUCT: &str = "matmul a.npy a.npy -o c.npy --semiring or-and";

/// A place with broken drivers of both interfaces, and a matrix.
fn place() -> Option<Bench> {
    let here = Bench::with_empty_cache();
    let cc = installed(Need::Compiler, &["cc", "gcc"], "gcc")?;
    compile(&here, cc, "broken_driver.c", "libOpenCL.so.1", "");
    compile(&here, cc, "broken_driver.c", "libcuda.so.1", "-DCUDA");
    here.matrix("a.npy", &Matrix::new(SIDE, SIDE, vec![1u8; SIDE * SIDE]));
    Some(here)
}

/// Runs a command among drivers that do this to the process that loads them.
fn run(here: &Bench, lie: &str, line: &str) -> Output {
    let mut command = here.command(line);
    command.env("LD_LIBRARY_PATH", here.path(".")).env("LIE", lie).env("LOADS", here.path("loads"));
    command.output().unwrap()
}

/// The lines on stderr that tell of a driver, of a command that succeeds.
fn notes(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    said.lines().filter(|line| line.contains(" driver ")).map(str::to_owned).collect()
}

fn loads(here: &Bench) -> usize {
    here.bytes("loads").len()
}

/// A product looks once: the next one loads no driver, whatever the first look has found. `detect` looks again.
#[test]
fn a_broken_driver_ends_no_command_that_names_no_device() {
    let Some(here) = place() else { return };
    for (lie, name, what) in [
        ("none", "", ""),
        ("opencl aborts", "OpenCL", "ends the process that loads it (signal: 6"),
        ("opencl exits", "OpenCL", "ends the process that loads it (exit status: 0)"),
        ("opencl faults", "OpenCL", "ends the process that loads it (signal: 11"),
        ("cuda aborts", "CUDA", "ends the process that loads it (signal: 6"),
        ("opencl hangs", "OpenCL", "does not list its devices within 10 s"),
    ] {
        let _ = std::fs::remove_dir_all(here.cache());
        here.write("loads", "");
        let said = notes(&run(&here, lie, PRODUCT));
        let wanted = format!("apportion: the {name} driver {what}");
        let is_one = |said: &[String]| match name {
            "" => said.is_empty(),
            _ => said.len() == 1 && said[0].starts_with(&wanted),
        };
        assert!(is_one(&said), "{lie}: {said:?}");
        assert_eq!(loads(&here), 2, "{lie}: each interface is looked at once");
        assert!(notes(&run(&here, lie, PRODUCT)).is_empty(), "{lie}");
        assert_eq!(loads(&here), 2, "{lie}: what was found is remembered");
        if lie.ends_with("hangs") {
            continue;
        }
        let said = notes(&run(&here, lie, "detect"));
        assert!(is_one(&said), "{lie}: {said:?}");
        assert_eq!(loads(&here), 4, "{lie}");
        let output = run(&here, lie, "doctor --json");
        assert!(notes(&output).is_empty(), "{lie}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let advice = found["advice"].as_array().unwrap();
        let faults: Vec<String> =
            advice.iter().map(|one| format!("apportion: {}", one["what"].as_str().unwrap())).collect();
        let faults: Vec<String> = faults.into_iter().filter(|what| what.contains(" driver ")).collect();
        assert!(is_one(&faults), "{lie}: {found}");
    }
}

/// A device that is named needs its driver, and a driver that has been mended is found.
#[test]
fn a_device_with_a_broken_driver_is_refused() {
    let Some(here) = place() else { return };
    here.write("gpu.toml", "[[processor]]\nname = \"gpu\"\nspeed = \"1 Gflop/s\"\ndevice = \"opencl:0\"\n");
    here.matrix("s.npy", &Matrix::new(8, 8, vec![1.0_f64; 64]));
    for line in [
        "matmul s.npy s.npy -o c.npy --platform gpu.toml",
        "measure --platform gpu.toml --sizes 4096",
        "factor s.npy --kind lu -o c.npy --platform gpu.toml",
    ] {
        let output = run(&here, "opencl faults", line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{line}: {said}");
        holds(&said, &["processor \"gpu\": the OpenCL driver ends the process", "signal: 11", "anew"]);
    }
    // The library is there now, but lists nothing.
    let output = run(&here, "none", "matmul s.npy s.npy -o c.npy --platform gpu.toml");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    holds(&said, &["`device = opencl:0`", "no OpenCL library"]);
}
