//! From a matrix in a file or in memory to its verified factors, for all front ends.

mod machine;
mod outputs;
mod slabs;
mod solve_task;
mod symmetry;

use crate::bands::largest_of;
use crate::factor::compute;
use crate::local_columns::{cut_columns, read_columns};
use crate::solve::Failure;
use crate::vectors::scale_for;
use crate::{FactorOutput, LocalColumns, Residual};
use apportion::error::{Error, Result};
use apportion::files::FileState;
use apportion::geometry::{Rank, Span};
use apportion::job::{BlockedOptions, Context, CutReason, MeasuredSpeeds, Outputs, Sources, SpeedSource};
use apportion::kernels::{Kernel, Real};
use apportion::matrix::{AnyMatrix, Element, Matrix, NpyFile, read_matrix};
use apportion::model::Machine;
use apportion::output::{OutputFile, is_stream};
use apportion::plan::{Factors, Plan, Problem, TileMap};
use apportion::platform::{Platform, Processor, ProcessorKind};
use apportion::process_memory::return_freed_blocks;
use apportion::run::{Session, World};
use apportion::schedule::{Application, FactorSchedule, FactorTimes};
use apportion::select::{
    FactorLayout, FactorOptions, Factorisation, appraise, candidate_blocks, plan_factorisation,
};
use apportion::trace::Trace;
use apportion::units::show_bytes;
use machine::KnownMachine;
use outputs::{bytes_of, write_factors};
pub use slabs::SlabOutcome;
use slabs::{KeptPanels, SlabWork};
pub use solve_task::{SolveOutcome, SolveTask, solve_matrix};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Bytes from which the allocator returns what is freed, where memory is limited: what updates take again and again is
/// smaller.
const RETURNED: u32 = 1 << 20;

/// The largest row that an element of f32 can name.
const LARGEST_F32: u64 = 1 << 24;

/// A matrix to factor.
#[derive(Debug, Clone)]
pub enum MatrixSource {
    /// A file: `.npy`, or for a single process also `.mtx`.
    File(PathBuf),
    /// A matrix in memory, the same in every process.
    Memory {
        /// What errors call it.
        name: String,
        /// The matrix.
        matrix: Arc<AnyMatrix>,
    },
}

impl MatrixSource {
    /// A matrix in memory.
    pub fn memory(name: &str, matrix: AnyMatrix) -> Self {
        Self::Memory { name: name.into(), matrix: Arc::new(matrix) }
    }

    /// A matrix of doubles in memory.
    pub fn whole(name: &str, matrix: Matrix<f64>) -> Self {
        Self::memory(name, AnyMatrix::F64(matrix))
    }

    fn place(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory { name, .. } => name.clone(),
        }
    }
}

/// Everything that a caller says of a factorisation.
#[derive(Debug, Clone)]
pub struct FactorTask {
    /// Into which factors.
    pub factors: Factors,
    /// The matrix.
    pub a: MatrixSource,
    /// File of the factors; otherwise they are only returned.
    pub output: Option<PathBuf>,
    /// File of the pivots of LU or L D L^T.
    pub pivots: Option<PathBuf>,
    /// How block columns are given out; by default by forecast. A plan of the sources is run as it is.
    pub layout: Option<FactorLayout>,
    /// Columns of a block; by default by forecast.
    pub block: Option<u64>,
    /// The processors.
    pub sources: Sources,
    /// Measures again instead of using remembered speeds.
    pub remeasure: bool,
    /// Copies panels between threads, as between the nodes of a cluster.
    pub copy: bool,
    /// Seed of the verification.
    pub seed: u64,
    /// Factors larger than memory, and checkpoints.
    pub slabs: BlockedOptions,
}

impl FactorTask {
    /// The factorisation of a matrix, everything else left open.
    pub fn new(factors: Factors, a: MatrixSource) -> Self {
        Self {
            factors,
            a,
            output: None,
            pivots: None,
            layout: None,
            block: None,
            sources: Sources::default(),
            remeasure: false,
            copy: false,
            seed: 1,
            slabs: BlockedOptions::default(),
        }
    }

