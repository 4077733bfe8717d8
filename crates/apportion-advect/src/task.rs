//! From a field to the field some steps later, for all front ends.

mod checkpoint;
mod fields;
mod inputs;
mod plan;
mod slabs;

pub use fields::snapshot;
pub(crate) use slabs::SlabOutcome;

use crate::{
    AdvectChoice, AdvectOrder, AdvectReport, AdvectSchedule, FlowCheck, Moments, Plane, check_flow, moments,
};
use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Rect, Span};
use apportion::job::{Context, Job, JobMachine, Sources};
use apportion::kernels::mpdata::{Advectable, Boundary, Place, Scheme};
use apportion::matrix::{AnyBlocks, AnyView, Element, LocalBlocks};
use apportion::measure::QuickSpeeds;
use apportion::output::try_output;
use apportion::plan::shapes::Method;
use apportion::platform::Platform;
use apportion::process_memory::memory_budget;
use apportion::run::{Session, World, redistribute};
use apportion::schedule::Application;
use apportion::trace::Trace;
use checkpoint::Kept;
use fields::{write_field, write_frame};
use inputs::Inputs;
use plan::{AdvectData, Advecting};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A divergence above this fraction of a cell's content per step is worth a warning.
const DIVERGENT: f64 = 1e-6;

/// An array of one to three dimensions.
#[derive(Debug, Clone)]
pub enum ArraySource<'a> {
    /// A `.npy` file.
    File(PathBuf),
    /// An array in memory, the last axis fastest, which every process of the world holds whole.
    Array {
        /// Its name in errors.
        name: &'static str,
        /// Its sizes.
        sizes: Vec<usize>,
        /// Its elements as a matrix: in two dimensions of these sizes, else the last axes are a row.
        view: AnyView<'a>,
    },
}

impl<'a> ArraySource<'a> {
    /// An array in memory.
    ///
    /// # Panics
    /// If there are not as many elements as its sizes say.
    pub fn array<T: Element>(name: &'static str, sizes: &[usize], elements: &'a [T]) -> Self {
        let rows = if sizes.len() > 1 { sizes[0] } else { 1 };
        let cols = elements.len().checked_div(rows).unwrap_or(0);
        Self::Array { name, sizes: sizes.to_vec(), view: AnyView::new(rows, cols, elements) }
    }
}

/// Courant numbers along an axis.
#[derive(Debug, Clone)]
pub enum CourantSource<'a> {
    /// The same everywhere.
    Constant(f64),
    /// Those on the faces of the cells.
    Faces(ArraySource<'a>),
}

/// Draws a field while it is advected.
pub trait Frames: Sync {
    /// Distance of the rows and columns that a picture of so many rows and columns shows.
    fn spacing(&self, rows: usize, cols: usize) -> usize;

    /// Draws rows of values after a step, with the colours of these extremes.
    ///
    /// # Errors
    /// The picture cannot be written.
    fn draw(&self, step: u64, values: &[f64], size: [usize; 2], extremes: [f64; 2]) -> Result<()>;
}

/// Everything that a caller says of an advection.
#[derive(Clone)]
pub struct AdvectTask<'a> {
    /// The field.
    pub field: ArraySource<'a>,
    /// Courant numbers along each axis of it.
    pub courant: Vec<CourantSource<'a>>,
    /// What is beyond the ends of each axis: nothing for periodic axes, one entry for all, or one for each.
    pub boundary: Vec<Boundary>,
    /// The variant.
    pub scheme: Scheme,
    /// Number of time steps.
    pub steps: u64,
    /// The layout method; by default by forecast. A plan of the sources is run as it is.
    pub method: Option<Method>,
    /// The orders of the steps from which the forecast chooses.
    pub orders: Vec<AdvectOrder>,
    /// File of the result; otherwise it is returned.
    pub output: Option<PathBuf>,
    /// Other files that are written later, tried before the work.
    pub reports: Vec<PathBuf>,
    /// Number of steps after which something is written.
    pub every: Option<u64>,
    /// Draws the field at these steps.
    pub frames: Option<&'a dyn Frames>,
    /// Memory limit of the process in bytes.
    pub memory: Option<u64>,
    /// Directory where the field is kept.
    pub checkpoint: Option<PathBuf>,
    /// Directory from whose field the run continues.
    pub resume: Option<PathBuf>,
    /// The processors.
    pub sources: Sources,
    /// Measures the network between hosts again.
    pub remeasure: bool,
    /// Keeps every event of a run by slabs, not only their sums.
    pub keeps_events: bool,
}

impl<'a> AdvectTask<'a> {
    /// An advection in the simplest variant, everything else left open.
    pub fn new(field: ArraySource<'a>, courant: Vec<CourantSource<'a>>, steps: u64) -> Self {
        Self {
            field,
            courant,
            boundary: Vec::new(),
            scheme: Scheme { passes: 2, nonoscillatory: false, infinite_gauge: false, third_order: false },
            steps,
            method: None,
            orders: AdvectOrder::ALL.to_vec(),
            output: None,
            reports: Vec::new(),
            every: None,
            frames: None,
            memory: None,
            checkpoint: None,
            resume: None,
            sources: Sources::default(),
            remeasure: false,
            keeps_events: false,
        }
    }

