//! Products computed panel by panel, from disk to disk: how C is cut, what a checkpoint keeps, and the run.

use super::decision::{Question, decide_here};
use super::options::FlowOptions;
use super::outputs::Outputs;
use super::product::{Outcome, ProductTask};
use super::sources::KnownMachine;
use super::{Blocked, Context, Decision, Keep, Kept, MatrixOperand, finish_parts, with_kept_parts};
use crate::error::{Error, Result};
use crate::geometry::Span;
use crate::kernels::Kernel;
use crate::matrix::{Element, Matrix, NpyFile, npy_header, write_npy_rows};
use crate::output::OutputFile;
use crate::plan::Shape;
use crate::process_memory::{forget_peak_memory, return_freed_memory};
use crate::product::{
    Carriers, Files, Fingerprint, Manifest, MatmulJob, PanelRun, Panels, Watched, check_panels,
};
use crate::run::{Session, World, usable_threads};
use crate::schedule::{DataPath, Flow, ScheduleOptions};
use crate::select::Choice;
use crate::units;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Why C was cut as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutReason {
    /// The number of panels was requested.
    Panels,
    /// The memory limit of the process.
    Memory,
    /// The memory of the processors.
    ProcessorMemory,
    /// The memory that was free.
    FreeMemory,
    /// Nothing was requested.
    Default,
    /// An earlier run began the product.
    Resumed,
}

/// How a product was computed in panels.
#[derive(Debug, Clone)]
pub struct PanelOutcome {
    /// Number of panels.
    pub count: usize,
    /// Their sizes.
    pub panels: Panels,
    /// Why C was cut so.
    pub reason: CutReason,
    /// Number of panels that already existed.
    pub resumed: usize,
    /// The requested memory limit, in bytes.
    pub memory: Option<u64>,
    /// Bytes that the process was expected to hold at most.
    pub predicted: u64,
    /// The directory in which all panels are kept, if there is one.
    pub(crate) directory: Option<PathBuf>,
}

/// The cut, and the decision for a panel.
struct Cut {
    manifest: Manifest,
    decision: Decision,
    reason: CutReason,
}

/// The source of the panels, and the place where finished ones are kept.
struct Start {
    manifest: Manifest,
    kept: Option<Kept>,
    /// The cut, if this run decided it.
    cut: Option<Cut>,
}

/// What all parts of a run in panels share.
struct PanelWork<'a> {
    task: &'a ProductTask<'a>,
    question: Question<'a>,
    path: DataPath,
    context: Context<'a>,
}

impl PanelWork<'_> {
    /// Who holds operands: the processors, and how they obtain those of others.
    fn carriers(&self) -> Carriers {
        let all = &self.question.known.machine.platform.processors;
        let threads = match self.path {
            DataPath::Packed => 1,
            _ => all.iter().map(|processor| usable_threads(&processor.cores) as u64).sum(),
        };
        Carriers { processors: all.len() as u64, threads, path: self.path }
    }
}

