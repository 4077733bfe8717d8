//! Users' programs on pools of cores, and on other machines, for which launchers of the test's own stand: one hands
//! its words on, as `srun` and `docker exec`; the other has a shell read them again, as `ssh`.

use super::bench::Bench;
use apportion_testing::{Need, holds, skip, until};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::Instant;

/// Says where and with what it runs, and that it takes as many seconds as it has units.
const TELL: &str = "#!/bin/sh\n\
    printf '%s\\n' \"$APPORTION_PROCESSOR|$OMP_NUM_THREADS|$(sed -n 's/^Cpus_allowed_list:.//p' \
    /proc/self/status)|$WHERE|$1\" >>told; echo $APPORTION_SIZE\n";

/// Hands its words on, after the name of a host.
const HANDS: &str = "#!/bin/sh\nexport WHERE=$1; shift\nexec \"$@\"\n";

/// Lets a shell read them again, in a session of its own: as the other machine's, it is out of reach.
const READS: &str = "#!/bin/sh\nexport WHERE=$1; shift\nexec setsid -w sh -c \"$*\"\n";

/// A bench with the launchers, the program and a platform whose second processor is on another machine.
fn bench(start: &str, cores: &str) -> Bench {
    let bench = Bench::new();
    for (name, text) in [("hands", HANDS), ("reads", READS), ("tell", TELL)] {
        bench.program(name, text);
    }
    bench.write(
        "p.toml",
        format!(
            "[[processor]]\nname = \"here\"\nspeed = 1\n[[processor]]\nname = \"it's \\\"b\\\"\"\nspeed = 1\n\
             start = \"{start}\"\n{cores}\n"
        ),
    );
    bench
}

/// The lines that the program has written, sorted; the file is removed.
fn lines(bench: &Bench) -> Vec<String> {
    let mut lines: Vec<String> = bench.text("told").lines().map(str::to_owned).collect();
    lines.sort();
    bench.remove("told");
    lines
}

/// CPUs that this process may use, as the kernel lists them.
fn allowed() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

/// A program gets the cores of its pool and is told to use as many threads, whatever the environment says to all; the
/// command can say otherwise.
#[test]
fn a_program_has_the_cores_of_its_pool() {
    let host = apportion::platform::discover();
    if host.cores.len() < 2 {
        skip(Need::Cores, "two cores are needed");
        return;
    }
    let (a, b) = (host.cores[0].cpu, host.cores[1].cpu);
    let bench = bench("", "");
    let pool = format!("[[processor]]\nname = \"pool\"\nspeed = 2\ncores = [{a}, {b}]\nslowdown = 2.0\n");
    let core = format!("[[processor]]\nname = \"core\"\nspeed = 1\ncores = [{b}]\n");
    bench.write("p.toml", format!("{pool}{core}[[processor]]\nname = \"free\"\nspeed = 1\n"));
    let both = apportion::platform::list_cpus(&[a, b]);
    let all = allowed();
    let given = |threads: [&str; 3]| {
        [
            format!("core|{}|{b}||", threads[0]),
            format!("free|{}|{all}||", threads[1]),
            format!("pool|{}|{both}||", threads[2]),
        ]
    };
    bench.done("partition --units 8 --platform p.toml -o plan.json");
    let work = "--platform p.toml --seconds-from stdout --command './tell {share}'";
    for line in [
        format!("run --plan plan.json {work}"),
        format!("balance --units 9 --max-rounds 1 {work}"),
        format!("measure --sizes 3 --max-repetitions 1 {work}"),
    ] {
        let mut command = bench.command(&format!("{line} --json"));
        let output = command.env("OMP_NUM_THREADS", "7").output().unwrap();
        let found = apportion_testing::object(&output);
        let mut lines = lines(&bench);
        lines.iter_mut().for_each(|line| line.truncate(line.rfind('|').unwrap() + 1));
        lines.dedup();
        assert_eq!(lines, given(["1", "7", "2"]), "{line}");
        if line.starts_with("run") {
            // Eight units at speeds of 1, 1 and 1, since the pool is slowed: its time is multiplied.
            let share = found["processors"][0]["share"].as_f64().unwrap();
            assert_eq!(found["processors"][0]["seconds"].as_f64(), Some(2.0 * share));
        }
    }
    bench.done("run --plan plan.json --platform p.toml -- env OMP_NUM_THREADS=5 ./tell {share}");
    assert!(lines(&bench).iter().all(|line| line.contains("|5|")));
    // The pool of all cores is known by its name.
    bench.done("detect --by machine -o machine.toml");
    bench.done("partition --units 2 --platform machine.toml --speeds 1 -o plan.json");
    bench.done("run --plan plan.json -- ./tell {share}");
    let cpus: Vec<usize> = host.cores.iter().map(|core| core.cpu).collect();
    let cpus = apportion::platform::list_cpus(&cpus);
    assert_eq!(lines(&bench), [format!("machine|{}|{cpus}||2", host.cores.len())]);
}

