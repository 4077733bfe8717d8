//! Flags of `simulate --sweep`.

use super::LogName;
use super::numbers::{self, within};
use super::pictures::picture;
use apportion::explore::ParameterSweep;
use clap::Args;
use std::path::PathBuf;

// clap does not enforce `requires` where the required flag conflicts with a given one, hence the conflicts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Parameter sweep")]
pub struct SweepArgs {
    /// Vary a parameter and find where another method or flow wins:
    /// bandwidth=100Mbit/s..10Gbit/s (of the slowest link; the others keep their ratio to it),
    /// latency=1us..1ms (of the longest), ratio=1..25 (speed of the first processor relative to the others'
    /// average; the sum of the speeds stays), processors=2..64 (the platform's, repeated from the first).
    #[arg(long, value_name = "PARAMETER=FROM..TO",
        conflicts_with_all = ["trace", "explain", "export_simgrid"])]
    pub sweep: Option<ParameterSweep>,
    /// Number of values in a geometric progression [default: every whole ratio or number of processors if
    /// there are at most 25, else 13].
    #[arg(long, value_name = "N", requires = "sweep",
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"],
        value_parser = within(2..=1000), help_heading = "For experts")]
    pub sweep_points: Option<u64>,
    /// Instead of a plan, sizes of a product, MxN (k = n) or MxKxN, laid out again for each value; with --kind,
    /// of a matrix, NxN.
    #[arg(long, value_name = "MxN|MxKxN", conflicts_with_all = ["plan", "traces", "trace", "grid",
        "explain", "export_simgrid"])]
    pub shape: Option<String>,
    /// Fraction by which a candidate must be faster to win over one that moves less data, such as 1%
    /// [default: 0].
    #[arg(long, value_name = "PERCENT", requires = "sweep", value_parser = margin,
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"], help_heading = "For experts")]
    pub margin: Option<f64>,
    /// Methods to compare, each with its fastest flow; with a single method, its flows [default: the plan's
    /// own layout, or all methods that auto compares; with processors also auto itself, which leaves out
    /// those that are not worth their messages; with --kind all its layouts].
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',',
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"], help_heading = "For experts")]
    pub methods: Option<Vec<String>>,
    /// Methods for the levels of the platform's clusters, from the top, as one more candidate; auto at a
    /// level is the best method there.
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',', requires = "sweep",
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"], help_heading = "For experts")]
    pub levels: Option<Vec<String>>,
    /// Write the table to this file (.csv or .json).
    #[arg(long, short, value_name = "FILE", requires = "sweep",
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"])]
    pub output: Option<PathBuf>,
    /// Draw the forecasts as curves.
    #[arg(long, value_name = "FILE", value_parser = picture, requires = "sweep",
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"])]
    pub svg: Option<PathBuf>,
    /// Logarithmic axes of the picture: auto (where values have a wide range), x, y, xy or none [default:
    /// auto].
    #[arg(long, value_name = "AXES", value_enum, requires = "sweep", hide_possible_values = true,
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"], help_heading = "For experts")]
    pub log: Option<LogName>,
}

/// A percentage, or a fraction, from 0 to 1.
fn margin(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim(), 0.01),
        None => (text, 1.0),
    };
    let fraction = numbers::number(number).ok().map(|x| x * scale).filter(|x| (0.0..=1.0).contains(x));
    fraction.ok_or_else(|| format!("\"{text}\" is not a percentage from 0% to 100%"))
}
