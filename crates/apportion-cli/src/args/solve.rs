//! `apportion solve`.

use super::elimination::{EliminationArgs, FactorKind};
use super::matrices::matrix;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "A is factored as by `apportion factor`, B substituted, and X refined by a step whose residual is computed \
    in double precision. The residual is ||A x - b|| over n ||A|| ||x|| eps, the largest of all \
    right-hand sides; above 30 nothing is written. The condition number is estimated from below in the norm of column \
    sums: a solution may be off by that times eps, relative to its size.\n\
    Examples:\n  \
    apportion solve A.npy b.npy -o x.npy\n  \
    apportion solve A.npy B.npy -o X.npy --kind cholesky --speeds 9,1\n  \
    apportion solve A.npy b.npy -o x.npy --mixed\n  \
    mpirun -n 4 apportion solve A.npy B.npy -o X.npy --engine mpi"
)]
pub struct SolveArgs {
    /// The square matrix (.npy f32 or f64, or .mtx).
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Right-hand sides, n x r or n numbers, of the same type.
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Factors: cholesky, lu with partial pivoting, or ldlt of a symmetric matrix that need not be positive definite.
    #[arg(long, value_enum, default_value = "lu", help_heading = "Factors")]
    pub kind: FactorKind,
    /// Factor in f32 and refine to f64, faster for large, well-conditioned matrices; where that fails, go on in f64.
    #[arg(long, help_heading = "Factors")]
    pub mixed: bool,
    /// Output file for the solution (.npy), of the shape of B; without it the solution is verified and dropped.
    #[arg(long, short, value_name = "X", value_parser = matrix, help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub elimination: EliminationArgs,
}
