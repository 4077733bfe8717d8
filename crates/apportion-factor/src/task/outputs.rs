//! The files of factors and pivots: tried or opened before the work, complete after it, not yet visible.

use crate::LocalColumns;
use crate::local_columns::each_band;
use crate::slabs::SlabRun;
use apportion::error::Result;
use apportion::job::write_blocks;
use apportion::kernels::Real;
use apportion::matrix::{Matrix, npy_header, write_npy_rows};
use apportion::output::{OutputFile, try_output};
use apportion::run::World;
use std::path::PathBuf;

/// The destinations of a factorisation; only rank 0 has the files.
pub(super) struct Outputs {
    /// Of the factors and of the pivots; known to every rank.
    paths: [Option<PathBuf>; 2],
    files: [Option<OutputFile>; 2],
}

impl Outputs {
    /// Opens the files of a single process. Those of several are tried only: the end of another rank could leave
    /// them half written.
    pub fn open(paths: [Option<&PathBuf>; 2], world: &World) -> Result<Self> {
        let mut outputs = Self { paths: paths.map(|path| path.cloned()), files: [None, None] };
        if world.is_solo() {
            outputs.create()?;
        } else if world.rank() == 0 {
            outputs.paths.iter().flatten().try_for_each(|path| try_output(path))?;
        }
        Ok(outputs)
    }

    fn create(&mut self) -> Result<()> {
        for (path, file) in self.paths.iter().zip(&mut self.files) {
            *file = path.as_ref().map(OutputFile::create).transpose()?;
        }
        Ok(())
    }

    /// Checks that the disks have room for n x n elements of `element` bytes, and for n pivots.
    pub fn reserve(&mut self, n: u64, element: u64) -> Result<()> {
        let bytes = [n.saturating_mul(n).saturating_mul(element), n * size_of::<i64>() as u64];
        for (file, bytes) in self.files.iter_mut().zip(bytes) {
            file.as_mut().map_or(Ok(()), |file| file.reserve(bytes))?;
        }
        Ok(())
    }

    /// Writes the factors, of which every process has its block columns, and the pivots. The files are complete,
    /// but do not appear yet.
    ///
    /// # Errors
    /// A file cannot be written; known to all ranks.
    pub fn write<T: Real>(
        mut self,
        columns: &[LocalColumns<T>],
        pivots: &[i64],
        n: u64,
        world: &World,
    ) -> Result<Vec<OutputFile>> {
        if world.rank() == 0 && !world.is_solo() {
            world.all_ok(self.create())?;
        } else {
            world.all_ok(Ok(()))?;
        }
        let [mut factors, mut exchanged] = self.files;
        if let Some(path) = &self.paths[0] {
            let header = npy_header::<T>(&[n as usize; 2], false);
            if let (Some(file), true) = (&mut factors, world.is_solo()) {
                file.put(&header)?;
                each_band(columns, n as usize, |band| write_npy_rows(file, band))?;
            } else if !world.is_solo() {
                let blocks = columns.iter().flat_map(LocalColumns::blocks).collect();
                factors = write_blocks(factors, path, &blocks, &header, n, n, world)?;
            }
        }
        world.all_ok(write_pivots(exchanged.as_mut(), pivots))?;
        let mut files: Vec<OutputFile> = [factors, exchanged].into_iter().flatten().collect();
        world.all_ok(files.iter_mut().try_for_each(OutputFile::complete))?;
        Ok(files)
    }

    /// The same where the factors come from slabs, on the only process.
    ///
    /// # Errors
    /// A file cannot be written, or read.
    pub fn write_slabs<T: Real>(
        self,
        run: &SlabRun<'_, T>,
        pivots: &[i64],
        n: u64,
    ) -> Result<Vec<OutputFile>> {
        let [mut factors, mut exchanged] = self.files;
        if let Some(file) = &mut factors {
            file.put(&npy_header::<T>(&[n as usize; 2], false))?;
            run.each_band(&mut |band| write_npy_rows(file, band))?;
        }
        write_pivots(exchanged.as_mut(), pivots)?;
        let mut files: Vec<OutputFile> = [factors, exchanged].into_iter().flatten().collect();
        files.iter_mut().try_for_each(OutputFile::complete)?;
        Ok(files)
    }

    /// Writes a matrix that every process has, as an array of one dimension if it is a vector. The file is
    /// complete, but does not appear yet.
    ///
    /// # Errors
    /// The file cannot be written; known to all ranks.
    pub fn write_whole<T: Real>(
        mut self,
        matrix: &Matrix<T>,
        is_vector: bool,
        world: &World,
    ) -> Result<Option<OutputFile>> {
        let sizes = [matrix.rows(), matrix.cols()];
        let sizes = if is_vector { &sizes[..1] } else { &sizes[..] };
        let write = || {
            if !world.is_solo() {
                self.create()?;
            }
            let [file, _] = &mut self.files;
            if let Some(file) = file {
                file.put(&npy_header::<T>(sizes, false))?;
                write_npy_rows(file, matrix.as_slice())?;
                file.complete()?;
            }
            Ok(())
        };
        world.on_root(write)?;
        let [file, _] = self.files;
        Ok(file)
    }
}

fn write_pivots(file: Option<&mut OutputFile>, pivots: &[i64]) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    file.put(&npy_header::<i64>(&[pivots.len()], false))?;
    write_npy_rows(file, pivots)
}
