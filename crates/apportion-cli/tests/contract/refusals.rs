//! What the command refuses: one line on stderr, nothing on stdout, and no file new or changed.
//!
//! Each table of `refusals/` works in a directory of its own. Its columns are a command, its exit code, what
//! stderr must hold (texts with ` && ` between them), and a file that is written before it: its name and its
//! content, or a text in it and what replaces the first one. The file is as before afterwards. Without a command the
//! file stays, and a command of exit code 0 prepares the lines below it.

use super::Bench;
use std::path::Path;

macro_rules! tables {
    ($($(#[$attribute:meta])* $name:ident)*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                refuse(include_str!(concat!("refusals/", stringify!($name), ".tsv")));
            }
        )*

        const TABLES: &[&str] = &[$(stringify!($name)),*];
    };
}

tables! {
    advect boxes costs factor graphs matrices mdem models outputs plans platforms
    #[cfg(unix)] programs
    reports traces usage
}

#[test]
fn every_table_is_tested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/refusals");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(TABLES.contains(&path.file_stem().unwrap().to_str().unwrap()), "{}", path.display());
    }
}

fn refuse(table: &str) {
    let bench = Bench::new();
    for (line, row) in table.lines().enumerate().filter(|(_, row)| !row.starts_with('#')) {
        println!("line {}: {row}", line + 1);
        let cells: Vec<&str> = row.split('\t').collect();
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        let text = |at: usize| String::from_utf8(unescaped(cell(at))).unwrap();
        let (command, file) = (text(0), cell(3));
        let is_changed = !file.is_empty();
        let before = (is_changed && bench.has(file)).then(|| bench.bytes(file));
        if is_changed {
            std::fs::create_dir_all(bench.path(file).parent().unwrap()).unwrap();
            let new = match cell(4) {
                "" => content(cell(5)),
                _ => {
                    let old = bench.text(file);
                    let new = old.replacen(&text(4), &text(5), 1);
                    assert_ne!(old, new);
                    new.into_bytes()
                }
            };
            bench.write(file, new);
        }
        match cell(1) {
            "" => continue,
            "0" => drop(bench.done(&command)),
            code => {
                let said = bench.fails(code.parse().unwrap(), &command);
                for words in text(2).split(" && ") {
                    assert!(said.contains(words), "{words} in {said}");
                }
                let hidden = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
                assert!(!said.contains(hidden), "{said:?}");
            }
        }
        match before {
            Some(bytes) => bench.write(file, bytes),
            None if is_changed => bench.remove(file),
            None => {}
        }
    }
}

/// The bytes of a file: `@` and the path of one of the repository, `npy` and what [`npy`] takes, or text.
fn content(cell: &str) -> Vec<u8> {
    if let Some(path) = cell.strip_prefix('@') {
        return std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap();
    }
    cell.strip_prefix("npy ").map_or_else(|| unescaped(cell), npy)
}

/// A `.npy` file of an element type, a shape and values, such as `<f8 (2,3) 1 0*4 nan`; a further element type
/// is that of the values after it.
fn npy(words: &str) -> Vec<u8> {
    let mut words = words.split(' ');
    let (mut kind, shape) = (words.next().unwrap(), words.next().unwrap());
    let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = [&b"\x93NUMPY\x01\x00"[..], &(head.len() as u16).to_le_bytes(), head.as_bytes()].concat();
    for word in words {
        if word.starts_with(['<', '|']) {
            kind = word;
            continue;
        }
        let (value, times) = word.split_once('*').unwrap_or((word, "1"));
        let element = match kind {
            "<f8" => value.parse::<f64>().unwrap().to_le_bytes().to_vec(),
            "<f4" => value.parse::<f32>().unwrap().to_le_bytes().to_vec(),
            "<i8" => value.parse::<i64>().unwrap().to_le_bytes().to_vec(),
            "<i4" => value.parse::<i32>().unwrap().to_le_bytes().to_vec(),
            _ => vec![value.parse().unwrap()],
        };
        bytes.extend(element.repeat(times.parse().unwrap()));
    }
    bytes
}

/// The bytes of a cell, in which `\n`, `\t`, `\\` and `\xHH` are what they are in Rust.
fn unescaped(cell: &str) -> Vec<u8> {
    let mut parts = cell.split('\\');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    while let Some(part) = parts.next() {
        let (byte, rest) = match part.as_bytes() {
            // Two backslashes: the second begins the next part, which is text.
            [] => (b'\\', parts.next().unwrap()),
            [b'n', ..] => (b'\n', &part[1..]),
            [b't', ..] => (b'\t', &part[1..]),
            _ => (u8::from_str_radix(&part[1..3], 16).unwrap(), &part[3..]),
        };
        bytes.push(byte);
        bytes.extend(rest.as_bytes());
    }
    bytes
}
