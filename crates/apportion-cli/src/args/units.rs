//! Flags that only `partition --units` takes.

use super::numbers::{self, Wholes};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What shares are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Objective {
    /// Shortest time of the slowest processor.
    #[value(alias = "makespan")]
    Time,
    /// Least energy: the last row of the time-energy front.
    Energy,
    /// Whole time-energy front; the plan is its fastest row.
    Both,
    /// Shortest sum of the times of contiguous parts: what one user of a pipeline waits for.
    Latency,
}

/// What only units can be asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Units")]
pub struct UnitsArgs {
    /// Minimise the worst case over the models' bands, and print its regret.
    #[arg(long, conflicts_with_all = ["hierarchical", "objective"], help_heading = "For experts")]
    pub robust: bool,
    /// Objective: time, also called makespan (any method); latency, the sum of the times of contiguous parts, as
    /// one user of a pipeline waits for; or energy or both, which need points with energy and use measured sizes
    /// only [default: time].
    #[arg(long, value_enum, conflicts_with = "shape")]
    pub objective: Option<Objective>,
    /// Cost of each unit (text with one number a line, or 1-D .npy); parts are then contiguous. A unit of cost 2
    /// takes as long as two of cost 1. --units may be left out. With --mix, a second column has the costs of the
    /// second kind of work.
    #[arg(long, value_name = "FILE", conflicts_with = "shape")]
    pub costs: Option<PathBuf>,
    /// Bytes of each unit (text with one size a line, or 1-D .npy); the processors' memory in the platform file
    /// then caps their contiguous parts.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shape", "bytes_per_unit"],
        help_heading = "For experts")]
    pub unit_memory: Option<PathBuf>,
    /// Let the processors change places: the plan's order says whose part comes first. Parts are contiguous.
    #[arg(long, conflicts_with = "shape", help_heading = "For experts")]
    pub any_order: bool,
    /// Minimum share: one number for all processors, or one for each.
    #[arg(long, alias = "least", value_name = "N,N,…", value_parser = numbers::wholes,
        conflicts_with = "shape")]
    pub min: Option<Wholes>,
    /// Maximum share: one number for all processors, or one for each.
    #[arg(long, alias = "most", value_name = "N,N,…", value_parser = numbers::wholes,
        conflicts_with = "shape")]
    pub max: Option<Wholes>,
    /// Make shares multiples of this number of units: one number for all processors, or one for each.
    #[arg(long, value_name = "B,B,…", value_parser = numbers::wholes, conflicts_with = "shape",
        help_heading = "For experts")]
    pub multiple_of: Option<Wholes>,
    /// Bytes of data per unit: a processor's memory in the platform file then caps its share.
    #[arg(long, value_name = "B", conflicts_with = "shape", value_parser = numbers::bytes)]
    pub bytes_per_unit: Option<u64>,
    /// Divide units of two kinds of work by two files, --models FIRST,SECOND: this fraction of a unit's time
    /// follows the first, the rest the second (such as prompts and answers of a language model). --models may also
    /// be the results of llama-bench -o json, a file for each device. --costs may have a column for each kind.
    #[arg(long, value_name = "FRACTION", requires = "models", value_parser = numbers::number,
        conflicts_with_all = ["shape", "robust"], help_heading = "For experts")]
    pub mix: Option<f64>,
    /// With --method exact, allow any whole share by interpolating between the measured sizes; implied where
    /// nothing was measured.
    #[arg(long, conflicts_with = "shape", help_heading = "For experts")]
    pub any_size: bool,
    /// Divide among the platform's clusters first, then within each; the flat division is printed for
    /// comparison.
    #[arg(long, conflicts_with_all = ["shape", "objective", "min", "max", "multiple_of"])]
    pub hierarchical: bool,
}
