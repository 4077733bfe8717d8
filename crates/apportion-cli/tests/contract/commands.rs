//! `measure --command` and `balance`, with small scripts that print their own times: exact, and free of
//! noise.

use super::bench::Bench;
use apportion_testing::holds;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A script that prints its time, by an expression of awk in x (the size) and r (the rank), and keeps a
/// record of its calls.
fn work(place: &Bench, seconds: &str) {
    let text = format!(
        "#!/bin/sh\necho \"$APPORTION_PROCESSOR $APPORTION_SIZE\" >>calls\necho chatter\n\
         exec awk -v x=$APPORTION_SIZE -v r=$APPORTION_RANK 'BEGIN {{ printf \"%.15g\\n\", ({seconds}) }}'\n"
    );
    place.program("work", &text);
}

fn calls(place: &Bench) -> usize {
    fs::read_to_string(place.path("calls")).unwrap_or_default().lines().count()
}

const TIMED: &str = "--command './work {size}' --seconds-from stdout";

fn measure(more: &str) -> String {
    format!("measure {TIMED} {more}")
}

fn balance(more: &str) -> String {
    format!("balance {TIMED} {more}")
}

/// (size, seconds) of a processor's points.
fn points(models: &Value, processor: usize) -> Vec<(f64, f64)> {
    let points = models["models"][processor]["points"].as_array().unwrap();
    points.iter().map(|p| (p["size"].as_f64().unwrap(), p["seconds"].as_f64().unwrap())).collect()
}

