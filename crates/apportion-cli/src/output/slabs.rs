//! What an advection in slabs writes: states, from which the next sweep reads, pictures, and a report.

use super::advect::write_picture;
use super::panels::held;
use crate::output::open;
use apportion::error::{Error, Result};
use apportion::kernels::mpdata::{Advectable, Place};
use apportion::matrix::{NpyFile, npy_header, write_npy_rows};
use apportion::output::{OutputFile, is_stream};
use apportion::record::AdvectSlabs;
use apportion_advect::{AdvectProblem, DiskUse, Plane, Slabs};
use apportion_report::field_png_spacing;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A field that is being written, into one file or several.
pub struct State {
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
    pub fn create<T: Advectable>(names: &[PathBuf], problem: &AdvectProblem, again: bool) -> Result<Self> {
        let header = npy_header::<T>(&problem.sizes, false);
        let bytes = problem.cells() * size_of::<T>() as u64;
        let (mut files, mut readable) = (Vec::new(), None);
        for name in names {
            let Some(mut file) = open(Some(name))? else { continue };
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
    pub fn put<T: Advectable>(&mut self, elements: &[T]) -> Result<()> {
        let begin = Instant::now();
        self.files.iter_mut().try_for_each(|file| write_npy_rows(file, elements))?;
        self.disk.seconds += begin.elapsed().as_secs_f64();
        Ok(())
    }

    /// Ends writing, and opens the field for the next sweep if it is read again.
    ///
    /// # Errors
    /// The disk is full.
    pub fn written(&mut self) -> Result<Option<NpyFile>> {
        let begin = Instant::now();
        for file in &mut self.files {
            file.flush().map_err(|e| Error::file(file.path(), "write", e))?;
        }
        self.disk.written = self.bytes * self.files.len() as u64;
        self.disk.seconds += begin.elapsed().as_secs_f64();
        self.readable.as_deref().map(NpyFile::open_array).transpose()
    }

    /// The files, in the order of their names.
    pub fn into_files(self) -> Vec<OutputFile> {
        self.files
    }
}

/// The name beside which the states between sweeps are: where the result or the checkpoint will be.
pub fn scratch(output: Option<&PathBuf>, directory: Option<&PathBuf>) -> PathBuf {
    let beside = output.filter(|path| !is_stream(path)).map(|path| path.with_file_name(""));
    let place = beside.or_else(|| directory.cloned()).unwrap_or_else(std::env::temp_dir);
    place.join(".apportion-state.npy")
}

/// The values of a picture, gathered while a field passes by: of the middle level, as far apart as they are
/// shown.
pub struct Sampler {
    /// Rows and columns of the level.
    size: (usize, usize),
    /// One dimension: all values are a row.
    line: bool,
    deep: usize,
    spacing: usize,
    values: Vec<f64>,
}

impl Sampler {
    pub fn new(problem: &AdvectProblem) -> Self {
        let deep = if problem.sizes.len() == 3 { problem.sizes[2] } else { 1 };
        let (rows, cols) = Plane::of(&problem.sizes).matrix(Place::Centre);
        let size = (rows as usize, cols as usize / deep);
        let spacing = field_png_spacing(size.0, size.1);
        Self { size, line: problem.sizes.len() == 1, deep, spacing, values: Vec::new() }
    }

    /// The most bytes that it and its picture take.
    pub fn bytes(&self) -> u64 {
        let (rows, cols) = self.cells();
        let zoomed = rows.max(cols).max(512) as u64;
        (rows * cols * 8) as u64 + 9 * zoomed * zoomed
    }

    fn cells(&self) -> (usize, usize) {
        (self.size.0.div_ceil(self.spacing), self.size.1.div_ceil(self.spacing))
    }

    /// Planes that pass by, in order, from the grid's plane `first` on.
    pub fn add<T: Advectable>(&mut self, first: u64, elements: &[T]) {
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

    /// Writes the picture.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self, directory: &Path, step: u64, extremes: [f64; 2]) -> Result<()> {
        write_picture(directory, step, &self.values, self.cells(), extremes)
    }
}

/// How a field was cut, and what that took.
pub struct SlabReport {
    pub slabs: Slabs,
    /// Steps of most sweeps, and the number of sweeps.
    pub steps: u64,
    pub sweeps: u64,
    /// Planes of the grid.
    pub planes: u64,
    pub cap: u64,
    pub predicted: u64,
    pub disk: DiskUse,
    /// Seconds of all sweeps, and the cells that they advanced.
    pub seconds: f64,
    pub cells: f64,
}

impl SlabReport {
    /// As `run.json` has it.
    pub fn record(&self) -> AdvectSlabs {
        let count = self.slabs.count(self.steps);
        AdvectSlabs {
            count,
            planes: self.slabs.height(),
            steps_per_sweep: self.steps,
            sweeps: self.sweeps,
            computed_twice: (count * self.slabs.height()) as f64 / self.planes as f64 - 1.0,
            held: held(Some(self.cap), self.predicted),
            bytes_read: self.disk.read,
            bytes_written: self.disk.written,
            disk_seconds: self.disk.seconds,
            seconds: self.seconds,
            million_cells_per_second: self.cells / self.seconds.max(1e-9) / 1e6,
        }
    }
}
