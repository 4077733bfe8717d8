//! Flags of `apportion arrange`.

use super::numbers::whole;
use super::pictures::picture;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    #[arg(long, value_name = "FILE", value_parser = picture, help_heading = "Output")]
    pub svg: Option<PathBuf>,
    /// Write the order of processes for a launcher to the file of --export-to.
    #[arg(long, value_enum, requires = "export_to", help_heading = "Output")]
    pub export: Option<OrderFormat>,
    /// File for --export.
    #[arg(long, value_name = "FILE", requires = "export", help_heading = "Output")]
    pub export_to: Option<PathBuf>,
}
