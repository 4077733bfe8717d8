//! Models files from the command line: rejected by field, made with few points, resumed, capped, and used
//! where they fit.

use super::bench::Bench;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A script that prints its own time, by an expression of awk in x (the size) and r (the rank).
fn script(place: &Bench, seconds: &str) {
    let text = format!(
        "#!/bin/sh\necho $APPORTION_SIZE >>calls\nexec awk -v x=$APPORTION_SIZE -v r=$APPORTION_RANK 'BEGIN {{ printf \"%.15g\\n\", ({seconds}) }}'\n"
    );
    place.program("work", &text);
}

const GOOD: &str = r#"{"format": "apportion-models", "version": 1, "kernel": "gemm-f64", "unit": "u", "parameters": {"block": 64},
"models": [{"processor": "p0", "interpolation": "piecewise-linear", "max_size": null,
"points": [{"size": 100, "seconds": 2.0, "ci": 0.1, "repetitions": 12}, {"size": 300, "seconds": 7.0}]},
{"processor": "p1", "points": [{"size": 100, "seconds": 1.0}]}]}"#;

#[test]
fn a_models_file_is_read_and_its_caps_are_kept() {
    let place = &Bench::new();
    place.write("m.json", GOOD);
    assert_eq!(place.json("partition --units 50 --models m.json")["shares"], json!([17, 33]));
    let text = GOOD
        .replace("null", "40")
        .replace("{\"processor\": \"p1\",", "{\"processor\": \"p1\", \"max_size\": 50,");
    place.write("m.json", text);
    assert_eq!(place.json("partition --units 90 --models m.json")["shares"], json!([40, 50]));
}

/// The paging processors: with at most 20 points each the shares that 100 points give, in truth within 1 %.
#[test]
fn few_points_give_the_shares_of_many() {
    let place = &Bench::new();
    let functions = [
        "peak 2e9, knee 1e5 0.8, cliff 4e6 0.05",
        "peak 1e9, knee 3e5 0.7, cliff 6e6 0.1",
        "peak 4e8, knee 2e5 0.6, cliff 2e6 0.02",
        "peak 3e8, ramp 1e4, cliff 9e6 0.2",
    ];
    let text: String = functions
        .iter()
        .enumerate()
        .map(|(i, f)| format!("[[processor]]\nname = \"p{i}\"\nemulated = \"{f}\"\n"))
        .collect();
    place.write("p.toml", text);
    let range = "--smallest 1e5 --largest 1e7";
    let few = place.json(&format!(
        "measure --platform p.toml {range} --adaptive --points 20 --accuracy 0.03 -o few.json"
    ));
    let many = place.json(&format!("measure --platform p.toml {range} --points 100 -o many.json"));
    let points = |models: &Value, i: usize| models["models"][i]["points"].as_array().unwrap().len();
    for i in 0..functions.len() {
        assert!(points(&few, i) <= 20 && points(&many, i) == 100);
    }
    let truth = |models: &str, n: u64| {
        place.json(&format!("partition --units {n} --models {models} -o plan.json"));
        let simulated = place.json("simulate --plan plan.json --platform p.toml");
        simulated["seconds"].as_f64().unwrap()
    };
    for n in [600_000, 2_000_000, 6_000_000, 12_000_000, 20_000_000, 27_000_000] {
        let (ours, theirs) = (truth("few.json", n), truth("many.json", n));
        assert!(ours <= 1.01 * theirs, "{n}: {ours} against {theirs}");
    }
}

