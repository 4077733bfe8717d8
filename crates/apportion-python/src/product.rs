//! Products, powers and closures of arrays, on this machine's processors or on the processes of a communicator.

use crate::arrays::{Array, Kind, Operand};
use crate::errors::{exception, refuse};
use crate::layouts::{Layout, Order};
use crate::machine::{Sources, within};
use crate::report::Report;
use crate::wait::{long_watched, short};
use apportion::job::{
    Context, InputFiles, KernelChoice, MatrixJob, MatrixOperand, Operation, Outcome, ProductTask, RunOptions,
    compare_inputs, gather_whole, result_sizes,
};
use apportion::kernels::Semiring;
use apportion::matrix::{AnyBlocks, AnyView};
use apportion::product::{Adaptive, ClosureMethod};
use apportion::run::{Fact, Monitor, World, hash_elements};
use apportion::{Error, Result};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::path::PathBuf;

/// What to compute, as the Python half passes it.
#[derive(FromPyObject, Clone)]
#[pyo3(from_item_all)]
pub struct Task {
    /// `product`, `syrk`, `power`, `closure` or `paths`.
    what: String,
    semiring: String,
    exponent: u64,
    alpha: Option<f64>,
    beta: Option<f64>,
    adaptive: bool,
    segments: u64,
    seed: u64,
    /// Speeds that nothing describes are measured again.
    remeasure: bool,
    /// Of a closure: `auto`, `squaring` or `elimination`.
    algorithm: String,
}

impl Task {
    /// The arguments as words, to be compared between processes.
    fn words(&self) -> Vec<String> {
        let Self { what, semiring, exponent, alpha, beta, adaptive, segments, seed, .. } = self;
        let Self { remeasure, algorithm, .. } = self;
        let number = |number: &Option<f64>| number.map_or_else(|| "None".into(), |number| number.to_string());
        vec![
            what.clone(),
            format!("semiring={semiring:?}"),
            format!("exponent={exponent}"),
            format!("alpha={}", number(alpha)),
            format!("beta={}", number(beta)),
            format!("adaptive={adaptive}"),
            format!("segments={segments}"),
            format!("remeasure={remeasure}"),
            format!("algorithm={algorithm:?}"),
            format!("seed={seed}"),
        ]
    }

    fn operation(&self) -> Result<Operation> {
        let method = match self.algorithm.as_str() {
            "auto" => None,
            "squaring" => Some(ClosureMethod::Squaring),
            "elimination" => Some(ClosureMethod::Elimination),
            other => {
                let what = format!("unknown algorithm \"{other}\"");
                return Err(refuse("algorithm", what, "use auto, squaring or elimination"));
            }
        };
        Ok(match self.what.as_str() {
            "syrk" => Operation::Symmetric,
            "power" => Operation::Power(self.exponent),
            "closure" => Operation::Closure { method, predecessors: false },
            "paths" => Operation::Closure { method, predecessors: true },
            _ => Operation::Product,
        })
    }
}

/// The arguments of a call besides its operands.
struct Call {
    task: Task,
    sources: Sources,
    order: Order,
    layout: Option<Given>,
}

/// A layout that the caller passes.
struct Given {
    plan: apportion::plan::Plan,
    order: Option<apportion::schedule::ScheduleOptions>,
}

impl Call {
    fn new(task: Task, sources: Sources, order: Order, layout: Option<PyRef<'_, Layout>>) -> Self {
        let mut sources = sources;
        let layout = layout.map(|layout| {
            if let Some(origin) = layout.origin.as_ref().filter(|_| !sources.has_speeds()) {
                sources = origin.sources.clone();
            }
            Given { plan: layout.plan.clone(), order: layout.origin.as_ref().map(|origin| origin.order) }
        });
        Self { task, sources, order, layout }
    }

