//! Calls of the binary written as one line of words, in a directory of the test's own.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An empty directory; `name` is the test's alone.
pub fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("contract").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The binary with these words, with a cache of the directory's own.
pub fn apportion(directory: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apportion"))
        .args(line.split_whitespace())
        .current_dir(directory)
        .env("XDG_CACHE_HOME", directory.join("cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Stdout of a call that works.
pub fn stdout(directory: &Path, line: &str) -> String {
    let out = apportion(directory, line);
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The one JSON object on stdout of a call that works.
pub fn json_of(directory: &Path, line: &str) -> Value {
    serde_json::from_str(&stdout(directory, &format!("{line} --json"))).expect("stdout is one JSON object")
}

/// The one line on stderr of a call that fails with this exit code and prints nothing else.
pub fn error_of(directory: &Path, code: i32, line: &str) -> String {
    let out = apportion(directory, line);
    let message = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(code), "{line}: {message}");
    assert!(out.stdout.is_empty() && message.lines().count() == 1, "{line}: {message}");
    message
}
