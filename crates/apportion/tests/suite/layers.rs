//! The house's floors: a folder uses only what is below it. Reads the sources, so it sees every path that
//! begins with `crate::` or climbs to the crate's root by `super::`; documentation may link upwards, and
//! tests may use anything.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The library, from the bottom up. Folders on one floor do not know each other.
const LIBRARY: &[&[&str]] = &[
    &["error", "memory"],
    &["files", "threads"],
    &["input"],
    &["units", "geometry", "output", "random"],
    &["platform"],
    &["model"],
    &["matrix"],
    &["kernels", "plan"],
    &["schedule"],
    &["trace"],
    &["run", "simulate"],
    &["measure"],
    &["verify"],
    &["select"],
    &["product", "advect"],
    &["events", "job"],
    &["explore"],
    &["report"],
];

/// The command line, from the bottom up; files that are on no floor may be used by all and use all.
const COMMANDS: &[&[&str]] = &[&["args"], &["prepare"], &["output"], &["commands"]];

/// Uses that are yet to be removed: (file, folder that it uses, why). A line that is no longer needed fails
/// the test.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// A use of something on the same floor or above.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Upward {
    file: String,
    line: usize,
    folder: String,
}

#[test]
fn folders_use_only_what_is_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for name in entries(&source).iter().filter(|name| *name != "lib") {
        let count = LIBRARY.iter().flat_map(|floor| floor.iter()).filter(|on| **on == name).count();
        assert_eq!(count, 1, "src/{name} must be on exactly one floor of tests/layers.rs");
    }
    check("apportion", LIBRARY);
}

#[test]
fn the_command_line_has_floors_too() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apportion-cli/src");
    for folder in COMMANDS.iter().flat_map(|floor| floor.iter()) {
        assert!(source.join(folder).is_dir(), "there is no folder {folder}");
    }
    check("apportion-cli", COMMANDS);
}

/// Fails if a folder of a crate uses one that is not below it, or no longer does what an exception allows.
fn check(of: &str, floors: &[&[&str]]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("src");
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for Upward { file, line, folder } in upward(&source, floors) {
        let file = format!("{of}/src/{file}");
        match EXCEPTIONS.iter().find(|(at, to, _)| *at == file && *to == folder) {
            Some(exception) => drop(used.insert(exception)),
            None => wrong.push(format!("crates/{file}:{line} uses {folder}, which is not below")),
        }
    }
    let here = format!("{of}/");
    for unused in EXCEPTIONS.iter().filter(|(file, ..)| file.starts_with(&here)) {
        if !used.contains(unused) {
            wrong.push(format!("{} no longer uses {}: remove the exception", unused.0, unused.1));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The test finds what it is for: in `use` trees, in paths, in macros and by `super`, but not in tests.
#[test]
fn upward_uses_are_found() {
    let text = "//! [`crate::report`]\nuse crate::{error::Error, report::{text, json}};\n\
        fn f() { crate::product::g(); h!(super::super::select::i()); }\n\
        pub(crate) fn k() {}\nuse crate::report as r;\n\
        #[cfg(test)]\nmod tests { use crate::explore::Study; }\n\
        #[cfg(test)]\nmod tests;\nfn l() -> crate::units::Bytes {}\n";
    let found = uses(text, 2);
    let expected = [("error", 2), ("report", 2), ("product", 3), ("select", 3), ("report", 5), ("units", 10)];
    assert_eq!(found, expected.map(|(name, line)| (name.to_owned(), line)));
}

/// Names of files and folders, without their endings.
fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder of sources")
        .map(|entry| {
            entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// All uses within `source` of a folder on the same floor or above, in the order of files and lines.
fn upward(source: &Path, floors: &[&[&str]]) -> Vec<Upward> {
    let floor = |name: &str| floors.iter().position(|floor| floor.contains(&name));
    let mut found = Vec::new();
    for path in files(source) {
        let below = path.strip_prefix(source).expect("it is in there").with_extension("");
        let names: Vec<&str> = below.iter().map(|part| part.to_str().expect("UTF-8")).collect();
        let Some(here) = floor(names[0]) else { continue };
        // `mod.rs` is the module of its folder.
        let depth = names.len() - usize::from(names.last() == Some(&"mod"));
        let text = fs::read_to_string(&path).expect("a source file");
        for (folder, line) in uses(&text, depth) {
            if folder != names[0] && floor(&folder).is_some_and(|there| there >= here) {
                let file = path.strip_prefix(source).expect("it is in there").display().to_string();
                found.push(Upward { file, line, folder });
            }
        }
    }
    found.sort();
    found
}

/// All source files but those of tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// The modules of the crate's root that a file uses, with line numbers; `depth` counts the modules that it is
/// within.
fn uses(text: &str, depth: usize) -> Vec<(String, usize)> {
    let tokens: TokenStream = text.parse().expect("Rust");
    let mut found = Vec::new();
    search(tokens, depth, &mut found);
    found
}

fn search(tokens: TokenStream, depth: usize, found: &mut Vec<(String, usize)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_test(&tokens[at..]) {
            // Up to the end of what is for tests only: a body or a semicolon.
            let ends = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                other => is_punct(other, ';'),
            };
            at += 2;
            at += tokens[at..].iter().position(ends).map_or(tokens.len(), |end| end + 1);
            continue;
        }
        if let Some(rest) = from_root(&tokens[at..], depth) {
            first_names(rest, found);
        }
        if let TokenTree::Group(group) = &tokens[at] {
            search(group.stream(), depth, found);
        }
        at += 1;
    }
}

/// True at `#[cfg(test)]`.
fn is_test(tokens: &[TokenTree]) -> bool {
    let [hash, TokenTree::Group(attribute), ..] = tokens else { return false };
    is_punct(hash, '#') && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// What follows `crate::`, or as many `super::` as lead to the crate's root.
fn from_root(mut tokens: &[TokenTree], depth: usize) -> Option<&[TokenTree]> {
    let path = |tokens: &[TokenTree], name: &str| {
        let [TokenTree::Ident(ident), one, two, _, ..] = tokens else { return false };
        ident == name && is_punct(one, ':') && is_punct(two, ':')
    };
    if path(tokens, "crate") {
        return Some(&tokens[3..]);
    }
    for _ in 0..depth {
        if !path(tokens, "super") {
            return None;
        }
        tokens = &tokens[3..];
    }
    (depth > 0).then_some(tokens)
}

/// The first names of a path or of a tree of paths.
fn first_names(tokens: &[TokenTree], found: &mut Vec<(String, usize)>) {
    match tokens.first() {
        Some(TokenTree::Ident(name)) => found.push((name.to_string(), name.span().start().line)),
        Some(TokenTree::Group(group)) => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            inner.split(|token| is_punct(token, ',')).for_each(|path| first_names(path, found));
        }
        _ => {}
    }
}
