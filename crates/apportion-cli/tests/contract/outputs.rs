//! Outputs that cannot be written or would replace one another, checkpoints of other products, and threads
//! that the system refuses.

use super::Bench;
use super::bench::{TWO, irrational};
use apportion_testing::binary;
use std::fs::{self, File};
use std::process::{Command, Stdio};

const RUN: &str = "matmul a.npy b.npy --platform two.toml";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &irrational::<f64>(60, 40, 1.0));
    bench.matrix("b.npy", &irrational::<f64>(40, 50, 2.0));
    bench
}

/// Only a closed pipe is no error, unless it was to take an output.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let bench = bench();
    for words in [
        "partition --units 9 --speeds 9,1",
        "partition --units 9 --speeds 9,1 --json",
        "partition --units 9 --speeds 9,1 --export csv",
        "detect",
        "--help",
        "matmul --help",
        "--version",
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
    let mut closed = bench.command("partition --units 9 --speeds 9,1 -o -");
    let mut closed = closed.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(closed.stdout.take());
    let output = closed.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Notes that cannot be written, on a full disk or to a pipe that is closed, stop no work.
#[cfg(target_os = "linux")]
#[test]
fn notes_that_cannot_be_printed_stop_nothing() {
    let bench = bench();
    let product = "matmul a.npy b.npy -v --speeds 1,1 -o c.npy";
    let program = "balance --units 9 --processors 2 --command 'test {share}'";
    let balance = format!("{program} -o plan.json --json");
    for (words, file) in [(product, "c.npy"), (&balance[..], "plan.json")] {
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

/// What each command writes to its output, as `OUT`.
#[cfg(unix)]
const WRITERS: [&str; 20] = [
    "partition --units 9 --speeds 9,1 -o OUT",
    "partition --units 9 --speeds 9,1 --export csv --export-to OUT",
    "partition --shape 9x9 --speeds 9,1 --svg OUT",
    "partition --plan plan.json --export csv --export-to OUT",
    "random 4 5 -o OUT",
    "matmul a.npy b.npy --platform two.toml -o OUT",
    "matmul a.npy b.npy --platform two.toml --panels 3 -o OUT",
    "matmul a.npy b.npy --platform two.toml --svg OUT",
    "power s.npy -k 2 --platform two.toml -o OUT",
    "closure s.npy --platform two.toml -o OUT",
    "closure s.npy --platform two.toml --predecessors OUT",
    "factor s.npy --kind lu --platform two.toml -o OUT",
    "factor s.npy --kind lu --platform two.toml --pivots OUT",
    "solve s.npy s.npy --platform two.toml -o OUT",
    "advect --field a.npy --courant 0.1,0.1 --steps 2 --platform two.toml -o OUT",
    "advect --field a.npy --courant 0.1,0.1 --steps 2 --platform two.toml --memory 64MiB -o OUT",
    "merge models.json -o OUT",
    "plot --speeds 9,1 --svg OUT",
    "detect -o OUT",
    "simulate --plan square.json --platform two.toml --trace OUT",
];

#[cfg(unix)]
fn writers() -> Bench {
    let bench = bench();
    // A graph without improving cycles.
    bench.done("random 6 6 -o s.npy");
    bench.write(
        "models.json",
        "{\"format\": \"apportion-models\", \"version\": 1, \"kernel\": \"k\", \"unit\": \"u\", \
         \"models\": [{\"processor\": \"p\", \"points\": [{\"size\": 1, \"seconds\": 1}]}]}",
    );
    bench.done("partition --units 9 --speeds 9,1 -o plan.json");
    bench.done("partition --shape 9x9x9 --platform two.toml -o square.json");
    bench
}

/// An output to a descriptor follows what is there, and what the script prints afterwards follows it.
#[cfg(unix)]
#[test]
#[ignore = "slow"]
fn outputs_to_descriptors_stand_where_these_stand() {
    let bench = writers();
    std::os::unix::fs::symlink("/dev/stdout", bench.path("link")).unwrap();
    let script = |line: &str, redirected: &str| {
        let script = format!("{{ echo first; {} {line}; echo last; }} {redirected}", binary().display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(bench.path(".")).env("XDG_CACHE_HOME", bench.cache());
        command.output().unwrap()
    };
    for line in WRITERS {
        bench.done(&line.replace("OUT", "file"));
        let wanted = bench.bytes("file");
        let whole = [b"first\n", &wanted[..], b"last\n"].concat();
        for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link", "log"] {
            if name.starts_with("/proc") && !cfg!(target_os = "linux") {
                continue;
            }
            let line = line.replace("OUT", name);
            bench.write("log", "before\n");
            script(&line, "> log");
            assert!(bench.bytes("log") == whole, "{line} > log");
            script(&format!("-q {line}"), ">> log");
            let both = [&whole[..], &whole].concat();
            assert!(bench.bytes("log") == both, "{line} >> log");
            if name != "log" {
                assert!(script(&line, "| cat").stdout == whole, "{line} | cat");
            }
        }
        let line = line.replace("OUT", "/dev/fd/3");
        bench.write("log", "");
        script(&line, "3>> log > /dev/null");
        assert!(bench.bytes("log") == wanted, "{line}");
    }
    assert!(!bench.has("-"), "no file is called -");
}

/// stdout is for one thing.
#[test]
fn outputs_on_stdout_are_not_mixed() {
    let bench = bench();
    for (line, word) in [
        ("partition --units 9 --speeds 9,1 -o - --json", "the JSON object"),
        ("partition --units 9 --speeds 9,1 -o - --export csv", "the export"),
        ("partition --shape 9x9 --speeds 9,1 -o - --svg -", "also the output of -o"),
        ("partition --shape 9x9 --speeds 9,1 -o - --svg /dev/stdout", "also the output of -o"),
        ("merge - -", "also the input of"),
        ("advect --field a.npy --courant 0.1,0.1 --speeds 1,1 --steps 2 --every 1 -o -", "--every"),
        ("partition --units 9 --speeds 9,1 -o /dev/stdin", "is open for reading only"),
    ] {
        let mut command = bench.command(line);
        let output = command.stdin(File::open(bench.path("two.toml")).unwrap()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{line}: {said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{line}: {said}");
    }
}

/// Texts and matrices come through pipes, and are read again where a command reads them twice.
#[cfg(unix)]
#[test]
fn inputs_may_be_streams() {
    let bench = writers();
    let shell = |script: &str| {
        let script = script.replace("A ", &format!("{} -q ", binary().display()));
        let mut command = Command::new("bash");
        command.args(["-c", &script]).current_dir(bench.path(".")).env("XDG_CACHE_HOME", bench.cache());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let run = "--platform two.toml -o";
    bench.done(&format!("matmul a.npy b.npy {run} c.npy"));
    let wanted = bench.bytes("c.npy");
    for script in [
        "cat a.npy | A matmul - b.npy RUN -",
        "A matmul /dev/stdin b.npy RUN - < a.npy",
        "A matmul <(cat a.npy) <(cat b.npy) RUN - < a.npy",
        "cat two.toml | A matmul a.npy b.npy --platform - -o -",
        "A matmul a.npy b.npy --platform <(cat two.toml) -o -",
    ] {
        assert!(shell(&script.replace("RUN", run)) == wanted, "{script}");
    }
    bench.write("m.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 4\n");
    let of_file = shell(&format!("A matmul m.mtx m.mtx --transpose-a {run} -"));
    assert!(shell(&format!("A matmul - m.mtx --transpose-a {run} - < m.mtx")) == of_file);
    let csv = shell("A partition --plan plan.json --export csv");
    assert!(shell("A partition --plan - --export csv < plan.json") == csv);
    assert!(shell("A partition --plan <(cat plan.json) --export csv") == csv);
    shell("A plot --models <(cat models.json) --svg x.svg");
    let said = bench.fails(2, "advect --field /dev/zero --courant 0.1 --speeds 1,1 --steps 1");
    assert!(said.contains("/dev/zero: is not a regular file"), "{said}");
}

/// Other files than regular ones in a checkpoint are refused at once.
#[cfg(unix)]
#[test]
fn a_checkpoint_holds_regular_files() {
    let bench = bench();
    let advect = "advect --field a.npy --courant 0.1,0.1 --speeds 1,1 --steps 2";
    // `Bench::fails` reads all files beside the command, and would wait for the pipe's writer.
    let refused = |words: &str| {
        let output = bench.run(words);
        let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.lines().count() == 1 && !bench.has("c.npy"), "{words:?}: {said}");
        said
    };
    for name in ["checkpoint.json", "checkpoint.lock", "panel-000005-aaaaaaaaaaaaaaaa.npy"] {
        for make in ["mkfifo", "mkdir", "ln -s /dev/zero"] {
            fs::create_dir(bench.path("k")).unwrap();
            let script = format!("{make} k/{name}");
            let made = Command::new("sh").args(["-c", &script]).current_dir(bench.path(".")).status();
            assert!(made.unwrap().success());
            for flag in ["--checkpoint", "--resume"] {
                let said = refused(&format!("{RUN} --panels 3 -o c.npy {flag} k"));
                assert!(said.contains(name) && said.contains("its own files only"), "{script}: {said}");
            }
            if name == "checkpoint.json" {
                let said = refused(&format!("{advect} --resume k"));
                assert!(said.contains("k/checkpoint.json: is"), "{script}: {said}");
            }
            fs::remove_dir_all(bench.path("k")).unwrap();
        }
    }
}

/// An input that is overwritten during the run ends it, and no panel of it is kept.
#[cfg(unix)]
#[test]
fn an_input_that_changes_ends_the_run() {
    use std::io::{Seek, SeekFrom, Write};
    let bench = bench();
    let slow = TWO.replace("speed", "slowdown = 3000\nspeed");
    bench.write("slow.toml", &slow);
    bench.done("matmul a.npy b.npy --platform two.toml --panels 20 -o wanted.npy");
    let wanted = bench.bytes("wanted.npy");
    for (number, changed) in ["a.npy", "b.npy"].into_iter().enumerate() {
        let directory = format!("k{number}");
        let run = "matmul a.npy b.npy --panels 20 -o c.npy";
        let first = format!("{run} --platform slow.toml --checkpoint {directory}");
        let mut child = bench.command(&first).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let panels = || {
            let entries = fs::read_dir(bench.path(&directory)).into_iter().flatten().flatten();
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("panel-")).count()
        };
        while panels() < 2 {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let before = fs::read(bench.path(changed)).unwrap();
        let mut file = File::options().write(true).open(bench.path(changed)).unwrap();
        file.seek(SeekFrom::Start(128)).unwrap();
        file.write_all(&vec![0; before.len() - 128]).unwrap();
        drop(file);
        let output = child.wait_with_output().unwrap();
        let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{changed} changed during the run")), "{said}");
        assert!(said.lines().count() == 1 && !bench.has("c.npy"), "{said}");
        fs::write(bench.path(changed), before).unwrap();
        bench.done(&format!("{run} --platform two.toml --resume {directory}"));
        assert!(bench.bytes("c.npy") == wanted, "{changed}");
        bench.remove("c.npy");
    }
}

/// A core that is not there is not ignored in silence.
#[cfg(target_os = "linux")]
#[test]
fn cores_that_are_not_there_are_told() {
    let bench = bench();
    bench.write("cores.toml", "[[processor]]\nname = \"p0\"\nspeed = \"1 Gflop/s\"\ncores = [99999]\n");
    let words = "matmul a.npy b.npy --platform cores.toml";
    let output = bench.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
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
    bench.matrix("big.npy", &irrational::<f64>(200, 200, 1.0));
    let before = bench.files();
    for words in [
        "random 200 200 -o c.npy",
        "matmul big.npy big.npy --speeds 1,1 -o c.npy",
        "matmul big.npy big.npy --speeds 1,1 -o c.npy --panels 3",
        "advect --field big.npy --courant 0.1,0.1 --speeds 1,1 --steps 1 -o c.npy",
        "advect --field big.npy --courant 0.1,0.1 --speeds 1,1 --steps 1 -o c.npy --memory 64MiB",
    ] {
        let run = format!("ulimit -f 64; exec \"$0\" -q {words}");
        let mut command = Command::new("bash");
        let output = command.args(["-c", &run]).arg(binary()).current_dir(bench.path("")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.starts_with("apportion: c.npy: cannot write"), "{words}: {said}");
        assert!(said.lines().count() == 1 && !said.contains(".apportion-"), "{words}: {said}");
        assert_eq!((bench.files(), bench.text("c.npy").as_str()), (before.clone(), "earlier"));
    }
}

#[test]
fn a_product_may_replace_an_operand() {
    let bench = bench();
    let before = bench.bytes("b.npy");
    bench.done(&format!("{RUN} -o b.npy"));
    assert_ne!(bench.bytes("b.npy"), before);
}

#[test]
fn a_checkpoint_keeps_to_its_product() {
    let bench = bench();
    bench.matrix("other.npy", &irrational::<f64>(60, 40, 3.0));
    let run = |more: &str| bench.run(&format!("{RUN} --panels 4 {more}"));
    assert!(run("-o c.npy --checkpoint k").status.success());
    let wanted = bench.bytes("c.npy");

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
    assert!(run("-o again.npy --resume k").status.success());
    assert_eq!(bench.bytes("again.npy"), wanted);

    // Without its manifest, and for another product.
    bench.remove("k/checkpoint.json");
    for flag in ["--checkpoint", "--resume"] {
        let words = format!("matmul other.npy b.npy --platform two.toml -o o.npy {flag} k");
        let said = bench.fails(2, &words);
        assert!(said.contains("has 4 panels of a product but no checkpoint.json"), "{said}");
    }
    assert!(!bench.path("o.npy").exists());
}

#[test]
fn a_result_in_the_checkpoint_directory_appears() {
    let bench = bench();
    fs::create_dir(bench.path("out")).unwrap();
    let run = format!("{RUN} --panels 4 -o out/c.npy");
    bench.done(&format!("{run} --checkpoint out"));
    let first = bench.bytes("out/c.npy");
    bench.done(&format!("{run} --resume out"));
    assert_eq!(bench.bytes("out/c.npy"), first);
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

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let bench = bench();
    assert!(bench.fails(1, &format!("{RUN} -o /dev/full")).contains("/dev/full"));
    bench.fails(1, "partition --units 9 --speeds 9,1 -o /dev/full");
    bench.fails(1, "detect -o /dev/full");
}

/// Permissions do not bind the superuser: for it the directory is writable, and there is nothing to test.
#[cfg(unix)]
#[test]
fn a_directory_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench();
    let folder = bench.path("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(folder.join("probe"), "").is_err() {
        bench.fails(2, &format!("{RUN} -o closed/c.npy"));
        bench.fails(2, "partition --units 9 --speeds 9,1 -o closed/p.json");
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}