    /// The plan that is run, if there is one: its method and blocks, for a matrix of n rows.
    fn plan(&self, n: u64) -> Result<Option<(String, TileMap)>> {
        let Some(plan) = &self.sources.plan else { return Ok(None) };
        let refuse = |what: String, remedy: &str| Err(Error::input(&self.sources.plan_place, what, remedy));
        if !matches!(plan.problem(), Problem::Factorisation { .. }) {
            return refuse("is of no factorisation".into(), "give the plan of a factorisation");
        }
        let (factors, columns) = plan.blocks()?;
        if (factors, columns.n()) != (self.factors, n) {
            let what =
                format!("is of {factors} of {} rows, but this is {} of {n} rows", columns.n(), self.factors);
            return refuse(what, "give the plan of this factorisation, or leave it out");
        }
        Ok(Some((plan.method.clone(), columns)))
    }
}

/// Block columns of either type of elements.
#[derive(Debug, Clone)]
pub enum AnyColumns {
    /// Single precision.
    F32(Vec<LocalColumns<f32>>),
    /// Double precision.
    F64(Vec<LocalColumns<f64>>),
}

impl AnyColumns {
    fn new<T: Real>(columns: Vec<LocalColumns<T>>) -> Self {
        let columns: Box<dyn std::any::Any> = Box::new(columns);
        match columns.downcast() {
            Ok(columns) => Self::F64(*columns),
            Err(columns) => Self::F32(*columns.downcast().expect("elements are f32 or f64")),
        }
    }

    /// The name of the type, and its bytes.
    fn element(&self) -> (&'static str, u64) {
        match self {
            Self::F32(_) => (f32::NAME, 4),
            Self::F64(_) => (f64::NAME, 8),
        }
    }

    /// The whole matrix, row by row, if its elements are of this type; in a single process, which has all of it.
    pub fn into_whole<T: Real>(self) -> Option<Vec<T>> {
        let columns: Box<dyn std::any::Any> = match self {
            Self::F32(columns) => Box::new(columns),
            Self::F64(columns) => Box::new(columns),
        };
        let columns = columns.downcast::<Vec<LocalColumns<T>>>().ok()?;
        let n = columns.first()?.n();
        let mut whole = vec![T::ZERO; n * n];
        columns.iter().for_each(|local| local.put(0, &mut whole));
        Some(whole)
    }
}

/// The report of a factorisation.
#[derive(Debug, Clone)]
pub struct FactorReport {
    /// `"threads"` or `"mpi"`.
    pub(crate) engine: &'static str,
    /// `"f32"` or `"f64"`.
    pub(crate) element: &'static str,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// The kernel of the updates.
    pub kernel: serde_json::Value,
    /// The factorisation.
    pub problem: Factorisation,
    /// The plan that was run.
    pub plan: Plan,
    /// What computes for each processor.
    pub(crate) kinds: Vec<ProcessorKind>,
    /// Activities of each processor over time.
    pub trace: Trace,
    /// Bytes that each processor holds at most, by formula.
    pub(crate) predicted_memory: Vec<u64>,
    /// Seconds that the simulator predicted.
    pub forecast_seconds: Option<f64>,
    /// The shortest and the longest time by speeds that varied while they were measured.
    pub(crate) forecast_range: Option<[f64; 2]>,
    /// Multiply-adds over the sum of the speeds: no division is faster.
    pub(crate) ideal_seconds: Option<f64>,
    /// How well the factors give the matrix again.
    pub(crate) residual: Residual,
    /// Seconds that the verification took.
    pub(crate) verify_seconds: f64,
    /// Seconds spent reading and writing files.
    pub(crate) io_seconds: f64,
    /// True if an earlier run has computed some of it.
    pub(crate) partial: bool,
}

impl FactorReport {
    /// Seconds from the first step of the schedule to the last.
    pub fn seconds(&self) -> f64 {
        self.trace.seconds()
    }

    /// Floating-point operations per second, by the multiply-adds of the factorisation; none if an earlier run did
    /// some of them.
    pub(crate) fn flops(&self) -> Option<f64> {
        let flops = 2.0 * self.problem.factors.multiply_adds(self.problem.n) / self.seconds().max(1e-9);
        (!self.partial).then_some(flops)
    }
}

