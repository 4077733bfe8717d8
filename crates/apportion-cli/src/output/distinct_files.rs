//! Files that no command may lose: outputs that would replace each other or an input. Everything that a
//! command writes is compared here, before it begins.

use crate::cli::Command as Typed;
use apportion::error::{Error, Result};
use apportion::job::{block_files, is_layout_file};
use apportion::output::{Target, targets};
use apportion_advect::snapshot;
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};

/// The flags of all commands that name an output file.
pub const OUTPUTS: [&str; 14] = [
    "output",
    "joblog",
    "pivots",
    "links",
    "report",
    "trace",
    "svg",
    "export_to",
    "models_out",
    "predecessors",
    "gantt",
    "max_plus",
    "parts",
    "points",
];

/// The operands of products, which C may replace.
const OPERANDS: [&str; 3] = ["a", "b", "c_in"];

/// A file that is named on the command line, or by a file that is.
struct Named {
    flag: String,
    path: PathBuf,
    /// True for an operand, and for an output that may replace one.
    of_product: bool,
    targets: Vec<Target>,
}

impl Named {
    fn new(flag: String, path: &Path, of_product: bool, output: bool) -> Self {
        Self { flag, path: path.to_path_buf(), of_product, targets: targets(path, output) }
    }

    fn is_same_as(&self, other: &Self) -> bool {
        self.targets.iter().any(|target| other.targets.contains(target))
    }
}

/// Files that a command names itself, in a directory that is named on the command line.
struct Pattern {
    flag: &'static str,
    directory: PathBuf,
    /// The beginning of all their names.
    prefix: String,
    /// True for the rest of a name.
    rest: Box<dyn Fn(&str) -> bool>,
}

impl Pattern {
    fn new(flag: &'static str, directory: &Path, prefix: impl Into<String>, rest: fn(&str) -> bool) -> Self {
        Self { flag, directory: directory.to_path_buf(), prefix: prefix.into(), rest: Box::new(rest) }
    }

    /// The only file of a name.
    fn of_name(flag: &'static str, directory: &Path, name: &str) -> Self {
        Self::new(flag, directory, name, str::is_empty)
    }

    fn has(&self, name: &str) -> bool {
        name.strip_prefix(&self.prefix).is_some_and(|rest| (self.rest)(rest))
    }

    /// Whether one of the files is this one, under whatever name: those of the names that are there already
    /// may be links.
    fn includes(&self, file: &Named) -> bool {
        let Ok(directory) = self.directory.canonicalize() else { return false };
        let here = |target: &Target| match target {
            Target::Name { directory: there, name } => *there == directory && self.has(name),
            _ => false,
        };
        if file.targets.iter().any(here) {
            return true;
        }
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| self.has(name)));
        named
            .into_iter()
            .any(|entry| targets(&entry.path(), true).iter().any(|target| file.targets.contains(target)))
    }

    fn meets(&self, other: &Self) -> bool {
        let same = match [&self.directory, &other.directory].map(|directory| directory.canonicalize()) {
            [Ok(a), Ok(b)] => a == b,
            _ => self.directory == other.directory,
        };
        same && (self.prefix.starts_with(&other.prefix) || other.prefix.starts_with(&self.prefix))
    }
}

