//! What `advect` writes: fields, frames and checkpoints.

use crate::console::monitor;
use crate::output::open;
use crate::prepare::advect::ArrayFile;
use apportion::error::{Error, Result};
use apportion::files::{FileState, hash_file, open_regular, read_own_text};
use apportion::geometry::{Rect, Span};
use apportion::job::write_blocks;
use apportion::kernels::mpdata::{Advectable, Place};
use apportion::matrix::{LocalBlocks, npy_header, read_npy_array};
use apportion::output::{OutputFile, write_whole};
use apportion::run::{World, redistribute};
use apportion_advect::{AdvectProblem, Moments, Plane};
use apportion_report::field_png;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "checkpoint.json";

/// Every process writes its blocks of a field; the file appears whole.
pub fn write_field<T: Advectable>(
    path: &PathBuf,
    field: &LocalBlocks<T>,
    problem: &AdvectProblem,
    world: &World,
) -> Result<()> {
    let file = world.on_root(|| open(Some(path)))?.flatten();
    let header = npy_header::<T>(&problem.sizes, false);
    let (rows, cols) = Plane::of(&problem.sizes).matrix(Place::Centre);
    let file = write_blocks(file, path, field, &header, rows, cols, world)?;
    if monitor().is_stopped() {
        return Err(Error::Interrupted);
    }
    world.all_ok(file.map_or(Ok(()), OutputFile::commit))
}

/// `out.npy` after 100 steps: `out-000100.npy`.
pub fn snapshot(output: &Path, step: u64) -> PathBuf {
    let stem = output.file_stem().map_or_else(Default::default, |stem| stem.to_string_lossy().into_owned());
    output.with_file_name(format!("{stem}-{step:06}.npy"))
}

/// Draws the field, in three dimensions its middle level, with the colours of fixed extremes.
pub fn write_frame<T: Advectable>(
    directory: &Path,
    step: u64,
    field: &LocalBlocks<T>,
    problem: &AdvectProblem,
    [least, most]: [f64; 2],
    world: &World,
) -> Result<()> {
    let deep = if problem.sizes.len() == 3 { problem.sizes[2] } else { 1 };
    let slice = |(rect, elements): &(Rect, Vec<T>)| {
        let cols = Span::new(rect.cols.start / deep as u64, rect.cols.end / deep as u64);
        let level = elements.iter().skip(deep / 2).step_by(deep).map(|x| x.to_f64()).collect();
        (Rect::new(rect.rows, cols), level)
    };
    let (rows, cols) = Plane::of(&problem.sizes).matrix(Place::Centre);
    let whole = Rect::new(Span::new(0, rows), Span::new(0, cols / deep as u64));
    let wanted = if world.rank() == 0 { vec![whole] } else { Vec::new() };
    let found = redistribute::<f64>(world, &field.iter().map(slice).collect(), &wanted)?;
    let write = || {
        let Some((rect, values)) = found.first() else { return Ok(()) };
        let size = (rect.rows.len() as usize, rect.cols.len() as usize);
        write_picture(directory, step, values, size, [least, most])
    };
    world.all_ok(write())
}

/// Writes a picture of rows of values.
pub fn write_picture(
    directory: &Path,
    step: u64,
    values: &[f64],
    (rows, cols): (usize, usize),
    [least, most]: [f64; 2],
) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
    write_whole(directory.join(format!("frame-{step:06}.png")), &field_png(values, rows, cols, least, most))
}

/// Where a run stands.
pub struct SavedState {
    pub step: u64,
    pub signed: bool,
    pub before: Moments,
    pub field: ArrayFile,
}

/// A hash of a file, for the identity of a run.
pub fn file_hash(path: &Path) -> Result<String> {
    Ok(format!("{:016x}", hash_file(path, &mut open_regular(path)?)?))
}

fn name(step: u64) -> String {
    format!("field-{step:012}.npy")
}

