//! `apportion advect`.

use super::matrices::matrix;
use super::numbers::{memory, within};
use super::{EngineArgs, SchemeArgs, Sources};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion advect --field psi.npy --courant 0.3,-0.2 --steps 100 -o out.npy\n  \
    apportion advect --field psi.npy --courant cx.npy,cy.npy,cz.npy --steps 500 --nonoscillatory \
    --boundary periodic,periodic,zero --every 50 --frames pictures -o out.npy\n  \
    apportion advect --field large.npy --courant 0.3,0.1,0 --steps 500 --memory 2GiB -o out.npy\n  \
    mpirun -n 4 apportion advect --field psi.npy --courant 0.3,-0.2 --steps 100 -o out.npy")]
pub struct AdvectArgs {
    /// Field at the centres of the cells (.npy, f32 or f64, one to three dimensions).
    #[arg(long, value_name = "FILE", help_heading = "Advection")]
    pub field: PathBuf,
    /// Courant numbers along each axis: a number, or a file (.npy) of values on the faces, one longer than
    /// the field along its own axis.
    #[arg(long, value_name = "C,C,…", allow_hyphen_values = true, help_heading = "Advection")]
    pub courant: String,
    /// Number of time steps.
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), help_heading = "Advection")]
    pub steps: u64,
    #[command(flatten)]
    pub scheme: SchemeArgs,
    /// Output file for the field after the last step (.npy).
    #[arg(long, short, value_name = "FILE", value_parser = matrix, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Also write the field after every N steps, beside the output: OUT-000100.npy.
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), help_heading = "Advection")]
    pub every: Option<u64>,
    /// Write a picture of the field (.png; of the middle level in three dimensions) to this directory at the
    /// beginning, at the end, and after every --every steps.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub frames: Option<PathBuf>,
    /// Memory limit of the process, such as 2GiB: slabs of planes across the first axis are streamed from and
    /// to disk, between files beside the output (or in the directory of the checkpoint).
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "plan",
        help_heading = "Memory and checkpoints")]
    pub memory: Option<u64>,
    /// Keep the field in this directory after every --every steps (default: a tenth of all), so that --resume
    /// can continue.
    #[arg(long, value_name = "DIR", help_heading = "Memory and checkpoints")]
    pub checkpoint: Option<PathBuf>,
    /// Continue from the field in this directory, to the same bytes; without one, begin.
    #[arg(long, value_name = "DIR", conflicts_with = "checkpoint", help_heading = "Memory and checkpoints")]
    pub resume: Option<PathBuf>,
    /// Compute the inside of each box while halos travel; default: where the forecast is shorter.
    #[arg(long, help_heading = "Flow")]
    pub overlap: bool,
    #[command(flatten)]
    pub sources: Sources,
    /// Run this plan instead of making one; it divides the horizontal plane (rows x columns).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speeds", "method"], help_heading = "Layout")]
    pub plan: Option<PathBuf>,
    /// Layout method; default: auto, the least forecast time.
    #[arg(long, value_name = "METHOD", default_value = "auto", help_heading = "Layout")]
    pub method: String,
    /// Measure again instead of using the cached network between hosts; speeds are measured for each run.
    #[arg(long, help_heading = "For experts")]
    pub remeasure: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Write what happened (run.json).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Write each processor's timeline: a picture (.svg) or a Chrome trace.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Draw the plan.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub svg: Option<PathBuf>,
}
