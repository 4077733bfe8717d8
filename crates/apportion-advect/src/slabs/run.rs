//! Sweeps: slab by slab from one file into the next.

use super::files::{CourantFile, DiskUse, chunk_planes, heed, plane_elements, planes_of};
use super::{Slabs, Window};
use crate::application::{Advection, ProcessorData};
use crate::{AdvectProblem, AdvectSchedule, Plane};
use apportion::error::Result;
use apportion::geometry::{Rank, Span};
use apportion::kernels::mpdata::{Advectable, Place};
use apportion::matrix::NpyFile;
use apportion::run::{Session, run};
use apportion::trace::Trace;

/// The advection of a grid in slabs, on the processors of this process. The boxes of a slab stay in memory
/// from one slab to the next.
#[derive(Debug)]
pub(crate) struct SlabRun<'a, T> {
    problem: &'a AdvectProblem,
    slabs: Slabs,
    schedule: &'a AdvectSchedule,
    courant: Vec<CourantFile>,
    session: &'a Session<'a>,
    held: Vec<ProcessorData<T>>,
    /// The slab whose Courant numbers the boxes have.
    at: Option<i64>,
    /// What was read.
    pub disk: DiskUse,
}

impl<'a, T: Advectable> SlabRun<'a, T> {
    /// A run. `problem` is that of the grid, `schedule` that of a slab. `signed` says that the field has
    /// values of both signs.
    ///
    /// # Panics
    /// If the schedule is not that of a slab, or the session's world has several processes.
    pub(crate) fn new(
        problem: &'a AdvectProblem,
        slabs: Slabs,
        schedule: &'a AdvectSchedule,
        courant: Vec<CourantFile>,
        signed: bool,
        session: &'a Session<'a>,
    ) -> Self {
        assert_eq!(*schedule.problem(), slabs.problem(problem), "the schedule of a slab");
        assert!(session.world().is_solo(), "one process");
        let one = |rank| ProcessorData::new(schedule, Rank(rank), signed);
        let mut held: Vec<ProcessorData<T>> = (0..schedule.boxes_by_rank()).map(one).collect();
        for (axis, courant) in schedule.domain().axes().iter().zip(&courant) {
            if let CourantFile::Constant(value) = courant {
                held.iter_mut().for_each(|held| held.fill_constant(*axis, T::from_f64(*value)));
            }
        }
        Self { problem, slabs, schedule, courant, session, held, at: None, disk: DiskUse::default() }
    }

    /// Checks that the files of the Courant numbers have the contents that they had when they were opened.
    ///
    /// # Errors
    /// Something has written to one of them: exit code 2.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let files = self.courant.iter().filter_map(|courant| match courant {
            CourantFile::Faces(file) => Some(file),
            CourantFile::Constant(_) => None,
        });
        files.into_iter().try_for_each(NpyFile::check_unchanged)
    }

    /// The slabs.
    pub(crate) fn slabs(&self) -> Slabs {
        self.slabs
    }

    /// Advances the field by some steps, and hands the result to `keep`: planes of the matrix, in order, row
    /// by row, with the number of the first one. The field comes from `source`; if one slab is the whole
    /// grid, only the first time.
    ///
    /// # Errors
    /// The source cannot be read; what `keep` finds; a lost worker; interrupted.
    ///
    /// # Panics
    /// If there are more steps than a slab can take.
    pub(crate) fn sweep(
        &mut self,
        source: &mut NpyFile,
        steps: u64,
        keep: &mut dyn FnMut(u64, &[T]) -> Result<()>,
    ) -> Result<Trace> {
        let mut trace = Trace::empty(self.session.platform().len());
        let schedule = self.schedule.with_steps(steps);
        for window in self.slabs.windows(steps) {
            if !(self.slabs.is_whole() && self.at.is_some()) {
                self.fill(source, window.first)?;
            }
            let advection = Advection::of(schedule.clone(), std::mem::take(&mut self.held));
            let output = run(&advection, self.session)?;
            self.held = output.locals;
            trace.append(Trace { lanes: output.lanes });
            self.hand_out(window, keep)?;
        }
        Ok(trace)
    }

    /// Fills the boxes with the field of a slab and, if they have those of another slab, with its Courant
    /// numbers.
    fn fill(&mut self, source: &mut NpyFile, first: i64) -> Result<()> {
        let mut parts = Parts {
            problem: self.problem,
            schedule: self.schedule,
            held: &mut self.held,
            disk: &mut self.disk,
            session: self.session,
            first,
        };
        parts.fill(Place::Centre, source)?;
        if self.at == Some(first) {
            return Ok(());
        }
        // Until all of them are there.
        self.at = None;
        for (axis, courant) in self.schedule.domain().axes().iter().zip(&mut self.courant) {
            if let CourantFile::Faces(file) = courant {
                parts.fill(Place::Face(*axis), file)?;
            }
        }
        self.at = Some(first);
        Ok(())
    }

    /// Hands out the planes of a slab that are kept.
    fn hand_out(&mut self, window: Window, keep: &mut dyn FnMut(u64, &[T]) -> Result<()>) -> Result<()> {
        let (problem, plane) = (self.schedule.problem(), Plane::of(&self.schedule.problem().sizes));
        let axis = self.schedule.domain().axes()[0];
        let width = plane_elements(problem, Place::Centre);
        let (mut planes, mut part) = (Vec::new(), Vec::new());
        for some in window.keep.blocks(chunk_planes(problem, Place::Centre, size_of::<T>() as u64)) {
            heed(self.session.monitor())?;
            planes.resize((some.len() * width) as usize, T::ZERO);
            let there = (some.start as i64 - window.first) as u64;
            let there = planes_of(problem, Place::Centre, Span::new(there, there + some.len()));
            for subdomain in self.held.iter_mut().flat_map(|held| &mut held.boxes) {
                let mut cells = *subdomain.cells();
                let within = |plane: u64| (plane as i64 - window.first) as isize;
                cells.lo[axis] = cells.lo[axis].max(within(some.start));
                cells.hi[axis] = cells.hi[axis].min(within(some.end));
                if cells.is_empty() {
                    continue;
                }
                part.resize(cells.count(), T::ZERO);
                subdomain.pack(Place::Centre, 1, &cells, &mut part);
                let rect = plane.rect(Place::Centre, &cells).relative_to(there);
                let along = rect.cols.len() as usize;
                for (row, from) in (rect.rows.start..rect.rows.end).zip(part.chunks_exact(along)) {
                    let at = (row * there.cols.len() + rect.cols.start) as usize;
                    planes[at..at + along].copy_from_slice(from);
                }
            }
            keep(some.start, &planes)?;
        }
        Ok(())
    }
}

