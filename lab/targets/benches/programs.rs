//! Is the first run of a program that is split already faster than what one would have typed?
//!
//! `cargo bench -p targets --bench programs [-- WORD…]` runs jobs of 2,000 units by `apportion run --units`, then by the
//! plan that this saves, and by its rivals: the fastest processor alone, an even split, queues of 2 to 64 pieces a
//! processor by `xargs -P`, and GNU parallel with the best number of these. The best rival is chosen in hindsight. It
//! prints a row a job, and below how many are within the bounds wanted; only jobs whose names have all the words are run.
//!
//! On `1:1`, `3:1` and `4:2:1:1` a unit sleeps, so that several jobs run at once. In `quota` jobs a unit computes, and
//! whatever is started second is in a control group with a third of a core; in `busy` ones a program beside them takes a
//! core. These need two idle cores, the first of them root and version 1 of the CPU controller.

use apportion::random::Random;
use apportion_testing::binary;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const UNITS: usize = 2000;
const STARTS: [f64; 4] = [0.0, 0.05, 0.5, 2.0];
const KINDS: [&str; 3] = ["alike", "ramp", "heavy"];
const QUEUES: [usize; 6] = [2, 4, 8, 16, 32, 64];
/// Jobs that sleep and run at once.
const AT_ONCE: usize = 12;
const GROUP: &str = "/sys/fs/cgroup/cpu/apportion-programs";

/// A job on a machine.
#[derive(Clone)]
struct Job {
    machine: &'static str,
    speeds: Vec<f64>,
    /// Seconds that a piece takes to start.
    start: f64,
    kind: &'static str,
    /// Seconds of all units on the fastest processor.
    work: f64,
}

impl Job {
    fn name(&self) -> String {
        format!("{} {} {} {}", self.machine, self.work, self.start, self.kind)
    }

    fn sleeps(&self) -> bool {
        self.machine.contains(':')
    }

    /// Seconds in which all processors could end together, if every time were known.
    fn ideal(&self) -> f64 {
        let (mut low, mut high) = (self.start, self.start + self.work);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            let done: f64 = self.speeds.iter().map(|v| v / self.speeds[0] * (middle - self.start)).sum();
            if done < self.work { low = middle } else { high = middle }
        }
        high
    }

    /// This program as the job's.
    fn environment(&self, command: &mut Command) {
        let speeds: Vec<String> = self.speeds.iter().map(|v| (v / self.speeds[0]).to_string()).collect();
        command
            .env("JOB_SPEEDS", speeds.join(","))
            .env("JOB_KIND", self.kind)
            .env("JOB_MACHINE", self.machine);
        command.env("JOB_START", self.start.to_string()).env("JOB_WORK", self.work.to_string());
    }

    /// Wall time of a whole command, whose output must have every unit once; in their order if `in_order`.
    fn seconds(&self, command: &mut Command, input: &str, in_order: bool) -> f64 {
        self.environment(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let begin = Instant::now();
        let mut child = command.spawn().expect("the rivals are installed: findutils, parallel");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("few bytes");
        let mut text = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("numbers");
        let out = child.wait_with_output().expect("it ends");
        let seconds = begin.elapsed().as_secs_f64();
        assert!(out.status.success(), "{}: {}", self.name(), String::from_utf8_lossy(&out.stderr));
        let numbers = |line: &str| line.split(' ').map(|n| n.parse().expect("a number")).collect();
        let mut pieces: Vec<Vec<usize>> = text.lines().map(numbers).collect();
        if !in_order {
            pieces.sort();
        }
        let end = pieces.iter().fold(0, |end, piece| if piece[0] == end { piece[1] } else { usize::MAX });
        assert_eq!(end, UNITS, "{}: units are missing or out of order", self.name());
        seconds
    }

    /// The units in this many pieces, as lines for a queue.
    fn lines(pieces: usize) -> String {
        (0..pieces).map(|i| format!("{} {}\n", i * UNITS / pieces, (i + 1) * UNITS / pieces)).collect()
    }

    fn alone(&self) -> f64 {
        let mut command = worker();
        command.args(["0", &UNITS.to_string()]);
        self.seconds(&mut command, "", true)
    }

    /// A queue of `k` pieces a processor.
    fn queue(&self, k: usize) -> f64 {
        let p = self.speeds.len();
        let mut command = Command::new("xargs");
        command.args(["-P", &p.to_string(), "-L", "1", "--process-slot-var=JOB_SLOT"]).arg(program());
        self.seconds(command.arg("worker"), &Self::lines(k * p), false)
    }

    fn parallel(&self, k: usize) -> f64 {
        let p = self.speeds.len();
        let mut command = Command::new("parallel");
        command.args(["--will-cite", "-j", &p.to_string(), "--colsep", " "]).arg(program());
        self.seconds(command.args(["worker", "{1}", "{2}"]), &Self::lines(k * p), false)
    }

    fn ours(&self, place: &Path, arguments: &[&str]) -> f64 {
        let mut command = Command::new(binary());
        command.arg("run").args(arguments).arg("--quiet").current_dir(place);
        command.args(["--command", &format!("{} worker {{from}} {{to}}", program())]);
        if self.sleeps() && arguments[0] == "--units" {
            command.args(["--processors", &self.speeds.len().to_string()]);
        }
        self.seconds(&mut command, "", true)
    }

    fn measured(&self) -> Row {
        let place = tempfile::tempdir().expect("a temporary directory");
        let units = UNITS.to_string();
        let first = self.ours(place.path(), &["--units", &units, "-o", "plan.json"]);
        let second = self.ours(place.path(), &["--plan", "plan.json"]);
        let (alone, even) = (self.alone(), self.queue(1));
        let (mut best_queue, mut worse) = ((f64::INFINITY, 1), 0);
        for k in QUEUES {
            let seconds = self.queue(k);
            worse = if seconds < best_queue.0 { 0 } else { worse + 1 };
            best_queue = if seconds < best_queue.0 { (seconds, k) } else { best_queue };
            // More pieces only start more often.
            if worse == 2 || seconds > 3.0 * even.min(alone).min(best_queue.0) {
                break;
            }
        }
        let parallel = self.parallel(best_queue.1);
        Row { job: self.clone(), first, second, alone, even, best_queue, parallel }
    }
}

