//! `APPORTION_INSTRUCTIONS`: narrower registers give the same bytes.

use super::bench::{Bench, irrational, whole};
use apportion_testing::Words;
use std::process::Output;

fn with(bench: &Bench, set: &str, arguments: &(impl Words + ?Sized)) -> Output {
    bench.command(arguments).env("APPORTION_INSTRUCTIONS", set).output().unwrap()
}

#[test]
fn every_set_of_instructions_gives_the_same_product() {
    let bench = Bench::new();
    bench.matrix("a.npy", &irrational::<f64>(70, 70, 0.3));
    bench.done("measure --processors 2 --sizes 64,400 --max-seconds 0.05 --reproducible -o models.json");
    let product = |set: &str| {
        let run = "matmul a.npy a.npy -o c.npy --models models.json --reproducible";
        let output = with(&bench, set, run);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        bench.bytes("c.npy")
    };
    assert_eq!(product("avx512"), product(""));
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        assert_eq!(product("avx2"), product(""));
        // Portable kernels round products and sums apart; the others fuse them.
        assert_ne!(product("portable"), product(""));
    }
}

/// What one set has begun, another that rounds in another way does not go on with.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_checkpoint_of_other_instructions_is_refused() {
    if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
        return;
    }
    let bench = Bench::new();
    bench.matrix("a.npy", &irrational::<f64>(70, 70, 0.3));
    for (call, directory) in [("factor a.npy --kind lu", "factors"), ("matmul a.npy a.npy", "panels")] {
        let call = format!("{call} -o c.npy --speeds 1 --block 16");
        assert!(with(&bench, "portable", &format!("{call} --checkpoint {directory}")).status.success());
        let said = bench.fails(2, &format!("{call} --resume {directory}"));
        apportion_testing::holds(&said, &["its settings were", "portable", "fused"]);
        assert!(with(&bench, "portable", &format!("{call} --resume {directory}")).status.success());
    }
}

#[test]
fn the_limit_is_shown_and_a_wrong_one_refused() {
    let bench = Bench::new();
    let detected = with(&bench, "portable", "detect --json");
    let detected: serde_json::Value = serde_json::from_slice(&detected.stdout).unwrap();
    assert_eq!(detected["instructions"], "portable");
    let refused = with(&bench, "avx3", "detect");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(
        told.contains("APPORTION_INSTRUCTIONS") && told.contains("avx2") && told.lines().count() == 1,
        "{told}"
    );
}

/// Speeds of narrow registers are not those of wide ones.
#[test]
fn each_set_of_instructions_has_speeds_of_its_own() {
    let bench = Bench::with_empty_cache();
    bench.matrix("a.npy", &whole::<f64>(40, 40, 1));
    let run = "matmul a.npy a.npy -o c.npy --block 32";
    for (set, files) in [("portable", 1), ("", 2), ("avx512", 2), ("portable", 2)] {
        assert!(with(&bench, set, run).status.success());
        assert_eq!(std::fs::read_dir(bench.cache().join("apportion")).unwrap().count(), files, "{set}");
    }
}
