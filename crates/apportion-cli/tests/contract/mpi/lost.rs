//! A lost rank ends the run soon; an earlier result stays and nothing else is left behind.

use super::launch::Mpi;
use crate::bench::Bench;
use apportion::geometry::Rect;
use apportion::kernels::Kernel;
use apportion::matrix::LocalBlocks;
use apportion::model::Model;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Plan, Shape};
use apportion::platform::Platform;
use apportion::product::{MatmulJob, Operands, OwnRects, multiply};
use apportion::run::{Monitor, MpiLaunch, Session, World};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Process ids of the ranks that were started in this directory, with their numbers.
pub fn ranks(bench: &Bench) -> Vec<(usize, Pid)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let path = entry.path();
        let here = std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == ***bench);
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

/// The system's state of a process, if it still exists.
pub fn field(pid: Pid, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

const PRODUCT: &str = "matmul a.npy a.npy -o c.npy --report run.json";

/// Starts a run that would take minutes, disturbs one of its ranks, and checks that all end soon. Returns the
/// exit status and the output.
fn ended(mpi: Mpi, victim: usize, name: &str, deed: &dyn Fn(Pid)) -> Option<(ExitStatus, String)> {
    ended_with(mpi, victim, name, ("100000.0", PRODUCT), deed)
}

/// The same with a slowdown and a command.
fn ended_with(
    mpi: Mpi,
    victim: usize,
    name: &str,
    (slowdown, line): (&str, &str),
    deed: &dyn Fn(Pid),
) -> Option<(ExitStatus, String)> {
    let bench = Bench::new();
    let slow = |i| {
        let about = format!("speed = \"1 Gflop/s\"\nslowdown = {slowdown}\ncores = [0]\n");
        format!("[[processor]]\nname = \"p{i}\"\n{about}")
    };
    bench.write("slow.toml", (0..3).map(slow).collect::<String>());
    bench.numbers("a.npy", "<f8", (200, 200), false);
    bench.write("cell.toml", include_str!("../../../../../examples/mdem/tacconi-lewis.toml"));
    bench.write("c.npy", "an earlier result");
    let before = bench.names();
    let mut child = mpi
        .command(&bench, 3, &format!("{line} --engine mpi --platform slow.toml"))?
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    // Pinned to their core, they are about to begin.
    let ready = |(_, pid): &(usize, Pid)| field(*pid, "Cpus_allowed_list:").is_some_and(|cores| cores == "0");
    while ranks(&bench).iter().filter(|rank| ready(rank)).count() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the ranks never started");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself: {name}");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    let victim = ranks(&bench)
        .into_iter()
        .find(|(rank, _)| *rank == victim)
        .filter(|_| child.try_wait().unwrap().is_none());
    let Some((_, pid)) = victim else {
        let output = child.wait_with_output().unwrap();
        panic!("it ended by itself: {name}: {}", String::from_utf8_lossy(&output.stderr));
    };
    deed(pid);
    let asked = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if asked.elapsed() > Duration::from_secs(20) {
            let _ = child.kill();
            panic!("it does not end: {mpi:?} {name}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    while !ranks(&bench).is_empty() {
        assert!(asked.elapsed() < Duration::from_secs(30), "a rank lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(bench.names(), before, "{mpi:?} {name}");
    assert_eq!(bench.bytes("c.npy"), b"an earlier result");
    let output = child.wait_with_output().unwrap();
    Some((output.status, String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn killed(mpi: Mpi, victim: usize, signal: Signal) {
    let kill = |pid| kill_process(pid, signal).unwrap();
    if let Some((status, said)) = ended(mpi, victim, &format!("{signal:?}"), &kill) {
        assert!(!status.success(), "{status}: {said}");
    }
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

/// A stopped rank sends nothing and does not end: the others notice, and one names the rank that it waits
/// for.
#[test]
#[ignore = "slow"]
fn a_stopped_rank_is_noticed() {
    let stop = |pid| kill_process(pid, Signal::STOP).unwrap();
    let product = format!("{PRODUCT} --flow one-to-all --block 4");
    let advection = "advect --field a.npy --courant 0.1,0.1 --steps 100000 -o c.npy";
    // Only a rank that waits notices: the others' steps are shorter than the test's patience.
    for (slowdown, line) in [
        ("20000.0", product.as_str()),
        ("300.0", advection),
        ("300.0", "mdem cell.toml --replications 100000"),
        ("1000.0", "power a.npy -k 9 -o c.npy"),
    ] {
        let run = (slowdown, &*format!("{line} --stall-timeout 3"));
        let Some((status, said)) = ended_with(Mpi::Open, 1, line, run, &stop) else { return };
        assert!(!status.success(), "{status}: {said}");
        assert!(said.contains("of rank ") && said.contains("it has stopped, or waits for another"), "{said}");
    }
}

/// A worker whose own part of A is missing, against its caller's contract, panics; the others wait for its
/// messages.
#[test]
fn a_worker_that_panics_ends_all_with_its_name() {
    if MpiLaunch::detect().is_some() {
        panics_on_rank_one();
    }
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let name = "mpi::lost::a_worker_that_panics_ends_all_with_its_name";
        let Some(mut command) = mpi.program(3, std::env::current_exe().unwrap()) else { continue };
        let begun = Instant::now();
        let output = command.args(["--exact", name, "--nocapture"]).output().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30), "it ended, but late");
        let text = String::from_utf8_lossy(&output.stderr);
        let lost = text
            .lines()
            .filter(|line| line.contains("processor p1 was lost: a piece is read where it is held"));
        assert_eq!(lost.count(), 1, "{text}");
        assert_eq!(output.status.code(), Some(1), "{text}");
    }
}

/// As in the commands: a rank reports an error that only it knows, and then ends all.
fn panics_on_rank_one() -> ! {
    let (monitor, shape) = (Monitor::new(), Shape::new(60, 60, 60, "test").unwrap());
    let world = World::mpi(&monitor).unwrap();
    let layout = Method::Rows.layout(shape, &[1.0; 3], &MethodOptions::default()).unwrap();
    let order = ScheduleOptions::new(Flow::Ring, 8);
    let schedule = MatmulSchedule::new(&layout, order);
    let filled = |rects: &[Rect]| -> LocalBlocks<f64> {
        rects.iter().map(|rect| (*rect, vec![1.0; rect.area() as usize])).collect()
    };
    let own = OwnRects::of(&schedule, &world);
    let a = if world.rank() == 1 { LocalBlocks::new() } else { filled(&own.a) };
    let b = filled(&own.b);
    let platform = Platform::from_speeds(&[1.0; 3]).unwrap();
    let models = vec![Model::constant("p", 1e9).unwrap(); 3];
    let plan = Plan::of_layout("rows", platform.names(), layout.clone(), 1.0);
    let job = MatmulJob::new(Kernel::plus_times(), &plan, order, &models, 1);
    let session = Session::new(&world, &platform, &monitor, job.work());
    match multiply(Operands::new(&a, &b), &job, &session) {
        Ok(_) => unreachable!("rank 1 lacks its part, and the others need it"),
        Err(error) => {
            eprintln!("{error}");
            world.abort(error.exit_code())
        }
    }
}
