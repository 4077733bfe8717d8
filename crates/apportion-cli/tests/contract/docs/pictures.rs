//! Pictures that a single command draws are drawn again.

use super::{blesses, root};
use std::collections::BTreeMap;
use std::process::Command;

/// The command with the flag that draws, or the reason for its absence, by the name of the picture.
fn listed() -> BTreeMap<String, Result<(String, String), String>> {
    let text = std::fs::read_to_string(root().join("docs/pictures/commands.txt")).unwrap();
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (name, entry) = match (line.split_once(" ! "), line.split_once(": ")) {
            (Some((name, why)), _) => (name, Err(why.to_owned())),
            (None, Some((name, command))) => {
                let (name, flag) = name.split_once(' ').unwrap_or((name, "--svg"));
                (name, Ok((command.to_owned(), flag.to_owned())))
            }
            (None, None) => panic!("neither a command nor a reason: {line}"),
        };
        assert!(all.insert(name.to_owned(), entry).is_none(), "{name} is listed twice");
    }
    all
}

#[test]
fn every_picture_is_what_its_command_draws() {
    let (root, listed) = (root(), listed());
    let folder = tempfile::tempdir().unwrap();
    let mut different = Vec::new();
    for (name, entry) in &listed {
        let Ok((command, flag)) = entry else { continue };
        let (new, kept) =
            (folder.path().join(format!("{name}.svg")), root.join(format!("docs/pictures/{name}.svg")));
        let output = Command::new(env!("CARGO_BIN_EXE_apportion"))
            .current_dir(&root)
            .args(command.split(' '))
            .arg(flag)
            .arg(&new)
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let drawn = std::fs::read(&new).unwrap();
        if blesses() {
            std::fs::write(&kept, &drawn).unwrap();
        } else if std::fs::read(&kept).unwrap_or_default() != drawn {
            different.push(name.as_str());
        }
    }
    assert!(different.is_empty(), "not as drawn by their commands (docs/make-pictures): {different:?}");
}

/// Each picture of the folder is listed, and each that is listed is there.
#[test]
fn every_picture_has_a_command_or_a_reason() {
    let listed = listed();
    let folder = std::fs::read_dir(root().join("docs/pictures")).unwrap();
    let names = folder.filter_map(|entry| {
        let path = entry.unwrap().path();
        let svg = path.extension().is_some_and(|e| e == "svg");
        svg.then(|| path.file_stem().unwrap().to_string_lossy().into_owned())
    });
    let names: Vec<String> = names.collect();
    for name in &names {
        assert!(listed.contains_key(name), "{name}.svg is not in docs/pictures/commands.txt");
    }
    for (name, entry) in &listed {
        assert!(names.contains(name), "{name}.svg is listed but missing ({entry:?})");
    }
}
