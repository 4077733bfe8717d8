//! `apportion partition`.

use super::compare::compare;
use super::graphs::{self, GraphArgs};
use super::layouts;
use super::sections::{sections, surfaces};
use crate::args::numbers::{sides, within};
use crate::args::pictures;
use crate::args::sizes::{LeftOverName, SharesName};
use crate::args::sources::UnitProcessors;
use crate::args::units::{Objective, Units, units_of, with_memory};
use crate::args::{ExportArgs, FactorKind, FlowArgs, Sources, UnitsArgs};
use crate::console::{Console, monitor};
use crate::output::plan::{relayed, text};
use crate::output::ranking::Ranking;
use crate::output::results::add_models;
use crate::output::units::ShowDivision;
use crate::output::{appear, open, picture};
use crate::prepare::options::sizing;
use crate::prepare::shape;
use apportion::error::{Error, Result};
use apportion::geometry::Extent;
use apportion::job::{
    Context, UnitObjective, UnitOptions, divide_units, network_options, parse_choice, read_unit_memory,
    size_parts,
};
use apportion::model::{Machine, WorkUnit};
use apportion::plan::shapes::{Communication, Hybrid, Mesh, Method, MethodOptions};
use apportion::plan::shares::{LeftOver, SecondKind};
use apportion::plan::{LayoutConstraints, Plan, Shape, read_plan};
use apportion::platform::Platform;
use apportion::run::World;
use apportion::schedule::DataPath;
use apportion::select::{Choice, Minimise, PlanOptions, areas, plan_fpm_br, plan_matmul};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Whether links carry one transfer at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CommunicationName {
    Serial,
    Parallel,
}

/// What auto minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MinimiseName {
    /// Forecast time.
    Time,
    /// Sum of half-perimeters.
    Sum,
    /// Largest half-perimeter.
    Largest,
    /// Elements moved (relayed elements count twice on a star).
    Volume,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion partition --units 1000 --speeds 9:1\n  \
    apportion partition --costs layers.txt --speeds 2,1 --export vllm\n  \
    apportion partition --shape 1000x1000 --speeds 9,1 --method square-corner --svg plan.svg\n  \
    apportion partition --shape 4000x4000 --platform clusters.toml --levels square-corner,columns\n  \
    apportion partition --shape 4000x4000 --speeds 1,1,1,1 --method grid --repeat 128x128\n  \
    apportion partition --graph mesh.graph --speeds 4:2:1:1 --parts mesh.graph.part.4\n\
    Methods for --units: even, proportional, largest-remainder, fpm, exact (see\n\
    docs/reference/methods.md).\n\
    Methods for --shape: rows, straight-line, columns, square-corner, square-rectangle, block-rectangle, \
    recursive, \
    grid, cartesian, column-groups, nagamochi-abe, hybrid, auto; inner and \
    boxes cut the inner dimension too; for comparison square-edge, square-middle.\n\
    Methods for --kind: greedy, grid, ratio, cyclic, alone, auto.\n\
    Methods for --graph: metis, metis-recursive, metis-kway, scotch, coordinates, contiguous, auto.")]
