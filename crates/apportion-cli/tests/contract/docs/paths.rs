//! Files and folders that pages for developers, decisions and comments name exist.

use super::root;
use std::collections::BTreeSet;
use std::path::Path;

/// All files and folders below a folder, by their paths from it; not those of builds.
fn below(root: &Path, folder: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type().unwrap().is_dir() && name != "target" && name != ".git" {
            below(root, &path, found);
        }
        found.push(path);
    }
}

/// The words of a text that look like paths of the repository: those that begin with one of its folders, and
/// in backquotes those that end as sources or, on pages, as folders do.
fn paths(text: &str, is_page: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (i, span) in text.split('`').enumerate() {
        for word in span.split_whitespace() {
            let path = word.trim_matches([',', ';', ':', '(', ')']).trim_end_matches('.');
            let anchored =
                ["crates/", "docs/", "lab/", "platforms/", ".ci/"].iter().any(|f| path.starts_with(f));
            let source = [".rs", ".c", ".h", ".f90"]
                .iter()
                .any(|e| path.strip_suffix(e).is_some_and(|stem| !stem.is_empty()));
            let folder = is_page && path.ends_with('/') && !path.starts_with('/');
            let plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
            if plain && (anchored || i % 2 == 1 && (source || folder)) {
                found.insert(path.trim_end_matches('/').to_owned());
            }
        }
    }
    found
}

/// A name may leave out the folders that come first.
#[test]
fn every_named_file_and_folder_exists() {
    let root = root();
    let mut all = Vec::new();
    below(&root, "", &mut all);
    let known: BTreeSet<&str> = all
        .iter()
        .flat_map(|path| {
            std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1)).map(|at| &path[at..])
        })
        .collect();
    let (mut missing, mut read) = (Vec::new(), 0);
    for file in &all {
        let is_page = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "lab/README.md"]
            .contains(&file.as_str())
            || file.starts_with("docs/decisions/");
        if !is_page && !file.ends_with(".rs") {
            continue;
        }
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let comments = || text.lines().filter(|line| line.trim_start().starts_with("//"));
        let text = if is_page { text.clone() } else { comments().collect::<Vec<_>>().join("\n") };
        let named = paths(&text, is_page);
        read += named.len();
        missing.extend(
            named.iter().filter(|path| !known.contains(path.as_str())).map(|p| format!("{file}: {p}")),
        );
    }
    assert!(read > 100, "{read} paths");
    assert!(missing.is_empty(), "named, but not there:\n{}", missing.join("\n"));
}

#[test]
fn paths_are_found() {
    let text = "See docs/x.md, `run/y.rs` and (`plan/`); `cargo test --test z lab/w`, y.rs, `.npy`, `a/b`, `/dev/fd`.";
    let found: Vec<String> = paths(text, true).into_iter().collect();
    assert_eq!(found, ["docs/x.md", "lab/w", "plan", "run/y.rs"]);
}