/// Computes a product panel by panel.
pub(super) fn run_in_panels<T: Element>(
    task: &ProductTask<'_>,
    shape: Shape,
    kernel: Kernel<T>,
    known: KnownMachine,
    outputs: Outputs,
    bool: bool,
    context: Context<'_>,
) -> Result<Outcome> {
    let world = context.world;
    let question = Question {
        shape,
        element: size_of::<T>() as u64,
        known: &known,
        sources: &task.sources,
        options: &task.options,
        whole_inner: Some("a product in panels"),
        symmetric: false,
    };
    let work = PanelWork { task, question, path: question.data_path(world), context };
    let scaling = world.all_ok(task.scaling(kernel))?;
    let mut files = world.all_ok(open_files(task))?;
    let Start { manifest, kept, cut } = begin(&work, kernel, &mut files)?;
    world.all_ok(files.check_unchanged())?;
    let machine = &known.machine;
    let job = MatmulJob::new(kernel, &manifest.plan, manifest.order, &machine.models, machine.block)
        .with_scaling(scaling)
        .with_seed(task.options.seed);
    let session = Session::new(world, &machine.platform, context.monitor, shape.flops() / 2.0)
        .copying(task.options.copies());
    return_freed_memory();
    forget_peak_memory();
    let run = PanelRun::new(files, job, &session, shape, manifest.panels);
    let [mut file, _] = outputs.opened(world)?.files;
    if let Some(file) = &mut file {
        let (m, n) = (shape.m as usize, shape.n as usize);
        // Panels that are kept on the same disk need its room too.
        let beside = kept.as_ref().zip(task.panels.directory());
        let beside = beside.filter(|(_, directory)| file.is_on_disk_of(directory));
        let done = beside.map(|(kept, _)| kept.checkpoint.count()).transpose()?;
        let rows = done.map_or(0, |done| shape.m.saturating_sub(done as u64 * manifest.panels.rows));
        let bytes = (shape.m + rows).saturating_mul(shape.n).saturating_mul(size_of::<T>() as u64);
        file.reserve(bytes)?;
        file.put(&npy_header::<T>(&[m, n], bool))?;
    }
    let panels = manifest.panels.of(shape);
    let mut work_in_panels = WorkInPanels { run, panels: &panels, file, world };
    let outcome = context.watch("computing", || {
        let resumed = finish_parts(&mut work_in_panels, kept.as_ref(), context)?;
        work_in_panels.run.check_unchanged()?;
        world.all_ok(work_in_panels.file.as_mut().map_or(Ok(()), OutputFile::complete)).map(|()| resumed)
    });
    let resumed = outcome.map_err(|error| with_finished_panels(error, task, kept.as_ref(), panels.len()))?;
    let WorkInPanels { run, file, .. } = work_in_panels;
    let mut report = run.report()?;
    report.partial = resumed > 0;
    report.element = if bool { "bool" } else { T::NAME };
    let order = manifest.order;
    let panels = PanelOutcome {
        count: panels.len(),
        panels: manifest.panels,
        reason: cut.as_ref().map_or(CutReason::Resumed, |cut| cut.reason),
        resumed,
        memory: task.panels.memory,
        predicted: manifest.panels.predicted_bytes(shape, work.carriers(), order, size_of::<T>() as u64),
        directory: task.panels.directory().cloned(),
    };
    drop(session);
    Ok(Outcome {
        result: None,
        predecessors: None,
        files: file.into_iter().collect(),
        report,
        decision: cut.map(|cut| cut.decision),
        panels: Some(panels),
        explanation: None,
        machine: known.machine,
        measured: known.measured,
    })
}

/// A product whose panels leave memory for the result.
struct WorkInPanels<'a, T> {
    run: PanelRun<'a, T>,
    panels: &'a [Span],
    file: Option<OutputFile>,
    world: &'a World,
}

impl<T: Element> Blocked<T> for WorkInPanels<'_, T> {
    fn count(&self) -> usize {
        self.panels.len()
    }

    fn sizes(&self, part: usize) -> [u64; 2] {
        [self.panels[part].len(), self.run.shape().n]
    }

    fn take(&mut self, _: usize, panel: Option<Matrix<T>>) -> Result<()> {
        self.world.all_ok(match (&mut self.file, panel) {
            (Some(file), Some(panel)) => write_npy_rows(file, panel.as_slice()),
            _ => Ok(()),
        })
    }

    fn compute(&mut self, part: usize, keep: &mut Keep<'_, T>) -> Result<usize> {
        let panel = self.run.panel(self.panels[part])?;
        self.world.all_ok(panel.as_ref().map_or(Ok(()), |panel| keep(part, panel)))?;
        self.take(part, panel).map(|()| part + 1)
    }
}

