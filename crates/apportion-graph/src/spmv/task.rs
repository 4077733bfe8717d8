//! From a matrix and a vector to a vector, for all front ends.

use super::application::{Progress, SpmvMethod};
use super::problem::{Output, Sparse, SparseData};
use crate::divide::{GraphChoice, GraphOptions};
use crate::read::{read_parts, read_sparse};
use crate::sparse::SparseMatrix;
use apportion::error::{Error, Result};
use apportion::geometry::{Rect, Span};
use apportion::job::{Context, Job, JobMachine, Sources};
use apportion::kernels::SteadySum;
use apportion::matrix::{NpyFile, npy_header, write_npy_rows};
use apportion::measure::QuickSpeeds;
use apportion::output::{OutputFile, try_output};
use apportion::platform::Platform;
use apportion::record::IterationRun;
use apportion::run::{Session, World};
use apportion::trace::Trace;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

/// Steps of a run, after which products are checked.
const PRODUCTS: u64 = 256;

/// Steps of a run towards a solution: once it is there, the rest of them only exchange messages.
const TOWARDS: u64 = 32;

/// What the residual of a solution may exceed its tolerance by, as a factor: the one that CG carries along is rounded.
const DRIFT: f64 = 1.01;

/// A sparse matrix that a caller has.
#[derive(Debug, Clone)]
pub enum SpmvMatrix<'a> {
    /// A `.mtx` file.
    File(PathBuf),
    /// A matrix in memory, which every process has whole.
    Matrix(&'a SparseMatrix),
}

/// A vector that a caller has.
#[derive(Debug, Clone)]
pub enum VectorSource<'a> {
    /// A `.npy` file of one dimension.
    File(PathBuf),
    /// A vector in memory, which every process has whole.
    Array(&'a [f64]),
}

/// Everything that a caller says of a product or a solution.
#[derive(Debug, Clone)]
pub struct SpmvTask<'a> {
    /// The matrix, square.
    pub matrix: SpmvMatrix<'a>,
    /// The vector that is multiplied, or the right-hand side.
    pub vector: VectorSource<'a>,
    /// What is done.
    pub method: SpmvMethod,
    /// Number of products, or the most steps towards a solution.
    pub steps: u64,
    /// The norm of b - A x over that of b at which x is a solution.
    pub tolerance: f64,
    /// A file with the part of each row, as `partition` writes it.
    pub parts: Option<PathBuf>,
    /// How the rows are divided otherwise.
    pub options: GraphOptions,
    /// The processors.
    pub sources: Sources,
    /// Measures the network between hosts again.
    pub remeasure: bool,
    /// File of the result; otherwise it is returned.
    pub output: Option<PathBuf>,
    /// Other files that are written later, tried before the work.
    pub reports: Vec<PathBuf>,
}

impl<'a> SpmvTask<'a> {
    /// A product, everything else left open.
    pub fn new(matrix: SpmvMatrix<'a>, vector: VectorSource<'a>, steps: u64) -> Self {
        Self {
            matrix,
            vector,
            method: SpmvMethod::Product,
            steps,
            tolerance: 1e-8,
            parts: None,
            options: GraphOptions::default(),
            sources: Sources::default(),
            remeasure: false,
            output: None,
            reports: Vec::new(),
        }
    }
}

/// A result, and how it came about; a file of it has appeared.
#[derive(Debug)]
pub struct SpmvOutcome {
    /// The whole vector, on every rank.
    pub result: Vec<f64>,
    /// How near a solution is; `None` for products.
    pub solution: Option<IterationRun>,
    /// The divisions that were compared, the best first; on ranks other than 0 only the best.
    pub choices: Vec<GraphChoice>,
    /// Activities of all processors over time.
    pub trace: Trace,
    /// The processors.
    pub platform: Platform,
    /// The speeds, if they were measured for this run.
    pub measured: Option<QuickSpeeds>,
    pub(super) engine: &'static str,
    pub(super) method: SpmvMethod,
    pub(super) steps: u64,
    pub(super) rows: u64,
    pub(super) entries: u64,
    pub(super) io_seconds: f64,
}

