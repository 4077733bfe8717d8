//! `apportion spmv`.

use super::matrices::matrix;
use super::numbers::{number, within};
use super::{EngineArgs, Sources};
use apportion_graph::SpmvMethod;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What is done with the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpmvMethodName {
    /// x := A x in each step.
    Product,
    /// A x = b by Jacobi's method.
    Jacobi,
    /// A x = b by conjugate gradients, for a symmetric positive definite A.
    Cg,
}

impl From<SpmvMethodName> for SpmvMethod {
    fn from(name: SpmvMethodName) -> Self {
        match name {
            SpmvMethodName::Product => Self::Product,
            SpmvMethodName::Jacobi => Self::Jacobi,
            SpmvMethodName::Cg => Self::Cg,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion spmv A.mtx x.npy --steps 100 -o y.npy\n  \
    apportion spmv A.mtx b.npy --method cg --tolerance 1e-10 --steps 2000 -o x.npy\n  \
    apportion spmv A.mtx x.npy --steps 100 --speeds 4:2:1:1 --divide scotch -o y.npy\n  \
    mpirun -n 4 apportion spmv A.mtx x.npy --steps 100 -o y.npy\n\
    The result has the same bits for every division, number of processors and engine. Every product is checked \
    by sums with random factors.")]
pub struct SpmvArgs {
    /// Sparse square matrix (.mtx, also .mtx.gz).
    #[arg(value_name = "A")]
    pub matrix: PathBuf,
    /// Vector x (.npy, f64 or f32); the right-hand side b with --method jacobi or cg.
    #[arg(value_name = "X")]
    pub vector: PathBuf,
    /// Number of products, or the most steps towards a solution.
    #[arg(long, value_name = "N", default_value = "1", value_parser = within(1..=1 << 40),
        help_heading = "Steps")]
    pub steps: u64,
    /// What is done: y = A^N x, or A x = b solved by an iteration.
    #[arg(long, value_enum, default_value = "product", help_heading = "Steps")]
    pub method: SpmvMethodName,
    /// The norm of b - A x over that of b at which x is a solution [default: 1e-8].
    #[arg(long, value_name = "T", value_parser = number, help_heading = "Steps")]
    pub tolerance: Option<f64>,
    /// Output file for the vector after the last step, or the solution (.npy).
    #[arg(long, short, value_name = "FILE", value_parser = matrix, help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub sources: Sources,
    /// How rows are divided: metis, metis-recursive, metis-kway, scotch or contiguous; default: auto, the least forecast
    /// time.
    #[arg(long, value_name = "METHOD", default_value = "auto", help_heading = "Layout")]
    pub divide: String,
    /// Use this division: the part of each row, one number a line, as `partition --parts` writes it.
    #[arg(long = "parts", value_name = "FILE", conflicts_with = "divide", help_heading = "Layout")]
    pub given: Option<PathBuf>,
    /// Measure again instead of using the cached network between hosts; speeds are measured for each run.
    #[arg(long, help_heading = "For experts")]
    pub remeasure: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Write what happened (run.json).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Write each processor's timeline: a picture (.svg) or a Chrome trace.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
}
