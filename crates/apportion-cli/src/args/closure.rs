//! `apportion closure`.

use super::RunningArgs;
use super::matrices::matrix_or_layout;
use super::running::semiring;
use apportion::kernels::Semiring;
use apportion::product::ClosureMethod;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Squaring: I + A is squared until nothing changes, at most ceil(log2 n) products run by one plan.\n\
    Elimination: Floyd and Warshall's algorithm on blocks, in smaller products with the work of one in all.\n\
    Predecessors: element (i, j), an i32, is the vertex before j on the best path from i to j, counted from 0; -1 where \
    there is no path or i = j. To recover a path, walk back from j until i. Among equally good paths the one of fewest edges \
    is taken, then the lesser vertex. They cost about ten times a plain closure.\n\
    Example:\n  apportion closure distances.npy -o shortest.npy --semiring min-plus --predecessors before.npy"
)]
pub struct ClosureArgs {
    /// The square matrix (.npy f32, f64, i32 or i64, bool or u8 for or-and, or .mtx). Absent edges are inf
    /// over min-plus, -inf over max-plus, the largest and the smallest number of integers, and entries that a
    /// sparse .mtx does not list.
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Output file for the closure (.npy); without it the closure is verified and dropped.
    #[arg(long, short, value_name = "C", value_parser = matrix_or_layout, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// The algebra: min-plus (shortest paths), max-plus (longest) or or-and (reachability).
    #[arg(long, value_name = "SEMIRING", default_value = "min-plus", value_parser = semiring,
        help_heading = "Product")]
    pub semiring: Semiring,
    /// Output file for the vertex before the last on each best path (.npy of i32); min-plus and max-plus
    /// only.
    #[arg(long, value_name = "FILE", value_parser = matrix_or_layout, help_heading = "Product")]
    pub predecessors: Option<PathBuf>,
    /// How the closure is computed; auto takes elimination where its forecast is less than that of half of
    /// the products that squaring may take.
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "For experts")]
    pub algorithm: AlgorithmName,
    #[command(flatten)]
    pub running: RunningArgs,
}

/// How a closure is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AlgorithmName {
    /// By forecast.
    Auto,
    /// Squares of I + A.
    Squaring,
    /// Elimination of blocks of vertices.
    Elimination,
}

impl AlgorithmName {
    /// The method; `None` for auto.
    pub fn method(self) -> Option<ClosureMethod> {
        match self {
            Self::Auto => None,
            Self::Squaring => Some(ClosureMethod::Squaring),
            Self::Elimination => Some(ClosureMethod::Elimination),
        }
    }
}
