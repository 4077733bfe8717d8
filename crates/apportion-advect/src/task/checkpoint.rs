//! The field after a step, kept in a directory, from which a run that has ended continues.

use super::inputs::{ArrayFile, CourantInput, Inputs};
use super::{AdvectTask, Start, fields::write_field};
use crate::{AdvectProblem, Moments};
use apportion::error::{Error, Result};
use apportion::files::{FileState, hash_file, open_regular};
use apportion::job::{Context, kept_parts};
use apportion::kernels::mpdata::Advectable;
use apportion::matrix::{LocalBlocks, read_npy_array};
use apportion::product::{Checkpoint, Fingerprint};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "checkpoint.json";

/// Where fields are kept, if anywhere, and where an earlier run stands.
pub(super) struct Kept<'a> {
    directory: Option<&'a PathBuf>,
    /// On rank 0.
    opened: Option<Opened>,
    saved: Option<SavedState>,
}

/// A checkpoint that is open, and what determines the bytes of the result.
struct Opened {
    checkpoint: Checkpoint,
    identity: Fingerprint,
    position: Option<Position>,
}

/// Where a run stands, as the manifest says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    step: u64,
    signed: bool,
    /// Of the file of the field.
    hash: String,
    /// Mass, least and most at the very beginning.
    before: [f64; 3],
}

/// Where a run stands, with the field.
struct SavedState {
    step: u64,
    start: Start,
    field: ArrayFile,
}

impl<'a> Kept<'a> {
    /// Reads the checkpoint of a task, if there is one. Every rank must call it.
    ///
    /// # Errors
    /// One is to be begun but is there; it cannot be read, is damaged, or belongs to another advection.
    pub(crate) fn open(task: &'a AdvectTask<'_>, inputs: &Inputs<'_>, context: Context<'_>) -> Result<Self> {
        let (world, directory) = (context.world, task.directory());
        let Some(place) = directory else { return Ok(Self { directory, opened: None, saved: None }) };
        let opened = world.on_root(|| {
            task.checkpoint.as_deref().map_or(Ok(()), is_free)?;
            Opened::open(place, inputs)
        })?;
        let position = world.from_root(opened.as_ref().map(|opened| opened.position.clone()))?;
        let saved = world.all_ok(position.map(|position| position.state(place)).transpose())?;
        if let Some(directory) = task.resume.as_ref().filter(|_| saved.is_none()) {
            context.note(format!("there is no checkpoint in {}: from the first step", directory.display()));
        }
        Ok(Self { directory, opened, saved })
    }

    /// The field from which the run goes on, if it is not that of the task.
    pub(crate) fn field(&self) -> Option<&ArrayFile> {
        self.saved.as_ref().map(|saved| &saved.field)
    }

    /// The field at the very beginning: that of the checkpoint, or `now`.
    pub(crate) fn start(&self, now: Moments) -> Start {
        self.saved.as_ref().map_or(Start { moments: now, signed: now.least < 0.0 }, |saved| saved.start)
    }

    /// True if an earlier run has made steps.
    pub(crate) fn continues(&self) -> bool {
        self.saved.is_some()
    }

    /// The step from which the run goes on to `steps`.
    ///
    /// # Errors
    /// It is beyond the last one.
    pub(crate) fn step(&self, steps: u64) -> Result<u64> {
        let step = self.saved.as_ref().map_or(0, |saved| saved.step);
        if step > steps {
            let what = format!("the checkpoint is at step {step}, beyond `steps = {steps}`");
            return Err(Error::input("`resume`", what, "give more steps"));
        }
        Ok(step)
    }

    /// Keeps the field after a step, and forgets the one before; false if nothing is kept. A run that is killed in
    /// between continues from the older one. Every rank must call it.
    ///
    /// # Errors
    /// The files cannot be written; known to all ranks.
    pub(crate) fn save<T: Advectable>(
        &self,
        step: u64,
        start: Start,
        field: &LocalBlocks<T>,
        problem: &AdvectProblem,
        context: Context<'_>,
    ) -> Result<bool> {
        let Some(path) = context.world.all_ok(self.place(step))? else { return Ok(false) };
        write_field(&path, field, problem, context)?;
        context.world.on_root(|| self.note(step, start))?;
        Ok(true)
    }

