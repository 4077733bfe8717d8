//! The public interface of all crates, item by item, in `tests/api.txt`: a change to it is seen in review, or is a mistake.
//!
//! Reads the sources with `syn`, from lib.rs through public modules and `pub use`, so it works on a stable
//! compiler. It does not expand macros and resolves names by itself, well enough for this crate; `cargo doc`
//! shows the rest.
//! `APPORTION_BLESS=1 cargo test -p apportion --test suite api` rewrites the file.

mod krate;
mod lines;

use std::collections::BTreeSet;
use std::path::Path;

/// Names at the root of the crate beside its modules.
const MOST_AT_THE_ROOT: usize = 50;

/// The crates that programs may use, from the bottom up.
const CRATES: [&str; 8] = [
    "apportion-core",
    "apportion-plan",
    "apportion-kernels",
    "apportion",
    "apportion-advect",
    "apportion-events",
    "apportion-factor",
    "apportion-report",
];

fn read(name: &str) -> krate::Krate {
    krate::Krate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src/lib.rs"))
}

fn interface() -> BTreeSet<String> {
    CRATES.iter().flat_map(|name| lines::public(&read(name), &name.replace('-', "_"))).collect()
}

#[test]
fn the_public_interface_is_the_one_on_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api.txt");
    let now = interface();
    if std::env::var_os("APPORTION_BLESS").is_some() {
        let text: String = now.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).expect("api.txt is written");
        return;
    }
    let text = std::fs::read_to_string(&path).expect("tests/api.txt");
    let before: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let gone = before.difference(&now).map(|line| format!("- {line}\n"));
    let new = now.difference(&before).map(|line| format!("+ {line}\n"));
    let changes: String = gone.chain(new).collect();
    assert!(
        changes.is_empty(),
        "the public interface differs from tests/api.txt (APPORTION_BLESS=1 accepts it):\n{changes}"
    );
}

#[test]
fn few_names_are_at_the_root() {
    for name in CRATES {
        let names = read(name).names_at_the_root();
        assert!(names.len() <= MOST_AT_THE_ROOT, "{name}: {} names: {}", names.len(), names.join(", "));
    }
}

/// A crate of a few lines, with what the reader must follow: re-exports, globs, private modules, impls
/// elsewhere.
#[test]
fn the_reader_follows_re_exports() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("api-reader");
    std::fs::create_dir_all(&directory).expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).expect("a small file");
    write(
        "lib.rs",
        "mod a;\npub mod b;\npub use a::{Seen, f as g};\nfn hidden() {}\n#[cfg(test)]\nmod tests;\n",
    );
    write(
        "a.rs",
        "#[derive(Debug)]\npub struct Seen { pub x: Vec<u8>, y: u8 }\npub struct Unseen;\n\
         pub fn f<T: Copy>(x: &mut [T]) -> Result<(), T> where T: Ord { Err(x[0]) }\n",
    );
    write(
        "b.rs",
        "pub use self::inner::*;\nmod inner {\n    use crate::a::Seen;\n    pub enum E { A, B(Seen) }\n\
         impl Seen { pub const fn new() -> Self { todo() } fn not(&self) {} }\n    impl From<E> for Seen {}\n}\n\
         pub trait T { const N: usize; fn t(&self) { } }\n",
    );
    let found: Vec<String> =
        lines::public(&krate::Krate::read(&directory.join("lib.rs")), "apportion").into_iter().collect();
    let expected = [
        "const fn apportion::Seen::new() -> Self",
        "const usize apportion::b::T::N",
        "enum apportion::b::E",
        "field apportion::Seen::x: Vec<u8>",
        "fn apportion::b::T::t(&self) (provided)",
        "fn apportion::g<T: Copy>(x: &mut [T]) -> Result<(), T> where T: Ord",
        "impl apportion::Seen: Debug, From<E>",
        "mod apportion::b",
        "struct apportion::Seen { .. }",
        "trait apportion::b::T",
        "variant apportion::b::E::A",
        "variant apportion::b::E::B(Seen)",
    ];
    assert_eq!(found, expected);
}
