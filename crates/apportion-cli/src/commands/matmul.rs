//! `apportion matmul`: the main job.

use super::distributed::{self, Job, Task};
use super::panelled::{self, Panelled};
use crate::console::{Console, monitor};
use crate::output::results::Target;
use crate::prepare::product::{EngineName, Running, carry_out, not_numbers, read_over, semiring, truth};
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::kernels::{Real, Semiring, Tropical};
use apportion::matrix::{AnyMatrix, Element, Matrix, Scaling, read_matrix_transposed};
use apportion::plan::Shape;
use apportion::product::{Adaptive, MatmulJob, multiply};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion matmul A.npy B.npy -o C.npy --platform platforms/two-unequal.toml --svg plan.svg\n  \
    apportion matmul A.npy B.npy -o C.npy --transpose-a --alpha 0.5 --beta 2 --c-in C0.npy    # C = 0.5 A^T B + 2 C0")]
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
    pub scaled: Scaled,
    /// Divide anew in mid-run, between pivot blocks, when a processor turns slower or faster and moving pays.
    #[arg(long)]
    pub adaptive: bool,
    /// Segments of the inner dimension after which --adaptive looks at the speeds; at most one per pivot block.
    #[arg(long, value_name = "N", default_value_t = 64, requires = "adaptive", value_parser = clap::value_parser!(u64).range(1..))]
    pub segments: u64,
    #[command(flatten)]
    pub panels: Panelled,
    #[command(flatten)]
    pub running: Running,
}

/// C = alpha op(A) op(B) + beta C0, as in BLAS.
#[derive(Debug, Args)]
pub struct Scaled {
    /// Multiply by the transpose of A's file.
    #[arg(long)]
    pub transpose_a: bool,
    /// Multiply by the transpose of B's file.
    #[arg(long)]
    pub transpose_b: bool,
    /// Factor of the product; over max-plus and min-plus it is added to it, over or-and it is 0 or 1 [default: none].
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = scalar)]
    pub alpha: Option<f64>,
    /// Factor of the initial C, in the same sense [default: none].
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = scalar, requires = "c_in")]
    pub beta: Option<f64>,
    /// Initial C, m x n, that the product is added to: over max-plus the larger, over min-plus the smaller of both stays.
    #[arg(long, value_name = "FILE")]
    pub c_in: Option<PathBuf>,
}

impl Scaled {
    /// The scalars for a kernel; what was not given changes nothing.
    pub fn scaling<'a, T: Element>(
        &self,
        kernel: Kernel<T>,
        initial: Option<&'a Matrix<T>>,
    ) -> Result<Scaling<'a, T>> {
        let scalar = |flag: &str, given: Option<f64>| {
            let Some(given) = given else { return Ok(kernel.one()) };
            let scalar = T::from_f64(given);
            let refuse = |what: String, remedy: &str| Err(Error::input(flag, what, remedy));
            if kernel.semiring() == Semiring::OrAnd && given != 0.0 && given != 1.0 {
                return refuse(format!("{given} is no truth value"), "give 0 or 1 with or-and");
            }
            if scalar.to_f64().is_infinite() && given.is_finite() {
                return refuse(
                    format!("{given} is beyond the range of {}", T::NAME),
                    "give a smaller number",
                );
            }
            Ok(scalar)
        };
        let scaling =
            Scaling { alpha: scalar("--alpha", self.alpha)?, beta: scalar("--beta", self.beta)?, initial };
        let place = self.c_in.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        kernel.check_scaling(&scaling, &place)?;
        Ok(scaling)
    }
}

