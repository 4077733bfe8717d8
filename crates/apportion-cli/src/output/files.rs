//! Output files: opened before the work, and written completely or not at all.

use apportion::error::{Error, Result};
use apportion::output::{OutputFile, is_stream};
use apportion::plan::Plan;
use apportion::platform::Platform;
use apportion::trace::Trace;
use apportion_report::{Timeline, chrome_timeline, plan_svg, timeline_svg};
use std::path::{Path, PathBuf};

/// Starts an output file before the work, so that one that cannot be written is reported at once.
pub fn open(path: Option<&PathBuf>) -> Result<Option<OutputFile>> {
    path.map(OutputFile::create).transpose()
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

/// Whether a table goes to a .csv or a .json file, or to a stream, as CSV.
pub fn is_csv(path: &Path) -> Result<bool> {
    if is_stream(path) {
        return Ok(true);
    }
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
