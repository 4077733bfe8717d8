//! `apportion factor`.

use super::elimination::{EliminationArgs, FactorKind};
use super::matrices::matrix;
use super::numbers::memory;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Cholesky, A = L L^T, reads the lower triangle of a symmetric positive definite matrix and writes L with \
    zeros above its diagonal. LU with partial pivoting, P A = L U, writes L without its diagonal of ones and U in one \
    matrix, as LAPACK's getrf; row i was exchanged with row pivots[i], one after the other, counted from 0. L D L^T, \
    P A P^T = L D L^T, reads the lower triangle of a symmetric matrix and writes L without its diagonal of ones and D, \
    which has blocks of one and two rows, as LAPACK's sytrf with uplo = 'L', and zeros above. Row and column k were \
    exchanged with pivots[k], counted from 0, or, of a block of two, k + 1 with -pivots[k] - 1. Pivots are sought in \
    diagonal blocks of --block rows: where they are too small, lu or a larger block is needed.\n\
    The residual is that of LAPACK's tests, ||A - L L^T||, ||P A - L U|| or ||P A P^T - L D L^T|| over n ||A|| eps in the \
    Frobenius norm. Above 30 nothing is written.\n\
    Examples:\n  \
    apportion factor A.npy --kind cholesky -o L.npy\n  \
    apportion factor A.npy --kind lu -o LU.npy --pivots p.npy --speeds 9,1\n  \
    apportion factor A.npy --kind ldlt -o LD.npy --pivots p.npy\n  \
    apportion factor A.npy --kind cholesky -o L.npy --memory 2GiB --checkpoint kept\n  \
    mpirun -n 4 apportion factor A.npy --kind lu -o LU.npy --engine mpi"
)]
pub struct FactorArgs {
    /// The square matrix (.npy f32 or f64, or .mtx).
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Factors: cholesky, lu with partial pivoting, or ldlt of a symmetric matrix that need not be positive definite.
    #[arg(long, value_enum, help_heading = "Factors")]
    pub kind: FactorKind,
    /// Output file for the factors (.npy); without it they are verified and dropped.
    #[arg(long, short, value_name = "FILE", value_parser = matrix, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Output file for the pivots of lu or ldlt (.npy of i64).
    #[arg(long, value_name = "FILE", value_parser = matrix, help_heading = "Output")]
    pub pivots: Option<PathBuf>,
    /// Memory limit of the process, such as 2GiB: slabs of block columns are streamed from and to disk, by a temporary
    /// file beside the output or the checkpoint (.npy files only).
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = "Memory and checkpoints")]
    pub memory: Option<u64>,
    /// Keep finished block columns in this directory, after each of 16 slabs or those of --memory, so that --resume can
    /// continue after any end.
    #[arg(long, value_name = "DIR", help_heading = "Memory and checkpoints")]
    pub checkpoint: Option<PathBuf>,
    /// Continue from the block columns in this directory, to the same bytes. Without any, begin.
    #[arg(long, value_name = "DIR", conflicts_with = "checkpoint", help_heading = "Memory and checkpoints")]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub elimination: EliminationArgs,
}
