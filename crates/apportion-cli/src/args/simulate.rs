//! Flags of `apportion simulate`.

use super::numbers::within;
use super::pictures::picture;
use super::{FactorKind, FlowArgs, NetworkArgs, SchemeArgs, SweepArgs};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion simulate --plan plan.json --platform platform.toml --trace timeline.svg\n  \
    apportion simulate --shape 4000x4000 --platform platform.toml --sweep bandwidth=100Mbit/s..10Gbit/s\n  \
    apportion simulate --grid 512x512x64 --platform platform.toml --steps 100 --nonoscillatory\n  \
    apportion simulate --kind lu --shape 20000x20000 --platform platform.toml --block 192\n\
    A message waits for the latency, then drains at its link's bandwidth. --sharing decides what happens \
    when several \
    messages use a link. docs/theory/forecasting.md compares the rules with each other and with SimGrid.")]
pub struct SimulateArgs {
    /// Plan to simulate (plan.json).
    #[arg(long, value_name = "FILE", help_heading = "Layout")]
    pub plan: Option<PathBuf>,
    /// Replay time-independent traces of smpirun instead of a plan: in the format of its -replay, a list of file
    /// names, or a directory with traces.txt.
    #[arg(long, value_name = "LIST",
        conflicts_with_all = ["plan", "models", "flow", "overlap", "look_ahead", "block",
        "blocks", "messages", "element", "export_simgrid", "sweep", "grid", "steps", "iterations",
        "nonoscillatory", "infinite_gauge", "third_order", "boundary", "exchange"],
        help_heading = "What is divided")]
    pub traces: Option<PathBuf>,
    /// Forecast a factorisation of the matrix of --shape instead of a plan: by every layout of its block columns
    /// or tiles, with the fastest block or that of --block.
    #[arg(long, value_enum, requires = "shape", help_heading = "What is divided",
        conflicts_with_all = ["plan", "traces", "grid", "steps", "flow", "overlap", "look_ahead", "blocks",
        "messages", "levels", "explain", "export_simgrid", "trace"])]
    pub kind: Option<FactorKind>,
    /// Simulate the advection of a field of these sizes (one to three; the last of three is undivided) by the
    /// plan, or by the fastest plan without one [default: of a plan of a grid, its rows and columns].
    #[arg(long, value_name = "MxNxL", conflicts_with = "sweep", help_heading = "What is divided")]
    pub grid: Option<String>,
    /// Number of time steps of an advection [default: 1].
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), conflicts_with = "sweep",
        help_heading = "Advection")]
    pub steps: Option<u64>,
    #[command(flatten)]
    pub scheme: SchemeArgs,
    /// Read the processors and the network from this file (platform.toml).
    #[arg(long, value_name = "FILE", help_heading = "Processors and speeds")]
    pub platform: PathBuf,
    /// Read speed functions from this file (models.json) [default: the platform's constant speeds].
    #[arg(long, value_name = "FILE", help_heading = "Processors and speeds")]
    pub models: Option<PathBuf>,
    #[command(flatten)]
    pub flow: FlowArgs,
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Size of an element in bytes [default: 8].
    #[arg(long, value_name = "BYTES", value_parser = within(1..=64), help_heading = "For experts")]
    pub element: Option<u64>,
    /// Explain what this processor waited for, and the chain of causes that ends the run; a name, or a number
    /// from 0.
    #[arg(long, value_name = "RANK", help_heading = "For experts")]
    pub explain: Option<String>,
    /// Write the schedule for SimGrid to this directory (platform.xml, hostfile, traces.txt, rank-N.txt) and
    /// print the command that replays it. The forecast then follows SimGrid's rules (--sharing weighted, 16
    /// bytes of envelope per message).
    #[arg(long, value_name = "DIR", help_heading = "For experts")]
    pub export_simgrid: Option<PathBuf>,
    /// Write each processor's timeline to this file: a picture (.svg) or a Chrome trace (any other name).
    #[arg(long, value_name = "FILE", value_parser = picture, help_heading = "Output")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub sweep: SweepArgs,
}

impl SimulateArgs {
    /// Size of an element in bytes, as given or by default.
    pub fn element(&self) -> u64 {
        self.element.unwrap_or(8)
    }
}
