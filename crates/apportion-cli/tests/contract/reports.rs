//! The contents of `--json`, `--report`, `--trace` and `--svg`.

use super::Bench;
use super::bench::{TWO, whole};
use apportion_testing::holds;
use serde_json::Value;

fn ran() -> (Bench, Value, String) {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &whole::<f64>(120, 80, 1));
    bench.matrix("b.npy", &whole::<f64>(80, 100, 2));
    let run = "matmul a.npy b.npy --platform two.toml --method square-corner --flow bulk -o c.npy \
               --report run.json --trace trace.json --svg plan.svg";
    let (text, printed) = (bench.done(&format!("{run} -v")), bench.json(run));
    (bench, printed, text)
}

#[test]
fn a_run_report_has_the_fields_of_the_contract() {
    let (bench, printed, _) = ran();
    let report = bench.value("run.json");
    assert_eq!(report, printed, "--json prints what --report writes");
    for (field, expected) in [
        ("format", Value::from("apportion-run")),
        ("version", 1.into()),
        ("engine", "threads".into()),
        ("semiring", "plus-times".into()),
        ("flow", "bulk".into()),
        ("verified", true.into()),
    ] {
        assert_eq!(report[field], expected, "{field}");
    }
    for field in ["seconds", "forecast_seconds", "ideal_seconds", "io_seconds", "verify_seconds"] {
        assert!(report[field].as_f64().is_some_and(|s| s >= 0.0 && s.is_finite()), "{field}");
    }
    let plan = &report["plan"];
    assert_eq!((&plan["format"], &plan["method"]), (&"apportion-plan".into(), &"square-corner".into()));
    assert_eq!(report["volume"], plan["metrics"]["volume"], "counted while running = by formula");
    assert!(report["volume_lower_bound"].as_u64() <= report["volume"].as_u64());
    let processors = report["processors"].as_array().unwrap();
    assert_eq!(processors.len(), 2);
    assert_eq!(report["peak_memory_bytes"].as_array().unwrap().len(), 2);
    let total = |field: &str| processors.iter().map(|p| p[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(total("share"), 120 * 100);
    assert_eq!((total("sent"), total("received")), (report["volume"].as_u64().unwrap(), total("sent")));
    for (processor, name) in processors.iter().zip(["fast", "slow"]) {
        assert_eq!(processor["name"], name);
        for field in ["compute", "communicate", "idle"] {
            assert!(processor[field].as_f64().is_some_and(|s| s >= 0.0), "{name} {field}");
        }
    }
}

#[test]
fn a_trace_has_one_lane_per_processor() {
    let (bench, ..) = ran();
    let trace = bench.value("trace.json");
    let events = trace["traceEvents"].as_array().unwrap();
    let lanes: Vec<&Value> = events
        .iter()
        .filter(|e| e["name"] == "thread_name" && e["pid"] == 0)
        .map(|e| &e["args"]["name"])
        .collect();
    assert_eq!(lanes, ["fast", "slow"]);
    for lane in 0..2 {
        let mut end = 0.0;
        for event in events.iter().filter(|e| e["ph"] == "X" && e["pid"] == 0 && e["tid"] == lane) {
            let (start, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
            assert!(start >= end - 1e-3 && length >= 0.0, "events of one lane follow one another: {event}");
            end = start + length;
        }
        assert!(end > 0.0, "lane {lane} is not empty");
    }
    let kinds = ["compute", "send", "receive", "wait"];
    let timed = events.iter().filter(|e| e["ph"] == "X");
    assert!(timed.into_iter().all(|e| kinds.contains(&e["name"].as_str().unwrap())));
    let counted = events.iter().filter(|e| e["ph"] == "C").map(|e| e["args"]["elements"].as_u64().unwrap());
    assert_eq!(counted.sum::<u64>(), bench.value("run.json")["volume"].as_u64().unwrap());
}

/// The kernel by its name, and the file of a BLAS, if this machine has one.
#[test]
fn a_report_names_the_kernel() {
    let (bench, printed, _) = ran();
    assert_eq!(printed["kernel"], serde_json::json!({"name": "gemm-f64", "library": null}));
    let run = "matmul a.npy b.npy --platform two.toml --blas auto";
    let kernel = &bench.json(run)["kernel"];
    match kernel["library"]["name"].as_str() {
        None => assert_eq!(kernel["name"], "gemm-f64"),
        Some(name) => {
            assert_eq!(kernel["name"], format!("gemm-f64-{name}"));
            assert!(!kernel["library"]["file"].as_str().unwrap().is_empty());
        }
    }
}

#[test]
fn a_picture_is_one_well_formed_element() {
    let (bench, ..) = ran();
    let svg = bench.text("plan.svg");
    assert!(svg.trim_start().starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1).map(|t| t.split('>').next().unwrap()) {
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap().trim_end_matches('/');
        match (tag.starts_with(['!', '?']), tag.starts_with('/'), tag.ends_with('/')) {
            (true, ..) | (_, false, true) => {}
            (_, true, _) => assert_eq!(open.pop(), Some(name)),
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    assert!(svg.contains("fast") && svg.contains("slow"));
}

#[test]
fn without_json_a_table_is_printed() {
    let (_, _, text) = ran();
    holds(
        &text,
        &[
            "processor",
            "share",
            "compute",
            "communicate",
            "idle",
            "fast",
            "slow",
            "forecast",
            "ideal",
            "volume",
            "lower bound",
            "verified",
        ],
    );
    assert!(serde_json::from_str::<Value>(&text).is_err());
}

/// Below a millisecond only what came out; above, the time, a bar for each processor, and the gain.
#[test]
fn a_run_is_told_in_a_few_lines() {
    let bench = Bench::new();
    let two = format!("{TWO}[network]\nlatency = \"2 ms\"\nbandwidth = \"1 Gbit/s\"\nemulate = true\n");
    bench.write("two.toml", two);
    bench.matrix("a.npy", &whole::<f64>(120, 120, 1));
    let call = "matmul a.npy a.npy -o c.npy --platform two.toml --method rows";
    let text = bench.done(call);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    holds(lines[0], &["c.npy", "120 x 120 f64, verified"]);
    holds(lines[1], &["time", "forecast"]);
    holds(lines[2], &["fast", "%", "compute", "wait"]);
    // Which is the faster alone is by the speeds of the run.
    holds(lines[4], &["gain", " alone", "even split"]);
    let plan = bench.json(call)["plan"].clone();
    let [even, forecast] = [&plan["baselines"]["even_split"], &plan["forecast"]["seconds"]];
    assert!(even.as_f64().unwrap() > 0.0 && forecast.as_f64().unwrap() > 0.0);
}

#[test]
fn every_command_prints_one_object_with_json() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    assert!(bench.json("detect")["processors"].as_array().is_some_and(|p| !p.is_empty()));
    let plan = bench.json("partition --shape 50x40x30 --speeds 5,1 -o plan.json");
    assert_eq!(plan, bench.value("plan.json"));
    assert_eq!(bench.json("partition --units 7 --speeds 5,1")["problem"]["kind"], "units");
    bench.done("partition --shape 50x50 --platform two.toml -o plan.json");
    let forecast = bench.json("simulate --plan plan.json --platform two.toml");
    // 2 x 50^3 operations at 10 Gflop/s; shares are rounded to whole rows and columns.
    let seconds = forecast["seconds"].as_f64().unwrap();
    assert!((25e-6 * 0.999..25e-6 * 1.2).contains(&seconds), "{seconds}");
    let models = bench.json("measure --platform two.toml --sizes 100 --max-seconds 0.05");
    assert_eq!(models["format"], "apportion-models");
}

/// The demo leaves what its last lines refer to: the command runs as printed, also where the directory's name
/// has a blank, and explains the forecast that the demo reported.
#[cfg(unix)]
#[test]
#[ignore = "slow"]
fn the_demos_explanation_runs_when_pasted() {
    let bench = Bench::new();
    let text = bench.done("demo --size 96 --dir 'my demo'");
    for name in
        ["layouts.svg", "times.svg", "trace.svg", "trace.json", "plan.svg", "platform.toml", "models.json"]
    {
        assert!(bench.has(&format!("my demo/{name}")), "{name}");
    }
    for name in ["new-alone", "even-split", "straight-line", "square-corner", "chosen"] {
        assert_eq!(bench.value(&format!("my demo/{name}.json"))["format"], "apportion-plan");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let begin = text.find("apportion simulate").unwrap();
    let command = text[begin..].split("\nNext").next().unwrap();
    let binary = apportion_testing::binary();
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let shell = std::process::Command::new("sh")
        .args(["-c", command])
        .current_dir(bench.path("."))
        .env("PATH", path)
        .output()
        .unwrap();
    let explained = String::from_utf8_lossy(&shell.stdout);
    assert!(shell.status.success(), "{command}: {}", String::from_utf8_lossy(&shell.stderr));
    // Who is on the critical path depends on the speeds that were measured.
    holds(&explained, &["old2 finishes at", "Critical path", " works  "]);
    let forecast = bench.value("my demo/demo.json")["runs"][4]["forecast_seconds"].as_f64().unwrap();
    let shown = apportion::units::show_seconds(forecast);
    assert!(explained.contains(&format!("forecast  {shown}")), "{shown} in {explained}");
    // Its own directory may be written again.
    let demo = bench.json("demo --size 64 --dir 'my demo'");
    assert_eq!(demo["runs"].as_array().map(Vec::len), Some(5));
}

/// What the run did and what was forecast stand together, and messages under way are shown.
#[test]
fn a_trace_has_the_forecast_beside_the_run() {
    let bench = Bench::new();
    let two = format!("{TWO}[network]\nlatency = \"1 ms\"\nbandwidth = \"100 Mbit/s\"\nemulate = true\n");
    bench.write("two.toml", two);
    bench.matrix("a.npy", &whole::<f64>(90, 90, 1));
    let run = "matmul a.npy a.npy --platform two.toml --method straight-line --flow bulk";
    bench.done(&format!("{run} --trace t.svg"));
    let picture = bench.text("t.svg");
    holds(
        &picture,
        &["straight-line, bulk flow, 2 processors", ">forecast<", "class=\"incoming\"", ", forecast "],
    );
    bench.done(&format!("{run} --trace t.json"));
    let events = bench.value("t.json");
    let events = events["traceEvents"].as_array().unwrap();
    for pid in [0, 1] {
        assert!(events.iter().any(|e| e["pid"] == pid && e["name"] == "compute"), "process {pid}");
        assert!(events.iter().any(|e| e["pid"] == pid && e["cat"] == "message"), "process {pid}");
    }
    let explained = bench.done(&format!("{run} --explain slow"));
    assert!(
        explained.contains("The forecast explained:") && explained.contains("slow finishes at"),
        "{explained}"
    );
    let value = bench.json(&format!("{run} --explain 1"));
    assert_eq!(value["explain"]["processor"], "slow");
    let wrong = bench.fails(2, &format!("{run} --explain none -o c.npy"));
    assert!(wrong.contains("choose one of fast, slow, or a number from 0 to 1"), "{wrong}");
    assert!(!bench.has("c.npy"));
    bench.fails(2, "power a.npy -k 3 --platform two.toml --explain slow");
    bench.fails(2, &format!("{run} --explain slow --panels 2"));
}

/// Curves: measured points, a shaded band, a cap, both kinds of axes; and the sweep's picture says what it is
/// of.
#[test]
fn curves_show_what_they_rest_on() {
    let bench = Bench::new();
    let point = |size: u64, low: &str| {
        format!(
            "{{\"size\": {size}, \"seconds\": {}, \"ci\": 0.0, \"repetitions\": 1{low}}}",
            size as f64 / 1e6
        )
    };
    let models = format!(
        "{{\"format\": \"apportion-models\", \"version\": 1, \"kernel\": \"k\", \"unit\": \"rows of a table\", \
         \"models\": [{{\"processor\": \"p\", \"interpolation\": \"piecewise-linear\", \"max_size\": 90000, \
         \"points\": [{}, {}]}}]}}",
        point(1000, ""),
        point(80_000, ", \"low\": 0.07, \"high\": 0.1")
    );
    bench.write("models.json", models);
    bench.done("plot --models models.json --svg auto.svg");
    let auto = bench.text("auto.svg");
    holds(
        &auto,
        &[
            "size, units (log scale)",
            "rows of a table",
            "class=\"band\"",
            "class=\"marks\"",
            "speed 0: sizes beyond",
        ],
    );
    bench.done("plot --models models.json --svg plain.svg --log none");
    assert!(!bench.text("plain.svg").contains("log scale"));
    // Rings are shares and nothing else.
    bench.done("plot --speeds 3,1 --units 100 --svg line.svg");
    let line = bench.text("line.svg");
    let marks: Vec<&str> = line.lines().filter(|l| l.contains("class=\"marks\"")).collect();
    assert_eq!(marks.iter().map(|l| l.matches('z').count()).sum::<usize>(), 2, "{marks:?}");
    assert!(line.contains("relative speed") && line.contains("all finish together"), "{line}");
    let sweep = "simulate --shape 300x300 --platform slow.toml --sweep ratio=1..9 --flow bulk \
                 --methods rows,grid,square-corner";
    let slow = "[[processor]]\nname = \"a\"\nspeed = 2\n[[processor]]\nname = \"b\"\nspeed = 1\n\
                [network]\nbandwidth = \"1 Mbit/s\"\n";
    bench.write("slow.toml", slow);
    let words: Vec<&str> = sweep.split(' ').chain(["--svg", "sweep.svg"]).collect();
    bench.done(&words);
    let curves = bench.text("sweep.svg");
    holds(
        &curves,
        &["forecast communication time, s", "square-corner is faster than", "bulk flow", "C of 300 x 300"],
    );
}

#[test]
fn quiet_says_nothing_on_stderr() {
    let bench = Bench::new();
    bench.matrix("a.npy", &whole::<f64>(9, 9, 1));
    let output = bench.run("matmul a.npy a.npy --quiet --block 16 --speeds 2,1");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