/// The directory of a file.
fn beside(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `-000100.npy`, `-0-1.npy`: a rest of digits and hyphens with this ending.
fn is_numbered(rest: &str, ending: &str) -> bool {
    let number = rest.strip_suffix(ending);
    number.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

/// The files of a command that it names itself.
fn patterns(command: &Typed) -> Vec<Pattern> {
    let mut all = Vec::new();
    let (output, checkpoint) = match command {
        Typed::Matmul(args) => {
            (args.output.as_ref(), args.panels.checkpoint.as_ref().or(args.panels.resume.as_ref()))
        }
        Typed::Factor(args) => (None, args.checkpoint.as_ref().or(args.resume.as_ref())),
        Typed::Power(args) => (args.output.as_ref(), None),
        Typed::Closure(args) => (args.output.as_ref(), None),
        _ => (None, None),
    };
    if let Some(path) = output.filter(|path| is_layout_file(path)) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        all.push(Pattern::new("-o", beside(path), format!("{stem}-"), |rest| is_numbered(rest, ".npy")));
    }
    if let Some(directory) = checkpoint {
        let own = |prefix: &str, rest| Pattern::new("--checkpoint", directory, prefix, rest);
        all.push(own("checkpoint.", |rest| ["json", "lock"].contains(&rest)));
        all.push(own("panel-", |rest| rest.ends_with(".npy")));
        all.push(own(".checkpoint-", |_| true));
    }
    match command {
        Typed::Advect(args) => {
            if let (Some(every), Some(output)) = (args.every, &args.output) {
                let steps = args.steps;
                let first = snapshot(output, 0);
                let name = first.file_name().unwrap_or_default().to_string_lossy();
                let prefix = name.strip_suffix("000000.npy").unwrap_or(&name).to_owned();
                let rest = move |rest: &str| {
                    let step = rest.strip_suffix(".npy").and_then(|step| step.parse::<u64>().ok());
                    step.is_some_and(|step| step % every == 0 && step < steps)
                };
                let directory = beside(output).to_path_buf();
                all.push(Pattern { flag: "--every", directory, prefix, rest: Box::new(rest) });
            }
            if let Some(frames) = &args.frames {
                all.push(Pattern::new("--frames", frames, "frame-", |rest| is_numbered(rest, ".png")));
            }
            if let Some(directory) = args.checkpoint.as_ref().or(args.resume.as_ref()) {
                all.push(Pattern::of_name("--checkpoint", directory, "checkpoint.json"));
                // Older fields of such names are removed.
                all.push(Pattern::new("--checkpoint", directory, "field-", |_| true));
            }
        }
        Typed::Mdem(args) => {
            for prefix in ["F_", "S_"] {
                let directory = args.matrices.iter();
                all.extend(directory.map(|directory| {
                    Pattern::new("--matrices", directory, prefix, |rest| rest.ends_with(".npy"))
                }));
            }
        }
        Typed::Simulate(args) => {
            if let Some(directory) = &args.export_simgrid {
                for name in ["platform.xml", "hostfile", "traces.txt"] {
                    all.push(Pattern::of_name("--export-simgrid", directory, name));
                }
                all.push(Pattern::new("--export-simgrid", directory, "rank-", |rest| {
                    is_numbered(rest, ".txt")
                }));
            }
        }
        Typed::Study(args) => {
            for name in ["study-columns.svg", "study-non-rectangular.svg"] {
                all.extend(args.svg.iter().map(|directory| Pattern::of_name("--svg", directory, name)));
            }
        }
        _ => {}
    }
    all
}

/// Checks the files of the command that was typed, and returns whether an output goes to stdout.
///
/// # Errors
/// Exit code 2: two outputs with one target, or an output that is an input, also among the files that the
/// command names itself; two inputs from one stream; an output to stdout where that is for the JSON object or
/// for an export.
pub fn check(grammar: &Command, matches: &ArgMatches, command: &Typed) -> Result<bool> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(false) };
    let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
    // Some of the Courant numbers may be files.
    let courant = matches.try_get_one::<String>("courant").ok().flatten();
    for name in courant.into_iter().flat_map(|text| text.split(',')) {
        inputs.push(Named::new("--courant".into(), Path::new(name.trim()), false, false));
    }
    let product = matches!(command, Typed::Matmul(_) | Typed::Power(_) | Typed::Closure(_));
    for arg in grammar.find_subcommand(name).into_iter().flat_map(Command::get_arguments) {
        let id = arg.get_id().as_str();
        let paths = matches.try_get_many::<PathBuf>(id).ok().flatten().into_iter().flatten();
        let directory = arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "DIR"));
        for path in paths {
            if OUTPUTS.contains(&id) {
                outputs.push(Named::new(flag(arg), path, product && id == "output", true));
            } else if !directory {
                let operand = product && OPERANDS.contains(&id);
                inputs.push(Named::new(flag(arg), path, operand, false));
                if operand && !apportion::files::is_stream(path) {
                    let blocks = block_files(path)?;
                    inputs.extend(blocks.iter().map(|block| Named::new(flag(arg), block, true, false)));
                }
            }
        }
    }
    let patterns = patterns(command);
    check_outputs(&outputs, &inputs)?;
    check_patterns(&patterns, &outputs, &inputs)?;
    check_streams(&inputs)?;
    let stdout = targets(Path::new("/dev/stdout"), true);
    let taken = outputs.iter().find(|output| output.targets.iter().any(|target| stdout.contains(target)));
    let Some(output) = taken else { return Ok(false) };
    let free =
        |what: &str, remedy: &str| Err(Error::input(&output.flag, format!("stdout is for {what}"), remedy));
    if matches.get_flag("json") {
        return free("the JSON object", "write to another file, or leave out --json");
    }
    let has = |id: &str| matches.try_contains_id(id).unwrap_or(false);
    if has("export") && !has("export_to") {
        return free("the export", "write to another file, or name the export's by --export-to");
    }
    Ok(true)
}

