//! A page about results: one HTML file that needs no other, for screens of any width, light and dark, and paper.

mod entry;
mod html;
mod words;

use super::text::shortened;
use apportion::error::{Error, Result};
use entry::Entry;
use serde_json::Value;

/// A result as a command wrote it, and the name of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The file, which the page and errors name.
    pub name: String,
    /// Its contents.
    pub value: Value,
}

/// The page about results in the formats of `matmul`, `power`, `closure` and `advect` (`run.json`), `partition`
/// (`plan.json`), `measure` (`models.json`), and of `simulate`, `balance` and `mdem` with `--json`. Several
/// results are compared first. The same documents give the same bytes.
///
/// # Errors
/// A document of another format, or one that lacks what its format has: exit code 2.
pub fn report_page(documents: &[Document]) -> Result<String> {
    if documents.is_empty() {
        return Err(Error::input("report", "there is nothing to show", "name at least one file"));
    }
    let entries = documents.iter().map(Entry::read).collect::<Result<Vec<_>>>()?;
    Ok(html::page(&entries))
}

/// The most characters of a name in a sentence.
const LONGEST_NAME: usize = 40;

/// A name as a sentence has it.
fn name_text(name: &str) -> String {
    shortened(name, LONGEST_NAME)
}

#[cfg(test)]
mod tests;
