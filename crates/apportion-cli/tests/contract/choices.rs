//! The choice of auto, its competitors and the difference, in the text and in the JSON.

use super::Bench;
use apportion::matrix::Matrix;
use apportion::schedule::Flow;

const PLATFORM: &str = "[[processor]]\nname = \"a\"\nspeed = \"9 Gflop/s\"\n[[processor]]\nname = \"b\"\n\
    speed = \"1 Gflop/s\"\n[network]\nbandwidth = \"100 Mbit/s\"\nlatency = \"50 us\"\nduplex = false\n";

#[test]
fn partition_says_what_it_chose() {
    let bench = Bench::new();
    bench.write("two.toml", PLATFORM);
    let call = "partition --shape 600x600 --platform two.toml --method auto --flow auto";
    let text = bench.done(call);
    let line = text.lines().find(|l| l.starts_with("chosen")).unwrap();
    assert!(line.contains("by forecast") && line.contains("methods)"), "{line}");
    let plan = bench.json(call);
    let choice = &plan["choice"];
    assert_eq!(choice["chosen"]["method"], plan["method"]);
    assert_eq!(choice["chosen"]["value"], plan["forecast"]["seconds"]);
    let against = choice["against"].as_array().unwrap();
    assert!(against.len() >= 5);
    for other in against {
        // Only rounding leaves a choice to the volume.
        assert!(other["excess"].as_f64().unwrap() >= -1e-8, "{other}");
    }
    // The printed plan is a plan like any other.
    bench.write("printed.json", bench.done(&format!("{call} --json")));
    bench.json("simulate --plan printed.json --platform two.toml");
    // Without a choice there is no message.
    let one = "partition --shape 600x600 --platform two.toml --method rows --flow bulk";
    assert!(bench.json(one).get("choice").is_none());
    assert!(!bench.done(one).contains("chosen"));
}

#[test]
fn a_product_says_what_it_chose() {
    let bench = Bench::new();
    bench.write("two.toml", PLATFORM);
    bench.matrix("a.npy", &Matrix::<f64>::zeros(60, 60));
    let call = "matmul a.npy a.npy -o c.npy --platform two.toml --method auto --flow auto";
    let text = bench.done(&format!("{call} --report run.json -v"));
    assert!(text.lines().any(|l| l.starts_with("chosen") && l.contains("by forecast")), "{text}");
    let run: serde_json::Value = serde_json::from_slice(&bench.bytes("run.json")).unwrap();
    assert_eq!(run["choice"]["chosen"]["flow"], run["flow"]);
    assert_eq!(run["choice"]["chosen"]["method"], run["plan"]["method"]);
    // A plan from a file leaves the flow to choose.
    bench.done("partition --shape 60x60 --platform two.toml --method columns -o plan.json");
    let given = bench.json("matmul a.npy a.npy -o c.npy --platform two.toml --plan plan.json");
    let against = given["choice"]["against"].as_array().unwrap();
    assert_eq!(against.len(), 2 * Flow::ALL.len() - 1);
    assert!(against.iter().all(|c| c["method"] == "columns"));
}