fn check_outputs(outputs: &[Named], inputs: &[Named]) -> Result<()> {
    for (at, output) in outputs.iter().enumerate() {
        let name = output.path.display();
        if let Some(other) = outputs[..at].iter().find(|other| other.is_same_as(output)) {
            let what = format!("{name} is also the output of {}, which it would replace", other.flag);
            return Err(Error::input(&output.flag, what, "name different files"));
        }
        // C may replace an operand, but not the layout file that says where an operand's blocks are.
        let allowed = |input: &Named| output.of_product && input.of_product && !is_layout_file(&output.path);
        if inputs.iter().any(|input| !allowed(input) && input.is_same_as(output)) {
            let what = format!("{name} is an input, which it would replace");
            return Err(Error::input(&output.flag, what, "name another file"));
        }
    }
    Ok(())
}

fn check_patterns(patterns: &[Pattern], outputs: &[Named], inputs: &[Named]) -> Result<()> {
    for (at, pattern) in patterns.iter().enumerate() {
        if let Some(file) = inputs.iter().find(|file| pattern.includes(file)) {
            let what = format!("its files could replace {}, which is an input", file.path.display());
            return Err(Error::input(pattern.flag, what, "name another file, or another directory"));
        }
        if let Some(file) = outputs.iter().find(|file| pattern.includes(file)) {
            let (path, flag) = (file.path.display(), &file.flag);
            let what = format!("its files could replace {path}, the output of {flag}");
            return Err(Error::input(pattern.flag, what, "name another file, or another directory"));
        }
        let others = patterns[..at].iter().filter(|other| other.flag != pattern.flag);
        if let Some(other) = others.into_iter().find(|other| other.meets(pattern)) {
            let what = format!("its files could replace those of {}", other.flag);
            return Err(Error::input(pattern.flag, what, "name another file, or another directory"));
        }
    }
    Ok(())
}

/// A stream can be read only once.
fn check_streams(inputs: &[Named]) -> Result<()> {
    let number =
        |input: &Named| input.targets.iter().find(|target| matches!(target, Target::Descriptor(_))).cloned();
    for (at, input) in inputs.iter().enumerate() {
        let Some(target) = number(input) else { continue };
        if let Some(other) = inputs[..at].iter().find(|other| other.targets.contains(&target)) {
            let what = format!("{} is also the input of {}", input.path.display(), other.flag);
            return Err(Error::input(
                &input.flag,
                what,
                "a stream is read once: name a file for one of them",
            ));
        }
    }
    Ok(())
}

