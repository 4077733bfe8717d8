//! Comments and pages end at 110 characters, as code does.

use std::path::{Path, PathBuf};

/// The end of a line.
const END: usize = 110;
/// Generated, or transcripts of the command line.
const EXCEPT: [&str; 4] = ["target", ".git", "golden", "literature"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = [".rs", ".md"].iter().any(|ending| name.ends_with(ending));
        match path.is_dir() {
            true if !EXCEPT.contains(&name.as_str()) => files(&path, found),
            false if text => found.push(path),
            _ => (),
        }
    }
}

/// The longer lines of a text, by number. Tables, addresses and what is in fences cannot be broken.
fn long(text: &str, is_page: bool) -> Vec<usize> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        let words = trimmed.trim_start_matches(['/', '!']).trim_start();
        if !is_page && words == trimmed {
            fenced = false;
            continue;
        }
        if words.starts_with("```") {
            fenced = !fenced;
        }
        let whole = words.split(' ').any(|word| word.chars().count() > END / 2);
        let fixed = fenced || whole || words.starts_with('|') || words.starts_with('#');
        if line.chars().count() > END && !fixed {
            found.push(number);
        }
    }
    found
}

#[test]
fn lines_end_in_time() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    files(&root, &mut all);
    assert!(all.len() > 500, "{} files", all.len());
    let longer = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let is_page = path.extension().is_some_and(|ending| ending == "md");
        long(&text, is_page).into_iter().map(|line| format!("{}:{line}", path.display())).collect::<Vec<_>>()
    };
    let found: Vec<String> = all.iter().flat_map(longer).collect();
    assert!(found.is_empty(), "lines above {END} characters:\n{}", found.join("\n"));
}

#[test]
fn long_lines_are_found() {
    let long_one = "word ".repeat(30);
    assert_eq!(
        long(&format!("short\n{long_one}\n| {long_one}\n```\n{long_one}\n```\n{long_one}"), true),
        [2, 7]
    );
    let code =
        format!("let x = \"{long_one}\";\n    /// {long_one}\n// ```\n// {long_one}\n// ```\n//! {long_one}");
    assert_eq!(long(&code, false), [2, 6]);
}
