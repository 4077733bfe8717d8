//! Files that no command may lose: outputs that would replace each other or an input.

use super::distinct;
use apportion::error::{Error, Result};
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};

/// The flags of all commands that name an output file.
const OUTPUTS: [&str; 9] =
    ["output", "report", "trace", "svg", "export_to", "models_out", "predecessors", "gantt", "max_plus"];

/// Commands whose output may replace an operand: they check their own files.
const PRODUCTS: [&str; 3] = ["matmul", "power", "closure"];

/// Checks the files of the command that was typed.
///
/// # Errors
/// Two outputs with one target, or an output that is an input: exit code 2.
pub fn check(grammar: &Command, matches: &ArgMatches) -> Result<()> {
    let Some((name, matches)) = matches.subcommand().filter(|(name, _)| !PRODUCTS.contains(name)) else {
        return Ok(());
    };
    let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
    // Some of the Courant numbers may be files.
    let courant = matches.try_get_one::<String>("courant").ok().flatten();
    inputs.extend(
        courant.into_iter().flat_map(|text| text.split(',')).map(|name| Some(Path::new(name.trim()))),
    );
    for arg in grammar.find_subcommand(name).into_iter().flat_map(Command::get_arguments) {
        let id = arg.get_id().as_str();
        let paths = matches.try_get_many::<PathBuf>(id).ok().flatten().into_iter().flatten();
        let directory = arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "DIR"));
        if OUTPUTS.contains(&id) {
            outputs.extend(paths.map(|path| (flag(arg), path)));
        } else if !directory {
            inputs.extend(paths.map(|path| Some(path.as_path())));
        }
    }
    let outputs: Vec<(&str, Option<&PathBuf>)> =
        outputs.iter().map(|(flag, path)| (flag.as_str(), Some(*path))).collect();
    distinct(&outputs, &inputs as &[Option<&Path>])
}

/// Rejects an output to stdout where that is for the JSON object.
///
/// # Errors
/// There is one: exit code 2.
pub fn check_stdout(grammar: &Command, matches: &ArgMatches) -> Result<()> {
    let Some((name, matches)) = matches.subcommand().filter(|(_, m)| m.get_flag("json")) else {
        return Ok(());
    };
    for arg in grammar.find_subcommand(name).into_iter().flat_map(Command::get_arguments) {
        let id = arg.get_id().as_str();
        let mut paths = matches.try_get_many::<PathBuf>(id).ok().flatten().into_iter().flatten();
        if OUTPUTS.contains(&id) && paths.any(|path| is_stdout(path)) {
            return Err(Error::input(
                flag(arg),
                "stdout is for the JSON object",
                "write to another file, or leave out --json",
            ));
        }
    }
    Ok(())
}

/// Outputs of one format each: the command (`""` for any), the flag, and the format.
const FORMATS: [(&str, &str, &str); 8] = [
    ("partition", "output", "json"),
    ("arrange", "output", "json"),
    ("balance", "output", "json"),
    ("measure", "output", "json"),
    ("merge", "output", "json"),
    ("detect", "output", "toml"),
    ("", "models_out", "json"),
    ("", "report", "json"),
];

/// Extensions of formats that people know: a file with one of these names holds that format.
const KNOWN: [&str; 20] = [
    "json", "toml", "yaml", "yml", "xml", "csv", "tsv", "ini", "md", "html", "htm", "svg", "png", "jpg",
    "pdf", "npy", "npz", "mtx", "h5", "xlsx",
];

/// Rejects an output whose name promises a format that its flag does not write.
///
/// # Errors
/// There is one: exit code 2.
pub fn check_formats(matches: &ArgMatches) -> Result<()> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    for (_, id, format) in FORMATS.iter().filter(|(command, ..)| command.is_empty() || *command == name) {
        let Some(path) = matches.try_get_one::<PathBuf>(id).ok().flatten() else { continue };
        // A measured network is a platform file.
        let network = name == "measure" && matches.get_flag("network");
        let format = if network { "toml" } else { format };
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        if extension != format && KNOWN.contains(&extension.as_str()) {
            return Err(Error::input(
                path.display().to_string(),
                format!("this file is written as {}, not as {extension}", format.to_uppercase()),
                format!("name it {}", path.with_extension(format).display()),
            ));
        }
    }
    Ok(())
}