pub struct PartitionArgs {
    /// Divide this number of independent units.
    #[arg(long, value_name = "N", conflicts_with = "shape", value_parser = within(1..=u64::MAX),
        help_heading = "What is divided")]
    pub units: Option<u64>,
    /// Lay out a matrix product of these sizes: MxN (k = n) or MxKxN.
    #[arg(long, value_name = "MxN|MxKxN", help_heading = "What is divided")]
    pub shape: Option<String>,
    /// Lay out a factorisation instead: the block columns or tiles of the matrix of --shape, with the fastest block or
    /// that of --block.
    #[arg(long, value_enum, requires = "shape", help_heading = "What is divided",
        conflicts_with_all = ["units", "plan", "surfaces", "communication", "groups", "minimise", "mesh",
        "shares", "keep_all", "left_over", "levels", "granularity", "repeat", "compare",
        "flow", "overlap", "look_ahead", "blocks", "messages"])]
    pub kind: Option<FactorKind>,
    /// Instead of making a plan, read this one (plan.json) to export or draw it: see --export and --svg.
    /// Exports for cores need its --platform.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["units", "shape", "speeds", "models", "surfaces",
        "at", "method", "communication", "groups", "minimise", "levels", "granularity", "repeat",
        "compare", "flow", "overlap", "look_ahead", "block", "blocks", "output", "robust", "objective", "min",
        "max", "multiple_of", "any_size", "hierarchical", "bytes_per_unit", "mesh", "shares", "left_over",
        "messages", "mix", "keep_all", "costs", "unit_memory", "any_order"], help_heading = "Layout")]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub of_graph: GraphArgs,
    #[command(flatten)]
    pub sources: Sources,
    /// Read speeds over rows and columns (seconds of an update by a pivot block of --block indices), or over
    /// rows, k and columns, from this file (surfaces.json); areas follow the speed at each part's own shape.
    /// With --units, the surfaces may have any parameters: see --at.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speeds", "models", "compare"],
        help_heading = "For experts")]
    pub surfaces: Option<PathBuf>,
    /// With --units, fix all parameters of the surfaces but one, and divide along that one.
    #[arg(
        long,
        value_name = "NAME=X,…",
        value_delimiter = ',',
        requires = "surfaces",
        conflicts_with = "shape",
        help_heading = "For experts"
    )]
    pub at: Vec<String>,
    /// Method [default: fpm for --units, auto (the least forecast time) for --shape].
    #[arg(long, value_name = "METHOD", help_heading = "Layout")]
    pub method: Option<String>,
    /// Transfers on a link, for hybrid: one at a time, or both directions at once [default: the platform's
    /// links].
    #[arg(long, value_enum, conflicts_with = "units", help_heading = "For experts")]
    pub communication: Option<CommunicationName>,
    /// Processors of each column from left to right, for column-groups, such as p0,p1;p2,p3.
    #[arg(long, value_name = "P,P;P,P", conflicts_with = "units", help_heading = "For experts")]
    pub groups: Option<String>,
    /// What auto minimises, and with sum, largest or volume also columns, grid and recursive [default: time].
    #[arg(long, alias = "minimize", value_enum, conflicts_with = "units", help_heading = "For experts")]
    pub minimise: Option<MinimiseName>,
    /// Rows and columns of processors for grid and cartesian, such as 2x3 [default: the cheapest].
    #[arg(long, value_name = "PxQ", conflicts_with = "units", help_heading = "For experts")]
    pub mesh: Option<String>,
    /// Sizes of the parts: in proportion to the speeds; by forecast, so that computation and communication
    /// together end at the same time; or, for square-corner and auto, smaller squares for a bulk run that
    /// computes while data travel [default: forecast with auto, else proportional].
    #[arg(long, value_enum, conflicts_with_all = ["units", "surfaces", "compare"],
        help_heading = "For experts")]
    pub shares: Option<SharesName>,
    /// Give every processor a share. By default, auto leaves out processors whose messages would cost more
    /// time than their work saves.
    #[arg(long, conflicts_with_all = ["units", "method", "levels", "surfaces"], help_heading = "For experts")]
    pub keep_all: bool,
    /// Who gets the rows (--method rows) or units (--method proportional) that are left over after rounding
    /// down [default: soonest for rows, the largest remainders for units].
    #[arg(long, value_enum, conflicts_with_all = ["levels", "surfaces"], help_heading = "For experts")]
    pub left_over: Option<LeftOverName>,
    /// Methods for the levels of a hierarchy, from the top: among the platform's clusters ("site/node"), then
    /// among their members. The last method serves all levels below; auto tries every method.
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',', 
        conflicts_with_all = ["units", "method", "compare"], help_heading = "For experts")]
    pub levels: Option<Vec<String>>,
    /// Cut only at multiples of this number of rows and columns (whole pivot blocks) [default: 1].
    #[arg(long, value_name = "B", conflicts_with = "units", value_parser = within(1..=u64::MAX),
        help_heading = "For experts")]
    pub granularity: Option<u64>,
    /// Lay out one generalised block of R x C elements and repeat it cyclically (block-cyclic).
    #[arg(long, value_name = "RxC", conflicts_with = "units", help_heading = "For experts")]
    pub repeat: Option<String>,
    /// Run every method, of a graph every division, and print one table.
    #[arg(long, conflicts_with = "units", help_heading = "Layout")]
    pub compare: bool,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Write the plan to this file (plan.json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Draw the plan; with --compare, all layouts side by side with their costs.
    #[arg(long, value_name = "FILE", value_parser = pictures::picture, help_heading = "Output")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub of_units: UnitsArgs,
}

