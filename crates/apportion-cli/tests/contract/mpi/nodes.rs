//! The page about two nodes, and its batch script: their own text runs on two hosts, of which the second has a CPU
//! quota.

use super::hosts::Hosts;
use crate::docs::markdown::{Block, blocks};
use apportion::matrix::AnyMatrix;
use apportion::platform::read_platform;
use apportion_testing::{Need, holds, skip};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Passes messages of a gigabit per second, without a burst.
const GIGABIT: &[&str] =
    &["root handle 1: htb default 1", "parent 1: classid 1:1 htb rate 1gbit quantum 60000"];

/// CPU seconds per second of the second host.
const QUOTA: f64 = 0.5;

fn how_to(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to")).join(name)
}

/// Two hosts called alpha and beta, the second with a quota, and what is on their paths; `None` with a visible skip.
fn two_nodes() -> Option<Hosts> {
    let hosts = Hosts::joined_by(GIGABIT)?;
    if let Err(why) = hosts.limit_second(QUOTA) {
        skip(Need::Netns, format!("no CPU quota: {why}"));
        return None;
    }
    let bench = &hosts.bench;
    std::fs::create_dir_all(bench.path("docs/how-to")).unwrap();
    for name in ["integrate.py", "nodes.sbatch"] {
        std::fs::copy(how_to(name), bench.path(&format!("docs/how-to/{name}"))).unwrap();
    }
    std::fs::create_dir(bench.path("bin")).unwrap();
    bench.program("bin/mpirun", &hosts.mpirun_script());
    // As ssh, it has a shell of the other machine read the words.
    bench.program(
        "bin/ssh",
        &format!(
            "#!/bin/sh\n[ \"$1\" = beta ] || exit 255\nshift\nexec {} beta \"$*\"\n",
            hosts.agent().display()
        ),
    );
    // A batch job of two nodes: each srun starts a task on each.
    bench.program(
        "bin/srun",
        "#!/bin/sh\n[ \"$1 $2\" = '--mpi=pmix --cpu-bind=none' ] || exit 64\nshift 2\n\
         exec mpirun --host alpha:1,beta:1 -n 2 --bind-to none \"$@\"\n",
    );
    bench.program(
        "bin/sbatch",
        "#!/bin/sh\nexport SLURM_JOB_ID=1 SLURM_NTASKS=2 SLURM_PROCID=0\nexec bash \"$@\"\n",
    );
    Some(hosts)
}

/// Runs lines of a shell as a user on alpha would.
fn run(hosts: &Hosts, lines: &str) -> Output {
    let path = std::env::var("PATH").unwrap();
    let own = apportion_testing::binary().parent().unwrap().display().to_string();
    let mut shell = Command::new("timeout");
    shell.args(["900", "sh", "-ec", lines]).current_dir(hosts.bench.path("."));
    let bin = hosts.bench.path("bin").display().to_string();
    shell.env("PATH", format!("{bin}:{own}:{path}")).env("XDG_CACHE_HOME", hosts.bench.cache());
    let output = shell.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{lines}\n{}{stderr}", String::from_utf8_lossy(&output.stdout));
    output
}

/// The product of the two matrices is right, to the last bits of its sums.
fn is_product(hosts: &Hosts, name: &str) {
    let bench = &hosts.bench;
    bench.done("matmul A.npy B.npy -o alone.npy --speeds 1");
    let (AnyMatrix::F64(found), AnyMatrix::F64(alone)) = (bench.read(name), bench.read("alone.npy")) else {
        panic!("the matrices are f64")
    };
    for i in 0..alone.rows() {
        for (x, y) in found.row(i).iter().zip(alone.row(i)) {
            assert!((x - y).abs() <= 1e-9 * y.abs().max(1.0), "{name}: {x} for {y}");
        }
    }
}

/// What the three steps have left: a platform with both hosts and their link, speeds of which the second host's are those
/// of its quota, and a verified product.
fn check_files(hosts: &Hosts, product: &str) {
    let bench = &hosts.bench;
    let platform = read_platform(&bench.path("nodes.toml")).unwrap();
    assert_eq!(platform.names(), ["alpha", "beta"]);
    let cores = apportion::platform::discover().cores.len();
    assert!(platform.processors.iter().all(|processor| processor.cores.len() == cores));
    holds(&bench.text("nodes.toml"), &["[[network.link]]", "\"alpha\"", "bandwidth = "]);
    let models = bench.value("models.json");
    let best = |i: usize| {
        let points = models["models"][i]["points"].as_array().unwrap().iter();
        points.map(|p| p["size"].as_f64().unwrap() / p["seconds"].as_f64().unwrap()).fold(0.0, f64::max)
    };
    assert_eq!(models["models"][1]["processor"], "beta");
    assert!(best(1) < best(0), "a quarter of the time: {} and {}", best(0), best(1));
    let run = bench.value("run.json");
    assert_eq!((&run["verified"], &run["engine"]), (&Value::from(true), &"mpi".into()));
    let share = |i: usize| run["processors"][i]["share"].as_u64().unwrap();
    assert!(share(0) > share(1), "{run}");
    is_product(hosts, product);
}

/// Every block of the page, in its order, in one shell.
#[test]
fn the_page_does_what_it_says() {
    let Some(hosts) = two_nodes() else { return };
    let page = std::fs::read_to_string(how_to("nodes.md")).unwrap();
    let (mut script, mut commands) = (String::new(), 0);
    for Block { language, lines, file, .. } in blocks(&page) {
        if let Some(file) = file {
            hosts.bench.write(&file, lines.join("\n"));
        }
        if language == "sh" {
            script += &(lines.join("\n") + "\n");
            commands += lines.iter().filter(|line| line.contains("apportion ")).count();
        }
    }
    assert!(commands >= 8, "{script}");
    let (before, batch) = script.split_once("sbatch").unwrap();
    let output = run(&hosts, before);
    check_files(&hosts, "C.npy");
    is_product(&hosts, "C2.npy");
    // The detection shows both hosts and the quota of the second.
    let stdout = String::from_utf8(output.stdout).unwrap();
    holds(&stdout, &["alpha: ", "beta: ", "the control group allows 0.5 of "]);
    // Both ways of starting a program leave parts that add up to pi.
    for plan in ["plan.json", "shares.json"] {
        let shares = hosts.bench.value(plan)["shares"].clone();
        let shares: Vec<u64> =
            shares.as_array().unwrap().iter().map(|share| share.as_u64().unwrap()).collect();
        assert_eq!((shares.len(), shares.iter().sum::<u64>()), (2, 2_000_000));
    }
    let part = |rank: usize| hosts.bench.text(&format!("part-{rank}.txt")).trim().parse::<f64>().unwrap();
    assert!((part(0) + part(1) - std::f64::consts::PI).abs() < 1e-9);
    for file in ["hosts.toml", "nodes.toml", "models.json", "run.json"] {
        hosts.bench.remove(file);
    }
    run(&hosts, &format!("sbatch{batch}"));
    check_files(&hosts, "C3.npy");
}

/// The batch script is sound by the shell's own checker, where that is installed.
#[test]
fn the_batch_script_is_clean() {
    let script = how_to("nodes.sbatch");
    let parsed = Command::new("bash").arg("-n").arg(&script).status().unwrap();
    assert!(parsed.success());
    let Ok(output) = Command::new("shellcheck").arg(&script).output() else {
        skip(Need::Shellcheck, "there is no shellcheck");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
