//! Flags of `apportion study`.

use super::LogArgs;
use super::numbers::{self, whole, within};
use apportion::explore::Distribution;
use clap::Args;
use std::ops::RangeInclusive;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion study --draws 100k --processors 2..3\n  \
    apportion study --most-unequal 100 --searched 0 -o study.csv --svg pictures")]
pub struct StudyArgs {
    /// Number of processors, or a range with both ends included.
    #[arg(long, value_name = "P|P..P", default_value = "1..40", value_parser = range,
        help_heading = "Processors and speeds")]
    pub processors: RangeInclusive<usize>,
    /// Number of draws for each number of processors.
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = whole, help_heading = "Study")]
    pub draws: u64,
    /// Number of these draws that are also laid out by every method that auto compares, including the slow
    /// search.
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole, help_heading = "For experts")]
    pub searched: u64,
    /// Number of random machines of two clusters, for each number of processors, on which auto may leave
    /// processors out.
    #[arg(long, value_name = "N", default_value = "0", value_parser = within(0..=1_000_000),
        help_heading = "For experts")]
    pub subsets: u64,
    /// Number of random products with a long inner dimension, for each number of processors, that boxes may
    /// cut.
    #[arg(long, value_name = "N", default_value = "0", value_parser = within(0..=1_000_000),
        help_heading = "For experts")]
    pub boxes: u64,
    /// Distribution of the speeds: uniform, simplex, log-uniform or pareto.
    #[arg(long, value_name = "NAME", default_value = "uniform", help_heading = "For experts")]
    pub distribution: Distribution,
    /// Drop draws whose fastest processor is more than RATIO times as fast as the slowest.
    #[arg(long, value_name = "RATIO", value_parser = numbers::number, help_heading = "For experts")]
    pub most_unequal: Option<f64>,
    /// Seed of the draws.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole, help_heading = "For experts")]
    pub seed: u64,
    /// Write the figures to this file (.csv or .json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Draw study-columns.svg and study-non-rectangular.svg in this directory.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Reads `3` or `1..40`; both ends are included.
fn range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (whole(first), whole(last.trim_start_matches('='))) {
        (Ok(first), Ok(last)) => Ok(first as usize..=last as usize),
        _ => Err("write a number or a range, such as 1..40".to_owned()),
    }
}