pub fn run(args: &PartitionArgs, console: &Console) -> Result<()> {
    if let Some(path) = &args.of_graph.graph {
        return graphs::partition(args, path, console);
    }
    check(args)?;
    if let Some(path) = &args.plan {
        return saved(args, path, console);
    }
    if let Some(kind) = args.kind {
        return layouts::partition(args, kind, console);
    }
    let (svg, output) = (open(args.svg.as_ref())?, open(args.output.as_ref())?);
    let mut division = None;
    let (plan, processors, others) = match &args.shape {
        None => {
            let units = units_of(args.units, args.of_units.costs.as_deref())?;
            let count = units.count;
            let UnitProcessors { machine, second } = match &args.surfaces {
                Some(path) => {
                    let machine = sections(path, &args.at, args.sources.platform()?)?;
                    UnitProcessors { machine, second: Vec::new() }
                }
                None => args.sources.for_units(args.of_units.mix, &units)?,
            };
            let machine = with_memory(machine, &args.of_units, console)?;
            let processors = UnitProcessors { machine, second };
            let options = args.unit_options(units, &processors)?;
            let processors = processors.machine;
            let context = Context { world: &World::solo(monitor()), monitor: monitor(), observer: console };
            let divided = divide_units(count, &options, &processors, context)?;
            let divided = division.insert(divided);
            (divided.plan.clone(), processors, Vec::new())
        }
        Some(sizes) => {
            let shape = shape(sizes, "--shape")?;
            let (processors, mut choices) = match &args.surfaces {
                Some(path) => by_surfaces(shape, args, path)?,
                None => {
                    let processors = args.sources.machine(WorkUnit::MultiplyAdd)?;
                    let options = plan_options(args, &processors, shape)?;
                    monitor().begin(0);
                    let plan = || plan_matmul(shape, &processors, &options);
                    let choices = console.watch("planning", monitor(), plan)?;
                    (processors, choices)
                }
            };
            let best = choices.remove(0);
            (best.plan.clone(), processors, std::iter::once(best).chain(choices).collect())
        }
    };
    let candidates = ranking(args, &processors, &others);
    let choice = candidates.as_ref().and_then(Ranking::record);
    let taken = hybrid_choice(args, &plan, &processors)?;
    let value_of_plan = || {
        let mut value = plan.to_value();
        if let Some(choice) = &choice {
            value["choice"] = json!(choice);
        }
        add_models(&mut value, &processors, plan.layout().is_ok().then_some("multiply-adds"));
        value
    };
    let line = || candidates.as_ref().and_then(Ranking::line);
    let compared = args.compare.then(|| compare(args, &plan, line(), &processors)).transpose()?;
    let drawn = || match &compared {
        Some(compared) => compared.picture(&processors.platform),
        None => picture(&plan, &processors.platform),
    };
    appear([(svg, &drawn), (output, &|| format!("{:#}\n", value_of_plan()))])?;
    let export = args.export.apply(&plan, &processors.platform, console)?;
    if let Some(idle) = idle(&plan, &processors) {
        console.note(idle);
    }
    console.result(
        || {
            let mut value = compared.as_ref().map_or_else(value_of_plan, |c| c.to_value());
            if let Some(division) = &division {
                division.extend(&mut value);
            }
            if let Some((layout, communication)) = &taken {
                value["hybrid"] = json!({"layout": layout, "communication": communication});
            }
            if let Some(relayed) = relayed(&plan, &processors.platform.network) {
                value["relayed"] = relayed.into();
            }
            if let Some(export) = &export {
                value["export"] = export.value.clone();
            }
            value
        },
        || match (export.as_ref().and_then(|e| e.text.as_ref()), &compared) {
            (Some(exported), _) => exported.clone(),
            (None, Some(compared)) => compared.to_text(),
            (None, None) => {
                let beside = division.as_ref().map_or_else(String::new, |d| d.text());
                let method = division.as_ref().map_or_else(|| plan.method.clone(), |d| d.method());
                let more = taken
                    .as_ref()
                    .map(|(layout, how)| ("hybrid", format!("{layout}, for {how} communication")));
                let more = more.into_iter().collect();
                let network = &processors.platform.network;
                text(&plan, method, &others, candidates.as_ref(), more, network) + &beside
            }
        },
    );
    Ok(())
}

