//! Layouts and how one is chosen: meshes, the largest half-perimeter, left-over rows, sizes for overlap,
//! separate messages, hybrids, and what is said about the choice.

use super::Bench;
use apportion::matrix::Matrix;

const TWO: &str = "[[processor]]\nname = \"a\"\nspeed = \"9 Gflop/s\"\n[[processor]]\nname = \"b\"\n\
    speed = \"1 Gflop/s\"\n[network]\nbandwidth = \"100 Mbit/s\"\nlatency = \"50 us\"\nduplex = false\n";

const THREE: &str = "[[processor]]\nname = \"a\"\nspeed = \"900 Mflop/s\"\n[[processor]]\nname = \"b\"\n\
    speed = \"50 Mflop/s\"\n[[processor]]\nname = \"c\"\nspeed = \"50 Mflop/s\"\n\
    [network]\nbandwidth = \"40 Mbit/s\"\n";

fn chosen(text: &str) -> String {
    text.lines().find(|line| line.starts_with("chosen")).unwrap_or_default().to_owned()
}

#[test]
fn the_largest_half_perimeter_is_minimised() {
    let bench = Bench::new();
    for (speeds, least) in [("3,3,2", 1.25), ("2,2,1", 1.3), ("5,5,4", 1.0 + 4.0 / 14.0)] {
        for method in ["auto", "columns", "recursive"] {
            let call = format!("partition --shape 7000x7000 --speeds {speeds} --method {method}");
            let plan = bench.json(&format!("{call} --minimise largest"));
            let largest = plan["metrics"]["largest_half_perimeter"].as_f64().unwrap();
            assert!(largest < least + 1e-3, "{speeds} {method}: {largest}");
        }
    }
    let text = bench.done("partition --shape 800x800 --speeds 3,3,2 --minimise largest --compare");
    assert!(text.lines().next().unwrap().contains("largest half-perimeter"), "{text}");
    let column: Vec<f64> = text
        .lines()
        .skip(1)
        .take_while(|line| !line.contains("not applicable") && !line.is_empty())
        .map(|line| line.split_whitespace().nth(4).unwrap().parse().unwrap())
        .collect();
    assert!(column.len() > 5 && column.is_sorted(), "{text}");
    assert!(chosen(&text).contains("1.2500 by largest half-perimeter"), "{text}");
}

#[test]
fn a_mesh_of_blocks_that_are_not_square() {
    let bench = Bench::new();
    let call = "partition --shape 80x320 --speeds 1,1,1,1 --method grid --mesh 2x2";
    let plan = bench.json(&format!("{call} --repeat 8x32"));
    let first = &plan["layout"][0];
    assert_eq!((&first["rows"], &first["cols"]), (&serde_json::json!([0, 4]), &serde_json::json!([0, 16])));
    // Tinetti, Figure 3.14: 7 x 8 elements in blocks of one on a mesh of 3 x 2.
    let call = "partition --shape 7x8 --speeds 1,1,1,1,1,1 --method grid --mesh";
    let plan = bench.json(&format!("{call} 3x2 --repeat 3x2"));
    assert_eq!(plan["shares"], serde_json::json!([12, 8, 8, 12, 8, 8]));
    // A block of one element cannot serve four processors.
    let call = "partition --shape 8x8 --speeds 1,1,1,1 --method grid --repeat 1x1";
    let output = bench.run(call);
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(notes.contains("p1 and 2 more get nothing"), "{notes}");
}

#[test]
fn left_over_rows_as_tinetti_defines_them() {
    let bench = Bench::new();
    let rows = "partition --shape 96x96 --speeds 6,24 --method rows";
    assert_eq!(bench.json(&rows)["shares"], serde_json::json!([19 * 96, 77 * 96]));
    let first = format!("{rows} --left-over first");
    assert_eq!(bench.json(&first)["shares"], serde_json::json!([20 * 96, 76 * 96]));
    let units = "partition --units 96 --speeds 6,24 --left-over first";
    assert_eq!(bench.json(units)["shares"], serde_json::json!([20, 76]));
}