fn open_files(task: &ProductTask<'_>) -> Result<Files> {
    let open = |operand: &MatrixOperand<'_>| match operand {
        MatrixOperand::File { path, transposed } => NpyFile::open(path, *transposed).map(Watched::new),
        MatrixOperand::Array { name, .. } | MatrixOperand::Distributed { name, .. } => {
            let what = "is an array in memory, but panels are read from .npy files";
            Err(Error::input(*name, what, "leave out `memory`, `panels`, `checkpoint` and `resume`"))
        }
    };
    let b = task.b.as_ref().expect("a product has two factors");
    Ok(Files { a: open(&task.a)?, b: open(b)?, initial: task.initial.as_ref().map(open).transpose()? })
}

/// Opens the checkpoint, if there is one, and decides how to cut C or reads how it was cut; rank 0 decides
/// for all.
fn begin<T: Element>(work: &PanelWork<'_>, kernel: Kernel<T>, files: &mut Files) -> Result<Start> {
    let (world, task) = (work.context.world, work.task);
    let mut decide = || -> Result<Start> {
        let cut_now = || cut(work);
        let Some(directory) = task.panels.directory() else {
            let cut = cut_now()?;
            return Ok(Start { manifest: cut.manifest.clone(), kept: None, cut: Some(cut) });
        };
        let names = work.question.known.machine.platform.names();
        let fingerprint = fingerprint(files, task, kernel, &names)?;
        files.check_unchanged()?;
        let kept = task.panels.open_kept(fingerprint, work.context)?.expect("there is a directory");
        if let Some(begun) = &kept.begun {
            let manifest = Manifest::of_checkpoint(&kept.checkpoint, begun)?;
            check_same_decisions(&manifest, work, directory)?;
            return Ok(Start { manifest, kept: Some(kept), cut: None });
        }
        let cut = cut_now()?;
        kept.begin(cut.manifest.to_value())?;
        Ok(Start { manifest: cut.manifest.clone(), kept: Some(kept), cut: Some(cut) })
    };
    if world.is_solo() {
        return decide();
    }
    let mine = world.on_root(decide)?;
    let text = mine.as_ref().map(|start| start.manifest.to_value().to_string()).unwrap_or_default();
    let text = world.broadcast(text.as_bytes())?;
    match mine {
        Some(start) => Ok(start),
        None => {
            let manifest = Manifest::parse(&String::from_utf8_lossy(&text), "rank 0's decisions")?;
            Ok(Start { manifest, kept: None, cut: None })
        }
    }
}

/// The error of a run whose finished panels are kept, with instructions to continue.
fn with_finished_panels(error: Error, task: &ProductTask<'_>, kept: Option<&Kept>, count: usize) -> Error {
    let (Some(directory), Some(kept)) = (task.panels.directory(), kept) else { return error };
    let finished = kept.checkpoint.count();
    let finished = finished
        .map_or_else(|_| "the finished panels".into(), |finished| format!("{finished} of {count} panels"));
    with_kept_parts(error, &finished, directory)
}

impl PanelOutcome {
    /// An error after the run, with instructions to continue from the panels.
    pub(super) fn with_instructions(&self, error: Error) -> Error {
        match &self.directory {
            Some(directory) => with_kept_parts(error, &format!("{0} of {0} panels", self.count), directory),
            None => error,
        }
    }
}

