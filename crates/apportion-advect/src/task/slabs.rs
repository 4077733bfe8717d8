//! A field larger than memory, slab by slab from one file into the next.

use super::checkpoint::Kept;
use super::fields::{Sampler, State, scratch};
use super::inputs::{CourantInput, Input, Inputs};
use super::plan::{self, Advecting};
use super::{AdvectOutcome, AdvectTask, Start, file_place, memory_of, warn_of};
use crate::{
    AdvectChoice, AdvectReport, AdvectSchedule, Band, CourantFile, DiskUse, FlowCheck, Moments, MomentsSoFar,
    SlabCosts, SlabRun, Slabs, check_flow_in_file, each_band, slab_bytes, tallest_slab,
};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::job::{BlockedOptions, Context, Job, JobMachine, MemoryNeed};
use apportion::kernels::mpdata::Advectable;
use apportion::matrix::NpyFile;
use apportion::model::Machine;
use apportion::output::OutputFile;
use apportion::platform::Platform;
use apportion::process_memory::return_freed_blocks;
use apportion::run::{Session, World};
use apportion::schedule::Application;
use apportion::trace::Trace;
use std::path::PathBuf;
use std::time::Instant;

/// Bytes from which the allocator returns what is freed: what steps take again and again is smaller.
const RETURNED: u32 = 1 << 20;

/// Seconds for a cell and a step where no speed is known.
const CELL_SECONDS: f64 = 1e-8;

/// How a field was cut, and what that took.
#[derive(Debug, Clone)]
pub(crate) struct SlabOutcome {
    /// The slabs.
    pub slabs: Slabs,
    /// Steps of most sweeps.
    pub steps: u64,
    /// Number of sweeps.
    pub sweeps: u64,
    /// Planes of the grid.
    pub planes: u64,
    /// The memory limit, in bytes.
    pub cap: u64,
    /// Bytes that the process was expected to hold at most.
    pub predicted: u64,
    /// What went to and from files.
    pub disk: DiskUse,
    /// Seconds of all sweeps.
    pub seconds: f64,
    /// The cells that they advanced by a step.
    pub cells: f64,
}

impl SlabOutcome {
    /// Number of slabs.
    pub(crate) fn count(&self) -> u64 {
        self.slabs.count(self.steps)
    }

    /// The part of the cells that are computed more often than once.
    pub(crate) fn computed_twice(&self) -> f64 {
        (self.count() * self.slabs.height()) as f64 / self.planes as f64 - 1.0
    }

    /// Cells advanced by a step per second, with reading and writing.
    pub(crate) fn speed(&self) -> f64 {
        self.cells / self.seconds.max(1e-9)
    }
}

/// The limit within which a field is advected by slabs, as it does not fit the free memory of a process alone at once;
/// `None` if it fits.
///
/// # Errors
/// It does not fit, and cannot be streamed: exit code 2.
pub(super) fn limit_by_free_memory<T: Advectable>(
    task: &AdvectTask<'_>,
    inputs: &Inputs<'_>,
    schedule: &AdvectSchedule,
    platform: &Platform,
    context: Context<'_>,
) -> Result<Option<u64>> {
    // The field as it is read and as it comes out, the faces, and what the steps hold.
    let faces = inputs.faces().map(Input::len).sum::<u128>();
    let arrays = (2 * inputs.field.len() + faces) * size_of::<T>() as u128;
    let streams = inputs.faces().chain([&inputs.field]).all(|input| input.file().is_ok());
    let keeps = streams && (task.output.is_some() || task.directory().is_some());
    let need = MemoryNeed {
        place: &inputs.field.place(),
        what: "an advection in memory",
        bytes: arrays + u128::from(slab_bytes::<T>(schedule, platform)),
        parts: keeps.then_some("advected by slabs"),
        remedy: "add `output` or `checkpoint`, beside which slabs are kept, or use a machine with more memory",
    };
    BlockedOptions::default().limit_by_free_memory(need, context)
}