/// Exports and draws a plan from a file.
fn saved(args: &PartitionArgs, path: &Path, console: &Console) -> Result<()> {
    let plan = read_plan(path)?;
    let svg = open(args.svg.as_ref())?;
    let named = || Platform::from_names(&plan.processors);
    appear([(svg, &|| picture(&plan, &named()))])?;
    let platform = args.sources.platform()?.unwrap_or_else(named);
    let export = args.export.apply(&plan, &platform, console)?;
    console.result(
        || json!({"plan": path.display().to_string(), "export": export.as_ref().map(|e| &e.value)}),
        || export.as_ref().and_then(|e| e.text.clone()).unwrap_or_default(),
    );
    Ok(())
}

/// Which layout `hybrid` took, and for which communication.
fn hybrid_choice(
    args: &PartitionArgs,
    plan: &Plan,
    processors: &Machine,
) -> Result<Option<(String, &'static str)>> {
    let (Ok(layout), "hybrid") = (plan.layout(), plan.method.as_str()) else { return Ok(None) };
    if processors.models.is_empty() {
        return Ok(None);
    }
    let terms = args.method_options(&processors.platform)?;
    let weights = areas(&processors.models, layout.shape())?;
    let mut taken = None;
    args.constraints()?.layout(layout.shape(), |shape| {
        let hybrid = Hybrid { communication: terms.communication, centre: terms.centre };
        let found = hybrid.choose(shape, &weights)?;
        taken = Some(found.method);
        Ok(found.layout)
    })?;
    let communication = match terms.communication {
        Communication::Serial => "serial",
        Communication::Parallel => "parallel",
    };
    Ok(taken.map(|name| (name, communication)))
}

/// A note about processors that a repeated block leaves without work.
fn idle(plan: &Plan, processors: &Machine) -> Option<String> {
    let block = plan.layout().ok()?.block()?.shape();
    let idle = plan.idle_processors();
    let (first, more) = (idle.first()?, idle.len() - 1);
    let who = if more == 0 { format!("{first} gets") } else { format!("{first} and {more} more get") };
    Some(format!(
        "apportion: note: {who} nothing: the repeated block of {} x {} elements is too small for {} \
         processors (repeat a larger one)",
        block.m,
        block.n,
        processors.platform.len()
    ))
}

/// Areas in proportion to the speeds at the parts' own shapes (FPM-BR).
fn by_surfaces(shape: Shape, args: &PartitionArgs, path: &Path) -> Result<(Machine, Vec<Choice>)> {
    let (platform, surfaces) = surfaces(path, args.sources.platform()?)?;
    let block = args.flow.options().block_size();
    let processors = Machine { platform, models: Vec::new(), block };
    let options = plan_options(args, &processors, shape)?;
    let choices = plan_fpm_br(shape, &processors.platform, &surfaces, block, &options)?;
    Ok((processors, choices))
}

/// The choice and its competitors, if there is a layout.
fn ranking<'a>(args: &PartitionArgs, processors: &Machine, choices: &'a [Choice]) -> Option<Ranking<'a>> {
    // A plan has no flow: each method counts with its best one.
    let mut seen = std::collections::BTreeSet::new();
    let choices: Vec<&Choice> = choices.iter().filter(|c| seen.insert(&c.plan.method)).collect();
    let (minimise, relative) = (minimise(args), processors.only_ratios());
    (choices.len() > 1).then_some(Ranking { choices, minimise, relative })
}

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
    if let Some(flag) = args.of_graph.flag() {
        return refuse(flag, "is of graphs", "add --graph FILE, or remove the flag");
    }
    if args.compare && args.method.is_some() {
        return refuse("--compare", "runs every method", "remove --method");
    }
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
        let remedy = "pass --units N or --costs FILE for independent units, --shape MxN for a matrix product, --graph FILE, or \
                      --plan FILE to export a plan";
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
