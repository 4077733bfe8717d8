//! Jobs whose result is a matrix: products, powers, closures.

use super::decision::{Question, decide_for_all};
use super::kernel::{fastest_kernel, is_small, kernel_of_models};
use super::network::check_network;
use super::operands::{Inputs, Kind, MatrixOperand, OwnBlocks, open_operands};
use super::outputs::{Outputs, write_both, write_result};
use super::panels::{CutReason, PanelOutcome, run_in_panels};
use super::sources::KnownMachine;
use super::speeds::MeasuredSpeeds;
use super::{BlockedOptions, Context, Decision, MemoryNeed, RunOptions, Sources, is_layout_file};
use crate::error::{Error, Result};
use crate::files::is_stream;
use crate::geometry::Rank;
use crate::kernels::{Kernel, PathElement, Real, Semiring, Tropical};
use crate::matrix::{AnyBlocks, Element, LocalBlocks, Scaling};
use crate::output::OutputFile;
use crate::plan::{Layout, Shape};
use crate::product::{
    Adaptive, ClosureMethod, MatmulJob, OperandViews, OwnRects, RunForecasts, RunReport, matrix_closure,
    matrix_paths, matrix_power, multiply, products_of_power,
};
use crate::run::{Session, World};
use crate::schedule::MatmulSchedule;
use crate::select::{ObservedMachine, RunTimes, affordable, forecast};
use crate::simulate::{CostModel, History, Outcome as Simulated, simulate_explained};
use std::path::PathBuf;
use std::time::Instant;

/// Forecasts at most that look back on a run.
const FORECASTS: usize = 20;

/// What is computed from the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// alpha op(A) op(B) + beta C0.
    Product,
    /// alpha op(A) op(A)^T + beta C0, of whose product the lower triangle is computed and mirrored; without B.
    Symmetric,
    /// A to this power.
    Power(u64),
    /// I + A + A A + …
    Closure {
        /// How; by default whichever is predicted to take less time.
        method: Option<ClosureMethod>,
        /// With the vertex before the last on each best path.
        predecessors: bool,
    },
}

/// Everything that a caller says of a product, a power or a closure.
#[derive(Debug, Clone)]
pub struct ProductTask<'a> {
    /// What is computed.
    pub operation: Operation,
    /// The algebra.
    pub semiring: Semiring,
    /// Left factor, or the only matrix of a power or closure.
    pub a: MatrixOperand<'a>,
    /// Right factor of a product.
    pub b: Option<MatrixOperand<'a>>,
    /// Initial C of a product.
    pub initial: Option<MatrixOperand<'a>>,
    /// Factor of the product.
    pub alpha: Option<f64>,
    /// Factor of the initial C.
    pub beta: Option<f64>,
    /// Repartition in mid-run.
    pub adaptive: Option<Adaptive>,
    /// Part of each processor's tiles that is left to a queue.
    pub tail: Option<f64>,
    /// Panels of C.
    pub panels: BlockedOptions,
    /// Name or number of a processor whose waits in the forecast are to be explained.
    pub explain: Option<String>,
    /// File of the result; otherwise it is returned.
    pub output: Option<PathBuf>,
    /// File of the predecessors of a closure; otherwise they are returned.
    pub predecessors: Option<PathBuf>,
    /// The processors.
    pub sources: Sources,
    /// Choices that are made already.
    pub options: RunOptions,
}

impl<'a> ProductTask<'a> {
    /// An operation on a matrix, everything else left open.
    pub fn new(operation: Operation, semiring: Semiring, a: MatrixOperand<'a>) -> Self {
        Self {
            operation,
            semiring,
            a,
            b: None,
            initial: None,
            alpha: None,
            beta: None,
            adaptive: None,
            tail: None,
            panels: BlockedOptions::default(),
            explain: None,
            output: None,
            predecessors: None,
            sources: Sources::default(),
            options: RunOptions { seed: 1, ..RunOptions::default() },
        }
    }