/// Refuses options that differ from those a checkpoint was started with.
fn check_same_decisions(started: &Manifest, work: &PanelWork<'_>, directory: &Path) -> Result<()> {
    let (options, panels, order) = (&work.task.options, &work.task.panels, started.order);
    let (shape, flow) = (work.question.shape, &options.flow);
    let (rows, block) = (started.panels.rows, flow.pivot_block(shape.k)?.min(shape.k));
    let needs = started.panels.predicted_bytes(shape, work.carriers(), order, work.question.element);
    let refusals = [
        ("`flow`", flow.flow.is_some_and(|flow| flow != order.flow), order.flow.to_string()),
        ("`block`", flow.has_block() && block != order.block, order.block.to_string()),
        ("`overlap`", flow.overlap && !order.overlaps(), "none".into()),
        (
            "`look_ahead`",
            flow.look_ahead.is_some_and(|n| !order.overlaps() || n != order.look_ahead),
            order.look_ahead.to_string(),
        ),
        ("`messages`", flow.messages.is_some_and(|messages| messages != order.messages), "others".into()),
        (
            "`method`",
            options.method.is_some_and(|method| method.to_string() != started.plan.method),
            started.plan.method.clone(),
        ),
        (
            "`panels`",
            panels.panels.is_some_and(|n| shape.m.div_ceil(n) != rows),
            format!("panels of {rows} rows"),
        ),
        (
            "`memory`",
            panels.memory.is_some_and(|memory| memory < needs),
            format!("a plan that needs {}", units::show_bytes(needs as f64)),
        ),
    ];
    match refusals.into_iter().find(|(_, refused, _)| *refused) {
        Some((place, _, then)) => Err(Error::input(
            place,
            format!("the product in {} was started with {then}", directory.display()),
            "remove the flag, or start in another directory",
        )),
        None => Ok(()),
    }
}

/// The operation that the product belongs to.
fn fingerprint<T: Element>(
    files: &mut Files,
    task: &ProductTask<'_>,
    kernel: Kernel<T>,
    processors: &[String],
) -> Result<Fingerprint> {
    let Files { a, b, initial } = files;
    let mut inputs = Vec::new();
    for watched in [Some(a), Some(b), initial.as_mut()].into_iter().flatten() {
        let digest = watched.read_once::<T>()?;
        inputs.push(Fingerprint::of_file(&watched.file, digest));
    }
    let transposed = |operand: Option<&MatrixOperand<'_>>| {
        matches!(operand, Some(MatrixOperand::File { transposed: true, .. }))
    };
    let scalar = |given: Option<f64>| given.map(|x| x.to_string());
    let settings = json!({
        "semiring": kernel.semiring().name(),
        "program": Fingerprint::program(),
        "kernel": kernel.about(),
        "transposed": [transposed(Some(&task.a)), transposed(task.b.as_ref())],
        "alpha": scalar(task.alpha),
        "beta": scalar(task.beta),
        "processors": processors,
    });
    Ok(Fingerprint { work: "product", inputs, settings })
}

/// Cuts C, and makes the plan of a panel. It takes the smallest number of panels that fits all processors;
/// the inner dimension is cut only if rows alone are not enough.
///
/// # Errors
/// The requested cut does not fit, or no cut does (exit code 1).
fn cut(work: &PanelWork<'_>) -> Result<Cut> {
    let PanelWork { task, question, path, context } = *work;
    let (asked, flow, shape) = (&task.panels, &task.options.flow, question.shape);
    let mut reason = match (asked.panels, asked.memory) {
        (Some(_), _) => CutReason::Panels,
        (None, Some(_)) => CutReason::Memory,
        (None, None) => CutReason::Default,
    };
    let mut block = flow.pivot_block(shape.k)?.min(shape.k);
    let mut panels = Panels { rows: shape.m.div_ceil(asked.count()), segment: shape.k };
    if let Some(memory) = asked.memory {
        (panels, block) = within(memory, panels, block, work, *flow)?;
    }
    let decide = |panels: Panels, context: Context<'_>| {
        let panel = Shape { m: panels.rows, k: panels.segment, ..shape };
        let mut decision = decide_here(Question { shape: panel, ..question }, path, context)?;
        let frugal = |choice: &Choice| choice.order.flow != Flow::Bulk;
        if asked.memory.is_some() && decision.choices.iter().any(frugal) {
            // The flow that holds whole operands is unsuitable if memory is short.
            decision.choices.retain(|choice| frugal(choice) || flow.flow.is_some());
        }
        let mut refusal = Ok(());
        decision.choices.iter_mut().for_each(|choice| choice.order.block = choice.order.block.min(block));
        decision.choices.retain(|Choice { plan, order, .. }| {
            let platform = &question.known.machine.platform;
            let checked = check_panels(plan, *order, platform, shape, panels, question.element, path);
            let fits = checked.is_ok();
            refusal = std::mem::replace(&mut refusal, Ok(())).and(checked);
            fits
        });
        if decision.choices.is_empty() { refusal.map(|()| decision) } else { Ok(decision) }
    };
    let decision = match decide(panels, context) {
        Err(Error::TooLittleMemory { .. }) if asked.panels.is_none() => {
            reason = CutReason::ProcessorMemory;
            // A segment that the user's blocks do not fill would not match the request.
            let least = if flow.has_block() { block } else { 1 };
            panels = smaller(panels, shape, least, &|panels| decide(panels, context.silenced()))?;
            decide(panels, context)?
        }
        decision => decision?,
    };
    let best = decision.best();
    let manifest = Manifest { plan: best.plan.clone(), order: best.order, panels };
    Ok(Cut { manifest, decision, reason })
}

