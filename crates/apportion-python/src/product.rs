//! Products, powers and closures of matrices on this machine's processors.

use crate::arrays::{Array, Kind, Lent, Operand};
use crate::errors::{exception, refuse};
use crate::layouts::{Layout, Order, best};
use crate::machine::{Machine, Sources, within};
use crate::report::Report;
use crate::wait::long;
use apportion::kernels::{Kernel, PathElement, Semiring, Tropical};
use apportion::matrix::{BlockViews, Element, LocalBlocks, Scaling};
use apportion::measure::measure_on;
use apportion::model::{Model, Models, WorkUnit, only_ratios};
use apportion::plan::{Plan, Shape};
use apportion::platform::{Network, Platform, discover};
use apportion::product::{
    Adaptive, MatmulJob, OperandViews, RunReport, matrix_closure, matrix_paths, matrix_power, multiply,
    products_of_closure, products_of_power,
};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::ScheduleOptions;
use apportion::{Error, Rect, Result, Span};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Sizes of the quick measurement: elements of C.
const QUICK_SIZES: [f64; 4] = [4096.0, 65_536.0, 524_288.0, 2_097_152.0];

/// What to compute, as the Python half passes it.
#[derive(FromPyObject, Clone)]
#[pyo3(from_item_all)]
pub struct Task {
    /// `product`, `power`, `closure` or `paths`.
    what: String,
    pub semiring: String,
    exponent: u64,
    alpha: Option<f64>,
    beta: Option<f64>,
    pub adaptive: bool,
    pub segments: u64,
    pub seed: u64,
    measure: bool,
}

/// Everything that a run needs besides its operands.
pub struct Job {
    pub task: Task,
    pub semiring: Semiring,
    pub shape: Shape,
    pub sources: Sources,
    pub order: Order,
    pub given: Option<(Plan, Option<ScheduleOptions>, Option<Machine>)>,
}

/// Speeds, plan and order of a run.
pub struct Settled {
    pub machine: Machine,
    pub plan: Plan,
    pub order: ScheduleOptions,
    /// True if the layout was made for ratios of speeds.
    pub ratios: bool,
}

type Made = (Array, Option<Array>, Report);

/// Computes a product, a power, a closure, or a closure with predecessors.
#[pyfunction]
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
    let a = Operand::of(a, "A")?;
    let b = b.map(|b| Operand::of(b, "B")).transpose()?;
    let c = c.map(|c| Operand::of(c, "C")).transpose()?;
    let semiring: Semiring = task.semiring.parse().map_err(exception)?;
    within("segments", task.segments, 1, 1 << 20).map_err(exception)?;
    let all: Vec<&Operand> = [Some(&a), b.as_ref(), c.as_ref()].into_iter().flatten().collect();
    check_kinds(&all, semiring)?;
    let shape = shape(&a, b.as_ref(), c.as_ref())?;
    let given = layout.map(|layout| (layout.plan.clone(), layout.order, layout.machine.clone()));
    let job = Job { task, semiring, shape, sources, order, given };
    let truth = if all.iter().all(|operand| operand.kind == Kind::Bool) { Kind::Bool } else { Kind::U8 };
    match (a.kind, semiring) {
        (Kind::F64, Semiring::PlusTimes) => compute(py, Kernel::<f64>::plus_times(), &all, &job, truth),
        (Kind::F32, Semiring::PlusTimes) => compute(py, Kernel::<f32>::plus_times(), &all, &job, truth),
        (Kind::F64, _) => tropical::<f64>(py, &all, &job),
        (Kind::F32, _) => tropical::<f32>(py, &all, &job),
        (Kind::I64, _) => tropical::<i64>(py, &all, &job),
        (Kind::I32, _) => tropical::<i32>(py, &all, &job),
        (Kind::Bool | Kind::U8, _) => compute(py, Kernel::or_and(), &all, &job, truth),
    }
}

