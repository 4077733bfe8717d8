//! An advection once everything is decided: run it, and report.

use super::application::{Advection, Courant};
use crate::Moments;
use crate::{AdvectOrder, AdvectProblem, AdvectSchedule, Plane};
use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Rect};
use apportion::kernels::mpdata::{Advectable, Place, Subdomain, sources};
use apportion::matrix::LocalBlocks;
use apportion::plan::Plan;
use apportion::run::{Session, World, run, trace_of_all};
use apportion::trace::Trace;

/// What to advect, how, and by which plan.
#[derive(Debug, Clone)]
pub struct AdvectJob<'a> {
    /// The grid and the variant.
    pub problem: &'a AdvectProblem,
    /// The plan of the horizontal plane.
    pub plan: &'a Plan,
    /// The order of the steps.
    pub order: AdvectOrder,
    /// Whether the field has values of both signs.
    pub signed: bool,
}

/// The report of some steps.
#[derive(Debug, Clone)]
pub struct AdvectReport {
    /// `"threads"` or `"mpi"`.
    pub(crate) engine: &'static str,
    /// `"f32"` or `"f64"`.
    pub(crate) element: &'static str,
    /// The grid and the variant.
    pub(crate) problem: AdvectProblem,
    /// The plan that was run.
    pub plan: Plan,
    /// The order of the steps.
    pub(crate) order: AdvectOrder,
    /// Number of steps.
    pub(crate) steps: u64,
    /// Activities of each processor over time.
    pub trace: Trace,
    /// Predicted peak memory of each processor in bytes.
    pub(crate) predicted_memory: Vec<u64>,
    /// Seconds that the simulator predicted; `None` if no speeds are known.
    pub(crate) forecast_seconds: Option<f64>,
    /// Work over the sum of the speeds; `None` if no speeds are known.
    pub(crate) ideal_seconds: Option<f64>,
    /// The field before and after.
    pub(crate) moments: [Moments; 2],
    /// Seconds spent reading and writing files.
    pub(crate) io_seconds: f64,
}

impl AdvectReport {
    /// Seconds from the first step of the schedule to the last.
    pub(crate) fn seconds(&self) -> f64 {
        self.trace.seconds()
    }

    /// Millions of cells advanced by a step per second.
    pub(crate) fn speed(&self) -> f64 {
        self.problem.cells() as f64 * self.steps as f64 / self.seconds().max(1e-9) / 1e6
    }
}

/// The rectangles of the field that this process's processors own, as in files.
pub(crate) fn own_cells(schedule: &AdvectSchedule, world: &World) -> Vec<Rect> {
    let plane = Plane::of(&schedule.problem().sizes);
    let here = world.processors_here(schedule.boxes_by_rank());
    here.flat_map(|rank| schedule.boxes(Rank(rank))).map(|cells| plane.rect(Place::Centre, cells)).collect()
}

/// The rectangles of the Courant numbers along an axis (by its number in the grid) that this process's
/// processors need, as in files.
pub fn needed_faces(schedule: &AdvectSchedule, number: usize, world: &World) -> Vec<Rect> {
    let (domain, plane) = (schedule.domain(), Plane::of(&schedule.problem().sizes));
    let place = Place::Face(domain.axes()[number]);
    let here = world.processors_here(schedule.boxes_by_rank());
    let mut rects = Vec::new();
    for cells in here.flat_map(|rank| schedule.boxes(Rank(rank))) {
        let room = Subdomain::<f64>::room(domain, schedule.stencil(), cells, schedule.undivided());
        for source in sources(domain, place, &room, false) {
            let mut there = source.there();
            if schedule.problem().sizes.len() == 3 {
                // Files are read by whole columns of levels.
                let levels = domain.cells[2] as isize + isize::from(place == Place::Face(2));
                (there.lo[2], there.hi[2]) = (0, levels);
            }
            let rect = plane.rect(place, &there);
            if !rects.contains(&rect) {
                rects.push(rect);
            }
        }
    }
    rects
}

/// Advects a field for some steps on the session's world. Every rank must call it, with its blocks of the
/// field ([`own_cells`]) and of the Courant numbers ([`needed_faces`]); a process alone may have whole
/// arrays. Returns this process's blocks of the result, and the activities of all processors.
///
/// The result is the same, bit for bit, for every plan, order and engine.
///
/// # Errors
/// A plan of another grid (exit code 2); a lost worker or a stop from outside (exit code 1).
pub fn advect<T: Advectable>(
    job: &AdvectJob<'_>,
    field: &LocalBlocks<T>,
    courant: &[Courant<'_, T>],
    steps: u64,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, Trace)> {
    let world = session.world();
    let layout = job
        .plan
        .rectangles()
        .ok_or_else(|| Error::input("plan", "divides units, which are no grid", "make a plan with --shape"));
    let schedule =
        world.all_ok(layout.and_then(|layout| AdvectSchedule::new(job.problem, layout, job.order, steps)))?;
    let advection = Advection::new(schedule, field, courant.to_vec(), job.signed);
    let output = run(&advection, session)?;
    let blocks = output.locals.into_iter().flat_map(|held| advection.result(held)).collect();
    Ok((blocks, trace_of_all(output.lanes, world)?))
}
