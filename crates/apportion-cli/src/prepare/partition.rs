//! From the flags of `partition` to the options of a plan.

use super::options::sizing;
use super::sources::UnitProcessors;
use super::units::Units;
use crate::args::PartitionArgs;
use crate::args::numbers::sides;
use crate::args::partition::{CommunicationName, MinimiseName};
use crate::args::sizes::LeftOverName;
use crate::args::units::Objective;
use apportion::error::{Error, Result};
use apportion::geometry::Extent;
use apportion::job::{
    UnitObjective, UnitOptions, network_options, parse_choice, read_unit_memory, size_parts,
};
use apportion::model::Machine;
use apportion::plan::shapes::{Communication, Mesh, Method, MethodOptions};
use apportion::plan::shares::{LeftOver, SecondKind};
use apportion::plan::{LayoutConstraints, Shape};
use apportion::platform::Platform;
use apportion::schedule::DataPath;
use apportion::select::{Minimise, PlanOptions};

impl PartitionArgs {
    /// The options of the methods.
    pub fn method_options(&self, platform: &Platform) -> Result<MethodOptions> {
        let network = network_options(platform);
        Ok(MethodOptions {
            communication: match self.communication {
                Some(CommunicationName::Serial) => Communication::Serial,
                Some(CommunicationName::Parallel) => Communication::Parallel,
                None => network.communication,
            },
            groups: self.groups.as_deref().map(|text| columns_of(text, &platform.names())).transpose()?,
            objective: minimise(self).objective(),
            mesh: self.mesh.as_deref().map(mesh).transpose()?,
            left_over: self.left_over(),
            ..network
        })
    }

    /// The rule for left-over rows or units.
    pub fn left_over(&self) -> LeftOver {
        match self.left_over {
            Some(LeftOverName::First) => LeftOver::First,
            _ => LeftOver::Soonest,
        }
    }

    /// The constraints on the layout's cuts.
    pub fn constraints(&self) -> Result<LayoutConstraints> {
        let methods = |names: &Vec<String>| names.iter().map(|name| parse_choice("--levels", name)).collect();
        Ok(LayoutConstraints {
            granularity: self.granularity.unwrap_or(1),
            repeat: self.repeat.as_deref().map(block_size).transpose()?,
            levels: self.levels.as_ref().map(methods).transpose()?,
        })
    }
}

impl PartitionArgs {
    /// The options of a division of units among the processors of a machine.
    ///
    /// # Errors
    /// Limits that are not as many as the processors; a file of sizes that cannot be read; costs of two kinds of work
    /// without speeds of both.
    pub fn unit_options(&self, row: Units, processors: &UnitProcessors) -> Result<UnitOptions> {
        let (units, machine) = (&self.of_units, &processors.machine);
        let second = match (&row.second[..], units.mix) {
            ([], _) => None,
            (_, None) => {
                let remedy =
                    "add --mix FRACTION with the speeds of both kinds, or give one cost for each unit";
                return Err(Error::input("--costs", "has 2 columns", remedy));
            }
            (costs, Some(weight)) => {
                Some(SecondKind { weight, costs: costs.to_vec(), models: processors.second.clone() })
            }
        };
        Ok(UnitOptions {
            method: self.method.clone(),
            left_over: self.left_over.map(|_| self.left_over()),
            limits: units.limits(machine.models.len())?,
            robust: units.robust,
            hierarchical: units.hierarchical,
            objective: match units.objective {
                None | Some(Objective::Time) => UnitObjective::Time,
                Some(Objective::Energy) => UnitObjective::Energy,
                Some(Objective::Both) => UnitObjective::Both,
                Some(Objective::Latency) => UnitObjective::Latency,
            },
            costs: row.costs,
            second,
            unit_memory: units.unit_memory.as_deref().map(read_unit_memory).transpose()?.unwrap_or_default(),
            any_order: units.any_order,
            // The points of an emulated processor are not measured sizes.
            any_size: units.any_size
                || (self.method.as_deref() == Some("exact") && self.sources.are_emulated(machine)),
        })
    }
}

/// Parses the size of a generalised block, `RxC`.
fn block_size(text: &str) -> Result<Extent> {
    match sides(text).as_deref() {
        Ok(&[rows, cols]) if rows > 0 && cols > 0 => Ok(Extent { rows, cols }),
        _ => Err(Error::input(
            "--repeat",
            format!("\"{text}\" is not the size of a block"),
            "pass its rows and columns, such as 256x256",
        )),
    }
}

/// Parses the rows and columns of processors, `PxQ`.
fn mesh(text: &str) -> Result<Mesh> {
    match sides(text).as_deref() {
        Ok(&[rows, cols]) if (1..=1 << 20).contains(&rows) && (1..=1 << 20).contains(&cols) => {
            Ok(Mesh::new(rows as usize, cols as usize))
        }
        _ => Err(Error::input(
            "--mesh",
            format!("\"{text}\" is not a mesh of processors"),
            "pass its rows and columns, such as 2x3",
        )),
    }
}

