//! `run` without a plan: units are divided while they run, each runs once, and what is done stays done.

use super::bench::Bench;
use apportion_testing::{holds, object, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Stdio;

/// Prints its units, and says which processor has them.
const COUNT: &str = "#!/bin/sh\ni=$1; while [ $i -lt $2 ]; do echo unit $i; i=$((i + 1)); done\n\
    echo \"piece $APPORTION_PIECE\" >&2\n";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.program("count", COUNT);
    bench
}

fn units(text: &str) -> Vec<u64> {
    text.lines().filter_map(|line| line.strip_prefix("unit ")?.parse().ok()).collect()
}

/// stdout is what the pieces print, in the order of the units; all else is on stderr, or in one object.
#[test]
fn stdout_is_for_the_pieces() {
    let bench = bench();
    let line = "run --units 300 --processors 3 --joblog log -o plan.json --command './count {from} {to}'";
    let output = bench.run(line);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    assert_eq!(units(&out), (0..300).collect::<Vec<u64>>());
    assert_eq!(out.lines().count(), 300);
    holds(
        &err,
        &["time ", " for 300 units in ", "without ", "about ", "cost ", "plan ", "plan.json: the next run"],
    );
    let log = bench.text("log");
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("piece\tfrom\tto\tprocessor\tstart\tseconds\texit\tsignal"));
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        assert!(fields.len() == 8 && fields[6..] == ["0", "0"], "{line}");
        assert!(err.contains(&format!("{}: piece {}\n", fields[3], fields[0])), "{err}");
    }
    // The plan is followed; it knows each processor's times.
    let plan = bench.value("plan.json");
    assert_eq!((&plan["problem"]["kind"], &plan["problem"]["n"]), (&"units".into(), &300.into()));
    for field in ["start_up", "per_unit", "shares"] {
        assert_eq!(plan[field].as_array().unwrap().len(), 3, "{field}");
    }
    let out = bench.done("run --plan plan.json --command './count {from} {to}'");
    assert_eq!(units(&out), (0..300).collect::<Vec<u64>>());
    let fixed = bench.json("run --plan plan.json --fixed --command './count {from} {to}'");
    assert_eq!(fixed["processors"][1]["share"], plan["shares"][1]);
    // --json has the object alone on stdout.
    let line = "run --units 300 --processors 2 --json --measure-alone --seconds-from stdout --shell \
        --command './count {from} {to}; echo {size}'";
    let output = bench.run(line);
    let ran = object(&output);
    assert_eq!((&ran["units"], &ran["failed"]), (&300.into(), &Value::Array(vec![])));
    let fields: Vec<&String> = ran.as_object().unwrap().keys().collect();
    let known = ["alone", "even", "failed", "learning_seconds", "pieces", "processors", "seconds", "units"];
    assert!(fields.len() == 8 && fields.iter().all(|field| known.contains(&field.as_str())), "{fields:?}");
    assert_eq!((&ran["alone"]["measured"], &ran["alone"]["seconds"]), (&true.into(), &300.0.into()));
    assert_eq!(ran["even"]["measured"], false);
    let all: u64 = ran["processors"].as_array().unwrap().iter().map(|p| p["pieces"].as_u64().unwrap()).sum();
    assert_eq!(ran["pieces"], all);
    assert_eq!(units(&String::from_utf8(output.stderr).unwrap()), (0..300).collect::<Vec<u64>>());
}

