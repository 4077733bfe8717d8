//! The same schedules simulated here and replayed by `smpirun`, where that is installed.

use apportion::plan::Shape;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::platform::{Network, parse_platform};
use apportion::random::Random;
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::simulate::{CostModel, Fluid, Tcp, export_simgrid, simulate_fluid};
use apportion_testing::{Need, skip};
use std::path::Path;
use std::process::Command;

/// Seeded platforms and schedules, each under every network model.
const CASES: u64 = 56;
/// The largest relative difference.
const BOUND: f64 = 1e-6;

/// A network of one of seven kinds, half or full duplex.
fn network(p: u64, kind: u64, dice: &mut Random) -> (Network, String) {
    let mut text: String =
        (0..p).map(|i| format!("[[processor]]\nname = \"p{i}\"\ncluster = \"c{}\"\n", i * 2 / p)).collect();
    let mut speed = || format!("\"{} Mbit/s\"", 50 + dice.below(1000) as u64);
    text += &format!("[network]\nbandwidth = {}\nduplex = {}\n", speed(), p.is_multiple_of(2));
    let trunk = |shared: bool, bandwidth: String| {
        format!(
            "[[network.link]]\nbetween = [\"c0\", \"c1\"]\nshared = {shared}\nbandwidth = {bandwidth}\nlatency = \"70 us\"\n"
        )
    };
    let name = ["full", "star", "bus", "clusters", "backbone", "uplinks", "asymmetric"][kind as usize];
    text += match name {
        "star" => "latency = \"20 us\"\ntopology = \"star\"\ncentre = \"p1\"\n",
        "bus" => "latency = \"30 us\"\ntopology = \"bus\"\n",
        "full" => "latency = \"50 us\"\n",
        _ => "",
    };
    match name {
        "clusters" => text += &trunk(false, speed()),
        "backbone" => text += &trunk(true, speed()),
        "uplinks" => {
            for i in 0..p {
                let latency = dice.below(90) as u64;
                text += &format!(
                    "[[network.uplink]]\nof = \"p{i}\"\nbandwidth = \"{} Mbit/s\"\nlatency = \"{latency} us\"\n",
                    50 + dice.below(1000) as u64
                );
            }
        }
        "asymmetric" => {
            text += "[[network.link]]\nbetween = [\"c0\", \"c1\"]\nbandwidth = { horizontal = \"80 MB/s\", vertical = \"9 MB/s\" }\n";
        }
        _ => {}
    }
    (parse_platform(&text, "case").unwrap().network, name.to_owned())
}

/// The time on the last line.
fn replay(command: &str) -> f64 {
    let out = Command::new("sh").args(["-c", command]).output().unwrap();
    let log = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    let time =
        log.lines().rev().find(|line| line.contains("Simulation time")).and_then(|l| l.split(':').next());
    time.unwrap_or_else(|| panic!("{command}\n{log}")).parse().unwrap()
}

#[test]
#[ignore = "slow"]
fn schedules_take_as_long_as_smpirun_says() {
    if Command::new("smpirun").arg("-version").output().is_err() {
        skip(Need::Simgrid, "smpirun is not installed (Debian package libsimgrid-dev)");
        return;
    }
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join("simgrid-replay");
    let (mut worst, mut wrong): (f64, Vec<String>) = (0.0, Vec::new());
    for case in 0..CASES {
        let mut dice = Random::new(case);
        let p = 2 + dice.below(6) as u64;
        let (network, name) = network(p, case % 7, &mut dice);
        let rates: Vec<f64> = (0..p).map(|_| 1e8 * (1 + dice.below(20)) as f64).collect();
        let n = 40 + dice.below(400) as u64;
        let shape = Shape::new(n, n, n, "case").unwrap();
        let layout = Method::Columns.layout(shape, &rates, &MethodOptions::default()).unwrap();
        let flow = Flow::ALL[(case / 7 % 3) as usize];
        let (block, overlap, look_ahead) =
            (1 + dice.below(n as usize) as u64, case.is_multiple_of(2), 1 + dice.below(2) as u64);
        let schedule = MatmulSchedule::new(
            &layout,
            ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap) * look_ahead),
        );
        let costs = CostModel { rates: &rates, network: &network, element: 8 };
        let names: Vec<String> = (0..p).map(|i| format!("p{i}")).collect();
        let mut rules = Fluid::simgrid();
        if case.is_multiple_of(5) {
            rules = rules.with_eager(1 << (8 + dice.below(8))).unwrap();
        }
        for tcp in [Tcp::default(), Tcp::cm02(), Tcp::lv08(), Tcp::smpi()] {
            let rules = Fluid { tcp, ..rules.clone() };
            let outcome = simulate_fluid(&schedule, costs, &names, &rules, false).unwrap();
            let command = export_simgrid(&schedule, costs, &names, &rules, &here).unwrap();
            let theirs = replay(&format!("{command} --cfg=maxmin/precision:1e-9").replace("%.9r", "%.15r"));
            let seconds = outcome.trace.seconds();
            let error = (seconds - theirs).abs() / theirs;
            worst = worst.max(error);
            if error >= BOUND {
                let what = format!("case {case}, {name}, {p} processors, {flow}, {}", rules.tcp);
                wrong.push(format!("{what}: {seconds} here, {theirs} there"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    eprintln!("{CASES} cases under four models, the worst off by {worst:e}");
}