/// Whether a name is one of this process's stdout, or of the file or pipe behind it.
fn is_stdout(path: &Path) -> bool {
    const STDOUT: &str = "/dev/stdout";
    let named = [STDOUT, "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name));
    named || is_same(path, Path::new(STDOUT))
}

/// Whether two names are of one file. Devices, such as /dev/null, take what several outputs write.
#[cfg(unix)]
fn is_same(path: &Path, other: &Path) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    match [path, other].map(std::fs::metadata) {
        [Ok(a), Ok(b)] => (a.dev(), a.ino()) == (b.dev(), b.ino()) && !a.file_type().is_char_device(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same(_: &Path, _: &Path) -> bool {
    false
}

/// A flag as it is typed.
fn flag(arg: &Arg) -> String {
    arg.get_short()
        .map_or_else(|| format!("--{}", arg.get_id().as_str().replace('_', "-")), |c| format!("-{c}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;
    use crate::args::headings::command;

    fn checked(words: &[&str]) -> Result<()> {
        let mut grammar = command();
        let all = ["apportion"].iter().chain(words);
        let matches = grammar.try_get_matches_from_mut(all).unwrap();
        check(&grammar, &matches)
    }

    #[test]
    fn stdout_is_for_one_json_object() {
        let checked = |words: &[&str]| {
            let mut grammar = command();
            let matches = grammar.try_get_matches_from_mut(["apportion"].iter().chain(words)).unwrap();
            check_stdout(&grammar, &matches)
        };
        let plan = ["partition", "--units", "4", "--speeds", "1,1", "-o", "/dev/stdout"];
        checked(&plan).unwrap();
        for line in [&[&plan[..], &["--json"]].concat(), &[&["--json"], &plan[..]].concat()] {
            let refused = checked(line).unwrap_err();
            assert!(refused.exit_code() == 2 && refused.to_string().starts_with("-o: stdout"), "{refused}");
        }
        assert!(checked(&["matmul", "a", "b", "--report", "/dev/fd/1", "--json"]).is_err());
        checked(&["matmul", "a", "b", "--report", "r.json", "--json"]).unwrap();
        checked(&["matmul", "a", "b", "--report", "/dev/null", "--json"]).unwrap();
    }

    #[test]
    fn a_name_does_not_promise_another_format() {
        let checked = |line: &str| {
            let words = ["apportion"].into_iter().chain(line.split(' '));
            check_formats(&command().try_get_matches_from(words).unwrap())
        };
        for line in [
            "partition --units 4 --speeds 1,1 -o plan.yaml",
            "partition --units 4 --speeds 1,1 -o plan.TOML",
            "detect -o here.json",
            "measure -o models.csv",
            "measure --network -o links.json",
            "matmul a b --report run.html",
            "balance --units 4 --models-out m.xml -- true",
        ] {
            let refused = checked(line).expect_err(line);
            assert!(refused.exit_code() == 2 && refused.to_string().contains("name it"), "{refused}");
        }
        for line in [
            "partition --units 4 --speeds 1,1 -o plan.json",
            "partition --units 4 --speeds 1,1 -o plan",
            "partition --units 4 --speeds 1,1 -o my.plan",
            "measure --network -o links.toml",
            "partition --units 4 --speeds 1,1 --export csv --export-to plan.csv",
            "matmul a b -o c.npy --report run.json",
        ] {
            checked(line).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_of_one_file_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| directory.path().join(name));
        std::fs::write(&file, "").unwrap();
        std::fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(is_same(&file, &file) && is_same(&link, &file) && !is_same(&other, &file));
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
        assert!(!is_same(&directory.path().join("none"), &file));
    }

    #[test]
    fn no_command_replaces_its_own_files() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let (file, other) = (at("a.npy"), at("b.npy"));
        std::fs::write(&file, "").unwrap();
        let all: [&[&str]; 13] = [
            &["advect", "--field", &other, "--courant", &format!("0.1,{file}"), "--steps", "1", "-o", &file],
            &["advect", "--field", &file, "--courant", "0", "--steps", "1", "--report", &file],
            &["advect", "--field", &file, "--courant", "0", "--steps", "1", "-o", &other, "--trace", &other],
            &["partition", "--units", "9", "--export", "json", "--export-to", &other, "-o", &other],
            &["partition", "--plan", &file, "--export", "json", "--export-to", &file],
            &["measure", "--platform", &file, "-o", &file],
            &["plot", "--models", &file, "--svg", &file],
            &[
                "balance",
                "--units",
                "9",
                "--processors",
                "2",
                "-o",
                &other,
                "--models-out",
                &other,
                "--",
                "true",
            ],
            &["merge", &file, &other, "-o", &file],
            &["simulate", "--plan", &file, "--platform", &other, "--trace", &file],
            &["arrange", "--plan", &file, "--platform", &other, "-o", &file],
            &["mdem", &file, "--gantt", &file],
            &["study", "--processors", "2", "-o", &other, "--svg", &other],
        ];
        for words in all {
            let refused = checked(words).expect_err(words[0]);
            assert_eq!(refused.exit_code(), 2);
            assert!(refused.to_string().contains("would replace"), "{refused}");
        }
        checked(&["merge", &file, &file, "-o", &other]).unwrap();
        checked(&["advect", "--field", &file, "--courant", "0", "--steps", "1", "-o", &other]).unwrap();
        // Its own check lets C replace an operand.
        checked(&["matmul", &file, &file, "-o", &file]).unwrap();
    }

    /// Whoever adds a flag for a file says here which it is.
    #[test]
    fn every_flag_of_a_file_is_an_output_or_an_input() {
        let inputs = [
            "field",
            "plan",
            "platform",
            "models",
            "surfaces",
            "a",
            "b",
            "c_in",
            "workcell",
            "carry_over",
            "files",
            "traces",
        ];
        for command in command().get_subcommands() {
            for arg in command.get_arguments() {
                let names: Vec<_> =
                    arg.get_value_names().unwrap_or_default().iter().map(|n| n.as_str()).collect();
                if names == ["FILE"] {
                    let id = arg.get_id().as_str();
                    assert!(OUTPUTS.contains(&id) || inputs.contains(&id), "{id}");
                }
            }
        }
    }
}
