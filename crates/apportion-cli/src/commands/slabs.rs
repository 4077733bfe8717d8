//! `advect --memory`: a field larger than memory, slab by slab from one file into the next.

use super::advect::{AdvectStart, tell, warn_of, with_kept};
use crate::args::AdvectArgs;
use crate::console::{Console, monitor};
use crate::output::advect::{note_kept, place_to_keep, snapshot};
use crate::output::slabs::{Sampler, SlabReport, State, scratch};
use crate::prepare::advect::Inputs;
use crate::prepare::slabs::{Cut, courant_files, cut};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::kernels::mpdata::Advectable;
use apportion::matrix::NpyFile;
use apportion::output::OutputFile;
use apportion::process_memory::return_freed_blocks;
use apportion::run::{Session, World};
use apportion::schedule::Application;
use apportion::trace::Trace;
use apportion_advect::AdvectSchedule;
use apportion_advect::{
    AdvectReport, Band, CourantFile, DiskUse, FlowCheck, Moments, MomentsSoFar, SlabRun, check_flow_in_file,
    each_band,
};
use std::path::PathBuf;
use std::time::Instant;

/// Bytes from which the allocator returns what is freed: what steps take again and again is smaller.
const RETURNED: u32 = 1 << 20;

pub fn run<T: Advectable>(
    args: &AdvectArgs,
    inputs: &Inputs,
    begun: &AdvectStart<'_>,
    memory: u64,
    world: &World,
    console: &Console,
) -> Result<()> {
    return_freed_blocks(RETURNED);
    let (problem, first, every) = (&inputs.problem, begun.step(args)?, begun.every(args));
    let aside = if args.frames.is_some() { Sampler::new(problem).bytes() } else { 0 };
    let mut cut = cut::<T>(args, inputs, memory, aside, world, console)?;
    let mut seen = look::<T>(args, inputs, begun, console)?;
    let byte = seen.disk.seconds / seen.disk.read.max(1) as f64;
    let most = every.min(args.steps - first);
    let steps = cut.slabs.best_steps(most, plane_cells(inputs), cut.costs::<T>(inputs, byte));
    cut.lower::<T>(args, problem, steps, aside, world)?;
    let Cut { known, slabs, choices, predicted } = cut;
    let prepared = known.announce(args, problem, choices, console)?;
    let best = &prepared.choices[0];
    let layout = best.plan.rectangles().expect("an advection's plan is of a grid");
    let slab = slabs.problem(problem);
    let schedule = AdvectSchedule::new(&slab, layout, best.order, 1)?;
    // The last sweeps before something is written may be shorter.
    let rounds = slabs.count(steps) as f64 * (args.steps - first) as f64;
    let work: f64 = (0..schedule.processors()).map(|rank| schedule.work(Rank(rank))).sum();
    let session = Session::new(world, &prepared.platform, monitor(), work * rounds);
    let begin = Instant::now();
    let courant = std::mem::take(&mut seen.courant);
    let mut sweeps = Sweeps {
        run: SlabRun::<T>::new(problem, slabs, &schedule, courant, seen.signed, &session),
        trace: Trace::empty(prepared.platform.len()),
        disk: seen.disk,
        count: 0,
        kept: None,
        beside: None,
    };
    let outcome = console
        .watch("advecting", monitor(), || sweeps.all(args, inputs, begun, &mut seen, first, every, steps));
    let Sweeps { run, trace, mut disk, count, kept, beside } = sweeps;
    outcome.map_err(|error| with_kept(error, begun, kept, beside.as_deref()))?;
    disk.read += run.disk.read;
    disk.seconds += run.disk.seconds;
    let done = args.steps - first;
    let element = size_of::<T>() as u64;
    let cells = problem.cells() as f64 * done as f64;
    let report = AdvectReport {
        engine: world.engine(),
        element: T::NAME,
        problem: problem.clone(),
        plan: best.plan.clone(),
        order: best.order,
        steps: done,
        trace,
        predicted_memory: (0..schedule.processors())
            .map(|rank| schedule.memory(Rank(rank), element))
            .collect(),
        forecast_seconds: best.plan.forecast.as_ref().map(|_| best.step_seconds * rounds),
        ideal_seconds: prepared.ideal_seconds.map(|seconds| seconds * done as f64 / args.steps as f64),
        moments: [seen.before, seen.now],
        io_seconds: disk.seconds,
    };
    let about = SlabReport {
        slabs,
        steps,
        sweeps: count,
        planes: problem.sizes[0] as u64,
        cap: memory,
        predicted,
        disk,
        seconds: begin.elapsed().as_secs_f64(),
        cells,
    };
    tell(args, &report, Some(&about), &prepared, seen.flow.largest, world, console)
}

fn plane_cells(inputs: &Inputs) -> f64 {
    inputs.problem.cells() as f64 / inputs.problem.sizes[0] as f64
}

