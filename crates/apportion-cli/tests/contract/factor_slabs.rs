//! `factor --memory`, `--checkpoint`, `--resume`: the factors of the run in memory, within the limit, after kills and
//! damage.

use super::Bench;
use super::factor::{matrix, save};
use super::interrupt::stopped;
use apportion::random::Random;
use apportion_testing::holds;
use rustix::process::Signal;
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;

const KINDS: [&str; 3] = ["cholesky", "lu", "ldlt"];

/// The line of a factorisation with pivots, if it has some.
fn line(kind: &str, name: &str) -> String {
    let pivots = if kind == "cholesky" { String::new() } else { format!("--pivots p-{name}.npy") };
    format!("factor a.npy --kind {kind} -o {name}.npy {pivots} --block 16")
}

/// Two unequal processors, so slow that a kill comes in the middle.
fn slow(slowdown: u32) -> String {
    let one = |name: &str, slowdown: u32| {
        format!("[[processor]]\nname = \"{name}\"\nspeed = \"1 Gflop/s\"\nslowdown = {slowdown}\n")
    };
    one("a", slowdown) + &one("b", 2 * slowdown)
}

/// True if two runs have left the same factors and pivots.
fn same(bench: &Bench, kind: &str, one: &str, other: &str) -> bool {
    let of = |name: &str| bench.bytes(&format!("{name}.npy"));
    of(one) == of(other) && (kind == "cholesky" || of(&format!("p-{one}")) == of(&format!("p-{other}")))
}

fn count_panels(bench: &Bench) -> usize {
    let entries = std::fs::read_dir(bench.path("kept")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("panel-")).count()
}

#[test]
fn a_checkpoint_gives_the_same_bytes_and_continues() {
    for kind in KINDS {
        let (bench, n) = (Bench::new(), 150);
        save(&bench, "a.npy", n, &matrix(n));
        bench.done(&format!("{} --speeds 1", line(kind, "one")));
        let run = bench.json(&format!("{} --speeds 3,1,2 --checkpoint kept", line(kind, "two")));
        assert!(same(&bench, kind, "one", "two"), "{kind}");
        // As many slabs as blocks.
        let slabs = &run["slabs"];
        assert_eq!(
            (&slabs["count"], &slabs["columns"], &slabs["resumed"]),
            (&json!(10), &json!(16), &json!(0))
        );
        assert_eq!((&slabs["decided_by"], &slabs["memory_cap_bytes"]), (&json!("default"), &json!(null)));
        assert_eq!(run["predicted_memory_bytes"], run["peak_memory_bytes"], "{kind}");
        assert_eq!(count_panels(&bench), 10);
        let names = bench.names();
        assert!(!names.iter().any(|name| name.starts_with(".apportion")), "{names:?}");
        // Everything is there; other processors, and no block to say.
        let call = line(kind, "three").replace(" --block 16", "");
        let text = bench.done(&format!("{call} --speeds 1,1 --resume kept"));
        holds(
            &text,
            &[
                "10 slabs of 16 columns, by default; 10 of 10 blocks resumed",
                "without what an earlier run did",
            ],
        );
        assert!(same(&bench, kind, "one", "three"), "{kind}");

        // The lowest bit of an element of a panel.
        let entries = std::fs::read_dir(bench.path("kept")).unwrap();
        let mut panels: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        panels.sort();
        let panel = panels.iter().find(|path| path.to_string_lossy().contains("panel-000006-")).unwrap();
        let mut bytes = std::fs::read(panel).unwrap();
        let last = bytes.len() - 8;
        bytes[last] ^= 1;
        std::fs::write(panel, &bytes).unwrap();
        let output = bench.run(&format!("{} --speeds 1,1 --resume kept --json", line(kind, "four")));
        assert!(output.status.success() && same(&bench, kind, "one", "four"), "{kind}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("is damaged, and computed again"));
        let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&run["slabs"]["resumed"], &run["flops_per_second"]), (&json!(6), &json!(null)));
        assert_eq!(count_panels(&bench), 10);
    }
}

