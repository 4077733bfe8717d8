//! `apportion matmul`: the main job.

use super::distributed::{self, Job, Task};
use super::product::{EngineName, Running, Target, carry_out, not_numbers, semiring, truth};
use crate::console::{Console, monitor};
use apportion::kernels::{Semiring, Tropical};
use apportion::{AnyMatrix, Element, Error, Kernel, Matrix, Result, Shape, multiply, read_matrix};
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: apportion matmul A.npy B.npy -o C.npy --platform platforms/two-unequal.toml --svg plan.svg"
)]
pub struct Arguments {
    /// Left factor, m x k (.npy f32 or f64, bool or u8 for or-and, or .mtx).
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Right factor, k x n.
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Where the product goes (.npy); without it the product is verified and dropped.
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
        let factors = (&*args.a, &*args.b);
        let task = Task { job: Job::Product, factors, semiring: args.semiring, output: args.output.as_ref() };
        return distributed::run(&task, &args.running, console);
    }
    let target = Target::open(args.output.as_ref(), &args.running)?;
    let begin = Instant::now();
    let (a, b) = (read_matrix(&args.a)?, read_matrix(&args.b)?);
    let target = Target { read_seconds: begin.elapsed().as_secs_f64(), ..target };
    if args.semiring == Semiring::OrAnd {
        let ((a, a_u8), (b, b_u8)) = (truth(a, &args.a)?, truth(b, &args.b)?);
        return job(Kernel::or_and(), &a, &b, args, Target { bool: !a_u8 && !b_u8, ..target }, console);
    }
    match (&a, &b) {
        (AnyMatrix::F32(a), AnyMatrix::F32(b)) => numbers(a, b, args, target, console),
        (AnyMatrix::F64(a), AnyMatrix::F64(b)) => numbers(a, b, args, target, console),
        (AnyMatrix::Bool(_) | AnyMatrix::U8(_), _) => Err(not_numbers(&a, args.semiring, &args.a)),
        (_, AnyMatrix::Bool(_) | AnyMatrix::U8(_)) => Err(not_numbers(&b, args.semiring, &args.b)),
        _ => Err(Error::input(
            args.b.display().to_string(),
            format!("holds {}, but {} holds {}", b.name(), args.a.display(), a.name()),
            "convert one of them, so that both have the same element type",
        )),
    }
}

fn numbers<T: Element + Tropical>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    job(Kernel::over(args.semiring)?, a, b, args, target, console)
}

fn job<T: Element>(
    kernel: Kernel<T>,
    a: &Matrix<T>,
    b: &Matrix<T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    let shape = shape_of(a, b, args)?;
    kernel.check(a, &args.a.display().to_string())?;
    kernel.check(b, &args.b.display().to_string())?;
    carry_out(kernel, shape, &args.running, target, &|what| multiply(a, b, what, monitor()), console)
}

fn shape_of<T: Element>(a: &Matrix<T>, b: &Matrix<T>, args: &Arguments) -> Result<Shape> {
    if a.cols() != b.rows() {
        return Err(Error::input(
            args.b.display().to_string(),
            format!(
                "is {} x {}, but {} is {} x {}",
                b.rows(),
                b.cols(),
                args.a.display(),
                a.rows(),
                a.cols()
            ),
            format!("the right factor needs {} rows", a.cols()),
        ));
    }
    Shape::new(a.rows() as u64, a.cols() as u64, b.cols() as u64, "matrices")
}