/// A number; infinities are for those semirings whose zero they are.
fn scalar(text: &str) -> std::result::Result<f64, String> {
    text.parse()
        .ok()
        .filter(|x: &f64| !x.is_nan())
        .ok_or_else(|| "give a number such as 2, -0.5 or 1e3".into())
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    if args.running.engine == EngineName::Mpi {
        only_plain(args)?;
        let factors = (&*args.a, &*args.b);
        let job = Job::Product(&args.scaled);
        let task = Task { job, factors, semiring: args.semiring, output: args.output.as_ref() };
        return distributed::run(&task, &args.running, console);
    }
    if args.panels.asked() {
        return panelled::run(args, console);
    }
    match whole(args, console) {
        // Panels of C ask less of each processor.
        Err(error @ Error::TooLittleMemory { .. }) if can_be_cut(args) => {
            console.detail(format!("{}: cutting C into panels", crate::flags::told(&error)));
            panelled::run(args, console)
        }
        outcome => outcome,
    }
}

/// True if panels could be made of the files.
fn can_be_cut(args: &Arguments) -> bool {
    let npy = |path: &PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
    let files = [&args.a, &args.b].into_iter().chain(&args.scaled.c_in).all(npy);
    files && args.running.plan.is_none() && !args.adaptive
}

/// The product of matrices in memory.
fn whole(args: &Arguments, console: &Console) -> Result<()> {
    let target = Target::open(args.output.as_ref(), &args.running)?;
    let begin = Instant::now();
    let a = factor(&args.a, args.scaled.transpose_a, args.semiring)?;
    let b = factor(&args.b, args.scaled.transpose_b, args.semiring)?;
    let initial = args.scaled.c_in.as_deref().map(|path| read_over(path, args.semiring)).transpose()?;
    let target = Target { read_seconds: begin.elapsed().as_secs_f64(), ..target };
    if args.semiring == Semiring::OrAnd {
        args.running.blas.unused(args.semiring)?;
        let ((a, a_u8), (b, b_u8)) = (truth(a, &args.a)?, truth(b, &args.b)?);
        let initial =
            initial.map(|m| truth(m, args.scaled.c_in.as_deref().unwrap_or(&args.a))).transpose()?;
        let target =
            Target { bool: !a_u8 && !b_u8 && !initial.as_ref().is_some_and(|(_, u8)| *u8), ..target };
        let initial = initial.as_ref().map(|(m, _)| m);
        return job(Kernel::or_and(), (&a, &b, initial), args, target, console);
    }
    let other = |path: &Path, m: &AnyMatrix| {
        Err(Error::input(
            path.display().to_string(),
            format!("holds {}, but {} holds {}", m.name(), args.a.display(), a.name()),
            "convert one of them, so that all have the same element type",
        ))
    };
    let whole = |m: &AnyMatrix| matches!(m, AnyMatrix::I32(_) | AnyMatrix::I64(_));
    let pairs = [(&a, &args.a), (&b, &args.b)];
    if args.semiring == Semiring::PlusTimes
        && let Some((m, path)) = pairs.into_iter().find(|(m, _)| whole(m))
    {
        return Err(not_numbers(m, args.semiring, path));
    }
    match (&a, &b, &initial) {
        (AnyMatrix::I32(a), AnyMatrix::I32(b), None) => whole_numbers((a, b, None), args, target, console),
        (AnyMatrix::I64(a), AnyMatrix::I64(b), None) => whole_numbers((a, b, None), args, target, console),
        (AnyMatrix::I32(a), AnyMatrix::I32(b), Some(AnyMatrix::I32(c))) => {
            whole_numbers((a, b, Some(c)), args, target, console)
        }
        (AnyMatrix::I64(a), AnyMatrix::I64(b), Some(AnyMatrix::I64(c))) => {
            whole_numbers((a, b, Some(c)), args, target, console)
        }
        (AnyMatrix::F32(a), AnyMatrix::F32(b), None) => numbers((a, b, None), args, target, console),
        (AnyMatrix::F64(a), AnyMatrix::F64(b), None) => numbers((a, b, None), args, target, console),
        (AnyMatrix::F32(a), AnyMatrix::F32(b), Some(AnyMatrix::F32(c))) => {
            numbers((a, b, Some(c)), args, target, console)
        }
        (AnyMatrix::F64(a), AnyMatrix::F64(b), Some(AnyMatrix::F64(c))) => {
            numbers((a, b, Some(c)), args, target, console)
        }
        (AnyMatrix::Bool(_) | AnyMatrix::U8(_), ..) => Err(not_numbers(&a, args.semiring, &args.a)),
        (_, AnyMatrix::Bool(_) | AnyMatrix::U8(_), _) => Err(not_numbers(&b, args.semiring, &args.b)),
        (AnyMatrix::F32(_), AnyMatrix::F32(_), Some(c))
        | (AnyMatrix::F64(_), AnyMatrix::F64(_), Some(c))
        | (AnyMatrix::I32(_), AnyMatrix::I32(_), Some(c))
        | (AnyMatrix::I64(_), AnyMatrix::I64(_), Some(c)) => {
            other(args.scaled.c_in.as_deref().unwrap_or(&args.a), c)
        }
        _ => other(&args.b, &b),
    }
}

