//! Layouts that cut the inner dimension: plans, runs, forecasts, and what refuses them.

use super::bench::{Bench, irrational, product, whole};
use apportion::matrix::AnyMatrix;
use serde_json::{Value, json};

/// Four processors of known speed on a network of 4 MB/s.
fn platform(speeds: &[u32], emulate: bool) -> String {
    let one =
        |(i, speed): (usize, &u32)| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{speed} Gflop/s\"\n");
    let all: String = speeds.iter().enumerate().map(one).collect();
    format!("{all}[network]\nlatency = \"50 us\"\nbandwidth = \"4 MB/s\"\nemulate = {emulate}\n")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Slabs by hand: shares of k in proportion, C to the first, and an entry says which inner indices.
#[test]
fn slabs_in_the_plan_file() {
    let here = Bench::new();
    let plan = here.json("partition --shape 20x100x30 --speeds 3,1,1 --method inner -o plan.json");
    assert_eq!(
        plan["layout"],
        json!([
            {"owner": 0, "rows": [0, 20], "cols": [0, 30], "inner": [0, 60]},
            {"owner": 1, "rows": [0, 20], "cols": [0, 30], "inner": [60, 80]},
            {"owner": 2, "rows": [0, 20], "cols": [0, 30], "inner": [80, 100]},
        ])
    );
    assert_eq!(plan["shares"], json!([360, 120, 120]));
    let metrics = &plan["metrics"];
    assert_eq!((number(&metrics["volume"]), number(&metrics["volume_bound"])), (1200, 1160));
    assert_eq!(metrics["volume_matrix"], json!([[0, 600, 0], [0, 0, 600], [0, 0, 0]]));
    assert_eq!(metrics["imbalance"], 1.0);
    // Any plan has a bound, and none is below it.
    let flat = here.json("partition --shape 20x100x30 --speeds 3,1,1 --method columns");
    assert!(number(&flat["metrics"]["volume"]) > number(&flat["metrics"]["volume_bound"]));
    assert_eq!(flat["layout"][0]["inner"], Value::Null, "absent: all of k");
    // The file is read, drawn and exported; a hole in it is an error of one line.
    here.json("partition --plan plan.json --svg plan.svg");
    let svg = here.text("plan.svg");
    assert!(svg.contains("60–80") && svg.contains("slices of the inner dimension"), "{svg}");
    let text = here.text("plan.json");
    for (from, to, wanted) in [
        ("80,\n        100", "80,\n        99", "covered twice, or not at all"),
        ("80,\n        100", "80,\n        101", "inner dimension of 100"),
        ("\"inner\": [", "\"inside\": [", "unknown field"),
        ("360", "361", "shares of the work"),
    ] {
        assert!(text.contains(from), "{text}");
        here.write("bad.json", text.replacen(from, to, 1));
        let told = here.fails(2, "partition --plan bad.json --svg bad.svg");
        assert!(told.contains(wanted) && told.trim_end().lines().count() == 1, "{told}");
    }
}

/// The shape of the documentation: 18 times fewer elements than a grid on C.
#[test]
fn a_long_inner_dimension_is_cut() {
    let here = Bench::new();
    let plan = |method: &str| {
        let shape = "partition --shape 2048x65536x2048 --speeds 1,1,1,1,1,1,1,1";
        here.json(&format!("{shape} --method {method}"))
    };
    let volume = |plan: &Value| number(&plan["metrics"]["volume"]);
    let (auto, boxes, grid) = (plan("auto"), plan("boxes"), plan("grid"));
    assert_eq!(volume(&auto), 7 * 2048 * 2048);
    assert_eq!(volume(&boxes), volume(&auto));
    assert!(volume(&grid) > 18 * volume(&auto), "{}", volume(&grid));
    // Where it is short, auto cuts C only.
    let short = here.json("partition --shape 640x64x640 --speeds 1,1,1,1,1,1,1,1");
    assert!(short["layout"].as_array().unwrap().iter().all(|entry| entry["inner"].is_null()));
}

