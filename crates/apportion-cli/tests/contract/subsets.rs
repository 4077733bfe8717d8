//! Processors that stay out: who and why, and that every reader of a plan takes shares of zero. The
//! certificate of time, and shares by forecast.

use super::Bench;
use super::bench::{irrational, product};
use apportion::matrix::{AnyMatrix, Matrix};

/// Four equal nodes, two of them behind slow uplinks.
fn old_nodes(more: &str) -> String {
    let node = |name| format!("[[processor]]\nname = \"{name}\"\nspeed = \"10 Gflop/s\"\n{more}");
    let uplink = |name| format!("[[network.uplink]]\nof = \"{name}\"\nbandwidth = \"10 Mbit/s\"\n");
    ["new1", "new2", "old1", "old2"].map(node).concat()
        + "[network]\nlatency = \"5 us\"\nbandwidth = \"10 Gbit/s\"\n"
        + &["old1", "old2"].map(uplink).concat()
}

#[test]
fn nodes_behind_slow_links_stay_out() {
    let here = Bench::new();
    // A row and a column alone take 2,560 s to an old node; the two new ones need 800 s for everything.
    here.write("four.toml", old_nodes("").replace("10 Mbit/s", "1 kbit/s"));
    let line = "partition --shape 20000x20000 --platform four.toml";
    let plan = here.json(line);
    let shares: Vec<u64> = plan["shares"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect();
    assert_eq!(shares[2..], [0, 0]);
    assert_eq!(plan["processors"].as_array().unwrap().len(), 4);
    let out = plan["choice"]["left_out"].as_array().unwrap();
    let names: Vec<&str> = out.iter().map(|o| o["processor"].as_str().unwrap()).collect();
    assert_eq!(names, ["old1", "old2"]);
    let why = out[0]["why"].as_str().unwrap();
    assert!(why.contains("of communication"), "{why}");
    let text = here.done(line);
    assert!(text.contains("old1 and old2 stay out: they would add"), "{text}");
    assert!(text.contains("of what any plan could do") || text.contains("no plan could be faster"), "{text}");
    let all = here.json(&format!("{line} --keep-all"));
    assert!(all["shares"].as_array().unwrap().iter().all(|s| s.as_u64() > Some(0)));
    assert!(all["choice"].get("left_out").is_none());
    let seconds = |plan: &serde_json::Value| plan["forecast"]["seconds"].as_f64().unwrap();
    assert!(seconds(&plan) < 0.6 * seconds(&all), "{} {}", seconds(&plan), seconds(&all));
    // A bound that holds for both: it depends on the platform, not on the plan.
    let bound = |plan: &serde_json::Value| plan["metrics"]["time_bound"].as_f64().unwrap();
    assert_eq!(bound(&plan), bound(&all));
    let ratio = plan["metrics"]["forecast_over_bound"].as_f64().unwrap();
    assert!((ratio - seconds(&plan) / bound(&plan)).abs() < 1e-9 && ratio >= 1.0, "{ratio}");
    // A named method keeps all processors, and ratios of speeds have no certificate.
    let named = here.json(&format!("{line} --method columns"));
    assert!(named["shares"].as_array().unwrap().iter().all(|s| s.as_u64() > Some(0)));
    let ratios = here.json("partition --shape 100x100 --speeds 9,1");
    assert!(ratios["metrics"].get("time_bound").is_none());
}

/// A device behind 20 MB/s, with 0.2 % of the work, would save a few microseconds of 17 ms.
#[test]
fn processors_that_save_little_stay_out() {
    let here = Bench::new();
    here.write(
        "two.toml",
        "[[processor]]\nname = \"cpu\"\nspeed = \"40 Gflop/s\"\n[[processor]]\nname = \"gpu\"\ndevice = \"opencl:0\"\n\
         speed = \"50 Gflop/s\"\n[[network.link]]\nbetween = [\"gpu\", \"cpu\"]\nbandwidth = \"20 MB/s\"\n",
    );
    let text = here.done("partition --shape 700x700 --platform two.toml");
    assert!(text.contains("gpu stays out: it would save only 0."), "{text}");
    assert!(text.contains("none: cpu alone is as fast"), "{text}");
    let all = here.done("partition --shape 700x700 --platform two.toml --keep-all");
    assert!(!all.contains("stays out"), "{all}");
}

/// Threads, powers, closures, simulation, arrangement, exports and pictures read a plan with shares of zero.
#[test]
fn every_reader_of_a_plan_takes_shares_of_zero() {
    let here = Bench::new();
    here.write("four.toml", old_nodes(""));
    let (a, b) = (irrational::<f64>(120, 120, 1.0), irrational::<f64>(120, 120, 2.0));
    here.matrix("a.npy", &a);
    here.matrix("b.npy", &b);
    let lengths = a.as_slice().iter().map(|x| x.abs()).collect();
    here.matrix("d.npy", &Matrix::new(120, 120, lengths));
    let plan = here.json("partition --shape 120x120 --platform four.toml --block 30 -o plan.json");
    assert_eq!(plan["shares"][3], 0, "{plan}");
    let right = product(&a, &b);
    for more in ["", "--copy", "--flow ring --overlap", "--flow bulk", "--flow broadcast", "--adaptive"] {
        let line = format!("matmul a.npy b.npy -o c.npy --plan plan.json --platform four.toml {more}");
        let run = here.json(&line);
        assert_eq!(run["verified"], true, "{more}");
        let AnyMatrix::F64(c) = here.read("c.npy") else { panic!("a product of doubles") };
        for (x, y) in c.as_slice().iter().zip(right.as_slice()) {
            assert!((x - y).abs() <= 1e-9 * y.abs().max(1.0), "{more}: {x} {y}");
        }
    }
    for line in [
        "power a.npy -k 3 -o p.npy --semiring max-plus --plan plan.json --platform four.toml",
        "closure d.npy -o p.npy --semiring min-plus --predecessors q.npy --plan plan.json --platform four.toml",
        "simulate --plan plan.json --platform four.toml",
        "simulate --plan plan.json --platform four.toml --sharing fair",
        "simulate --plan plan.json --platform four.toml --sweep bandwidth=1Mbit/s..1Gbit/s --sweep-points 2",
        "arrange --plan plan.json --platform four.toml -o arranged.json --svg arranged.svg",
        "partition --plan plan.json --export csv --svg plan.svg",
        "partition --plan plan.json --export mpich",
    ] {
        here.done(line);
    }
    assert_eq!(here.done("partition --plan plan.json --export mpich").lines().count(), 2);
    // A plan from a file keeps its certificate, and a run has one of its own.
    let read = here.json("matmul a.npy b.npy --plan plan.json --platform four.toml");
    assert!(read["plan"]["metrics"]["time_bound"].as_f64() > Some(0.0), "{read}");
}

/// Emulated, the choice is made for the network that the run has.
#[test]
fn an_emulated_run_leaves_slow_links_alone() {
    let here = Bench::new();
    let text = old_nodes("").replace("[network]\n", "[network]\nemulate = true\n");
    here.write("four.toml", text);
    here.matrix("a.npy", &irrational::<f64>(256, 256, 1.0));
    let run = here.json("matmul a.npy a.npy --platform four.toml --block 64");
    assert_eq!(run["verified"], true);
    assert_eq!(run["plan"]["shares"][2], 0, "{}", run["plan"]["shares"]);
    assert_eq!(run["choice"]["left_out"][0]["processor"], "old1");
    let all = here.json("matmul a.npy a.npy --platform four.toml --block 64 --keep-all");
    assert!(all["plan"]["shares"].as_array().unwrap().iter().all(|s| s.as_u64() > Some(0)));
}

/// Memory caps hold for the processors that remain: where they cannot hold the matrices, the others stay in.
#[test]
fn memory_caps_keep_processors_in() {
    let here = Bench::new();
    here.write("four.toml", old_nodes("memory = \"1 MiB\"\n"));
    let plan = here.json("partition --shape 280x280 --platform four.toml --block 32");
    // A, B and C take 1.8 MiB, and two processors have 2 MiB; with the data in flight that is too little.
    let shares: Vec<u64> = plan["shares"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect();
    assert!(shares.iter().filter(|s| **s > 0).count() >= 2, "{shares:?}");
    here.write("roomy.toml", old_nodes("memory = \"1 GiB\"\n"));
    let roomy = here.json("partition --shape 280x280 --platform roomy.toml --block 32");
    assert!(roomy["forecast"]["seconds"].as_f64() <= plan["forecast"]["seconds"].as_f64());
}

#[test]
fn shares_by_forecast_are_never_slower() {
    let here = Bench::new();
    let node = |name: &str, cluster: &str, speed: u32| {
        format!("[[processor]]\nname = \"{name}\"\ncluster = \"{cluster}\"\nspeed = \"{speed} Gflop/s\"\n")
    };
    let text = node("a", "x", 8) + &node("b", "x", 5) + &node("c", "y", 7) + &node("d", "y", 3);
    here.write(
        "two.toml",
        text + "[network]\nlatency = \"50 us\"\nbandwidth = \"300 Mbit/s\"\n[[network.link]]\n\
                between = [\"x\", \"x\"]\nbandwidth = \"3 Gbit/s\"\n",
    );
    let seconds = |more: &str| {
        let plan = here.json(&format!("partition --shape 2048x2048 --platform two.toml {more}"));
        plan["forecast"]["seconds"].as_f64().unwrap()
    };
    let (plain, open) = (seconds("--shares proportional"), seconds(""));
    assert!(open < plain, "{open} {plain}");
    assert!(seconds("--method columns --shares forecast") <= seconds("--method columns"));
    let text = here.done("partition --shape 2048x2048 --platform two.toml");
    assert!(text.contains("less time than in proportion to the speeds"), "{text}");
    let refused = here.fails(2, "partition --shape 64x64 --speeds 9,1 --method columns --shares forecast");
    assert!(refused.contains("--shares forecast"), "{refused}");
}

/// A sweep over the number of processors has auto among its candidates: it leaves processors out, too.
#[test]
fn a_sweep_over_processors_agrees() {
    let here = Bench::new();
    here.write("four.toml", old_nodes(""));
    let sweep = here.json("simulate --shape 4096x4096 --platform four.toml --sweep processors=1..4");
    let names = sweep["contenders"].as_array().unwrap();
    let auto = names.iter().position(|name| name == "auto").unwrap();
    let mut before = f64::INFINITY;
    for point in sweep["points"].as_array().unwrap() {
        let all = point["seconds"].as_array().unwrap();
        let ours = all[auto].as_f64().unwrap();
        let best = all.iter().filter_map(serde_json::Value::as_f64).fold(f64::INFINITY, f64::min);
        // Processors that save less than 2 % stay out.
        assert!(ours <= best * 1.02 && ours <= before * (1.0 + 1e-9), "{point}");
        before = ours;
    }
    let plan = here.json("partition --shape 4096x4096 --platform four.toml");
    assert!((plan["forecast"]["seconds"].as_f64().unwrap() / before - 1.0).abs() < 1e-9);
    let levels = here.json(
        "simulate --shape 512x512 --platform four.toml --sweep latency=1us..1ms --sweep-points 2 \
         --methods columns --levels rows",
    );
    assert_eq!(levels["contenders"].as_array().unwrap().len(), 2, "{levels}");
}