/// Either kind of launcher: the words arrive as they are, in the same directory, with the variables and cores.
#[test]
fn a_launcher_starts_programs_elsewhere() {
    let cpu = apportion::platform::discover().cores[0].cpu;
    for start in
        ["./hands beta", "env ./reads beta", "./reads gate ./reads beta", "'two words/hands' x env A='b c'"]
    {
        let bench = bench(start, &format!("cores = [{cpu}]"));
        std::fs::create_dir(bench.path("two words")).unwrap();
        std::fs::copy(bench.path("hands"), bench.path("two words/hands")).unwrap();
        bench.done("partition --units 8 --platform p.toml -o plan.json");
        // Blanks, quotes, what shells replace, and backslashes.
        let odd = "a  b'\"$HOME`id`*?\\%{};&|<>#~!";
        let words = [
            "run",
            "--plan",
            "plan.json",
            "--platform",
            "p.toml",
            "--seconds-from",
            "stdout",
            "--json",
            "--",
        ];
        let program = ["./tell", odd, "{share}"];
        let found = apportion_testing::object(&bench.run(&[&words[..], &program].concat()));
        let lines = lines(&bench);
        let there = if start.contains("beta") { "beta" } else { "x" };
        assert_eq!(lines[0], format!("here||{}||{odd}", allowed()), "{start}");
        assert_eq!(lines[1], format!("it's \"b\"|1|{cpu}|{there}|{odd}"), "{start}");
        assert_eq!(found["processors"][1]["seconds"], 4.0, "{start}");
        // Balanced and measured as programs here are.
        let work = "--platform p.toml --seconds-from stdout --command './tell {share}'";
        let balanced = bench.json(&format!("balance --units 100 {work}"));
        assert_eq!(balanced["plan"]["shares"], serde_json::json!([50, 50]), "{start}");
        let models = bench.json(&format!("measure --sizes 3,5 --max-repetitions 2 {work}"));
        assert_eq!(models["models"][1]["points"][1]["seconds"], 5.0, "{start}");
    }
}

/// A program that would run elsewhere than its processor says is not started: here, by a launcher, in every command.
#[test]
fn cores_that_are_not_there_are_refused() {
    for (start, words) in
        [("", "cores = [30000]: [30000] cannot be used here"), ("./hands beta", "cannot be used there")]
    {
        if !start.is_empty() && apportion_testing::program(&["taskset"]).is_none() {
            skip(Need::Cores, "there is no taskset");
            continue;
        }
        let start = if start.is_empty() { String::new() } else { format!("start = \"{start}\"\n") };
        let bench = Bench::new();
        bench.program("hands", HANDS);
        bench.program("tell", TELL);
        bench.write("p.toml", format!("[[processor]]\nname = \"far\"\nspeed = 1\ncores = [30000]\n{start}"));
        bench.done("partition --units 8 --platform p.toml -o plan.json");
        for line in ["run --plan plan.json", "balance --units 8", "measure --sizes 8"] {
            let output = bench.run(&format!("{line} --platform p.toml --command './tell {{share}}'"));
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{line}: {said}");
            holds(&said, &["processor \"far\"", words]);
            assert!(!bench.has("told"), "{line}");
        }
    }
}

/// The time is the program's, without its launcher's; what it prints is passed on as it is.
#[test]
fn the_time_is_the_programs() {
    let bench = bench("./slow", "");
    bench.program("slow", "#!/bin/sh\nsleep 4; \"$@\"; code=$?; sleep 4; exit $code\n");
    bench.program("say", "#!/bin/sh\nprintf 'one\\ntwo'; printf 'three' >&2\n");
    bench.done("partition --units 2 --platform p.toml -o plan.json");
    let begin = Instant::now();
    let output = bench.run("run --plan plan.json --platform p.toml --json -- ./say {share}");
    let all = begin.elapsed().as_secs_f64();
    let found = apportion_testing::object(&output);
    let seconds = found["processors"][1]["seconds"].as_f64().unwrap();
    assert!(seconds + 8.0 < all, "{seconds} s of {all}, in 8 of which the launcher sleeps");
    let stderr = String::from_utf8(output.stderr).unwrap();
    for line in ["it's \"b\": one\n", "it's \"b\": two\n", "it's \"b\": three\n"] {
        assert!(stderr.contains(line), "{stderr}");
    }
    assert!(!stderr.contains("begin") && !stderr.contains("end"), "{stderr}");
}