/// 90:5:5 at 40 Mbit/s: II and I in turn, then all together; the squares shrink, and the forecast with them.
#[test]
fn squares_are_sized_for_overlap() {
    let bench = Bench::new();
    bench.write("three.toml", THREE);
    let call = "partition --shape 1000x1000 --platform three.toml --method square-corner";
    let plain = bench.json(&format!("{call} --flow bulk --overlap"));
    let sized = bench.json(&format!("{call} --shares overlap"));
    let seconds = |plan: &serde_json::Value| plan["forecast"]["seconds"].as_f64().unwrap();
    assert!(seconds(&sized) < 0.9 * seconds(&plain), "{} {}", seconds(&sized), seconds(&plain));
    assert!(sized["shares"][1].as_u64() < plain["shares"][1].as_u64());
    // auto is never worse with the flag than with shares in proportion, and shares by forecast never worse.
    let auto = "partition --shape 1000x1000 --platform three.toml";
    let by = |shares: &str| seconds(&bench.json(&format!("{auto} --shares {shares}")));
    assert!(by("overlap") <= by("proportional") && by("forecast") <= by("proportional"));
    // Ratios: the thesis's shares. A side of 575 x sqrt(0.1) = 182 for 316.
    let ratios = "partition --shape 1000x1000 --speeds 9,1 --method square-corner";
    let share = bench.json(&format!("{ratios} --shares overlap"))["shares"][1].as_u64().unwrap();
    assert!((181 * 181..=183 * 183).contains(&share), "{share}");
}

#[test]
fn separate_messages_cost_latency() {
    let bench = Bench::new();
    bench.write("slow.toml", TWO.replace("50 us", "1 s"));
    let seconds = |method: &str, more: &str| {
        bench.done(&format!("partition --shape 90x90 --platform slow.toml --method {method} -o p.json"));
        let call = "simulate --plan p.json --platform slow.toml --flow bulk";
        bench.json(&format!("{call} {more}"))["seconds"].as_f64().unwrap()
    };
    for (method, steps) in [("square-corner", 4.0), ("square-edge", 5.0), ("square-middle", 6.0)] {
        let (together, apart) = (seconds(method, ""), seconds(method, "--messages separate"));
        assert!((together - 2.0).abs() < 0.1 && (apart - steps).abs() < 0.1, "{method} {together} {apart}");
    }
    let ring = "simulate --plan p.json --platform slow.toml --flow ring --messages separate";
    assert!(bench.fails(2, ring).contains("--messages"));
}

#[test]
fn hybrid_says_what_it_took() {
    let bench = Bench::new();
    for (communication, layout) in [("serial", "straight-line"), ("parallel", "square-corner")] {
        let call = "partition --shape 1000x1000 --speeds 5,2 --method hybrid";
        let call = format!("{call} --communication {communication}");
        let text = bench.done(&call);
        assert!(text.contains(&format!("{layout}, for {communication} communication")), "{text}");
        assert_eq!(bench.json(&call)["hybrid"]["layout"], layout);
    }
    let long = "partition --shape 20x30x1000 --speeds 80,10,10 --method hybrid";
    assert_eq!(bench.json(long)["metrics"]["volume"], 1200);
}

