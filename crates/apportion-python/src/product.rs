//! Products, powers and closures of matrices on this machine's processors.

use crate::arrays::{Array, Kind, Lent, Operand};
use crate::errors::{exception, refuse};
use crate::layouts::{Layout, Order};
use crate::machine::{Machine, Sources, within};
use crate::report::Report;
use crate::settle::{as_run, settle};
use crate::wait::long;
use apportion::kernels::{Kernel, PathElement, Semiring, Tropical};
use apportion::matrix::{BlockViews, Element, LocalBlocks, Scaling};
use apportion::plan::{Plan, Shape};
use apportion::platform::Platform;
use apportion::product::{
    Adaptive, ClosureMethod, MatmulJob, OperandViews, RunReport, matrix_closure, matrix_paths, matrix_power,
    multiply, products_of_power,
};
use apportion::run::{Session, World};
use apportion::schedule::ScheduleOptions;
use apportion::{Error, Rect, Result, Span};
use pyo3::prelude::*;
use std::borrow::Cow;

/// What to compute, as the Python half passes it.
#[derive(FromPyObject, Clone)]
#[pyo3(from_item_all)]
pub struct Task {
    /// `product`, `power`, `closure` or `paths`.
    what: String,
    pub semiring: String,
    exponent: u64,
    pub alpha: Option<f64>,
    pub beta: Option<f64>,
    pub adaptive: bool,
    pub segments: u64,
    pub seed: u64,
    /// Speeds that nothing describes are measured, once.
    pub measure: bool,
    /// They are measured again.
    pub remeasure: bool,
    /// Of a closure: `auto`, `squaring` or `elimination`.
    algorithm: String,
}

impl Task {
    /// The arguments as words, to be compared between processes.
    pub fn words(&self) -> Vec<String> {
        let Self { what, semiring, exponent, alpha, beta, adaptive, segments, seed, .. } = self;
        let Self { measure, remeasure, algorithm, .. } = self;
        let number = |number: &Option<f64>| number.map_or_else(|| "None".into(), |number| number.to_string());
        vec![
            what.clone(),
            format!("semiring={semiring:?}"),
            format!("exponent={exponent}"),
            format!("alpha={}", number(alpha)),
            format!("beta={}", number(beta)),
            format!("adaptive={adaptive}"),
            format!("segments={segments}"),
            format!("measure={measure}"),
            format!("remeasure={remeasure}"),
            format!("algorithm={algorithm:?}"),
            format!("seed={seed}"),
        ]
    }
}

/// Everything that a run needs besides its operands.
pub struct Job {
    pub task: Task,
    pub semiring: Semiring,
    pub shape: Shape,
    pub sources: Sources,
    pub order: Order,
    pub given: Option<(Plan, Option<ScheduleOptions>, Option<Machine>)>,
    /// True if the inner dimension is 0: the operands then have a column and a row of the semiring's zero.
    hollow: bool,
}

/// The result, the predecessors and the report; without elements nothing runs, and there is no report.
type Made = (Array, Option<Array>, Option<Report>);

/// Computes a product, a power, a closure, or a closure with predecessors.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn product(
    py: Python<'_>,
    task: Task,
    a: &Bound<'_, PyAny>,
    b: Option<&Bound<'_, PyAny>>,
    c: Option<&Bound<'_, PyAny>>,
    sources: Sources,
    order: Order,
    layout: Option<PyRef<'_, Layout>>,
) -> PyResult<Made> {
    let (all, job, truth) = read(task, (a, b, c), sources, order, layout)?;
    let (all, semiring) = (&all[..], job.semiring);
    let (rows, cols) =
        (all[0].rows, all.iter().find(|operand| operand.name() == "B").unwrap_or(&all[0]).cols);
    if rows == 0 || cols == 0 {
        let kind = if all[0].kind.is_truth() { truth } else { all[0].kind };
        let before = (job.task.what == "paths").then(|| Array::empty(Kind::I32, (rows, cols)));
        return Ok((Array::empty(kind, (rows, cols)), before, None));
    }
    match (all[0].kind, semiring) {
        (Kind::F64, Semiring::PlusTimes) => compute(py, Kernel::<f64>::plus_times(), all, &job, truth),
        (Kind::F32, Semiring::PlusTimes) => compute(py, Kernel::<f32>::plus_times(), all, &job, truth),
        (Kind::F64, _) => tropical::<f64>(py, all, &job),
        (Kind::F32, _) => tropical::<f32>(py, all, &job),
        (Kind::I64, _) => tropical::<i64>(py, all, &job),
        (Kind::I32, _) => tropical::<i32>(py, all, &job),
        (Kind::Bool | Kind::U8, _) => compute(py, Kernel::or_and(), all, &job, truth),
    }
}

