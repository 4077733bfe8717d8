//! `apportion closure`: all paths of any length.

use super::distributed::{self, Job, Task};
use super::power::square;
use crate::console::{Console, monitor};
use crate::output::open;
use crate::output::results::Target;
use crate::prepare::product::{EngineName, Running, carry_out, not_numbers, read_over, semiring, truth};
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::kernels::{PathElement, Semiring, Tropical};
use apportion::matrix::{AnyMatrix, Element, Matrix, write_npy};
use apportion::output::OutputFile;
use apportion::product::{MatmulJob, matrix_closure, matrix_paths};
use clap::Args;
use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Debug, Args)]
#[command(
    after_help = "I + A is squared until nothing changes: at most ceil(log2 n) products, run by one plan.\n\
    Predecessors: element (i, j), an i32, is the vertex before j on the best path from i to j, counted from 0; -1 where \
    there is no path or i = j. Walk back from j until i comes. Among equally good paths the one of fewest edges is taken, \
    then the lesser vertex. They cost about ten times a plain closure.\n\
    Example: apportion closure distances.npy -o shortest.npy --semiring min-plus --predecessors before.npy"
)]
pub struct Arguments {
    /// The square matrix (.npy f32, f64, i32 or i64, bool or u8 for or-and, or .mtx); absent edges are inf over min-plus,
    /// -inf over max-plus, the largest and the smallest number of integers, and what a sparse .mtx does not list.
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Where the closure goes (.npy); without it the closure is verified and dropped.
    #[arg(long, short, value_name = "C")]
    pub output: Option<PathBuf>,
    /// The algebra: min-plus (shortest paths), max-plus (longest) or or-and (reachability).
    #[arg(long, value_name = "SEMIRING", default_value = "min-plus", value_parser = semiring)]
    pub semiring: Semiring,
    /// Write the vertex before the last on each best path (.npy of i32); min-plus and max-plus only.
    #[arg(long, value_name = "FILE")]
    pub predecessors: Option<PathBuf>,
    #[command(flatten)]
    pub running: Running,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let refused = |place: &str, what, remedy| Err(Error::input(place, what, remedy));
    match args.semiring {
        Semiring::PlusTimes => {
            let remedy = "choose max-plus, min-plus or or-and";
            return refused("--semiring", "plus-times has no closure by paths", remedy);
        }
        Semiring::OrAnd if args.predecessors.is_some() => {
            let remedy = "choose --semiring min-plus or max-plus";
            return refused("--predecessors", "or-and has no best paths", remedy);
        }
        _ => args.running.blas.unused(args.semiring)?,
    }
    if args.running.engine == EngineName::Mpi {
        let (job, factors) = (Job::Closure(args.predecessors.as_ref()), (&*args.a, &*args.a));
        let task = Task { job, factors, semiring: args.semiring, output: args.output.as_ref() };
        return distributed::run(&task, &args.running, console);
    }
    let target = Target::open(args.output.as_ref(), &args.running)?;
    let begin = Instant::now();
    let a = read_over(&args.a, args.semiring)?;
    let target = Target { read_seconds: begin.elapsed().as_secs_f64(), ..target };
    match a {
        a if args.semiring == Semiring::OrAnd => {
            let (a, as_u8) = truth(a, &args.a)?;
            job(Kernel::or_and(), &a, args, Target { bool: !as_u8, ..target }, console)
        }
        AnyMatrix::F32(a) => numbers(&a, args, target, console),
        AnyMatrix::F64(a) => numbers(&a, args, target, console),
        AnyMatrix::I32(a) => numbers(&a, args, target, console),
        AnyMatrix::I64(a) => numbers(&a, args, target, console),
        a => Err(not_numbers(&a, args.semiring, &args.a)),
    }
}

fn numbers<T: Element + Tropical>(
    a: &Matrix<T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()>
where
    PathElement<T>: Element,
{
    match open(args.predecessors.as_ref())? {
        Some(file) => paths(a, args, (target, file), console),
        None => job(Kernel::tropical(args.semiring)?, a, args, target, console),
    }
}

fn job<T: Element>(
    kernel: Kernel<T>,
    a: &Matrix<T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    let shape = square(a, &args.a)?;
    kernel.check(a, &args.a.display().to_string())?;
    carry_out(kernel, shape, &args.running, target, &|what| matrix_closure(a, what, monitor()), console)
}

/// The closure with the predecessors, which appear once the closure has.
fn paths<T: Element + Tropical>(
    a: &Matrix<T>,
    args: &Arguments,
    (target, file): (Target, OutputFile),
    console: &Console,
) -> Result<()>
where
    PathElement<T>: Element,
{
    let shape = square(a, &args.a)?;
    Kernel::<T>::tropical(args.semiring)?.check(a, &args.a.display().to_string())?;
    let file = RefCell::new(file);
    let job = |what: &MatmulJob<'_, PathElement<T>>| {
        let (lengths, predecessors, report) = matrix_paths(a, what, monitor())?;
        write_npy(&mut file.borrow_mut(), &predecessors)?;
        Ok((lengths, report))
    };
    carry_out(Kernel::<PathElement<T>>::legs(args.semiring)?, shape, &args.running, target, &job, console)?;
    file.into_inner().commit()
}
