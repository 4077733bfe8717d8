//! One rule: a speed without a unit is a ratio, and nothing prints, writes or draws seconds from ratios.

use crate::bench::Bench;
use serde_json::Value;

/// Two processors at 9:1, without costs of communication and with.
const BARE: &str = "[[processor]]\nname = \"a\"\nspeed = 9\n[[processor]]\nname = \"b\"\nspeed = 1\n";
const LINKED: &str = "[network]\nlatency = \"1 ms\"\nbandwidth = \"1 MB/s\"\n";

/// Every number in seconds, by key, at any depth.
fn seconds_of(value: &Value, key: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(name, v)| seconds_of(v, name)).collect(),
        Value::Array(items) => items.iter().flat_map(|v| seconds_of(v, key)).collect(),
        Value::Number(_) if ["seconds", "compute", "communicate"].iter().any(|k| key.contains(k)) => {
            vec![key.to_owned()]
        }
        _ => Vec::new(),
    }
}

/// True if some number is followed by a unit of time.
fn shows_a_time(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|w| {
        w[0].ends_with(|c: char| c.is_ascii_digit())
            && ["s", "ms", "us", "min", "h"].contains(&w[1].trim_matches([',', ')', '(']))
    })
}

#[test]
fn ratios_give_no_seconds_in_any_form() {
    let here = Bench::new();
    here.write("bare.toml", BARE);
    here.write("linked.toml", format!("{BARE}{LINKED}"));
    here.write("slow.toml", BARE.replace("speed = 9", "slowdown = 2").replace("speed = 1", "slowdown = 2"));
    here.write("flops.toml", BARE.replace("= 9", "= \"9 Gflop/s\"").replace("= 1", "= \"1 Gflop/s\""));
    for line in [
        "partition --units 1000 --speeds 9,1",
        "partition --units 1000 --speeds 9:1 --max 800,1024",
        "partition --units 1000 --speeds 9:1 --method even",
        "partition --units 1000 --speeds 9:1 --method exact",
        "partition --units 1000 --platform bare.toml --hierarchical",
        "partition --units 1000 --platform slow.toml",
        "partition --units 1000 --platform flops.toml",
        "partition --shape 64x64 --speeds 9,1",
        "partition --shape 64x64 --platform bare.toml",
        "partition --shape 64x64 --platform slow.toml",
    ] {
        let text = here.done(line);
        assert!(!shows_a_time(&text), "{line}: {text}");
        let value: Value = here.json(&format!("{line} -o plan.json"));
        assert_eq!(seconds_of(&value, ""), [""; 0], "{line}: {value}");
        assert!(value.get("forecast").is_none(), "{line}");
        let longest = value["relative_times"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t.as_f64().unwrap())
            .fold(0.0, f64::max);
        let imbalance = value["metrics"]["imbalance"].as_f64().unwrap();
        assert!((longest - imbalance).abs() < 1e-9, "{line}: {longest} against {imbalance}");
        let saved: Value = here.value("plan.json");
        assert!(saved.get("forecast").is_none(), "{line}");
    }
    here.done("partition --units 1000 --platform linked.toml -o units.json");
    here.done("plot --speeds 9,1 --units 1000 --svg line.svg");
    let picture = here.text("line.svg");
    assert!(picture.contains("all finish together") && picture.contains("relative speed"), "{picture}");
    assert!(!picture.contains("per second"));
    let robust = here.fails(2, "partition --units 1000 --speeds 9:1 --robust");
    assert!(robust.contains("bands"), "{robust}");
    let compared = here.json("partition --shape 64x64 --platform linked.toml --compare");
    assert_eq!(seconds_of(&compared["methods"][0]["forecast_seconds"], "seconds"), [""; 0], "{compared}");
    let verbose = here.fails(2, "simulate --plan units.json --platform linked.toml");
    assert!(verbose.contains("ratios"), "{verbose}");
}

/// `--plan` and `--sweep` give the same answer: the times of communication alone, and they say so.
#[test]
fn a_simulation_with_ratios_is_of_communication_alone() {
    let here = Bench::new();
    here.write("bare.toml", BARE);
    here.write("linked.toml", format!("{BARE}{LINKED}"));
    here.done("partition --shape 64x64 --platform linked.toml --method rows -o plan.json");
    let line = "simulate --plan plan.json --platform linked.toml --flow bulk";
    let value: Value = here.json(line);
    assert_eq!(value["communication_only"], true);
    assert!(value["processors"].as_array().unwrap().iter().all(|p| p["compute"].is_null()), "{value}");
    // By hand: nine tenths of B, 58 rows, to the slower; 6 rows to the faster, both directions at once.
    let expected = 1e-3 + 58.0 * 64.0 * 8.0 / 1e6;
    assert!((value["seconds"].as_f64().unwrap() - expected).abs() < 1e-9, "{value}");
    let text = here.done(line);
    assert!(text.contains("communication alone"), "{text}");
    let sweep = "simulate --shape 64x64 --platform linked.toml --flow bulk --methods rows --sweep bandwidth=1MB/s..2MB/s";
    let swept: Value = here.json(&format!("{sweep} --svg sweep.svg"));
    assert_eq!(swept["communication_only"], true);
    assert!((swept["points"][0]["seconds"][0].as_f64().unwrap() - expected).abs() < 1e-9, "{swept}");
    assert!(here.text("sweep.svg").contains("forecast communication time"));
    assert!(here.done(sweep).contains("communication alone"));
    for refused in [
        "simulate --plan plan.json --platform bare.toml",
        "simulate --plan plan.json --platform linked.toml --export-simgrid to",
        "simulate --shape 64x64 --platform bare.toml --sweep ratio=1..2",
    ] {
        let told = here.fails(2, refused);
        assert!(told.contains("ratios"), "{refused}: {told}");
    }
}

#[test]
fn speeds_in_units_give_seconds() {
    let here = Bench::new();
    here.write("rates.toml", BARE.replace("= 9", "= \"9 units/s\"").replace("= 1", "= \"1 unit/s\""));
    let timed: Value = here.json("partition --units 1000 --platform rates.toml");
    assert_eq!(timed["forecast"]["seconds"], 100.0);
}
