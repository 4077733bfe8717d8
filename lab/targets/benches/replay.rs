//! The speed of the simulator.
//!
//! `cargo bench -p targets --bench replay` replays the same traces here and with SimGrid's `smpirun` (Debian:
//! libsimgrid-dev), where that is installed: 100 ranks that pass messages around a ring 1,000 times, reading
//! the files included, in turns; medians of [`RUNS`]. Then it simulates a product on 10,000 processors, on a
//! full mesh and behind shared uplinks, with the most memory that this process ever held.
//! `-- ring`, `-- many` and `-- uplinks` do one of the three.

use apportion::plan::Shape;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::platform::{Network, Platform, Speed, parse_platform};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::simulate::{
    Action, CostModel, Deployment, Fluid, Host, read_traces, simulate, simulate_actions, simulate_fluid,
};
use harness::median;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const RANKS: usize = 100;
const ROUNDS: usize = 1_000;
const PROCESSORS: usize = 10_000;
/// Behind uplinks, rates are recomputed when this fraction of the messages in transit has changed.
const COARSE: f64 = 0.05;

/// Runs of each side.
const RUNS: usize = 7;

fn main() {
    let wanted = |name: &str| {
        let mut named = std::env::args().skip(1).filter(|a| !a.starts_with("--")).peekable();
        named.peek().is_none() || named.any(|a| a == name)
    };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay");
    std::fs::create_dir_all(&directory).expect("the directory can be made");
    if wanted("ring") {
        ring(&directory);
    }
    if wanted("many") {
        many("mesh", &Network::uniform(50e-6, 125e6), &Fluid::fair());
    }
    if wanted("uplinks") {
        many("uplinks", &clusters().network, &Fluid { coarse: COARSE, ..Fluid::fair() });
    }
}

/// A switch with a link to each of the ranks' processors.
fn cluster() -> Platform {
    let mut text = String::new();
    for rank in 0..RANKS {
        let _ = writeln!(text, "[[processor]]\nname = \"p{rank}\"\nspeed = \"1 Gflop/s\"");
    }
    text += "[network]\n";
    for rank in 0..RANKS {
        let _ = writeln!(
            text,
            "[[network.uplink]]\nof = \"p{rank}\"\nbandwidth = \"{} MB/s\"\nlatency = \"50 us\"",
            100 + rank % 7
        );
    }
    parse_platform(&text, "cluster").expect("a sound platform")
}

fn ring(directory: &Path) {
    let (mut list, mut hosts) = (String::new(), String::new());
    for rank in 0..RANKS {
        let (next, last) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        let mut trace = format!("{rank} init\n");
        for round in 0..ROUNDS {
            let _ = write!(
                trace,
                "{rank} irecv {last} {round} 100000\n{rank} isend {next} {round} 100000\n{rank} compute {}\n{rank} waitall\n",
                1_000_000 + (rank * 7919 + round) % 1000
            );
        }
        let path = directory.join(format!("ring-{rank}.txt"));
        std::fs::write(&path, trace + &format!("{rank} finalize\n")).expect("the disk has room");
        let _ = writeln!(list, "{}", path.display());
        let _ = writeln!(hosts, "p{rank}");
    }
    std::fs::write(directory.join("ring.txt"), list).expect("the disk has room");
    std::fs::write(directory.join("hostfile"), hosts).expect("the disk has room");
    let platform = cluster();
    println!("{RANKS} ranks, {ROUNDS} rounds of a ring, {} actions; medians of {RUNS}", RANKS * ROUNDS * 4);
    let (mut reading, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut found, mut reference) = (0.0, None);
    for _ in 0..RUNS {
        let begin = Instant::now();
        let scripts = read_traces(&directory.join("ring.txt")).expect("sound traces");
        reading.push(begin.elapsed().as_secs_f64());
        found = replayed(scripts, &platform);
        ours.push(begin.elapsed().as_secs_f64());
        if let Some((seconds, time)) = simgrid(directory, &platform.network) {
            theirs.push(seconds);
            reference = Some(time);
        }
    }
    let (read, here) = (median(reading), median(ours));
    println!("here     {here:.4} s (of which reading {read:.4} s), simulated time {found:.9} s");
    match reference {
        Some(time) => {
            let there = median(theirs);
            println!("smpirun  {there:.4} s, simulated time {time:.9} s");
            println!("ratio    {:.1}, times differ by {:.1e}", there / here, (time / found - 1.0).abs());
        }
        None => println!("smpirun  not installed"),
    }
}

/// Simulated seconds.
fn replayed(scripts: Vec<Vec<Action>>, platform: &Platform) -> f64 {
    let hosts: Vec<Host> = platform
        .processors
        .iter()
        .map(|p| Host { speed: p.speed.map_or(1.0, Speed::value), cores: 1 })
        .collect();
    let placement: Vec<usize> = (0..RANKS).collect();
    let names = platform.names();
    let on = Deployment { hosts: &hosts, placement: &placement, names: &names, network: &platform.network };
    let mut scripts: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
    let outcome = simulate_actions(&mut scripts, on, &Fluid::simgrid(), false).expect("no deadlock");
    outcome.trace.seconds()
}

