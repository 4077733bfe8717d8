//! `partition --units` at its limits: sizes without end, time that falls, memory, names, numbers, exports.

use super::Bench;
use serde_json::Value;

fn sum(plan: &Value) -> u64 {
    plan["shares"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).sum()
}

fn models(each: &[(&str, &[(f64, f64)])]) -> String {
    let model = |(name, points): &(&str, &[(f64, f64)])| {
        let points: Vec<String> =
            points.iter().map(|(x, t)| format!("{{\"size\": {x:?}, \"seconds\": {t:?}}}")).collect();
        format!("{{\"processor\": {name:?}, \"points\": [{}]}}", points.join(","))
    };
    let all: Vec<String> = each.iter().map(model).collect();
    format!(
        "{{\"format\": \"apportion-models\", \"version\": 1, \"kernel\": \"k\", \"unit\": \"u\", \"models\": [{}]}}",
        all.join(",")
    )
}

#[test]
fn no_number_of_units_is_too_large() {
    let here = Bench::new();
    here.write("flat.json", models(&[("a", &[(1e3, 0.1), (1e12, 0.1)]), ("b", &[(1e3, 0.1), (1e12, 0.1)])]));
    let a = [(1024.0, 1.4e-4), (16384.0, 1.8e-3), (2f64.powi(64), 4.8e-4)];
    here.write("falls.json", models(&[("a", &a), ("b", &[(1024.0, 2.5e-5), (16384.0, 1.4e-3)])]));
    for (line, n) in [
        ("--units 10T --models flat.json", 10_000_000_000_000),
        ("--units 9000T --models flat.json --method fpm", 9_000_000_000_000_000),
        ("--units 10,000,000,000,000 --models falls.json", 10_000_000_000_000),
        ("--units 1e13 --models falls.json --method exact --any-size", 10_000_000_000_000),
        ("--units 1T --speeds 9,1 --multiple-of 64,1", 1_000_000_000_000),
        ("--units 1T --speeds 9,1 --method exact", 1_000_000_000_000),
        ("--units 1T --speeds 5,3,1 --multiple-of 640,128,9", 1_000_000_000_000),
    ] {
        let plan = here.json(&format!("partition {line}"));
        assert_eq!(sum(&plan), n, "{line}");
        assert!(plan["metrics"]["imbalance"].as_f64().unwrap() >= 1.0, "{line}: {plan}");
    }
}

/// The sizes and times of HPOPTA's publication: `fpm` gives 9 s, the optimum is 1 s.
#[test]
fn where_time_falls_exact_is_taken_and_says_why() {
    let here = Bench::new();
    let times = [
        [6, 13, 2, 12, 14, 14, 13, 1, 3, 4, 20, 2, 11, 5, 3, 10],
        [12, 10, 7, 6, 4, 4, 8, 1, 3, 16, 13, 13, 16, 18, 20, 17],
        [1, 7, 4, 4, 8, 9, 1, 14, 13, 14, 19, 15, 18, 18, 16, 19],
        [6, 3, 4, 4, 3, 2, 7, 9, 13, 14, 13, 16, 19, 17, 15, 20],
    ];
    let points: Vec<Vec<(f64, f64)>> = times
        .iter()
        .map(|row| row.iter().zip(1..).map(|(&t, x)| (f64::from(x), f64::from(t))).collect())
        .collect();
    let named: Vec<(&str, &[(f64, f64)])> =
        ["a", "b", "c", "d"].into_iter().zip(points.iter().map(Vec::as_slice)).collect();
    here.write("hp.json", models(&named));
    let plan = here.json("partition --units 16 --models hp.json");
    assert_eq!((&plan["method"], plan["forecast"]["seconds"].as_f64()), (&Value::from("exact"), Some(1.0)));
    assert_eq!(plan["method_reason"], "time of a falls between 2 and 3 units");
    let text = here.done("partition --units 16 --models hp.json");
    assert!(text.contains("exact (time of a falls between 2 and 3 units)"), "{text}");
    let asked = here.run("partition --units 16 --models hp.json --method fpm");
    let warned = String::from_utf8(asked.stderr).unwrap();
    assert!(warned.contains("time of a falls between 2 and 3 units"), "{warned}");
    for line in ["--method exact", "--method exact --any-size", "--method even"] {
        let plan = here.json(&format!("partition --units 16 --models hp.json {line}"));
        assert!(plan["metrics"]["imbalance"].as_f64().unwrap() >= 1.0, "{line}: {plan}");
    }
    here.write("few.json", models(&[("a", &[(4.0, 1.0), (10.0, 2.0)]), ("b", &[(4.0, 1.0)])]));
    let told = here.fails(1, "partition --units 9 --models few.json --method exact --max 8");
    assert!(told.contains("--any-size") && told.contains("--max"), "{told}");
}

