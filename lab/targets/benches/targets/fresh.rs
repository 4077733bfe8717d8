//! Fresh starts: the command with an empty cache, which chooses its kernel, measures speeds and computes.

use super::Row;
use harness::rivals::binary;
use std::process::{Command, Stdio};

/// How far from 1 both ratios may be.
const NEAR: f64 = 0.05;

/// How many starts have seconds / ideal and forecast / measured near 1, and how many of the others said what
/// disturbed them.
pub fn rows(quick: bool) -> Vec<Row> {
    let Some(program) = binary() else {
        eprintln!("fresh starts: no release binary (cargo build --release); their row is left out");
        return Vec::new();
    };
    let (starts, n) = (20, if quick { "3000" } else { "4000" });
    let place = tempfile::tempdir().expect("a temporary directory");
    let at = place.path();
    for name in ["a.npy", "b.npy"] {
        let mut random = Command::new(&program);
        random.args(["random", n, n, "-o", name]).current_dir(at).stdout(Stdio::null());
        assert!(random.status().is_ok_and(|status| status.success()), "apportion random");
    }
    let (mut near, mut silent) = (0, 0);
    for start in 0..starts {
        let cache = at.join(start.to_string());
        let mut product = Command::new(&program);
        product.args(["matmul", "a.npy", "b.npy", "-o", "c.npy", "--json"]);
        let output = product.current_dir(at).env("XDG_CACHE_HOME", &cache).output().expect("the binary runs");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let seconds = |name: &str| report[name].as_f64().expect("seconds");
        let ratios =
            [seconds("seconds") / seconds("ideal_seconds"), seconds("forecast_seconds") / seconds("seconds")];
        let is_near = ratios.iter().all(|ratio| (ratio - 1.0).abs() <= NEAR);
        near += usize::from(is_near);
        silent += usize::from(!is_near && output.stderr.is_empty());
    }
    let row = |what: &str, figure: usize, limit: usize, met| {
        (format!("fresh starts, n = {n}, of {starts}: {what}"), figure as f64, limit as f64, met)
    };
    vec![
        row("within 5 % of ideal and forecast", near, 18, near >= 18),
        row("further off without a word", silent, 0, silent == 0),
    ]
}
