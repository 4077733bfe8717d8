//! Flags of `apportion partition`.

use super::numbers::within;
use super::pictures::picture;
use super::sizes::{LeftOverName, SharesName};
use super::{ExportArgs, FactorKind, FlowArgs, Sources, UnitsArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    apportion partition --shape 4000x4000 --speeds 1,1,1,1 --method grid --repeat 128x128\n\
    Methods for --units: even, proportional, largest-remainder, fpm, exact (see\n\
    docs/reference/methods.md).\n\
    Methods for --shape: rows, straight-line, columns, square-corner, square-rectangle, block-rectangle, \
    recursive, \
    grid, cartesian, column-groups, nagamochi-abe, hybrid, auto; inner and \
    boxes cut the inner dimension too; for comparison square-edge, square-middle.\n\
    Methods for --kind: greedy, grid, ratio, cyclic, alone, auto.")]
pub struct PartitionArgs {
    /// Divide this number of independent units.
    #[arg(long, value_name = "N", conflicts_with = "shape", value_parser = within(1..=u64::MAX))]
    pub units: Option<u64>,
    /// Lay out a matrix product of these sizes: MxN (k = n) or MxKxN.
    #[arg(long, value_name = "MxN|MxKxN")]
    pub shape: Option<String>,
    /// Lay out a factorisation of the matrix of --shape instead of a product: its block columns or tiles, with the
    /// fastest block or that of --block.
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
        "messages", "mix", "keep_all", "costs", "unit_memory", "any_order"])]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub sources: Sources,
    /// Read speeds over rows and columns (seconds of an update by a pivot block of --block indices), or over
    /// rows, k and columns, from this file (surfaces.json); areas follow the speed at each part's own shape.
    /// With --units, the surfaces may have any parameters: see --at.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speeds", "models", "compare"])]
    pub surfaces: Option<PathBuf>,
    /// With --units, fix all parameters of the surfaces but one, and divide along that one.
    #[arg(
        long,
        value_name = "NAME=X,…",
        value_delimiter = ',',
        requires = "surfaces",
        conflicts_with = "shape"
    )]
    pub at: Vec<String>,
    /// Method [default: fpm for --units, auto (the least forecast time) for --shape].
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Transfers on a link, for hybrid: one at a time, or both directions at once [default: the platform's
    /// links].
    #[arg(long, value_enum, conflicts_with = "units")]
    pub communication: Option<CommunicationName>,
    /// Processors of each column from left to right, for column-groups, such as p0,p1;p2,p3.
    #[arg(long, value_name = "P,P;P,P", conflicts_with = "units")]
    pub groups: Option<String>,
    /// What auto minimises, and with sum, largest or volume also columns, grid and recursive [default: time].
    #[arg(long, alias = "minimize", value_enum, conflicts_with = "units")]
    pub minimise: Option<MinimiseName>,
    /// Rows and columns of processors for grid and cartesian, such as 2x3 [default: the cheapest].
    #[arg(long, value_name = "PxQ", conflicts_with = "units")]
    pub mesh: Option<String>,
    /// Sizes of the parts: in proportion to the speeds; by forecast, so that computation and communication
    /// together end at the same time; or, for square-corner and auto, smaller squares for a bulk run that
    /// computes while data travel [default: forecast with auto, else proportional].
    #[arg(long, value_enum, conflicts_with_all = ["units", "surfaces", "compare"])]
    pub shares: Option<SharesName>,
    /// Give every processor a share. By default, auto leaves out processors whose messages would cost more
    /// time than their work saves.
    #[arg(long, conflicts_with_all = ["units", "method", "levels", "surfaces"])]
    pub keep_all: bool,
    /// Who gets the rows (--method rows) or units (--method proportional) that are left over after rounding
    /// down [default: soonest for rows, the largest remainders for units].
    #[arg(long, value_enum, conflicts_with_all = ["levels", "surfaces"])]
    pub left_over: Option<LeftOverName>,
    /// Methods for the levels of a hierarchy, from the top: among the platform's clusters ("site/node"), then
    /// among their members. The last method serves all levels below; auto tries every method.
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',', 
        conflicts_with_all = ["units", "method", "compare"])]
    pub levels: Option<Vec<String>>,
    /// Cut only at multiples of this number of rows and columns (whole pivot blocks) [default: 1].
    #[arg(long, value_name = "B", conflicts_with = "units", value_parser = within(1..=u64::MAX))]
    pub granularity: Option<u64>,
    /// Lay out one generalised block of R x C elements and repeat it cyclically (block-cyclic).
    #[arg(long, value_name = "RxC", conflicts_with = "units")]
    pub repeat: Option<String>,
    /// Run every method on the shape and print one table.
    #[arg(long, conflicts_with_all = ["units", "method"])]
    pub compare: bool,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Write the plan to this file (plan.json).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw the plan; with --compare, all layouts side by side with their costs.
    #[arg(long, value_name = "FILE", value_parser = picture)]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub of_units: UnitsArgs,
}