/// Seconds of a job by each way.
struct Row {
    job: Job,
    first: f64,
    second: f64,
    alone: f64,
    even: f64,
    /// With its number of pieces a processor.
    best_queue: (f64, usize),
    parallel: f64,
}

impl Row {
    fn best_rival(&self) -> f64 {
        self.alone.min(self.even).min(self.best_queue.0).min(self.parallel)
    }

    fn print(&self) {
        let Self { job, first, second, alone, even, best_queue: (queue, k), parallel } = self;
        let ideal = job.ideal();
        println!(
            "| {} | {} | {} | {} | {ideal:.2} | {alone:.2} | {even:.2} | {queue:.2} ({k}) | {parallel:.2} | {first:.2} \
             | {second:.2} | {:.2} | {:.2} | {:.2} |",
            job.machine,
            job.work,
            job.start,
            job.kind,
            first / self.best_rival(),
            first / ideal,
            second / ideal,
        );
    }
}

fn program() -> String {
    let path = env::current_exe().expect("a path");
    path.to_str().expect("a path without a blank").to_owned()
}

fn worker() -> Command {
    let mut command = Command::new(program());
    command.arg("worker");
    command
}

/// The units' parts of the work.
fn costs(kind: &str) -> Vec<f64> {
    let mut random = Random::new(5);
    let cost = |i: usize| match kind {
        "ramp" => 0.2 + 1.6 * i as f64 / UNITS as f64,
        // Pareto's distribution, of index 1.5.
        "heavy" => (1.0 - random.unit()).powf(-1.0 / 1.5),
        _ => 1.0,
    };
    let costs: Vec<f64> = (0..UNITS).map(cost).collect();
    let sum: f64 = costs.iter().sum();
    costs.into_iter().map(|cost| cost / sum).collect()
}

/// Does units `from` to `to`, at the speed of the processor on which it was started.
fn work(from: usize, to: usize) {
    let text = |name: &str| env::var(name).ok();
    let number = |name: &str| text(name).and_then(|n| n.parse::<f64>().ok());
    let rank =
        number("APPORTION_RANK").or(number("JOB_SLOT")).or(number("PARALLEL_JOBSLOT").map(|n| n - 1.0));
    let rank = rank.unwrap_or(0.0) as usize;
    let (machine, kind) = (text("JOB_MACHINE").expect("set"), text("JOB_KIND").expect("set"));
    if machine == "quota" && rank == 1 {
        fs::write(format!("{GROUP}/cgroup.procs"), std::process::id().to_string()).expect("a control group");
    }
    let seconds = costs(&kind)[from..to].iter().sum::<f64>() * number("JOB_WORK").expect("set");
    let start = number("JOB_START").expect("set");
    if machine.contains(':') {
        let speeds = text("JOB_SPEEDS").expect("set");
        let speed: f64 = speeds.split(',').nth(rank).expect("a processor").parse().expect("a number");
        thread::sleep(Duration::from_secs_f64(start + seconds / speed));
    } else {
        thread::sleep(Duration::from_secs_f64(start));
        spin(seconds);
    }
    println!("{from} {to}");
}