    /// The operands that there are.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &MatrixOperand<'a>> {
        [Some(&self.a), self.b.as_ref(), self.initial.as_ref()].into_iter().flatten()
    }

    /// True if C is computed in panels by request.
    pub(super) fn in_panels(&self) -> bool {
        self.panels.requested()
    }

    /// True if C can be cut into panels of `.npy` files, and no requested option forbids it.
    fn can_be_cut(&self) -> bool {
        let is_npy = |operand: &MatrixOperand<'_>| {
            operand.path().is_some_and(|path| {
                path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) && !is_stream(path)
            })
        };
        self.operation == Operation::Product
            && self.explain.is_none()
            && self.operands().all(is_npy)
            && !self.output.as_deref().is_some_and(is_layout_file)
            && self.options.method.is_none_or(|method| !method.cuts_inner())
            && self.sources.plan.is_none()
            && self.adaptive.is_none()
            && self.tail.is_none()
    }

    /// What runs, if it cannot use a layout that cuts the inner dimension.
    fn whole_inner(&self) -> Option<&'static str> {
        match self.operation {
            Operation::Power(_) => Some("power"),
            Operation::Closure { .. } => Some("closure"),
            Operation::Symmetric => Some("a symmetric product"),
            Operation::Product if self.adaptive.is_some() => Some("`adaptive`"),
            Operation::Product if self.tail.is_some() => Some("`tail`"),
            Operation::Product if self.in_panels() => Some("a product in panels"),
            Operation::Product => None,
        }
    }

    /// The scalars for a kernel; those not given have no effect.
    ///
    /// # Errors
    /// A scalar that the element type or the semiring does not accept.
    pub(super) fn scaling<T: Element>(&self, kernel: Kernel<T>) -> Result<Scaling<T>> {
        let scalar = |place: &str, given: Option<f64>| {
            let Some(given) = given else { return Ok(kernel.one()) };
            let scalar = T::from_f64(given);
            let refuse = |what: String, remedy: &str| Err(Error::input(place, what, remedy));
            if kernel.semiring() == Semiring::OrAnd && given != 0.0 && given != 1.0 {
                return refuse(format!("{given} is no truth value"), "give 0 or 1 with or-and");
            }
            if scalar.to_f64().is_infinite() && given.is_finite() {
                return refuse(
                    format!("{given} is beyond the range of {}", T::NAME),
                    "give a smaller number",
                );
            }
            kernel.check_scaling(&Scaling { alpha: scalar, beta: kernel.one() }).map_err(
                |error| match error {
                    Error::Input { what, remedy, .. } => Error::input(place, what, remedy),
                    other => other,
                },
            )?;
            Ok(scalar)
        };
        Ok(Scaling { alpha: scalar("`alpha`", self.alpha)?, beta: scalar("`beta`", self.beta)? })
    }

    /// Refuses what cannot be computed, whatever the operands are.
    ///
    /// # Errors
    /// Exit code 2.
    fn check(&self, world: &World) -> Result<()> {
        let refuse = |place: &str, what: String, remedy: &str| Err(Error::input(place, what, remedy));
        if let Operation::Closure { predecessors, .. } = self.operation {
            match self.semiring {
                Semiring::PlusTimes => {
                    let what = "plus-times has no closure by paths".into();
                    return refuse("`semiring`", what, "choose max-plus, min-plus or or-and");
                }
                Semiring::OrAnd if predecessors => {
                    let what = "or-and has no best paths".into();
                    return refuse("`predecessors`", what, "choose `semiring = min-plus` or max-plus");
                }
                _ => self.options.kernel.check_unused(self.semiring)?,
            }
        }
        if self.operation == Operation::Symmetric {
            self.check_symmetric()?;
        }
        if self.tail.is_some() && !world.is_solo() {
            let what = "the processes of `engine = mpi` share no memory".into();
            return refuse("`tail`", what, "leave it out, or use `engine = threads`");
        }
        let result = self.output.as_deref().filter(|path| is_layout_file(path));
        let layouts = self.operands().filter_map(MatrixOperand::path).chain(result);
        if let Some(path) = layouts.into_iter().find(|path| is_layout_file(path))
            && self.in_panels()
        {
            let what = format!(
                "{} is a layout file, but panels are read from and written to .npy files",
                path.display()
            );
            return refuse(
                "`panels`",
                what,
                "name .npy files, or leave out `memory`, `panels`, `checkpoint` and `resume`",
            );
        }
        if let Some(path) = self.predecessors.as_ref().filter(|path| is_layout_file(path) || result.is_some())
        {
            let what = format!("{} would be written beside a layout file", path.display());
            return refuse("`predecessors`", what, "write both results to .npy files");
        }
        Ok(())
    }

    /// Refuses what is not for a symmetric product.
    fn check_symmetric(&self) -> Result<()> {
        let options = &self.options;
        let given = [
            ("B", self.b.is_some()),
            ("`panels`", self.in_panels()),
            ("`adaptive`", self.adaptive.is_some()),
            ("`tail`", self.tail.is_some()),
            ("`method`", options.method.is_some()),
            ("`shares`", options.shares.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((place, _)) => {
                let what = "is not for a symmetric product, whose lower triangle is cut into strips of rows";
                Err(Error::input(place, what, "leave it out, or multiply by the transpose"))
            }
        }
    }

    /// The kernel of plus-times where none is named: that of the models, or the winner of a race on this
    /// process's processors. A product in panels keeps to the built-in one, as it may be continued elsewhere.
    fn fastest<T: Real>(&self, shape: Shape, context: Context<'_>) -> Result<Kernel<T>> {
        if self.in_panels() {
            return Ok(Kernel::plus_times());
        }
        if let Some(models) = &self.sources.models {
            return Ok(kernel_of_models(&models.kernel).unwrap_or_else(Kernel::plus_times));
        }
        if is_small(shape) {
            return Ok(Kernel::plus_times());
        }
        let platform = self.sources.processors_of_world(context.world)?;
        let (block, remeasure) = (self.options.flow.block_size(), self.options.remeasure);
        Ok(fastest_kernel(&platform, shape.elements() as f64, block, remeasure, context)?.own)
    }
}

