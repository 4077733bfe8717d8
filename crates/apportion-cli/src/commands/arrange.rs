//! `apportion arrange`.

use crate::args::numbers::{sides, whole};
use crate::args::pictures;
use crate::console::{Console, monitor};
use crate::output::{appear, arrangement, open, picture};
use apportion::error::{Error, Result};
use apportion::job::in_plan_order;
use apportion::output::OutputFile;
use apportion::plan::arrange::{
    Arrangement, CostFunction, Edges, GridDomain, Pivots, SearchMethod, SearchOptions, arrange, arrange_grid,
    machinefile, places_in_order, rank_order, rankfile, slurm_hostfile,
};
use apportion::plan::shapes::Mesh;
use apportion::plan::{Division, Plan, read_plan};
use apportion::platform::{Platform, read_platform};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What an arrangement is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectiveName {
    /// Elements times the levels of the platform's tree that they cross.
    Hops,
    /// Seconds on the links.
    Bandwidth,
    /// Seconds of a halo exchange on links whose directions differ in bandwidth.
    Asymmetric,
}

/// How to look for a better arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SearchName {
    /// Try every arrangement and take the optimum; at most a million of them.
    Exhaustive,
    /// Malik's algorithms as published: whole groups of a cluster, one column after another, once; columns
    /// only.
    Published,
    /// The same, repeated until nothing changes; without columns, exchanges of owners of equal shares. Tries
    /// every arrangement if there are at most 2,000.
    Heuristic,
    /// Simulated annealing from the heuristic's result. Tries every arrangement if there are at most 20,000.
    Local,
    /// local up to 200 processors, heuristic beyond.
    Auto,
}

/// How a pivot row or column spreads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpreadName {
    /// From neighbour to neighbour.
    Ring,
    /// From its holder to all others.
    OneToAll,
}

/// What is beyond the border of a stencil's domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EdgesName {
    /// The opposite border.
    Periodic,
    /// Nothing.
    Open,
}

/// Files that map processes in the plan's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderFormat {
    /// Open MPI: mpirun --rankfile.
    Rankfile,
    /// MPICH: mpiexec -f.
    Machinefile,
    /// Slurm: SLURM_HOSTFILE, with srun --distribution=arbitrary.
    Slurm,
    /// Cray MPICH: MPICH_RANK_ORDER, with MPICH_RANK_REORDER_METHOD=3.
    Cray,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion arrange --plan plan.json --platform platforms/grid5000-table-3-9.toml --objective hops -o \
    better.json\n  \
    apportion arrange --grid 512x512 --platform platforms/grid5000-table-4-1.toml --edges open --svg \
    grid.svg\n\
    docs/theory/arrangement.md explains costs and searches.")]
pub struct ArrangeArgs {
    /// Plan to rearrange (plan.json).
    #[arg(long, value_name = "FILE", required_unless_present = "grid", help_heading = "Layout")]
    pub plan: Option<PathBuf>,
    /// Instead of a plan, cut a domain of M x N cells into a grid of equal parts, one per processor; the best
    /// shape of the grid is searched too.
    #[arg(long, value_name = "MxN", conflicts_with = "plan", help_heading = "What is divided")]
    pub grid: Option<String>,
    /// Shape of the grid that the search starts from, whose cost is the one before [default: the most nearly
    /// square].
    #[arg(
        long,
        value_name = "ROWSxCOLUMNS",
        requires = "grid",
        conflicts_with = "plan",
        help_heading = "For experts"
    )]
    pub grid_shape: Option<String>,
    /// Read the processors, their clusters ("site/node") and the network from this file (platform.toml).
    #[arg(long, value_name = "FILE", help_heading = "Processors and speeds")]
    pub platform: PathBuf,
    /// Cost to minimise [default: bandwidth, or asymmetric for a grid].
    #[arg(long, value_enum, help_heading = "Layout")]
    pub objective: Option<ObjectiveName>,
    /// Method of search.
    #[arg(long, value_enum, default_value = "auto", help_heading = "Layout")]
    pub search: SearchName,
    /// How a pivot row or column spreads, for hops and bandwidth [default: ring].
    #[arg(long, value_enum, help_heading = "Flow")]
    pub flow: Option<SpreadName>,
    /// What is beyond the domain's border, for asymmetric [default: periodic].
    #[arg(long, value_enum, help_heading = "For experts")]
    pub edges: Option<EdgesName>,
    /// Seed of --search local and auto [default: 1].
    #[arg(long, value_name = "N", value_parser = whole, help_heading = "For experts")]
    pub seed: Option<u64>,
    /// Write the new plan to this file (plan.json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Draw the new plan.
    #[arg(long, value_name = "FILE", value_parser = pictures::picture, help_heading = "Output")]
    pub svg: Option<PathBuf>,
    /// Write the order of processes for a launcher to the file of --export-to.
    #[arg(long, value_enum, requires = "export_to", help_heading = "Output")]
    pub export: Option<OrderFormat>,
    /// File for --export.
    #[arg(long, value_name = "FILE", requires = "export", help_heading = "Output")]
    pub export_to: Option<PathBuf>,
}

