//! Contract of `simulate`: sharing, traces, explanations, deadlocks, SimGrid's files.

use super::bench::Bench;
use serde_json::Value;
use std::process::Command;

fn near(forecast: &Value, seconds: f64) {
    let found = forecast["seconds"].as_f64().unwrap();
    assert!((found - seconds).abs() < 1e-9, "{found} instead of {seconds}");
}

const PROCESSORS: &str = "[[processor]]\nname = \"a\"\nspeed = \"1 Gflop/s\"\n[[processor]]\nname = \"b\"\nspeed = \
    \"1 Gflop/s\"\n[[processor]]\nname = \"c\"\nspeed = \"1 Gflop/s\"\n[network]\n";

/// Traces of up to three ranks and a platform of three processors.
fn traces(network: &str, ranks: &[&str]) -> Bench {
    let here = Bench::new();
    here.write("platform.toml", format!("{PROCESSORS}{network}"));
    let mut list = String::new();
    for (rank, lines) in ranks.iter().enumerate() {
        let text: Vec<String> = lines.split(';').map(|line| format!("{rank} {}\n", line.trim())).collect();
        here.write(&format!("t{rank}"), text.concat());
        list += &format!("t{rank}\n");
    }
    here.write("traces.txt", list);
    here
}

const REPLAY: &str = "simulate --traces traces.txt --platform platform.toml";

/// 1 s of work, then 1,000,000 - 16 bytes and the envelope at 1 MB/s after 0.5 s of latency.
#[test]
fn traces_are_replayed_and_explained() {
    let here = traces(
        "bandwidth = \"1 MB/s\"\nlatency = 0.5\n",
        &["init;compute 1e9;send 1 3 999984;finalize", "init;recv 0 3 999984;compute 5e8;finalize"],
    );
    let found = here.json(&format!("{REPLAY} --explain b"));
    near(&found, 3.0);
    let explain = &found["explain"];
    assert_eq!(explain["processor"], "b");
    assert_eq!(explain["ends"], 3.0);
    let wait = &explain["waits"][0];
    assert_eq!(
        (wait["since"].as_f64(), wait["until"].as_f64(), wait["sent"].as_f64()),
        (Some(0.0), Some(2.5), Some(1.0))
    );
    assert_eq!((wait["from"].as_str(), wait["tag"].as_u64()), (Some("a"), Some(3)));
    let chain: Vec<&str> =
        explain["chain"].as_array().unwrap().iter().map(|c| c["what"].as_str().unwrap()).collect();
    assert_eq!(chain, ["work", "transfer", "work"]);
    let text = String::from_utf8(here.run(&format!("{REPLAY} --explain 1")).stdout).unwrap();
    assert!(text.contains("Critical path: 3 intervals lead to the end of b"), "{text}");
}

#[test]
fn small_messages_do_not_wait_for_their_receivers() {
    let ring = ["send 1 0 100000;recv 2 0 1", "send 2 0 100000;recv 0 0 1", "send 0 0 100000;recv 1 0 1"];
    let here = traces("bandwidth = \"1 MB/s\"\n", &ring);
    near(&here.json(&format!("{REPLAY} --eager 200000")), 0.100016);
}

#[test]
fn links_are_shared_by_rule() {
    // Two pairs of clusters' processors over one trunk: 1 MB each way and both at once.
    let pair = [
        "isend 1 0 1000000;waitall",
        "irecv 0 0 1000000;irecv 2 0 1000000;waitall",
        "isend 1 0 1000000;waitall",
    ];
    let shared = "[[network.uplink]]\nof = \"b\"\nbandwidth = \"1 MB/s\"\n";
    let here = traces(shared, &pair);
    near(&here.json(REPLAY), 2.000032);
    let here = traces("bandwidth = \"1 MB/s\"\n", &pair);
    near(&here.json(REPLAY), 1.000016);
    assert_eq!(here.json(REPLAY)["sharing"], "weighted");
}