/// The result of a job. Its matrices are verified; files are complete, but do not appear before they are
/// committed ([`OutputFile::commit_all`]).
#[derive(Debug)]
pub struct Outcome {
    /// This process's blocks of the result, where no file takes it; none of a product in panels.
    pub result: Option<AnyBlocks>,
    /// This process's blocks of the predecessors of a closure, where no file takes them.
    pub predecessors: Option<LocalBlocks<i32>>,
    /// The files of the result.
    pub files: Vec<OutputFile>,
    /// What happened.
    pub report: RunReport,
    /// The processors.
    pub machine: crate::model::Machine,
    /// What was decided; `None` for a product in panels that an earlier run has begun.
    pub decision: Option<Decision>,
    /// How C was cut into panels, if it was.
    pub panels: Option<PanelOutcome>,
    /// The waits that were to be explained.
    pub explanation: Option<Explanation>,
    /// The speeds, if they were measured or remembered.
    pub measured: Option<MeasuredSpeeds>,
}

impl Outcome {
    /// The outcome of a run whose result is elsewhere.
    pub fn new(report: RunReport, decision: Decision) -> Self {
        Self {
            result: None,
            predecessors: None,
            files: Vec::new(),
            report,
            machine: decision.machine.clone(),
            decision: Some(decision),
            panels: None,
            explanation: None,
            measured: None,
        }
    }

    /// Warns of uncertain speeds, compares the run with those by which it was planned, and remembers better ones;
    /// forgets a network that messages have shown to be another. On rank 0.
    pub fn check_speeds(self, context: Context<'_>) {
        check_network(&self.report, context);
        let Some(mut measured) = self.measured.filter(|_| context.world.rank() == 0) else { return };
        // Speeds are those of large rectangles.
        let symmetric = self.report.plan.layout().is_ok_and(Layout::is_triangular);
        match self.panels.is_some() || symmetric {
            true => measured.warn(context),
            false => measured.check(&self.report, &self.machine.platform, context),
        }
    }

