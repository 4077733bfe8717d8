//! From a matrix and right-hand sides to a verified solution, for all front ends.

use super::outputs::write_whole;
use super::{Done, FactorOutcome, FactorTask, Input, MatrixSource, Then, factor_then};
use crate::solve::{Factored, Failure, Solution, solve};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::job::{Context, Outputs};
use apportion::kernels::Real;
use apportion::matrix::{AnyMatrix, Element, Matrix, NpyFile, read_npy_array};
use apportion::output::OutputFile;
use apportion::output::is_stream;
use apportion::record::{MixedRun, SolutionRun};
use apportion::schedule::Application;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Everything that a caller says of a linear system A X = B.
#[derive(Debug, Clone)]
pub struct SolveTask {
    /// The factorisation of A; its files are not written.
    pub factor: FactorTask,
    /// Right-hand sides: an n x r matrix, or a file of n numbers.
    pub b: MatrixSource,
    /// File of the solution; otherwise it is only returned.
    pub output: Option<PathBuf>,
    /// Factors a matrix of doubles in single precision, and refines the solution to double precision; where that fails,
    /// the matrix is factored again in double precision.
    pub mixed: bool,
}

impl SolveTask {
    /// The system of a matrix and right-hand sides, everything else left open.
    pub fn new(factor: FactorTask, b: MatrixSource) -> Self {
        Self { factor, b, output: None, mixed: false }
    }
}

/// A solution: verified, and in a file that is complete, but does not appear before it is committed.
#[derive(Debug)]
pub struct SolveOutcome {
    /// X, n x r, on every process.
    pub x: AnyMatrix,
    /// What happened while A was factored.
    pub factor: FactorOutcome,
    /// The file of the solution; on rank 0.
    pub file: Option<OutputFile>,
    /// How good the solution is.
    pub report: SolutionRun,
}

/// Solves a linear system: factors A as [`factor_matrix`](super::factor_matrix) does, substitutes, refines, and
/// verifies the solution. Every rank must call it, with the same task.
///
/// # Errors
/// Those of a factorisation; right-hand sides that do not fit A (exit code 2); a solution that is wrong (exit code 1).
pub fn solve_matrix(task: SolveTask, context: Context<'_>) -> Result<SolveOutcome> {
    let world = context.world;
    let outputs = world.all_ok(Outputs::open([task.output.as_ref(), None], world))?;
    let (b, is_vector) = world.all_ok(read_sides(&task.b))?;
    let place = task.b.place();
    let substitution = Substitution { b, place, mixed: task.mixed };
    let (factor, (x, report)) = factor_then(task.factor, substitution, context)?;
    let (element, epsilon) =
        if x.name() == f32::NAME { (f32::NAME, f32::EPSILON.into()) } else { (f64::NAME, f64::EPSILON) };
    if report.condition > 1.0 / epsilon {
        context.note(format!(
            "A is singular up to rounding: its condition number is about {:.1e}, more than {:.1e}, so that x may have no \
             right digit in {element}",
            report.condition,
            1.0 / epsilon
        ));
    }
    let file = match &x {
        AnyMatrix::F32(x) => write_whole(outputs, x, is_vector, world)?,
        AnyMatrix::F64(x) => write_whole(outputs, x, is_vector, world)?,
        _ => unreachable!("solutions are of real numbers"),
    };
    Ok(SolveOutcome { x, factor, file, report })
}

/// Reads right-hand sides whole; true if the file is an array of one dimension.
fn read_sides(source: &MatrixSource) -> Result<(Arc<AnyMatrix>, bool)> {
    match source {
        MatrixSource::Memory { matrix, .. } => Ok((Arc::clone(matrix), false)),
        MatrixSource::File(path) => read_file(path).map(|(matrix, is_vector)| (Arc::new(matrix), is_vector)),
    }
}