/// A, B and C, those that there are, as Python passes them.
pub type Given<'a, 'py> =
    (&'a Bound<'py, PyAny>, Option<&'a Bound<'py, PyAny>>, Option<&'a Bound<'py, PyAny>>);

/// The operands that there are, checked against each other; the job; and the kind of truth values.
pub fn read(
    task: Task,
    (a, b, c): Given<'_, '_>,
    sources: Sources,
    order: Order,
    layout: Option<PyRef<'_, Layout>>,
) -> PyResult<(Vec<Operand>, Job, Kind)> {
    let given = [(Some(a), "A"), (b, "B"), (c, "C")];
    let all = given.into_iter().filter_map(|(operand, name)| Some(Operand::of(operand?, name)));
    let all: Vec<Operand> = all.collect::<PyResult<_>>()?;
    let semiring: Semiring = task.semiring.parse().map_err(exception)?;
    within("segments", task.segments, 1, 1 << 20).map_err(exception)?;
    check_kinds(&all, semiring)?;
    let find = |name| all.iter().find(|operand| operand.name() == name);
    let shape = shape(&all[0], find("B"), find("C"))?;
    let given = layout.map(|layout| {
        let origin = layout.origin.as_ref();
        (layout.plan.clone(), origin.map(|o| o.order), origin.map(|o| o.machine.clone()))
    });
    let truth = if all.iter().all(|operand| operand.kind == Kind::Bool) { Kind::Bool } else { Kind::U8 };
    let hollow = find("B").is_some() && all[0].cols == 0;
    Ok((all, Job { task, semiring, shape, sources, order, given, hollow }, truth))
}

/// A semiring takes certain elements, and all operands have the same.
fn check_kinds(all: &[Operand], semiring: Semiring) -> PyResult<()> {
    for operand in all {
        let kind = operand.kind;
        let (takes, remedy) = match semiring {
            Semiring::OrAnd if kind.is_truth() => continue,
            Semiring::OrAnd => ("bool or uint8", "convert it with .astype(bool)"),
            _ if kind.is_truth() => ("numbers", "use semiring=\"or-and\", or convert it with .astype(float)"),
            Semiring::PlusTimes if !matches!(kind, Kind::F32 | Kind::F64) => {
                ("float32 or float64", "convert it with .astype(float)")
            }
            _ if kind == all[0].kind => continue,
            _ => {
                let what = format!("has elements of {}, but A has {}", kind.name(), all[0].kind.name());
                return Err(exception(refuse(operand.name(), what, "convert one of them")));
            }
        };
        let what = format!("has elements of {}, but {semiring} takes {takes}", kind.name());
        return Err(exception(refuse(operand.name(), what, remedy)));
    }
    Ok(())
}

/// The sizes fit together.
fn shape(a: &Operand, b: Option<&Operand>, c: Option<&Operand>) -> PyResult<Shape> {
    let Some(b) = b else {
        if a.rows != a.cols {
            return Err(a.misfit(", not square", "pass a square matrix"));
        }
        // An empty matrix is not computed.
        let n = a.rows.max(1) as u64;
        return Shape::new(n, n, n, "A").map_err(exception);
    };
    if a.cols != b.rows {
        let but = format!(", but A is {} x {}", a.rows, a.cols);
        return Err(b.misfit(&but, &format!("the right factor needs {} rows", a.cols)));
    }
    if let Some(c) = c.filter(|c| (c.rows, c.cols) != (a.rows, b.cols)) {
        let but = format!(", but the product is {} x {}", a.rows, b.cols);
        return Err(c.misfit(&but, "pass an initial C of the product's size"));
    }
    let [m, k, n] = [a.rows, a.cols, b.cols].map(|size| size.max(1) as u64);
    Shape::new(m, k, n, "A and B").map_err(exception)
}