/// Multiplies or solves: finds processors and speeds, divides the rows, runs, verifies every step, and writes the result.
/// Every rank must call it, with the same task. The result is the same, bit for bit, for every division and engine.
///
/// # Errors
/// Files that cannot be read or do not fit together (exit code 2); a matrix that a method cannot take, a solution that is
/// not reached; what cannot be decided, run or written; known to all ranks.
pub fn spmv(task: &SpmvTask<'_>, context: Context<'_>) -> Result<SpmvOutcome> {
    let (begin, world) = (Instant::now(), context.world);
    let (matrix, vector) = world.all_ok(operands(task, context))?;
    world.on_root(|| task.reports.iter().chain(&task.output).try_for_each(|path| try_output(path)))?;
    let (matrix, vector) = (&*matrix, &*vector);
    let mut sparse = Sparse {
        matrix,
        method: task.method,
        options: task.options.clone(),
        parts: None,
        vector,
        graph: OnceLock::new(),
    };
    let job = Job::new(&sparse).with_sources(&task.sources).remeasuring(task.remeasure);
    let JobMachine { machine, measured } = job.machine(context)?;
    let given = task.parts.as_ref().map(|path| read_parts(path, matrix.rows(), machine.processors()));
    let given = world.all_ok(given.transpose())?;
    sparse.parts = given.as_deref();
    let job = Job::new(&sparse).with_sources(&task.sources);
    let mut choices: Vec<GraphChoice> = Vec::new();
    for candidate in context.watch("dividing", || job.rank(&machine, world))? {
        let mut choice = candidate.decision;
        choice.plan.forecast = candidate.forecast;
        let bound = choice.plan.metrics.time_bound;
        choice.plan = choice.plan.with_time_bound(bound);
        choices.push(choice);
    }
    announce(&choices, context);
    let best = &choices[0];
    let data = world.all_ok(apportion::job::Problem::read(&sparse, best, world))?;
    let io = begin.elapsed().as_secs_f64();
    let work = best.plan.costs.iter().flatten().sum::<f64>() * task.steps as f64;
    let session = Session::new(world, &machine.platform, context.monitor, work);
    let run = Steps { task, sparse: &sparse, job: &job, best, session: &session, context };
    let Ran { output, trace, steps, solution } = world.all_ok(run.all(data))?;
    let result = gathered(&output, matrix.rows(), world)?;
    let writing = Instant::now();
    world.on_root(|| match &task.output {
        Some(path) => write_vector(path, &result),
        None => Ok(()),
    })?;
    Ok(SpmvOutcome {
        result,
        solution,
        trace,
        engine: world.engine(),
        method: task.method,
        steps,
        rows: matrix.rows() as u64,
        entries: matrix.entries() as u64,
        io_seconds: io + writing.elapsed().as_secs_f64(),
        platform: machine.platform,
        measured,
        choices,
    })
}

/// The matrix and the vector, if the method can take them.
fn operands<'a>(
    task: &SpmvTask<'a>,
    context: Context<'_>,
) -> Result<(Cow<'a, SparseMatrix>, Cow<'a, [f64]>)> {
    if task.steps == 0 {
        return Err(Error::input("`steps`", "0 steps change nothing", "give at least 1"));
    }
    if !(task.tolerance.is_finite() && task.tolerance > 0.0) {
        let what = format!("{} is no tolerance", task.tolerance);
        return Err(Error::input("`tolerance`", what, "give a positive number, such as 1e-8"));
    }
    let (matrix, place) = match &task.matrix {
        SpmvMatrix::File(path) => {
            (Cow::Owned(context.watch("reading", || read_sparse(path))?), path.display().to_string())
        }
        SpmvMatrix::Matrix(matrix) => (Cow::Borrowed(*matrix), "`matrix`".into()),
    };
    let n = matrix.rows();
    if n != matrix.cols() {
        let what = format!("is {n} x {}", matrix.cols());
        return Err(Error::input(place, what, "give a square matrix: its product is multiplied again"));
    }
    if task.method == SpmvMethod::Jacobi {
        let empty = |row: &usize| {
            let (columns, values) = matrix.row(*row);
            columns.binary_search(&(*row as u32)).map_or(0.0, |entry| values[entry]) == 0.0
        };
        if let Some(row) = (0..n).find(empty) {
            let what = format!("row {} has no element on the diagonal, by which jacobi divides", row + 1);
            return Err(Error::input(place, what, "use cg, or order the rows so that it has"));
        }
    }
    if task.method == SpmvMethod::Cg && !matrix.is_symmetric() {
        return Err(Error::input(place, "is not symmetric", "use jacobi: cg is for symmetric matrices"));
    }
    let (vector, place) = match &task.vector {
        VectorSource::File(path) => (Cow::Owned(read_vector(path)?), path.display().to_string()),
        VectorSource::Array(array) => (Cow::Borrowed(*array), "`vector`".into()),
    };
    if vector.len() != n {
        let what = format!("has {} elements for {n} rows", vector.len());
        return Err(Error::input(place, what, "give one element for each row"));
    }
    if let Some(at) = vector.iter().position(|x| !x.is_finite()) {
        return Err(Error::input(place, format!("element {at} is {}", vector[at]), "give finite numbers"));
    }
    let square = square_of(&vector);
    let none = vector.iter().all(|x| *x == 0.0);
    if task.method.solves() && !(square.is_finite() && (square >= f64::MIN_POSITIVE || none)) {
        let what = "the square of its norm exceeds the range of doubles";
        return Err(Error::input(place, what, "scale it: x is in proportion"));
    }
    Ok((matrix, vector))
}

