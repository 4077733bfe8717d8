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

/// The items of each document are on its kept page, with the verdicts that `list` prints.
#[test]
fn list_prints_the_items_of_a_document_as_its_page_does() {
    let object: Value = serde_json::from_slice(&literature(&["list", "--json"]).stdout).expect("one object");
    let documents = object["documents"].as_array().expect("a list");
    assert_eq!(documents.len(), 5);
    for document in documents {
        let id = document["document"].as_str().expect("a name");
        let page = text_of(&kept_pages().join(format!("{id}.md")));
        let listed = String::from_utf8(literature(&["list", id]).stdout).expect("UTF-8");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (page, listed) = (words(&page), words(&listed));
        let counts = words(document["counts"].as_str().expect("counts"));
        assert!(page.contains(&counts) && listed.contains(&counts), "{id}: {counts}");
        for item in document["items"].as_array().expect("items") {
            let [place, outcome] = ["item", "outcome"].map(|key| words(item[key].as_str().expect("text")));
            assert!(listed.contains(&format!("{place}: ")) && listed.contains(&outcome), "{id}: {place}");
            assert!(
                page.contains(&format!("| {place} | ")) && page.contains(&format!("| {outcome} |")),
                "{id}: {place}"
            );
        }
    }
    assert_eq!(literature(&["list", "nobody"]).status.code(), Some(2));
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

/// What is computed is the same on every machine: the pages, pictures, statements and indexes that the
/// repository keeps are those that the program writes, byte for byte, and every statement has a verdict other
/// than missed. After an intended change `run ID --dir lab/results/literature` writes a page and the indexes
/// again.
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
    for name in ["becker-5.3.md", "README.md", "becker.md", "statements.json"] {
        assert!(directory.path().join(name).is_file(), "{name}");
    }
}