/// Slabs that fit, and the plan of one.
struct Cut {
    slabs: Slabs,
    /// The candidates for a slab, the best first.
    choices: Vec<AdvectChoice>,
    /// Predicted bytes of the process.
    predicted: u64,
}

/// What slabs are cut for.
struct Cutting<'a, T> {
    advecting: &'a Advecting<'a, T>,
    machine: &'a Machine,
    /// Bytes for other things.
    aside: u64,
    world: &'a World,
}

impl<T: Advectable> Cutting<'_, T> {
    /// The plans of a slab, and the bytes that the best needs.
    fn cut(&self, slabs: Slabs) -> Result<Cut> {
        let advecting = self.advecting.of_slab(slabs);
        let choices = plan::ranked(&Job::new(&advecting), self.machine, self.world)?;
        let schedule = advecting.schedule(&choices[0], 1)?;
        let predicted = slab_bytes::<T>(&schedule, &self.machine.platform) + self.aside;
        Ok(Cut { slabs, choices, predicted })
    }

    /// The highest slabs with which the process stays within the limit.
    ///
    /// # Errors
    /// Not even the lowest slab fits (exit code 1).
    fn tallest(&self, inputs: &Inputs<'_>, memory: u64) -> Result<Cut> {
        let made = tallest_slab(&inputs.problem, memory, &mut |slabs| {
            let cut = self.cut(slabs)?;
            Ok((cut.predicted, cut))
        });
        Ok(made?.1)
    }

    /// Takes no more memory than slabs of which a sweep of `steps` steps has as many.
    ///
    /// # Errors
    /// No feasible plan.
    fn lower(&self, cut: Cut, steps: u64) -> Result<Cut> {
        let slabs = cut.slabs.lowered(steps.min(cut.slabs.most_steps()));
        let lowered = if slabs == cut.slabs { None } else { Some(self.cut(slabs)?) };
        Ok(lowered.filter(|lowered| lowered.predicted <= cut.predicted).unwrap_or(cut))
    }
}

/// The costs of sweeps; `byte` is the number of seconds to read or write a byte.
fn costs_of<T>(inputs: &Inputs<'_>, machine: &Machine, choice: &AdvectChoice, byte: f64) -> SlabCosts {
    let (files, element) = (inputs.faces().count(), size_of::<T>() as f64);
    let rate = plan::rate(&inputs.problem, choice, machine);
    let cell = if machine.only_ratios() { CELL_SECONDS } else { 1.0 / rate };
    SlabCosts { cell, byte, read: element * (1 + files) as f64, written: element }
}