/// Wall-clock and simulated seconds of SimGrid.
fn simgrid(directory: &Path, network: &Network) -> Option<(f64, f64)> {
    let mut xml = String::from(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n\
         <zone id=\"z\" routing=\"Cluster\">\n",
    );
    for rank in 0..RANKS {
        let _ = writeln!(xml, "<host id=\"p{rank}\" speed=\"1Gf\"/>");
    }
    for rank in 0..RANKS {
        let crossings =
            network.route(apportion::geometry::Rank(rank), apportion::geometry::Rank((rank + 1) % RANKS));
        let bandwidth = crossings[0].crossings[0].capacity;
        let _ = writeln!(
            xml,
            "<link id=\"l{rank}\" bandwidth=\"{bandwidth}Bps\" latency=\"50us\" sharing_policy=\"SPLITDUPLEX\"/>"
        );
    }
    for rank in 0..RANKS {
        let _ = writeln!(xml, "<host_link id=\"p{rank}\" up=\"l{rank}_UP\" down=\"l{rank}_DOWN\"/>");
    }
    xml += "<router id=\"r\"/></zone></platform>\n";
    std::fs::write(directory.join("platform.xml"), xml).ok()?;
    let begin = Instant::now();
    let out = Command::new("smpirun")
        .args([
            "-np",
            &RANKS.to_string(),
            "-platform",
            "platform.xml",
            "-hostfile",
            "hostfile",
            "-replay",
            "ring.txt",
        ])
        .args(["--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:1e15"])
        .args(["--cfg=smpi/host-speed:1Gf", "--log=root.fmt:%.9r:%m%n"])
        .current_dir(directory)
        .output()
        .ok()?;
    let seconds = begin.elapsed().as_secs_f64();
    let log = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    let line = log.lines().rev().find(|line| line.contains("Simulation time"))?;
    Some((seconds, line.split(':').next()?.parse().ok()?))
}

/// A product on 10,000 processors of 1 to 10 Gflop/s, each flow under each rule.
fn many(place: &str, network: &Network, rules: &Fluid) {
    let begin = Instant::now();
    let rates: Vec<f64> = (0..PROCESSORS).map(|i| 1e9 * (1 + i * 7919 % 10) as f64).collect();
    let shape = Shape::new(40_000, 40_000, 40_000, "bench").expect("a sound shape");
    let layout =
        Method::Columns.layout(shape, &rates, &MethodOptions::default()).expect("any number of processors");
    println!("\n{PROCESSORS} processors, N = 40,000, laid out after {:.1} s", begin.elapsed().as_secs_f64());
    let names: Vec<String> = (0..PROCESSORS).map(|i| format!("n{i}")).collect();
    let costs = CostModel { rates: &rates, network, element: 8 };
    for (flow, fluid) in [(Flow::Ring, true), (Flow::Ring, false), (Flow::Bulk, true), (Flow::Bulk, false)] {
        let begin = Instant::now();
        let order = ScheduleOptions::new(flow, 40_000);
        let schedule = MatmulSchedule::new(&layout, order);
        let seconds = if fluid {
            simulate_fluid(&schedule, costs, &names, rules, false).map(|o| o.trace.seconds())
        } else {
            simulate(&schedule, costs).map(|trace| trace.seconds())
        };
        println!(
            "{place}, {flow}, {}: {:.1} s, forecast {:.3} s, most memory so far {:.0} MiB",
            if fluid { "fair" } else { "fifo" },
            begin.elapsed().as_secs_f64(),
            seconds.expect("no deadlock"),
            peak_mebibytes()
        );
    }
}

/// 100 clusters of equal size, network cards of 1 Gbit/s, shared uplinks of 10 Gbit/s: all flows depend on
/// each other.
fn clusters() -> Platform {
    let mut text = String::new();
    for i in 0..PROCESSORS {
        let _ = writeln!(text, "[[processor]]\nname = \"n{i}\"\ncluster = \"c{}\"", i / (PROCESSORS / 100));
    }
    text += "[network]\n";
    let mut uplink = |of: String, speed: &str| {
        let _ = writeln!(
            text,
            "[[network.uplink]]\nof = \"{of}\"\nbandwidth = \"{speed} Gbit/s\"\nlatency = \"25 us\""
        );
    };
    (0..PROCESSORS).for_each(|i| uplink(format!("n{i}"), "1"));
    (0..100).for_each(|c| uplink(format!("c{c}"), "10"));
    parse_platform(&text, "clusters").expect("a sound platform")
}

/// The most memory that this process has held; 0 if the system does not report it.
fn peak_mebibytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
