//! Operands and results that are distributed over files, named by a layout file (.json).

use crate::prepare::task::{Job, Task};
use apportion::error::{Error, Result};
use apportion::matrix::DistributedFile;
use std::path::{Path, PathBuf};

/// True if a path names a layout file.
pub fn is_layout(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"))
}

/// The `.npy` files of an operand's layout file; none for other operands.
///
/// # Errors
/// As [`DistributedFile::open`].
pub fn block_files(path: &Path) -> Result<Vec<PathBuf>> {
    if !is_layout(path) {
        return Ok(Vec::new());
    }
    Ok(DistributedFile::open(path, false)?.files().map(Path::to_path_buf).collect())
}

/// The name of the file for array `number` of the `count` arrays of a rank, beside the layout file.
pub fn block_name(layout: &Path, rank: usize, number: usize, count: usize) -> String {
    let stem = layout.file_stem().unwrap_or_default().to_string_lossy();
    if count == 1 { format!("{stem}-{rank}.npy") } else { format!("{stem}-{rank}-{number}.npy") }
}

/// Refuses layout files where they cannot serve.
///
/// # Errors
/// Exit code 2.
pub fn check(task: &Task<'_>, predecessors: Option<&PathBuf>) -> Result<()> {
    let operands = task.operands();
    let refuse = |flag: &str, what: String, remedy: &str| Err(Error::input(flag, what, remedy));
    let result = task.output.filter(|path| is_layout(path));
    if let (Job::Product(args), Some(path)) =
        (task.job, operands.iter().copied().chain(result.map(PathBuf::as_path)).find(|path| is_layout(path)))
        && args.panels.asked()
    {
        let what = format!(
            "{} is a layout file, but panels are read from and written to .npy files",
            path.display()
        );
        return refuse(
            "--panels",
            what,
            "name .npy files, or leave out --memory, --panels, --checkpoint and --resume",
        );
    }
    if let Some(path) = predecessors.filter(|path| is_layout(path) || result.is_some()) {
        let what = format!("{} would be written beside a layout file", path.display());
        return refuse("--predecessors", what, "write both results to .npy files");
    }
    Ok(())
}