    /// The task of the library for these operands.
    fn prepare<'a>(&self, operands: Vec<MatrixOperand<'a>>) -> Result<ProductTask<'a>> {
        let task = &self.task;
        let semiring = self.semiring()?;
        within("segments", task.segments, 1, 1 << 20)?;
        let mut sources = self.sources.load()?;
        let mut options = RunOptions {
            kernel: KernelChoice::Fastest,
            remeasure: task.remeasure,
            seed: task.seed,
            ..self.order.run_options()?
        };
        if let Some(Given { plan, order }) = &self.layout {
            sources.plan = Some(plan.clone());
            sources.plan_place = "layout".into();
            if let (None, Some(order)) = (options.flow.flow, order) {
                options.flow.flow = Some(order.flow);
                options.flow.block = Some(order.block);
                options.flow.overlap = order.overlaps();
                options.flow.look_ahead = order.overlaps().then_some(order.look_ahead);
            }
        }
        let mut operands = operands.into_iter();
        let a = operands.next().ok_or_else(|| refuse("A", "is missing", "pass a matrix"))?;
        let operation = task.operation()?;
        Ok(ProductTask {
            b: if operation == Operation::Symmetric { None } else { operands.next() },
            initial: operands.next(),
            alpha: task.alpha,
            beta: task.beta,
            adaptive: task.adaptive.then_some(Adaptive { segments: task.segments }),
            sources,
            options,
            ..ProductTask::new(operation, semiring, a)
        })
    }
}

/// A, B and C, those that there are, as Python passes them.
type Objects<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

fn operands(objects: &Objects<'_>) -> PyResult<Vec<Operand>> {
    let given = [(Some(&objects.0), "A"), (objects.1.as_ref(), "B"), (objects.2.as_ref(), "C")];
    given.into_iter().filter_map(|(object, name)| Some(Operand::of(object?, name))).collect()
}

/// An operand with its elements: the caller's, or a copy.
struct Matrix<'a> {
    name: &'static str,
    rows: usize,
    cols: usize,
    elements: Elements<'a>,
}