fn tropical<T: Lent + Tropical>(py: Python<'_>, all: &[Operand], job: &Job) -> PyResult<Made>
where
    PathElement<T>: Element,
{
    if job.task.what == "paths" {
        return paths::<T>(py, &all[0], job);
    }
    compute(py, Kernel::<T>::tropical(job.semiring).map_err(exception)?, all, job, Kind::U8)
}

/// A whole matrix as one block.
pub fn whole<T>(elements: &[T], (rows, cols): (usize, usize)) -> BlockViews<'_, T> {
    vec![(Rect::new(Span::new(0, rows as u64), Span::new(0, cols as u64)), elements)]
}

/// The elements of the only block.
fn only<T>(blocks: LocalBlocks<T>) -> Vec<T> {
    blocks.into_iter().next().map(|(_, elements)| elements).expect("a process alone has the whole matrix")
}

fn compute<T: Lent>(
    py: Python<'_>,
    kernel: Kernel<T>,
    all: &[Operand],
    job: &Job,
    truth: Kind,
) -> PyResult<Made> {
    if job.task.what == "paths" {
        return Err(exception(
            Kernel::<PathElement<f64>>::paths(job.semiring)
                .err()
                .unwrap_or_else(|| refuse("predecessors", "there are none", "use numbers")),
        ));
    }
    // The operands hold Python's views: they stay on this thread, and their elements go to the other.
    let elements: Vec<_> = all
        .iter()
        .map(|operand| match job.hollow && operand.name() != "C" {
            true => {
                let sizes = (operand.rows.max(1), operand.cols.max(1));
                Ok((operand.name(), Cow::Owned(vec![kernel.zero(); sizes.0 * sizes.1]), sizes))
            }
            false => Ok((operand.name(), operand.elements::<T>()?, (operand.rows, operand.cols))),
        })
        .collect::<PyResult<_>>()?;
    let views: Vec<(&str, BlockViews<'_, T>)> =
        elements.iter().map(|(name, elements, sizes)| (*name, whole(&elements[..], *sizes))).collect();
    let (elements, report, ratios) = long(py, |monitor| {
        for (name, blocks) in &views {
            kernel.check_tile(blocks[0].0, blocks[0].1, name)?;
        }
        let world = World::solo(monitor);
        let settled = settle::<T>(kernel, job, &world, monitor)?;
        let platform = as_run(&settled.machine.platform);
        let adaptive = job.task.adaptive.then_some(Adaptive { segments: job.task.segments });
        let scaling = scaling(kernel, &job.task)?;
        let matmul = settled.job(kernel, job.task.seed).with_adaptive(adaptive).with_scaling(scaling);
        let (matmul, work) = match job.task.what.as_str() {
            "power" => {
                let work = matmul.work() * products_of_power(job.task.exponent) as f64;
                (matmul, work)
            }
            "closure" => closing(matmul, job, &platform, &world)?,
            _ => {
                let work = matmul.work();
                (matmul, work)
            }
        };
        let session = Session::new(&world, &platform, monitor, work);
        // A power works on a copy of its own.
        let copy = || vec![(views[0].1[0].0, views[0].1[0].1.to_vec())];
        let (c, report) = match job.task.what.as_str() {
            "power" => matrix_power(&copy(), job.task.exponent, &matmul, &session)?,
            "closure" => matrix_closure(&copy(), &matmul, &session)?,
            _ => {
                let view =
                    |name: &str| views.iter().find(|(known, _)| *known == name).map(|(_, view)| view.clone());
                let a = view("A").expect("there is an A");
                let b = view("B").unwrap_or_else(|| a.clone());
                multiply(OperandViews { a, b, initial: view("C") }, &matmul, &session)?
            }
        };
        Ok((only(c), report, settled.ratios))
    })?;
    Ok((T::lend(elements, sizes(job.shape), truth), None, Some(named(report, truth, job, ratios))))
}

fn paths<T: Lent + Tropical>(py: Python<'_>, a: &Operand, job: &Job) -> PyResult<Made>
where
    PathElement<T>: Element,
{
    let elements = a.elements::<T>()?;
    let elements = &elements[..];
    let (lengths, predecessors, report, ratios) = long(py, |monitor| {
        let kernel = Kernel::<PathElement<T>>::paths(job.semiring)?;
        let view = whole(elements, sizes(job.shape));
        Kernel::<T>::tropical(job.semiring)?.check_tile(view[0].0, view[0].1, "A")?;
        let world = World::solo(monitor);
        let settled = settle::<PathElement<T>>(kernel, job, &world, monitor)?;
        let platform = as_run(&settled.machine.platform);
        let (matmul, work) = closing(settled.job(kernel, job.task.seed), job, &platform, &world)?;
        let session = Session::new(&world, &platform, monitor, work);
        let paths = matrix_paths(&vec![(view[0].0, elements.to_vec())], &matmul, &session)?;
        Ok((only(paths.lengths), only(paths.predecessors), paths.report, settled.ratios))
    })?;
    let lengths = T::lend(lengths, sizes(job.shape), Kind::U8);
    let predecessors = i32::lend(predecessors, sizes(job.shape), Kind::U8);
    Ok((lengths, Some(predecessors), Some(Report::new(report, ratios))))
}

/// The job of a closure with its method, and the work of it.
fn closing<'j, T: Element>(
    matmul: MatmulJob<'j, T>,
    job: &Job,
    platform: &Platform,
    world: &World,
) -> Result<(MatmulJob<'j, T>, f64)> {
    let method = match job.task.algorithm.as_str() {
        "auto" => ClosureMethod::of(&matmul, platform, world)?,
        "squaring" => ClosureMethod::Squaring,
        "elimination" => ClosureMethod::Elimination,
        other => {
            let what = format!("unknown algorithm \"{other}\"");
            return Err(refuse("algorithm", what, "use auto, squaring or elimination"));
        }
    };
    Ok((matmul.with_closure(Some(method)), method.work(job.shape.m)))
}

/// The report, with the name that Python has for truth values.
fn named(report: RunReport, truth: Kind, job: &Job, ratios: bool) -> Report {
    let report = match (job.semiring, truth) {
        (Semiring::OrAnd, Kind::Bool) => report.with_io(0.0, "bool"),
        _ => report,
    };
    Report::new(report, ratios)
}

pub fn sizes(shape: Shape) -> (usize, usize) {
    (shape.m as usize, shape.n as usize)
}

/// Alpha and beta over the semiring; by default its one.
pub fn scaling<T: Element>(kernel: Kernel<T>, task: &Task) -> Result<Scaling<T>> {
    let scalar = |name: &str, given: Option<f64>| {
        let Some(given) = given else { return Ok(kernel.one()) };
        let scalar = T::from_f64(given);
        if kernel.semiring() == Semiring::OrAnd && given != 0.0 && given != 1.0 {
            return Err(refuse(name, format!("{given} is no truth value"), "pass 0 or 1 with or-and"));
        }
        if scalar.to_f64().is_infinite() && given.is_finite() {
            return Err(refuse(
                name,
                format!("{given} is beyond the range of {}", T::NAME),
                "pass a smaller number",
            ));
        }
        kernel.check_scaling(&Scaling { alpha: scalar, beta: kernel.one() }).map_err(
            |error| match error {
                Error::Input { what, remedy, .. } => Error::input(name, what, remedy),
                other => other,
            },
        )?;
        Ok(scalar)
    };
    Ok(Scaling { alpha: scalar("alpha", task.alpha)?, beta: scalar("beta", task.beta)? })
}
