//! `apportion power`.

use super::RunningArgs;
use super::matrices::matrix_or_layout;
use super::numbers::whole;
use super::running::semiring;
use apportion::kernels::Semiring;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  apportion power A.npy -k 10 -o C.npy --semiring max-plus")]
pub struct PowerArgs {
    /// The square matrix (.npy f32 or f64, or .mtx; i32 or i64 for max-plus and min-plus; bool or u8 for
    /// or-and).
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Exponent; 0 gives the identity matrix of the semiring.
    #[arg(long, short = 'k', value_name = "K", value_parser = whole, allow_negative_numbers = true,
        help_heading = "Product")]
    pub exponent: u64,
    /// Output file for the power (.npy); without it the power is verified and dropped.
    #[arg(long, short, value_name = "C", value_parser = matrix_or_layout, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Plus-times, max-plus, min-plus or or-and.
    #[arg(long, value_name = "SEMIRING", default_value = "plus-times", value_parser = semiring,
        help_heading = "Product")]
    pub semiring: Semiring,
    #[command(flatten)]
    pub running: RunningArgs,
}
