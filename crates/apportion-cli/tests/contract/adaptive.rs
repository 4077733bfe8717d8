//! `matmul --adaptive`: a processor becomes slower during the run.

use super::Bench;
use super::bench::{product, whole};
use apportion::matrix::AnyMatrix;
use serde_json::Value;

/// Two equal processors; the second becomes three times slower half-way. Both are slow enough for the clock,
/// and for two busy cores.
const TURNING: &str = "name = \"turning\"\n\
    [[processor]]\nname = \"steady\"\nspeed = \"1 Gflop/s\"\nslowdown = 300\n\
    [[processor]]\nname = \"tiring\"\nspeed = \"1 Gflop/s\"\nslowdown = 300\n\
    slowdown_after = { work = 0.5, slowdown = 900 }\n";

fn total(list: &Value, field: &str) -> u64 {
    list.as_array().unwrap().iter().map(|x| x[field].as_u64().unwrap()).sum()
}

#[test]
#[ignore = "slow"]
fn parts_move_away_from_the_processor_that_turned_slower() {
    let bench = Bench::new();
    bench.write("turning.toml", TURNING);
    let (a, b) = (whole::<f64>(200, 2000, 1), whole::<f64>(2000, 210, 2));
    bench.matrix("a.npy", &a);
    bench.matrix("b.npy", &b);
    let files = "matmul a.npy b.npy -o c.npy --platform turning.toml";
    let run = format!("{files} --block 50 --flow one-to-all --method columns");
    let report = bench.json(&format!("{run} --adaptive --report run.json"));
    let fixed = bench.json(&run);
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(product(&a, &b)));
    assert_eq!((&report["verified"], &fixed["adaptive"]), (&Value::from(true), &Value::Null));

    let adaptive = &report["adaptive"];
    assert_eq!(adaptive["segments"], 40);
    let list = &adaptive["repartitions"];
    let last = list.as_array().unwrap().last().expect("the change is seen");
    assert!(last["after"].as_u64().unwrap() > 1000 / 2, "{last}");
    let shares = [last["shares"][0].as_u64().unwrap(), last["shares"][1].as_u64().unwrap()];
    assert_eq!(shares[0] + shares[1], 200 * 210);
    assert!(shares[0] > shares[1], "three times as fast, but for the noise of other work: {shares:?}");

    // The figures agree with one another.
    assert_eq!(adaptive["moved"].as_u64().unwrap(), total(list, "moved"));
    assert!(adaptive["moved"].as_u64().unwrap() > 0);
    let (sent, received) = (total(&report["processors"], "sent"), total(&report["processors"], "received"));
    assert_eq!((sent, report["volume"].as_u64().unwrap()), (received, received));
    assert!(received > adaptive["moved"].as_u64().unwrap());
    let seconds = report["seconds"].as_f64().unwrap();
    for one in list.as_array().unwrap() {
        let (at, took) = (one["at_seconds"].as_f64().unwrap(), one["seconds"].as_f64().unwrap());
        assert!(at > 0.0 && took >= 0.0 && at + took < seconds, "{one}");
        assert!(one["predicted_gain"].as_f64() > one["predicted_cost"].as_f64(), "{one}");
        let area = |part: &Value| -> u64 {
            let side = |x: &Value| x[1].as_u64().unwrap() - x[0].as_u64().unwrap();
            side(&part["rows"]) * side(&part["cols"])
        };
        assert_eq!(one["layout"].as_array().unwrap().iter().map(area).sum::<u64>(), 200 * 210);
    }
    let text = bench.done(&format!("{run} --adaptive"));
    assert!(text.contains("repartitioned"), "{text}");
}

/// Nothing to gain: one segment or many, adaptive or not, the bytes are the same.
#[test]
fn without_a_repartition_the_bytes_are_those_of_a_plain_run() {
    let bench = Bench::new();
    bench.write("one.toml", "[[processor]]\nname = \"only\"\nspeed = \"1 Gflop/s\"\n");
    let irrational = |x: f64| (x * 0.7310585).sin();
    let filled = |rows: usize, cols: usize| {
        apportion::matrix::Matrix::new(rows, cols, (0..rows * cols).map(|i| irrational(i as f64)).collect())
    };
    bench.matrix("a.npy", &filled(60, 500));
    bench.matrix("b.npy", &filled(500, 70));
    for flow in ["one-to-all", "ring", "bulk"] {
        let run = format!("matmul a.npy b.npy -o c.npy --platform one.toml --block 32 --flow {flow}");
        bench.done(&run);
        let plain = bench.bytes("c.npy");
        for segments in ["1", "5", "1000"] {
            let report = bench.json(&format!("{run} --adaptive --segments {segments}"));
            assert_eq!(report["adaptive"]["repartitions"].as_array().map(Vec::len), Some(0));
            assert_eq!(bench.bytes("c.npy"), plain, "{flow}, {segments}");
        }
    }
}

#[test]
fn a_slow_network_is_in_the_bargain() {
    let bench = Bench::new();
    let network = "[network]\nbandwidth = \"2 kB/s\"\nlatency = \"1 ms\"\nemulate = true\n";
    // Nothing travels but what would move: each processor owns whole rows, and B is a single column.
    bench.write("far.toml", format!("{TURNING}{network}"));
    bench.matrix("a.npy", &whole::<f64>(400, 800, 1));
    bench.matrix("b.npy", &whole::<f64>(800, 1, 2));
    let run = "matmul a.npy b.npy --platform far.toml --block 400 --method rows";
    let report = bench.json(&format!("{run} --flow bulk --adaptive"));
    assert_eq!(report["adaptive"]["moved"], 0, "{}", report["adaptive"]);
}
