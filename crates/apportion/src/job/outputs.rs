//! The matrices that a job leaves on disk: opened before the work, complete after it, not yet visible.

use super::is_layout_file;
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use crate::matrix::{
    AnyBlocks, Element, LocalArrayFile, LocalBlocks, layout_file_text, local_arrays, npy_header,
    write_npy_rows, write_tiles,
};
use crate::output::{OutputFile, try_output};
use crate::plan::Shape;
use crate::run::{World, redistribute};
use crate::schedule::{Application, MatmulSchedule};
use std::path::{Path, PathBuf};

/// Files that are kept open until all of them are full.
const MOST_OPEN: usize = 256;

/// The destinations of a result and of what comes with it (predecessors, pivots).
#[derive(Debug, Default)]
pub struct Outputs {
    /// Their paths; known to every rank.
    pub paths: [Option<PathBuf>; 2],
    /// The files, on rank 0.
    pub files: [Option<OutputFile>; 2],
}

impl Outputs {
    /// Opens the files before the work, on rank 0, so that a file that cannot be written is reported at once.
    /// If the end of another rank could leave them half written, they are only tried here, and opened when there
    /// is something to write.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn open(paths: [Option<&PathBuf>; 2], world: &World) -> Result<Self> {
        let mut outputs = Self { paths: paths.map(|path| path.cloned()), ..Self::default() };
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

    /// Checks that the disks have room for so many bytes, before the work.
    ///
    /// # Errors
    /// A disk has not.
    pub fn reserve(&mut self, [mut first, second]: [u64; 2]) -> Result<()> {
        let [file, beside] = &mut self.files;
        if let Some(beside) = beside {
            beside.reserve(second)?;
            let directory = beside.path().parent().unwrap_or(Path::new(""));
            if file.as_ref().is_some_and(|file| file.is_on_disk_of(directory)) {
                first = first.saturating_add(second);
            }
        }
        file.as_mut().map_or(Ok(()), |file| file.reserve(first))
    }

    /// The same with its files open on rank 0. Every rank must call it.
    ///
    /// # Errors
    /// A file cannot be written; known to all ranks.
    pub fn opened(mut self, world: &World) -> Result<Self> {
        let create = world.rank() == 0 && !world.is_solo();
        world.all_ok(if create { self.create() } else { Ok(()) }).map(|()| self)
    }
}

/// Writes C into one file, or with a layout file into one for each processor of the schedule; truth values as bool if
/// `bool` is set. The file is complete, but does not appear yet.
///
/// # Errors
/// A file cannot be written; known to all ranks.
pub(super) fn write_result<T: Element>(
    outputs: Outputs,
    c: &LocalBlocks<T>,
    bool: bool,
    shape: Shape,
    world: &World,
    schedule: &MatmulSchedule,
) -> Result<Vec<OutputFile>> {
    let Outputs { paths: [path, _], files: [file, _] } = outputs.opened(world)?;
    let file = match path {
        None => None,
        Some(path) if is_layout_file(&path) => {
            write_distributed(file, &path, c, bool, shape, world, schedule)?
        }
        Some(path) => write(file, &path, c, bool, shape, world)?,
    };
    complete([file, None], world)
}

/// Writes C and its predecessors.
///
/// # Errors
/// As [`write_result`].
pub(super) fn write_both<T: Element>(
    outputs: Outputs,
    c: &LocalBlocks<T>,
    predecessors: &LocalBlocks<i32>,
    shape: Shape,
    world: &World,
) -> Result<Vec<OutputFile>> {
    let Outputs { paths: [path, beside], files: [file, predecessor_file] } = outputs.opened(world)?;
    let file = match path {
        Some(path) => write(file, &path, c, false, shape, world)?,
        None => None,
    };
    let predecessors = match beside {
        Some(path) => write(predecessor_file, &path, predecessors, false, shape, world)?,
        None => None,
    };
    complete([file, predecessors], world)
}

/// Brings full files to the disk; they do not appear yet. Every rank must call it.
///
/// # Errors
/// The disk is full; known to all ranks.
pub fn complete(files: [Option<OutputFile>; 2], world: &World) -> Result<Vec<OutputFile>> {
    let mut files: Vec<OutputFile> = files.into_iter().flatten().collect();
    world.all_ok(files.iter_mut().try_for_each(OutputFile::complete))?;
    Ok(files)
}