    /// The file for the field after a step, in a directory that is there.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(crate) fn place(&self, step: u64) -> Result<Option<PathBuf>> {
        let Some(directory) = self.directory else { return Ok(None) };
        std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
        Ok(Some(directory.join(name(step))))
    }

    /// Writes that the field after a step is there, and forgets the one before.
    ///
    /// # Errors
    /// The files cannot be read or written.
    pub(crate) fn note(&self, step: u64, start: Start) -> Result<()> {
        let (Some(directory), Some(Opened { checkpoint, identity, .. })) = (self.directory, &self.opened)
        else {
            return Ok(());
        };
        let Moments { mass, least, most } = start.moments;
        let hash = file_hash(&directory.join(name(step)))?;
        let position = Position { step, signed: start.signed, hash, before: [mass, least, most] };
        checkpoint.begin(identity, json!(position))?;
        let older = |other: &str| other.starts_with("field-") && other < name(step).as_str();
        let entries = std::fs::read_dir(directory).map_err(|e| Error::file(directory, "read", e))?;
        for entry in entries.flatten().filter(|entry| older(&entry.file_name().to_string_lossy())) {
            // What cannot be removed does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
        Ok(())
    }

    /// The error of a run some of whose steps are kept, with instructions to continue; `beside` is the last field that was
    /// written beside the output.
    pub(crate) fn with_instructions(&self, error: Error, step: Option<u64>, beside: Option<&Path>) -> Error {
        let snapshots = beside.map(|last| format!("fields up to {} are written", last.display()));
        let kept = |(directory, step): (&PathBuf, u64)| kept_parts(&format!("step {step}"), directory);
        let kept = self.directory.zip(step).map(kept);
        let all: Vec<String> = snapshots.into_iter().chain(kept).collect();
        if all.is_empty() { error } else { error.with_kept(&all.join("; ")) }
    }
}

impl Opened {
    fn open(directory: &Path, inputs: &Inputs<'_>) -> Result<Self> {
        let AdvectProblem { sizes, boundary, scheme } = &inputs.problem;
        let hash = |input: &CourantInput<'_>| match input {
            CourantInput::Constant(value) => Ok(json!(value)),
            CourantInput::Faces(faces) => Ok(json!(file_hash(&faces.file()?.path)?)),
        };
        let field = Ok(json!(file_hash(&inputs.field.file()?.path)?));
        let files = [field].into_iter().chain(inputs.courant.iter().map(hash));
        let element = inputs.field.element();
        let settings = json!({"sizes": sizes, "boundary": boundary, "scheme": scheme, "element": element});
        let identity = Fingerprint { work: "advection", inputs: files.collect::<Result<_>>()?, settings };
        let (checkpoint, begun) = Checkpoint::open(directory, &identity)?;
        let Some(begun) = begun else { return Ok(Self { checkpoint, identity, position: None }) };
        let position: Position = serde_json::from_value(begun)
            .map_err(|_| checkpoint.damaged("lacks the step, the sign or the content of the field"))?;
        if position.hash != file_hash(&directory.join(name(position.step)))? {
            return Err(checkpoint.damaged("names a field that was changed later"));
        }
        Ok(Self { checkpoint, identity, position: Some(position) })
    }
}

impl Position {
    /// The field that is kept.
    fn state(self, directory: &Path) -> Result<SavedState> {
        let Self { step, signed, before: [mass, least, most], .. } = self;
        let path = directory.join(name(step));
        let state = FileState::of(&path)?;
        let header = read_npy_array(&path)?.header;
        let start = Start { moments: Moments { mass, least, most }, signed };
        Ok(SavedState { step, start, field: ArrayFile { path, header, state } })
    }
}

fn file_hash(path: &Path) -> Result<String> {
    Ok(format!("{:016x}", hash_file(path, &mut open_regular(path)?)?))
}

fn name(step: u64) -> String {
    format!("field-{step:012}.npy")
}

/// Refuses to begin a checkpoint where there is one, of whatever advection.
fn is_free(directory: &Path) -> Result<()> {
    if !directory.join(MANIFEST).exists() {
        return Ok(());
    }
    let (place, what) = (directory.display().to_string(), "holds a checkpoint already");
    Err(Error::input(place, what, "continue it with `resume`"))
}
