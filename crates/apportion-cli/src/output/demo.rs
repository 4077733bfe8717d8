//! The demo's runs side by side.

use super::provenance::quoted;
use apportion::error::{Error, Result};
use apportion::output::write_whole;
use apportion::product::RunReport;
use apportion::units;
use apportion_report::{off, table};
use std::path::{Path, PathBuf};

/// The file by which the demo recognises its own directory.
pub const SIGN: &str = "demo.json";

/// A directory that is the demo's own: new, empty, or written by an earlier demo.
pub struct Folder(PathBuf);

impl Folder {
    /// # Errors
    /// The directory cannot be created, or has files of others.
    pub fn new(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(|e| Error::file(path, "create", e))?;
        let mut inside = std::fs::read_dir(path).map_err(|e| Error::file(path, "read", e))?;
        if inside.next().is_some() && !path.join(SIGN).is_file() {
            return Err(Error::input(
                "--dir",
                format!("{} has files that the demo did not write", path.display()),
                "pass a new or empty directory",
            ));
        }
        Ok(Self(path.to_owned()))
    }

    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        write_whole(self.0.join(name), text.as_bytes())
    }
}

/// What the demo leaves behind.
pub fn written(directory: &Path) -> String {
    let files = [
        ("layouts.svg", "the three layouts side by side"),
        ("times.svg", "forecast and measured times"),
        ("trace.svg", "its run and its forecast; trace.json for Perfetto"),
        ("plan.svg", "the square corner's layout"),
        ("platform.toml, models.json", "the machine, and its measured speeds"),
        ("square-corner.json", "the plan; also straight-line.json, even-split.json"),
    ];
    let rows = files.map(|(name, what)| format!("  {name:27} {what}\n")).concat();
    format!("Written to {}:\n{rows}", directory.display())
}

/// The commands that explain the forecast and multiply matrices of the reader's.
pub fn explaining(directory: &Path, best: &RunReport) -> String {
    let last = best.plan.processors.last().map_or("", String::as_str);
    let file = |name: &str| quoted(&directory.join(name).display().to_string());
    format!(
        "Why this long? Ask what the slow processor waits for:\n  \
        apportion simulate --plan {} \\\n    --platform {} --models {} \\\n    --flow {} --block {} --explain {last}\n\
        Next: apportion matmul A.npy B.npy -o C.npy",
        file("square-corner.json"),
        file("platform.toml"),
        file("models.json"),
        best.order.flow,
        best.order.block,
    )
}

/// One row per run.
pub fn comparison(reports: &[RunReport]) -> String {
    let slowest = reports.iter().map(RunReport::seconds).fold(0.0, f64::max);
    let rows = reports.iter().map(|r| {
        let seconds = r.seconds();
        vec![
            r.plan.method.clone(),
            units::show_count(u128::from(r.volume())),
            units::show_seconds(r.forecast_seconds),
            units::show_seconds(seconds),
            off(r.forecast_seconds, seconds),
            format!("{:.2} x", slowest / seconds),
        ]
    });
    let all = reports.iter().all(|r| r.error_probability.is_some());
    let verified = if all { "all products are verified\n" } else { "" };
    let header = ["plan", "elements moved", "forecast", "measured", "forecast is", "speed-up"];
    format!("{}{verified}", table(&header, rows))
}
