//! `apportion power`: A multiplied by itself.

use super::distributed::{self, Job, Task};
use crate::console::{Console, monitor};
use crate::output::results::Target;
use crate::prepare::product::{EngineName, Running, carry_out, not_numbers, read_over, semiring, truth};
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::kernels::{Real, Semiring, Tropical};
use apportion::matrix::{AnyMatrix, Element, Matrix};
use apportion::plan::Shape;
use apportion::product::matrix_power;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, Args)]
#[command(after_help = "Example: apportion power A.npy -k 10 -o C.npy --semiring max-plus")]
pub struct Arguments {
    /// The square matrix (.npy f32 or f64, or .mtx; i32 or i64 for max-plus and min-plus; bool or u8 for or-and).
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// How often it is taken; 0 gives the identity of the semiring.
    #[arg(long, short = 'k', value_name = "K")]
    pub exponent: u64,
    /// Where the power goes (.npy); without it the power is verified and dropped.
    #[arg(long, short, value_name = "C")]
    pub output: Option<PathBuf>,
    /// The algebra: plus-times, max-plus, min-plus or or-and.
    #[arg(long, value_name = "SEMIRING", default_value = "plus-times", value_parser = semiring)]
    pub semiring: Semiring,
    #[command(flatten)]
    pub running: Running,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    if args.running.engine == EngineName::Mpi {
        let (job, factors) = (Job::Power(args.exponent), (&*args.a, &*args.a));
        let task = Task { job, factors, semiring: args.semiring, output: args.output.as_ref() };
        return distributed::run(&task, &args.running, console);
    }
    let target = Target::open(args.output.as_ref(), &args.running)?;
    let begin = Instant::now();
    let a = read_over(&args.a, args.semiring)?;
    let target = Target { read_seconds: begin.elapsed().as_secs_f64(), ..target };
    let whole = args.semiring != Semiring::PlusTimes;
    match a {
        a if args.semiring == Semiring::OrAnd => {
            args.running.blas.unused(args.semiring)?;
            let (a, as_u8) = truth(a, &args.a)?;
            job(Kernel::or_and(), &a, args, Target { bool: !as_u8, ..target }, console)
        }
        AnyMatrix::F32(a) => numbers(&a, args, target, console),
        AnyMatrix::F64(a) => numbers(&a, args, target, console),
        AnyMatrix::I32(a) if whole => whole_numbers(&a, args, target, console),
        AnyMatrix::I64(a) if whole => whole_numbers(&a, args, target, console),
        a => Err(not_numbers(&a, args.semiring, &args.a)),
    }
}

fn numbers<T: Real>(a: &Matrix<T>, args: &Arguments, target: Target, console: &Console) -> Result<()> {
    job(args.running.blas.kernel(args.semiring)?, a, args, target, console)
}

fn whole_numbers<T: Element + Tropical>(
    a: &Matrix<T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    args.running.blas.unused(args.semiring)?;
    job(Kernel::tropical(args.semiring)?, a, args, target, console)
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
    let k = args.exponent;
    carry_out(kernel, shape, &args.running, target, &|what| matrix_power(a, k, what, monitor()), console)
}

/// The shape of the product of a square matrix by itself.
pub fn square<T: Element>(a: &Matrix<T>, path: &Path) -> Result<Shape> {
    if a.rows() != a.cols() {
        return Err(Error::input(
            path.display().to_string(),
            format!("is {} x {}, not square", a.rows(), a.cols()),
            "give a square matrix",
        ));
    }
    let n = a.rows() as u64;
    Shape::new(n, n, n, "matrix")
}