    /// An error that followed the run, with what is kept nevertheless and how to go on from there.
    #[must_use]
    pub fn with_finished_panels(&self, error: Error) -> Error {
        match &self.panels {
            Some(panels) => panels.with_instructions(error),
            None => error,
        }
    }
}

/// What a processor waits for in the forecast.
#[derive(Debug)]
pub struct Explanation {
    /// The waits of all processors.
    pub history: History,
    /// The processor.
    pub rank: Rank,
}

/// A task whose operands are open: sizes fit, elements are of one kind.
pub struct MatrixJob<'a> {
    task: &'a ProductTask<'a>,
    context: Context<'a>,
    inputs: Inputs<'a>,
    shape: Shape,
    kind: Kind,
    outputs: Outputs,
}

impl<'a> MatrixJob<'a> {
    /// Opens outputs and operands. Every rank must call it, with the same task.
    ///
    /// # Errors
    /// A request that cannot be met; files that cannot be read or written, or do not fit; known to all ranks.
    pub fn open(task: &'a ProductTask<'a>, context: Context<'a>) -> Result<Self> {
        let world = context.world;
        world.all_ok(task.check(world))?;
        let paths = [task.output.as_ref(), task.predecessors.as_ref()];
        let mut outputs = world.all_ok(Outputs::open(paths, world))?;
        let (inputs, shape, kind) = world.all_ok(open_operands(task, world))?;
        let elements = shape.m.saturating_mul(shape.n);
        let bytes = [kind.bytes(), size_of::<i32>() as u64].map(|bytes| elements.saturating_mul(bytes));
        world.all_ok(outputs.reserve(bytes))?;
        Ok(Self { task, context, inputs, shape, kind, outputs })
    }

    /// The sizes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Decides, runs and verifies. Every rank must call it. A product that does not fit the free memory of a process
    /// alone is computed in panels where they can be cut.
    ///
    /// # Errors
    /// What does not fit the memory, or cannot be decided, run or verified. Errors that all ranks know are
    /// [`Error::Agreed`] in a world of several.
    pub fn run(self) -> Result<Outcome> {
        let Some(memory) = self.memory_for_panels()? else { return self.run_elements() };
        let Self { task, context, inputs, shape, kind, outputs } = self;
        let mut task = task.clone();
        task.panels.memory = Some(memory);
        let job = MatrixJob { task: &task, context, inputs, shape, kind, outputs };
        let mut outcome = job.run_elements()?;
        if let Some(panels) = &mut outcome.panels {
            panels.reason = CutReason::FreeMemory;
        }
        Ok(outcome)
    }

