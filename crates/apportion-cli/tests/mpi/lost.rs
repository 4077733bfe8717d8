//! A rank that goes ends the run soon; an earlier result stays and nothing else is left behind.

use super::launch::{Bench, Mpi};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Process ids of the ranks that were started in this directory, with their numbers.
fn ranks(bench: &Bench) -> Vec<(usize, Pid)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let path = entry.path();
        let here = std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == bench.directory);
        let ours = std::fs::read_link(path.join("exe")).is_ok_and(|exe| exe.ends_with("apportion"));
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        let rank = environment.split(|b| *b == 0).find_map(|variable| {
            let text = std::str::from_utf8(variable).ok()?;
            text.strip_prefix("OMPI_COMM_WORLD_RANK=").or(text.strip_prefix("PMI_RANK="))?.parse().ok()
        });
        if let (true, true, Some(rank), Some(pid)) = (here, ours, rank, Pid::from_raw(pid)) {
            found.push((rank, pid));
        }
    }
    found
}

fn killed(mpi: Mpi, victim: usize, signal: Signal) {
    let bench = Bench::new(&format!("lost-{mpi:?}-{victim}-{}", signal.as_raw()));
    // Slowed down so far that the run would take minutes.
    let slow = |i| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"1 Gflop/s\"\nslowdown = 100000.0\n");
    std::fs::write(bench.at("slow.toml"), (0..3).map(slow).collect::<String>()).unwrap();
    bench.matrix("a.npy", "<f8", (200, 200), false);
    std::fs::write(bench.at("c.npy"), "an earlier result").unwrap();
    let before = bench.files();
    let arguments = "matmul a.npy a.npy -o c.npy --engine mpi --platform slow.toml --report run.json";
    let Some(mut command) = mpi.command(&bench, 3, arguments) else { return };
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while ranks(&bench).len() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the ranks never started");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
    let (_, pid) = ranks(&bench).into_iter().find(|(rank, _)| *rank == victim).unwrap();
    kill_process(pid, signal).unwrap();
    let asked = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if asked.elapsed() > Duration::from_secs(30) {
            let _ = child.kill();
            panic!("it does not end: {mpi:?} {signal:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(!status.success(), "{status}");
    while !ranks(&bench).is_empty() {
        assert!(asked.elapsed() < Duration::from_secs(30), "a rank lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(bench.files(), before, "{mpi:?} {signal:?}");
    assert_eq!(std::fs::read(bench.at("c.npy")).unwrap(), b"an earlier result");
}

#[test]
fn a_killed_rank_ends_all() {
    killed(Mpi::Open, 1, Signal::KILL);
    killed(Mpi::Open, 0, Signal::KILL);
    killed(Mpi::Mpich, 2, Signal::KILL);
}

#[test]
fn a_rank_asked_to_stop_ends_all() {
    killed(Mpi::Open, 2, Signal::TERM);
}
