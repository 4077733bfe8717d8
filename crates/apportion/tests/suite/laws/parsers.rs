//! Whatever a file holds: it is read, or refused in one line with exit code 2; never a panic.

use apportion::error::Error;
use apportion::model::Models;
use apportion::plan::Plan;
use apportion::platform::parse_platform;
use apportion::run::Monitor;
use apportion_events::{EventMatrices, EventOptions, LocalLogic, parse_workcell, simulate_workcell};
use proptest::prelude::*;

const PLATFORM: &str = r#"name = "two"
[[processor]]
name = "a"
cluster = "site/one"
speed = "2.5 Gflop/s"
memory = "16 GiB"
cores = [0, 1]
slowdown = 2.0
[[processor]]
name = "b"
speed = 1.5
[[processor]]
name = "c"
[network]
latency = "50 us"
bandwidth = "1 Gbit/s"
duplex = true
topology = "star"
centre = "a"
emulate = false
[[network.link]]
between = ["a", "b"]
bandwidth = { horizontal = "100 Mbit/s", vertical = "56.39 MB/s" }
[network.matrix]
clusters = ["b", "c"]
bandwidth = [["891.20 MB/s", "249.53 MB/s"], ["249.53 MB/s", "6850.27 MB/s"]]
"#;

const MODELS: &str = r#"{"format": "apportion-models", "version": 1, "kernel": "gemm-f64", "unit": "u",
 "parameters": {"block": 64}, "models": [{"processor": "p0", "interpolation": "piecewise-linear", "max_size": null,
 "points": [{"size": 4096, "seconds": 0.00123, "ci": 0.00002, "repetitions": 12}, {"size": 9000, "seconds": 1}]},
 {"processor": "p1", "interpolation": "constant", "max_size": 50, "points": [{"size": 1, "seconds": 2}]}]}"#;

const PLAN: &str = r#"{"format": "apportion-plan", "version": 1, "method": "square-corner",
 "problem": {"kind": "matmul", "m": 10, "k": 10, "n": 10}, "processors": ["p0", "p1"], "shares": [91, 9],
 "layout": [{"owner": 0, "rows": [0, 7], "cols": [0, 10]}, {"owner": 0, "rows": [7, 10], "cols": [0, 7]},
            {"owner": 1, "rows": [7, 10], "cols": [7, 10]}],
 "metrics": {"sum_half_perimeters": 2.6, "lower_bound": 2.5, "volume": 60, "volume_matrix": [[0, 18], [42, 0]],
             "imbalance": 1.0002, "communication_free": [49, 0]},
 "forecast": {"seconds": 1.23, "compute": [1.0, 1.0], "communicate": [0.2, 0.2]}}"#;

/// A workcell with everything that its file can hold.
const WORKCELL: &str = r#"name = "cell"
dispatching = "last-buffer"
[[part]]
name = "p"
every = "30 s"
first = 2
count = 4
[[resource]]
name = "r"
capacity = 2
reset = "1 s"
dispatching = "shortest"
[[job]]
name = "j"
duration = { triangular = [3, "4 s", 9.5] }
[[job]]
name = "k"
duration = 2
done = 1
[[rule]]
name = "in"
parts = ["p"]
free = ["r"]
done = ["k"]
start = ["j", "k"]
[[rule]]
name = "out"
done = ["j"]
release = ["r"]
produce = ["x"]
priority = 3
[[scenario]]
name = "s"
duration = { k = 4 }
capacity = { r = 1 }
count = { p = 9 }
"#;

/// Reads the text as each kind of file; what is read can be written and read again.
fn read_as_anything(text: &str) {
    let refused = |error: Error| {
        assert_eq!(error.exit_code(), 2, "{error}");
        assert!(!error.to_string().contains(['\n', '\r']), "{error}");
    };
    match parse_platform(text, "p.toml") {
        Ok(platform) => {
            assert_eq!(parse_platform(&platform.to_toml(), "again").unwrap().processors, platform.processors)
        }
        Err(error) => refused(error),
    }
    match Models::parse(text, "m.json") {
        Ok(models) => assert_eq!(Models::parse(&models.to_json(), "again").unwrap(), models),
        Err(error) => refused(error),
    }
    match Plan::parse(text, "plan.json") {
        Ok(plan) => assert_eq!(Plan::parse(&plan.to_json(), "again").unwrap().to_json(), plan.to_json()),
        Err(error) => refused(error),
    }
    // What is read can also be simulated.
    let simulated = parse_workcell(text, "w.toml").and_then(|cell| {
        let matrices = EventMatrices::of(&cell);
        let options = EventOptions { until: Some(100_000_000_000), firings: 50, ..EventOptions::default() };
        simulate_workcell(&cell, &options, &mut LocalLogic::new(&matrices), &Monitor::new())
    });
    match simulated {
        Ok(runs) => assert!(runs.iter().all(|run| run.ended <= 100_000_000_000)),
        Err(error) => refused(error),
    }
}