/// The boxes that are filled from files.
struct Parts<'p, 's, T> {
    problem: &'p AdvectProblem,
    schedule: &'p AdvectSchedule,
    held: &'p mut [ProcessorData<T>],
    disk: &'p mut DiskUse,
    session: &'p Session<'s>,
    /// The grid's plane that is the slab's first one.
    first: i64,
}

impl<T: Advectable> Parts<'_, '_, T> {
    /// Reads an array a few planes at a time, each part into the boxes that need it.
    fn fill(&mut self, place: Place, file: &mut NpyFile) -> Result<()> {
        let (problem, slab) = (self.problem, self.schedule.problem());
        let axis = self.schedule.domain().axes()[0];
        let planes = match self.schedule.domain().inside(place, axis) {
            Some((_, end)) => end as u64,
            None => slab.sizes[0] as u64,
        };
        let chunk = chunk_planes(problem, place, size_of::<T>() as u64);
        let mut spare = Vec::new();
        for some in Span::new(0, planes).blocks(chunk) {
            heed(self.session.monitor())?;
            for (here, there) in runs(some, self.first, self.all(place)) {
                let (_, elements) = self.disk.read_planes(file, (problem, place), there, spare)?;
                let mut blocks = vec![(planes_of(slab, place, here), elements)];
                let range = (here.start as isize, here.end as isize);
                self.held
                    .iter_mut()
                    .for_each(|held| held.fill_planes(self.schedule, place, &blocks, axis, range));
                spare = blocks.swap_remove(0).1;
            }
        }
        if place != Place::Centre {
            self.held.iter_mut().for_each(|held| held.close(place));
        }
        Ok(())
    }

    /// The number of planes of the grid's array that are distinct.
    fn all(&self, place: Place) -> u64 {
        let domain = self.problem.domain();
        let axis = domain.axes()[0];
        domain.inside(place, axis).map_or(self.problem.sizes[0] as u64, |(_, end)| end as u64)
    }
}

/// Planes of a slab whose first one is the grid's plane `first`, by their places in the grid of `all` planes:
/// around a periodic axis.
fn runs(planes: Span, first: i64, all: u64) -> Vec<(Span, Span)> {
    let (mut at, mut found) = (planes.start, Vec::new());
    while at < planes.end {
        let there = (first + at as i64).rem_euclid(all as i64) as u64;
        let length = (planes.end - at).min(all - there);
        found.push((Span::new(at, at + length), Span::new(there, there + length)));
        at += length;
    }
    found
}
