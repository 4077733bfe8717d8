//! Targets of planning, simulation at scale and arrangement.
//!
//! What is said "from the command line" runs the release binary beside this bench
//! (`target/release/apportion`): reading, planning and writing. Without that binary those rows are left out.
//! The rest calls the library.

use super::Row;
use apportion::model::{Machine, Model};
use apportion::plan::Shape;
use apportion::platform::{Network, Platform};
use apportion::select::{PlanOptions, forecast, plan_matmul};
use apportion::simulate::CostModel;
use harness::rivals::binary;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Bytes of a gibibyte.
const GIBIBYTE: f64 = 1024.0 * 1024.0 * 1024.0;

/// All rows; with `quick`, two of the simulations at scale.
pub fn rows(quick: bool) -> Vec<Row> {
    let mut rows = by_library(quick);
    let Some(program) = binary() else {
        eprintln!(
            "planning: no release binary (cargo build --release); rows of the command line are left out"
        );
        return rows;
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    partitions(&program, place.path(), quick, &mut rows);
    at_scale(&program, place.path(), quick, &mut rows);
    rows
}

fn row(target: String, figure: f64, limit: f64) -> Row {
    (target, figure, limit, figure <= limit)
}

/// Planning with seconds: at most 1 % of the forecast, or 50 ms.
fn by_library(quick: bool) -> Vec<Row> {
    let sizes: &[usize] = if quick { &[8, 64] } else { &[8, 16, 32, 64] };
    let plan = |&p: &usize| {
        let speeds: Vec<f64> = draws(p).map(|x| (1.0 + 19.0 * x) * 1e9).collect();
        let mut platform = Platform::from_speeds(&speeds).expect("sound speeds");
        platform.network = Network::uniform(1e-5, 1e9);
        let model = |s: &f64| Model::constant("p", *s).expect("a sound speed");
        let machine = Machine::new(platform, speeds.iter().map(model).collect(), 1);
        let shape = Shape::new(20_000, 20_000, 20_000, "bench").expect("a sound shape");
        let options = PlanOptions::open(256, 8);
        let (seconds, choices) = best_of(3, || plan_matmul(shape, &machine, &options).expect("a plan"));
        let best = &choices[0];
        let planned = best.plan.forecast.as_ref().map_or(0.0, |f| f.seconds);
        let layout = best.plan.layout().expect("a layout");
        let rates = machine.rates(&layout.sizes());
        let costs = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
        let again = forecast(layout, best.order, costs).expect("a forecast").seconds;
        assert!((again - planned).abs() <= 1e-9 * planned, "the plan's forecast is not that of its layout");
        let target = format!("planning, {p} unlike processors, forecast of {planned:.1} s: seconds");
        row(target, seconds, (0.01 * planned).max(0.05))
    };
    sizes.iter().map(plan).collect()
}

/// `partition` of unlike processors on a uniform network.
fn partitions(program: &Path, place: &Path, quick: bool, rows: &mut Vec<Row>) {
    let all = [(64, 20_000, 0.05), (1_000, 20_000, 0.5), (100_000, 100_000, 2.0)];
    for (p, side, limit) in all {
        let mut text = String::from("name = \"bench\"\n[network]\nlatency = 1e-5\nbandwidth = 1e9\n");
        for (i, x) in draws(p).enumerate() {
            let _ = writeln!(text, "[[processor]]\nname = \"p{i}\"\nspeed = {:.6e}", (1.0 + 19.0 * x) * 1e9);
        }
        let platform = place.join("platform.toml");
        std::fs::write(&platform, text).expect("a writable directory");
        let out = place.join("plan.json");
        let shape = format!("{side}x{side}");
        let (seconds, _) = best_of(if quick { 2 } else { 3 }, || {
            let mut command = Command::new(program);
            command.args(["partition", "--shape", &shape, "--platform"]).arg(&platform).arg("-o").arg(&out);
            measured(&mut command)
        });
        rows.push(row(format!("partition, {p} processors, command line: seconds"), seconds, limit));
    }
}

/// 100 sites of 100 processors, each site behind one shared uplink.
fn at_scale(program: &Path, place: &Path, quick: bool, rows: &mut Vec<Row>) {
    let mut text =
        String::from("name = \"sites\"\n[network]\nlatency = \"20 us\"\nbandwidth = \"10 Gbit/s\"\n");
    for site in 0..100 {
        let _ = writeln!(
            text,
            "[[network.uplink]]\nof = \"s{site}\"\nbandwidth = \"40 Gbit/s\"\nlatency = \"30 us\""
        );
    }
    for (i, x) in draws(10_000).enumerate() {
        let (site, speed) = (i / 100, 1.0 + 19.0 * x);
        let _ = writeln!(
            text,
            "[[processor]]\nname = \"n{i}\"\ncluster = \"s{site}\"\nspeed = \"{speed:.4} Gflop/s\""
        );
    }
    let (platform, plan) = (place.join("sites.toml"), place.join("sites.json"));
    std::fs::write(&platform, text).expect("a writable directory");
    let mut partition = Command::new(program);
    partition.args(["partition", "--shape", "100000x100000", "--method", "columns", "--platform"]);
    measured(partition.arg(&platform).arg("-o").arg(&plan));
    let all = [
        ("bulk", "fifo"),
        ("bulk", "fair"),
        ("ring", "fair"),
        ("one-to-all", "fair"),
        ("one-to-all", "fifo"),
    ];
    for (flow, sharing) in all.into_iter().take(if quick { 2 } else { all.len() }) {
        let mut simulate = Command::new(program);
        simulate.args(["simulate", "--flow", flow, "--sharing", sharing, "--block", "50000"]);
        simulate.arg("--plan").arg(&plan).arg("--platform").arg(&platform);
        let begin = Instant::now();
        let bytes = measured(&mut simulate);
        let what = format!("simulate, 10,000 processors, shared uplinks, 2 pivot blocks, {flow}, {sharing}");
        rows.push(row(format!("{what}: seconds"), begin.elapsed().as_secs_f64(), 60.0));
        rows.push(row(format!("{what}: GiB at most"), bytes / GIBIBYTE, 1.0));
    }
    let mut arrange = Command::new(program);
    arrange.arg("arrange").arg("--plan").arg(&plan).arg("--platform").arg(&platform);
    let begin = Instant::now();
    measured(&mut arrange);
    rows.push(row("arrange, 10,000 processors: seconds".into(), begin.elapsed().as_secs_f64(), 20.0));
}

/// Runs a command to its end, and returns the most bytes of memory that it held, 0 where that is not known.
pub fn measured(command: &mut Command) -> f64 {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let status = format!("/proc/{}/status", child.id());
    let mut most: f64 = 0.0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok());
        most = most.max(1024.0 * kibibytes.unwrap_or(0.0));
        match child.try_wait().expect("a child of our own") {
            Some(ended) => {
                assert!(ended.success(), "{command:?} failed");
                return most;
            }
            None => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
}

/// The shortest of some runs in seconds, and the last result.
fn best_of<R>(runs: usize, mut work: impl FnMut() -> R) -> (f64, R) {
    let mut timed = || {
        let begin = Instant::now();
        let result = work();
        (begin.elapsed().as_secs_f64(), result)
    };
    let (mut least, mut last) = timed();
    for _ in 1..runs {
        let (seconds, result) = timed();
        (least, last) = (least.min(seconds), result);
    }
    (least, last)
}

/// Numbers from 0 to 1, always the same.
fn draws(count: usize) -> impl Iterator<Item = f64> {
    (1..=count as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64)
}