/// Outputs of one format each: the command (`""` for any), the flag, and the format.
const FORMATS: [(&str, &str, &str); 10] = [
    ("partition", "output", "json"),
    ("arrange", "output", "json"),
    ("balance", "output", "json"),
    ("measure", "output", "json"),
    ("measure", "links", "toml"),
    ("merge", "output", "json"),
    ("detect", "output", "toml"),
    ("report", "output", "html"),
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

/// A flag as it is typed.
fn flag(arg: &Arg) -> String {
    let name = arg.get_id().as_str();
    match arg.get_short() {
        _ if arg.is_positional() => name.to_uppercase(),
        Some(short) => format!("-{short}"),
        None => format!("--{}", arg.get_long().unwrap_or(name)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;
    use crate::args::headings::command;
    use clap::FromArgMatches;

    fn checked(words: &[&str]) -> Result<()> {
        let mut grammar = command();
        let all = ["apportion"].iter().chain(words);
        let matches = grammar.try_get_matches_from_mut(all).unwrap();
        let typed = crate::cli::Arguments::from_arg_matches(&matches).unwrap();
        check(&grammar, &matches, &typed.command).map(drop)
    }

    #[test]
    fn stdout_is_for_one_json_object() {
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

    /// Names that a command makes, and names of one file through links.
    #[cfg(unix)]
    #[test]
    fn names_that_a_command_makes_and_links_replace_nothing() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        for name in ["f-000002.npy", "x.npy", "a.npy", "kept"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::hard_link(at("x.npy"), at("hard.npy")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        symlink(at("x.npy"), at("y-000001.npy")).unwrap();
        std::fs::create_dir(at("dir")).unwrap();
        let advect =
            |words: &[&str]| checked(&[&["advect", "--courant", "0", "--steps", "4"][..], words].concat());
        let matmul = |words: &[&str]| checked(&[&["matmul", &at("a.npy"), &at("x.npy")][..], words].concat());
        let (out, y) = (at("f.npy"), at("dir/../y.npy"));
        let refused = [
            advect(&["--field", &at("f-000002.npy"), "--every", "1", "-o", &out]),
            advect(&["--field", &at("x.npy"), "--every", "2", "-o", &out, "--report", &at("f-000002.npy")]),
            advect(&["--field", &at("x.npy"), "--every", "1", "-o", &y]),
            advect(&["--field", &at("x.npy"), "-o", &at("hard.npy")]),
            advect(&[
                "--field",
                &at("x.npy"),
                "--every",
                "2",
                "-o",
                &at("dir/field.npy"),
                "--checkpoint",
                &at("dir"),
            ]),
            advect(&["--field", &at("x.npy"), "--frames", &at("dir"), "--svg", &at("dir/frame-000000.png")]),
            matmul(&["-o", &at("c.json"), "--report", &at("c-0.npy")]),
            matmul(&["-o", &at("dangling"), "--report", &at("missing")]),
            matmul(&["-o", &at("c.npy"), "--checkpoint", &at("dir"), "--report", &at("dir/checkpoint.json")]),
            matmul(&["-o", &at("a.json"), "--report", &at("dir/../a.json")]),
        ];
        for (number, refused) in refused.into_iter().enumerate() {
            assert_eq!(refused.expect_err(&number.to_string()).exit_code(), 2);
        }
        for allowed in [
            advect(&["--field", &at("f-000002.npy"), "--every", "3", "-o", &out]),
            advect(&["--field", &at("x.npy"), "--every", "1", "-o", &out, "--report", &at("f-000004.npy")]),
            matmul(&["-o", &at("a.npy")]),
            matmul(&["-o", &at("dir/c.npy"), "--checkpoint", &at("dir")]),
            matmul(&["-o", "/dev/null", "--report", "/dev/null"]),
        ] {
            allowed.unwrap();
        }
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
            "costs",
            "unit_memory",
            "graph",
            "coordinates",
            "given",
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