/// The field and the flow as they were read before the first sweep, and the field's content now.
struct InputState {
    source: NpyFile,
    courant: Vec<CourantFile>,
    flow: FlowCheck,
    before: Moments,
    now: Moments,
    signed: bool,
    disk: DiskUse,
}

/// Reads everything once, and checks it.
fn look<T: Advectable>(
    args: &AdvectArgs,
    inputs: &Inputs,
    begun: &AdvectStart<'_>,
    console: &Console,
) -> Result<InputState> {
    let problem = &inputs.problem;
    let from = &begun.field(inputs).path;
    let mut source = NpyFile::open_array(from)?;
    let mut courant = courant_files(inputs)?;
    inputs.check_unchanged()?;
    let (mut disk, mut sums) = (DiskUse::default(), MomentsSoFar::default());
    let mut picture = (args.frames.is_some() && begun.kept.is_none()).then(|| Sampler::new(problem));
    let flow = console.watch("checking", monitor(), || {
        monitor().begin(2 * problem.sizes[0] as u64);
        each_band::<T>(problem, &mut source, &mut disk, monitor(), &mut |block| {
            inputs.check_values(from, block)?;
            sums.add(&block.1);
            if let Some(picture) = &mut picture {
                let first = if problem.sizes.len() == 1 { block.0.cols.start } else { block.0.rows.start };
                picture.add(first, &block.1);
            }
            Ok(())
        })?;
        check_flow_in_file::<T>(problem, &mut courant, &mut disk, monitor())
    })?;
    let now = sums.all();
    warn_of(&flow, &now, args, console);
    let before = begun.kept.as_ref().map_or(now, |kept| kept.before);
    let signed = begun.kept.as_ref().map_or(now.least < 0.0, |kept| kept.signed);
    if let (Some(picture), Some(frames)) = (picture, &args.frames) {
        picture.write(frames, 0, [before.least, before.most])?;
    }
    Ok(InputState { source, courant, flow, before, now, signed, disk })
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
    /// All steps from `first` on, with something written after `every` and at most `most` in a sweep.
    fn all(
        &mut self,
        args: &AdvectArgs,
        inputs: &Inputs,
        begun: &AdvectStart<'_>,
        seen: &mut InputState,
        first: u64,
        every: u64,
        most: u64,
    ) -> Result<()> {
        let (problem, whole) = (&inputs.problem, self.run.slabs().is_whole());
        // The state that is read, where no other file has it, lasts until the next one is there.
        let mut scratched: Option<Vec<OutputFile>> = None;
        let mut step = first;
        while step < args.steps {
            let end = (step + every - step % every).min(args.steps);
            let rest = end - step;
            let count = rest.div_ceil(rest.div_ceil(most));
            step += count;
            let (event, last) = (step == end, step == args.steps);
            let mut names = Vec::new();
            if let (true, Some(directory)) = (event, begun.directory) {
                names.push(place_to_keep(directory, step)?);
            }
            match &args.output {
                Some(output) if last => names.push(output.clone()),
                Some(output) if event && args.every.is_some() => names.push(snapshot(output, step)),
                _ => {}
            }
            let again = !whole && !last;
            let between = again && names.is_empty();
            if between {
                names.push(scratch(args.output.as_ref(), begun.directory));
            }
            let mut state = State::create::<T>(&names, problem, again)?;
            let mut picture = (event && args.frames.is_some()).then(|| Sampler::new(problem));
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
            if args.trace.is_none() {
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
            if monitor().is_stopped() {
                return Err(Error::Interrupted);
            }
            let mut files = state.into_files();
            let scratch = between.then(|| std::mem::take(&mut files));
            if let (true, Some(directory)) = (event, begun.directory) {
                OutputFile::commit_all(files.drain(..1).collect())?;
                note_kept(directory, &begun.identity, step, seen.signed, seen.before)?;
                self.kept = Some(step);
            }
            OutputFile::commit_all(files)?;
            if event && args.every.is_some() && !last {
                self.beside = args.output.as_ref().map(|output| snapshot(output, step));
            }
            // The next sweep reads the new state.
            scratched = scratch;
            if let (Some(picture), Some(frames)) = (picture, &args.frames) {
                picture.write(frames, step, [seen.before.least, seen.before.most])?;
            }
        }
        drop(scratched);
        if let (Some(output), true) = (&args.output, first == args.steps) {
            // Nothing is left to compute.
            let mut state = State::create::<T>(std::slice::from_ref(output), problem, false)?;
            let mut put = |block: &Band<T>| state.put(&block.1);
            each_band::<T>(problem, &mut seen.source, &mut self.disk, monitor(), &mut put)?;
            OutputFile::commit_all(state.into_files())?;
        }
        Ok(())
    }
}