fn read_file(path: &Path) -> Result<(AnyMatrix, bool)> {
    let is_npy = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
    if !is_npy || is_stream(path) {
        return Input::open_whole(path).map(|matrix| (matrix, false));
    }
    let array = read_npy_array(path)?;
    let is_vector = array.sizes.len() == 1;
    if array.sizes.len() > 2 {
        let what = format!("has {} dimensions", array.sizes.len());
        return Err(Error::input(path.display().to_string(), what, "give one or two"));
    }
    let mut file = NpyFile::open_array(path)?;
    let header = *file.header();
    let whole = apportion::geometry::Rect::new(
        apportion::geometry::Span::new(0, header.rows as u64),
        apportion::geometry::Span::new(0, header.cols as u64),
    );
    let turn = |rows: usize, cols: usize| if is_vector { (cols, rows) } else { (rows, cols) };
    let (rows, cols) = turn(header.rows, header.cols);
    let matrix = match header.dtype {
        "f32" => AnyMatrix::F32(Matrix::new(rows, cols, file.read::<f32>(whole)?.into_elements())),
        "f64" => AnyMatrix::F64(Matrix::new(rows, cols, file.read::<f64>(whole)?.into_elements())),
        other => {
            let what = format!("holds {other}, but right-hand sides are f32 or f64");
            return Err(Error::input(path.display().to_string(), what, "convert it to numpy.float64"));
        }
    };
    file.check_unchanged()?;
    Ok((matrix, is_vector))
}

/// What follows the factorisation of A.
struct Substitution {
    b: Arc<AnyMatrix>,
    place: String,
    mixed: bool,
}

impl Then for Substitution {
    type Result = (AnyMatrix, SolutionRun);

    const KEEPS: bool = true;

    fn check(&self, n: u64, element: &str) -> Result<()> {
        let (rows, cols) = (self.b.rows(), self.b.cols());
        if rows as u64 != n || cols == 0 {
            let what = format!("is {rows} x {cols}, but the matrix has {n} rows");
            return Err(Error::input(&self.place, what, "give a right-hand side for each row"));
        }
        if self.b.name() != element {
            let what = format!("holds {}, but the matrix holds {element}", self.b.name());
            return Err(Error::input(&self.place, what, "convert one of them to the other's type"));
        }
        if self.mixed && element != f64::NAME {
            let what = format!("is for doubles, but the matrix holds {element}");
            return Err(Error::input(
                "`mixed`",
                what,
                "leave it out, or convert the matrix to numpy.float64",
            ));
        }
        let bad = |x: f64| !x.is_finite();
        let at = match &*self.b {
            AnyMatrix::F32(b) => b.as_slice().iter().position(|x| bad(f64::from(*x))),
            AnyMatrix::F64(b) => b.as_slice().iter().position(|x| bad(*x)),
            _ => None,
        };
        match at {
            None => Ok(()),
            Some(at) => {
                let what = format!("element ({}, {}), counted from 0, is not finite", at / cols, at % cols);
                Err(Error::input(&self.place, what, "give finite numbers"))
            }
        }
    }

    fn is_mixed(&self) -> bool {
        self.mixed
    }

    fn without_factors(&self) -> Option<Self::Result> {
        None
    }

    fn run<T: Real, F: Real>(
        &self,
        done: &Done<'_, T, F>,
    ) -> Result<std::result::Result<Self::Result, Failure>> {
        let begin = Instant::now();
        let b = self.b.elements::<T>().expect("other types were refused");
        let (rows, sides) = (self.b.rows(), self.b.cols());
        let work: Vec<f64> =
            (0..done.schedule.processors()).map(|rank| done.schedule.work(Rank(rank))).collect();
        let factored = Factored {
            factors: done.schedule.factors(),
            blocks: done.schedule.blocks(),
            columns: &done.output.columns,
            pivots: &done.output.pivots,
            scale: done.scale,
            world: done.world,
            threads: done.threads,
            work: &work,
        };
        let solution = match solve(&factored, done.original, b)? {
            Ok(solution) => solution,
            Err(failure) => return Ok(Err(failure)),
        };
        let Solution { x, residuals, steps, condition, substitution_seconds } = solution;
        let seconds = begin.elapsed().as_secs_f64();
        let mixed = self.mixed.then(|| match done.failure {
            None => MixedRun { steps, fell_back: false, why: None },
            Some(failure) => {
                MixedRun { steps: failure.steps, fell_back: true, why: Some(failure.why.clone()) }
            }
        });
        let [residual_before_refinement, residual] = residuals;
        let report = SolutionRun {
            right_hand_sides: sides as u64,
            residual,
            residual_before_refinement,
            refinement_steps: steps,
            mixed,
            condition,
            seconds,
            substitution_seconds,
        };
        Ok(Ok((super::any_matrix(rows, sides, x), report)))
    }
}