/// The result of a task: verified, and in files that are complete, but do not appear before they are committed.
#[derive(Debug)]
pub struct FactorOutcome {
    /// This process's block columns of the factors; none of factors that were computed by slabs, which are in the file
    /// only.
    pub columns: AnyColumns,
    /// Those of [`FactorOutput`], on every process.
    pub pivots: Vec<i64>,
    /// The files of the factors and of the pivots; on rank 0.
    pub files: Vec<OutputFile>,
    /// What happened.
    pub report: FactorReport,
    /// The plans that were compared, the best first; on ranks other than 0 only the best.
    pub plans: Vec<Plan>,
    /// The processors with the speeds of the forecast.
    pub machine: Machine,
    /// What panels and updates take, if that was measured.
    pub times: Option<Arc<FactorTimes>>,
    /// Where the speeds come from.
    pub source: SpeedSource,
    /// The speeds, if they were measured or remembered.
    pub measured: Option<MeasuredSpeeds>,
    /// How it was computed by slabs, if it was.
    pub slabs: Option<SlabOutcome>,
}

impl FactorOutcome {
    /// An error after the run: if block columns are kept, with instructions to continue from them.
    #[must_use]
    pub fn with_finished_panels(&self, error: Error) -> Error {
        match &self.slabs {
            Some(slabs) => slabs.with_instructions(error),
            None => error,
        }
    }
}

/// A matrix that is open.
enum Input {
    Npy(NpyFile),
    Whole(Arc<AnyMatrix>),
}

impl Input {
    fn open(a: &MatrixSource, world: &World) -> Result<Self> {
        let path = match a {
            MatrixSource::Memory { matrix, .. } => return Ok(Self::Whole(Arc::clone(matrix))),
            MatrixSource::File(path) => path,
        };
        let is_npy = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
        if is_npy && !is_stream(path) {
            return NpyFile::open(path, false).map(Self::Npy);
        }
        if !world.is_solo() {
            return Err(Error::input(
                path.display().to_string(),
                "is no .npy file: with --engine mpi each process reads its own part of the matrix",
                "give a NumPy .npy file, or use --engine threads",
            ));
        }
        Self::open_whole(path).map(|matrix| Self::Whole(Arc::new(matrix)))
    }

    /// A matrix that is read at once.
    fn open_whole(path: &Path) -> Result<AnyMatrix> {
        if is_stream(path) {
            return read_matrix(path);
        }
        let state = FileState::of(path)?;
        let matrix = read_matrix(path)?;
        state.check(path)?;
        Ok(matrix)
    }

    fn element(&self) -> &'static str {
        match self {
            Self::Npy(file) => file.header().dtype,
            Self::Whole(matrix) => matrix.name(),
        }
    }

    fn size(&self) -> (usize, usize) {
        match self {
            Self::Npy(file) => (file.header().rows, file.header().cols),
            Self::Whole(matrix) => (matrix.rows(), matrix.cols()),
        }
    }

    /// Checks that the matrix can be factored; returns its number of rows.
    fn check(&self, place: &str) -> Result<u64> {
        let (rows, cols) = self.size();
        let element = self.element();
        if element != "f32" && element != "f64" {
            let what = format!("holds {element}, but f32 or f64 is factored");
            return Err(Error::input(place, what, "convert it to numpy.float64"));
        }
        if rows != cols || rows == 0 {
            let what =
                format!("is {rows} x {cols}, {}", if rows == 0 { "without elements" } else { "not square" });
            return Err(Error::input(place, what, "give a square matrix"));
        }
        if element == "f32" && rows as u64 > LARGEST_F32 {
            let what = format!("has {rows} rows, more than f32 can count");
            return Err(Error::input(place, what, "convert it to numpy.float64"));
        }
        Ok(rows as u64)
    }
}

