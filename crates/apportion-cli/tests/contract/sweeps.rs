//! `simulate --sweep`: forecasts along one parameter, and where another contender starts to win.

use super::Bench;

/// Two processors that a bulk exchange joins, computing so fast that communication decides.
fn platform(duplex: bool) -> String {
    format!(
        "[[processor]]\nname = \"a\"\nspeed = \"500 Gflop/s\"\n[[processor]]\nname = \"b\"\nspeed = \"500 Gflop/s\"\n\
         [network]\nbandwidth = \"100 Mbit/s\"\nlatency = \"50 us\"\nduplex = {duplex}\n"
    )
}

const BECKER: [&str; 12] = [
    "simulate",
    "--shape",
    "1000x1000",
    "--platform",
    "two.toml",
    "--flow",
    "bulk",
    "--methods",
    "straight-line,square-corner",
    "--sweep",
    "ratio=1..25",
    "--block",
];

/// Becker 2010, sections 5.2 to 5.4: 3:1 where transfers go one after the other, 2:1 where both directions work at once.
#[test]
fn crossovers_of_two_processors() {
    let bench = Bench::new();
    for (duplex, at) in [(false, 3.0), (true, 2.0)] {
        bench.write("two.toml", platform(duplex));
        let call = [&BECKER[..], &["1000", "-o", "sweep.csv", "--svg", "sweep.svg"]].concat();
        let swept = bench.json(&call);
        let crossovers = swept["crossovers"].as_array().unwrap();
        assert_eq!(crossovers.len(), 1, "{swept}");
        assert_eq!(
            (&crossovers[0]["from"], &crossovers[0]["to"]),
            (&"straight-line".into(), &"square-corner".into())
        );
        let found = crossovers[0]["at"].as_f64().unwrap();
        assert!((found - at).abs() < 0.03, "{found}");
        let csv = String::from_utf8(std::fs::read(bench.path("sweep.csv")).unwrap()).unwrap();
        assert_eq!(csv.lines().count(), 26);
        assert!(csv.starts_with("ratio,straight-line,square-corner,winner\n"), "{csv}");
        let svg = std::fs::read_to_string(bench.path("sweep.svg")).unwrap();
        assert!(svg.contains("square-corner wins from"));
        let again = bench.json(&call);
        assert_eq!(again, swept);
    }
    let text = bench.done(&[&BECKER[..], &["1000"]].concat());
    assert!(text.contains("crossover") && text.contains("square-corner instead of straight-line"), "{text}");
}

/// A plan's own layout, its flows against each other: overlap wins where the network is slow enough to hide.
#[test]
fn the_flows_of_a_plan() {
    let bench = Bench::new();
    bench.write("two.toml", platform(true));
    bench.done(&[
        "partition",
        "--shape",
        "600x600",
        "--platform",
        "two.toml",
        "--method",
        "columns",
        "-o",
        "plan.json",
    ]);
    let call = ["simulate", "--plan", "plan.json", "--platform", "two.toml", "--sweep"];
    for range in ["bandwidth=10Mbit/s..100Gbit/s", "latency=1us..100ms", "processors=2..5"] {
        let swept = bench.json(&[&call[..], &[range, "--sweep-points", "4", "--block", "100"]].concat());
        assert_eq!(swept["points"].as_array().unwrap().len(), 4, "{range}");
        assert_eq!(swept["contenders"].as_array().unwrap().len(), 2 * apportion::Flow::ALL.len(), "{range}");
        for point in swept["points"].as_array().unwrap() {
            assert!(point["seconds"].as_array().unwrap().iter().all(|s| s.as_f64().unwrap() > 0.0));
        }
    }
    let at = |range: &str| {
        let swept = bench.json(&[&call[..], &[range, "--sweep-points", "2", "--flow", "bulk"]].concat());
        [0, 1].map(|i| swept["points"][i]["seconds"][0].as_f64().unwrap())
    };
    let [slow, fast] = at("bandwidth=10Mbit/s..100Gbit/s");
    assert!(slow > 10.0 * fast, "{slow} {fast}");
    // The platform as it is lies on the sweep.
    let whole = bench.json(&["simulate", "--plan", "plan.json", "--platform", "two.toml", "--flow", "bulk"]);
    assert_eq!(at("bandwidth=100Mbit/s..1Gbit/s")[0], whole["seconds"].as_f64().unwrap());
}

#[test]
fn bad_sweeps_are_refused() {
    let bench = Bench::new();
    bench.write("two.toml", platform(true));
    let call = ["simulate", "--shape", "100x100", "--platform", "two.toml", "--sweep"];
    for range in [
        "speed=1..2",
        "ratio",
        "ratio=3..1",
        "bandwidth=0..1Gbit/s",
        "processors=1..1e7",
        "latency=1Mbit/s..2us",
    ] {
        let told = bench.fails(2, &[&call[..], &[range]].concat());
        assert!(told.contains("sweep"), "{told}");
    }
    bench.fails(2, &[&call[..], &["ratio=1..2", "--methods", "nonsense"]].concat());
    bench.fails(2, &[&call[..], &["ratio=1..2", "-o", "table.txt"]].concat());
    bench.fails(2, &["simulate", "--shape", "100x100", "--platform", "two.toml"]);
    bench.fails(2, &["simulate", "--platform", "two.toml", "--sweep", "ratio=1..2"]);
    // Equal squares would overlap.
    bench.fails(1, &[&call[..], &["processors=3..5", "--methods", "square-corner"]].concat());
}
