//! `apportion report`.

use crate::console::Console;
use apportion::error::{Error, Result};
use apportion::input::read_text;
use apportion::output::OutputFile;
use apportion_report::{Document, pairs, report_page};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion matmul A.npy B.npy -o C.npy --report run.json\n  \
    apportion report run.json -o report.html\n  \
    apportion report monday.json tuesday.json -o compared.html\n\
    The page is one file, for screens of any width, light and dark, and for paper. Several results are \
    compared first.")]
pub struct ReportArgs {
    /// Results: run.json, plan.json, models.json, or what simulate, balance and mdem print with --json.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write the page to this file (report.html).
    #[arg(long, short, required = true, value_name = "FILE", help_heading = "Output")]
    pub output: PathBuf,
}

pub fn run(args: &ReportArgs, console: &Console) -> Result<()> {
    let mut output = OutputFile::create(&args.output)?;
    let documents = args.files.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    let page = report_page(&documents)?;
    output.put(page.as_bytes())?;
    output.commit()?;
    let (path, results) = (args.output.display().to_string(), documents.len());
    console.result(
        || json!({"page": path, "results": results}),
        || pairs(&[("page", path.clone()), ("results", results.to_string())]),
    );
    Ok(())
}

fn read(path: &Path) -> Result<Document> {
    let name = path.display().to_string();
    let value = serde_json::from_str(&read_text(path)?).map_err(|error| {
        let remedy = "name a JSON file that --report, -o or --json wrote";
        Error::input(format!("{name}:{}", error.line()), error.to_string(), remedy)
    })?;
    Ok(Document { name, value })
}