/// An exported schedule replays here with the same result as in SimGrid, and reads back to the same forecast.
#[test]
fn an_export_reads_back_to_its_own_forecast() {
    let here = Bench::new();
    let platform = PROCESSORS.to_owned() + "bandwidth = \"100 MB/s\"\nlatency = \"50 us\"\nduplex = false\n";
    here.write("platform.toml", platform);
    let plan = "partition --shape 300x300 --platform platform.toml --method columns -o plan.json";
    assert!(here.run(plan).status.success());
    for flow in ["bulk", "ring --overlap", "one-to-all"] {
        let simulate = format!("simulate --plan plan.json --platform platform.toml --block 64 --flow {flow}");
        let found = here.json(&format!("{simulate} --export-simgrid to"));
        let again = here.json("simulate --traces to --platform platform.toml");
        let (a, b) = (found["seconds"].as_f64().unwrap(), again["seconds"].as_f64().unwrap());
        assert!((a - b).abs() < 1e-9 * a, "{flow}: {a} and {b}");
        for name in ["platform.xml", "hostfile", "traces.txt", "rank-0.txt", "rank-2.txt"] {
            assert!(std::fs::read_to_string(here.join("to").join(name)).unwrap().ends_with('\n'), "{name}");
        }
        let command = found["command"].as_str().unwrap();
        assert!(command.starts_with("smpirun -np 3 -platform "), "{command}");
        if Command::new("smpirun").arg("-version").output().is_err() {
            eprintln!("not replayed: smpirun is not installed (Debian: libsimgrid-dev)");
            continue;
        }
        let out = Command::new("sh").args(["-c", command]).output().unwrap();
        let log = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
        let line = log.lines().rev().find(|line| line.contains("Simulation time")).expect("it ends");
        let theirs: f64 = line.split(':').next().unwrap().parse().unwrap();
        assert!((a - theirs).abs() < 2e-9, "{flow}: {a} here, {theirs} there");
    }
}

/// 400 x 400 in four strips: B crosses a bus once under either rule, and three times if SimGrid has to
/// understand it.
#[test]
fn a_bus_carries_a_broadcast_once_by_any_rule() {
    let here = Bench::new();
    let processors: String =
        (0..4).map(|i| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"1000 Tflop/s\"\n")).collect();
    let network = "[network]\ntopology = \"bus\"\nbandwidth = \"1 MB/s\"\n";
    here.write("bus.toml", processors + network);
    let plan = "partition --shape 400x400 --platform bus.toml --method rows -o plan.json";
    assert!(here.run(plan).status.success());
    let simulate = "simulate --plan plan.json --platform bus.toml --flow broadcast --block 100";
    for rule in ["fifo", "fair", "weighted"] {
        let found = here.json(&format!("{simulate} --sharing {rule}"));
        assert!((found["seconds"].as_f64().unwrap() - 1.28).abs() < 1e-6, "{rule}: {found}");
    }
    let coarse = here.json(&format!("{simulate} --sharing fair --rate-tolerance 0.02"));
    assert_eq!(coarse["sharing"], "fair, rate tolerance 0.02");
    assert!((coarse["seconds"].as_f64().unwrap() - 1.28).abs() < 1e-6, "{coarse}");
    for wrong in
        ["--rate-tolerance 0.02", "--sharing fair --rate-tolerance 2", "--sharing fair --rate-tolerance nan"]
    {
        assert_eq!(here.run(&format!("{simulate} {wrong}")).status.code(), Some(2), "{wrong}");
    }
    let exported = here.json(&format!("{simulate} --export-simgrid to"));
    assert!((exported["seconds"].as_f64().unwrap() - 3.84).abs() < 1e-3, "{exported}");
    let told = here.run(&format!("{simulate} --export-simgrid to")).stderr;
    assert!(String::from_utf8_lossy(&told).contains("no broadcast on a bus"));
}