/// Factors a matrix: finds processors and speeds, decides the plan, runs and verifies, and fills the files. Every
/// rank must call it, with the same task.
///
/// # Errors
/// A matrix that cannot be read, is not square or not finite (exit code 2), or cannot be factored (exit code 1);
/// what cannot be decided, run or verified; known to all ranks.
pub fn factor_matrix(task: FactorTask, context: Context<'_>) -> Result<FactorOutcome> {
    factor_then(task, Nothing, context).map(|(outcome, ())| outcome)
}

/// What a process has once the factors are verified: factors of elements F, of a matrix of elements T.
struct Done<'a, T, F> {
    schedule: &'a FactorSchedule,
    output: &'a FactorOutput<F>,
    /// The matrix was multiplied by it before it was factored.
    scale: f64,
    /// Its block columns of the matrix, if they were kept.
    original: &'a [LocalColumns<T>],
    world: &'a World,
    /// Number of threads of this process.
    threads: usize,
    /// Factors of less precision did not do before.
    failure: Option<&'a Failure>,
}

/// What follows a factorisation, before its files are written.
trait Then {
    type Result;

    /// True if it needs the matrix, which is kept beside the factors then: what it finds by them, it refines.
    const KEEPS: bool;

    /// Checks that it fits a matrix of n rows of these elements, before anything is measured.
    fn check(&self, n: u64, element: &str) -> Result<()>;

    /// True if factors in single precision may do for a matrix in double precision.
    fn is_mixed(&self) -> bool;

    /// Its result where the factors are in files only; none if it needs them in memory.
    fn without_factors(&self) -> Option<Self::Result>;

    /// Its result, or why factors of less precision than the matrix do not do.
    fn run<T: Real, F: Real>(
        &self,
        done: &Done<'_, T, F>,
    ) -> Result<std::result::Result<Self::Result, Failure>>;
}

/// Nothing follows.
struct Nothing;

impl Then for Nothing {
    type Result = ();

    const KEEPS: bool = false;

    fn check(&self, _: u64, _: &str) -> Result<()> {
        Ok(())
    }

    fn is_mixed(&self) -> bool {
        false
    }

    fn without_factors(&self) -> Option<()> {
        Some(())
    }

    fn run<T: Real, F: Real>(&self, _: &Done<'_, T, F>) -> Result<std::result::Result<(), Failure>> {
        Ok(Ok(()))
    }
}

/// [`factor_matrix`], and what follows.
fn factor_then<N: Then>(
    task: FactorTask,
    then: N,
    context: Context<'_>,
) -> Result<(FactorOutcome, N::Result)> {
    let world = context.world;
    if task.factors == Factors::Cholesky && task.pivots.is_some() {
        let what = "cholesky has no pivots";
        return world.all_ok(Err(Error::input(
            "`pivots`",
            what,
            "leave it out, or choose `kind = ldlt` or `kind = lu`",
        )));
    }
    let outputs = world.all_ok(Outputs::open([task.output.as_ref(), task.pivots.as_ref()], world))?;
    let begin = Instant::now();
    let mut input = world.all_ok(Input::open(&task.a, world))?;
    let n = world.all_ok(input.check(&task.a.place()))?;
    world.all_ok(then.check(n, input.element()))?;
    world.all_ok(slabs::check(&task, &input, then.without_factors().is_none(), world))?;
    if task.factors.is_symmetric() {
        let place = task.a.place();
        let note = match input.element() {
            "f32" => symmetry::check::<f32>(&mut input, n, &place, world),
            _ => symmetry::check::<f64>(&mut input, n, &place, world),
        };
        world.all_ok(note)?.into_iter().for_each(|note| context.note(note));
    }
    let opened = begin.elapsed().as_secs_f64();
    match input.element() {
        "f32" => factor_elements::<f32, f32, N>(&task, input, n, opened, outputs, then, context),
        _ if then.is_mixed() => {
            factor_elements::<f64, f32, N>(&task, input, n, opened, outputs, then, context)
        }
        _ => factor_elements::<f64, f64, N>(&task, input, n, opened, outputs, then, context),
    }
}

