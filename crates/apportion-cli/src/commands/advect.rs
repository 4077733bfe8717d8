//! `apportion advect`: MPDATA on unequal processors.

use super::slabs;
use crate::args::AdvectArgs;
use crate::console::{Console, monitor};
use crate::output::advect::{
    SavedState, file_hash, is_free, keep, read_saved_state, snapshot, write_field, write_frame,
};
use crate::output::provenance::provenance;
use crate::output::slabs::SlabReport;
use crate::output::{appear, open, picture, timeline};
use crate::prepare;
use crate::prepare::advect::{
    ArrayFile, CourantInput, Inputs, Prepared, courant_files, decide_advection, inputs,
};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::job::{Context, InputFiles, warn_of_uncertainty};
use apportion::kernels::mpdata::Advectable;
use apportion::output::{is_stream, try_output};
use apportion::process_memory::memory_budget;
use apportion::record::{AdvectCandidate, Detail, Run};
use apportion::run::{Session, World};
use apportion::schedule::Application;
use apportion::trace::Trace;
use apportion_advect::AdvectSchedule;
use apportion_advect::{AdvectJob, AdvectReport, FlowCheck, Moments, advect, check_flow, moments};
use apportion_report::run_text;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A divergence above this fraction of a cell's content per step is worth a warning.
const DIVERGENT: f64 = 1e-6;

pub fn run(args: &AdvectArgs, console: &Console) -> Result<()> {
    let named = [Some(args.field.as_path()), args.plan.as_deref()];
    let named = named.into_iter().chain(args.sources.files()).flatten();
    let compared = InputFiles {
        files: named.chain(courant_files(&args.courant)).collect(),
        checkpoint: args.resume.as_deref(),
        ..InputFiles::default()
    };
    on_engine(args.engine.patient(), &compared, console, |world, console| {
        let inputs = world.all_ok(inputs(args).and_then(|inputs| refuse(args).map(|()| inputs)))?;
        match inputs.field.header.dtype {
            "f32" => on_world::<f32>(args, &inputs, world, console),
            _ => on_world::<f64>(args, &inputs, world, console),
        }
    })
}

/// Flags that need others.
fn refuse(args: &AdvectArgs) -> Result<()> {
    let used =
        args.output.is_some() || args.frames.is_some() || args.checkpoint.is_some() || args.resume.is_some();
    if args.every.is_some() && !used {
        return Err(Error::input("--every", "nothing is written", "add -o, --frames or --checkpoint"));
    }
    if let (Some(_), Some(output)) = (args.every, &args.output)
        && is_stream(output)
    {
        let what = format!("{} has no name beside which fields could be written", output.display());
        return Err(Error::input("--every", what, "name a file by -o"));
    }
    prepare::slabs::refuse(args)
}

/// What is known before the processors are.
pub struct AdvectStart<'a> {
    /// Where fields are kept, if anywhere.
    pub directory: Option<&'a PathBuf>,
    pub identity: Value,
    /// Where an earlier run stands.
    pub kept: Option<SavedState>,
}

impl<'a> AdvectStart<'a> {
    /// Reads the checkpoint, and checks what can be checked at once.
    pub fn new<T: Advectable>(
        args: &'a AdvectArgs,
        inputs: &Inputs,
        world: &World,
        console: &Console,
    ) -> Result<Self> {
        let directory = args.checkpoint.as_ref().or(args.resume.as_ref());
        world.all_ok(args.checkpoint.as_deref().map_or(Ok(()), is_free))?;
        let identity = world.all_ok(directory.map(|_| identity(inputs)).transpose())?.unwrap_or_default();
        let kept = world
            .all_ok(args.resume.as_ref().map(|from| read_saved_state(from, &identity)).transpose())?
            .flatten();
        if let Some(directory) = args.resume.as_ref().filter(|_| kept.is_none()) {
            console.note(format!("there is no checkpoint in {}: from the first step", directory.display()));
        }
        world.on_root(|| inputs.check_periodic::<T>())?;
        let outputs = [args.report.as_ref(), args.trace.as_ref(), args.svg.as_ref(), args.output.as_ref()];
        let tried = || outputs.iter().copied().flatten().try_for_each(|path| try_output(path));
        world.on_root(tried)?;
        Ok(Self { directory, identity, kept })
    }

