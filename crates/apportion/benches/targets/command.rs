//! The command as a user types it, beside the NumPy script that it replaces.

use super::Row;
use super::clock::median;
use super::planning::binary;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The rival: the whole of what a NumPy user would write.
const SCRIPT: &str = "import numpy, sys; numpy.save('n.npy', numpy.load('a.npy') @ numpy.load('b.npy'))";

pub fn rows(quick: bool) -> Vec<Row> {
    let Some(program) = binary() else {
        eprintln!("the whole command: no release binary (cargo build --release); its rows are left out");
        return Vec::new();
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    let at = place.path();
    let mut rows = Vec::new();
    for n in if quick { vec![2000] } else { vec![2000, 4000] } {
        for name in ["a.npy", "b.npy"] {
            let size = n.to_string();
            run(at, &program, &["random", &size, &size, "-o", name, "--seed", "3"])
                .expect("apportion random");
        }
        let product = ["matmul", "a.npy", "b.npy", "-o", "c.npy", "--report", "r.json"];
        // Speeds are measured once.
        run(at, &program, &product).expect("apportion matmul");
        beside_numpy(at, &program, (n, &product), &mut rows);
        around(at, n, &mut rows);
    }
    rows
}

fn beside_numpy(at: &Path, program: &Path, (n, product): (u64, &[&str]), rows: &mut Vec<Row>) {
    let python = std::env::var_os("NUMPY_PYTHON").map_or("python3".into(), PathBuf::from);
    let rival = || run(at, &python, &["-c", SCRIPT]);
    if rival().is_none() {
        eprintln!(
            "the whole command: no NumPy (NUMPY_PYTHON names the Python that has it); its rows are left out"
        );
        return;
    }
    let turn = || Some(run(at, program, product)? / rival()?);
    let ratio = median((0..5).filter_map(|_| turn()).collect());
    rows.push((format!("whole command, n = {n}, of the NumPy script's time"), ratio, 1.05, ratio <= 1.05));
}

/// What the last run's report says of verification and memory.
fn around(at: &Path, n: u64, rows: &mut Vec<Row>) {
    let text = std::fs::read_to_string(at.join("r.json")).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let seconds = report["verify_seconds"].as_f64().expect("verify_seconds");
    // The target is for n = 4,000; the work is quadratic.
    let limit = 0.08 * (n as f64 / 4000.0).powi(2);
    rows.push((format!("verification, n = {n}: seconds"), seconds, limit, seconds <= limit));
}

/// Wall seconds of a command that succeeds.
fn run(at: &Path, program: &Path, arguments: &[&str]) -> Option<f64> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(at).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    command.status().is_ok_and(|status| status.success()).then(|| start.elapsed().as_secs_f64())
}