    /// Where the field is kept.
    fn directory(&self) -> Option<&PathBuf> {
        self.checkpoint.as_ref().or(self.resume.as_ref())
    }

    /// The number of steps after which something is written.
    fn every(&self) -> u64 {
        self.every.unwrap_or(if self.directory().is_some() { self.steps.div_ceil(10) } else { self.steps })
    }

    /// The file for the field after a step, where one is written beside the output.
    fn snapshot(&self, step: u64) -> Option<PathBuf> {
        let output = self.output.as_ref().filter(|_| self.every.is_some() && step < self.steps);
        output.map(|output| snapshot(output, step))
    }
}

/// The result of an advection; a file of it has appeared.
#[derive(Debug)]
pub struct AdvectOutcome {
    /// This process's cells, if no file has them.
    pub field: Option<AnyBlocks>,
    /// What happened.
    pub report: AdvectReport,
    /// The largest sum over the axes of the magnitudes of a cell's Courant numbers.
    pub(crate) largest_courant_sum: f64,
    /// The plans that were compared, the best first; on ranks other than 0 only the best.
    pub(crate) choices: Vec<AdvectChoice>,
    /// The processors.
    pub platform: Platform,
    /// The speeds, if they were measured for this run.
    pub measured: Option<QuickSpeeds>,
    /// How the field was cut into slabs, if it was.
    pub(crate) slabs: Option<SlabOutcome>,
}

impl AdvectOutcome {
    /// The whole field on every rank, the last axis fastest, if its elements are of this type and no file has them. Every
    /// rank must call it.
    ///
    /// # Errors
    /// A lost rank.
    pub fn into_whole<T: Advectable>(self, world: &World) -> Result<Option<Vec<T>>> {
        let Some(blocks) = self.field.and_then(AnyBlocks::into_blocks::<T>) else { return Ok(None) };
        let (rows, cols) = Plane::of(&self.report.problem.sizes).matrix(Place::Centre);
        let whole = Rect::new(Span::new(0, rows), Span::new(0, cols));
        Ok(redistribute(world, &blocks, &[whole])?.pop().map(|(_, elements)| elements))
    }
}

/// Advects a field: finds processors and speeds, decides the plan, runs, and writes the result. Every rank must
/// call it, with the same task.
///
/// # Errors
/// Files that cannot be read or do not fit together, a flow that is not stable (exit code 2); what cannot be decided, run
/// or written; known to all ranks.
pub fn advect_field(task: &AdvectTask<'_>, context: Context<'_>) -> Result<AdvectOutcome> {
    if task.steps == 0 {
        let what = "0 steps change nothing";
        return context.world.all_ok(Err(Error::input("`steps`", what, "give at least 1")));
    }
    let inputs = context.world.all_ok(Inputs::open(task))?;
    match inputs.field.element() {
        "f32" => advect_elements::<f32>(task, &inputs, context),
        _ => advect_elements::<f64>(task, &inputs, context),
    }
}

fn advect_elements<T: Advectable>(
    task: &AdvectTask<'_>,
    inputs: &Inputs<'_>,
    context: Context<'_>,
) -> Result<AdvectOutcome> {
    let (begin, world) = (Instant::now(), context.world);
    if task.memory.is_some() && !world.is_solo() {
        let what = "streams the field through one process; under MPI each process holds its part in memory";
        let remedy = "leave it out and start more processes, or run it without mpirun";
        return world.all_ok(Err(Error::input("`memory`", what, remedy)));
    }
    let kept = Kept::open(task, inputs, context)?;
    world.on_root(|| inputs.check_periodic::<T>())?;
    world.on_root(|| task.reports.iter().chain(&task.output).try_for_each(|path| try_output(path)))?;
    if let Some(memory) = task.memory {
        let memory = memory.min(memory_budget().unwrap_or(u64::MAX));
        return slabs::advect_by_slabs::<T>(task, inputs, &kept, memory, context);
    }
    let advecting = Advecting::<T>::new(task, inputs, None);
    let job = Job::new(&advecting).with_sources(&task.sources).remeasuring(task.remeasure);
    let JobMachine { machine, measured } = job.machine(context)?;
    let choices = plan::ranked(&job, &machine, world)?;
    plan::announce(&choices, &machine, context);
    let ideal_seconds = plan::ideal_seconds(&inputs.problem, &choices[0], &machine, task.steps);
    let (best, platform) = (&choices[0], &machine.platform);
    let schedule = world.all_ok(advecting.schedule(best, task.steps))?;
    if let Some(memory) = slabs::limit_by_free_memory::<T>(task, inputs, &schedule, platform, context)? {
        return slabs::advect_by_slabs::<T>(task, inputs, &kept, memory, context);
    }
    let field = world.all_ok(inputs.read_field::<T>(kept.field(), &schedule, world))?;
    let faces = world.all_ok(inputs.read_courant::<T>(&schedule, world))?;
    world.all_ok(inputs.check_unchanged())?;
    let flow = check_flow(&schedule, &inputs.courant(&faces), world)?;
    let start = moments(&field, world)?;
    warn_of(flow, start, task, context);
    let start = kept.start(start);
    let first = world.all_ok(kept.step(task.steps))?;
    let io = begin.elapsed().as_secs_f64();
    let work: f64 = (0..schedule.processors()).map(|rank| schedule.work(Rank(rank))).sum();
    let part = (task.steps - first) as f64 / task.steps as f64;
    let session = Session::new(world, platform, context.monitor, work * part);
    let data = AdvectData { field, faces, signed: start.signed, steps: 0 };
    let run = Steps { task, inputs, kept: &kept, start, job: &job, best, session: &session, context };
    let (data, trace) = run.all(data, first)?;
    let field = data.field;
    let after = moments(&field, world)?;
    let writing = Instant::now();
    if let Some(output) = &task.output {
        write_field(output, &field, &inputs.problem, context)?;
    }
    let report = AdvectReport {
        engine: world.engine(),
        element: T::NAME,
        problem: inputs.problem.clone(),
        plan: best.plan.clone(),
        order: best.order,
        steps: task.steps - first,
        trace,
        predicted_memory: memory_of::<T>(&schedule),
        forecast_seconds: best.plan.forecast.as_ref().map(|forecast| forecast.seconds * part),
        ideal_seconds: ideal_seconds.map(|seconds| seconds * part),
        moments: [start.moments, after],
        io_seconds: io + writing.elapsed().as_secs_f64(),
    };
    Ok(AdvectOutcome {
        field: task.output.is_none().then(|| AnyBlocks::new(field)),
        report,
        largest_courant_sum: flow.largest,
        choices,
        platform: machine.platform,
        measured,
        slabs: None,
    })
}