    /// The step from which the run goes on.
    pub fn step(&self, args: &AdvectArgs) -> Result<u64> {
        let step = self.kept.as_ref().map_or(0, |kept| kept.step);
        if step > args.steps {
            let what = format!("the checkpoint is at step {step}, beyond --steps {}", args.steps);
            return Err(Error::input("--resume", what, "give more steps"));
        }
        Ok(step)
    }

    /// The number of steps after which something is written.
    pub fn every(&self, args: &AdvectArgs) -> u64 {
        args.every.unwrap_or(if self.directory.is_some() { args.steps.div_ceil(10) } else { args.steps })
    }

    /// The field from which the run goes on.
    pub fn field<'f>(&'f self, inputs: &'f Inputs) -> &'f ArrayFile {
        self.kept.as_ref().map_or(&inputs.field, |kept| &kept.field)
    }
}

/// Warns of a flow that diverges, and of a field of both signs.
pub fn warn_of(flow: &FlowCheck, start: &Moments, args: &AdvectArgs, console: &Console) {
    if flow.divergence > DIVERGENT {
        console.note(format!(
            "apportion: warning: the flow diverges: up to {:.1e} of a cell's content per step flows out on \
             balance; constants do not stay constant",
            flow.divergence
        ));
    }
    if start.least < 0.0 && start.most > 0.0 && !args.scheme.infinite_gauge {
        console.note("the field has both signs: magnitudes are in the denominators (see --infinite-gauge)");
    }
}

/// What determines the bytes of the result.
fn identity(inputs: &Inputs) -> Result<Value> {
    let courant: Vec<Value> = inputs
        .courant
        .iter()
        .map(|input| match input {
            CourantInput::Constant(value) => Ok(json!(value)),
            CourantInput::File(file) => Ok(json!(file_hash(&file.path)?)),
        })
        .collect::<Result<_>>()?;
    Ok(json!({
        "sizes": inputs.problem.sizes,
        "boundary": inputs.problem.boundary,
        "scheme": inputs.problem.scheme,
        "element": inputs.field.header.dtype,
        "field": file_hash(&inputs.field.path)?,
        "courant": courant,
    }))
}

fn on_world<T: Advectable>(
    args: &AdvectArgs,
    inputs: &Inputs,
    world: &World,
    console: &Console,
) -> Result<()> {
    let begin = Instant::now();
    let begun = AdvectStart::new::<T>(args, inputs, world, console)?;
    if let Some(memory) = args.memory {
        let memory = memory.min(memory_budget().unwrap_or(u64::MAX));
        return slabs::run::<T>(args, inputs, &begun, memory, world, console);
    }
    let AdvectStart { directory, identity, kept } = &begun;
    let prepared = decide_advection::<T>(args, inputs, world, console)?;
    let best = &prepared.choices[0];
    let layout = best.plan.rectangles().expect("an advection's plan is of a grid");
    let schedule = world.all_ok(AdvectSchedule::new(&inputs.problem, layout, best.order, args.steps))?;
    if let Some(memory) =
        prepare::slabs::limit_by_free_memory::<T>(args, inputs, &schedule, &prepared, console)?
    {
        return slabs::run::<T>(args, inputs, &begun, memory, world, console);
    }
    let mut field = world.all_ok(inputs.read_field::<T>(begun.field(inputs), &schedule, world))?;
    let faces = world.all_ok(inputs.read_courant::<T>(&schedule, world))?;
    world.all_ok(inputs.check_unchanged())?;
    let courant = inputs.courant(&faces);
    let flow = check_flow(&schedule, &courant, world)?;
    let start = moments(&field, world)?;
    warn_of(&flow, &start, args, console);
    let before = kept.as_ref().map_or(start, |kept| kept.before);
    let signed = kept.as_ref().map_or(start.least < 0.0, |kept| kept.signed);
    let mut step = world.all_ok(begun.step(args))?;
    let io = begin.elapsed().as_secs_f64();
    let problem = &inputs.problem;
    let colours = [before.least, before.most];
    let frame = |step: u64, field: &_| match &args.frames {
        Some(frames) => write_frame(frames, step, field, problem, colours, world),
        None => Ok(()),
    };
    if step == 0 {
        frame(0, &field)?;
    }
    let first = step;
    let every = begun.every(args);
    let job = AdvectJob { problem, plan: &best.plan, order: best.order, signed };
    let work: f64 = (0..schedule.processors()).map(|rank| schedule.work(Rank(rank))).sum();
    let work = work * (args.steps - first) as f64 / args.steps as f64;
    let session = Session::new(world, &prepared.platform, monitor(), work);
    let mut trace = Trace::empty(prepared.platform.len());
    let (mut last, mut beside) = (None, None);
    let outcome = console.watch("advecting", monitor(), || -> Result<()> {
        while step < args.steps {
            let count = (every - step % every).min(args.steps - step);
            let (next, lanes) = advect(&job, &field, &courant, count, &session)?;
            field = next;
            trace.append(lanes);
            step += count;
            if let Some(directory) = directory {
                let state = (step, signed, before);
                keep(directory, identity, state, &field, problem, world)?;
                last = Some(step);
            }
            if let (Some(_), Some(output), true) = (args.every, &args.output, step < args.steps) {
                let place = snapshot(output, step);
                write_field(&place, &field, problem, world)?;
                beside = Some(place);
            }
            frame(step, &field)?;
        }
        Ok(())
    });
    outcome.map_err(|error| with_kept(error, &begun, last, beside.as_deref()))?;
    let after = moments(&field, world)?;
    let writing = Instant::now();
    if let Some(output) = &args.output {
        write_field(output, &field, problem, world)?;
    }
    let done = args.steps - first;
    let part = done as f64 / args.steps as f64;
    let element = size_of::<T>() as u64;
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
        forecast_seconds: best.plan.forecast.as_ref().map(|forecast| forecast.seconds * part),
        ideal_seconds: prepared.ideal_seconds.map(|seconds| seconds * part),
        moments: [before, after],
        io_seconds: io + writing.elapsed().as_secs_f64(),
    };
    tell(args, &report, None, &prepared, flow.largest, world, console)
}

