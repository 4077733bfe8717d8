//! Two ranks under Open MPI beside two threads: the same product, plan and kernel, every flow. And beside
//! ScaLAPACK's `pdgemm` on the same ranks.

use super::Row;
use harness::median;
use harness::rivals::scalapack_rank::Routine;
use harness::rivals::{binary, mpirun, ranks, scalapack, seconds};
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

/// The same product beside ScaLAPACK's.
pub fn beside_scalapack(quick: bool) -> Vec<Row> {
    let product = ["matmul", "a.npy", "b.npy", "--remeasure"];
    let make = |program: &Path, at: &Path, n: u64| {
        operand(program, at, "a.npy", n);
        operand(program, at, "b.npy", n);
    };
    scalapack::rows(if quick { &[2000] } else { &[2000, 4000] }, Routine::Pdgemm, &product, make, [1.0, 1.0])
}

/// A square operand as a file.
fn operand(program: &Path, at: &Path, name: &str, n: u64) {
    let size = n.to_string();
    let mut command = Command::new(program);
    command.args(["random", &size, &size, "-o", name, "--seed", "3"]).current_dir(at);
    assert!(command.output().expect("the binary runs").status.success(), "apportion random");
}