/// The square of the norm of a vector, the same on every rank.
fn square_of(vector: &[f64]) -> f64 {
    let mut square = SteadySum::default();
    square.add_products(vector, vector);
    square.value()
}

/// A vector of one dimension, or of one column or row.
fn read_vector(path: &std::path::Path) -> Result<Vec<f64>> {
    let mut reader = NpyFile::open_array(path)?;
    let (rows, cols) = (reader.header().rows as u64, reader.header().cols as u64);
    if rows.min(cols) != 1 {
        let what = format!("is a matrix of {rows} x {cols}");
        return Err(Error::input(path.display().to_string(), what, "give a vector"));
    }
    let whole = Rect::new(Span::new(0, rows), Span::new(0, cols));
    match reader.header().dtype {
        "f64" => Ok(reader.read::<f64>(whole)?.as_slice().to_vec()),
        "f32" => Ok(reader.read::<f32>(whole)?.as_slice().iter().map(|x| f64::from(*x)).collect()),
        other => {
            let what = format!("holds {other}");
            Err(Error::input(path.display().to_string(), what, "give float64 or float32: x.astype(float)"))
        }
    }
}

fn write_vector(path: &PathBuf, vector: &[f64]) -> Result<()> {
    let mut file = OutputFile::create(path)?;
    file.put(&npy_header::<f64>(&[vector.len()], false))?;
    write_npy_rows(&mut file, vector)?;
    file.commit()
}

/// Says what there was to choose from.
fn announce(choices: &[GraphChoice], context: Context<'_>) {
    for (place, GraphChoice { plan, .. }) in choices.iter().enumerate() {
        let mark = if place == 0 { "chosen" } else { "against" };
        let seconds = plan.forecast.as_ref().map_or("-".into(), |f| format!("{:.6} s a step", f.seconds));
        let volume = plan.metrics.volume.unwrap_or(0);
        context.detail(format!("{mark}: {}: {seconds}, {volume} elements moved", plan.method));
    }
}

/// The whole vector, on every rank.
fn gathered(output: &Output, n: usize, world: &World) -> Result<Vec<f64>> {
    let mut bytes = Vec::new();
    for (rows, vectors) in output {
        for (row, x) in rows.iter().zip(&vectors.x) {
            bytes.extend(row.to_le_bytes());
            bytes.extend(x.to_le_bytes());
        }
    }
    let mut whole = vec![0.0; n];
    for bytes in world.all_gather(&bytes)? {
        let (entries, _) = bytes.as_chunks::<12>();
        for [a, b, c, d, x @ ..] in entries {
            whole[u32::from_le_bytes([*a, *b, *c, *d]) as usize] = f64::from_le_bytes(*x);
        }
    }
    Ok(whole)
}

/// What came of all steps.
struct Ran {
    output: Output,
    trace: Trace,
    /// Steps that were carried out.
    steps: u64,
    solution: Option<IterationRun>,
}

/// The steps of a task.
struct Steps<'a> {
    task: &'a SpmvTask<'a>,
    sparse: &'a Sparse<'a>,
    job: &'a Job<'a, Sparse<'a>>,
    best: &'a GraphChoice,
    session: &'a Session<'a>,
    context: Context<'a>,
}

