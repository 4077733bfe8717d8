//! Runs are killed at random moments. What they wrote is whole or what it was before, and they continue to
//! the same bytes.

use crate::Found;
use crate::figures::Figure;
use crate::tool::{Tool, mpirun};
use apportion::random::Random;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A command that is killed, and then run again with the same words until it succeeds.
struct Job {
    name: &'static str,
    line: &'static str,
    output: &'static str,
    /// Several processes under mpirun.
    processes: Option<usize>,
}

const JOBS: [Job; 7] = [
    Job {
        name: "matmul, panels",
        line: "matmul a.npy b.npy -o c.npy --platform slow.toml --panels 12 --resume k",
        output: "c.npy",
        processes: None,
    },
    Job {
        name: "matmul, min-plus in panels",
        line: "matmul a.npy b.npy -o c.npy --semiring min-plus --platform slow.toml --panels 9 --resume k",
        output: "c.npy",
        processes: None,
    },
    Job {
        name: "matmul, panels, MPI",
        line: "matmul a.npy b.npy -o c.npy --platform slow.toml --panels 6 --resume k --engine mpi",
        output: "c.npy",
        processes: Some(2),
    },
    Job {
        name: "advect",
        line: "advect --field f.npy --courant 0.2,0.1 --steps 60 -o out.npy --platform slow.toml --resume k",
        output: "out.npy",
        processes: None,
    },
    Job {
        name: "power",
        line: "power f.npy -k 5 -o p.npy --semiring max-plus --platform slow.toml",
        output: "p.npy",
        processes: None,
    },
    Job {
        name: "closure",
        line: "closure f.npy -o p.npy --platform slow.toml",
        output: "p.npy",
        processes: None,
    },
    Job { name: "random", line: "random 1500 1500 -o big.npy --seed 3", output: "big.npy", processes: None },
];

/// Slowed down, so that a kill finds it at work.
const PLATFORM: &str = "[[processor]]\nname = \"f\"\nspeed = \"5 Gflop/s\"\nslowdown = 20.0\n\
    [[processor]]\nname = \"s\"\nspeed = \"2 Gflop/s\"\nslowdown = 50.0\n";

/// Kills in a row before a job may end undisturbed.
const ROW: u32 = 4;

/// Kills `count` runs, spread over all jobs.
pub fn run(count: u32, seed: u64, tool: &Tool) -> Found {
    let mpi = mpirun();
    let jobs: Vec<&Job> = JOBS.iter().filter(|job| job.processes.is_none() || mpi.is_some()).collect();
    let each = count.div_ceil(jobs.len() as u32);
    let mut figures: Vec<Figure> =
        jobs.iter().map(|job| attack(job, each, seed, (tool, mpi))).collect::<Result<_, _>>()?;
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
            if output.exists() && fs::read(&output).map_err(|e| e.to_string())? != right {
                return Err(format!("{}: killed after {after:?}: {} is damaged", job.name, job.output));
            }
        }
        let mut complete = output.exists();
        if !complete {
            complete = killed_after(job, bench.path(), of, None)?;
            finished += 1;
        }
        if !complete || fs::read(&output).map_err(|e| e.to_string())? != right {
            return Err(format!("{}: seed {seed}: after {kills} kills it ends with other bytes", job.name));
        }
    }
    let outcome = format!(
        "{finished} of these runs had to be finished afterwards; always the same bytes, nothing damaged"
    );
    Ok(Figure::new(job.name, format!("{kills} kills"), outcome))
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
    let here = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    for _ in 0..200 {
        let Ok(entries) = fs::read_dir("/proc") else { return };
        let mut found = false;
        for entry in entries.flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid
                && fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here)
            {
                found = true;
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        if !found {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
