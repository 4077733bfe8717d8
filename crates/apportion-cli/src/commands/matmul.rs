//! `apportion matmul`: the main job.

use super::product::{Running, Target, carry_out, not_numbers, read_over, semiring, truth};
use crate::console::{Console, monitor};
use apportion::kernels::{Real, Semiring, Tropical};
use apportion::{AnyMatrix, Element, Error, Kernel, Matrix, Result, Shape, multiply};
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: apportion matmul A.npy B.npy -o C.npy --platform platforms/two-unequal.toml --svg plan.svg"
)]
pub struct Arguments {
    /// Left factor, m x k (.npy f32 or f64, or .mtx; i32 or i64 for max-plus and min-plus; bool or u8 for or-and).
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
    let target = Target::open(args.output.as_ref(), &args.running)?;
    let begin = Instant::now();
    let (a, b) = (read_over(&args.a, args.semiring)?, read_over(&args.b, args.semiring)?);
    let target = Target { read_seconds: begin.elapsed().as_secs_f64(), ..target };
    if args.semiring == Semiring::OrAnd {
        let ((a, a_u8), (b, b_u8)) = (truth(a, &args.a)?, truth(b, &args.b)?);
        args.running.blas.unused(args.semiring)?;
        return job(Kernel::or_and(), &a, &b, args, Target { bool: !a_u8 && !b_u8, ..target }, console);
    }
    let whole = args.semiring != Semiring::PlusTimes;
    match (&a, &b) {
        (AnyMatrix::F32(a), AnyMatrix::F32(b)) => numbers(a, b, args, target, console),
        (AnyMatrix::F64(a), AnyMatrix::F64(b)) => numbers(a, b, args, target, console),
        (AnyMatrix::I32(a), AnyMatrix::I32(b)) if whole => whole_numbers(a, b, args, target, console),
        (AnyMatrix::I64(a), AnyMatrix::I64(b)) if whole => whole_numbers(a, b, args, target, console),
        (AnyMatrix::I32(_) | AnyMatrix::I64(_), _) if !whole => Err(not_numbers(&a, args.semiring, &args.a)),
        (_, AnyMatrix::I32(_) | AnyMatrix::I64(_)) if !whole => Err(not_numbers(&b, args.semiring, &args.b)),
        (AnyMatrix::Bool(_) | AnyMatrix::U8(_), _) => Err(not_numbers(&a, args.semiring, &args.a)),
        (_, AnyMatrix::Bool(_) | AnyMatrix::U8(_)) => Err(not_numbers(&b, args.semiring, &args.b)),
        _ => Err(Error::input(
            args.b.display().to_string(),
            format!("holds {}, but {} holds {}", b.name(), args.a.display(), a.name()),
            "convert one of them, so that both have the same element type",
        )),
    }
}

fn numbers<T: Real>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    job(args.running.blas.kernel(args.semiring)?, a, b, args, target, console)
}

fn whole_numbers<T: Element + Tropical>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    args.running.blas.unused(args.semiring)?;
    job(Kernel::tropical(args.semiring)?, a, b, args, target, console)
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
