//! Where the results of a product go: the matrix, the report, the trace, the picture, and the words.

use crate::console::Console;
use crate::output::chosen::Chosen;
use crate::output::{appear, open, picture, timeline};
use crate::prepare::product::{Prepared, Running};
use apportion::error::Result;
use apportion::output::OutputFile;
use apportion::report::RunReport;
use std::path::PathBuf;

/// Where the words about a run go.
pub struct Files {
    report: Option<OutputFile>,
    trace: Option<OutputFile>,
    svg: Option<OutputFile>,
}

impl Files {
    /// Opens them.
    pub fn open(running: &Running) -> Result<Self> {
        Ok(Self {
            report: open(running.report.as_ref())?,
            trace: open(running.trace.as_ref())?,
            svg: open(running.svg.as_ref())?,
        })
    }
}

/// Where a result goes, and as what.
pub struct Target {
    pub file: Option<OutputFile>,
    pub about: Files,
    /// Truth values are written as bool.
    pub bool: bool,
    /// Seconds that reading took.
    pub read_seconds: f64,
}

impl Target {
    /// Opens all files before the work: one that cannot be written is told at once.
    pub fn open(output: Option<&PathBuf>, running: &Running) -> Result<Self> {
        Ok(Self { file: open(output)?, about: Files::open(running)?, bool: false, read_seconds: 0.0 })
    }
}

/// Prints what happened and what had been chosen, and writes it to the files that were asked for.
pub fn tell_and_keep(
    report: &RunReport,
    prepared: &Prepared,
    args: &Running,
    files: Files,
    console: &Console,
) -> Result<()> {
    let chosen = Chosen::of(prepared);
    let mut value = report.to_value();
    chosen.add_to(&mut value, &prepared.platform);
    appear([
        (files.report, &|| format!("{value:#}\n")),
        (files.trace, &|| timeline(args.trace.as_ref(), &report.trace, &report.plan.processors)),
        (files.svg, &|| picture(&report.plan, &prepared.platform)),
    ])?;
    console.detail(report.pairs_text());
    console.result(|| value.clone(), || report.to_text() + &chosen.text(&prepared.platform));
    Ok(())
}