    /// Bytes that a process alone takes for the operands that it reads and for results, whatever the plan.
    fn least_bytes(&self) -> u128 {
        let Shape { m, k, n } = self.shape;
        let of = |rows: u64, cols: u64| u128::from(rows) * u128::from(cols) * u128::from(self.kind.bytes());
        let read = |operand: Option<&MatrixOperand<'_>>, rows, cols| {
            operand.and_then(MatrixOperand::path).map_or(0, |_| of(rows, cols))
        };
        let (a, c) = (read(Some(&self.task.a), m, k), of(m, n));
        let initial = read(self.task.initial.as_ref(), m, n);
        match self.task.operation {
            Operation::Product => a + read(self.task.b.as_ref(), k, n) + initial + c,
            Operation::Symmetric => a + of(k, m) + initial + c,
            // A, its square, the next one, and what is multiplied by them.
            Operation::Power(exponent) => c * if exponent.is_power_of_two() { 3 } else { 4 },
            Operation::Closure { predecessors: false, .. } => 3 * c,
            // Elements have a vertex each.
            Operation::Closure { predecessors: true, .. } => 7 * c,
        }
    }

    /// The memory for panels where the job does not fit that of a process alone; `None` where it fits.
    ///
    /// # Errors
    /// It does not fit, and cannot be cut: exit code 2.
    fn memory_for_panels(&self) -> Result<Option<u64>> {
        let Shape { m, k, n } = self.shape;
        let what = match self.task.operation {
            Operation::Product | Operation::Symmetric => {
                format!("a product of {m} x {k} by {k} x {n} elements")
            }
            Operation::Power(_) => format!("a power of {m} x {n} elements"),
            Operation::Closure { .. } => format!("a closure of {m} x {n} elements"),
        };
        let need = MemoryNeed {
            place: "memory",
            what: &what,
            bytes: self.least_bytes(),
            parts: self.task.can_be_cut().then_some("computed in panels"),
            remedy: "use a machine with more memory, or more processes by `engine = mpi`",
        };
        self.task.panels.limit_by_free_memory(need, self.context)
    }

    fn run_elements(self) -> Result<Outcome> {
        let (world, semiring) = (self.context.world, self.task.semiring);
        let paths = matches!(self.task.operation, Operation::Closure { predecessors: true, .. });
        match (self.kind, paths) {
            (Kind::F32, true) => self.run_paths::<f32>(),
            (Kind::F64, true) => self.run_paths::<f64>(),
            (Kind::I32, true) => self.run_paths::<i32>(),
            (Kind::I64, true) => self.run_paths::<i64>(),
            (Kind::F32, false) => self.run_numbers::<f32>(),
            (Kind::F64, false) => self.run_numbers::<f64>(),
            (Kind::I32, false) => self.run_whole_numbers::<i32>(),
            (Kind::I64, false) => self.run_whole_numbers::<i64>(),
            (Kind::Truth { .. }, _) => {
                world.all_ok(self.task.options.kernel.check_unused(semiring))?;
                self.run_kernel(Kernel::or_and())
            }
        }
    }

    /// Whether truth values are written as bool.
    fn writes_bool(&self) -> bool {
        matches!(self.kind, Kind::Truth { bool: true })
    }

    fn run_numbers<T: Real>(self) -> Result<Outcome> {
        let (task, context) = (self.task, self.context);
        let named = context.world.all_ok(task.options.kernel.kernel::<T>(task.semiring))?;
        let kernel = named.map_or_else(|| task.fastest(self.shape, context), Ok)?;
        self.run_kernel(kernel)
    }

    fn run_whole_numbers<T: Element + Tropical>(self) -> Result<Outcome> {
        let (world, task) = (self.context.world, self.task);
        world.all_ok(task.options.kernel.check_unused(task.semiring))?;
        let kernel = world.all_ok(Kernel::<T>::tropical(task.semiring))?;
        self.run_kernel(kernel)
    }

    /// Processors and speeds for this kernel.
    fn machine<T: Element>(&self, kernel: Kernel<T>) -> Result<KnownMachine> {
        let RunOptions { flow, remeasure, .. } = self.task.options;
        self.task.sources.machine(kernel, self.shape, flow.block_size(), remeasure, self.context)
    }

    fn question<'q>(&'q self, known: &'q KnownMachine, element: u64) -> Question<'q> {
        Question {
            shape: self.shape,
            element,
            known,
            sources: &self.task.sources,
            options: &self.task.options,
            whole_inner: self.task.whole_inner(),
            symmetric: self.task.operation == Operation::Symmetric,
        }
    }

    /// A product, a power or a closure.
    fn run_kernel<T: Element>(self, kernel: Kernel<T>) -> Result<Outcome> {
        let (world, task, context) = (self.context.world, self.task, self.context);
        let scaling = world.all_ok(task.scaling(kernel))?;
        // A single process holds whole matrices for any plan: it finds bad elements before anything is
        // measured.
        let early = if world.is_solo() && !task.in_panels() {
            Some(timed(|| self.read(kernel, None))?)
        } else {
            None
        };
        let known = self.machine(kernel)?;
        let decision = if task.in_panels() {
            None
        } else {
            decide_for_all(self.question(&known, size_of::<T>() as u64), task.can_be_cut(), context)?
        };
        let rank = world.all_ok(self.rank_to_explain(decision.as_ref()))?;
        let Some(decision) = decision else {
            drop(early);
            let (bool, Self { task, shape, outputs, .. }) = (self.writes_bool(), self);
            return run_in_panels(task, shape, kernel, known, outputs, bool, context);
        };
        let (blocks, read_seconds) = match early {
            Some(early) => early,
            None => world.all_ok(timed(|| self.read(kernel, Some(&decision))))?,
        };
        let job = decision
            .job(kernel, task.options.seed)
            .with_scaling(scaling)
            .with_adaptive(self.adaptive(&decision))
            .with_tail(task.tail.unwrap_or(0.0));
        let job = self.with_closure_method(job, &decision)?;
        let session = self.session(&job, &decision);
        let (c, report) = match task.operation {
            Operation::Product | Operation::Symmetric => {
                let operands = OperandViews {
                    a: blocks.a.views(),
                    b: blocks.b.as_ref().unwrap_or(&blocks.a).views(),
                    initial: blocks.initial.as_ref().map(OwnBlocks::views),
                };
                let outcome = context.watch("computing", || multiply(operands, &job, &session))?;
                drop(blocks);
                outcome
            }
            Operation::Power(exponent) => {
                let a = blocks.a.into_blocks();
                context.watch("computing", || matrix_power(&a, exponent, &job, &session))?
            }
            Operation::Closure { .. } => {
                let a = blocks.a.into_blocks();
                context.watch("computing", || matrix_closure(&a, &job, &session))?
            }
        };
        let corrected = self.look_back(&report, &decision, &known);
        let report = RunReport { corrected, ..report };
        let begin = Instant::now();
        let (shape, bool, outputs) = (self.shape, self.writes_bool(), self.outputs);
        let element = if bool { "bool" } else { report.element };
        let files = match &task.output {
            None => Vec::new(),
            Some(_) => write_result(outputs, &c, bool, shape, world, &decision.schedule()?)?,
        };
        let report = report.with_io(read_seconds + begin.elapsed().as_secs_f64(), element);
        let result = task.output.is_none().then(|| AnyBlocks::new(c));
        finish(report, known, decision, rank, Matrices { result, predecessors: None, files }, world)
    }

    /// A closure with predecessors.
    fn run_paths<T: Element + Tropical>(self) -> Result<Outcome>
    where
        PathElement<T>: Element,
    {
        let (world, task, context) = (self.context.world, self.task, self.context);
        world.all_ok(task.options.kernel.check_unused(task.semiring))?;
        let kernel = world.all_ok(Kernel::<PathElement<T>>::paths(task.semiring))?;
        let lengths = world.all_ok(Kernel::<T>::tropical(task.semiring))?;
        let early = if world.is_solo() { Some(timed(|| self.read(lengths, None))?) } else { None };
        let known = self.machine(kernel)?;
        let element = size_of::<PathElement<T>>() as u64;
        let decision = decide_for_all(self.question(&known, element), false, context)?;
        world.all_ok(self.rank_to_explain(decision.as_ref()))?;
        let decision = decision.expect("only a product is cut into panels");
        let (blocks, read_seconds) = match early {
            Some(early) => early,
            None => world.all_ok(timed(|| self.read(lengths, Some(&decision))))?,
        };
        let job = self.with_closure_method(decision.job(kernel, task.options.seed), &decision)?;
        let session = self.session(&job, &decision);
        let a = blocks.a.into_blocks();
        let paths = context.watch("computing", || matrix_paths(&a, &job, &session))?;
        drop(a);
        let begin = Instant::now();
        let (lengths, predecessors) = (&paths.lengths, &paths.predecessors);
        let files = write_both(self.outputs, lengths, predecessors, self.shape, world)?;
        let report = paths.report.with_io(read_seconds + begin.elapsed().as_secs_f64(), T::NAME);
        let result = task.output.is_none().then(|| AnyBlocks::new(paths.lengths));
        let predecessors = task.predecessors.is_none().then_some(paths.predecessors);
        finish(report, known, decision, None, Matrices { result, predecessors, files }, world)
    }

    /// The forecasts of the run and of no plan, corrected by its times; on rank 0. None of a run whose work was not
    /// that of its plan.
    fn look_back(
        &self,
        report: &RunReport,
        decision: &Decision,
        known: &KnownMachine,
    ) -> Option<RunForecasts> {
        let planned = report.adaptation.is_none()
            && report.tail.is_none()
            && report.closure != Some(ClosureMethod::Elimination)
            && report.products > 0;
        let (machine, shape, order) = (&decision.machine, self.shape, report.order);
        let few = affordable(machine.processors(), shape, order.block, FORECASTS);
        if self.context.world.rank() != 0 || !planned || !few {
            return None;
        }
        report.plan.baselines.as_ref()?;
        let (layout, predicted) = (report.plan.layout().ok()?, report.plan.forecast.as_ref()?);
        let products = report.products as f64;
        let compute: Vec<f64> = report.trace.compute().iter().map(|seconds| seconds / products).collect();
        let run = RunTimes { seconds: report.seconds() / products, compute: &compute };
        let found = ObservedMachine::of(machine, predicted, run, |machine| {
            let rates = layout.rates(&machine.models, machine.block);
            let network = &machine.platform.network;
            let costs = CostModel { rates: &rates, network, element: report.element_bytes };
            Ok(forecast(layout, order, costs)?.seconds)
        })
        .ok()?;
        let question = self.question(known, report.element_bytes);
        let path = question.data_path(self.context.world);
        let without_plan = question.baselines(&found.machine, path).ok()??.times(products);
        let ObservedMachine { links, unexplained, seconds, .. } = found;
        let (seconds, unexplained) = (seconds * products, unexplained * products);
        Some(RunForecasts { seconds, without_plan, links, unexplained })
    }

    /// The job with the method of its closure, the same on all ranks.
    fn with_closure_method<'j, T: Element>(
        &self,
        job: MatmulJob<'j, T>,
        decision: &Decision,
    ) -> Result<MatmulJob<'j, T>> {
        let Operation::Closure { method, .. } = self.task.operation else { return Ok(job) };
        let method = match method {
            Some(method) => method,
            None => ClosureMethod::of(&job, &decision.machine.platform, self.context.world)?,
        };
        Ok(job.with_closure(Some(method)))
    }

    /// The job's runs: the maximum number of products it can take.
    fn session<'s, T: Element>(&'s self, job: &MatmulJob<'_, T>, decision: &'s Decision) -> Session<'s> {
        let work = match self.task.operation {
            Operation::Product | Operation::Symmetric => job.work(),
            Operation::Power(exponent) => job.work() * products_of_power(exponent) as f64,
            Operation::Closure { .. } => job.closure.unwrap_or(ClosureMethod::Squaring).work(self.shape.m),
        };
        Session::new(self.context.world, &decision.machine.platform, self.context.monitor, work)
            .copying(self.task.options.copies())
    }

    /// The processor to explain. There is nothing to explain but the forecast of one product with one plan.
    fn rank_to_explain(&self, decision: Option<&Decision>) -> Result<Option<Rank>> {
        let Some(who) = &self.task.explain else { return Ok(None) };
        match (self.task.operation, decision) {
            (Operation::Product | Operation::Symmetric, Some(decision)) if self.task.adaptive.is_none() => {
                rank_of(who, &decision.best().plan.processors).map(Some)
            }
            _ => Err(Error::input(
                "`explain`",
                "explains the forecast of one product with one plan",
                "leave out `adaptive` and what cuts C into panels, or explain with `apportion simulate`",
            )),
        }
    }

    /// Whether and how the run repartitions.
    fn adaptive(&self, decision: &Decision) -> Option<Adaptive> {
        if self.task.adaptive.is_some() && self.shape.k <= decision.best().order.block {
            self.context.note(
                "`adaptive`: there is one pivot block only, so the product cannot be repartitioned; use a smaller \
                 `block`",
            );
        }
        self.task.adaptive
    }

    /// This process's blocks, or whole matrices if no plan assigns blocks.
    fn read<T: Element>(&self, kernel: Kernel<T>, decision: Option<&Decision>) -> Result<Blocks<'a, T>> {
        let own = match decision {
            Some(decision) => OwnRects::of(&decision.schedule()?, self.context.world),
            None => OwnRects::whole(self.shape),
        };
        let Inputs { a, b, initial } = &self.inputs;
        match self.task.operation {
            Operation::Product => Ok(Blocks {
                a: a.read(kernel, &own.a)?,
                b: Some(b.read(kernel, &own.b)?),
                initial: initial.as_ref().map(|c| c.read(kernel, &own.c)).transpose()?,
            }),
            Operation::Symmetric => {
                let a = a.read(kernel, &own.a)?;
                let b = Some(OwnBlocks::Owned(a.transposed()));
                Ok(Blocks { a, b, initial: initial.as_ref().map(|c| c.read(kernel, &own.c)).transpose()? })
            }
            // The blocks of a square matrix are those of its product.
            Operation::Power(_) | Operation::Closure { .. } => {
                Ok(Blocks { a: a.read(kernel, &own.c)?, b: None, initial: None })
            }
        }
    }
}

