//! Flags that only `partition --units` takes.

use super::numbers::{self, Wholes};
use crate::console::Console;
use apportion::error::{Error, Result};
use apportion::job::{ShareLimit, limits_by_rank, read_unit_costs};
use apportion::model::{Machine, Model};
use apportion::plan::shares::{Chain, Limits};
use apportion::platform::Processor;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

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
    /// Cost of each unit or vertex (text with one number a line, or 1-D .npy); parts of units are then contiguous. A unit of
    /// cost 2 takes as long as two of cost 1. --units may be left out. A second column has the costs of the second kind of
    /// work, see --mix.
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
    #[arg(long, conflicts_with_all = ["shape", "objective", "min", "max", "multiple_of"],
        help_heading = "For experts")]
    pub hierarchical: bool,
}

/// Units, with their costs if they differ.
pub struct Units {
    pub count: u64,
    /// Empty if they cost the same.
    pub costs: Vec<f64>,
    /// Those of a second kind of work; empty if the file has one column.
    pub second: Vec<f64>,
}

impl Units {
    /// Cost of all units.
    pub fn size(&self) -> f64 {
        if self.costs.is_empty() { self.count as f64 } else { self.costs.iter().sum() }
    }

    /// The costs of one kind of work, if units differ in them.
    ///
    /// # Errors
    /// Costs of two kinds.
    pub fn of_one_kind(self, path: Option<&Path>) -> Result<Option<Vec<f64>>> {
        match path {
            Some(path) if !self.second.is_empty() => {
                let place = format!("--costs {}", path.display());
                Err(Error::input(
                    place,
                    "has 2 columns",
                    "give one cost for each unit, or use --mix of partition",
                ))
            }
            _ => Ok(Some(self.costs).filter(|costs| !costs.is_empty())),
        }
    }
}

/// The units of --units and --costs.
///
/// # Errors
/// Neither; a file that cannot be read, has only costs of 0, or not one cost for each unit.
pub fn units_of(count: Option<u64>, costs: Option<&Path>) -> Result<Units> {
    let Some(path) = costs else {
        let remedy = "give the number of units, or --costs FILE with the cost of each";
        return match count {
            Some(count) => Ok(Units { count, costs: Vec::new(), second: Vec::new() }),
            None => Err(Error::input("--units", "is missing", remedy)),
        };
    };
    let mut columns = read_unit_costs(path)?.into_iter();
    let (costs, second) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
    let place = || format!("--costs {}", path.display());
    if let Some(count) = count.filter(|count| *count != costs.len() as u64) {
        let what = format!("has {} costs for {count} units", costs.len());
        return Err(Error::input(place(), what, "give one cost for each unit, or leave out --units"));
    }
    if columns.next().is_some() {
        let remedy = "give each unit one cost, or two with --mix";
        return Err(Error::input(place(), "has more than 2 columns", remedy));
    }
    if let Err(Error::Input { what, remedy, .. }) = Chain::new(&costs) {
        return Err(Error::input(place(), what, remedy));
    }
    Ok(Units { count: costs.len() as u64, costs, second })
}

/// The processors with shares capped by their memory, if the size of a unit is known.
///
/// # Errors
/// A size of a unit, but no processor with a memory.
pub fn with_memory(processors: Machine, args: &UnitsArgs, console: &Console) -> Result<Machine> {
    let limited = processors.platform.processors.iter().any(|p| p.memory.is_some());
    if args.unit_memory.is_some() {
        return Ok(processors);
    }
    let bytes = match (args.bytes_per_unit, limited) {
        (None, false) => return Ok(processors),
        (None, true) => {
            console
                .note("note: the processors' memory is not considered (--bytes-per-unit B makes it a cap)");
            return Ok(processors);
        }
        (Some(_), false) => {
            let what = "no processor of the platform has a memory";
            return Err(Error::input("--bytes-per-unit", what, "add memory to the platform file"));
        }
        (Some(bytes), true) => bytes,
    };
    if bytes == 0 {
        return Err(Error::input("--bytes-per-unit", "a unit has at least one byte", "use a larger number"));
    }
    let cap = |(model, processor): (Model, &Processor)| match processor.memory {
        Some(memory) => model.with_cap(memory as f64 / bytes as f64),
        None => Ok(model),
    };
    let Machine { platform, models, block } = processors;
    let models = models.into_iter().zip(&platform.processors).map(cap).collect::<Result<_>>()?;
    Ok(Machine { platform, models, block })
}

impl UnitsArgs {
    /// Limits by rank; empty if no flag sets any.
    pub fn limits(&self, p: usize) -> Result<Vec<Limits>> {
        limits_of(self.min.as_ref(), self.max.as_ref(), self.multiple_of.as_ref(), p)
    }
}

/// Limits by rank of p processors, from --min, --max and --multiple-of; empty if none is set.
///
/// # Errors
/// A list that has not one number for each processor.
pub fn limits_of(
    min: Option<&Wholes>,
    max: Option<&Wholes>,
    multiple_of: Option<&Wholes>,
    p: usize,
) -> Result<Vec<Limits>> {
    let limit = |numbers: Option<&Wholes>| match numbers.map(|Wholes(list)| &list[..]) {
        None => ShareLimit::None,
        Some([number]) => ShareLimit::All(*number),
        Some(list) => ShareLimit::Each(list.iter().copied().map(Some).collect()),
    };
    limits_by_rank(&limit(min), &limit(max), &limit(multiple_of), p)
}
