//! `apportion arrange`.

use crate::console::Console;
use crate::output::{appear, open, picture};
use crate::prepare::processors::in_plan_order;
use apportion::error::{Error, Result};
use apportion::output::OutputFile;
use apportion::plan::arrange::{
    Arranged, Cost, Edges, Objective, Pivots, Search, arrange, arrange_grid, machinefile, places_in_order,
    rankfile, slurm_hostfile,
};
use apportion::plan::{Plan, Shape, read_plan};
use apportion::platform::{Platform, read_platform};
use apportion::report::pairs;
use apportion::units;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What an arrangement is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectiveName {
    /// Elements times levels of the platform's tree that they cross.
    Hops,
    /// Seconds on the links.
    Bandwidth,
    /// Seconds of a halo exchange whose directions differ in bandwidth.
    Asymmetric,
}

/// How to look for a better arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SearchName {
    /// Every one: the optimum. Refused above a million arrangements.
    Exhaustive,
    /// Malik's algorithms as printed: whole groups of a cluster, one column after the other, once. Columns only.
    Published,
    /// The same until nothing changes; exchanges of owners of equal shares where there are no columns.
    Heuristic,
    /// Simulated annealing from the heuristic's result.
    Local,
}

/// How a pivot row or column spreads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpreadName {
    /// From neighbour to neighbour.
    Ring,
    /// From its holder to everyone.
    OneToAll,
}

/// What lies beyond the border of a stencil's domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EdgesName {
    /// The opposite border.
    Periodic,
    /// Nothing.
    Open,
}

/// Files that place processes in the plan's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderFormat {
    /// Open MPI: mpirun --rankfile.
    Rankfile,
    /// MPICH: mpiexec -f.
    Machinefile,
    /// Slurm: SLURM_HOSTFILE, with srun --distribution=arbitrary.
    Slurm,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion arrange --plan plan.json --platform platforms/grid5000-table-3-9.toml --objective hops -o better.json\n  \
    apportion arrange --grid 512x512 --platform platforms/grid5000-table-4-1.toml --edges open --svg grid.svg\n\
    docs/network.md explains costs and searches.")]
pub struct Arguments {
    /// The plan.
    #[arg(long, value_name = "FILE", required_unless_present = "grid")]
    pub plan: Option<PathBuf>,
    /// Instead of a plan: cut a domain of so many rows and columns into a grid of equal parts, one for each processor; the
    /// grid's shape is sought, too.
    #[arg(long, value_name = "MxN", conflicts_with = "plan")]
    pub grid: Option<String>,
    /// Processors, their clusters ("site/node") and the network.
    #[arg(long, value_name = "FILE")]
    pub platform: PathBuf,
    /// What an arrangement is judged by; default: bandwidth, for --grid asymmetric.
    #[arg(long, value_enum)]
    pub objective: Option<ObjectiveName>,
    /// How to look for a better one.
    #[arg(long, value_enum, default_value = "heuristic")]
    pub search: SearchName,
    /// For hops and bandwidth: how a pivot row or column spreads.
    #[arg(long, value_enum, default_value = "ring")]
    pub flow: SpreadName,
    /// For asymmetric: what lies beyond the domain's border.
    #[arg(long, value_enum, default_value = "periodic")]
    pub edges: EdgesName,
    /// Seed of the local search.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the new plan.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw it.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the order of processes for a launcher, to the file of --export-to.
    #[arg(long, value_enum, requires = "export_to")]
    pub export: Option<OrderFormat>,
    /// Where --export goes.
    #[arg(long, value_name = "FILE", requires = "export")]
    pub export_to: Option<PathBuf>,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let outputs = [&args.export_to, &args.svg, &args.output];
    let [order, svg, output] = outputs.map(|path| open(path.as_ref()));
    let outputs = [order?, svg?, output?];
    let (arranged, platform, milliseconds) = match (&args.grid, &args.plan) {
        (Some(domain), _) => of_grid(args, domain)?,
        (None, Some(plan)) => of_plan(args, plan)?,
        (None, None) => unreachable!("one of them is required"),
    };
    let (_, name) = args.objective();
    write_files(args, outputs, &arranged.plan, &platform)?;
    let (before, after) = (arranged.cost_before, arranged.cost_after);
    console.result(
        || {
            json!({"objective": name, "cost_before": value(before), "cost_after": value(after),
                   "evaluations": arranged.evaluations, "milliseconds": milliseconds})
        },
        || {
            let saved = if before.total > 0.0 { 100.0 * (1.0 - after.total / before.total) } else { 0.0 };
            pairs(&[
                ("objective", name.to_owned()),
                ("before", shown(before)),
                ("after", format!("{} ({saved:.1} % less)", shown(after))),
                ("evaluations", units::show_count(u128::from(arranged.evaluations))),
                ("time", units::show_seconds(milliseconds / 1e3)),
            ])
        },
    );
    Ok(())
}

