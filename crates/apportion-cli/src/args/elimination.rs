//! The flags of a factorisation: processors, block columns, engine, and reports.

use super::numbers::{whole, within};
use super::pictures::picture;
use super::{EngineArgs, Sources};
use apportion::plan::Factors;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct EliminationArgs {
    #[command(flatten)]
    pub sources: Sources,
    /// How block columns are given out: greedy (whatever remains is balanced), ratio (in rounds, as with HPL's -f),
    /// cyclic (in turn, as if all were equal), alone (all to the fastest); or tiles: grid (block columns to groups, their
    /// rows within a group); default: auto, the least forecast time.
    #[arg(long, value_name = "METHOD", default_value = "auto", help_heading = "Layout")]
    pub method: String,
    /// Columns of a block [default: by forecast].
    #[arg(long, value_name = "N", value_parser = within(1..=u64::MAX), help_heading = "Flow")]
    pub block: Option<u64>,
    /// Run this plan (plan.json) instead of making one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "block", "speeds"],
        help_heading = "Layout")]
    pub plan: Option<PathBuf>,
    /// Measure again instead of using the cached speed functions and network between hosts.
    #[arg(long, alias = "fresh", help_heading = "For experts")]
    pub remeasure: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Copy panels between threads, as between the nodes of a cluster; default: threads read them in place,
    /// unless the network is emulated or processors have a memory of their own.
    #[arg(long, help_heading = "For experts")]
    pub copy: bool,
    /// Seed of the verification.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole, help_heading = "For experts")]
    pub seed: u64,
    /// Write what happened (run.json).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Write each processor's timeline, the forecast's beneath it: a picture (.svg) or a Chrome trace.
    #[arg(long, value_name = "FILE", value_parser = picture, help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Draw the plan.
    #[arg(long, value_name = "FILE", value_parser = picture, help_heading = "Output")]
    pub svg: Option<PathBuf>,
}

impl EliminationArgs {
    /// The files that are read besides operands, which all ranks must find alike.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.sources.files().into_iter().flatten().chain(self.plan.as_deref())
    }
}

/// What a matrix is factored into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FactorKind {
    /// A = L L^T, of a symmetric positive definite matrix.
    Cholesky,
    /// P A = L U, with partial pivoting.
    Lu,
    /// P A P^T = L D L^T, of a symmetric matrix.
    Ldlt,
}

impl FactorKind {
    /// The factors.
    pub fn factors(self) -> Factors {
        match self {
            Self::Cholesky => Factors::Cholesky,
            Self::Lu => Factors::Lu,
            Self::Ldlt => Factors::Ldlt,
        }
    }
}