/// This process's blocks of A, of B unless it is A, and of the initial C if there is one.
struct Blocks<'a, T> {
    a: OwnBlocks<'a, T>,
    b: Option<OwnBlocks<'a, T>>,
    initial: Option<OwnBlocks<'a, T>>,
}

/// What a run leaves.
struct Matrices {
    result: Option<AnyBlocks>,
    predecessors: Option<LocalBlocks<i32>>,
    files: Vec<OutputFile>,
}

/// The outcome of a run in memory.
fn finish(
    mut report: RunReport,
    known: KnownMachine,
    decision: Decision,
    rank: Option<Rank>,
    Matrices { result, predecessors, files }: Matrices,
    world: &World,
) -> Result<Outcome> {
    report.forecast_range = known.measured.as_ref().and_then(|m| m.range(report.forecast_seconds));
    let explain = |rank| -> Result<Explanation> {
        let history = forecast_run(&report, &decision)?.and_then(|outcome| outcome.history);
        Ok(Explanation { history: history.unwrap_or_default(), rank })
    };
    let explanation = rank.filter(|_| world.rank() == 0).map(explain).transpose();
    Ok(Outcome {
        result,
        predecessors,
        files,
        machine: known.machine,
        decision: Some(decision),
        panels: None,
        explanation: world.all_ok(explanation)?,
        measured: known.measured,
        report,
    })
}