pub fn run(args: &ArrangeArgs, console: &Console) -> Result<()> {
    let outputs = [&args.export_to, &args.svg, &args.output];
    let [order, svg, output] = outputs.map(|path| open(path.as_ref()));
    let outputs = [order?, svg?, output?];
    let (arranged, platform, objective, milliseconds) = match (&args.grid, &args.plan) {
        (Some(domain), _) => of_grid(args, domain, console)?,
        (None, Some(plan)) => of_plan(args, plan, console)?,
        (None, None) => unreachable!("clap requires one of them"),
    };
    let drawn = Plan { method: arrangement::title(&arranged, objective), ..arranged.plan.clone() };
    write_files(args, outputs, [&arranged.plan, &drawn], &platform, console)?;
    if let Some(hint) = arrangement::hint(&arranged, objective, &platform) {
        console.note(hint);
    }
    let name = name(objective);
    console.result(
        || arrangement::to_value(&arranged, name, milliseconds),
        || arrangement::to_text(&arranged, objective, name, milliseconds),
    );
    Ok(())
}

/// The rearranged plan, its platform, the objective, and the time in milliseconds.
type ArrangeOutcome = (Arrangement, Platform, CostFunction, f64);

/// The plan on its platform, rearranged.
fn of_plan(args: &ArrangeArgs, path: &Path, console: &Console) -> Result<ArrangeOutcome> {
    let plan = read_plan(path)?;
    if matches!(plan.division, Division::Units { .. }) {
        return Err(Error::input(
            path.display().to_string(),
            "is a plan of units, which has no layout",
            "create one with `apportion partition --shape`",
        ));
    }
    let objective = args.objective(matches!(plan.division, Division::Grid(_)))?;
    let platform = in_plan_order(&plan, read_platform(&args.platform)?)?;
    let options = search_options(args);
    timed(platform, objective, console, |platform| arrange(&plan, platform, objective, options))
}

/// A grid of equal parts.
fn of_grid(args: &ArrangeArgs, domain: &str, console: &Console) -> Result<ArrangeOutcome> {
    let objective = args.objective(true)?;
    let domain = args.domain(domain, objective)?;
    let options = search_options(args);
    timed(read_platform(&args.platform)?, objective, console, |platform| {
        arrange_grid(domain, platform, options)
    })
}

fn search_options(args: &ArrangeArgs) -> SearchOptions<'static> {
    SearchOptions { watch: &watch, ..SearchOptions::new(args.search(), args.seed.unwrap_or(1)) }
}

/// Tells the monitor of evaluations; false once the search is to stop.
fn watch(evaluations: u64) -> bool {
    monitor().advance(evaluations);
    !monitor().is_stopped()
}

fn timed(
    platform: Platform,
    objective: CostFunction,
    console: &Console,
    search: impl FnOnce(&Platform) -> Result<Arrangement>,
) -> Result<ArrangeOutcome> {
    monitor().begin(0);
    let begin = Instant::now();
    let arranged = console.watch("arranging", monitor(), || search(&platform))?;
    Ok((arranged, platform, objective, begin.elapsed().as_secs_f64() * 1e3))
}

