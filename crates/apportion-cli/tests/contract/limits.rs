//! Limits of memory that a user has: control groups, `ulimit -v`. What does not fit is refused before it is read or
//! measured, or goes from disk to disk; nothing is killed, and nothing hangs.

use super::Bench;
use super::bench::irrational;
use apportion_testing::{Need, binary, skip};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A control group with this limit, which is removed in the end; `None` where none can be made.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/memory/apportion-test-{}", std::process::id()));
        let made = fs::create_dir(&path).and_then(|()| {
            let group = Self(path.clone());
            fs::write(path.join("memory.limit_in_bytes"), bytes.to_string()).map(|()| group)
        });
        match made {
            Ok(group) => Some(group),
            Err(error) => {
                skip(Need::Groups, format!("no control group can be made: {error}"));
                None
            }
        }
    }

    fn run(&self, bench: &Bench, line: &str) -> Output {
        let run = bench.command(line);
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        command.arg(run.get_program()).args(run.get_args()).current_dir(bench.path("."));
        command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.output().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn in_a_control_group_what_does_not_fit_is_refused_or_goes_from_disk_to_disk() {
    let bench = Bench::new();
    bench.matrix("a.npy", &irrational::<f64>(1000, 1000, 1.0));
    bench.matrix("b.npy", &irrational::<f64>(1000, 1000, 2.0));
    bench.matrix("x.npy", &irrational::<f64>(1000, 1, 2.0));
    let speeds = "--speeds '1 Gflop/s,1 Gflop/s'";
    let Some(group) = Group::new(16 << 20) else { return };
    for refused in ["solve a.npy x.npy -o o.npy", "closure a.npy -o o.npy", "power a.npy -k 2 -o o.npy"] {
        let output = group.run(&bench, &format!("{refused} {speeds}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{refused}: {said}");
        assert!(said.contains("more than is free") && said.contains("control group"), "{refused}: {said}");
    }
    let output = group.run(&bench, &format!("matmul a.npy a.npy -o o.npy {speeds} --json"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("computed in panels, within"), "{said}");
    match output.status.code() {
        Some(0) => {
            let run: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(run["panels"]["decided_by"], "free memory");
            let bytes = |field: &str| run["panels"][field].as_u64().unwrap();
            assert!(bytes("peak_resident_bytes") <= bytes("memory_cap_bytes"), "{run}");
        }
        // A program with all checks may be larger.
        code => assert!(code == Some(1) && said.contains("of memory are too few"), "{said}"),
    }
    assert!(bench.names().iter().all(|name| !name.starts_with(".apportion")), "{:?}", bench.names());
}

/// A thread of OpenBLAS asks for memory without end where it is refused.
#[test]
fn a_limit_of_address_space_is_no_hang() {
    let bench = Bench::new();
    bench.matrix("a.npy", &irrational::<f64>(1200, 1200, 1.0));
    for flags in ["", " --blas openblas", " --blas none"] {
        let run = format!("{} matmul a.npy a.npy --speeds 1,1{flags}", binary().display());
        let limited = format!("ulimit -v 230000; exec timeout -k 1 60 {run}");
        let mut command = Command::new("sh");
        command.args(["-c", &limited]).current_dir(bench.path("")).env("XDG_CACHE_HOME", bench.path("cache"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0..=2)), "{flags}: {}: {said}", output.status);
    }
}
