//! `apportion report`.

use crate::args::ReportArgs;
use crate::console::Console;
use apportion::error::{Error, Result};
use apportion::input::read_text;
use apportion::output::OutputFile;
use apportion_report::{Document, pairs, report_page};
use serde_json::json;
use std::path::Path;

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
