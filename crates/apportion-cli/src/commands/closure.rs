//! `apportion closure`: all paths of any length.

use super::distributed::{self, Job, Task};
use super::power::square;
use super::product::{EngineName, Running, Target, carry_out, not_numbers, semiring, truth};
use crate::console::{Console, monitor};
use apportion::kernels::{Semiring, Tropical};
use apportion::{AnyMatrix, Element, Kernel, Matrix, Result, matrix_closure, read_matrix};
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Debug, Args)]
#[command(
    after_help = "I + A is squared until nothing changes: at most ceil(log2 n) products, run by one plan.\n\
    Example: apportion closure distances.npy -o shortest.npy --semiring min-plus"
)]
pub struct Arguments {
    /// The square matrix (.npy f32 or f64, bool or u8 for or-and, or .mtx); absent edges are inf over min-plus, -inf
    /// over max-plus.
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Where the closure goes (.npy); without it the closure is verified and dropped.
    #[arg(long, short, value_name = "C")]
    pub output: Option<PathBuf>,
    /// The algebra: min-plus (shortest paths), max-plus (longest) or or-and (reachability).
    #[arg(long, value_name = "SEMIRING", default_value = "min-plus", value_parser = semiring)]
    pub semiring: Semiring,
    #[command(flatten)]
    pub running: Running,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    if args.semiring == Semiring::PlusTimes {
        return Err(apportion::Error::input(
            "--semiring",
            "plus-times has no closure by paths",
            "choose max-plus, min-plus or or-and",
        ));
    }
    if args.running.engine == EngineName::Mpi {
        let (job, factors) = (Job::Closure, (&*args.a, &*args.a));
        let task = Task { job, factors, semiring: args.semiring, output: args.output.as_ref() };
        return distributed::run(&task, &args.running, console);
    }
    let target = Target::open(args.output.as_ref(), &args.running)?;
    let begin = Instant::now();
    let a = read_matrix(&args.a)?;
    let target = Target { read_seconds: begin.elapsed().as_secs_f64(), ..target };
    match a {
        a if args.semiring == Semiring::OrAnd => {
            let (a, as_u8) = truth(a, &args.a)?;
            job(Kernel::or_and(), &a, args, Target { bool: !as_u8, ..target }, console)
        }
        AnyMatrix::F32(a) => numbers(&a, args, target, console),
        AnyMatrix::F64(a) => numbers(&a, args, target, console),
        a => Err(not_numbers(&a, args.semiring, &args.a)),
    }
}

fn numbers<T: Element + Tropical>(
    a: &Matrix<T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    job(Kernel::over(args.semiring)?, a, args, target, console)
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
