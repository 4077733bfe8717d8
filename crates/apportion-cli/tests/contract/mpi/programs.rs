//! Users' programs under MPI: each rank starts that of its own processor.

use super::launch::{Mpi, said};
use crate::bench::Bench;
use apportion_testing::{holds, object};
use serde_json::{Value, json};

/// Says who runs it, and that rank 1 is three times as slow.
const WORK: &str = "#!/bin/sh\n\
    echo \"$APPORTION_RANK $APPORTION_PROCESSOR ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $APPORTION_FROM $OMP_NUM_THREADS\" \
    >>told-$APPORTION_RANK\n\
    exec awk -v x=$1 -v r=$APPORTION_RANK 'BEGIN { printf \"%.15g\\n\", x * (r == 0 ? 1 : 3) }'\n";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.program("work", WORK);
    bench
}

/// The words of the last line that a rank's program has written.
fn last_words(bench: &Bench, rank: usize) -> Vec<String> {
    let text = bench.text(&format!("told-{rank}"));
    text.lines().last().unwrap().split(' ').map(str::to_owned).collect()
}

#[test]
fn each_rank_runs_its_own_program() {
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let bench = bench();
        let work = "--seconds-from stdout -- ./work {share}";
        let line = format!("balance --units 1000 -o plan.json --models-out m.json --json {work}");
        let Some(mut command) = mpi.command(&bench, 2, &line) else { continue };
        let found = object(&command.output().unwrap());
        assert_eq!(found["plan"]["shares"], json!([750, 250]));
        assert_eq!(found["plan"], bench.value("plan.json"));
        assert_eq!(found["processors"], json!(["rank0", "rank1"]));
        for rank in 0..2 {
            let words = last_words(&bench, rank);
            let (rank, from) = (rank.to_string(), if rank == 0 { "0" } else { "750" });
            assert_eq!(words[..4], [rank.clone(), format!("rank{rank}"), rank, from.to_owned()]);
        }
        // The plan is carried out by the same ranks; what they print is passed on once.
        let run = format!("run --plan plan.json --json {work}");
        let output = mpi.command(&bench, 2, &run).unwrap().output().unwrap();
        let ran = object(&output);
        let seconds = |i: usize| ran["processors"][i]["seconds"].as_f64().unwrap();
        assert_eq!((seconds(0), seconds(1), &ran["seconds"]), (750.0, 750.0, &json!(750.0)));
        let stderr = String::from_utf8_lossy(&output.stderr);
        for line in ["rank0: 750\n", "rank1: 750\n"] {
            assert_eq!(stderr.matches(line).count(), 1, "{stderr}");
        }
        // A rank without units starts nothing.
        bench.done("partition --units 5 --speeds 1,0 -o one.json");
        let run = format!("run --plan one.json --json {work}");
        let ran = object(&mpi.command(&bench, 2, &run).unwrap().output().unwrap());
        assert_eq!((&ran["processors"][1]["started"], &ran["seconds"]), (&json!(false), &json!(5.0)));
        // Measured together, and balanced from what was measured.
        let measure = format!("measure --sizes 10,20 --max-repetitions 1 -o speeds.json --json {work}");
        let models = object(&mpi.command(&bench, 2, &measure).unwrap().output().unwrap());
        assert_eq!(models["models"][1]["points"][1]["seconds"], 60.0);
        let line = format!("balance --units 1000 --models speeds.json --json {work}");
        let found = object(&mpi.command(&bench, 2, &line).unwrap().output().unwrap());
        assert_eq!(
            (found["rounds"].as_array().unwrap().len(), &found["plan"]["shares"]),
            (1, &json!([750, 250]))
        );
    }
}

/// The units of one queue, on rank 0, where joblog, texts and object are; a failure ends the run of all.
#[test]
fn units_are_divided_among_ranks() {
    let bench = Bench::new();
    bench.program(
        "work",
        "#!/bin/sh\ni=$1; while [ $i -lt $2 ]; do echo $i; i=$((i + 1)); done\n\
         echo \"$APPORTION_PIECE by ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" >&2\n\
         ! [ -e fail ] || [ $1 -lt 20 ] || exit 3\n",
    );
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let line = "run --units 100 --joblog log -o plan.json -- ./work {from} {to}";
        let Some(mut command) = mpi.command(&bench, 3, line) else { continue };
        let output = command.output().unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{err}");
        assert!(out.lines().map(|unit| unit.parse::<u64>().unwrap()).eq(0..100), "{out}");
        for line in bench.text("log").lines().skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            assert!(err.contains(&format!("{}: {} by {}\n", fields[3], fields[0], &fields[3][4..])), "{err}");
        }
        let again =
            mpi.command(&bench, 3, "run --plan plan.json --json -- ./work {from} {to}").unwrap().output();
        assert_eq!(object(&again.unwrap())["units"], 100);
        bench.write("fail", "");
        let output = mpi
            .command(&bench, 3, "run --units 100 --halt now -- ./work {from} {to}")
            .unwrap()
            .output()
            .unwrap();
        let lines = said(&output);
        assert_eq!((output.status.code(), lines.len()), (Some(1), 1), "{lines:?}");
        holds(&lines[0], &["exit status: 3", " of 100 units are done"]);
        ["fail", "log", "plan.json"].iter().for_each(|name| bench.remove(name));
    }
}