/// Every rank writes its blocks into one file; rank 0 makes it appear.
fn write<T: Element>(
    mut file: Option<OutputFile>,
    path: &Path,
    c: &LocalBlocks<T>,
    bool: bool,
    shape: Shape,
    world: &World,
) -> Result<Option<OutputFile>> {
    let (m, n) = (shape.m as usize, shape.n as usize);
    if world.is_solo() {
        if let Some(file) = &mut file {
            file.put(&npy_header::<T>(&[m, n], bool))?;
            c.iter().try_for_each(|(_, block)| write_npy_rows(file, block))?;
        }
        return Ok(file);
    }
    write_blocks(file, path, c, &npy_header::<T>(&[m, n], bool), shape.m, shape.n, world)
}

/// Every process writes its blocks of a matrix of `rows` x `cols` after a header; rank 0 has the file, whose
/// name all know. Into a stream, rank 0 writes all.
pub fn write_blocks<T: Element>(
    mut file: Option<OutputFile>,
    path: &Path,
    c: &LocalBlocks<T>,
    header: &[u8],
    rows: u64,
    cols: u64,
    world: &World,
) -> Result<Option<OutputFile>> {
    let streamed = file.as_ref().is_some_and(OutputFile::is_stream);
    if world.broadcast(&[u8::from(streamed)])? == [1] {
        let whole = Rect::new(Span::new(0, rows), Span::new(0, cols));
        let wanted = if world.rank() == 0 { vec![whole] } else { Vec::new() };
        let found = redistribute(world, c, &wanted)?;
        let mut put = || match (&mut file, found.first()) {
            (Some(file), Some((_, elements))) => {
                file.put(header)?;
                write_npy_rows(file, elements)
            }
            _ => Ok(()),
        };
        world.all_ok(put())?;
        return Ok(file);
    }
    let length = header.len() as u64 + rows * cols * size_of::<T>() as u64;
    let mut create = || match &mut file {
        Some(file) => {
            file.put(header)?;
            file.share(length)
        }
        None => Ok(PathBuf::new()),
    };
    let place = world.all_ok(create())?;
    let place = world.broadcast(place.as_os_str().as_encoded_bytes())?;
    let place = path_of(place);
    // A rank that is stopped in the middle removes it: rank 0 may have ended.
    let stray = Stray(&place);
    let written = write_tiles(&place, c, header.len() as u64, cols).map_err(|error| match error {
        Error::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Error::input(
            path.display().to_string(),
            "the file that rank 0 has begun is not here",
            "write to a directory on a file system that all hosts share",
        ),
        Error::File { action, source, .. } => Error::file(path, action, source),
        other => other,
    });
    world.all_ok(written)?;
    std::mem::forget(stray);
    Ok(file)
}

/// A path as another process of the same system encoded it.
#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// A file that is removed unless this is forgotten.
struct Stray<'a>(&'a Path);

impl Drop for Stray<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

/// Writes C as the processors of the schedule own it: every process writes the arrays of its processors, and
/// they appear. Fills the layout file, which rank 0 has, but does not make it appear.
///
/// # Errors
/// A file cannot be written; known to all ranks.
fn write_distributed<T: Element>(
    layout: Option<OutputFile>,
    path: &Path,
    c: &LocalBlocks<T>,
    bool: bool,
    shape: Shape,
    world: &World,
    schedule: &MatmulSchedule,
) -> Result<Option<OutputFile>> {
    let arrays = |rank: usize| named(path, rank, &schedule.result_rects(Rank(rank)));
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

/// The name of the file for array `number` of the `count` arrays of a rank, beside the layout file.
fn block_name(layout: &Path, rank: usize, number: usize, count: usize) -> String {
    let stem = layout.file_stem().unwrap_or_default().to_string_lossy();
    if count == 1 { format!("{stem}-{rank}.npy") } else { format!("{stem}-{rank}-{number}.npy") }
}

/// The whole matrix of `shape`'s C as one block on every rank, from the blocks of all.
///
/// # Errors
/// A lost rank.
pub fn gather_whole(blocks: AnyBlocks, shape: Shape, world: &World) -> Result<AnyBlocks> {
    let whole = [Rect::new(Span::new(0, shape.m), Span::new(0, shape.n))];
    Ok(match blocks {
        AnyBlocks::F32(x) => AnyBlocks::F32(redistribute(world, &x, &whole)?),
        AnyBlocks::F64(x) => AnyBlocks::F64(redistribute(world, &x, &whole)?),
        AnyBlocks::I32(x) => AnyBlocks::I32(redistribute(world, &x, &whole)?),
        AnyBlocks::I64(x) => AnyBlocks::I64(redistribute(world, &x, &whole)?),
        AnyBlocks::U8(x) => AnyBlocks::U8(redistribute(world, &x, &whole)?),
    })
}