fn shares(plan: &Value) -> Vec<u64> {
    plan["shares"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect()
}

#[test]
fn models_of_a_program_are_its_own_times_and_divide_work() {
    let place = Bench::new();
    work(&place, "x / (r == 0 ? 300 : 100)");
    let call = measure("--processors 2 --sizes 100,1000 -o m.json");
    let models = place.json(&call);
    assert_eq!(models["kernel"], "command: ./work {size}");
    for processor in [0, 1] {
        let speed = [300.0, 100.0][processor];
        for ((size, seconds), expected) in points(&models, processor).into_iter().zip([100.0, 1000.0]) {
            assert_eq!(size, expected);
            assert!((seconds * speed / size - 1.0).abs() < 1e-12);
        }
    }
    // The file is the result.
    assert_eq!(serde_json::from_str::<Value>(&place.text("m.json")).unwrap(), models);
    let plan = place.json("partition --units 1200 --models m.json");
    assert_eq!(shares(&plan), [900, 300]);
    assert_eq!(place.json(&format!("{call} --alone")), models, "alone, the same");
}

#[test]
fn slowdown_multiplies() {
    let place = Bench::new();
    work(&place, "x / 100");
    fs::write(
        place.path("p.toml"),
        "[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\nslowdown = 4.0\ncores = [0]\n",
    )
    .unwrap();
    let models = place.json(&measure("--platform p.toml --sizes 100"));
    assert_eq!(points(&models, 0), [(100.0, 1.0)]);
    assert_eq!(points(&models, 1), [(100.0, 4.0)]);
    let found = place.json(&balance("--platform p.toml --units 1000"));
    assert_eq!(shares(&found["plan"]), [800, 200]);
}

/// Every fourth run is disturbed by a factor of up to ten.
#[test]
fn a_contaminated_series_gives_the_clean_time() {
    let place = Bench::new();
    let text = "#!/bin/sh\necho >>\"calls-$APPORTION_RANK\"\nn=$(wc -l <\"calls-$APPORTION_RANK\")\n\
        case $((n % 4)) in 3) echo $((3 + n % 8)) ;; *) echo 2.000$((n % 3)) ;; esac\n";
    place.program("work", text);
    let models = place.json(&measure("--processors 1 --sizes 50 --max-seconds 60"));
    let point = &models["models"][0]["points"][0];
    let seconds = point["seconds"].as_f64().unwrap();
    assert!((seconds - 2.0001).abs() < 0.0003, "{seconds}");
    assert!(point["ci"].as_f64().unwrap() < 0.025 * seconds);
    let counted = point["repetitions"].as_u64().unwrap();
    let calls = place.text("calls-0").lines().count() as u64;
    assert!(calls > counted + 1, "{calls} calls, {counted} counted: nothing was left out");
}

#[test]
fn an_adaptive_sweep_takes_few_points_and_resumes_without_a_run() {
    let place = Bench::new();
    // A cliff: ten times slower above 40,000.
    work(&place, "x <= 40000 ? x / 1000 : 40 + (x - 40000) / 100");
    let call = measure("--processors 1 --adaptive --smallest 100 --largest 100000 -o m.json --resume");
    let models = place.json(&call);
    let found = points(&models, 0);
    assert!((6..=30).contains(&found.len()), "{}", found.len());
    assert_eq!((found[0].0, found[found.len() - 1].0), (100.0, 100_000.0));
    let before = calls(&place);
    assert_eq!(place.json(&call), models);
    assert_eq!(calls(&place), before, "everything was known");
    // A constant speed needs almost none.
    work(&place, "x / 1000");
    let few = place.json(&measure("--processors 1 --adaptive --smallest 100 --largest 1e5"));
    assert!(points(&few, 0).len() <= 6);
}

#[test]
fn a_failed_sweep_is_kept_and_resumed() {
    let place = Bench::new();
    work(&place, "x > 500 ? -1 : x / 100");
    let call = measure("--processors 1 --sizes 100,400,700,900 -o m.json --resume");
    // The points measured so far are kept.
    let output = place.run(&call);
    assert_eq!(output.status.code(), Some(1));
    let line = String::from_utf8(output.stderr).unwrap();
    holds(&line, &["./work {size}", "size 700", "-1 seconds"]);
    let kept: Value = serde_json::from_str(&place.text("m.json")).unwrap();
    assert_eq!(points(&kept, 0), [(100.0, 1.0), (400.0, 4.0)]);
    // Fixed, it continues: only new sizes are run.
    work(&place, "x / 50");
    place.remove("calls");
    let models = place.json(&call);
    assert_eq!(points(&models, 0), [(100.0, 1.0), (400.0, 4.0), (700.0, 14.0), (900.0, 18.0)]);
    assert!(!place.text("calls").contains(" 400"));
    // Points of another measurement are not mixed in.
    assert!(place.fails(2, &call.replace("{size}", "{size} other")).contains("not of"));
    assert!(place.fails(2, &format!("{call} --block 8")).contains("--block"));
    let kernel = "measure --processors 1 --sizes 100 -o m.json --resume";
    assert!(place.fails(2, kernel).contains("gemm-f64"));
}

#[test]
fn a_kernel_resumes_too() {
    let place = Bench::new();
    let base = "measure --processors 1 --block 8 --max-seconds 0.01 -o m.json --sizes";
    let first = place.json(&format!("{base} 100,400"));
    let second = place.json(&format!("{base} 400,900 --resume"));
    assert_eq!(points(&second, 0)[..2], points(&first, 0)[..]);
    assert_eq!(points(&second, 0)[2].0, 900.0);
}

#[test]
fn an_interrupted_sweep_keeps_its_points_and_ends_its_children() {
    let place = Bench::new();
    let text = "#!/bin/sh\ntest $APPORTION_SIZE = 1 && echo 5 && exit\nsleep 1000 & echo $! >new-$APPORTION_RANK\n\
        mv new-$APPORTION_RANK pid-$APPORTION_RANK\nwait\n";
    place.program("work", text);
    let mut child = place
        .command(&measure("--processors 2 --sizes 1,2 -o m.json"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let pid = |rank: &str| {
        let text = fs::read_to_string(place.path(&format!("pid-{rank}"))).unwrap_or_default();
        text.trim().to_owned()
    };
    while pid("0").is_empty() || pid("1").is_empty() {
        if begin.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the second size never began");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let line = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(130), "{line}");
    assert!(line.contains("2 points were saved to m.json") && line.contains("--resume"), "{line}");
    let kept: Value = serde_json::from_str(&place.text("m.json")).unwrap();
    assert_eq!((points(&kept, 0), points(&kept, 1)), (vec![(1.0, 5.0)], vec![(1.0, 5.0)]));
    for rank in ["0", "1"] {
        // Gone, or dead and not yet reaped by its new parent. A busy machine takes a moment to end a killed
        // process.
        let file = Path::new("/proc").join(pid(rank)).join("stat");
        let state = || fs::read_to_string(&file).unwrap_or_default();
        let gone = || state().is_empty() || state().contains(") Z");
        let begin = Instant::now();
        while !gone() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{}", state());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn balance_finds_the_shares_that_the_functions_say() {
    let place = Bench::new();
    // Speeds 100 and 50 up to 600 units; above, the first one pages: 20 a second.
    work(&place, "r == 0 ? (x <= 600 ? x / 100 : 6 + (x - 600) / 20) : x / 50");
    let call = balance("--processors 2 --units 1250 --tolerance 0.001 -o p.json --models-out m.json");
    let found = place.json(&call);
    // 6 + (x - 600) / 20 = (1250 - x) / 50 at x = 700: 11 seconds.
    assert_eq!(found["balanced"], true);
    assert_eq!(shares(&found["plan"]), [700, 550]);
    assert_eq!(found["plan"]["forecast"]["seconds"], 11.0);
    assert_eq!(found["rounds"].as_array().unwrap().len(), calls(&place) / 2);
    let plan: Value = serde_json::from_str(&place.text("p.json")).unwrap();
    assert_eq!(plan, found["plan"]);
    assert!(calls(&place) > 2);
    // The models from this run give the same shares.
    let other = place.json("partition --units 1250 --models m.json");
    assert_eq!(shares(&other), [700, 550]);
    let uneven = place.json(&balance("--processors 2 --units 900"));
    assert_eq!(shares(&uneven["plan"]), [600, 300]);
    let text = String::from_utf8(place.run(&call).stdout).unwrap();
    holds(&text, &["round 1: ", "p1", "700", "yes, times differ by", "without a plan", "even split"]);
}

#[test]
fn what_is_not_balanced_is_said_and_kept() {
    let place = Bench::new();
    work(&place, "r == 0 ? x / 90 : x / 10");
    let capped = balance("--processors 2 --units 1000 --max-rounds 1 -o p.json");
    let found = place.json(&capped);
    assert_eq!((&found["balanced"], shares(&found["plan"])), (&Value::from(false), vec![500, 500]));
    let out = place.run(&capped);
    assert!(String::from_utf8(out.stderr).unwrap().contains("not balanced within 0.05"));
    assert!(place.text("p.json").contains("dfpa"));
}

#[test]
fn a_failing_processor_fails_the_balance_and_writes_nothing() {
    let place = Bench::new();
    place.program(
        "work",
        "#!/bin/sh\ntest $APPORTION_RANK = 0 || { echo no disk >&2; exit 7; }; sleep 1000\n",
    );
    place.write("p.json", "old");
    let line = place.fails(1, &balance("--processors 2 --units 10 -o p.json"));
    holds(&line, &["./work {size}", "size 5", "\"p1\"", "exit status: 7", "no disk"]);
    assert_eq!(place.text("p.json"), "old");
}

#[test]
fn words_need_no_shell() {
    let place = Bench::new();
    work(&place, "x");
    assert!(place.fails(2, &["measure", "--command", "./work '{size}"]).contains("quote"));
    // Names are passed as single words, without a shell.
    place.write("p.toml", "[[processor]]\nname = \"a; touch broken\"\n");
    let call = "measure --platform p.toml --command './work {size} {processor}' --seconds-from stdout";
    place.json(&format!("{call} --sizes 10"));
    assert!(!place.path("broken").exists());
}