/// The line names what decided, with its unit, and never claims less than nothing.
#[test]
fn the_choice_is_worded_truthfully() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.write("ratios.toml", TWO.replace(" Gflop/s\"", "").replace("speed = \"", "speed = "));
    let line = |platform: &str, more: &str| {
        let call = format!("partition --shape 600x600 --platform {platform}");
        chosen(&bench.done(&format!("{call} {more}")))
    };
    assert!(line("two.toml", "").contains(" ms by forecast"));
    assert!(line("ratios.toml", "").contains("by communication alone"), "{}", line("ratios.toml", ""));
    assert!(line("two.toml", "--minimise volume").contains("elements by volume"));
    for more in ["--minimise sum", "--minimise largest", ""] {
        let line = line("two.toml", more);
        assert!(!line.contains("no more than") && !line.contains("(of )"), "{line}");
    }
    let table = bench.done("partition --shape 600x600 --platform ratios.toml --compare");
    assert!(table.contains("communication"), "{table}");
    bench.matrix("a.npy", &Matrix::<f64>::zeros(60, 60));
    let text = bench.done("matmul a.npy a.npy -o c.npy --speeds 5,3,1 --method rows");
    assert!(!text.contains("(of )"), "{text}");
    // The value that decided is never more than that of what was not chosen.
    let plan = bench.json("partition --shape 600x600 --platform two.toml");
    for other in plan["choice"]["against"].as_array().unwrap() {
        assert!(other["excess"].as_f64().unwrap() >= -1e-8, "{other}");
    }
    assert!(["forecast", "volume", "order"].contains(&plan["choice"]["decided_by"].as_str().unwrap()));
}

#[test]
fn the_comparison_is_drawn_as_a_sheet() {
    let bench = Bench::new();
    let call = "partition --shape 600x600 --speeds 9,1 --compare --svg sheet.svg";
    bench.done(call);
    let svg = bench.text("sheet.svg");
    for name in ["columns", "square-corner (chosen)", "square-middle", "imbalance 1.000"] {
        assert!(svg.contains(name), "{name}");
    }
}

/// With a margin, a candidate that moves more must be faster by that much; every line has its gain.
#[test]
fn sweeps_have_a_margin_and_a_gain() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    let call = "simulate --shape 1000x1000 --platform two.toml --sweep bandwidth=10Mbit/s..10Gbit/s";
    let call = format!("{call} --methods square-corner,straight-line --flow bulk");
    let plain = bench.json(&call);
    let wide = bench.json(&format!("{call} --margin 1%"));
    assert_eq!(wide["margin"], 0.01);
    for (a, b) in plain["points"].as_array().unwrap().iter().zip(wide["points"].as_array().unwrap()) {
        assert!(a["gain"].as_f64().unwrap() >= -1e-9);
        // Where the gain is small, the corner keeps the lead, since it moves less.
        let expected =
            if a["gain"].as_f64().unwrap() < 0.01 { "square-corner" } else { a["winner"].as_str().unwrap() };
        assert_eq!(b["winner"], expected);
    }
    assert!(bench.done(&call).contains("gain"));
    assert!(bench.fails(2, &format!("{call} --margin 200%")).contains("percentage"));
}

/// Methods that cut the inner dimension weigh their boxes by speed functions, in the table as alone.
#[test]
fn the_comparison_has_the_layouts_that_methods_choose_alone() {
    let bench = Bench::new();
    let model = |name: &str, seconds: [f64; 3]| {
        let point = |(size, seconds)| serde_json::json!({"size": size, "seconds": seconds});
        let points: Vec<_> = [10_000, 100_000, 1_000_000].into_iter().zip(seconds).map(point).collect();
        serde_json::json!({"processor": name, "points": points})
    };
    let models = [
        model("a", [0.001, 0.02, 0.6]),
        model("b", [0.002, 0.02, 0.2]),
        model("c", [0.003, 0.05, 0.3]),
        model("d", [0.001, 0.01, 0.9]),
    ];
    let file = serde_json::json!({
        "format": "apportion-models", "version": 1, "kernel": "gemm-f64",
        "unit": "C elements updated by one pivot block", "parameters": {"block": 64}, "models": models,
    });
    bench.write("models.json", file.to_string());
    let call = "partition --shape 900x900x2000 --models models.json";
    let compared = bench.json(&format!("{call} --compare"));
    for method in ["inner", "boxes"] {
        let alone = bench.json(&format!("{call} --method {method}"));
        let row = compared["methods"].as_array().unwrap().iter().find(|row| row["method"] == method).unwrap();
        assert_eq!(row["metrics"]["volume"], alone["metrics"]["volume"], "{method}: {row}");
        assert_eq!(row["metrics"]["imbalance"], alone["metrics"]["imbalance"], "{method}: {row}");
    }
}
