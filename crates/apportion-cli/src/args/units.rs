//! Flags that only `partition --units` takes.

use super::numbers::{self, Wholes};
use clap::{Args, ValueEnum};

/// What shares are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Objective {
    /// Shortest time of the slowest processor.
    Time,
    /// Least energy: the last row of the time-energy front.
    Energy,
    /// Whole time-energy front; the plan is its fastest row.
    Both,
}

/// What only units can be asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Units")]
pub struct UnitsArgs {
    /// Minimise the worst case over the models' bands, and print its regret.
    #[arg(long, conflicts_with_all = ["hierarchical", "objective"])]
    pub robust: bool,
    /// Objective: time (any method), or energy or both, which need points with energy and use measured sizes
    /// only [default: time].
    #[arg(long, value_enum, conflicts_with = "shape")]
    pub objective: Option<Objective>,
    /// Minimum share: one number for all processors, or one for each.
    #[arg(long, alias = "least", value_name = "N,N,…", value_parser = numbers::wholes,
        conflicts_with = "shape")]
    pub min: Option<Wholes>,
    /// Maximum share: one number for all processors, or one for each.
    #[arg(long, alias = "most", value_name = "N,N,…", value_parser = numbers::wholes,
        conflicts_with = "shape")]
    pub max: Option<Wholes>,
    /// Make shares multiples of this number of units: one number for all processors, or one for each.
    #[arg(long, value_name = "B,B,…", value_parser = numbers::wholes, conflicts_with = "shape")]
    pub multiple_of: Option<Wholes>,
    /// Bytes of data per unit: a processor's memory in the platform file then caps its share.
    #[arg(long, value_name = "B", conflicts_with = "shape", value_parser = numbers::bytes)]
    pub bytes_per_unit: Option<u64>,
    /// Divide units of two kinds of work by two files, --models FIRST,SECOND: this fraction of a unit's time
    /// follows the first, the rest the second (such as prompts and answers of a language model).
    #[arg(long, value_name = "FRACTION", requires = "models", value_parser = numbers::number,
        conflicts_with_all = ["shape", "objective", "robust"])]
    pub mix: Option<f64>,
    /// With --method exact, allow any whole share by interpolating between the measured sizes; implied where
    /// nothing was measured.
    #[arg(long, conflicts_with = "shape")]
    pub any_size: bool,
    /// Divide among the platform's clusters first, then within each; the flat division is printed for
    /// comparison.
    #[arg(long, conflicts_with_all = ["shape", "objective", "min", "max", "multiple_of"])]
    pub hierarchical: bool,
}