/// Advects a field by slabs of which the process holds one.
///
/// # Errors
/// No slab fits (exit code 1); those of [`advect_field`](super::advect_field).
pub(super) fn advect_by_slabs<T: Advectable>(
    task: &AdvectTask<'_>,
    inputs: &Inputs<'_>,
    kept: &Kept<'_>,
    memory: u64,
    context: Context<'_>,
) -> Result<AdvectOutcome> {
    return_freed_blocks(RETURNED);
    let (problem, world) = (&inputs.problem, context.world);
    let (first, every) = (kept.step(task.steps)?, task.every());
    let aside = task.frames.map_or(0, |frames| Sampler::new(problem, frames).bytes());
    let advecting = Advecting::<T>::new(task, inputs, Some(memory));
    let job = Job::new(&advecting).with_sources(&task.sources).remeasuring(task.remeasure);
    let JobMachine { machine, measured } = job.machine(context)?;
    let cutting = Cutting { advecting: &advecting, machine: &machine, aside, world };
    let cut = cutting.tallest(inputs, memory)?;
    let mut seen = look::<T>(task, inputs, kept, context)?;
    let byte = seen.disk.seconds / seen.disk.read.max(1) as f64;
    let cells = problem.cells() as f64 / problem.sizes[0] as f64;
    let costs = costs_of::<T>(inputs, &machine, &cut.choices[0], byte);
    let steps = cut.slabs.best_steps(every.min(task.steps - first), cells, costs);
    let Cut { slabs, choices, predicted } = cutting.lower(cut, steps)?;
    plan::announce(&choices, &machine, context);
    let best = &choices[0];
    let schedule = advecting.of_slab(slabs).schedule(best, 1)?;
    // The last sweeps before something is written may be shorter.
    let rounds = slabs.count(steps) as f64 * (task.steps - first) as f64;
    let work: f64 = (0..schedule.processors()).map(|rank| schedule.work(Rank(rank))).sum();
    let session = Session::new(world, &machine.platform, context.monitor, work * rounds);
    let begin = Instant::now();
    let courant = std::mem::take(&mut seen.courant);
    let mut sweeps = Sweeps {
        run: SlabRun::<T>::new(problem, slabs, &schedule, courant, seen.start.signed, &session),
        trace: Trace::empty(machine.platform.len()),
        disk: seen.disk,
        count: 0,
        kept: None,
        beside: None,
    };
    let outcome =
        context.watch("advecting", || sweeps.all(task, inputs, kept, &mut seen, first, steps, context));
    let Sweeps { run, trace, mut disk, count, kept: last, beside } = sweeps;
    outcome.map_err(|error| kept.with_instructions(error, last, beside.as_deref()))?;
    disk.read += run.disk.read;
    disk.seconds += run.disk.seconds;
    let done = task.steps - first;
    let report = AdvectReport {
        engine: world.engine(),
        element: T::NAME,
        problem: problem.clone(),
        plan: best.plan.clone(),
        order: best.order,
        steps: done,
        trace,
        predicted_memory: memory_of::<T>(&schedule),
        forecast_seconds: best.plan.forecast.as_ref().map(|_| best.step_seconds * rounds),
        ideal_seconds: plan::ideal_seconds(problem, best, &machine, done),
        moments: [seen.start.moments, seen.now],
        io_seconds: disk.seconds,
    };
    let about = SlabOutcome {
        slabs,
        steps,
        sweeps: count,
        planes: problem.sizes[0] as u64,
        cap: memory,
        predicted,
        disk,
        seconds: begin.elapsed().as_secs_f64(),
        cells: problem.cells() as f64 * done as f64,
    };
    drop(session);
    Ok(AdvectOutcome {
        field: None,
        report,
        largest_courant_sum: seen.flow.largest,
        choices,
        platform: machine.platform,
        measured,
        slabs: Some(about),
    })
}

/// The field and the flow as they were read before the first sweep, and the field's content now.
struct InputState {
    source: NpyFile,
    courant: Vec<CourantFile>,
    flow: FlowCheck,
    start: Start,
    now: Moments,
    disk: DiskUse,
}

/// Reads everything once, and checks it.
fn look<T: Advectable>(
    task: &AdvectTask<'_>,
    inputs: &Inputs<'_>,
    kept: &Kept<'_>,
    context: Context<'_>,
) -> Result<InputState> {
    let (problem, monitor) = (&inputs.problem, context.monitor);
    let from = kept.field().map_or_else(|| inputs.field.file(), Ok)?;
    let mut source = NpyFile::open_array(&from.path)?;
    let place = file_place(&from.path);
    let open = |input: &CourantInput<'_>| match input {
        CourantInput::Constant(value) => Ok(CourantFile::Constant(*value)),
        CourantInput::Faces(faces) => NpyFile::open_array(&faces.file()?.path).map(CourantFile::Faces),
    };
    let mut courant = inputs.courant.iter().map(open).collect::<Result<Vec<_>>>()?;
    inputs.check_unchanged()?;
    let (mut disk, mut sums) = (DiskUse::default(), MomentsSoFar::default());
    let frames = task.frames.filter(|_| !kept.continues());
    let mut picture = frames.map(|frames| Sampler::new(problem, frames));
    let flow = context.watch("checking", || {
        monitor.begin(2 * problem.sizes[0] as u64);
        each_band::<T>(problem, &mut source, &mut disk, monitor, &mut |block| {
            inputs.check_values(&place, block)?;
            sums.add(&block.1);
            if let Some(picture) = &mut picture {
                let first = if problem.sizes.len() == 1 { block.0.cols.start } else { block.0.rows.start };
                picture.add(first, &block.1);
            }
            Ok(())
        })?;
        check_flow_in_file::<T>(problem, &mut courant, &mut disk, monitor)
    })?;
    let now = sums.all();
    warn_of(flow, now, task, context);
    let start = kept.start(now);
    if let (Some(picture), Some(frames)) = (picture, frames) {
        picture.draw(frames, 0, start.colours())?;
    }
    Ok(InputState { source, courant, flow, start, now, disk })
}