#[test]
fn the_originals_are_read() {
    parse_platform(PLATFORM, "p").unwrap();
    Models::parse(MODELS, "m").unwrap();
    Plan::parse(PLAN, "p").unwrap();
    assert_eq!(parse_workcell(WORKCELL, "w").unwrap().rules.len(), 2);
}

#[test]
fn line_breaks_in_names_stay_out_of_messages() {
    for text in [
        "[[processor]]\nname = \"a\\nb\"\n[[processor]]\nname = \"a\\nb\"\n",
        "[[processor]]\nname = \"a\\nb\"\nspeed = -1\n",
        "[[processor]]\nname = \"a\"\n[network]\ntopology = \"st\\nar\"\n",
        "[[processor]]\nname = \"a\"\n\"x\\ny\" = 1\n",
        r#"{"format": "apportion-models\n", "version": 1, "kernel": "", "unit": "", "models": []}"#,
        r#"{"format": "apportion-models", "version": 1, "kernel": "", "unit": "", "models":
           [{"processor": "a\nb", "points": [{"size": 0, "seconds": 1}]}]}"#,
    ] {
        read_as_anything(text);
    }
}

/// Values that parsers stumble over.
const ODD: [&str; 22] = [
    "0",
    "-0.0",
    "-1",
    "1e999",
    "-1e999",
    "1e-999",
    "5e-324",
    "1.7976931348623157e308",
    "18446744073709551615",
    "18446744073709551616",
    "9007199254740993",
    "nan",
    "NaN",
    "inf",
    "null",
    "true",
    "\"\"",
    "\"1 parsec\"",
    "[]",
    "{}",
    "[[1]]",
    "\"\\u0000é\\n\"",
];

/// The start and end of the `which`-th number in the text.
fn number(text: &str, which: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let starts: Vec<usize> = (1..bytes.len())
        .filter(|&i| {
            bytes[i].is_ascii_digit() && !bytes[i - 1].is_ascii_alphanumeric() && bytes[i - 1] != b'.'
        })
        .collect();
    let start = starts[which % starts.len()];
    let length = bytes[start..].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    (start, start + length)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_as_anything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn damaged_bytes(
        which in 0usize..4, keep in 0.0f64..2.0,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = [PLATFORM, MODELS, PLAN, WORKCELL][which].as_bytes().to_vec();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate((bytes.len() as f64 * keep) as usize);
        read_as_anything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn odd_numbers(which in 0usize..4, changes in prop::collection::vec((0usize..100, 0..ODD.len()), 1..4)) {
        let mut text = [PLATFORM, MODELS, PLAN, WORKCELL][which].to_owned();
        for (at, odd) in changes {
            let (start, end) = number(&text, at);
            text.replace_range(start..end, ODD[odd]);
        }
        read_as_anything(&text);
    }

    #[test]
    fn lines_and_fields_in_disorder(
        which in 0usize..4, cuts in prop::collection::vec(any::<prop::sample::Index>(), 3), twice: bool,
    ) {
        let text = [PLATFORM, MODELS, PLAN, WORKCELL][which];
        let pieces: Vec<&str> = text.split_inclusive(['\n', ',']).collect();
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(pieces.len())).collect();
        at.sort_unstable();
        let mut order = [&pieces[..at[0]], &pieces[at[1]..at[2]], &pieces[at[0]..at[1]], &pieces[at[2]..]].concat();
        if twice {
            order.extend(&pieces[at[0]..at[1]]);
        }
        read_as_anything(&order.concat());
    }
}