/// Factors a matrix of elements T as one of elements F, and does what follows; if the factors do not do for that, factors
/// it as it is.
fn factor_elements<T: Real, F: Real, N: Then>(
    task: &FactorTask,
    mut input: Input,
    n: u64,
    opened: f64,
    mut outputs: Outputs,
    then: N,
    context: Context<'_>,
) -> Result<(FactorOutcome, N::Result)> {
    let (world, kernel, element) = (context.world, Kernel::<F>::plus_times(), size_of::<F>() as u64);
    world.all_ok(outputs.reserve(bytes_of(n, element)))?;
    if task.slabs.memory.is_some() {
        return_freed_blocks(RETURNED);
    }
    let platform = task.sources.processors_of_world(world)?;
    let planned = world.all_ok(task.plan(n))?;
    let on_devices = !platform.network.devices.is_empty();
    if on_devices && task.slabs.requested() {
        let what = "devices keep their block columns in memory, and factor no slabs";
        let remedy = "leave out `memory` and `checkpoint`, or use a platform without devices";
        return world.all_ok(Err(Error::input("`platform`", what, remedy)));
    }
    let platform_copies = platform.has_memories_of_its_own();
    let of_tiles = planned.as_ref().is_some_and(|(_, blocks)| !blocks.are_columns());
    let may = then.without_factors().is_some() && world.is_solo() && matches!(input, Input::Npy(_));
    let may = may && !on_devices;
    let converted = if F::NAME == T::NAME { 0 } else { element };
    let held = size_of::<T>() as u64 * if N::KEEPS { 2 } else { 1 } + converted;
    let limit = slabs::limit_by_free_memory(task, n, held, may && !of_tiles, context)?;
    let mut cut_task = task.clone();
    cut_task.slabs.memory = limit.or(task.slabs.memory);
    let task = &cut_task;
    let columns_only = N::KEEPS || task.slabs.requested();
    if of_tiles && (columns_only || on_devices) {
        let (why, remedy) = match () {
            () if N::KEEPS => ("a system is solved by block columns", "leave it out, or use `factor`"),
            () if on_devices => {
                ("devices have block columns", "leave it out, or use a platform without devices")
            }
            () => ("slabs are factored by block columns", "leave it out"),
        };
        let what = format!("divides the matrix into tiles, but {why}");
        return world.all_ok(Err(Error::input(&task.sources.plan_place, what, remedy)));
    }
    let given = planned.as_ref().map(|(_, columns)| columns.block()).or(task.block.map(|block| block.min(n)));
    let kept = world.all_ok(KeptPanels::open(task, &mut input, given, kernel, context))?;
    let given = given.or(kept.as_ref().and_then(|kept| kept.block));
    let blocks = given.map_or_else(|| candidate_blocks(n, platform.len()), |block| vec![block]);
    let blocks = slabs::fitting_blocks(task, n, element, blocks, given.is_some(), &platform);
    let blocks = world.all_ok(blocks)?;
    let problem = Factorisation { factors: task.factors, n, block: blocks[0] };
    let known = machine::find(task, platform, kernel, problem, given, context)?;
    // What was measured with one block tells nothing of others.
    let blocks = if known.measured.is_some() && !world.is_solo() { vec![blocks[0]] } else { blocks };
    // Where panels are read in place, nothing travels that tiles would save, and many small products are slower.
    let in_place = world.is_solo() && !task.copy && !platform_copies;
    let columns_only = columns_only || task.layout.is_none() && in_place;
    let question = Question { problem, blocks: &blocks, layout: task.layout, columns_only, planned, element };
    let mut plans = decide(&known, question.clone(), world)?;
    let size = size_of::<T>() as u64;
    let schedule = |plan: &Plan| Ok::<_, Error>(FactorSchedule::new(task.factors, plan.blocks()?.1));
    let tiles = may && !schedule(&plans[0])?.blocks().are_columns() && task.sources.plan.is_none();
    if tiles && check_memory(&known.machine, &slabs::whole_bytes(&schedule(&plans[0])?, size)).is_err() {
        // Slabs are of block columns.
        plans = decide(&known, Question { columns_only: true, ..question }, world)?;
    }
    let best = plans[0].clone();
    let schedule = schedule(&best)?;
    let problem = Factorisation { block: schedule.blocks().block(), ..problem };
    let processors = schedule.processors();
    let cut = world.all_ok(slabs::cut(task, &schedule, &known.machine, size, may))?;
    let platform = &known.machine.platform;
    let threads = threads_of(&platform.processors[world.processors_here(processors)]);
    let attempt = Attempt { task, schedule: &schedule, platform, threads, then: &then, context };
    let computed = match (cut, input, then.without_factors()) {
        (Some(cut), Input::Npy(mut file), Some(result)) => {
            let work = SlabWork { task, known: &known, kept, context };
            work.run::<T, N::Result>(&mut file, &cut, outputs, result)?
        }
        (_, input, _) => attempt.in_memory::<T, F>(input, outputs)?,
    };
    let Computed { columns, pivots, files, trace, residual, verify_seconds, io_seconds, slabs, result } =
        computed;
    let by_free_memory = |slabs| SlabOutcome { reason: CutReason::FreeMemory, ..slabs };
    let slabs = if limit.is_some() { slabs.map(by_free_memory) } else { slabs };
    let KnownMachine { machine, measured, times, .. } = known;
    let (element, element_bytes) = columns.element();
    let mut best = if slabs.is_some() { best.with_panels_by_owners()? } else { best };
    if slabs.is_some() || element_bytes != size_of::<F>() as u64 {
        // It is a forecast for elements F, in memory.
        best.forecast = None;
        best.metrics.forecast_over_bound = None;
    }
    let (predicted_memory, forecast_seconds) = match &slabs {
        Some(slabs) => (slabs.processor_bytes.clone(), slabs.forecast_seconds),
        None => {
            let bytes = |rank| schedule.memory(Rank(rank)) * element_bytes;
            let seconds = best.forecast.as_ref().map(|forecast| forecast.seconds);
            ((0..processors).map(bytes).collect(), seconds)
        }
    };
    let range = |seconds| measured.as_ref().and_then(|m: &MeasuredSpeeds| m.range(seconds));
    let partial = slabs.as_ref().is_some_and(|slabs| slabs.resumed > 0);
    let timed = !machine.only_ratios() && element_bytes == size_of::<F>() as u64 && !partial;
    let ideal = || problem.factors.multiply_adds(n) / machine.rates(&schedule.sizes()).iter().sum::<f64>();
    let report = FactorReport {
        engine: world.engine(),
        element,
        element_bytes,
        kernel: kernel.about(),
        problem,
        plan: best,
        kinds: machine.platform.processors.iter().map(Processor::kind).collect(),
        trace,
        predicted_memory,
        forecast_seconds,
        forecast_range: forecast_seconds.and_then(range),
        ideal_seconds: timed.then(ideal),
        residual,
        verify_seconds,
        io_seconds: opened + io_seconds,
        partial,
    };
    let source = measured.as_ref().map_or(SpeedSource::Given, MeasuredSpeeds::source);
    let outcome =
        FactorOutcome { columns, pivots, files, report, plans, machine, times, source, measured, slabs };
    Ok((outcome, result))
}

