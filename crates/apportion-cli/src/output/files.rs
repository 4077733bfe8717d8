//! Output files: opened before the work, and written completely or not at all.

use apportion::error::{Error, Result};
use apportion::output::OutputFile;
use apportion::plan::Plan;
use apportion::platform::Platform;
use apportion::report::{Timeline, chrome_timeline, plan_svg, timeline_svg};
use apportion::trace::Trace;
use std::path::{Path, PathBuf};

/// Starts an output file before the work, so that one that cannot be written is reported at once.
pub fn open(path: Option<&PathBuf>) -> Result<Option<OutputFile>> {
    path.map(OutputFile::create).transpose()
}

/// Checks that outputs do not replace one another, nor an input. Each comes with its flag.
///
/// # Errors
/// Two outputs with one target, or an output that is an input: exit code 2.
pub fn distinct(outputs: &[(&str, Option<&PathBuf>)], inputs: &[Option<&Path>]) -> Result<()> {
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for &(flag, path) in outputs {
        let Some(path) = path else { continue };
        let Some(target) = target(path) else { continue };
        let name = path.display();
        if let Some((other, _)) = known.iter().find(|(_, there)| *there == target) {
            let what = format!("{name} is also the output of {other}, which it would replace");
            return Err(Error::input(flag, what, "name different files"));
        }
        if inputs.iter().flatten().any(|input| self::target(input).as_ref() == Some(&target)) {
            let what = format!("{name} is an input, which it would replace");
            return Err(Error::input(flag, what, "name another file"));
        }
        known.push((flag, target));
    }
    Ok(())
}

/// The file that a path leads to; `None` for devices and pipes, which take any number of outputs, and for
/// paths that cannot be opened anyway.
fn target(path: &Path) -> Option<PathBuf> {
    match std::fs::metadata(path) {
        Ok(found) => found.is_file().then(|| path.canonicalize().ok())?,
        Err(_) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Some(parent.unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?))
        }
    }
}

/// Fills the given files; they appear only when all are full.
pub fn appear<const N: usize>(files: [(Option<OutputFile>, &dyn Fn() -> String); N]) -> Result<()> {
    appear_with(Vec::new(), files)
}

/// The same together with files that are full already.
pub fn appear_with<const N: usize>(
    mut full: Vec<OutputFile>,
    files: [(Option<OutputFile>, &dyn Fn() -> String); N],
) -> Result<()> {
    for (file, text) in files {
        if let Some(mut file) = file {
            file.put(text().as_bytes())?;
            full.push(file);
        }
    }
    OutputFile::commit_all(full)
}

/// A trace in the format of the file's name: a picture (.svg), or Chrome trace-event JSON.
pub fn timeline(path: Option<&PathBuf>, trace: &Trace, names: &[String]) -> String {
    timeline_of(path, &Timeline::new(trace, names))
}

/// The same with a title and the forecast's lanes.
pub fn timeline_of(path: Option<&PathBuf>, timeline: &Timeline<'_>) -> String {
    let svg = path.and_then(|path| Path::extension(path)).is_some_and(|e| e.eq_ignore_ascii_case("svg"));
    if svg { timeline_svg(timeline) } else { chrome_timeline(timeline).to_string() }
}

/// Whether a table goes to a .csv or a .json file.
pub fn is_csv(path: &Path) -> Result<bool> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => Ok(true),
        Some("json") => Ok(false),
        _ => Err(Error::input(
            "--output",
            format!("{} is neither a .csv nor a .json file", path.display()),
            "use a file name that ends in .csv or .json",
        )),
    }
}

/// A picture of a plan, coloured by the platform's clusters.
pub fn picture(plan: &Plan, platform: &Platform) -> String {
    let clusters: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
    plan_svg(plan, &clusters)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;

    #[test]
    fn outputs_replace_neither_one_another_nor_an_input() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("a.npy"), "input").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("a.npy", at("link")).unwrap();
        let (c, again, input) = (at("c"), directory.path().join("./c"), at("a.npy"));
        let both =
            |x: &PathBuf, y: &PathBuf| distinct(&[("-o", Some(x)), ("--report", Some(y))], &[Some(&input)]);
        let refused = |x: &PathBuf, y: &PathBuf, word: &str| {
            let error = both(x, y).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(word), "{error}");
        };
        both(&c, &at("d")).unwrap();
        refused(&c, &c, "also the output of -o");
        refused(&c, &again, "also the output of -o");
        refused(&c, &input, "is an input");
        #[cfg(unix)]
        refused(&c, &at("link"), "is an input");
        let null = PathBuf::from("/dev/null");
        both(&null, &null).unwrap();
        distinct(&[("-o", None), ("--svg", Some(&c))], &[None]).unwrap();
    }
}