/// Writes the order of processes, the picture, and the plan.
fn write_files(
    args: &ArrangeArgs,
    [order, svg, output]: [Option<OutputFile>; 3],
    [plan, drawn]: [&Plan; 2],
    platform: &Platform,
    console: &Console,
) -> Result<()> {
    let places = plan.rectangles().map(places_in_order).unwrap_or_default();
    let export = args.export.map(|format| match format {
        OrderFormat::Rankfile => rankfile(&places, platform),
        OrderFormat::Machinefile => machinefile(&places, platform),
        OrderFormat::Slurm => slurm_hostfile(&places, platform),
        OrderFormat::Cray => Ok(rank_order(&places)),
    });
    let (text, warnings) =
        export.transpose()?.map_or_else(Default::default, |export| (export.text, export.warnings));
    warnings.iter().for_each(|warning| console.note(format!("apportion: warning: {warning}")));
    appear([(order, &|| text.clone()), (svg, &|| picture(drawn, platform)), (output, &|| plan.to_json())])
}

impl ArrangeArgs {
    /// The search.
    pub fn search(&self) -> SearchMethod {
        match self.search {
            SearchName::Exhaustive => SearchMethod::Exhaustive,
            SearchName::Published => SearchMethod::Published,
            SearchName::Heuristic => SearchMethod::Heuristic,
            SearchName::Local => SearchMethod::Local,
            SearchName::Auto => SearchMethod::Auto,
        }
    }

    /// The objective for a plan, or for a stencil's domain.
    ///
    /// # Errors
    /// A flag that the objective would ignore, or an objective that is not for domains.
    pub fn objective(&self, domain: bool) -> Result<CostFunction> {
        let pivots = match self.flow.unwrap_or(SpreadName::Ring) {
            SpreadName::Ring => Pivots::Ring,
            SpreadName::OneToAll => Pivots::OneToAll,
        };
        let edges = match self.edges.unwrap_or(EdgesName::Periodic) {
            EdgesName::Periodic => Edges::Periodic,
            EdgesName::Open => Edges::Open,
        };
        let default = if domain { ObjectiveName::Asymmetric } else { ObjectiveName::Bandwidth };
        let objective = match self.objective.unwrap_or(default) {
            ObjectiveName::Hops => CostFunction::Hops(pivots),
            ObjectiveName::Bandwidth => CostFunction::Bandwidth(pivots),
            ObjectiveName::Asymmetric => CostFunction::Asymmetric(edges),
        };
        let (halo, name) = (matches!(objective, CostFunction::Asymmetric(_)), name(objective));
        if domain && !halo {
            return Err(Error::input(
                format!("--objective {name}"),
                "is for matrix products, and a grid has the cost of its halo exchange",
                "use --objective asymmetric, or remove the flag",
            ));
        }
        let refuse = |flag: &str, with: String| {
            Err(Error::input(flag, format!("does not apply to {with}"), "remove the flag"))
        };
        if halo && self.flow.is_some() {
            return refuse("--flow", format!("--objective {name}"));
        }
        if !halo && self.edges.is_some() {
            return refuse("--edges", format!("--objective {name}"));
        }
        match self.search {
            SearchName::Local | SearchName::Auto => Ok(objective),
            _ if self.seed.is_some() => refuse("--seed", "any search but local and auto".into()),
            _ => Ok(objective),
        }
    }

    /// The domain that --grid and --grid-shape describe.
    ///
    /// # Errors
    /// Text that is not two whole numbers.
    pub fn domain(&self, text: &str, objective: CostFunction) -> Result<GridDomain> {
        let two = |text: &str, flag: &str, example: &str| match sides(text).as_deref() {
            Ok(&[m, n]) => Ok([m, n]),
            _ => {
                let what = format!("\"{text}\" is not two whole numbers");
                Err(Error::input(flag, what, format!("use two numbers, such as {example}")))
            }
        };
        let CostFunction::Asymmetric(edges) = objective else { unreachable!("a domain has this objective") };
        let [m, n] = two(text, "--grid", "512x512")?;
        let start = self.grid_shape.as_deref().map(|text| two(text, "--grid-shape", "2x6")).transpose()?;
        let whole = |side: u64| usize::try_from(side).unwrap_or(usize::MAX);
        Ok(GridDomain {
            start: start.map(|[r, c]| Mesh::new(whole(r), whole(c))),
            ..GridDomain::new(m, n, edges)
        })
    }
}

/// The name of an objective.
pub fn name(objective: CostFunction) -> &'static str {
    match objective {
        CostFunction::Hops(_) => "hops",
        CostFunction::Bandwidth(_) => "bandwidth",
        CostFunction::Asymmetric(_) => "asymmetric",
    }
}