/// Factors that are verified and in files, and what followed.
struct Computed<R> {
    columns: AnyColumns,
    pivots: Vec<i64>,
    files: Vec<OutputFile>,
    trace: Trace,
    residual: Residual,
    verify_seconds: f64,
    io_seconds: f64,
    slabs: Option<SlabOutcome>,
    result: R,
}

/// A factorisation by factors of some elements, and what follows.
struct Attempt<'a, N> {
    task: &'a FactorTask,
    schedule: &'a FactorSchedule,
    platform: &'a Platform,
    threads: usize,
    then: &'a N,
    context: Context<'a>,
}

/// What became of an attempt.
struct Factored<R> {
    columns: AnyColumns,
    pivots: Vec<i64>,
    trace: Trace,
    residual: Residual,
    verify_seconds: f64,
    result: R,
}

impl<N: Then> Attempt<'_, N> {
    /// Reads the matrix, factors it as one of elements F and, if these do not do for what follows, as it is, and writes
    /// the files.
    fn in_memory<T: Real, F: Real>(&self, input: Input, outputs: Outputs) -> Result<Computed<N::Result>> {
        let Self { task, schedule, threads, context, .. } = *self;
        let (world, n) = (context.world, schedule.blocks().n());
        let begin = Instant::now();
        let own = read::<T>(input, schedule.blocks(), world);
        let own = world.all_ok(own.and_then(|own| check_finite(&own, task).map(|()| own)))?;
        let mut io_seconds = begin.elapsed().as_secs_f64();
        let original = if N::KEEPS { own.clone() } else { Vec::new() };
        let scale = match F::NAME == T::NAME {
            true => 1.0,
            false => scale_for(largest_of(&original, threads, world)?),
        };
        let factored = match self.run(convert::<T, F>(own, scale), scale, &original, None)? {
            Ok(factored) => factored,
            Err(failure) => {
                let Failure { why, .. } = &failure;
                context
                    .note(format!("mixed precision fails, and the system is solved in {}: {why}", T::NAME));
                let again = self.run(original.clone(), 1.0, &original, Some(&failure))?;
                again.map_err(|failure| Error::WrongResult { what: failure.why })?
            }
        };
        let Factored { columns, pivots, trace, residual, verify_seconds, result } = factored;
        drop(original);
        let begin = Instant::now();
        let files = match &columns {
            AnyColumns::F32(columns) => write_factors(outputs, columns, &pivots, n, world)?,
            AnyColumns::F64(columns) => write_factors(outputs, columns, &pivots, n, world)?,
        };
        io_seconds += begin.elapsed().as_secs_f64();
        let slabs = None;
        Ok(Computed { columns, pivots, files, trace, residual, verify_seconds, io_seconds, slabs, result })
    }

    /// Factors block columns, which are those of the matrix times `scale`; perhaps after a failure of factors of less
    /// precision.
    fn run<T: Real, F: Real>(
        &self,
        own: Vec<LocalColumns<F>>,
        scale: f64,
        original: &[LocalColumns<T>],
        failure: Option<&Failure>,
    ) -> Result<std::result::Result<Factored<N::Result>, Failure>> {
        let Self { task, schedule, platform, threads, then, context } = *self;
        let work = (0..schedule.processors()).map(|rank| schedule.work(Rank(rank)));
        let session = Session::new(context.world, platform, context.monitor, work.sum());
        let session = session.copying(task.copy);
        let kernel = Kernel::<F>::plus_times();
        // Refinement makes up for pivots of L D L^T that were small: the solution shows it.
        let refines = N::KEEPS && task.factors == Factors::Ldlt;
        let factored = context.watch("factoring", || {
            let output = compute(schedule, kernel, own, task.seed, &session)?;
            let checked = output.check(task.factors, context.world);
            if refines { Ok((output, checked.err())) } else { checked.map(|()| (output, None)) }
        });
        let (output, inaccurate) = match factored {
            // In more precision it may have factors. If this was interrupted, so is what follows.
            Err(error) if F::NAME != T::NAME && error.exit_code() == 1 => {
                let why = match error {
                    Error::Infeasible { what, .. } => what,
                    error => error.to_string(),
                };
                return Ok(Err(Failure { why: format!("in {}, {why}", F::NAME), steps: 0 }));
            }
            factored => factored?,
        };
        let world = context.world;
        let done = Done { schedule, output: &output, scale, original, world, threads, failure };
        let result = context.watch("solving", || then.run(&done)).map_err(|error| match error {
            Error::Interrupted => error,
            _ => inaccurate.unwrap_or(error),
        })?;
        let FactorOutput { columns, pivots, trace, residual, verify_seconds } = output;
        let columns = AnyColumns::new(columns);
        Ok(result.map(|result| Factored { columns, pivots, trace, residual, verify_seconds, result }))
    }
}