#[test]
fn what_has_no_factors_keeps_nothing() {
    let (bench, n) = (Bench::new(), 60);
    save(&bench, "b.npy", n, &vec![1.0; n * n]);
    // What has no factors has none the next time: nothing is said of what is kept.
    let output = bench.run("factor b.npy --kind lu --speeds 2,1 --block 16 --checkpoint new");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("singular") && !said.contains("kept"), "{said}");
}

/// Processors with little memory of their own: the matrix is cut so that its columns fit.
#[test]
fn the_memory_of_processors_is_kept() {
    let (bench, n) = (Bench::new(), 200);
    save(&bench, "a.npy", n, &matrix(n));
    let cap = 100_000;
    let one =
        |name: &str| format!("[[processor]]\nname = \"{name}\"\nspeed = \"1 Gflop/s\"\nmemory = {cap}\n");
    bench.write("small.toml", one("a") + &one("b"));
    for kind in KINDS {
        bench.done(&format!("{} --speeds 1", line(kind, "one")));
        let run = bench.json(&format!("{} --platform small.toml", line(kind, "two")));
        assert!(same(&bench, kind, "one", "two"), "{kind}");
        assert_eq!(run["slabs"]["decided_by"], "the processors' memory");
        assert!(run["slabs"]["count"].as_u64().unwrap() > 1);
        assert_eq!(run["predicted_memory_bytes"], run["peak_memory_bytes"], "{kind}");
        for bytes in run["peak_memory_bytes"].as_array().unwrap() {
            assert!(bytes.as_u64().unwrap() <= cap, "{run}");
        }
        let nowhere = bench.fails(1, &format!("factor a.npy --kind {kind} --platform small.toml"));
        holds(&nowhere, &["processor a would hold", "its memory of 100.0 kB", "--output"]);
    }
    bench.write("small.toml", one("a").replace("100000", "20000"));
    let tiny = bench.fails(1, &format!("{} --platform small.toml", line("lu", "two")));
    holds(&tiny, &["processor a would hold", "20.0 kB"]);
}

/// The peak that the operating system has measured.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow"]
fn a_matrix_larger_than_the_limit_is_factored_within_it() {
    let (bench, n) = (Bench::new(), 2500);
    save(&bench, "a.npy", n, &matrix(n));
    for (kind, cap) in [("cholesky", 44_u64 << 20), ("lu", 36 << 20), ("ldlt", 36 << 20)] {
        let call = |name: &str| line(kind, name).replace("--block 16", "--block 32");
        let run = bench.json(&format!("{} --speeds 3,1 --memory {cap}", call("two")));
        let slabs = &run["slabs"];
        let held = |field: &str| slabs[field].as_u64().unwrap();
        let bytes = ["predicted_memory_bytes", "peak_resident_bytes"].map(held);
        assert!(bytes.iter().all(|bytes| *bytes <= cap), "{kind} {slabs}");
        assert!(held("count") > 1 && (n * n * 8) as u64 > cap, "{slabs}");
        assert_eq!(slabs["decided_by"], "--memory");
        bench.done(&format!("{} --speeds 1", call("one")));
        assert!(same(&bench, kind, "one", "two"), "{kind}");
    }
}

#[test]
fn ctrl_c_keeps_what_is_finished() {
    let (bench, n) = (Bench::new(), 300);
    save(&bench, "a.npy", n, &matrix(n));
    bench.done(&format!("{} --speeds 1", line("lu", "one")));
    bench.write("two.npy", "an earlier result");
    bench.write("p.toml", slow(4000));
    let call = format!("{} --platform p.toml", line("lu", "two"));
    let said =
        stopped(&bench, &format!("{call} --checkpoint kept"), || count_panels(&bench) > 1, Signal::INT);
    let count = count_panels(&bench);
    assert!((2..19).contains(&count), "{count}");
    let wanted = format!(
        "apportion: interrupted ({count} of 19 block columns kept in kept: the same command with --resume kept \
         instead of --checkpoint continues)\n"
    );
    assert_eq!(said, wanted);
    assert_eq!(bench.text("two.npy"), "an earlier result");
    let names = bench.names();
    assert!(!names.iter().any(|name| name.starts_with(".apportion")), "{names:?}");
    bench.write("p.toml", slow(1));
    let run = bench.json(&format!("{call} --resume kept"));
    assert_eq!(run["slabs"]["resumed"], count);
    assert!(same(&bench, "lu", "one", "two"));
}

