//! `simulate --sweep`: forecasts along one parameter, and the values at which another candidate becomes the
//! fastest.

use super::Bench;

/// Two processors that a bulk exchange joins, computing so fast that communication decides.
fn platform(duplex: bool) -> String {
    format!(
        "[[processor]]\nname = \"a\"\nspeed = \"500 Gflop/s\"\n[[processor]]\nname = \"b\"\nspeed = \"500 Gflop/s\"\n\
         [network]\nbandwidth = \"100 Mbit/s\"\nlatency = \"50 us\"\nduplex = {duplex}\n"
    )
}

const BECKER: &str = "simulate --shape 1000x1000 --platform two.toml --flow bulk --methods straight-line,square-corner --sweep ratio=1..25 --block";

/// Becker 2010, sections 5.2 to 5.4: 3:1 where transfers go one after the other, 2:1 where both directions
/// work at once.
#[test]
fn crossovers_of_two_processors() {
    let bench = Bench::new();
    for (duplex, at) in [(false, 3.0), (true, 2.0)] {
        bench.write("two.toml", platform(duplex));
        let call = format!("{BECKER} 1000 -o sweep.csv --svg sweep.svg");
        let swept = bench.json(&call);
        let crossovers = swept["crossovers"].as_array().unwrap();
        assert_eq!(crossovers.len(), 1, "{swept}");
        assert_eq!(
            (&crossovers[0]["from"], &crossovers[0]["to"]),
            (&"straight-line".into(), &"square-corner".into())
        );
        let found = crossovers[0]["at"].as_f64().unwrap();
        assert!((found - at).abs() < 0.03, "{found}");
        let csv = String::from_utf8(bench.bytes("sweep.csv")).unwrap();
        assert_eq!(csv.lines().count(), 26);
        assert!(csv.starts_with("ratio,straight-line,square-corner,winner,gain\n"), "{csv}");
        let svg = bench.text("sweep.svg");
        assert!(svg.contains("square-corner from "));
        let again = bench.json(&call);
        assert_eq!(again, swept);
    }
    let text = bench.done(&format!("{BECKER} 1000"));
    assert!(text.contains("crossover") && text.contains("square-corner instead of straight-line"), "{text}");
}

/// A plan's own layout, its flows against each other: overlap wins where the network is slow enough to hide.
#[test]
fn the_flows_of_a_plan() {
    let bench = Bench::new();
    bench.write("two.toml", platform(true));
    bench.done("partition --shape 600x600 --platform two.toml --method columns -o plan.json");
    let call = "simulate --plan plan.json --platform two.toml --sweep";
    for range in ["bandwidth=10Mbit/s..100Gbit/s", "latency=1us..100ms", "processors=2..5"] {
        let swept = bench.json(&format!("{call} {range} --sweep-points 4 --block 100"));
        assert_eq!(swept["points"].as_array().unwrap().len(), 4, "{range}");
        assert_eq!(
            swept["contenders"].as_array().unwrap().len(),
            2 * apportion::schedule::Flow::ALL.len(),
            "{range}"
        );
        for point in swept["points"].as_array().unwrap() {
            // 2 x 600^3 operations on at most five processors of 500 Gflop/s.
            let seconds = point["seconds"].as_array().unwrap();
            assert!(
                seconds.iter().all(|s| s.as_f64().unwrap() > 0.999 * 2.0 * 600f64.powi(3) / 2.5e12),
                "{point}"
            );
        }
    }
    let at = |range: &str| {
        let swept = bench.json(&format!("{call} {range} --sweep-points 2 --flow bulk"));
        [0, 1].map(|i| swept["points"][i]["seconds"][0].as_f64().unwrap())
    };
    let [slow, fast] = at("bandwidth=10Mbit/s..100Gbit/s");
    assert!(slow > 10.0 * fast, "{slow} {fast}");
    // The sweep includes the platform as it is.
    let whole = bench.json("simulate --plan plan.json --platform two.toml --flow bulk");
    assert_eq!(at("bandwidth=100Mbit/s..1Gbit/s")[0], whole["seconds"].as_f64().unwrap());
}

/// Three flows on one backbone: in turn, or at once; a sweep and a single forecast agree under either rule.
#[test]
fn a_sweep_follows_the_rule_of_sharing() {
    let bench = Bench::new();
    let processors: String = (0..4)
        .map(|i| format!("[[processor]]\nname = \"p{i}\"\ncluster = \"c{}\"\nspeed = \"1 Gflop/s\"\n", i / 2))
        .collect();
    let network = "[network]\nbandwidth = \"1 Gbit/s\"\nlatency = \"50 us\"\n[[network.link]]\nbetween = [\"c0\", \"c1\"]\n\
        shared = true\nbandwidth = \"100 Mbit/s\"\n";
    bench.write("four.toml", processors + network);
    bench.done("partition --shape 400x400 --platform four.toml --method columns -o plan.json");
    let call = "simulate --plan plan.json --platform four.toml --flow ring --block 100";
    let mut seconds = Vec::new();
    for rule in ["fifo", "fair", "fair --tcp lv08"] {
        let call = format!("{call} --sharing {rule}");
        let swept = bench.json(&format!("{call} --sweep bandwidth=100Mbit/s..10Gbit/s --sweep-points 3"));
        assert!(swept["sharing"].as_str().unwrap().starts_with(&rule[..4]), "{swept}");
        let once = bench.json(&call)["seconds"].as_f64().unwrap();
        assert_eq!(swept["points"][0]["seconds"][0].as_f64().unwrap(), once, "{rule:?}");
        let all: Vec<f64> = (0..3).map(|i| swept["points"][i]["seconds"][0].as_f64().unwrap()).collect();
        assert!(all.windows(2).all(|w| w[0] > w[1]), "{all:?}");
        seconds.push(once);
    }
    assert!(seconds[0] != seconds[1] && seconds[1] != seconds[2], "{seconds:?}");
    bench.fails(2, &format!("{call} --sweep ratio=1..2 --eager 9"));
}

/// Slowdowns that differ are ratios of speeds: enough to compare communication, but not to give times.
#[test]
fn slowdowns_tell_ratios() {
    let bench = Bench::new();
    let slowed = "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\nslowdown = 3.0\n";
    bench.write("memory.toml", slowed);
    bench.write("link.toml", format!("{slowed}[network]\nbandwidth = \"1 Gbit/s\"\nduplex = false\n"));
    let call = "simulate --shape 600x600 --sweep ratio=1..25 --methods straight-line,square-corner";
    let swept = bench.json(&format!("{call} --platform link.toml --flow bulk"));
    let at = swept["crossovers"][0]["at"].as_f64().unwrap();
    assert!((at - 3.0).abs() < 0.03, "{at}");
    let plan = bench.json("partition --units 100 --platform memory.toml -o plan.json");
    assert_eq!(plan["shares"], serde_json::json!([75, 25]));
}
