//! The product on the processes of mpi4py's communicators: rank r computes the part of processor r.

use crate::arrays::{Array, Kind, Lent, Operand};
use crate::errors::{exception, refuse};
use crate::layouts::{Layout, Order};
use crate::machine::Sources;
use crate::product::{Job, Task, read, scaling, sizes, whole};
use crate::report::Report;
use crate::settle::settle;
use crate::wait::{long_watched, short};
use apportion::kernels::{Instructions, Kernel, Semiring, Tropical};
use apportion::matrix::{BlockViews, LocalBlocks};
use apportion::product::{MatmulJob, Operands, OwnRects, RunReport, multiply};
use apportion::run::{Fact, Monitor, Session, World, hash_elements, redistribute};
use apportion::schedule::MatmulSchedule;
use apportion::{Error, Rect, Result};
use pyo3::prelude::*;

/// Rows, columns and elements of a block of C: the first and the end of each side.
type Block = ((u64, u64), (u64, u64), Array);

/// Multiplies on a communicator, given by its C handle. Every process calls it with the same arguments.
/// Returns the blocks of C that this process computed, or all of C as one block.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn product_on(
    py: Python<'_>,
    task: Task,
    operands: (Bound<'_, PyAny>, Bound<'_, PyAny>, Option<Bound<'_, PyAny>>),
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
    let given = (&operands.0, Some(&operands.1), operands.2.as_ref());
    let read = read(task, given, sources, order, layout).and_then(|read| {
        if read.1.task.adaptive {
            let what = "is for threads of one process";
            return Err(exception(refuse("adaptive", what, "leave out comm or adaptive")));
        }
        match read.0.iter().find(|operand| operand.rows == 0 || operand.cols == 0) {
            Some(empty) => Err(empty.misfit(": it has no elements to divide", "leave out comm")),
            None => Ok(read),
        }
    });
    // One process's wrong argument stops all, which would wait for it.
    let mine = read.as_ref().err().map(|error| error.value(py).to_string());
    let outcome = mine.clone().map_or(Ok(()), |text| Err(Error::Agreed { text, code: 2 }));
    if let Err(agreed) = long_watched(py, &monitor, |_| world.all_ok(outcome)) {
        leave(py, world)?;
        return Err(match read {
            Err(own) if Some(agreed.value(py).to_string()) == mine => own,
            _ => agreed,
        });
    }
    let (all, job, truth) = read?;
    let (all, semiring) = (&all[..], job.semiring);
    let to = Destination { world, monitor, gather };
    match (all[0].kind, semiring) {
        (Kind::F64, Semiring::PlusTimes) => compute(py, Kernel::<f64>::plus_times(), all, &job, to, truth),
        (Kind::F32, Semiring::PlusTimes) => compute(py, Kernel::<f32>::plus_times(), all, &job, to, truth),
        (Kind::F64, _) => tropical::<f64>(py, all, &job, to),
        (Kind::F32, _) => tropical::<f32>(py, all, &job, to),
        (Kind::I64, _) => tropical::<i64>(py, all, &job, to),
        (Kind::I32, _) => tropical::<i32>(py, all, &job, to),
        (Kind::Bool | Kind::U8, _) => compute(py, Kernel::or_and(), all, &job, to, truth),
    }
}

/// The processes that compute, and whether all of them get all of C.
struct Destination {
    world: World,
    monitor: Monitor,
    gather: bool,
}

/// Leaves a world in which no message is on the way.
fn leave(py: Python<'_>, world: World) -> PyResult<()> {
    short(py, || {
        world.finalize();
        Ok(())
    })
}

fn tropical<T: Lent + Tropical>(
    py: Python<'_>,
    all: &[Operand],
    job: &Job,
    to: Destination,
) -> PyResult<(Vec<Block>, Report)> {
    compute(py, Kernel::<T>::tropical(job.semiring).map_err(exception)?, all, job, to, Kind::U8)
}

fn compute<T: Lent>(
    py: Python<'_>,
    kernel: Kernel<T>,
    all: &[Operand],
    job: &Job,
    Destination { world, monitor, gather }: Destination,
    truth: Kind,
) -> PyResult<(Vec<Block>, Report)> {
    let elements: Vec<_> = all.iter().map(Operand::elements::<T>).collect::<PyResult<_>>()?;
    let whole_sizes: Vec<_> = all.iter().map(|operand| (operand.rows, operand.cols)).collect();
    let views: Vec<BlockViews<'_, T>> =
        elements.iter().zip(whole_sizes).map(|(elements, sizes)| whole(&elements[..], sizes)).collect();
    let operand = |operand: &Operand| {
        format!("{}: {} {} x {}", operand.name(), operand.kind.name(), operand.rows, operand.cols)
    };
    let operands: Vec<String> = all.iter().map(operand).collect();
    let (blocks, report, ratios) = long_watched(py, &monitor, |monitor| {
        let compared = compare(&operands, &views, job, gather, &world);
        let outcome = compared.and_then(|()| run(kernel, &views, job, &world, monitor, gather));
        // After an error that not all ranks know, messages may still be on the way.
        if matches!(outcome, Ok(_) | Err(Error::Agreed { .. })) {
            world.finalize();
        }
        outcome
    })?;
    let lend = |(rect, elements): (Rect, Vec<T>)| {
        let sizes = (rect.rows.len() as usize, rect.cols.len() as usize);
        ((rect.rows.start, rect.rows.end), (rect.cols.start, rect.cols.end), T::lend(elements, sizes, truth))
    };
    Ok((blocks.into_iter().map(lend).collect(), Report::new(report, ratios)))
}