enum Elements<'a> {
    F32(Cow<'a, [f32]>),
    F64(Cow<'a, [f64]>),
    I32(Cow<'a, [i32]>),
    I64(Cow<'a, [i64]>),
    U8(Cow<'a, [u8]>),
    Bool(Cow<'a, [u8]>),
}

impl<'a> Matrix<'a> {
    fn new(operand: &'a Operand) -> PyResult<Self> {
        let elements = match operand.kind {
            Kind::F32 => Elements::F32(operand.elements()?),
            Kind::F64 => Elements::F64(operand.elements()?),
            Kind::I32 => Elements::I32(operand.elements()?),
            Kind::I64 => Elements::I64(operand.elements()?),
            Kind::U8 => Elements::U8(operand.elements()?),
            Kind::Bool => Elements::Bool(operand.elements()?),
        };
        Ok(Self { name: operand.name(), rows: operand.rows, cols: operand.cols, elements })
    }

    /// The same factor with an inner dimension of 1 instead of 0, full of the semiring's zero.
    fn filled(self, zero: f64) -> Self {
        let (rows, cols) = if self.name == "A" { (self.rows, 1) } else { (1, self.cols) };
        let count = rows * cols;
        let elements = match self.elements {
            Elements::F32(_) => Elements::F32(vec![zero as f32; count].into()),
            Elements::F64(_) => Elements::F64(vec![zero; count].into()),
            Elements::I32(_) => Elements::I32(vec![zero as i32; count].into()),
            Elements::I64(_) => Elements::I64(vec![zero as i64; count].into()),
            Elements::U8(_) => Elements::U8(vec![0; count].into()),
            Elements::Bool(_) => Elements::Bool(vec![0; count].into()),
        };
        Self { rows, cols, elements, ..self }
    }

    fn view(&self) -> AnyView<'_> {
        let (rows, cols) = (self.rows, self.cols);
        match &self.elements {
            Elements::F32(x) => AnyView::new(rows, cols, x),
            Elements::F64(x) => AnyView::new(rows, cols, x),
            Elements::I32(x) => AnyView::new(rows, cols, x),
            Elements::I64(x) => AnyView::new(rows, cols, x),
            Elements::U8(x) => AnyView::new(rows, cols, x),
            Elements::Bool(x) => AnyView::new(rows, cols, x).as_bool(),
        }
    }

    fn operand(&self) -> MatrixOperand<'_> {
        MatrixOperand::Array { name: self.name, view: self.view() }
    }
}

/// The matrices of the operands of a product or, without B, a symmetric one. Where the inner dimension is 0, the
/// factors have a column and a row of the semiring's zero instead.
fn matrices<'a>(all: &'a [Operand], call: &Call) -> PyResult<Vec<Matrix<'a>>> {
    let semiring = call.semiring().map_err(exception)?;
    let right = all.iter().find(|operand| operand.name() == "B");
    let is_product = call.task.what == "syrk" || right.is_some_and(|b| b.rows == 0);
    let hollow = is_product && all[0].cols == 0;
    let matrices = all.iter().map(Matrix::new).collect::<PyResult<Vec<_>>>()?;
    if !hollow {
        return Ok(matrices);
    }
    let fill = |matrix: Matrix<'a>| if matrix.name == "C" { matrix } else { matrix.filled(semiring.zero()) };
    Ok(matrices.into_iter().map(fill).collect())
}

/// The result, the predecessors and the report; without elements nothing runs, and there is no report.
type Answer = (Array, Option<Array>, Option<Report>);

/// Computes a product, a power, a closure, or a closure with predecessors.
#[pyfunction]
pub fn product(
    py: Python<'_>,
    task: Task,
    a: Bound<'_, PyAny>,
    b: Option<Bound<'_, PyAny>>,
    c: Option<Bound<'_, PyAny>>,
    sources: Sources,
    order: Order,
    layout: Option<PyRef<'_, Layout>>,
) -> PyResult<Answer> {
    let all = operands(&(a, b, c))?;
    let call = Call::new(task, sources, order, layout);
    let matrices = matrices(&all, &call)?;
    let task = call.prepare(matrices.iter().map(Matrix::operand).collect()).map_err(exception)?;
    let [rows, cols] = result_sizes(&task).map_err(exception)?;
    let truth = all.iter().all(|operand| operand.kind == Kind::Bool);
    if rows == 0 || cols == 0 {
        let kind = match all[0].kind {
            Kind::Bool | Kind::U8 => Kind::of_truth(truth),
            kind => kind,
        };
        let paths = call.task.what == "paths";
        let predecessors = paths.then(|| Array::empty(Kind::I32, (rows, cols)));
        return Ok((Array::empty(kind, (rows, cols)), predecessors, None));
    }
    let outcome = long_watched(py, &Monitor::new(), |monitor| {
        let world = World::solo(monitor);
        MatrixJob::open(&task, Context::silent(&world, monitor))?.run()
    })?;
    let Outcome { result, predecessors, report, .. } = outcome;
    let c = only(Array::lend_all(result.expect("no file takes it"), truth));
    let predecessors = predecessors.map(|blocks| only(Array::lend_all(AnyBlocks::I32(blocks), truth)));
    Ok((c, predecessors, Some(Report::new(report))))
}

/// The array of the only block: a process alone has the whole matrix.
fn only(blocks: Vec<Block>) -> Array {
    blocks.into_iter().next().map(|(_, _, array)| array).expect("a process alone has the whole matrix")
}

/// Rows, columns and elements of a block of C: the first and the end of each side.
pub type Block = ((u64, u64), (u64, u64), Array);

/// Multiplies on a communicator, given by its C handle. Every process calls it with the same arguments.
/// Returns the blocks of C that this process computed, or all of C as one block.
#[pyfunction]
pub fn product_on(
    py: Python<'_>,
    task: Task,
    objects: Objects<'_>,
    sources: Sources,
    order: Order,
    layout: Option<PyRef<'_, Layout>>,
    comm: usize,
    gather: bool,
) -> PyResult<(Vec<Block>, Report)> {
    let monitor = Monitor::new();
    // On this thread, which MPI knows; all else runs on another one.
    let world = short(py, || World::adopt(comm, &monitor))?;
    if !world.is_for_any_thread() {
        leave(py, world)?;
        let what = "belongs to an MPI that was initialised for one thread";
        return Err(exception(refuse("comm", what, "initialise it with MPI_THREAD_SERIALIZED or higher")));
    }
    let call = Call::new(task, sources, order, layout);
    let all = operands(&objects);
    let prepared = all.as_ref().map_err(|error| error.clone_ref(py)).and_then(|all| {
        let matrices = matrices(all, &call)?;
        match all.iter().find(|operand| operand.rows == 0 || operand.cols == 0) {
            Some(empty) => Err(empty.misfit(": it has no elements to divide", "leave out comm")),
            None => Ok(matrices),
        }
    });
    let task = prepared.as_ref().map_err(|error| error.clone_ref(py)).and_then(|matrices| {
        let task = call.prepare(matrices.iter().map(Matrix::operand).collect()).map_err(exception)?;
        result_sizes(&task).map_err(exception)?;
        Ok(task)
    });
    // One process's wrong argument stops all, which would wait for it.
    let mine = task.as_ref().err().map(|error| error.value(py).to_string());
    let outcome = mine.clone().map_or(Ok(()), |text| Err(Error::Agreed { text, code: 2 }));
    if let Err(agreed) = long_watched(py, &monitor, |_| world.all_ok(outcome)) {
        leave(py, world)?;
        return Err(match task {
            Err(own) if Some(agreed.value(py).to_string()) == mine => own,
            _ => agreed,
        });
    }
    let (Ok(task), Ok(matrices), Ok(all)) = (task, &prepared, &all) else {
        unreachable!("an error of this process ended the call")
    };
    let truth = all.iter().all(|operand| operand.kind == Kind::Bool);
    let (result, report) = long_watched(py, &monitor, |monitor| {
        let context = Context::silent(&world, monitor);
        let outcome = call.compare(matrices, gather, context).and_then(|()| {
            let outcome = MatrixJob::open(&task, context)?.run()?;
            let c = outcome.result.expect("no file takes it");
            let shape = outcome.report.plan.layout()?.shape();
            Ok((if gather { gather_whole(c, shape, context.world)? } else { c }, outcome.report))
        });
        // After an error that not all ranks know, messages may still be on the way.
        if matches!(outcome, Ok(_) | Err(Error::Agreed { .. })) {
            world.finalize();
        }
        outcome
    })?;
    Ok((Array::lend_all(result, truth), Report::new(report)))
}

/// Leaves a world in which no message is on the way.
fn leave(py: Python<'_>, world: World) -> PyResult<()> {
    short(py, || {
        world.finalize();
        Ok(())
    })
}

impl Call {
    fn semiring(&self) -> Result<Semiring> {
        self.task.semiring.parse()
    }

    /// Compares the arguments of all processes, and every element of their arrays.
    fn compare(&self, matrices: &[Matrix<'_>], gather: bool, context: Context<'_>) -> Result<()> {
        let (sources, files) = self.sources.facts();
        let operand = |matrix: &Matrix<'_>| {
            let Matrix { name, rows, cols, .. } = matrix;
            format!("{name}: {} {rows} x {cols}", matrix.view().name())
        };
        let words = [
            self.task.words(),
            vec![format!("gather={gather}")],
            matrices.iter().map(operand).collect(),
            sources,
            self.order.words(),
        ];
        let data = |name: &str, bytes: &[u8]| Fact::Data { name: name.into(), hash: hash_elements(bytes) };
        let mut facts = Vec::new();
        if let Some(Given { plan, order }) = &self.layout {
            let order = order.as_ref().map(|order| format!("{order} {}", order.block));
            facts.push(data("layout", format!("{} {order:?}", plan.to_json()).as_bytes()));
        }
        facts.extend(matrices.iter().map(|matrix| data(matrix.name, matrix.view().bytes())));
        let files = files.iter().map(PathBuf::as_path).collect();
        compare_inputs(words.concat(), facts, &InputFiles { files, ..InputFiles::default() }, context)
    }
}