/// What fails is told in one line, with the processor and what its launcher said.
#[test]
fn launchers_that_fail() {
    let bench = Bench::new();
    bench.program("hands", HANDS);
    bench.program(
        "refused",
        "#!/bin/sh\necho 'ssh: connect to host beta port 22: No route to host' >&2; exit 255\n",
    );
    bench.program("silent", "#!/bin/sh\nexit 0\n");
    bench.program(
        "twice",
        "#!/bin/sh\n[ \"$1\" = printf ] && exec \"$@\"\n\"$@\" </dev/null & \"$@\" </dev/null; wait\n",
    );
    bench.program("wait", "#!/bin/sh\nsleep 2\n");
    // The connection is lost while the program runs.
    bench.program(
        "lost",
        "#!/bin/sh\n[ \"$1\" = printf ] && exec \"$@\"\n\"$@\" & sleep 1; echo 'Connection reset by peer' >&2; exit 255\n",
    );
    bench.program("work", "#!/bin/sh\necho $1; echo no disk >&2; exit 3\n");
    bench.program("long", "#!/bin/sh\nsleep 1000 & echo $! >new; mv new pid; wait\n");
    let fails = |start: &str, program: &str, code: i32, words: &[&str]| {
        let platform = format!("[[processor]]\nname = \"beta\"\nspeed = 1\nstart = \"{start}\"\n");
        bench.write("p.toml", platform);
        bench.done("partition --units 8 --platform p.toml -o plan.json");
        for line in ["run --plan plan.json", "balance --units 8", "measure --sizes 8"] {
            let output = bench.run(&format!("{line} --platform p.toml --timeout 30 -- {program} {{share}}"));
            let stderr = String::from_utf8(output.stderr).unwrap();
            let last = stderr.lines().last().unwrap();
            assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
            holds(last, words);
            assert!(last.starts_with("apportion: ") && last.contains("beta"), "{stderr}");
        }
    };
    fails(
        "./none beta",
        "./work",
        2,
        &["processor \"beta\": start: cannot start \"./none\": No such file", "install it"],
    );
    fails(
        "./refused beta",
        "./work",
        1,
        &[
            "`./refused beta` failed: exit status: 255",
            "No route to host",
            "`./refused beta true` must work by itself",
        ],
    );
    fails("./silent", "./work", 1, &["`./silent` failed: it did not print"]);
    fails(
        "./hands beta",
        "./absent",
        2,
        &["cannot start \"./absent\" on processor \"beta\" (`./hands beta`)", "check its path"],
    );
    fails("./hands beta", "./p.toml", 2, &["cannot start \"./p.toml\""]);
    fails("./twice", "./wait", 2, &["starts a program 2 times", "-n1"]);
    fails("./lost", "./long", 1, &["`./lost` ended before its program", "exit status: 255", "reset by peer"]);
    fails(
        "./hands beta",
        "./work",
        1,
        &["size 8 on processor \"beta\" (`./hands beta`) failed: exit status: 3, its last line: no disk"],
    );
}

/// A directory that the other machine lacks is named.
#[test]
fn a_directory_that_is_not_there() {
    let bench = bench("./elsewhere", "");
    let above = bench.path("..").canonicalize().unwrap();
    let elsewhere = format!(
        "#!/bin/sh\nexec unshare --mount sh -c 'mount -t tmpfs none {}; cd /; exec \"$@\"' sh \"$@\"\n",
        above.display()
    );
    bench.program("elsewhere", &elsewhere);
    let tried = std::process::Command::new(bench.path("elsewhere")).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        skip(Need::Mount, "no mount namespace can be made");
        return;
    }
    bench.done("partition --units 2 --platform p.toml -o plan.json");
    let output = bench.run("run --plan plan.json --platform p.toml -- true {share}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let here = bench.path(".").canonicalize().unwrap();
    holds(
        &stderr,
        &["`./elsewhere`: there is no directory", &here.display().to_string(), "all machines have"],
    );
}

/// The programs of other machines end with the command: after a signal, after their time, and even if the command is
/// killed. Only the end of their stdin reaches them.
#[test]
fn programs_elsewhere_end_with_the_command() {
    let bench = bench("./reads beta", "");
    bench.program(
        "long",
        "#!/bin/sh\nsleep 1000 & echo $! >new-$APPORTION_RANK; mv new-$APPORTION_RANK pid; wait\n",
    );
    bench.write("p.toml", "[[processor]]\nname = \"beta\"\nspeed = 1\nstart = \"./reads beta\"\n");
    bench.done("partition --units 8 --platform p.toml -o plan.json");
    let gone = || {
        let id = bench.text("pid").trim().to_owned();
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z")
    };
    let line = "run --plan plan.json --platform p.toml -- ./long {share}";
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let mut child = bench.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("it began", || bench.has("pid"));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, (signal != Signal::KILL).then_some(128 + signal.as_raw()));
        until("the program ends", gone);
        bench.remove("pid");
    }
    let output = bench.run("run --plan plan.json --platform p.toml --timeout 1 -- ./long {share}");
    assert_eq!(output.status.code(), Some(1));
    holds(
        &String::from_utf8(output.stderr).unwrap(),
        &["\"beta\" (`./reads beta`) did not end within 1.00 s"],
    );
    until("the program ends", gone);
}

/// Kernels and products are computed by processes on the machines, not in their place.
#[test]
fn plans_need_no_launcher() {
    let bench = bench("ssh beta", "");
    // Plans and forecasts need no machine, and a written platform keeps its launchers.
    bench.done("partition --units 8 --platform p.toml");
}
