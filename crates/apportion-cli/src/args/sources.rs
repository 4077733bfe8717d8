//! Flags for the source of speeds.

use super::numbers::{self, Speeds};
use clap::Args;
use std::path::{Path, PathBuf};

/// Where speeds come from.
#[derive(Debug, Args)]
pub struct Sources {
    /// Speeds, one per processor: ratios such as 9,1 or 9:1, or with a unit, "9 Gflop/s,1 Gflop/s".
    #[arg(long, value_name = "S,S,…", allow_negative_numbers = true, value_parser = numbers::speeds,
        help_heading = "Processors and speeds")]
    pub speeds: Option<Speeds>,
    /// Read speed functions from this file (models.json).
    #[arg(long, value_name = "FILE", conflicts_with = "speeds", help_heading = "Processors and speeds")]
    pub models: Option<PathBuf>,
    /// Read the processors and the network from this file (platform.toml).
    #[arg(long, value_name = "FILE", help_heading = "Processors and speeds")]
    pub platform: Option<PathBuf>,
}

impl Sources {
    /// The files that are read, which all ranks must find alike.
    pub fn files(&self) -> [Option<&Path>; 2] {
        [self.models.as_deref(), self.platform.as_deref()]
    }
}
