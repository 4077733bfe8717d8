//! Flags of `apportion random`.

use super::matrices::matrix;
use super::numbers::{whole, within};
use apportion::matrix::RandomKind;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion random 2000 2000 -o A.npy\n  \
    apportion random 10k 500 -o G.npy --kind i32 --seed 7\n\
    Floating-point numbers are uniform in [0, 1), integers in 0 to 99, and 3 of 10 truth values are true. \
    The same sizes, kind and seed give the same bytes on every machine. The file is streamed: it may be \
    larger than memory.")]
pub struct RandomArgs {
    /// Number of rows.
    #[arg(value_name = "M", value_parser = within(1..=1 << 53))]
    pub rows: u64,
    /// Number of columns.
    #[arg(value_name = "N", value_parser = within(1..=1 << 53))]
    pub cols: u64,
    /// Output file (.npy).
    #[arg(long, short, value_name = "FILE", value_parser = matrix, help_heading = "Output")]
    pub output: PathBuf,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole, help_heading = "For experts")]
    pub seed: u64,
    /// Element type: f64, f32, i32, i64 or bool.
    #[arg(long, value_name = "KIND", default_value = "f64", value_parser = kind, help_heading = "Output")]
    pub kind: RandomKind,
}

fn kind(text: &str) -> Result<RandomKind, String> {
    text.parse().map_err(|()| "choose f64, f32, i32, i64 or bool".into())
}