/// Compares the arguments of all processes, and every element of their arrays.
fn compare<T: Lent>(
    operands: &[String],
    views: &[BlockViews<'_, T>],
    job: &Job,
    gather: bool,
    world: &World,
) -> Result<()> {
    let (sources, files) = job.sources.facts();
    let Order { method, flow, block, overlap, look_ahead } = &job.order;
    let named =
        |name: &Option<String>| name.as_ref().map_or_else(|| "None".into(), |name| format!("{name:?}"));
    let words = [
        job.task.words(),
        vec![format!("gather={gather}")],
        operands.to_vec(),
        sources,
        vec![format!("method={}", named(method)), format!("flow={}", named(flow)), format!("block={block}")],
        vec![format!("overlap={overlap}"), format!("look_ahead={look_ahead}")],
    ];
    let text = |name: &str, value: String| Fact::Text { name: name.into(), value };
    let data = |name: &str, bytes: &[u8]| Fact::Data { name: name.into(), hash: hash_elements(bytes) };
    let mut facts = vec![
        text("version", env!("CARGO_PKG_VERSION").into()),
        Fact::Words { name: "arguments".into(), words: words.concat() },
    ];
    let instructions = Instructions::VARIABLE;
    let widest = std::env::var_os(instructions).unwrap_or_default();
    facts.push(text(instructions, widest.to_string_lossy().into_owned()));
    if let Some((plan, order, _)) = &job.given {
        let order = order.as_ref().map(|order| format!("{order} {}", order.block));
        facts.push(data("layout", format!("{} {order:?}", plan.to_json()).as_bytes()));
    }
    facts.extend(files.into_iter().map(Fact::File));
    for (name, view) in ["A", "B", "C"].into_iter().zip(views) {
        facts.push(Fact::Data { name: name.into(), hash: hash_elements(view[0].1) });
    }
    world.compare(&facts).map(drop)
}

/// What every rank does; the blocks of C that it returns.
fn run<T: Lent>(
    kernel: Kernel<T>,
    views: &[BlockViews<'_, T>],
    job: &Job,
    world: &World,
    monitor: &Monitor,
    gather: bool,
) -> Result<(LocalBlocks<T>, RunReport, bool)> {
    let names = ["A", "B", "C"];
    let fine =
        views.iter().zip(names).try_for_each(|(view, name)| kernel.check_tile(view[0].0, view[0].1, name));
    world.all_ok(fine)?;
    let settled = settle::<T>(kernel, job, world, monitor);
    let settled = world.all_ok(settled)?;
    let platform = settled.machine.platform.clone();
    let schedule = MatmulSchedule::new(settled.plan.layout()?, settled.order);
    let own = OwnRects::of(&schedule, world);
    let parts = |view: &BlockViews<'_, T>, rects: &[Rect]| -> LocalBlocks<T> {
        rects.iter().map(|rect| (*rect, cut(view[0], *rect))).collect()
    };
    let (a, b) = (parts(&views[0], &own.a), parts(&views[1], &own.b));
    let initial = views.get(2).map(|c| parts(c, &own.c));
    let scaling = world.all_ok(scaling(kernel, &job.task))?;
    let matmul: MatmulJob<'_, T> = settled.job(kernel, job.task.seed).with_scaling(scaling);
    let session = Session::new(world, &platform, monitor, matmul.work());
    let (c, report) = multiply(Operands::new(&a, &b).with_initial(initial.as_ref()), &matmul, &session)?;
    let c = match gather {
        false => c,
        true => redistribute(world, &c, &[whole::<T>(&[], sizes(job.shape))[0].0])?,
    };
    Ok((c, report, settled.ratios))
}

/// A rectangle of a whole matrix.
fn cut<T: Copy>((of, elements): (Rect, &[T]), rect: Rect) -> Vec<T> {
    let width = of.cols.len() as usize;
    let row = |i: u64| {
        let begin = i as usize * width;
        &elements[begin + rect.cols.start as usize..begin + rect.cols.end as usize]
    };
    (rect.rows.start..rect.rows.end).flat_map(row).copied().collect()
}