/// Refuses what the MPI engine does not do yet.
fn only_plain(args: &Arguments) -> Result<()> {
    if args.adaptive || args.panels.asked() {
        return Err(Error::input(
            "--engine mpi",
            "--adaptive, --panels, --memory, --checkpoint and --resume are for threads only",
            "leave them out, or use --engine threads",
        ));
    }
    Ok(())
}

/// A factor from its file, or its transpose.
fn factor(path: &Path, transpose: bool, semiring: Semiring) -> Result<AnyMatrix> {
    if transpose { read_matrix_transposed(path, semiring.zero()) } else { read_over(path, semiring) }
}

/// Two factors, and the initial C if there is one.
type Operands<'a, T> = (&'a Matrix<T>, &'a Matrix<T>, Option<&'a Matrix<T>>);

fn numbers<T: Real>(
    operands: Operands<'_, T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    job(args.running.blas.kernel(args.semiring)?, operands, args, target, console)
}

fn whole_numbers<T: Element + Tropical>(
    operands: Operands<'_, T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    args.running.blas.unused(args.semiring)?;
    job(Kernel::tropical(args.semiring)?, operands, args, target, console)
}

fn job<T: Element>(
    kernel: Kernel<T>,
    (a, b, initial): Operands<'_, T>,
    args: &Arguments,
    target: Target,
    console: &Console,
) -> Result<()> {
    let shape = shape_of((a, b, initial), args)?;
    kernel.check(a, &args.a.display().to_string())?;
    kernel.check(b, &args.b.display().to_string())?;
    let scaling = args.scaled.scaling(kernel, initial)?;
    let adaptive = args.adaptive.then_some(Adaptive { segments: args.segments });
    if args.adaptive && shape.k <= args.running.flow.block() {
        console.note("--adaptive: there is one pivot block only, so nothing can be divided anew; use a smaller --block");
    }
    let product =
        |what: &MatmulJob<'_, T>| multiply(a, b, &MatmulJob { scaling, adaptive, ..*what }, monitor());
    carry_out(kernel, shape, &args.running, target, &product, console)
}

fn shape_of<T: Element>((a, b, initial): Operands<'_, T>, args: &Arguments) -> Result<Shape> {
    let turned = |turned: bool| if turned { "transposed, " } else { "" };
    if a.cols() != b.rows() {
        return Err(Error::input(
            args.b.display().to_string(),
            format!(
                "{}is {} x {}, but {} {}is {} x {}",
                turned(args.scaled.transpose_b),
                b.rows(),
                b.cols(),
                args.a.display(),
                turned(args.scaled.transpose_a),
                a.rows(),
                a.cols()
            ),
            format!("the right factor needs {} rows", a.cols()),
        ));
    }
    if let (Some(c), Some(path)) = (initial, &args.scaled.c_in)
        && (c.rows(), c.cols()) != (a.rows(), b.cols())
    {
        return Err(Error::input(
            path.display().to_string(),
            format!("is {} x {}, but the product is {} x {}", c.rows(), c.cols(), a.rows(), b.cols()),
            "give an initial C of the product's size",
        ));
    }
    Shape::new(a.rows() as u64, a.cols() as u64, b.cols() as u64, "matrices")
}
