//! The files of factors, pivots and solutions: complete after the work, not yet visible.

use crate::LocalColumns;
use crate::local_columns::each_band;
use crate::slabs::SlabRun;
use apportion::error::Result;
use apportion::job::{Outputs, complete, write_blocks};
use apportion::kernels::Real;
use apportion::matrix::{Matrix, npy_header, write_npy_rows};
use apportion::output::OutputFile;
use apportion::run::World;

/// Bytes of n x n elements of `element` bytes, and of n pivots.
pub(super) fn bytes_of(n: u64, element: u64) -> [u64; 2] {
    [n.saturating_mul(n).saturating_mul(element), n * size_of::<i64>() as u64]
}

/// Writes the factors, of which every process has its block columns, and the pivots. The files are complete,
/// but do not appear yet.
///
/// # Errors
/// A file cannot be written; known to all ranks.
pub(super) fn write_factors<T: Real>(
    outputs: Outputs,
    columns: &[LocalColumns<T>],
    pivots: &[i64],
    n: u64,
    world: &World,
) -> Result<Vec<OutputFile>> {
    let Outputs { paths: [path, _], files: [mut factors, mut exchanged] } = outputs.opened(world)?;
    if let Some(path) = path {
        let header = npy_header::<T>(&[n as usize; 2], false);
        if let (Some(file), true) = (&mut factors, world.is_solo()) {
            file.put(&header)?;
            each_band(columns, n as usize, |band| write_npy_rows(file, band))?;
        } else if !world.is_solo() {
            let blocks = columns.iter().flat_map(LocalColumns::blocks).collect();
            factors = write_blocks(factors, &path, &blocks, &header, n, n, world)?;
        }
    }
    world.all_ok(write_pivots(exchanged.as_mut(), pivots))?;
    complete([factors, exchanged], world)
}

/// The same where the factors come from slabs, on the only process.
///
/// # Errors
/// A file cannot be written, or read.
pub(super) fn write_slabs<T: Real>(
    outputs: Outputs,
    run: &SlabRun<'_, T>,
    pivots: &[i64],
    n: u64,
    world: &World,
) -> Result<Vec<OutputFile>> {
    let [mut factors, mut exchanged] = outputs.files;
    if let Some(file) = &mut factors {
        file.put(&npy_header::<T>(&[n as usize; 2], false))?;
        run.each_band(&mut |band| write_npy_rows(file, band))?;
    }
    write_pivots(exchanged.as_mut(), pivots)?;
    complete([factors, exchanged], world)
}

/// Writes a matrix that every process has, as an array of one dimension if it is a vector. The file is
/// complete, but does not appear yet.
///
/// # Errors
/// The file cannot be written; known to all ranks.
pub(super) fn write_whole<T: Real>(
    outputs: Outputs,
    matrix: &Matrix<T>,
    is_vector: bool,
    world: &World,
) -> Result<Option<OutputFile>> {
    let sizes = [matrix.rows(), matrix.cols()];
    let sizes = if is_vector { &sizes[..1] } else { &sizes[..] };
    let [mut file, _] = outputs.opened(world)?.files;
    let mut write = || {
        let Some(file) = &mut file else { return Ok(()) };
        file.put(&npy_header::<T>(sizes, false))?;
        write_npy_rows(file, matrix.as_slice())?;
        file.complete()
    };
    world.all_ok(write())?;
    Ok(file)
}

fn write_pivots(file: Option<&mut OutputFile>, pivots: &[i64]) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    file.put(&npy_header::<i64>(&[pivots.len()], false))?;
    write_npy_rows(file, pivots)
}
