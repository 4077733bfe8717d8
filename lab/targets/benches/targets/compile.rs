//! What everybody who tries the product waits for: a clean release build of the command, dependencies
//! included.

use super::Row;
use std::process::{Command, Stdio};

/// Ticks per second in Linux's /proc.
const TICKS: f64 = 100.0;

/// CPU seconds of a build into an empty directory. Takes minutes: not with `quick`.
pub fn rows(quick: bool) -> Vec<Row> {
    if quick {
        return Vec::new();
    }
    let target = tempfile::tempdir().expect("a temporary directory");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--package", "apportion-cli"]).env("CARGO_TARGET_DIR", target.path());
    let before = of_children();
    let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::null()).status();
    assert!(built.is_ok_and(|status| status.success()), "cargo build --release");
    let seconds = of_children() - before;
    vec![("clean release build of the command: CPU seconds".into(), seconds, 120.0, seconds <= 120.0)]
}

/// CPU seconds of all children of this process that have ended, and theirs.
fn of_children() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: the state, then fields 4 and so on; 16 and 17 are the children's.
    let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ticks: f64 = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / TICKS
}
