//! Becker 2010, Theorems 5.1 and 5.2 and sections 5.3 and 5.4, by the command line.

use super::Bench;
use serde_json::Value;

const N: f64 = 1000.0;

fn plan(bench: &Bench, ratio: &str, method: &str, more: &str) -> Value {
    bench.json(&format!("partition --shape 1000x1000x1000 --speeds {ratio},1 --method {method} {more}"))
}

fn volume(plan: &Value) -> f64 {
    plan["metrics"]["volume"].as_f64().unwrap()
}

fn largest_direction(plan: &Value) -> u64 {
    let table = plan["metrics"]["volume_matrix"].as_array().unwrap();
    table.iter().flat_map(|line| line.as_array().unwrap()).map(|v| v.as_u64().unwrap()).max().unwrap()
}

#[test]
fn a_square_corner_moves_two_n_roots_of_the_share() {
    let bench = Bench::new();
    for ratio in 3..=25 {
        let plan = plan(&bench, &ratio.to_string(), "square-corner", "");
        let share = 1.0 / (f64::from(ratio) + 1.0);
        let expected = 2.0 * N * N * share.sqrt();
        assert!((volume(&plan) - expected).abs() <= N, "{ratio}: {} against {expected}", volume(&plan));
    }
}

#[test]
fn crossovers_with_the_straight_line() {
    let bench = Bench::new();
    for (ratio, serial, parallel) in [
        ("1.5", false, false),
        ("1.9", false, false),
        ("2.1", false, true),
        ("2.9", false, true),
        ("3.1", true, true),
        ("9", true, true),
        ("25", true, true),
    ] {
        let corner = plan(&bench, ratio, "square-corner", "");
        let line = plan(&bench, ratio, "straight-line", "");
        assert_eq!(volume(&corner) < volume(&line), serial, "{ratio}:1, whole volume");
        assert_eq!(
            largest_direction(&corner) < largest_direction(&line),
            parallel,
            "{ratio}:1, busier direction"
        );
        for (communication, corner_is_less) in [("serial", serial), ("parallel", parallel)] {
            let hybrid = plan(&bench, ratio, "hybrid", &format!("--communication {communication}"));
            let best = if corner_is_less { &corner } else { &line };
            assert_eq!(hybrid["layout"], best["layout"], "{ratio}:1, {communication}");
        }
    }
}