#[test]
fn memory_caps_units_of_known_size() {
    let here = Bench::new();
    here.write(
        "p.toml",
        "[[processor]]\nname = \"a\"\nspeed = 2\nmemory = \"1,000 B\"\n[[processor]]\nname = \"c\"\nspeed = 1\n",
    );
    let blind = here.run("partition --units 900 --platform p.toml");
    assert!(String::from_utf8(blind.stderr).unwrap().contains("memory is not considered"));
    let plan = here.json("partition --units 900 --platform p.toml --bytes-per-unit 10");
    assert_eq!(plan["shares"], serde_json::json!([100, 800]));
    let told = here.fails(2, "partition --units 900 --speeds 2,1 --bytes-per-unit 10");
    assert!(told.contains("no processor of the platform has a memory"), "{told}");
}

/// Lastovetsky and Reddy 2007: n1 rows of an n x n product are n1 n^2 multiply-adds.
#[test]
fn surfaces_state_their_work() {
    let here = Bench::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../platforms/fpm-2007-surfaces.json");
    let seconds =
        here.json(&format!("partition --units 1500 --surfaces {file} --at n=1.5k"))["forecast"]["seconds"]
            .as_f64()
            .unwrap();
    // By hand: X1 to X4 at 134.9 and X5 to X8 at 10.0 million multiply-adds per second, on 1500^3.
    assert!((seconds - 5.88).abs() < 0.01, "{seconds}");
    let points: Vec<String> =
        (1..=1800).map(|i| format!("{{\"at\": [{i}, {i}, {i}], \"seconds\": 1}}")).collect();
    let surfaces = |points: &str| {
        format!(
            "{{\"format\": \"apportion-surfaces\", \"version\": 1, \"kernel\": \"k\", \"axes\": [\"m\", \"k\", \"n\"], \
             \"surfaces\": [{{\"processor\": \"p\", \"points\": [{points}]}}]}}"
        )
    };
    here.write("large.json", surfaces(&points.join(",")));
    let told = here.fails(2, "partition --shape 9x9 --surfaces large.json");
    assert!(told.contains("is missing"), "{told}");
}

#[test]
fn numbers_are_read_as_people_write_them_and_refused_briefly() {
    let here = Bench::new();
    here.write(
        "p.toml",
        "[[processor]]\nname = \"a\"\nspeed = \"1.5 kunits/s\"\n[[processor]]\nname = \"b\"\nspeed = \"500 units/s\"\n\
         [network]\nbandwidth = \"1 Gbps\"\nlatency = \"1_000 us\"\n",
    );
    for n in ["2000", "2e3", "2k", "2,000", "2_000"] {
        let plan = here.json(&format!("partition --units {n} --platform p.toml"));
        assert_eq!(
            (&plan["shares"], plan["forecast"]["seconds"].as_f64()),
            (&serde_json::json!([1500, 500]), Some(1.0))
        );
    }
    here.write(
        "two.toml",
        "[[processor]]\nname = \"a\"\nspeed = \"1 Gflop/s\"\n[[processor]]\nname = \"b\"\n\
        speed = \"1 Gflop/s\"\n[network]\nbandwidth = \"100 Mbps\"\n",
    );
    let swept = here.json(
        "simulate --shape 1,000x1k --platform two.toml --sweep bandwidth=100Mbps..1Gbps --methods rows",
    );
    assert_eq!(swept["from"], 12.5e6);
    here.json("simulate --shape 100x100 --platform two.toml --sweep ratio=1..1k --methods rows");
    let long = "9".repeat(5000);
    for line in [
        format!("partition --units {long}x --speeds 1,1"),
        format!("partition --shape {long}y --speeds 1,1"),
        "partition --units 10 --speeds 9e-320,1e-320".to_owned(),
        "partition --units 10 --speeds 1e300,1e-300".to_owned(),
        "partition --units ten --speeds 1,1".to_owned(),
        "matmul a b -o c --panels x".to_owned(),
        "matmul a b -o c --seed 1x".to_owned(),
    ] {
        let told = here.fails(2, &line);
        assert!(told.chars().count() < 330 && !told.contains("invalid digit"), "{told}");
        assert!(!told.contains("0.000000000"), "{told}");
    }
    let told = here.fails(2, "partition --units 10 --speeds 9e-320,1e-320");
    assert!(told.contains("--speeds") && !told.contains("model"), "{told}");
}

#[test]
fn a_saved_plan_is_exported() {
    let here = Bench::new();
    here.done("partition --units 8 --speeds 3,1 -o plan.json");
    assert_eq!(here.done("partition --plan plan.json --export slurm"), "p0\n".repeat(6) + &"p1\n".repeat(2));
    assert_eq!(
        here.done("partition --units 8 --speeds 3,1 --export slurm"),
        "p0\n".repeat(6) + &"p1\n".repeat(2)
    );
    here.done("partition --plan plan.json --svg plan.svg");
    assert!(here.text("plan.svg").starts_with("<svg"));
    assert!(here.fails(2, "partition --plan plan.json").contains("--export"));
    assert!(here.fails(2, "partition --plan plan.json --export csv --units 3").contains("--units"));
    let refused = here.fails(2, "partition --units 0 --speeds 3,1 --export csv");
    assert!(refused.contains("0 is less than 1"), "{refused}");
}