/// A rank that is alone on its cores is a pool of them.
#[test]
fn a_rank_has_the_cores_of_its_host() {
    let bench = bench();
    let cores = apportion::platform::discover().cores.len();
    let Some(mut command) =
        Mpi::Open.command(&bench, 1, "measure --engine mpi --sizes 3 --max-repetitions 1 -- ./work {size}")
    else {
        return;
    };
    assert!(command.output().unwrap().status.success());
    assert_eq!(last_words(&bench, 0)[4], cores.to_string());
}

/// A program that fails ends the programs of all ranks, and is told once; a plan runs to its end.
#[test]
fn a_failure_is_told_once() {
    let bench = bench();
    bench.program(
        "fail",
        "#!/bin/sh\ntest $APPORTION_RANK = 1 && { echo no disk >&2; exit 5; }\ntest -e long && exec sleep 1000\n\
         touch done\n",
    );
    bench.write("long", "");
    let Some(mut command) = Mpi::Open.command(&bench, 2, "balance --units 10 -o plan.json -- ./fail {share}")
    else {
        return;
    };
    let output = command.output().unwrap();
    let lines = said(&output);
    assert_eq!((output.status.code(), lines.len()), (Some(1), 1), "{lines:?}");
    holds(&lines[0], &["with size 5 on processor \"rank1\" failed: exit status: 5, its last line: no disk"]);
    assert!(!bench.has("plan.json"));
    bench.remove("long");
    bench.done("partition --units 4 --speeds 1,1 -o plan.json");
    let output = mpi_output(&bench, "run --plan plan.json -- ./fail {share}");
    let lines = said(&output);
    assert_eq!((output.status.code(), lines.len()), (Some(1), 1), "{lines:?}");
    assert!(bench.has("done"));
    // What cannot be is told by all together.
    for (line, code, word) in [
        ("run --plan plan.json -- ./none {share}", 2, "cannot start \"./none\""),
        ("run --plan none.json -- ./work {share}", 2, "none.json"),
        ("balance --units 9 --processors 3 -- ./work {share}", 2, "there are 3 processors"),
        ("balance --units 9 -- ./work", 2, "no place for the size"),
        ("balance --units 9 --max 3 -- ./work {share}", 1, ""),
        ("balance --units 9 -o nowhere/plan.json -- ./work {share}", 2, "nowhere"),
    ] {
        let output = mpi_output(&bench, line);
        let lines = said(&output);
        assert_eq!((output.status.code(), lines.len()), (Some(code), 1), "{line}: {lines:?}");
        assert!(lines[0].contains(word), "{lines:?}");
    }
    bench.done("partition --units 4 --speeds 1,1,1 -o three.json");
    let output = mpi_output(&bench, "run --plan three.json -- ./work {share}");
    assert_eq!((output.status.code(), said(&output).len()), (Some(2), 1));
}

fn mpi_output(bench: &Bench, line: &str) -> std::process::Output {
    Mpi::Open.command(bench, 2, line).unwrap().output().unwrap()
}

/// Without a flag, processes that mpirun has started are one world; threads are refused there.
#[test]
fn the_engine_follows_the_launcher() {
    let bench = bench();
    bench.numbers("a.npy", "<f8", (40, 40), false);
    let Some(mut command) =
        Mpi::Open.command(&bench, 2, "matmul a.npy a.npy -o c.npy --report r.json --json")
    else {
        return;
    };
    let report = object(&command.output().unwrap());
    assert_eq!((&report["engine"], &report["verified"]), (&json!("mpi"), &json!(true)));
    let names = |report: &Value| -> Vec<String> {
        let processors = report["processors"].as_array().unwrap().iter();
        processors.map(|p| p["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&report), ["rank0", "rank1"]);
    assert_eq!(bench.json("matmul a.npy a.npy")["engine"], "threads");
    let output = mpi_output(&bench, "matmul a.npy a.npy --engine threads");
    assert_eq!((output.status.code(), said(&output).len()), (Some(2), 1));
    holds(&said(&output)[0], &["mpirun started 2 processes", "leave out --engine threads"]);
}
