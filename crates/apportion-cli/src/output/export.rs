//! `--export`: a plan's shares in the words of another tool.

use crate::console::Console;
use apportion::error::Result;
use apportion::output::write_whole;
use apportion::plan::{ExportFormat, Plan, export};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Shares for other tools.
#[derive(Debug, Args)]
#[command(next_help_heading = "Export")]
pub struct ExportArgs {
    /// Shares for another tool, alone on stdout: metis, scotch, openmpi, mpich, hpl, llama.cpp, vllm, csv or json.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub export: Option<Format>,
    /// Write the export here instead; stdout then holds the plan as usual.
    #[arg(long, value_name = "FILE", requires = "export")]
    pub export_to: Option<PathBuf>,
}

/// A format, with the name that was typed.
#[derive(Debug, Clone)]
pub struct Format {
    name: String,
    format: ExportFormat,
}

fn format(name: &str) -> std::result::Result<Format, String> {
    match name.parse() {
        Ok(format) => Ok(Format { name: name.into(), format }),
        Err(apportion::error::Error::Input { what, remedy, .. }) => Err(format!("{what}: {remedy}")),
        Err(other) => Err(other.to_string()),
    }
}

/// What `--export` leaves to print.
pub struct Export {
    /// For the JSON object.
    pub value: Value,
    /// For stdout in place of the plan, unless it went to a file.
    pub text: Option<String>,
}

impl ExportArgs {
    /// Exports the shares; warnings go to stderr, the text to its file if one was named.
    ///
    /// # Errors
    /// Shares that the format cannot express, or a file that cannot be written.
    pub fn apply(&self, plan: &Plan, console: &Console) -> Result<Option<Export>> {
        let Some(Format { name, format }) = &self.export else { return Ok(None) };
        let exported = export(*format, &plan.processors, &plan.shares)?;
        for warning in &exported.warnings {
            console.note(format!("apportion: warning: {warning}"));
        }
        let value = json!({"format": name, "text": exported.text, "warnings": exported.warnings});
        let text = match &self.export_to {
            None => Some(exported.text),
            Some(path) => {
                write_whole(path, exported.text.as_bytes())?;
                None
            }
        };
        Ok(Some(Export { value, text }))
    }
}
