//! From the flags of `partition` to the options of a plan.

use super::processors::{Processors, method_at, terms};
use super::sizes::sized;
use crate::args::PartitionArgs;
use crate::args::numbers::sides;
use crate::args::partition::{CommunicationName, MinimiseName};
use crate::args::sizes::LeftOverName;
use apportion::error::{Error, Result};
use apportion::geometry::Extent;
use apportion::plan::shapes::{Communication, Mesh, Method, MethodOptions};
use apportion::plan::shares::LeftOver;
use apportion::plan::{LayoutConstraints, Shape};
use apportion::platform::Platform;
use apportion::schedule::DataPath;
use apportion::select::{Minimise, PlanOptions};

impl PartitionArgs {
    /// The options of the methods.
    pub fn terms(&self, platform: &Platform) -> Result<MethodOptions> {
        let communication = self.communication.map(|name| match name {
            CommunicationName::Serial => Communication::Serial,
            CommunicationName::Parallel => Communication::Parallel,
        });
        Ok(MethodOptions {
            objective: minimise(self).objective(),
            mesh: self.mesh.as_deref().map(mesh).transpose()?,
            left_over: self.left_over(),
            ..terms(platform, communication, self.groups.as_deref())?
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
    pub fn form(&self) -> Result<LayoutConstraints> {
        let methods = |names: &Vec<String>| names.iter().map(|name| method_at("--levels", name)).collect();
        Ok(LayoutConstraints {
            granularity: self.granularity.unwrap_or(1),
            repeat: self.repeat.as_deref().map(block_size).transpose()?,
            levels: self.levels.as_ref().map(methods).transpose()?,
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

/// The options of the plan.
pub fn wishes(args: &PartitionArgs, processors: &Processors, shape: Shape) -> Result<PlanOptions> {
    let options = PlanOptions {
        method: method_at("--method", args.method.as_deref().unwrap_or("auto"))?,
        flow: args.flow.flow.0,
        block: args.flow.pivot(shape.k)?,
        overlap: args.flow.overlaps(),
        look_ahead: args.flow.look_ahead()?,
        terms: args.terms(&processors.platform)?,
        form: args.form()?,
        minimise: minimise(args),
        element: 8,
        fit: args.flow.fit(DataPath::Copied),
        messages: args.flow.messages()?,
        keep_all: args.keep_all,
        ..PlanOptions::open(args.flow.pivot(shape.k)?, 8)
    };
    sized(options, args.shares, processors.only_ratios())
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
        return match args.export.export.is_some() || args.svg.is_some() {
            true => Ok(()),
            false => refuse("--plan", "there is nothing to do with it", "add --export FORMAT or --svg FILE"),
        };
    }
    if args.units.is_none() && args.shape.is_none() {
        let remedy = "pass --units N for independent units, --shape MxN for a matrix product, or --plan FILE \
                      to export a plan";
        return refuse("partition", "there is nothing to divide", remedy);
    }
    if args.shape.is_some() && args.of_units.robust {
        let remedy = "use --units, or pass --models whose `seconds` are the slow ends of the bands";
        return refuse("--robust", "bands of speeds are considered for --units only", remedy);
    }
    if args.units.is_some() {
        return match args.flow.given().into_iter().find(|(_, given)| *given) {
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
