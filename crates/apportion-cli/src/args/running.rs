//! The flags of a run: processors, plan, order of steps, engine, and reports.

use super::numbers::whole;
use super::pictures::picture;
use super::sizes::SharesName;
use super::{BlasArgs, EngineArgs, FlowArgs, Sources};
use apportion::kernels::Semiring;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct RunningArgs {
    #[command(flatten)]
    pub sources: Sources,
    /// Run this plan instead of making one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speeds", "method"], help_heading = "Layout")]
    pub plan: Option<PathBuf>,
    /// Layout method; default: auto, the least forecast time.
    #[arg(long, value_name = "METHOD", default_value = "auto", help_heading = "Layout")]
    pub method: String,
    /// Sizes of the parts: in proportion to the speeds; by forecast, so that computation and communication
    /// together end at the same time; or, for square-corner and auto, smaller squares for a bulk run that
    /// computes while data travel [default: forecast with auto, else proportional].
    #[arg(long, value_enum, conflicts_with = "plan", help_heading = "For experts")]
    pub shares: Option<SharesName>,
    /// Give every processor a share. By default, auto leaves out processors whose messages would cost more
    /// time than their work saves.
    #[arg(long, conflicts_with = "plan", help_heading = "For experts")]
    pub keep_all: bool,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Measure again instead of using the cached speed functions and network between hosts.
    #[arg(long, alias = "fresh", help_heading = "For experts")]
    pub remeasure: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Copy operands between threads, as between the nodes of a cluster; default: threads read them in place,
    /// unless the network is emulated, processors have a memory of their own, or --blocks divides the
    /// messages.
    #[arg(long, help_heading = "For experts")]
    pub copy: bool,
    #[command(flatten)]
    pub blas: BlasArgs,
    /// Seed of random choices: those of the verification, and the durations of mdem.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole, help_heading = "For experts")]
    pub seed: u64,
    /// Write what happened (run.json).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Write each processor's timeline, the forecast's beneath it: a picture (.svg) or a Chrome
    /// trace.
    #[arg(long, value_name = "FILE", value_parser = picture, help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Print what this processor waits for by the forecast, and the chain of causes that ends it: a name, or
    /// a number from 0. One product only.
    #[arg(long, value_name = "RANK", help_heading = "For experts")]
    pub explain: Option<String>,
    /// Draw the plan.
    #[arg(long, value_name = "FILE", value_parser = picture, help_heading = "Output")]
    pub svg: Option<PathBuf>,
}

/// A semiring by its name.
pub fn semiring(text: &str) -> Result<Semiring, String> {
    text.parse().map_err(|_| "choose plus-times, max-plus, min-plus or or-and".into())
}