/// The sweeps of a run, so far.
struct Sweeps<'a, T> {
    run: SlabRun<'a, T>,
    trace: Trace,
    disk: DiskUse,
    count: u64,
    /// The last step whose field is kept.
    kept: Option<u64>,
    /// The last field that was written beside the output.
    beside: Option<PathBuf>,
}

impl<T: Advectable> Sweeps<'_, T> {
    /// All steps from `first` on, at most `most` in a sweep.
    fn all(
        &mut self,
        task: &AdvectTask<'_>,
        inputs: &Inputs<'_>,
        kept: &Kept<'_>,
        seen: &mut InputState,
        first: u64,
        most: u64,
        context: Context<'_>,
    ) -> Result<()> {
        let (problem, every, whole) = (&inputs.problem, task.every(), self.run.slabs().is_whole());
        // The state that is read, where no other file has it, lasts until the next one is there.
        let mut scratched: Option<Vec<OutputFile>> = None;
        let mut step = first;
        while step < task.steps {
            let end = (step + every - step % every).min(task.steps);
            let rest = end - step;
            let count = rest.div_ceil(rest.div_ceil(most));
            step += count;
            let (event, last) = (step == end, step == task.steps);
            let keeps = if event { kept.place(step)? } else { None };
            let beside = task.snapshot(step).filter(|_| event);
            let output = task.output.clone().filter(|_| last);
            let mut names: Vec<PathBuf> =
                keeps.clone().into_iter().chain(output.or(beside.clone())).collect();
            let again = !whole && !last;
            let between = again && names.is_empty();
            if between {
                names.push(scratch(task.output.as_ref(), task.directory()));
            }
            let mut state = State::create::<T>(&names, problem, again)?;
            let frames = task.frames.filter(|_| event);
            let mut picture = frames.map(|frames| Sampler::new(problem, frames));
            let mut sums = MomentsSoFar::default();
            let trace = self.run.sweep(&mut seen.source, count, &mut |first, elements| {
                if last {
                    sums.add(elements);
                }
                if let Some(picture) = &mut picture {
                    picture.add(first, elements);
                }
                state.put(elements)
            })?;
            if step - count == first {
                seen.source.check_unchanged()?;
            }
            self.run.check_unchanged()?;
            self.trace.append(trace);
            if !task.keeps_events {
                self.trace.condense();
            }
            self.count += 1;
            if let Some(next) = state.written()? {
                seen.source = next;
            }
            self.disk.written += state.disk.written;
            self.disk.seconds += state.disk.seconds;
            if last {
                seen.now = sums.all();
            }
            if context.monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            let mut files = state.into_files();
            let scratch = between.then(|| std::mem::take(&mut files));
            if keeps.is_some() {
                OutputFile::commit_all(files.drain(..1).collect())?;
                kept.note(step, seen.start)?;
                self.kept = Some(step);
            }
            OutputFile::commit_all(files)?;
            self.beside = beside.or(self.beside.take());
            // The next sweep reads the new state.
            scratched = scratch;
            if let (Some(picture), Some(frames)) = (picture, frames) {
                picture.draw(frames, step, seen.start.colours())?;
            }
        }
        drop(scratched);
        if let (Some(output), true) = (&task.output, first == task.steps) {
            // Nothing is left to compute.
            let mut state = State::create::<T>(std::slice::from_ref(output), problem, false)?;
            let mut put = |block: &Band<T>| state.put(&block.1);
            each_band::<T>(problem, &mut seen.source, &mut self.disk, context.monitor, &mut put)?;
            OutputFile::commit_all(state.into_files())?;
        }
        Ok(())
    }
}