impl Steps<'_> {
    /// All steps, some at once, until the result is there.
    fn all(&self, mut data: SparseData) -> Result<Ran> {
        let Self { task, .. } = *self;
        let norm = square_of(self.sparse.vector);
        data.goal =
            if task.method.solves() && norm > 0.0 { task.tolerance * task.tolerance * norm } else { 0.0 };
        let (mut trace, mut steps) = (Trace::empty(self.best.plan.processors.len()), 0);
        let mut output = self.context.watch("computing", || -> Result<Output> {
            let mut left = task.steps;
            let at_once = if task.method.solves() { TOWARDS } else { PRODUCTS };
            loop {
                data.steps = left.min(at_once);
                left -= data.steps;
                let (output, progress) = self.some(self.job, &data, &mut trace)?;
                steps += if task.method.solves() { 0 } else { data.steps };
                data.before += data.steps;
                if left == 0 || progress.done {
                    return Ok(output);
                }
                keep(&mut data, output);
            }
        })?;
        if !task.method.solves() {
            return Ok(Ran { output, trace, steps, solution: None });
        }
        let progress = self.progress(&output)?;
        if progress.broke_down {
            let what =
                format!("A is not positive definite: r A r was not positive in step {}", progress.steps + 1);
            return Err(Error::infeasible(what, "use jacobi, or a direct method (`solve`)"));
        }
        // The residual that an iteration carries along drifts from that of its x.
        keep(&mut data, std::mem::take(&mut output));
        data.held.iter_mut().flatten().for_each(|held| held.vectors.progress.done = false);
        data.steps = 1;
        let Sparse { matrix, parts, vector, .. } = *self.sparse;
        let (method, options, graph) = (SpmvMethod::Residual, GraphOptions::default(), OnceLock::new());
        let last = Sparse { matrix, method, options, parts, vector, graph };
        let (output, true_progress) = self.some(&Job::new(&last), &data, &mut trace)?;
        let residual =
            if norm > 0.0 { (true_progress.square / norm).sqrt() } else { true_progress.square.sqrt() };
        let converged = residual <= DRIFT * task.tolerance;
        let solution = IterationRun { converged, tolerance: task.tolerance, residual };
        if !converged {
            let how = match residual.is_finite() {
                true => format!("{residual:.1e} of that of b, not {:.1e}", task.tolerance),
                false => "no number".into(),
            };
            let (steps, name) = (progress.steps, task.method.name());
            let what = format!("after {steps} steps of {name} the norm of b - A x is {how}");
            let remedy = match task.method {
                SpmvMethod::Jacobi => {
                    "use more `steps`, a larger `tolerance`, or cg if A is symmetric positive definite"
                }
                _ => "use more `steps`, or a larger `tolerance`",
            };
            return Err(Error::infeasible(what, remedy));
        }
        Ok(Ran { output, trace, steps: progress.steps, solution: Some(solution) })
    }

    fn some(
        &self,
        job: &Job<'_, Sparse<'_>>,
        data: &SparseData,
        trace: &mut Trace,
    ) -> Result<(Output, Progress)> {
        let solved = job.solve(self.best, data, self.session)?;
        trace.append(solved.trace);
        let progress = self.progress(&solved.output)?;
        Ok((solved.output, progress))
    }

    /// How far the iteration is; processors without rows do not know.
    fn progress(&self, output: &Output) -> Result<Progress> {
        let with_rows = output.iter().find(|(rows, _)| !rows.is_empty());
        let mut mine = with_rows.map(|(_, vectors)| vectors.progress).unwrap_or_default();
        let facts = [mine.square, mine.steps as f64, f64::from(mine.done), f64::from(mine.broke_down)];
        // What is no number is no small one: `f64::max` passes over it.
        let larger = |a: f64, b: f64| if a.is_nan() || a > b { a } else { b };
        let all = self.session.world().all_reduce(&facts, larger)?;
        (mine.square, mine.steps) = (all[0], all[1] as u64);
        (mine.done, mine.broke_down) = (all[2] > 0.0, all[3] > 0.0);
        Ok(mine)
    }
}

/// The data of the next steps.
fn keep(data: &mut SparseData, output: Output) {
    let held = data.held.iter_mut().flatten();
    held.zip(output).for_each(|(held, (_, vectors))| held.vectors = vectors);
}
