//! A user's program under `measure`, `balance` and `run`: ranges, limits, failures, and what is kept.

use super::bench::Bench;
use apportion_testing::{holds, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Starts the binary with its output piped.
fn started(bench: &Bench, line: &str) -> Child {
    bench.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends a signal; returns the exit code, stdout and stderr.
fn ended(mut child: Child, signal: Signal) -> (Option<i32>, String, String) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (child.wait().unwrap().code(), out, err)
}

/// True once the process whose id is in a file is gone, or dead and not yet reaped.
fn gone(bench: &Bench, file: &str) -> bool {
    let id = bench.text(file).trim().to_owned();
    let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    state.is_empty() || state.contains(") Z")
}

fn shares(plan: &Value) -> Vec<u64> {
    plan["shares"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect()
}

/// Two processors, the first three times as fast, by what the program prints.
const WORK: &str = "#!/bin/sh\nexec awk -v x=$APPORTION_SIZE -v r=$APPORTION_RANK \
    'BEGIN { printf \"%.15g\\n\", x * (r == 0 ? 1 : 3) / 1000 }'\n";

/// Round 1 works; in round 2 each process tells its id and waits.
const ONCE: &str = "#!/bin/sh\nr=$APPORTION_RANK\nif mkdir done-$r 2>/dev/null; then exec awk -v x=$1 -v \
    r=$r 'BEGIN { print x * (r == 0 ? 1 : 3) / 1000 }'; fi\n\
    sleep 1000 & echo $! >new-$r; mv new-$r pid-$r; wait\n";

/// Times that scatter by up to 47 % by a formula, on eight processors of two speeds.
#[test]
fn noise_never_exceeds_the_rounds_and_the_best_is_kept() {
    let bench = Bench::new();
    let text = "#!/bin/sh\necho >>runs-$2; n=$(wc -l <runs-$2); s=100; test $2 -ge 4 && s=240\n\
        echo $(($1 * s * (100 + (n * 7919 + $2 * 104729) % 47)))\n";
    bench.program("work", text);
    for most in [1, 3, 5, 8] {
        let found = bench.json(&format!(
            "balance --units 248000 --processors 8 --max-rounds {most} --tolerance 1e-6 --seconds-from \
             stdout --command './work {{share}} {{rank}}'"
        ));
        let rounds = found["rounds"].as_array().unwrap();
        assert!(rounds.len() <= most, "{} rounds of {most}", rounds.len());
        let longest = |round: &Value| {
            round["seconds"].as_array().unwrap().iter().map(|t| t.as_f64().unwrap()).fold(0.0, f64::max)
        };
        let shortest = rounds.iter().map(longest).fold(f64::INFINITY, f64::min);
        let best = found["best"].as_u64().unwrap() as usize;
        assert_eq!(longest(&rounds[best]), shortest);
        assert_eq!(found["plan"]["shares"], rounds[best]["shares"]);
        assert_eq!(found["gain"]["against"], "even split");
        assert_eq!(found["gain"]["times"], longest(&rounds[0]) / shortest);
    }
}

/// The first round is printed while the second is still running: on stdout, with --json on stderr.
#[test]
fn rounds_are_printed_when_they_end() {
    for json in [false, true] {
        let bench = Bench::new();
        let text = "#!/bin/sh\nif mkdir first-$2 2>/dev/null; then echo $(($1 * ($2 + 1))); exit; fi\n\
            while ! test -e go; do sleep 0.05; done; echo $(($1 * ($2 + 1)))\n";
        bench.program("work", text);
        let flag = if json { " --json" } else { "" };
        let mut child = started(
            &bench,
            &format!(
                "balance --units 900 --processors 2 --seconds-from stdout \
                 --command './work {{share}} {{rank}}'{flag}"
            ),
        );
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (mut out, mut err) = (BufReader::new(out), BufReader::new(err));
        let mut line = String::new();
        if json {
            err.read_line(&mut line).unwrap()
        } else {
            out.read_line(&mut line).unwrap()
        };
        assert!(line.starts_with("round 1: "), "{line}");
        bench.write("go", "");
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert!(child.wait().unwrap().success());
        if json {
            assert!(serde_json::from_str::<Value>(&rest).unwrap().is_object());
        } else {
            assert!(rest.contains("round 2: ") && rest.contains("1.50 times as fast as p0 alone"), "{rest}");
        }
    }
}

#[test]
fn an_interrupted_balance_keeps_its_rounds_and_ends_its_children() {
    for signal in [Signal::INT, Signal::TERM] {
        let bench = Bench::new();
        bench.program("work", ONCE);
        let child = started(
            &bench,
            "balance --units 1000 --processors 2 --seconds-from stdout -o p.json --models-out m.json \
             -- ./work {share}",
        );
        until("round 2", || bench.has("pid-0") && bench.has("pid-1"));
        let (code, out, err) = ended(child, signal);
        assert_eq!(code, Some(128 + signal.as_raw()), "{err}");
        assert!(
            err.contains("apportion: interrupted (the best of 1 round, round 1, is in p.json and m.json)"),
            "{err}"
        );
        assert!(out.contains("in round 1 of 1"), "{out}");
        assert_eq!(shares(&bench.value("p.json")), [500, 500]);
        // The speeds are worth going on with.
        assert_eq!(shares(&bench.json("partition --units 1000 --models m.json")), [750, 250]);
        until("the children end", || gone(&bench, "pid-0") && gone(&bench, "pid-1"));
    }
}

#[test]
fn a_share_that_fails_in_a_later_round_is_a_cap() {
    let bench = Bench::new();
    let text = "#!/bin/sh\ntest $1 -gt 600 && { echo no memory >&2; exit 9; }\nexec awk -v x=$1 -v \
        r=$APPORTION_RANK 'BEGIN { print x * (r == 0 ? 1 : 3) }'\n";
    bench.program("work", text);
    let line =
        "balance --units 1000 --processors 2 --seconds-from stdout --command './work {share}' -o p.json";
    let output = bench.run(line);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    holds(&err, &["p0 does 500 units and fails at 750", "exit status: 9", "no memory", "below"]);
    let found = shares(&bench.value("p.json"));
    assert!((590..=600).contains(&found[0]) && found[0] + found[1] == 1000, "{found:?}");
}

#[test]
fn balanced_shares_are_exported() {
    let bench = Bench::new();
    bench.program("work", WORK);
    let balance = "balance --units 1000 --processors 2 --seconds-from stdout --command './work {share}'";
    assert_eq!(bench.done(&format!("{balance} --export metis")), "0 = 0.75\n1 = 0.25\n");
    assert_eq!(bench.done(&format!("{balance} --export llama.cpp")), "--tensor-split 750,251\n");
    let few = "balance --units 4 --processors 2 --seconds-from stdout --command './work {share}'";
    assert_eq!(bench.done(&format!("{few} --export slurm")), "p0\np0\np0\np1\n");
    let text = bench.done(&format!("{balance} --export csv --export-to s.csv"));
    assert!(text.contains("round 1: ") && bench.text("s.csv").contains("p0,750,0.75"), "{text}");
    assert_eq!(bench.json(&format!("{balance} --export json"))["export"]["format"], "json");
}

#[test]
fn a_plan_is_carried_out_over_its_ranges() {
    let bench = Bench::new();
    let text = "#!/bin/sh\necho \"$1 $2 $3 $4 $5 of $APPORTION_FROM $APPORTION_TO\" >part-$4\n\
        echo said $4\necho 2\n";
    bench.program("work", text);
    bench.write(
        "p.toml",
        "[[processor]]\nname = \"a\"\nspeed = 3\nslowdown = 2.0\ncores = [0]\n\
         [[processor]]\nname = \"b\"\nspeed = 1\n\
         [[processor]]\nname = \"c\"\nspeed = 1e-9\n",
    );
    bench.done("partition --units 8 --platform p.toml -o plan.json");
    let words = "./work {from} {to} {share} {rank} {processor}";
    let run = format!("run --plan plan.json --platform p.toml --seconds-from stdout --command '{words}'");
    let ran = bench.json(&run);
    assert_eq!(bench.text("part-0"), "0 6 6 0 a of 0 6\n");
    assert_eq!(bench.text("part-1"), "6 8 2 1 b of 6 8\n");
    assert!(!bench.has("part-2"), "a share of 0 starts nothing");
    let processors = ran["processors"].as_array().unwrap();
    assert_eq!((&processors[0]["seconds"], &processors[1]["seconds"]), (&4.0.into(), &2.0.into()));
    assert_eq!((&processors[2]["started"], &processors[2]["seconds"]), (&false.into(), &Value::Null));
    // Speeds 6 / 4 and 2 / 2: all would need 3.2 s.
    assert_eq!((&ran["seconds"], &ran["imbalance"]), (&4.0.into(), &1.25.into()));
    let output =
        bench.run(&format!("run --plan plan.json --platform p.toml --seconds-from stdout -- {words}"));
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    holds(&out, &["measured", "4.00 s", "not started", "1.2500"]);
    holds(&err, &["a: said 0", "b: said 1", "not started, since their shares are 0: c"]);
    let quiet = bench.run(&format!("{run} -q"));
    assert!(quiet.stderr.is_empty());
    // The forecast of measured speeds stands beside the measurement.
    bench.write(
        "m.json",
        "{\"format\": \"apportion-models\", \"version\": 1, \"kernel\": \"k\", \"unit\": \"u\", \"models\": [\
         {\"processor\": \"a\", \"points\": [{\"size\": 1, \"seconds\": 0.5}]},\
         {\"processor\": \"b\", \"points\": [{\"size\": 1, \"seconds\": 1.5}]}]}",
    );
    bench.done("partition --units 8 --models m.json -o m-plan.json");
    let ran = bench
        .json("run --plan m-plan.json --seconds-from stdout --command './work {from} {to} {share} {rank} x'");
    assert_eq!(
        (&ran["forecast_seconds"], &ran["processors"][1]["forecast_seconds"]),
        (&3.0.into(), &3.0.into())
    );
    let text =
        bench.done("run --plan m-plan.json --seconds-from stdout -- ./work {from} {to} {share} {rank} x");
    assert!(text.contains("forecast 3.00 s, measured 2.00 s (50.0 % too high)"), "{text}");
}

#[test]
fn a_failing_program_is_named_and_the_others_end() {
    let bench = Bench::new();
    bench.program(
        "work",
        "#!/bin/sh\ntest $APPORTION_RANK = 1 && { echo first >&2; echo no disk >&2; exit 5; }\n\
         sleep 0.3; touch done-$APPORTION_RANK\n",
    );
    bench.done("partition --units 3 --speeds 1,1,1 -o plan.json");
    let output = bench.run("run --plan plan.json --command './work {share}' --json");
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8(output.stderr).unwrap();
    let last = err.lines().last().unwrap();
    holds(last, &["apportion: ", "\"p1\"", "exit status: 5", "no disk"]);
    assert!(bench.has("done-0") && bench.has("done-2"));
    let ran: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(ran["seconds"], Value::Null);
    assert!(ran["processors"][1]["error"].as_str().unwrap().contains("no disk"));
    assert!(ran["processors"][0]["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_interrupted_run_ends_all_its_processes() {
    let bench = Bench::new();
    bench.program(
        "work",
        "#!/bin/sh\nr=$APPORTION_RANK\ntest $r = 0 && exec touch done\n\
         sleep 1000 & echo $! >new-$r; mv new-$r pid-$r; wait\n",
    );
    bench.done("partition --units 3 --speeds 1,1,1 -o plan.json");
    let child = started(&bench, "run --plan plan.json --command './work {share}'");
    until("all began", || bench.has("done") && bench.has("pid-1") && bench.has("pid-2"));
    std::thread::sleep(Duration::from_millis(300));
    let (code, _, err) = ended(child, Signal::TERM);
    assert_eq!(code, Some(143));
    assert!(err.contains("interrupted (ended before: p0; stopped: p1, p2)"), "{err}");
    until("the children end", || gone(&bench, "pid-1") && gone(&bench, "pid-2"));
}

#[test]
fn a_program_that_hangs_is_stopped_by_its_timeout() {
    let bench = Bench::new();
    bench.program(
        "work",
        "#!/bin/sh\ntest $APPORTION_RANK = 0 && exec echo 1\necho $$ >pid; sleep 1000 & wait\n",
    );
    bench.done("partition --units 4 --speeds 1,1 -o plan.json");
    let work = "--timeout 0.5 --seconds-from stdout --command './work {share}'";
    for line in [
        format!("measure --processors 2 --sizes 10,20 {work}"),
        format!("balance --processors 2 --units 10 {work}"),
        format!("run --plan plan.json {work}"),
    ] {
        let output = bench.run(&line);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {err}");
        holds(&err, &["\"p1\"", "did not end within 500.0 ms", "--timeout"]);
        until("the program ends", || gone(&bench, "pid"));
    }
    bench.refuses(&[
        ("measure --timeout 5", "--command"),
        ("run --plan plan.json --timeout 0 --command './work {share}'", "positive"),
        ("balance --units 5 --timeout=-1 --command './work {share}'", "negative"),
    ]);
}

#[test]
fn programs_that_cannot_be_started_are_refused() {
    let bench = Bench::new();
    bench.done("partition --units 4 --speeds 1,1 -o plan.json");
    let none = bench.text("plan.json").replace("\"n\": 4", "\"n\": 0").replace("    2", "    0");
    bench.write("none.json", none);
    for (line, word) in [
        ("run --plan plan.json --command './none {share}'", "./none"),
        ("run --plan none.json --command './none {share}'", "0 units"),
        ("run --units 4 -- ./none {from} {to}", "./none"),
    ] {
        let output = bench.run(line);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {err}");
        assert!(err.lines().last().unwrap().contains(word), "{line}: {err}");
    }
}

/// Where stderr is no terminal, long work says that it goes on.
#[test]
fn long_work_is_not_silent() {
    let bench = Bench::new();
    bench.done("partition --units 1 --speeds 1 -o plan.json");
    let output = bench.run("run --plan plan.json --command 'sleep 5.5 {share}'");
    assert!(output.status.success());
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.starts_with("running: 0 % after 5 s\n"), "{err}");
}

/// The example of the documentation, from measuring to running it and exporting its shares.
#[test]
fn the_documented_program_does_what_the_page_says() {
    let python = std::process::Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|out| out.status.success()) {
        apportion_testing::skip(apportion_testing::Need::Python, "no python3");
        return;
    }
    let bench = Bench::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/integrate.py");
    std::fs::copy(file, bench.path("integrate.py")).unwrap();
    let program = "./integrate.py {from} {to} part-{rank} 20000";
    bench.done(&format!("balance --units 20000 --processors 2 --max-rounds 2 -o plan.json -- {program}"));
    bench.done(&format!("run --plan plan.json --command '{program}'"));
    let mut sum = 0.0;
    for name in ["part-0", "part-1"] {
        sum += bench.text(name).trim().parse::<f64>().unwrap();
    }
    assert!((sum - std::f64::consts::PI).abs() < 1e-9, "{sum}");
}
