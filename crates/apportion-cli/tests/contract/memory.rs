//! Memory: the prediction beside the amount held, which stays within the processors' caps.

use super::Bench;
use super::bench::{TWO, product, whole};
use apportion::matrix::AnyMatrix;
use serde_json::Value;

/// Four processors at 4:3:2:1, the last with a cap.
fn four(cap: &str) -> String {
    let names = ["a", "b", "c", "d"];
    let processor = |(i, name): (usize, &str)| {
        format!("[[processor]]\nname = \"{name}\"\nspeed = \"{} Mflop/s\"\n", 4 - i)
    };
    let all: String = names.into_iter().enumerate().map(processor).collect();
    format!("name = \"four\"\n{all}{cap}")
}

fn held(run: &Value, field: &str) -> Vec<u64> {
    run[field].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).collect()
}

#[test]
fn predicted_bytes_stand_beside_those_held() {
    let bench = Bench::new();
    bench.write("four.toml", four(""));
    bench.matrix("a.npy", &whole::<f32>(31, 50, 1));
    bench.matrix("b.npy", &whole::<f32>(50, 23, 2));
    for method in ["rows", "columns", "recursive"] {
        for flow in ["one-to-all", "ring", "bulk", "broadcast"] {
            let call = "matmul a.npy b.npy --platform four.toml --block 8";
            let run = bench.json(&format!("{call} --method {method} --flow {flow}"));
            let (predicted, peak) = (held(&run, "predicted_memory_bytes"), held(&run, "peak_memory_bytes"));
            assert_eq!(predicted, peak, "{method} {flow}");
            let shares = held(&run["plan"], "shares");
            let own = shares.iter().zip(&peak).all(|(share, peak)| *peak >= 4 * share);
            assert!(own, "each holds at least its own part of C: {peak:?} bytes for {shares:?} elements");
        }
    }
    let text = bench.done("matmul a.npy b.npy --platform four.toml -v");
    assert!(text.lines().any(|line| line.ends_with("memory  predicted")), "{text}");
}

/// Tinetti 3.4.4 by hand: m, k, n = 40, 240, 80 in strips of 16, 12, 8, 4 rows, B in four column blocks of
/// 20. "d" owns 4 x 240 + 240 x 20 + 4 x 80 elements, and beside them may hold 60 rows of 20: four blocks.
#[test]
fn the_smallest_block_count_that_fits_is_taken() {
    let bench = Bench::new();
    let own = 8 * (4 * 240 + 240 * 20 + 4 * 80);
    let (a, b) = (whole(40, 240, 1), whole(240, 80, 2));
    bench.matrix("a.npy", &a);
    bench.matrix("b.npy", &b);
    let call = "matmul a.npy b.npy -o c.npy --platform four.toml --method rows --flow broadcast";
    for (rows, blocks) in [(240, 1), (239, 2), (120, 2), (119, 3), (60, 4), (59, 5), (33, 8)] {
        bench.write("four.toml", four(&format!("memory = {}\n", own + 8 * rows * 20)));
        let run = bench.json(call);
        assert_eq!(bench.read("c.npy"), AnyMatrix::F64(product(&a, &b)));
        let fit = &run["memory_fit"];
        assert_eq!(run["pairs"][0]["messages"], blocks, "{rows}: {fit}");
        assert!(held(&run, "peak_memory_bytes")[3] <= own + 8 * rows * 20);
        if blocks == 1 {
            assert!(fit.is_null());
            continue;
        }
        assert_eq!((&fit["blocks"], &fit["processor"]), (&blocks.into(), &"d".into()));
        assert_eq!(fit["needed_bytes"], own + 8 * 240 * 20);
        assert_eq!(fit["memory_bytes"], own + 8 * rows * 20);
    }
    bench.write("four.toml", four(&format!("memory = {}\n", own + 8 * 60 * 20)));
    let text = bench.done(call);
    assert!(text.contains("4 blocks of 60: with larger ones \"d\" would hold"), "{text}");
}