/// The error of a run some of whose steps are kept, with instructions to continue; `beside` is the last field
/// that was written beside the output.
pub fn with_kept(error: Error, begun: &AdvectStart<'_>, step: Option<u64>, beside: Option<&Path>) -> Error {
    let snapshots = beside.map(|last| format!("fields up to {} are written", last.display()));
    let kept = begun.directory.zip(step).map(|(directory, step)| {
        let directory = directory.display();
        format!(
            "step {step} kept in {directory}: the same command with --resume {directory} instead of --checkpoint \
             continues"
        )
    });
    let all: Vec<String> = snapshots.into_iter().chain(kept).collect();
    if all.is_empty() { error } else { error.with_kept(&all.join("; ")) }
}

/// Prints the report, and writes the files about the run, on rank 0.
pub fn tell(
    args: &AdvectArgs,
    report: &AdvectReport,
    slabs: Option<&SlabReport>,
    prepared: &Prepared,
    largest: f64,
    world: &World,
    console: &Console,
) -> Result<()> {
    let tell = || {
        let mut run = Run::from(report);
        run.network = prepared.platform.network.hosts().cloned();
        run.provenance = Some(provenance());
        if let Detail::Advection(advection) = &mut run.detail {
            let candidates = prepared.choices.iter().map(|choice| AdvectCandidate {
                method: choice.plan.method.clone(),
                exchange: choice.order.exchange,
                overlap: choice.order.overlap,
                forecast_seconds: choice.plan.forecast.as_ref().map(|forecast| forecast.seconds),
            });
            advection.candidates = candidates.collect();
            advection.largest_courant_sum = Some(largest);
            advection.slabs = slabs.map(SlabReport::record);
        }
        appear([
            (open(args.report.as_ref())?, &|| format!("{:#}\n", run.to_value())),
            (open(args.trace.as_ref())?, &|| {
                timeline(args.trace.as_ref(), &report.trace, &report.plan.processors)
            }),
            (open(args.svg.as_ref())?, &|| picture(&report.plan, &prepared.platform)),
        ])?;
        console.result(|| run.to_value(), || run_text(&run));
        if let Some(quick) = &prepared.quick {
            let context = Context { world, monitor: monitor(), observer: console };
            warn_of_uncertainty(quick, "they are measured at each start", context);
        }
        Ok(())
    };
    world.on_root(tell).map(drop)
}
