//! The files of a grid, read by planes across its first axis.

use crate::application::Courant;
use crate::check::{FlowCheck, check_cells};
use crate::{AdvectProblem, Plane};
use apportion::error::{Error, Result};
use apportion::geometry::{Rect, Span};
use apportion::kernels::mpdata::{Advectable, Place};
use apportion::matrix::{Element, LocalBlocks, NpyFile};
use apportion::run::Monitor;
use std::time::Instant;

/// Bytes that are read or written together, or one plane; few in tests, whose grids are small.
pub(super) const CHUNK: u64 = if cfg!(test) { 512 } else { 4 << 20 };

/// The Courant numbers along an axis.
#[derive(Debug)]
pub(crate) enum CourantFile {
    /// The same everywhere.
    Constant(f64),
    /// On the faces of the cells.
    Faces(NpyFile),
}

/// What went to and from files.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DiskUse {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Seconds for both.
    pub seconds: f64,
}

impl DiskUse {
    /// Reads planes of an array in a file, a block of its matrix, into the memory of a vector if it has room.
    pub(super) fn read_planes<T: Element>(
        &mut self,
        file: &mut NpyFile,
        (problem, place): (&AdvectProblem, Place),
        planes: Span,
        spare: Vec<T>,
    ) -> Result<(Rect, Vec<T>)> {
        let begin = Instant::now();
        let rect = planes_of(problem, place, planes);
        let elements = file.read_into::<T>(rect, spare)?;
        self.seconds += begin.elapsed().as_secs_f64();
        self.read += rect.area() * size_of::<T>() as u64;
        Ok((rect, elements))
    }
}

/// Some planes of an array as a rectangle of its matrix.
pub(super) fn planes_of(problem: &AdvectProblem, place: Place, planes: Span) -> Rect {
    let (rows, cols) = Plane::of(&problem.sizes).matrix(place);
    if problem.sizes.len() == 1 {
        Rect::new(Span::new(0, rows), planes)
    } else {
        Rect::new(planes, Span::new(0, cols))
    }
}

/// Elements of a plane of an array.
pub(super) fn plane_elements(problem: &AdvectProblem, place: Place) -> u64 {
    planes_of(problem, place, Span::new(0, 1)).area()
}

/// Planes of an array that are read together.
pub(super) fn chunk_planes(problem: &AdvectProblem, place: Place, element: u64) -> u64 {
    (CHUNK / (plane_elements(problem, place) * element)).max(1)
}

pub(super) fn heed(monitor: &Monitor) -> Result<()> {
    if monitor.is_stopped() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Some planes of an array: their rectangle of its matrix, and their elements.
pub(crate) type Band<T> = (Rect, Vec<T>);

/// Reads a field a few planes at a time: the block of the matrix, and its elements.
///
/// # Errors
/// The file cannot be read; what `look` finds; interrupted.
pub(crate) fn each_band<T: Advectable>(
    problem: &AdvectProblem,
    field: &mut NpyFile,
    disk: &mut DiskUse,
    monitor: &Monitor,
    look: &mut dyn FnMut(&Band<T>) -> Result<()>,
) -> Result<()> {
    let (planes, mut spare) = (Span::new(0, problem.sizes[0] as u64), Vec::new());
    for some in planes.blocks(chunk_planes(problem, Place::Centre, size_of::<T>() as u64)) {
        heed(monitor)?;
        let block = disk.read_planes(field, (problem, Place::Centre), some, spare)?;
        look(&block)?;
        spare = block.1;
        monitor.advance(some.len());
    }
    Ok(())
}

/// Checks the Courant numbers of all cells, as [`check_flow`](super::super::check_flow) does.
///
/// # Errors
/// As [`check_flow`](super::super::check_flow); a file cannot be read; interrupted.
pub(crate) fn check_flow_in_file<T: Advectable>(
    problem: &AdvectProblem,
    courant: &mut [CourantFile],
    disk: &mut DiskUse,
    monitor: &Monitor,
) -> Result<FlowCheck> {
    let (domain, mut found) = (problem.domain(), FlowCheck { largest: 0.0, divergence: 0.0 });
    let (first, planes) = (domain.axes()[0], problem.sizes[0] as u64);
    for some in Span::new(0, planes).blocks(chunk_planes(problem, Place::Centre, size_of::<T>() as u64)) {
        heed(monitor)?;
        let mut faces: Vec<LocalBlocks<T>> = Vec::new();
        for (axis, file) in domain.axes().iter().zip(courant.iter_mut()) {
            let mut blocks = LocalBlocks::new();
            if let CourantFile::Faces(file) = file {
                let upper = u64::from(*axis == first);
                let of = (problem, Place::Face(*axis));
                blocks.push(disk.read_planes(
                    file,
                    of,
                    Span::new(some.start, some.end + upper),
                    Vec::new(),
                )?);
                // The last face of a periodic axis is its first one.
                if *axis == first && some.end == planes && some.start > 0 {
                    blocks.push(disk.read_planes(file, of, Span::new(0, 1), Vec::new())?);
                }
            }
            faces.push(blocks);
        }
        let courant: Vec<Courant<'_, T>> = courant
            .iter()
            .zip(&faces)
            .map(|(file, blocks)| match file {
                CourantFile::Constant(value) => Courant::Constant(T::from_f64(*value)),
                CourantFile::Faces(_) => Courant::Faces(blocks),
            })
            .collect();
        let mut cells = domain.whole();
        (cells.lo[first], cells.hi[first]) = (some.start as isize, some.end as isize);
        check_cells(problem, &courant, &cells, &mut found)?;
        monitor.advance(some.len());
    }
    Ok(found)
}
