//! Runs are killed at random moments. What they wrote is whole or what it was before, and they continue to
//! the same bytes.

mod jobs;

use crate::Found;
use crate::figures::Figure;
use crate::tool::{Tool, mpirun, processes_in};
use apportion::random::Random;
use jobs::{Check, JOBS, Job};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Slowed down, so that a kill finds it at work.
const PLATFORM: &str = "[[processor]]\nname = \"f\"\nspeed = \"5 Gflop/s\"\nslowdown = 20.0\n\
    [[processor]]\nname = \"s\"\nspeed = \"2 Gflop/s\"\nslowdown = 50.0\n";

/// Kills in a row before a job may end undisturbed.
const ROW: u32 = 4;

/// Kills at least `count` runs, spread over all jobs, or over some of them if there are more jobs than kills.
pub fn run(count: u32, seed: u64, tool: &Tool) -> Found {
    let mpi = mpirun();
    let jobs: Vec<&Job> = JOBS.iter().filter(|job| job.processes.is_none() || mpi.is_some()).collect();
    let each = count.div_ceil(jobs.len() as u32);
    let chosen = jobs.iter().step_by(jobs.len().div_ceil(count.max(1) as usize));
    let mut figures: Vec<Figure> =
        chosen.map(|job| attack(job, each, seed, (tool, mpi))).collect::<Result<_, _>>()?;
    if mpi.is_none() {
        figures.push(Figure::new("kills under MPI", "none", "skipped: no mpirun"));
    }
    Ok(figures)
}

fn attack(job: &Job, count: u32, seed: u64, of: (&Tool, Option<&str>)) -> Result<Figure, String> {
    let mut random = Random::new(seed);
    let reference = prepared(of.0)?;
    let begun = Instant::now();
    if !killed_after(job, reference.path(), of, None)? {
        return Err(format!("{}: the undisturbed run fails", job.name));
    }
    let long = begun.elapsed();
    let right = fs::read(reference.path().join(job.output)).map_err(|e| format!("{}: {e}", job.name))?;
    let (mut kills, mut finished) = (0, 0);
    while kills < count {
        let bench = prepared(of.0)?;
        let output = bench.path().join(job.output);
        for _ in 0..ROW {
            let after = long.mul_f64(random.unit());
            if killed_after(job, bench.path(), of, Some(after))? {
                break;
            }
            kills += 1;
            if output.exists() {
                let damaged =
                    |why| format!("{}: killed after {after:?}: {} is damaged: {why}", job.name, job.output);
                check(job, bench.path(), &right, of.0).map_err(damaged)?;
            }
        }
        let mut complete = output.exists();
        if !complete {
            complete = killed_after(job, bench.path(), of, None)?;
            finished += 1;
        }
        let last = if complete { check(job, bench.path(), &right, of.0) } else { Err("it fails".into()) };
        last.map_err(|why| format!("{}: seed {seed}: after {kills} kills: {why}", job.name))?;
    }
    let always = match job.check {
        Check::SameBytes => "always the same bytes",
        Check::UsedBy(_) => "always usable",
    };
    let outcome =
        format!("{finished} of these runs had to be finished afterwards; {always}, nothing damaged");
    Ok(Figure::new(job.name, format!("{kills} kills"), outcome))
}

/// What must hold of an output that is there.
fn check(job: &Job, directory: &Path, right: &[u8], tool: &Tool) -> Result<(), String> {
    match job.check {
        Check::SameBytes => {
            let found = fs::read(directory.join(job.output)).map_err(|e| e.to_string())?;
            if found == right { Ok(()) } else { Err(format!("{} has other bytes", job.output)) }
        }
        Check::UsedBy(line) => tool.must(directory, &line.split(' ').collect::<Vec<_>>()),
    }
}

fn prepared(tool: &Tool) -> Result<tempfile::TempDir, String> {
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    fs::write(bench.path().join("slow.toml"), PLATFORM).map_err(|e| e.to_string())?;
    fs::create_dir(bench.path().join("k")).map_err(|e| e.to_string())?;
    tool.must(bench.path(), &["random", "240", "180", "-o", "a.npy"])?;
    tool.must(bench.path(), &["random", "180", "200", "-o", "b.npy", "--seed", "2"])?;
    tool.must(bench.path(), &["random", "120", "120", "-o", "f.npy", "--seed", "3"])?;
    Ok(bench)
}

/// Runs the job; kills it and all its processes after this time. True if it ended by itself, with success.
fn killed_after(
    job: &Job,
    directory: &Path,
    (tool, mpi): (&Tool, Option<&str>),
    after: Option<Duration>,
) -> Result<bool, String> {
    let words: Vec<&str> = job.line.split(' ').collect();
    let mut command = match (job.processes, mpi) {
        (Some(processes), Some(mpi)) => tool.command_under(mpi, processes, directory, &words),
        _ => tool.command(directory, &words),
    };
    // A group of its own: all its processes are killed at once.
    let mut child = command.stderr(Stdio::null()).process_group(0).spawn().map_err(|e| e.to_string())?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return if status.success() { Ok(true) } else { Err(format!("{}: fails: {status}", job.name)) };
        }
        if after.is_some_and(|after| begun.elapsed() >= after) {
            let group = Pid::from_child(&child);
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            orphans_end(directory);
            return Ok(false);
        }
        if begun.elapsed() > Duration::from_secs(120) {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            return Err(format!("{}: hangs", job.name));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ranks have groups of their own: kills those that work in this directory, and waits until they are gone.
fn orphans_end(directory: &Path) {
    for _ in 0..200 {
        let found = processes_in(directory);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
