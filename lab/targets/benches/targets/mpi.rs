//! Two ranks under Open MPI beside two threads: the same product, plan and kernel, every flow.

use super::Row;
use super::clock::median;
use super::planning::binary;
use std::path::Path;
use std::process::Command;

/// Turns of MPI and threads.
const TURNS: usize = 5;
const FLOWS: [&str; 4] = ["one-to-all", "ring", "broadcast", "bulk"];

pub fn rows(quick: bool) -> Vec<Row> {
    let (Some(program), Some(mpirun)) = (binary(), mpirun()) else {
        eprintln!(
            "MPI: Open MPI's mpirun or the release binary (cargo build --release) is missing; its rows are \
             left out"
        );
        return Vec::new();
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    let at = place.path();
    let processor =
        |i: usize| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"30 Gflop/s\"\ncores = [{i}]\n");
    std::fs::write(at.join("two.toml"), processor(0) + &processor(1)).expect("a writable directory");
    let mut rows = Vec::new();
    for n in if quick { vec![2000] } else { vec![2000, 4000] } {
        operand(&program, at, "a.npy", n);
        for (flow, overlap) in FLOWS.into_iter().flat_map(|flow| [(flow, false), (flow, true)]) {
            // The built-in kernel: no race, so that both have the same.
            let arguments = format!(
                "matmul a.npy a.npy --platform two.toml --method columns --reproducible --flow {flow} --json \
                 --quiet{} --engine",
                if overlap { " --overlap" } else { "" }
            );
            let by = |mut command: Command, engine| {
                seconds(command.args(arguments.split(' ')).arg(engine).current_dir(at))
            };
            let turn = || {
                let threads = by(Command::new(&program), "threads")?;
                let mut ranks = ranks(mpirun);
                ranks.arg(&program);
                Some(by(ranks, "mpi")? / threads)
            };
            let ratios: Option<Vec<f64>> = (0..TURNS).map(|_| turn()).collect();
            let with = if overlap { ", overlap" } else { "" };
            let target = format!("n = {n}, {flow}{with}, of the threads' time");
            match ratios.map(median) {
                Some(ratio) => rows.push((target, ratio, 1.1, ratio <= 1.1)),
                None => eprintln!("{target}: failed"),
            }
        }
    }
    rows
}

/// Open MPI's mpirun, by the first name that is one.
pub fn mpirun() -> Option<&'static str> {
    ["mpirun", "mpirun.openmpi"].into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"))
    })
}

/// Two ranks on this machine; the program and its arguments follow.
pub fn ranks(mpirun: &str) -> Command {
    let mut command = Command::new(mpirun);
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]);
    command
}

/// A square operand as a file.
pub fn operand(program: &Path, at: &Path, name: &str, n: u64) {
    let size = n.to_string();
    let mut command = Command::new(program);
    command.args(["random", &size, &size, "-o", name, "--seed", "3"]).current_dir(at);
    assert!(command.output().expect("the binary runs").status.success(), "apportion random");
}

/// The seconds of the product that a run reports: neither reading nor measuring. Says why if there are none.
pub fn seconds(command: &mut Command) -> Option<f64> {
    let output = command.env("OPENBLAS_NUM_THREADS", "1").output().ok()?;
    let report: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
    let seconds = report.and_then(|report| report["seconds"].as_f64());
    if seconds.is_none() {
        eprintln!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    seconds
}