/// Block columns with elements F; those of elements T, if that is another type, are multiplied by a factor.
fn convert<T: Real, F: Real>(columns: Vec<LocalColumns<T>>, factor: f64) -> Vec<LocalColumns<F>> {
    let columns: Box<dyn std::any::Any> = Box::new(columns);
    match columns.downcast::<Vec<LocalColumns<F>>>() {
        Ok(same) => *same,
        Err(others) => {
            let others = others.downcast::<Vec<LocalColumns<T>>>().expect("they have elements T");
            others.iter().map(|local| local.convert(factor)).collect()
        }
    }
}

/// A matrix of doubles or singles.
fn any_matrix<T: Real>(rows: usize, cols: usize, elements: Vec<T>) -> AnyMatrix {
    let matrix: Box<dyn std::any::Any> = Box::new(Matrix::new(rows, cols, elements));
    match matrix.downcast() {
        Ok(matrix) => AnyMatrix::F64(*matrix),
        Err(matrix) => AnyMatrix::F32(*matrix.downcast().expect("elements are f32 or f64")),
    }
}

/// Number of threads of a process that has these processors: one for each core, as far as it may use so many.
fn threads_of(processors: &[Processor]) -> usize {
    let cores: BTreeSet<usize> = processors.iter().flat_map(|one| one.cores.iter().copied()).collect();
    let unnamed = processors.iter().filter(|one| one.cores.is_empty()).count();
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    (cores.len() + unnamed).clamp(1, most)
}