/// Panels and a pivot block with which the whole process stays within `memory`.
fn within(
    memory: u64,
    panels: Panels,
    block: u64,
    work: &PanelWork<'_>,
    flow: FlowOptions,
) -> Result<(Panels, u64)> {
    let panel = Shape { m: panels.rows, ..work.question.shape };
    let with = |block| {
        let look_ahead = if flow.overlaps() { flow.checked_look_ahead()? } else { 0 };
        let order =
            ScheduleOptions::new(flow.flow.unwrap_or(Flow::OneToAll), block).with_look_ahead(look_ahead);
        Panels::within(memory, panel, work.carriers(), order, work.question.element)
            .map(|panels| (panels, block))
    };
    let refused = match with(block) {
        Err(refused) if !flow.has_block() => refused,
        outcome => return outcome,
    };
    // This block was not requested: a smaller one may fit.
    let smaller = std::iter::successors(Some(block), |&b| (b > 1).then(|| b.div_ceil(2))).skip(1);
    smaller.map(with).find(|outcome| outcome.is_ok()).unwrap_or(Err(refused))
}

/// The smallest number of panels that fits, at least that of `from`. The inner dimension is one segment if
/// possible, otherwise segments of a half, a quarter, …, down to `least` indices. O(log^2) trial fits.
fn smaller(
    from: Panels,
    shape: Shape,
    least: u64,
    decide: &dyn Fn(Panels) -> Result<Decision>,
) -> Result<Panels> {
    let first = shape.m.div_ceil(from.rows);
    let (mut segment, mut refusal) = (from.segment, None);
    loop {
        let panels = |count: u64| Panels { rows: shape.m.div_ceil(count), segment };
        let mut fits = |count: u64| match decide(panels(count)) {
            Ok(_) => Ok(true),
            Err(error @ Error::TooLittleMemory { .. }) => {
                refusal = Some(error);
                Ok(false)
            }
            Err(error) => Err(error),
        };
        let doubled = std::iter::successors(Some(first), |&c| (c < shape.m).then(|| (2 * c).min(shape.m)));
        let mut low = first.saturating_sub(1);
        for count in doubled {
            if fits(count)? {
                let mut high = count;
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if fits(middle)? { high = middle } else { low = middle }
                }
                return Ok(panels(high));
            }
            low = count;
        }
        if segment <= least {
            let why = refusal.expect("nothing fitted").to_string();
            let what = why.split(" (").next().unwrap_or(&why);
            return Err(Error::infeasible(
                format!(
                    "no panels fit: with {} rows and {segment} inner indices {what}",
                    panels(shape.m).rows
                ),
                "give more memory, or use a method and a flow that need less",
            ));
        }
        segment = (segment / 2).next_multiple_of(least).min(segment - 1).max(least);
    }
}
