//! The command line: exit codes, output, and that everything computed still meets what is published.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn literature(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_literature"));
    command.args(arguments).output().expect("the binary starts")
}

#[test]
fn list_names_every_experiment() {
    let listed = literature(&["list", "--json"]);
    let object: Value = serde_json::from_slice(&listed.stdout).expect("one object");
    let experiments = object["experiments"].as_array().expect("a list");
    let text = String::from_utf8(literature(&["list"]).stdout).expect("UTF-8");
    for experiment in experiments {
        let id = experiment["ids"][0].as_str().expect("a name");
        assert!(text.contains(id) && !experiment["source"].as_str().unwrap_or("").is_empty(), "{id}");
    }
    assert!(experiments.len() >= 25);
}

/// The directory of the pages that the repository keeps.
fn kept_pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/literature")
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The index that is kept beside the pages is written by `run all`, which takes minutes: an experiment that
/// was added later must be in it.
#[test]
fn the_kept_index_names_every_experiment() {
    let index = text_of(&kept_pages().join("README.md"));
    let object: Value = serde_json::from_slice(&literature(&["list", "--json"]).stdout).expect("one object");
    let experiments = object["experiments"].as_array().expect("a list");
    for experiment in experiments {
        let id = experiment["ids"][0].as_str().expect("a name");
        assert!(
            index.contains(&format!("| [{id}]({id}.md) |"))
                && kept_pages().join(format!("{id}.md")).is_file(),
            "{id}"
        );
    }
    assert!(index.contains(&format!("{} experiments compare ", experiments.len())));
}

#[test]
fn bad_names_are_one_line_and_exit_code_2() {
    for arguments in [&["run", "becker-9.99"][..], &["run", "becker-5.13", "--quick"], &["run"]] {
        let output = literature(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let said = String::from_utf8(literature(&["run", "becker-9.99"]).stderr).expect("UTF-8");
    assert_eq!(said, "literature: `ID`: unknown experiment 'becker-9.99' (see `list`)\n");
}

/// What is computed is the same on every machine: the pages and pictures that the repository keeps are those
/// that the program writes, byte for byte, and every statement has a verdict other than missed. After an
/// intended change `run ID --dir lab/results/literature` writes a page again.
#[test]
fn everything_computed_is_as_on_the_kept_pages() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let list: Value = serde_json::from_slice(&literature(&["list", "--json"]).stdout).expect("one object");
    let experiments = list["experiments"].as_array().expect("a list");
    let ids: Vec<&str> = experiments
        .iter()
        .filter(|experiment| experiment["kind"] == "computed")
        .map(|experiment| experiment["ids"][0].as_str().expect("a name"))
        .collect();
    assert!(ids.len() >= 15, "{ids:?}");
    let output = literature(&[&["run", "--json", "--dir", path], &ids[..]].concat());
    let object: Value = serde_json::from_slice(&output.stdout).expect("one object");
    for experiment in object["experiments"].as_array().expect("a list") {
        for check in experiment["checks"].as_array().expect("a list") {
            assert_ne!(check["verdict"], "MISSED", "{}: {check}", experiment["ids"][0]);
            assert_ne!(check["published"], "", "{}: {check}", experiment["ids"][0]);
            assert_ne!(check["tolerance"], "", "{}: {check}", experiment["ids"][0]);
        }
    }
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let written = std::fs::read_dir(directory.path()).expect("a directory");
    let mut differing = Vec::new();
    for entry in written {
        let name = entry.expect("an entry").file_name();
        if text_of(&directory.path().join(&name)) != text_of(&kept_pages().join(&name)) {
            differing.push(name);
        }
    }
    assert!(differing.is_empty(), "write these pages again: {differing:?}");
}

/// A quick run leaves out what is emulated, and says the same as its exit code.
#[test]
fn a_quick_run_writes_pages_and_an_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let output = literature(&["run", "becker-5.3", "becker-5.13", "--quick", "--json", "--dir", path]);
    let object: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!((output.status.code(), &object["missed"]), (Some(0), &Value::from(0)));
    assert_eq!(object["experiments"].as_array().map(Vec::len), Some(1));
    assert!(directory.path().join("becker-5.3.md").is_file());
}