/// What is decided of a factorisation.
#[derive(Clone)]
struct Question<'a> {
    problem: Factorisation,
    blocks: &'a [u64],
    layout: Option<FactorLayout>,
    /// What follows knows block columns only.
    columns_only: bool,
    /// A plan that is run as it is: its method and blocks.
    planned: Option<(String, TileMap)>,
    element: u64,
}

/// The plans, decided on rank 0; on other ranks only the best.
fn decide(known: &KnownMachine, question: Question<'_>, world: &World) -> Result<Vec<Plan>> {
    let KnownMachine { machine, ratios, times, .. } = known;
    let Question { problem, blocks, layout, columns_only, planned, element } = question;
    let plans = || {
        // Shares that a caller gives are kept, not compared with others.
        let layout = layout.or(ratios.is_some().then_some(FactorLayout::Greedy));
        let (weights, times) = (ratios.as_ref(), times.as_ref());
        let options = FactorOptions { layout, columns_only, blocks, weights, times, element };
        let plans = plan_factorisation(problem.factors, problem.n, machine, options)?;
        let Some((method, columns)) = planned else { return Ok(plans) };
        let plan = appraise(problem, machine, times, &method, &columns, element)?;
        Ok(vec![Plan { baselines: plans[0].baselines.clone(), ..plan }])
    };
    world.best_on_root(plans)
}

/// Refuses a part of the matrix that its processor may not hold.
fn check_memory(machine: &Machine, bytes: &[u64]) -> Result<()> {
    for (processor, &bytes) in machine.platform.processors.iter().zip(bytes) {
        if let Some(most) = processor.memory_cap().filter(|most| bytes > *most) {
            let [bytes, most] = [bytes, most].map(|x| show_bytes(x as f64));
            return Err(Error::TooLittleMemory {
                what: format!("processor {} would hold {bytes} of its memory of {most}", processor.name),
                remedy: "give it a lower speed, or factor a smaller matrix".into(),
            });
        }
    }
    Ok(())
}

/// This process's block columns.
fn read<T: Real>(input: Input, columns: &TileMap, world: &World) -> Result<Vec<LocalColumns<T>>> {
    let here = world.processors_here(columns.processors());
    match input {
        Input::Npy(mut file) => read_columns(&mut file, columns, Span::new(0, columns.n()), here),
        Input::Whole(matrix) => {
            cut_columns(matrix.elements::<T>().expect("other types were refused"), columns, here)
        }
    }
}

/// Refuses NaN and infinities, where they are read.
fn check_finite<T: Real>(own: &[LocalColumns<T>], task: &FactorTask) -> Result<()> {
    let lower = task.factors.is_symmetric();
    let first = own.iter().filter_map(|local| local.first_not_finite(lower)).min_by_key(|(at, _)| *at);
    let Some(([i, j], x)) = first else { return Ok(()) };
    Err(Error::input(
        task.a.place(),
        format!("element ({i}, {j}), counted from 0, is {x}, which cannot be factored"),
        "give finite numbers",
    ))
}

impl From<&Path> for MatrixSource {
    fn from(path: &Path) -> Self {
        Self::File(path.to_path_buf())
    }
}