#[test]
#[ignore = "slow"]
fn killed_at_any_moment_it_goes_on_to_the_same_bytes() {
    let (bench, n) = (Bench::new(), 300);
    save(&bench, "a.npy", n, &matrix(n));
    bench.write("slow.toml", slow(60));
    let mut random = Random::new(12345);
    for kind in KINDS {
        bench.done(&format!("{} --speeds 1", line(kind, "one")));
        let mut kills = 0;
        loop {
            let flag = if kills == 0 { "--checkpoint" } else { "--resume" };
            let call = format!("{} --platform slow.toml {flag} kept-{kind}", line(kind, "two"));
            let mut child = bench.command(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random.below(300) as u64));
            if kills >= 6 {
                assert!(child.wait().unwrap().success());
                break;
            }
            child.kill().unwrap();
            if child.wait().unwrap().success() {
                break;
            }
            kills += 1;
        }
        assert!(same(&bench, kind, "one", "two"), "{kind} after {kills} kills");
        let files = std::fs::read_dir(bench.path(&format!("kept-{kind}"))).unwrap();
        let left =
            files.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
        assert_eq!(left.count(), 0, "temporary files of killed runs are deleted");
    }
}

/// The disk of the result is full, or that of the finished block columns.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_nothing() {
    let (bench, n) = (Bench::new(), 300);
    save(&bench, "a.npy", n, &matrix(n));
    bench.done(&format!("{} --speeds 1", line("ldlt", "one")));
    let call = "factor a.npy --kind ldlt --speeds 2,1 --block 16 --pivots p-two.npy";
    let output = bench.run(&format!("{call} -o /dev/full --checkpoint kept"));
    let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    holds(&said, &["/dev/full", "19 of 19 block columns kept in kept"]);
    bench.done(&format!("{call} -o two.npy --resume kept"));
    assert!(same(&bench, "ldlt", "one", "two"));

    std::fs::create_dir_all(bench.path("small")).unwrap();
    let mount = |arguments: &[&str]| {
        let done = std::process::Command::new("mount").args(arguments).arg(bench.path("small")).output();
        done.is_ok_and(|output| output.status.success())
    };
    // Room for the temporary file, of 380 kB, and for some block columns.
    if !mount(&["-t", "tmpfs", "-o", "size=600k", "tmpfs"]) {
        apportion_testing::skip(apportion_testing::Need::Mount, "mount is not permitted");
        return;
    }
    bench.write("two.npy", "an earlier result");
    let output = bench.run(&format!("{call} -o two.npy --checkpoint small/kept"));
    let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
    let earlier = bench.text("two.npy");
    let grown = mount(&["-o", "remount,size=4m"]);
    let again = bench.run(&format!("{call} -o two.npy --resume small/kept --json"));
    let run: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap_or_default();
    // Not even the temporary file.
    let smaller = mount(&["-o", "remount,size=100k"]);
    let none = bench.run(&format!("{call} -o small/two.npy --memory 1GB"));
    let _ = std::process::Command::new("umount").arg(bench.path("small")).status();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    holds(&said, &["No space left", "of 19 block columns kept in small/kept"]);
    assert_eq!(earlier, "an earlier result");
    assert!(grown && again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert!((1..19).contains(&run["slabs"]["resumed"].as_u64().unwrap()), "{run}");
    assert!(same(&bench, "ldlt", "one", "two"));
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(!smaller || none.status.code() == Some(1), "{said}");
    assert!(!smaller || said.contains("are free on its disk"), "{said}");
}
