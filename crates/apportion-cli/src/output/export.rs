//! A plan's shares in the format of another tool.

use crate::args::ExportArgs;
use crate::args::export::Format;
use crate::console::Console;
use apportion::error::Result;
use apportion::output::write_whole;
use apportion::plan::{Plan, export_plan};
use apportion::platform::Platform;
use serde_json::{Value, json};

/// The remaining output of `--export`.
pub struct Export {
    /// For the JSON object.
    pub value: Value,
    /// For stdout in place of the plan; `None` if it went to a file.
    pub text: Option<String>,
}

impl ExportArgs {
    /// Exports the shares, the owners of blocks, or commands for the platform's cores: warnings to stderr, the
    /// text to its file if one is named.
    ///
    /// # Errors
    /// The format cannot express the plan, or the file cannot be written.
    pub fn apply(&self, plan: &Plan, platform: &Platform, console: &Console) -> Result<Option<Export>> {
        let Some(Format { name, format }) = &self.export else { return Ok(None) };
        let exported = export_plan(format.clone(), plan, platform)?;
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
