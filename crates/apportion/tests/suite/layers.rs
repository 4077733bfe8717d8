//! The house's floors: a folder uses only what is below it. Reads the sources, so it sees every path that
//! begins with `crate::` or climbs to the crate's root by `super::`; documentation may link upwards, and
//! tests may use anything.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};

/// A crate whose folders have floors.
struct House {
    name: &'static str,
    /// Files and folders from the bottom up. Those on one floor do not know each other; what is on no floor may
    /// use all and be used by all.
    floors: &'static [&'static [&'static str]],
}

const HOUSES: [House; 5] = [
    House {
        name: "apportion-core",
        floors: &[
            &["error", "memory", "system_files"],
            &["files", "threads", "control_groups"],
            &["input"],
            &["units", "geometry", "output", "random"],
            &["process_memory"],
        ],
    },
    House {
        name: "apportion-plan",
        floors: &[
            &["platform"],
            &["model"],
            &["plan"],
            &["schedule"],
            &["trace"],
            &["simulate"],
            &["select"],
        ],
    },
    House { name: "apportion-kernels", floors: &[&["matrix"], &["kernels"], &["device"]] },
    House {
        name: "apportion",
        floors: &[&["run"], &["measure"], &["verify"], &["product"], &["job"], &["explore"]],
    },
    House { name: "apportion-cli", floors: &[&["args"], &["prepare"], &["output"], &["commands"]] },
];

/// A use of something on the same floor or above.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Upward {
    file: String,
    line: usize,
    folder: String,
}

#[test]
fn folders_use_only_what_is_below_them() {
    for House { name, floors } in HOUSES {
        let source = source_of(name);
        let names = entries(&source);
        for folder in floors.iter().flat_map(|floor| floor.iter()) {
            assert!(names.iter().any(|name| name == folder), "{name} has no {folder}");
        }
        let wrong: Vec<String> = upward(&source, floors)
            .into_iter()
            .map(|Upward { file, line, folder }| format!("crates/{name}/src/{file}:{line} uses {folder}"))
            .collect();
        assert!(wrong.is_empty(), "not below:\n{}\n", wrong.join("\n"));
    }
}

/// Planning computes and reads: no threads, no clock, nothing unsafe, and no crate that runs or multiplies.
#[test]
fn planning_is_pure() {
    let root = fs::read_to_string(source_of("apportion-plan").join("lib.rs")).unwrap();
    assert!(root.contains("#![forbid(unsafe_code)]"));
    for path in files(&source_of("apportion-plan")) {
        let text = fs::read_to_string(&path).unwrap();
        for word in ["thread::spawn", "thread::scope", "thread::Builder", "Instant", "SystemTime"] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
    }
    let manifest = fs::read_to_string(source_of("apportion-plan").join("../Cargo.toml")).unwrap();
    let ours: Vec<&str> = manifest.lines().filter(|line| line.starts_with("apportion")).collect();
    assert_eq!(ours, ["apportion-core.workspace = true"]);
}

fn source_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
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
