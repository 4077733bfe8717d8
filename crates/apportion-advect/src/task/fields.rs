//! What an advection writes: fields, pictures of them, and states, from which the next sweep over slabs reads.

use super::Frames;
use crate::{AdvectProblem, DiskUse, Plane};
use apportion::error::{Error, Result};
use apportion::geometry::{Rect, Span};
use apportion::job::{Context, write_blocks};
use apportion::kernels::mpdata::{Advectable, Place};
use apportion::matrix::{LocalBlocks, NpyFile, npy_header, write_npy_rows};
use apportion::output::{OutputFile, is_stream};
use apportion::run::{World, redistribute};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Every process writes its blocks of a field; the file appears whole.
pub(crate) fn write_field<T: Advectable>(
    path: &Path,
    field: &LocalBlocks<T>,
    problem: &AdvectProblem,
    context: Context<'_>,
) -> Result<()> {
    let world = context.world;
    let file = world.on_root(|| OutputFile::create(path))?;
    let header = npy_header::<T>(&problem.sizes, false);
    let (rows, cols) = Plane::of(&problem.sizes).matrix(Place::Centre);
    let file = write_blocks(file, path, field, &header, rows, cols, world)?;
    if context.monitor.is_stopped() {
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
pub(crate) fn write_frame<T: Advectable>(
    frames: &dyn Frames,
    step: u64,
    field: &LocalBlocks<T>,
    problem: &AdvectProblem,
    extremes: [f64; 2],
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
        frames.draw(step, values, [rect.rows.len() as usize, rect.cols.len() as usize], extremes)
    };
    world.all_ok(write())
}

/// A field that is being written, into one file or several.
pub(crate) struct State {
    files: Vec<OutputFile>,
    /// The first one, to be read before it appears.
    readable: Option<PathBuf>,
    bytes: u64,
    pub disk: DiskUse,
}

impl State {
    /// Starts files of these names. `again` says that the field is read again.
    ///
    /// # Errors
    /// A file cannot be written, or the disk has no room.
    pub(crate) fn create<T: Advectable>(
        names: &[PathBuf],
        problem: &AdvectProblem,
        again: bool,
    ) -> Result<Self> {
        let header = npy_header::<T>(&problem.sizes, false);
        let bytes = problem.cells() * size_of::<T>() as u64;
        let (mut files, mut readable) = (Vec::new(), None);
        for name in names {
            let mut file = OutputFile::create(name)?;
            file.put(&header)?;
            if again && readable.is_none() {
                readable = Some(file.share(header.len() as u64 + bytes)?);
            } else {
                file.reserve(bytes)?;
            }
            files.push(file);
        }
        Ok(Self { files, readable, bytes, disk: DiskUse::default() })
    }

    /// Writes the next elements.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn put<T: Advectable>(&mut self, elements: &[T]) -> Result<()> {
        let begin = Instant::now();
        self.files.iter_mut().try_for_each(|file| write_npy_rows(file, elements))?;
        self.disk.seconds += begin.elapsed().as_secs_f64();
        Ok(())
    }

    /// Ends writing, and opens the field for the next sweep if it is read again.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn written(&mut self) -> Result<Option<NpyFile>> {
        let begin = Instant::now();
        for file in &mut self.files {
            file.flush().map_err(|e| Error::file(file.path(), "write", e))?;
        }
        self.disk.written = self.bytes * self.files.len() as u64;
        self.disk.seconds += begin.elapsed().as_secs_f64();
        self.readable.as_deref().map(NpyFile::open_array).transpose()
    }

    /// The files, in the order of their names.
    pub(crate) fn into_files(self) -> Vec<OutputFile> {
        self.files
    }
}

/// The name beside which the states between sweeps are: where the result or the checkpoint will be.
pub(crate) fn scratch(output: Option<&PathBuf>, directory: Option<&PathBuf>) -> PathBuf {
    let beside = output.filter(|path| !is_stream(path)).map(|path| path.with_file_name(""));
    let place = beside.or_else(|| directory.cloned()).unwrap_or_else(std::env::temp_dir);
    place.join(".apportion-state.npy")
}

/// The values of a picture, gathered while a field passes by: of the middle level, as far apart as they are
/// shown.
pub(crate) struct Sampler {
    /// Rows and columns of the level.
    size: (usize, usize),
    /// One dimension: all values are a row.
    line: bool,
    deep: usize,
    spacing: usize,
    values: Vec<f64>,
}

impl Sampler {
    pub(crate) fn new(problem: &AdvectProblem, frames: &dyn Frames) -> Self {
        let deep = if problem.sizes.len() == 3 { problem.sizes[2] } else { 1 };
        let (rows, cols) = Plane::of(&problem.sizes).matrix(Place::Centre);
        let size = (rows as usize, cols as usize / deep);
        let spacing = frames.spacing(size.0, size.1);
        Self { size, line: problem.sizes.len() == 1, deep, spacing, values: Vec::new() }
    }

    /// The most bytes that it and its picture take.
    pub(crate) fn bytes(&self) -> u64 {
        let [rows, cols] = self.cells();
        let zoomed = rows.max(cols).max(512) as u64;
        (rows * cols * 8) as u64 + 9 * zoomed * zoomed
    }

    fn cells(&self) -> [usize; 2] {
        [self.size.0, self.size.1].map(|cells| cells.div_ceil(self.spacing))
    }

    /// Planes that pass by, in order, from the grid's plane `first` on.
    pub(crate) fn add<T: Advectable>(&mut self, first: u64, elements: &[T]) {
        let (deep, spacing) = (self.deep, self.spacing);
        let wanted = |at: &usize| (first as usize + at).is_multiple_of(spacing);
        if self.line {
            let some = elements.iter().enumerate().filter(|(at, _)| wanted(at));
            return self.values.extend(some.map(|(_, x)| x.to_f64()));
        }
        let planes = elements.chunks_exact(self.size.1 * deep).enumerate().filter(|(at, _)| wanted(at));
        for (_, plane) in planes {
            let level = plane.iter().skip(deep / 2).step_by(deep * spacing);
            self.values.extend(level.map(|x| x.to_f64()));
        }
    }

    /// Draws the picture.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn draw(self, frames: &dyn Frames, step: u64, extremes: [f64; 2]) -> Result<()> {
        frames.draw(step, &self.values, self.cells(), extremes)
    }
}