/// Parses columns such as `p0,p1;p2,p3`.
fn columns_of(text: &str, names: &[String]) -> Result<Vec<Vec<usize>>> {
    let rank = |name: &str| {
        names.iter().position(|known| known == name.trim()).ok_or_else(|| {
            Error::input(
                "--groups",
                format!("there is no processor \"{}\"", name.trim()),
                "list the columns from left to right, such as --groups p0,p1;p2,p3",
            )
        })
    };
    text.split(';').map(|column| column.split(',').map(rank).collect()).collect()
}

/// The options of the plan.
pub fn plan_options(args: &PartitionArgs, machine: &Machine, shape: Shape) -> Result<PlanOptions> {
    let options = PlanOptions {
        method: parse_choice("--method", args.method.as_deref().unwrap_or("auto"))?,
        method_options: args.method_options(&machine.platform)?,
        constraints: args.constraints()?,
        minimise: minimise(args),
        keep_all: args.keep_all,
        ..args.flow.options().plan_options(shape.k, 8, DataPath::Copied)?
    };
    size_parts(options, args.shares.map(sizing), machine.only_ratios())
}

/// The objective of auto.
pub fn minimise(args: &PartitionArgs) -> Minimise {
    match args.minimise.unwrap_or(MinimiseName::Time) {
        MinimiseName::Time => Minimise::Time,
        MinimiseName::Sum => Minimise::Sum,
        MinimiseName::Largest => Minimise::Largest,
        MinimiseName::Volume => Minimise::Volume,
    }
}

/// Rejects flags that the mode or the method would ignore.
///
/// # Errors
/// Such a flag.
pub fn check(args: &PartitionArgs) -> Result<()> {
    let refuse = |flag: &str, what: &str, remedy: &str| Err(Error::input(flag, what, remedy));
    if args.plan.is_some() {
        let for_cores = args.export.export.as_ref().is_some_and(|export| export.format.needs_cores());
        if args.sources.platform.is_some() && !for_cores {
            let remedy = "remove the flag, or export commands for cores: taskset, numactl or mpirun";
            return refuse("--platform", "is not needed to export or draw a plan from a file", remedy);
        }
        return match args.export.export.is_some() || args.svg.is_some() {
            true => Ok(()),
            false => refuse("--plan", "there is nothing to do with it", "add --export FORMAT or --svg FILE"),
        };
    }
    let energy = matches!(args.of_units.objective, Some(Objective::Energy | Objective::Both));
    if args.of_units.mix.is_some() && energy {
        return refuse("--mix", "times of two kinds have no energies", "remove it, or --objective");
    }
    let is_of_units = args.units.is_some() || args.of_units.costs.is_some();
    if !is_of_units && args.shape.is_none() {
        let remedy = "pass --units N or --costs FILE for independent units, --shape MxN for a matrix product, or --plan FILE \
                      to export a plan";
        return refuse("partition", "there is nothing to divide", remedy);
    }
    if args.shape.is_some() && args.of_units.robust {
        let remedy = "use --units, or pass --models whose `seconds` are the slow ends of the bands";
        return refuse("--robust", "bands of speeds are considered for --units only", remedy);
    }
    if is_of_units {
        return match args.flow.flags().into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                refuse(flag, "cannot be used with --units, which send no messages", "remove the flag")
            }
            None if args.surfaces.is_none() && !args.at.is_empty() => {
                refuse("--at", "there are no surfaces to cut", "add --surfaces FILE")
            }
            None => Ok(()),
        };
    }
    let names = args.levels.as_deref().unwrap_or_default().iter().chain(&args.method);
    let runs = |method: Method| args.compare || names.clone().any(|name| name.parse() == Ok(method));
    let mut given = names.clone().peekable();
    let by_time = args.minimise == Some(MinimiseName::Time);
    let chooses = |name: &String| {
        name == "auto" || (!by_time && name.parse().is_ok_and(|method: Method| method.minimises()))
    };
    if args.minimise.is_some() && given.peek().is_some() && !given.any(chooses) {
        let (what, remedy) = match by_time {
            true => ("only auto uses it", "use --method auto, or remove the flag"),
            false => (
                "the method has no choice: only auto, columns, grid and recursive use it",
                "use one of these, or remove the flag",
            ),
        };
        return refuse("--minimise", what, remedy);
    }
    if args.mesh.is_some() && !runs(Method::Grid) && !runs(Method::Cartesian) {
        return refuse("--mesh", "only grid and cartesian use it", "add --method grid, or remove the flag");
    }
    if args.left_over.is_some() && !runs(Method::Rows) {
        return refuse("--left-over", "only rows uses it", "add --method rows, or remove the flag");
    }
    if args.communication.is_some() && !runs(Method::Hybrid) {
        return refuse("--communication", "only hybrid uses it", "add --method hybrid, or remove the flag");
    }
    if args.groups.is_some() && !runs(Method::ColumnGroups) {
        return refuse(
            "--groups",
            "only column-groups uses it",
            "add --method column-groups, or remove the flag",
        );
    }
    Ok(())
}
