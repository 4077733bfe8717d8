//! `apportion matmul`.

use super::RunningArgs;
use super::matrices::matrix_or_layout;
use super::numbers::{self, memory, within};
use super::running::semiring;
use apportion::kernels::Semiring;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion matmul A.npy B.npy -o C.npy --platform platforms/two-unequal.toml --svg plan.svg\n  \
    apportion matmul A.npy B.npy -o C.npy --transpose-a --alpha 0.5 --beta 2 --c-in C0.npy\n  \
    apportion matmul X.npy --syrk --transpose-a -o Gram.npy\n  \
    mpirun -n 4 apportion matmul A.npy B.npy -o C.npy --checkpoint done")]
pub struct MatmulArgs {
    /// Left factor, m x k (.npy f32 or f64, or .mtx; i32 or i64 for max-plus and min-plus; bool or u8 for
    /// or-and; or the layout file, .json, of a matrix in several .npy files).
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Right factor, k x n; left out with --syrk.
    #[arg(value_name = "B", required_unless_present = "syrk")]
    pub b: Option<PathBuf>,
    /// Output file for the product (.npy), or a layout file (.json): then each processor's part is a file of
    /// its own. Without it the product is verified and dropped.
    #[arg(long, short, value_name = "C", value_parser = matrix_or_layout, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Plus-times, max-plus, min-plus or or-and.
    #[arg(long, value_name = "SEMIRING", default_value = "plus-times", value_parser = semiring,
        help_heading = "Product")]
    pub semiring: Semiring,
    /// Multiply A by its own transpose, as BLAS's syrk: C = alpha A A^T + beta C0, or A^T A with --transpose-a. Only the
    /// lower triangle of the product is computed, half of the work, and mirrored.
    #[arg(long, conflicts_with_all = ["b", "transpose_b", "adaptive", "tail", "memory", "panels", "checkpoint",
        "resume", "method", "shares"], help_heading = "For experts")]
    pub syrk: bool,
    #[command(flatten)]
    pub scaled: ScaledArgs,
    /// Repartition in mid-run, between pivot blocks, when a processor becomes slower or faster and moving
    /// pays.
    #[arg(long, help_heading = "Running")]
    pub adaptive: bool,
    /// Segments of the inner dimension after which --adaptive checks the speeds; at most one per pivot block.
    #[arg(long, value_name = "N", default_value_t = 64, requires = "adaptive", value_parser = within(1..=u64::MAX),
        help_heading = "For experts")]
    pub segments: u64,
    /// Leave this part of each processor's tiles of C, such as 10%, to a queue from which all threads of this
    /// process take the last tiles, so that none waits for one that others slow down [default: none].
    #[arg(long, value_name = "PART", value_parser = numbers::part, conflicts_with_all = ["adaptive", "copy",
        "blocks", "memory", "panels", "checkpoint", "resume"], help_heading = "For experts")]
    pub tail: Option<f64>,
    #[command(flatten)]
    pub panels: PanelArgs,
    #[command(flatten)]
    pub running: RunningArgs,
}

/// C = alpha op(A) op(B) + beta C0, as in BLAS.
#[derive(Debug, Args)]
pub struct ScaledArgs {
    /// Multiply by the transpose of A's file.
    #[arg(long, help_heading = "For experts")]
    pub transpose_a: bool,
    /// Multiply by the transpose of B's file.
    #[arg(long, help_heading = "For experts")]
    pub transpose_b: bool,
    /// Factor of the product; added to it over max-plus and min-plus, 0 or 1 over or-and [default: none].
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = scalar,
        help_heading = "For experts")]
    pub alpha: Option<f64>,
    /// Factor of the initial C, in the same sense [default: none].
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = scalar, requires = "c_in",
        help_heading = "For experts")]
    pub beta: Option<f64>,
    /// Initial C, m x n, to which the product is added: over max-plus the larger, over min-plus the smaller
    /// of both.
    #[arg(long, value_name = "FILE", help_heading = "For experts")]
    pub c_in: Option<PathBuf>,
}

/// Panels of C, one after the other.
#[derive(Debug, Args)]
pub struct PanelArgs {
    /// Memory limit per process, such as 64MiB: panels of C are streamed from and to disk (.npy files only).
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with_all = ["plan", "adaptive"],
        help_heading = "Memory and checkpoints")]
    pub memory: Option<u64>,
    /// Number of panels into which C's rows are cut, computed one after the other; default with --checkpoint:
    /// 16.
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), conflicts_with_all = ["plan", "adaptive"],
        help_heading = "For experts")]
    pub panels: Option<u64>,
    /// Keep each finished panel of C in this directory, so that --resume can continue after any end.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "adaptive"],
        help_heading = "Memory and checkpoints")]
    pub checkpoint: Option<PathBuf>,
    /// Continue from the panels in this directory, to the same bytes; they were cut as the first run decided.
    /// Without any, begin.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "adaptive", "checkpoint"],
        help_heading = "Memory and checkpoints")]
    pub resume: Option<PathBuf>,
}

/// A number; infinities are for those semirings whose zero they are.
fn scalar(text: &str) -> Result<f64, String> {
    numbers::number(text)
        .or_else(|_| text.parse::<f64>().map_err(|_| String::new()))
        .ok()
        .filter(|x: &f64| !x.is_nan())
        .ok_or_else(|| "give a number such as 2, -0.5 or 1e3".into())
}