/// Keeps the field after a step, and forgets the one before. A run that is killed in between continues from
/// the older one.
pub fn keep<T: Advectable>(
    directory: &Path,
    identity: &Value,
    (step, signed, before): (u64, bool, Moments),
    field: &LocalBlocks<T>,
    problem: &AdvectProblem,
    world: &World,
) -> Result<()> {
    let path = world.all_ok(place_to_keep(directory, step))?;
    write_field(&path, field, problem, world)?;
    let note = || note_kept(directory, identity, step, signed, before);
    world.on_root(note).map(drop)
}

/// The file for the field after a step, in a directory that is there.
pub fn place_to_keep(directory: &Path, step: u64) -> Result<PathBuf> {
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
    Ok(directory.join(name(step)))
}

/// Writes that the field after a step is there, and forgets the one before.
pub fn note_kept(directory: &Path, identity: &Value, step: u64, signed: bool, before: Moments) -> Result<()> {
    let path = directory.join(name(step));
    let manifest = json!({
        "format": "apportion-advect-checkpoint",
        "version": 1,
        "identity": identity,
        "step": step,
        "signed": signed,
        "hash": file_hash(&path)?,
        "before": [before.mass, before.least, before.most],
    });
    let mut file = OutputFile::create_own(directory.join(MANIFEST), ".apportion-")?;
    file.put(format!("{manifest:#}\n").as_bytes())?;
    file.commit()?;
    let older = |name: &str| name.starts_with("field-") && name < self::name(step).as_str();
    let entries = std::fs::read_dir(directory).map_err(|e| Error::file(directory, "read", e))?;
    for entry in entries.flatten().filter(|entry| older(&entry.file_name().to_string_lossy())) {
        // What cannot be removed does no harm.
        let _ = std::fs::remove_file(entry.path());
    }
    Ok(())
}

/// Refuses to begin a checkpoint where there is one.
///
/// # Errors
/// The directory holds a checkpoint, of whatever advection: exit code 2.
pub fn is_free(directory: &Path) -> Result<()> {
    if !directory.join(MANIFEST).exists() {
        return Ok(());
    }
    let (place, what) = (directory.display().to_string(), "holds a checkpoint already");
    Err(Error::input(place, what, "continue it with --resume"))
}

/// Finds what a checkpoint kept, if there is one.
///
/// # Errors
/// It cannot be read, it is damaged, or it belongs to another advection.
pub fn read_saved_state(directory: &Path, identity: &Value) -> Result<Option<SavedState>> {
    let path = directory.join(MANIFEST);
    let text = match read_own_text(&path) {
        Ok(text) => text,
        Err(Error::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let refuse =
        |what: &str| Error::input(path.display().to_string(), what, "delete the directory and start again");
    let value: Value = serde_json::from_str(&text).map_err(|e| refuse(&format!("is not valid JSON: {e}")))?;
    if (&value["format"], &value["version"]) != (&json!("apportion-advect-checkpoint"), &json!(1)) {
        return Err(refuse("is not the manifest of an advection's checkpoint of version 1"));
    }
    if value["identity"] != *identity {
        let what =
            format!("belongs to another advection: it was {}, now it is {identity}", value["identity"]);
        return Err(Error::input(
            path.display().to_string(),
            what,
            "give the same inputs and options, or another directory",
        ));
    }
    let moments: Option<Vec<f64>> = serde_json::from_value(value["before"].clone()).ok();
    let (Some(step), Some(signed), Some([mass, least, most])) =
        (value["step"].as_u64(), value["signed"].as_bool(), moments.as_deref())
    else {
        return Err(refuse("lacks the step, the sign or the content of the field"));
    };
    let field = directory.join(name(step));
    if value["hash"] != json!(file_hash(&field)?) {
        return Err(refuse("names a field that was changed later"));
    }
    let state = FileState::of(&field)?;
    let header = read_npy_array(&field)?.header;
    let before = Moments { mass: *mass, least: *least, most: *most };
    Ok(Some(SavedState { step, signed, before, field: ArrayFile { path: field, header, state } }))
}
