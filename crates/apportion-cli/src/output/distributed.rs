//! A result in the files of the processes that computed it, with a layout file that names them.

use crate::prepare::distributed::block_name;
use apportion::error::Result;
use apportion::geometry::{Rank, Rect};
use apportion::matrix::{
    Element, LocalArrayFile, LocalBlocks, layout_file_text, local_arrays, npy_header, write_npy_rows,
};
use apportion::output::OutputFile;
use apportion::plan::Shape;
use apportion::run::World;
use apportion::schedule::{Application, MatmulSchedule};
use std::path::Path;

/// Files that are kept open until all of them are full.
const MOST_OPEN: usize = 256;

/// Writes C as the processors of the schedule own it: every process writes the arrays of its processors, and
/// they appear. Fills the layout file, which rank 0 has, but does not make it appear.
///
/// # Errors
/// A file cannot be written; known to all ranks.
pub fn write_distributed<T: Element>(
    layout: Option<OutputFile>,
    path: &Path,
    (c, bool): (&LocalBlocks<T>, bool),
    (shape, world): (Shape, &World),
    schedule: &MatmulSchedule,
) -> Result<Option<OutputFile>> {
    let arrays = |rank: usize| named(path, rank, schedule.rects(Rank(rank)));
    let here = if world.is_solo() { 0..schedule.processors() } else { world.rank()..world.rank() + 1 };
    let write = || {
        let mut full = Vec::new();
        for LocalArrayFile { name, array } in here.flat_map(arrays) {
            let mut file = OutputFile::create(path.with_file_name(name))?;
            file.put(&npy_header::<T>(&[array.rows as usize, array.cols as usize], bool))?;
            write_npy_rows(&mut file, &array.fill(c))?;
            full.push(file);
            if full.len() == MOST_OPEN {
                OutputFile::commit_all(std::mem::take(&mut full))?;
            }
        }
        OutputFile::commit_all(full)
    };
    world.all_ok(write())?;
    let Some(mut layout) = layout else { return Ok(None) };
    let all: Vec<LocalArrayFile> = (0..schedule.processors()).flat_map(arrays).collect();
    layout.put(layout_file_text(shape.m, shape.n, &all).as_bytes())?;
    Ok(Some(layout))
}

/// The arrays of a rank with the names of their files.
fn named(path: &Path, rank: usize, rects: &[Rect]) -> Vec<LocalArrayFile> {
    let arrays = local_arrays(rects);
    let count = arrays.len();
    let name = |(number, array)| LocalArrayFile { name: block_name(path, rank, number, count), array };
    arrays.into_iter().enumerate().map(name).collect()
}