/// Computes for these seconds of CPU time.
fn spin(seconds: f64) {
    let cpu = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let end = cpu() + seconds;
    while cpu() < end {}
}

fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    let machines: [(&str, &[f64]); 3] =
        [("1:1", &[1.0, 1.0]), ("3:1", &[3.0, 1.0]), ("4:2:1:1", &[4.0, 2.0, 1.0, 1.0])];
    for (machine, speeds) in machines {
        for work in [5.0, 30.0] {
            for start in STARTS {
                jobs.extend(KINDS.map(|kind| Job { machine, speeds: speeds.to_vec(), start, kind, work }));
            }
        }
    }
    // Those that compute run one after the other.
    for (machine, second) in [("quota", 1.0 / 3.0), ("busy", 0.5)] {
        let job = |work, start, kind| Job { machine, speeds: vec![1.0, second], start, kind, work };
        jobs.extend(STARTS.map(|start| job(5.0, start, "alike")));
        jobs.extend(["ramp", "heavy"].map(|kind| job(5.0, 0.0, kind)));
        jobs.extend([0.05, 0.5].map(|start| job(30.0, start, "alike")));
    }
    jobs
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["worker", from, to] => return work(from.parse().expect("a unit"), to.parse().expect("a unit")),
        ["spin"] => return spin(f64::MAX),
        _ => {}
    }
    let wanted = |job: &Job| arguments.iter().all(|word| job.name().split(' ').any(|own| own == word));
    let (asleep, awake): (Vec<Job>, Vec<Job>) = jobs().into_iter().filter(wanted).partition(Job::sleeps);
    let queue = Mutex::new(asleep.clone().into_iter().enumerate().rev().collect::<Vec<_>>());
    let rows = Mutex::new(Vec::new());
    let next = || queue.lock().expect("no panic").pop();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((number, job)) = next() {
                    let row = job.measured();
                    eprintln!("{} done", job.name());
                    rows.lock().expect("no panic").push((number, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().expect("no panic");
    rows.sort_by_key(|(number, _)| *number);
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    rows.extend(awake.iter().map(unequal));
    println!(
        "| machine | work | start-up | units | ideal | alone | even | queue (pieces) | parallel | first | second \
         | first / best rival | first / ideal | second / ideal |"
    );
    println!("| --- {}|", "| ---: ".repeat(13));
    rows.iter().for_each(Row::print);
    println!();
    verdicts(&rows);
}

/// A job on a processor that is really slower.
fn unequal(job: &Job) -> Row {
    eprintln!("{}", job.name());
    if job.machine == "quota" {
        fs::create_dir_all(GROUP).expect("root, and version 1 of control groups");
        fs::write(format!("{GROUP}/cpu.cfs_quota_us"), "33333").expect("a control group");
        let row = job.measured();
        fs::remove_dir(GROUP).expect("all programs have ended");
        return row;
    }
    let mut neighbour = Command::new(program()).arg("spin").spawn().expect("this program");
    let row = job.measured();
    neighbour.kill().and_then(|()| neighbour.wait()).expect("it runs");
    row
}

/// How many rows keep to what is wanted.
fn verdicts(rows: &[Row]) {
    let say = |name: &str, most: f64, values: Vec<f64>| {
        let within = values.iter().filter(|value| **value <= most).count();
        let worst = values.iter().copied().fold(0.0, f64::max);
        println!("{name}: at most {most:.2} in {within} of {}, at most {worst:.2} in all", values.len());
    };
    let few = |row: &&Row| row.job.start <= 0.02 * row.job.work;
    let over_rival = |row: &Row, starts: f64| (row.first - starts * row.job.start) / row.best_rival();
    say(
        "first / best rival, start-up at most 2 %",
        1.05,
        rows.iter().filter(few).map(|row| over_rival(row, 0.0)).collect(),
    );
    let many: Vec<f64> = rows.iter().filter(|row| !few(row)).map(|row| over_rival(row, 2.0)).collect();
    say("(first - 2 start-ups) / best rival, others", 1.05, many);
    let emulated = || rows.iter().filter(|row| row.job.sleeps());
    let free = emulated().filter(|row| row.job.start == 0.0);
    say("first / ideal, no start-up", 1.05, free.map(|row| row.first / row.job.ideal()).collect());
    for kind in KINDS {
        let of_kind = emulated().filter(|row| row.job.kind == kind);
        say(
            &format!("second / ideal, {kind}"),
            1.03,
            of_kind.map(|row| row.second / row.job.ideal()).collect(),
        );
    }
}
