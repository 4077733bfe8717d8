//! Recorded machines: their files of `/proc` and `/sys`, in `machines/`, one file a machine.

use std::path::{Path, PathBuf};
use std::{fs, io};
use tempfile::TempDir;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("machines")
}

/// The names of all recorded machines, sorted.
pub fn recorded_machines() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the folder of machines");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".txt").map(str::to_owned)).collect();
    names.sort();
    names
}

/// A directory with the files of a recorded machine; `machines/README.md` describes how they are written.
pub fn recorded_machine(name: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = fs::read_to_string(folder().join(format!("{name}.txt"))).expect("a recorded machine");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        expand(line, directory.path()).unwrap_or_else(|error| panic!("{name}: {line}: {error}"));
    }
    directory
}

/// Writes the files of one line.
fn expand(line: &str, root: &Path) -> io::Result<()> {
    let (path, text) = line.split_once(' ').expect("a path and a text");
    let text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0");
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a directory"))?;
        fs::write(path, text)
    };
    let Some((before, rest)) = path.split_once('{') else { return write(path, &text) };
    let (list, after) = rest.split_once('}').expect("a list in braces");
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<usize>().expect("a number");
        for cpu in number(first)..=number(last) {
            write(&format!("{before}{cpu}{after}"), &about(&text, cpu))?;
        }
    }
    Ok(())
}

/// The text with the numbers of one CPU in place of the braces.
fn about(text: &str, cpu: usize) -> String {
    let mut parts = text.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (rule, rest) = part.split_once('}').expect("a closing brace");
        let by = || rule[1..].parse::<usize>().expect("a number");
        out += &match rule.chars().next() {
            None => cpu.to_string(),
            Some('+') => (cpu + by()).to_string(),
            Some('-') => (cpu - by()).to_string(),
            Some('/') => format!("{}-{}", cpu / by() * by(), (cpu / by() + 1) * by() - 1),
            Some(_) => panic!("{{{rule}}} is no rule"),
        };
        out += rest;
    }
    out
}