/// A semiring takes certain elements, and all operands have the same.
pub fn check_kinds(all: &[&Operand], semiring: Semiring) -> PyResult<()> {
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
pub fn shape(a: &Operand, b: Option<&Operand>, c: Option<&Operand>) -> PyResult<Shape> {
    let Some(b) = b else {
        if a.rows != a.cols {
            return Err(a.misfit(", not square", "pass a square matrix"));
        }
        let n = a.rows as u64;
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
    Shape::new(a.rows as u64, a.cols as u64, b.cols as u64, "A and B").map_err(exception)
}

fn tropical<T: Lent + Tropical>(py: Python<'_>, all: &[&Operand], job: &Job) -> PyResult<Made>
where
    PathElement<T>: Element,
{
    if job.task.what == "paths" {
        return paths::<T>(py, all[0], job);
    }
    compute(py, Kernel::<T>::tropical(job.semiring).map_err(exception)?, all, job, Kind::U8)
}

/// A whole matrix as one block.
pub fn whole<T>(elements: &[T], (rows, cols): (usize, usize)) -> BlockViews<'_, T> {
    vec![(Rect::new(Span::new(0, rows as u64), Span::new(0, cols as u64)), elements)]
}

/// The elements of the only block.
fn only<T>(blocks: LocalBlocks<T>) -> Vec<T> {
    blocks.into_iter().next().map(|(_, elements)| elements).unwrap_or_default()
}

fn compute<T: Lent>(
    py: Python<'_>,
    kernel: Kernel<T>,
    all: &[&Operand],
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
        .map(|operand| (operand.name(), operand.elements::<T>(), (operand.rows, operand.cols)))
        .collect();
    let views: Vec<(&str, BlockViews<'_, T>)> =
        elements.iter().map(|(name, elements, sizes)| (*name, whole(&elements[..], *sizes))).collect();
    let (elements, report, ratios) = long(py, |monitor| {
        for (name, blocks) in &views {
            kernel.check_tile(blocks[0], name)?;
        }
        let world = World::solo(monitor);
        let settled = settle::<T>(kernel, job, &world, monitor)?;
        let platform = as_run(&settled.machine.platform);
        let products = match job.task.what.as_str() {
            "power" => products_of_power(job.task.exponent),
            "closure" => products_of_closure(job.shape.m),
            _ => 1,
        };
        let adaptive = job.task.adaptive.then_some(Adaptive { segments: job.task.segments });
        let scaling = scaling(kernel, &job.task)?;
        let matmul = settled.job(kernel, job.task.seed).with_adaptive(adaptive).with_scaling(scaling);
        let session = Session::new(&world, &platform, monitor, matmul.work() * products as f64);
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
    Ok((T::lend(elements, sizes(job.shape), truth), None, named(report, truth, job, ratios)))
}

fn paths<T: Lent + Tropical>(py: Python<'_>, a: &Operand, job: &Job) -> PyResult<Made>
where
    PathElement<T>: Element,
{
    let elements = a.elements::<T>();
    let elements = &elements[..];
    let (lengths, predecessors, report, ratios) = long(py, |monitor| {
        let kernel = Kernel::<PathElement<T>>::paths(job.semiring)?;
        let view = whole(elements, sizes(job.shape));
        Kernel::<T>::tropical(job.semiring)?.check_tile(view[0], "A")?;
        let world = World::solo(monitor);
        let settled = settle::<PathElement<T>>(kernel, job, &world, monitor)?;
        let platform = as_run(&settled.machine.platform);
        let matmul = settled.job(kernel, job.task.seed);
        let work = matmul.work() * products_of_closure(job.shape.m) as f64;
        let session = Session::new(&world, &platform, monitor, work);
        let paths = matrix_paths(&vec![(view[0].0, elements.to_vec())], &matmul, &session)?;
        Ok((only(paths.lengths), only(paths.predecessors), paths.report, settled.ratios))
    })?;
    let lengths = T::lend(lengths, sizes(job.shape), Kind::U8);
    let predecessors = i32::lend(predecessors, sizes(job.shape), Kind::U8);
    Ok((lengths, Some(predecessors), Report::new(report, ratios)))
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

impl Settled {
    pub fn job<T: Element>(&self, kernel: Kernel<T>, seed: u64) -> MatmulJob<'_, T> {
        MatmulJob::new(kernel, &self.plan, self.order, &self.machine.models, self.machine.block)
            .with_forecast(self.plan.forecast.clone())
            .with_seed(seed)
    }
}

/// The platform as the threads engine uses it: with its network only if that is to be emulated.
pub fn as_run(platform: &Platform) -> Platform {
    match platform.network.emulate {
        true => platform.clone(),
        false => Platform { network: Network::free(), ..platform.clone() },
    }
}

/// Makes the decisions that the caller left open.
pub fn settle<T: Element>(kernel: Kernel<T>, job: &Job, world: &World, monitor: &Monitor) -> Result<Settled> {
    let machine = match (job.sources.known(WorkUnit::MultiplyAdd)?, &job.given) {
        (Some(machine), _) => machine,
        (None, Some((.., Some(machine)))) => machine.clone(),
        (None, given) => {
            let platform = match (job.sources.platform()?, given) {
                (Some(platform), _) => platform,
                (None, Some((plan, ..))) => Platform::from_names(&plan.processors),
                (None, None) if world.is_solo() => discover().platform(),
                (None, None) => {
                    Platform::from_names(&(0..world.size()).map(|i| format!("p{i}")).collect::<Vec<_>>())
                }
            };
            fits(world, &platform)?;
            undescribed(kernel, platform, job, (world, monitor))?
        }
    };
    fits(world, &machine.platform)?;
    let platform = as_run(&machine.platform);
    let options = job.order.options(&platform, size_of::<T>() as u64)?;
    let ratios = only_ratios(&machine.models);
    let (plan, order) = match &job.given {
        None => {
            let machine = Machine { platform, ..machine.clone() };
            let choice = best(job.shape, &machine, &options)?;
            (choice.plan, choice.order)
        }
        Some((plan, order, _)) => {
            let shape = plan.layout()?.shape();
            if shape != job.shape {
                let [of, is] = [shape, job.shape].map(|s| format!("{} x {} x {}", s.m, s.k, s.n));
                return Err(refuse(
                    "layout",
                    format!("is for a product of {of}, but this is {is}"),
                    "lay out this shape",
                ));
            }
            if plan.processors != machine.platform.names() {
                let what = "its processors are not those of this call, in the same order";
                return Err(refuse("layout", what, "pass the same speeds, or leave them out"));
            }
            let open =
                apportion::select::orders(options.flow, options.block, options.overlap, options.look_ahead);
            let order = match (&job.order.flow, order) {
                (None, Some(order)) => *order,
                _ => open[0],
            };
            (plan.clone(), order)
        }
    };
    Ok(Settled { machine, plan, order, ratios })
}

/// Each rank of a world runs one processor.
fn fits(world: &World, platform: &Platform) -> Result<()> {
    if world.is_solo() || world.size() == platform.len() {
        return Ok(());
    }
    let what = format!("has {} processes, but there are {} processors", world.size(), platform.len());
    Err(refuse("comm", what, "describe one processor for each process"))
}

/// Speeds of processors of which nothing is known: equal ratios if their cores are of one kind, otherwise
/// measured once in the life of this process.
fn undescribed<T: Element>(
    kernel: Kernel<T>,
    platform: Platform,
    job: &Job,
    (world, monitor): (&World, &Monitor),
) -> Result<Machine> {
    let pinned = platform.processors.iter().all(|p| p.cores.len() == 1);
    let clusters: Vec<&str> = platform.processors.iter().map(|p| p.cluster.as_str()).collect();
    let one_kind = pinned && clusters.iter().all(|cluster| *cluster == clusters[0]);
    if (one_kind || !world.is_solo()) && !job.task.measure {
        let models =
            platform.names().into_iter().map(|name| Model::ratio(name, 1.0)).collect::<Result<_>>()?;
        return Ok(Machine { platform, models, block: 1 });
    }
    static KNOWN: Mutex<BTreeMap<String, Models>> = Mutex::new(BTreeMap::new());
    let block = job.order.block;
    let key = format!("{} {block} {}", kernel.name(), platform.to_toml());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Ranks measure together, or none does.
    let found = known().get(&key).filter(|_| world.is_solo()).cloned();
    let models = match found {
        Some(models) => models,
        None => {
            let models = measure_on(kernel, &platform, (&QUICK_SIZES, block), world, monitor)?;
            known().insert(key, models.clone());
            models
        }
    };
    Ok(Machine { models: models.in_order(&platform.names())?, block, platform })
}
