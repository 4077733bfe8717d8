//! Agreement of the ranks before a job: the program, its arguments, and what it reads.

use super::{Context, is_layout_file};
use crate::error::{Error, Result};
use crate::kernels::Instructions;
use crate::matrix::DistributedFile;
use crate::run::Fact;
use std::path::{Path, PathBuf};

/// The files that a job reads.
#[derive(Debug, Default)]
pub struct InputFiles<'a> {
    /// Files of its own.
    pub files: Vec<&'a Path>,
    /// Matrices, or layout files that name others.
    pub operands: Vec<&'a Path>,
    /// The directory of the checkpoint from which it continues.
    pub checkpoint: Option<&'a Path>,
}

/// Compares version, environment, arguments (`words`), other `facts` and files of all ranks, and notes the files
/// that are too large to be compared whole.
///
/// # Errors
/// The first rank that differs from rank 0 and in what: exit code 2 on every rank.
pub fn compare_inputs(
    words: Vec<String>,
    facts: Vec<Fact>,
    inputs: &InputFiles<'_>,
    context: Context<'_>,
) -> Result<()> {
    let world = context.world;
    if world.size() == 1 {
        return Ok(());
    }
    let text = |name: &str, value: String| Fact::Text { name: name.into(), value };
    let instructions = std::env::var_os(Instructions::VARIABLE).unwrap_or_default();
    let program = [
        text("version", env!("CARGO_PKG_VERSION").into()),
        Fact::Words { name: "arguments".into(), words },
        text(Instructions::VARIABLE, instructions.to_string_lossy().into_owned()),
    ];
    let own = inputs.files.iter().chain(&inputs.operands).map(|path| Fact::File(path.to_path_buf()));
    let mut sampled = world.compare(&program.into_iter().chain(facts).chain(own).collect::<Vec<_>>())?;
    // The same on all ranks now: the files that layout files name.
    let blocks = inputs.operands.iter().map(|path| block_files(path)).collect::<Result<Vec<_>>>();
    let mut more: Vec<Fact> = world.all_ok(blocks)?.into_iter().flatten().map(Fact::File).collect();
    if let Some(directory) = inputs.checkpoint {
        let kept = world.all_ok(files_in(directory))?;
        let words = kept.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        more.push(Fact::Words { name: directory.display().to_string(), words: words.collect() });
        more.extend(kept.iter().cloned().map(Fact::File));
    }
    sampled.extend(world.compare(&more)?);
    if !sampled.is_empty() {
        let names: Vec<String> = sampled.iter().map(|path| path.display().to_string()).collect();
        context.note(format!(
            "{}: larger than the ranks compare whole; lengths, times and samples are the same",
            names.join(", ")
        ));
    }
    Ok(())
}

/// The `.npy` files of an operand's layout file; none for other operands.
///
/// # Errors
/// As [`DistributedFile::open`].
pub fn block_files(path: &Path) -> Result<Vec<PathBuf>> {
    if !is_layout_file(path) {
        return Ok(Vec::new());
    }
    Ok(DistributedFile::open(path, false)?.files().map(Path::to_path_buf).collect())
}

/// The files of a checkpoint in the order of their names, without unfinished ones; none if there is no
/// directory.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| Error::file(directory, "read", e);
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if !entry.path().is_dir() && !entry.file_name().as_encoded_bytes().starts_with(b".") {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