/// Eight boxes of unequal processors: elements by formula = counted while running = simulated, the same bytes
/// in place, copied and on an emulated network, and every semiring is right.
#[test]
fn runs_count_what_the_plan_says() {
    let here = Bench::new();
    here.write("p.toml", platform(&[4, 3, 2, 2, 1, 1], false));
    here.write("slow.toml", platform(&[4, 3, 2, 2, 1, 1], true));
    here.matrix("a.npy", &irrational::<f64>(33, 120, 0.1));
    here.matrix("b.npy", &irrational::<f64>(120, 29, 0.2));
    let plan = here.json("partition --shape 33x120x29 --platform p.toml --method boxes -o plan.json");
    assert!(plan["layout"].as_array().unwrap().iter().any(|entry| !entry["inner"].is_null()));
    let mut files = Vec::new();
    for flow in ["one-to-all", "one-to-all --overlap", "one-to-all --look-ahead 3", "bulk"] {
        for (i, how) in ["p.toml", "p.toml --copy", "slow.toml"].into_iter().enumerate() {
            let run = here.json(&format!(
                "matmul a.npy b.npy -o c{i}.npy --plan plan.json --flow {flow} --block 16 --platform {how}"
            ));
            assert_eq!(run["verified"], true, "{flow} {how}");
            assert_eq!(run["volume"], plan["metrics"]["volume"], "{flow} {how}");
            assert_eq!(run["volume_lower_bound"], plan["metrics"]["volume_bound"]);
            let memory = |key: &str| run[key].as_array().unwrap().iter().map(number).collect::<Vec<_>>();
            let (peak, predicted) = (memory("peak_memory_bytes"), memory("predicted_memory_bytes"));
            assert!(peak.iter().zip(&predicted).all(|(x, y)| x <= y), "{peak:?} {predicted:?}");
            files.push(std::fs::read(here.join(format!("c{i}.npy"))).unwrap());
        }
        assert!(std::mem::take(&mut files).windows(2).all(|two| two[0] == two[1]), "{flow}");
    }
    let (a, b) = (whole::<f64>(33, 120, 1), whole::<f64>(120, 29, 2));
    here.matrix("a.npy", &a);
    here.matrix("b.npy", &b);
    here.json("matmul a.npy b.npy -o c.npy --plan plan.json --platform p.toml");
    assert_eq!(here.read("c.npy"), AnyMatrix::F64(product(&a, &b)));
    for semiring in ["max-plus", "min-plus"] {
        let run = |plan: &str| {
            here.json(&format!("matmul a.npy b.npy -o c.npy --semiring {semiring} --platform p.toml {plan}"));
            here.read("c.npy")
        };
        assert_eq!(run("--plan plan.json"), run("--method columns"), "{semiring}");
    }
    // The forecast of the plan is that of the run, and there is a timeline.
    let simulated = here.json("simulate --plan plan.json --platform slow.toml --trace trace.svg");
    assert!(simulated["seconds"].as_f64().unwrap() > 0.0);
}

/// On an emulated network of 4 MB/s, slabs take less than a fifth of the time of the best rectangles by
/// forecast, and the run moves what the forecast counts.
#[test]
fn an_emulated_network_shows_it() {
    let here = Bench::new();
    here.write("slow.toml", platform(&[1; 4], true));
    here.matrix("a.npy", &whole::<f64>(64, 4096, 1));
    here.matrix("b.npy", &whole::<f64>(4096, 64, 2));
    let run = |method: &str| {
        here.json(&format!("matmul a.npy b.npy --platform slow.toml --method {method} --flow one-to-all"))
    };
    let (slabs, columns) = (run("inner"), run("columns"));
    assert_eq!(number(&slabs["volume"]), 3 * 64 * 64);
    assert_eq!(number(&columns["volume"]), 4096 * (4 * (32 + 32) - 128));
    let seconds = |run: &Value, key: &str| run[key].as_f64().unwrap();
    assert!(seconds(&columns, "forecast_seconds") > 5.0 * seconds(&slabs, "forecast_seconds"));
    // Two pieces over three hops.
    assert!(seconds(&slabs, "seconds") > 4.0 * (32 * 64 * 8) as f64 / 4e6);
    let auto = run("auto");
    assert_eq!(auto["plan"]["method"], "inner");
}

/// Memory: a processor that cannot hold its face of C gets another layout, or the run is refused by name.
#[test]
fn memory_caps_are_kept() {
    let here = Bench::new();
    let capped = |bytes: u64| {
        let text = platform(&[1; 4], false).replacen("name", &format!("memory = {bytes}\nname"), 1);
        here.write("p.toml", text);
    };
    here.matrix("a.npy", &whole::<f64>(64, 512, 1));
    here.matrix("b.npy", &whole::<f64>(512, 64, 2));
    let slab = 8 * (64 * 128 * 2 + 64 * 64);
    capped(slab + 8 * 128 * 128);
    let run = here.json("matmul a.npy b.npy --platform p.toml --method inner");
    let peak = number(&run["peak_memory_bytes"][0]);
    assert!(peak <= slab + 8 * 128 * 128 && run["verified"] == true, "{peak}");
    capped(64 * 64 * 8);
    let told = here.fails(1, "matmul a.npy b.npy --platform p.toml --method inner");
    assert!(told.contains("\"p0\" would hold"), "{told}");
}
