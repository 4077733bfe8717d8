//! The example of an application of a reader's own, which measures, divides, runs and checks itself: on threads, and
//! under `mpirun` unchanged.

use apportion_testing::{Need, skip};
use std::process::Command;

/// What the example prints.
fn said(command: &mut Command) -> String {
    let cache = tempfile::tempdir().unwrap();
    let output = command.env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_stencil_of_sixty_lines_runs_everywhere() {
    // Beside the directory of the tests, where cargo has built it with them.
    let test = std::env::current_exe().unwrap();
    let example = test.parent().and_then(std::path::Path::parent).unwrap().join("examples/jacobi");
    if !example.exists() {
        return println!("{} is built by `cargo test` of all targets", example.display());
    }
    let text = said(&mut Command::new(&example));
    assert!(text.contains("on threads, speeds measured") && text.contains("; verified"), "{text}");
    let Ok(version) = Command::new("mpirun").arg("--version").output() else {
        return skip(Need::Mpi, "no mpirun is installed");
    };
    let mut mpirun = Command::new("mpirun");
    if String::from_utf8_lossy(&version.stdout).contains("Open MPI") {
        mpirun.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
    }
    let text = said(mpirun.args(["-n", "2"]).arg(&example));
    assert!(text.contains("2 processors on mpi") && text.contains("rank1"), "{text}");
    assert_eq!(text.matches("verified").count(), 1, "only rank 0 prints");
}