/// The plan on its platform, rearranged, and the milliseconds that it took.
fn of_plan(args: &Arguments, path: &Path) -> Result<(Arranged, Platform, f64)> {
    let plan = read_plan(path)?;
    if plan.layout().is_err() {
        return Err(Error::input(
            path.display().to_string(),
            "has no layout: shares of units have no places",
            "make one with `apportion partition --shape`",
        ));
    }
    let platform = in_plan_order(&plan, read_platform(&args.platform)?)?;
    // One to one where the plan's names are not the platform's.
    let plan = Plan { processors: platform.names(), ..plan };
    let begin = Instant::now();
    let arranged = arrange(&plan, &platform, args.objective().0, args.search(), args.seed)?;
    Ok((arranged, platform, begin.elapsed().as_secs_f64() * 1e3))
}

/// A grid of equal parts, and the milliseconds that it took.
fn of_grid(args: &Arguments, domain: &str) -> Result<(Arranged, Platform, f64)> {
    let shape = Shape::parse(domain, "--grid")?;
    let (Objective::Asymmetric(edges), _) = args.objective() else {
        return Err(Error::input(
            "--objective",
            "does not go with --grid, which is judged by its halo exchange",
            "leave it out or say asymmetric",
        ));
    };
    let platform = read_platform(&args.platform)?;
    let begin = Instant::now();
    let arranged = arrange_grid(shape, &platform, edges, args.search(), args.seed)?;
    Ok((arranged, platform, begin.elapsed().as_secs_f64() * 1e3))
}

impl Arguments {
    fn search(&self) -> Search {
        match self.search {
            SearchName::Exhaustive => Search::Exhaustive,
            SearchName::Published => Search::Published,
            SearchName::Heuristic => Search::Heuristic,
            SearchName::Local => Search::Local,
        }
    }

    fn objective(&self) -> (Objective, &'static str) {
        let pivots = match self.flow {
            SpreadName::Ring => Pivots::Ring,
            SpreadName::OneToAll => Pivots::OneToAll,
        };
        let edges = match self.edges {
            EdgesName::Periodic => Edges::Periodic,
            EdgesName::Open => Edges::Open,
        };
        let default = if self.grid.is_some() { ObjectiveName::Asymmetric } else { ObjectiveName::Bandwidth };
        match self.objective.unwrap_or(default) {
            ObjectiveName::Hops => (Objective::Hops(pivots), "hops"),
            ObjectiveName::Bandwidth => (Objective::Bandwidth(pivots), "bandwidth"),
            ObjectiveName::Asymmetric => (Objective::Asymmetric(edges), "asymmetric"),
        }
    }
}

fn write_files(
    args: &Arguments,
    [order, svg, output]: [Option<OutputFile>; 3],
    plan: &Plan,
    platform: &Platform,
) -> Result<()> {
    let places = plan.layout().map(places_in_order).unwrap_or_default();
    let launch = || match args.export {
        Some(OrderFormat::Rankfile) | None => rankfile(&places, platform),
        Some(OrderFormat::Machinefile) => machinefile(&places, platform),
        Some(OrderFormat::Slurm) => slurm_hostfile(&places, platform),
    };
    appear([(order, &launch), (svg, &|| picture(plan, platform)), (output, &|| plan.to_json())])
}

fn value(cost: Cost) -> Value {
    json!({"a": cost.a, "b": cost.b, "total": cost.total})
}

fn shown(cost: Cost) -> String {
    format!("{:.6} (A {:.6}, B {:.6})", cost.total, cost.a, cost.b)
}
