//! Signals: the process ends soon, with exit code 128 plus the signal's number and one line, and leaves
//! nothing behind.

use super::Bench;
use super::bench::whole;
use apportion_testing::Words;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A link of 1 kB/s: the run below would take minutes.
const CRAWL: &str = "name = \"crawl\"\n\
    [[processor]]\nname = \"a\"\nspeed = \"1 Gflop/s\"\n\
    [[processor]]\nname = \"b\"\nspeed = \"1 Gflop/s\"\n\
    [network]\nbandwidth = \"1 kB/s\"\nemulate = true\n";

/// Starts a long run, waits until `begun`, sends the signal, and checks the output.
fn interrupted(bench: &Bench, arguments: &(impl Words + ?Sized), begun: impl Fn() -> bool, signal: Signal) {
    let said = stopped(bench, arguments, begun, signal);
    assert_eq!(said, "apportion: interrupted (nothing was written)\n");
}

/// The output on stderr of a run that is stopped in this way.
pub fn stopped(
    bench: &Bench,
    arguments: &(impl Words + ?Sized),
    begun: impl Fn() -> bool,
    signal: Signal,
) -> String {
    let line = arguments.words();
    let mut child = bench.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now();
    while !begun() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself: {line:?}");
        assert!(patience.elapsed() < Duration::from_secs(60), "it never began: {line:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(400));
    assert!(child.try_wait().unwrap().is_none(), "it ended by itself: {line:?}");
    kill_process(Pid::from_child(&child), signal).unwrap();
    let asked = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if asked.elapsed() > Duration::from_secs(3) {
            child.kill().unwrap();
            panic!("it does not end within 3 seconds: {line:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(status.code(), Some(128 + signal.as_raw()), "{status}: {err}");
    assert_eq!(out, "");
    apportion_testing::without_progress(&err)
}

/// A planning command only computes: a signal ends it wherever it is, and no file is left.
#[test]
fn a_division_that_takes_long() {
    let bench = Bench::new();
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        1.0 + (seed >> 40) as f64
    };
    let points = |random: &mut dyn FnMut() -> f64| {
        let point = |x: u32, t: f64, e: f64| format!("{{\"size\": {x}, \"seconds\": {t}, \"energy\": {e}}}");
        (1..=500).map(|x| point(x, random(), random())).collect::<Vec<_>>().join(",")
    };
    let models: Vec<String> = (0..16)
        .map(|i| format!("{{\"processor\": \"p{i}\", \"points\": [{}]}}", points(&mut random)))
        .collect();
    bench.write(
        "m.json",
        format!(
            "{{\"format\": \"apportion-models\", \"version\": 1, \"kernel\": \"k\", \"unit\": \"u\", \"models\": [{}]}}",
            models.join(",")
        ),
    );
    bench.write("plan.json", "an earlier plan");
    let line = "partition --units 4000 --models m.json --objective both -o plan.json";
    for signal in [Signal::INT, Signal::TERM] {
        interrupted(&bench, line, || true, signal);
        assert_eq!(bench.text("plan.json"), "an earlier plan");
        assert!(bench.names().iter().all(|name| !name.starts_with(".apportion")), "{:?}", bench.names());
    }
}

/// Opening a pipe waits for its reader: also that wait ends by a signal, in every command.
#[test]
fn a_pipe_without_a_reader() {
    let bench = Bench::new();
    pipe(&bench, "pipe");
    bench.matrix("a.npy", &whole::<f64>(20, 20, 1));
    for line in [
        "partition --units 10 --speeds 9,1 -o pipe",
        "plot --speeds 9,1 --units 10 --svg pipe",
        "matmul a.npy a.npy -o c.npy --report pipe",
    ] {
        interrupted(&bench, line, || true, Signal::INT);
    }
}

fn pipe(bench: &Bench, name: &str) {
    let made = std::process::Command::new("mkfifo").arg(bench.path(name)).status();
    assert!(made.is_ok_and(|status| status.success()), "a named pipe can be made");
}

/// A text may come through a pipe: every command ends while it waits for the writer.
#[test]
fn a_pipe_without_a_writer() {
    let bench = Bench::new();
    pipe(&bench, "pipe");
    bench.matrix("a.npy", &whole::<f64>(20, 20, 1));
    for line in [
        "matmul a.npy a.npy --platform pipe",
        "matmul a.npy a.npy --plan pipe",
        "matmul a.npy a.npy --platform pipe --panels 4 -o c.npy --checkpoint k",
        "matmul a.npy a.npy --platform pipe --engine mpi",
        "matmul pipe a.npy --speeds 1,1",
        "power a.npy -k 2 --models pipe",
        "closure a.npy --platform pipe",
        "factor a.npy --kind lu --platform pipe",
        "solve a.npy pipe --speeds 1,1",
        "advect --field a.npy --courant 0.1,0.1 --steps 1 --plan pipe",
        "mdem pipe",
        "merge pipe",
        "partition --units 3 --platform pipe",
        "simulate --plan pipe --platform pipe",
        "arrange --plan pipe --platform pipe",
        "plot --models pipe --svg x.svg",
        "run --plan pipe -- true {share}",
        "balance --units 9 --platform pipe -- true {share}",
        "measure --platform pipe --sizes 100",
    ] {
        interrupted(&bench, line, || true, Signal::INT);
        interrupted(&bench, line, || true, Signal::TERM);
    }
}

/// A reader of stderr that does not read keeps a command from speaking, not from ending.
#[test]
fn a_stderr_that_nobody_reads() {
    use rustix::fs::{OFlags, fcntl_setfl};
    use std::io::Write as _;
    let bench = Bench::new();
    bench.matrix("a.npy", &whole::<f64>(20, 20, 1));
    bench.write("far.toml", "[[processor]]\nname = \"a\"\nspeed = \"1 Gflop/s\"\ncores = [99999]\n");
    let (_reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 512]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    // Its note about the core waits.
    let mut command = bench.command("matmul a.npy a.npy --platform far.toml");
    let mut child = command.stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let asked = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(asked.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// Signals whose default ends the process without cleaning up, as batch systems send before a limit.
#[test]
fn a_product_and_other_signals() {
    let bench = Bench::new();
    bench.write("crawl.toml", CRAWL);
    bench.matrix("a.npy", &whole::<f64>(200, 200, 1));
    let before = bench.files();
    let run = "matmul a.npy a.npy -o c.npy --platform crawl.toml --keep-all";
    for signal in [Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::XCPU] {
        interrupted(&bench, run, || bench.files().len() > before.len(), signal);
        assert_eq!(bench.files(), before, "{signal:?}");
    }
}

/// Programs end with the process, however that ends, and so do those that they have started.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow"]
fn programs_of_a_process_that_is_killed() {
    let bench = Bench::new();
    bench.done("partition --units 2 --speeds 1,1 -o plan.json");
    let program = "echo $$ > id-{rank}; sleep 300; true {share}";
    for signal in [Signal::QUIT, Signal::XCPU, Signal::USR1, Signal::KILL] {
        for command in
            ["run --plan plan.json", "balance --units 2 --processors 2", "measure --processors 2 --sizes 1"]
        {
            let words: Vec<&str> = command.split(' ').chain(["--", "sh", "-c", program]).collect();
            let mut child =
                bench.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let ids = || -> Vec<i32> {
                let text = |rank: u32| std::fs::read_to_string(bench.path(&format!("id-{rank}"))).ok();
                (0..2).filter_map(|rank| text(rank)?.trim().parse().ok()).collect()
            };
            let patience = Instant::now();
            while ids().len() < 2 {
                assert!(patience.elapsed() < Duration::from_secs(60), "{command}: it never began");
                std::thread::sleep(Duration::from_millis(10));
            }
            // A program may be this far before its line has reached the shell that ends it.
            std::thread::sleep(Duration::from_millis(300));
            kill_process(Pid::from_child(&child), signal).unwrap();
            child.wait().unwrap();
            let groups = ids();
            // The group has the shell and its `sleep`.
            let lives = |group: &i32| {
                rustix::process::test_kill_process_group(Pid::from_raw(*group).unwrap()).is_ok()
            };
            let patience = Instant::now();
            while groups.iter().any(lives) {
                assert!(
                    patience.elapsed() < Duration::from_secs(20),
                    "{command}, {signal:?}: a program lives"
                );
                std::thread::sleep(Duration::from_millis(10));
            }
            for rank in 0..2 {
                bench.remove(&format!("id-{rank}"));
            }
        }
    }
}

/// A signal that is ignored at the start stays ignored, as in a script's background job.
#[test]
fn a_product_that_ignores_ctrl_c() {
    let bench = Bench::new();
    bench.write("crawl.toml", CRAWL);
    bench.matrix("a.npy", &whole::<f64>(200, 200, 1));
    let before = bench.files();
    let plain = bench.command("matmul a.npy a.npy -o c.npy --platform crawl.toml");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' INT QUIT; exec \"$0\" \"$@\""]).arg(plain.get_program());
    command.args(plain.get_args()).arg("--keep-all").current_dir(bench.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let patience = Instant::now();
    while bench.files().len() == before.len() {
        assert!(patience.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    for signal in [Signal::INT, Signal::QUIT] {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    std::thread::sleep(Duration::from_millis(600));
    assert!(child.try_wait().unwrap().is_none(), "Ctrl-C ended it");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(bench.files(), before);
}

/// Finished work is kept. The message says so and how to continue, and its claims are checked.
#[test]
fn a_product_with_a_checkpoint() {
    let bench = Bench::new();
    let platform = |slowdown: u32| {
        let one = |name: &str| {
            format!("[[processor]]\nname = \"{name}\"\nspeed = \"1 Gflop/s\"\nslowdown = {slowdown}\n")
        };
        one("a") + &one("b")
    };
    bench.matrix("a.npy", &whole::<f64>(240, 300, 1));
    bench.matrix("b.npy", &whole::<f64>(300, 250, 2));
    let run = "matmul a.npy b.npy -o c.npy --platform p.toml --panels 60";
    bench.write("p.toml", platform(1));
    bench.done(run);
    let wanted = bench.bytes("c.npy");
    bench.write("c.npy", "an earlier result");
    bench.write("p.toml", platform(4000));
    let kept = || {
        let entries = std::fs::read_dir(bench.path("kept")).into_iter().flatten().flatten();
        entries.filter(|e| e.file_name().to_string_lossy().starts_with("panel-")).count()
    };
    let said = stopped(&bench, &format!("{run} --checkpoint kept"), || kept() > 1, Signal::INT);
    let count = kept();
    assert!((2..60).contains(&count), "{count}");
    let wanted_words = format!(
        "apportion: interrupted ({count} of 60 panels kept in kept: the same command with --resume kept \
         instead of --checkpoint continues)\n"
    );
    assert_eq!(said, wanted_words);
    assert_eq!(bench.text("c.npy"), "an earlier result");
    bench.write("p.toml", platform(1));
    let report = bench.json(&format!("{run} --resume kept"));
    assert_eq!(report["panels"]["resumed"], count);
    assert!(bench.bytes("c.npy") == wanted);
}

#[test]
fn a_running_product() {
    for (signal, existing) in
        [(Signal::INT, false), (Signal::INT, true), (Signal::TERM, false), (Signal::TERM, true)]
    {
        let bench = Bench::new();
        bench.write("crawl.toml", CRAWL);
        bench.matrix("a.npy", &whole::<f64>(200, 200, 1));
        if existing {
            bench.write("c.npy", "an earlier result");
        }
        let before = bench.files();
        let run = "matmul a.npy a.npy -o c.npy --platform crawl.toml --keep-all --report run.json";
        // The output's temporary file shows that work has begun.
        interrupted(&bench, run, || bench.files().len() > before.len(), signal);
        assert_eq!(bench.files(), before, "{signal:?}");
    }
}

/// `nohup` has SIGHUP ignored: the run goes on, and SIGTERM still ends it.
#[test]
fn a_product_under_nohup() {
    let bench = Bench::new();
    bench.write("crawl.toml", CRAWL);
    bench.matrix("a.npy", &whole::<f64>(200, 200, 1));
    let before = bench.files();
    let plain = bench.command("matmul a.npy a.npy -o c.npy --platform crawl.toml --keep-all");
    let mut command = std::process::Command::new("nohup");
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(bench.path("."));
    let set = plain.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(set).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let patience = Instant::now();
    while bench.files().len() == before.len() {
        assert!(patience.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(400));
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    assert!(child.try_wait().unwrap().is_none(), "SIGHUP ended it");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(bench.files(), before);
}

#[test]
fn long_measuring() {
    for signal in [Signal::INT, Signal::TERM] {
        let bench = Bench::new();
        bench.write("crawl.toml", CRAWL);
        bench.write("models.json", "an earlier result");
        let before = bench.files();
        let run = "measure --platform crawl.toml --sizes 40000 --max-seconds 500 --max-repetitions 1000000 --tolerance 0.0000001 -o models.json";
        // Nothing outside shows when the work has begun: the one size never ends, so that any moment will do.
        let begin = Instant::now();
        interrupted(&bench, run, || begin.elapsed() > Duration::from_secs(2), signal);
        assert_eq!(bench.files(), before, "{signal:?}");
    }
}

#[test]
fn measuring_before_a_product() {
    let bench = Bench::with_empty_cache();
    bench.matrix("a.npy", &whole::<f64>(20, 20, 1));
    bench.write("slow.toml", "[[processor]]\nname = \"a\"\nslowdown = 100000\n");
    let before = bench.files();
    let run = "matmul a.npy a.npy -o c.npy --platform slow.toml";
    interrupted(&bench, run, || bench.files().len() > before.len(), Signal::INT);
    assert_eq!(bench.files(), before);
    assert!(!bench.cache().join("apportion").exists(), "an interrupted measurement is not kept");
}

/// Three thousand processors of forty clusters: annealing would take many seconds.
#[test]
fn a_search_for_an_arrangement() {
    let bench = Bench::new();
    let one = |i: usize| {
        format!("[[processor]]\nname = \"p{i}\"\ncluster = \"c{}\"\nspeed = {}\n", i * 7 % 40, 1 + i % 9)
    };
    let link = |i: usize| {
        format!("[[network.link]]\nbetween = [\"c{i}\", \"c{}\"]\nbandwidth = \"{} MB/s\"\n", i / 2, 20 + i)
    };
    let text: String = (0..3000).map(one).collect();
    let links: String = (1..40).map(link).collect();
    bench.write("p.toml", text + "[network]\nbandwidth = \"9 MB/s\"\n" + &links);
    bench.done("partition --platform p.toml -o plan.json --shape 30000x30000 --method columns");
    let run = "arrange --plan plan.json --platform p.toml --search local -o new.json";
    interrupted(&bench, run, || true, Signal::INT);
    assert!(!bench.has("new.json"));
}

/// A cell that never rests.
#[test]
fn a_simulated_workcell() {
    let bench = Bench::new();
    let rules = "[[rule]]\nname=\"r\"\ndone=[\"t\"]\nstart=[\"t\"]\n";
    bench.write("ticks.toml", format!("[[job]]\nname=\"t\"\nduration=0\ndone=1\n{rules}"));
    bench.write("events.csv", "an earlier result");
    let before = bench.files();
    let run = "mdem ticks.toml --firings 5e6 -o events.csv";
    interrupted(&bench, run, || bench.files().len() > before.len(), Signal::INT);
    assert_eq!(bench.files(), before);
}
