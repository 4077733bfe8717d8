//! The command line: exit codes, output, and that everything computed still meets what is published.

use serde_json::Value;
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

/// The index that is kept beside the pages is written by `run all`, which takes minutes: an experiment that
/// was added later must be in it.
#[test]
fn the_kept_index_names_every_experiment() {
    let pages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/literature");
    let index = std::fs::read_to_string(pages.join("README.md")).expect("the index");
    let object: Value = serde_json::from_slice(&literature(&["list", "--json"]).stdout).expect("one object");
    let experiments = object["experiments"].as_array().expect("a list");
    for experiment in experiments {
        let id = experiment["ids"][0].as_str().expect("a name");
        assert!(
            index.contains(&format!("| [{id}]({id}.md) |")) && pages.join(format!("{id}.md")).is_file(),
            "{id}"
        );
    }
    assert!(index.contains(&format!(" of {} experiments meet", experiments.len())));
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

/// Pages, pictures and the index; the object says the same as the exit code.
#[test]
fn everything_computed_meets_what_is_published() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let output = literature(&["run", "all", "--quick", "--json", "--dir", path]);
    let said = String::from_utf8_lossy(&output.stderr);
    let object: Value = serde_json::from_slice(&output.stdout).expect("one object");
    for experiment in object["experiments"].as_array().expect("a list") {
        let id = experiment["ids"][0].as_str().expect("a name");
        for check in experiment["checks"].as_array().expect("a list") {
            assert_ne!(check["verdict"], "MISSED", "{id}: {check}");
        }
        let page = std::fs::read_to_string(directory.path().join(format!("{id}.md"))).expect("a page");
        for picture in page.lines().filter_map(|line| line.strip_prefix("![")) {
            let name = picture.split(']').next().expect("a name");
            let svg =
                std::fs::read_to_string(directory.path().join(format!("{name}.svg"))).expect("a picture");
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{id}");
        }
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(directory.path().join("README.md").is_file());
}
