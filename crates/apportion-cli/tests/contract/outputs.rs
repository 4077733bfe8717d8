//! Outputs that cannot be written or would replace one another, checkpoints of other products, and threads
//! that the system refuses.

use super::Bench;
use super::bench::{TWO, irrational};
use apportion_testing::binary;
use std::fs::{self, File};
use std::process::{Command, Stdio};

const RUN: [&str; 5] = ["matmul", "a.npy", "b.npy", "--platform", "two.toml"];

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &irrational::<f64>(60, 40, 1.0));
    bench.matrix("b.npy", &irrational::<f64>(40, 50, 2.0));
    bench
}

/// Only a closed pipe is no error.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let bench = bench();
    for words in [
        &["partition", "--units", "9", "--speeds", "9,1"][..],
        &["partition", "--units", "9", "--speeds", "9,1", "--json"],
        &["partition", "--units", "9", "--speeds", "9,1", "--export", "csv"],
        &["detect"],
        &["--help"],
        &["matmul", "--help"],
        &["--version"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = bench.command(words).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("stdout: cannot write: No space left"), "{words:?}: {said}");
        let closed = bench.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut closed = closed;
        drop(closed.stdout.take());
        let output = closed.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{words:?}");
    }
}

/// Notes that cannot be written, on a full disk or to a pipe that is closed, stop no work.
#[cfg(target_os = "linux")]
#[test]
fn notes_that_cannot_be_printed_stop_nothing() {
    let bench = bench();
    let product = ["matmul", "a.npy", "b.npy", "-v", "--speeds", "1,1", "-o", "c.npy"];
    let program = ["balance", "--units", "9", "--processors", "2", "--command", "test {share}"];
    let balance = [&program[..], &["-o", "plan.json", "--json"]].concat();
    for (words, file) in [(&product[..], "c.npy"), (&balance[..], "plan.json")] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = bench.command(words).stdout(Stdio::piped()).stderr(full).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        fs::remove_file(bench.path(file)).unwrap();
        let mut closed = bench.command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        drop(closed.stderr.take());
        assert_eq!(closed.wait().unwrap().code(), Some(0), "{words:?}");
        fs::remove_file(bench.path(file)).unwrap();
    }
}

/// `-o /dev/stdout` in a pipeline: the link leads to a pipe, which has no name.
#[cfg(target_os = "linux")]
#[test]
fn an_output_may_be_the_standard_output() {
    let bench = bench();
    let partition = ["partition", "--units", "9", "--speeds", "9,1", "-o"];
    bench.run(&[&partition[..], &["plan.json"]].concat());
    let piped = [&partition[..], &["/dev/stdout", "--quiet"]].concat();
    let output = bench.command(&piped).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let plan = fs::read_to_string(bench.path("plan.json")).unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&plan), "{output:?}");
}

/// A core that is not there is not ignored in silence.
#[cfg(target_os = "linux")]
#[test]
fn cores_that_are_not_there_are_told() {
    let bench = bench();
    bench.write("cores.toml", "[[processor]]\nname = \"p0\"\nspeed = \"1 Gflop/s\"\ncores = [99999]\n");
    let words = ["matmul", "a.npy", "b.npy", "--platform", "cores.toml"];
    let output = bench.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("p0: cores = [99999]") && said.contains("it runs unpinned"), "{said}");
}

/// Limits of the process count, not only what the machine has free.
#[cfg(target_os = "linux")]
#[test]
fn a_product_beyond_the_limit_of_memory_is_refused() {
    let bench = bench();
    for name in ["big.mtx", "wide.mtx"] {
        bench.write(name, "%%MatrixMarket matrix coordinate real general\n9000 9000 1\n1 1 1\n");
    }
    bench.write("one.toml", "[[processor]]\nname = \"p0\"\nspeed = \"1 Gflop/s\"\n");
    let run = format!("{} matmul big.mtx wide.mtx --platform one.toml", binary().display());
    let limited = format!("ulimit -v 1000000; exec {run}");
    let output = Command::new("sh").args(["-c", &limited]).current_dir(bench.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("more than is free"), "{said}");
}

/// A file that reaches `ulimit -f` is an error, and leaves the earlier file as it was.
#[cfg(target_os = "linux")]
#[test]
fn a_file_beyond_the_limit_of_its_size_is_an_error() {
    let bench = bench();
    bench.write("c.npy", "earlier");
    let before = bench.files();
    let run = "ulimit -f 64; exec \"$0\" random 200 200 -o c.npy";
    let mut command = Command::new("bash");
    let output = command.args(["-c", run]).arg(binary()).current_dir(bench.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("apportion: c.npy: cannot write") && said.lines().count() == 1, "{said}");
    assert_eq!((bench.files(), bench.text("c.npy").as_str()), (before, "earlier"));
}

