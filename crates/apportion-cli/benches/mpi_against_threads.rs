//! MPI on one host against threads: the same product by the same plan, in turns; prints the median of the
//! ratios of their seconds.
//!
//! `cargo bench --bench mpi_against_threads [-- SIDE [ROUNDS]]`; needs an mpirun. On a quiet machine it
//! should stay within 1.1.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|a| a.parse::<usize>().ok());
    let (side, rounds) = (numbers.next().unwrap_or(2000), numbers.next().unwrap_or(7));
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let dict = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({side}, {side}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.bytes());
    bytes.extend((0..side * side).flat_map(|i| ((i % 17) as f64 - 8.0).to_le_bytes()));
    std::fs::write(at("a.npy"), bytes).unwrap();
    let processor =
        |i: usize| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"30 Gflop/s\"\ncores = [{i}]\n");
    std::fs::write(at("two.toml"), processor(0) + &processor(1)).unwrap();
    let mpirun = ["mpirun", "mpirun.openmpi", "mpirun.mpich"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok());
    let Some(mpirun) = mpirun else {
        println!("no mpirun is installed: nothing to compare");
        return;
    };
    println!("{side} x {side} x {side}, f64, two processors, {rounds} rounds, {mpirun}");
    for flow in ["one-to-all", "one-to-all --overlap", "ring", "bulk"] {
        let arguments = format!(
            "matmul a.npy a.npy --platform two.toml --method columns --flow {flow} --json --quiet --engine"
        );
        let seconds = |under: bool| {
            let binary = env!("CARGO_BIN_EXE_apportion");
            let mut command = Command::new(if under { mpirun } else { binary });
            if under {
                command.args(["-n", "2", binary]);
                // Open MPI's own flags, as variables so that MPICH does not mind.
                command.env("OMPI_MCA_hwloc_base_binding_policy", "none");
                command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            }
            command.args(arguments.split(' ')).arg(if under { "mpi" } else { "threads" });
            let output = command.current_dir(directory.path() as &Path).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            report["seconds"].as_f64().unwrap()
        };
        let mut ratios: Vec<f64> = (0..rounds)
            .map(|_| {
                let threads = seconds(false);
                seconds(true) / threads
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let (median, least, most) = (ratios[rounds / 2], ratios[0], ratios[rounds - 1]);
        println!("{flow:22} mpi / threads {median:.3} ({least:.3} to {most:.3})");
    }
}
