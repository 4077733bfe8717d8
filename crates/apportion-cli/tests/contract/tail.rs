//! `matmul --tail`: the same bytes, and shares as they were carried out.

use super::bench::{Bench, irrational, whole};
use serde_json::Value;

fn platform(here: &Bench, processors: usize, more: &str) {
    let one = |i| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{} Gflop/s\"\n{more}", i + 1);
    here.write("p.toml", (0..processors).map(one).collect::<String>());
}

fn sum(report: &Value, field: &str) -> u64 {
    report["processors"].as_array().unwrap().iter().map(|p| p[field].as_u64().unwrap()).sum()
}

/// Layouts, flows, element types and semirings: the same bytes with and without a tail, the same volume.
#[test]
fn a_tail_changes_no_byte_and_no_volume() {
    let here = Bench::new();
    here.matrix("a.npy", &irrational::<f64>(700, 90, 0.3));
    here.matrix("b.npy", &irrational::<f64>(90, 650, 0.7));
    here.matrix("a32.npy", &irrational::<f32>(700, 90, 0.3));
    here.matrix("b32.npy", &irrational::<f32>(90, 650, 0.7));
    here.matrix("c0.npy", &irrational::<f64>(700, 650, 0.9));
    platform(&here, 3, "");
    let mut moved = 0;
    for (line, tail) in [
        ("a.npy b.npy --method rows --flow one-to-all --block 16", "10%"),
        ("a.npy b.npy --method columns --flow ring --overlap --block 7", "5%"),
        ("a.npy b.npy --method recursive --flow bulk", "0.1"),
        ("a.npy b.npy --method columns --flow bulk --overlap", "50%"),
        ("a.npy b.npy --method rows --flow broadcast --block 32", "10 %"),
        ("a32.npy b32.npy --method rows --block 64", "20%"),
        ("a.npy b.npy --semiring min-plus --method columns --block 16", "10%"),
        ("a.npy b.npy --c-in c0.npy --alpha 0.5 --beta 2 --method rows --block 16", "10%"),
    ] {
        let run = |more: &str, result: &str| {
            here.json(&format!("matmul {line} --platform p.toml -o {result} {more}"))
        };
        let (without, with) = (run("", "without.npy"), run(&format!("--tail '{tail}'"), "with.npy"));
        let read = |name: &str| here.bytes(name);
        assert!(read("with.npy") == read("without.npy"), "{line}");
        assert_eq!(with["verified"], true);
        assert_eq!(with["volume"], without["volume"], "{line}");
        assert_eq!(with["volume"], with["plan"]["metrics"]["volume"], "{line}");
        assert_eq!(with["peak_memory_bytes"], without["peak_memory_bytes"], "{line}");
        // Every element is computed once.
        assert_eq!(sum(&with, "computed"), 700 * 650, "{line}");
        assert_eq!(sum(&with, "share"), 700 * 650);
        assert!(with["tail"]["tiles"].as_u64().unwrap() > 0, "{line}");
        assert!(without.get("tail").is_none());
        moved += with["tail"]["moved"].as_u64().unwrap();
    }
    // Three unequal emulated speeds on equal cores: some tiles change hands.
    assert!(moved > 0);
}

/// A processor that is slowed to a tenth in mid-run by emulation leaves its tail to the other.
#[test]
fn a_slow_processor_is_helped() {
    let here = Bench::new();
    here.matrix("a.npy", &whole::<f64>(600, 64, 1));
    here.matrix("b.npy", &whole::<f64>(64, 600, 2));
    here.write(
        "p.toml",
        "[[processor]]\nname = \"steady\"\nspeed = 1\n\
         [[processor]]\nname = \"slow\"\nspeed = 1\nslowdown = 20\n",
    );
    let line = "matmul a.npy b.npy --platform p.toml --method rows --block 16 --tail 30%";
    let report = here.json(line);
    let computed = |i: usize| report["processors"][i]["computed"].as_u64().unwrap();
    let share = |i: usize| report["processors"][i]["share"].as_u64().unwrap();
    assert_eq!(computed(0) + computed(1), 360_000);
    // On a busy machine, tiles may move in both directions.
    assert!(computed(0).abs_diff(share(0)) <= report["tail"]["moved"].as_u64().unwrap());
    assert!(here.done(line).contains("tail"));
}