#[test]
fn no_output_replaces_another_or_an_input() {
    let bench = bench();
    let inputs = ["a.npy", "b.npy", "two.toml"].map(|name| fs::read(bench.path(name)).unwrap());
    for (flags, words) in [
        (&["-o", "same", "--report", "same"][..], ["same", "output of -o"]),
        (&["-o", "same", "--svg", "./same"], ["same", "output of -o"]),
        (&["--trace", "x", "--report", "x"], ["x", "which it would replace"]),
        (&["-o", "c.npy", "--report", "a.npy"], ["a.npy", "is an input"]),
        (&["-o", "two.toml"], ["two.toml", ".npy"]),
        (&["-o", "c.mtx"], ["c.mtx", ".npy"]),
    ] {
        let said = bench.fails(2, &[&RUN[..], flags].concat());
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    bench.fails(2, &["partition", "--shape", "9x9", "--speeds", "2,1", "-o", "p", "--svg", "p"]);
    assert_eq!(inputs, ["a.npy", "b.npy", "two.toml"].map(|name| fs::read(bench.path(name)).unwrap()));
    // C may replace an operand.
    bench.done(&[&RUN[..], &["-o", "b.npy"]].concat());
    assert_ne!(fs::read(bench.path("b.npy")).unwrap(), inputs[1]);
}

/// The other commands' outputs replace nothing either, and an advection begins no checkpoint where there is
/// one.
#[test]
fn other_commands_keep_their_inputs() {
    let bench = bench();
    let run = ["advect", "--field", "a.npy", "--courant", "0.1,0.1", "--speeds", "1,1", "--steps", "4"];
    let before = fs::read(bench.path("a.npy")).unwrap();
    for flags in [&["--report", "a.npy"][..], &["-o", "f.npy", "--trace", "f.npy"], &["--svg", "a.npy"]] {
        assert!(bench.fails(2, &[&run[..], flags].concat()).contains("would replace"));
    }
    assert_eq!(fs::read(bench.path("a.npy")).unwrap(), before);
    bench.done(&[&run[..], &["--every", "2", "--checkpoint", "kept"]].concat());
    let said = bench.fails(2, &[&run[..], &["--every", "2", "--checkpoint", "kept"]].concat());
    assert!(said.contains("holds a checkpoint already (continue it with --resume)"), "{said}");
    bench.done(&[&run[..], &["--resume", "kept"]].concat());
    // A power's exponent is written as other counts are.
    bench.done(&["random", "5", "5", "-o", "s.npy"]);
    bench.done(&["power", "s.npy", "-k", "1e1", "--speeds", "1"]);
    bench.fails(2, &["power", "s.npy", "-k", "-1", "--speeds", "1"]);
    bench.fails(2, &["matmul", "a.npy", "b.npy", "--speeds", "2,1", "--method", "rows", "--keep-all"]);
    bench.fails(2, &["study", "--processors", "3", "--draws", "1", "--searched", "1", "--log", "x"]);
}

#[test]
fn a_checkpoint_keeps_to_its_product() {
    let bench = bench();
    bench.matrix("other.npy", &irrational::<f64>(60, 40, 3.0));
    let run = |more: &[&str]| bench.run(&[&RUN[..], &["--panels", "4"], more].concat());
    assert!(run(&["-o", "c.npy", "--checkpoint", "k"]).status.success());
    let wanted = fs::read(bench.path("c.npy")).unwrap();

    // Another implementation adds in another order.
    let names = || -> Vec<String> {
        let entries = fs::read_dir(bench.path("k")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let panels: Vec<String> = names().into_iter().filter(|name| name.starts_with("panel-")).collect();
    assert_eq!(panels.len(), 4);

    // Renamed into each other's number: computed again.
    let (zero, one) = (&panels[0], &panels[1]);
    let renamed = |from: &str, to: &str| {
        let name = format!("{}{}", &to[..13], &from[13..]);
        fs::rename(bench.path(&format!("k/{from}")), bench.path(&format!("k/{name}"))).unwrap();
    };
    renamed(zero, one);
    renamed(one, zero);
    assert!(run(&["-o", "again.npy", "--resume", "k"]).status.success());
    assert_eq!(fs::read(bench.path("again.npy")).unwrap(), wanted);

    // Without its manifest, and for another product.
    fs::remove_file(bench.path("k/checkpoint.json")).unwrap();
    for flag in ["--checkpoint", "--resume"] {
        let words = ["matmul", "other.npy", "b.npy", "--platform", "two.toml", "-o", "o.npy", flag, "k"];
        let said = bench.fails(2, &words);
        assert!(said.contains("has 4 panels of a product but no checkpoint.json"), "{said}");
    }
    assert!(!bench.path("o.npy").exists());
}

#[test]
fn a_result_in_the_checkpoint_directory_appears() {
    let bench = bench();
    fs::create_dir(bench.path("out")).unwrap();
    let run = [&RUN[..], &["--panels", "4", "-o", "out/c.npy"]].concat();
    bench.done(&[&run[..], &["--checkpoint", "out"]].concat());
    let first = fs::read(bench.path("out/c.npy")).unwrap();
    bench.done(&[&run[..], &["--resume", "out"]].concat());
    assert_eq!(fs::read(bench.path("out/c.npy")).unwrap(), first);
}

/// The limit counts all threads of a user: the command runs as a user without other processes.
#[cfg(target_os = "linux")]
#[test]
fn a_refused_thread_is_an_error_and_no_hang() {
    let bench = bench();
    let speeds = ["1"; 40].join(",");
    let arguments = ["matmul", "a.npy", "b.npy", "--speeds", &speeds, "--method", "rows"];
    let script = "ulimit -u 8; exec timeout 60 \"$0\" \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(binary()).args(arguments);
    command.current_dir(bench.path(".")).env("XDG_CACHE_HOME", bench.cache());
    if rustix::process::geteuid().is_root() {
        use std::os::unix::fs::PermissionsExt;
        use std::os::unix::process::CommandExt;
        for directory in [bench.path("."), bench.cache()] {
            let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o777));
        }
        command.uid(54_321).gid(54_321);
    }
    let Ok(output) = command.output() else {
        return apportion_testing::skip(apportion_testing::Need::Mount, "another user cannot be taken on");
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("refuses another thread") && said.contains("ulimit -u"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
