//! Output files: opened before the work, and written completely or not at all.

use crate::console::monitor;
use apportion::error::{Error, Result};
use apportion::output::OutputFile;
use apportion::plan::Plan;
use apportion::platform::Platform;
use apportion::report::{chrome_trace, plan_svg, trace_svg};
use apportion::trace::Trace;
use std::path::{Path, PathBuf};

/// Starts an output file before the work, so that one that cannot be written is reported at once. From the
/// first file on, Ctrl-C removes temporary files.
pub fn open(path: Option<&PathBuf>) -> Result<Option<OutputFile>> {
    let _ = monitor();
    path.map(OutputFile::create).transpose()
}

/// Fills the given files; they appear only when all are full.
pub fn appear<const N: usize>(files: [(Option<OutputFile>, &dyn Fn() -> String); N]) -> Result<()> {
    let mut full = Vec::with_capacity(N);
    for (file, text) in files {
        if let Some(mut file) = file {
            file.put(text().as_bytes())?;
            full.push(file);
        }
    }
    full.into_iter().try_for_each(OutputFile::commit)
}

/// A trace in the format of the file's name: a picture (.svg), or Chrome trace-event JSON.
pub fn timeline(path: Option<&PathBuf>, trace: &Trace, names: &[String]) -> String {
    let svg = path.and_then(|path| Path::extension(path)).is_some_and(|e| e.eq_ignore_ascii_case("svg"));
    if svg { trace_svg(trace, names) } else { chrome_trace(trace, names).to_string() }
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