/// After a failure, Ctrl-C, SIGTERM and SIGKILL, the same command with --resume does what is left, and nothing twice.
#[test]
fn whatever_ends_a_run_it_goes_on() {
    let bench = bench();
    bench.program(
        "work",
        "#!/bin/sh\nif [ $2 -gt 60 ] && ! [ -e go ]; then sleep 1000 & echo $! >pid-$ATTEMPT-$APPORTION_RANK; wait; fi\n\
         exec ./count $1 $2\n",
    );
    let line = "run --units 200 --processors 2 --joblog log --resume --command './work {from} {to}'";
    // Processes that wait, by the files that have their ids; one of an attempt before may still come to write its own.
    let waiting = |attempt: Signal| -> Vec<String> {
        let start = format!("pid-{}-", attempt.as_raw());
        let names = bench.names().into_iter().filter(|name| name.starts_with(&start));
        names.filter(|name| bench.text(name).ends_with('\n')).collect()
    };
    let gone = |id: &str| {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z")
    };
    let mut done = Vec::new();
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let mut command = bench.command(line);
        command.env("ATTEMPT", signal.as_raw().to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        until("one waits", || {
            assert_eq!(child.try_wait().unwrap(), None, "it ends before");
            !waiting(signal).is_empty()
        });
        kill_process(Pid::from_child(&child), signal).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, (signal != Signal::KILL).then_some(128 + signal.as_raw()));
        let output = child.wait_with_output().unwrap();
        done.extend(units(&String::from_utf8(output.stdout).unwrap()));
        if signal != Signal::KILL {
            let err = String::from_utf8(output.stderr).unwrap();
            let last = err.lines().last().unwrap();
            holds(last, &["apportion: interrupted (", " of ", "the same command with --joblog log --resume"]);
            let log = bench.text("log");
            assert!(log.lines().last().unwrap().ends_with("\t143\t15"), "{log}");
        }
        for file in waiting(signal) {
            let id = bench.text(&file);
            until("the children end", || gone(id.trim()));
        }
    }
    bench.write("go", "");
    done.extend(units(&bench.done(line)));
    done.sort_unstable();
    assert_eq!(done, (0..200).collect::<Vec<u64>>());
    assert_eq!(bench.done(line), "", "nothing is left");
    // A joblog is not replaced, nor one of another job continued.
    let again = bench.fails(2, "run --units 200 --processors 2 --joblog log --command './work {from} {to}'");
    holds(&again, &["log: holds a joblog already", "--resume"]);
    let other = bench.fails(2, "run --units 100 --processors 2 --joblog log --resume -- ./work {from} {to}");
    holds(&other, &["log:", "of a job of more than 100"]);
}

#[test]
fn a_failed_piece_is_named() {
    let bench = bench();
    bench.program(
        "fail",
        "#!/bin/sh\n[ $1 -le 40 ] && [ 40 -lt $2 ] && { echo no disk >&2; exit 5; }\nexec ./count $1 $2\n",
    );
    let line = "run --units 100 --processors 2 --halt never --retries 1 --json -- ./fail {from} {to}";
    let output = bench.run(line);
    let err = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    let ran: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(ran["failed"].as_array().unwrap().len(), 1, "{ran}");
    assert_eq!(ran["learning_seconds"], Value::Null);
    let last = err.lines().last().unwrap();
    holds(last, &["exit status: 5, its last line: no disk", " of 100 units are done", "with --joblog FILE"]);
    assert!(err.contains("runs again"), "{err}");
}

/// Syntax that would be an argument without a word.
#[test]
fn a_shell_reads_shell_syntax() {
    let bench = bench();
    bench.done("run --units 30 --processors 2 --shell --command './count {from} {to} >out-{piece} 2>>err'");
    let mut all: Vec<u64> = Vec::new();
    for name in bench.names().iter().filter(|name| name.starts_with("out-")) {
        all.extend(units(&bench.text(name)));
    }
    all.sort_unstable();
    assert_eq!(all, (0..30).collect::<Vec<u64>>());
}

#[test]
fn pools_have_their_cores() {
    let bench = bench();
    bench.program(
        "tell",
        "#!/bin/sh\necho $OMP_NUM_THREADS $(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)\n",
    );
    let cores: Vec<usize> = apportion::platform::discover().cores.iter().map(|core| core.cpu).collect();
    if cores.len() >= 2 {
        let out = bench.done("run --units 1 --threads 2 -- ./tell {size}");
        assert_eq!(out.trim(), format!("2 {}", apportion::platform::list_cpus(&cores[..2])));
    }
    let out = bench.done("run --units 1 -- ./tell {size}");
    let core = out.trim().strip_prefix("1 ").and_then(|core| core.parse().ok());
    assert!(core.is_some_and(|core| cores.contains(&core)), "one core is pinned: {out}");
}