/// Returns the result with the seconds that it took.
fn timed<R>(work: impl FnOnce() -> Result<R>) -> Result<(R, f64)> {
    let begin = Instant::now();
    work().map(|result| (result, begin.elapsed().as_secs_f64()))
}

/// The forecast of a plain product in full, as its models make it: the lanes, and what they wait for. `None` for
/// several products, and for one that was divided again while it ran.
///
/// # Errors
/// As [`simulate_explained`].
pub fn forecast_run(report: &RunReport, decision: &Decision) -> Result<Option<Simulated>> {
    if report.products != 1 || report.adaptation.is_some() {
        return Ok(None);
    }
    let (layout, machine) = (report.plan.layout()?, &decision.machine);
    let schedule = MatmulSchedule::new(layout, report.order);
    let rates = layout.rates(&machine.models, machine.block);
    let network = &machine.platform.network;
    let costs = CostModel { rates: &rates, network, element: report.element_bytes };
    simulate_explained(&schedule, costs).map(Some)
}

/// The processor of a name or a number.
///
/// # Errors
/// There is none: exit code 2.
pub fn rank_of(who: &str, names: &[String]) -> Result<Rank> {
    let number = || who.parse().ok().filter(|&i: &usize| i < names.len());
    names.iter().position(|n| n == who).or_else(number).map(Rank).ok_or_else(|| {
        let what = format!("there is no processor \"{who}\"");
        let shown: Vec<&str> = names.iter().take(12).map(String::as_str).collect();
        let more = if names.len() > shown.len() { ", …" } else { "" };
        let list = format!("{}{more}", shown.join(", "));
        Error::input(
            "`explain`",
            what,
            format!("choose one of {list}, or a number from 0 to {}", names.len().saturating_sub(1)),
        )
    })
}
