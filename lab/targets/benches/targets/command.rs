//! The command as a user types it, beside the NumPy script that it replaces: on equal cores and beside
//! another program.

use super::Row;
use super::planning::measured;
use harness::median;
use harness::rivals::{Busy, binary, python, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rival: the whole of what a NumPy user would write.
const SCRIPT: &str = "import numpy, sys; numpy.save('n.npy', numpy.load('a.npy') @ numpy.load('b.npy'))";
const TURNS: usize = 5;
const PRODUCT: [&str; 7] = ["matmul", "a.npy", "b.npy", "-o", "c.npy", "--report", "r.json"];

pub fn rows(quick: bool) -> Vec<Row> {
    let Some(program) = binary() else {
        eprintln!("the whole command: no release binary (cargo build --release); its rows are left out");
        return Vec::new();
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    let at = place.path();
    let python = python("numpy", at);
    if python.is_none() {
        eprintln!(
            "the whole command: no NumPy (NUMPY_PYTHON names the Python that has it); its rows are left out"
        );
    }
    let mut rows = Vec::new();
    for n in [2000, 4000] {
        for name in ["a.npy", "b.npy"] {
            let size = n.to_string();
            run(at, &program, &["random", &size, &size, "-o", name, "--seed", "3"])
                .expect("apportion random");
        }
        // Speeds are measured once.
        run(at, &program, &PRODUCT).expect("apportion matmul");
        let beside = |python: &PathBuf| {
            median(
                (0..TURNS)
                    .filter_map(|_| Some(run(at, &program, &PRODUCT)? / run(at, python, &["-c", SCRIPT])?)),
            )
        };
        let mut row =
            |target: String, figure: f64, limit: f64| rows.push((target, figure, limit, figure <= limit));
        if let Some(python) = &python {
            row(format!("whole command, n = {n}, of the NumPy script's time"), beside(python), 1.05);
        }
        if n < 4000 {
            continue;
        }
        row(format!("verification, n = {n}: seconds"), verification(at, &program), 0.08);
        row(format!("memory, n = {n}, of the matrices'"), memory(at, &program, n), 1.1);
        let unequal: &[(&str, &str)] = if quick { &[("1.2", "7")] } else { &[("1.2", "7"), ("2", "0")] };
        for (cores, nice) in unequal {
            if let (Some(python), Some(_busy)) = (&python, Busy::second_core(nice)) {
                // What the other program takes is to be known, as it is after some runs beside it.
                run(at, &program, &PRODUCT).expect("apportion matmul");
                row(format!("the same, cores {cores}:1 by another program"), beside(python), 1.0);
            }
        }
    }
    rows
}

/// Seconds of verification in the median run.
fn verification(at: &Path, program: &Path) -> f64 {
    let once = |_| {
        run(at, program, &PRODUCT).expect("apportion matmul");
        let text = std::fs::read_to_string(at.join("r.json")).expect("the report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        report["verify_seconds"].as_f64().expect("verify_seconds")
    };
    median((0..TURNS).map(once))
}

/// The most bytes that a run holds, relative to those of A, B and C.
fn memory(at: &Path, program: &Path, n: u64) -> f64 {
    let most = measured(Command::new(program).args(PRODUCT).current_dir(at));
    most / (3 * n * n * size_of::<f64>() as u64) as f64
}
