//! What a measurement knows of its own precision, and the sizes that do not work.

use super::bench::Bench;
use serde_json::Value;

fn points(models: &Value, processor: usize) -> Vec<Value> {
    models["models"][processor]["points"].as_array().unwrap().clone()
}

/// A program that fails above 5,000 units, with its last words.
const OOM: &str = "#!/bin/sh\necho $1 >>sizes\ntest $1 -gt 5000 && { echo cannot allocate >&2; exit 12; }\n\
    exec awk -v x=$1 'BEGIN { print x / 1000 }'\n";

#[test]
fn a_failure_beyond_memory_is_a_cap() {
    for sizes in ["--smallest 100 --largest 20000 --adaptive", "--sizes 100,1000,20000"] {
        let bench = Bench::new();
        bench.program("work", OOM);
        let line = format!(
            "measure --processors 1 --seconds-from stdout {sizes} -o m.json --command './work {{size}}'"
        );
        let output = bench.run(&line);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(err.contains("p0 fails at size") && err.contains("cannot allocate"), "{err}");
        let model = &bench.value("m.json")["models"][0];
        let (cap, failure) = (model["max_size"].as_f64().unwrap(), &model["failure"]);
        assert!((4700.0..=5000.0).contains(&cap), "{cap}");
        assert!(failure["size"].as_f64().unwrap() > 5000.0, "{failure}");
        assert!(failure["reason"].as_str().unwrap().contains("exit status: 12"), "{failure}");
        // The cap limits a plan, and survives --resume, which runs nothing.
        let refused = bench.run("partition --units 20000 --models m.json");
        assert_eq!(refused.status.code(), Some(1));
        let (before, file) = (bench.text("sizes"), bench.text("m.json"));
        bench.done(&format!("{line} --resume"));
        assert_eq!((bench.text("sizes"), bench.text("m.json")), (before, file));
    }
}

#[test]
fn a_program_that_fails_at_its_smallest_size_is_an_error() {
    let bench = Bench::new();
    bench.program("work", OOM);
    let line = "measure --processors 1 --seconds-from stdout --sizes 6000,7000 --command './work {size}'";
    let output = bench.run(line);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && err.contains("size 6000") && err.contains("cannot allocate"),
        "{err}"
    );
}

#[test]
fn a_cap_can_be_given() {
    let bench = Bench::new();
    bench.program("work", OOM);
    let line = "measure --processors 1 --seconds-from stdout --smallest 100 --max-size 3000 --points 3 \
                --command './work {size}'";
    let model = &bench.json(line)["models"][0];
    assert_eq!((&model["max_size"], &model["failure"]), (&3000.0.into(), &Value::Null));
    assert_eq!(model["points"].as_array().unwrap().last().unwrap()["size"], 3000.0);
    bench.refuses(&[
        ("measure --sizes 100,4000 --max-size 3000", "4000 is more than --max-size"),
        ("measure --largest 4000 --max-size 3000", "--largest"),
        ("measure --max-size 0", "--max-size"),
    ]);
}

/// Times uniform from 1 to 2 s per 1,000 units (multiples of the golden ratio are spread evenly): the worst
/// case of the shares is what the worst run takes.
#[test]
fn bands_are_measured_and_the_worst_case_is_the_real_one() {
    let bench = Bench::new();
    let text = "#!/bin/sh\necho >>runs-$2; exec awk -v n=$(wc -l <runs-$2) -v x=$1 \
        'BEGIN { u = n * 0.6180339887498949; u -= int(u); printf \"%.12g\\n\", x / 1000 * (1 + u) }'\n";
    bench.program("noisy", text);
    let measure = "measure --processors 2 --seconds-from stdout --sizes 500,1000 --max-repetitions 200 \
                   --tolerance 0.0001 --max-seconds 60 -o noisy.json --command './noisy {size} {rank}'";
    let output = bench.run(measure);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{err}");
    // A missed precision is said in one line, with the worst.
    assert!(err.contains("4 of 4 points did not reach +- 0.0 %, the worst is +- "), "{err}");
    for point in points(&bench.value("noisy.json"), 0) {
        let of = |name: &str| point[name].as_f64().unwrap() / (point["size"].as_f64().unwrap() / 1000.0);
        assert!((of("low") - 1.05).abs() < 0.02 && (of("high") - 1.95).abs() < 0.02, "{point}");
        assert_eq!(point["precision_met"], false);
    }
    let worst =
        bench.json("partition --units 2000 --models noisy.json --robust")["robust"]["worst_seconds"].clone();
    assert!((1.9..=2.0).contains(&worst.as_f64().unwrap()), "{worst}");
}

#[test]
fn a_single_run_is_known_to_be_uncertain() {
    let bench = Bench::new();
    bench.program("work", "#!/bin/sh\nsleep 0.05; echo $1\n");
    let line = "measure --processors 2 --seconds-from stdout --sizes 100 --max-seconds 0.001 -o m.json \
                --command './work {size}'";
    let output = bench.run(line);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(!out.contains("0.0 %") && out.lines().any(|l| l.contains("  -  ")), "{out}");
    assert!(err.contains("2 of 2 points were timed once"), "{err}");
    let point = &points(&bench.value("m.json"), 0)[0];
    assert_eq!((&point["ci"], &point["repetitions"]), (&Value::Null, &1.into()));
    assert!(point.get("high").is_none());
    // Twenty per cent, since nothing better is known.
    let robust = bench.json("partition --units 200 --models m.json --robust")["robust"].clone();
    assert_eq!(robust["expected_seconds"], 100.0);
    assert!((robust["worst_seconds"].as_f64().unwrap() - 120.0).abs() < 1e-9, "{robust}");
    // What was computed has no repetitions.
    bench.write("e.toml", "[[processor]]\nname = \"e\"\nemulated = \"peak 1000\"\n");
    let table = bench.done("measure --platform e.toml --sizes 100");
    assert!(table.lines().nth(1).unwrap().split_whitespace().nth(3) == Some("-"), "{table}");
}