/// Requested values are kept; if there is nothing else to choose, the error is one line.
#[test]
fn what_exceeds_a_cap_is_refused() {
    let bench = Bench::new();
    let own = 8 * (4 * 240 + 240 * 20 + 4 * 80);
    bench.write("four.toml", four(&format!("memory = {}\n", own + 8 * 60 * 20)));
    bench.matrix("a.npy", &whole::<f64>(40, 240, 1));
    bench.matrix("b.npy", &whole::<f64>(240, 80, 2));
    bench.done("partition --shape 40x240x80 --platform four.toml --method rows -o plan.json");
    let call = "matmul a.npy b.npy -o c.npy --platform four.toml --plan plan.json --flow broadcast";
    bench.json(&format!("{call} --blocks 4"));
    bench.remove("c.npy");
    let refused = bench.fails(1, &format!("{call} --blocks 3"));
    for words in ["processor \"d\"", "61.4 kB", "58.2 kB", "--blocks N", "--panels N"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    // Left open, the block count of a given plan is chosen too.
    assert_eq!(bench.json(call)["memory_fit"]["blocks"], 4);
    // A simulation takes the same blocks, and says so.
    let simulated = "simulate --plan plan.json --platform four.toml --flow broadcast";
    assert_eq!(bench.json(simulated)["memory_fit"]["blocks"], 4);
    let text = bench.done(simulated);
    assert!(text.contains("4 blocks of 60: with larger ones \"d\" would hold"), "{text}");
    bench.write("four.toml", four("memory = 1000\n"));
    assert!(bench.fails(1, &call).contains("1.0 kB"));
}

/// Caps too small for any block: C is cut into the smallest number of panels that fits, and the output says
/// why.
#[test]
fn panels_are_cut_where_nothing_else_fits() {
    let bench = Bench::new();
    let (m, k, n) = (61, 40, 30);
    let (a, b) = (whole(m, k, 1), whole(k, n, 2));
    bench.matrix("a.npy", &a);
    bench.matrix("b.npy", &b);
    let call = "matmul a.npy b.npy -o c.npy --platform two.toml";
    let capped = |bytes: u64| {
        let with = |name: &str| format!("name = \"{name}\"\nmemory = {bytes}");
        TWO.replace("name = \"fast\"", &with("fast")).replace("name = \"slow\"", &with("slow"))
    };
    let mut counts = Vec::new();
    for bytes in [40_000, 20_000, 14_000, 11_000, 4_000, 2_000] {
        bench.write("two.toml", capped(bytes));
        let run = bench.json(call);
        assert_eq!(bench.read("c.npy"), AnyMatrix::F64(product(&a, &b)), "{bytes}");
        assert!(held(&run, "peak_memory_bytes").into_iter().all(|peak| peak <= bytes), "{bytes}: {run}");
        assert!(held(&run, "predicted_memory_bytes").into_iter().all(|most| most <= bytes));
        let panels = &run["panels"];
        counts.push(panels["count"].as_u64().unwrap_or(1));
        if !panels.is_null() {
            assert_eq!(panels["decided_by"], "the processors' memory");
            // One less would not fit.
            let asked = (counts.last().unwrap() - 1).to_string();
            if panels["segment"] == k && asked != "1" {
                let refused = bench.fails(1, &format!("{call} --panels {asked}"));
                assert!(refused.contains("memory"), "{refused}");
            }
        }
    }
    assert!(counts[0] == 1 && counts.is_sorted() && *counts.last().unwrap() > 4, "{counts:?}");
    bench.write("two.toml", capped(20));
    assert!(bench.fails(1, call).contains("memory"));
    bench.write("two.toml", capped(11_000));
    let text = bench.done(call);
    assert!(text.contains("by the processors' memory"), "{text}");
}
