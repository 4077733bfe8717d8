//! What is compared with apportion, and how both are started: NumPy and SciPy by a Python that has them,
//! ScaLAPACK on two MPI ranks, the release binary.

pub mod scalapack;
pub mod scalapack_rank;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A target, the figure, its limit, and whether it is met.
pub type Row = (String, f64, f64, bool);

/// The release binary: three levels above a bench's executable, or `target/release` of the workspace.
pub fn binary() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.parent()?.parent()?.join("apportion");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/apportion");
    [beside, workspace].into_iter().find(|path| path.is_file())
}

/// Open MPI's mpirun, by the first name that is one.
pub fn mpirun() -> Option<&'static str> {
    ["mpirun", "mpirun.openmpi"].into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"))
    })
}

/// Two ranks on this machine; the program and its arguments follow.
pub fn ranks(mpirun: &str) -> Command {
    let mut command = Command::new(mpirun);
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]);
    command
}

/// The seconds of the computation that a run reports: neither reading nor measuring. Says why if there are none.
pub fn seconds(command: &mut Command) -> Option<f64> {
    let output = command.env("OPENBLAS_NUM_THREADS", "1").output().ok()?;
    let report: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
    let seconds = report.and_then(|report| report["seconds"].as_f64());
    if seconds.is_none() {
        eprintln!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    seconds
}

/// A Python that has this module: the one that is named, that of the tests, or the system's.
pub fn python(module: &str, at: &Path) -> Option<PathBuf> {
    let named = std::env::var_os("NUMPY_PYTHON").map(PathBuf::from);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    let known = [tests, "python3".into(), "/usr/bin/python3".into()];
    named
        .into_iter()
        .chain(known)
        .find(|python| run(at, python, &["-c", &format!("import {module}")]).is_some())
}

/// Wall seconds of a command that succeeds.
pub fn run(at: &Path, program: &Path, arguments: &[&str]) -> Option<f64> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(at).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    command.status().is_ok_and(|status| status.success()).then(|| start.elapsed().as_secs_f64())
}

/// A loop on the second core, until dropped.
pub struct Busy(Child);

impl Busy {
    /// With niceness 7 it takes 17 % of the core from a program that needs it, with 0 half.
    pub fn second_core(nice: &str) -> Option<Self> {
        let mut command = Command::new("nice");
        command.args(["-n", nice, "taskset", "-c", "1", "sh", "-c", "while :; do :; done"]);
        Some(Self(command.stderr(Stdio::null()).spawn().ok()?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