/// Predicted peak memory of each processor in bytes.
fn memory_of<T>(schedule: &AdvectSchedule) -> Vec<u64> {
    let bytes = |rank| schedule.memory(Rank(rank), size_of::<T>() as u64);
    (0..schedule.processors()).map(bytes).collect()
}

/// The field at the very beginning, before any run that was continued.
#[derive(Debug, Clone, Copy)]
struct Start {
    moments: Moments,
    /// Whether it had values of both signs.
    signed: bool,
}

impl Start {
    fn colours(self) -> [f64; 2] {
        [self.moments.least, self.moments.most]
    }
}

/// The steps of an advection in memory, with what is written in between.
struct Steps<'a, T: Advectable> {
    task: &'a AdvectTask<'a>,
    inputs: &'a Inputs<'a>,
    kept: &'a Kept<'a>,
    start: Start,
    job: &'a Job<'a, Advecting<'a, T>>,
    best: &'a AdvectChoice,
    session: &'a Session<'a>,
    context: Context<'a>,
}

impl<T: Advectable> Steps<'_, T> {
    /// All steps from `first` on.
    fn all(&self, mut data: AdvectData<T>, first: u64) -> Result<(AdvectData<T>, Trace)> {
        let Self { task, kept, context, .. } = *self;
        if first == 0 {
            self.draw(0, &data.field)?;
        }
        let mut trace = Trace::empty(self.session.platform().len());
        let (mut step, mut last, mut beside) = (first, None, None);
        let outcome = context.watch("advecting", || {
            while step < task.steps {
                let every = task.every();
                data.steps = (every - step % every).min(task.steps - step);
                let solved = self.job.solve(self.best, &data, self.session)?;
                data.field = solved.output;
                trace.append(solved.trace);
                step += data.steps;
                if kept.save(step, self.start, &data.field, &self.inputs.problem, context)? {
                    last = Some(step);
                }
                if let Some(place) = task.snapshot(step) {
                    write_field(&place, &data.field, &self.inputs.problem, context)?;
                    beside = Some(place);
                }
                self.draw(step, &data.field)?;
            }
            Ok(())
        });
        outcome.map_err(|error| kept.with_instructions(error, last, beside.as_deref()))?;
        Ok((data, trace))
    }

    fn draw(&self, step: u64, field: &LocalBlocks<T>) -> Result<()> {
        let Some(frames) = self.task.frames else { return Ok(()) };
        write_frame(frames, step, field, &self.inputs.problem, self.start.colours(), self.context.world)
    }
}

/// Warns of a flow that diverges, and of a field of both signs.
fn warn_of(flow: FlowCheck, start: Moments, task: &AdvectTask<'_>, context: Context<'_>) {
    if flow.divergence > DIVERGENT {
        context.note(format!(
            "apportion: warning: the flow diverges: up to {:.1e} of a cell's content per step flows out on \
             balance; constants do not stay constant",
            flow.divergence
        ));
    }
    if start.least < 0.0 && start.most > 0.0 && !task.scheme.infinite_gauge {
        context.note("the field has both signs: magnitudes are in the denominators (see `infinite_gauge`)");
    }
}

/// A file as the place of an error.
fn file_place(path: &Path) -> String {
    path.display().to_string()
}