#[test]
fn an_interrupted_sweep_is_continued() {
    let place = &Bench::new();
    place.write("hold", "");
    // Sizes above 200 wait as long as the file is there.
    let text = "#!/bin/sh\necho $APPORTION_SIZE >>calls\nif [ $APPORTION_SIZE -gt 200 ]; then echo >waiting; while [ -e hold ]; do sleep 0.1; done; fi\n\
        echo $APPORTION_SIZE\n";
    place.program("work", text);
    let line = "measure --command './work {size}' --seconds-from stdout --processors 1 --sizes 100,200,300,400 -o m.json";
    let mut child = place.command(line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !place.join("waiting").exists() {
        if begin.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the third size never began");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let message = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(130), "{message}");
    assert!(message.contains("2 points were saved to m.json"), "{message}");
    place.remove("hold");
    place.remove("calls");
    let models = place.json(&format!("{line} --resume"));
    let sizes: Vec<f64> = models["models"][0]["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["size"].as_f64().unwrap())
        .collect();
    assert_eq!(sizes, [100.0, 200.0, 300.0, 400.0]);
    let calls = place.text("calls");
    assert!(calls.lines().all(|size| size == "300" || size == "400"), "only what was missing: {calls}");
}

#[test]
fn a_stencil_is_measured() {
    let place = &Bench::new();
    for name in ["stencil-f64", "stencil-f32"] {
        let line =
            format!("measure --kernel {name} --processors 2 --sizes 400,2500 --max-seconds 0.05 -o m.json");
        let models = place.json(&line);
        assert_eq!(models["kernel"], name);
        assert_eq!(models["unit"], "grid cells advected by one upwind step");
        assert_eq!(models["parameters"], json!({"dimensions": 2.0, "passes": 1.0}));
        let shares = place.json("partition --units 1000 --models m.json");
        assert_eq!(shares["shares"].as_array().unwrap().len(), 2);
    }
    let text = String::from_utf8(
        place.run("measure --kernel stencil --processors 1 --sizes 100 --max-seconds 0.05").stdout,
    );
    assert!(text.unwrap().contains("size/s"));
}

/// 1 MiB holds 64 x 64 doubles with the pivot blocks, and not 1,000 x 1,000.
#[test]
fn memory_caps_an_adaptive_model() {
    let place = &Bench::new();
    let text = "[[processor]]\nname = \"a\"\nmemory = \"1 MiB\"\n[[processor]]\nname = \"b\"\n";
    place.write("p.toml", text);
    let line = "measure --platform p.toml --adaptive --block 8 --smallest 1024 --largest 250000 --points 12 --max-seconds 0.02";
    let models = place.json(line);
    let cap = models["models"][0]["max_size"].as_f64().unwrap();
    let bytes = |size: f64| 8.0 * (size + 32.0 * size.sqrt());
    assert!(bytes(cap) <= 1_048_576.0 && bytes(1.2 * cap) > 1_048_576.0, "{cap}");
    assert!(models["models"][1]["max_size"].is_null());
}

#[test]
fn balance_starts_from_what_is_known() {
    let place = &Bench::new();
    script(place, "x / (r == 0 ? 300 : 100)");
    let work = "--command './work {size}' --seconds-from stdout";
    place.json(&format!("measure {work} --processors 2 --sizes 100,1000 -o m.json"));
    let found = place.json(&format!("balance {work} --units 1200 --models m.json"));
    assert_eq!((found["rounds"].as_array().unwrap().len(), &found["balanced"]), (1, &json!(true)));
    assert_eq!(found["plan"]["shares"], json!([900, 300]));
    // Both a third as fast as measured before, and one of them worse: the shape is still useful.
    script(place, "x / (r == 0 ? 100 : 20)");
    let found = place.json(&format!("balance {work} --units 1200 --models m.json --tolerance 0.01"));
    assert_eq!(
        (found["rounds"].as_array().unwrap().len(), &found["plan"]["shares"]),
        (2, &json!([1000, 200]))
    );
    // Caps hold, names count.
    let models = place.text("m.json").replacen("\"max_size\": null", "\"max_size\": 500", 1);
    place.write("capped.json", models);
    let found = place.json(&format!("balance {work} --units 1200 --models capped.json"));
    assert_eq!(found["plan"]["shares"], json!([500, 700]));
    place.write("p.toml", "[[processor]]\nname = \"x\"\n");
    let line = place.fails(2, &format!("balance {work} --units 9 --models m.json --platform p.toml"));
    assert!(line.contains("\"x\""), "{line}");
}

#[test]
fn models_of_another_kernel_are_used_with_a_warning() {
    let place = &Bench::new();
    let matrix = apportion::matrix::Matrix::new(8, 8, vec![1.0_f64; 64]);
    let mut file = apportion::output::OutputFile::create(place.join("a.npy")).unwrap();
    apportion::matrix::write_npy(&mut file, &matrix).unwrap();
    file.commit().unwrap();
    place.write("m.json", GOOD);
    let plain = place.run("matmul a.npy a.npy --models m.json");
    assert!(plain.status.success());
    assert!(!String::from_utf8(plain.stderr).unwrap().contains("warning"));
    for line in ["matmul a.npy a.npy --semiring max-plus", "power a.npy -k 2 --semiring max-plus"] {
        let out = place.run(&format!("{line} --models m.json"));
        let message = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success(), "{message}");
        assert!(
            message.contains("warning") && message.contains("gemm-f64") && message.contains("max-plus-f64")
        );
        let quiet = place.run(&format!("{line} --models m.json --quiet"));
        assert!(quiet.stderr.is_empty());
    }
}

/// Fig. 8(d) of the 2007 paper from the shipped file: cut at N, then divide the rows.
#[test]
fn surfaces_are_cut_and_divided() {
    let place = &Bench::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../platforms/fpm-2007-surfaces.json");
    let mut seconds = Vec::new();
    for n in [1000_u64, 5000, 10_000] {
        let plan = place.json(&format!("partition --units {n} --surfaces {file} --at n={n}"));
        let shares: Vec<u64> =
            plan["shares"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect();
        assert_eq!((shares.len(), shares.iter().sum::<u64>()), (8, n));
        assert!(shares[0] > 3 * shares[4], "X1 is the faster kind: {shares:?}");
        seconds.push(plan["forecast"]["seconds"].as_f64().unwrap());
    }
    assert!(seconds[1] > 50.0 * seconds[0] && seconds[2] > 5.0 * seconds[1], "{seconds:?}");
}
