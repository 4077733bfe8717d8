//! The demo's runs side by side.

use super::provenance::quoted;
use apportion::error::{Error, Result};
use apportion::measure::Balance;
use apportion::output::write_whole;
use apportion::platform::Platform;
use apportion::product::RunReport;
use apportion::units;
use apportion_report::{About, gain_lines, gain_text, pairs, table};
use std::path::{Path, PathBuf};

/// The file by which the demo recognises its own directory.
pub const SIGN: &str = "demo.json";
/// The program that is divided as the matrices are.
pub const SCRIPT: &str = "integrate.sh";

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

/// What the demo leaves behind; `chosen` is the name of the chosen plan's file.
pub fn written(directory: &Path, chosen: &str) -> String {
    let plan = format!("{chosen}.json");
    let files = [
        ("layouts.svg", "the layouts side by side"),
        ("times.svg", "forecast and measured times"),
        ("trace.svg", "its run and forecast; trace.json for Perfetto"),
        ("plan.svg", "its layout"),
        ("platform.toml, models.json", "the machines; the speeds that were measured"),
        (plan.as_str(), "the plan; the others are beside it"),
    ];
    let rows = files.map(|(name, what)| format!("  {name:27} {what}\n")).concat();
    format!("Written to {}:\n{rows}", directory.display())
}

/// The program's division: an even split, the fastest machine alone, and balanced.
pub fn program_text(found: &Balance, platform: &Platform, items: u64) -> String {
    let plan = found.plan(platform);
    let kept = found.best_round();
    let total = items.max(1) as f64;
    let shares: Vec<String> =
        kept.shares.iter().map(|share| format!("{:.1}", 100.0 * *share as f64 / total)).collect();
    let mut facts = vec![(
        "balanced",
        format!(
            "{} in round {}, shares {} %",
            units::show_seconds(kept.longest()),
            found.best + 1,
            shares.join(" / ")
        ),
    )];
    facts.splice(0..0, gain_lines(&plan, About::default()).into_iter().filter(|(name, _)| *name != "gain"));
    facts.extend(gain_text(&plan).map(|text| ("gain", text)));
    format!("{SCRIPT}, a program over {} items:\n{}\n", units::show_count(u128::from(items)), pairs(&facts))
}

/// The commands that explain the forecast and multiply matrices of the reader's.
pub fn explaining(directory: &Path, best: &RunReport, chosen: &str) -> String {
    let last = best.plan.processors.last().map_or("", String::as_str);
    let file = |name: &str| quoted(&directory.join(name).display().to_string());
    let overlap = if best.order.overlaps() { " --overlap" } else { "" };
    format!(
        "What does the last machine wait for?\n  \
        apportion simulate --plan {} \\\n    --platform {} \\\n    --flow {}{overlap} --block {} --explain {last}\n\
        Next: apportion matmul A.npy B.npy -o C.npy",
        file(&format!("{chosen}.json")),
        file("platform.toml"),
        best.order.flow,
        best.order.block,
    )
}

/// One row per run; the first two are those without a plan, whose better one the others are compared with.
pub fn comparison(reports: &[RunReport]) -> String {
    let without = reports[..2].iter().map(RunReport::seconds).fold(f64::INFINITY, f64::min);
    let rows = reports.iter().enumerate().map(|(i, r)| {
        let seconds = r.seconds();
        vec![
            r.plan.method.clone(),
            units::show_count(u128::from(r.volume())),
            units::show_seconds(r.forecast_seconds),
            units::show_seconds(seconds),
            if i < 2 { String::new() } else { format!("{:.2} x", without / seconds) },
        ]
    });
    let all = reports.iter().all(|r| r.error_probability.is_some());
    let verified =
        if all { "all products are verified; the gain is over the better of the first two\n" } else { "" };
    let header = ["plan", "elements moved", "forecast", "measured", "gain"];
    format!("{}{verified}", table(&header, rows))
}
