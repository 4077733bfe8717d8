//! Outputs that the documentation quotes after a command are outputs of that command.

use super::markdown::{Block, blocks, commands};
use super::{blesses, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Commands whose output depends on their input only.
const COMPUTED: [&str; 5] = ["partition", "simulate", "arrange", "plot", "mdem"];

/// Computed outputs that rest on measured files: the document, the beginning of the command, the reason.
const LEFT_OUT: [(&str, &str, &str); 3] = [
    (
        "docs/how-to/discrete-events.md",
        "apportion mdem examples/mdem/deadlock.toml",
        "an error, whose line is broken here; tests/contract/mdem.rs has it",
    ),
    (
        "docs/reference/plan-file.md",
        "apportion partition --units 100000 --models",
        "measured speed functions",
    ),
    (
        "docs/reference/methods.md",
        "apportion partition --shape 1000x1000 --speeds 9,1 --compare",
        "the time of each method is measured",
    ),
];

/// The documents, by their paths from the root.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("README.md")];
    let mut folders = ["docs", "lab"].map(PathBuf::from).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A folder in which a document's commands run one after the other.
struct Reader {
    folder: tempfile::TempDir,
    variables: Vec<String>,
}

impl Reader {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for inputs in ["platforms", "examples"] {
            copy(&root().join(inputs), &folder.path().join(inputs));
        }
        Self { folder, variables: Vec::new() }
    }

    fn run(&mut self, all: &[String]) -> Output {
        let (variables, commands): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|line| is_variable(line));
        self.variables.extend(variables);
        // Only the last command's output is quoted.
        let (last, others) = commands.split_last().unwrap();
        let quiet = others.iter().map(|line| format!("{line} >/dev/null"));
        let script: Vec<String> = self.variables.iter().cloned().chain(quiet).chain([last.clone()]).collect();
        let binary = Path::new(env!("CARGO_BIN_EXE_apportion")).parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
        Command::new("sh")
            .args(["-ec", &script.join("\n")])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env_remove("COLUMNS")
            .output()
            .unwrap()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn is_variable(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase()))
}

/// Whether all commands of a block are computed.
fn computed(all: &[String]) -> bool {
    let is = |line: &String| COMPUTED.iter().any(|name| line.starts_with(&format!("apportion {name} ")));
    all.iter().any(&is) && all.iter().all(|line| is(line) || is_variable(line))
}

/// The quoted lines that an output lacks, in order. A line that ends in "…" may go on, and one of "…" stands
/// for any number of lines.
fn missing<'a>(quoted: &'a [String], output: &str) -> Option<&'a String> {
    let mut lines = output.lines();
    quoted.iter().filter(|line| !line.trim().is_empty() && line.trim() != "…").find(|line| {
        let matches = |found: &str| match line.strip_suffix('…') {
            Some(start) => found.starts_with(start.trim_end()),
            None => found.trim_end() == line.trim_end(),
        };
        !lines.by_ref().any(matches)
    })
}

/// The quoted lines with the words of the output: each becomes the next line of the output that begins with
/// the same word.
fn renewed(quoted: &[String], output: &str) -> Vec<String> {
    let mut lines = output.lines();
    let word = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let renew = |line: &String| {
        if line.trim().is_empty() || line.trim() == "…" {
            return line.clone();
        }
        let mut rest = lines.clone();
        match rest.find(|found| word(found) == word(line)) {
            Some(found) => {
                lines = rest;
                found.trim_end().to_owned()
            }
            None => line.clone(),
        }
    };
    quoted.iter().map(renew).collect()
}

/// Checks one document; returns its text with renewed outputs, and the number of outputs compared.
fn read(path: &Path, wrong: &mut Vec<String>) -> (String, usize) {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let all: Vec<Block> = blocks(&text);
    let (mut reader, mut compared) = (Reader::new(), 0);
    for (i, block) in all.iter().enumerate() {
        if let Some(file) = &block.file {
            std::fs::write(reader.folder.path().join(file), block.lines.join("\n")).unwrap();
        }
        let commands = commands(&block.lines);
        if block.language != "sh" {
            continue;
        }
        if !computed(&commands) {
            // What later commands read may be made here.
            let some =
                commands.iter().filter(|line| computed(std::slice::from_ref(*line)) || is_variable(line));
            let some: Vec<String> = some.cloned().collect();
            if computed(&some) {
                reader.run(&some);
            }
            continue;
        }
        let left_out = |(document, begin, _): &(&str, &str, &str)| {
            path == Path::new(document) && commands.iter().any(|line| line.starts_with(begin))
        };
        if LEFT_OUT.iter().any(left_out) {
            continue;
        }
        let output = reader.run(&commands);
        // Quoted directly after the commands: a fence, a blank line and a fence lie between.
        let beside = |next: &&Block| next.first <= block.first + block.lines.len() + 3;
        let Some(quoted) = all.get(i + 1).filter(|next| next.language == "text").filter(beside) else {
            continue;
        };
        let at = format!("{}:{}", path.display(), block.first + 1);
        if !output.status.success() {
            wrong.push(format!("{at}: {}", String::from_utf8_lossy(&output.stderr).trim()));
            continue;
        }
        compared += 1;
        let output = String::from_utf8_lossy(&output.stdout);
        if blesses() {
            let renewed = renewed(&quoted.lines, &output);
            lines.splice(quoted.first..quoted.first + quoted.lines.len(), renewed);
        }
        let shown = &lines[quoted.first..quoted.first + quoted.lines.len()];
        if let Some(line) = missing(shown, &output) {
            wrong.push(format!("{at}: the output has no line \"{line}\" at its place"));
        }
    }
    (lines.join("\n") + "\n", compared)
}

#[test]
fn quoted_outputs_are_those_of_the_commands() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for path in documents() {
        let (text, count) = read(&path, &mut wrong);
        compared += count;
        if blesses() {
            std::fs::write(root().join(&path), text).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 10, "only {compared} outputs were compared");
}

#[test]
fn a_changed_figure_is_noticed_and_renewed() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let output = "name  value\nmethod    rows\nvolume    12\nforecast  3 s\n";
    assert_eq!(missing(&lines("method    rows\n…\nforecast  3 s"), output), None);
    assert_eq!(missing(&lines("volume …"), output), None);
    let old = lines("method    rows\nvolume    11\n…");
    assert_eq!(missing(&old, output).map(String::as_str), Some("volume    11"));
    assert!(missing(&lines("forecast  3 s\nvolume    12"), output).is_some(), "the order counts");
    assert_eq!(renewed(&old, output), lines("method    rows\nvolume    12\n…"));
}
